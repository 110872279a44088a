//! The fast forward and reverse pass for linear attention on features, in O(n) per layer.
//!
//! With scores x_iᵀB x_j that are weights as they are, attention factors through d numbers: with
//! q_i = c_i + p_t·γ·v_{i+1} + p_v·v_i on sources, as in [`band`](super::band), a layer is
//!
//! - h = Σ_i q_i x_i, what all sources send,
//! - s_j = ⟨g, x_j⟩ on columns, where g = Bᵀh/(nτ),
//! - v_j += (1-ρ)·s_j + ρ·q_j, with a rule of its own for the query's column,
//!
//! which takes 2n·d products instead of n², and keeps h of every layer instead of all weights. The numbers are those of the
//! other passes up to the order of sums.

mod backward;
mod forward;

use super::engine::{Applies, Feedback, Job, Program};
use super::lanes::{Element, Machine, WIDTH, apart, sum_and_smallest};
use super::layers::Sizes;
use super::shape::{Mask, Shape};
use super::weighing::{BuiltIn, Weighing};

/// Buffers of the pass; `E` is an element, `C` a cell of the machine that runs it.
#[derive(Clone, Debug)]
pub struct Factored<E, C> {
    shape: Shape,
    /// Length of an array over positions.
    stride: usize,
    /// Dimension by dimension: x of every position; then the rewards.
    features: Vec<E>,
    /// Pair by pair: c of every position.
    common: Vec<E>,
    /// Pair by pair: B/(nτ), row by row.
    blocks: Vec<E>,
    tape: Vec<C>,
    scratch: Vec<C>,
    accumulators: Vec<C>,
}

/// Sizes, and where a block's intermediate results lie on the tape, in cells.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Layout {
    sizes: Sizes,
}

impl Layout {
    #[inline(always)]
    fn of(shape: &Shape) -> Self {
        Self { sizes: Sizes::of(shape) }
    }
    /// Length of an array over positions: those of all windows in whole blocks.
    fn stride(self, num_windows: usize) -> usize {
        num_windows.next_multiple_of(WIDTH) + self.sizes.n + 1
    }
    /// How far a block of windows reaches in the features and rewards, from its first window on.
    #[inline(always)]
    fn span<M: Machine>(self, stride: usize) -> usize {
        self.sizes.d * stride + self.sizes.n + M::LANES
    }
    /// How far a block of windows reaches in c, from its first window on.
    #[inline(always)]
    fn common_span<M: Machine>(self, stride: usize) -> usize {
        (self.sizes.pairs() - 1) * stride + self.sizes.n + M::LANES
    }
    const PAPER: Layout = Layout { sizes: Sizes::PAPER };
    /// The stride of the paper's minibatches, 64 windows and one for the last target.
    const PAPER_STRIDE: usize = 91;
    /// Runs a program; the paper's sizes are constants to it.
    #[inline(always)]
    fn sized<M: Machine, R>(self, m: M, stride: usize, program: impl FnOnce(Layout, usize) -> R) -> R {
        if M::UNROLLED && (self, stride) == (Self::PAPER, Self::PAPER_STRIDE) {
            return apart!(m, program(Self::PAPER, Self::PAPER_STRIDE));
        }
        apart!(m, program(self, stride))
    }
    /// x of a separate query.
    const QUERY_FEATURES: usize = 0;
    /// h of layer l.
    #[inline(always)]
    fn pooled(self, layer: usize) -> usize {
        self.sizes.d + layer * self.sizes.d
    }
    /// v_j before layer l.
    #[inline(always)]
    fn values(self, layer: usize) -> usize {
        self.pooled(self.sizes.layers) + layer * self.sizes.num_columns()
    }
    #[inline(always)]
    fn block(self) -> usize {
        self.values(self.sizes.layers)
    }
    /// In scratch: q_i of the layer at hand, the derivative by it in the reverse pass.
    const MESSAGES: usize = 0;
    /// In scratch: g of the layer at hand, the derivative by it in the reverse pass.
    #[inline(always)]
    fn spread(self) -> usize {
        self.sizes.n
    }
    /// In scratch: the derivatives by h.
    #[inline(always)]
    fn pooled_bar(self) -> usize {
        self.spread() + self.sizes.d
    }
    /// In scratch: the derivatives by c, summed over the layers of a pair.
    #[inline(always)]
    fn common_bar(self) -> usize {
        self.pooled_bar() + self.sizes.d
    }
    /// In scratch: the derivatives by v_j.
    #[inline(always)]
    fn values_bar(self) -> usize {
        self.common_bar() + self.sizes.n
    }
    #[inline(always)]
    fn scratch(self) -> usize {
        self.values_bar() + self.sizes.num_columns()
    }
}

