//! The fast reverse pass.

use super::super::engine::{Feedback, Hyper, Mixing};
use super::super::lanes::{Element, Machine, WIDTH, load_part};
use super::super::layers::{Sizes, add_to_gradient, through_messages};
use super::super::params::ParamsView;
use super::super::weighing::{BuiltIn, LaneKernel, by_kernel};
use super::{Band, Layout, TILE};

#[inline(always)]
pub(super) fn backward<M: Machine>(
    m: M,
    layout: Layout,
    stride: usize,
    buffers: &mut Band<M::Element, M::Cell>,
    feedback: Feedback<'_, M::Element>,
) {
    let Feedback { hyper, params, out_bar, gradient } = feedback;
    let (shape, kernel) = (buffers.shape, buffers.kernel);
    let Sizes { d, n, .. } = layout.sizes;
    let pairs = layout.sizes.pairs();
    for (array, len) in
        [(&mut buffers.common_bar, pairs * stride), (&mut buffers.band_bar, pairs * layout.band_len(stride))]
    {
        array.clear();
        array.resize(len, M::Element::default());
    }
    let per_pair = layout.sizes.accumulators();
    let num_accumulators = pairs * per_pair;
    buffers.accumulators.clear();
    buffers.accumulators.resize(num_accumulators, M::Cell::default());
    buffers.scratch.resize(Scratch::len(&layout), M::Cell::default());
    let blocks = buffers.tape.chunks_exact(layout.block()).zip(out_bar.chunks(M::LANES));
    for (block, (tape, seeds)) in blocks.enumerate() {
        let t = block * M::LANES;
        let arrays = Arrays {
            stride,
            features: &buffers.features[t..],
            band: &buffers.band[t..t + (pairs - 1) * layout.band_len(stride) + layout.span(stride)],
            band_bar: &mut buffers.band_bar
                [t..t + (pairs - 1) * layout.band_len(stride) + layout.span(stride)],
            common_bar: &mut buffers.common_bar[t..t + (pairs - 1) * stride + 2 * n + WIDTH],
            accumulators: &mut buffers.accumulators[..num_accumulators],
            scratch: &mut buffers.scratch[..Scratch::len(&layout)],
        };
        backward_block(m, &layout, kernel, hyper, params, tape, load_part(m, seeds), arrays);
    }

    // From the band to the feature block: y_p = Σ_δ s_bar(p, p+δ)·x_{p+δ}, then Σ_p x_p y_pᵀ.
    let positions = out_bar.len() + n;
    let y = &mut buffers.scratch[..d];
    for pair in 0..pairs {
        let start = pair * layout.band_len(stride);
        let accumulators = &mut buffers.accumulators[pair * per_pair..(pair + 1) * per_pair];
        for p in (0..positions).step_by(M::LANES) {
            let band = &buffers.band[start + p..start + p + layout.band_span(stride)];
            let band_bar = &buffers.band_bar[start + p..start + p + layout.band_span(stride)];
            let features = &buffers.features[p..p + layout.row_span(stride)];
            by_kernel!(kernel, K => gather::<M, K>(m, &layout, stride, band, band_bar, features, y));
            let c_bar = m.load(&buffers.common_bar[pair * stride + n + p..]);
            for a in 0..=d {
                let x = m.load(&buffers.features[a * stride + n + p..]);
                let cell = &mut accumulators[d * d + a];
                m.put(m.fma(c_bar, x, m.get(cell)), cell);
                if a < d {
                    for (b, y) in y.iter().enumerate() {
                        let cell = &mut accumulators[a * d + b];
                        m.put(m.fma(x, m.get(y), m.get(cell)), cell);
                    }
                }
            }
        }
        add_to_gradient(m, &shape, pair, accumulators, (hyper.temperature, hyper.gamma), gradient);
    }
}

/// y of a block of sources.
#[inline(always)]
fn gather<M: Machine, K: LaneKernel>(
    m: M,
    layout: &Layout,
    stride: usize,
    band: &[M::Element],
    band_bar: &[M::Element],
    features: &[M::Element],
    y: &mut [M::Cell],
) {
    let Sizes { d, n, .. } = layout.sizes;
    // Four features at a time, so that their sums stay in registers whatever d is.
    for first in (0..d).step_by(4) {
        let width = 4.min(d - first);
        let mut sums = [m.splat(M::Element::default()); 4];
        let mut total = m.splat(M::Element::default());
        for k in 0..layout.diagonals() {
            let slope = K::slope(m, m.load(&band[k * stride + n..]));
            let bar = m.load(&band_bar[k * stride + n..]) * slope;
            if K::DISTANCE {
                total = total + bar;
            }
            for b in 0..width {
                let x = m.load(&features[(first + b) * stride + 2 * n - k..]);
                sums[b] = m.fma(bar, x, sums[b]);
            }
        }
        for b in 0..width {
            if K::DISTANCE {
                // The source's own term, a product with itself.
                let half = total * m.splat(M::Element::of(-0.5));
                sums[b] = m.fma(half, m.load(&features[(first + b) * stride + n..]), sums[b]);
            }
            m.put(sums[b], &mut y[first + b]);
        }
    }
}

