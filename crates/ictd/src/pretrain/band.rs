//! The fast forward and reverse pass for feature-only attention with shared parameters.
//!
//! With the full mask scores depend on features alone, which buys three savings over
//! [`reverse`](super::reverse):
//!
//! - Attention is the same in every layer.
//! - Windows overlap: the score of source position p for position p + δ is shared by all windows that
//!   contain both. Scores and exponentials form a band E\[δ\]\[p\] that is computed once per minibatch,
//!   and gradients are gathered on the same band before the outer products with features.
//! - Of V only the last row (a, p_r, p_t, p_v) matters, and c(p) = ⟨a, x_p⟩ + p_r·R_p is the same in
//!   every layer and window.
//!
//! A layer is then q_i = c_i + p_t·γ·v_{i+1} + p_v·v_i on sources, s_j = Σ_i E_ij q_i / Σ_i E_ij on
//! columns, and v_j += (1-ρ)·s_j + ρ·q_j. Exponentials are not shifted by a maximum, because no maximum
//! is shared by all windows: when a score leaves [`SCORE_LIMIT`] the caller must take the general pass.

use fearless_simd::{Level, dispatch};

use super::lanes::{Element, Line, Machine, Plain, WIDTH, Wide};
use super::reverse::Hyper;
use super::shape::Shape;
use super::windows::Windows;

/// Largest |score/τ| for which exponentials, their sums and their quotients stay far from the limits of
/// single precision (e⁶⁰ ≈ 1e26).
pub const SCORE_LIMIT: f64 = 60.0;

/// Buffers of the fast pass; `E` is an element, `C` a cell of the machine that runs it.
#[derive(Clone, Debug)]
pub struct Band<E, C> {
    shape: Shape,
    /// Length of an array over positions: n of padding, the positions, a block of padding.
    stride: usize,
    /// Dimension by dimension: x of every position; then the rewards.
    features: Vec<E>,
    /// Dimension by dimension: (B x)/τ of every position.
    keys: Vec<E>,
    /// c of every position, and the derivative by it.
    common: Vec<E>,
    common_bar: Vec<E>,
    /// Diagonal by diagonal: E of every source position, and the derivative by it.
    band: Vec<E>,
    band_bar: Vec<E>,
    tape: Vec<C>,
    scratch: Vec<C>,
    accumulators: Vec<C>,
}

/// The fast pass in double precision.
pub type BandPlain = Band<f64, f64>;
/// The fast pass in single precision, sixteen contexts at a time.
pub type BandWide = Band<f32, Line>;

/// Where a block's intermediate results lie on the tape, in cells.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Layout {
    d: usize,
    n: usize,
    layers: usize,
    /// The query is a column of its own, outside the band.
    separate: bool,
}

impl Layout {
    fn of(shape: &Shape) -> Self {
        let (d, n, layers) = (shape.feature_dim, shape.context_len, shape.num_layers);
        Self { d, n, layers, separate: shape.separate_query }
    }
    /// Sources, the last state, and a separate query.
    fn columns(self) -> usize {
        self.n + 1 + usize::from(self.separate)
    }
    /// Columns in the band: sources and the last state.
    fn band_columns(self) -> usize {
        self.n + 1
    }
    /// Differences of source and column position, -n..=n-1. Diagonal k holds source p for column p - k + n,
    /// so that the sources of a column lie `stride + 1` apart and the columns of a source `stride`.
    fn diagonals(self) -> usize {
        2 * self.n
    }
    /// Where the weight of source i for column j lies, for windows from `t` on.
    #[inline(always)]
    fn weight(self, stride: usize, t: usize, i: usize, j: usize) -> usize {
        (i + self.n - j) * stride + self.n + t + i
    }
    /// The paper's sizes as constants, if these are they: the compiler then unrolls every loop over them.
    const PAPER: Layout = Layout { d: 4, n: 10, layers: 3, separate: false };
    /// How many layers of a column reach the prediction: the last layer of the last column only.
    fn reach(self, column: usize) -> usize {
        if column + 1 == self.columns() { self.layers } else { self.layers - 1 }
    }
    /// x of the query.
    fn query_features(self) -> usize {
        0
    }
    /// E of a separate query's column, source by source.
    fn query(self) -> usize {
        self.d
    }
    /// 1/Σ_i E_ij of every column.
    fn shares(self) -> usize {
        self.query() + self.n
    }
    /// v_j before layer l.
    fn values(self, layer: usize) -> usize {
        self.shares() + (1 + layer) * self.columns()
    }
    /// s_j in layer l.
    fn sums(self, layer: usize) -> usize {
        self.values(self.layers) + layer * self.columns()
    }
    /// q_i in layer l.
    fn messages(self, layer: usize) -> usize {
        self.sums(self.layers) + layer * self.n
    }
    fn block(self) -> usize {
        self.messages(self.layers)
    }
}

