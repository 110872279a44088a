//! The circuits by name.

use std::fmt;
use std::str::FromStr;

use ictd::construction::Algorithm;
use serde::{Serialize, Serializer};

/// A circuit whose algorithm is known, or a trained one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitName {
    /// The TD block of softmax attention.
    Td,
    /// Its mirror image.
    Mirror,
    /// TD(0) by linear attention.
    TdLinear,
    /// The residual gradient by linear attention.
    ResidualGradient,
    /// Regression on returns by linear attention.
    MonteCarlo,
    /// As [`TdLinear`](Self::TdLinear), with so many layers that they come to least-squares TD.
    Lstd,
    /// What a checkpoint holds.
    Trained,
}

impl CircuitName {
    /// All of them.
    pub const ALL: [CircuitName; 7] = [
        CircuitName::Td,
        CircuitName::Mirror,
        CircuitName::TdLinear,
        CircuitName::ResidualGradient,
        CircuitName::MonteCarlo,
        CircuitName::Lstd,
        CircuitName::Trained,
    ];

    /// The name as typed and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            CircuitName::Td => "td",
            CircuitName::Mirror => "mirror",
            CircuitName::TdLinear => "td-linear",
            CircuitName::ResidualGradient => "residual-gradient",
            CircuitName::MonteCarlo => "monte-carlo",
            CircuitName::Lstd => "lstd",
            CircuitName::Trained => "trained",
        }
    }

    /// What it computes, and the formula of a step.
    pub(super) fn algorithm(self) -> (&'static str, &'static str) {
        match self {
            CircuitName::Td => (
                "weighted softmax TD",
                "v(s_j) += α Σ_k K(x_k, x_j) (r_k + γ v(s_{k+1}) − v(s_k)), K = softmax over k of ⟨x_k, x_j⟩/τ",
            ),
            CircuitName::Mirror => (
                "weighted softmax TD on reflected transitions (−x, −r, −x')",
                "v(s_j) −= α Σ_k K(−x_k, x_j) (r_k + γ v(s_{k+1}) − v(s_k)), K = softmax over k of ⟨−x_k, x_j⟩/τ",
            ),
            CircuitName::TdLinear => {
                ("batch linear TD(0)", "w += (α/n) Σ_i (r_i + γ w·x_{i+1} − w·x_i) x_i, v = w·x")
            }
            CircuitName::ResidualGradient => (
                "batch residual gradient",
                "w += (α/n) Σ_i (r_i + γ w·x_{i+1} − w·x_i) (x_i − γ x_{i+1}), v = w·x",
            ),
            CircuitName::MonteCarlo => (
                "gradient descent of the regression on returns",
                "w += (α/n) Σ_i (G_i − w·x_i) x_i with G_i = r_i + γ G_{i+1}, v = w·x",
            ),
            CircuitName::Lstd => (
                "batch least-squares TD, by many layers of linear TD(0)",
                "w → the solution of Σ_i x_i (x_i − γ x_{i+1})ᵀ w = Σ_i r_i x_i, v = w·x",
            ),
            CircuitName::Trained => (
                "what the parameters of --params compute: not known from a construction",
                "Z += α V Z K(A), then the block's memory rows; see `ictd mirror` on what trained blocks compute",
            ),
        }
    }

    /// The construction in linear attention that it is, where it is one.
    pub(super) fn construction(self) -> Option<Algorithm> {
        match self {
            CircuitName::TdLinear | CircuitName::Lstd => Some(Algorithm::Td),
            CircuitName::ResidualGradient => Some(Algorithm::ResidualGradient),
            CircuitName::MonteCarlo => Some(Algorithm::MonteCarlo),
            CircuitName::Td | CircuitName::Mirror | CircuitName::Trained => None,
        }
    }

    /// Depth where none is given.
    pub(super) fn usual_layers(self) -> usize {
        if self == CircuitName::Lstd { 200 } else { 4 }
    }

    /// Step size where none is given: features of the example have a mean square of 1/3, so that a step of 2 is not too long for them.
    pub(super) fn usual_step_size(self) -> f64 {
        if self == CircuitName::Lstd { 2.0 } else { 1.0 }
    }
}

impl fmt::Display for CircuitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CircuitName {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|c| c.as_str() == name);
        known.ok_or_else(|| {
            format!("circuit is '{name}', expected one of {}", Self::ALL.map(Self::as_str).join(", "))
        })
    }
}

impl Serialize for CircuitName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
