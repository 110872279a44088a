//! The built-in kernels by name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Elu1, Kernel, Linear, Rbf, Relu, Softmax, Tabular};

/// The name of a built-in kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum KernelName {
    /// [`Softmax`], the paper's.
    #[default]
    Softmax,
    /// [`Relu`].
    Relu,
    /// [`Elu1`].
    Elu1,
    /// [`Rbf`].
    Rbf,
    /// [`Linear`].
    Linear,
    /// [`Tabular`].
    Tabular,
}

/// Why a kernel could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The name must be that of a built-in kernel.
    #[error("kernel is '{0}', expected one of softmax, relu, elu1, rbf, linear, tabular")]
    Unknown(String),
    /// The temperature must be positive and finite.
    #[error("temperature is {0:?}, expected a finite number > 0 with a finite reciprocal")]
    Temperature(f64),
}

/// A temperature τ that scores can be divided by: positive and finite, and so is its reciprocal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature(f64);

impl Temperature {
    /// Refuses a number that is no temperature.
    pub fn new(temperature: f64) -> Result<Self, KernelError> {
        let usable = temperature > 0.0 && temperature.is_finite() && temperature.recip().is_finite();
        if usable { Ok(Self(temperature)) } else { Err(KernelError::Temperature(temperature)) }
    }

    /// τ.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl KernelName {
    /// All names, in the order of the tables.
    pub const ALL: [KernelName; 6] =
        [Self::Softmax, Self::Relu, Self::Elu1, Self::Rbf, Self::Linear, Self::Tabular];

    /// The name as typed and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Softmax => "softmax",
            Self::Relu => "relu",
            Self::Elu1 => "elu1",
            Self::Rbf => "rbf",
            Self::Linear => "linear",
            Self::Tabular => "tabular",
        }
    }

    /// The kernel at a temperature.
    pub fn at(self, temperature: f64) -> Result<Arc<dyn Kernel>, KernelError> {
        // Kernels without a temperature are as strict about it, so that a mistake does not depend on the kernel.
        let temperature = Temperature::new(temperature)?;
        Ok(match self {
            Self::Softmax => Arc::new(Softmax(temperature)),
            Self::Relu => Arc::new(Relu),
            Self::Elu1 => Arc::new(Elu1(temperature)),
            Self::Rbf => Arc::new(Rbf(temperature)),
            Self::Linear => Arc::new(Linear(temperature)),
            Self::Tabular => Arc::new(Tabular),
        })
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for KernelName {
    type Err = KernelError;
    fn from_str(name: &str) -> Result<Self, KernelError> {
        Self::ALL
            .into_iter()
            .find(|k| k.as_str() == name)
            .ok_or_else(|| KernelError::Unknown(name.to_owned()))
    }
}
