//! The factored reverse pass.

use super::super::engine::{Feedback, Hyper, Mixing};
use super::super::lanes::{Element, Machine, by_width, chunks, load_part};
use super::super::layers::{Sizes, add_to_gradient, through_messages};
use super::super::params::ParamsView;
use super::{Factored, Layout, pool, spread};

#[inline(always)]
pub(super) fn backward<M: Machine>(
    m: M,
    layout: Layout,
    stride: usize,
    buffers: &mut Factored<M::Element, M::Cell>,
    feedback: Feedback<'_, M::Element>,
) {
    let Feedback { hyper, params, out_bar, gradient } = feedback;
    let (sizes, shape) = (layout.sizes, buffers.shape);
    let Sizes { d, n, .. } = sizes;
    let num_accumulators = sizes.pairs() * sizes.accumulators();
    buffers.accumulators.clear();
    buffers.accumulators.resize(num_accumulators, M::Cell::default());
    let blocks = buffers.tape.chunks_exact(layout.block()).zip(out_bar.chunks(M::LANES));
    for (block, (tape, seeds)) in blocks.enumerate() {
        let t = block * M::LANES;
        let arrays = Arrays {
            stride,
            // With lengths that depend on the sizes alone.
            features: &buffers.features[t..t + layout.span::<M>(stride)],
            blocks: &buffers.blocks[..sizes.pairs() * d * d],
            scratch: &mut buffers.scratch[..layout.scratch()],
            accumulators: &mut buffers.accumulators[..num_accumulators],
        };
        backward_block(m, &layout, hyper, params, tape, load_part(m, seeds), arrays);
    }
    for (pair, sums) in buffers.accumulators.chunks_exact(sizes.accumulators()).enumerate() {
        let divisor = n as f64 * hyper.temperature;
        add_to_gradient(m, &shape, pair, sums, (divisor, hyper.gamma), gradient);
    }
}

/// What the reverse pass of a block reads and adds to; features from its first window on.
struct Arrays<'a, E, C> {
    stride: usize,
    features: &'a [E],
    blocks: &'a [E],
    scratch: &'a mut [C],
    accumulators: &'a mut [C],
}

/// Back through all layers of a block of windows.
#[inline(always)]
fn backward_block<M: Machine>(
    m: M,
    layout: &Layout,
    hyper: Hyper,
    params: ParamsView<'_, M::Element>,
    tape: &[M::Cell],
    seed: M::Number,
    arrays: Arrays<'_, M::Element, M::Cell>,
) {
    let sizes = layout.sizes;
    let Sizes { d, n, layers, columns, .. } = sizes;
    let Arrays { stride, features, blocks, scratch, accumulators } = arrays;
    let query = sizes.query();
    let zero = m.splat(M::Element::default());
    let mixing = Mixing::new(m, hyper);
    for cell in &mut scratch[layout.common_bar()..layout.scratch()] {
        m.put(zero, cell);
    }
    m.put(seed, &mut scratch[layout.values_bar() + query]);
    let (messages_bar, rest) = scratch[Layout::MESSAGES..].split_at_mut(layout.spread());
    let (spread_bar, rest) = rest.split_at_mut(d);
    let (pooled_bar, rest) = rest.split_at_mut(d);
    let (common_bar, values_bar) = rest.split_at_mut(n);
    for layer in (0..layers).rev() {
        let (pair, value_row) = (sizes.pair(layer), params.value_row(layer));
        let sums = &mut accumulators[pair * sizes.accumulators()..][..sizes.accumulators()];
        let (by_block, by_row) = sums.split_at_mut(d * d);
        let (keep, own) = mixing.query;
        let last = layer + 1 == layers;
        // In the last layer nothing but the query's column reaches the prediction.
        let context = if last { 0..0 } else { 0..query };
        for i in 0..n {
            let own = if i == query { own } else { mixing.context.1 };
            let is_used = i == query || !last;
            m.put(if is_used { own * m.get(&values_bar[i]) } else { zero }, &mut messages_bar[i]);
        }
        // By g: from the query's column, and from the others.
        let query_bar = keep * m.get(&values_bar[query]);
        for b in 0..d {
            let x = match columns.separate_query {
                true => m.get(&tape[Layout::QUERY_FEATURES + b]),
                false => m.load(&features[b * stride + query..]),
            };
            m.put(query_bar * x, &mut spread_bar[b]);
        }
        let keep = mixing.context.0;
        for (a, width) in chunks(d) {
            let (bars, x, out) =
                (&values_bar[context.clone()], &features[a * stride..], &mut spread_bar[a..]);
            by_width!(width, W => add_scaled(m, pool::<M, W>(m, bars, x, stride), keep, out));
        }
        // Through g = Bᵀh/(nτ).
        for a in 0..d {
            let (h, mut bar) = (m.get(&tape[layout.pooled(layer) + a]), zero);
            for b in 0..d {
                let g_bar = m.get(&spread_bar[b]);
                let cell = &mut by_block[a * d + b];
                m.put(m.fma(h, g_bar, m.get(cell)), cell);
                bar = m.fma(m.splat(blocks[(pair * d + a) * d + b]), g_bar, bar);
            }
            m.put(bar, &mut pooled_bar[a]);
        }
        for (a, width) in chunks(d) {
            let x = &features[a * stride..];
            by_width!(width, W => spread::<M, W>(m, &pooled_bar[a..], x, stride, messages_bar));
        }
        let values = &tape[layout.values(layer)..];
        through_messages(m, sizes, hyper, value_row, layer, values, messages_bar, values_bar, by_row);
        for (sum, bar) in common_bar.iter_mut().zip(&*messages_bar) {
            m.put(m.get(sum) + m.get(bar), sum);
        }
        if sizes.opens_pair(layer) {
            through_common(m, sizes, stride, features, common_bar, by_row);
        }
    }
}

/// From the derivatives by c, which are used up, to those by a and p_r.
#[inline(always)]
fn through_common<M: Machine>(
    m: M,
    sizes: Sizes,
    stride: usize,
    features: &[M::Element],
    common_bar: &mut [M::Cell],
    by_row: &mut [M::Cell],
) {
    let Sizes { d, n, columns, .. } = sizes;
    let one = m.splat(M::Element::of(1.0));
    for (a, width) in chunks(d) {
        let x = &features[a * stride..];
        by_width!(width, W => add_scaled(m, pool::<M, W>(m, common_bar, x, stride), one, &mut by_row[a..]));
    }
    let rewarded = &common_bar[..columns.rewarded(n)];
    add_scaled(m, pool::<M, 1>(m, rewarded, &features[d * stride..], stride), one, &mut by_row[d..]);
    for cell in common_bar {
        m.put(m.splat(M::Element::default()), cell);
    }
}

/// Adds a multiple of numbers to as many cells.
#[inline(always)]
fn add_scaled<M: Machine, const W: usize>(
    m: M,
    numbers: [M::Number; W],
    scale: M::Number,
    cells: &mut [M::Cell],
) {
    for w in 0..W {
        m.put(m.fma(scale, numbers[w], m.get(&cells[w])), &mut cells[w]);
    }
}
