//! What a Transformer is made of: attention parameters θ = (V, A), and everything else that is chosen.

use super::{Block, Transformer};
use crate::kernel::Attention;
use crate::matrix::Matrix;
use crate::task::is_discount;

/// The parameters of one layer: the value matrix V and the score matrix A, both (d+3)×(d+3).
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionParams {
    value_matrix: Matrix,
    score_matrix: Matrix,
}

/// Why two matrices are not attention parameters.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum ParamsError {
    /// V and A (`name` says which) must be square, of equal size and at least 4×4.
    #[error("{name} is {rows}×{cols}, expected (d+3)×(d+3) with d >= 1, the same for V and A")]
    Shape { name: &'static str, rows: usize, cols: usize },
    /// Every entry of V and A must be finite.
    #[error("{name}: entry ({row}, {col}) is {value}, expected a finite number")]
    NotFinite { name: &'static str, row: usize, col: usize, value: f64 },
}

impl AttentionParams {
    /// Checks shapes and entries.
    pub fn new(value_matrix: Matrix, score_matrix: Matrix) -> Result<Self, ParamsError> {
        let size = value_matrix.num_rows();
        for (name, matrix) in [("V", &value_matrix), ("A", &score_matrix)] {
            let (rows, cols) = (matrix.num_rows(), matrix.num_cols());
            if rows != size || cols != size || size < 4 {
                return Err(ParamsError::Shape { name, rows, cols });
            }
            for row in 0..size {
                if let Some(col) = matrix.row(row).iter().position(|x| !x.is_finite()) {
                    return Err(ParamsError::NotFinite { name, row, col, value: matrix[(row, col)] });
                }
            }
        }
        Ok(Self { value_matrix, score_matrix })
    }

    /// theta_* for d features: V's last row is [0_d, 1, 1, -1], A is diag(I_d, 0) (paper, eq:para-now).
    pub fn theta_star(feature_dim: usize) -> Self {
        Self::looped([1.0, 1.0, -1.0], &Matrix::identity(feature_dim))
    }

    /// A point of Θ^Looped (paper, eq:parameterization_set): V's last row is [0_d, u], A is diag(B, 0).
    ///
    /// # Panics
    /// When `score_block` is not square.
    pub fn looped(value_row: [f64; 3], score_block: &Matrix) -> Self {
        let d = score_block.num_rows();
        assert_eq!(score_block.num_cols(), d, "looped: the score block is not square");
        let mut params =
            Self { value_matrix: Matrix::zeros(d + 3, d + 3), score_matrix: Matrix::zeros(d + 3, d + 3) };
        params.value_matrix.row_mut(d + 2)[d..].copy_from_slice(&value_row);
        for (a, row) in score_block.rows().enumerate() {
            params.score_matrix.row_mut(a)[..d].copy_from_slice(row);
        }
        params
    }

    /// The mirror image of theta_* for d features: V and A negated, so that V's last row is [0_d, -1, -1, 1] and
    /// A is diag(-I_d, 0). Its forward pass is [`ReflectedTd`](crate::td::ReflectedTd).
    pub fn mirror(feature_dim: usize) -> Self {
        let theta = Self::theta_star(feature_dim);
        let negated = |matrix: &Matrix| matrix.map(|x| -x);
        Self { value_matrix: negated(&theta.value_matrix), score_matrix: negated(&theta.score_matrix) }
    }

    /// V.
    pub fn value_matrix(&self) -> &Matrix {
        &self.value_matrix
    }

    /// A.
    pub fn score_matrix(&self) -> &Matrix {
        &self.score_matrix
    }

    /// Feature dimension d.
    pub fn feature_dim(&self) -> usize {
        self.value_matrix.num_rows() - 3
    }

    /// V's last row, which writes the current memory.
    pub fn value_row(&self) -> &[f64] {
        self.value_matrix.row(self.feature_dim() + 2)
    }

    /// A's d×d feature block B.
    pub fn score_block(&self) -> Matrix {
        let d = self.feature_dim();
        Matrix::from_fn(d, d, |i, j| self.score_matrix[(i, j)])
    }

    /// Whether V writes to features or rewards (rows 0..=d).
    pub fn overwrites_inputs(&self) -> bool {
        (0..=self.feature_dim()).any(|i| self.value_matrix.row(i).iter().any(|&x| x != 0.0))
    }

    /// Whether a layer with these parameters reads or writes more than features, rewards and values: scores see rewards
    /// or memory, or the attention half overwrites inputs. Dual heads write memory rows only, whatever V says.
    pub fn needs_tokens(&self, block: Block) -> bool {
        !self.scores_features_only() || (block == Block::TemporalShift && self.overwrites_inputs())
    }

    /// Whether scores depend on features alone.
    pub fn scores_features_only(&self) -> bool {
        self.score_is_zero_from(self.feature_dim())
    }

    /// Whether scores depend on the memory rows, which change from layer to layer.
    pub fn scores_memory(&self) -> bool {
        !self.score_is_zero_from(self.feature_dim() + 1)
    }

    /// Whether rows and columns of A from `first` on are 0.
    fn score_is_zero_from(&self, first: usize) -> bool {
        let size = self.score_matrix.num_rows();
        (0..size).all(|i| (0..size).all(|j| i.max(j) < first || self.score_matrix[(i, j)] == 0.0))
    }
}

/// The parameters of all layers.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    /// theta_* in every layer, for whatever feature dimension the context has.
    ThetaStar,
    /// The same (V, A) in every layer.
    Tied(AttentionParams),
    /// One (V, A) per layer.
    PerLayer(Vec<AttentionParams>),
}

