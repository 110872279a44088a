//! The forward pass by state.

use std::sync::Arc;

use super::super::engine::{Applies, Hyper, Inapplicable, Job};
use super::super::lanes::{Element, Machine, WIDTH};
use super::super::layers::{Sizes, all_finite, combine, scores_in_range};
use super::super::params::ParamsView;
use super::super::weighing::{BuiltIn, LaneKernel, by_kernel};
use super::visits::{TILE, Visits};
use super::{Layout, States};

#[inline(always)]
pub(super) fn forward<M: Machine>(
    m: M,
    buffers: &mut States<M::Element, M::Cell>,
    job: Job<'_, M::Element>,
    out: &mut [M::Element],
) -> Applies {
    let Job { hyper, params, windows, first } = job;
    // Mixing gives a column part of its own message, which its state does not say: it depends on what follows.
    let Some(visits) = windows.visits().filter(|_| hyper.diagonal_mix == 0.0) else {
        return Err(Inapplicable);
    };
    let layout = Layout::of(&buffers.shape, visits);
    let in_range = weigh_states(m, &layout, buffers, hyper, params, visits);

    let (rewards, n) = (windows.reward(0), buffers.shape.context_len);
    buffers.tally.start(visits, rewards, first, n, buffers.shape.columns);
    buffers.tape.resize(out.len().div_ceil(M::LANES) * layout.block(), M::Cell::default());
    buffers.rows.resize(layout.visits() * M::LANES, M::Element::default());
    let mut lanes = [M::Element::default(); WIDTH];
    for (block, tape) in buffers.tape.chunks_exact_mut(layout.block()).enumerate() {
        let t = block * M::LANES;
        let end = out.len().min(t + M::LANES);
        for lane in 0..M::LANES {
            for (row, sum) in buffers.rows.chunks_exact_mut(M::LANES).zip(buffers.tally.sums()) {
                row[lane] = M::Element::of(sum);
            }
            // Lanes beyond the last window repeat it.
            if t + lane + 1 < end {
                buffers.tally.advance(visits, rewards);
            }
        }
        if end < out.len() {
            buffers.tally.advance(visits, rewards);
        }
        for (row, cell) in buffers.rows.chunks_exact(M::LANES).zip(&mut *tape) {
            m.put(m.load(row), cell);
        }
        let arrays = Arrays { visits, common: &buffers.common, weights: &buffers.weights };
        forward_block(m, &layout, buffers.kernel, hyper, params, arrays, tape);
        for lane in 0..end - t {
            let query = layout.values(layout.sizes.layers) + visits.query(first + t + lane);
            m.store(m.get(&tape[query]), &mut lanes);
            out[t + lane] = lanes[lane];
        }
    }
    buffers.first = first;
    buffers.visits = Some(Arc::clone(visits));
    in_range?;
    all_finite(out)
}

/// Weights of every state for every other, their slopes, and what a state's messages have in common, pair by pair, on
/// lanes of states. Says whether all scores are in range.
#[inline(always)]
fn weigh_states<M: Machine>(
    m: M,
    layout: &Layout,
    buffers: &mut States<M::Element, M::Cell>,
    hyper: Hyper,
    params: ParamsView<'_, M::Element>,
    visits: &Visits<M::Element>,
) -> Applies {
    let Layout { sizes, states, stride, .. } = *layout;
    let (d, pairs) = (sizes.d, sizes.pairs());
    let (rows, features) = (d + 3, visits.features());
    let zero = m.splat(M::Element::default());
    let cooling = m.splat(M::Element::of(1.0 / hyper.temperature));
    for (array, len) in [
        (&mut buffers.keys, d * stride),
        (&mut buffers.own, stride),
        (&mut buffers.common, pairs * stride),
        (&mut buffers.weights, pairs * states * stride),
        (&mut buffers.slopes, pairs * states * stride),
    ] {
        array.resize(len, M::Element::default());
    }
    let mut largest = zero;
    for pair in 0..pairs {
        let (value_row, score_matrix) = (params.value_row(pair), params.score_matrix(pair));
        for u in (0..stride).step_by(M::LANES) {
            let (x, mut product) = (&features[u..], zero);
            for a in 0..d {
                let key = combine(m, &score_matrix[a * rows..][..d], x, stride) * cooling;
                m.store(key, &mut buffers.keys[a * stride + u..]);
                product = m.fma(m.load(&x[a * stride..]), key, product);
            }
            m.store(product * m.splat(M::Element::of(-0.5)), &mut buffers.own[u..]);
            m.store(combine(m, &value_row[..d], x, stride), &mut buffers.common[pair * stride + u..]);
        }
        let range = pair * states * stride..(pair + 1) * states * stride;
        let (weights, slopes) = (&mut buffers.weights[range.clone()], &mut buffers.slopes[range]);
        let rows = (&buffers.keys[..d * stride], &buffers.own[..stride]);
        by_kernel!(buffers.kernel, K => weigh::<M, K>(m, layout, features, rows, weights, slopes, &mut largest));
    }
    scores_in_range(m, largest)
}

