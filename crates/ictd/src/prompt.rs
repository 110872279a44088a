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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::End;

    #[test]
    fn prompt_is_the_matrix_of_the_paper() {
        let context = Context::builder()
            .episode(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], &[0.5, -0.5], End::Truncated)
            .build()
            .unwrap();
        let z = TokenMatrix::prompt(&context);
        let expected =
            [vec![1.0, 3.0, 5.0], vec![2.0, 4.0, 6.0], vec![0.5, -0.5, 0.0], vec![0.0; 3], vec![0.0; 3]];
        assert_eq!(z.matrix(), &Matrix::from_rows(&expected).unwrap());
        assert_eq!(z.row_name(0), "x0");
        assert!(z.to_string().contains("target"));
    }

    /// Shift and reset identities: Π moves left and pads with 0, and n + 1 shifts leave nothing.
    #[test]
    fn shift_is_right_multiplication_by_pi() {
        let n = 4;
        let roles: Vec<Role> = (0..=n).map(|j| if j < n { Role::Source } else { Role::Last }).collect();
        let pi = Matrix::from_fn(n + 1, n + 1, |i, j| f64::from(u8::from(i == j + 1)));
        let row: Vec<f64> = (1..=n + 1).map(|x| x as f64).collect();
        let product = Matrix::from_rows(&[&row]).unwrap().matmul(&pi);
        assert_eq!(shift(&row, &roles), product.row(0));
        let emptied = (0..=n).fold(row, |row, _| shift(&row, &roles));
        assert_eq!(emptied, vec![0.0; n + 1]);
    }

    #[test]
    fn shift_does_not_cross_episodes() {
        use Role::*;
        let roles = [Source, Terminal, Source, Last, Query];
        assert_eq!(shift(&[1.0, 2.0, 3.0, 4.0, 5.0], &roles), [2.0, 0.0, 4.0, 0.0, 0.0]);
    }
}
