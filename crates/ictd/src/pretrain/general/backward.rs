//! The general reverse pass.

use super::super::engine::{Feedback, Hyper, Mixing};
use super::super::lanes::{Element, Machine, by_width, chunks, load_part};
use super::super::params::ParamsView;
use super::super::shape::Shape;
use super::super::weighing::Weighing;
use super::{General, Layout};
use crate::transformer::Block;

#[inline(always)]
pub(super) fn backward<M: Machine>(
    m: M,
    shape: Shape,
    buffers: &mut General<M::Cell>,
    feedback: Feedback<'_, M::Element>,
) {
    let Feedback { hyper, params, out_bar, gradient } = feedback;
    let params = params.with_shape(&shape);
    let layout = Layout::of(&shape, &buffers.kernel);
    let per_block = shape.num_layers * layout.layer();
    buffers.gradient.clear();
    buffers.gradient.resize(shape.num_params(), M::Cell::default());
    buffers.scratch.resize(2 * layout.layer(), M::Cell::default());
    for (tape, seeds) in buffers.tape.chunks_exact(per_block).zip(out_bar.chunks(M::LANES)) {
        let seed = load_part(m, seeds);
        let (scratch, sums) = (&mut buffers.scratch, &mut buffers.gradient);
        backward_block(m, &shape, hyper, &buffers.kernel, params, tape, seed, scratch, sums);
    }
    for (total, cell) in gradient.iter_mut().zip(&buffers.gradient) {
        *total += m.sum(cell);
    }
}

