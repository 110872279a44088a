//! A hash table from pairs of states to tallies, for counting at the speed of reading.

/// Stands for no state: the successor of a terminal transition, the last state of an episode that has none.
pub(crate) const NONE: u32 = u32::MAX;

/// What two partial tallies make together.
pub(crate) trait Merge {
    /// Adds the other tally to this one.
    fn merge(&mut self, other: &Self);

    /// Whether nothing was tallied.
    fn is_empty(&self) -> bool;
}

impl Merge for f64 {
    fn merge(&mut self, other: &Self) {
        *self += other;
    }

    fn is_empty(&self) -> bool {
        *self == 0.0
    }
}

impl Merge for super::sum::Sum {
    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }

    fn is_empty(&self) -> bool {
        self.value() == 0.0
    }
}

/// Pairs of states below this number have a square of their own once there are many of them.
const SIDE: usize = 64;
/// How many pairs are many: the square is then not much larger than what it replaces.
const MANY: usize = 768;

/// Tallies by pair of states. Open addressing with at most three quarters of the slots used, since what many tables
/// do not fit into caches costs most; the hash is a multiplication, since keys are pairs of small numbers and nobody picks
/// them to collide.
#[derive(Clone, Debug)]
pub(crate) struct Table<A> {
    /// Number of an entry plus one; 0 where free.
    slots: Vec<u32>,
    shift: u32,
    entries: Vec<(u64, A)>,
    /// Pairs of small numbers, by place; empty until there are many.
    square: Vec<A>,
}

impl<A> Default for Table<A> {
    fn default() -> Self {
        Self { slots: Vec::new(), shift: 64, entries: Vec::new(), square: Vec::new() }
    }
}

/// The place of a pair in the square, if it is in it.
#[inline(always)]
fn place(from: u32, to: u32) -> Option<usize> {
    let to = if to == NONE { SIDE as u32 } else { to + u32::from(to >= SIDE as u32) };
    let inside = from < SIDE as u32 && to <= SIDE as u32;
    inside.then_some(from as usize * (SIDE + 1) + to as usize)
}

fn key(from: u32, to: u32) -> u64 {
    u64::from(from) << 32 | u64::from(to)
}

impl<A: Default + Merge> Table<A> {
    /// The tally of a pair.
    #[inline]
    pub fn at(&mut self, from: u32, to: u32) -> &mut A {
        if let Some(place) = place(from, to).filter(|_| !self.square.is_empty()) {
            return &mut self.square[place];
        }
        if 4 * self.entries.len() >= 3 * self.slots.len() {
            self.grow();
            // Which may have moved the pair to the square.
            return self.at(from, to);
        }
        let key = key(from, to);
        let mask = self.slots.len() - 1;
        let mut slot = self.slot_of(key);
        loop {
            let entry = self.slots[slot] as usize;
            if entry == 0 {
                self.entries.push((key, A::default()));
                self.slots[slot] = self.entries.len() as u32;
                let last = self.entries.len() - 1;
                return &mut self.entries[last].1;
            }
            if self.entries[entry - 1].0 == key {
                return &mut self.entries[entry - 1].1;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Bytes that are kept.
    pub fn memory(&self) -> usize {
        4 * self.slots.capacity()
            + size_of::<(u64, A)>() * self.entries.capacity()
            + size_of::<A>() * self.square.capacity()
    }

    fn slot_of(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[cold]
    fn grow(&mut self) {
        if self.square.is_empty() && self.entries.len() >= MANY {
            self.square.resize_with(SIDE * (SIDE + 1), A::default);
            let square = &mut self.square;
            self.entries.retain(|(key, tally)| match place((key >> 32) as u32, *key as u32) {
                Some(place) => {
                    square[place].merge(tally);
                    false
                }
                None => true,
            });
            self.entries.shrink_to_fit();
        }
        let size = (2 * self.slots.len()).max(8);
        self.shift = 64 - size.trailing_zeros();
        self.slots.clear();
        self.slots.resize(size, 0);
        for entry in 0..self.entries.len() {
            let mut slot = self.slot_of(self.entries[entry].0);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = entry as u32 + 1;
        }
    }

    /// Adds every tally of the other table.
    pub fn absorb(&mut self, other: &Self) {
        other.iter().for_each(|(from, to, tally)| self.at(from, to).merge(tally));
    }

    /// All pairs and their tallies, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, &A)> {
        let square = self.square.iter().enumerate().filter(|(_, tally)| !tally.is_empty());
        let square = square.map(|(place, tally)| {
            let (from, to) = (place / (SIDE + 1), place % (SIDE + 1));
            (from as u32, if to == SIDE { NONE } else { to as u32 }, tally)
        });
        self.entries.iter().map(|(key, tally)| ((key >> 32) as u32, *key as u32, tally)).chain(square)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::random::{Purpose, Stream};

    /// Few and many pairs, small and large numbers, with and without a second state.
    #[test]
    fn a_table_tallies_as_a_map_does() {
        let mut stream = Stream::new(3, Purpose::Prompt, 0);
        for (bound, count) in [(5, 100), (40, 300), (64, 20_000), (70, 20_000), (3000, 20_000)] {
            let (mut table, mut map) = (Table::<f64>::default(), BTreeMap::new());
            for k in 0..count {
                let (from, to) = (stream.below(bound), stream.below(bound + 1));
                let to = if to == bound { NONE } else { to };
                *table.at(from, to) += f64::from(k);
                *map.entry((from, to)).or_insert(0.0) += f64::from(k);
            }
            let mut other = Table::default();
            other.absorb(&table);
            for table in [&table, &other] {
                let found: BTreeMap<(u32, u32), f64> = table.iter().map(|(s, t, x)| ((s, t), *x)).collect();
                assert_eq!(found.len(), table.iter().count());
                // A tally of nothing but the number 0 is no tally.
                let expected = map.clone().into_iter().filter(|(_, x)| *x != 0.0);
                assert_eq!(
                    found.into_iter().filter(|(_, x)| *x != 0.0).collect::<Vec<_>>(),
                    expected.collect::<Vec<_>>()
                );
            }
        }
    }
}
