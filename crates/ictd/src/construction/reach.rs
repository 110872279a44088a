//! The weights that layers reach.

use std::cmp::Ordering;

use crate::matrix::Matrix;
use crate::vector::{axpy, dot};
use crate::watch::{Stopped, Watch};

/// How much of a vector must stick out of the directions so far, as a share of its length, to add one: those that stick out most come first,
/// without looking for the very largest.
const SHARES: [f64; 4] = [0.1, 1e-3, 1e-6, 1e-10];
/// Roundings that orthogonalisation leaves of a vector that depends on others, for each of its entries. What is as small and no rounding
/// cannot be told from it.
const ROUNDING: f64 = 32.0 * f64::EPSILON;

/// The span of some vectors of d numbers.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Orthonormal rows; `None` where the span is the whole space.
    pub basis: Option<Matrix>,
    /// How much the last direction that was added sticks out of those before, as a share of the length of its vector: where it is small the
    /// span is known, and equations in it are ill-conditioned. 1 without directions.
    pub thinnest: f64,
    /// How far the vectors reach in the direction in which they reach least, as a share of that in which they reach most. 1 without directions.
    pub smallest: f64,
    /// The largest share by which a vector sticks out, among vectors that add no direction and are no multiples of those that do: 0, or rounding, or too small to be
    /// told from it.
    pub left_out: f64,
}

impl Reach {
    /// The span of vectors of d numbers. Zeros, and vectors with an entry that is no number, add nothing. `watch` is told of every vector.
    pub fn of(vectors: impl Iterator<Item = Vec<f64>>, d: usize, watch: &dyn Watch) -> Result<Self, Stopped> {
        let all = distinct(vectors.filter_map(Direction::of).collect());
        let mut left: Vec<&Direction> = all.iter().collect();
        // Those that can add nothing any more: what sticks out only becomes less.
        let mut spent: Vec<&Direction> = Vec::new();
        let mut basis: Vec<Vec<f64>> = Vec::with_capacity(d);
        let mut thinnest: f64 = 1.0;
        let rounding = ROUNDING * d as f64;
        for least in SHARES.into_iter().chain([rounding]) {
            watch.begin("what layers reach", "vectors", left.len() as u64)?;
            for direction in std::mem::take(&mut left) {
                if basis.len() == d {
                    break;
                }
                watch.advance(1)?;
                let (rest, share) = beyond(&direction.unit, &basis);
                if share > least {
                    basis.push(rest);
                    thinnest = thinnest.min(share);
                } else if share > rounding {
                    left.push(direction);
                } else {
                    spent.push(direction);
                }
            }
        }
        watch.begin("how far layers reach", "vectors", all.len() as u64)?;
        let mut sizes = vec![0.0; basis.len()];
        for Direction { unit, size } in &all {
            watch.advance(1)?;
            for (top, row) in sizes.iter_mut().zip(&basis) {
                *top = f64::max(*top, size * dot(row, unit).abs());
            }
        }
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let smallest = sizes.iter().map(|size| size / largest).fold(1.0, f64::min);
        if basis.len() == d {
            return Ok(Self { basis: None, thinnest, smallest, left_out: 0.0 });
        }
        spent.append(&mut left);
        watch.begin("what layers leave out", "vectors", spent.len() as u64)?;
        let mut left_out: f64 = 0.0;
        for direction in spent {
            watch.advance(1)?;
            left_out = left_out.max(beyond(&direction.unit, &basis).1);
        }
        let basis = Some(Matrix::from_fn(basis.len(), d, |i, j| basis[i][j]));
        Ok(Self { basis, thinnest, smallest, left_out })
    }

    /// How much of a vector lies outside, as a share of its length.
    pub fn outside(&self, vector: &[f64]) -> f64 {
        let Some(basis) = &self.basis else { return 0.0 };
        let rows: Vec<Vec<f64>> = basis.rows().map(<[f64]>::to_vec).collect();
        unit(vector.to_vec()).map_or(0.0, |vector| beyond(&vector, &rows).1)
    }

    /// A square matrix on the span, which it leads into itself.
    pub fn within(&self, matrix: &Matrix) -> Matrix {
        match &self.basis {
            Some(basis) => basis.matmul(matrix).matmul(&basis.transpose()),
            None => matrix.clone(),
        }
    }

    /// Coordinates of the part of a vector that lies in the span.
    pub fn coordinates(&self, vector: &[f64]) -> Vec<f64> {
        self.basis.as_ref().map_or_else(|| vector.to_vec(), |basis| basis.mul_vec(vector))
    }
}

/// A vector divided by its largest entry; `None` for zeros, and where an entry is no number.
fn unit(mut vector: Vec<f64>) -> Option<Vec<f64>> {
    let largest = vector.iter().copied().fold(0.0_f64, |top, x| if x.abs() > top.abs() { x } else { top });
    vector.iter_mut().for_each(|x| *x /= largest);
    vector.iter().all(|x| x.is_finite()).then_some(vector)
}

