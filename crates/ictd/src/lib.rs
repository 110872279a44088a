//! Transformers that do reinforcement learning in their forward pass.
//!
//! A softmax attention layer with the right parameters is one step of *weighted softmax TD*; stacking
//! layers evaluates a policy from the transitions in the prompt, without training. This crate is the
//! mathematics: no files, no clock, no terminal.
//!
//! Know first: [`context::Context`] (what the Transformer is shown), [`transformer::Transformer`]
//! (runs it), [`task::FiniteTask`] (a task whose exact values are known).
//!
//! ```
//! use ictd::kernel::{Attention, KernelName};
//! use ictd::random::{Purpose, Stream};
//! use ictd::task::Boyan;
//! use ictd::transformer::TransformerConfig;
//!
//! // A random Boyan chain and a trajectory of 200 transitions.
//! let task = Boyan::paper().generate(&mut Stream::new(0, Purpose::Task, 0))?;
//! let (context, states) = task.sample_context(200, &mut Stream::new(0, Purpose::Trajectory, 0));
//!
//! // 15 layers of softmax attention at theta_*: 15 steps of weighted softmax TD.
//! let attention = Attention::new(KernelName::Softmax.at(1.0)?, 0.0)?;
//! let transformer = TransformerConfig::theta_star(attention, 15, task.mrp().gamma()).check()?;
//! let estimate = transformer.values(&context)?.output();
//! let exact = task.values()[states[200]];
//! assert!((estimate - exact).abs() < 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules in the order data moves:

pub mod task;

pub mod context;

pub mod prompt;

pub mod kernel;

pub mod transformer;

pub mod td;

pub mod operator;

pub mod pretrain;

pub mod theory;

pub mod statistics;

pub mod linalg;
pub mod matrix;
pub mod random;
mod vector;

/// Compiles and runs the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
