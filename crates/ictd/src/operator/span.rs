//! The directions that linear attention moves values in.

use crate::context::ContextStatistics;
use crate::matrix::Matrix;

/// Directions shorter than this share of the longest feature vector are rounding.
const NOISE: f64 = 1e-12;

/// Features in an orthonormal basis of the span of the states that were left, one row per state; `None` when they span all
/// dimensions.
///
/// With the linear kernel v(u) = ⟨x_u, w⟩ and w moves in that span alone: what lies beyond it has no influence, and would
/// only add eigenvalues 0 to the map of a layer.
pub(super) fn features_in_span(statistics: &ContextStatistics) -> Option<Matrix> {
    let d = statistics.feature_dim();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut rest: Vec<Vec<f64>> =
        (0..statistics.num_source_groups()).map(|s| statistics.features(s).to_vec()).collect();
    let length = |x: &Vec<f64>| dot(x, x).sqrt();
    let longest = rest.iter().map(length).fold(0.0, f64::max);
    let mut basis: Vec<Vec<f64>> = Vec::new();
    while basis.len() < d {
        // The one that sticks out most of what the basis spans.
        let Some(k) = (0..rest.len()).max_by(|&a, &b| length(&rest[a]).total_cmp(&length(&rest[b]))) else {
            break;
        };
        let size = length(&rest[k]);
        if !(size > NOISE * longest) {
            break;
        }
        let mut direction: Vec<f64> = rest[k].iter().map(|x| x / size).collect();
        // Once more against rounding.
        for q in &basis {
            let share = dot(q, &direction);
            direction.iter_mut().zip(q).for_each(|(x, q)| *x -= share * q);
        }
        let size = length(&direction);
        direction.iter_mut().for_each(|x| *x /= size);
        for x in &mut rest {
            let share = dot(&direction, x);
            x.iter_mut().zip(&direction).for_each(|(x, q)| *x -= share * q);
        }
        basis.push(direction);
    }
    (basis.len() < d).then(|| {
        Matrix::from_fn(statistics.num_groups(), basis.len(), |u, k| dot(statistics.features(u), &basis[k]))
    })
}
