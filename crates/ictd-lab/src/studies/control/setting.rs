//! What runs have in common: the random processes, features of pairs, updates.

use ictd::Matrix;
use ictd::control::Backup;
use ictd::random::{Purpose, Stream};
use ictd::task::Mdp;

use crate::LabError;

/// Random decision processes: Dirichlet(1) transitions, uniform rewards, uniform start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processes {
    pub states: usize,
    pub actions: usize,
    pub gamma: f64,
    /// The least reward: rewards are U(least, 1).
    pub least_reward: f64,
}

impl Processes {
    /// Those of the reference runs.
    pub const REFERENCE: Self = Self { states: 9, actions: 4, gamma: 0.5, least_reward: -1.0 };

    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.states * self.actions
    }

    /// Process `index`.
    pub fn draw(&self, seed: u64, index: u64) -> Result<Mdp, LabError> {
        let mut stream = Stream::new(seed, Purpose::Task, index);
        let mut mdp = Mdp::dirichlet(self.states, self.actions, self.gamma, &mut stream)?;
        let (middle, half) = (0.5 * (1.0 + self.least_reward), 0.5 * (1.0 - self.least_reward));
        mdp.rewards = mdp.rewards.map(|r| middle + half * r);
        Ok(mdp)
    }
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
    pub fn table(self, pairs: usize, scale: f64, seed: u64, index: u64) -> Matrix {
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
}
