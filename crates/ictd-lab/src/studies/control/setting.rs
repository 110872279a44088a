//! What runs have in common: the random processes, features of pairs, updates.

use ictd::Matrix;
use ictd::control::{Backup, uniform_policy};
use ictd::random::{Purpose, Stream};
use ictd::task::Mdp;

use crate::LabError;

/// Sizes of the reference runs.
pub const STATES: usize = 9;
pub const ACTIONS: usize = 4;
pub const GAMMA: f64 = 0.5;

/// Random decision process `index`: Dirichlet(1) transitions, rewards U(-1, 1), uniform start.
pub fn mdp(seed: u64, index: u64, gamma: f64) -> Result<Mdp, LabError> {
    Ok(Mdp::dirichlet(STATES, ACTIONS, gamma, &mut Stream::new(seed, Purpose::Task, index))?)
}

/// Features of the pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PairFeatures {
    /// Every pair its own direction.
    OneHot,
    /// Directions drawn at random in so many dimensions.
    Random(usize),
}

impl PairFeatures {
    pub fn name(self) -> String {
        match self {
            Self::OneHot => "one-hot".into(),
            Self::Random(d) => format!("random, d = {d}"),
        }
    }

    /// One row per pair, of length √scale, so that the score of a pair with itself is the scale.
    pub fn table(self, scale: f64, seed: u64, index: u64) -> Matrix {
        let pairs = STATES * ACTIONS;
        match self {
            Self::OneHot => Matrix::identity(pairs).map(|x| scale.sqrt() * x),
            Self::Random(d) => {
                let mut stream = Stream::new(seed, Purpose::Init, index);
                let row = |_| {
                    let x: Vec<f64> = (0..d).map(|_| stream.normal()).collect();
                    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
                    x.into_iter().map(move |x| scale.sqrt() * x / length)
                };
                Matrix::from_vec(pairs, d, (0..pairs).flat_map(row).collect())
            }
        }
    }
}

/// An update, its policy still open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Update {
    Sarsa,
    ExpectedSarsa,
    Boltzmann(f64),
}

impl Update {
    pub fn name(self) -> String {
        match self {
            Self::Sarsa => "sarsa".into(),
            Self::ExpectedSarsa => "expected sarsa".into(),
            Self::Boltzmann(beta) => format!("boltzmann, β = {beta}"),
        }
    }

    /// The backup under a policy.
    pub fn under(self, policy: &Matrix) -> Backup {
        match self {
            Self::Sarsa => Backup::Sarsa,
            Self::ExpectedSarsa => Backup::ExpectedSarsa(policy.clone()),
            Self::Boltzmann(beta) => Backup::Boltzmann(beta),
        }
    }

    /// The backup under the policy that takes every action alike.
    pub fn under_uniform(self) -> Backup {
        self.under(&uniform_policy(STATES, ACTIONS))
    }
}