impl<E: Element, C: Copy + Default> Band<E, C> {
    /// Buffers for a shape whose scores depend on features alone, with shared parameters.
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            stride: 0,
            features: Vec::new(),
            keys: Vec::new(),
            common: Vec::new(),
            common_bar: Vec::new(),
            band: Vec::new(),
            band_bar: Vec::new(),
            tape: Vec::new(),
            scratch: Vec::new(),
            accumulators: Vec::new(),
        }
    }
}

/// Why the fast pass cannot be used on a minibatch: a score is beyond [`SCORE_LIMIT`] or not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreOutOfRange;

impl BandPlain {
    /// The predictions of `out.len()` windows from window `first` on.
    pub fn forward(
        &mut self,
        hyper: Hyper,
        params: &[f64],
        windows: &Windows<f64>,
        first: usize,
        out: &mut [f64],
    ) -> Result<(), ScoreOutOfRange> {
        forward(Plain, self, hyper, params, windows, first, out)
    }

    /// Adds to `gradient` the derivative of Σ_t `out_bar[t]`·prediction(t), after [`forward`](Self::forward)
    /// on the same windows or more.
    pub fn backward(&mut self, hyper: Hyper, params: &[f64], out_bar: &[f64], gradient: &mut [f64]) {
        backward(Plain, self, hyper, params, out_bar, gradient);
    }
}

impl BandWide {
    /// The predictions of `out.len()` windows from window `first` on.
    pub fn forward(
        &mut self,
        level: Level,
        hyper: Hyper,
        params: &[f32],
        windows: &Windows<f32>,
        first: usize,
        out: &mut [f32],
    ) -> Result<(), ScoreOutOfRange> {
        dispatch!(level, simd => forward(Wide(simd), self, hyper, params, windows, first, out))
    }

    /// Adds to `gradient` the derivative of Σ_t `out_bar[t]`·prediction(t), after [`forward`](Self::forward)
    /// on the same windows or more.
    pub fn backward(
        &mut self,
        level: Level,
        hyper: Hyper,
        params: &[f32],
        out_bar: &[f32],
        gradient: &mut [f64],
    ) {
        dispatch!(level, simd => backward(Wide(simd), self, hyper, params, out_bar, gradient));
    }

    /// Sum and minimum of the weights of the first `num` windows' sources for their own columns, before
    /// mixing, after [`forward`](Self::forward). The sum over n·num is the paper's d_t.
    pub fn diagonal(&self, level: Level, num: usize) -> (f64, f64) {
        dispatch!(level, simd => diagonal(Wide(simd), self, num))
    }
}

/// The last row of V and the feature block of A.
struct Split<'a, E> {
    value_row: &'a [E],
    score_matrix: &'a [E],
}

impl<'a, E> Split<'a, E> {
    fn of(shape: &Shape, params: &'a [E]) -> Self {
        let rows = shape.num_rows();
        Self { value_row: &params[(rows - 1) * rows..rows * rows], score_matrix: &params[rows * rows..] }
    }
}

