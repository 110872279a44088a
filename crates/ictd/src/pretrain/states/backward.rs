//! The reverse pass by state.

use super::super::engine::{Feedback, Hyper};
use super::super::lanes::{Element, Machine};
use super::super::layers::{Sizes, add_to_gradient};
use super::super::params::ParamsView;
use super::forward::product;
use super::visits::{TILE, Visits};
use super::{Layout, States};

/// Rows of the derivative by weights that are summed at a time.
pub(super) const ROWS: usize = 2;

#[inline(always)]
pub(super) fn backward<M: Machine>(
    m: M,
    buffers: &mut States<M::Element, M::Cell>,
    feedback: Feedback<'_, M::Element>,
) {
    let Feedback { hyper, params, out_bar, gradient } = feedback;
    // Without a forward pass there is nothing to go back through.
    let Some(visits) = buffers.visits.take() else { return };
    let (shape, layout) = (buffers.shape, Layout::of(&buffers.shape, &visits));
    let Layout { sizes, states, stride, .. } = layout;
    let d = sizes.d;
    buffers.scratch.resize(layout.scratch(), M::Cell::default());
    buffers.accumulators.clear();
    buffers.accumulators.resize(sizes.pairs() * sizes.accumulators(), M::Cell::default());
    let num_blocks = out_bar.len().div_ceil(M::LANES);
    for (block, tape) in buffers.tape.chunks_exact_mut(layout.block()).take(num_blocks).enumerate() {
        // A window's prediction is the value of the state it was asked about.
        let seeds = &mut buffers.rows[..states * M::LANES];
        seeds.fill(M::Element::default());
        let t = block * M::LANES;
        for (lane, bar) in out_bar[t..].iter().take(M::LANES).enumerate() {
            seeds[visits.query(buffers.first + t + lane) * M::LANES + lane] = *bar;
        }
        for (row, cell) in seeds.chunks_exact(M::LANES).zip(&mut buffers.scratch[Layout::VALUES_BAR..]) {
            m.put(m.load(row), cell);
        }
        let arrays = Arrays {
            visits: &visits,
            weights: &buffers.weights,
            by_column: buffers.kernel.by_column(),
            scratch: &mut buffers.scratch,
            accumulators: &mut buffers.accumulators,
        };
        backward_block(m, &layout, hyper, params, arrays, tape);
    }
    let tape = &buffers.tape[..num_blocks * layout.block()];
    for pair in 0..sizes.pairs() {
        let accumulators = &mut buffers.accumulators[pair * sizes.accumulators()..][..sizes.accumulators()];
        let slopes = &buffers.slopes[pair * states * stride..][..states * stride];
        let y = &mut buffers.scratch[..ROWS * d];
        let distances = buffers.kernel.sees_distances();
        scores(m, &layout, pair, tape, visits.features(), slopes, distances, y, accumulators);
        add_to_gradient(m, &shape, pair, accumulators, (hyper.temperature, hyper.gamma), gradient);
    }
    buffers.visits = Some(visits);
}

/// What the reverse pass of a block reads and adds to.
struct Arrays<'a, E, C> {
    visits: &'a Visits<E>,
    weights: &'a [E],
    by_column: bool,
    scratch: &'a mut [C],
    accumulators: &'a mut [C],
}

