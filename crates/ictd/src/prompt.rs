//! Prompts and token matrices: Z_0, …, Z_L with one column per token.

use std::fmt;

use crate::context::{Context, Role};
use crate::matrix::Matrix;

/// A token matrix Z_l of shape (d + 3) × columns (paper, eq:z_general).
///
/// Rows 0..d hold the features, row d the rewards, row d + 1 the target memory γ·v(successor), row
/// d + 2 the current memory v.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenMatrix {
    matrix: Matrix,
}

impl TokenMatrix {
    /// The prompt Z_0 (paper, eq:z_initial): features and rewards of the context, both memory rows 0.
    pub fn prompt(context: &Context) -> Self {
        let d = context.feature_dim();
        let matrix = Matrix::from_fn(d + 3, context.num_columns(), |i, j| match i {
            i if i < d => context.features_of(j)[i],
            i if i == d => context.rewards()[j],
            _ => 0.0,
        });
        Self { matrix }
    }

    pub(crate) fn from_matrix(matrix: Matrix) -> Self {
        Self { matrix }
    }

    /// The whole matrix.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    pub(crate) fn matrix_mut(&mut self) -> &mut Matrix {
        &mut self.matrix
    }

    /// Feature dimension d.
    pub fn feature_dim(&self) -> usize {
        self.matrix.num_rows() - 3
    }

    /// Number of tokens.
    pub fn num_columns(&self) -> usize {
        self.matrix.num_cols()
    }

    /// Row d: the rewards.
    pub fn rewards(&self) -> &[f64] {
        self.matrix.row(self.feature_dim())
    }

    /// Row d + 1: the target memory.
    pub fn targets(&self) -> &[f64] {
        self.matrix.row(self.feature_dim() + 1)
    }

    /// Row d + 2: the current memory, the value estimate of every column.
    pub fn values(&self) -> &[f64] {
        self.matrix.row(self.feature_dim() + 2)
    }

    /// The name of row `i` in listings: `x0`, `x1`, …, `reward`, `target`, `value`.
    pub fn row_name(&self, i: usize) -> String {
        match i.checked_sub(self.feature_dim()) {
            None => format!("x{i}"),
            Some(0) => "reward".into(),
            Some(1) => "target".into(),
            Some(_) => "value".into(),
        }
    }
}

/// Seven decimals for reading; export the matrix for exact numbers.
impl fmt::Display for TokenMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for i in 0..self.matrix.num_rows() {
            write!(f, "{:>7}", self.row_name(i))?;
            for value in self.matrix.row(i) {
                write!(f, " {value:>12.7}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The row moved one column to the left within episodes: entry j is `row[j + 1]` for sources, 0 for
/// every other column. For a single trajectory this is right-multiplication by Π (paper, eq:pi).
pub fn shift(row: &[f64], roles: &[Role]) -> Vec<f64> {
    let moved = |(j, role): (usize, &Role)| if *role == Role::Source { row[j + 1] } else { 0.0 };
    roles.iter().enumerate().map(moved).collect()
}
