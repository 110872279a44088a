//! The fast forward and reverse pass for feature-only attention.
//!
//! With the full mask scores depend on features alone, which buys three savings over [`general`](super::general):
//!
//! - Attention is the same in every layer that has the same parameters.
//! - Windows overlap: the score of source position p for position p + δ is shared by all windows that
//!   contain both. Scores and weights form a band E\[δ\]\[p\] that is computed once per minibatch and pair (V, A),
//!   and gradients are gathered on the same band before the outer products with features.
//! - Of V only the last row (a, p_r, p_t, p_v) matters, and c(p) = ⟨a, x_p⟩ + p_r·R_p is the same in
//!   every layer of a pair and every window.
//!
//! A layer is then q_i = c_i + p_t·γ·v_{i+1} + p_v·v_i on sources, s_j = Σ_i E_ij q_i / Σ_i E_ij on
//! columns, and v_j += (1-ρ)·s_j + ρ·q_j, with a rule of its own for the query's column. Both constructions of the
//! layer are this recursion: two heads and temporal shift write the same memories (paper, Lemma 1), so dual heads are
//! trained here too. The [`LaneKernel`] says what a weight is, what a column is divided by and how a weight moves with
//! its score. Scores that are distances have terms o of their own for source and column ([`distance`](super::distance)),
//! which are rows over positions too. Exponentials are not shifted by a maximum, because no maximum is shared by all windows: where
//! they are not [in range](super::layers::scores_in_range) the caller must take the general pass.

mod backward;
mod forward;

use super::engine::{Applies, Feedback, Job, Program};
use super::lanes::{Element, Machine, WIDTH, apart, sum_and_smallest};
use super::layers::Sizes;
use super::shape::{Mask, Shape};
use super::weighing::{BuiltIn, Weighing};

/// Numbers kept in registers at a time while they meet a matrix; half of the 32 that AVX-512 has.
const TILE: usize = 16;

/// Buffers of the fast pass; `E` is an element, `C` a cell of the machine that runs it.
#[derive(Clone, Debug)]
pub struct Band<E, C> {
    shape: Shape,
    kernel: BuiltIn,
    /// Length of an array over positions: n of padding, the positions, a block of padding.
    stride: usize,
    /// Dimension by dimension: x of every position; then the rewards.
    features: Vec<E>,
    /// Pair by pair, dimension by dimension: (B x)/τ of every position.
    keys: Vec<E>,
    /// Pair by pair, where scores are distances: o of every position.
    own: Vec<E>,
    /// Pair by pair: c of every position, and the derivative by it.
    common: Vec<E>,
    common_bar: Vec<E>,
    /// Pair by pair, diagonal by diagonal: E of every source position, and the derivative by it.
    band: Vec<E>,
    band_bar: Vec<E>,
    tape: Vec<C>,
    scratch: Vec<C>,
    accumulators: Vec<C>,
}

/// Where a block's intermediate results lie on the tape, in cells.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Layout {
    sizes: Sizes,
}

