//! Products of the weights between groups with a vector, by the route that suits their number and kernel.

use rayon::prelude::*;

use super::certainty::{Certainty, ColumnErrors};
use super::cost::Budget;
use super::effort::{Effort, Precision, Route};
use super::gaussian::{Blocks, Embedding, Pivots, TooMany};
use super::{Attention, AttentionError, Scores};
use crate::context::ContextStatistics;
use crate::statistics::largest;
use crate::vector::{self, LANES};
use crate::watch::{Stopped, Watch};

/// Above this many weights (1 GiB) they are computed anew in every layer instead of being kept.
const MAX_STORED: usize = 1 << 27;
/// From this many weights on, columns are spread over threads. Every column is computed on its own,
/// so the result does not depend on the number of threads.
const MIN_PARALLEL: usize = 1 << 18;

/// Why a product with weights has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum ProductError {
    #[error(transparent)]
    Attention(#[from] AttentionError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The weights W(s, u) of source group s for group u, and their product with a vector.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupWeights {
    form: Form,
    /// Why it is that form.
    reason: String,
    certainty: Option<Certainty>,
    /// From `start` on row u holds the weights of all source groups, padded to whole blocks; empty unless kept.
    stored: Vec<f64>,
    /// Where a cache line begins: rows that straddle lines cost a tenth more.
    start: usize,
}

#[derive(Clone, Debug, Default)]
enum Form {
    #[default]
    Kept,
    Features,
    Columns,
    /// Without an embedding where nothing is to be said about errors.
    Blocks(Blocks, Option<Embedding>, Vec<f64>),
    /// With Σ_s c(s)·b(s)·2^⟨y_s, y_u⟩ of every group, as blocks, once they have been asked for.
    Pivots(Box<Pivots>, Embedding, Vec<f64>),
}

impl GroupWeights {
    /// Prepares for groups and scores: computes and keeps the weights where that pays.
    pub fn fill(
        &mut self,
        scores: Scores<'_>,
        effort: &Effort,
        layers: usize,
        watch: &dyn Watch,
    ) -> Result<(), ProductError> {
        let stride = scores.statistics.stride();
        let num_weights = stride.saturating_mul(scores.statistics.num_groups());
        self.stored.clear();
        self.certainty = None;
        (self.form, self.reason) = choose(scores, num_weights, effort, layers, watch)?;
        if !matches!(self.form, Form::Kept) {
            return Ok(());
        }
        self.stored.resize(num_weights + LANES, 0.0);
        self.start = self.stored.as_ptr().align_offset(LANES * size_of::<f64>()).min(LANES);
        let stored = &mut self.stored[self.start..][..num_weights];
        if num_weights < MIN_PARALLEL {
            let mut rows = stored.chunks_exact_mut(stride).enumerate();
            rows.try_for_each(|(u, row)| scores.fill_column(u, row))?;
        } else {
            let rows = stored.par_chunks_exact_mut(stride).enumerate();
            rows.try_for_each(|(u, row)| scores.fill_column(u, row))?;
        }
        Ok(())
    }

    /// How products are computed.
    pub fn route(&self) -> Route {
        match &self.form {
            Form::Kept => Route::Kept,
            Form::Features => Route::Features,
            Form::Columns => Route::Columns,
            Form::Blocks(..) => Route::Blocks,
            Form::Pivots(..) => Route::Pivots,
        }
    }

    /// Why so.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The arithmetic of exponentials.
    pub fn precision(&self) -> Precision {
        match &self.form {
            Form::Blocks(Blocks::Single(_), ..) => Precision::Single,
            _ => Precision::Double,
        }
    }

    /// Number of pivots, where there are any.
    pub fn rank(&self) -> Option<usize> {
        match &self.form {
            Form::Pivots(pivots, ..) => Some(pivots.rank()),
            _ => None,
        }
    }

    /// What is known about weights that are not computed in double precision throughout, after the first product.
    pub fn certainty(&self) -> Option<&Certainty> {
        self.certainty.as_ref()
    }

    /// c(s)·W(s, s) of every source, and a bound on Σ_s c(s)·|error| of every column, from sums that are kept for products; `None` where
    /// weights are not computed by way of such sums.
    pub fn self_weights(
        &mut self,
        scores: Scores<'_>,
        watch: &dyn Watch,
    ) -> Result<Option<(Vec<f64>, f64)>, Stopped> {
        let visits = scores.statistics.visits();
        let (masses, error) = match &mut self.form {
            Form::Blocks(blocks, _, masses) => {
                if masses.is_empty() {
                    [*masses] = blocks.sums([visits], watch)?;
                }
                (masses, normalized_error(blocks))
            }
            Form::Pivots(pivots, _, masses) => {
                if masses.is_empty() {
                    [*masses] = pivots.sums([visits], watch)?;
                }
                (masses, largest(pivots.errors().iter().copied()))
            }
            _ => return Ok(None),
        };
        let Some(embedding) = Embedding::of(scores) else { return Ok(None) };
        let own = |s: usize| visits[s] * embedding.factors()[s] * embedding.square(s).exp2() / masses[s];
        Ok(Some(((0..visits.len()).map(own).collect(), error)))
    }

