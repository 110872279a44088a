//! What the paper leaves open about its prompts, targets and diagonal mixing.
//!
//! Its equations mask the query; its experiments section writes attention in R^{n×n}, which has no masked column. Defaults
//! are the equations.

use serde::{Deserialize, Serialize};

/// How many columns a prompt has whose query is one of its sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceColumns {
    /// n: states x_t, …, x_{t+n-1}, the last of them the query.
    #[default]
    #[serde(rename = "n")]
    N,
    /// n + 1: the paper's columns x_t, …, x_{t+n}, the query a source like the others.
    #[serde(rename = "n+1")]
    NPlus1,
}

/// Whether a query that is a source shows the reward paid on leaving it, which the TD error at the query is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryReward {
    /// It stands in the prompt, as every other source's does.
    #[default]
    Visible,
    /// It reads 0.
    Hidden,
}

/// The prompt of [`QueryPosition::Source`](super::QueryPosition::Source); of no effect with other queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceQuery {
    /// Number of columns.
    pub columns: SourceColumns,
    /// Whether the query's own reward is in the prompt.
    pub reward: QueryReward,
}

/// Which context the value of the query's successor is read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The context one transition later, Z_0' of the paper's Algorithm 1.
    #[default]
    Shifted,
    /// The same context, in a column of its own: what the proof of the decay lemma evaluates.
    Same,
}

/// What diagonal mixing does to the query's own column; all others are (1-ρ)·K + ρ·[i = j].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryMix {
    /// The paper's formula: (1-ρ)·K + ρ·[i = j]. A query that is not a source has no entry i = j and keeps
    /// (1-ρ)·K.
    #[default]
    Mixed,
    /// (1-ρ)·K, also where the query is a source.
    Scaled,
    /// K.
    Unmixed,
}
