//! Prompts in lanes: what passes need of windows, arranged so that lanes are windows.

use super::shape::PredecessorShape;
use crate::pretrain::lanes::{Element, Machine, WIDTH};

/// A column of the context: φ, φ' and r of a transition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition<'a> {
    /// Features of the state that is left.
    pub features: &'a [f64],
    /// Features of the state that is entered.
    pub successor: &'a [f64],
    /// The reward.
    pub reward: f64,
}

/// Where the entry (i, j) of a symmetric matrix stands among those with i ≤ j.
#[inline(always)]
pub fn symmetric(k: usize, i: usize, j: usize) -> usize {
    let (i, j) = if i <= j { (i, j) } else { (j, i) };
    i * (2 * k - i - 1) / 2 + j
}

/// Windows of one trajectory, each with a query. Arrays are padded so that a whole number of lanes can be read at every window.
#[derive(Clone, Debug, Default)]
pub struct Prompts<E> {
    num: usize,
    stride: usize,
    /// (1/n) Σ z_i z_iᵀ, entry by entry as in [`symmetric`].
    moments: Vec<E>,
    /// φ_q, feature by feature.
    queries: Vec<E>,
    /// The distinct columns of all windows, k numbers each.
    columns: Vec<E>,
    /// How often each is in a window.
    counts: Vec<E>,
    /// Running sums over positions, entry after entry at each.
    sums: Vec<f64>,
    column: Vec<f64>,
}

impl<E: Element> Prompts<E> {
    /// Refills from the transitions of a trajectory by position and the first position and query of every window.
    /// Transitions come with numbers, such that equal numbers have equal columns; columns are gathered where `counted`.
    pub fn fill<'a>(
        &mut self,
        shape: &PredecessorShape,
        gamma: f64,
        counted: bool,
        transitions: impl ExactSizeIterator<Item = (usize, Transition<'a>)>,
        windows: impl ExactSizeIterator<Item = (usize, &'a [f64])>,
    ) {
        let (k, d, n) = (shape.num_rows(), shape.feature_dim, shape.context_len);
        let entries = k * (k + 1) / 2;
        self.num = windows.len();
        self.stride = self.num + WIDTH;
        self.sums.clear();
        self.sums.resize(entries, 0.0);
        self.sums.reserve(entries * transitions.len());
        self.columns.clear();
        self.column.resize(k, 0.0);
        // The number of every position's column among the distinct ones.
        let mut numbers: Vec<usize> = Vec::with_capacity(transitions.len());
        let mut known: Vec<usize> = Vec::new();
        for (p, (same, transition)) in transitions.enumerate() {
            let Transition { features, successor, reward } = transition;
            self.column[..d].copy_from_slice(features);
            self.column[d..2 * d].iter_mut().zip(successor).for_each(|(z, x)| *z = gamma * x);
            self.column[2 * d] = reward;
            self.sums.extend_from_within(p * entries..(p + 1) * entries);
            let mut sum = &mut self.sums[(p + 1) * entries..];
            for (i, &a) in self.column.iter().enumerate() {
                let (row, rest) = sum.split_at_mut(k - i);
                row.iter_mut().zip(&self.column[i..]).for_each(|(s, b)| *s += a * b);
                sum = rest;
            }
            if !counted {
                continue;
            }
            let number = known.iter().position(|s| *s == same).unwrap_or_else(|| {
                known.push(same);
                self.columns.extend(self.column.iter().map(|z| E::of(*z)));
                known.len() - 1
            });
            numbers.push(number);
        }
        for (array, len) in
            [(&mut self.moments, entries), (&mut self.queries, d), (&mut self.counts, known.len())]
        {
            array.clear();
            array.resize(len * self.stride, E::default());
        }
        let mean = 1.0 / n as f64;
        for (t, (first, query)) in windows.enumerate() {
            let low = &self.sums[first * entries..(first + 1) * entries];
            let high = &self.sums[(first + n) * entries..(first + n + 1) * entries];
            let slots = self.moments[t..].iter_mut().step_by(self.stride);
            slots.zip(high.iter().zip(low)).for_each(|(slot, (h, l))| *slot = E::of(mean * (h - l)));
            let slots = self.queries[t..].iter_mut().step_by(self.stride);
            slots.zip(query).for_each(|(slot, x)| *slot = E::of(*x));
            for &number in numbers.get(first..first + n).unwrap_or_default() {
                let count = &mut self.counts[number * self.stride + t];
                *count = E::of(count.get() + 1.0);
            }
        }
    }

    /// Windows.
    pub fn num(&self) -> usize {
        self.num
    }

    /// Entry `e` of the moments from window `t` on.
    #[inline(always)]
    pub fn moment(&self, e: usize, t: usize) -> &[E] {
        &self.moments[e * self.stride + t..(e + 1) * self.stride]
    }

    /// Feature `a` of the queries from window `t` on.
    #[inline(always)]
    pub fn query(&self, a: usize, t: usize) -> &[E] {
        &self.queries[a * self.stride + t..(a + 1) * self.stride]
    }

    /// Distinct columns of all windows.
    pub fn num_columns(&self) -> usize {
        self.counts.len() / self.stride.max(1)
    }

    /// The distinct column `c`.
    pub fn column(&self, c: usize, k: usize) -> &[E] {
        &self.columns[c * k..(c + 1) * k]
    }

    /// How often the column `c` is in the windows from `t` on.
    #[inline(always)]
    fn count(&self, c: usize, t: usize) -> &[E] {
        &self.counts[c * self.stride + t..(c + 1) * self.stride]
    }

    /// The distinct columns that any of the windows in lanes from `t` on has, and how often each is there.
    #[inline(always)]
    pub fn gather<M: Machine<Element = E>>(
        &self,
        m: M,
        t: usize,
        sources: &mut Vec<usize>,
        counts: &mut Vec<M::Cell>,
    ) {
        sources.clear();
        let is_there = |c: &usize| self.count(*c, t)[..M::LANES].iter().any(|x| x.get() > 0.0);
        sources.extend((0..self.num_columns()).filter(is_there));
        counts.resize(sources.len(), M::Cell::default());
        for (slot, &c) in counts.iter_mut().zip(&*sources) {
            m.put(m.load(self.count(c, t)), slot);
        }
    }
}
