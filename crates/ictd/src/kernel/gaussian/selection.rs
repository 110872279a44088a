//! Which points stand for all: pivoted Cholesky factorisation of the kernel on a sample.

use rayon::prelude::*;

use super::embedding::Embedding;
use super::kappa::Panel;
use crate::matrix::Matrix;
use crate::random::{Purpose, Stream};
use crate::watch::{Stopped, Watch};
use crate::{parallel, vector};

/// Points of a sample that are drawn at random ...
const DRAWN: usize = 6144;
/// ... and those that are farthest out, where few others are near: the largest errors are there.
const FARTHEST: usize = 2048;
/// Points of more coordinates are drawn in smaller numbers: so many coordinates in all, but no fewer points than [`ROUND`] squared.
const COORDINATES: usize = 64 * DRAWN;
/// Points that a thread takes at once.
const CHUNK: usize = 512;
/// After so many pivots it is looked whether they are enough.
const ROUND: usize = 16;
/// What a factorisation leaves of 1 below this is rounding.
const NOISE: f64 = 1e-14;

/// A sample of points, the pivots that were chosen among them so far, and what these leave.
pub(super) struct Selection<'a> {
    embedding: &'a Embedding,
    visits: &'a [f64],
    chunks: Vec<Chunk>,
    /// Drawn sources by place in the sample, each with the number of sources it stands for times c(s)·b(s)·2^(‖y_s‖²/2).
    drawn: Vec<(usize, f64)>,
    /// Pivots by place in the sample.
    chosen: Vec<usize>,
    len: usize,
}

struct Chunk {
    /// The points by number.
    points: Vec<usize>,
    panel: Panel,
    /// Columns of the factor, one after another.
    factor: Vec<f64>,
    /// What is left of the diagonal.
    residual: Vec<f64>,
    /// Σ_s c(s)·b(s)·2^(‖y_s‖²/2)·κ(s, u), estimated.
    mass: Vec<f64>,
}

impl<'a> Selection<'a> {
    /// A sample without pivots; `visits` are those of the sources.
    pub fn new(embedding: &'a Embedding, visits: &'a [f64]) -> Self {
        let (n, sources) = (embedding.len(), embedding.num_sources());
        let mut taken = vec![false; n];
        // Any fixed stream will do.
        let mut stream = Stream::new(0, Purpose::Evaluation, 1);
        let drawn = DRAWN.min((COORDINATES / embedding.dim()).max(ROUND * ROUND));
        let mut points: Vec<usize> = if sources <= drawn {
            (0..sources).collect()
        } else {
            (0..drawn).map(|_| stream.below(sources as u32) as usize).collect()
        };
        let share = sources as f64 / points.len() as f64;
        let weight =
            |s: usize| share * visits[s] * embedding.factors()[s] * (0.5 * embedding.square(s)).exp2();
        let weighed = points.iter().enumerate().map(|(place, &s)| (place, weight(s))).collect();
        points.iter().for_each(|&s| taken[s] = true);
        let mut others: Vec<usize> = (0..n).filter(|&u| !taken[u]).collect();
        let farther =
            |a: &usize, b: &usize| embedding.square(*b).total_cmp(&embedding.square(*a)).then(a.cmp(b));
        let farthest = FARTHEST.min(drawn);
        if others.len() > farthest {
            others.select_nth_unstable_by(farthest, farther);
            others.truncate(farthest);
        }
        others.sort_by(farther);
        points.extend(others);
        let mut selection =
            Self { embedding, visits, chunks: Vec::new(), drawn: weighed, chosen: Vec::new(), len: 0 };
        selection.add(&points);
        selection
    }

    /// Adds points to the sample.
    pub fn add(&mut self, points: &[usize]) {
        // Up to its own diagonal entry: what comes after is rounding.
        let up_to_own = |(k, &place): (usize, &usize)| {
            let mut row = self.factor_row(place);
            row.truncate(k + 1);
            (self.point(place), row)
        };
        let pivots: Vec<(usize, Vec<f64>)> = self.chosen.iter().enumerate().map(up_to_own).collect();
        let sources: Vec<(usize, f64)> = match self.chunks.is_empty() {
            true => self.drawn.iter().map(|&(place, weight)| (points[place], weight)).collect(),
            false => self.drawn.iter().map(|&(place, weight)| (self.point(place), weight)).collect(),
        };
        let embedding = self.embedding;
        let made = parallel::map(points.len().div_ceil(CHUNK), |k| {
            let points = &points[k * CHUNK..points.len().min((k + 1) * CHUNK)];
            let panel = Panel::new(points.iter().map(|&u| embedding.point(u)), points.len(), embedding.dim());
            let (mut mass, mut kappa) = (vec![0.0; points.len()], vec![0.0; points.len()]);
            for &(s, weight) in &sources {
                panel.kappa(embedding.point(s), &mut kappa);
                vector::axpy(weight, &kappa, &mut mass);
            }
            let residual = vec![1.0; points.len()];
            let mut chunk = Chunk { points: points.to_vec(), panel, factor: Vec::new(), residual, mass };
            for (p, row) in &pivots {
                chunk.eliminate(embedding.point(*p), row);
            }
            chunk
        });
        self.chunks.extend(made);
        self.len += points.len();
    }

