//! Where layers lead: the equations of a fixed point, within the weights that layers reach.

use super::config::ConstructionError;
use super::form::Factors;
use super::reach::Reach;
use crate::linalg::{LinalgError, solve, spectral_radius};
use crate::matrix::Matrix;
use crate::vector::{axpy, dot};
use crate::watch::{Stopped, Watch};

/// Of a matrix whose largest entry is 1, what is smaller is 0 but for rounding ...
const ZERO: f64 = 1e-14;
/// ... and what is larger is not. Where there is something between the two nobody can tell.
const NOT_ZERO: f64 = 1e-10;
/// A direction that is thinner than this adds entries to the equations, which have its square, that are near [`ZERO`].
const THIN: f64 = 1e-4;
/// Of one that is thinner than this rounding leaves few digits of a limit.
const THINNEST: f64 = 1e-6;
/// Of rewards whose equations contradict each other by a smaller share it is rounding that does.
const CONTRADICTION: f64 = 1e-12;
/// A query with a larger share of its features outside what layers reach asks for something that no transition speaks of.
pub const OUTSIDE: f64 = 1e-9;

/// A layer changes weights by (α/n)·(b − A w), with A = C Σ_i e_i (φ_i − γφ'_i)ᵀ and b = C Σ_i e_i r_i: A and b in coordinates of the span of the
/// C e_i, which holds all weights that layers come to from 0. Features are divided by a power of 2, so that no product overflows.
#[derive(Clone, Debug)]
pub(super) struct FixedPoint {
    matrix: Matrix,
    right: Vec<f64>,
    /// What rounding of `right` is relative to: the sum of the sizes that it is made of.
    right_size: f64,
    query: Vec<f64>,
    /// What features were divided by.
    unit: f64,
    /// The share of the query's features that lies outside the span.
    pub outside: f64,
    reach: Reach,
}

/// Directions that a singular A leaves to itself: those that it leads to, and those that it sees.
struct Split {
    /// Orthonormal rows whose span is that of A's columns.
    range: Matrix,
    /// Orthonormal rows whose span is that of A's rows.
    seen: Matrix,
}

impl FixedPoint {
    /// `reward` is the size of the rewards as they were given.
    pub fn new(
        factors: &Factors,
        preconditioner: &Matrix,
        query: &[f64],
        reward: f64,
        watch: &dyn Watch,
    ) -> Result<Self, Stopped> {
        let d = query.len();
        let size = |matrix: &Matrix| matrix.as_slice().iter().fold(0.0_f64, |top, x| top.max(x.abs()));
        let top = size(&factors.eligibility).max(size(&factors.difference));
        // Half of the exponent range is enough for squares, and powers of 2 round nothing.
        let unit = if top > 0.0 && top.is_finite() { top.log2().floor().exp2() } else { 1.0 };
        let scaled = Factors {
            eligibility: factors.eligibility.map(|x| x / unit),
            difference: factors.difference.map(|x| x / unit),
            rewards: factors.rewards.clone(),
        };
        let reach = Reach::of(scaled.eligibility.rows().map(|e| preconditioner.mul_vec(e)), d, watch)?;
        let (matrix, right) = scaled.equations(preconditioner, watch)?;
        let query: Vec<f64> = query.iter().map(|x| x / unit).collect();
        let by_entry = preconditioner.matmul(&scaled.eligibility.transpose());
        let right_size = reward * by_entry.as_slice().iter().map(|x| x.abs()).sum::<f64>();
        Ok(Self {
            matrix: reach.within(&matrix),
            right: reach.coordinates(&right),
            outside: reach.outside(&query),
            query: reach.coordinates(&query),
            unit,
            right_size,
            reach,
        })
    }

    /// Refuses to take a direction for one that layers do not reach where the query asks for it and rounding may have hidden it.
    fn check_reach(&self) -> Result<(), ConstructionError> {
        let share = self.reach.left_out;
        if share > 0.0 && self.outside > OUTSIDE {
            Err(ConstructionError::Unresolved { share })
        } else {
            Ok(())
        }
    }

    /// What errors of the weights are multiplied by in the long run, at a step size divided by n.
    pub fn spectral_radius(&self, share: f64) -> Result<f64, ConstructionError> {
        self.check_reach()?;
        Ok(spectral_radius(&self.error_map(&self.matrix, share))?)
    }

