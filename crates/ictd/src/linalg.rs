//! Solving linear systems and finding eigenvalues, through `faer`.
//!
//! The only file that names the linear-algebra library: its interface changes between versions and
//! its generic code is slow to compile.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, EvdParams, evd_real, evd_scratch};
use faer::linalg::solvers::{DenseSolveCore, Solve};
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};

use crate::hessenberg;
use crate::matrix::Matrix;
use crate::random::{Purpose, Stream};

/// Why a factorisation has no usable answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum LinalgError {
    /// The condition number must be below 1e12, so that four digits of a solution can be trusted. It is an estimate, infinite
    /// for an exactly singular system.
    #[error(
        "the {size}×{size} system is singular to working precision (condition number about {condition:.0e})"
    )]
    Singular { size: usize, condition: f64 },
    /// Every entry must be finite.
    #[error("the matrix has an entry that is not finite")]
    NotFinite,
    /// An eigenvalue iteration must converge: the library's, or one of those that are tried in its place.
    #[error("no eigenvalue iteration converged on a {size}×{size} matrix")]
    NoConvergence { size: usize },
    /// The solution must be within the range of double precision.
    #[error("the solution of the {size}×{size} system overflows")]
    Overflow { size: usize },
}

/// An eigenvalue: real and imaginary part.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Eigenvalue {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Eigenvalue {
    /// The absolute value |λ|.
    pub fn modulus(self) -> f64 {
        self.re.hypot(self.im)
    }
}

fn to_faer(a: &Matrix) -> Result<Mat<f64>, LinalgError> {
    if a.as_slice().iter().any(|x| !x.is_finite()) {
        return Err(LinalgError::NotFinite);
    }
    Ok(Mat::from_fn(a.num_rows(), a.num_cols(), |i, j| a[(i, j)]))
}

/// The solution x of `a · x = b`, by LU with partial pivoting.
///
/// # Panics
/// When `a` is not square or `b` has another length.
pub fn solve(a: &Matrix, b: &[f64]) -> Result<Vec<f64>, LinalgError> {
    let size = a.num_rows();
    assert!(a.num_cols() == size && b.len() == size, "solve: shapes differ");
    if size == 0 {
        return Ok(Vec::new());
    }
    if b.iter().any(|x| !x.is_finite()) {
        return Err(LinalgError::NotFinite);
    }
    let lu = to_faer(a)?.partial_piv_lu();
    let column = |x: &[f64]| Mat::from_fn(size, 1, |i, _| x[i]);
    let vector = |x: Mat<f64>| -> Vec<f64> { (0..size).map(|i| x[(i, 0)]).collect() };
    let inverse_norm =
        inverse_norm(size, |x| vector(lu.solve(&column(x))), |x| vector(lu.solve_transpose(&column(x))));
    let condition = a.transpose().norm_inf() * inverse_norm;
    // Negated, so that NaN is refused too.
    if !(condition < 1e12) {
        let condition = if condition.is_nan() { f64::INFINITY } else { condition };
        return Err(LinalgError::Singular { size, condition });
    }
    let solution = vector(lu.solve(&column(b)));
    if solution.iter().all(|x| x.is_finite()) { Ok(solution) } else { Err(LinalgError::Overflow { size }) }
}

/// Something like the inverse, by LU with partial pivoting: of no use where `a` is nearly singular, which is for the
/// caller to verify.
///
/// # Panics
/// When `a` is not square.
pub(crate) fn approximate_inverse(a: &Matrix) -> Result<Matrix, LinalgError> {
    let size = a.num_rows();
    let inverse = to_faer(a)?.partial_piv_lu().inverse();
    if (0..size).any(|i| (0..size).any(|j| !inverse[(i, j)].is_finite())) {
        return Err(LinalgError::Singular { size, condition: f64::INFINITY });
    }
    Ok(Matrix::from_fn(size, size, |i, j| inverse[(i, j)]))
}

/// The product of two matrices; faster than [`Matrix::matmul`] where both are dense and large.
///
/// # Panics
/// When the inner dimensions differ.
pub fn product(a: &Matrix, b: &Matrix) -> Result<Matrix, LinalgError> {
    let product = to_faer(a)? * to_faer(b)?;
    Ok(Matrix::from_fn(a.num_rows(), b.num_cols(), |i, j| product[(i, j)]))
}

/// The product of a matrix of `out.len() / num_cols` rows with one of `num_cols` columns, both row after row, into `out`. A
/// panel of few rows at a time, so that callers can share rows among threads and get the same bits for any number.
///
/// # Panics
/// When lengths do not fit.
pub(crate) fn product_into(a: &[f64], b: &[f64], num_cols: usize, out: &mut [f64]) {
    let (inner, num_rows) = (b.len() / num_cols, out.len() / num_cols);
    let a = MatRef::from_row_major_slice(a, num_rows, inner);
    let b = MatRef::from_row_major_slice(b, inner, num_cols);
    let out = MatMut::from_row_major_slice_mut(out, num_rows, num_cols);
    faer::linalg::matmul::matmul(out, Accum::Replace, a, b, 1.0, Par::Seq);
}