/// What a Transformer is made of, unchecked; [`check`](Self::check) makes it run.
///
/// | field | default | purpose | range |
/// |---|---|---|---|
/// | `block` | temporal shift | how memory rows are written | |
/// | `attention` | — | kernel and diagonal mixing | |
/// | `parameters` | theta_* | (V, A) of the layers | finite |
/// | `num_layers` | — | depth L | ≥ 0 |
/// | `gamma` | — | discount γ | [0, 1) |
/// | `step_sizes` | 1 | α, one for all layers or one each | finite |
#[derive(Clone, Debug)]
pub struct TransformerConfig {
    /// How memory rows are written.
    pub block: Block,
    /// Kernel and diagonal mixing.
    pub attention: Attention,
    /// (V, A) of the layers.
    pub parameters: Parameters,
    /// Depth L.
    pub num_layers: usize,
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes α: one for all layers, or one per layer.
    pub step_sizes: Vec<f64>,
}

/// Why a configuration is not a Transformer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum TransformerError {
    /// γ must be in [0, 1).
    #[error("gamma is {0:?}, expected 0 <= gamma < 1")]
    Gamma(f64),
    /// Step sizes must be finite.
    #[error("step size {layer} is {value}, expected a finite number")]
    StepSize { layer: usize, value: f64 },
    /// There must be one step size, or one per layer.
    #[error("step sizes: {found} given, expected 1 or one for each of the {layers} layers")]
    StepSizes { found: usize, layers: usize },
    /// Parameters per layer must be there for every layer: a list of one is no word for all layers, others may be lost.
    #[error("params: {found} layers given, expected one for each of the {layers} layers")]
    Layers { found: usize, layers: usize },
}

impl TransformerConfig {
    /// A Transformer at theta_* with the temporal shift module and step size 1.
    pub fn theta_star(attention: Attention, num_layers: usize, gamma: f64) -> Self {
        Self {
            block: Block::TemporalShift,
            attention,
            parameters: Parameters::ThetaStar,
            num_layers,
            gamma,
            step_sizes: vec![1.0],
        }
    }

    /// Checks every field.
    pub fn check(self) -> Result<Transformer, TransformerError> {
        let layers = self.num_layers;
        if !is_discount(self.gamma) {
            return Err(TransformerError::Gamma(self.gamma));
        }
        check_step_sizes(&self.step_sizes, layers)?;
        match &self.parameters {
            Parameters::PerLayer(params) if params.len() != layers => {
                Err(TransformerError::Layers { found: params.len(), layers })
            }
            _ => Ok(Transformer { config: self }),
        }
    }
}

/// Refuses step sizes that are not finite, and a number of them that is neither one nor that of the layers.
pub(crate) fn check_step_sizes(step_sizes: &[f64], layers: usize) -> Result<(), TransformerError> {
    if let Some(layer) = step_sizes.iter().position(|a| !a.is_finite()) {
        return Err(TransformerError::StepSize { layer, value: step_sizes[layer] });
    }
    let found = step_sizes.len();
    if found != 1 && found != layers { Err(TransformerError::StepSizes { found, layers }) } else { Ok(()) }
}
