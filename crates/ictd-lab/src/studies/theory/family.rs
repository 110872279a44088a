//! Families of tasks that the theory is evaluated on.

use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::task::{Boyan, Dense, FiniteTask, Loop, Mrp, Representation, TaskError};
use serde::Serialize;

use crate::error::{LabError, check_range};

/// How tasks are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FamilyKind {
    /// Boyan's chain, the paper's tasks.
    Boyan,
    /// Random graph around a loop.
    Loop,
    /// Every state reaches every state.
    Dense,
    /// States drawn independently and uniformly, r ~ U(-1, 1): the chain that mixes fastest, on which the
    /// paper's constants are smallest.
    Coin,
}

/// A family of tasks: task number i is the same for every study of the same seed.
#[derive(Clone, Debug, Serialize)]
pub struct TaskFamily {
    /// How tasks are drawn.
    pub kind: FamilyKind,
    /// Number of states m.
    pub states: usize,
    /// Feature dimension d of random features.
    pub features: usize,
    /// Discount γ.
    pub gamma: f64,
    /// One feature per state instead of random ones.
    pub one_hot: bool,
    /// Random features divided by their length.
    pub unit_norm: bool,
    /// Scores are multiplied by this: features are scaled by its root, A = scale·I in the paper's terms.
    pub score_scale: f64,
    /// Seed of all draws.
    pub seed: u64,
}

impl TaskFamily {
    /// The paper's tasks (Table 1) at A = I.
    pub fn paper(seed: u64) -> Self {
        Self {
            kind: FamilyKind::Boyan,
            states: 64,
            features: 4,
            gamma: 0.9,
            one_hot: false,
            unit_norm: false,
            score_scale: 1.0,
            seed,
        }
    }

    /// A family on which Assumption 5.1 holds uniformly: three states, one feature each, and scores so sharp
    /// that a stationary probability of 0.002 is enough.
    pub fn certified(seed: u64) -> Self {
        Self {
            kind: FamilyKind::Dense,
            states: 3,
            features: 3,
            gamma: 0.7,
            one_hot: true,
            unit_norm: false,
            score_scale: 8.0,
            seed,
        }
    }

    /// The family on which Theorem 2's premises hold at the smallest n: two states drawn independently. Among
    /// score scales 0.45 makes C·exp(-4·C_x²) nearly largest at γ = 0.1.
    pub fn fastest(seed: u64) -> Self {
        Self {
            kind: FamilyKind::Coin,
            states: 2,
            features: 2,
            gamma: 0.1,
            one_hot: true,
            unit_norm: false,
            score_scale: 0.45,
            seed,
        }
    }

    /// A family by its kind, with the sizes of `ictd task`, γ = 0.9 and raw features at scale 1.
    pub fn of_kind(kind: FamilyKind, seed: u64) -> Self {
        let (states, features) = match kind {
            FamilyKind::Boyan => (64, 4),
            FamilyKind::Loop => (10, 5),
            FamilyKind::Dense => (10, 4),
            FamilyKind::Coin => (2, 2),
        };
        Self { kind, states, features, ..Self::paper(seed) }
    }

    /// Refuses numbers out of range.
    pub fn check(&self) -> Result<(), LabError> {
        if !(self.score_scale > 0.0 && self.score_scale.is_finite()) {
            return Err(LabError::value("score-scale", self.score_scale, "a finite number > 0"));
        }
        if !(0.0..1.0).contains(&self.gamma) {
            return Err(LabError::value("gamma", self.gamma, "0 <= gamma < 1"));
        }
        for (name, found) in [("states", self.states), ("features", self.features)] {
            check_range(name, found, 1..=5000)?;
        }
        if self.one_hot && self.states > 2000 {
            return Err(LabError::value("states", self.states, "at most 2000 with one-hot features"));
        }
        self.task(0).map(|_| ()).map_err(LabError::from)
    }

    /// Feature dimension of the tasks.
    pub fn feature_dim(&self) -> usize {
        if self.one_hot { self.states } else { self.features }
    }

    /// Task number `index`.
    pub fn task(&self, index: u64) -> Result<FiniteTask, TaskError> {
        let mut stream = Stream::new(self.seed, Purpose::Task, index);
        let (num_states, feature_dim, gamma) = (self.states, self.features, self.gamma);
        let representation = Representation::Linear;
        let task = match self.kind {
            FamilyKind::Boyan => {
                Boyan { num_states, feature_dim, gamma, representation }.generate(&mut stream)?
            }
            FamilyKind::Loop => Loop { num_states, feature_dim, threshold: 0.5, gamma, representation }
                .generate(&mut stream)?,
            FamilyKind::Dense => {
                Dense { num_states, feature_dim, gamma, representation }.generate(&mut stream)?
            }
            FamilyKind::Coin => coin(num_states, feature_dim, gamma, &mut stream)?,
        };
        let mut features = task.features().clone();
        if self.one_hot {
            features = Matrix::identity(num_states);
        }
        for s in 0..num_states {
            let row = features.row_mut(s);
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            let length = if self.unit_norm && norm > 0.0 { norm } else { 1.0 };
            let factor = self.score_scale.sqrt() / length;
            row.iter_mut().for_each(|x| *x *= factor);
        }
        FiniteTask::new(task.mrp().clone(), features)
    }

    /// In words, for tables and captions.
    pub fn describe(&self) -> String {
        let kind = match self.kind {
            FamilyKind::Boyan => "Boyan",
            FamilyKind::Loop => "Loop",
            FamilyKind::Dense => "dense",
            FamilyKind::Coin => "coin",
        };
        let features = match (self.one_hot, self.unit_norm) {
            (true, _) => "one-hot features".to_owned(),
            (_, true) => format!("{} unit-norm features", self.features),
            _ => format!("{} features", self.features),
        };
        format!(
            "{kind}, {} states, {features}, γ = {}, score scale {}",
            self.states, self.gamma, self.score_scale
        )
    }
}

fn coin(
    num_states: usize,
    feature_dim: usize,
    gamma: f64,
    stream: &mut Stream,
) -> Result<FiniteTask, TaskError> {
    let share = 1.0 / num_states as f64;
    let features = Matrix::from_fn(num_states, feature_dim, |_, _| stream.uniform_in(-1.0, 1.0));
    let rewards = stream.uniform_vec(num_states, -1.0, 1.0);
    let p = Matrix::from_fn(num_states, num_states, |_, _| share);
    FiniteTask::new(Mrp::new(p, rewards, gamma, vec![share; num_states])?, features)
}