/// A vector and how large it is.
struct Direction {
    /// Divided by its largest entry: multiples of each other are then equal to the last bit, and no square overflows.
    unit: Vec<f64>,
    /// The size of its largest entry.
    size: f64,
}

impl Direction {
    fn of(vector: Vec<f64>) -> Option<Self> {
        let size = vector.iter().fold(0.0_f64, |top, x| top.max(x.abs()));
        unit(vector).map(|unit| Self { unit, size })
    }
}

/// Each direction once, as large as the largest vector that has it; the largest first, so that what small ones add is small.
fn distinct(mut directions: Vec<Direction>) -> Vec<Direction> {
    let compare = |a: &Direction, b: &Direction| {
        let entries = a.unit.iter().zip(&b.unit);
        entries.map(|(x, y)| x.total_cmp(y)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    let by_size = |a: &Direction, b: &Direction| b.size.total_cmp(&a.size);
    directions.sort_by(|a, b| compare(a, b).then(by_size(a, b)));
    directions.dedup_by(|later, earlier| compare(later, earlier).is_eq());
    directions.sort_by(by_size);
    directions
}

/// The direction in which a vector leaves the span of orthonormal rows, and how much of it, as a share of its length.
fn beyond(vector: &[f64], basis: &[Vec<f64>]) -> (Vec<f64>, f64) {
    let mut rest = vector.to_vec();
    // Twice, because the first time leaves what rounding put there.
    for _ in 0..2 {
        for row in basis {
            axpy(-dot(row, &rest), row, &mut rest);
        }
    }
    // By the largest entry again: of a very small rest squares vanish.
    let size = rest.iter().fold(0.0_f64, |top, x| top.max(x.abs()));
    if size == 0.0 {
        return (rest, 0.0);
    }
    rest.iter_mut().for_each(|x| *x /= size);
    let length = dot(&rest, &rest).sqrt();
    rest.iter_mut().for_each(|x| *x /= length);
    // A vector whose largest entry is 1 has a length of at least 1.
    (rest, size * length / dot(vector, vector).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[[f64; 3]]) -> Reach {
        Reach::of(rows.iter().map(|row| row.to_vec()), 3, &()).unwrap()
    }

    #[test]
    fn multiples_of_any_size_add_nothing_and_leave_nothing_out() {
        let found = of(&[[1.0, 3.0, 0.0], [2.0, 6.0, 0.0], [-1e200, -3e200, 0.0], [0.0; 3]]);
        assert_eq!((found.basis.as_ref().map(Matrix::num_rows), found.left_out), (Some(1), 0.0));
        assert_eq!(found.outside(&[0.0, 0.0, 1e-200]), 1.0);
        assert!(found.outside(&[1e155, 3e155, 0.0]) < 1e-15);
    }

    /// Rows of very different sizes are directions like others.
    #[test]
    fn sizes_of_rows_do_not_matter() {
        let found = of(&[[1e155, 0.0, 0.0], [0.0, 1e-155, 0.0], [1e155, 1e155, 1e155]]);
        assert!(found.basis.is_none() && found.thinnest > 0.1);
    }

    /// Whichever comes first, and in whatever coordinates.
    #[test]
    fn small_directions_are_told() {
        let small = 1e-7;
        for rows in [
            [[1.0, 0.0, 0.0], [0.0, small, 0.0], [0.0, 0.0, 1.0]],
            [[0.0, 0.0, small], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]],
            [[small, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [[1.0, 1.0, 0.0], [small, -small, 0.0], [2.0, 2.0, 0.0]],
        ] {
            let found = of(&rows);
            assert!(found.smallest < 3.0 * small && found.smallest > 0.1 * small, "{found:?}");
            assert!(found.thinnest > 0.1, "{found:?}");
        }
        assert!(of(&[[1.0, 0.0, 0.0], [1.0, 0.05, 0.0], [0.0, small, 0.0]]).smallest > 0.01);
    }

    #[test]
    fn what_is_almost_left_out_is_told() {
        let of = |a: f64| of(&[[1.0, 0.0, 0.0], [1.0, a, 0.0]]);
        for a in [1e-3, 1e-12] {
            let found = of(a);
            assert_eq!(found.basis.as_ref().map(Matrix::num_rows), Some(2));
            assert!((found.thinnest / a - 1.0).abs() < 1e-3 && found.left_out == 0.0, "{found:?}");
        }
        for a in [1e-16, 1e-200] {
            let found = of(a);
            assert_eq!(found.basis.as_ref().map(Matrix::num_rows), Some(1));
            assert!((found.left_out / a - 1.0).abs() < 1e-3, "{found:?}");
        }
    }
}
