//! Pretraining: multi-task TD on random tasks, and what emerges from it.

mod lanes;
mod reverse;
mod shape;
mod windows;

pub use reverse::{GeneralPlain, GeneralWide, Hyper};
pub use shape::{Mask, Shape};
pub use windows::Windows;