/// Adds AᵀB to `out`, both with as many columns as `out`, which is square, and row after row.
///
/// # Panics
/// When lengths do not fit.
pub(crate) fn add_transposed_product(a: &[f64], b: &[f64], out: &mut Matrix) {
    let size = out.num_cols();
    let a = MatRef::from_row_major_slice(a, a.len() / size, size);
    let b = MatRef::from_row_major_slice(b, b.len() / size, size);
    let out = MatMut::from_row_major_slice_mut(out.as_mut_slice(), size, size);
    faer::linalg::matmul::matmul(out, Accum::Add, a.transpose(), b, 1.0, Par::Seq);
}

/// The lower triangular L with L·Lᵀ = `a`; `None` where `a` is not positive definite to working precision.
///
/// # Panics
/// When `a` is not square.
pub(crate) fn cholesky(a: &Matrix) -> Option<Matrix> {
    let llt = to_faer(a).ok()?.llt(Side::Lower).ok()?;
    let lower = llt.L();
    Some(Matrix::from_fn(a.num_rows(), a.num_rows(), |i, j| if j <= i { lower[(i, j)] } else { 0.0 }))
}

/// The inverse of a lower triangular matrix without zeros on its diagonal.
///
/// # Panics
/// When `lower` is not square.
pub(crate) fn lower_inverse(lower: &Matrix) -> Matrix {
    let size = lower.num_rows();
    let mut inverse = Mat::zeros(size, size);
    let lower = MatRef::from_row_major_slice(lower.as_slice(), size, size);
    faer::linalg::triangular_inverse::invert_lower_triangular(inverse.as_mut(), lower, Par::Seq);
    Matrix::from_fn(size, size, |i, j| if j <= i { inverse[(i, j)] } else { 0.0 })
}

/// Rows of the product of a lower triangular matrix with one of `num_cols` columns, row after row, each handed to `each`.
///
/// # Panics
/// When lengths do not fit.
pub(crate) fn lower_product(lower: &Matrix, b: &[f64], num_cols: usize, mut each: impl FnMut(&[f64])) {
    // Zeros within a block of rows are multiplied, those to the right of it are not.
    const ROWS: usize = 64;
    let size = lower.num_rows();
    let a = MatRef::from_row_major_slice(lower.as_slice(), size, size);
    let b = MatRef::from_row_major_slice(b, size, num_cols);
    let mut rows = vec![0.0; ROWS * num_cols];
    for first in (0..size).step_by(ROWS) {
        let end = (first + ROWS).min(size);
        let rows = &mut rows[..(end - first) * num_cols];
        let out = MatMut::from_row_major_slice_mut(rows, end - first, num_cols);
        let (a, b) = (a.submatrix(first, 0, end - first, end), b.subrows(0, end));
        faer::linalg::matmul::matmul(out, Accum::Replace, a, b, 1.0, Par::Seq);
        rows.chunks_exact(num_cols).for_each(&mut each);
    }
}

/// An estimate of ‖A⁻¹‖₁ from solves with A and Aᵀ: Hager's method (1984), a lower bound that is rarely
/// off by more than a factor of three.
fn inverse_norm(
    size: usize,
    solve: impl Fn(&[f64]) -> Vec<f64>,
    solve_transpose: impl Fn(&[f64]) -> Vec<f64>,
) -> f64 {
    let norm = |x: &[f64]| x.iter().map(|v| v.abs()).sum::<f64>();
    let mut x = vec![1.0 / size as f64; size];
    let mut estimate = 0.0;
    // Five rounds are the customary limit; two or three usually suffice.
    for _ in 0..5 {
        let y = solve(&x);
        let found = norm(&y);
        if !(found > estimate) {
            return if found.is_nan() { f64::NAN } else { estimate };
        }
        estimate = found;
        let signs: Vec<f64> = y.iter().map(|v| v.signum()).collect();
        let z = solve_transpose(&signs);
        let steepest = (0..size).max_by(|&i, &j| z[i].abs().total_cmp(&z[j].abs())).unwrap_or(0);
        x.fill(0.0);
        x[steepest] = 1.0;
    }
    estimate
}

/// Eigenvalues that the library's iteration looks for at the end of a large matrix before each round.
///
/// Those that it finds there at once it sorts, and where many are nearly equal, as with sharp kernels, the order changes with every exchange of two
/// pairs: the sorting need never end. Two numbers have no order of pairs, and rounds without a search among more take half the time.
extern "C" fn deflation_window(_: usize, _: usize) -> usize {
    2
}

