//! How weights between many distinct states are computed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::cost;

/// The arithmetic of exponentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Exponentials of 24 bits, sums of 53: twice as fast, with a bound on the error.
    Single,
    /// 53 bits.
    #[default]
    Double,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Single => "single",
            Self::Double => "double",
        })
    }
}

impl FromStr for Precision {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "single" => Ok(Self::Single),
            "double" => Ok(Self::Double),
            _ => Err(format!("precision is '{name}', expected single or double")),
        }
    }
}

/// What may be spent on weights between distinct states, and what may be left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// The arithmetic of exact products.
    pub precision: Precision,
    /// The largest error of a column of weights, Σ_s |error| where weights sum to 1, that pivots may leave; `None` for exact products
    /// only.
    pub tolerance: Option<f64>,
    /// Bytes that pivots may take.
    pub memory: f64,
    /// Weights of exponential kernels that are computed once and kept at most, as a number; more are computed anew in every layer: reading them
    /// from memory takes longer than that.
    pub kept: usize,
}

/// The tolerance where exact weights take long.
const AUTOMATIC: f64 = 1e-6;
/// They do beyond these nanoseconds of one core: ten seconds of two.
const LONG: f64 = 2e10;

impl Effort {
    /// Exact weights where layers between so many distinct states take up to ten seconds of two cores, by a model of their time that is the same on
    /// every machine; beyond that pivots with a tolerance of 1e-6.
    pub fn automatic(num_states: usize, feature_dim: usize, num_layers: usize) -> Self {
        let long = cost::exact(num_states, feature_dim, num_layers) > LONG;
        Self { tolerance: long.then_some(AUTOMATIC), ..Self::default() }
    }
}

impl Default for Effort {
    fn default() -> Self {
        Self { precision: Precision::Double, tolerance: None, memory: f64::INFINITY, kept: 1 << 22 }
    }
}

/// How products with weights are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Route {
    /// Weights are computed once and kept.
    #[default]
    Kept,
    /// Through the d features: the kernel is linear.
    Features,
    /// Weights are computed anew in every layer, column by column.
    Columns,
    /// Weights are computed anew in every layer, in blocks and both triangles at once.
    Blocks,
    /// Through a few of the states, with a bound on the error.
    Pivots,
}

impl Route {
    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Features => "features",
            Self::Columns => "columns",
            Self::Blocks => "blocks",
            Self::Pivots => "pivots",
        }
    }
}
