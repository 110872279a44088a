//! The contexts of a training step: sliding windows over one trajectory.

use super::lanes::{Element, WIDTH};

/// Overlapping contexts: window t has sources at positions t, …, t + n - 1 and a query of its own.
///
/// Arrays are padded so that a whole number of lanes can be read at every window.
#[derive(Clone, Debug, Default)]
pub struct Windows<E> {
    stride: usize,
    features: Vec<E>,
    rewards: Vec<E>,
    query_stride: usize,
    queries: Vec<E>,
}

impl<E: Element> Windows<E> {
    /// Refills from feature rows and rewards by position, and the queries' feature rows by window.
    pub fn fill<'a>(
        &mut self,
        feature_dim: usize,
        positions: impl ExactSizeIterator<Item = (&'a [f64], f64)>,
        queries: impl ExactSizeIterator<Item = &'a [f64]>,
    ) {
        self.stride = positions.len() + WIDTH;
        self.query_stride = queries.len() + WIDTH;
        for (array, len) in [
            (&mut self.features, feature_dim * self.stride),
            (&mut self.rewards, self.stride),
            (&mut self.queries, feature_dim * self.query_stride),
        ] {
            array.clear();
            array.resize(len, E::default());
        }
        for (p, (x, reward)) in positions.enumerate() {
            self.rewards[p] = E::of(reward);
            let slots = self.features[p..].iter_mut().step_by(self.stride);
            x.iter().zip(slots).for_each(|(x, slot)| *slot = E::of(*x));
        }
        for (t, x) in queries.enumerate() {
            let slots = self.queries[t..].iter_mut().step_by(self.query_stride);
            x.iter().zip(slots).for_each(|(x, slot)| *slot = E::of(*x));
        }
    }

    /// Feature `a` from position `p` on.
    #[inline(always)]
    pub(super) fn feature(&self, a: usize, p: usize) -> &[E] {
        &self.features[a * self.stride + p..(a + 1) * self.stride]
    }

    /// Rewards from position `p` on.
    #[inline(always)]
    pub(super) fn reward(&self, p: usize) -> &[E] {
        &self.rewards[p..]
    }

    /// Feature `a` of the queries from window `t` on.
    #[inline(always)]
    pub(super) fn query(&self, a: usize, t: usize) -> &[E] {
        &self.queries[a * self.query_stride + t..(a + 1) * self.query_stride]
    }
}
