//! The general forward and reverse pass on lanes of contexts.
//!
//! Any (V, A), shared or per layer, both constructions, diagonal mixing: every layer computes its own
//! attention from the whole token matrix, and the reverse pass goes back through all of it. With
//! [`Plain`](super::lanes::Plain) numbers this is the reference in double precision; with
//! [`Wide`](super::lanes::Wide) ones it trains the cases that [`band`](super::band) does not cover.

mod backward;
mod forward;

use super::engine::{Applies, Feedback, Job, Program};
use super::lanes::{Element, Machine, WIDTH, apart};
use super::shape::{Columns, Mask, Shape};
use super::weighing::Weighing;
use crate::transformer::Block;

/// Buffers of the general pass; `C` is a cell of the machine that runs it.
#[derive(Clone, Debug)]
pub struct General<C> {
    shape: Shape,
    kernel: Weighing,
    tape: Vec<C>,
    scratch: Vec<C>,
    gradient: Vec<C>,
}

/// Runs a program. The sizes of the paper's mask relaxation are constants to it, whatever the columns are, and the number
/// of sources where it is the paper's: the compiler then unrolls every loop over them.
#[inline(always)]
fn sized<M: Machine, R>(m: M, shape: Shape, program: impl FnOnce(Shape) -> R) -> R {
    let (columns, sources) = (shape.columns, shape.context_len);
    // A condition of its own, so that nothing within is compiled where it is false.
    if M::UNROLLED {
        if shape == paper_relaxed(columns, 10) {
            return apart!(m, program(paper_relaxed(columns, 10)));
        }
        if shape == paper_relaxed(columns, sources) {
            return apart!(m, program(paper_relaxed(columns, sources)));
        }
    }
    apart!(m, program(shape))
}

/// A shape of the paper's mask relaxation.
#[inline(always)]
fn paper_relaxed(columns: Columns, context_len: usize) -> Shape {
    let (block, mask) = (Block::TemporalShift, Mask::Relaxed);
    Shape { feature_dim: 4, context_len, num_layers: 3, tied: true, columns, block, mask }
}

/// Where a layer's intermediate results lie on the tape, in cells.
#[derive(Clone, Copy)]
struct Layout {
    /// Token rows and columns.
    rows: usize,
    columns: usize,
    sources: usize,
    /// Whether slopes have room of their own; otherwise they are the weights.
    has_slopes: bool,
    /// Whether scores are distances, and tokens have terms of their own in them.
    distances: bool,
}

impl Layout {
    #[inline(always)]
    fn of(shape: &Shape, kernel: &Weighing) -> Self {
        Self {
            rows: shape.num_rows(),
            columns: shape.num_columns(),
            sources: shape.context_len,
            has_slopes: !kernel.slope_is_weight(),
            distances: kernel.sees_distances(),
        }
    }
    /// A Z: rows × columns, after Z, which has as many.
    fn keys(&self) -> usize {
        self.rows * self.columns
    }
    /// K before mixing: columns × sources, a column's weights together.
    fn weights(&self) -> usize {
        2 * self.rows * self.columns
    }
    /// Slopes of the weights over their divisor, as the weights.
    fn slopes(&self) -> usize {
        self.weights() + self.columns * self.sources
    }
    /// V Z: rows × sources.
    fn messages(&self) -> usize {
        self.slopes() + if self.has_slopes { self.columns * self.sources } else { 0 }
    }
    /// o of every column, where scores are distances.
    fn own(&self) -> usize {
        self.messages() + self.rows * self.sources
    }
    fn layer(&self) -> usize {
        self.own() + if self.distances { self.columns } else { 0 }
    }
}

impl<C: Copy + Default> General<C> {
    /// Buffers for a shape and kernel.
    pub fn new(shape: Shape, kernel: Weighing) -> Self {
        Self { shape, kernel, tape: Vec::new(), scratch: Vec::new(), gradient: Vec::new() }
    }
}

impl<C> General<C> {
    /// Its kernel.
    pub fn kernel(&self) -> &Weighing {
        &self.kernel
    }

    /// The bytes of its own buffers; see [`bytes`](Self::bytes).
    pub fn bytes_of(&self, num_windows: usize) -> f64 {
        Self::bytes(&self.shape, &self.kernel, num_windows)
    }

    /// The bytes of all buffers after a forward and a reverse pass over this many windows.
    pub fn bytes(shape: &Shape, kernel: &Weighing, num_windows: usize) -> f64 {
        let layer = Layout::of(shape, kernel).layer() as f64;
        let blocks = num_windows.div_ceil(WIDTH) as f64;
        let cells = (blocks * shape.num_layers as f64 + 2.0) * layer + shape.num_params() as f64;
        cells * size_of::<C>() as f64
    }
}

impl<E: Element, C: Copy + Default> Program<E, C> for General<C> {
    /// Takes any score.
    #[inline(always)]
    fn forward<M: Machine<Element = E, Cell = C>>(
        &mut self,
        m: M,
        job: Job<'_, E>,
        out: &mut [E],
    ) -> Applies {
        sized(
            m,
            self.shape,
            #[inline(always)]
            |shape| forward::forward(m, shape, self, job, out),
        );
        Ok(())
    }

