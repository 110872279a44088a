//! Averages over many states by way of a few of them, where the kernel is wide.

use super::coordinates::OuterProducts;
use super::smoother::{Smoother, Weights, pick};
use crate::context::ContextStatistics;
use crate::kernel::{Embedding, Pivots, TooMany};
use crate::matrix::Matrix;
use crate::{parallel, vector};

/// The errors of the weights of a state, which sum to 1, sum to no more than this.
const TOLERANCE: f64 = 1e-3;
/// The share of it that is aimed at with the visits of all columns of a batch: single columns leave states out, and have larger errors.
const AIM: f64 = 0.5;
/// Up to this many states are attended to one by one.
const FEW_STATES: usize = 2048;
/// The most pivots, ...
const MAX_RANK: usize = 512;
/// ... the most states times pivots, of which the features are kept, ...
const MAX_FEATURES: usize = 1 << 24;
/// ... and times pivots squared, which is what a system of a column of a batch costs.
const MAX_PRODUCTS: u64 = 1 << 32;
/// Sources that are tried first.
const PROBED: usize = 1024;
/// Sources that a thread sums over at once. Fixed, so that the result does not depend on the number of threads.
const BLOCK: usize = 1024;

/// The weights a(s)·κ(s, u) of all sources s by way of k pivots: κ(s, u) is f(s)·f(u) but for a residual that is known, f(u) having k entries. A weighted
/// average of sums g over sources is then f(u)·Σ_s a(s)·f(s)·g(s), over the same of visits: k numbers stand for the sums of all sources.
#[derive(Clone, Debug)]
pub(super) struct PivotSmoother {
    pivots: Pivots,
    embedding: Embedding,
    /// a(s).
    amplitudes: Vec<f64>,
    /// What rounding may add to a residual.
    rounding: f64,
    /// Σ_s n(s)·a(s)·√res(s), by column of the batch.
    spreads: Vec<f64>,
    /// Visits in the coordinates of pivots, by column.
    visits: Matrix,
    /// Σ_s n(s)·a(s)²·f(s)f(s)ᵀ in the first column.
    squares: Matrix,
    /// The largest error of the weights of a state of the log, in any column.
    bound: f64,
}

impl PivotSmoother {
    /// The most pivots among so many states.
    fn max_rank(num_states: usize) -> usize {
        let states = num_states.max(1);
        MAX_RANK.min(MAX_FEATURES / states).min((MAX_PRODUCTS / states as u64).isqrt() as usize)
    }

    /// Pivots for a smoother over the states with these numbers, and the weights of all states; or why there are none. `visits` are those of the sources, by
    /// column of a batch.
    pub fn of(
        smoother: &Smoother,
        features: &Matrix,
        sources: &[usize],
        visits: &Matrix,
    ) -> Result<(Self, Weights), String> {
        let states = features.num_rows();
        if states <= FEW_STATES {
            return Err(format!("{states} states"));
        }
        let mut is_source = vec![false; states];
        sources.iter().for_each(|&s| is_source[s] = true);
        let others: Vec<usize> = (0..states).filter(|&s| !is_source[s]).collect();
        let embed = |sources: &[usize], others: &[usize]| {
            let statistics =
                ContextStatistics::of_features(&pick(features, sources), &pick(features, others));
            Embedding::of(smoother.scores(&statistics))
                .ok_or("the kernel is not exponential, or scores are too large")
        };
        let all: Vec<f64> = visits.rows().map(|row| row.iter().sum()).collect();
        let max_rank = Self::max_rank(states);
        let search = |embedding: &Embedding, visits: &[f64]| {
            Pivots::new(embedding, visits, AIM * TOLERANCE, |_| max_rank, &()).map_err(|e| e.to_string())
        };
        let narrow = |of: usize, rank: usize, error: f64, wanted: f64| {
            format!(
                "the kernel is narrow: with {rank} pivots the bound on errors of weights of {of} states is {error:.1e}, expected {wanted:e}"
            )
        };
        // Some of the sources tell soon where the kernel is far too narrow.
        let step = sources.len().div_ceil(PROBED).max(1);
        let probed: Vec<usize> = sources.iter().copied().step_by(step).collect();
        let counts: Vec<f64> = all.iter().copied().step_by(step).collect();
        if let Err(TooMany { rank, error }) = search(&embed(&probed, &[])?, &counts)? {
            return Err(narrow(probed.len(), rank, error, AIM * TOLERANCE));
        }
        let embedding = embed(sources, &others)?;
        let pivots = match search(&embedding, &all)? {
            Ok(pivots) => pivots,
            Err(TooMany { rank, error }) => return Err(narrow(states, rank, error, AIM * TOLERANCE)),
        };
        let rows = pivots.features(&embedding.place(features));
        let mut made = Self {
            amplitudes: (0..sources.len()).map(|s| embedding.amplitude(s)).collect(),
            rounding: pivots.rounding(),
            spreads: Vec::new(),
            visits: Matrix::zeros(0, 0),
            squares: Matrix::zeros(0, 0),
            bound: 0.0,
            pivots,
            embedding,
        };
        made.visits = made.gather(&rows, sources, visits);
        made.spreads = vec![0.0; visits.num_cols()];
        for (i, &s) in sources.iter().enumerate() {
            let size = made.amplitudes[i] * made.residual(rows.row(s)).sqrt();
            made.spreads.iter_mut().zip(visits.row(i)).for_each(|(sum, n)| *sum += n * size);
        }
        let mut squares = OuterProducts::new(made.rank());
        for (i, &s) in sources.iter().enumerate() {
            let scale = visits[(i, 0)] * made.amplitudes[i] * made.amplitudes[i];
            squares.add(scale, rows.row(s), |f| f.copy_from_slice(rows.row(s)));
        }
        made.squares = squares.finish();
        let weights = Weights::new(rows, &made.visits);
        made.bound = made.errors(&weights).into_iter().fold(0.0, f64::max);
        // Negated, so that NaN is no bound.
        if !(made.bound <= TOLERANCE) {
            return Err(narrow(states, made.rank(), made.bound, TOLERANCE));
        }
        Ok((made, weights))
    }

