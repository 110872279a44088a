//! A fitted estimator that is asked again and again.

use ictd::evaluate::method::SMALL;
use ictd::evaluate::{Judgement, Level};
use ictd::matrix::Matrix;

use super::asked::order;
use super::estimate::Estimate;
use super::{EvaluateConfig, Evaluation, Logged, Row};
use crate::logs::{Queries, Reading, States};
use crate::{LabError, Progress};

/// A log, an estimator that was fitted to it, and the judgement on its values.
///
/// Where there is but one episode nothing can be held out: settings that are not given are then the median squared distance of states as
/// temperature, 15 layers and a ridge of 1e-3, intervals are all that is possible, and the judgement is to refuse.
#[derive(Debug)]
pub struct Fitted {
    logged: Logged,
    config: EvaluateConfig,
    estimate: Estimate,
    /// What was found of the log's own states, without pictures.
    found: Evaluation,
}

impl Fitted {
    /// Fits an estimator.
    ///
    /// # Errors
    /// [`LabError::Diverged`] where values leave the finite range, [`LabError::Refused`] where the estimator cannot be fitted.
    pub fn new(logged: Logged, config: EvaluateConfig, progress: &Progress) -> Result<Self, LabError> {
        let estimate = Estimate::of(&logged, &config, progress)?;
        let found = estimate.evaluation(&logged, None, &config, progress)?;
        Ok(Self { logged, config, estimate, found })
    }

    /// What was understood of the log.
    pub fn reading(&self) -> &Reading {
        &self.logged.reading
    }

    /// How far values can be relied on.
    pub fn judgement(&self) -> &Judgement {
        &self.found.judged
    }

    /// Whether they should not be used.
    pub fn is_refused(&self) -> bool {
        self.found.judgement == Level::Refuse
    }

    /// The temperature, where the estimator has one.
    pub fn temperature(&self) -> Option<f64> {
        self.estimate.setting().temperature
    }

    /// The depth, where the estimator has one.
    pub fn layers(&self) -> Option<usize> {
        self.estimate.setting().layers
    }

    /// The ridge, where the estimator has one.
    pub fn ridge(&self) -> Option<f64> {
        self.estimate.setting().ridge
    }

    /// The states of the log in the order in which results list them, and how often each was left.
    pub fn states(&self) -> (States, Vec<u64>) {
        let order = order(&self.logged);
        let states = match &self.logged.reading.states {
            States::Labels(labels) => States::Labels(order.iter().map(|&s| labels[s].clone()).collect()),
            States::Features { names, rows } => {
                let rows = Matrix::from_fn(order.len(), rows.num_cols(), |k, a| rows[(order[k], a)]);
                States::Features { names: names.clone(), rows }
            }
        };
        let visits = self.visits();
        (states, order.iter().map(|&s| visits[s] as u64).collect())
    }

    /// How often each state of the log was left.
    fn visits(&self) -> Vec<f64> {
        let Logged { reading, log } = &self.logged;
        let visits = log.whole().visits().to_vec();
        (0..reading.visited).map(|s| visits[log.number_of(s as u32)]).collect()
    }

    /// Everything that `evaluate` finds of the states of the log, with what is drawn.
    pub fn evaluation(&self, progress: &Progress) -> Result<Evaluation, LabError> {
        progress.begin("evaluate: pictures", "", 0)?;
        Ok(Evaluation { pictures: self.estimate.pictures(&self.logged)?, ..self.found.clone() })
    }

    /// Whether the values of so many states are computed by the thread that asks, without others.
    pub fn is_small(&self, rows: usize) -> bool {
        rows.saturating_mul(self.estimate.log().num_states()) <= SMALL
    }

    /// The values of states.
    pub fn values(&self, queries: &Queries, progress: &Progress) -> Result<Vec<f64>, LabError> {
        self.estimate.values_of(&self.logged, queries, progress)
    }

    /// The values of states with their intervals.
    pub fn rows(&self, queries: &Queries, progress: &Progress) -> Result<Vec<Row>, LabError> {
        Ok(self.estimate.answers(&self.logged, Some(queries), progress)?.rows)
    }

    /// Softmax TD and KBRL: the weight of every state of [`states`](Self::states) (columns) in the averages that the value of each of these states
    /// (rows) is made of. Rows sum to 1 with kernels that are normalised.
    pub fn attention(&self, queries: &Queries) -> Result<Matrix, LabError> {
        let (weights, log) = (self.estimate.attention(&self.logged, queries)?, self.estimate.log());
        let (whole, visits) = (log.whole(), self.visits());
        // Scaling may make one state of several: each has its share.
        let column = |s: usize| {
            let number = log.number_of(s as u32);
            (number, if visits[s] > 0.0 { visits[s] / whole.visits()[number] } else { 0.0 })
        };
        let columns: Vec<(usize, f64)> = order(&self.logged).into_iter().map(column).collect();
        let entry = |u: usize, k: usize| columns[k].1 * weights[(u, columns[k].0)];
        Ok(Matrix::from_fn(weights.num_rows(), columns.len(), entry))
    }

    /// How well values predict another log: minus the mean over its visits of (v(s) − g − γᵏ v(s_k))², where g are the rewards that
    /// followed to the end of the episode, and s_k is its last state where it was cut short after k steps.
    pub fn score(&self, held_out: &Logged, progress: &Progress) -> Result<f64, LabError> {
        let Logged { reading, log } = held_out;
        let states = match &reading.states {
            States::Labels(labels) => States::Labels(labels[..reading.visited].to_vec()),
            States::Features { names, rows } => {
                let rows = Matrix::from_fn(reading.visited, rows.num_cols(), |s, a| rows[(s, a)]);
                States::Features { names: names.clone(), rows }
            }
        };
        let given = self.values(&Queries { states, ids: Vec::new() }, progress)?;
        let mut values = vec![0.0; log.num_states()];
        given.iter().enumerate().for_each(|(s, value)| values[log.number_of(s as u32)] = *value);
        Ok(-log.whole().return_loss(&values))
    }

    /// The questions that it answers.
    pub fn config(&self) -> &EvaluateConfig {
        &self.config
    }
}
