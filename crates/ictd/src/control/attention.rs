//! Layers on full token matrices: two softmax heads, exactly as the docs write them.

use super::Backup;
use super::config::{ControlError, SoftmaxControl};
use super::context::PairContext;
use super::prompt::PairPrompt;
use crate::kernel::AttentionError;
use crate::matrix::Matrix;

/// A softmax head: Z ↦ V Z softmax(Zᵀ A Z + M), the softmax taken over every column.
#[derive(Clone, Debug)]
struct Head {
    value_matrix: Matrix,
    score_matrix: Matrix,
    mask: Matrix,
}

impl Head {
    /// softmax(Zᵀ A Z + M); a column that may read from nothing is 0.
    fn weights(&self, z: &Matrix) -> Result<Matrix, ControlError> {
        let mut weights = z.transpose().matmul(&self.score_matrix.matmul(z));
        for j in 0..weights.num_cols() {
            let scores: Vec<f64> = (0..weights.num_rows()).map(|i| weights[(i, j)]).collect();
            if scores.iter().any(|score| !score.is_finite()) {
                return Err(AttentionError::ScoreOverflow { column: j }.into());
            }
            let masked: Vec<f64> = scores.iter().enumerate().map(|(i, s)| s + self.mask[(i, j)]).collect();
            let largest = masked.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let exponential = |s: &f64| if *s > f64::NEG_INFINITY { (s - largest).exp() } else { 0.0 };
            let exponentials: Vec<f64> = masked.iter().map(exponential).collect();
            let total: f64 = exponentials.iter().sum();
            for (i, e) in exponentials.into_iter().enumerate() {
                weights[(i, j)] = if total > 0.0 { e / total } else { 0.0 };
            }
        }
        Ok(weights)
    }

    /// V Z K with the weights K.
    fn output(&self, z: &Matrix, weights: &Matrix) -> Matrix {
        self.value_matrix.matmul(z).matmul(weights)
    }
}

/// The token matrices of all layers.
#[derive(Clone, Debug, PartialEq)]
pub struct PairTokens {
    prompt: PairPrompt,
    layers: Vec<Matrix>,
}

impl PairTokens {
    /// The prompt: which columns and rows there are.
    pub fn prompt(&self) -> &PairPrompt {
        &self.prompt
    }

    /// Depth L.
    pub fn num_layers(&self) -> usize {
        self.layers.len() - 1
    }

    /// Z_l.
    pub fn matrix(&self, layer: usize) -> &Matrix {
        &self.layers[layer]
    }

    /// The value of every pair after so many layers: the current memory of the queries.
    pub fn values(&self, layer: usize) -> Vec<f64> {
        let values = self.layers[layer].row(self.prompt.value_row());
        self.prompt.queries().map(|j| values[j]).collect()
    }
}

impl SoftmaxControl {
    /// The token matrices Z_0, …, Z_L, from values `initial`:
    /// Z_{l+½} = Z_l + α V₁ Z_l softmax(Z_lᵀ A₁ Z_l + M₁), then Z_{l+1} = U Z_{l+½} + V₂ Z_{l+½} softmax(Z_{l+½}ᵀ A₂ Z_{l+½} + M₂).
    ///
    /// The first head is the paper's (eq:zhalf). The second stands in the place of the temporal shift Π (eq:tsm-forward): every source
    /// reads from its own successors, with scores log π(b|s') or β·Q(s', b), and writes γ·B into its target memory, which U has
    /// cleared. Z_0 is the prompt with the target memory that this second half makes of `initial`: 0 where that is 0.
    pub fn tokens(&self, context: &PairContext, initial: &[f64]) -> Result<PairTokens, ControlError> {
        self.check_context(context, initial)?;
        let prompt = PairPrompt::new(self, context, initial)?;
        let (td, backup) = (self.td_head(&prompt), self.backup_head(&prompt));
        let mut layers = vec![self.backed_up(&prompt, &backup, prompt.tokens())?];
        for (l, &step_size) in self.config().step_sizes.iter().enumerate() {
            let z = &layers[l];
            let update = td.output(z, &td.weights(z)?);
            let half = sum(z, &update, step_size);
            if half.as_slice().iter().any(|x| !x.is_finite()) {
                return Err(ControlError::Diverged { layer: l + 1 });
            }
            layers.push(self.backed_up(&prompt, &backup, &half)?);
        }
        Ok(PairTokens { prompt, layers })
    }

    /// V₁: the last row is 1 on reward and target memory and -1 on the current memory; A₁: I/τ on the features (paper, eq:para-now).
    fn td_head(&self, prompt: &PairPrompt) -> Head {
        let [first, _, reward, target, value] = prompt.rows();
        let size = value + 1;
        let mut value_matrix = Matrix::zeros(size, size);
        for (column, entry) in [(reward, 1.0), (target, 1.0), (value, -1.0)] {
            value_matrix[(value, column)] = entry;
        }
        let tau = self.config().temperature;
        let score_matrix =
            Matrix::from_fn(size, size, |i, j| if i == j && i < first { 1.0 / tau } else { 0.0 });
        Head { value_matrix, score_matrix, mask: prompt.source_mask() }
    }

    /// V₂: γ from current to target memory; A₂: 1 at (log prior, one) and β at (current memory, one), so that the score of
    /// column i for column j is log π_i + β·Q_i.
    fn backup_head(&self, prompt: &PairPrompt) -> Head {
        let [log_prior, one, _, target, value] = prompt.rows();
        let size = value + 1;
        let (mut value_matrix, mut score_matrix) = (Matrix::zeros(size, size), Matrix::zeros(size, size));
        value_matrix[(target, value)] = self.config().gamma;
        score_matrix[(log_prior, one)] = 1.0;
        if let Backup::Boltzmann(beta) = self.config().backup {
            score_matrix[(value, one)] = beta;
        }
        Head { value_matrix, score_matrix, mask: prompt.block_mask() }
    }

    /// U Z + V₂ Z softmax(Zᵀ A₂ Z + M₂), U = I - e_t e_tᵀ clearing the target memory.
    fn backed_up(&self, prompt: &PairPrompt, head: &Head, z: &Matrix) -> Result<Matrix, ControlError> {
        let mut cleared = Matrix::identity(z.num_rows());
        cleared[(prompt.target_row(), prompt.target_row())] = 0.0;
        Ok(sum(&cleared.matmul(z), &head.output(z, &head.weights(z)?), 1.0))
    }
}

/// a + factor·b.
fn sum(a: &Matrix, b: &Matrix, factor: f64) -> Matrix {
    Matrix::from_fn(a.num_rows(), a.num_cols(), |i, j| a[(i, j)] + factor * b[(i, j)])
}
