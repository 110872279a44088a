//! The fast forward pass.

use super::super::engine::{Applies, Hyper, Job, Mixing};
use super::super::lanes::{Element, Machine, WIDTH, store_part};
use super::super::layers::{Sizes, all_finite, combine, scores_in_range, send};
use super::super::params::ParamsView;
use super::super::weighing::{BuiltIn, LaneKernel, by_kernel};
use super::{Band, Layout, TILE};

#[inline(always)]
pub(super) fn forward<M: Machine>(
    m: M,
    layout: Layout,
    stride: usize,
    buffers: &mut Band<M::Element, M::Cell>,
    job: Job<'_, M::Element>,
    out: &mut [M::Element],
) -> Applies {
    let Job { hyper, params, windows, first } = job;
    let Sizes { d, n, columns, .. } = layout.sizes;
    let (pairs, positions) = (layout.sizes.pairs(), out.len() + n);
    let kernel = buffers.kernel;
    let distances = kernel.sees_distances();
    buffers.stride = stride;
    for (array, len) in [
        (&mut buffers.features, (d + 1) * stride),
        (&mut buffers.keys, pairs * d * stride),
        (&mut buffers.own, if distances { pairs * stride } else { 0 }),
        (&mut buffers.common, pairs * stride),
        (&mut buffers.band, pairs * layout.band_len(stride)),
    ] {
        array.resize(len, M::Element::default());
    }
    let rows = d + 3;
    let zero = m.splat(M::Element::default());
    let cooling = m.splat(M::Element::of(1.0 / hyper.temperature));

    // Features, keys and c by position. Whole blocks are written; what lies beyond the positions is read
    // only in lanes that do not count.
    windows.copy_rows(first, n..n + positions, stride, &mut buffers.features);
    let mut largest = zero;
    for pair in 0..pairs {
        let (value_row, score_matrix) = (params.value_row(pair), params.score_matrix(pair));
        let keys = &mut buffers.keys[pair * d * stride..(pair + 1) * d * stride];
        let commons = &mut buffers.common[pair * stride..(pair + 1) * stride];
        for p in (0..positions).step_by(M::LANES) {
            let x = &buffers.features[n + p..];
            for a in 0..d {
                let key = combine(m, &score_matrix[a * rows..][..d], x, stride);
                m.store(key * cooling, &mut keys[a * stride + n + p..]);
            }
            m.store(combine(m, &value_row[..=d], x, stride), &mut commons[n + p..]);
        }
        let own = if distances { &mut buffers.own[pair * stride..(pair + 1) * stride] } else { &mut [] };
        if distances {
            for p in (0..positions).step_by(M::LANES) {
                let mut product = zero;
                for a in 0..d {
                    let x = m.load(&buffers.features[a * stride + n + p..]);
                    product = m.fma(x, m.load(&keys[a * stride + n + p..]), product);
                }
                m.store(product * m.splat(M::Element::of(-0.5)), &mut own[n + p..]);
            }
        }

        // Slices from p on have lengths that depend on the sizes alone, so that accesses within them are checked once.
        let start = pair * layout.band_len(stride);
        for p in (0..positions).step_by(M::LANES) {
            let features = &buffers.features[p..p + layout.row_span(stride)];
            let keys = &keys[p..p + layout.row_span(stride)];
            let band = &mut buffers.band[start + p..start + p + layout.band_span(stride)];
            let own = own.get(p..).unwrap_or(&[]);
            by_kernel!(kernel, K => weigh::<M, K>(m, &layout, stride, features, keys, own, band, &mut largest));
        }
    }

    let num_blocks = out.len().div_ceil(M::LANES);
    buffers.tape.resize(num_blocks * layout.block(), M::Cell::default());
    let blocks = buffers.tape.chunks_exact_mut(layout.block()).zip(out.chunks_mut(M::LANES));
    for (block, (tape, out)) in blocks.enumerate() {
        let t = block * M::LANES;
        if columns.separate_query {
            let (features, own) = (&buffers.features[t..], buffers.own.get(t..).unwrap_or(&[]));
            query_column(m, &layout, kernel, cooling, job, t, features, own, stride, tape, &mut largest);
        }
        // From the block's first window on, with lengths that depend on the sizes alone.
        let last = pairs - 1;
        let arrays = Arrays {
            stride,
            band: &buffers.band[t..t + last * layout.band_len(stride) + layout.span(stride)],
            common: &buffers.common[t..t + last * stride + 2 * n + WIDTH],
            rewards: &buffers.features[d * stride + t..d * stride + t + 2 * n + WIDTH],
        };
        let prediction = forward_block(m, &layout, kernel, hyper, params, arrays, tape);
        store_part(m, prediction, out);
    }
    scores_in_range(m, largest)?;
    all_finite(out)
}

