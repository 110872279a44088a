//! The training loop.

use std::sync::Arc;

use super::config::{ConfigError, Loss, PretrainConfig};
use super::emergence::Emergence;
use super::init::initial_params;
use super::lanes::Element;
use super::optimizer::{Moments, update};
use super::pass::{Pass as _, Precision};
use super::reading::Target;
use super::reverse::Hyper;
use super::rollout::{Rollout, Source};
use super::shape::Shape;
use super::state::{Best, History, TrainState};
use super::windows::Windows;
use crate::task::{TaskError, TaskSource};

/// Why training stopped.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A task could not be drawn.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Predictions and parameters must stay finite, and the loss within a thousand times its first value.
    #[error(
        "training diverged at step {step}: {what}; lower {}",
        if *step == 0 { "init.gain or raise tau" } else { "optimizer.lr" }
    )]
    Diverged {
        /// The gradient step.
        step: u64,
        /// What happened.
        what: &'static str,
    },
}

/// A run of one seed.
pub struct Trainer<E: Precision> {
    config: PretrainConfig,
    seed: u64,
    pub(super) shape: Shape,
    /// Indices of the trained parameters.
    trained: Vec<usize>,
    pub(super) state: TrainState<E>,
    pub(super) pass: E::Pass,
    target_pass: E::Pass,
    pub(super) rollout: Rollout,
    windows: Windows<E>,
    target_windows: Windows<E>,
    pub(super) out: Vec<E>,
    pub(super) targets: Vec<E>,
    pub(super) out_bar: Vec<E>,
    target_bar: Vec<E>,
    pub(super) gradient: Vec<f64>,
    before: Vec<E>,
}

