//! How often a verdict is the same when the whole study is run with other seeds.

use serde::{Deserialize, Serialize};

/// Agreement of a verdict over seeds of the whole study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stability {
    /// Seeds of the whole study.
    pub seeds: u64,
    /// Those with this verdict.
    pub same: u64,
}
