//! The predecessor's experiments: linear and softmax attention trained on (φ, γφ', r) columns, and whether TD emerges
//! (*Transformers Can Learn Temporal Difference Methods for In-Context Reinforcement Learning*, arXiv 2405.13861).
//!
//! The prompt Z has a column (φ_i, γφ'_i, r_i) for every transition of the context and (φ_q, 0, 0) for the query, one state
//! past it. A layer is Z ← Z + (1/n)·P Z M act(Zᵀ Q Z) with M = diag(1, …, 1, 0), and the value is -Z_L[last, last].
//! [`PredecessorConfig`] says what to train, [`PredecessorTrainer`] does it, [`PredecessorMeasurement`] says how near the result
//! is to TD(0), whose one step size is trained beside it.
//!
//! Linear attention needs only the second moments of a window, whatever n is: with the sparse mask layers improve weights
//! (`weights`), with the full one a prediction is a straight line of products of small matrices and vectors (`straight`). Softmax
//! attention goes through the distinct columns of a window and how often each is there: with the sparse mask only their memory changes
//! (`memory`), with the full one all of them do (`columns`), and so anything can be run.

mod columns;
mod comparator;
mod config;
mod engine;
mod measure;
mod memory;
mod products;
mod program;
mod prompts;
mod readout;
mod shape;
mod straight;
mod track;
mod trainer;
mod weights;

pub use comparator::td_weights;
pub use config::{Activation, Pays, PredecessorConfig, PredecessorLoss};
pub use engine::{Arithmetic, ValueAndGradient, value_and_gradient};
pub use measure::{PairMeasures, PredecessorMeasurement};
pub use prompts::Transition;
pub use shape::{PredecessorMask, PredecessorShape};
pub use trainer::{PredecessorError, PredecessorTrainer};
