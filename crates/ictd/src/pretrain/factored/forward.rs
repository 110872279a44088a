//! The factored forward pass.

use super::super::engine::{Applies, Hyper, Job, Mixing};
use super::super::lanes::{Element, Machine, by_width, chunks, store_part};
use super::super::layers::{Sizes, all_finite, combine, send};
use super::super::params::ParamsView;
use super::{Factored, Layout, pool, spread};

#[inline(always)]
pub(super) fn forward<M: Machine>(
    m: M,
    layout: Layout,
    stride: usize,
    buffers: &mut Factored<M::Element, M::Cell>,
    job: Job<'_, M::Element>,
    out: &mut [M::Element],
) -> Applies {
    let Job { hyper, params, windows, first } = job;
    let Sizes { d, n, columns, .. } = layout.sizes;
    let (pairs, positions) = (layout.sizes.pairs(), out.len() + n);
    buffers.stride = stride;
    for (array, len) in [
        (&mut buffers.features, (d + 1) * stride),
        (&mut buffers.common, pairs * stride),
        (&mut buffers.blocks, pairs * d * d),
    ] {
        array.resize(len, M::Element::default());
    }
    windows.copy_rows(first, 0..positions, stride, &mut buffers.features);
    let scale = 1.0 / (n as f64 * hyper.temperature);
    for pair in 0..pairs {
        let (value_row, score_matrix) = (params.value_row(pair), params.score_matrix(pair));
        for (k, entry) in buffers.blocks[pair * d * d..(pair + 1) * d * d].iter_mut().enumerate() {
            *entry = M::Element::of(scale * score_matrix[k / d * (d + 3) + k % d].get());
        }
        // Whole blocks; the last of them reaches back, so that it ends where the array does.
        for p in (0..stride).step_by(M::LANES) {
            let p = p.min(stride - M::LANES);
            let common = combine(m, &value_row[..=d], &buffers.features[p..], stride);
            m.store(common, &mut buffers.common[pair * stride + p..]);
        }
    }
    let num_blocks = out.len().div_ceil(M::LANES);
    buffers.tape.resize(num_blocks * layout.block(), M::Cell::default());
    buffers.scratch.resize(layout.scratch(), M::Cell::default());
    let blocks = buffers.tape.chunks_exact_mut(layout.block()).zip(out.chunks_mut(M::LANES));
    for (block, (tape, out)) in blocks.enumerate() {
        let t = block * M::LANES;
        if columns.separate_query {
            for a in 0..d {
                m.put(m.load(windows.query(a, first + t)), &mut tape[Layout::QUERY_FEATURES + a]);
            }
        }
        let arrays = Arrays {
            stride,
            // With lengths that depend on the sizes alone.
            features: &buffers.features[t..t + layout.span::<M>(stride)],
            common: &buffers.common[t..t + layout.common_span::<M>(stride)],
            blocks: &buffers.blocks[..pairs * d * d],
        };
        let scratch = &mut buffers.scratch[..layout.scratch()];
        let prediction = forward_block(m, &layout, hyper, params, arrays, scratch, tape);
        store_part(m, prediction, out);
    }
    all_finite(out)
}

/// What a block of windows reads, from its first window on.
struct Arrays<'a, E> {
    stride: usize,
    features: &'a [E],
    common: &'a [E],
    blocks: &'a [E],
}

/// All layers of a block of windows. Returns the prediction.
#[inline(always)]
fn forward_block<M: Machine>(
    m: M,
    layout: &Layout,
    hyper: Hyper,
    params: ParamsView<'_, M::Element>,
    arrays: Arrays<'_, M::Element>,
    scratch: &mut [M::Cell],
    tape: &mut [M::Cell],
) -> M::Number {
    let sizes = layout.sizes;
    let Sizes { d, n, layers, columns, .. } = sizes;
    let Arrays { stride, features, common, blocks } = arrays;
    let (query, separate) = (sizes.query(), columns.separate_query);
    let zero = m.splat(M::Element::default());
    let mixing = Mixing::new(m, hyper);
    let (messages, g) = scratch[Layout::MESSAGES..].split_at_mut(layout.spread());
    let g = &mut g[..d];
    for cell in &mut tape[layout.values(0)..][..query + 1] {
        m.put(zero, cell);
    }
    for layer in 0..layers {
        let (pair, value_row) = (sizes.pair(layer), params.value_row(layer));
        let by_position = (&common[pair * stride..], &features[d * stride..]);
        let values = &tape[layout.values(layer)..][..query + 1];
        send(m, sizes, hyper, value_row, layer, by_position, values, messages);
        for (a, width) in chunks(d) {
            let (x, pooled) = (&features[a * stride..], &mut tape[layout.pooled(layer) + a..]);
            by_width!(width, W => put_all(m, pool::<M, W>(m, messages, x, stride), pooled));
        }
        // g = Bᵀh/(nτ).
        for b in 0..d {
            let mut sum = zero;
            for a in 0..d {
                let entry = m.splat(blocks[(pair * d + a) * d + b]);
                sum = m.fma(entry, m.get(&tape[layout.pooled(layer) + a]), sum);
            }
            m.put(sum, &mut g[b]);
        }
        // What reaches the query's column.
        let mut sum = zero;
        for b in 0..d {
            let x = match separate {
                true => m.get(&tape[Layout::QUERY_FEATURES + b]),
                false => m.load(&features[b * stride + query..]),
            };
            sum = m.fma(m.get(&g[b]), x, sum);
        }
        let (keep, own) = mixing.query;
        let mut value = m.fma(keep, sum, m.get(&tape[layout.values(layer) + query]));
        if query < n {
            value = m.fma(own, m.get(&messages[query]), value);
        }
        if layer + 1 == layers {
            return value;
        }
        let (now, next) = tape[layout.values(layer)..].split_at_mut(query + 1);
        m.put(value, &mut next[query]);
        // The others: their share of attention is the same, so g is scaled once.
        let (keep, own) = mixing.context;
        for cell in &mut *g {
            m.put(m.get(cell) * keep, cell);
        }
        for (j, (before, after)) in now.iter().zip(&mut next[..query]).enumerate() {
            let mut value = m.get(before);
            if j < n {
                value = m.fma(own, m.get(&messages[j]), value);
            }
            m.put(value, after);
        }
        for (a, width) in chunks(d) {
            let x = &features[a * stride..];
            by_width!(width, W => spread::<M, W>(m, &g[a..], x, stride, &mut next[..query]));
        }
    }
    zero
}

/// Numbers to as many cells.
#[inline(always)]
fn put_all<M: Machine, const W: usize>(m: M, numbers: [M::Number; W], cells: &mut [M::Cell]) {
    for w in 0..W {
        m.put(numbers[w], &mut cells[w]);
    }
}