impl<E: Element, C: Copy + Default> Factored<E, C> {
    /// Buffers for a shape and kernel, where attention factors: for the linear kernel, if scores depend on features alone.
    pub fn new(shape: Shape, kernel: &Weighing) -> Option<Self> {
        let factors = matches!(kernel, Weighing::BuiltIn(BuiltIn::Linear))
            && matches!(shape.mask, Mask::Full | Mask::Looped);
        factors.then(|| Self {
            shape,
            stride: 0,
            features: Vec::new(),
            common: Vec::new(),
            blocks: Vec::new(),
            tape: Vec::new(),
            scratch: Vec::new(),
            accumulators: Vec::new(),
        })
    }
}

impl<E, C> Factored<E, C> {
    /// The bytes of its own buffers; see [`bytes`](Self::bytes).
    pub fn bytes_of(&self, num_windows: usize) -> f64 {
        Self::bytes(&self.shape, num_windows)
    }

    /// The bytes of all buffers after a forward and a reverse pass over this many windows.
    pub fn bytes(shape: &Shape, num_windows: usize) -> f64 {
        let layout = Layout::of(shape);
        let (pairs, d) = (layout.sizes.pairs() as f64, layout.sizes.d as f64);
        let elements = (d + 1.0 + pairs) * layout.stride(num_windows) as f64 + pairs * d * d;
        let tape = num_windows.div_ceil(WIDTH) as f64 * layout.block() as f64;
        let cells = tape + layout.scratch() as f64 + pairs * layout.sizes.accumulators() as f64;
        elements * size_of::<E>() as f64 + cells * size_of::<C>() as f64
    }
}

impl<E: Element, C: Copy + Default> Program<E, C> for Factored<E, C> {
    #[inline(always)]
    fn forward<M: Machine<Element = E, Cell = C>>(
        &mut self,
        m: M,
        job: Job<'_, E>,
        out: &mut [E],
    ) -> Applies {
        let layout = Layout::of(&self.shape);
        layout.sized(
            m,
            layout.stride(out.len()),
            #[inline(always)]
            |layout, stride| forward::forward(m, layout, stride, self, job, out),
        )
    }

    #[inline(always)]
    fn backward<M: Machine<Element = E, Cell = C>>(&mut self, m: M, feedback: Feedback<'_, E>) {
        Layout::of(&self.shape).sized(
            m,
            self.stride,
            #[inline(always)]
            |layout, stride| backward::backward(m, layout, stride, self, feedback),
        );
    }

    #[inline(always)]
    fn diagonal<M: Machine<Element = E, Cell = C>>(&self, m: M, num: usize) -> (f64, f64) {
        let Sizes { d, n, .. } = Sizes::of(&self.shape);
        let mut found = (0.0, f64::INFINITY);
        for t in (0..num).step_by(M::LANES) {
            let mut totals = m.splat(E::default());
            let mut minima = m.splat(E::of(f64::INFINITY));
            for j in 0..n {
                let mut weight = m.splat(E::default());
                for (k, entry) in self.blocks[..d * d].iter().enumerate() {
                    let [left, right] =
                        [k / d, k % d].map(|a| m.load(&self.features[a * self.stride + t + j..]));
                    weight = m.fma(m.splat(*entry) * left, right, weight);
                }
                totals = totals + weight;
                minima = m.min(minima, weight);
            }
            found = sum_and_smallest(m, num - t, [totals, minima], found);
        }
        found
    }
}

