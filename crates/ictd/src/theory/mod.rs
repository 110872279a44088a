//! The paper's theory as numbers: what depth does to a task at hand, and what the bounds say about it.
//!
//! [`Spectrum`] and [`Stability`] say whether and how fast layers converge, [`Certificate`] puts it
//! together with reasons and suggestions, [`Constants`] evaluates the lemmas and Theorem 2, [`Neu`] the
//! pretraining objective of Theorem 3, [`lemmas`] the Lipschitz and gradient bounds behind it.

mod applied;
mod certificate;
mod constants;
mod depth;
mod enclosure;
mod form;
pub mod lemmas;
mod neu;
mod outer;
mod self_weights;
mod spectrum;
mod stability;
mod suggestion;

pub use certificate::{Certificate, CertificateConfig, Contraction, FixedPoint, Offender, Status, Steps};
pub use constants::{Constants, Theorem3};
pub use depth::DepthErrors;
pub use neu::{Neu, NeuError, NeuSampler};
pub use outer::Krylov;
pub use self_weights::self_weights;
pub use spectrum::{BestStep, Spectrum};
pub use stability::{Regime, Stability};
pub use suggestion::{Change, Helps, KernelAt, Suggestion, SuggestionConfig, Suggestions};
