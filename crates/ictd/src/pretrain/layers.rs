//! What the passes for scores of features alone have in common: [`band`](super::band), [`factored`](super::factored) and
//! [`states`](super::states).
//!
//! Of V only the last row (a, p_r, p_t, p_v) matters to them, and a source sends q_i = c_i + p_t·γ·v_{i+1} + p_v·v_i, where
//! c_i = ⟨a, x_i⟩ + p_r·R_i is the same in every layer of a pair (V, A). How messages are summed is each pass's own.

use super::engine::{Applies, Hyper, Inapplicable};
use super::lanes::{Element, Machine, WIDTH};
use super::shape::{Columns, Shape};

/// Largest |score/τ| for which exponentials, their sums and their quotients stay far from the limits of
/// single precision (e⁶⁰ ≈ 1e26).
const SCORE_LIMIT: f64 = 60.0;

/// What these passes need to know of a shape. Block and mask make no difference to them: shapes that differ in nothing else
/// run the same program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub d: usize,
    pub n: usize,
    pub layers: usize,
    pub tied: bool,
    pub columns: Columns,
}

impl Sizes {
    /// The paper's. Where they are constants, the compiler unrolls every loop over them and drops the checks of every
    /// access.
    pub const PAPER: Sizes = Sizes { d: 4, n: 10, layers: 3, tied: true, columns: Columns::PAPER };

    #[inline(always)]
    pub fn of(shape: &Shape) -> Self {
        let (d, n, layers) = (shape.feature_dim, shape.context_len, shape.num_layers);
        Self { d, n, layers, tied: shape.tied, columns: shape.columns }
    }
    /// Pairs (V, A): one for all layers, or one each.
    #[inline(always)]
    pub fn pairs(self) -> usize {
        if self.tied { 1 } else { self.layers }
    }
    /// The pair of a layer.
    #[inline(always)]
    pub fn pair(self, layer: usize) -> usize {
        if self.tied { 0 } else { layer }
    }
    /// Whether a layer is the first of its pair.
    #[inline(always)]
    pub fn opens_pair(self, layer: usize) -> bool {
        layer == 0 || !self.tied
    }
    /// All columns.
    #[inline(always)]
    pub fn num_columns(self) -> usize {
        self.columns.count(self.n)
    }
    /// The query's column.
    #[inline(always)]
    pub fn query(self) -> usize {
        self.num_columns() - 1
    }
    /// Derivatives that are summed up per pair: by B (d×d), by a and p_r (d + 1), by γ·p_t and p_v.
    #[inline(always)]
    pub fn accumulators(self) -> usize {
        self.d * self.d + self.d + 3
    }
}

/// Σ_a weight(a)·x_a, x being as many rows that lie a stride apart.
#[inline(always)]
pub(super) fn combine<M: Machine>(
    m: M,
    weights: &[M::Element],
    x: &[M::Element],
    stride: usize,
) -> M::Number {
    let mut sum = m.splat(M::Element::default());
    for (a, weight) in weights.iter().enumerate() {
        sum = m.fma(m.splat(*weight), m.load(&x[a * stride..]), sum);
    }
    sum
}

/// The messages q_i of a layer, from the values before it. `common` and `rewards` are c and R from the block's first window
/// on.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
pub(super) fn send<M: Machine>(
    m: M,
    sizes: Sizes,
    hyper: Hyper,
    value_row: &[M::Element],
    layer: usize,
    (common, rewards): (&[M::Element], &[M::Element]),
    values: &[M::Cell],
    messages: &mut [M::Cell],
) {
    let Sizes { d, n, columns, .. } = sizes;
    let on_target = m.splat(M::Element::of(hyper.gamma * value_row[d + 1].get()));
    let on_value = m.splat(value_row[d + 2]);
    for i in 0..n {
        let mut q = m.load(&common[i..]);
        if i >= columns.rewarded(n) {
            q = q - m.splat(value_row[d]) * m.load(&rewards[i..]);
        }
        // Before the first layer all values are 0.
        if layer > 0 {
            if i < columns.linked(n) {
                q = m.fma(on_target, m.get(&values[i + 1]), q);
            }
            q = m.fma(on_value, m.get(&values[i]), q);
        }
        m.put(q, &mut messages[i]);
    }
}

/// From the derivatives by messages to those by values, and by γ·p_t and p_v. `by_row` are the accumulators of V's last row.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
pub(super) fn through_messages<M: Machine>(
    m: M,
    sizes: Sizes,
    hyper: Hyper,
    value_row: &[M::Element],
    layer: usize,
    values: &[M::Cell],
    messages_bar: &[M::Cell],
    values_bar: &mut [M::Cell],
    by_row: &mut [M::Cell],
) {
    // Before the first layer all values are 0 and depend on nothing.
    if layer == 0 {
        return;
    }
    let Sizes { d, n, columns, .. } = sizes;
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

/// Adds a pair's accumulators to the gradient: those by B over `divisor`, what A's products were divided by, and those by γ·p_t
/// times γ.
#[inline(always)]
pub(super) fn add_to_gradient<M: Machine>(
    m: M,
    shape: &Shape,
    pair: usize,
    accumulators: &[M::Cell],
    (divisor, gamma): (f64, f64),
    gradient: &mut [f64],
) {
    let d = shape.feature_dim;
    let (by_block, by_row) = accumulators.split_at(d * d);
    for (k, cell) in by_block.iter().enumerate() {
        gradient[shape.score_index(pair, k / d, k % d)] += m.sum(cell) / divisor;
    }
    let row = &mut gradient[shape.value_index(pair, d + 2, 0)..][..d + 3];
    for (k, (entry, cell)) in row.iter_mut().zip(by_row).enumerate() {
        let scale = if k == d + 1 { gamma } else { 1.0 };
        *entry += scale * m.sum(cell);
    }
}

/// Whether exponentials of scores with these largest absolute values are in range.
#[inline(always)]
pub(super) fn scores_in_range<M: Machine>(m: M, largest: M::Number) -> Applies {
    let mut lanes = [M::Element::default(); WIDTH];
    m.store(largest, &mut lanes);
    // The comparison is false for NaN.
    let in_range = lanes[..M::LANES].iter().all(|x| x.get() <= SCORE_LIMIT);
    if in_range { Ok(()) } else { Err(Inapplicable) }
}

/// Whether all predictions are numbers.
#[inline(always)]
pub(super) fn all_finite<E: Element>(predictions: &[E]) -> Applies {
    if predictions.iter().all(|x| x.get().is_finite()) { Ok(()) } else { Err(Inapplicable) }
}
