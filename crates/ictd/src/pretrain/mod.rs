//! Pretraining: multi-task TD on random tasks, and what emerges from it.
//!
//! [`PretrainConfig`] says what to train, [`Trainer`] does it epoch by epoch, [`Emergence`] says what
//! came out, [`TrainState::transformer`] makes a Transformer of it. Gradients are exact: an engine runs one of four
//! programs, the fast pass for scores of features alone (`band`), the same for long contexts of few states (`states`) and for
//! linear attention (`factored`), or the pass for anything (`general`), which in double precision is the reference ([`reference_gradient`]).

mod band;
mod batch;
mod config;
mod distance;
mod drift;
mod emergence;
mod engine;
mod factored;
mod general;
mod keys;
pub(crate) mod lanes;
mod layers;
mod level;
mod measure;
mod memory;
mod metric;
mod optimizer;
mod params;
mod reading;
mod rollout;
mod shape;
mod state;
mod states;
#[cfg(test)]
mod testing;
mod trainer;
mod weighing;

pub use config::{
    ConfigError, Init, Loss, Optimizer, OptimizerName, PretrainConfig, QueryPosition, RhoSchedule, Sign,
};
pub use drift::{Drift, drift, reduced_params};
pub use emergence::{Branch, Emergence};
pub use engine::{Hyper, reference_gradient};
pub use keys::Key;
pub use level::{SimdLevel, SimdLevelError};
pub use measure::{FirstGradient, Measurement, first_gradient, measure};
pub use memory::{MEMORY_LIMIT, TrainMemory};
pub use metric::{History, Metric};
pub use optimizer::Moments;
pub(crate) use optimizer::update;
pub use params::{ModelError, ParamsView, emergence_of};
pub use reading::{QueryMix, QueryReward, SourceColumns, SourceQuery, Target};
pub use shape::{Columns, Mask, Shape};
pub use state::{Best, TrainState};
pub use trainer::{TrainError, Trainer};
pub use weighing::KernelNotTrainable;
