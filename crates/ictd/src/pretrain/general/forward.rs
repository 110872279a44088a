//! The general forward pass.

use super::super::engine::{Hyper, Job, Mixing};
use super::super::lanes::{Element, Machine, by_width, chunks, store_part};
use super::super::params::ParamsView;
use super::super::rollout::Windows;
use super::super::shape::Shape;
use super::super::weighing::Weighing;
use super::{General, Layout};
use crate::transformer::Block;

#[inline(always)]
pub(super) fn forward<M: Machine>(
    m: M,
    shape: Shape,
    buffers: &mut General<M::Cell>,
    job: Job<'_, M::Element>,
    out: &mut [M::Element],
) {
    let Job { hyper, windows, first, .. } = job;
    let params = job.params.with_shape(&shape);
    let layout = Layout::of(&shape, &buffers.kernel);
    let per_block = shape.num_layers * layout.layer();
    let num_blocks = out.len().div_ceil(M::LANES);
    buffers.tape.resize(num_blocks * per_block, M::Cell::default());
    let blocks = buffers.tape.chunks_exact_mut(per_block).zip(out.chunks_mut(M::LANES));
    for (block, (tape, out)) in blocks.enumerate() {
        load_prompt(m, &shape, windows, first + block * M::LANES, tape);
        let prediction = forward_block(m, &shape, hyper, &buffers.kernel, params, tape);
        store_part(m, prediction, out);
    }
}

/// Writes Z_0 of the windows from `t` on.
#[inline(always)]
fn load_prompt<M: Machine>(
    m: M,
    shape: &Shape,
    windows: &Windows<M::Element>,
    t: usize,
    tape: &mut [M::Cell],
) {
    let (d, n, columns) = (shape.feature_dim, shape.context_len, shape.num_columns());
    let zero = m.splat(M::Element::default());
    for a in 0..d {
        for k in 0..shape.columns.trajectory(n) {
            m.put(m.load(windows.feature(a, t + k)), &mut tape[a * columns + k]);
        }
        if shape.columns.separate_query {
            m.put(m.load(windows.query(a, t)), &mut tape[a * columns + columns - 1]);
        }
    }
    let rewarded = shape.columns.rewarded(n);
    for k in 0..rewarded {
        m.put(m.load(windows.reward(t + k)), &mut tape[d * columns + k]);
    }
    for cell in &mut tape[d * columns + rewarded..(d + 3) * columns] {
        m.put(zero, cell);
    }
}

