//! Evaluating logged episodes: the value of every state, from the log alone.
//!
//! Data moves from a [`LogBuilder`], which counts episodes, to a [`Log`] of sufficient statistics, whose features a [`Scaler`]
//! scales. Where there are many states [`Keys`] are landmarks among them, or [`Cells`] gather them. A [`Sample`] is a log with weights on its blocks of episodes,
//! which is all that a [`Method`] sees; [`tune()`] chooses among methods by episodes that were held out.
//!
//! ```
//! use ictd::evaluate::{Folds, Loss, Method, method::SoftmaxTd};
//! use ictd::evaluate::{Depths, Log, LogBuilder, depths, tune};
//! use ictd::{End, KernelName, Matrix};
//!
//! let mut builder = LogBuilder::new(0.9, None)?;
//! for key in 0..20 {
//!     let reward = f64::from(key as u32 % 3);
//!     builder.episode(key, &[0, 1, 2], &[0.0, reward, 1.0], End::Terminated, None)?;
//! }
//! let log = builder.build(Matrix::from_vec(3, 1, vec![-1.0, 0.0, 1.0]))?;
//! let method = |temperature| -> Result<SoftmaxTd, ictd::kernel::KernelError> {
//!     let kernel = KernelName::Rbf.at(temperature)?;
//!     Ok(SoftmaxTd { kernel, num_layers: 0, step_size: 1.0, centred: true, keys: None, stop: None })
//! };
//! let wide = Depths { method: method(1.0)?, depths: depths(64), patience: 4 };
//! let narrow = Depths { method: method(0.1)?, depths: depths(64), patience: 4 };
//! let curve = tune(&log, &Folds::new(&log, 5, 2, 0)?, Loss::HeldOutLstd, &[&wide, &narrow])?;
//! assert!(curve.trials[curve.best].loss < curve.trials[0].loss);
//!
//! let fit = SoftmaxTd { num_layers: 64, ..method(0.1)? }.fit(&log.whole())?;
//! assert!((fit.values()[2] - 1.0).abs() < 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod calendar;
mod calibration;
mod cell;
mod cells;
mod evidence;
mod folds;
mod grid;
mod interval;
mod judgement;
mod keys;
mod log;
mod loss;
pub mod method;
mod pass;
mod reach;
mod sample;
mod scaling;
mod stationarity;
mod sum;
mod table;
mod traces;
mod tune;
mod width;
mod wording;

pub use builder::LogBuilder;
pub use calibration::{Bin, calibration};
pub use cell::{ReturnCell, RewardCell};
pub use cells::Cells;
pub use evidence::Evidence;
pub use folds::Folds;
pub use grid::Grid;
pub use interval::{Interval, Intervals, resamples};
pub use judgement::{Judgement, Level, Losses, Reason};
pub use keys::Keys;
pub use log::{Log, LogError};
pub use loss::Loss;
pub use method::{Fit, FitError, Method};
pub use pass::{Limit, PassEvidence};
pub use reach::{Reach, share_unknown};
pub use sample::Sample;
pub use scaling::{Scaler, Scaling};
pub use stationarity::{Drift, Drifts};
pub use tune::{Candidates, Curve, Depths, Trial, Trials, TuneError, best, tune};
pub use width::{depths, temperatures};
