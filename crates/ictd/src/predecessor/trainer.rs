//! The training loop.

use std::ops::ControlFlow;

use super::config::{PredecessorConfig, PredecessorLoss};
use super::engine::{Arithmetic, Engine};
use super::measure::{PairMeasures, PredecessorMeasurement, similarities};
use super::program::{Feedback, Job};
use super::prompts::{Prompts, Transition};
use super::shape::PredecessorShape;
use super::track::Track;
use crate::matrix::Matrix;
use crate::pretrain::{ConfigError, Moments, update};
use crate::random::{Purpose, Stream};
use crate::task::TaskError;

/// Why training stopped.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PredecessorError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A task could not be drawn.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Losses and parameters must stay finite.
    #[error("training diverged at step {step}: {what}; lower lr or gain")]
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
/// use ictd::predecessor::{PredecessorConfig, PredecessorTrainer};
///
/// let config = PredecessorConfig { mrps: 20, ..PredecessorConfig::standard() };
/// let mut trainer = PredecessorTrainer::<f32>::new(&config, 0)?;
/// trainer.train(|_| ControlFlow::Continue(()))?;
/// assert_eq!(trainer.history().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PredecessorTrainer<E: Arithmetic> {
    config: PredecessorConfig,
    seed: u64,
    shape: PredecessorShape,
    /// Indices of the trained parameters.
    trained: Vec<usize>,
    engine: Engine<E>,
    track: Track,
    prompts: Prompts<E>,
    params: Vec<E>,
    moments: Moments<E>,
    /// The comparator's step size.
    alpha: [f64; 1],
    alpha_moments: Moments<f64>,
    mrp: u64,
    step: u64,
    history: Vec<PredecessorMeasurement>,
    buffers: Buffers<E>,
}

/// What a minibatch needs room for.
#[derive(Clone, Debug, Default)]
struct Buffers<E> {
    /// Predictions, the comparator's and their derivatives by α.
    out: Vec<E>,
    td: Vec<E>,
    td_slopes: Vec<E>,
    out_bar: Vec<E>,
    goals: Vec<f64>,
    gradient: Vec<f64>,
}

impl<E: Arithmetic> PredecessorTrainer<E> {
    /// A run from its initial parameters: Xavier normal on every entry, of which those not trained are then set to 0, so
    /// that masks differ in nothing else.
    pub fn new(config: &PredecessorConfig, seed: u64) -> Result<Self, PredecessorError> {
        config.check()?;
        let shape = config.shape();
        let gain = if config.tied { config.gain } else { config.gain / config.num_layers as f64 };
        let std = gain / (shape.num_rows() as f64).sqrt();
        let mut stream = Stream::new(seed, Purpose::Init, 0);
        let trained = shape.trained();
        let draw = |trained: &bool| {
            let entry = std * stream.normal();
            E::of(if *trained { entry } else { 0.0 })
        };
        let params: Vec<E> = trained.iter().map(draw).collect();
        // Of the window after the last only the prediction is asked for: it is the last target.
        let windows = config.batch + usize::from(config.loss == PredecessorLoss::Mstde);
        let zeros = || vec![E::default(); windows];
        let buffers = Buffers {
            out: zeros(),
            td: zeros(),
            td_slopes: zeros(),
            out_bar: vec![E::default(); config.batch],
            goals: Vec::new(),
            gradient: vec![0.0; params.len()],
        };
        Ok(Self {
            config: config.clone(),
            seed,
            shape,
            trained: trained.iter().enumerate().filter_map(|(k, &t)| t.then_some(k)).collect(),
            engine: Engine::new(&shape, config.simd),
            track: Track::new(config),
            prompts: Prompts::default(),
            moments: Moments::new(params.len()),
            params,
            alpha: [1.0],
            alpha_moments: Moments::new(1),
            mrp: 0,
            step: 0,
            history: Vec::new(),
            buffers,
        })
    }

    /// The parameters, pair by pair P row by row, then Q row by row.
    pub fn params(&self) -> &[E] {
        &self.params
    }

    /// The comparator's step size.
    pub fn alpha(&self) -> f64 {
        self.alpha[0]
    }

    /// What was measured so far.
    pub fn history(&self) -> &[PredecessorMeasurement] {
        &self.history
    }

    /// Tasks trained on.
    pub fn mrps(&self) -> u64 {
        self.mrp
    }

