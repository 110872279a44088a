//! The forward and reverse pass by state, for long contexts.
//!
//! Tasks have few states, so the columns of a long prompt repeat. With scores of features alone and without diagonal mixing
//! a column's value depends on its state alone: it gets the same sums in every layer as any other column of that state.
//! Of the sources enter only sums over those in a state s: how many there are, N_s, the sum of their rewards R_s, and how many
//! of them are followed by s', N_ss'. With V's last row (a, p_r, p_t, p_v) a layer is
//!
//! - q_s = N_s·(⟨a, x_s⟩ + p_v·v_s) + p_r·R_s + p_t·γ·Σ_s' N_ss'·v_s', the messages of all sources in s,
//! - v_u += Σ_s E_su q_s / Σ_s E_su N_s,
//!
//! for m states in O(m²) instead of O(n²), after one walk over the n sources; the prediction is the value of the query's
//! state. The weights E are those of the task and not of a window: they are computed once per minibatch and pair (V, A).
//! [`Visits`] has the states, and says `None` where there are too many. As in [`band`](super::band) exponentials are not shifted
//! by a maximum, and scores beyond its limit are refused.

mod backward;
mod choice;
mod forward;
mod visits;

use std::sync::Arc;

pub use visits::Visits;

use self::visits::{TILE, Tally};
use super::engine::{Applies, Feedback, Job, Program};
use super::lanes::{Element, Machine, WIDTH, apart, sum_and_smallest};
use super::layers::Sizes;
use super::shape::{Mask, Shape};
use super::weighing::{BuiltIn, Weighing};

/// Buffers of the pass by state; `E` is an element, `C` a cell of the machine that runs it.
#[derive(Clone, Debug)]
pub struct States<E, C> {
    shape: Shape,
    kernel: BuiltIn,
    /// Of the last forward pass: the visits, and its first window.
    visits: Option<Arc<Visits<E>>>,
    first: usize,
    tally: Tally,
    /// Lanes of what is counted, on their way to the tape.
    rows: Vec<E>,
    /// Dimension by dimension: (B x)/τ of every state.
    keys: Vec<E>,
    /// Where scores are distances: o of every state.
    own: Vec<E>,
    /// Pair by pair: ⟨a, x⟩ of every state.
    common: Vec<E>,
    /// Pair by pair: E of every source's state for every column's, and its slope.
    weights: Vec<E>,
    slopes: Vec<E>,
    tape: Vec<C>,
    scratch: Vec<C>,
    accumulators: Vec<C>,
}

/// Sizes, and where a block's intermediate results lie on the tape, in cells.
#[derive(Clone, Copy)]
struct Layout {
    sizes: Sizes,
    /// Number of states, a whole number of tiles, and the distance between rows of matrices over them.
    states: usize,
    stride: usize,
    /// Number of different transitions.
    num_links: usize,
}

impl Layout {
    #[inline(always)]
    fn of<E>(shape: &Shape, visits: &Visits<E>) -> Self {
        Self::sized(shape, visits.num_states(), visits.num_links())
    }
    #[inline(always)]
    fn sized(shape: &Shape, states: usize, num_links: usize) -> Self {
        Self { sizes: Sizes::of(shape), states, stride: states.next_multiple_of(WIDTH), num_links }
    }
    /// The layers of a pair.
    #[inline(always)]
    fn layers_of(self, pair: usize) -> std::ops::Range<usize> {
        if self.sizes.tied { 0..self.sizes.layers } else { pair..pair + 1 }
    }
    /// N_s.
    const COUNTS: usize = 0;
    /// R_s.
    #[inline(always)]
    fn rewards(self) -> usize {
        self.states
    }
    /// N_ss', transition by transition.
    #[inline(always)]
    fn links(self) -> usize {
        2 * self.states
    }
    /// All that is counted.
    #[inline(always)]
    fn visits(self) -> usize {
        self.links() + self.num_links
    }
    /// 1/Σ_s E_su N_s.
    #[inline(always)]
    fn shares(self, pair: usize) -> usize {
        self.visits() + pair * self.states
    }
    /// -Σ_l w_u^l s_u^l: what the divisors bring to the derivatives by weights.
    #[inline(always)]
    fn offsets(self, pair: usize) -> usize {
        self.shares(self.sizes.pairs() + pair)
    }
    /// v_u before layer l, and after the last.
    #[inline(always)]
    fn values(self, layer: usize) -> usize {
        self.offsets(self.sizes.pairs()) + layer * self.states
    }
    /// What layer l adds to v_u.
    #[inline(always)]
    fn sums(self, layer: usize) -> usize {
        self.values(self.sizes.layers + 1 + layer)
    }
    /// w_u, the derivative by it over Σ_s E_su N_s.
    #[inline(always)]
    fn sums_bar(self, layer: usize) -> usize {
        self.sums(self.sizes.layers + layer)
    }
    /// q_s in layer l.
    #[inline(always)]
    fn messages(self, layer: usize) -> usize {
        self.sums_bar(self.sizes.layers + layer)
    }
    /// The derivatives by q_s, of the layer at hand.
    #[inline(always)]
    fn messages_bar(self) -> usize {
        self.messages(self.sizes.layers)
    }
    #[inline(always)]
    fn block(self) -> usize {
        self.messages_bar() + self.states
    }
    /// In scratch: the derivatives by v_u.
    const VALUES_BAR: usize = 0;
    /// Cells of scratch; at the end the rows that meet features.
    #[inline(always)]
    fn scratch(self) -> usize {
        self.states.max(backward::ROWS * self.sizes.d)
    }
}

