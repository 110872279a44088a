//! Products with all weights at once, computed anew in registers: no memory but for the vectors.

use rayon::prelude::*;

use super::embedding::Embedding;
use super::tile::{MAX_ROWS, Real};
use crate::kernel::Precision;
use crate::watch::{Stopped, Watch};

/// Points of a block: the least that a thread takes at once ...
const MIN_BLOCK: usize = 256;
/// ... and the most; between them, as many as make up to this number of blocks.
const MAX_BLOCK: usize = 1024;
const BLOCKS: usize = 64;
/// Where rounding may do more to a column, another precision or route is to be taken.
const LARGEST_ROUNDING: f64 = 1e-3;

/// Σ_s b(s)·g(s)·2^⟨y_s, y_u⟩ for every point u, by blocks of points.
///
/// Two blocks meet once and both have their sums from it, as the powers are symmetric: half the work. Meetings go by rounds, in
/// each of which a block meets one other, so that threads write to different places and the order of sums is that of the
/// rounds, for any number of threads.
#[derive(Clone, Debug)]
pub(crate) enum Blocks {
    /// In single precision, runs of sums in double.
    Single(Packed<f32>),
    /// In double precision.
    Double(Packed<f64>),
}

impl Blocks {
    /// Where no power leaves the range of the precision and rounding stays small.
    pub fn new(embedding: &Embedding, precision: Precision) -> Option<Self> {
        match precision {
            Precision::Single => Packed::new(embedding).map(Self::Single),
            Precision::Double => Packed::new(embedding).map(Self::Double),
        }
    }

    /// The sums for messages g of all sources, N at once.
    pub fn sums<const N: usize>(
        &self,
        messages: [&[f64]; N],
        watch: &dyn Watch,
    ) -> Result<[Vec<f64>; N], Stopped> {
        match self {
            Self::Single(packed) => packed.sums(messages, watch),
            Self::Double(packed) => packed.sums(messages, watch),
        }
    }

    /// How often a call of [`sums`](Self::sums) says that it goes on.
    pub fn rounds(&self) -> u64 {
        match self {
            Self::Single(packed) => packed.rounds(),
            Self::Double(packed) => packed.rounds(),
        }
    }

    /// A bound on what rounding does to a column of weights: Σ_s |error|, relative to Σ_s of what is summed in absolute value.
    pub fn rounding(&self) -> f64 {
        match self {
            Self::Single(packed) => packed.rounding,
            Self::Double(packed) => packed.rounding,
        }
    }
}

/// Points as the loops want them.
#[derive(Clone, Debug)]
pub(crate) struct Packed<T> {
    dim: usize,
    len: usize,
    num_sources: usize,
    block: usize,
    /// Point after point, then zeros up to a whole number of blocks.
    rows: Vec<T>,
    /// The same in groups: the first coordinate of all points of a group, then the second, and so on.
    columns: Vec<T>,
    factors: Vec<f64>,
    rounding: f64,
}

impl<T: Real> Packed<T> {
    fn new(embedding: &Embedding) -> Option<Self> {
        if !(embedding.range() <= T::RANGE) {
            return None;
        }
        let (dim, len) = (embedding.dim(), embedding.len());
        let block = (len / BLOCKS).next_multiple_of(MIN_BLOCK).clamp(MIN_BLOCK, MAX_BLOCK);
        let padded = len.next_multiple_of(block);
        let mut rows = vec![T::default(); padded * dim];
        for (u, y) in rows.chunks_exact_mut(dim).take(len).enumerate() {
            y.iter_mut().zip(embedding.point(u)).for_each(|(y, x)| *y = T::of(*x));
        }
        let mut columns = embedding.columns();
        columns.resize(padded * dim, T::default());
        // Rounding a point moves an exponent by two units of its size, a product of d terms by d; then the power, the factor and the
        // message, a run of sums, a sum over lanes and one over blocks.
        let exponents = std::f64::consts::LN_2 * (dim as f64 + 2.0) * embedding.reach();
        let terms = (T::RUN + 2 * block / T::GROUP) as f64;
        let in_double = f64::EPSILON * (padded / block + block / T::RUN + 20) as f64;
        let rounding =
            T::UNIT * (exponents + T::POWER_ERROR + terms + 2.0) + in_double + embedding.placing_error();
        if !(rounding <= LARGEST_ROUNDING) {
            return None;
        }
        let factors = embedding.factors().to_vec();
        Some(Self { dim, len, num_sources: embedding.num_sources(), block, rows, columns, factors, rounding })
    }

    fn num_blocks(&self) -> usize {
        self.rows.len() / (self.block * self.dim)
    }

    /// One for meetings with oneself, then one for each other block of an even number.
    fn rounds(&self) -> u64 {
        self.num_blocks().next_multiple_of(2) as u64
    }