    /// Trains task by task to the end, or until `after_mrp` says to stop.
    pub fn train(
        &mut self,
        mut after_mrp: impl FnMut(&Self) -> ControlFlow<()>,
    ) -> Result<(), PredecessorError> {
        while self.mrp < self.config.mrps {
            self.train_mrp()?;
            if after_mrp(self).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// One task: its minibatches, each on a trajectory of its own, and a measurement where one is due.
    pub fn train_mrp(&mut self) -> Result<(), PredecessorError> {
        E::train_mrp(self)
    }

    pub(super) fn next_mrp(&mut self) -> Result<(), PredecessorError> {
        self.track.draw(&self.config, &mut Stream::new(self.seed, Purpose::Task, self.mrp))?;
        let mut trajectories = Stream::new(self.seed, Purpose::Trajectory, self.mrp);
        let mut returns = Stream::new(self.seed, Purpose::MonteCarlo, self.mrp);
        let mut loss = 0.0;
        for _ in 0..self.config.batches {
            loss += self.minibatch(&mut trajectories, &mut returns)?;
        }
        self.mrp += 1;
        if self.mrp.is_multiple_of(self.config.measure_every) {
            self.measure(loss / self.config.batches as f64);
        }
        Ok(())
    }

    /// One gradient step; returns the loss before it.
    fn minibatch(
        &mut self,
        trajectories: &mut Stream,
        returns: &mut Stream,
    ) -> Result<f64, PredecessorError> {
        let (batch, gamma) = (self.config.batch, self.config.task.gamma);
        let Buffers { out, td, td_slopes, out_bar, goals, gradient } = &mut self.buffers;
        self.track.follow(&self.shape, out.len(), trajectories);
        self.track.fill_windows(&self.shape, self.engine.counts_columns(), out.len(), &mut self.prompts);
        self.track.goals(&self.config, batch, returns, goals);
        let job = Job { params: &self.params, prompts: &self.prompts };
        self.engine.forward(job, out);
        self.engine.comparator(self.alpha[0], &self.prompts, [&mut *td, &mut *td_slopes]);
        let (mut loss, mut alpha_gradient) = (0.0, 0.0);
        for t in 0..batch {
            // The target is held fixed: the semi-gradient.
            let goal = |of: &[E]| match goals.get(t) {
                Some(goal) => *goal,
                None => self.track.query_reward(&self.shape, t) + gamma * of[t + 1].get(),
            };
            let error = out[t].get() - goal(out);
            loss += error * error;
            out_bar[t] = E::of(2.0 / batch as f64 * error);
            alpha_gradient += 2.0 / batch as f64 * (td[t].get() - goal(td)) * td_slopes[t].get();
        }
        let diverged = |what| PredecessorError::Diverged { step: self.step, what };
        if !(loss.is_finite() && alpha_gradient.is_finite()) {
            return Err(diverged("the loss is not finite"));
        }
        gradient.fill(0.0);
        self.engine.backward(job, Feedback { out_bar, gradient, query_bar: None });
        let decay = self.config.weight_decay;
        gradient.iter_mut().zip(&self.params).for_each(|(g, x)| *g += decay * x.get());
        let optimizer = self.config.optimizer();
        update(&optimizer, self.step, &self.trained, gradient, &mut self.moments, &mut self.params);
        let alpha_gradient = [alpha_gradient + decay * self.alpha[0]];
        update(&optimizer, self.step, &[0], &alpha_gradient, &mut self.alpha_moments, &mut self.alpha);
        if self.params.iter().any(|x| !x.get().is_finite()) {
            return Err(diverged("a parameter is not finite"));
        }
        self.step += 1;
        Ok(loss / batch as f64)
    }

    /// Compares with TD(0) on a fresh context of the current task, every state a query.
    fn measure(&mut self, loss: f64) {
        let (shape, index) = (self.shape, 2 * self.mrp);
        let truth = self.track.truth(self.seed, index + 1);
        self.track.follow(&shape, 0, &mut Stream::new(self.seed, Purpose::Evaluation, index));
        self.track.fill_states(&shape, self.engine.counts_columns(), &mut self.prompts);
        let (states, d) = (self.track.num_states(), shape.feature_dim);
        let job = Job { params: &self.params, prompts: &self.prompts };
        let (mut values, ones) = (vec![E::default(); states], vec![E::of(1.0); states]);
        let mut by_query = vec![E::default(); d * states];
        self.engine.forward(job, &mut values);
        let query_bar = Some(&mut by_query[..]);
        self.engine
            .backward(job, Feedback { out_bar: &ones, gradient: &mut self.buffers.gradient, query_bar });
        let context: Vec<Transition<'_>> = (0..shape.context_len).map(|p| self.track.transition(p)).collect();
        let features = Matrix::from_fn(states, d, |s, a| self.track.features(s)[a]);
        let sensitivities = Matrix::from_fn(states, d, |s, a| by_query[a * states + s].get());
        let values: Vec<f64> = values.iter().map(|v| v.get()).collect();
        let rates = (self.config.task.gamma, self.alpha[0]);
        let [value_difference, weight_similarity, sensitivity_similarity, value_error, td_value_error] =
            similarities(&shape, rates, &context, &truth, &features, &values, &sensitivities);
        self.history.push(PredecessorMeasurement {
            mrp: self.mrp,
            alpha: self.alpha[0],
            loss,
            value_difference,
            weight_similarity,
            sensitivity_similarity,
            value_error,
            td_value_error,
            pairs: PairMeasures::of(&shape, &self.params),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Activation;
    use super::super::shape::PredecessorMask;
    use super::*;

    /// The gradient is that of the loss with its targets held fixed, decay included, and the comparator's slopes are those
    /// of its predictions: central differences, whose truncation and rounding are about 1e-10.
    #[test]
    fn a_step_follows_the_gradient_of_its_loss() {
        for (activation, mask) in [
            (Activation::Linear, PredecessorMask::Sparse),
            (Activation::Linear, PredecessorMask::Full),
            (Activation::Softmax, PredecessorMask::Sparse),
            (Activation::Softmax, PredecessorMask::Full),
        ] {
            for loss in [PredecessorLoss::Mstde, PredecessorLoss::MsveTrue, PredecessorLoss::MsveMc] {
                let standard = PredecessorConfig::standard();
                let weight_decay = 0.01;
                let config = PredecessorConfig {
                    activation,
                    mask,
                    loss,
                    batch: 9,
                    gain: 1.0,
                    weight_decay,
                    ..standard
                };
                let mut trainer = PredecessorTrainer::<f64>::new(&config, 2).unwrap();
                let (params, alpha) = (trainer.params.clone(), trainer.alpha[0]);
                trainer.track.draw(&config, &mut Stream::new(2, Purpose::Task, 0)).unwrap();
                let mut streams = [Purpose::Trajectory, Purpose::MonteCarlo].map(|p| Stream::new(2, p, 0));
                let [trajectories, returns] = &mut streams;
                let found = trainer.minibatch(trajectories, returns).unwrap();
                let Buffers { out, goals, gradient, td_slopes, .. } = trainer.buffers.clone();
                let goal = |t: usize| match goals.get(t) {
                    Some(goal) => *goal,
                    None => trainer.track.query_reward(&trainer.shape, t) + 0.9 * out[t + 1],
                };
                let goals: Vec<f64> = (0..9).map(goal).collect();
                let mut moved_loss = |k: usize, by: f64| {
                    let mut moved = params.clone();
                    moved[k] += by;
                    let mut out = out.clone();
                    trainer.engine.forward(Job { params: &moved, prompts: &trainer.prompts }, &mut out);
                    let square = |t: usize| (out[t] - goals[t]).powi(2);
                    let errors = (0..9).map(square).sum::<f64>() / 9.0;
                    (errors, errors + 0.5 * weight_decay * moved.iter().map(|x| x * x).sum::<f64>())
                };
                assert!((moved_loss(0, 0.0).0 - found).abs() <= 1e-13 * found);
                let largest = gradient.iter().fold(0f64, |m, g| m.max(g.abs()));
                for &k in &trainer.trained {
                    let difference = (moved_loss(k, 1e-5).1 - moved_loss(k, -1e-5).1) / 2e-5;
                    assert!(
                        (gradient[k] - difference).abs() <= 1e-7 * largest.max(1.0),
                        "{activation:?} {mask:?} {k}"
                    );
                }
                let values = |alpha: f64| {
                    let mut both = [out.clone(), out.clone()];
                    let [values, slopes] = &mut both;
                    trainer.engine.comparator(alpha, &trainer.prompts, [values, slopes]);
                    values.clone()
                };
                for ((high, low), slope) in
                    values(alpha + 1e-5).iter().zip(values(alpha - 1e-5)).zip(&td_slopes)
                {
                    assert!(((high - low) / 2e-5 - slope).abs() <= 1e-7 * slope.abs().max(1.0));
                }
            }
        }
    }
}
