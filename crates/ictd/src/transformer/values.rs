//! The fast path: value estimates of all layers without token matrices.

use super::groups::GroupPass;
use super::{ForwardError, Transformer};
use crate::context::{Context, ContextStatistics, Role};
use crate::matrix::Matrix;

/// Shorter contexts are not searched for repeated states: the search costs more than it saves.
const MIN_MERGE: usize = 16;

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
    path: Path,
    /// Row l: the values of the groups after l layers.
    by_group: Matrix,
    group_of: Vec<u32>,
    num_queries: usize,
    targets: Targets,
}

#[derive(Clone, Debug, PartialEq)]
enum Targets {
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

/// Buffers for forward passes; reuse one for many contexts to avoid allocating.
#[derive(Clone, Debug, Default)]
pub struct Evaluator {
    statistics: ContextStatistics,
    pass: GroupPass,
}

impl Evaluator {
    /// The value estimates of all layers by the fastest exact path.
    pub fn evaluate(
        &mut self,
        transformer: &Transformer,
        context: &Context,
    ) -> Result<LayerValues, ForwardError> {
        let path = self.prepare(transformer, context)?;
        self.collect(transformer, context, path)
    }

    /// As [`evaluate`](Self::evaluate) along a given path, for comparing paths.
    ///
    /// # Panics
    /// When the path is not exact for this Transformer.
    pub fn evaluate_along(
        &mut self,
        path: Path,
        transformer: &Transformer,
        context: &Context,
    ) -> Result<LayerValues, ForwardError> {
        transformer.check_dim(context.feature_dim())?;
        let exact = exact_paths(transformer);
        assert!(exact.contains(&path), "{path:?} is not exact here");
        match path {
            Path::Tokens => {}
            Path::Columns => self.statistics.fill_per_column(context),
            Path::States => self.statistics.fill_per_state(context),
        }
        self.collect(transformer, context, path)
    }

    /// The output of the Transformer alone, without allocating once the buffers have grown.
    pub fn output(&mut self, transformer: &Transformer, context: &Context) -> Result<f64, ForwardError> {
        match self.prepare(transformer, context)? {
            Path::Tokens => Ok(self.collect(transformer, context, Path::Tokens)?.output()),
            _ => {
                self.pass.run(transformer, &self.statistics, |_, _| {})?;
                let group = self.statistics.groups()[context.num_columns() - 1];
                Ok(self.pass.values.get(group as usize).copied().unwrap_or(0.0))
            }
        }
    }

    /// Chooses the path and groups the columns.
    fn prepare(&mut self, transformer: &Transformer, context: &Context) -> Result<Path, ForwardError> {
        transformer.check_dim(context.feature_dim())?;
        let exact = exact_paths(transformer);
        if exact.contains(&Path::States) && context.num_transitions() >= MIN_MERGE {
            self.statistics.fill_per_state(context);
            Ok(Path::States)
        } else if exact.contains(&Path::Columns) {
            self.statistics.fill_per_column(context);
            Ok(Path::Columns)
        } else {
            Ok(Path::Tokens)
        }
    }

    fn collect(
        &mut self,
        transformer: &Transformer,
        context: &Context,
        path: Path,
    ) -> Result<LayerValues, ForwardError> {
        let num_rows = transformer.num_layers() + 1;
        if path == Path::Tokens {
            let tokens = transformer.tokens(context)?;
            let row = |l: usize| &tokens[l];
            let columns = context.num_columns();
            return Ok(LayerValues {
                path,
                by_group: Matrix::from_fn(num_rows, columns, |l, j| row(l).values()[j]),
                group_of: (0..columns as u32).collect(),
                num_queries: context.num_queries(),
                targets: Targets::Stored(Matrix::from_fn(num_rows, columns, |l, j| row(l).targets()[j])),
            });
        }
        let num_groups = self.statistics.num_groups();
        let mut layers = Vec::with_capacity(num_rows * num_groups);
        self.pass.run(transformer, &self.statistics, |_, values| layers.extend_from_slice(values))?;
        Ok(LayerValues {
            path,
            by_group: Matrix::from_fn(num_rows, num_groups, |l, u| layers[l * num_groups + u]),
            group_of: self.statistics.groups().to_vec(),
            num_queries: context.num_queries(),
            targets: Targets::Successor {
                gamma: transformer.config().gamma,
                roles: context.roles().to_vec(),
            },
        })
    }
}

/// The paths that are exact, by what parameters and mixing allow.
fn exact_paths(transformer: &Transformer) -> &'static [Path] {
    match (transformer.needs_tokens(), transformer.config().attention.diagonal_mix() == 0.0) {
        (true, _) => &[Path::Tokens],
        (false, false) => &[Path::Tokens, Path::Columns],
        (false, true) => &[Path::Tokens, Path::Columns, Path::States],
    }
}