impl Layout {
    #[inline(always)]
    fn of(shape: &Shape) -> Self {
        Self { sizes: Sizes::of(shape) }
    }
    /// The layers of a pair in which a column reaches the prediction: of the last layer the query's only.
    #[inline(always)]
    fn layers_of(self, pair: usize, column: usize) -> std::ops::Range<usize> {
        let Sizes { layers, tied, .. } = self.sizes;
        let reach = if column == self.sizes.query() { layers } else { layers - 1 };
        if tied { 0..reach } else { pair..reach.min(pair + 1) }
    }
    /// Columns in the band: sources and the last state if it has one. A separate query is outside of it.
    fn band_columns(self) -> usize {
        self.sizes.columns.trajectory(self.sizes.n)
    }
    /// Differences of source and column position, -n..=n-1. Diagonal k holds source p for column p - k + n,
    /// so that the sources of a column lie `stride + 1` apart and the columns of a source `stride`.
    fn diagonals(self) -> usize {
        2 * self.sizes.n
    }
    /// Where the weight of source i for column j lies, from the first window on.
    #[inline(always)]
    fn weight(self, stride: usize, i: usize, j: usize) -> usize {
        (i + self.sizes.n - j) * stride + self.sizes.n + i
    }
    /// Length of a pair's band; one row more, so that the last chunk of every walk is whole.
    #[inline(always)]
    fn band_len(self, stride: usize) -> usize {
        (self.diagonals() + 1) * stride + 1
    }
    /// How far the weights of a block of windows reach in the band, from its first window on.
    #[inline(always)]
    fn span(self, stride: usize) -> usize {
        self.weight(stride, self.sizes.n - 1, 0) + WIDTH
    }
    /// How far a block of positions reaches in the arrays of features and keys, from its first position on.
    #[inline(always)]
    fn row_span(self, stride: usize) -> usize {
        (self.sizes.d - 1) * stride + 2 * self.sizes.n + WIDTH
    }
    /// How far a block of positions reaches in the band, from its first position on.
    #[inline(always)]
    fn band_span(self, stride: usize) -> usize {
        (self.diagonals() - 1) * stride + self.sizes.n + WIDTH
    }
    /// Length of an array over positions: n of padding, the positions in whole blocks, n and a block of
    /// padding.
    fn stride(self, num_windows: usize) -> usize {
        2 * self.sizes.n + (num_windows + self.sizes.n).next_multiple_of(WIDTH) + WIDTH
    }
    const PAPER: Layout = Layout { sizes: Sizes::PAPER };
    /// The stride of the paper's minibatches, 64 windows and one for the last target.
    const PAPER_STRIDE: usize = 116;
    /// Runs a program; the paper's sizes, and its columns if they are all there are, are constants to it.
    #[inline(always)]
    fn sized<M: Machine, R>(self, m: M, stride: usize, program: impl FnOnce(Layout, usize) -> R) -> R {
        // A condition of its own, so that nothing within is compiled where it is false.
        if M::UNROLLED {
            if (self, stride) == (Self::PAPER, Self::PAPER_STRIDE) {
                return apart!(m, program(Self::PAPER, Self::PAPER_STRIDE));
            }
            let sizes = Sizes { columns: self.sizes.columns, ..Sizes::PAPER };
            if (self, stride) == (Layout { sizes }, Self::PAPER_STRIDE) {
                return apart!(m, program(Layout { sizes }, Self::PAPER_STRIDE));
            }
        }
        apart!(m, program(self, stride))
    }
    /// x of the query.
    const QUERY_FEATURES: usize = 0;
    /// E of a separate query's column, source by source.
    fn query(self, pair: usize) -> usize {
        self.sizes.d + pair * self.sizes.n
    }
    /// 1/Σ_i E_ij of every column.
    fn shares(self, pair: usize) -> usize {
        self.query(self.sizes.pairs()) + pair * self.sizes.num_columns()
    }
    /// v_j before layer l.
    fn values(self, layer: usize) -> usize {
        self.shares(self.sizes.pairs()) + layer * self.sizes.num_columns()
    }
    /// s_j in layer l.
    fn sums(self, layer: usize) -> usize {
        self.values(self.sizes.layers) + layer * self.sizes.num_columns()
    }
    /// q_i in layer l.
    fn messages(self, layer: usize) -> usize {
        self.sums(self.sizes.layers) + layer * self.sizes.n
    }
    fn block(self) -> usize {
        self.messages(self.sizes.layers)
    }
}

impl<E: Element, C: Copy + Default> Band<E, C> {
    /// Buffers for a shape and kernel, where the band applies: to built-in kernels, if scores depend on features alone.
    pub fn new(shape: Shape, kernel: &Weighing) -> Option<Self> {
        let Weighing::BuiltIn(kernel) = *kernel else { return None };
        matches!(shape.mask, Mask::Full | Mask::Looped).then(|| Self {
            shape,
            kernel,
            stride: 0,
            features: Vec::new(),
            keys: Vec::new(),
            own: Vec::new(),
            common: Vec::new(),
            common_bar: Vec::new(),
            band: Vec::new(),
            band_bar: Vec::new(),
            tape: Vec::new(),
            scratch: Vec::new(),
            accumulators: Vec::new(),
        })
    }
}

