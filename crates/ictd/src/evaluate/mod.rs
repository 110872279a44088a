//! Evaluating logged episodes: the value of every state, from the log alone.
//!
//! Data moves from a [`LogBuilder`], which counts episodes, to a [`Log`] of sufficient statistics.

mod builder;
mod calendar;
mod cell;
mod grid;
mod log;
pub mod method;
mod sample;
mod scaling;
mod sum;
mod table;
mod traces;

pub use builder::LogBuilder;
pub use cell::{ReturnCell, RewardCell};
pub use grid::Grid;
pub use log::{Log, LogError};
pub use method::{Fit, FitError, Method};
pub use sample::Sample;
pub use scaling::{Scaler, Scaling};
