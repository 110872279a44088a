//! Intervals for values, from resampled episodes and an estimate of what stopping early costs.
//!
//! Resampling episodes shows how values scatter, not how far they are from where more layers or a narrower kernel would lead:
//! stopping early trades the one for the other. That bias is estimated from the difference to a rougher fit, less what of the
//! difference is scatter, and added.

use std::ops::ControlFlow;

use super::log::Log;
use super::method::{
    Averaging, Basis, Fit, FitError, Lstd, Method, SoftmaxTd, SoftmaxTdFits, Table, TabularTd,
};
use super::sample::Sample;
use crate::matrix::Matrix;
use crate::parallel;
use crate::random::{Purpose, Stream};
use crate::statistics::fit::student;

/// States that rest on fewer transitions than this say nothing of the bias: resampling cannot show their scatter.
const FEWEST_TRANSITIONS: f64 = 2.0;
/// Values rest on transitions beside their own, so that their scatter is known better than from two of these.
const FEWEST_DEGREES: usize = 4;
/// Points of the rule that integrates over the bias; more change it by less than 1e-4 of itself.
const POINTS: usize = 2000;

/// A value and where it lies at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The standard deviation over resamples; the ends account for the bias of the estimate too.
    pub scatter: f64,
}

impl Interval {
    /// The same where this share of the value rests on states that nothing is known of: these may be worth anything in `range`.
    pub fn resting_on(self, share: f64, (lowest, highest): (f64, f64)) -> Self {
        let towards = |end: f64| self.value + share * (end - self.value);
        Self { low: self.low.min(towards(lowest)), high: self.high.max(towards(highest)), ..self }
    }
}

/// Weights of the blocks of a log in resamples: how often each is drawn, by Poisson's law with mean 1. The first are all 1.
pub fn resamples(log: &Log, number: usize, seed: u64) -> Vec<Vec<f64>> {
    let blocks = log.num_blocks();
    let draw = |k: usize| {
        let mut stream = Stream::new(seed, Purpose::Resampling, u64::from(u32::MAX) + k as u64);
        let weights: Vec<f64> = (0..blocks).map(|_| poisson(stream.uniform())).collect();
        // A resample of nothing has no values.
        if weights.iter().all(|w| *w == 0.0) { vec![1.0; blocks] } else { weights }
    };
    [vec![1.0; blocks]].into_iter().chain((0..number).map(draw)).collect()
}

/// The number of Poisson's law with mean 1 at this point of its distribution function.
fn poisson(u: f64) -> f64 {
    let (mut k, mut term) = (0.0, libm::exp(-1.0));
    let mut below = term;
    while u >= below && k < 30.0 {
        k += 1.0;
        term /= k;
        below += term;
    }
    k
}

/// The same method on the log and on its resamples.
#[derive(Debug)]
enum Fits {
    /// With that of the log alone.
    Softmax(Box<SoftmaxTdFits>, Box<SoftmaxTdFits>),
    /// Others, and how many transitions values rest on where that is known.
    Other(Vec<Box<dyn Fit>>, Option<Box<dyn Fit>>),
}

impl Fits {
    /// Values of the log's states (rows) by sample (columns).
    fn values(&self) -> Matrix {
        match self {
            Self::Softmax(fits, _) => fits.values().clone(),
            Self::Other(fits, _) => {
                Matrix::from_fn(fits[0].values().len(), fits.len(), |s, b| fits[b].values()[s])
            }
        }
    }

    /// Values of the log alone.
    fn estimates(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        match self {
            Self::Softmax(_, first) => Ok(first.predict(states)?.as_slice().to_vec()),
            Self::Other(fits, _) => fits[0].predict(states),
        }
    }

    fn predict(&self, states: &Matrix) -> Result<Matrix, FitError> {
        match self {
            Self::Softmax(fits, _) => fits.predict(states),
            Self::Other(fits, _) => {
                let columns = parallel::try_map(fits.len(), |b| fits[b].predict(states))?;
                Ok(Matrix::from_fn(states.num_rows(), columns.len(), |s, b| columns[b][s]))
            }
        }
    }