#[inline(always)]
fn forward<M: Machine>(
    m: M,
    buffers: &mut Band<M::Element, M::Cell>,
    hyper: Hyper,
    params: &[M::Element],
    windows: &Windows<M::Element>,
    first: usize,
    out: &mut [M::Element],
) -> Result<(), ScoreOutOfRange> {
    let layout = Layout::of(&buffers.shape);
    if layout == Layout::PAPER {
        forward_sized(m, Layout::PAPER, buffers, hyper, params, windows, first, out)
    } else {
        forward_sized(m, layout, buffers, hyper, params, windows, first, out)
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn forward_sized<M: Machine>(
    m: M,
    layout: Layout,
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
    let stride = n + positions.next_multiple_of(M::LANES) + n + WIDTH;
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

    // The band: source p, column p - k + n.
    let mut largest = zero;
    for p in (0..positions).step_by(M::LANES) {
        for k in 0..num_diagonals {
            let column = 2 * n + p - k;
            let mut score = zero;
            for a in 0..d {
                let x = m.load(&buffers.features[a * stride + n + p..]);
                score = m.fma(x, m.load(&buffers.keys[a * stride + column..]), score);
            }
            largest = m.max(largest, m.max(score, -score));
            m.store(m.exp(score), &mut buffers.band[k * stride + n + p..]);
        }
    }

    let num_blocks = out.len().div_ceil(M::LANES);
    buffers.tape.resize(num_blocks * layout.block(), M::Cell::default());
    let mut lanes = [M::Element::default(); WIDTH];
    for (block, tape) in buffers.tape.chunks_exact_mut(layout.block()).enumerate() {
        let t = block * M::LANES;
        if layout.separate {
            let (features, cool) = (&buffers.features, cooling);
            let found =
                query_column(m, &layout, cool, score_matrix, windows, first, t, features, stride, tape);
            largest = m.max(largest, found);
        }
        let prediction =
            forward_block(m, &layout, hyper, value_row, stride, &buffers.band, &buffers.common, t, tape);
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
        largest = m.max(largest, m.max(score, -score));
        let weight = m.exp(score);
        total = total + weight;
        m.put(weight, cell);
    }
    m.put(m.recip(total), &mut tape[layout.shares() + n + 1]);
    largest
}

/// All layers of the windows from `t` on. Returns the prediction.
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
    t: usize,
    tape: &mut [M::Cell],
) -> M::Number {
    let Layout { d, n, layers, separate } = *layout;
    let zero = m.splat(M::Element::default());
    let on_target = m.splat(M::Element::of(hyper.gamma * value_row[d + 1].get()));
    let on_value = m.splat(value_row[d + 2]);
    let rho = m.splat(M::Element::of(hyper.diagonal_mix));
    let keep = m.splat(M::Element::of(1.0 - hyper.diagonal_mix));
    for j in 0..layout.columns() {
        m.put(zero, &mut tape[layout.values(0) + j]);
    }
    if layers == 1 {
        // Only the last column is summed below, but the diagonal is measured in all.
        for j in 0..n {
            let mut total = zero;
            for weight in band[layout.weight(stride, t, 0, j)..].chunks_exact(stride + 1).take(n) {
                total = total + m.load(weight);
            }
            m.put(m.recip(total), &mut tape[layout.shares() + j]);
        }
    }
    for layer in 0..layers {
        let (values, messages, sums) = (layout.values(layer), layout.messages(layer), layout.sums(layer));
        for i in 0..n {
            let mut q = m.load(&common[n + t + i..]);
            if layer > 0 {
                q = m.fma(on_target, m.get(&tape[values + i + 1]), q);
                q = m.fma(on_value, m.get(&tape[values + i]), q);
            }
            m.put(q, &mut tape[messages + i]);
        }
        for j in 0..layout.columns() {
            if layer >= layout.reach(j) {
                continue;
            }
            let mut sum = zero;
            if separate && j == n + 1 {
                for i in 0..n {
                    sum = m.fma(m.get(&tape[layout.query() + i]), m.get(&tape[messages + i]), sum);
                }
            } else {
                let weights = band[layout.weight(stride, t, 0, j)..].chunks_exact(stride + 1);
                let weighted = weights.zip(&tape[messages..messages + n]);
                if layer == 0 {
                    let mut total = zero;
                    for (weight, message) in weighted {
                        let weight = m.load(weight);
                        total = total + weight;
                        sum = m.fma(weight, m.get(message), sum);
                    }
                    m.put(m.recip(total), &mut tape[layout.shares() + j]);
                } else {
                    for (weight, message) in weighted {
                        sum = m.fma(m.load(weight), m.get(message), sum);
                    }
                }
            }
            let s = sum * m.get(&tape[layout.shares() + j]);
            m.put(s, &mut tape[sums + j]);
            let mut value = m.fma(keep, s, m.get(&tape[values + j]));
            if j < n {
                value = m.fma(rho, m.get(&tape[messages + j]), value);
            }
            if layer + 1 == layers {
                return value;
            }
            m.put(value, &mut tape[layout.values(layer + 1) + j]);
        }
    }
    zero
}

#[inline(always)]
fn backward<M: Machine>(
    m: M,
    buffers: &mut Band<M::Element, M::Cell>,
    hyper: Hyper,
    params: &[M::Element],
    out_bar: &[M::Element],
    gradient: &mut [f64],
) {
    let layout = Layout::of(&buffers.shape);
    if layout == Layout::PAPER {
        backward_sized(m, Layout::PAPER, buffers, hyper, params, out_bar, gradient);
    } else {
        backward_sized(m, layout, buffers, hyper, params, out_bar, gradient);
    }
}

#[inline(always)]
fn backward_sized<M: Machine>(
    m: M,
    layout: Layout,
    buffers: &mut Band<M::Element, M::Cell>,
    hyper: Hyper,
    params: &[M::Element],
    out_bar: &[M::Element],
    gradient: &mut [f64],
) {
    let shape = buffers.shape;
    let Layout { d, n, .. } = layout;
    let stride = buffers.stride;
    let num_diagonals = layout.diagonals();
    let Split { value_row, .. } = Split::of(&shape, params);
    for (array, len) in
        [(&mut buffers.common_bar, stride), (&mut buffers.band_bar, (num_diagonals + 1) * stride + 1)]
    {
        array.clear();
        array.resize(len, M::Element::default());
    }
    // Derivatives by B (d×d), by a and p_r (d + 1), by γ·p_t and p_v.
    let num_accumulators = d * d + d + 1 + 2;
    buffers.accumulators.clear();
    buffers.accumulators.resize(num_accumulators, M::Cell::default());
    buffers.scratch.resize(Scratch::len(&layout), M::Cell::default());
    let mut lanes = [M::Element::default(); WIDTH];
    let num_blocks = out_bar.len().div_ceil(M::LANES);
    for (block, tape) in buffers.tape.chunks_exact(layout.block()).take(num_blocks).enumerate() {
        let t = block * M::LANES;
        let end = out_bar.len().min(t + M::LANES);
        lanes.fill(M::Element::default());
        lanes[..end - t].copy_from_slice(&out_bar[t..end]);
        let arrays = Arrays {
            stride,
            features: &buffers.features,
            band: &buffers.band,
            band_bar: &mut buffers.band_bar,
            common_bar: &mut buffers.common_bar,
            accumulators: &mut buffers.accumulators,
            scratch: &mut buffers.scratch,
        };
        backward_block(m, &layout, hyper, value_row, tape, m.load(&lanes), t, arrays);
    }

    // From the band to the feature block: y_p = Σ_δ s_bar(p, p+δ)·x_{p+δ}, then Σ_p x_p y_pᵀ.
    let positions = out_bar.len() + n;
    let zero = m.splat(M::Element::default());
    let y = &mut buffers.scratch[..d];
    for p in (0..positions).step_by(M::LANES) {
        // Four features at a time, so that their sums stay in registers whatever d is.
        for (chunk, cells) in y.chunks_mut(4).enumerate() {
            let mut sums = [zero; 4];
            for k in 0..num_diagonals {
                let at = k * stride + n + p;
                let bar = m.load(&buffers.band_bar[at..]) * m.load(&buffers.band[at..]);
                let column = 2 * n + p - k;
                for b in 0..cells.len() {
                    let x = m.load(&buffers.features[(4 * chunk + b) * stride + column..]);
                    sums[b] = m.fma(bar, x, sums[b]);
                }
            }
            cells.iter_mut().zip(sums).for_each(|(cell, sum)| m.put(sum, cell));
        }
        let c_bar = m.load(&buffers.common_bar[n + p..]);
        for a in 0..=d {
            let x = m.load(&buffers.features[a * stride + n + p..]);
            let cell = &mut buffers.accumulators[d * d + a];
            m.put(m.fma(c_bar, x, m.get(cell)), cell);
            if a < d {
                for (b, y) in y.iter().enumerate() {
                    let cell = &mut buffers.accumulators[a * d + b];
                    m.put(m.fma(x, m.get(y), m.get(cell)), cell);
                }
            }
        }
    }
    let rows = d + 3;
    let total = |k: usize| m.sum(m.get(&buffers.accumulators[k]));
    let (value_gradient, score_gradient) = gradient.split_at_mut(rows * rows);
    let value_gradient = &mut value_gradient[(rows - 1) * rows..];
    for a in 0..d {
        for b in 0..d {
            score_gradient[a * rows + b] += total(a * d + b) / hyper.temperature;
        }
    }
    for a in 0..=d {
        value_gradient[a] += total(d * d + a);
    }
    value_gradient[d + 1] += hyper.gamma * total(d * d + d + 1);
    value_gradient[d + 2] += total(d * d + d + 2);
}

/// What the reverse pass of a block reads and adds to.
struct Arrays<'a, E, C> {
    stride: usize,
    features: &'a [E],
    band: &'a [E],
    band_bar: &'a mut [E],
    common_bar: &'a mut [E],
    accumulators: &'a mut [C],
    scratch: &'a mut [C],
}

