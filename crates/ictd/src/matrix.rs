//! Dense row-major matrices of `f64`.

use std::fmt;
use std::ops::{Index, IndexMut, Sub};

/// A dense row-major matrix.
///
/// The crate's own type rather than a linear-algebra library's, so that no library's types or
/// version appear in public signatures; factorisations live in [`crate::linalg`].
#[derive(Clone, PartialEq)]
pub struct Matrix {
    num_rows: usize,
    num_cols: usize,
    data: Vec<f64>,
}

/// Why rows could not be made into a [`Matrix`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum MatrixError {
    /// Every row must have as many entries as the first; `row` is the first that differs.
    #[error("row {row} has {found} entries, expected {expected}")]
    Ragged { row: usize, expected: usize, found: usize },
    /// Every entry must be finite.
    #[error("entry ({row}, {col}) is {value}, expected a finite number")]
    NotFinite { row: usize, col: usize, value: f64 },
}

impl Matrix {
    /// The `num_rows` × `num_cols` matrix of zeros.
    pub fn zeros(num_rows: usize, num_cols: usize) -> Self {
        Self { num_rows, num_cols, data: vec![0.0; num_rows * num_cols] }
    }

    /// The identity of size `n`.
    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| f64::from(u8::from(i == j)))
    }

    /// The matrix whose entry (i, j) is `entry(i, j)`.
    pub fn from_fn(num_rows: usize, num_cols: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(num_rows * num_cols);
        for i in 0..num_rows {
            data.extend((0..num_cols).map(|j| entry(i, j)));
        }
        Self { num_rows, num_cols, data }
    }

    /// The matrix with the given entries, row after row.
    ///
    /// # Panics
    /// When there are not `num_rows · num_cols` of them.
    pub fn from_vec(num_rows: usize, num_cols: usize, data: Vec<f64>) -> Self {
        assert_eq!(data.len(), num_rows * num_cols, "from_vec: {num_rows}×{num_cols} entries expected");
        Self { num_rows, num_cols, data }
    }

    /// The square matrix with the given diagonal and zeros elsewhere.
    pub fn diag(diagonal: &[f64]) -> Self {
        Self::from_fn(diagonal.len(), diagonal.len(), |i, j| if i == j { diagonal[i] } else { 0.0 })
    }

    /// The matrix of `f(entry)`.
    #[must_use]
    pub fn map(&self, f: impl FnMut(f64) -> f64) -> Self {
        let data = self.data.iter().copied().map(f).collect();
        Self { num_rows: self.num_rows, num_cols: self.num_cols, data }
    }

    /// The matrix with the given rows; refuses ragged rows and entries that are not finite.
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Result<Self, MatrixError> {
        let num_cols = rows.first().map_or(0, |r| r.as_ref().len());
        let mut data = Vec::with_capacity(rows.len() * num_cols);
        for (row, entries) in rows.iter().map(AsRef::as_ref).enumerate() {
            if entries.len() != num_cols {
                return Err(MatrixError::Ragged { row, expected: num_cols, found: entries.len() });
            }
            if let Some(col) = entries.iter().position(|x| !x.is_finite()) {
                return Err(MatrixError::NotFinite { row, col, value: entries[col] });
            }
            data.extend_from_slice(entries);
        }
        Ok(Self { num_rows: rows.len(), num_cols, data })
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.num_cols..(i + 1) * self.num_cols]
    }

    /// Row `i`, to be written.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.num_cols..(i + 1) * self.num_cols]
    }

    /// All rows, first to last.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        (0..self.num_rows).map(|i| self.row(i))
    }

    /// All entries, row after row.
    pub fn as_slice(&self) -> &[f64] {
        &self.data
    }

    /// All entries, row after row, to be written.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// The matrix product `self · other`.
    ///
    /// # Panics
    /// When the inner dimensions differ.
    pub fn matmul(&self, other: &Matrix) -> Matrix {
        assert_eq!(self.num_cols, other.num_rows, "matmul: inner dimensions differ");
        let mut product = Matrix::zeros(self.num_rows, other.num_cols);
        for i in 0..self.num_rows {
            for (k, &a) in self.row(i).iter().enumerate() {
                // Most factors here are sparse (theta_* has d + 3 non-zero entries).
                if a != 0.0 {
                    for (out, &b) in product.row_mut(i).iter_mut().zip(other.row(k)) {
                        *out += a * b;
                    }
                }
            }
        }
        product
    }

    /// The product `self · x` with a column vector.
    ///
    /// # Panics
    /// When `x` is not as long as a row.
    pub fn mul_vec(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(self.num_cols, x.len(), "mul_vec: lengths differ");
        self.rows().map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
    }

    /// The product |self| · x of the absolute values with a column vector of sizes x ≥ 0: what `mul_vec` gives at most
    /// for entries of these sizes.
    ///
    /// # Panics
    /// When `x` is not as long as a row.
    pub(crate) fn mul_vec_of_sizes(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(self.num_cols, x.len(), "mul_vec_of_sizes: lengths differ");
        self.rows().map(|row| row.iter().zip(x).map(|(a, b)| a.abs() * b).sum()).collect()
    }

    /// The transpose.
    pub fn transpose(&self) -> Matrix {
        Matrix::from_fn(self.num_cols, self.num_rows, |i, j| self[(j, i)])
    }

    /// The largest absolute row sum, the operator norm ‖·‖∞.
    pub fn norm_inf(&self) -> f64 {
        self.rows().map(|row| row.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max)
    }
}

/// # Panics
/// When shapes differ.
impl Sub for &Matrix {
    type Output = Matrix;
    fn sub(self, other: &Matrix) -> Matrix {
        let shape = |m: &Matrix| (m.num_rows, m.num_cols);
        assert_eq!(shape(self), shape(other), "subtraction: shapes differ");
        let data = self.data.iter().zip(&other.data).map(|(a, b)| a - b).collect();
        Matrix { num_rows: self.num_rows, num_cols: self.num_cols, data }
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.row(i)[j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.row_mut(i)[j]
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rows()).finish()
    }
}
