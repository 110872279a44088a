//! The factored reverse pass.

use super::super::engine::{Feedback, Hyper, Mixing};
use super::super::lanes::{Element, Machine, WIDTH, by_width, chunks};
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
    let shape = buffers.shape;
    let Layout { d, n, .. } = layout;
    let num_accumulators = layout.pairs() * layout.accumulators();
    buffers.accumulators.clear();
    buffers.accumulators.resize(num_accumulators, M::Cell::default());
    let mut lanes = [M::Element::default(); WIDTH];
    let num_blocks = out_bar.len().div_ceil(M::LANES);
    for (block, tape) in buffers.tape.chunks_exact(layout.block()).take(num_blocks).enumerate() {
        let t = block * M::LANES;
        let end = out_bar.len().min(t + M::LANES);
        lanes.fill(M::Element::default());
        lanes[..end - t].copy_from_slice(&out_bar[t..end]);
        let arrays = Arrays {
            stride,
            // With lengths that depend on the sizes alone.
            features: &buffers.features[t..t + layout.span::<M>(stride)],
            blocks: &buffers.blocks[..layout.pairs() * d * d],
            scratch: &mut buffers.scratch[..layout.scratch()],
            accumulators: &mut buffers.accumulators[..num_accumulators],
        };
        backward_block(m, &layout, hyper, params, tape, m.load(&lanes), arrays);
    }
    for (pair, sums) in buffers.accumulators.chunks_exact(layout.accumulators()).enumerate() {
        for (k, cell) in sums[..d * d].iter().enumerate() {
            gradient[shape.score_index(pair, k / d, k % d)] += m.sum(cell) / (n as f64 * hyper.temperature);
        }
        let row = &mut gradient[shape.value_index(pair, d + 2, 0)..][..d + 3];
        for (k, entry) in row.iter_mut().enumerate() {
            let scale = if k == d + 1 { hyper.gamma } else { 1.0 };
            *entry += scale * m.sum(&sums[d * d + k]);
        }
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
    let Layout { d, n, layers, columns, .. } = *layout;
    let Arrays { stride, features, blocks, scratch, accumulators } = arrays;
    let query = layout.query();
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
        let (pair, value_row) = (layout.pair(layer), params.value_row(layer));
        let sums = &mut accumulators[pair * layout.accumulators()..][..layout.accumulators()];
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
        through_messages(
            m,
            layout,
            hyper,
            value_row,
            &tape[layout.values(layer)..],
            layer,
            messages_bar,
            values_bar,
            by_row,
        );
        for (sum, bar) in common_bar.iter_mut().zip(&*messages_bar) {
            m.put(m.get(sum) + m.get(bar), sum);
        }
        if layout.opens_pair(layer) {
            through_common(m, layout, stride, features, common_bar, by_row);
        }
    }
}

/// From the derivatives by messages to those by values, and by γ·p_t and p_v.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn through_messages<M: Machine>(
    m: M,
    layout: &Layout,
    hyper: Hyper,
    value_row: &[M::Element],
    values: &[M::Cell],
    layer: usize,
    messages_bar: &[M::Cell],
    values_bar: &mut [M::Cell],
    by_row: &mut [M::Cell],
) {
    // Before the first layer all values are 0 and depend on nothing.
    if layer == 0 {
        return;
    }
    let Layout { d, n, columns, .. } = *layout;
    let on_target = m.splat(M::Element::of(hyper.gamma * value_row[d + 1].get()));
    let on_value = m.splat(value_row[d + 2]);
    let (mut target_bar, mut value_bar) = (m.get(&by_row[d + 1]), m.get(&by_row[d + 2]));
    for i in 0..n {
        let bar = m.get(&messages_bar[i]);
        value_bar = m.fma(bar, m.get(&values[i]), value_bar);
        m.put(m.fma(on_value, bar, m.get(&values_bar[i])), &mut values_bar[i]);
        if i < columns.linked(n) {
            target_bar = m.fma(bar, m.get(&values[i + 1]), target_bar);
            m.put(m.fma(on_target, bar, m.get(&values_bar[i + 1])), &mut values_bar[i + 1]);
        }
    }
    m.put(target_bar, &mut by_row[d + 1]);
    m.put(value_bar, &mut by_row[d + 2]);
}

/// From the derivatives by c, which are used up, to those by a and p_r.
#[inline(always)]
fn through_common<M: Machine>(
    m: M,
    layout: &Layout,
    stride: usize,
    features: &[M::Element],
    common_bar: &mut [M::Cell],
    by_row: &mut [M::Cell],
) {
    let Layout { d, n, columns, .. } = *layout;
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