/// Eigenvalues as the library finds them; `None` when its iteration does not converge.
fn by_library(a: &Matrix) -> Option<Vec<Eigenvalue>> {
    let a = to_faer(a).ok()?;
    let size = a.nrows();
    let mut params = <EvdParams as faer::Auto<f64>>::auto();
    params.schur.recommended_deflation_window = deflation_window;
    let (params, no) = (faer::Spec::new(params), ComputeEigenvectors::No);
    let (mut re, mut im) = (Diag::<f64>::zeros(size), Diag::<f64>::zeros(size));
    let mut buffer = MemBuffer::new(evd_scratch::<f64>(size, no, no, Par::Seq, params));
    let stack = MemStack::new(&mut buffer);
    evd_real(a.as_ref(), re.as_mut(), im.as_mut(), None, None, Par::Seq, stack, params).ok()?;
    let values: Vec<Eigenvalue> = (0..size).map(|k| Eigenvalue { re: re[k], im: im[k] }).collect();
    values.iter().all(|z| z.re.is_finite() && z.im.is_finite()).then_some(values)
}

/// A way to look for eigenvalues; `None` when it does not converge.
type Search = fn(&Matrix) -> Option<Vec<Eigenvalue>>;

/// Ways in the order in which they are tried: the library; the library on the balanced matrix, which has the same eigenvalues
/// to the last bit, and on its transpose; EISPACK's algorithm on both; and at last on a matrix whose entries differ by a few
/// roundings, as the result of every one of these does.
const SEARCHES: [Search; 6] = [
    by_library,
    |a| rescaled(a, by_library),
    |a| rescaled(a, |balanced| by_library(&balanced.transpose())),
    |a| rescaled(a, hessenberg::eigenvalues),
    |a| rescaled(a, |balanced| hessenberg::eigenvalues(&balanced.transpose())),
    |a| rescaled(a, |balanced| hessenberg::eigenvalues(&perturbed(balanced))),
];

/// Eigenvalues that are found on the balanced matrix.
fn rescaled(a: &Matrix, search: Search) -> Option<Vec<Eigenvalue>> {
    let (balanced, scale) = hessenberg::balanced(a);
    let values = search(&balanced)?.into_iter().map(|z| Eigenvalue { re: scale * z.re, im: scale * z.im });
    Some(values.collect())
}

fn perturbed(a: &Matrix) -> Matrix {
    // Any fixed stream will do.
    let mut stream = Stream::new(0, Purpose::Evaluation, 1);
    a.map(|x| x * (1.0 + 4.0 * f64::EPSILON * stream.uniform_in(-1.0, 1.0)))
}

/// All eigenvalues of a square matrix, in no particular order.
///
/// Where the library's iteration does not converge they are looked for in other ways, the first that succeeds.
pub fn eigenvalues(a: &Matrix) -> Result<Vec<Eigenvalue>, LinalgError> {
    if a.as_slice().iter().any(|x| !x.is_finite()) {
        return Err(LinalgError::NotFinite);
    }
    #[cfg(test)]
    let searches = &SEARCHES[testing::failed()..];
    #[cfg(not(test))]
    let searches = &SEARCHES;
    let found = searches.iter().find_map(|search| search(a));
    found.ok_or(LinalgError::NoConvergence { size: a.num_rows() })
}

/// All eigenvalues of a symmetric matrix (its lower triangle is read), from smallest to largest.
pub fn symmetric_eigenvalues(a: &Matrix) -> Result<Vec<f64>, LinalgError> {
    let size = a.num_rows();
    let found = to_faer(a)?.self_adjoint_eigenvalues(Side::Lower).ok();
    if let Some(values) = found.filter(|values| values.iter().all(|x| x.is_finite())) {
        return Ok(values);
    }
    // Imaginary parts are rounding.
    let symmetric = Matrix::from_fn(size, size, |i, j| a[(i.max(j), i.min(j))]);
    let mut values: Vec<f64> = eigenvalues(&symmetric)?.into_iter().map(|z| z.re).collect();
    values.sort_by(f64::total_cmp);
    Ok(values)
}

/// The spectral radius: the largest |λ|, 0 for the empty matrix.
pub fn spectral_radius(a: &Matrix) -> Result<f64, LinalgError> {
    Ok(eigenvalues(a)?.into_iter().map(Eigenvalue::modulus).fold(0.0, f64::max))
}

/// Lets searches for eigenvalues fail that do not fail by themselves on every machine.
#[cfg(test)]
pub(crate) mod testing {
    use std::cell::Cell;

    thread_local! {
        static FAILED: Cell<usize> = const { Cell::new(0) };
    }

    /// Searches that are taken for failed.
    pub(super) fn failed() -> usize {
        FAILED.get()
    }

