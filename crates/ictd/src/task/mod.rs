//! Policy-evaluation tasks: Markov reward processes with features, and generators of random ones.

mod boyan;
mod cartpole;
mod coin;
mod dense;
mod drawn;
mod family;
mod finite;
mod loop_chain;
mod mdp;
mod mrp;
mod optimal;
mod source;
mod transition;

pub use boyan::chain_edges;
pub use cartpole::{CartPole, CartPoleState, MonteCarloValue, Physics};
pub use drawn::Drawn;
pub use family::{Family, FeatureMap, Kind};
pub use finite::{FiniteTask, TaskError};
pub use mdp::{Mdp, MdpError};
pub use mrp::{Mrp, MrpError};
pub use source::{Chain, OwnTasks, StateTable, TaskSource};
pub use transition::{TransitionError, TransitionKernel};

pub(crate) use mdp::check_policy;
pub(crate) use mrp::is_discount;

use crate::matrix::Matrix;
use crate::random::Stream;

/// The last step of the finite generators: with a weight the values are ⟨w, x⟩ and r = (I - γP) v,
/// without one r ~ U(-1, 1)^m and the values solve the Bellman equation.
fn assemble(
    p: Matrix,
    features: Matrix,
    initial: Vec<f64>,
    weight: Option<Vec<f64>>,
    gamma: f64,
    stream: &mut Stream,
) -> Result<FiniteTask, TaskError> {
    let Some(weight) = weight else {
        let rewards = stream.uniform_vec(features.num_rows(), -1.0, 1.0);
        return FiniteTask::new(Mrp::new(p, rewards, gamma, initial)?, features);
    };
    let values = features.mul_vec(&weight);
    let rewards = values.iter().zip(p.mul_vec(&values)).map(|(v, next)| v - gamma * next).collect();
    FiniteTask::with_values(Mrp::new(p, rewards, gamma, initial)?, features, values)
}
