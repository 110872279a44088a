//! How errors of weights grow into errors of values, layer by layer.

use super::ValueRow;
use crate::kernel::Certainty;

/// Bounds on the error e of the values after the layers so far. A layer is e ↦ e - αM(I - γP)e + η, where η is what the errors of the weights make
/// of the layer's messages.
///
/// Two bounds, of which the smaller counts. In the largest value: |e| grows by at most 1 + α(1+γ). In the norm of [`Certainty`]: with
/// z = (I - γP)e a layer is z ↦ (I - αM)z + αγPM z + (I - γP)η, and for 0 ≤ α ≤ 1 the eigenvalues m of M in [0, 1] give
/// ‖z‖ ↦ √(1 + γ²t²)·‖z‖ + …, t being the norm of P, as √(1 - αm) and √(αm) are a cosine and a sine; then |e| grows by α·gain·‖z‖ only.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    /// By the largest value.
    largest: f64,
    /// By the norm, and the norm itself.
    by_norm: f64,
    norm: f64,
}

impl Growth {
    /// After one more layer with messages of at most `size` per visit.
    pub fn advance(
        &mut self,
        certainty: &Certainty,
        row: ValueRow<'_>,
        gamma: f64,
        step_size: f64,
        size: f64,
    ) {
        let &Certainty { column_error, spread_error, gain, stretch, leak } = certainty;
        let alpha = step_size.abs();
        let enlarged = 1.0 + alpha * (row.value.abs() + gamma * row.target.abs());
        self.largest = enlarged * self.largest + alpha * column_error * size;
        let is_td = row.target == 1.0 && row.value == -1.0 && (0.0..=1.0).contains(&step_size);
        if is_td && gain.is_finite() {
            self.by_norm += alpha * (gain * self.norm + column_error * size);
            let kept = (gamma * stretch).hypot(1.0) + gamma * leak * gain;
            let added = (1.0 + gamma * stretch) * spread_error + gamma * leak * column_error;
            self.norm = kept * self.norm + alpha * size * added;
        } else {
            self.by_norm = f64::INFINITY;
        }
    }

    /// No value is off by more.
    pub fn value_error(&self) -> f64 {
        self.largest.min(self.by_norm)
    }
}
