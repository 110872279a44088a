//! What a training run is made of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::keys::Key;
use super::level::SimdLevel;
use super::memory::{LESS_MEMORY, MEMORY_LIMIT};
use super::reading::{QueryMix, QueryReward, SourceColumns, SourceQuery, Target};
use super::shape::{Columns, Mask, Shape};
use super::weighing::Weighing;
use crate::kernel::KernelName;
use crate::task::{Family, Kind, OwnTasks, TaskError, TaskSource};
use crate::transformer::Block;

/// Which state a window is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryPosition {
    /// The state after the last context transition, x_{t+n}: the paper's.
    Next,
    /// One state later, x_{t+n+1}, the context unchanged: the predecessor's.
    Skip,
    /// Drawn from the stationary law independently of the context, its successor drawn from P.
    Stationary,
    /// The last source of the context, as attention in R^{n×n} without a masked column has it (see
    /// [`SourceQuery`]).
    Source,
}

/// What predictions are pulled towards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Mean δ² with the target held fixed (semi-gradient TD, the paper's).
    Td,
    /// Mean δ² differentiated through both ends (residual gradient).
    FullGradient,
    /// Mean square distance to the exact value of the query.
    TrueValue,
    /// Mean square distance to a sampled return of the query.
    MonteCarlo,
}

/// Which optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerName {
    /// Adam with bias correction.
    Adam,
    /// θ ← θ + lr·mean(δ ∇v), Algorithm 1's update averaged over the minibatch.
    Sgd,
}

/// Optimiser and its rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Optimizer {
    /// Which one.
    pub name: OptimizerName,
    /// Learning rate, > 0.
    pub lr: f64,
    /// Adam: decay of the first moment, in [0, 1).
    pub beta1: f64,
    /// Adam: decay of the second moment, in [0, 1).
    pub beta2: f64,
    /// Adam: added to the root of the second moment, > 0.
    pub epsilon: f64,
}

/// Diagonal mixing over training: linear from `start` to `end` over `steps`, then constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RhoSchedule {
    /// At step 0, in [0, 1].
    pub start: f64,
    /// From step `steps` on, in [0, 1].
    pub end: f64,
    /// Length of the ramp.
    pub steps: u64,
    /// What it does to the query's column.
    #[serde(default)]
    pub query: QueryMix,
}

impl RhoSchedule {
    /// ρ at a step.
    pub fn at(&self, step: u64) -> f64 {
        if step >= self.steps {
            return self.end;
        }
        self.start + (self.end - self.start) * step as f64 / self.steps as f64
    }
}

/// Signs imposed on initial parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// As drawn.
    Random,
    /// Those of the TD block.
    Td,
    /// Those of its mirror image.
    Mirror,
}

/// Initial parameters: Xavier normal, std = gain/√(d+3), on every trained entry.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Init {
    /// The gain, ≥ 0.
    pub gain: f64,
    /// Sign of A's initial diagonal.
    pub score_sign: Sign,
    /// Signs of V's initial entries for reward, target and value.
    pub value_sign: Sign,
}

/// A training run. The defaults are the paper's (Table 1); [`Key::ALL`](super::Key::ALL) says what every key is for and its range.
///
/// `task` says what tasks are drawn from, `own` names tasks that no family draws (`task.kind` is then own).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the table of keys")]
pub struct PretrainConfig {
    pub task: Family,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnTasks>,
    #[serde(rename = "n")]
    pub context_len: usize,
    #[serde(rename = "layers")]
    pub num_layers: usize,
    #[serde(default, deserialize_with = "kernel_to_train")]
    pub kernel: KernelName,
    #[serde(alias = "tau")]
    pub temperature: f64,
    pub query: QueryPosition,
    #[serde(default)]
    pub source: SourceQuery,
    #[serde(default)]
    pub target: Target,
    pub mask: Mask,
    pub block: Block,
    pub tied: bool,
    pub loss: Loss,
    pub epochs: u64,
    pub batches: usize,
    pub batch: usize,
    pub optimizer: Optimizer,
    pub rho: RhoSchedule,
    pub init: Init,
    /// Vector instructions; no part of files, because it changes speed and last places only.
    #[serde(skip)]
    pub simd: SimdLevel,
}

/// A kernel by name; an unknown name is told those that can be trained, which are not all.
fn kernel_to_train<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<KernelName, D::Error> {
    let name = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
    const TRAINED: [&str; 5] = ["softmax", "linear", "relu", "elu1", "rbf"];
    name.parse().map_err(|_| serde::de::Error::unknown_variant(&name, &TRAINED))
}

impl PretrainConfig {
    /// The paper's main experiment (Table 1, Figures 3 and 5).
    pub fn paper() -> Self {
        Self {
            task: Family::paper(),
            own: None,
            context_len: 10,
            num_layers: 3,
            kernel: KernelName::Softmax,
            temperature: 1.2,
            query: QueryPosition::Next,
            source: SourceQuery::default(),
            target: Target::Shifted,
            mask: Mask::Full,
            block: Block::TemporalShift,
            tied: true,
            loss: Loss::Td,
            epochs: 3000,
            batches: 5,
            batch: 64,
            optimizer: Optimizer {
                name: OptimizerName::Adam,
                lr: 1e-3,
                beta1: 0.9,
                beta2: 0.999,
                epsilon: 1e-8,
            },
            rho: RhoSchedule { start: 0.0, end: 0.0, steps: 0, query: QueryMix::Mixed },
            init: Init { gain: 0.1, score_sign: Sign::Random, value_sign: Sign::Random },
            simd: SimdLevel::Best,
        }
    }

