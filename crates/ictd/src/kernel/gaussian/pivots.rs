//! Products with weights through a few of the points, with a bound on what that leaves out.

use rayon::prelude::*;

use super::embedding::Embedding;
use super::kappa::Panel;
use super::selection::Selection;
use super::tile::{MAX_ROWS, Real};
use crate::matrix::Matrix;
use crate::statistics::largest;
use crate::watch::{Stopped, Watch};
use crate::{linalg, parallel};

/// Columns of a panel whose residuals are computed at once.
const PANEL: usize = 256;
/// Columns that a thread takes at once for products.
const BLOCK: usize = 4096;
/// The share of the tolerance that is aimed at on the sample: all points may have somewhat larger errors.
const AIM: f64 = 0.5;
/// How often points that the sample did not stand for are added to it.
const REPAIRS: usize = 4;
/// The worst columns of all that are added then.
const ADDED: usize = 256;
/// Rounding is taken to be this multiple of what it does to the pivots themselves, which should have no residual.
const ROUNDING: f64 = 10.0;

/// The kernel κ(s, u) = 2^(-‖y_s - y_u‖²/2) by way of k pivots p: κ̂(s, u) = f(s)·f(u) with f(u) = L⁻¹κ(p, u) and L·Lᵀ = κ between pivots.
///
/// κ - κ̂ is positive semidefinite, so that no entry exceeds √(res(s)·res(u)), res(u) = 1 - ‖f(u)‖² being what is left of the diagonal. With
/// a(s) = b(s)·2^(‖y_s‖²/2) the weights of column u are a(s)·κ(s, u) over their sum, and their errors sum to at most twice
/// √res(u)·Σ_s c(s)·a(s)·√res(s) over it. f is never kept: κ(p, u) is computed anew in every layer, O(k) per point and memory for none.
#[derive(Clone, Debug)]
pub(crate) struct Pivots {
    dim: usize,
    rank: usize,
    num_points: usize,
    /// b(s) of the sources.
    factors: Vec<f64>,
    /// The pivots, then points at 0 up to an even number.
    rows: Vec<f64>,
    /// 2^(-‖y_p‖²/2) of the pivots, then zeros.
    scales: Vec<f64>,
    /// All points in groups, padded to whole groups.
    columns: Vec<f64>,
    /// L⁻¹.
    inverse: Matrix,
    /// A bound on the error of every column of weights, Σ_s |error| where they sum to 1.
    errors: Vec<f64>,
}

/// Why there are no pivots that are good enough: how many were tried, and what bound they have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TooMany {
    pub rank: usize,
    pub error: f64,
}

impl Pivots {
    /// As many pivots as the tolerance asks for, where they are no more than may be chosen from a sample of so many points.
    /// `visits` are those of the sources.
    pub fn new(
        embedding: &Embedding,
        visits: &[f64],
        tolerance: f64,
        max_rank: impl FnOnce(usize) -> usize,
        watch: &dyn Watch,
    ) -> Result<Result<Self, TooMany>, Stopped> {
        let mut selection = Selection::new(embedding, visits);
        let max_rank = max_rank(selection.len());
        watch.begin("pivots", "pivots", 0)?;
        for repair in 0..=REPAIRS {
            let aim = AIM * tolerance / f64::from(1 << repair);
            let enough = selection.extend(aim, max_rank, watch)?;
            if !enough && selection.error() > tolerance {
                return Ok(Err(TooMany { rank: selection.rank(), error: selection.error() }));
            }
            let mut pivots = Self::of(embedding, &selection);
            let errors = pivots.column_errors(embedding, selection.visits(), watch)?;
            let worst = largest(errors.iter().copied());
            if worst <= tolerance {
                pivots.errors = errors;
                return Ok(Ok(pivots));
            }
            if repair == REPAIRS || !enough {
                return Ok(Err(TooMany { rank: pivots.rank, error: worst }));
            }
            let mut worst: Vec<usize> = (0..errors.len()).filter(|&u| !(errors[u] <= aim)).collect();
            worst.sort_by(|&a, &b| errors[b].total_cmp(&errors[a]).then(a.cmp(&b)));
            worst.truncate(ADDED);
            selection.add(&worst);
            watch.begin("pivots", "pivots", 0)?;
        }
        Ok(Err(TooMany { rank: selection.rank(), error: f64::INFINITY }))
    }

