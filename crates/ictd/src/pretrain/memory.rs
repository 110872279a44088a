//! How much memory training needs.

use super::band::Band;
use super::config::{Loss, PretrainConfig};
use super::factored::Factored;
use super::general::General;
use super::lanes::{Line, WIDTH};
use super::shape::{Mask, Shape};
use super::states::{States, Visits};
use super::weighing::{BuiltIn, Weighing};
use crate::task::{Kind, TaskSource as _};

/// What training may use: sizes that need more are refused before anything is allocated.
/// Where addresses have 32 bits, as in a browser, it is a part of what they reach.
pub const MEMORY_LIMIT: f64 = if cfg!(target_pointer_width = "32") { 1e9 } else { 8e9 };

/// The limit in words, and how to get below it.
pub(super) const LESS_MEMORY: &str = if cfg!(target_pointer_width = "32") {
    "at most 1 GB: lower n, states, features, layers, batch, batches or epochs"
} else {
    "at most 8 GB: lower n, states, features, layers, batch, batches or epochs"
};

/// The bytes of a run, by how long they are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainMemory {
    /// Parameters, moments and history: of every seed, from the beginning to the end.
    pub state: f64,
    /// Tapes, windows and trajectories: of every seed while it trains.
    pub passes: f64,
    /// What drawing a task takes: of every thread.
    pub task: f64,
}

impl TrainMemory {
    /// All seeds train at once, in turns.
    pub fn of_seeds(&self, seeds: usize) -> f64 {
        seeds as f64 * (self.state + self.passes) + self.task
    }
}

impl PretrainConfig {
    /// The bytes that a run in single precision allocates. A pass that only takes over where scores leave the range of the
    /// fast one is not counted: where it would not fit training ends as diverged.
    pub fn memory(&self) -> TrainMemory {
        let [d, n, m] = [self.task.feature_dim(), self.context_len, self.task.num_states].map(|x| x as f64);
        let [batch, batches, epochs] = [self.batch as f64, self.batches as f64, self.epochs as f64];
        let (shape, params) = (self.shape(), self.shape().num_params() as f64);
        // Parameters, those before a step, the best and two moments in single precision, the gradient in double, the trained
        // ones' indices.
        let trained = match self.mask {
            Mask::Full | Mask::Looped => 0.5 * params,
            Mask::Relaxed | Mask::None => params,
        };
        let history = 4.0 * (6.0 * epochs * batches + 4.0 * epochs);
        let state = 28.0 * params + 8.0 * trained + history;
        let mut passes = self.pass(&shape, self.batch + 1);
        // Positions of the trajectory, their features and rewards, padded; queries, successors and returns.
        let (windows, pad) = (batch * batches, WIDTH as f64);
        let positions = windows + n + 2.0;
        let queries = |shape: &Shape| if shape.columns.separate_query { windows + 1.0 + pad } else { pad };
        let arrays = |shape: &Shape| 4.0 * ((d + 1.0) * (positions + pad) + d * queries(shape));
        let returns = if self.loss == Loss::MonteCarlo { 8.0 } else { 0.0 };
        passes += arrays(&shape) + 8.0 * positions + (16.0 + returns) * windows + 8.0 * m * (d + 2.0);
        if self.has_target_pass() {
            let target = self.target_shape();
            passes += self.pass(&target, self.batch) + arrays(&target) + 8.0 * windows;
        }
        TrainMemory { state, passes, task: self.task_bytes() }
    }

    /// Tapes and buffers of a pass, of the fastest that applies.
    fn pass(&self, shape: &Shape, num_windows: usize) -> f64 {
        match (shape.mask, Weighing::named(self.kernel)) {
            (Mask::Full | Mask::Looped, Some(kernel)) => {
                let by_position = match kernel {
                    Weighing::BuiltIn(BuiltIn::Linear) => Factored::<f32, Line>::bytes(shape, num_windows),
                    _ => Band::<f32, Line>::bytes(shape, num_windows),
                };
                match self.most_states() {
                    // Where a task may have more states than are taken, those of every epoch decide.
                    Some(most) if self.states_of_a_task() > most => {
                        by_position + self.by_state(shape, num_windows, most)
                    }
                    Some(_) => self.by_state(shape, num_windows, self.states_of_a_task()),
                    None => by_position,
                }
            }
            (_, Some(kernel)) => General::<Line>::bytes(shape, &kernel, num_windows),
            // Refused elsewhere.
            (_, None) => 0.0,
        }
    }

    /// The pass by state and what it goes by.
    fn by_state(&self, shape: &Shape, num_windows: usize, num_states: usize) -> f64 {
        let windows = self.batch * self.batches;
        let positions = windows + self.context_len + 2;
        // A state of Boyan's chain leads one or two states on, its last one anywhere.
        let most = match self.task.kind {
            Kind::Boyan => num_states.saturating_mul(3),
            _ => num_states.saturating_mul(num_states),
        };
        let links = positions.min(most);
        States::<f32, Line>::bytes(shape, num_windows, num_states, links)
            + Visits::<f32>::bytes(shape.feature_dim, num_states, positions, windows)
    }

    /// What drawing a task allocates: Boyan's chain is sampled without its matrix where values are given, all others form
    /// P, its running sums and, for the values, the system and its factors.
    fn task_bytes(&self) -> f64 {
        let [m, d] = [self.task.num_states, self.task.feature_dim()].map(|x| x as f64);
        match self.task.kind {
            Kind::Boyan if self.task.representable => 16.0 * m * (d + 8.0),
            Kind::Cartpole => 16.0 * m.powi(4) * (d + 8.0),
            _ => 8.0 * m * (6.0 * m + 2.0 * d + 8.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretrain::{Mask, Trainer};

    /// Tapes as they are allocated, against those that are counted: the buffers of a trained epoch.
    #[test]
    fn long_contexts_need_what_their_band_does() {
        let by_state = PretrainConfig { context_len: 500, num_layers: 20, ..PretrainConfig::paper() };
        let mut long = by_state.clone();
        long.rho.end = 0.5;
        let megabytes = long.memory().of_seeds(1) / 1e6;
        // The band twice, 1000 diagonals of 1600 positions, and a tape of five blocks.
        assert!((20.0..60.0).contains(&megabytes), "{megabytes}");
        let relaxed = PretrainConfig { mask: Mask::Relaxed, ..long };
        assert!(relaxed.memory().of_seeds(1) > 1e9);
        // A tape of five blocks of 64 states, and nothing that grows with the square of n.
        let memory = |context_len| {
            let config = PretrainConfig { context_len, ..by_state.clone() };
            config.memory().of_seeds(1) / 1e6
        };
        assert!((1.0..4.0).contains(&memory(500)), "{}", memory(500));
        assert!(memory(100_000) < 20.0, "{}", memory(100_000));
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused_before_anything_is_allocated() {
        let paper = PretrainConfig::paper;
        let mut wide = paper();
        wide.task.feature_dim = 10_000;
        let long = PretrainConfig { epochs: 1_000_000_000, ..paper() };
        let mut deep = PretrainConfig { context_len: 2000, num_layers: 1000, tied: false, ..paper() };
        deep.rho.end = 0.5;
        for config in [wide, long, deep] {
            let error = config.check().unwrap_err();
            assert!(error.key == "memory" && error.to_string().contains("at most 8 GB"), "{error}");
        }
        assert!(Trainer::<f32>::new(&PretrainConfig { epochs: 1, ..paper() }, 0).is_ok());
    }
}
