//! How near a trained Transformer is to TD(0).

use super::comparator::td_weights;
use super::prompts::Transition;
use super::shape::PredecessorShape;
use super::track::Truth;
use crate::linalg;
use crate::matrix::Matrix;
use crate::pretrain::lanes::Element;

/// What a measurement found.
#[derive(Clone, Debug, PartialEq)]
pub struct PredecessorMeasurement {
    /// Tasks trained on.
    pub mrp: u64,
    /// The comparator's step size α.
    pub alpha: f64,
    /// Mean loss of the last task's minibatches.
    pub loss: f64,
    /// VD = Σ_s μ(s) (v_TF(s) - v_TD(s))².
    pub value_difference: f64,
    /// IWS = cos(w_TF, ∂v_TD/∂φ_q), w_TF = (XᵀDX)⁻¹ XᵀD v_TF the weights nearest to v_TF; NaN where states that are
    /// visited have fewer than d independent features.
    pub weight_similarity: f64,
    /// SS = Σ_s μ(s) cos(∂v_TF/∂φ_q, ∂v_TD/∂φ_q).
    pub sensitivity_similarity: f64,
    /// MSVE = Σ_s μ(s) (v_TF(s) - v(s))²; v is exact, or the mean of sampled returns (see [`PredecessorTrainer`](super::PredecessorTrainer)).
    pub value_error: f64,
    /// The same of TD(0) with its trained step size.
    pub td_value_error: f64,
    /// Pair by pair.
    pub pairs: Vec<PairMeasures>,
}

/// Entries of P and Q of a pair, signs aligned: the pair (-P, -Q) is the same linear Transformer, so both are multiplied by the
/// sign of P's last corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairMeasures {
    /// P's last corner.
    pub p_corner: f64,
    /// Mean absolute value of P's other trained entries.
    pub p_rest: f64,
    /// Trace of Q's upper left d×d block.
    pub q_left: f64,
    /// Trace of Q's upper right d×d block.
    pub q_right: f64,
    /// Mean absolute value of Q's other trained entries.
    pub q_rest: f64,
}

impl PairMeasures {
    /// Of all pairs.
    pub fn of<E: Element>(shape: &PredecessorShape, params: &[E]) -> Vec<Self> {
        let (k, d) = (shape.num_rows(), shape.feature_dim);
        let trained = shape.trained();
        let of_pair = |pair: usize| {
            let (p, q) = shape.pair(params, pair);
            let (p_trained, q_trained) = shape.pair(&trained, pair);
            let corner = p[k * k - 1].get();
            let sign = if corner < 0.0 { -1.0 } else { 1.0 };
            let trace = |by: usize| sign * (0..d).map(|i| q[i * k + i + by].get()).sum::<f64>();
            let mean_rest = |entries: &[E], trained: &[bool], is_named: &dyn Fn(usize) -> bool| {
                let rest = (0..k * k).filter(|&at| trained[at] && !is_named(at));
                let (sum, count) = rest.fold((0.0, 0.0), |(s, c), at| (s + entries[at].get().abs(), c + 1.0));
                sum / count
            };
            let on_diagonals = |at: usize| at / k < d && (at % k == at / k || at % k == at / k + d);
            Self {
                p_corner: corner.abs(),
                p_rest: mean_rest(p, p_trained, &|at| at == k * k - 1),
                q_left: trace(0),
                q_right: trace(d),
                q_rest: mean_rest(q, q_trained, &on_diagonals),
            }
        };
        (0..shape.num_pairs()).map(of_pair).collect()
    }
}

/// VD, IWS and SS of values and sensitivities (state by state, ∂v_TF/∂φ_q) against TD(0) on the same context, and the MSVE of both.
pub(super) fn similarities(
    shape: &PredecessorShape,
    (gamma, alpha): (f64, f64),
    context: &[Transition<'_>],
    truth: &Truth,
    features: &Matrix,
    values: &[f64],
    sensitivities: &Matrix,
) -> [f64; 5] {
    let law = &truth.law;
    let td = td_weights(context, gamma, alpha, shape.num_layers);
    let td_values = features.mul_vec(&td);
    let gaps = values.iter().zip(&td_values).map(|(a, b)| (a - b).powi(2));
    let difference = law.iter().zip(gaps).map(|(mu, gap)| mu * gap).sum();
    let nearest = nearest_weights(features, law, values);
    let weights = nearest.map_or(f64::NAN, |w| cosine(&w, &td));
    let sensitivity =
        law.iter().zip(sensitivities.rows()).map(|(mu, by_query)| mu * cosine(by_query, &td)).sum();
    [difference, weights, sensitivity, value_error(truth, values), value_error(truth, &td_values)]
}

/// Σ_s μ(s) (v(s) - a(s))·(v(s) - b(s)) with both accounts a and b of the truth, over the states that both know; NaN where there is none.
fn value_error(truth: &Truth, values: &[f64]) -> f64 {
    let [a, b] = &truth.values;
    let states = truth.law.iter().zip(values).zip(a.iter().zip(b));
    let known = states.filter(|(_, (a, b))| a.is_finite() && b.is_finite());
    let (sum, mass) =
        known.fold((0.0, 0.0), |(sum, mass), ((mu, v), (a, b))| (sum + mu * (v - a) * (v - b), mass + mu));
    sum / mass
}

/// (XᵀDX)⁻¹ XᵀD v.
fn nearest_weights(features: &Matrix, law: &[f64], values: &[f64]) -> Option<Vec<f64>> {
    let d = features.num_cols();
    let weighted = |of: &dyn Fn(&[f64], usize) -> f64| {
        let terms = features.rows().zip(law).enumerate();
        terms.map(|(s, (x, mu))| mu * of(x, s)).sum::<f64>()
    };
    let gram = Matrix::from_fn(d, d, |i, j| weighted(&|x, _| x[i] * x[j]));
    let right: Vec<f64> = (0..d).map(|i| weighted(&|x, s| x[i] * values[s])).collect();
    linalg::solve(&gram, &right).ok()
}

/// The cosine of the angle between vectors; 0 where one of them is 0.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    if norms > 0.0 { dot(a, b) / norms } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, and on average over noise that the two accounts do not share.
    #[test]
    fn errors_of_values_are_squares_without_noise() {
        let truth =
            |a: [f64; 3], b: [f64; 3]| Truth { law: vec![0.5, 0.25, 0.25], values: [a.to_vec(), b.to_vec()] };
        let (exact, values) = ([1.0, 2.0, 3.0], [2.0, 2.0, 1.0]);
        assert_eq!(value_error(&truth(exact, exact), &values), 0.5 + 0.25 * 4.0);
        let noisy = |a: f64, b: f64| truth(exact.map(|v| v + a), exact.map(|v| v + b));
        let signs = [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)];
        let mean: f64 = signs.iter().map(|&(a, b)| value_error(&noisy(a, b), &values) / 4.0).sum();
        assert_eq!(mean, 1.5);
        // Only states that both halves visit count.
        let half = value_error(&truth(exact, [1.0, f64::NAN, 3.0]), &values);
        assert!((half - 1.5 / 0.75).abs() < 1e-15, "{half}");
        assert!(value_error(&truth([f64::NAN; 3], exact), &values).is_nan());
    }
}
