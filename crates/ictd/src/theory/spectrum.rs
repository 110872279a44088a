//! What the eigenvalues of a layer say about depth.

use serde::Serialize;

use crate::linalg::Eigenvalue;
use crate::operator::{OperatorError, StateOperator};
use crate::statistics::largest;

/// Eigenvalues below this share of the largest are rounding: the eigenvalue solver is backward stable, so
/// its errors are a few hundred ulps of the matrix norm.
const NOISE: f64 = 1e-12;
/// Sharp kernels on raw features are nearly defective: rounding of ε moves their eigenvalues by ε^(1/k). A
/// smallest real part below this share of the largest eigenvalue is checked against a perturbed matrix ...
const DOUBTFUL: f64 = 1e-2;
/// ... that differs by this, a thousand roundings, ...
const PERTURBATION: f64 = 1e-13;
/// ... and counts when it moved by less than this share of itself.
const AGREEMENT: f64 = 0.05;
/// Above this many states an eigenvalue problem is worth a thread of its own.
const MANY_STATES: usize = 300;

/// The eigenvalues λ of M - γP: a layer with step size α multiplies errors by 1 - αλ (J of the paper's eq:recur is
/// I - (M - γP), at step size 1).
#[derive(Clone, Debug, Serialize)]
pub struct Spectrum {
    values: Vec<Eigenvalue>,
    largest: f64,
    /// Whether rounding decides the smallest real part.
    doubtful: bool,
}

/// The step size with the fastest convergence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BestStep {
    /// The step size.
    pub step_size: f64,
    /// The spectral radius there: the largest |1 - αλ|.
    pub spectral_radius: f64,
}

impl Spectrum {
    /// The spectrum of an operator.
    pub fn of(operator: &StateOperator) -> Result<Self, OperatorError> {
        // With many states both problems are solved at once: the second is nearly always needed.
        let perturbed = || operator.perturbed_eigenvalues(PERTURBATION);
        let (values, early) = if operator.statistics().num_groups() > MANY_STATES {
            let (values, moved) = rayon::join(|| operator.eigenvalues(), perturbed);
            (values?, Some(moved))
        } else {
            (operator.eigenvalues()?, None)
        };
        let mut spectrum = Self::new(values);
        let smallest = spectrum.smallest_real_part();
        if smallest < DOUBTFUL * spectrum.largest {
            // Where the perturbed problem has no answer there is nothing to agree with.
            let moved = early.unwrap_or_else(perturbed).map(|v| Self::new(v).smallest_real_part());
            let agrees = |moved: f64| (moved - smallest).abs() <= AGREEMENT * smallest.abs();
            spectrum.doubtful = !moved.is_ok_and(agrees);
        }
        Ok(spectrum)
    }

    /// From eigenvalues.
    pub fn new(values: Vec<Eigenvalue>) -> Self {
        let largest = largest(values.iter().map(|z| z.modulus()));
        Self { values, largest, doubtful: false }
    }

    /// The eigenvalues, in no particular order.
    pub fn values(&self) -> &[Eigenvalue] {
        &self.values
    }

    /// The largest |1 - αλ|: the factor by which errors shrink or grow per layer in the long run.
    pub fn spectral_radius(&self, step_size: f64) -> f64 {
        largest(self.values.iter().map(|z| (1.0 - step_size * z.re).hypot(step_size * z.im)))
    }

    /// The smallest real part.
    pub fn smallest_real_part(&self) -> f64 {
        self.values.iter().map(|z| z.re).fold(f64::INFINITY, f64::min)
    }

    /// Whether some step size makes layers converge: all real parts are positive, beyond rounding.
    pub fn is_stable(&self) -> bool {
        !self.doubtful && self.smallest_real_part() > NOISE * self.largest
    }

    /// Whether no step size makes layers converge: some real part is negative, beyond rounding. Then
    /// |1 - αλ| > 1 for every α > 0.
    pub fn is_unstable(&self) -> bool {
        !self.doubtful && self.smallest_real_part() < -NOISE * self.largest
    }

    /// The step size below which layers converge: the smallest 2·Re λ/|λ|². `None` unless
    /// [`is_stable`](Self::is_stable).
    pub fn largest_stable_step(&self) -> Option<f64> {
        let limit = |z: &Eigenvalue| 2.0 * z.re / (z.re * z.re + z.im * z.im);
        self.is_stable().then(|| self.values.iter().map(limit).fold(f64::INFINITY, f64::min))
    }

    /// The step size with the smallest spectral radius: the largest |1 - αλ| is convex in α, so sections of the golden
    /// ratio find its minimum. `None` unless [`is_stable`](Self::is_stable).
    pub fn best_step(&self) -> Option<BestStep> {
        let (mut low, mut high) = (0.0, self.largest_stable_step()?);
        let ratio = 0.5 * (5f64.sqrt() - 1.0);
        // The interval shrinks by 0.618 per round: 80 rounds reach rounding.
        for _ in 0..80 {
            let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
            if self.spectral_radius(a) <= self.spectral_radius(b) { high = b } else { low = a }
        }
        let step_size = 0.5 * (low + high);
        Some(BestStep { step_size, spectral_radius: self.spectral_radius(step_size) })
    }
}
