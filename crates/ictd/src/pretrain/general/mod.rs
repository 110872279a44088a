//! The general forward and reverse pass on lanes of contexts.
//!
//! Any (V, A), shared or per layer, both constructions, diagonal mixing: every layer computes its own
//! attention from the whole token matrix, and the reverse pass goes back through all of it. With
//! [`Plain`](super::lanes::Plain) numbers this is the reference in double precision; with
//! [`Wide`](super::lanes::Wide) ones it trains the cases that [`band`](super::band) does not cover.

mod backward;
mod forward;

use super::engine::{Feedback, InRange, Job, Program};
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

/// Starts and widths of chunks of 4, 2 and 1 that cover `0..len`. Sums over the same terms are taken this many at a time: one alone waits
/// for its own additions. An iterator of its own, because a closure would not be inlined into the code for the CPU at hand.
struct Chunks {
    start: usize,
    len: usize,
}

#[inline(always)]
fn chunks(len: usize) -> Chunks {
    Chunks { start: 0, len }
}

impl Iterator for Chunks {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        let start = self.start;
        let width = match self.len - start {
            0 => return None,
            1 => 1,
            2 | 3 => 2,
            _ => 4,
        };
        self.start += width;
        Some((start, width))
    }
}

/// `by_width!(width, W => code)`: the code with the width of a chunk as the constant `W`.
macro_rules! by_width {
    ($width:expr, $W:ident => $code:expr) => {
        match $width {
            4 => {
                const $W: usize = 4;
                $code
            }
            2 => {
                const $W: usize = 2;
                $code
            }
            _ => {
                const $W: usize = 1;
                $code
            }
        }
    };
}
use by_width;

/// Where a layer's intermediate results lie on the tape, in cells.
#[derive(Clone, Copy)]
struct Layout {
    /// Token rows and columns.
    rows: usize,
    columns: usize,
    sources: usize,
    /// Whether slopes have room of their own; otherwise they are the weights.
    has_slopes: bool,
}