/// The band of a block of sources: source p, column p - k + n.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn weigh<M: Machine, K: LaneKernel>(
    m: M,
    layout: &Layout,
    stride: usize,
    features: &[M::Element],
    keys: &[M::Element],
    own: &[M::Element],
    band: &mut [M::Element],
    largest: &mut M::Number,
) {
    let Sizes { d, n, .. } = layout.sizes;
    for k in 0..layout.diagonals() {
        let mut score = m.splat(M::Element::default());
        for a in 0..d {
            let x = m.load(&features[a * stride + n..]);
            score = m.fma(x, m.load(&keys[a * stride + 2 * n - k..]), score);
        }
        if K::DISTANCE {
            score = score + (m.load(&own[n..]) + m.load(&own[2 * n - k..]));
        }
        *largest = m.max(*largest, m.abs(score));
        m.store(K::weight(m, score), &mut band[k * stride + n..]);
    }
}

/// From the scores of a column to its weights; returns their share. `own` is the terms of the sources and that of the column,
/// where scores are distances.
#[inline(always)]
fn weigh_column<M: Machine, K: LaneKernel>(
    m: M,
    cooling: M::Number,
    column: &mut [M::Cell],
    own: (&[M::Element], M::Number),
    largest: &mut M::Number,
) -> M::Number {
    let mut total = m.splat(M::Element::default());
    for (i, cell) in column.iter_mut().enumerate() {
        let mut score = m.get(cell) * cooling;
        if K::DISTANCE {
            score = score + (m.load(&own.0[i..]) + own.1);
        }
        *largest = m.max(*largest, m.abs(score));
        let weight = K::weight(m, score);
        total = total + weight;
        m.put(weight, cell);
    }
    K::share(m, total, column.len())
}

/// Weights of a separate query's column; `features` start at the block's first window.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn query_column<M: Machine>(
    m: M,
    layout: &Layout,
    kernel: BuiltIn,
    cooling: M::Number,
    job: Job<'_, M::Element>,
    t: usize,
    features: &[M::Element],
    own: &[M::Element],
    stride: usize,
    tape: &mut [M::Cell],
    largest: &mut M::Number,
) {
    let Sizes { d, n, .. } = layout.sizes;
    let rows = d + 3;
    let zero = m.splat(M::Element::default());
    for a in 0..d {
        m.put(m.load(job.windows.query(a, job.first + t)), &mut tape[Layout::QUERY_FEATURES + a]);
    }
    for pair in 0..layout.sizes.pairs() {
        let score_matrix = job.params.score_matrix(pair);
        let (query, mut product) = (layout.query(pair), zero);
        for i in 0..n {
            m.put(zero, &mut tape[query + i]);
        }
        for a in 0..d {
            let mut key = zero;
            for b in 0..d {
                let x = m.get(&tape[Layout::QUERY_FEATURES + b]);
                key = m.fma(m.splat(score_matrix[a * rows + b]), x, key);
            }
            product = m.fma(m.get(&tape[Layout::QUERY_FEATURES + a]), key, product);
            for i in 0..n {
                let cell = &mut tape[query + i];
                m.put(m.fma(m.load(&features[a * stride + n + i..]), key, m.get(cell)), cell);
            }
        }
        let column = &mut tape[query..query + n];
        let of_sources = own.get(pair * stride + n..).unwrap_or(&[]);
        let own = (of_sources, product * cooling * m.splat(M::Element::of(-0.5)));
        let share = by_kernel!(kernel, K => weigh_column::<M, K>(m, cooling, column, own, largest));
        m.put(share, &mut tape[layout.shares(pair) + layout.sizes.query()]);
    }
}

