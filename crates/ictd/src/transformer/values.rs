//! What a forward pass gives: the value estimates of all layers.

use crate::context::Role;
use crate::matrix::Matrix;

/// Which of the exact paths a forward pass takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Full token matrices: parameters overwrite inputs or attend to rewards or memory.
    Tokens,
    /// One group per column: scores depend on features only.
    Columns,
    /// One group per distinct state, O(states²) per layer: no diagonal mixing, states repeat.
    States,
}

/// Value estimates and targets of every column after every layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerValues {
    pub(super) path: Path,
    /// Row l: the values of the groups after l layers.
    pub(super) by_group: Matrix,
    pub(super) group_of: Vec<u32>,
    pub(super) num_queries: usize,
    pub(super) targets: Targets,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Targets {
    /// γ times the value of the next column, for sources.
    Successor { gamma: f64, roles: Vec<Role> },
    /// Row l: the target memory after l layers.
    Stored(Matrix),
}

impl LayerValues {
    /// The path taken.
    pub fn path(&self) -> Path {
        self.path
    }

    /// Depth L.
    pub fn num_layers(&self) -> usize {
        self.by_group.num_rows() - 1
    }

    /// Number of columns.
    pub fn num_columns(&self) -> usize {
        self.group_of.len()
    }

    /// The value estimate v_l of a column; 0 for terminal states.
    pub fn value(&self, layer: usize, column: usize) -> f64 {
        self.by_group.row(layer).get(self.group_of[column] as usize).copied().unwrap_or(0.0)
    }

    /// The target memory of a column: γ·v_l(successor) for sources, 0 otherwise.
    pub fn target(&self, layer: usize, column: usize) -> f64 {
        match &self.targets {
            Targets::Successor { gamma, roles } if roles[column] == Role::Source => {
                gamma * self.value(layer, column + 1)
            }
            Targets::Successor { .. } => 0.0,
            Targets::Stored(matrix) => matrix[(layer, column)],
        }
    }

    /// The value estimates of all columns after `layer` layers.
    pub fn values(&self, layer: usize) -> Vec<f64> {
        (0..self.num_columns()).map(|j| self.value(layer, j)).collect()
    }

    /// The target memory of all columns after `layer` layers.
    pub fn targets(&self, layer: usize) -> Vec<f64> {
        (0..self.num_columns()).map(|j| self.target(layer, j)).collect()
    }

    /// The value estimate of query column k after the last layer; `None` when there are fewer queries. A context's queries
    /// follow its episodes, in the order they were added.
    pub fn query(&self, k: usize) -> Option<f64> {
        let column = self.num_columns() - self.num_queries + k;
        (k < self.num_queries).then(|| self.value(self.num_layers(), column))
    }

    /// The last column's value after the last layer: the output of the Transformer (paper, eq:outputv).
    pub fn output(&self) -> f64 {
        self.value(self.num_layers(), self.num_columns() - 1)
    }
}