    /// The same without directions that no layer changes where the equations can be satisfied.
    pub fn rate(&self, share: f64) -> Result<f64, ConstructionError> {
        self.check_reach()?;
        match self.split() {
            Some(Split { range, .. }) => {
                Ok(spectral_radius(&self.error_map(&inside(&range, &self.matrix), share))?)
            }
            None => self.spectral_radius(share),
        }
    }

    fn error_map(&self, matrix: &Matrix, share: f64) -> Matrix {
        let mut map = Matrix::identity(matrix.num_rows());
        // In this order, because the square of the unit may overflow.
        let factor = -(share * self.unit) * self.unit;
        for i in 0..map.num_rows() {
            axpy(factor, matrix.row(i), map.row_mut(i));
        }
        map
    }

    /// The value of the query where layers rest, from weights of 0. `count` is n.
    pub fn value(&self, count: usize) -> Result<f64, ConstructionError> {
        self.check_reach()?;
        if self.reach.thinnest < THINNEST {
            return Err(ConstructionError::Unresolved { share: self.reach.thinnest });
        }
        let error = match solve(&self.matrix, &self.right) {
            Ok(weights) => return Ok(dot(&self.query, &weights)),
            Err(error) => error,
        };
        match (&error, self.split()) {
            (LinalgError::Singular { .. }, Some(split)) => self.value_of(&split, count),
            _ => Err(error.into()),
        }
    }

    /// Where A leaves directions alone: w stays in A's range as long as b is in it, and what b has besides, in A's null space, is added to w by
    /// every layer.
    fn value_of(&self, Split { range, seen }: &Split, count: usize) -> Result<f64, ConstructionError> {
        let projected = solve(&seen.matmul(&range.transpose()), &seen.mul_vec(&self.right))?;
        let kept = range.transpose().mul_vec(&projected);
        let added: Vec<f64> = self.right.iter().zip(&kept).map(|(b, kept)| b - kept).collect();
        let length = dot(&self.query, &self.query).sqrt();
        let scale = CONTRADICTION * length * self.right_size;
        // Negated, so that what is no number is no limit.
        if !(dot(&self.query, &added).abs() <= scale) {
            let per_layer = self.unit * self.unit * dot(&self.query, &added) / count as f64;
            return Err(ConstructionError::Drift { per_layer });
        }
        let weights = solve(&inside(range, &self.matrix), &projected)?;
        Ok(dot(&range.mul_vec(&self.query), &weights))
    }

    /// `None` where A is regular, or it cannot be told whether it is.
    fn split(&self) -> Option<Split> {
        // Negated, so that what is no number cannot be told. Entries of a small direction have its square, as those of a thin one.
        if !(self.reach.thinnest >= THIN && self.reach.smallest >= NOT_ZERO.sqrt()) {
            return None;
        }
        let range = independent(&self.matrix.transpose())?;
        let seen = independent(&self.matrix)?;
        (range.num_rows() == seen.num_rows() && range.num_rows() < self.matrix.num_rows())
            .then_some(Split { range, seen })
    }
}

/// A map on the span of orthonormal rows, which it leads into itself.
fn inside(basis: &Matrix, map: &Matrix) -> Matrix {
    basis.matmul(map).matmul(&basis.transpose())
}

/// Orthonormal rows with the span of a matrix's rows; `None` where it is not clear how many there are.
fn independent(matrix: &Matrix) -> Option<Matrix> {
    let (mut rows, columns) = (matrix.rows().map(<[f64]>::to_vec).collect::<Vec<_>>(), matrix.num_cols());
    let longest = |rows: &[Vec<f64>]| {
        let lengths = rows.iter().map(|row| dot(row, row).sqrt()).enumerate();
        lengths.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    };
    let (_, size) = longest(&rows);
    let mut basis: Vec<Vec<f64>> = Vec::new();
    while basis.len() < rows.len() {
        let (k, length) = longest(&rows);
        if length <= ZERO * columns as f64 * size {
            break;
        }
        // Negated, so that what is no number is not clear.
        if !(length > NOT_ZERO * size) {
            return None;
        }
        let mut row = rows[k].clone();
        row.iter_mut().for_each(|x| *x /= length);
        // Once more against rounding.
        for earlier in &basis {
            axpy(-dot(earlier, &row), earlier, &mut row);
        }
        let length = dot(&row, &row).sqrt();
        row.iter_mut().for_each(|x| *x /= length);
        for other in &mut rows {
            axpy(-dot(&row, other), &row, other);
        }
        basis.push(row);
    }
    Some(Matrix::from_fn(basis.len(), columns, |i, j| basis[i][j]))
}