    #[inline(always)]
    fn backward<M: Machine<Element = E, Cell = C>>(&mut self, m: M, feedback: Feedback<'_, E>) {
        sized(
            m,
            self.shape,
            #[inline(always)]
            |shape| backward::backward(m, shape, self, feedback),
        );
    }

    #[inline(always)]
    fn diagonal<M: Machine<Element = E, Cell = C>>(&self, m: M, num: usize) -> (f64, f64) {
        let layout = Layout::of(&self.shape, &self.kernel);
        let per_block = self.shape.num_layers * layout.layer();
        let mut lanes = [E::default(); WIDTH];
        let (mut sum, mut smallest) = (0.0, f64::INFINITY);
        for (block, tape) in self.tape.chunks_exact(per_block).take(num.div_ceil(M::LANES)).enumerate() {
            let counted = (num - block * M::LANES).min(M::LANES);
            for j in 0..layout.sources {
                m.store(m.get(&tape[layout.weights() + j * layout.sources + j]), &mut lanes);
                for x in lanes[..counted].iter().map(|x| x.get()) {
                    sum += x;
                    smallest = smallest.min(x);
                }
            }
        }
        (sum, smallest)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::config::PretrainConfig;
    use super::super::engine::Hyper;
    use super::super::level::SimdLevel;
    use super::super::testing::{HYPER, KERNELS, Problem, all_columns, general};
    use super::*;
    use crate::kernel::{Kernel, Similarity};

    fn shapes() -> impl Iterator<Item = Shape> {
        let base = Shape { feature_dim: 3, context_len: 5, ..PretrainConfig::paper().shape() };
        let kinds = Mask::ALL.into_iter().flat_map(|mask| Block::ALL.map(|block| (mask, block)));
        let kinds = kinds.flat_map(|kind| [true, false].map(|tied| (kind, tied)));
        kinds.flat_map(move |((mask, block), tied)| {
            all_columns().map(move |columns| Shape { mask, block, tied, columns, ..base })
        })
    }

    #[test]
    fn the_adjoint_identity_holds() {
        for (shape, name) in shapes().flat_map(|shape| KERNELS.map(|name| (shape, name))) {
            let (kernel, problem) = (Weighing::named(name).unwrap(), Problem::new(&shape, 3));
            problem.assert_adjoint(|| general(&shape, &kernel));
        }
    }

    /// The built-in kernels through their trait, one lane at a time: the same numbers by another way.
    #[test]
    fn kernels_of_one_s_own_are_the_built_in_ones() {
        for (shape, kernel) in shapes().flat_map(|shape| KERNELS.map(|kernel| (shape, kernel))) {
            let problem = Problem::new(&shape, 3);
            // A kernel of one's own has its temperature in itself.
            let own = Weighing::own(kernel.at(1.2).unwrap()).unwrap();
            let cold = Hyper { temperature: 1.0, ..HYPER };
            let a = problem.gradient(&mut general(&shape, &own), cold, &problem.bar).unwrap();
            let named = Weighing::named(kernel).unwrap();
            let b = problem.gradient(&mut general(&shape, &named), HYPER, &problem.bar).unwrap();
            problem.assert_gradients_agree(&a, &b, 1e-12);
        }
    }

    /// Softplus log(1 + exp(-d²)) of distances: its slopes are no multiples of its weights, so that what comes back through
    /// the terms of columns does not add up to 0.
    #[derive(Debug)]
    struct Near;

    impl Kernel for Near {
        fn similarity(&self) -> Similarity {
            Similarity::SquaredDistance
        }
        fn weigh(&self, column: &mut [f64]) {
            column.iter_mut().for_each(|d2| *d2 = (-*d2).max(0.0) + (-d2.abs()).exp().ln_1p());
        }
        fn slope(&self, similarity: f64, _: f64) -> Option<f64> {
            Some(-1.0 / (1.0 + similarity.exp()))
        }
    }

    #[test]
    fn the_adjoint_identity_holds_for_distances_of_one_s_own() {
        let kernel = Weighing::own(Arc::new(Near)).unwrap();
        let cold = Hyper { temperature: 1.0, ..HYPER };
        for shape in shapes() {
            Problem::new(&shape, 3).assert_adjoint_at(&[cold], || general(&shape, &kernel));
        }
    }

    /// Sixteen single-precision lanes against one double: forward and gradient, with a last block that
    /// is not full.
    #[test]
    fn wide_agrees_with_the_reference() {
        for (turn, shape) in shapes().enumerate() {
            // The same rounded inputs for both, so that only the arithmetic differs.
            let problem = Problem::new(&shape, 37).rounded();
            let kernel = Weighing::named(KERNELS[turn % KERNELS.len()]).unwrap();
            let (mut wide, mut reference) = (general(&shape, &kernel), general(&shape, &kernel));
            problem.assert_wide_agrees(&mut wide, &mut reference, HYPER, SimdLevel::Best, 37);
        }
    }
}