impl<E: Element, C: Copy + Default> States<E, C> {
    /// Buffers for a shape and kernel, where columns collapse by state: for built-in kernels, if scores depend on features
    /// alone.
    pub fn new(shape: Shape, kernel: &Weighing) -> Option<Self> {
        let Weighing::BuiltIn(kernel) = *kernel else { return None };
        matches!(shape.mask, Mask::Full | Mask::Looped).then(|| Self {
            shape,
            kernel,
            visits: None,
            first: 0,
            tally: Tally::default(),
            rows: Vec::new(),
            keys: Vec::new(),
            own: Vec::new(),
            common: Vec::new(),
            weights: Vec::new(),
            slopes: Vec::new(),
            tape: Vec::new(),
            scratch: Vec::new(),
            accumulators: Vec::new(),
        })
    }
}

impl<E, C> States<E, C> {
    /// Its kernel.
    pub fn kernel(&self) -> BuiltIn {
        self.kernel
    }

    /// The bytes of all buffers after a forward and a reverse pass over this many windows, with at most so many states
    /// and different transitions.
    pub fn bytes(shape: &Shape, num_windows: usize, num_states: usize, num_links: usize) -> f64 {
        let layout = Layout::sized(shape, num_states.next_multiple_of(TILE), num_links);
        let (sizes, stride) = (layout.sizes, layout.stride as f64);
        let pairs = sizes.pairs() as f64;
        let matrices = 2.0 * pairs * layout.states as f64 * stride;
        let rows = (sizes.d as f64 + 1.0 + pairs) * stride + (layout.visits() * WIDTH) as f64;
        let tape = num_windows.div_ceil(WIDTH) as f64 * layout.block() as f64;
        let cells = tape + layout.scratch() as f64 + pairs * sizes.accumulators() as f64;
        let tally = (8 * layout.visits()) as f64;
        (matrices + rows) * size_of::<E>() as f64 + cells * size_of::<C>() as f64 + tally
    }
}

impl<E: Element, C: Copy + Default> Program<E, C> for States<E, C> {
    #[inline(always)]
    fn forward<M: Machine<Element = E, Cell = C>>(
        &mut self,
        m: M,
        job: Job<'_, E>,
        out: &mut [E],
    ) -> Applies {
        apart!(m, forward::forward(m, self, job, out))
    }

    #[inline(always)]
    fn backward<M: Machine<Element = E, Cell = C>>(&mut self, m: M, feedback: Feedback<'_, E>) {
        apart!(m, backward::backward(m, self, feedback));
    }