    /// What products count.
    pub fn unit(&self) -> &'static str {
        match self.form {
            Form::Blocks(..) => "rounds of blocks",
            Form::Pivots(..) => "products",
            _ => "layers",
        }
    }

    /// How often a product says that it goes on.
    pub fn units(&self) -> u64 {
        match &self.form {
            Form::Blocks(blocks, ..) => blocks.rounds(),
            Form::Pivots(..) => 2,
            _ => 1,
        }
    }

    /// Adds α · Σ_s W(s, u) · g(s) to every `out[u]`; `g` is padded with zeros.
    pub fn add_product(
        &mut self,
        scores: Scores<'_>,
        step_size: f64,
        g: &[f64],
        out: &mut [f64],
        watch: &dyn Watch,
    ) -> Result<(), ProductError> {
        let statistics = scores.statistics;
        let stride = statistics.stride();
        match &mut self.form {
            Form::Features => add_factored(scores, step_size, g, out),
            Form::Kept => {
                let stored = &self.stored[self.start..][..stride * out.len()];
                let rows = stored.chunks_exact(stride);
                if stored.len() < MIN_PARALLEL {
                    let pairs = out.iter_mut().zip(rows);
                    pairs.for_each(|(value, row)| *value += step_size * vector::dot(row, g));
                } else {
                    out.par_iter_mut()
                        .zip(stored.par_chunks_exact(stride))
                        .for_each(|(value, row)| *value += step_size * vector::dot(row, g));
                }
            }
            Form::Columns => out.par_iter_mut().enumerate().try_for_each_init(
                || vec![0.0; stride],
                |row, (u, value)| {
                    row.fill(0.0);
                    scores.fill_column(u, row)?;
                    *value += step_size * vector::dot(row, g);
                    // Many columns take seconds: a stop is seen in between.
                    Ok::<(), ProductError>(watch.advance(0)?)
                },
            )?,
            Form::Blocks(blocks, embedding, masses) => {
                let g = &g[..statistics.num_source_groups()];
                let sums = with_masses(
                    masses,
                    || blocks.sums([statistics.visits(), g], watch),
                    || blocks.sums([g], watch),
                )?;
                if let Some(embedding) = embedding.take() {
                    let errors = ColumnErrors::Uniform(normalized_error(blocks));
                    let rho = scores.attention.diagonal_mix();
                    self.certainty = Some(Certainty::new(&embedding, statistics, masses, errors, rho));
                }
                add_normalized(scores, step_size, g, &sums, masses, out);
                return Ok(());
            }
            Form::Pivots(pivots, embedding, masses) => {
                let g = &g[..statistics.num_source_groups()];
                let sums = with_masses(
                    masses,
                    || pivots.sums([statistics.visits(), g], watch),
                    || pivots.sums([g], watch),
                )?;
                if self.certainty.is_none() {
                    let errors = ColumnErrors::Each(pivots.errors());
                    let rho = scores.attention.diagonal_mix();
                    self.certainty = Some(Certainty::new(embedding, statistics, masses, errors, rho));
                }
                add_normalized(scores, step_size, g, &sums, masses, out);
                return Ok(());
            }
        }
        Ok(watch.advance(1)?)
    }
}

/// Bytes that weights between these groups take, kept or computed anew.
pub fn weights_memory(
    attention: &Attention,
    statistics: &ContextStatistics,
    effort: &Effort,
    layers: usize,
) -> f64 {
    let (states, dim) = (statistics.num_groups(), statistics.feature_dim());
    let num_weights = statistics.stride().saturating_mul(states);
    let kernel = attention.kernel();
    let kept = if num_weights <= MAX_STORED { 8.0 * num_weights as f64 } else { 0.0 };
    if kernel.linear_scale().is_some() {
        0.0
    } else if kernel.exponent().is_none() || num_weights <= effort.kept {
        kept
    } else {
        // Points, and the same in the order of the loops; messages and sums.
        let blocks = 8.0 * states as f64 * (3.0 * dim as f64 + 8.0);
        let budget = Budget { states, dim, layers, memory: effort.memory };
        let pivots = effort.tolerance.map_or(0.0, |_| budget.usual_bytes());
        blocks + pivots
    }
}

/// A bound on the error of columns of weights: sums and what they are divided by are both off.
fn normalized_error(blocks: &Blocks) -> f64 {
    2.0 * blocks.rounding() / (1.0 - blocks.rounding())
}