    fn sums<const N: usize>(
        &self,
        messages: [&[f64]; N],
        watch: &dyn Watch,
    ) -> Result<[Vec<f64>; N], Stopped> {
        let padded = self.rows.len() / self.dim;
        let scaled: [(f64, Vec<T>); N] = messages.map(|g| self.scaled(g, padded));
        let mut sums: [Vec<f64>; N] = std::array::from_fn(|_| vec![0.0; padded]);
        for round in 0..self.rounds() as usize {
            let mut free: Vec<Option<[&mut [f64]; N]>> = by_block(&mut sums, self.block);
            let meetings: Vec<_> = meetings(round, self.num_blocks())
                .filter(|&(i, _)| i * self.block < self.num_sources)
                .filter_map(|(i, j)| {
                    Some((i, j, free[i].take()?, if i == j { None } else { free[j].take() }))
                })
                .collect();
            meetings.into_par_iter().try_for_each(|(i, j, of_rows, of_columns)| {
                match of_columns {
                    Some(of_columns) => self.meet(i, j, &scaled, of_rows, of_columns),
                    None => {
                        // With itself a block sees both triangles: one of the two sums is enough.
                        let mut unused: [Vec<f64>; N] = std::array::from_fn(|_| vec![0.0; self.block]);
                        self.meet(i, j, &scaled, of_rows, unused.each_mut().map(Vec::as_mut_slice));
                    }
                }
                // A round of many coordinates may take seconds.
                watch.advance(0)
            })?;
            watch.advance(1)?;
        }
        let mut scales = scaled.map(|(scale, _)| scale).into_iter();
        Ok(sums.map(|mut sums| {
            sums.truncate(self.len);
            let scale = scales.next().unwrap_or(1.0);
            sums.iter_mut().for_each(|x| *x *= scale);
            sums
        }))
    }

    /// b(s)·g(s) divided by the largest, and that.
    fn scaled(&self, messages: &[f64], padded: usize) -> (f64, Vec<T>) {
        let weighed: Vec<f64> = self.factors.iter().zip(messages).map(|(b, g)| b * g).collect();
        let largest = weighed.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let scale = if largest > 0.0 { largest } else { 1.0 };
        let mut out: Vec<T> = weighed.iter().map(|x| T::of(x / scale)).collect();
        out.resize(padded, T::default());
        (scale, out)
    }

    /// Adds what block i sends to block j, and what j sends to i.
    fn meet<const N: usize>(
        &self,
        i: usize,
        j: usize,
        scaled: &[(f64, Vec<T>); N],
        mut of_rows: [&mut [f64]; N],
        mut of_columns: [&mut [f64]; N],
    ) {
        // Of the last block, the points that there are: those that fill it up send and receive nothing.
        let points = |k: usize| (self.len - k * self.block).min(self.block);
        let filled = points(j).next_multiple_of(T::GROUP);
        let columns = &self.columns[j * self.block * self.dim..][..filled * self.dim];
        let q = scaled.each_ref().map(|(_, g)| &g[j * self.block..][..filled]);
        for first in (0..points(i)).step_by(MAX_ROWS) {
            let begin = i * self.block + first;
            let rows = &self.rows[begin * self.dim..][..MAX_ROWS * self.dim];
            let p = scaled.each_ref().map(|(_, g)| &g[begin..begin + MAX_ROWS]);
            let row_sums = of_rows.each_mut().map(|sums| &mut sums[first..first + MAX_ROWS]);
            T::tile(
                self.dim,
                rows,
                p,
                columns,
                q,
                row_sums,
                of_columns.each_mut().map(|sums| &mut sums[..filled]),
            );
        }
    }
}

/// The parts of the sums that belong to each block, to be handed out.
fn by_block<const N: usize>(sums: &mut [Vec<f64>; N], block: usize) -> Vec<Option<[&mut [f64]; N]>> {
    let mut parts = sums.each_mut().map(|sums| sums.chunks_exact_mut(block));
    std::iter::from_fn(|| {
        let row = parts.each_mut().map(Iterator::next);
        row.iter().all(Option::is_some).then(|| row.map(Option::unwrap_or_default))
    })
    .map(Some)
    .collect()
}

/// Who meets whom in a round, the lower number first: everyone oneself in round 0, then everyone else once (the circle method: one
/// stays, the others move on by a seat).
fn meetings(round: usize, num_blocks: usize) -> impl Iterator<Item = (usize, usize)> {
    let even = num_blocks.next_multiple_of(2);
    let seats = even - 1;
    let alone = (0..num_blocks).filter(move |_| round == 0).map(|i| (i, i));
    let turn = round.wrapping_sub(1);
    let pairs = (0..even / 2).filter(move |_| round > 0).map(move |k| match k {
        0 => (turn, seats),
        k => ((turn + k) % seats, (turn + seats - k) % seats),
    });
    alone.chain(pairs.map(|(i, j)| (i.min(j), i.max(j))).filter(move |&(_, j)| j < num_blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_two_blocks_meet_once_and_none_twice_in_a_round() {
        for num_blocks in 1..12usize {
            let mut met = vec![0; num_blocks * num_blocks];
            for round in 0..num_blocks.next_multiple_of(2) {
                let mut busy = vec![false; num_blocks];
                for (i, j) in meetings(round, num_blocks) {
                    assert!(i <= j && !busy[i] && !busy[j]);
                    (busy[i], busy[j]) = (true, true);
                    met[i * num_blocks + j] += 1;
                }
            }
            for i in 0..num_blocks {
                assert!((i..num_blocks).all(|j| met[i * num_blocks + j] == 1));
            }
        }
    }
}
