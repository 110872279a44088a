//! Arnoldi's iteration: an orthonormal basis of a Krylov subspace, and what a matrix does within it.

use crate::linalg::{self, Eigenvalue, LinalgError};
use crate::matrix::Matrix;
use crate::statistics::largest;
use crate::vector;

/// What is left of a product below this share of it is rounding: the subspace is invariant.
const NOISE: f64 = 1e-14;
/// Eigenvectors are found with eigenvalues off by this share of the matrix, so that systems are not singular ...
const SHIFT: f64 = 1e-10;
/// ... in so many steps of inverse iteration, each of which gains ten digits where eigenvalues are apart.
const STEPS: usize = 3;

/// Vectors q_0, …, q_k, orthonormal, with A q_j = Σ_i h(i, j)·q_i.
#[derive(Clone, Debug)]
pub(crate) struct Arnoldi {
    basis: Vec<Vec<f64>>,
    /// Column j has entries h(0, j), …, h(j + 1, j).
    columns: Vec<Vec<f64>>,
}

/// An eigenvalue θ within the subspace, with a vector x of it.
#[derive(Clone, Debug)]
pub(crate) struct Ritz {
    pub value: Eigenvalue,
    /// ‖A x - θ x‖/‖x‖, as the iteration has it.
    pub estimate: f64,
    /// The vector in terms of the basis: its real part, then its imaginary part.
    coordinates: [Vec<f64>; 2],
}

impl Arnoldi {
    /// The subspace of a vector alone; `None` where it is 0 or not finite.
    pub fn new(start: &[f64]) -> Option<Self> {
        let length = vector::length(start);
        let usable = length > 0.0 && length.is_finite();
        usable.then(|| Self { basis: vec![start.iter().map(|x| x / length).collect()], columns: Vec::new() })
    }

    /// Products that were taken.
    pub fn steps(&self) -> usize {
        self.columns.len()
    }

    /// Takes a product more; `false` where the subspace is invariant and there is none to take, or numbers overflow.
    pub fn extend<E>(&mut self, apply: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, E>) -> Result<bool, E> {
        let Some(last) = self.basis.get(self.columns.len()) else { return Ok(false) };
        let mut product = apply(last)?;
        let size = vector::length(&product);
        if !size.is_finite() {
            return Ok(false);
        }
        let mut column = vec![0.0; self.basis.len() + 1];
        for _ in 0..2 {
            for (q, h) in self.basis.iter().zip(&mut column) {
                let share = vector::dot(q, &product);
                vector::axpy(-share, q, &mut product);
                *h += share;
            }
        }
        let rest = vector::length(&product);
        if rest > NOISE * size {
            column[self.basis.len()] = rest;
            product.iter_mut().for_each(|x| *x /= rest);
            self.basis.push(product);
        }
        self.columns.push(column);
        Ok(self.basis.len() > self.columns.len())
    }

    /// Σ_j y(j)·q_j.
    pub fn combine(&self, coordinates: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.basis[0].len()];
        for (q, &share) in self.basis.iter().zip(coordinates) {
            vector::axpy(share, q, &mut sum);
        }
        sum
    }

    /// The columns of h.
    pub fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }

    /// The eigenvalues within the subspace, of complex pairs the one above the real axis.
    pub fn ritz(&self) -> Result<Vec<Ritz>, LinalgError> {
        let k = self.columns.len();
        let within = Matrix::from_fn(k, k, |i, j| self.columns[j].get(i).copied().unwrap_or(0.0));
        let beyond = self.columns.last().map_or(0.0, |column| column[k]);
        let values = linalg::eigenvalues(&within)?;
        let vector = |value: Eigenvalue| {
            let coordinates = eigenvector(&within, value)?;
            let [re, im] = &coordinates;
            let length = vector::length(&[vector::length(re), vector::length(im)]);
            let estimate = beyond * re[k - 1].hypot(im[k - 1]) / length;
            Some(Ritz { value, estimate, coordinates })
        };
        Ok(values.into_iter().filter(|value| value.im >= 0.0).filter_map(vector).collect())
    }

    /// ‖A x - θ x‖/‖x‖ from products with the vector itself.
    pub fn residual<E>(
        &self,
        ritz: &Ritz,
        apply: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
    ) -> Result<f64, E> {
        let [x, y] = ritz.coordinates.each_ref().map(|part| self.combine(part));
        let Eigenvalue { re, im } = ritz.value;
        let mut along = apply(&x)?;
        // (re + i·im)(x + i·y) = (re·x - im·y) + i·(im·x + re·y).
        vector::axpy(-re, &x, &mut along);
        vector::axpy(im, &y, &mut along);
        let mut across = if im == 0.0 { vec![0.0; y.len()] } else { apply(&y)? };
        vector::axpy(-re, &y, &mut across);
        vector::axpy(-im, &x, &mut across);
        let together = |a: &[f64], b: &[f64]| vector::length(&[vector::length(a), vector::length(b)]);
        Ok(together(&along, &across) / together(&x, &y))
    }
}

