//! TD(0) with one step size for all layers, what trained Transformers are compared with.

use super::program::put_windows;
use super::prompts::{Prompts, Transition, symmetric};
use super::shape::PredecessorShape;
use crate::pretrain::lanes::{Element as _, Machine};

/// Largest feature dimension whose weights are kept on the stack.
const STACK: usize = 16;

/// Predictions of the TD(0) block, P zero but for a 1 in its last corner and Q = α [[-I, I], [0, 0]] in its upper rows, and
/// their derivatives by α: w ← w + (α/n) Σ (r_i + γφ'_iᵀw - φ_iᵀw) φ_i, layer by layer from 0, and both ends of the chain rule beside it.
#[inline(always)]
pub fn values<M: Machine>(
    m: M,
    shape: &PredecessorShape,
    alpha: f64,
    prompts: &Prompts<M::Element>,
    [out, slopes]: [&mut [M::Element]; 2],
) {
    let (k, d) = (shape.num_rows(), shape.feature_dim);
    let (zero, alpha) = (m.splat(M::Element::default()), m.splat(M::Element::of(alpha)));
    let mut small = [[zero; STACK]; 4];
    let mut large = vec![zero; if d > STACK { 4 * d } else { 0 }];
    for t in (0..out.len()).step_by(M::LANES) {
        let [w, w_dot, step, step_dot] = if d > STACK {
            let (a, b) = large.split_at_mut(2 * d);
            let ((a, b), (c, e)) = (a.split_at_mut(d), b.split_at_mut(d));
            [a, b, c, e]
        } else {
            let [a, b, c, e] = &mut small;
            [&mut a[..d], &mut b[..d], &mut c[..d], &mut e[..d]]
        };
        w.fill(zero);
        w_dot.fill(zero);
        for _ in 0..shape.num_layers {
            for i in 0..d {
                let at = |j: usize| m.load(prompts.moment(symmetric(k, i, j), t));
                let (mut sum, mut dot) = (at(2 * d), zero);
                for j in 0..d {
                    // The moments of φ with γφ' - φ.
                    let ahead = at(d + j) - at(j);
                    sum = m.fma(ahead, w[j], sum);
                    dot = m.fma(ahead, w_dot[j], dot);
                }
                step[i] = sum;
                step_dot[i] = m.fma(alpha, dot, sum);
            }
            for i in 0..d {
                w[i] = m.fma(alpha, step[i], w[i]);
                w_dot[i] = w_dot[i] + step_dot[i];
            }
        }
        for (weights, slots) in [(w, &mut *out), (w_dot, &mut *slopes)] {
            let mut value = zero;
            for (a, weight) in weights.iter().enumerate() {
                value = m.fma(*weight, m.load(prompts.query(a, t)), value);
            }
            put_windows(m, value, &mut slots[t..]);
        }
    }
}

/// The weights after `num_layers` steps of TD(0) from 0, each w ← w + (α/n) Σ δ_i φ_i with δ_i = r_i + γφ'_iᵀw - φ_iᵀw; one
/// transition after the other, as the algorithm is written.
pub fn td_weights(context: &[Transition<'_>], gamma: f64, alpha: f64, num_layers: usize) -> Vec<f64> {
    let rate = alpha / context.len() as f64;
    let dot = |x: &[f64], w: &[f64]| x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
    let mut w = vec![0.0; context.first().map_or(0, |t| t.features.len())];
    for _ in 0..num_layers {
        let mut step = vec![0.0; w.len()];
        for Transition { features, successor, reward } in context {
            let delta = reward + gamma * dot(successor, &w) - dot(features, &w);
            step.iter_mut().zip(*features).for_each(|(s, x)| *s += delta * x);
        }
        w.iter_mut().zip(step).for_each(|(w, s)| *w += rate * s);
    }
    w
}