/// Where the reverse pass of a block keeps its derivatives, in cells.
struct Scratch;

impl Scratch {
    /// By v_j.
    const VALUES: usize = 0;
    /// By q_i in the current layer.
    fn messages(layout: &Layout) -> usize {
        layout.columns()
    }
    /// By q_i, summed over layers.
    fn common(layout: &Layout) -> usize {
        layout.columns() + layout.n
    }
    /// By s_j divided by Σ_i E_ij, in layer l.
    fn shares(layout: &Layout, layer: usize) -> usize {
        layout.columns() + 2 * layout.n + layer * layout.columns()
    }
    fn len(layout: &Layout) -> usize {
        Self::shares(layout, layout.layers).max(layout.d)
    }
}

/// Back through all layers of the windows from `t` on.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an inner loop: everything it touches is named")]
fn backward_block<M: Machine>(
    m: M,
    layout: &Layout,
    hyper: Hyper,
    value_row: &[M::Element],
    tape: &[M::Cell],
    seed: M::Number,
    t: usize,
    arrays: Arrays<'_, M::Element, M::Cell>,
) {
    let Layout { d, n, layers, separate } = *layout;
    let Arrays { stride, features, band, band_bar, common_bar, accumulators, scratch } = arrays;
    let zero = m.splat(M::Element::default());
    let on_target = m.splat(M::Element::of(hyper.gamma * value_row[d + 1].get()));
    let on_value = m.splat(value_row[d + 2]);
    let rho = m.splat(M::Element::of(hyper.diagonal_mix));
    let keep = m.splat(M::Element::of(1.0 - hyper.diagonal_mix));
    let (q_bar, c_bar) = (Scratch::messages(layout), Scratch::common(layout));
    let query = layout.columns() - 1;
    for j in 0..query {
        m.put(zero, &mut scratch[Scratch::VALUES + j]);
    }
    for i in 0..n {
        m.put(zero, &mut scratch[c_bar + i]);
    }
    m.put(seed, &mut scratch[Scratch::VALUES + query]);
    let (mut target_bar, mut value_bar) =
        (m.get(&accumulators[d * d + d + 1]), m.get(&accumulators[d * d + d + 2]));
    for layer in (0..layers).rev() {
        let last_layer = layer + 1 == layers;
        let shares = Scratch::shares(layout, layer);
        for j in if last_layer { query } else { 0 }..=query {
            let w = keep * m.get(&scratch[Scratch::VALUES + j]) * m.get(&tape[layout.shares() + j]);
            m.put(w, &mut scratch[shares + j]);
        }
        let first_column = match (last_layer, separate) {
            (false, _) => 0,
            (true, false) => n,
            (true, true) => layout.band_columns(),
        };
        for i in 0..n {
            let mut bar = zero;
            if separate {
                bar = m.get(&tape[layout.query() + i]) * m.get(&scratch[shares + query]);
            }
            if first_column < layout.band_columns() {
                // Columns of a source lie one stride apart, downwards.
                let end = layout.weight(stride, t, i, first_column) + stride;
                let columns = &scratch[shares + first_column..shares + layout.band_columns()];
                for (weight, share) in band[..end].rchunks_exact(stride).zip(columns) {
                    bar = m.fma(m.load(weight), m.get(share), bar);
                }
            }
            if !last_layer {
                bar = m.fma(rho, m.get(&scratch[Scratch::VALUES + i]), bar);
            }
            m.put(bar, &mut scratch[q_bar + i]);
        }
        let values = layout.values(layer);
        for i in 0..n {
            let bar = m.get(&scratch[q_bar + i]);
            m.put(m.get(&scratch[c_bar + i]) + bar, &mut scratch[c_bar + i]);
            // Before the first layer all values are 0 and depend on nothing.
            if layer > 0 {
                target_bar = m.fma(bar, m.get(&tape[values + i + 1]), target_bar);
                value_bar = m.fma(bar, m.get(&tape[values + i]), value_bar);
                let own = &mut scratch[Scratch::VALUES + i];
                m.put(m.fma(on_value, bar, m.get(own)), own);
                let next = &mut scratch[Scratch::VALUES + i + 1];
                m.put(m.fma(on_target, bar, m.get(next)), next);
            }
        }
    }
    m.put(target_bar, &mut accumulators[d * d + d + 1]);
    m.put(value_bar, &mut accumulators[d * d + d + 2]);
    for i in 0..n {
        let at = &mut common_bar[n + t + i..];
        m.store(m.load(at) + m.get(&scratch[c_bar + i]), at);
    }

    // By E_ij: Σ_l w_j^l (q_i^l - s_j^l), over the layers in which column j reaches the prediction.
    let offset_of = |scratch: &[M::Cell], j: usize| {
        let mut offset = zero;
        for layer in 0..layout.reach(j) {
            let w = m.get(&scratch[Scratch::shares(layout, layer) + j]);
            offset = m.fma(w, m.get(&tape[layout.sums(layer) + j]), offset);
        }
        offset
    };
    let weight_bar = |scratch: &[M::Cell], offset: M::Number, i: usize, j: usize| {
        let mut bar = -offset;
        for layer in 0..layout.reach(j) {
            let w = m.get(&scratch[Scratch::shares(layout, layer) + j]);
            bar = m.fma(w, m.get(&tape[layout.messages(layer) + i]), bar);
        }
        bar
    };
    for j in 0..layout.band_columns() {
        let offset = offset_of(scratch, j);
        let start = layout.weight(stride, t, 0, j);
        for (i, at) in band_bar[start..].chunks_exact_mut(stride + 1).take(n).enumerate() {
            m.store(m.load(at) + weight_bar(scratch, offset, i, j), at);
        }
    }
    if !separate {
        return;
    }
    let offset = offset_of(scratch, query);
    for i in 0..n {
        // c_bar is done with: its cells hold the derivatives by the query's scores now.
        let bar = weight_bar(scratch, offset, i, query) * m.get(&tape[layout.query() + i]);
        m.put(bar, &mut scratch[c_bar + i]);
    }
    for a in 0..d {
        let mut y = zero;
        for i in 0..n {
            y = m.fma(m.get(&scratch[c_bar + i]), m.load(&features[a * stride + n + t + i..]), y);
        }
        for b in 0..d {
            let cell = &mut accumulators[a * d + b];
            m.put(m.fma(y, m.get(&tape[layout.query_features() + b]), m.get(cell)), cell);
        }
    }
}

