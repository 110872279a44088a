//! The general forward and reverse pass on lanes of contexts.
//!
//! Any (V, A), shared or per layer, both constructions, diagonal mixing: every layer computes its own
//! attention from the whole token matrix, and the reverse pass goes back through all of it. With
//! [`Plain`](super::lanes::Plain) numbers this is the reference in double precision; with
//! [`Wide`](super::lanes::Wide) ones it trains the cases that [`band`](super::band) does not cover.

mod backward;
mod forward;

use super::engine::{Hyper, Job, Program, ScoreOutOfRange};
use super::lanes::{Element, Machine, WIDTH};
use super::params::ParamsView;
use super::shape::{Mask, Shape};
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

/// A shape of the paper's mask relaxation with its sizes as constants, whatever its columns are: the compiler then
/// unrolls every loop over rows, and over `sources` where that is a constant. `None` for other shapes.
#[inline(always)]
fn paper_relaxed(shape: Shape, sources: usize) -> Option<Shape> {
    let constant = Shape {
        feature_dim: 4,
        context_len: sources,
        num_layers: 3,
        tied: true,
        columns: shape.columns,
        block: Block::TemporalShift,
        mask: Mask::Relaxed,
    };
    (shape == constant).then_some(constant)
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
    /// Z: rows × columns.
    fn tokens(&self) -> usize {
        0
    }
    /// A Z: rows × columns.
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
    ) -> Result<(), ScoreOutOfRange> {
        forward::forward(m, self, job, out);
        Ok(())
    }

    #[inline(always)]
    fn backward<M: Machine<Element = E, Cell = C>>(
        &mut self,
        m: M,
        hyper: Hyper,
        params: ParamsView<'_, E>,
        out_bar: &[E],
        gradient: &mut [f64],
    ) {
        backward::backward(m, self, hyper, params, out_bar, gradient);
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

/// Random problems for the tests of both passes.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::pretrain::shape::Columns;
    use crate::random::{Purpose, Stream};

    /// No mixing, and mixing with every treatment of the query.
    pub const MIXINGS: [(f64, QueryMix); 4] =
        [(0.0, QueryMix::Mixed), (0.7, QueryMix::Mixed), (0.7, QueryMix::Scaled), (0.7, QueryMix::Unmixed)];

    /// Every choice of columns.
    pub fn all_columns() -> impl Iterator<Item = Columns> + Clone {
        (0..8).map(|k| Columns {
            last_state: k & 1 == 0,
            separate_query: k & 2 != 0,
            last_reward_hidden: k & 4 != 0,
        })
    }

    /// Random windows, parameters within the mask, and weights of the windows in the loss.
    pub fn problem(
        shape: &Shape,
        num: usize,
    ) -> (Vec<Vec<f64>>, Vec<f64>, Vec<Vec<f64>>, Vec<f64>, Vec<f64>) {
        let mut stream = Stream::new(11, Purpose::Prompt, 0);
        let positions = num + shape.context_len + 1;
        let mut rows = |count: usize| -> Vec<Vec<f64>> {
            (0..count).map(|_| stream.uniform_vec(shape.feature_dim, -1.0, 1.0)).collect()
        };
        let (features, queries) = (rows(positions), rows(num));
        let rewards = stream.uniform_vec(positions, -1.0, 1.0);
        let trained = shape.trained();
        let params = trained.iter().map(|&t| if t { stream.uniform_in(-0.8, 0.8) } else { 0.0 }).collect();
        (features, rewards, queries, params, stream.uniform_vec(num, -1.0, 1.0))
    }

    pub fn windows<E: Element>(
        shape: &Shape,
        features: &[Vec<f64>],
        rewards: &[f64],
        queries: &[Vec<f64>],
    ) -> Windows<E> {
        let mut windows = Windows::default();
        let positions = features.iter().map(Vec::as_slice).zip(rewards.iter().copied()).collect::<Vec<_>>();
        windows.fill(shape.feature_dim, positions.into_iter(), queries.iter().map(Vec::as_slice));
        windows
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{MIXINGS, all_columns, problem, windows};
    use super::*;
    use crate::context::{Context, End};
    use crate::kernel::{Attention, KernelName};
    use crate::pretrain::shape::Mask;
    use crate::transformer::Block;
    use crate::transformer::{AttentionParams, Parameters, TransformerConfig};

    const HYPER: Hyper =
        Hyper { gamma: 0.9, temperature: 1.2, diagonal_mix: 0.0, query_mix: QueryMix::Mixed };

    fn shapes() -> impl Iterator<Item = Shape> {
        let base = |mask, block, tied, columns| Shape {
            feature_dim: 3,
            context_len: 5,
            num_layers: 3,
            tied,
            columns,
            block,
            mask,
        };
        Mask::ALL.into_iter().flat_map(move |mask| {
            Block::ALL.into_iter().flat_map(move |block| {
                [true, false]
                    .into_iter()
                    .flat_map(move |tied| all_columns().map(move |columns| base(mask, block, tied, columns)))
            })
        })
    }

    /// The pass predicts what the Transformer outputs, whose contexts have the paper's columns; the others are in
    /// the golden values of `tests/golden_values.rs`.
    #[test]
    fn predictions_are_those_of_the_transformer() {
        for shape in shapes().filter(|s| s.columns.last_state && !s.columns.last_reward_hidden) {
            for rho in [0.0, 0.4] {
                let hyper = Hyper { diagonal_mix: rho, ..HYPER };
                let (features, rewards, queries, params, _) = problem(&shape, 4);
                let mut out = vec![0.0; 4];
                let w = windows(&shape, &features, &rewards, &queries);
                GeneralPlain::new(shape).forward(hyper, &params, &w, 0, &mut out);
                let pairs = (0..shape.num_pairs()).map(|l| {
                    let (v, a) = shape.matrices(&params, l);
                    AttentionParams::new(v, a).unwrap()
                });
                let transformer = TransformerConfig {
                    block: shape.block,
                    attention: Attention::new(KernelName::Softmax.at(1.2).unwrap(), rho).unwrap(),
                    parameters: Parameters::PerLayer(pairs.collect()),
                    num_layers: 3,
                    gamma: 0.9,
                    step_sizes: vec![1.0],
                };
                let transformer = transformer.check().unwrap();
                for t in 0..4 {
                    let mut context =
                        Context::builder().episode(&features[t..t + 6], &rewards[t..t + 5], End::Truncated);
                    if shape.columns.separate_query {
                        context = context.query(&queries[t]);
                    }
                    let context = context.build().unwrap();
                    let expected = transformer.values(&context).unwrap().output();
                    // Three layers on numbers of order 1.
                    assert!((out[t] - expected).abs() < 1e-13, "{shape:?}: {} {expected}", out[t]);
                }
            }
        }
    }

    /// Central differences with step 1e-5: truncation about 1e-10 of third derivatives of order 10,
    /// rounding about 1e-11; 1e-7 of the largest gradient is the bound the software promises.
    #[test]
    fn gradients_are_finite_differences_for_every_mask_block_tying_and_rho() {
        for shape in shapes() {
            for (rho, query_mix) in MIXINGS {
                let hyper = Hyper { diagonal_mix: rho, query_mix, ..HYPER };
                let (features, rewards, queries, params, bar) = problem(&shape, 3);
                let w = windows(&shape, &features, &rewards, &queries);
                let mut pass = GeneralPlain::new(shape);
                let mut loss = |params: &[f64]| -> f64 {
                    let mut out = vec![0.0; 3];
                    pass.forward(hyper, params, &w, 0, &mut out);
                    out.iter().zip(&bar).map(|(o, b)| o * b).sum()
                };
                let trained = shape.trained();
                let differences: Vec<f64> = (0..params.len())
                    .map(|k| {
                        let mut moved = params.clone();
                        moved[k] += 1e-5;
                        let up = loss(&moved);
                        moved[k] = params[k] - 1e-5;
                        (up - loss(&moved)) / 2e-5
                    })
                    .collect();
                loss(&params);
                let mut gradient = vec![0.0; params.len()];
                pass.backward(hyper, &params, &bar, &mut gradient);
                let largest = differences.iter().fold(0f64, |m, g| m.max(g.abs()));
                assert!(largest > 1e-3);
                for k in (0..params.len()).filter(|&k| trained[k]) {
                    let gap = (gradient[k] - differences[k]).abs();
                    assert!(
                        gap <= 1e-7 * largest,
                        "{shape:?} rho {rho} parameter {k}: {} {}",
                        gradient[k],
                        differences[k]
                    );
                }
            }
        }
    }

    /// V's row d+1 has no influence: its gradient is exactly 0.
    #[test]
    fn target_row_of_the_value_matrix_has_zero_gradient() {
        for shape in shapes() {
            let (features, rewards, queries, params, bar) = problem(&shape, 3);
            let w = windows(&shape, &features, &rewards, &queries);
            let mut pass = GeneralPlain::new(shape);
            pass.forward(HYPER, &params, &w, 0, &mut [0.0; 3]);
            let mut gradient = vec![0.0; params.len()];
            pass.backward(HYPER, &params, &bar, &mut gradient);
            let row = (shape.feature_dim + 1) * shape.num_rows();
            assert!(gradient[row..row + shape.num_rows()].iter().all(|&g| g == 0.0));
        }
    }

    /// Sixteen single-precision lanes against one double: forward and gradient, with a last block that
    /// is not full.
    #[test]
    fn wide_agrees_with_plain() {
        for shape in shapes() {
            let (features, rewards, queries, params, bar) = problem(&shape, 37);
            let single = |x: &[f64]| x.iter().map(|&v| v as f32).collect::<Vec<f32>>();
            // The same rounded inputs for both, so that only the arithmetic differs.
            let rounded: Vec<f64> = params.iter().map(|&v| f64::from(v as f32)).collect();
            let round_rows = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
                rows.iter().map(|r| r.iter().map(|&v| f64::from(v as f32)).collect()).collect()
            };
            let (features, queries) = (round_rows(&features), round_rows(&queries));
            let w64 = windows::<f64>(&shape, &features, &rewards, &queries);
            let w32 = windows::<f32>(&shape, &features, &rewards, &queries);
            let (mut plain, mut wide) = (GeneralPlain::new(shape), GeneralWide::new(shape));
            let (mut out64, mut out32) = (vec![0.0; 37], vec![0f32; 37]);
            plain.forward(HYPER, &rounded, &w64, 0, &mut out64);
            let level = Level::new();
            wide.forward(level, HYPER, &single(&params), &w32, 0, &mut out32);
            for (a, b) in out64.iter().zip(&out32) {
                // A few hundred single-precision roundings of numbers of order 1.
                assert!((a - f64::from(*b)).abs() < 2e-5 * (1.0 + a.abs()), "{shape:?}: {a} {b}");
            }
            let (mut g64, mut g32) = (vec![0.0; params.len()], vec![0.0; params.len()]);
            plain.backward(HYPER, &rounded, &bar, &mut g64);
            wide.backward(level, HYPER, &single(&params), &single(&bar), &mut g32);
            let largest = g64.iter().fold(0f64, |m, g| m.max(g.abs()));
            for (a, b) in g64.iter().zip(&g32) {
                assert!((a - b).abs() < 1e-4 * largest, "{shape:?}: {a} {b}");
            }
        }
    }
}
