//! Linear attention as a straight line of products of small matrices and vectors.
//!
//! With S_0 = (1/n) Σ z_i z_iᵀ over the context a layer maps every column z to T_l z, T_l = I + P_l S_l Q_l, and
//! S_{l+1} = T_l S_l T_lᵀ. The prediction is -e_lastᵀ T_{L-1} ⋯ T_0 z_q: vectors that are multiplied by P, Q, their transposes
//! or S_0 one after the other, where S_{l+1} x = T_l S_l T_lᵀ x is three products with S_l. The number of products grows
//! like 3^L, that of numbers per product like (2d + 1)²; n does not occur. It is fewest for the few layers of the
//! experiments, deeper Transformers go by columns.

use super::products::{add_moments, add_outer, add_product};
use super::program::{Feedback, Job, Program};
use super::readout::{predict, predict_back};
use super::shape::PredecessorShape;
use crate::pretrain::lanes::{Element as _, Machine};

/// What a vector is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Factor {
    /// S_0.
    Moments,
    /// P of a pair, as it is or transposed.
    P(usize, bool),
    /// Q of a pair.
    Q(usize, bool),
}

/// y = F x, or y = z + F x. Results are numbered from 1; 0 is e_last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Product {
    factor: Factor,
    of: usize,
    onto: Option<usize>,
}

/// The products behind e_lastᵀ T_{L-1} ⋯ T_0, the last of which it is.
#[derive(Clone, Debug, Default)]
struct Line {
    products: Vec<Product>,
}

impl Line {
    fn new(shape: &PredecessorShape) -> Self {
        let mut line = Self::default();
        let mut row = 0;
        for layer in (0..shape.num_layers).rev() {
            row = line.step(shape, layer, row, true);
        }
        line
    }

    fn push(&mut self, factor: Factor, of: usize, onto: Option<usize>) -> usize {
        self.products.push(Product { factor, of, onto });
        self.products.len()
    }

    /// T_l x, or T_lᵀ x.
    fn step(&mut self, shape: &PredecessorShape, layer: usize, x: usize, transposed: bool) -> usize {
        let pair = shape.pair_of(layer);
        let (p, q) = (Factor::P(pair, transposed), Factor::Q(pair, transposed));
        let (first, last) = if transposed { (p, q) } else { (q, p) };
        let inner = self.push(first, x, None);
        let moved = self.moments(shape, layer, inner);
        self.push(last, moved, Some(x))
    }

    /// S_l x.
    fn moments(&mut self, shape: &PredecessorShape, layer: usize, x: usize) -> usize {
        if layer == 0 {
            return self.push(Factor::Moments, x, None);
        }
        let inner = self.step(shape, layer - 1, x, true);
        let moved = self.moments(shape, layer - 1, inner);
        self.step(shape, layer - 1, moved, false)
    }
}

/// The deepest Transformer that goes this way: one layer more is three times the products.
pub const DEEPEST: usize = 5;

/// The pass, with the vectors of all windows that were asked for last.
#[derive(Clone, Debug)]
pub struct Straight<C> {
    shape: PredecessorShape,
    line: Line,
    /// Group by group of lanes, vector by vector.
    vectors: Vec<C>,
    /// Derivatives by the vectors of a group.
    bars: Vec<C>,
    /// Derivatives by parameters.
    params_bar: Vec<C>,
}

impl<C: Copy + Default> Straight<C> {
    /// Buffers for a shape, which takes 3^L products.
    pub fn new(shape: &PredecessorShape) -> Self {
        let params_bar = vec![C::default(); shape.num_params()];
        Self { shape: *shape, line: Line::new(shape), vectors: Vec::new(), bars: Vec::new(), params_bar }
    }
}

impl<M: Machine> Program<M> for Straight<M::Cell> {
    #[inline(always)]
    fn num_rows(&self) -> usize {
        self.shape.num_rows()
    }

