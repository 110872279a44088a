//! A hash table from pairs of states to tallies, for counting at the speed of reading.

/// Stands for no state: the successor of a terminal transition, the last state of an episode that has none.
pub(crate) const NONE: u32 = u32::MAX;

/// What two partial tallies make together.
pub(crate) trait Merge {
    /// Adds the other tally to this one.
    fn merge(&mut self, other: &Self);
}

impl Merge for f64 {
    fn merge(&mut self, other: &Self) {
        *self += other;
    }
}

impl Merge for super::sum::Sum {
    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }
}

/// Tallies by pair of states. Open addressing with at most half of the slots used; the hash is a multiplication, since keys
/// are pairs of small numbers and nobody picks them to collide.
#[derive(Clone, Debug)]
pub(crate) struct Table<A> {
    /// Number of an entry plus one; 0 where free.
    slots: Vec<u32>,
    shift: u32,
    entries: Vec<(u64, A)>,
}

impl<A> Default for Table<A> {
    fn default() -> Self {
        Self { slots: Vec::new(), shift: 64, entries: Vec::new() }
    }
}

fn key(from: u32, to: u32) -> u64 {
    u64::from(from) << 32 | u64::from(to)
}

impl<A: Default + Merge> Table<A> {
    /// The tally of a pair.
    #[inline]
    pub fn at(&mut self, from: u32, to: u32) -> &mut A {
        if 2 * self.entries.len() >= self.slots.len() {
            self.grow();
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

    fn slot_of(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[cold]
    fn grow(&mut self) {
        let size = (4 * self.slots.len()).max(8);
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

    /// All pairs and their tallies, in the order of their first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, &A)> {
        self.entries.iter().map(|(key, tally)| ((key >> 32) as u32, *key as u32, tally))
    }
}
