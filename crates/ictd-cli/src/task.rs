//! `ictd task`.

use clap::{Args, ValueEnum};
use ictd_lab::LabError;
use ictd_lab::studies::tasks::{TaskKind, TaskRequest, make};

use crate::{Common, Outcome};

/// Kinds of task.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Boyan's chain (the paper's tasks)
    Boyan,
    /// Random graph around a loop (Figure 1's tasks)
    Loop,
    /// Every state reaches every state
    Dense,
    /// Randomised cart-pole, discretised, or continuous with --continuous
    Cartpole,
}

/// Arguments of `ictd task`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Kind of task
    kind: Kind,
    /// Number of states; cart-pole: bins per dimension [default: 64; loop and dense 10; cartpole 2]
    #[arg(long, allow_negative_numbers = true)]
    states: Option<usize>,
    /// Feature dimension [default: 4; loop 5]
    #[arg(long, allow_negative_numbers = true)]
    features: Option<usize>,
    /// Discount
    #[arg(long, default_value_t = 0.9, allow_negative_numbers = true)]
    gamma: f64,
    /// Draw rewards freely instead of making the values linear in the features
    #[arg(long)]
    free: bool,
    /// Loop only: probability of leaving out an edge [default: 0.5]
    #[arg(long, allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// Cart-pole only: continuous features instead of random features per bin
    #[arg(long)]
    continuous: bool,
    /// Which task of the seed's sequence
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    index: u64,
    /// Give a trajectory of N transitions instead of the task; with --json it is input for `forward`
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    trajectory: Option<usize>,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let unused = match arguments.kind {
        Kind::Loop => arguments.continuous.then_some("continuous"),
        Kind::Cartpole if arguments.free => Some("free"),
        Kind::Cartpole if arguments.continuous && arguments.features.is_some() => Some("features"),
        Kind::Cartpole => arguments.threshold.map(|_| "threshold"),
        _ if arguments.continuous => Some("continuous"),
        _ => arguments.threshold.map(|_| "threshold"),
    };
    if let Some(option) = unused {
        return Err(LabError::refused(option, "has no meaning for this kind of task"));
    }
    let made = make(&TaskRequest {
        kind: match arguments.kind {
            Kind::Boyan => TaskKind::Boyan,
            Kind::Loop => TaskKind::Loop { threshold: arguments.threshold.unwrap_or(0.5) },
            Kind::Dense => TaskKind::Dense,
            Kind::Cartpole => TaskKind::CartPole { continuous: arguments.continuous },
        },
        size: arguments.states,
        feature_dim: arguments.features,
        gamma: arguments.gamma,
        free: arguments.free,
        seed: arguments.common.seed,
        index: arguments.index,
        trajectory: arguments.trajectory,
    })?;
    arguments.common.present(&made, None)
}