    #[inline(always)]
    fn forward_of(&mut self, m: M, k: usize, job: Job<'_, M::Element>, out: &mut [M::Element]) {
        let d = (k - 1) / 2;
        let zero = m.splat(M::Element::default());
        let per_group = (self.line.products.len() + 1) * k;
        let groups = out.len().div_ceil(M::LANES);
        self.vectors.resize(per_group * groups, M::Cell::default());
        for (group, vectors) in self.vectors.chunks_exact_mut(per_group).enumerate() {
            let t = group * M::LANES;
            for (i, cell) in vectors[..k].iter_mut().enumerate() {
                m.put(if i + 1 == k { m.splat(M::Element::of(1.0)) } else { zero }, cell);
            }
            for (number, product) in self.line.products.iter().enumerate() {
                let (before, rest) = vectors.split_at_mut((number + 1) * k);
                let y = &mut rest[..k];
                match product.onto {
                    Some(onto) => y.copy_from_slice(&before[onto * k..(onto + 1) * k]),
                    None => y.iter_mut().for_each(|cell| m.put(zero, cell)),
                }
                let x = &before[product.of * k..(product.of + 1) * k];
                match product.factor {
                    Factor::Moments => add_moments(m, (k, k), job.prompts, t, x, y),
                    Factor::P(pair, transposed) => {
                        add_product(m, k, self.shape.pair(job.params, pair).0, transposed, x, y);
                    }
                    Factor::Q(pair, transposed) => {
                        add_product(m, k, self.shape.pair(job.params, pair).1, transposed, x, y);
                    }
                }
            }
            predict(m, job, t, &vectors[per_group - k..][..d], out);
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
        let d = (k - 1) / 2;
        let zero = m.splat(M::Element::default());
        let per_group = (self.line.products.len() + 1) * k;
        self.bars.resize(per_group, M::Cell::default());
        self.params_bar.iter_mut().for_each(|cell| m.put(zero, cell));
        for group in 0..feedback.out_bar.len().div_ceil(M::LANES) {
            let t = group * M::LANES;
            let vectors = &self.vectors[group * per_group..(group + 1) * per_group];
            let bars = &mut self.bars[..];
            bars.iter_mut().for_each(|cell| m.put(zero, cell));
            let row = per_group - k..per_group - k + d;
            predict_back(m, job, t, &vectors[row.clone()], &mut feedback, &mut bars[row]);
            for (number, product) in self.line.products.iter().enumerate().rev() {
                let (before, rest) = bars.split_at_mut((number + 1) * k);
                let y_bar = &rest[..k];
                if let Some(onto) = product.onto {
                    for (cell, y_bar) in before[onto * k..(onto + 1) * k].iter_mut().zip(y_bar) {
                        m.put(m.get(cell) + m.get(y_bar), cell);
                    }
                }
                let x = &vectors[product.of * k..(product.of + 1) * k];
                let x_bar = &mut before[product.of * k..(product.of + 1) * k];
                let (pair, transposed, is_p) = match product.factor {
                    Factor::Moments => {
                        add_moments(m, (k, k), job.prompts, t, y_bar, x_bar);
                        continue;
                    }
                    Factor::P(pair, transposed) => (pair, transposed, true),
                    Factor::Q(pair, transposed) => (pair, transposed, false),
                };
                let (p, q) = self.shape.pair(job.params, pair);
                let (p_bar, q_bar) = self.shape.pair_mut(&mut self.params_bar, pair);
                let (a, a_bar) = if is_p { (p, p_bar) } else { (q, q_bar) };
                add_product(m, k, a, !transposed, y_bar, x_bar);
                let (u, v) = if transposed { (x, y_bar) } else { (y_bar, x) };
                add_outer(m, k, u, v, a_bar);
            }
        }
        feedback.gradient.iter_mut().zip(&self.params_bar).for_each(|(g, cell)| *g += m.sum(cell));
    }
}