/// The form that suits, and why.
fn choose(
    scores: Scores<'_>,
    num_weights: usize,
    effort: &Effort,
    layers: usize,
    watch: &dyn Watch,
) -> Result<(Form, String), Stopped> {
    let states = scores.statistics.num_groups();
    let kernel = scores.attention.kernel();
    if kernel.linear_scale().is_some() {
        return Ok((Form::Features, "the kernel is linear".into()));
    }
    // With mixing every column is a group of its own.
    let mixes = scores.attention.diagonal_mix() != 0.0;
    let (groups, distinct) = if mixes { ("columns", "columns") } else { ("states", "distinct states") };
    let kept_or_not = |why: &str| match num_weights <= MAX_STORED {
        true => (Form::Kept, format!("{why}the weights of {states} {groups} fit into memory")),
        false => (Form::Columns, format!("{why}the weights of {states} {groups} do not fit into memory")),
    };
    if num_weights <= effort.kept {
        return Ok(kept_or_not(""));
    }
    let Some(embedding) = Embedding::of(scores) else {
        let why = match kernel.exponent() {
            None => "the kernel is not exponential: ",
            Some(_) => {
                "the score matrix is not symmetric and positive semidefinite, or scores are too large: "
            }
        };
        return Ok(kept_or_not(why));
    };
    let Some(double) = Blocks::new(&embedding, Precision::Double) else {
        return Ok(kept_or_not("exponents leave the range of double precision: "));
    };
    let mut reason = format!("{states} {distinct}");
    if let Some(tolerance) = effort.tolerance {
        let budget = Budget { states, dim: embedding.dim(), layers, memory: effort.memory };
        let max_rank = |sample| budget.max_rank(sample);
        match Pivots::new(&embedding, scores.statistics.visits(), tolerance, max_rank, watch)? {
            Ok(pivots) => {
                let reason = format!(
                    "{reason}: {} of them as pivots are enough for a tolerance of {tolerance:e}",
                    pivots.rank()
                );
                return Ok((Form::Pivots(Box::new(pivots), embedding, Vec::new()), reason));
            }
            Err(TooMany { rank, error }) => {
                reason += &format!(
                    ": {rank} pivots leave a bound of {error:.1e} instead of {tolerance:e}, and more would take longer or more memory than exact weights"
                );
            }
        }
    }
    // What does not fit into single precision fits into double.
    let single = (effort.precision == Precision::Single).then(|| Blocks::new(&embedding, Precision::Single));
    Ok(match single.flatten() {
        Some(blocks) => (Form::Blocks(blocks, Some(embedding), Vec::new()), reason),
        None => (Form::Blocks(double, None, Vec::new()), reason),
    })
}

/// The sums for messages, the first time with those for visits, which are kept.
fn with_masses(
    masses: &mut Vec<f64>,
    first: impl FnOnce() -> Result<[Vec<f64>; 2], Stopped>,
    later: impl FnOnce() -> Result<[Vec<f64>; 1], Stopped>,
) -> Result<Vec<f64>, Stopped> {
    if masses.is_empty() {
        let [found, sums] = first()?;
        *masses = found;
        Ok(sums)
    } else {
        let [sums] = later()?;
        Ok(sums)
    }
}

/// Adds α·((1-ρ)·sums(u)/masses(u) + ρ·g(u)), the second part where group u is itself a source.
fn add_normalized(
    scores: Scores<'_>,
    step_size: f64,
    g: &[f64],
    sums: &[f64],
    masses: &[f64],
    out: &mut [f64],
) {
    let rho = scores.attention.diagonal_mix();
    for ((value, sum), mass) in out.iter_mut().zip(sums).zip(masses) {
        *value += step_size * ((1.0 - rho) * (sum / mass));
    }
    if rho != 0.0 {
        out.iter_mut().zip(g).for_each(|(value, g)| *value += step_size * (rho * g));
    }
}

/// Σ_s g(s) x_sᵀ B x_u for a linear kernel: first y = Σ g(s) x_s, then Bᵀ y, then one product per group.
fn add_factored(scores: Scores<'_>, step_size: f64, g: &[f64], out: &mut [f64]) {
    let Scores { attention, block, statistics } = scores;
    let rho = attention.diagonal_mix();
    let scale = attention.kernel().linear_scale().unwrap_or(0.0);
    let d = statistics.feature_dim();
    let y: Vec<f64> = (0..d).map(|a| vector::dot(g, statistics.source_feature(a))).collect();
    let factor = step_size * (1.0 - rho) * scale / statistics.num_transitions() as f64;
    let key = |b: usize| block.map_or(y[b], |block| (0..d).map(|a| y[a] * block[(a, b)]).sum());
    let readout: Vec<f64> = (0..d).map(|b| factor * key(b)).collect();
    for (u, value) in out.iter_mut().enumerate() {
        let x = statistics.features(u);
        *value += readout.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        if u < statistics.num_source_groups() {
            *value += step_size * rho * g[u];
        }
    }
}
