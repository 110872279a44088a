//! GMRES: the vector of a Krylov subspace with the smallest residual.

use super::Arnoldi;
use crate::vector;

/// A subspace that leaves more than this share of a residual is no use: further ones will do no better.
const STAGNATION: f64 = 0.9;

/// How long a solution is looked for (Saad and Schultz, 1986, with restarts).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gmres {
    /// Dimensions of a subspace.
    pub restart: usize,
    /// Most products.
    pub max_products: usize,
    /// The residual that is enough, as a share of the right-hand side.
    pub tolerance: f64,
}

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    pub x: Vec<f64>,
    /// ‖b - A x‖/‖b‖, from a product with x; 0 where b is.
    pub residual: f64,
    /// Products that were taken.
    pub products: usize,
}

impl Gmres {
    /// The solution of A x = b, as far as it is found.
    pub fn solve<E>(
        &self,
        b: &[f64],
        apply: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
    ) -> Result<Solution, E> {
        let size = vector::length(b);
        let mut x = vec![0.0; b.len()];
        let (mut rest, mut residual, mut products) = (b.to_vec(), 1.0, 0);
        if size == 0.0 {
            return Ok(Solution { x, residual: 0.0, products });
        }
        // The product that checks a cycle counts too.
        while residual > self.tolerance && products + 2 <= self.max_products {
            let Some(mut arnoldi) = Arnoldi::new(&rest) else { break };
            let mut least = LeastSquares::new(vector::length(&rest));
            let most = self.restart.min(self.max_products - products - 1);
            while arnoldi.steps() < most && least.rest() > 0.5 * self.tolerance * size {
                let more = arnoldi.extend(apply)?;
                // A product that overflows leaves no column.
                let Some(column) = arnoldi.columns().get(least.len()) else { break };
                least.push(column);
                if !more {
                    break;
                }
            }
            let mut next = arnoldi.combine(&least.solution());
            next.iter_mut().zip(&x).for_each(|(new, x)| *new += x);
            let mut left = b.to_vec();
            vector::axpy(-1.0, &apply(&next)?, &mut left);
            products += arnoldi.steps() + 1;
            let found = vector::length(&left) / size;
            // Negated, so that NaN is no improvement.
            if !(found < residual) {
                break;
            }
            let stagnates = found > STAGNATION * residual;
            (x, rest, residual) = (next, left, found);
            if stagnates {
                break;
            }
        }
        Ok(Solution { x, residual, products })
    }
}

/// min ‖β e_0 - H y‖ for columns of H that come one by one, each with one entry more than the one before: rotations make H
/// triangular.
struct LeastSquares {
    /// Columns of the triangle.
    triangle: Vec<Vec<f64>>,
    rotations: Vec<(f64, f64)>,
    right: Vec<f64>,
}

impl LeastSquares {
    fn new(beta: f64) -> Self {
        Self { triangle: Vec::new(), rotations: Vec::new(), right: vec![beta] }
    }

    fn len(&self) -> usize {
        self.triangle.len()
    }

    /// The smallest residual.
    fn rest(&self) -> f64 {
        self.right[self.len()].abs()
    }

    fn push(&mut self, column: &[f64]) {
        let mut column = column.to_vec();
        let rotate = |(c, s): (f64, f64), x: f64, y: f64| (c * x + s * y, c * y - s * x);
        for (i, &rotation) in self.rotations.iter().enumerate() {
            (column[i], column[i + 1]) = rotate(rotation, column[i], column[i + 1]);
        }
        let k = self.len();
        let length = column[k].hypot(column[k + 1]);
        let rotation = if length > 0.0 { (column[k] / length, column[k + 1] / length) } else { (1.0, 0.0) };
        column[k] = length;
        column.truncate(k + 1);
        let (kept, rest) = rotate(rotation, self.right[k], 0.0);
        self.right[k] = kept;
        self.right.push(rest);
        self.rotations.push(rotation);
        self.triangle.push(column);
    }

    /// y, without the last columns that add nothing.
    fn solution(&self) -> Vec<f64> {
        let mut y = self.right[..self.len()].to_vec();
        for j in (0..y.len()).rev() {
            let diagonal = self.triangle[j][j];
            y[j] = if diagonal == 0.0 { 0.0 } else { y[j] / diagonal };
            for i in 0..j {
                y[i] -= self.triangle[j][i] * y[j];
            }
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::linalg;
    use crate::matrix::Matrix;
    use crate::random::{Purpose, Stream};

    fn solve(a: &Matrix, b: &[f64], gmres: Gmres) -> Solution {
        gmres.solve(b, &mut |x: &[f64]| Ok::<_, Infallible>(a.mul_vec(x))).unwrap()
    }

    #[test]
    fn solutions_are_those_of_the_dense_system() {
        let mut stream = Stream::new(4, Purpose::Prompt, 0);
        let n = 200;
        // Eigenvalues within a disc of radius about 0.6 around 1.
        let a = Matrix::from_fn(n, n, |i, j| {
            f64::from(u8::from(i == j)) + stream.uniform_in(-1.0, 1.0) / (n as f64).sqrt()
        });
        let b = stream.uniform_vec(n, -1.0, 1.0);
        let expected = linalg::solve(&a, &b).unwrap();
        for restart in [10, 60] {
            let found = solve(&a, &b, Gmres { restart, max_products: 200, tolerance: 1e-10 });
            assert!(
                found.residual <= 1e-10 && found.products < 120,
                "{} {:e}",
                found.products,
                found.residual
            );
            let apart = found.x.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // The condition number is about 4, values below 10.
            assert!(apart < 1e-8, "{apart:e}");
        }
    }

    #[test]
    fn what_is_not_found_has_its_true_residual() {
        // A shift is the worst case: nothing is found before the whole space is spanned.
        let n = 40;
        let a = Matrix::from_fn(n, n, |i, j| f64::from(u8::from((i + 1) % n == j)));
        let mut b = vec![0.0; n];
        b[0] = 2.0;
        let gmres = Gmres { restart: 10, max_products: 100, tolerance: 1e-6 };
        let found = solve(&a, &b, gmres);
        assert!(found.residual == 1.0 && found.products <= 11 && found.x.iter().all(|x| *x == 0.0));
        let found = solve(&a, &b, Gmres { restart: 40, ..gmres });
        assert!(found.residual < 1e-12 && (found.x[1] - 2.0).abs() < 1e-12);
        // Nothing asked, nothing done; and a matrix that is 0.
        assert_eq!(solve(&a, &[0.0; 40], gmres).products, 0);
        assert_eq!(solve(&Matrix::zeros(3, 3), &[1.0; 3], gmres).residual, 1.0);
        assert_eq!(solve(&a.map(|x| 1e308 * x * x + f64::MAX), &b, gmres).residual, 1.0);
    }
}
