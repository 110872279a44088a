//! What the judgement of an evaluation looks at, beside the values.

use ictd::evaluate::method::{Basis, Lstd};
use ictd::evaluate::{Intervals, Keys, Log, Method, Sample};

use super::RESAMPLES;
use crate::memory;

/// Nine tenths of a normal distribution spread over 3.3 standard deviations; less than a tenth of that is a crowd.
const ALIKE: f64 = 0.33;

/// How far values are from those of infinite depth, over the spread of those; absent where those are not known.
pub(super) fn limit_gap(whole: &Sample<'_>, values: &[f64]) -> Option<f64> {
    let limit = Lstd { basis: Basis::Table, traces: false, ridge: 0.0 }.fit(whole).ok()?;
    let (visits, total) = (whole.visits(), whole.num_visits());
    let mean_square = |f: &dyn Fn(usize) -> f64| {
        (0..visits.len()).filter(|&s| visits[s] > 0.0).map(|s| visits[s] * f(s) * f(s)).sum::<f64>() / total
    };
    let mean = (0..visits.len()).map(|s| visits[s] * limit.values()[s]).sum::<f64>() / total;
    let gap = mean_square(&|s| values[s] - limit.values()[s]);
    let spread = mean_square(&|s| limit.values()[s] - mean);
    Some((gap / spread).sqrt()).filter(|gap| gap.is_finite())
}

/// The share of values that lies beyond the end of episodes that were cut short: the mean over visits of the discount there.
pub(super) fn beyond_end(whole: &Sample<'_>) -> f64 {
    let returns = whole.log().returns();
    let cells = (0..returns.num_pairs()).flat_map(|pair| returns.cells(pair));
    cells.map(|(_, cell)| cell.discount).sum::<f64>() / whole.num_visits()
}

/// The feature in which few visits are so far away, in standard deviations, that nine tenths of all look alike.
pub(super) fn outlier(whole: &Sample<'_>, names: &[String]) -> Option<(String, f64)> {
    let (x, visits, total) = (whole.features(), whole.visits(), whole.num_visits());
    let farthest = |a: usize| {
        let mut entries: Vec<(f64, f64)> =
            (0..x.num_rows()).filter(|&s| visits[s] > 0.0).map(|s| (x[(s, a)], visits[s] / total)).collect();
        entries.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean: f64 = entries.iter().map(|(x, share)| share * x).sum();
        let deviation = entries.iter().map(|(x, share)| share * (x - mean).powi(2)).sum::<f64>().sqrt();
        let quantile = |q: f64| {
            let mut below = 0.0;
            entries.iter().find(|(_, share)| {
                below += share;
                below >= q
            })
        };
        let (low, high) = (quantile(0.05)?.0, quantile(0.95)?.0);
        let top = entries.iter().map(|(x, _)| (x - mean).abs()).fold(0.0, f64::max);
        // What is nearly always the same, as rare events are, is no crowd that something else has pushed together.
        (high > low && high - low < ALIKE * deviation).then_some(top / deviation)
    };
    let found = names.iter().enumerate().filter_map(|(a, name)| Some((name.clone(), farthest(a)?)));
    found.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// How far apart the values of states that were left are, and how far what follows them on average.
pub(super) fn ranges(whole: &Sample<'_>, values: &[f64]) -> (f64, f64) {
    let left = || (0..values.len()).filter(|&s| whole.visits()[s] > 0.0);
    let range = |of: &dyn Fn(usize) -> f64| {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = left().map(of).fold(ends, |(low, high), x| (low.min(x), high.max(x)));
        high - low
    };
    let errors = whole.td_errors(values);
    (range(&|s| values[s]), range(&|s| values[s] + errors[s] / whole.visits()[s]))
}

/// Root mean square difference of the returns that followed states from the constant that fits best.
pub(super) fn return_spread(whole: &Sample<'_>) -> f64 {
    // The same constant after the end of a truncated episode.
    whole.return_loss(&vec![whole.mean_value(); whole.num_states()]).sqrt()
}

/// The bias that intervals account for, and the root mean square of the scatter over visits.
pub(super) fn widths(intervals: &Intervals, whole: &Sample<'_>) -> (f64, f64) {
    let terms = intervals.states().into_iter().zip(whole.visits()).map(|(i, n)| n * i.scatter * i.scatter);
    (intervals.bias(), (terms.sum::<f64>() / whole.num_visits()).sqrt())
}

/// Memory of a fit: the counts of every resample, features and their copies, the weights of landmarks or pivots, which are no more, and where there are few
/// enough states a linear system of them with its factors and a copy; the systems of landmarks or pivots, one by resample, take no more than that. With
/// pivots visits and errors are kept by state too. Names that are a table need no system.
pub(super) fn memory_of(log: &Log, keys: Option<&Keys>, has_features: bool) -> f64 {
    let [states, features] = [log.num_states(), log.features().num_cols()].map(|x| x as f64);
    let solved = if has_features { states.min(Lstd::MAX_STATES as f64) } else { 0.0 };
    let keys = keys.map_or(0.0, |keys| keys.states().len() as f64);
    let by_state = if keys > 0.0 { 5.0 } else { 3.0 };
    let counts = RESAMPLES as f64 * (log.transitions().num_pairs() as f64 + by_state * states);
    memory::DOUBLE * (counts + 24.0 * states * features + 4.2 * solved.powi(2) + states * keys)
}
