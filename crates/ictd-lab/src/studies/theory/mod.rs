//! The theory studies: certificates, regimes, bounds, NEU, lemmas.

pub mod bound;
pub mod certify;
mod family;
mod fit;
pub mod lemmas;
pub mod neu;
pub mod regimes;

pub use family::{FamilyKind, TaskFamily};
pub use fit::{Slope, power};
