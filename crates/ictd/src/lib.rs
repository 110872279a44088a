//! Transformers that do reinforcement learning in their forward pass.
//!
//! A softmax attention layer with the right parameters is one step of *weighted softmax TD*; stacking
//! layers evaluates a policy from the transitions in the prompt, without training. This crate is the
//! mathematics: no files, no clock, no terminal.
//!
//! Know first: [`Context`] (what the Transformer is shown), [`Transformer`] (runs it), [`FiniteTask`] (a task
//! whose exact values are known), [`Estimator`] (a Transformer or a TD algorithm, to be compared).
//!
//! ```
//! use ictd::{Attention, Family, KernelName, Purpose, Stream, TaskSource as _, TransformerConfig};
//!
//! // A random Boyan chain and a trajectory of 200 transitions.
//! let task = Family::paper().draw(&mut Stream::new(0, Purpose::Task, 0))?;
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
//! Modules in the order data moves: [`task`] makes tasks, [`context`] holds what is seen of one, [`prompt`] writes it as
//! token matrices, [`kernel`] weighs columns, [`transformer`] runs and differentiates layers, [`td`] is the same as
//! algorithms, [`construction`] does the same for TD(λ), SARSA and others, [`operator`] is a layer as a linear map; [`pretrain`] finds parameters, [`predecessor`] those of linear attention, [`theory`] says what depth does and why; [`evaluate`] estimates values from logged episodes, [`control`] does the same for pairs of states and actions, and improves policies.
//! What users need by name stands at the root too.

// A WebAssembly module has one thread; what is called rayon in the rest of the crate goes through items in their order there.
#[cfg(target_family = "wasm")]
extern crate ictd_sequential as rayon;

pub mod construction;
pub mod context;
pub mod control;
pub mod evaluate;
mod hessenberg;
pub mod kernel;
mod krylov;
pub mod linalg;
pub mod matrix;
pub mod operator;
pub mod parallel;
pub mod predecessor;
pub mod pretrain;
pub mod prompt;
pub mod random;
pub mod statistics;
pub mod task;
pub mod td;
pub mod theory;
pub mod transformer;
mod vector;
pub mod watch;

pub use construction::{Algorithm, Construction, ConstructionConfig};
pub use context::{Context, ContextStatistics, End};
pub use kernel::{Attention, Kernel, KernelName};
pub use matrix::Matrix;
pub use operator::StateOperator;
pub use pretrain::{PretrainConfig, Trainer};
pub use random::{Purpose, Stream};
pub use task::{Family, FiniteTask, Mrp, TaskSource};
pub use td::{
    AverageRewardTd, Estimator, LambdaTd, LinearTd, MonteCarloRegression, NonParametricTd, ReflectedTd,
    ResidualGradientTd, TabularTd, WeightedSoftmaxTd,
};
pub use theory::{Certificate, CertificateConfig, Stability};
pub use transformer::{
    Adjoint, AttentionParams, Block, LayerValues, Parameters, Transformer, TransformerConfig,
};

/// Compiles and runs the code in the README and on pages of the docs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/predecessor.md")]
#[doc = include_str!("../../../docs/long.md")]
struct Pages;