impl<E: Precision> Trainer<E> {
    /// A run from its initial parameters.
    pub fn new(config: &PretrainConfig, seed: u64) -> Result<Self, TrainError> {
        config.check()?;
        let params: Vec<E> = initial_params(config, seed).into_iter().map(E::of).collect();
        let emergence = emergence_of(&config.shape(), &params);
        let best =
            Best { step: 0, joint: [emergence.joint(), emergence.joint_signed()], params: params.clone() };
        let moments = Moments::new(params.len());
        Self::resume(
            config,
            seed,
            TrainState { epoch: 0, params, moments, history: History::default(), best },
        )
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
        config.check()?;
        let shape = config.shape();
        let mut state = state;
        state.history.reserve(config);
        Ok(Self {
            config: config.clone(),
            seed,
            shape,
            trained: shape.trained().iter().enumerate().filter_map(|(k, &t)| t.then_some(k)).collect(),
            gradient: vec![0.0; shape.num_params()],
            before: state.params.clone(),
            state,
            pass: E::pass(shape),
            target_pass: E::pass(config.target_shape()),
            rollout: Rollout::new(config.source()?),
            windows: Windows::default(),
            target_windows: Windows::default(),
            out: vec![E::default(); config.batch + 1],
            targets: vec![E::default(); config.batch],
            out_bar: vec![E::default(); config.batch + 1],
            target_bar: vec![E::default(); config.batch],
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
        self.state.epoch >= self.config.epochs
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
        let source = Source { seed: self.seed, epoch: self.state.epoch, evaluation: false };
        self.rollout.sample(&self.config, source, self.config.batches * self.config.batch)?;
        self.fill_windows();
        for batch in 0..self.config.batches {
            self.step(batch * self.config.batch)?;
        }
        self.check_loss()
    }

    /// Refuses to go on when the loss, averaged over the last 50 steps (all, where a run is shorter) so that one
    /// bad minibatch does not count, is over a thousand times that of the first step, where predictions are nearly 0.
    fn check_loss(&self) -> Result<(), TrainError> {
        let losses = &self.state.history.td_loss;
        let last_epoch = self.state.epoch + 1 >= self.config.epochs;
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

    pub(super) fn hyper(&self, step: u64) -> Hyper {
        Hyper {
            gamma: self.config.task.gamma,
            temperature: self.config.tau,
            diagonal_mix: self.config.rho.at(step),
            query_mix: self.config.rho.query,
        }
    }

    /// One gradient step on the windows from `first` on.
    fn step(&mut self, first: usize) -> Result<(), TrainError> {
        let step = self.state.history.td_loss.len() as u64;
        let hyper = self.hyper(step);
        let (batch, gamma) = (self.config.batch, self.config.task.gamma);
        let td_loss = self.predict(hyper, first);
        if !td_loss.is_finite() {
            return Err(TrainError::Diverged { step, what: "the loss is not finite" });
        }
        self.state
            .history
            .diagonal
            .push((self.pass.diagonal(batch).0 / (batch * self.shape.context_len) as f64) as f32);
        self.gradient.fill(0.0);
        let scale = 2.0 / batch as f64;
        let independent = self.config.has_target_pass();
        self.out_bar.fill(E::default());
        for t in 0..batch {
            let prediction = self.out[t].get();
            let delta = self.rollout.reward(first + t) + gamma * self.targets[t].get() - prediction;
            let error = match self.config.loss {
                Loss::Td | Loss::FullGradient => -delta,
                Loss::TrueValue => prediction - self.rollout.value(first + t),
                Loss::MonteCarlo => prediction - self.rollout.sampled_return(first + t),
            };
            self.out_bar[t] = E::of(self.out_bar[t].get() + scale * error);
            if self.config.loss == Loss::FullGradient {
                let through = scale * gamma * delta;
                if independent {
                    self.target_bar[t] = E::of(through);
                } else {
                    self.out_bar[t + 1] = E::of(through);
                }
            }
        }
        let through_next = self.config.loss == Loss::FullGradient && !independent;
        let seeds = &self.out_bar[..batch + usize::from(through_next)];
        self.pass.backward(hyper, &self.state.params, seeds, &mut self.gradient);
        if self.config.loss == Loss::FullGradient && independent {
            self.target_pass.backward(hyper, &self.state.params, &self.target_bar, &mut self.gradient);
        }
        let TrainState { params, moments, history, best, .. } = &mut self.state;
        self.before.copy_from_slice(params);
        update(&self.config.optimizer, step, &self.trained, &self.gradient, moments, params);
        if self.trained.iter().any(|&k| !params[k].get().is_finite()) {
            params.copy_from_slice(&self.before);
            history.diagonal.pop();
            return Err(TrainError::Diverged { step, what: "a parameter is not finite" });
        }
        let emergence = emergence_of(&self.shape, params);
        history.td_loss.push(td_loss as f32);
        history.value.push(emergence.value as f32);
        history.score.push(emergence.score as f32);
        history.value_signed.push(emergence.value_signed as f32);
        history.score_signed.push(emergence.score_signed as f32);
        let joint = [emergence.joint(), emergence.joint_signed()];
        if joint > best.joint {
            *best = Best { step: step + 1, joint, params: params.clone() };
        }
        Ok(())
    }

    /// Predictions and targets of the windows from `first` on; returns their mean δ².
    pub(super) fn predict(&mut self, hyper: Hyper, first: usize) -> f64 {
        let batch = self.config.batch;
        let params = &self.state.params;
        // The window after the last is asked for where it is the last one's target.
        let asked = batch + usize::from(!self.config.has_target_pass());
        self.pass.forward(hyper, params, &self.windows, first, &mut self.out[..asked]);
        if self.config.has_target_pass() {
            let from = first + usize::from(self.config.target == Target::Shifted);
            self.target_pass.forward(hyper, params, &self.target_windows, from, &mut self.targets);
        } else {
            // The next window's prediction is this window's target.
            self.targets.copy_from_slice(&self.out[1..]);
        }
        let error = |t: usize| {
            self.rollout.reward(first + t) + self.config.task.gamma * self.targets[t].get()
                - self.out[t].get()
        };
        (0..batch).map(|t| error(t).powi(2)).sum::<f64>() / batch as f64
    }

    /// Fills the windows with one minibatch of a fresh task.
    pub(super) fn fresh_windows(&mut self, index: u64) -> Result<(), TrainError> {
        let source = Source { seed: self.seed, epoch: index, evaluation: true };
        self.rollout.sample(&self.config, source, self.config.batch)?;
        self.fill_windows();
        Ok(())
    }

    /// Fills the windows from the rollout.
    pub(super) fn fill_windows(&mut self) {
        self.rollout.fill_windows(&self.shape, &mut self.windows);
        if self.config.has_target_pass() {
            let (d, target) = (self.shape.feature_dim, self.config.target);
            self.rollout.fill_target_windows(d, target, &mut self.target_windows);
        }
    }

    /// Measures the parameters on one minibatch of a fresh task and adds the numbers to the history;
    /// [`epoch`](Self::epoch) ends with this.
    pub fn measure(&mut self) -> Result<(), TrainError> {
        let batch = self.config.batch;
        self.fresh_windows(self.state.epoch)?;
        let hyper = self.hyper(self.state.history.td_loss.len() as u64);
        let td_loss = self.predict(hyper, 0);
        let msve = (0..batch).map(|t| (self.out[t].get() - self.rollout.value(t)).powi(2)).sum::<f64>()
            / batch as f64;
        let (sum, smallest) = self.pass.diagonal(batch);
        let history = &mut self.state.history;
        history.eval_diagonal.push((sum / (batch * self.shape.context_len) as f64) as f32);
        history.eval_diagonal_min.push(smallest as f32);
        history.eval_td_loss.push(td_loss as f32);
        history.eval_msve.push(msve as f32);
        Ok(())
    }
}

/// The emergence scores of the first pair.
pub fn emergence_of<E: Element>(shape: &Shape, params: &[E]) -> Emergence {
    let (rows, d) = (shape.num_rows(), shape.feature_dim);
    let value_row: Vec<f64> = params[(rows - 1) * rows..rows * rows].iter().map(|x| x.get()).collect();
    let block: Vec<f64> = (0..d * d).map(|k| params[rows * rows + (k / d) * rows + k % d].get()).collect();
    Emergence::of(&value_row, &block)
}

#[cfg(test)]
mod tests {
    use super::super::config::QueryPosition;
    use super::super::measure::{first_gradient, measure, theta_star};
    use super::super::reading::{QueryMix, QueryReward, SourceColumns};
    use super::super::shape::Mask;
    use super::*;

    fn trained<E: Precision>(config: &PretrainConfig, epochs: u64) -> TrainState<E> {
        let mut trainer = Trainer::<E>::new(config, 1).unwrap();
        for _ in 0..epochs {
            trainer.epoch().unwrap();
        }
        trainer.into_state()
    }

    /// A hundred steps in single precision on lanes against the plain double-precision road, for every
    /// loss, query, mask and optimiser: parameters of order 0.1 to 1 that moved by up to 0.1.
    #[test]
    fn single_precision_follows_double_for_a_hundred_steps() {
        let paper = PretrainConfig::paper();
        let mut settings = vec![paper.clone(), PretrainConfig::mask_relaxed()];
        for query in [QueryPosition::Skip, QueryPosition::Stationary] {
            for loss in [Loss::Td, Loss::FullGradient, Loss::TrueValue, Loss::MonteCarlo] {
                settings.push(PretrainConfig { query, loss, ..paper.clone() });
            }
        }
        settings.push(PretrainConfig { tied: false, mask: Mask::None, ..paper.clone() });
        let mut sgd = PretrainConfig { mask: Mask::Looped, ..paper.clone() };
        sgd.optimizer.name = super::super::OptimizerName::Sgd;
        settings.push(sgd);
        settings.push(PretrainConfig { loss: Loss::FullGradient, ..paper.clone() });
        settings.push(PretrainConfig { target: Target::Same, loss: Loss::FullGradient, ..paper });
        let mixes = [QueryMix::Mixed, QueryMix::Scaled, QueryMix::Unmixed];
        for (preset, rho_query) in [PretrainConfig::mask_full(), PretrainConfig::mask_relaxed()]
            .into_iter()
            .flat_map(|preset| mixes.map(|mix| (preset.clone(), mix)))
        {
            let mut config = PretrainConfig { query: QueryPosition::Source, ..preset };
            config.rho.query = rho_query;
            // All values of the other keys, one with each treatment of the query.
            (config.source.columns, config.source.reward, config.target) = match rho_query {
                QueryMix::Mixed => (SourceColumns::N, QueryReward::Visible, Target::Shifted),
                QueryMix::Scaled => (SourceColumns::NPlus1, QueryReward::Hidden, Target::Shifted),
                QueryMix::Unmixed => (SourceColumns::N, QueryReward::Hidden, Target::Same),
            };
            settings.push(config);
        }
        for config in settings {
            let epochs = 100 / config.batches as u64;
            let (single, double) = (trained::<f32>(&config, epochs), trained::<f64>(&config, epochs));
            let start: Vec<f64> = initial_params(&config, 1);
            let moved = double.params.iter().zip(&start).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(moved > 1e-3, "{config:?} did not train");
            for (a, b) in single.params.iter().zip(&double.params) {
                assert!((f64::from(*a) - b).abs() <= 1e-4, "{config:?}: {a} {b}");
            }
        }
    }

    #[test]
    fn resuming_gives_the_same_bits() {
        let config = PretrainConfig { epochs: 6, ..PretrainConfig::paper() };
        let whole = trained::<f32>(&config, 6);
        let half = trained::<f32>(&config, 3);
        let mut resumed = Trainer::<f32>::resume(&config, 1, half).unwrap();
        while !resumed.is_done() {
            resumed.epoch().unwrap();
        }
        assert_eq!(resumed.into_state(), whole);
    }

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
            trainer.fresh_windows(0).unwrap();
            let (params, hyper) = (trainer.state.params.clone(), trainer.hyper(0));
            trainer.step(0).unwrap();
            let gradient = trainer.gradient.clone();
            let mut loss = |k: usize, by: f64| {
                trainer.state.params.copy_from_slice(&params);
                trainer.state.params[k] += by;
                trainer.predict(hyper, 0)
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

    #[test]
    fn measuring_does_not_touch_training() {
        let config = PretrainConfig { epochs: 4, ..PretrainConfig::paper() };
        let mut unmeasured = Trainer::<f32>::new(&config, 1).unwrap();
        while !unmeasured.is_done() {
            unmeasured.epoch_unmeasured().unwrap();
        }
        let measured = trained::<f32>(&config, 4);
        assert_eq!(unmeasured.state().params, measured.params);
        assert!(
            unmeasured.state().history.eval_diagonal.is_empty() && measured.history.eval_diagonal.len() == 4
        );
    }

    #[test]
    fn divergence_is_an_error_and_keeps_finite_parameters() {
        for lr in [10.0, 1e6] {
            let mut config = PretrainConfig::paper();
            config.optimizer.lr = lr;
            diverges(&config);
        }
    }

    fn diverges(config: &PretrainConfig) {
        let mut trainer = Trainer::<f32>::new(config, 1).unwrap();
        let error = loop {
            if let Err(error) = trainer.epoch() {
                break error;
            }
            assert!(!trainer.is_done(), "did not diverge");
        };
        assert!(matches!(error, TrainError::Diverged { .. }));
        assert!(trainer.state().params.iter().all(|p| p.is_finite()));
    }

    /// At zero parameters the first gradient is -2·L times the correlation, exactly.
    #[test]
    fn first_gradient_at_zero_is_the_correlation() {
        let queries =
            [QueryPosition::Next, QueryPosition::Skip, QueryPosition::Stationary, QueryPosition::Source];
        let visible = queries.map(|query| (query, QueryReward::Visible));
        for (query, reward) in visible.into_iter().chain([(QueryPosition::Source, QueryReward::Hidden)]) {
            let mut config = PretrainConfig { query, ..PretrainConfig::paper() };
            config.source.reward = reward;
            config.init.gain = 0.0;
            let found = first_gradient(&config, 2, 5).unwrap();
            for (gradient, correlation) in found.gradient.iter().zip(&found.reward_correlation) {
                // Means of 64 products below 10.
                assert!((gradient + 2.0 * 3.0 * correlation).abs() < 1e-12, "{gradient} {correlation}");
            }
        }
    }

    /// theta_* measured against itself.
    #[test]
    fn measuring_theta_star_gives_its_own_error() {
        let config = PretrainConfig::paper();
        let params: Vec<f32> = theta_star(&config.shape()).iter().map(|&x| x as f32).collect();
        let found = measure::<f32>(&config, 0, &params, 20).unwrap();
        assert_eq!((found.msve, found.distance_to_theta_star), (found.msve_theta_star, 0.0));
        assert!(found.diagonal_mean > 0.1 && found.diagonal_min > 0.0);
    }
}