    fn of(embedding: &Embedding, selection: &Selection<'_>) -> Self {
        let (indices, factor) = selection.pivots();
        let (dim, rank) = (embedding.dim(), indices.len());
        let padded = rank.next_multiple_of(2);
        let mut rows: Vec<f64> = indices.iter().flat_map(|&p| embedding.point(p)).copied().collect();
        rows.resize(padded * dim, 0.0);
        let mut scales: Vec<f64> = indices.iter().map(|&p| (-0.5 * embedding.square(p)).exp2()).collect();
        scales.resize(padded, 0.0);
        let inverse = linalg::lower_inverse(&factor);
        let columns = embedding.columns::<f64>();
        let (num_points, factors) = (embedding.len(), embedding.factors().to_vec());
        Self { dim, rank, num_points, factors, rows, scales, columns, inverse, errors: Vec::new() }
    }

    /// Number of pivots k.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// A bound on the error of every column of weights, Σ_s |error| where they sum to 1.
    pub fn errors(&self) -> &[f64] {
        &self.errors
    }

    fn column_errors(
        &self,
        embedding: &Embedding,
        visits: &[f64],
        watch: &dyn Watch,
    ) -> Result<Vec<f64>, Stopped> {
        let mut residuals = self.residuals(embedding, watch)?;
        let rounding = self.rounding();
        residuals.iter_mut().for_each(|x| *x = x.max(0.0) + rounding);
        let ([masses], [moved]) = self.solved_sums([visits], &())?;
        let spread: f64 = (0..embedding.num_sources())
            .map(|s| visits[s] * embedding.amplitude(s) * residuals[s].sqrt())
            .sum();
        let placing = embedding.placing_error();
        // What products round: k terms, whose sizes may be much larger than their sum.
        let product = f64::EPSILON * (self.rank as f64 + 20.0) * moved;
        let error = |u: usize| {
            let off = residuals[u].sqrt() * spread + product;
            let mass = masses[u] * (-0.5 * embedding.square(u)).exp2() - off;
            // Negated, so that NaN is no bound.
            if !(mass > 0.0) { f64::INFINITY } else { 2.0 * (off / mass + placing) }
        };
        Ok((0..self.num_points).map(error).collect())
    }

    /// How far rounding moves residuals: pivots have none but for it, and it is of that size everywhere.
    pub fn rounding(&self) -> f64 {
        let of_pivots = self.rows.chunks_exact(self.dim).take(self.rank);
        let residuals = self.panel_residuals(of_pivots, self.rank);
        ROUNDING * largest(residuals.iter().map(|x| x.abs())) + f64::EPSILON * self.rank as f64
    }

    /// f(u) of these points, one row of k numbers each.
    pub fn features(&self, points: &[f64]) -> Matrix {
        let rank = self.rank;
        let mut rows = vec![0.0; points.len() / self.dim * rank];
        let panels = rows.par_chunks_mut(PANEL * rank).zip(points.par_chunks(PANEL * self.dim));
        panels.for_each(|(rows, points)| {
            let mut pivot = 0;
            self.panel_features(points.chunks_exact(self.dim), rows.len() / rank, |f| {
                rows.iter_mut().skip(pivot).step_by(rank).zip(f).for_each(|(entry, f)| *entry = *f);
                pivot += 1;
            });
        });
        Matrix::from_vec(points.len() / self.dim, rank, rows)
    }

    /// 1 - ‖f(u)‖² of every point.
    fn residuals(&self, embedding: &Embedding, watch: &dyn Watch) -> Result<Vec<f64>, Stopped> {
        let mut residuals = vec![0.0; self.num_points];
        watch.begin("residuals of all states", "states", self.num_points as u64)?;
        residuals.par_chunks_mut(PANEL).enumerate().try_for_each(|(k, out)| {
            let points = (0..out.len()).map(|j| embedding.point(k * PANEL + j));
            out.copy_from_slice(&self.panel_residuals(points, out.len()));
            watch.advance(out.len() as u64)
        })?;
        Ok(residuals)
    }

