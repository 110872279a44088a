//! A minibatch: its data, the passes over it, predictions, and what is fed back.

use super::config::{ConfigError, Loss, PretrainConfig};
use super::engine::{Engine, Feedback, Hyper, Job, Precision};
use super::params::ParamsView;
use super::reading::Target;
use super::rollout::Windows;
use super::rollout::{Draw, Rollout};
use super::shape::Shape;
use super::weighing::Weighing;
use crate::task::TaskError;

/// Everything that a minibatch of a seed needs: training, measuring and gradients of all kinds share it.
pub(super) struct Batch<E: Precision> {
    pub config: PretrainConfig,
    seed: u64,
    pub shape: Shape,
    /// The most states that passes go by; none where they do not.
    most_states: Option<usize>,
    /// Temperature of the passes: a kernel of one's own has its own.
    temperature: f64,
    pub rollout: Rollout,
    windows: Windows<E>,
    target_windows: Windows<E>,
    engine: Engine<E>,
    target_engine: Engine<E>,
    /// Predictions, and where they are the next window's the targets, of the last windows asked.
    pub out: Vec<E>,
    targets: Vec<E>,
    /// δ of those windows.
    deltas: Vec<f64>,
    out_bar: Vec<E>,
    target_bar: Vec<E>,
    /// What [`backward`](Self::backward) found.
    pub gradient: Vec<f64>,
}

impl<E: Precision> Batch<E> {
    /// Buffers for a checked configuration.
    pub fn new(config: &PretrainConfig, seed: u64, kernel: &Weighing) -> Result<Self, ConfigError> {
        let shape = config.shape();
        let most_states = config.most_states().filter(|_| E::FAST);
        let engine = |shape| Engine::new(shape, kernel, config.simd, most_states.is_some());
        Ok(Self {
            config: config.clone(),
            seed,
            shape,
            most_states,
            temperature: if matches!(kernel, Weighing::Own(_)) { 1.0 } else { config.temperature },
            rollout: Rollout::new(config.source()?),
            windows: Windows::default(),
            target_windows: Windows::default(),
            engine: engine(shape),
            target_engine: engine(config.target_shape()),
            out: vec![E::default(); config.batch + 1],
            targets: vec![E::default(); config.batch],
            deltas: Vec::with_capacity(config.batch),
            out_bar: vec![E::default(); config.batch + 1],
            target_bar: vec![E::default(); config.batch],
            gradient: vec![0.0; shape.num_params()],
        })
    }

    /// Draws the task and trajectory of a training epoch, with all its minibatches.
    pub fn sample_epoch(&mut self, epoch: u64) -> Result<(), TaskError> {
        self.sample(Draw { seed: self.seed, epoch, evaluation: false }, self.config.batches)
    }

    /// Draws one minibatch of a fresh task that training never sees.
    pub fn sample_fresh(&mut self, index: u64) -> Result<(), TaskError> {
        self.sample(Draw { seed: self.seed, epoch: index, evaluation: true }, 1)
    }

    fn sample(&mut self, draw: Draw, num_batches: usize) -> Result<(), TaskError> {
        self.rollout.sample(&self.config, draw, num_batches * self.config.batch)?;
        self.rollout.fill_windows(&self.shape, self.most_states, &mut self.windows);
        if self.config.has_target_pass() {
            let (d, target, most) = (self.shape.feature_dim, self.config.target, self.most_states);
            self.rollout.fill_target_windows(d, target, most, &mut self.target_windows);
        }
        Ok(())
    }

    /// What passes need besides parameters, at a step.
    pub fn hyper(&self, step: u64) -> Hyper {
        Hyper {
            gamma: self.config.task.gamma,
            temperature: self.temperature,
            diagonal_mix: self.config.rho.at(step),
            query_mix: self.config.rho.query,
        }
    }

    /// Predictions and targets of the windows from `first` on; returns their mean δ².
    pub fn predict(&mut self, hyper: Hyper, params: &[E], first: usize) -> f64 {
        let batch = self.config.batch;
        let params = ParamsView::new(&self.shape, params);
        // The window after the last is asked for where it is the last one's target.
        let asked = batch + usize::from(!self.config.has_target_pass());
        let job = Job { hyper, params, windows: &self.windows, first };
        self.engine.forward(job, &mut self.out[..asked]);
        if self.config.has_target_pass() {
            let first = first + usize::from(self.config.target == Target::Shifted);
            let job = Job { windows: &self.target_windows, first, ..job };
            self.target_engine.forward(job, &mut self.targets);
        } else {
            // The next window's prediction is this window's target.
            self.targets.copy_from_slice(&self.out[1..]);
        }
        let (rewards, gamma) = (self.rollout.query_rewards(first, batch), self.config.task.gamma);
        let ends = self.targets.iter().zip(&self.out).zip(rewards);
        self.deltas.clear();
        self.deltas.extend(ends.map(|((target, out), reward)| reward + gamma * target.get() - out.get()));
        self.deltas.iter().map(|delta| delta.powi(2)).sum::<f64>() / batch as f64
    }

    /// The gradient of a loss at the windows that [`predict`](Self::predict) was asked for last, with the same arguments.
    pub fn backward(&mut self, hyper: Hyper, params: &[E], first: usize, loss: Loss) {
        let (batch, gamma) = (self.config.batch, self.config.task.gamma);
        let params = ParamsView::new(&self.shape, params);
        self.gradient.fill(0.0);
        let scale = 2.0 / batch as f64;
        let independent = self.config.has_target_pass();
        self.out_bar.fill(E::default());
        for t in 0..batch {
            let (prediction, delta) = (self.out[t].get(), self.deltas[t]);
            let error = match loss {
                Loss::Td | Loss::FullGradient => -delta,
                Loss::TrueValue => prediction - self.rollout.value(first + t),
                Loss::MonteCarlo => prediction - self.rollout.sampled_return(first + t),
            };
            self.out_bar[t] = E::of(self.out_bar[t].get() + scale * error);
            if loss == Loss::FullGradient {
                let through = scale * gamma * delta;
                if independent {
                    self.target_bar[t] = E::of(through);
                } else {
                    self.out_bar[t + 1] = E::of(through);
                }
            }
        }
        let through_next = loss == Loss::FullGradient && !independent;
        let seeds = &self.out_bar[..batch + usize::from(through_next)];
        let gradient = &mut self.gradient[..];
        self.engine.backward(Feedback { hyper, params, out_bar: seeds, gradient });
        if loss == Loss::FullGradient && independent {
            let (out_bar, gradient) = (&self.target_bar[..], &mut self.gradient[..]);
            self.target_engine.backward(Feedback { hyper, params, out_bar, gradient });
        }
    }

    /// The gradient with the parameters' layout.
    pub fn gradient(&self) -> ParamsView<'_, f64> {
        ParamsView::new(&self.shape, &self.gradient)
    }

    /// Mean and minimum of the kernel's diagonal, after [`predict`](Self::predict).
    pub fn diagonal(&mut self) -> (f64, f64) {
        let batch = self.config.batch;
        let (sum, smallest) = self.engine.diagonal(batch);
        (sum / (batch * self.shape.context_len) as f64, smallest)
    }

    /// Mean square error of the predictions of a fresh minibatch against the exact values of its queries.
    pub fn msve(&self) -> f64 {
        let batch = self.config.batch;
        let error = |t: usize| self.out[t].get() - self.rollout.value(t);
        (0..batch).map(|t| error(t).powi(2)).sum::<f64>() / batch as f64
    }
}