    /// Does some work on this thread while the first searches fail; all of them where there are no more.
    pub(crate) fn with_failed<T>(searches: usize, work: impl FnOnce() -> T) -> T {
        FAILED.set(searches.min(super::SEARCHES.len()));
        let done = work();
        FAILED.set(0);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::testing::with_failed;
    use super::*;
    use crate::hessenberg::tests::distance;

    /// Matrices on which searches may differ, each with the distance of eigenvalues that roundings excuse, in terms of the
    /// largest.
    fn hard_matrices() -> Vec<(&'static str, Matrix, f64)> {
        let mut stream = Stream::new(11, Purpose::Prompt, 0);
        let random = Matrix::from_fn(8, 8, |_, _| stream.uniform_in(-1.0, 1.0));
        let rows = |sizes: [i32; 8]| Matrix::from_fn(8, 8, |i, j| random[(i, j)] * 10f64.powi(sizes[i]));
        // Eigenvalues 1 … 8 far from orthogonal vectors.
        let skewed = Matrix::from_fn(8, 8, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 20.0,
            std::cmp::Ordering::Equal => 1.0 + i as f64,
            std::cmp::Ordering::Greater => 1e-9,
        });
        // One eigenvalue three times with a single vector: roundings move it by their cube root.
        let defective =
            Matrix::from_fn(3, 3, |i, j| [[3.0, 1.0, 0.0], [-1.0, 1.0, 1.0], [0.0, 0.0, 2.0]][i][j]);
        let cycle = Matrix::from_fn(7, 7, |i, j| f64::from(u8::from((i + 1) % 7 == j)));
        vec![
            ("random", random.clone(), 1e-12),
            ("non-normal", skewed, 1e-6),
            ("defective", defective, 1e-4),
            ("a cycle", cycle, 1e-12),
            ("empty", Matrix::zeros(0, 0), 0.0),
            ("zero", Matrix::zeros(4, 4), 0.0),
            ("large rows", rows([150, 0, 0, 0, 150, 0, 0, 0]), 1e-12),
            ("small rows", rows([0, -150, 0, 0, 0, -150, 0, 0]), 1e-12),
            ("large and small rows", rows([150, -150, 0, 0, 0, -150, 150, 0]), 1e-12),
        ]
    }

    #[test]
    fn every_search_finds_what_the_first_finds() {
        for (name, a, tolerance) in hard_matrices() {
            let expected = eigenvalues(&a).unwrap();
            let largest = expected.iter().map(|z| z.modulus()).fold(0.0, f64::max);
            for failed in 1..SEARCHES.len() {
                let found = with_failed(failed, || eigenvalues(&a)).unwrap();
                let apart = distance(&found, expected.clone());
                assert!(apart <= tolerance * largest, "{name}, search {failed}: {apart:e} of {largest:e}");
            }
        }
    }

    /// Weights of a sharp kernel on points of a sphere, along chains: larger than what the library does in one piece, with many
    /// eigenvalues near 1.
    #[test]
    fn nearly_equal_eigenvalues_of_a_large_matrix_are_found() {
        let (chains, length) = (3, 40);
        let mut stream = Stream::new(2, Purpose::Prompt, 0);
        let points: Vec<Vec<f64>> = (0..chains * length)
            .map(|_| {
                let x = stream.uniform_vec(3, -1.0, 1.0);
                let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
                x.iter().map(|x| x / norm).collect()
            })
            .collect();
        let weight = |i: usize, j: usize| {
            let square = |(x, y): (&f64, &f64)| (x - y) * (x - y);
            (-points[i].iter().zip(&points[j]).map(square).sum::<f64>() / 2e-4).exp()
        };
        let masses: Vec<f64> =
            (0..points.len()).map(|i| (0..points.len()).map(|j| weight(i, j)).sum()).collect();
        let a = Matrix::from_fn(points.len(), points.len(), |i, j| {
            let before = if j % length > 0 { weight(i, j - 1) } else { 0.0 };
            (weight(i, j) - 0.9 * before) / masses[i]
        });
        let radius =
            |values: &[Eigenvalue]| values.iter().map(|z| (1.0 - z.re).hypot(z.im)).fold(0.0, f64::max);
        let (found, plain) = (by_library(&a).unwrap(), hessenberg::eigenvalues(&a).unwrap());
        assert_eq!(found.len(), points.len());
        // The outermost stands alone.
        assert!((radius(&found) - radius(&plain)).abs() < 1e-9, "{} {}", radius(&found), radius(&plain));
    }

    #[test]
    fn searches_that_all_fail_say_so() {
        for (_, a, _) in hard_matrices() {
            let size = a.num_rows();
            let found = with_failed(usize::MAX, || eigenvalues(&a));
            assert_eq!(found, Err(LinalgError::NoConvergence { size }));
        }
    }
}