    #[inline(always)]
    fn diagonal<M: Machine<Element = E, Cell = C>>(&self, m: M, num: usize) -> (f64, f64) {
        let Some(visits) = &self.visits else { return (f64::NAN, f64::NAN) };
        let layout = Layout::of(&self.shape, visits);
        let [zero, one, far] = [0.0, 1.0, 1e30].map(|x| m.splat(E::of(x)));
        let mut found = (0.0, f64::INFINITY);
        for (block, tape) in self.tape.chunks_exact(layout.block()).take(num.div_ceil(M::LANES)).enumerate() {
            let (mut total, mut minimum) = (zero, far);
            for s in 0..layout.states {
                let count = m.get(&tape[Layout::COUNTS + s]);
                let weight =
                    m.splat(self.weights[s * layout.stride + s]) * m.get(&tape[layout.shares(0) + s]);
                total = m.fma(count, weight, total);
                // A state that is not visited is far above any weight.
                minimum = m.min(minimum, m.fma(one - m.positive(count), far, weight));
            }
            found = sum_and_smallest(m, num - block * M::LANES, [total, minimum], found);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::{Hyper, Inapplicable, Pass};
    use super::super::level::SimdLevel;
    use super::super::testing::{HYPER, KERNELS, Problem, all_columns, general, states};
    use super::*;
    use crate::transformer::Block;

    /// Shapes, and the number of states that their problems have: fewer than a tile, more than one, and only one.
    fn shapes() -> impl Iterator<Item = (Shape, usize)> {
        let sizes = [(3, 5, 3, 4), (4, 40, 3, 9), (2, 1, 2, 3), (1, 4, 1, 1), (4, 7, 5, 12), (5, 33, 2, 20)];
        let blocks = [(Mask::Full, Block::TemporalShift), (Mask::Looped, Block::DualHead)];
        let kinds = blocks.into_iter().flat_map(|kind| [true, false].map(move |tied| (kind, tied)));
        let kinds = kinds.flat_map(|kind| all_columns().map(move |columns| (kind, columns)));
        sizes.into_iter().flat_map(move |(feature_dim, context_len, num_layers, num_states)| {
            kinds.clone().map(move |(((mask, block), tied), columns)| {
                let shape = Shape { feature_dim, context_len, num_layers, tied, columns, block, mask };
                (shape, num_states)
            })
        })
    }

    fn cases() -> impl Iterator<Item = (Shape, Weighing, usize)> {
        shapes().flat_map(|(shape, num)| KERNELS.map(|name| (shape, Weighing::named(name).unwrap(), num)))
    }

    /// All kernels, tied and per layer, all columns, with windows of more than one block.
    #[test]
    fn the_pass_by_state_equals_the_general_pass() {
        for (shape, kernel, num_states) in cases() {
            let problem = Problem::of_states(&shape, 19, num_states);
            problem.assert_equals_general(states(&shape, &kernel), &kernel, HYPER);
        }
    }

    #[test]
    fn the_adjoint_identity_holds() {
        for (shape, kernel, num_states) in cases() {
            Problem::of_states(&shape, 7, num_states).assert_adjoint_at(&[HYPER], || states(&shape, &kernel));
        }
    }

    #[test]
    fn the_wide_pass_agrees_with_the_reference() {
        for (shape, kernel, num_states) in cases() {
            let (mut wide, mut reference) = (states(&shape, &kernel), general(&shape, &kernel));
            let problem = Problem::of_states(&shape, 65, num_states).rounded();
            problem.assert_wide_agrees(&mut wide, &mut reference, HYPER, SimdLevel::Best, 64);
        }
    }

    /// Counted beforehand, and allocated by a forward and a reverse pass.
    #[test]
    fn memory_is_what_is_counted() {
        for (shape, kernel, num_states) in cases() {
            let problem = Problem::of_states(&shape, 65, num_states);
            let mut pass = states(&shape, &kernel);
            problem.gradient(&mut pass, HYPER, &problem.bar).unwrap();
            let Pass::States(buffers) = pass else { unreachable!() };
            let arrays = [
                &buffers.rows,
                &buffers.keys,
                &buffers.own,
                &buffers.common,
                &buffers.weights,
                &buffers.slopes,
                &buffers.tape,
                &buffers.scratch,
                &buffers.accumulators,
            ];
            let allocated = 8.0 * arrays.iter().map(|array| array.len()).sum::<usize>() as f64;
            let links = buffers.visits.unwrap().num_links();
            // One lane instead of sixteen: a block per window, and what is counted in single numbers.
            let counted = States::<f64, f64>::bytes(&shape, WIDTH * 65, num_states, links);
            let ratio = counted / allocated;
            assert!((0.9..1.5).contains(&ratio), "{shape:?}: {counted} {allocated}");
        }
    }

    #[test]
    fn what_does_not_collapse_is_refused() {
        let (shape, num_states) = shapes().next().unwrap();
        let kernel = Weighing::BuiltIn(BuiltIn::Softmax);
        let problem = Problem::of_states(&shape, 4, num_states);
        for hyper in [Hyper { temperature: 1e-3, ..HYPER }, Hyper { diagonal_mix: 0.1, ..HYPER }] {
            assert_eq!(problem.forward(&mut states(&shape, &kernel), hyper), Err(Inapplicable));
        }
        // Without states of its own every position would be one.
        let unknown = Problem::new(&shape, 4).forward(&mut states(&shape, &kernel), HYPER);
        assert_eq!(unknown, Err(Inapplicable));
        assert!(States::<f64, f64>::new(Shape { mask: Mask::Relaxed, ..shape }, &kernel).is_none());
    }

    #[test]
    fn more_states_than_asked_for_are_not_counted() {
        let (table, trajectory) = ([0.0, 1.0, 2.0], [0, 2, 0, 2, 2]);
        assert!(Visits::<f64>::of(&table, 1, &trajectory, &[0], 2).is_some());
        assert!(Visits::<f64>::of(&table, 1, &trajectory, &[1], 2).is_none());
    }
}
