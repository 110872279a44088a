//! Forward passes by the fastest path.

use super::{Approximation, ForwardError, GroupPass, LayerValues, Path, Targets, Transformer};
use crate::context::{Context, ContextStatistics};
use crate::kernel::{Effort, Precision, Route};
use crate::matrix::Matrix;
use crate::watch::Watch;

/// Shorter contexts are not searched for repeated states: the search costs more than it saves.
const MIN_MERGE: usize = 16;

/// Buffers for forward passes; reuse one for many contexts to avoid allocating.
#[derive(Clone, Debug, Default)]
pub struct Evaluator {
    effort: Effort,
    statistics: ContextStatistics,
    pass: GroupPass,
}

impl Evaluator {
    /// One that spends so much on weights between distinct states.
    pub fn with(effort: Effort) -> Self {
        Self { effort, ..Self::default() }
    }

    /// How the last pass got its weights, and why in this way; not for passes on full token matrices.
    pub fn route(&self) -> (Route, &str) {
        (self.pass.weights.route(), self.pass.weights.reason())
    }

    /// The arithmetic of its exponentials.
    pub fn precision(&self) -> Precision {
        self.pass.weights.precision()
    }

    /// What is known about the values of the last pass where they are not exact.
    pub fn approximation(&self) -> Option<Approximation> {
        self.pass.approximation
    }

    /// The value estimates of all layers by the fastest exact path.
    pub fn evaluate(
        &mut self,
        transformer: &Transformer,
        context: &Context,
    ) -> Result<LayerValues, ForwardError> {
        self.evaluate_watched(transformer, context, &())
    }

    /// As [`evaluate`](Self::evaluate), for work that takes long.
    pub fn evaluate_watched(
        &mut self,
        transformer: &Transformer,
        context: &Context,
        watch: &dyn Watch,
    ) -> Result<LayerValues, ForwardError> {
        let path = self.prepare(transformer, context)?;
        self.collect(transformer, context, path, watch)
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
        self.collect(transformer, context, path, &())
    }

    /// The output of the Transformer alone, without allocating once the buffers have grown.
    pub fn output(&mut self, transformer: &Transformer, context: &Context) -> Result<f64, ForwardError> {
        match self.prepare(transformer, context)? {
            Path::Tokens => Ok(self.collect(transformer, context, Path::Tokens, &())?.output()),
            _ => {
                self.pass.run(transformer, &self.statistics, &self.effort, &(), |_, _| {})?;
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
        watch: &dyn Watch,
    ) -> Result<LayerValues, ForwardError> {
        let num_rows = transformer.num_layers() + 1;
        if path == Path::Tokens {
            let tokens = transformer.tokens(context)?;
            let columns = context.num_columns();
            return Ok(LayerValues {
                path,
                by_group: Matrix::from_fn(num_rows, columns, |l, j| tokens[l].values()[j]),
                group_of: (0..columns as u32).collect(),
                num_queries: context.num_queries(),
                targets: Targets::Stored(Matrix::from_fn(num_rows, columns, |l, j| tokens[l].targets()[j])),
            });
        }
        let num_groups = self.statistics.num_groups();
        let mut layers = Vec::with_capacity(num_rows * num_groups);
        let keep = |_: &[f64], values: &[f64]| layers.extend_from_slice(values);
        self.pass.run(transformer, &self.statistics, &self.effort, watch, keep)?;
        Ok(LayerValues {
            path,
            by_group: Matrix::from_vec(num_rows, num_groups, layers),
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
