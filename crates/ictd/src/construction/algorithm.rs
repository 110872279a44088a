//! The algorithms that layers are steps of, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::average_reward::AverageReward;
use super::chain_of_thought::ChainOfThought;
use super::form::Form;
use super::monte_carlo::MonteCarlo;
use super::residual_gradient::ResidualGradient;
use super::sarsa::Sarsa;
use super::td::Td;

/// An algorithm that a layer is one step of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// TD(0) by linear attention.
    Td,
    /// TD(λ) by linear attention whose mask decays.
    TdLambda,
    /// The residual gradient by linear attention.
    ResidualGradient,
    /// Average-reward TD by two heads of linear attention.
    AverageReward,
    /// Regression on the returns that were seen, by linear attention.
    MonteCarlo,
    /// Batch SARSA: the weights stand in a column of their own, which every layer overwrites.
    Sarsa,
    /// As SARSA, every new weight vector being a further token.
    ChainOfThought,
}

/// The name must be one of [`Algorithm::ALL`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "construction is '{0}', expected td, td-lambda, residual-gradient, average-reward, monte-carlo, sarsa or chain-of-thought"
)]
pub struct AlgorithmError(String);

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::Td,
        Algorithm::TdLambda,
        Algorithm::ResidualGradient,
        Algorithm::AverageReward,
        Algorithm::MonteCarlo,
        Algorithm::Sarsa,
        Algorithm::ChainOfThought,
    ];

    /// The name as typed and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Td => "td",
            Algorithm::TdLambda => "td-lambda",
            Algorithm::ResidualGradient => "residual-gradient",
            Algorithm::AverageReward => "average-reward",
            Algorithm::MonteCarlo => "monte-carlo",
            Algorithm::Sarsa => "sarsa",
            Algorithm::ChainOfThought => "chain-of-thought",
        }
    }

    /// The discount where none is given: 1 where rewards are averaged, which is the only one there.
    pub fn default_gamma(self) -> f64 {
        if self == Algorithm::AverageReward { 1.0 } else { 0.9 }
    }

    /// Its tokens and layers.
    pub(super) fn form(self, gamma: f64, lambda: f64) -> Box<dyn Form> {
        match self {
            Algorithm::Td | Algorithm::TdLambda => Box::new(Td { gamma, lambda }),
            Algorithm::ResidualGradient => Box::new(ResidualGradient { gamma }),
            Algorithm::AverageReward => Box::new(AverageReward),
            Algorithm::MonteCarlo => Box::new(MonteCarlo { gamma }),
            Algorithm::Sarsa => Box::new(Sarsa { gamma }),
            Algorithm::ChainOfThought => Box::new(ChainOfThought(Sarsa { gamma })),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmError;
    fn from_str(name: &str) -> Result<Self, AlgorithmError> {
        Self::ALL.into_iter().find(|a| a.as_str() == name).ok_or_else(|| AlgorithmError(name.to_owned()))
    }
}

impl Serialize for Algorithm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
