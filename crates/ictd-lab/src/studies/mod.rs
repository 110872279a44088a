//! The experiments: one file per figure or claim.

pub mod branches;
pub mod chain_topology;
pub mod forward;
pub mod msve;
pub mod pretrain;
pub mod reproduce;
pub mod shift_picture;
pub mod tasks;
pub mod theory;
pub mod verify;

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a claim of the paper holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The criterion is met.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// Part of it is met.
    #[serde(rename = "partly")]
    Partly,
    /// It is not met.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// There is nothing to measure.
    #[serde(rename = "not testable")]
    NotTestable,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::Partly => "partly",
            Self::NotReproduced => "not reproduced",
            Self::NotTestable => "not testable",
        })
    }
}
