//! Parameters with their layout: a flat list during training, matrices for everybody else.

use super::config::{ConfigError, PretrainConfig};
use super::emergence::Emergence;
use super::lanes::Element;
use super::shape::Shape;
use super::state::TrainState;
use crate::kernel::{Attention, AttentionError, KernelError};
use crate::matrix::Matrix;
use crate::transformer::{
    AttentionParams, Parameters, ParamsError, Transformer, TransformerConfig, TransformerError,
};

/// Parameters of a shape, or anything in their order such as a gradient: per pair V row by row, then A row by row.
///
/// Layers that share a pair show the same numbers.
#[derive(Clone, Copy, Debug)]
pub struct ParamsView<'a, E> {
    shape: Shape,
    data: &'a [E],
}

/// Why parameters are not a Transformer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The kernel cannot be made.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The mixing is not valid.
    #[error(transparent)]
    Attention(#[from] AttentionError),
    /// The parameters are not finite.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The parts do not fit together.
    #[error(transparent)]
    Transformer(#[from] TransformerError),
}

impl<'a, E: Element> ParamsView<'a, E> {
    /// A view of `data`.
    ///
    /// # Panics
    /// When `data` has not [`Shape::num_params`] numbers.
    #[inline(always)]
    pub fn new(shape: &Shape, data: &'a [E]) -> Self {
        assert_eq!(data.len(), shape.num_params(), "parameters and shape differ");
        Self { shape: *shape, data }
    }

    /// The same numbers under a shape that is known to the compiler.
    #[inline(always)]
    pub(super) fn with_shape(self, shape: &Shape) -> Self {
        Self::new(shape, self.data)
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All numbers, in their order.
    pub(super) fn data(&self) -> &'a [E] {
        self.data
    }

    /// V of a layer, row by row.
    #[inline(always)]
    pub fn value_matrix(&self, layer: usize) -> &'a [E] {
        &self.data[self.shape.value_index(layer, 0, 0)..self.shape.score_index(layer, 0, 0)]
    }

    /// A of a layer, row by row.
    #[inline(always)]
    pub fn score_matrix(&self, layer: usize) -> &'a [E] {
        let rows = self.shape.num_rows();
        &self.data[self.shape.score_index(layer, 0, 0)..self.shape.score_index(layer, rows, 0)]
    }

    /// V's last row, which writes the current memory: d + 3 numbers.
    #[inline(always)]
    pub fn value_row(&self, layer: usize) -> &'a [E] {
        &self.value_matrix(layer)[self.shape.value_index(0, self.shape.num_rows() - 1, 0)..]
    }

    /// Entry (i, j) of a layer's A.
    pub fn score(&self, layer: usize, i: usize, j: usize) -> E {
        self.data[self.shape.score_index(layer, i, j)]
    }

    /// The diagonal of A's feature block: d numbers.
    pub fn score_diagonal(&self, layer: usize) -> impl ExactSizeIterator<Item = f64> + Clone + use<'a, E> {
        let view = *self;
        (0..self.shape.feature_dim).map(move |i| view.score(layer, i, i).get())
    }

    /// A's d×d feature block B.
    pub fn score_block(&self, layer: usize) -> Matrix {
        let d = self.shape.feature_dim;
        Matrix::from_fn(d, d, |i, j| self.score(layer, i, j).get())
    }

    /// V and A of a layer.
    pub fn matrices(&self, layer: usize) -> (Matrix, Matrix) {
        let rows = self.shape.num_rows();
        let matrix = |entries: &[E]| Matrix::from_fn(rows, rows, |i, j| entries[i * rows + j].get());
        (matrix(self.value_matrix(layer)), matrix(self.score_matrix(layer)))
    }

    /// The parameters of all layers as a Transformer takes them.
    pub fn parameters(&self) -> Result<Parameters, ParamsError> {
        let of_layer = |layer| {
            let (value_matrix, score_matrix) = self.matrices(layer);
            AttentionParams::new(value_matrix, score_matrix)
        };
        if self.shape.tied {
            return Ok(Parameters::Tied(of_layer(0)?));
        }
        Ok(Parameters::PerLayer((0..self.shape.num_layers).map(of_layer).collect::<Result<_, _>>()?))
    }

    /// The emergence scores of the first layer.
    pub fn emergence(&self) -> Emergence {
        let (d, row) = (self.shape.feature_dim, self.value_row(0));
        let coefficients = [row[d], row[d + 1], row[d + 2]].map(E::get);
        Emergence::of(coefficients, d, |i, j| self.score(0, i, j).get())
    }
}

impl PretrainConfig {
    /// The Transformer with these parameters, at the mixing of a step.
    ///
    /// Contexts ask about the state after the last transition or a query of their own, and mixing is
    /// [`QueryMix::Mixed`](super::QueryMix::Mixed): other readings of the prompt exist during training only.
    pub fn transformer<E: Element>(&self, params: &[E], step: u64) -> Result<Transformer, ModelError> {
        self.check()?;
        let attention = Attention::new(self.kernel.at(self.temperature)?, self.rho.at(step))?;
        let config = TransformerConfig {
            block: self.block,
            parameters: ParamsView::new(&self.shape(), params).parameters()?,
            ..TransformerConfig::theta_star(attention, self.num_layers, self.task.gamma)
        };
        Ok(config.check()?)
    }
}

impl<E: Element> TrainState<E> {
    /// The Transformer as trained so far; see [`PretrainConfig::transformer`].
    pub fn transformer(&self, config: &PretrainConfig) -> Result<Transformer, ModelError> {
        config.transformer(&self.params, self.steps())
    }
}

/// The emergence scores of the first layer.
pub fn emergence_of<E: Element>(shape: &Shape, params: &[E]) -> Emergence {
    ParamsView::new(shape, params).emergence()
}