    /// What the first column of the batch needs.
    pub fn first(&self) -> Self {
        let visits = Matrix::from_fn(self.visits.num_rows(), 1, |k, _| self.visits[(k, 0)]);
        Self { spreads: self.spreads[..1].to_vec(), visits, ..self.clone() }
    }

    /// Number of pivots.
    pub fn rank(&self) -> usize {
        self.pivots.rank()
    }

    /// The largest error of the weights of a state of the log, in any column.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// a(s) of the sources.
    pub fn amplitudes(&self) -> &[f64] {
        &self.amplitudes
    }

    /// The weights of states with these features.
    pub fn weights(&self, states: &Matrix) -> Weights {
        Weights::new(self.pivots.features(&self.embedding.place(states)), &self.visits)
    }

    /// The places of states whose weights are not within the tolerance.
    pub fn out_of_reach(&self, weights: &Weights) -> Vec<usize> {
        let errors = self.errors(weights);
        // Negated, so that NaN is out of reach.
        (0..errors.len()).filter(|&u| !(errors[u] <= TOLERANCE)).collect()
    }

    /// Sums over sources in the coordinates of pivots, Σ_s a(s)·f(s)·g(s), by column.
    pub fn gather(&self, rows: &Matrix, sources: &[usize], sums: &Matrix) -> Matrix {
        let (rank, cols) = (rows.num_cols(), sums.num_cols());
        let parts: Vec<Matrix> = parallel::map(sources.len().div_ceil(BLOCK), |block| {
            let mut part = Matrix::zeros(rank, cols);
            for (place, &s) in sources.iter().enumerate().skip(block * BLOCK).take(BLOCK) {
                for (k, f) in rows.row(s).iter().enumerate() {
                    vector::axpy(self.amplitudes[place] * f, sums.row(place), part.row_mut(k));
                }
            }
            part
        });
        let mut gathered = Matrix::zeros(rank, cols);
        for part in &parts {
            vector::axpy(1.0, part.as_slice(), gathered.as_mut_slice());
        }
        gathered
    }

    /// (Σ n w)²/Σ n w² for every state, with the visits n of the first column.
    pub fn effective(&self, weights: &Weights) -> Vec<f64> {
        let size = |u: usize| {
            let row = weights.rows.row(u);
            let squares: f64 = self.squares.rows().zip(row).map(|(r, f)| f * vector::dot(r, row)).sum();
            1.0 / (weights.factor(u, 0) * weights.factor(u, 0) * squares)
        };
        parallel::map(weights.rows.num_rows(), size)
    }

    /// What κ(u, u) has beyond f(u)·f(u), and rounding.
    fn residual(&self, row: &[f64]) -> f64 {
        (1.0 - row.iter().map(|f| f * f).sum::<f64>()).max(0.0) + self.rounding
    }

    /// A bound on the error of the weights of every state, Σ_s n(s)·|error| where Σ_s n(s)·weight is 1, in its worst column: no entry of κ is off by
    /// more than √(res(s)·res(u)), the sum that weights are divided by is off by as much as they, and points are rounded.
    fn errors(&self, weights: &Weights) -> Vec<f64> {
        let placing = self.embedding.placing_error();
        let error = |(u, row): (usize, &[f64])| {
            let left = self.residual(row).sqrt();
            let of_column = |(b, spread): (usize, &f64)| {
                let factor = weights.factor(u, b);
                let off = left * spread * factor;
                // A state without weights has a factor of 0; negated, so that NaN is no bound.
                if !(factor > 0.0 && off < 1.0) {
                    return f64::INFINITY;
                }
                2.0 * (off / (1.0 - off) + placing)
            };
            self.spreads.iter().enumerate().map(of_column).fold(0.0, f64::max)
        };
        weights.rows.rows().enumerate().map(error).collect()
    }
}

/// How averages over many states are taken.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Averaging {
    /// `pivots`, which stand for all states with a bound on the error, or `landmarks`, to the nearest of which TD errors are attributed.
    pub name: &'static str,
    /// How many there are.
    pub rank: usize,
    /// With pivots: the errors of the weights of a state, which sum to 1, sum to no more. An average is off by no more than this times the largest of
    /// what is averaged.
    pub bound: Option<f64>,
    /// Why so.
    pub reason: String,
}

impl Averaging {
    pub(super) fn pivots(of: &PivotSmoother) -> Self {
        let (rank, bound) = (of.rank(), of.bound());
        let reason = format!("the kernel is wide: {rank} pivots keep errors of weights below {TOLERANCE:e}");
        Self { name: "pivots", rank, bound: Some(bound), reason }
    }

    pub(super) fn landmarks(rank: usize, reason: String) -> Self {
        Self { name: "landmarks", rank, bound: None, reason }
    }

    /// Whether landmarks stand for states, without a bound.
    pub fn is_by_landmarks(&self) -> bool {
        self.bound.is_none()
    }
}