impl<E, C> Band<E, C> {
    /// The bytes of its own buffers; see [`bytes`](Self::bytes).
    pub fn bytes_of(&self, num_windows: usize) -> f64 {
        Self::bytes(&self.shape, num_windows)
    }

    /// Its kernel.
    pub fn kernel(&self) -> BuiltIn {
        self.kernel
    }

    /// The bytes of all buffers after a forward and a reverse pass over this many windows.
    pub fn bytes(shape: &Shape, num_windows: usize) -> f64 {
        let layout = Layout::of(shape);
        let (pairs, stride) = (layout.sizes.pairs() as f64, layout.stride(num_windows));
        let rows = (layout.sizes.d + 1) as f64 + pairs * (layout.sizes.d + 3) as f64;
        let elements = rows * stride as f64 + 2.0 * pairs * layout.band_len(stride) as f64;
        let tape = num_windows.div_ceil(WIDTH) as f64 * layout.block() as f64;
        let cells = tape + backward::num_cells(&layout) as f64;
        elements * size_of::<E>() as f64 + cells * size_of::<C>() as f64
    }
}

impl<E: Element, C: Copy + Default> Program<E, C> for Band<E, C> {
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
        let layout = Layout::of(&self.shape);
        let mut found = (0.0, f64::INFINITY);
        for (block, tape) in self.tape.chunks_exact(layout.block()).take(num.div_ceil(M::LANES)).enumerate() {
            let t = block * M::LANES;
            let mut totals = m.splat(E::default());
            let mut minima = m.splat(E::of(f64::INFINITY));
            for j in 0..layout.sizes.n {
                let weight = m.load(&self.band[t + layout.weight(self.stride, j, j)..]);
                let weight = weight * m.get(&tape[layout.shares(0) + j]);
                totals = totals + weight;
                minima = m.min(minima, weight);
            }
            found = sum_and_smallest(m, num - t, [totals, minima], found);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::PretrainConfig;
    use super::super::engine::{Hyper, Inapplicable};
    use super::super::level::SimdLevel;
    use super::super::reading::QueryMix;
    use super::super::testing::{HYPER, KERNELS, MIXINGS, Problem, band, feature_shapes, general};
    use super::*;

    /// All kernels, tied and per layer, all columns and mixings.
    #[test]
    fn the_band_equals_the_general_pass() {
        for (shape, name) in feature_shapes().flat_map(|shape| KERNELS.map(|name| (shape, name))) {
            let (kernel, problem) = (Weighing::named(name).unwrap(), Problem::new(&shape, 7));
            for (rho, query_mix) in MIXINGS {
                let hyper = Hyper { diagonal_mix: rho, query_mix, ..HYPER };
                problem.assert_equals_general(band(&shape, &kernel), &kernel, hyper);
            }
        }
    }

    #[test]
    fn the_adjoint_identity_holds() {
        for (shape, name) in feature_shapes().flat_map(|shape| KERNELS.map(|name| (shape, name))) {
            let (kernel, problem) = (Weighing::named(name).unwrap(), Problem::new(&shape, 7));
            problem.assert_adjoint(|| band(&shape, &kernel));
        }
    }

    #[test]
    fn the_wide_band_agrees_with_the_reference() {
        let hyper = Hyper { diagonal_mix: 0.3, query_mix: QueryMix::Unmixed, ..HYPER };
        for (shape, name) in feature_shapes().flat_map(|shape| KERNELS.map(|name| (shape, name))) {
            let kernel = Weighing::named(name).unwrap();
            let (mut wide, mut reference) = (band(&shape, &kernel), general(&shape, &kernel));
            let problem = Problem::new(&shape, 65).rounded();
            problem.assert_wide_agrees(&mut wide, &mut reference, hyper, SimdLevel::Best, 64);
        }
    }

    #[test]
    fn scores_beyond_the_limit_are_reported() {
        let (shape, hyper) = (PretrainConfig::paper().shape(), Hyper { temperature: 1e-3, ..HYPER });
        let mut band = band(&shape, &Weighing::BuiltIn(BuiltIn::Softmax));
        assert_eq!(Problem::new(&shape, 4).forward(&mut band, hyper), Err(Inapplicable));
    }
}
