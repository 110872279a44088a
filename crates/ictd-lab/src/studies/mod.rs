//! The experiments: one file per figure or claim.

pub mod branches;
mod claim;
pub mod fig1;
pub mod fig2;
pub mod fig3_5;
pub mod fig4;
pub mod fig6;
pub mod first_gradient;
pub mod forward;
pub mod mirror;
pub mod pretrain;
pub mod readings;
pub mod reproduce;
pub mod self_concentration;
pub mod setting;
pub mod softmax_vs_linear;
pub mod tasks;
pub mod theorem1;
pub mod theory;
pub mod tsm_cost;

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a claim of the paper holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The criterion is met.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// Nothing contradicts it, but the test is weak: an inequality kept with a slack above
    /// [`SLACK_LIMIT`], or premises that hold only where the setting was chosen for them.
    #[serde(rename = "consistent")]
    Consistent,
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

/// An inequality whose right-hand side is more than this many times what was measured is consistent with the
/// measurement rather than reproduced by it.
pub const SLACK_LIMIT: f64 = 10.0;

impl Verdict {
    /// All verdicts, from the best.
    pub const ALL: [Verdict; 5] =
        [Self::Reproduced, Self::Consistent, Self::Partly, Self::NotReproduced, Self::NotTestable];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::Consistent => "consistent",
            Self::Partly => "partly",
            Self::NotReproduced => "not reproduced",
            Self::NotTestable => "not testable",
        })
    }
}
