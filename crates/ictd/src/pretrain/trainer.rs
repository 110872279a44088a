//! The training loop.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::batch::Batch;
use super::config::{ConfigError, PretrainConfig};
use super::engine::Precision;
use super::metric::{History, Metric};
use super::optimizer::{Moments, update};
use super::params::emergence_of;
use super::state::initial_params;
use super::state::{Best, TrainState};
use super::weighing::{KernelNotTrainable, Weighing};
use crate::kernel::Kernel;
use crate::task::{TaskError, TaskSource};

/// Why training stopped.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A task could not be drawn.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A kernel of one's own cannot be trained.
    #[error(transparent)]
    Kernel(#[from] KernelNotTrainable),
    /// Predictions and parameters must stay finite, and the loss within a thousand times its first value.
    #[error(
        "training diverged at step {step}: {what}; lower {}",
        if *step == 0 { "init.gain or raise temperature" } else { "optimizer.lr" }
    )]
    Diverged {
        /// The gradient step.
        step: u64,
        /// What happened.
        what: &'static str,
    },
}

/// A run of one seed.
///
/// ```
/// use std::ops::ControlFlow;
/// use ictd::pretrain::{Metric, PretrainConfig, Trainer};
///
/// let config = PretrainConfig { epochs: 20, ..PretrainConfig::paper() };
/// let mut trainer = Trainer::<f32>::new(&config, 0)?;
/// // Stops after the first epoch whose fresh task is predicted well.
/// trainer.train(|trainer| match trainer.state().history[Metric::EvalMsve].last() {
///     Some(msve) if *msve < 0.5 => ControlFlow::Break(()),
///     _ => ControlFlow::Continue(()),
/// })?;
/// let transformer = trainer.into_state().transformer(&config)?;
/// assert_eq!(transformer.num_layers(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Trainer<E: Precision> {
    /// Indices of the trained parameters.
    trained: Vec<usize>,
    state: TrainState<E>,
    batch: Batch<E>,
    before: Vec<E>,
}

impl<E: Precision> Trainer<E> {
    /// A run from its initial parameters.
    pub fn new(config: &PretrainConfig, seed: u64) -> Result<Self, TrainError> {
        Self::build(config, seed, &named_kernel(config)?, initial_state(config, seed))
    }

    /// As [`new`](Self::new), on tasks of one's own instead of those that the configuration names; sizes and γ
    /// are theirs.
    pub fn with_source(
        config: &PretrainConfig,
        source: Arc<dyn TaskSource>,
        seed: u64,
    ) -> Result<Self, TrainError> {
        Self::new(&config.on_tasks("own", source), seed)
    }

    /// A run that continues from a state.
    pub fn resume(config: &PretrainConfig, seed: u64, state: TrainState<E>) -> Result<Self, TrainError> {
        Self::build(config, seed, &named_kernel(config)?, state)
    }

    fn build(
        config: &PretrainConfig,
        seed: u64,
        kernel: &Weighing,
        mut state: TrainState<E>,
    ) -> Result<Self, TrainError> {
        state.history.reserve(config);
        let trained = config.shape().trained();
        Ok(Self {
            trained: trained.iter().enumerate().filter_map(|(k, &t)| t.then_some(k)).collect(),
            before: state.params.clone(),
            state,
            batch: Batch::new(config, seed, kernel)?,
        })
    }

    /// Where the run is.
    pub fn state(&self) -> &TrainState<E> {
        &self.state
    }

    /// Gives up the run for its state.
    pub fn into_state(self) -> TrainState<E> {
        self.state
    }

    /// Whether all epochs are done.
    pub fn is_done(&self) -> bool {
        self.state.epoch >= self.batch.config.epochs
    }

