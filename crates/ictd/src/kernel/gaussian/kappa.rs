//! The Gaussian kernel between a point and a panel of points.

use crate::vector;

/// Points by coordinate: the first coordinate of all, then the second, and so on.
pub(super) struct Panel {
    coordinates: Vec<f64>,
    len: usize,
}

impl Panel {
    /// From `len` points of `dim` coordinates each.
    pub fn new<'a>(points: impl Iterator<Item = &'a [f64]>, len: usize, dim: usize) -> Self {
        let mut coordinates = vec![0.0; len * dim];
        for (k, y) in points.enumerate() {
            y.iter().enumerate().for_each(|(a, y)| coordinates[a * len + k] = *y);
        }
        Self { coordinates, len }
    }

    /// κ(y, u) = 2^(-‖y - y_u‖²/2) of every point u.
    pub fn kappa(&self, y: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (coordinates, y) in self.coordinates.chunks_exact(self.len).zip(y) {
            vector::axpy_squared_difference(1.0, coordinates, *y, out);
        }
        vector::exp_nonpositive_scaled(-0.5 * std::f64::consts::LN_2, out);
    }
}