    /// How many transitions the values at these features rest on; empty where that is not known.
    fn effective(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        match self {
            Self::Softmax(fits, _) => fits.effective(states),
            Self::Other(_, support) => support.as_ref().map_or(Ok(Vec::new()), |fit| fit.predict(states)),
        }
    }
}

/// A method on every sample.
fn fit_each(method: &dyn Method, samples: &[Sample<'_>]) -> Result<Vec<Box<dyn Fit>>, FitError> {
    parallel::try_map(samples.len(), |b| method.fit(&samples[b]))
}

/// Values of a log with their intervals.
#[derive(Debug)]
pub struct Intervals {
    fits: Fits,
    /// Held within the returns that were seen: rows are states, columns the log and its resamples.
    values: Matrix,
    /// How many transitions the values of states rest on; empty where that is not known.
    effective: Vec<f64>,
    /// Share of episodes that begin in each state, by column.
    initial: Vec<Vec<f64>>,
    range: (f64, f64),
    bias: f64,
    is_corrected: bool,
    /// Blocks of episodes less one.
    degrees: usize,
}

impl Intervals {
    /// Intervals of softmax TD. `reference` is a rougher fit, narrower and not shallower; the bias of `method` is estimated from
    /// the difference, unless the reference diverges. `weights` as from [`resamples`].
    pub fn of_softmax_td(
        log: &Log,
        method: &SoftmaxTd,
        reference: &SoftmaxTd,
        weights: &[Vec<f64>],
    ) -> Result<Self, FitError> {
        let samples = parallel::map(weights.len(), |b| log.sample(&weights[b]));
        let fit = |method: &SoftmaxTd| {
            let fits = method.fit_all(&samples, &[], |_| ControlFlow::Continue(()))?;
            let is_finite = fits.values().as_slice().iter().all(|v| v.is_finite());
            if is_finite { Ok(fits) } else { Err(FitError::Diverged { layers: method.num_layers }) }
        };
        let fitted = fit(method)?;
        let first = Box::new(fitted.first());
        let mut intervals = Self::around(Fits::Softmax(Box::new(fitted), first), &samples)?;
        match fit(reference) {
            Ok(rough) => {
                intervals.correct(rough.values(), &rough.effective(log.features())?, samples[0].visits());
            }
            Err(FitError::Diverged { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(intervals)
    }

    /// Intervals of tabular TD, whose limit of infinite depth, tabular LSTD, takes the place of the rougher fit.
    pub fn of_tabular_td(log: &Log, method: &TabularTd, weights: &[Vec<f64>]) -> Result<Self, FitError> {
        let samples = parallel::map(weights.len(), |b| log.sample(&weights[b]));
        let visits = samples[0].visits();
        let support: Box<dyn Fit> = Box::new(Table::new(&samples[0], visits.to_vec(), 0.0));
        let fits = Fits::Other(fit_each(method, &samples)?, Some(support));
        let mut intervals = Self::around(fits, &samples)?;
        let limit = Lstd { basis: Basis::Table, traces: false, ridge: 0.0 };
        // Where the limit cannot be had its distance is not known.
        if let Ok(rough) = fit_each(&limit, &samples) {
            intervals.correct(&Fits::Other(rough, None).values(), visits, visits);
        }
        Ok(intervals)
    }

    /// Intervals of any method from resampling alone: of an estimate that is biased they are too short.
    pub fn of_method(log: &Log, method: &dyn Method, weights: &[Vec<f64>]) -> Result<Self, FitError> {
        let samples = parallel::map(weights.len(), |b| log.sample(&weights[b]));
        Self::around(Fits::Other(fit_each(method, &samples)?, None), &samples)
    }

    fn around(fits: Fits, samples: &[Sample<'_>]) -> Result<Self, FitError> {
        let range = samples[0].return_range().ok_or(FitError::Empty)?;
        let share = |sample: &Sample<'_>| {
            let initial = sample.initial();
            let total: f64 = initial.iter().sum();
            initial.into_iter().map(|n| n / total).collect()
        };
        Ok(Self {
            values: held(&fits.values(), range),
            effective: fits.effective(samples[0].features())?,
            fits,
            initial: samples.iter().map(share).collect(),
            range,
            bias: 0.0,
            is_corrected: false,
            degrees: (samples[0].log().num_blocks() - 1).max(1),
        })
    }

    /// Estimates the bias from a rougher fit.
    fn correct(&mut self, rough: &Matrix, effective: &[f64], visits: &[f64]) {
        self.bias = bias(&self.values, &held(rough, self.range), effective, visits);
        self.is_corrected = true;
    }

    /// What is added in quadrature for the bias of stopping early.
    pub fn bias(&self) -> f64 {
        self.bias
    }

    /// Whether that is known.
    pub fn is_corrected(&self) -> bool {
        self.is_corrected
    }

    /// Holds the bias below this, where it is known that the mean square error is smaller.
    pub fn hold_bias_below(&mut self, limit: f64) {
        if limit < self.bias {
            self.bias = limit;
        }
    }

    /// How many standard deviations an interval reaches to each side where a value rests on many transitions.
    pub fn quantile(&self) -> f64 {
        student(self.degrees)
    }

    /// The smallest and the largest return that was seen, which no value leaves.
    pub fn range(&self) -> (f64, f64) {
        self.range
    }

    /// The states of the log.
    pub fn states(&self) -> Vec<Interval> {
        self.around_each(&self.values, &self.effective)
    }

    /// States with these features.
    pub fn predict(&self, states: &Matrix) -> Result<Vec<Interval>, FitError> {
        let values = held(&self.fits.predict(states)?, self.range);
        Ok(self.around_each(&values, &self.fits.effective(states)?))
    }

    /// The values alone of states with these features: those of [`predict`](Self::predict), to rounding, without the cost of resamples.
    pub fn estimates(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        let values = self.fits.estimates(states)?;
        Ok(values.into_iter().map(|v| within(v, self.range)).collect())
    }

    /// How averages over many states are taken; `None` where the method takes none, or attends to all states.
    pub fn averaging(&self) -> Option<&Averaging> {
        match &self.fits {
            Fits::Softmax(fits, _) => fits.averaging(),
            Fits::Other(..) => None,
        }
    }

    /// How many transitions the values at these features rest on; empty where that is not known.
    pub fn effective(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        self.fits.effective(states)
    }

    /// The mean over the states in which episodes begin: what an episode is worth. Biases of many states average out there, that of
    /// a single one does not.
    pub fn mean(&self) -> Interval {
        let mean = |b: usize| {
            let terms = self.initial[b].iter().enumerate().map(|(s, share)| share * self.values[(s, b)]);
            terms.sum()
        };
        let row: Vec<f64> = (0..self.initial.len()).map(mean).collect();
        let squares: f64 = self.initial[0].iter().map(|share| share * share).sum();
        self.interval(&row, self.bias * squares.sqrt(), f64::INFINITY)
    }

    fn around_each(&self, values: &Matrix, effective: &[f64]) -> Vec<Interval> {
        let support = |k: usize| effective.get(k).copied().unwrap_or(f64::INFINITY);
        values.rows().enumerate().map(|(k, row)| self.interval(row, self.bias, support(k))).collect()
    }

    /// The interval of a value that rests on this many transitions: resampling e of them shows (e - 1)/e of their scatter, and
    /// tells it as well as e - 1 degrees of freedom do, but for what the values that follow add.
    fn interval(&self, row: &[f64], bias: f64, effective: f64) -> Interval {
        let number = row.len() - 1;
        let spread = variance(&row[1..]) * number as f64 / number.saturating_sub(1).max(1) as f64;
        // NaN where nothing is near.
        let effective = effective.max(FEWEST_TRANSITIONS);
        let missing = if effective.is_finite() { effective / (effective - 1.0) } else { 1.0 };
        let degrees = ((effective - 1.0) as usize).max(FEWEST_DEGREES).min(self.degrees);
        let half = student(degrees) * (spread * missing + bias * bias).sqrt();
        let scatter = spread.sqrt();
        let (value, (lowest, highest)) = (row[0], self.range);
        // What no episode showed is not promised: the ends stay within the returns too.
        Interval {
            value,
            low: (value - half).max(lowest).min(value),
            high: (value + half).min(highest).max(value),
            scatter,
        }
    }
}

fn held(values: &Matrix, range: (f64, f64)) -> Matrix {
    values.map(|v| within(v, range))
}

fn within(v: f64, (low, high): (f64, f64)) -> f64 {
    if v.is_nan() { v } else { v.max(low).min(high) }
}

/// Mean square about the mean.
fn variance(x: &[f64]) -> f64 {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    x.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / x.len() as f64
}

/// The bias of `values` from its difference to a rougher fit: over visits, the mean square of the difference less what of it is
/// scatter, as far as it can be told from 0. Columns are the log and its resamples.
fn bias(values: &Matrix, rough: &Matrix, effective: &[f64], visits: &[f64]) -> f64 {
    let resamples = values.num_cols() - 1;
    let counts = |s: &usize| visits[*s] > 0.0 && effective[*s] >= FEWEST_TRANSITIONS;
    let total: f64 = (0..visits.len()).filter(counts).map(|s| visits[s]).sum();
    let (mut square, mut scatter) = (0.0, vec![0.0; resamples]);
    for s in (0..visits.len()).filter(counts) {
        let share = visits[s] / total;
        let gaps: Vec<f64> = (0..=resamples).map(|b| rough[(s, b)] - values[(s, b)]).collect();
        square += share * gaps[0] * gaps[0];
        let mean = gaps[1..].iter().sum::<f64>() / resamples as f64;
        // Resampling e transitions shows (e - 1)/e of their scatter.
        let factor = effective[s] / (effective[s] - 1.0);
        for (sum, gap) in scatter.iter_mut().zip(&gaps[1..]) {
            *sum += share * factor * (gap - mean) * (gap - mean);
        }
    }
    if total == 0.0 || resamples < 2 {
        return 0.0;
    }
    let noise = scatter.iter().sum::<f64>() / resamples as f64;
    expected_square(square - noise, variance(&scatter).sqrt()).sqrt()
}

/// The mean of b² given x, a measurement of b² with an error of this standard deviation, where every b >= 0 is as likely before.
fn expected_square(x: f64, error: f64) -> f64 {
    let top = (x.max(0.0) + 6.0 * error).sqrt();
    if !(error > 0.0 && top > 0.0) {
        return x.max(0.0);
    }
    let point = |k: usize| top * (k as f64 + 0.5) / POINTS as f64;
    let gap = |k: usize| (x - point(k) * point(k)) / error;
    // About the likeliest point, so that none of the weights that matter is 0.
    let nearest = (0..POINTS).map(|k| gap(k) * gap(k)).fold(f64::INFINITY, f64::min);
    let weight = |k: usize| libm::exp(-0.5 * (gap(k) * gap(k) - nearest));
    let (sum, squares) = (0..POINTS)
        .fold((0.0, 0.0), |(sum, squares), k| (sum + weight(k), squares + weight(k) * point(k) * point(k)));
    squares / sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_has_mean_and_variance_one() {
        let n = 100_000;
        let counts: Vec<f64> = (0..n).map(|k| poisson((f64::from(k) + 0.5) / f64::from(n))).collect();
        let mean = counts.iter().sum::<f64>() / f64::from(n);
        // Points in the middle of equal parts of the distribution function: off by less than a part of its tail.
        assert!((mean - 1.0).abs() < 1e-3 && (variance(&counts) - 1.0).abs() < 1e-3);
    }

    /// Values by SciPy's `quad` of the same integrals.
    #[test]
    fn the_expected_square_is_that_of_the_integral() {
        let cases = [(1.0, 0.1, 0.994_921_8), (0.0, 1.0, 0.477_988_8), (-2.0, 1.0, 0.197_417_4)];
        for (x, error, expected) in cases {
            // The rule has 2000 points, and both numbers are rounded here.
            assert!((expected_square(x, error) - expected).abs() < 2e-7, "{x} {error}");
        }
        assert_eq!(expected_square(0.3, 0.0), 0.3);
        assert_eq!(expected_square(-0.3, 0.0), 0.0);
    }
}
