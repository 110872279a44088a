//! Pretraining: multi-task TD on random tasks, and what emerges from it.
//!
//! [`PretrainConfig`] says what to train, [`Trainer`] does it epoch by epoch, [`Emergence`] says what
//! came out. Gradients are exact: [`GeneralPlain`] is the reference in double precision, [`GeneralWide`]
//! the same source on sixteen single-precision lanes, and [`BandWide`] the fast pass for the paper's
//! setting.

mod band;
mod config;
mod drift;
mod emergence;
mod init;
mod lanes;
mod measure;
mod optimizer;
mod pass;
mod reading;
mod reverse;
mod rollout;
mod shape;
mod state;
mod trainer;
mod windows;

pub use band::{BandPlain, BandWide, SCORE_LIMIT, ScoreOutOfRange};
pub use config::{
    ConfigError, Init, Loss, Optimizer, OptimizerName, PretrainConfig, QueryPosition, RhoSchedule, Sign,
};
pub use drift::{Drift, drift, reduced_params};
pub use emergence::{Branch, Emergence};
pub use lanes::Element;
pub use measure::{FirstGradient, Measurement, first_gradient, measure};
pub use optimizer::Moments;
pub use pass::{Pass, Precision, WidePass};
pub use reading::{QueryMix, QueryReward, SourceColumns, SourceQuery, Target};
pub use reverse::{GeneralPlain, GeneralWide, Hyper};
pub use shape::{Columns, Mask, Shape};
pub use state::{Best, History, TrainState};
pub use trainer::{TrainError, Trainer, emergence_of};
pub use windows::Windows;