#[inline(always)]
fn diagonal<M: Machine>(m: M, buffers: &Band<M::Element, M::Cell>, num: usize) -> (f64, f64) {
    let layout = Layout::of(&buffers.shape);
    let mut lanes = [M::Element::default(); WIDTH];
    let (mut sum, mut smallest) = (0.0, f64::INFINITY);
    for (block, tape) in buffers.tape.chunks_exact(layout.block()).take(num.div_ceil(M::LANES)).enumerate() {
        let t = block * M::LANES;
        let mut totals = m.splat(M::Element::default());
        let mut minima = m.splat(M::Element::of(1.0));
        for j in 0..layout.n {
            let weight = m.load(&buffers.band[layout.weight(buffers.stride, t, j, j)..]);
            let weight = weight * m.get(&tape[layout.shares() + j]);
            totals = totals + weight;
            minima = m.min(minima, weight);
        }
        let counted = (num - t).min(M::LANES);
        m.store(totals, &mut lanes);
        sum += lanes[..counted].iter().map(|x| x.get()).sum::<f64>();
        m.store(minima, &mut lanes);
        smallest = lanes[..counted].iter().map(|x| x.get()).fold(smallest, f64::min);
    }
    (sum, smallest)
}

#[cfg(test)]
mod tests {
    use super::super::reverse::testing::{problem, windows};
    use super::super::reverse::{GeneralPlain, GeneralWide};
    use super::super::shape::Mask;
    use super::*;
    use crate::transformer::Block;

