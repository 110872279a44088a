//! Pretraining: multi-task TD on random tasks, and what emerges from it.

mod band;
mod lanes;
mod reverse;
mod shape;
mod windows;

pub use band::{BandPlain, BandWide, SCORE_LIMIT, ScoreOutOfRange};
pub use reverse::{GeneralPlain, GeneralWide, Hyper};
pub use shape::{Mask, Shape};
pub use windows::Windows;