/// W numbers Σ_i weight(i)·x_i, x being as many rows that lie a stride apart.
#[inline(always)]
fn pool<M: Machine, const W: usize>(
    m: M,
    weights: &[M::Cell],
    x: &[M::Element],
    stride: usize,
) -> [M::Number; W] {
    let mut sums = [m.splat(M::Element::default()); W];
    for (i, weight) in weights.iter().enumerate() {
        let weight = m.get(weight);
        for w in 0..W {
            sums[w] = m.fma(weight, m.load(&x[w * stride + i..]), sums[w]);
        }
    }
    sums
}

/// Adds ⟨g, x_j⟩ to the cell of every column j, x being as many rows as g has numbers, a stride apart.
#[inline(always)]
fn spread<M: Machine, const W: usize>(
    m: M,
    g: &[M::Cell],
    x: &[M::Element],
    stride: usize,
    cells: &mut [M::Cell],
) {
    let g: [M::Number; W] = std::array::from_fn(
        #[inline(always)]
        |w| m.get(&g[w]),
    );
    for (j, cell) in cells.iter_mut().enumerate() {
        let mut sum = m.get(cell);
        for w in 0..W {
            sum = m.fma(g[w], m.load(&x[w * stride + j..]), sum);
        }
        m.put(sum, cell);
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::{Hyper, Pass};
    use super::super::level::SimdLevel;
    use super::super::reading::QueryMix;
    use super::super::testing::{HYPER, MIXINGS, Problem, factored, feature_shapes, general};
    use super::*;

    const LINEAR: Weighing = Weighing::BuiltIn(BuiltIn::Linear);

    /// Tied and per layer, all columns and mixings.
    #[test]
    fn the_factored_pass_equals_the_general_pass() {
        for shape in feature_shapes() {
            let problem = Problem::new(&shape, 7);
            for (rho, query_mix) in MIXINGS {
                let hyper = Hyper { diagonal_mix: rho, query_mix, ..HYPER };
                problem.assert_equals_general(factored(&shape), &LINEAR, hyper);
            }
        }
    }

    #[test]
    fn the_adjoint_identity_holds() {
        for shape in feature_shapes() {
            Problem::new(&shape, 7).assert_adjoint(|| factored(&shape));
        }
    }

    #[test]
    fn the_wide_pass_agrees_with_the_reference() {
        let hyper = Hyper { diagonal_mix: 0.3, query_mix: QueryMix::Unmixed, ..HYPER };
        for shape in feature_shapes() {
            let (mut wide, mut reference) = (factored(&shape), general(&shape, &LINEAR));
            let problem = Problem::new(&shape, 65).rounded();
            problem.assert_wide_agrees(&mut wide, &mut reference, hyper, SimdLevel::Best, 64);
        }
    }

    /// Counted beforehand, and allocated by a forward and a reverse pass.
    #[test]
    fn memory_is_what_is_counted() {
        for shape in feature_shapes() {
            let problem = Problem::new(&shape, 65);
            let mut pass = factored(&shape);
            problem.gradient(&mut pass, HYPER, &problem.bar).unwrap();
            let Pass::Factored(buffers) = pass else { unreachable!() };
            let Factored { features, common, blocks, tape, scratch, accumulators, .. } = &buffers;
            let arrays = [features, common, blocks, tape, scratch, accumulators];
            let allocated = 8.0 * arrays.iter().map(|array| array.len()).sum::<usize>() as f64;
            // One lane instead of sixteen: a block per window, and padding.
            let counted = Factored::<f64, f64>::bytes(&shape, WIDTH * 65)
                - 8.0 * (WIDTH - 1) as f64 * 65.0 * (shape.feature_dim + 1 + shape.num_pairs()) as f64;
            let ratio = counted / allocated;
            assert!((0.9..1.2).contains(&ratio), "{shape:?}: {counted} {allocated}");
        }
    }

    #[test]
    fn other_kernels_and_scores_of_memories_do_not_factor() {
        let shape = feature_shapes().next().unwrap();
        let relaxed = Shape { mask: Mask::Relaxed, ..shape };
        assert!(Factored::<f64, f64>::new(relaxed, &LINEAR).is_none());
        assert!(Factored::<f64, f64>::new(shape, &Weighing::BuiltIn(BuiltIn::Relu)).is_none());
    }
}
