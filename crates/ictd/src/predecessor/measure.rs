//! How near a trained Transformer is to TD(0).

use super::comparator::td_weights;
use super::prompts::Transition;
use super::shape::PredecessorShape;
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

/// VD, IWS and SS of values and sensitivities (state by state, ∂v_TF/∂φ_q) against TD(0) on the same context.
pub(super) fn similarities(
    shape: &PredecessorShape,
    (gamma, alpha): (f64, f64),
    context: &[Transition<'_>],
    law: &[f64],
    features: &Matrix,
    values: &[f64],
    sensitivities: &Matrix,
) -> [f64; 3] {
    let td = td_weights(context, gamma, alpha, shape.num_layers);
    let td_values = features.mul_vec(&td);
    let gaps = values.iter().zip(&td_values).map(|(a, b)| (a - b).powi(2));
    let difference = law.iter().zip(gaps).map(|(mu, gap)| mu * gap).sum();
    let nearest = nearest_weights(features, law, values);
    let weights = nearest.map_or(f64::NAN, |w| cosine(&w, &td));
    let sensitivity =
        law.iter().zip(sensitivities.rows()).map(|(mu, by_query)| mu * cosine(by_query, &td)).sum();
    [difference, weights, sensitivity]
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
