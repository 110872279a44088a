//! What a run of the predecessor's experiment is made of.

use serde::{Deserialize, Serialize};

use super::shape::{PredecessorMask, PredecessorShape};
use crate::pretrain::{ConfigError, MEMORY_LIMIT, Optimizer, OptimizerName, SimdLevel};
use crate::task::{Family, FeatureMap, Kind, TaskError, TaskSource as _};

/// What scores Zᵀ Q Z go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Nothing: linear attention.
    Linear,
    /// Softmax along each *source's row* of the scores, over all n + 1 columns, and the factor 1/n as well: what the
    /// authors' code does (`Softmax(dim=1)`). Usual attention normalises over the sources of a column instead.
    Softmax,
}

/// What predictions are pulled towards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredecessorLoss {
    /// Mean square TD error with the target held fixed.
    Mstde,
    /// Mean square distance to the exact value of the query.
    MsveTrue,
    /// Mean square distance to a sampled return of 40 steps from the query.
    MsveMc,
}

/// When a transition's reward is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pays {
    /// That of the state that is left.
    Leaving,
    /// That of the state that is entered, as the authors' cart-pole does.
    Entering,
}

/// A training run. The defaults are the predecessor's standard experiment.
///
/// | key | purpose | range |
/// |---|---|---|
/// | `task` | what tasks are drawn from | a family with a table of features |
/// | `n` | context length | 1 to 10000 |
/// | `layers` | depth L | 1 to 100 |
/// | `activation` | what scores go through | linear or softmax |
/// | `mask` | trained entries | sparse or full |
/// | `tied` | one (P, Q) for all layers | true or false |
/// | `loss` | loss | mstde, msve-true or msve-mc |
/// | `pays` | whose reward a transition pays | leaving or entering |
/// | `mrps` | tasks, one after the other | 1 to 1000000000 |
/// | `batches` | minibatches per task, each on a trajectory of its own | 1 to 1000000 |
/// | `batch` | prompts per minibatch | 1 to 10000 |
/// | `lr` | Adam's learning rate | a finite number > 0 |
/// | `weight_decay` | times the parameter, added to its gradient | a finite number >= 0 |
/// | `gain` | Xavier gain, divided by L where layers are not tied | a finite number >= 0 |
/// | `measure_every` | tasks between measurements | 1 to 1000000000 |
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the table above")]
pub struct PredecessorConfig {
    pub task: Family,
    #[serde(rename = "n")]
    pub context_len: usize,
    #[serde(rename = "layers")]
    pub num_layers: usize,
    pub activation: Activation,
    pub mask: PredecessorMask,
    pub tied: bool,
    pub loss: PredecessorLoss,
    pub pays: Pays,
    pub mrps: u64,
    pub batches: usize,
    pub batch: usize,
    pub lr: f64,
    pub weight_decay: f64,
    pub gain: f64,
    pub measure_every: u64,
    /// Vector instructions; no part of files, because it changes speed and last places only.
    #[serde(skip)]
    pub simd: SimdLevel,
}

impl PredecessorConfig {
    /// Tied layers, L = 3, linear attention on Boyan chains of 10 states whose values are not linear in the features.
    pub fn standard() -> Self {
        Self {
            task: Family { num_states: 10, feature_dim: 4, representable: false, ..Family::of(Kind::Boyan) },
            context_len: 30,
            num_layers: 3,
            activation: Activation::Linear,
            mask: PredecessorMask::Sparse,
            tied: true,
            loss: PredecessorLoss::Mstde,
            pays: Pays::Leaving,
            mrps: 5000,
            batches: 5,
            batch: 64,
            lr: 1e-3,
            weight_decay: 1e-6,
            gain: 0.1,
            measure_every: 10,
            simd: SimdLevel::Best,
        }
    }

