//! Values beside the returns that followed in episodes that were held out.

use super::folds::Folds;
use super::log::Log;
use super::method::{FitError, Method};
use super::sample::Sample;
use crate::parallel;

/// Held-out visits to states of about the same value.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Bin {
    /// Visits.
    pub visits: f64,
    /// The mean of the values that the other episodes predict.
    pub value: f64,
    /// The mean of the returns that followed; of episodes that were truncated with the predicted value of what was to come.
    pub observed: f64,
    /// The standard error of their difference, from blocks of episodes.
    pub error: f64,
}

/// Sums over the visits of a bin in one block.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    visits: f64,
    values: f64,
    returns: f64,
}

/// Fits the method without each fold in turn and sorts the visits of the fold by predicted value into bins of about equal size.
/// Where values are right the returns of a bin scatter about them, whatever else they miss.
pub fn calibration(
    log: &Log,
    folds: &Folds,
    method: &dyn Method,
    num_bins: usize,
) -> Result<Vec<Bin>, FitError> {
    let parts = folds.first();
    let fit = |(train, _): &(Vec<f64>, Vec<f64>)| {
        let sample: Sample<'_> = log.sample(train);
        let (low, high) = sample.return_range().ok_or(FitError::Empty)?;
        let fit = method.fit(&sample)?;
        Ok(fit.values().iter().map(|v| v.max(low).min(high)).collect())
    };
    let values: Vec<Vec<f64>> = parallel::try_map::<_, FitError>(parts.len(), |fold| fit(&parts[fold]))?;
    // By block, the fold that holds it out.
    let fold_of: Vec<usize> = (0..log.num_blocks())
        .map(|block| parts.iter().position(|(_, held_out)| held_out[block] > 0.0).unwrap_or(0))
        .collect();
    let grid = log.returns();
    let mut seen: Vec<(f64, usize, Sums)> = Vec::new();
    for s in 0..grid.num_states() {
        for pair in grid.pairs_of(s) {
            for (block, cell) in grid.cells(pair) {
                let values = &values[fold_of[block]];
                let rest = grid.to(pair).map_or(0.0, |last| cell.discount * values[last]);
                let sums =
                    Sums { visits: cell.count, values: cell.count * values[s], returns: cell.sum + rest };
                seen.push((values[s], block, sums));
            }
        }
    }
    seen.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let total: f64 = seen.iter().map(|(_, _, sums)| sums.visits).sum();
    let mut bins = vec![vec![Sums::default(); log.num_blocks()]; num_bins];
    let mut before = 0.0;
    for (_, block, sums) in seen {
        let middle = (before + 0.5 * sums.visits) / total;
        let bin = ((middle * num_bins as f64) as usize).min(num_bins - 1);
        let into = &mut bins[bin][block];
        into.visits += sums.visits;
        into.values += sums.values;
        into.returns += sums.returns;
        before += sums.visits;
    }
    Ok(bins.iter().filter_map(|blocks| bin(blocks)).collect())
}

/// A bin from its sums by block; none without visits.
fn bin(blocks: &[Sums]) -> Option<Bin> {
    let sum = |of: fn(&Sums) -> f64| blocks.iter().map(of).sum::<f64>();
    let visits = sum(|b| b.visits);
    let (value, observed) = (sum(|b| b.values) / visits, sum(|b| b.returns) / visits);
    let gap = observed - value;
    let squares: f64 = blocks.iter().map(|b| (b.returns - b.values - gap * b.visits).powi(2)).sum();
    let count = blocks.iter().filter(|b| b.visits > 0.0).count() as f64;
    let error = (squares * count / (count - 1.0).max(1.0)).sqrt() / visits;
    (visits > 0.0).then_some(Bin { visits, value, observed, error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::End;
    use crate::evaluate::LogBuilder;
    use crate::evaluate::method::{Basis, Lstd};
    use crate::matrix::Matrix;
    use crate::random::{Purpose, Stream};

    /// Two states that are worth 1 and 3, and noise.
    fn log() -> Log {
        let mut stream = Stream::new(3, Purpose::User(1), 0);
        let mut builder = LogBuilder::new(0.9, None).unwrap();
        for key in 0..200 {
            let s = stream.below(2);
            let reward = f64::from(1 + 2 * s) + stream.normal();
            builder.episode(key, &[s], &[reward], End::Terminated, None).unwrap();
        }
        builder.build(Matrix::identity(2)).unwrap()
    }

    #[test]
    fn right_values_lie_within_the_scatter_of_held_out_returns_and_wrong_ones_do_not() {
        let log = log();
        let folds = Folds::new(&log, 5, 1, 0).unwrap();
        let lstd = Lstd { basis: Basis::Table, traces: false, ridge: 0.0 };
        let bins = calibration(&log, &folds, &lstd, 2).unwrap();
        assert_eq!(bins.iter().map(|bin| bin.visits).sum::<f64>(), 200.0);
        for bin in &bins {
            // One of 15,000 by chance.
            assert!((bin.value - bin.observed).abs() < 4.0 * bin.error, "{bin:?}");
            // Of about 100 returns of standard deviation 1, and the values have an error of their own.
            assert!((0.05..0.2).contains(&bin.error), "{bin:?}");
        }
        // A ridge as large as the log shrinks values to their mean.
        let flat = Lstd { basis: Basis::Table, traces: false, ridge: 1.0 };
        let bins = calibration(&log, &folds, &flat, 2).unwrap();
        assert!(bins.iter().all(|bin| (bin.value - bin.observed).abs() > 4.0 * bin.error), "{bins:?}");
    }
}