/// All layers of one block of windows; Z_0 is on the tape. Returns the prediction.
#[inline(always)]
fn forward_block<M: Machine>(
    m: M,
    shape: &Shape,
    hyper: Hyper,
    kernel: &Weighing,
    params: ParamsView<'_, M::Element>,
    tape: &mut [M::Cell],
) -> M::Number {
    let layout = Layout::of(shape, kernel);
    let Layout { rows, columns, sources, .. } = layout;
    let d = shape.feature_dim;
    let value_rows = shape.value_rows();
    let score_rows = shape.score_rows();
    let gamma = m.splat(M::Element::of(hyper.gamma));
    let cooling = m.splat(M::Element::of(1.0 / hyper.temperature));
    let (mixing, linked, query) = (Mixing::new(m, hyper), shape.columns.linked(sources), columns - 1);
    let zero = m.splat(M::Element::default());
    for layer in 0..shape.num_layers {
        let (now, later) = tape[layer * layout.layer()..].split_at_mut(layout.layer());
        let (value_matrix, score_matrix) = (params.value_matrix(layer), params.score_matrix(layer));
        let last_layer = layer + 1 == shape.num_layers;
        // The prediction needs the last column of the last layer only; the diagonal is measured in the
        // first.
        let first_column = if last_layer && layer > 0 { columns - 1 } else { 0 };
        let (z, rest) = now.split_at_mut(layout.keys());
        let (keys, rest) = rest.split_at_mut(layout.weights() - layout.keys());
        let (weights, rest) = rest.split_at_mut(layout.slopes() - layout.weights());
        let (slopes, rest) = rest.split_at_mut(layout.messages() - layout.slopes());
        let (messages, own) = rest.split_at_mut(layout.own() - layout.messages());
        // A source's own term in a distance is made of its key.
        let first_key = if layout.distances { 0 } else { first_column };
        for j in first_key..columns {
            for (a, width) in chunks(score_rows) {
                let (matrix, keys) = (&score_matrix[a * rows..], &mut keys[a * columns + j..]);
                let size = (rows, columns, score_rows);
                by_width!(width, W => key_chunk::<M, W>(m, matrix, &z[j..], size, cooling, keys));
            }
        }
        for (j, cell) in own.iter_mut().enumerate() {
            m.put(own_term(m, &z[j..], &keys[j..], (columns, score_rows)), cell);
        }
        for a in value_rows.clone() {
            for i in 0..sources {
                let mut sum = zero;
                for b in 0..rows {
                    sum = m.fma(m.splat(value_matrix[a * rows + b]), m.get(&z[b * columns + i]), sum);
                }
                m.put(sum, &mut messages[a * sources + i]);
            }
        }
        for j in first_column..columns {
            let column = &mut weights[j * sources..(j + 1) * sources];
            for (i, width) in chunks(sources) {
                let (size, out) = ((columns, score_rows), &mut column[i..]);
                by_width!(width, W => score_chunk::<M, W>(m, &z[i..], &keys[j..], size, out));
            }
            if layout.distances {
                for (cell, source) in column.iter_mut().zip(&*own) {
                    m.put(m.get(cell) + (m.get(source) + m.get(&own[j])), cell);
                }
            }
            let slopes =
                if slopes.is_empty() { &mut [] } else { &mut slopes[j * sources..(j + 1) * sources] };
            kernel.weigh(m, column, slopes);
        }
        if last_layer {
            let messages = &messages[(d + 2) * sources..];
            let sum = aggregate(m, &weights[query * sources..], messages, sources);
            let (keep, own) = mixing.query;
            let value = m.fma(sum, keep, m.get(&z[(d + 2) * columns + query]));
            return if query < sources { m.fma(own, m.get(&messages[query]), value) } else { value };
        }
        let next = &mut later[..layout.keys()];
        next.copy_from_slice(z);
        let dual = shape.block == Block::DualHead;
        for a in value_rows.clone() {
            for j in 0..columns {
                let column = &weights[j * sources..(j + 1) * sources];
                let (keep, own) = if j == query { mixing.query } else { mixing.context };
                let mut update = aggregate(m, column, &messages[a * sources..], sources) * keep;
                if j < sources {
                    update = m.fma(own, m.get(&messages[a * sources + j]), update);
                }
                let cell = &mut next[a * columns + j];
                m.put(m.get(cell) + update, cell);
                if dual && (1..=linked).contains(&j) {
                    let target = &mut next[(d + 1) * columns + j - 1];
                    m.put(m.fma(gamma, update, m.get(target)), target);
                }
            }
        }
        if !dual {
            for j in 0..linked {
                m.put(gamma * m.get(&next[(d + 2) * columns + j + 1]), &mut next[(d + 1) * columns + j]);
            }
            for cell in &mut next[(d + 1) * columns + linked..(d + 2) * columns] {
                m.put(zero, cell);
            }
        }
    }
    zero
}

/// Σ_i weight(i)·message(i).
#[inline(always)]
fn aggregate<M: Machine>(m: M, weights: &[M::Cell], messages: &[M::Cell], sources: usize) -> M::Number {
    let mut sum = m.splat(M::Element::default());
    for i in 0..sources {
        sum = m.fma(m.get(&weights[i]), m.get(&messages[i]), sum);
    }
    sum
}

/// W rows of a column of A Z/τ.
#[inline(always)]
fn key_chunk<M: Machine, const W: usize>(
    m: M,
    score_matrix: &[M::Element],
    z: &[M::Cell],
    (rows, columns, score_rows): (usize, usize, usize),
    cooling: M::Number,
    keys: &mut [M::Cell],
) {
    let mut sums = [m.splat(M::Element::default()); W];
    for b in 0..score_rows {
        let token = m.get(&z[b * columns]);
        for w in 0..W {
            sums[w] = m.fma(m.splat(score_matrix[w * rows + b]), token, sums[w]);
        }
    }
    for w in 0..W {
        m.put(sums[w] * cooling, &mut keys[w * columns]);
    }
}

/// What a column brings to its distances: -½ times the product with its own key.
#[inline(always)]
fn own_term<M: Machine>(
    m: M,
    z: &[M::Cell],
    keys: &[M::Cell],
    (columns, score_rows): (usize, usize),
) -> M::Number {
    let mut product = m.splat(M::Element::default());
    for a in 0..score_rows {
        product = m.fma(m.get(&z[a * columns]), m.get(&keys[a * columns]), product);
    }
    product * m.splat(M::Element::of(-0.5))
}

/// Scores of W sources for a column.
#[inline(always)]
fn score_chunk<M: Machine, const W: usize>(
    m: M,
    z: &[M::Cell],
    keys: &[M::Cell],
    (columns, score_rows): (usize, usize),
    out: &mut [M::Cell],
) {
    let mut sums = [m.splat(M::Element::default()); W];
    for a in 0..score_rows {
        let key = m.get(&keys[a * columns]);
        for w in 0..W {
            sums[w] = m.fma(m.get(&z[a * columns + w]), key, sums[w]);
        }
    }
    for w in 0..W {
        m.put(sums[w], &mut out[w]);
    }
}