    /// The full-mask half of the mask ablation (Figure 6): 900 tasks × 10 minibatches, ρ from 0.68 to
    /// 0.80 over 8000 steps.
    pub fn mask_full() -> Self {
        Self {
            epochs: 900,
            batches: 10,
            rho: RhoSchedule { start: 0.68, end: 0.80, steps: 8000, query: QueryMix::Mixed },
            ..Self::paper()
        }
    }

    /// The relaxed-mask half of the mask ablation (Figure 6).
    pub fn mask_relaxed() -> Self {
        Self { mask: Mask::Relaxed, ..Self::mask_full() }
    }

    /// The predecessor's setting (arXiv 2405.13861) as far as this block has it: 10 states, 30 context
    /// transitions, the query one state further, 4000 tasks.
    pub fn predecessor() -> Self {
        let task = Family { num_states: 10, ..Family::paper() };
        Self { task, context_len: 30, query: QueryPosition::Skip, epochs: 4000, ..Self::paper() }
    }

    /// The same training on tasks that no family draws.
    pub fn on_tasks(&self, name: &str, source: Arc<dyn TaskSource>) -> Self {
        let task = Family::own(&*source);
        let own = OwnTasks { name: name.to_owned(), sha256: None, source: Some(source) };
        Self { task, own: Some(own), ..self.clone() }
    }

    /// What tasks are drawn from.
    pub fn source(&self) -> Result<Arc<dyn TaskSource>, ConfigError> {
        if self.task.kind != Kind::Own {
            return Ok(Arc::new(self.task.clone()));
        }
        let expected = "a family, or tasks of one's own from a file or a program";
        let given = self.own.as_ref().and_then(|own| own.source.clone());
        given.ok_or_else(|| ConfigError::new("task.kind", "own, without a source", expected))
    }

    /// The presets by name.
    pub const PRESETS: [(&'static str, fn() -> Self); 4] = [
        ("paper", Self::paper),
        ("mask-full", Self::mask_full),
        ("mask-relaxed", Self::mask_relaxed),
        ("predecessor", Self::predecessor),
    ];

    /// A preset by name.
    pub fn preset(name: &str) -> Option<Self> {
        Self::PRESETS.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
    }

    /// The shape of the trained Transformer.
    pub fn shape(&self) -> Shape {
        let is_source = self.query == QueryPosition::Source;
        Shape {
            feature_dim: self.task.feature_dim(),
            context_len: self.context_len
                + usize::from(is_source && self.source.columns == SourceColumns::NPlus1),
            num_layers: self.num_layers,
            tied: self.tied,
            columns: Columns {
                last_state: !is_source,
                separate_query: matches!(self.query, QueryPosition::Skip | QueryPosition::Stationary),
                last_reward_hidden: is_source && self.source.reward == QueryReward::Hidden,
            },
            block: self.block,
            mask: self.mask,
        }
    }

    /// The shape of the pass that targets are read from: with a context of their own they are asked in a column
    /// of their own.
    pub(super) fn target_shape(&self) -> Shape {
        let shape = self.shape();
        Shape { columns: Columns { separate_query: true, ..shape.columns }, ..shape }
    }

    /// Whether targets need a pass of their own. Otherwise the next window's prediction is this window's target.
    pub(super) fn has_target_pass(&self) -> bool {
        self.query == QueryPosition::Stationary || self.target == Target::Same
    }

    /// Gradient steps of the whole run.
    pub fn num_steps(&self) -> u64 {
        self.epochs * self.batches as u64
    }
}

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
    pub(crate) fn new(key: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Self { key, found: found.to_string(), expected }
    }
}

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
        self.check_family()?;
        let memory = self.memory().of_seeds(1);
        // Negated, so that NaN is refused.
        if !(memory <= MEMORY_LIMIT) {
            let found = format!("about {:.1} GB for one seed", memory / 1e9);
            return refuse("memory", &found, LESS_MEMORY);
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
        if self.mask == Mask::Looped && !self.tied {
            let expected = "full, relaxed or none with tied=false: looped layers share their parameters";
            return refuse("mask", &"looped", expected);
        }
        if !self.simd.is_available() {
            return refuse("simd", &self.simd, "a level that this CPU has");
        }
        if self.query != QueryPosition::Source && self.source != SourceQuery::default() {
            let found = format!("set with query {:?}", self.query).to_lowercase();
            return refuse("source", &found, "its defaults unless the query is source");
        }
        Ok(())
    }

    /// Checks the keys of the task alone, before a file of tasks is read.
    pub fn check_family(&self) -> Result<(), ConfigError> {
        match self.task.check() {
            Err(TaskError::Size { field, expected, found }) => {
                // A family speaks of options; here they are keys.
                let key = match field {
                    "score-scale" => "task.score_scale",
                    "one-hot" | "continuous" => "task.feature_map",
                    key => key,
                };
                Err(ConfigError::new(key, found, expected))
            }
            Err(other) => Err(ConfigError::new("task", other, "tasks that can be drawn")),
            Ok(()) => Ok(()),
        }
    }

    /// The kernel as passes take it.
    pub(super) fn weighing(&self) -> Result<Weighing, ConfigError> {
        Weighing::named(self.kernel)
            .ok_or_else(|| ConfigError::new("kernel", self.kernel, Key::range_of("kernel")))
    }
}
