//! Experiments on in-context temporal-difference learning.
//!
//! Each study takes a config and returns data; the data knows its figure, its table and its verdict.
//! Start with [`studies`] (what can be run) and [`files`] (what is read and written).

// A WebAssembly module has one thread; what is called rayon in the rest of the crate goes through items in their order there.
#[cfg(target_family = "wasm")]
extern crate ictd_sequential as rayon;

mod clock;
mod counted;
mod did_you_mean;
pub mod error;
pub mod explore;
pub mod figure;
pub mod files;
pub mod logs;
pub mod memory;
mod one_line;
mod progress;
pub mod report;
mod seeds;
mod shell;
pub mod studies;
pub mod sweep;
mod watched;

pub(crate) use clock::Moment;
pub(crate) use counted::counted;
pub use did_you_mean::did_you_mean;
pub use error::LabError;
pub use one_line::one_line;
pub use progress::{Progress, Standing};
pub use seeds::Seeds;
pub use shell::shell_word;
pub use watched::Watched;