impl Layout {
    #[inline(always)]
    fn of(shape: &Shape, kernel: &Weighing) -> Self {
        Self {
            rows: shape.num_rows(),
            columns: shape.num_columns(),
            sources: shape.context_len,
            has_slopes: !kernel.slope_is_weight(),
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
    fn layer(&self) -> usize {
        self.messages() + self.rows * self.sources
    }
}

impl<C: Copy + Default> General<C> {
    /// Buffers for a shape and kernel.
    pub fn new(shape: Shape, kernel: Weighing) -> Self {
        Self { shape, kernel, tape: Vec::new(), scratch: Vec::new(), gradient: Vec::new() }
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
    ) -> InRange {
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
    use super::super::config::PretrainConfig;
    use super::super::engine::Hyper;
    use super::super::level::SimdLevel;
    use super::super::params::ParamsView;
    use super::super::testing::{HYPER, KERNELS, MIXINGS, Problem, all_columns, general, largest};
    use super::super::weighing::BuiltIn;
    use super::*;
    use crate::context::{Context, End};
    use crate::kernel::Attention;
    use crate::transformer::TransformerConfig;

    fn shapes() -> impl Iterator<Item = Shape> {
        let base = Shape { feature_dim: 3, context_len: 5, ..PretrainConfig::paper().shape() };
        let kinds = Mask::ALL.into_iter().flat_map(|mask| Block::ALL.map(|block| (mask, block)));
        let kinds = kinds.flat_map(|kind| [true, false].map(|tied| (kind, tied)));
        kinds.flat_map(move |((mask, block), tied)| {
            all_columns().map(move |columns| Shape { mask, block, tied, columns, ..base })
        })
    }

    /// The pass predicts what the Transformer outputs, whose contexts have the paper's columns; the others are in
    /// the golden values of `tests/golden_values.rs`.
    #[test]
    fn predictions_are_those_of_the_transformer() {
        for shape in shapes().filter(|s| s.columns.last_state && !s.columns.last_reward_hidden) {
            for (rho, kernel) in [0.0, 0.4].into_iter().flat_map(|rho| KERNELS.map(|kernel| (rho, kernel))) {
                let hyper = Hyper { diagonal_mix: rho, ..HYPER };
                let problem = Problem::new(&shape, 4);
                let mut pass = general(&shape, &Weighing::named(kernel).unwrap());
                let out = problem.forward(&mut pass, hyper).unwrap();
                let transformer = TransformerConfig {
                    block: shape.block,
                    attention: Attention::new(kernel.at(1.2).unwrap(), rho).unwrap(),
                    parameters: ParamsView::new(&shape, &problem.params).parameters().unwrap(),
                    num_layers: 3,
                    gamma: 0.9,
                    step_sizes: vec![1.0],
                };
                let transformer = transformer.check().unwrap();
                for t in 0..4 {
                    let (features, rewards) = (&problem.features[t..t + 6], &problem.rewards[t..t + 5]);
                    let mut context = Context::builder().episode(features, rewards, End::Truncated);
                    if shape.columns.separate_query {
                        context = context.query(&problem.queries[t]);
                    }
                    let context = context.build().unwrap();
                    let expected = transformer.values(&context).unwrap().output();
                    // Three layers on numbers of order 1.
                    assert!((out[t] - expected).abs() < 1e-13, "{shape:?} {kernel}: {} {expected}", out[t]);
                }
            }
        }
    }

    /// Central differences with step 1e-5: truncation about 1e-10 of third derivatives of order 10,
    /// rounding about 1e-11; 1e-7 of the largest gradient is the bound the software promises. Mixings and kernels take
    /// turns over the shapes beyond softmax, so that every pair of them is met.
    #[test]
    fn gradients_are_finite_differences_for_every_kernel_mask_block_tying_and_rho() {
        for (turn, shape) in shapes().enumerate() {
            for (k, (rho, query_mix)) in MIXINGS.into_iter().enumerate() {
                let hyper = Hyper { diagonal_mix: rho, query_mix, ..HYPER };
                for kernel in [KERNELS[0], KERNELS[1 + (turn + k) % 3]] {
                    let (problem, weighing) = (Problem::new(&shape, 3), Weighing::named(kernel).unwrap());
                    let mut pass = general(&shape, &weighing);
                    let gradient = problem.gradient(&mut pass, hyper, &problem.bar).unwrap();
                    let differences = problem.differences(&mut pass, hyper);
                    assert!(largest(&differences) > 1e-3, "{shape:?} {kernel} {rho}");
                    problem.assert_gradients_agree(&gradient, &differences, 1e-7);
                }
            }
        }
    }

    /// V's row d+1 has no influence: its gradient is exactly 0.
    #[test]
    fn target_row_of_the_value_matrix_has_zero_gradient() {
        for shape in shapes() {
            let problem = Problem::new(&shape, 3);
            let mut pass = general(&shape, &Weighing::BuiltIn(BuiltIn::Softmax));
            let gradient = problem.gradient(&mut pass, HYPER, &problem.bar).unwrap();
            let row = shape.value_index(0, shape.feature_dim + 1, 0);
            assert!(gradient[row..row + shape.num_rows()].iter().all(|&g| g == 0.0));
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

    /// Sixteen single-precision lanes against one double: forward and gradient, with a last block that
    /// is not full.
    #[test]
    fn wide_agrees_with_the_reference() {
        for (turn, shape) in shapes().enumerate() {
            // The same rounded inputs for both, so that only the arithmetic differs.
            let problem = Problem::new(&shape, 37).rounded();
            let kernel = Weighing::named(KERNELS[turn % 4]).unwrap();
            let (mut wide, mut reference) = (general(&shape, &kernel), general(&shape, &kernel));
            problem.assert_wide_agrees(&mut wide, &mut reference, HYPER, SimdLevel::Best, 37);
        }
    }
}