/// Row by row: the weights of a source's state for every column's, and their slopes.
#[inline(always)]
fn weigh<M: Machine, K: LaneKernel>(
    m: M,
    layout: &Layout,
    features: &[M::Element],
    (keys, own): (&[M::Element], &[M::Element]),
    weights: &mut [M::Element],
    slopes: &mut [M::Element],
    largest: &mut M::Number,
) {
    let Layout { sizes: Sizes { d, .. }, states, stride, .. } = *layout;
    for s in 0..states {
        for u in (0..stride).step_by(M::LANES) {
            let mut score = m.splat(M::Element::default());
            for a in 0..d {
                score = m.fma(m.splat(features[a * stride + s]), m.load(&keys[a * stride + u..]), score);
            }
            if K::DISTANCE {
                score = score + (m.splat(own[s]) + m.load(&own[u..]));
            }
            *largest = m.max(*largest, m.abs(score));
            let weight = K::weight(m, score);
            m.store(weight, &mut weights[s * stride + u..]);
            m.store(K::slope(m, weight), &mut slopes[s * stride + u..]);
        }
    }
}

/// What a block of windows reads.
struct Arrays<'a, E> {
    visits: &'a Visits<E>,
    common: &'a [E],
    weights: &'a [E],
}

/// All layers of a block of windows, whose visits are on the tape.
#[inline(always)]
fn forward_block<M: Machine>(
    m: M,
    layout: &Layout,
    kernel: BuiltIn,
    hyper: Hyper,
    params: ParamsView<'_, M::Element>,
    arrays: Arrays<'_, M::Element>,
    tape: &mut [M::Cell],
) {
    let Layout { sizes, states, stride, .. } = *layout;
    let Sizes { d, n, layers, .. } = sizes;
    let Arrays { visits, common, weights } = arrays;
    for cell in &mut tape[layout.values(0)..][..states] {
        m.put(m.splat(M::Element::default()), cell);
    }
    for layer in 0..layers {
        let (pair, value_row) = (sizes.pair(layer), params.value_row(layer));
        let weights = &weights[pair * states * stride..][..states * stride];
        let (shares, sums) = (layout.shares(pair), layout.sums(layer));
        if sizes.opens_pair(layer) {
            product(m, layout, weights, (1, stride), tape, Layout::COUNTS, shares);
            kernel.share(m, n, &mut tape[shares..][..states]);
        }
        let [on_reward, on_value] = [d, d + 2].map(|k| m.splat(value_row[k]));
        let on_target = m.splat(M::Element::of(hyper.gamma * value_row[d + 1].get()));
        for s in 0..states {
            let mut message = m.splat(common[pair * stride + s]);
            if layer > 0 {
                message = m.fma(on_value, m.get(&tape[layout.values(layer) + s]), message);
            }
            message = message * m.get(&tape[Layout::COUNTS + s]);
            message = m.fma(on_reward, m.get(&tape[layout.rewards() + s]), message);
            // Before the first layer all values are 0.
            if layer > 0 {
                let mut next = m.splat(M::Element::default());
                for link in visits.links_of(s) {
                    let value = m.get(&tape[layout.values(layer) + visits.successor(link)]);
                    next = m.fma(m.get(&tape[layout.links() + link]), value, next);
                }
                message = m.fma(on_target, next, message);
            }
            m.put(message, &mut tape[layout.messages(layer) + s]);
        }
        product(m, layout, weights, (1, stride), tape, layout.messages(layer), sums);
        for u in 0..states {
            let sum = m.get(&tape[sums + u]) * m.get(&tape[shares + u]);
            m.put(sum, &mut tape[sums + u]);
            let value = m.get(&tape[layout.values(layer) + u]) + sum;
            m.put(value, &mut tape[layout.values(layer + 1) + u]);
        }
    }
}

/// The cells from `to` on: Σ_k matrix(j, k)·cell(from + k) for every state j, where entries of the matrix lie `steps`
/// apart, by j and by k.
#[inline(always)]
pub(super) fn product<M: Machine>(
    m: M,
    layout: &Layout,
    matrix: &[M::Element],
    (by_out, by_in): (usize, usize),
    cells: &mut [M::Cell],
    from: usize,
    to: usize,
) {
    for start in (0..layout.states).step_by(TILE) {
        let mut sums = [m.splat(M::Element::default()); TILE];
        for k in 0..layout.states {
            let x = m.get(&cells[from + k]);
            let entries = &matrix[start * by_out + k * by_in..];
            for j in 0..TILE {
                sums[j] = m.fma(m.splat(entries[j * by_out]), x, sums[j]);
            }
        }
        for j in 0..TILE {
            m.put(sums[j], &mut cells[to + start + j]);
        }
    }
}