    fn shapes() -> impl Iterator<Item = Shape> {
        let sizes = [(3, 5, 3), (4, 10, 3), (2, 1, 2), (1, 4, 1), (4, 7, 5)];
        sizes.into_iter().flat_map(|(feature_dim, context_len, num_layers)| {
            [(Mask::Full, Block::TemporalShift), (Mask::Looped, Block::DualHead)].map(|(mask, block)| Shape {
                feature_dim,
                context_len,
                num_layers,
                tied: true,
                separate_query: mask == Mask::Looped,
                block,
                mask,
            })
        })
    }

    /// Against the general pass in double precision: only the order of sums differs.
    #[test]
    fn plain_band_equals_the_general_pass() {
        for shape in shapes() {
            for rho in [0.0, 0.7] {
                let hyper = Hyper { gamma: 0.9, temperature: 1.2, diagonal_mix: rho };
                let (features, rewards, queries, params, bar) = problem(&shape, 7);
                let w = windows(&shape, &features, &rewards, &queries);
                let (mut band, mut general) = (BandPlain::new(shape), GeneralPlain::new(shape));
                let (mut a, mut b) = (vec![0.0; 7], vec![0.0; 7]);
                band.forward(hyper, &params, &w, 0, &mut a).unwrap();
                general.forward(hyper, &params, &w, 0, &mut b);
                for (a, b) in a.iter().zip(&b) {
                    assert!((a - b).abs() < 1e-13, "{shape:?}: {a} {b}");
                }
                let (mut ga, mut gb) = (vec![0.0; params.len()], vec![0.0; params.len()]);
                // One window fewer than the forward pass saw, as in training.
                band.backward(hyper, &params, &bar[..6], &mut ga);
                let mut shorter = bar.clone();
                shorter[6] = 0.0;
                general.backward(hyper, &params, &shorter, &mut gb);
                let largest = gb.iter().fold(0f64, |m, g| m.max(g.abs()));
                for (k, (a, b)) in ga.iter().zip(&gb).enumerate() {
                    // Within the mask; the general pass also differentiates by untrained entries.
                    if shape.trained()[k] {
                        assert!((a - b).abs() < 1e-12 * largest, "{shape:?} {k}: {a} {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn wide_band_agrees_with_plain_and_with_the_wide_general_pass() {
        let level = Level::new();
        for shape in shapes() {
            let hyper = Hyper { gamma: 0.9, temperature: 1.2, diagonal_mix: 0.0 };
            let (features, rewards, queries, params, bar) = problem(&shape, 65);
            let single = |x: &[f64]| x.iter().map(|&v| v as f32).collect::<Vec<f32>>();
            let (w64, w32) = (
                windows(&shape, &features, &rewards, &queries),
                windows(&shape, &features, &rewards, &queries),
            );
            let (mut wide, mut plain, mut general) =
                (BandWide::new(shape), BandPlain::new(shape), GeneralWide::new(shape));
            let (mut o32, mut o64, mut og) = (vec![0f32; 65], vec![0.0; 65], vec![0f32; 65]);
            wide.forward(level, hyper, &single(&params), &w32, 0, &mut o32).unwrap();
            plain.forward(hyper, &params, &w64, 0, &mut o64).unwrap();
            general.forward(level, hyper, &single(&params), &w32, 0, &mut og);
            for t in 0..65 {
                // A few hundred single-precision roundings of numbers of order 1.
                assert!((f64::from(o32[t]) - o64[t]).abs() < 2e-5 * (1.0 + o64[t].abs()));
                assert!((o32[t] - og[t]).abs() < 2e-5 * (1.0 + og[t].abs()));
            }
            let (mut g32, mut g64) = (vec![0.0; params.len()], vec![0.0; params.len()]);
            wide.backward(level, hyper, &single(&params), &single(&bar[..64]), &mut g32);
            plain.backward(hyper, &params, &bar[..64], &mut g64);
            let largest = g64.iter().fold(0f64, |m, g| m.max(g.abs()));
            for (a, b) in g32.iter().zip(&g64) {
                assert!((a - b).abs() < 1e-4 * largest, "{shape:?}: {a} {b}");
            }
        }
    }

    #[test]
    fn scores_beyond_the_limit_are_reported() {
        let shape = shapes().next().unwrap();
        let hyper = Hyper { gamma: 0.9, temperature: 1e-3, diagonal_mix: 0.0 };
        let (features, rewards, queries, params, _) = problem(&shape, 4);
        let w = windows(&shape, &features, &rewards, &queries);
        let result = BandPlain::new(shape).forward(hyper, &params, &w, 0, &mut [0.0; 4]);
        assert_eq!(result, Err(ScoreOutOfRange));
    }
}