/// Back through all layers of one block of windows, adding to the gradient cells.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn backward_block<M: Machine>(
    m: M,
    shape: &Shape,
    hyper: Hyper,
    kernel: &Weighing,
    params: ParamsView<'_, M::Element>,
    tape: &[M::Cell],
    seed: M::Number,
    scratch: &mut [M::Cell],
    gradient: &mut [M::Cell],
) {
    let layout = Layout::of(shape, kernel);
    let Layout { rows, columns, sources, .. } = layout;
    let (d, live) = (shape.feature_dim, shape.first_live_row());
    let value_rows = shape.value_rows();
    let score_rows = shape.score_rows();
    let gamma = m.splat(M::Element::of(hyper.gamma));
    let cooling = m.splat(M::Element::of(1.0 / hyper.temperature));
    let (mixing, linked, query) = (Mixing::new(m, hyper), shape.columns.linked(sources), columns - 1);
    let (zero, by_column) = (m.splat(M::Element::default()), kernel.by_column());
    // z_bar: derivative by Z of the layer above, then of this layer. m_bar: by V Z. s_bar: by scores/τ. k_bar: by A Z.
    let (z_bar, rest) = scratch.split_at_mut(rows * columns);
    let (k_bar, rest) = rest.split_at_mut(rows * columns);
    let (m_bar, rest) = rest.split_at_mut(rows * sources);
    let s_bar = &mut rest[..columns * sources];
    z_bar.iter_mut().for_each(|cell| m.put(zero, cell));
    m.put(seed, &mut z_bar[(d + 2) * columns + columns - 1]);
    for layer in (0..shape.num_layers).rev() {
        let now = &tape[layer * layout.layer()..][..layout.layer()];
        let z = &now[..layout.keys()];
        let keys = &now[layout.keys()..layout.weights()];
        let weights = &now[layout.weights()..layout.slopes()];
        let slopes = if layout.has_slopes { &now[layout.slopes()..layout.messages()] } else { weights };
        let messages = &now[layout.messages()..layout.own()];
        let (value_matrix, score_matrix) = (params.value_matrix(layer), params.score_matrix(layer));
        let last_layer = layer + 1 == shape.num_layers;
        let first_column = if last_layer { columns - 1 } else { 0 };

        // Undo the write of the target memory, so that z_bar's value rows are the derivative by the
        // aggregate.
        if !last_layer && shape.block == Block::TemporalShift {
            for j in 0..linked {
                let target = m.get(&z_bar[(d + 1) * columns + j]);
                let cell = &mut z_bar[(d + 2) * columns + j + 1];
                m.put(m.fma(gamma, target, m.get(cell)), cell);
            }
            for cell in &mut z_bar[(d + 1) * columns..(d + 2) * columns] {
                m.put(zero, cell);
            }
        }
        let dual_extra = |z_bar: &[M::Cell], j: usize| -> M::Number {
            if shape.block == Block::DualHead && !last_layer && (1..=linked).contains(&j) {
                gamma * m.get(&z_bar[(d + 1) * columns + j - 1])
            } else {
                zero
            }
        };

        // m_bar and s_bar.
        for a in value_rows.clone() {
            for i in 0..sources {
                m.put(zero, &mut m_bar[a * sources + i]);
            }
        }
        for j in first_column..columns {
            let column = &weights[j * sources..(j + 1) * sources];
            let bars = &mut s_bar[j * sources..(j + 1) * sources];
            bars.iter_mut().for_each(|cell| m.put(zero, cell));
            for a in value_rows.clone() {
                // The last layer's other rows do not reach the prediction.
                if last_layer && a != d + 2 {
                    continue;
                }
                let (keep, own) = if j == query { mixing.query } else { mixing.context };
                let bar = m.get(&z_bar[a * columns + j]) + dual_extra(z_bar, j);
                let mixed = bar * keep;
                for i in 0..sources {
                    let message = m.get(&messages[a * sources + i]);
                    let cell = &mut m_bar[a * sources + i];
                    m.put(m.fma(mixed, m.get(&column[i]), m.get(cell)), cell);
                    m.put(m.fma(mixed, message, m.get(&bars[i])), &mut bars[i]);
                }
                if j < sources {
                    let cell = &mut m_bar[a * sources + j];
                    m.put(m.fma(own, bar, m.get(cell)), cell);
                }
            }
            // What the divisor moves by; a fixed one does not.
            let mut mean = zero;
            if by_column {
                for i in 0..sources {
                    mean = m.fma(m.get(&column[i]), m.get(&bars[i]), mean);
                }
            }
            let slopes = &slopes[j * sources..(j + 1) * sources];
            for i in 0..sources {
                let bar = (m.get(&bars[i]) - mean) * m.get(&slopes[i]) * cooling;
                m.put(bar, &mut bars[i]);
            }
        }

        // Parameters, and z_bar of the rows that lower layers changed.
        for a in value_rows.clone() {
            for b in 0..rows {
                let entry = shape.value_index(layer, a, b);
                let mut sum = m.get(&gradient[entry]);
                for i in 0..sources {
                    sum = m.fma(m.get(&m_bar[a * sources + i]), m.get(&z[b * columns + i]), sum);
                }
                m.put(sum, &mut gradient[entry]);
            }
            if layer > 0 {
                for b in live..rows {
                    let factor = m.splat(value_matrix[a * rows + b]);
                    for i in 0..sources {
                        let cell = &mut z_bar[b * columns + i];
                        // Rows of V are read before any of z_bar's value rows is used again.
                        m.put(m.fma(factor, m.get(&m_bar[a * sources + i]), m.get(cell)), cell);
                    }
                }
            }
        }
        for j in first_column..columns {
            let bars = &s_bar[j * sources..(j + 1) * sources];
            for (a, width) in chunks(score_rows) {
                let (z, out) = (&z[a * columns..], &mut k_bar[a * columns + j..]);
                by_width!(width, W => k_bar_chunk::<M, W>(m, bars, z, columns, out));
            }
        }
        let temperature = m.splat(M::Element::of(hyper.temperature));
        if layout.distances {
            // The terms of their own are products of a column with itself, each half of it times what comes back through
            // all distances to and from the column.
            for j in 0..columns {
                let unused = j < first_column;
                let half = through_own(m, s_bar, (j, sources), first_column..columns);
                for a in 0..score_rows {
                    let cell = &mut k_bar[a * columns + j];
                    let product = if unused { zero } else { m.get(cell) };
                    m.put(m.fma(half, m.get(&z[a * columns + j]), product), cell);
                    if layer > 0 && a >= live {
                        let key = m.get(&keys[a * columns + j]) * temperature;
                        let cell = &mut z_bar[a * columns + j];
                        m.put(m.fma(half, key, m.get(cell)), cell);
                    }
                }
            }
        }
        let first_key = if layout.distances { 0 } else { first_column };
        for a in 0..score_rows {
            let row = &mut gradient[shape.score_index(layer, a, 0)..][..rows];
            let keys_bar = &k_bar[a * columns..(a + 1) * columns];
            let used = first_key..columns;
            for (b, width) in chunks(score_rows) {
                let (z, out) = (&z[b * columns..], &mut row[b..]);
                by_width!(width, W => score_chunk::<M, W>(m, keys_bar, z, used.clone(), out));
            }
            if layer == 0 {
                continue;
            }
            for j in first_key..columns {
                let bars = &s_bar[j * sources..(j + 1) * sources];
                let key_bar = m.get(&keys_bar[j]);
                for b in live..score_rows {
                    let cell = &mut z_bar[b * columns + j];
                    m.put(m.fma(m.splat(score_matrix[a * rows + b]), key_bar, m.get(cell)), cell);
                }
                if a >= live && j >= first_column {
                    // The tape's keys carry 1/τ, and so do the bars: take one of them back.
                    let key = m.get(&keys[a * columns + j]) * temperature;
                    for i in 0..sources {
                        let cell = &mut z_bar[a * columns + i];
                        m.put(m.fma(m.get(&bars[i]), key, m.get(cell)), cell);
                    }
                }
            }
        }
    }
}

