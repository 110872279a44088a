//! The fast road: value estimates of all layers without token matrices.

use super::{ForwardError, Transformer};
use crate::context::{Context, ContextStatistics, Role};
use crate::kernel::GroupWeights;
use crate::matrix::Matrix;

/// Shorter contexts are not searched for repeated states: the search costs more than it saves.
const MIN_MERGE: usize = 16;

/// Which of the exact roads a forward pass takes.
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
    /// The road taken.
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

    /// The last column's value after the last layer: the output of the Transformer (paper, Section 2.1).
    pub fn output(&self) -> f64 {
        self.value(self.num_layers(), self.num_columns() - 1)
    }
}

/// Buffers for forward passes; reuse one for many contexts to avoid allocating.
#[derive(Clone, Debug, Default)]
pub struct Evaluator {
    statistics: ContextStatistics,
    weights: GroupWeights,
    messages: Vec<f64>,
    values: Vec<f64>,
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
        transformer.check_dim(context)?;
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
                self.run(transformer, context.feature_dim(), |_| {})?;
                let group = self.statistics.groups()[context.num_columns() - 1];
                Ok(self.values.get(group as usize).copied().unwrap_or(0.0))
            }
        }
    }

    /// Chooses the path and groups the columns.
    fn prepare(&mut self, transformer: &Transformer, context: &Context) -> Result<Path, ForwardError> {
        transformer.check_dim(context)?;
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
                targets: Targets::Stored(Matrix::from_fn(num_rows, columns, |l, j| row(l).targets()[j])),
            });
        }
        let num_groups = self.statistics.num_groups();
        let mut layers = Vec::with_capacity(num_rows * num_groups);
        self.run(transformer, context.feature_dim(), |values| layers.extend_from_slice(values))?;
        Ok(LayerValues {
            path,
            by_group: Matrix::from_fn(num_rows, num_groups, |l, u| layers[l * num_groups + u]),
            group_of: self.statistics.groups().to_vec(),
            targets: Targets::Successor {
                gamma: transformer.config().gamma,
                roles: context.roles().to_vec(),
            },
        })
    }

    /// The recursion on groups. With V's last row (a, p_r, p_t, p_v), source group s sends
    /// g(s) = c(s)·⟨a, x_s⟩ + p_r·ρ(s) + p_t·γ Σ N(s, s')·v(s') + p_v·c(s)·v(s), where c, ρ and N are
    /// visits, reward sums and transition counts, and v(u) += α Σ_s W(s, u)·g(s).
    fn run(
        &mut self,
        transformer: &Transformer,
        feature_dim: usize,
        mut after_layer: impl FnMut(&[f64]),
    ) -> Result<(), ForwardError> {
        let Self { statistics, weights, messages, values } = self;
        let config = transformer.config();
        let sources = statistics.num_source_groups();
        values.clear();
        values.resize(statistics.num_groups(), 0.0);
        messages.clear();
        messages.resize(statistics.stride(), 0.0);
        after_layer(values);
        if config.num_layers == 0 {
            return Ok(());
        }
        let mut params = transformer.params(0, feature_dim);
        let mut block = params.score_block();
        for layer in 0..config.num_layers {
            if layer == 0 || !transformer.is_tied() {
                params = transformer.params(layer, feature_dim);
                block = params.score_block();
                weights.fill(&config.attention, &block, statistics)?;
            }
            let (on_features, on_memory) = params.value_row().split_at(feature_dim);
            let [on_reward, on_target, on_value] = [on_memory[0], on_memory[1], on_memory[2]];
            for s in 0..sources {
                let visits = statistics.visits()[s];
                let bootstrap: f64 = statistics.successors(s).map(|(next, count)| count * values[next]).sum();
                let from_features: f64 =
                    on_features.iter().zip(statistics.features(s)).map(|(a, x)| a * x).sum();
                messages[s] = on_reward * statistics.reward_sums()[s]
                    + on_target * (config.gamma * bootstrap)
                    + visits * (on_value * values[s] + from_features);
            }
            let alpha = transformer.step_size(layer);
            weights.add_product(&config.attention, &block, statistics, alpha, messages, values)?;
            if values.iter().any(|v| !v.is_finite()) {
                return Err(ForwardError::Diverged { layer: layer + 1 });
            }
            after_layer(values);
        }
        Ok(())
    }
}

/// The paths that are exact, by what parameters and mixing allow.
fn exact_paths(transformer: &Transformer) -> &'static [Path] {
    let config = transformer.config();
    let plain = match &config.parameters {
        super::Parameters::ThetaStar => false,
        super::Parameters::Tied(params) => needs_tokens(config.block, params),
        super::Parameters::PerLayer(params) => params.iter().any(|p| needs_tokens(config.block, p)),
    };
    match (plain, config.attention.diagonal_mix() == 0.0) {
        (true, _) => &[Path::Tokens],
        (false, false) => &[Path::Tokens, Path::Columns],
        (false, true) => &[Path::Tokens, Path::Columns, Path::States],
    }
}

fn needs_tokens(block: super::Block, params: &super::AttentionParams) -> bool {
    !params.scores_features_only() || (block == super::Block::TemporalShift && params.overwrites_inputs())
}