/// What a block of windows reads, from its first window on.
struct Arrays<'a, E> {
    stride: usize,
    band: &'a [E],
    common: &'a [E],
    rewards: &'a [E],
}

/// All layers of a block of windows. Returns the prediction.
#[inline(always)]
fn forward_block<M: Machine>(
    m: M,
    layout: &Layout,
    kernel: BuiltIn,
    hyper: Hyper,
    params: ParamsView<'_, M::Element>,
    arrays: Arrays<'_, M::Element>,
    tape: &mut [M::Cell],
) -> M::Number {
    let sizes = layout.sizes;
    let Sizes { n, layers, columns, .. } = sizes;
    let Arrays { stride, band: bands, common, rewards } = arrays;
    let (separate, query) = (columns.separate_query, sizes.query());
    let zero = m.splat(M::Element::default());
    let mixing = Mixing::new(m, hyper);
    for j in 0..sizes.num_columns() {
        m.put(zero, &mut tape[layout.values(0) + j]);
    }
    if layers == 1 {
        // Only the last column is summed below, but the diagonal is measured in all.
        for j in 0..n {
            let mut total = zero;
            for i in 0..n {
                total = total + m.load(&bands[layout.weight(stride, i, j)..]);
            }
            m.put(total, &mut tape[layout.shares(0) + j]);
        }
        let totals = &mut tape[layout.shares(0)..][..n];
        kernel.share(m, n, totals);
    }
    for layer in 0..layers {
        let (values, messages, sums) = (layout.values(layer), layout.messages(layer), layout.sums(layer));
        let (pair, value_row) = (sizes.pair(layer), params.value_row(layer));
        let band = &bands[pair * layout.band_len(stride)..][..layout.span(stride)];
        let shares = layout.shares(pair);
        let by_position = (&common[pair * stride + n..][..n + WIDTH], &rewards[n..]);
        let (before, sent) = tape.split_at_mut(messages);
        send(m, sizes, hyper, value_row, layer, by_position, &before[values..], sent);
        let last = layer + 1 == layers;
        let band_columns = match (last, separate) {
            (false, _) => 0..layout.band_columns(),
            (true, false) => query..query + 1,
            (true, true) => 0..0,
        };
        for start in (0..n).step_by(TILE) {
            let width = TILE.min(n - start);
            let mut q = [zero; TILE];
            for i in 0..width {
                q[i] = m.get(&tape[messages + start + i]);
            }
            for j in band_columns.clone() {
                let (mut total, mut sum) = (zero, zero);
                if start > 0 {
                    (total, sum) = (m.get(&tape[shares + j]), m.get(&tape[sums + j]));
                }
                for i in 0..width {
                    let weight = m.load(&band[layout.weight(stride, start + i, j)..]);
                    if sizes.opens_pair(layer) {
                        total = total + weight;
                    }
                    sum = m.fma(weight, q[i], sum);
                }
                if sizes.opens_pair(layer) {
                    m.put(total, &mut tape[shares + j]);
                }
                m.put(sum, &mut tape[sums + j]);
            }
        }
        if sizes.opens_pair(layer) {
            let totals = &mut tape[shares + band_columns.start..shares + band_columns.end];
            kernel.share(m, n, totals);
        }
        if separate {
            let mut sum = zero;
            for i in 0..n {
                sum = m.fma(m.get(&tape[layout.query(pair) + i]), m.get(&tape[messages + i]), sum);
            }
            m.put(sum, &mut tape[sums + query]);
        }
        for j in if last { query } else { 0 }..=query {
            let s = m.get(&tape[sums + j]) * m.get(&tape[shares + j]);
            m.put(s, &mut tape[sums + j]);
            let (keep, own) = if j == query { mixing.query } else { mixing.context };
            let mut value = m.fma(keep, s, m.get(&tape[values + j]));
            if j < n {
                value = m.fma(own, m.get(&tape[messages + j]), value);
            }
            if last {
                return value;
            }
            m.put(value, &mut tape[layout.values(layer + 1) + j]);
        }
    }
    zero
}