/// Multiplies derivatives by the weights of a query's column by their slopes.
#[inline(always)]
fn chain<M: Machine, K: LaneKernel>(m: M, weights: &[M::Cell], bars: &mut [M::Cell]) {
    for (weight, bar) in weights.iter().zip(bars) {
        m.put(m.get(bar) * K::slope(m, m.get(weight)), bar);
    }
}

/// Cells that the reverse pass needs besides the tape.
pub(super) fn num_cells(layout: &Layout) -> usize {
    Scratch::len(layout) + layout.sizes.pairs() * layout.sizes.accumulators()
}

/// What the reverse pass of a block reads and adds to.
struct Arrays<'a, E, C> {
    stride: usize,
    features: &'a [E],
    band: &'a [E],
    band_bar: &'a mut [E],
    common_bar: &'a mut [E],
    accumulators: &'a mut [C],
    scratch: &'a mut [C],
}

/// Where the reverse pass of a block keeps its derivatives, in cells.
struct Scratch;

impl Scratch {
    /// By v_j.
    const VALUES: usize = 0;
    /// By q_i in the current layer.
    fn messages(layout: &Layout) -> usize {
        layout.sizes.num_columns()
    }
    /// By q_i, summed over the layers of a pair.
    fn common(layout: &Layout, pair: usize) -> usize {
        layout.sizes.num_columns() + (1 + pair) * layout.sizes.n
    }
    /// By s_j divided by Σ_i E_ij, in layer l.
    fn shares(layout: &Layout, layer: usize) -> usize {
        Self::common(layout, layout.sizes.pairs()) + layer * layout.sizes.num_columns()
    }
    fn len(layout: &Layout) -> usize {
        Self::shares(layout, layout.sizes.layers).max(layout.sizes.d)
    }
}