    fn panel_residuals<'a>(&self, points: impl Iterator<Item = &'a [f64]>, len: usize) -> Vec<f64> {
        let mut residuals = vec![1.0; len];
        self.panel_features(points, len, |row| {
            residuals.iter_mut().zip(row).for_each(|(left, f)| *left -= f * f);
        });
        residuals
    }

    /// f of a panel of points, pivot by pivot.
    fn panel_features<'a>(
        &self,
        points: impl Iterator<Item = &'a [f64]>,
        len: usize,
        each: impl FnMut(&[f64]),
    ) {
        let panel = Panel::new(points, len, self.dim);
        let mut kappa = vec![0.0; self.rank * len];
        for (row, y) in kappa.chunks_exact_mut(len).zip(self.rows.chunks_exact(self.dim)) {
            panel.kappa(y, row);
        }
        linalg::lower_product(&self.inverse, &kappa, len, each);
    }

    /// Σ_s b(s)·g(s)·2^⟨y_s, y_u⟩ for every point u by way of the pivots, N vectors of messages at once.
    pub fn sums<const N: usize>(
        &self,
        messages: [&[f64]; N],
        watch: &dyn Watch,
    ) -> Result<[Vec<f64>; N], Stopped> {
        Ok(self.solved_sums(messages, watch)?.0)
    }

    /// As [`sums`](Self::sums), and Σ_p |w(p)| of the solutions w = κ(p, p)⁻¹·t that they are made of.
    fn solved_sums<const N: usize>(
        &self,
        messages: [&[f64]; N],
        watch: &dyn Watch,
    ) -> Result<([Vec<f64>; N], [f64; N]), Stopped> {
        let padded = self.columns.len() / self.dim;
        let weighed = messages.map(|g| {
            let mut weighed: Vec<f64> = self.factors.iter().zip(g).map(|(b, g)| b * g).collect();
            weighed.resize(padded, 0.0);
            weighed
        });
        let none = vec![0.0; self.scales.len()];
        let blocks = padded.div_ceil(BLOCK);
        let gathered: Vec<[Vec<f64>; N]> = parallel::try_map(blocks, |k| {
            let range = k * BLOCK..((k + 1) * BLOCK).min(padded);
            let q = weighed.each_ref().map(|g| &g[range.clone()]);
            let mut unused: [Vec<f64>; N] = std::array::from_fn(|_| vec![0.0; range.len()]);
            let mut sums: [Vec<f64>; N] = std::array::from_fn(|_| vec![0.0; none.len()]);
            let p = std::array::from_fn(|_| none.as_slice());
            self.meet(range, p, q, &mut sums, unused.each_mut().map(Vec::as_mut_slice));
            watch.advance(0).map(|()| sums)
        })?;
        watch.advance(1)?;
        let mut moved = [0.0; N];
        let solved: [Vec<f64>; N] = std::array::from_fn(|m| {
            let mut t: Vec<f64> = vec![0.0; self.scales.len()];
            gathered.iter().for_each(|sums| t.iter_mut().zip(&sums[m]).for_each(|(t, x)| *t += x));
            t.iter_mut().zip(&self.scales).for_each(|(t, scale)| *t *= scale);
            let f = self.inverse.mul_vec(&t[..self.rank]);
            let mut w = transposed_product(&self.inverse, &f);
            moved[m] = w.iter().map(|w| w.abs()).sum();
            w.resize(self.scales.len(), 0.0);
            w.iter_mut().zip(&self.scales).for_each(|(w, scale)| *w *= scale);
            w
        });
        let mut out: [Vec<f64>; N] = std::array::from_fn(|_| vec![0.0; padded]);
        let unsent = vec![0.0; BLOCK];
        let mut parts = out.each_mut().map(|out| out.chunks_mut(BLOCK));
        let parts: Vec<[&mut [f64]; N]> =
            (0..blocks).map(|_| parts.each_mut().map(|part| part.next().unwrap_or_default())).collect();
        parts.into_par_iter().enumerate().try_for_each(|(k, out)| {
            let range = k * BLOCK..((k + 1) * BLOCK).min(padded);
            let p = solved.each_ref().map(Vec::as_slice);
            let q = std::array::from_fn(|_| &unsent[..range.len()]);
            let mut unused: [Vec<f64>; N] = std::array::from_fn(|_| vec![0.0; none.len()]);
            self.meet(range, p, q, &mut unused, out);
            watch.advance(0)
        })?;
        watch.advance(1)?;
        let out = out.map(|mut out| {
            out.truncate(self.num_points);
            out
        });
        Ok((out, moved))
    }

    /// Pivots with messages p and points of a range with messages q: sums of both.
    fn meet<const N: usize>(
        &self,
        range: std::ops::Range<usize>,
        p: [&[f64]; N],
        q: [&[f64]; N],
        of_pivots: &mut [Vec<f64>; N],
        mut of_points: [&mut [f64]; N],
    ) {
        let columns = &self.columns[range.start * self.dim..range.end * self.dim];
        for first in (0..self.scales.len()).step_by(MAX_ROWS) {
            let some = first..(first + MAX_ROWS).min(self.scales.len());
            let rows = &self.rows[some.start * self.dim..some.end * self.dim];
            let row_sums = of_pivots.each_mut().map(|sums| &mut sums[some.clone()]);
            let column_sums = of_points.each_mut().map(|sums| &mut **sums);
            f64::tile(self.dim, rows, p.map(|p| &p[some.clone()]), columns, q, row_sums, column_sums);
        }
    }
}

/// Lᵀx for a lower triangular L.
fn transposed_product(lower: &Matrix, x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    for (row, x) in lower.rows().zip(x) {
        out.iter_mut().zip(row).for_each(|(out, entry)| *out += entry * x);
    }
    out
}
