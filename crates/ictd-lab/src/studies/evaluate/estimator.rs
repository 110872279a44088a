//! Estimators by name.

use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::did_you_mean;

/// A way to estimate values, settings aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// Weighted softmax TD: what the layers of a Transformer do.
    #[default]
    SoftmaxTd,
    /// Least-squares TD on a kernel, with a ridge.
    KernelLstd,
    /// Least-squares TD on the features, with a ridge.
    LinearLstd,
    /// Least-squares TD with one number per state.
    Lstd,
    /// The same with traces.
    LstdLambda,
    /// Kernel-based reinforcement learning.
    Kbrl,
    /// TD with one number per state.
    TabularTd,
    /// TD on the features.
    LinearTd,
    /// Means of the returns that followed states.
    MonteCarlo,
    /// One number for all states.
    Constant,
}

impl Estimator {
    /// All of them, softmax TD first.
    pub const ALL: [Self; 10] = [
        Self::SoftmaxTd,
        Self::KernelLstd,
        Self::LinearLstd,
        Self::Lstd,
        Self::LstdLambda,
        Self::Kbrl,
        Self::TabularTd,
        Self::LinearTd,
        Self::MonteCarlo,
        Self::Constant,
    ];

    /// As it is typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SoftmaxTd => "softmax-td",
            Self::KernelLstd => "kernel-lstd",
            Self::LinearLstd => "linear-lstd",
            Self::Lstd => "lstd",
            Self::LstdLambda => "lstd-lambda",
            Self::Kbrl => "kbrl",
            Self::TabularTd => "tabular-td",
            Self::LinearTd => "linear-td",
            Self::MonteCarlo => "monte-carlo",
            Self::Constant => "constant",
        }
    }

    /// As it is called in a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::SoftmaxTd => "softmax TD",
            Self::KernelLstd => "ridge kernel LSTD",
            Self::LinearLstd => "ridge linear LSTD",
            Self::Lstd => "tabular LSTD",
            Self::LstdLambda => "tabular LSTD(λ)",
            Self::Kbrl => "KBRL",
            Self::TabularTd => "tabular TD",
            Self::LinearTd => "linear TD",
            Self::MonteCarlo => "every-visit Monte Carlo",
            Self::Constant => "one number for all",
        }
    }
}

impl FromStr for Estimator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::as_str);
        Self::ALL.into_iter().find(|e| e.as_str() == text).ok_or_else(|| {
            let meant = did_you_mean(text, names);
            format!("'{text}' is no estimator, expected one of {}{meant}", names.join(", "))
        })
    }
}

impl Serialize for Estimator {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