    /// Its sizes.
    pub fn shape(&self) -> PredecessorShape {
        PredecessorShape {
            feature_dim: self.task.feature_dim(),
            context_len: self.context_len,
            num_layers: self.num_layers,
            tied: self.tied,
            activation: self.activation,
            mask: self.mask,
        }
    }

    /// Bytes of a seed, nearly: moments by position and window, what layers keep of every window, parameters.
    fn memory(&self) -> f64 {
        let shape = self.shape();
        let [k, n, batch, layers] =
            [shape.num_rows(), self.context_len, self.batch, self.num_layers].map(|x| x as f64);
        let moments = k * k / 2.0 * (8.0 * (n + batch) + 4.0 * batch);
        let columns = n + 16.0;
        let kept = 4.0 * (batch + 32.0) * layers * columns * (columns + 3.0 * k);
        moments + kept + 80.0 * shape.num_params() as f64
    }

    /// Adam as PyTorch has it.
    pub(super) fn optimizer(&self) -> Optimizer {
        Optimizer { name: OptimizerName::Adam, lr: self.lr, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }

    /// Checks every key against its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let sizes = [
            ("n", self.context_len as u64, 10_000, "1 to 10000"),
            ("layers", self.num_layers as u64, 100, "1 to 100"),
            ("mrps", self.mrps, 1_000_000_000, "1 to 1000000000"),
            ("batches", self.batches as u64, 1_000_000, "1 to 1000000"),
            ("batch", self.batch as u64, 10_000, "1 to 10000"),
            ("measure_every", self.measure_every, 1_000_000_000, "1 to 1000000000"),
        ];
        for (key, found, high, expected) in sizes {
            if !(1..=high).contains(&found) {
                return Err(ConfigError::new(key, found, expected));
            }
        }
        match self.task.check() {
            Err(TaskError::Size { field, expected, found }) => {
                return Err(ConfigError::new(field, found, expected));
            }
            Err(other) => return Err(ConfigError::new("task", other, "tasks that can be drawn")),
            Ok(()) => {}
        }
        if self.task.kind == Kind::Own {
            return Err(ConfigError::new("task.kind", "own", "a family"));
        }
        if self.task.feature_map == FeatureMap::Coordinates {
            let expected = "raw, one-hot or unit-norm: measures go over the states of a table";
            return Err(ConfigError::new("task.feature_map", "coordinates", expected));
        }
        if !self.task.is_exact() && self.loss == PredecessorLoss::MsveTrue {
            return Err(ConfigError::new("loss", "msve-true", "another one: the values are not known"));
        }
        if self.pays == Pays::Entering && self.loss == PredecessorLoss::MsveMc && self.task.gamma == 0.0 {
            return Err(ConfigError::new(
                "task.gamma",
                0,
                "above 0 where returns are of rewards paid on entering",
            ));
        }
        if self.task.is_exact() && self.pays == Pays::Entering {
            return Err(ConfigError::new(
                "pays",
                "entering",
                "leaving but for cartpole: exact values are those of it",
            ));
        }
        let memory = self.memory();
        // Negated, so that NaN is refused.
        if !(memory <= MEMORY_LIMIT) {
            let found = format!("about {:.1} GB for one seed", memory / 1e9);
            return Err(ConfigError::new(
                "memory",
                found,
                "at most 8 GB: lower features, batch, n or layers",
            ));
        }
        let finite = |x: f64, low: bool| x.is_finite() && if low { x > 0.0 } else { x >= 0.0 };
        let numbers = [
            ("lr", self.lr, true, "a finite number > 0"),
            ("weight_decay", self.weight_decay, false, "a finite number >= 0"),
            ("gain", self.gain, false, "a finite number >= 0"),
        ];
        for (key, found, positive, expected) in numbers {
            if !finite(found, positive) {
                return Err(ConfigError::new(key, found, expected));
            }
        }
        if !self.simd.is_available() {
            return Err(ConfigError::new("simd", self.simd, "a level that this CPU has"));
        }
        Ok(())
    }
}
