//! The theory studies: certificates, regimes, bounds, NEU, lemmas.

pub(super) mod assumption;
pub mod certify;
pub(super) mod depth;
pub mod lemmas;
pub(super) mod rates;
pub mod regimes;
mod separation;
pub mod theorem2;
pub mod theorem3;

use super::Tasks;
