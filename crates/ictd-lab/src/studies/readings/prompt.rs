//! What the sentences of the paper leave open about the prompt and the target.

use std::fmt;

use serde::Serialize;

/// The prompt and the target: all that matters without diagonal mixing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prompt {
    /// What is the query: `masked`, as the prompt's equation has it, or `source`.
    pub query: &'static str,
    pub columns: &'static str,
    /// Whether the prompt shows the reward paid on leaving the query.
    pub query_reward: &'static str,
    /// The context that the successor's value is read from.
    pub target: &'static str,
}

/// All prompts, the literal one first.
pub fn prompts() -> impl Iterator<Item = Prompt> {
    let shown = [
        ("masked", "n+1", "hidden"),
        ("source", "n", "visible"),
        ("source", "n+1", "visible"),
        ("source", "n", "hidden"),
        ("source", "n+1", "hidden"),
    ];
    shown.into_iter().flat_map(|(query, columns, query_reward)| {
        ["shifted", "same"].map(|target| Prompt { query, columns, query_reward, target })
    })
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { query, columns, query_reward, target } = self;
        write!(f, "{query} query, {columns} columns, reward {query_reward}, {target} target")
    }
}

impl Prompt {
    /// The keys of a pretraining configuration that make it.
    pub fn overrides(&self) -> Vec<String> {
        let mut keys = vec![format!("target={}", self.target)];
        if self.query == "source" {
            keys.push("query=source".into());
            keys.push(format!("source.columns={}", self.columns));
            keys.push(format!("source.reward={}", self.query_reward));
        }
        keys
    }

    /// What mixing may do to the query's column. The formula has no entry on the diagonal of a masked query, so that
    /// `mixed` and `scaled` are the same there.
    pub(super) fn mixings(&self) -> &'static [&'static str] {
        if self.query == "source" { &["mixed", "scaled", "unmixed"] } else { &["mixed", "unmixed"] }
    }
}
