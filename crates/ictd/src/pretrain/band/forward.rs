//! The fast forward pass.

use super::super::lanes::{Element, Machine, WIDTH};
use super::super::reverse::{Hyper, Mixing};
use super::super::windows::Windows;
use super::{Band, Layout, SCORE_LIMIT, ScoreOutOfRange, Split, TILE};

#[inline(always)]
pub(super) fn forward<M: Machine>(
    m: M,
    buffers: &mut Band<M::Element, M::Cell>,
    hyper: Hyper,
    params: &[M::Element],
    windows: &Windows<M::Element>,
    first: usize,
    out: &mut [M::Element],
) -> Result<(), ScoreOutOfRange> {
    let layout = Layout::of(&buffers.shape);
    let stride = layout.stride(out.len());
    if layout == Layout::PAPER && stride == Layout::PAPER_STRIDE {
        forward_sized(m, Layout::PAPER, Layout::PAPER_STRIDE, buffers, hyper, params, windows, first, out)
    } else if layout.has_paper_sizes() && stride == Layout::PAPER_STRIDE {
        let layout = Layout { columns: layout.columns, ..Layout::PAPER };
        forward_sized(m, layout, Layout::PAPER_STRIDE, buffers, hyper, params, windows, first, out)
    } else {
        forward_sized(m, layout, stride, buffers, hyper, params, windows, first, out)
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn forward_sized<M: Machine>(
    m: M,
    layout: Layout,
    stride: usize,
    buffers: &mut Band<M::Element, M::Cell>,
    hyper: Hyper,
    params: &[M::Element],
    windows: &Windows<M::Element>,
    first: usize,
    out: &mut [M::Element],
) -> Result<(), ScoreOutOfRange> {
    let shape = buffers.shape;
    let Layout { d, n, .. } = layout;
    let positions = out.len() + n;
    let num_diagonals = layout.diagonals();
    buffers.stride = stride;
    for (array, len) in [
        (&mut buffers.features, (d + 1) * stride),
        (&mut buffers.keys, d * stride),
        (&mut buffers.common, stride),
        // One row more, so that the last chunk of every walk is whole.
        (&mut buffers.band, (num_diagonals + 1) * stride + 1),
    ] {
        array.resize(len, M::Element::default());
    }
    let Split { value_row, score_matrix } = Split::of(&shape, params);
    let rows = d + 3;
    let zero = m.splat(M::Element::default());
    let cooling = m.splat(M::Element::of(1.0 / hyper.temperature));

    // Features, keys and c by position. Whole blocks are written; what lies beyond the positions is read
    // only in lanes that do not count.
    for a in 0..=d {
        let row = &mut buffers.features[a * stride..(a + 1) * stride];
        row[..n].fill(M::Element::default());
        let source = if a < d { windows.feature(a, first) } else { windows.reward(first) };
        row[n..n + positions].copy_from_slice(&source[..positions]);
        row[n + positions..].fill(M::Element::default());
    }
    for p in (0..positions).step_by(M::LANES) {
        let mut common = zero;
        for a in 0..=d {
            let x = m.load(&buffers.features[a * stride + n + p..]);
            common = m.fma(m.splat(value_row[a]), x, common);
        }
        for a in 0..d {
            let mut key = zero;
            for b in 0..d {
                let x = m.load(&buffers.features[b * stride + n + p..]);
                key = m.fma(m.splat(score_matrix[a * rows + b]), x, key);
            }
            m.store(key * cooling, &mut buffers.keys[a * stride + n + p..]);
        }
        m.store(common, &mut buffers.common[n + p..]);
    }

    // The band: source p, column p - k + n. Slices from p on have lengths that depend on the sizes alone, so
    // that accesses within them are checked once.
    let mut largest = zero;
    for p in (0..positions).step_by(M::LANES) {
        let features = &buffers.features[p..p + layout.row_span(stride)];
        let keys = &buffers.keys[p..p + layout.row_span(stride)];
        let band = &mut buffers.band[p..p + layout.band_span(stride)];
        for k in 0..num_diagonals {
            let mut score = zero;
            for a in 0..d {
                let x = m.load(&features[a * stride + n..]);
                score = m.fma(x, m.load(&keys[a * stride + 2 * n - k..]), score);
            }
            largest = m.max(largest, m.abs(score));
            m.store(m.exp(score), &mut band[k * stride + n..]);
        }
    }

    let num_blocks = out.len().div_ceil(M::LANES);
    buffers.tape.resize(num_blocks * layout.block(), M::Cell::default());
    let mut lanes = [M::Element::default(); WIDTH];
    for (block, tape) in buffers.tape.chunks_exact_mut(layout.block()).enumerate() {
        let t = block * M::LANES;
        if layout.separate() {
            let (features, cool) = (&buffers.features, cooling);
            let found =
                query_column(m, &layout, cool, score_matrix, windows, first, t, features, stride, tape);
            largest = m.max(largest, found);
        }
        // From the block's first window on, with lengths that depend on the sizes alone.
        let band = &buffers.band[t..t + layout.span(stride)];
        let common = &buffers.common[t..t + 2 * n + WIDTH];
        let rewards = &buffers.features[d * stride + t..d * stride + t + 2 * n + WIDTH];
        let prediction = forward_block(m, &layout, hyper, value_row, stride, band, common, rewards, tape);
        m.store(prediction, &mut lanes);
        let end = out.len().min(t + M::LANES);
        out[t..end].copy_from_slice(&lanes[..end - t]);
    }
    m.store(largest, &mut lanes);
    // The comparison is false for NaN.
    let in_range =
        lanes[..M::LANES].iter().all(|x| x.get() <= SCORE_LIMIT) && out.iter().all(|x| x.get().is_finite());
    if in_range { Ok(()) } else { Err(ScoreOutOfRange) }
}

/// Exponentials of a separate query's column. Returns its largest |score|.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn query_column<M: Machine>(
    m: M,
    layout: &Layout,
    cooling: M::Number,
    score_matrix: &[M::Element],
    windows: &Windows<M::Element>,
    first: usize,
    t: usize,
    features: &[M::Element],
    stride: usize,
    tape: &mut [M::Cell],
) -> M::Number {
    let Layout { d, n, .. } = *layout;
    let rows = d + 3;
    let zero = m.splat(M::Element::default());
    for a in 0..d {
        m.put(m.load(windows.query(a, first + t)), &mut tape[layout.query_features() + a]);
    }
    for i in 0..n {
        m.put(zero, &mut tape[layout.query() + i]);
    }
    for a in 0..d {
        let mut key = zero;
        for b in 0..d {
            key = m.fma(m.splat(score_matrix[a * rows + b]), m.get(&tape[layout.query_features() + b]), key);
        }
        for i in 0..n {
            let cell = &mut tape[layout.query() + i];
            m.put(m.fma(m.load(&features[a * stride + n + t + i..]), key, m.get(cell)), cell);
        }
    }
    let (mut total, mut largest) = (zero, zero);
    for cell in &mut tape[layout.query()..layout.query() + n] {
        let score = m.get(cell) * cooling;
        largest = m.max(largest, m.abs(score));
        let weight = m.exp(score);
        total = total + weight;
        m.put(weight, cell);
    }
    m.put(m.recip(total), &mut tape[layout.shares() + layout.query_column()]);
    largest
}

/// All layers of a block of windows; `band`, `common` and `rewards` start at its first. Returns the prediction.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn forward_block<M: Machine>(
    m: M,
    layout: &Layout,
    hyper: Hyper,
    value_row: &[M::Element],
    stride: usize,
    band: &[M::Element],
    common: &[M::Element],
    rewards: &[M::Element],
    tape: &mut [M::Cell],
) -> M::Number {
    let Layout { d, n, layers, .. } = *layout;
    let (separate, query) = (layout.separate(), layout.query_column());
    let zero = m.splat(M::Element::default());
    let on_target = m.splat(M::Element::of(hyper.gamma * value_row[d + 1].get()));
    let on_value = m.splat(value_row[d + 2]);
    let mixing = Mixing::new(m, hyper);
    for j in 0..layout.num_columns() {
        m.put(zero, &mut tape[layout.values(0) + j]);
    }
    if layers == 1 {
        // Only the last column is summed below, but the diagonal is measured in all.
        for j in 0..n {
            let mut total = zero;
            for i in 0..n {
                total = total + m.load(&band[layout.weight(stride, i, j)..]);
            }
            m.put(m.recip(total), &mut tape[layout.shares() + j]);
        }
    }
    for layer in 0..layers {
        let (values, messages, sums) = (layout.values(layer), layout.messages(layer), layout.sums(layer));
        for i in 0..n {
            let mut q = m.load(&common[n + i..]);
            if layout.hides_reward(i) {
                q = q - m.splat(value_row[d]) * m.load(&rewards[n + i..]);
            }
            if layer > 0 {
                if i < layout.linked() {
                    q = m.fma(on_target, m.get(&tape[values + i + 1]), q);
                }
                q = m.fma(on_value, m.get(&tape[values + i]), q);
            }
            m.put(q, &mut tape[messages + i]);
        }
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
                    (total, sum) = (m.get(&tape[layout.shares() + j]), m.get(&tape[sums + j]));
                }
                for i in 0..width {
                    let weight = m.load(&band[layout.weight(stride, start + i, j)..]);
                    if layer == 0 {
                        total = total + weight;
                    }
                    sum = m.fma(weight, q[i], sum);
                }
                if layer == 0 {
                    m.put(total, &mut tape[layout.shares() + j]);
                }
                m.put(sum, &mut tape[sums + j]);
            }
        }
        if layer == 0 {
            for j in band_columns.clone() {
                let total = &mut tape[layout.shares() + j];
                m.put(m.recip(m.get(total)), total);
            }
        }
        if separate {
            let mut sum = zero;
            for i in 0..n {
                sum = m.fma(m.get(&tape[layout.query() + i]), m.get(&tape[messages + i]), sum);
            }
            m.put(sum, &mut tape[sums + query]);
        }
        for j in if last { query } else { 0 }..=query {
            let s = m.get(&tape[sums + j]) * m.get(&tape[layout.shares() + j]);
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