/// -½ of the sum of the derivatives by all scores of column j, as a source for the columns in use and as one of them.
#[inline(always)]
fn through_own<M: Machine>(
    m: M,
    s_bar: &[M::Cell],
    (j, sources): (usize, usize),
    used: std::ops::Range<usize>,
) -> M::Number {
    let mut sum = m.splat(M::Element::default());
    if used.contains(&j) {
        for bar in &s_bar[j * sources..(j + 1) * sources] {
            sum = sum + m.get(bar);
        }
    }
    if j < sources {
        for column in used {
            sum = sum + m.get(&s_bar[column * sources + j]);
        }
    }
    sum * m.splat(M::Element::of(-0.5))
}

/// Derivatives by W rows of a column of A Z, each the sum over sources of bar times token. W sums at a time, so that they do
/// not wait for one another.
#[inline(always)]
fn k_bar_chunk<M: Machine, const W: usize>(
    m: M,
    bars: &[M::Cell],
    z: &[M::Cell],
    columns: usize,
    out: &mut [M::Cell],
) {
    let mut sums = [m.splat(M::Element::default()); W];
    for (i, bar) in bars.iter().enumerate() {
        let bar = m.get(bar);
        for w in 0..W {
            sums[w] = m.fma(bar, m.get(&z[w * columns + i]), sums[w]);
        }
    }
    for w in 0..W {
        m.put(sums[w], &mut out[w * columns]);
    }
}

/// Adds to W entries of a row of A's gradient: the sum over columns of the derivative by A Z times token.
#[inline(always)]
fn score_chunk<M: Machine, const W: usize>(
    m: M,
    keys_bar: &[M::Cell],
    z: &[M::Cell],
    used: std::ops::Range<usize>,
    out: &mut [M::Cell],
) {
    let columns = keys_bar.len();
    let mut sums: [M::Number; W] = std::array::from_fn(|w| m.get(&out[w]));
    for j in used {
        let key_bar = m.get(&keys_bar[j]);
        for w in 0..W {
            sums[w] = m.fma(key_bar, m.get(&z[w * columns + j]), sums[w]);
        }
    }
    for w in 0..W {
        m.put(sums[w], &mut out[w]);
    }
}
