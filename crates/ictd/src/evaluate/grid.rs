//! Tallies by pair of states and by part of a log, in canonical order.

use std::ops::Range;

use super::table::{Merge, NONE, Table};

/// Cells by state, by second state (or none), and by part (a block of episodes, a phase, a stretch of time): a sparse matrix
/// whose entries are short lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid<T> {
    /// Pairs of state s: offsets[s]..offsets[s + 1].
    offsets: Vec<usize>,
    to: Vec<u32>,
    /// Cells of pair p: begin[p]..begin[p + 1].
    begin: Vec<usize>,
    parts: Vec<u32>,
    cells: Vec<T>,
}

impl<T> Grid<T> {
    /// Number of states.
    pub fn num_states(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of pairs that occur.
    pub fn num_pairs(&self) -> usize {
        self.to.len()
    }

    /// The pairs that begin with a state, in the order of their second state, none last.
    pub fn pairs_of(&self, state: usize) -> Range<usize> {
        self.offsets[state]..self.offsets[state + 1]
    }

    /// The second state of a pair; `None` where there is none.
    pub fn to(&self, pair: usize) -> Option<usize> {
        (self.to[pair] != NONE).then_some(self.to[pair] as usize)
    }

    /// The parts in which a pair occurs and its cells there, first to last part.
    pub fn cells(&self, pair: usize) -> impl Iterator<Item = (usize, &T)> {
        let range = self.begin[pair]..self.begin[pair + 1];
        self.parts[range.clone()].iter().map(|&part| part as usize).zip(&self.cells[range])
    }

    /// Σ over parts of weight times what `read` sees in the cell, for every pair.
    pub(crate) fn weigh(&self, weights: &[f64], read: impl Fn(&T) -> f64) -> Vec<f64> {
        let sum = |p| self.cells(p).map(|(part, cell)| weights[part] * read(cell)).sum();
        (0..self.num_pairs()).map(sum).collect()
    }

    /// Sums over the pairs of each state.
    pub(crate) fn by_state(&self, by_pair: &[f64]) -> Vec<f64> {
        (0..self.num_states()).map(|s| by_pair[self.pairs_of(s)].iter().sum()).collect()
    }

    /// Makes a grid of cells in any order; cells of the same pair and part are merged, in that order.
    pub(crate) fn collect<A: Merge>(
        num_states: usize,
        mut found: Vec<(u32, u32, u32, A)>,
        finish: impl Fn(A) -> T,
    ) -> Self {
        found.sort_by_key(|&(from, to, part, _)| (from, to, part));
        found.dedup_by(|next, kept| {
            let same = (next.0, next.1, next.2) == (kept.0, kept.1, kept.2);
            if same {
                kept.3.merge(&next.3);
            }
            same
        });
        let mut grid = Self {
            offsets: vec![0; num_states + 1],
            to: Vec::new(),
            begin: Vec::new(),
            parts: Vec::with_capacity(found.len()),
            cells: Vec::with_capacity(found.len()),
        };
        let mut last = None;
        for (from, to, part, cell) in found {
            if last != Some((from, to)) {
                last = Some((from, to));
                grid.begin.push(grid.cells.len());
                grid.to.push(to);
                grid.offsets[from as usize + 1] += 1;
            }
            grid.parts.push(part);
            grid.cells.push(finish(cell));
        }
        grid.begin.push(grid.cells.len());
        for s in 0..num_states {
            grid.offsets[s + 1] += grid.offsets[s];
        }
        grid
    }

    /// Makes a grid of one table per part, states renumbered.
    pub(crate) fn of_tables<'a, A: Merge + Copy + Default + 'a>(
        num_states: usize,
        tables: impl Iterator<Item = &'a Table<A>>,
        renumber: impl Fn(u32) -> u32,
        finish: impl Fn(A) -> T,
    ) -> Self {
        let renumber = |s: u32| if s == NONE { NONE } else { renumber(s) };
        let mut found = Vec::new();
        for (part, table) in tables.enumerate() {
            found.extend(table.iter().map(|(from, to, a)| (renumber(from), renumber(to), part as u32, *a)));
        }
        Self::collect(num_states, found, finish)
    }

    /// The same tallies with states gathered in groups.
    pub(crate) fn regroup(&self, num_groups: usize, group_of: &[u32]) -> Self
    where
        T: Merge + Copy,
    {
        let mut found = Vec::with_capacity(self.cells.len());
        for (s, &from) in group_of.iter().enumerate() {
            for p in self.pairs_of(s) {
                let to = self.to(p).map_or(NONE, |to| group_of[to]);
                found.extend(self.cells(p).map(|(part, cell)| (from, to, part as u32, *cell)));
            }
        }
        Self::collect(num_groups, found, |cell| cell)
    }
}
