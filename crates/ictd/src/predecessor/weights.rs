//! Linear attention with the sparse mask: weights that layers improve.
//!
//! Only the last row of Z changes, and it stays linear: after l layers it is r_j + w_lᵀ x_j with x_j = (φ_j, γφ'_j). With
//! S = (1/n) Σ x_i x_iᵀ, b = (1/n) Σ r_i x_i and P's last row (p, c) a layer is w ← w + Qᵀ g, g = S (p + c w) + c b, and the
//! prediction is -w_L[..d]ᵀ φ_q: of the order of (2d)² operations per layer, however long the context.

use super::products::add_moments;
use super::program::{Feedback, Job, Program};
use super::prompts::symmetric;
use super::readout::{predict, predict_back};
use super::shape::PredecessorShape;
use crate::pretrain::lanes::Machine;

/// The pass, with the vectors of all windows that were asked for last.
#[derive(Clone, Debug)]
pub struct Weights<C> {
    shape: PredecessorShape,
    /// Group by group of lanes, layer by layer: w, p + c w, g.
    vectors: Vec<C>,
    /// Derivatives by w, g and p + c w.
    bars: Vec<C>,
    params_bar: Vec<C>,
}

impl<C: Copy + Default> Weights<C> {
    /// Buffers for a shape.
    pub fn new(shape: &PredecessorShape) -> Self {
        let bars = vec![C::default(); 6 * shape.feature_dim];
        Self { shape: *shape, vectors: Vec::new(), bars, params_bar: vec![C::default(); shape.num_params()] }
    }
}

impl<M: Machine> Program<M> for Weights<M::Cell> {
    #[inline(always)]
    fn num_rows(&self) -> usize {
        self.shape.num_rows()
    }

    #[inline(always)]
    fn forward_of(&mut self, m: M, k: usize, job: Job<'_, M::Element>, out: &mut [M::Element]) {
        let (d, x, depth) = ((k - 1) / 2, k - 1, self.shape.num_layers);
        let zero = m.splat(M::Element::default());
        let per_group = (3 * depth + 1) * x;
        self.vectors.resize(per_group * out.len().div_ceil(M::LANES), M::Cell::default());
        for (group, vectors) in self.vectors.chunks_exact_mut(per_group).enumerate() {
            let t = group * M::LANES;
            vectors[..x].iter_mut().for_each(|cell| m.put(zero, cell));
            for l in 0..depth {
                let (p, q) = self.shape.pair(job.params, self.shape.pair_of(l));
                let (here, next) = vectors[3 * l * x..].split_at_mut(3 * x);
                let (w, rest) = here.split_at_mut(x);
                let (v, g) = rest.split_at_mut(x);
                let row = &p[k * x..];
                let corner = m.splat(row[x]);
                for i in 0..x {
                    m.put(m.fma(corner, m.get(&w[i]), m.splat(row[i])), &mut v[i]);
                    m.put(corner * m.load(job.prompts.moment(symmetric(k, i, x), t)), &mut g[i]);
                }
                add_moments(m, (k, x), job.prompts, t, v, g);
                for i in 0..x {
                    let mut sum = m.get(&w[i]);
                    for j in 0..x {
                        sum = m.fma(m.splat(q[j * k + i]), m.get(&g[j]), sum);
                    }
                    m.put(sum, &mut next[i]);
                }
            }
            predict(m, job, t, &vectors[3 * depth * x..][..d], out);
        }
    }

    #[inline(always)]
    fn backward_of(
        &mut self,
        m: M,
        k: usize,
        job: Job<'_, M::Element>,
        mut feedback: Feedback<'_, M::Element>,
    ) {
        let (d, x, depth) = ((k - 1) / 2, k - 1, self.shape.num_layers);
        let zero = m.splat(M::Element::default());
        let per_group = (3 * depth + 1) * x;
        self.params_bar.iter_mut().for_each(|cell| m.put(zero, cell));
        let (w_bar, rest) = self.bars.split_at_mut(x);
        let (g_bar, v_bar) = rest.split_at_mut(x);
        for group in 0..feedback.out_bar.len().div_ceil(M::LANES) {
            let t = group * M::LANES;
            let vectors = &self.vectors[group * per_group..(group + 1) * per_group];
            w_bar.iter_mut().for_each(|cell| m.put(zero, cell));
            predict_back(m, job, t, &vectors[3 * depth * x..][..d], &mut feedback, &mut w_bar[..d]);
            for l in (0..depth).rev() {
                let pair = self.shape.pair_of(l);
                let (p, q) = self.shape.pair(job.params, pair);
                let (p_bar, q_bar) = self.shape.pair_mut(&mut self.params_bar, pair);
                let here = &vectors[3 * l * x..3 * (l + 1) * x];
                let (w, g) = (&here[..x], &here[2 * x..]);
                let (corner, row_bar) = (m.splat(p[k * k - 1]), &mut p_bar[k * x..]);
                let mut corner_bar = m.get(&row_bar[x]);
                for i in 0..x {
                    let g = m.get(&g[i]);
                    let mut sum = zero;
                    for j in 0..x {
                        let w_bar = m.get(&w_bar[j]);
                        sum = m.fma(m.splat(q[i * k + j]), w_bar, sum);
                        let cell = &mut q_bar[i * k + j];
                        m.put(m.fma(g, w_bar, m.get(cell)), cell);
                    }
                    corner_bar = m.fma(sum, m.load(job.prompts.moment(symmetric(k, i, x), t)), corner_bar);
                    m.put(sum, &mut g_bar[i]);
                    m.put(zero, &mut v_bar[i]);
                }
                add_moments(m, (k, x), job.prompts, t, g_bar, v_bar);
                for i in 0..x {
                    let v_bar = m.get(&v_bar[i]);
                    corner_bar = m.fma(v_bar, m.get(&w[i]), corner_bar);
                    m.put(m.get(&row_bar[i]) + v_bar, &mut row_bar[i]);
                    m.put(m.fma(corner, v_bar, m.get(&w_bar[i])), &mut w_bar[i]);
                }
                m.put(corner_bar, &mut row_bar[x]);
            }
        }
        feedback.gradient.iter_mut().zip(&self.params_bar).for_each(|(g, cell)| *g += m.sum(cell));
    }
}
