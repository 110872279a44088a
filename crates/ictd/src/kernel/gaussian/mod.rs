//! Weights b(s)·2^⟨y_s, y_u⟩ between points: what exponential kernels come to when states do not repeat.
//!
//! [`Embedding`] finds the points; [`Blocks`] multiplies with all weights exactly, computing them anew in every layer;
//! [`Pivots`] through a few of the points, with a bound on the error.

mod blocks;
mod embedding;
mod kappa;
mod pivots;
mod selection;
mod tile;

pub(crate) use blocks::Blocks;
pub(crate) use embedding::Embedding;
pub(crate) use pivots::{Pivots, TooMany};