    /// Trains epoch by epoch to the end, or until `after_epoch` says to stop.
    pub fn train(&mut self, mut after_epoch: impl FnMut(&Self) -> ControlFlow<()>) -> Result<(), TrainError> {
        while !self.is_done() {
            self.epoch()?;
            if after_epoch(self).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// One epoch: a fresh task, its minibatches, then a measurement on another fresh task. When it fails
    /// the state is that of the last finished step.
    pub fn epoch(&mut self) -> Result<(), TrainError> {
        self.train_epoch()?;
        self.measure()?;
        self.state.epoch += 1;
        Ok(())
    }

    /// One epoch without the measurement, for those who look at parameters only: training is the same to the last bit,
    /// the history of measurements stays empty.
    pub fn epoch_unmeasured(&mut self) -> Result<(), TrainError> {
        self.train_epoch()?;
        self.state.epoch += 1;
        Ok(())
    }

    fn train_epoch(&mut self) -> Result<(), TrainError> {
        self.batch.sample_epoch(self.state.epoch)?;
        for k in 0..self.batch.config.batches {
            self.step(k * self.batch.config.batch)?;
        }
        self.check_loss()
    }

    /// Refuses to go on when the loss, averaged over the last 50 steps (all, where a run is shorter) so that one
    /// bad minibatch does not count, is over a thousand times that of the first step, where predictions are nearly 0.
    fn check_loss(&self) -> Result<(), TrainError> {
        let losses = &self.state.history[Metric::TdLoss];
        let last_epoch = self.state.epoch + 1 >= self.batch.config.epochs;
        if losses.len() < 50 && !last_epoch {
            return Ok(());
        }
        let recent = &losses[losses.len().saturating_sub(50)..];
        let mean = recent.iter().map(|&x| f64::from(x)).sum::<f64>() / recent.len() as f64;
        if mean > 1000.0 * f64::from(losses[0]) {
            let what = "the loss over 50 steps is more than 1000 times the first";
            return Err(TrainError::Diverged { step: losses.len() as u64, what });
        }
        Ok(())
    }

    /// One gradient step on the windows from `first` on.
    fn step(&mut self, first: usize) -> Result<(), TrainError> {
        let step = self.state.steps();
        let hyper = self.batch.hyper(step);
        let TrainState { params, moments, history, best, .. } = &mut self.state;
        let td_loss = self.batch.predict(hyper, params, first);
        if !td_loss.is_finite() {
            return Err(TrainError::Diverged { step, what: "the loss is not finite" });
        }
        let diagonal = self.batch.diagonal().0;
        self.batch.backward(hyper, params, first, self.batch.config.loss);
        self.before.copy_from_slice(params);
        let (optimizer, gradient) = (&self.batch.config.optimizer, &self.batch.gradient);
        update(optimizer, step, &self.trained, gradient, moments, params);
        if self.trained.iter().any(|&k| !params[k].get().is_finite()) {
            params.copy_from_slice(&self.before);
            return Err(TrainError::Diverged { step, what: "a parameter is not finite" });
        }
        let emergence = emergence_of(&self.batch.shape, params);
        history.push([
            (Metric::TdLoss, td_loss),
            (Metric::Value, emergence.value),
            (Metric::Score, emergence.score),
            (Metric::ValueSigned, emergence.value_signed),
            (Metric::ScoreSigned, emergence.score_signed),
            (Metric::Diagonal, diagonal),
        ]);
        let joint = [emergence.joint(), emergence.joint_signed()];
        if joint > best.joint {
            *best = Best { step: step + 1, joint, params: params.clone() };
        }
        Ok(())
    }

    /// Measures the parameters on one minibatch of a fresh task and adds the numbers to the history;
    /// [`epoch`](Self::epoch) ends with this.
    pub fn measure(&mut self) -> Result<(), TrainError> {
        self.batch.sample_fresh(self.state.epoch)?;
        let hyper = self.batch.hyper(self.state.steps());
        let td_loss = self.batch.predict(hyper, &self.state.params, 0);
        let (diagonal, smallest) = self.batch.diagonal();
        self.state.history.push([
            (Metric::EvalDiagonal, diagonal),
            (Metric::EvalDiagonalMin, smallest),
            (Metric::EvalTdLoss, td_loss),
            (Metric::EvalMsve, self.batch.msve()),
        ]);
        Ok(())
    }
}

impl Trainer<f64> {
    /// A run with a kernel of one's own in place of the configuration's: attention by inner products, through the
    /// reference pass in double precision. The kernel carries its own temperature.
    ///
    /// Refuses kernels without a [`slope`](Kernel::slope) and those that look at anything but inner products.
    pub fn with_kernel(
        config: &PretrainConfig,
        kernel: Arc<dyn Kernel>,
        seed: u64,
    ) -> Result<Self, TrainError> {
        config.check()?;
        Self::build(config, seed, &Weighing::own(kernel)?, initial_state(config, seed))
    }
}

/// The kernel of a configuration, checked with all the rest of it.
pub(super) fn named_kernel(config: &PretrainConfig) -> Result<Weighing, ConfigError> {
    config.check()?;
    config.weighing()
}

fn initial_state<E: Precision>(config: &PretrainConfig, seed: u64) -> TrainState<E> {
    let params: Vec<E> = initial_params(config, seed).into_iter().map(E::of).collect();
    let emergence = emergence_of(&config.shape(), &params);
    let best = Best { step: 0, joint: [emergence.joint(), emergence.joint_signed()], params: params.clone() };
    TrainState { epoch: 0, moments: Moments::new(params.len()), params, history: History::default(), best }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretrain::reading::Target;
    use crate::pretrain::{Loss, QueryPosition};

    /// Differentiated through both ends the gradient of a step is that of the mean δ²: central differences with step 1e-5, for
    /// targets of the next window, of independent queries and of the same context.
    #[test]
    fn gradients_through_the_target_are_finite_differences() {
        let queries =
            [QueryPosition::Next, QueryPosition::Skip, QueryPosition::Stationary, QueryPosition::Source];
        let targets = [Target::Shifted, Target::Same];
        for (query, target) in queries.into_iter().flat_map(|query| targets.map(|target| (query, target))) {
            let mut config = PretrainConfig {
                query,
                target,
                loss: Loss::FullGradient,
                batch: 7,
                ..PretrainConfig::paper()
            };
            config.init.gain = 1.0;
            let mut trainer = Trainer::<f64>::new(&config, 3).unwrap();
            trainer.batch.sample_fresh(0).unwrap();
            let (params, hyper) = (trainer.state.params.clone(), trainer.batch.hyper(0));
            trainer.step(0).unwrap();
            let gradient = trainer.batch.gradient.clone();
            let mut loss = |k: usize, by: f64| {
                let mut moved = params.clone();
                moved[k] += by;
                trainer.batch.predict(hyper, &moved, 0)
            };
            let largest = gradient.iter().fold(0f64, |m, g| m.max(g.abs()));
            assert!(largest > 1e-3);
            for k in (0..params.len()).filter(|&k| config.shape().trained()[k]) {
                let difference = (loss(k, 1e-5) - loss(k, -1e-5)) / 2e-5;
                // The bound the software promises; truncation and rounding are about 1e-10.
                assert!(
                    (gradient[k] - difference).abs() <= 1e-7 * largest,
                    "{query:?} {target:?} parameter {k}"
                );
            }
        }
    }
}