/// Back through all layers of a block of windows; the arrays start at its first.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn backward_block<M: Machine>(
    m: M,
    layout: &Layout,
    kernel: BuiltIn,
    hyper: Hyper,
    params: ParamsView<'_, M::Element>,
    tape: &[M::Cell],
    seed: M::Number,
    arrays: Arrays<'_, M::Element, M::Cell>,
) {
    let sizes = layout.sizes;
    let Sizes { d, n, layers, columns, .. } = sizes;
    let (separate, query) = (columns.separate_query, sizes.query());
    let Arrays { stride, features, band: bands, band_bar: bands_bar, common_bar, accumulators, scratch } =
        arrays;
    let zero = m.splat(M::Element::default());
    let mixing = Mixing::new(m, hyper);
    let through_divisor = m.splat(M::Element::of(if kernel.by_column() { 1.0 } else { 0.0 }));
    let q_bar = Scratch::messages(layout);
    for j in 0..query {
        m.put(zero, &mut scratch[Scratch::VALUES + j]);
    }
    for i in 0..sizes.pairs() * n {
        m.put(zero, &mut scratch[Scratch::common(layout, 0) + i]);
    }
    m.put(seed, &mut scratch[Scratch::VALUES + query]);
    for layer in (0..layers).rev() {
        let (pair, value_row) = (sizes.pair(layer), params.value_row(layer));
        let band = &bands[pair * layout.band_len(stride)..][..layout.span(stride)];
        let c_bar = Scratch::common(layout, pair);
        let last_layer = layer + 1 == layers;
        let shares = Scratch::shares(layout, layer);
        for j in if last_layer { query } else { 0 }..=query {
            let (keep, _) = if j == query { mixing.query } else { mixing.context };
            let w = keep * m.get(&scratch[Scratch::VALUES + j]) * m.get(&tape[layout.shares(pair) + j]);
            m.put(w, &mut scratch[shares + j]);
        }
        for i in 0..n {
            let mut bar = zero;
            if separate {
                bar = m.get(&tape[layout.query(pair) + i]) * m.get(&scratch[shares + query]);
            }
            if last_layer && !separate {
                bar = m.load(&band[layout.weight(stride, i, query)..]) * m.get(&scratch[shares + query]);
            }
            if !last_layer || i == query {
                let (_, own) = if i == query { mixing.query } else { mixing.context };
                bar = m.fma(own, m.get(&scratch[Scratch::VALUES + i]), bar);
            }
            m.put(bar, &mut scratch[q_bar + i]);
        }
        if !last_layer {
            for start in (0..layout.band_columns()).step_by(TILE) {
                let width = TILE.min(layout.band_columns() - start);
                let mut w = [zero; TILE];
                for j in 0..width {
                    w[j] = m.get(&scratch[shares + start + j]);
                }
                for i in 0..n {
                    let mut bar = m.get(&scratch[q_bar + i]);
                    for j in 0..width {
                        bar = m.fma(m.load(&band[layout.weight(stride, i, start + j)..]), w[j], bar);
                    }
                    m.put(bar, &mut scratch[q_bar + i]);
                }
            }
        }
        for i in 0..n {
            let bar = m.get(&scratch[q_bar + i]);
            m.put(m.get(&scratch[c_bar + i]) + bar, &mut scratch[c_bar + i]);
        }
        let values = &tape[layout.values(layer)..];
        let (values_bar, messages_bar) = scratch.split_at_mut(q_bar);
        let by_row = &mut accumulators[pair * sizes.accumulators() + d * d..];
        let values_bar = &mut values_bar[Scratch::VALUES..];
        through_messages(m, sizes, hyper, value_row, layer, values, messages_bar, values_bar, by_row);
    }
    for pair in 0..sizes.pairs() {
        let c_bar = Scratch::common(layout, pair);
        let accumulators = &mut accumulators[pair * sizes.accumulators()..];
        for i in 0..n {
            let at = &mut common_bar[pair * stride + n + i..];
            m.store(m.load(at) + m.get(&scratch[c_bar + i]), at);
            if i >= columns.rewarded(n) {
                // What the shared c brings to the reward entry below is taken back here.
                let cell = &mut accumulators[d * d + d];
                let reward = m.load(&features[d * stride + n + i..]);
                m.put(m.get(cell) - m.get(&scratch[c_bar + i]) * reward, cell);
            }
        }

        let of = WeightBars { layout, pair, tape, through_divisor };
        let band_bar = &mut bands_bar[pair * layout.band_len(stride)..][..layout.span(stride)];
        for j in 0..layout.band_columns() {
            let offset = of.offset(m, scratch, j);
            for i in 0..n {
                let at = &mut band_bar[layout.weight(stride, i, j)..];
                m.store(m.load(at) + of.bar(m, scratch, offset, i, j), at);
            }
        }
        if !separate {
            continue;
        }
        let offset = of.offset(m, scratch, query);
        for i in 0..n {
            // c_bar is done with: its cells hold the derivatives by the query's scores now.
            m.put(of.bar(m, scratch, offset, i, query), &mut scratch[c_bar + i]);
        }
        let weights = &tape[layout.query(pair)..][..n];
        by_kernel!(kernel, K => chain::<M, K>(m, weights, &mut scratch[c_bar..c_bar + n]));
        if kernel.sees_distances() {
            // The sources' own terms; what comes back through the query's adds up to 0.
            for i in 0..n {
                let half = m.get(&scratch[c_bar + i]) * m.splat(M::Element::of(-0.5));
                for a in 0..d {
                    let x = m.load(&features[a * stride + n + i..]) * half;
                    for b in 0..d {
                        let cell = &mut accumulators[a * d + b];
                        m.put(m.fma(x, m.load(&features[b * stride + n + i..]), m.get(cell)), cell);
                    }
                }
            }
        }
        for a in 0..d {
            let mut y = zero;
            for i in 0..n {
                y = m.fma(m.get(&scratch[c_bar + i]), m.load(&features[a * stride + n + i..]), y);
            }
            for b in 0..d {
                let cell = &mut accumulators[a * d + b];
                m.put(m.fma(y, m.get(&tape[Layout::QUERY_FEATURES + b]), m.get(cell)), cell);
            }
        }
    }
}

/// Derivatives by E_ij: Σ_l w_j^l (q_i^l - s_j^l), over the layers of a pair in which column j reaches the prediction;
/// without s_j^l where the divisor is fixed. Methods, because closures would not be inlined into the code for the CPU at
/// hand.
struct WeightBars<'a, M: Machine> {
    layout: &'a Layout,
    pair: usize,
    tape: &'a [M::Cell],
    /// 1 where the divisor is the sum of the weights, 0 where it is fixed.
    through_divisor: M::Number,
}

impl<M: Machine> WeightBars<'_, M> {
    /// Σ_l w_j^l s_j^l.
    #[inline(always)]
    fn offset(&self, m: M, scratch: &[M::Cell], j: usize) -> M::Number {
        let mut offset = m.splat(M::Element::default());
        for layer in self.layout.layers_of(self.pair, j) {
            let w = m.get(&scratch[Scratch::shares(self.layout, layer) + j]);
            offset = m.fma(w, m.get(&self.tape[self.layout.sums(layer) + j]), offset);
        }
        offset * self.through_divisor
    }

    /// The derivative, given the offset of its column.
    #[inline(always)]
    fn bar(&self, m: M, scratch: &[M::Cell], offset: M::Number, i: usize, j: usize) -> M::Number {
        let mut bar = -offset;
        for layer in self.layout.layers_of(self.pair, j) {
            let w = m.get(&scratch[Scratch::shares(self.layout, layer) + j]);
            bar = m.fma(w, m.get(&self.tape[self.layout.messages(layer) + i]), bar);
        }
        bar
    }
}