/// A vector x + i·y with H(x + i·y) about θ(x + i·y), by inverse iteration; `None` where there is no telling.
fn eigenvector(h: &Matrix, value: Eigenvalue) -> Option<[Vec<f64>; 2]> {
    let k = h.num_rows();
    let scale = largest(h.as_slice().iter().map(|x| x.abs()));
    let shift = value.re + if scale > 0.0 { SHIFT * scale } else { SHIFT };
    let is_real = value.im == 0.0;
    // (H - θ)(x + i·y) as real numbers: [[H - re, im], [-im, H - re]].
    let size = if is_real { k } else { 2 * k };
    let system = Matrix::from_fn(size, size, |i, j| {
        let (row, column) = (i % k, j % k);
        match (i < k, j < k) {
            (true, true) | (false, false) => h[(row, column)] - if row == column { shift } else { 0.0 },
            _ if row != column => 0.0,
            (true, false) => value.im,
            (false, true) => -value.im,
        }
    });
    let inverse = linalg::approximate_inverse(&system).ok()?;
    let mut x = vec![1.0; size];
    for _ in 0..STEPS {
        x = inverse.mul_vec(&x);
        let length = vector::length(&x);
        if !(length > 0.0 && length.is_finite()) {
            return None;
        }
        x.iter_mut().for_each(|x| *x /= length);
    }
    let imaginary = if is_real { vec![0.0; k] } else { x.split_off(k) };
    Some([x, imaginary])
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::random::{Purpose, Stream};

    fn products(a: &Matrix) -> impl FnMut(&[f64]) -> Result<Vec<f64>, Infallible> {
        |x| Ok(a.mul_vec(x))
    }

    /// In the whole space all eigenvalues are there, and residuals are roundings.
    #[test]
    fn the_whole_space_has_all_eigenvalues() {
        let mut stream = Stream::new(1, Purpose::Prompt, 0);
        let a = Matrix::from_fn(12, 12, |_, _| stream.uniform_in(-1.0, 1.0));
        let mut arnoldi = Arnoldi::new(&stream.uniform_vec(12, -1.0, 1.0)).unwrap();
        while arnoldi.extend(&mut products(&a)).unwrap() {}
        assert_eq!(arnoldi.steps(), 12);
        let expected = linalg::eigenvalues(&a).unwrap();
        let found = arnoldi.ritz().unwrap();
        assert_eq!(found.iter().map(|r| if r.value.im > 0.0 { 2 } else { 1 }).sum::<usize>(), 12);
        for ritz in &found {
            let distance = |z: &Eigenvalue| (z.re - ritz.value.re).hypot(z.im - ritz.value.im);
            // Entries of at most 1 and a random matrix: condition numbers of eigenvalues are moderate.
            assert!(expected.iter().map(distance).fold(f64::INFINITY, f64::min) < 1e-11);
            let residual = arnoldi.residual(ritz, &mut products(&a)).unwrap();
            assert!(residual < 1e-9, "{residual:e} at {:?}", ritz.value);
        }
    }

    /// One eigenvalue stands out: few products find it, with the residual that the iteration promises.
    #[test]
    fn few_products_find_what_stands_out() {
        let mut stream = Stream::new(2, Purpose::Prompt, 0);
        let n = 300;
        let mut a = Matrix::from_fn(n, n, |_, _| stream.uniform_in(-1.0, 1.0) / n as f64);
        // Two outliers of a rotation.
        for (i, j, x) in [(0, 0, 2.0), (0, 1, -1.5), (1, 0, 1.5), (1, 1, 2.0)] {
            a[(i, j)] += x;
        }
        let mut arnoldi = Arnoldi::new(&stream.uniform_vec(n, -1.0, 1.0)).unwrap();
        for _ in 0..20 {
            assert!(arnoldi.extend(&mut products(&a)).unwrap());
        }
        let found = arnoldi.ritz().unwrap();
        let leading = found.iter().max_by(|a, b| a.value.modulus().total_cmp(&b.value.modulus())).unwrap();
        let radius = linalg::spectral_radius(&a).unwrap();
        assert!((leading.value.modulus() - radius).abs() < 1e-9 * radius);
        let residual = arnoldi.residual(leading, &mut products(&a)).unwrap();
        assert!(residual < 1e-9 && leading.estimate < 1e-9, "{residual:e} {:e}", leading.estimate);
        // One that is not found says so, and the estimate is the truth.
        let hidden = found.iter().min_by(|a, b| a.value.modulus().total_cmp(&b.value.modulus())).unwrap();
        let residual = arnoldi.residual(hidden, &mut products(&a)).unwrap();
        assert!((residual - hidden.estimate).abs() < 1e-6 * residual && residual > 1e-4);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert!(Arnoldi::new(&[0.0; 3]).is_none() && Arnoldi::new(&[1.0, f64::NAN]).is_none());
        // An eigenvector spans an invariant subspace.
        let a = Matrix::diag(&[3.0, 1.0]);
        let mut arnoldi = Arnoldi::new(&[2.0, 0.0]).unwrap();
        assert!(!arnoldi.extend(&mut products(&a)).unwrap());
        let found = arnoldi.ritz().unwrap();
        assert_eq!(
            (found.len(), found[0].value, found[0].estimate),
            (1, Eigenvalue { re: 3.0, im: 0.0 }, 0.0)
        );
        assert!(!arnoldi.extend(&mut products(&a)).unwrap() && arnoldi.steps() == 1);
    }
}
