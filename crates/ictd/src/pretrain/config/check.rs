//! What a configuration may hold.

use super::{Loss, PretrainConfig, QueryPosition, SourceQuery};
use crate::pretrain::keys::Key;
use crate::pretrain::weighing::Weighing;
use crate::task::{TaskError, TaskSource};

/// Why a configuration cannot be trained: the key, what was found, the allowed range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{key} is {found}, expected {expected}")]
pub struct ConfigError {
    /// The key, with dots.
    pub key: &'static str,
    /// The value.
    pub found: String,
    /// The allowed range.
    pub expected: &'static str,
}

impl ConfigError {
    pub(in crate::pretrain) fn new(key: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Self { key, found: found.to_string(), expected }
    }
}

/// Largest memory of a seed that is tried.
const MAX_GIGABYTES: f64 = 8.0;

/// Ranges of numbers; their words stand in the table of keys.
type Range = fn(f64) -> bool;
const POSITIVE: Range = |x| x > 0.0 && x.is_finite();
const NOT_NEGATIVE: Range = |x| x >= 0.0 && x.is_finite();
const MIXING: Range = |x| (0.0..=1.0).contains(&x);
const DECAY: Range = |x| (0.0..1.0).contains(&x);

impl PretrainConfig {
    /// Checks every key against its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse =
            |key, found: &dyn ToString, expected| Err(ConfigError::new(key, found.to_string(), expected));
        // Beyond these a size is a mistyped zero and not an experiment.
        let sizes = [
            ("n", self.context_len as u64, 100_000),
            ("layers", self.num_layers as u64, 10_000),
            ("batches", self.batches as u64, 1_000_000),
            ("batch", self.batch as u64, 100_000),
            ("epochs", self.epochs, 1_000_000_000),
        ];
        for (key, found, high) in sizes {
            if !(1..=high).contains(&found) {
                return refuse(key, &found, Key::range_of(key));
            }
        }
        match self.task.check() {
            Err(TaskError::Size { field, expected, found }) => return refuse(field, &found, expected),
            Err(other) => return refuse("task", &other, "tasks that can be drawn"),
            Ok(()) => {}
        }
        let gigabytes = self.memory() / 1e9;
        if gigabytes > MAX_GIGABYTES {
            let found =
                format!("{} with the other sizes, about {gigabytes:.0} GB per seed", self.context_len);
            let expected = "sizes (n, features, layers, batch, batches, epochs) that need at most 8 GB";
            return refuse("n", &found, expected);
        }
        let source = self.source()?;
        let (m, d, gamma) = (self.task.num_states, self.task.feature_dim(), self.task.gamma);
        if (source.num_states(), source.feature_dim(), source.gamma()) != (m, d, gamma) {
            let found = format!("with {m} states, {d} features and gamma {gamma}");
            return refuse("task", &found, "the sizes and gamma of its own tasks");
        }
        if !source.is_exact() && self.query == QueryPosition::Stationary {
            return refuse("query", &"stationary", "another one: the stationary law is not known");
        }
        if !source.is_exact() && self.loss == Loss::TrueValue {
            return refuse("loss", &"true-value", "another one: the values are not known");
        }
        let numbers = [
            ("temperature", self.temperature, POSITIVE),
            ("optimizer.lr", self.optimizer.lr, POSITIVE),
            ("optimizer.epsilon", self.optimizer.epsilon, POSITIVE),
            ("rho.start", self.rho.start, MIXING),
            ("rho.end", self.rho.end, MIXING),
            ("optimizer.beta1", self.optimizer.beta1, DECAY),
            ("optimizer.beta2", self.optimizer.beta2, DECAY),
            ("init.gain", self.init.gain, NOT_NEGATIVE),
        ];
        for (key, found, is_within) in numbers {
            if !is_within(found) {
                return refuse(key, &found, Key::range_of(key));
            }
        }
        self.weighing()?;
        if !self.simd.is_available() {
            return refuse("simd", &self.simd, "a level that this CPU has");
        }
        if self.query != QueryPosition::Source && self.source != SourceQuery::default() {
            let found = format!("set with query {:?}", self.query).to_lowercase();
            return refuse("source", &found, "its defaults unless the query is source");
        }
        Ok(())
    }

    /// The kernel as passes take it.
    pub(in crate::pretrain) fn weighing(&self) -> Result<Weighing, ConfigError> {
        Weighing::named(self.kernel)
            .ok_or_else(|| ConfigError::new("kernel", self.kernel, Key::range_of("kernel")))
    }

    /// A rough count of the bytes a seed needs: the tape of a minibatch, the windows of an epoch, the task, the
    /// parameters, the history.
    fn memory(&self) -> f64 {
        let [d, n, m] = [self.task.feature_dim(), self.context_len, self.task.num_states].map(|x| x as f64);
        let [layers, batch, batches] = [self.num_layers, self.batch, self.batches].map(|x| x as f64);
        let tape = 4.0 * (batch + 16.0) * layers * (n + 2.0) * (3.0 * (d + 3.0) + n);
        let windows = 16.0 * (batch * batches + n) * (d + 1.0);
        let params = 32.0 * layers * (d + 3.0) * (d + 3.0);
        tape + windows + params + 8.0 * m * (d + m) + 28.0 * self.epochs as f64 * batches
    }
}
