//! The theory studies: certificates, regimes, bounds, NEU, lemmas.

pub mod assumption;
pub mod certify;
pub mod depth;
pub mod lemmas;
pub mod rates;
pub mod regimes;
pub mod separation;
pub mod theorem2;
pub mod theorem3;

use super::Tasks;