    /// Number of pivots.
    pub fn rank(&self) -> usize {
        self.chosen.len()
    }

    /// Points in the sample.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Chooses pivots until the estimated error of the worst column is at most `tolerance`: `true`; or there are `max_rank`, or
    /// rounding is all that is left: `false`.
    pub fn extend(&mut self, tolerance: f64, max_rank: usize, watch: &dyn Watch) -> Result<bool, Stopped> {
        loop {
            if self.error() <= tolerance {
                return Ok(true);
            }
            for _ in 0..ROUND {
                let Some(place) = self.worst().filter(|_| self.rank() < max_rank) else { return Ok(false) };
                let row = self.factor_row(place);
                let y = self.embedding.point(self.point(place));
                let left = self.residual(place);
                let row: Vec<f64> = row.into_iter().chain([left.sqrt()]).collect();
                self.chunks.par_iter_mut().for_each(|chunk| chunk.eliminate(y, &row));
                self.chosen.push(place);
            }
            watch.advance(ROUND as u64)?;
        }
    }

    /// The largest of 2·√res(u)·Σ_s c(s)·b(s)·2^(‖y_s‖²/2)·√res(s)/mass(u), which bounds the errors of weights of column u.
    pub fn error(&self) -> f64 {
        let spread: f64 =
            self.drawn.iter().map(|&(place, weight)| weight * self.residual(place).sqrt()).sum();
        let worst = self.worst().map_or(0.0, |place| {
            let (chunk, k) = self.at(place);
            chunk.residual[k].sqrt() / chunk.mass[k]
        });
        2.0 * worst * spread
    }

    /// The place of the column with the largest error, among those where more than rounding is left.
    fn worst(&self) -> Option<usize> {
        let mut found: Option<(f64, usize)> = None;
        let mut place = 0;
        for chunk in &self.chunks {
            for (residual, mass) in chunk.residual.iter().zip(&chunk.mass) {
                let error = residual / (mass * mass);
                if *residual > NOISE && found.is_none_or(|(worst, _)| error > worst) {
                    found = Some((error, place));
                }
                place += 1;
            }
        }
        found.map(|(_, place)| place)
    }

    fn at(&self, place: usize) -> (&Chunk, usize) {
        let (mut k, mut chunk) = (place, 0);
        while k >= self.chunks[chunk].points.len() {
            k -= self.chunks[chunk].points.len();
            chunk += 1;
        }
        (&self.chunks[chunk], k)
    }

    fn point(&self, place: usize) -> usize {
        let (chunk, k) = self.at(place);
        chunk.points[k]
    }

    fn residual(&self, place: usize) -> f64 {
        let (chunk, k) = self.at(place);
        chunk.residual[k].max(0.0)
    }

    /// What the factor has of a point, pivot by pivot.
    fn factor_row(&self, place: usize) -> Vec<f64> {
        let (chunk, k) = self.at(place);
        let len = chunk.points.len();
        (0..chunk.factor.len() / len).map(|j| chunk.factor[j * len + k]).collect()
    }

    /// The pivots by number, and the lower triangular L with L·Lᵀ = κ between them.
    pub fn pivots(&self) -> (Vec<usize>, Matrix) {
        let rank = self.rank();
        let rows: Vec<Vec<f64>> = self.chosen.iter().map(|&place| self.factor_row(place)).collect();
        let factor = Matrix::from_fn(rank, rank, |i, j| if j <= i { rows[i][j] } else { 0.0 });
        (self.chosen.iter().map(|&place| self.point(place)).collect(), factor)
    }

    /// c(s) of the sources.
    pub fn visits(&self) -> &[f64] {
        self.visits
    }
}

impl Chunk {
    /// Takes out a pivot at `y` with this row of the factor, which ends with its diagonal entry.
    fn eliminate(&mut self, y: &[f64], row: &[f64]) {
        let len = self.points.len();
        let Some((diagonal, before)) = row.split_last() else { return };
        let mut column = vec![0.0; len];
        self.panel.kappa(y, &mut column);
        for (entry, earlier) in before.iter().zip(self.factor.chunks_exact(len)) {
            vector::axpy(-entry, earlier, &mut column);
        }
        for (left, entry) in self.residual.iter_mut().zip(&mut column) {
            *entry /= diagonal;
            *left -= *entry * *entry;
        }
        self.factor.extend(column);
    }
}