/// Back through all layers of a block of windows: adds to the derivatives by V's last row, and leaves on the tape what
/// those by weights are made of.
#[inline(always)]
fn backward_block<M: Machine>(
    m: M,
    layout: &Layout,
    hyper: Hyper,
    params: ParamsView<'_, M::Element>,
    arrays: Arrays<'_, M::Element, M::Cell>,
    tape: &mut [M::Cell],
) {
    let Layout { sizes, states, stride, .. } = *layout;
    let Sizes { d, layers, tied, .. } = sizes;
    let Arrays { visits, weights, by_column, scratch, accumulators } = arrays;
    let (features, bars) = (visits.features(), Layout::VALUES_BAR);
    for layer in (0..layers).rev() {
        let (pair, value_row) = (sizes.pair(layer), params.value_row(layer));
        let weights = &weights[pair * states * stride..][..states * stride];
        let on_target = m.splat(M::Element::of(hyper.gamma * value_row[d + 1].get()));
        let on_value = m.splat(value_row[d + 2]);
        let row = &mut accumulators[pair * sizes.accumulators() + d * d..][..d + 3];
        let (sums, sums_bar, offsets) = (layout.sums(layer), layout.sums_bar(layer), layout.offsets(pair));
        for u in 0..states {
            let bar = m.get(&scratch[bars + u]) * m.get(&tape[layout.shares(pair) + u]);
            m.put(bar, &mut tape[sums_bar + u]);
            let mut offset = m.splat(M::Element::default());
            // The layers of a pair are gone through from the last to the first.
            if tied && layer + 1 < layers {
                offset = m.get(&tape[offsets + u]);
            }
            if by_column {
                offset = m.fma(-bar, m.get(&tape[sums + u]), offset);
            }
            m.put(offset, &mut tape[offsets + u]);
        }
        // The messages of this layer are needed further on, those of the forward pass: derivatives have cells of their own.
        let messages_bar = layout.messages_bar();
        product(m, layout, weights, (stride, 1), tape, sums_bar, messages_bar);
        for s in 0..states {
            let bar = m.get(&tape[messages_bar + s]);
            let counted = bar * m.get(&tape[Layout::COUNTS + s]);
            for a in 0..d {
                m.put(m.fma(m.splat(features[a * stride + s]), counted, m.get(&row[a])), &mut row[a]);
            }
            m.put(m.fma(bar, m.get(&tape[layout.rewards() + s]), m.get(&row[d])), &mut row[d]);
            // Before the first layer all values are 0 and depend on nothing.
            if layer == 0 {
                continue;
            }
            let values = layout.values(layer);
            m.put(m.fma(counted, m.get(&tape[values + s]), m.get(&row[d + 2])), &mut row[d + 2]);
            let own = &mut scratch[bars + s];
            m.put(m.fma(on_value, counted, m.get(own)), own);
            let mut target_bar = m.get(&row[d + 1]);
            for link in visits.links_of(s) {
                let counted = bar * m.get(&tape[layout.links() + link]);
                let next = visits.successor(link);
                target_bar = m.fma(counted, m.get(&tape[values + next]), target_bar);
                let cell = &mut scratch[bars + next];
                m.put(m.fma(on_target, counted, m.get(cell)), cell);
            }
            m.put(target_bar, &mut row[d + 1]);
        }
    }
}

/// Adds the derivatives by A's feature block. By the weight of s for u they are Σ_l w_u^l (q_s^l - N_s·s_u^l), over windows
/// and layers; then y_s = Σ_u s_bar(s, u)·x_u and Σ_s x_s y_sᵀ. With distances -½ Σ_u s_bar(s, u)·x_s is part of y_s, from the
/// source's own term.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn scores<M: Machine>(
    m: M,
    layout: &Layout,
    pair: usize,
    tape: &[M::Cell],
    features: &[M::Element],
    slopes: &[M::Element],
    distances: bool,
    y: &mut [M::Cell],
    accumulators: &mut [M::Cell],
) {
    let Layout { sizes: Sizes { d, .. }, states, stride, .. } = *layout;
    let zero = m.splat(M::Element::default());
    for start in (0..states).step_by(ROWS) {
        for cell in &mut *y {
            m.put(zero, cell);
        }
        for u in (0..states).step_by(TILE) {
            let mut bars = [[zero; TILE]; ROWS];
            for tape in tape.chunks_exact(layout.block()) {
                for layer in layout.layers_of(pair) {
                    let (left, right) = (layout.messages(layer) + start, layout.sums_bar(layer) + u);
                    add_outer(m, &tape[left..], &tape[right..], &mut bars);
                }
                let (left, right) = (Layout::COUNTS + start, layout.offsets(pair) + u);
                add_outer(m, &tape[left..], &tape[right..], &mut bars);
            }
            for (i, bars) in bars.iter_mut().enumerate() {
                for (j, bar) in bars.iter_mut().enumerate() {
                    *bar = *bar * m.splat(slopes[(start + i) * stride + u + j]);
                }
                let mut half = zero;
                if distances {
                    for bar in &*bars {
                        half = half + *bar;
                    }
                    half = half * m.splat(M::Element::of(-0.5));
                }
                for b in 0..d {
                    let mut sum = m.get(&y[i * d + b]);
                    for (j, bar) in bars.iter().enumerate() {
                        sum = m.fma(*bar, m.splat(features[b * stride + u + j]), sum);
                    }
                    if distances {
                        sum = m.fma(half, m.splat(features[b * stride + start + i]), sum);
                    }
                    m.put(sum, &mut y[i * d + b]);
                }
            }
        }
        for i in 0..ROWS {
            for a in 0..d {
                let x = m.splat(features[a * stride + start + i]);
                for b in 0..d {
                    let cell = &mut accumulators[a * d + b];
                    m.put(m.fma(x, m.get(&y[i * d + b]), m.get(cell)), cell);
                }
            }
        }
    }
}

/// Adds left(i)·right(j) to every entry.
#[inline(always)]
fn add_outer<M: Machine>(m: M, left: &[M::Cell], right: &[M::Cell], bars: &mut [[M::Number; TILE]; ROWS]) {
    let (left, right) = (&left[..ROWS], &right[..TILE]);
    for i in 0..ROWS {
        let x = m.get(&left[i]);
        for j in 0..TILE {
            bars[i][j] = m.fma(x, m.get(&right[j]), bars[i][j]);
        }
    }
}
