//! The rates of a sweep: decay with depth, floor over length.

use ictd::statistics::fit::{self, Slope};

use super::{SWEEP, SweepPoint};

/// The slope of what depth takes away, ‖v_L - v_∞‖∞, at the longest context: from depth 3 on, where fast modes have died
/// out, and far above rounding. The error itself is this and the floor, which would bend the line.
pub(super) fn decay(sweep: &[SweepPoint]) -> Option<Slope> {
    let longest = SWEEP[SWEEP.len() - 1];
    let points: Vec<(f64, f64)> = sweep
        .iter()
        .filter(|p| p.n == longest)
        .filter_map(|p| Some((p.layers?, p.transient?)))
        .filter(|&(layers, transient)| layers >= 3 && transient > 1e-10)
        .map(|(layers, transient)| (layers as f64, transient.ln()))
        .collect();
    fit::line(&points)
}

/// The slope of what depth leaves over the length.
pub(super) fn floor(sweep: &[SweepPoint]) -> Option<Slope> {
    let points: Vec<(f64, f64)> =
        sweep.iter().filter(|p| p.layers.is_none()).map(|p| (p.n as f64, p.error)).collect();
    // Errors of rounding have no rate.
    if points.iter().any(|p| p.1 < 1e-12) { None } else { fit::power(&points) }
}
