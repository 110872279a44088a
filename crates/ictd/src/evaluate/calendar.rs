//! Sixteen stretches of time that grow with what they have to hold.

use super::cell::RewardTally;
use super::table::Table;

/// At most this many stretches.
const MAX_BINS: i64 = 16;
/// Times are not told apart below 2 to this power, so that scaling by its reciprocal stays finite.
const LOWEST: i32 = -1000;

/// Transitions by stretch of time [i·2ᵏ, (i + 1)·2ᵏ), with k the least for which [`MAX_BINS`] stretches hold all times. When
/// the range grows stretches are merged two by two, so that the result does not depend on the order of the times.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    k: i32,
    scale: f64,
    /// By number i, in order.
    bins: Vec<(i64, Table<RewardTally>)>,
}

impl Default for Calendar {
    fn default() -> Self {
        Self { k: LOWEST, scale: power_of_two(-LOWEST), bins: Vec::new() }
    }
}

fn power_of_two(k: i32) -> f64 {
    libm::ldexp(1.0, k)
}

impl Calendar {
    /// Bytes that are kept.
    pub fn memory(&self) -> usize {
        self.bins.iter().map(|(_, table)| table.memory()).sum()
    }

    /// The tallies of the stretch that a time falls into.
    pub fn at(&mut self, time: f64) -> &mut Table<RewardTally> {
        // Times as far apart as their last digit are told apart, and no finer: numbers of stretches stay below 2⁵³.
        let finest = if time == 0.0 { LOWEST } else { (libm::ilogb(time) - 52).max(LOWEST) };
        if finest > self.k {
            self.coarsen(finest);
        }
        loop {
            let number = (time * self.scale).floor() as i64;
            match self.bins.binary_search_by_key(&number, |bin| bin.0) {
                Ok(place) => return &mut self.bins[place].1,
                Err(place) => {
                    let first = self.bins.first().map_or(number, |bin| bin.0.min(number));
                    let last = self.bins.last().map_or(number, |bin| bin.0.max(number));
                    if last - first < MAX_BINS {
                        self.bins.insert(place, (number, Table::default()));
                        return &mut self.bins[place].1;
                    }
                }
            }
            self.coarsen(self.k + 1);
        }
    }

    fn coarsen(&mut self, k: i32) {
        let by = (k - self.k).min(63);
        (self.k, self.scale) = (k, power_of_two(-k));
        let mut merged: Vec<(i64, Table<RewardTally>)> = Vec::with_capacity(self.bins.len());
        for (number, table) in self.bins.drain(..) {
            match merged.last_mut() {
                Some(last) if last.0 == number >> by => last.1.absorb(&table),
                _ => merged.push((number >> by, table)),
            }
        }
        self.bins = merged;
    }

    /// The stretches that hold anything.
    pub fn bins(&self) -> impl Iterator<Item = ((f64, f64), &Table<RewardTally>)> {
        let width = power_of_two(self.k);
        self.bins.iter().map(move |(i, table)| ((*i as f64 * width, (*i + 1) as f64 * width), table))
    }
}
