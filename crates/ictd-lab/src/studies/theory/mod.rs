//! The theory studies: certificates, regimes, bounds, NEU, lemmas.

pub mod bound;
pub mod certify;
pub mod depth;
pub mod lemmas;
pub mod neu;
pub mod rates;
pub mod regimes;
pub mod separation;
pub mod theorem3;

use super::Tasks;
