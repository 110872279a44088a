//! How far the states of a log reach.

use super::keys::Keys;
use super::sample::Sample;
use crate::kernel::Similarity;
use crate::matrix::Matrix;
use crate::parallel;

/// Visits to states that may be farther from others than is usual.
const OUTLIERS: f64 = 0.01;
/// How many times as far from known states as these usually are from each other is still like them.
const LIKE: f64 = 2.0;

/// The states that were left, or landmarks among them, and how far one may be from them to be like them.
#[derive(Clone, Debug)]
pub struct Reach {
    known: Matrix,
    /// The square of twice the distance from the nearest other state, or the landmark, that few visits exceed.
    squared: f64,
}

impl Reach {
    /// The reach of the states that a sample left.
    pub fn of(sample: &Sample<'_>, keys: Option<&Keys>) -> Self {
        let x = sample.features();
        let left: Vec<usize> = (0..sample.num_states()).filter(|&s| sample.visits()[s] > 0.0).collect();
        let (known, squares): (Matrix, Vec<f64>) = match keys {
            Some(keys) => {
                let square = |&s: &usize| {
                    let key = keys.key_of()[s] as usize;
                    Similarity::SquaredDistance.of(x.row(s), keys.features().row(key))
                };
                (keys.features().clone(), left.iter().map(square).collect())
            }
            None => {
                let known = Matrix::from_fn(left.len(), x.num_cols(), |k, a| x[(left[k], a)]);
                let spacing = |k: usize| nearest(&known, known.row(k), Some(k));
                let squares = parallel::map(left.len(), spacing);
                (known, squares)
            }
        };
        // A state alone has no distance to others.
        let mut distances: Vec<(f64, f64)> = squares
            .into_iter()
            .zip(left.iter().map(|&s| sample.visits()[s]))
            .filter(|(d, _)| d.is_finite())
            .collect();
        distances.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut beyond = OUTLIERS * sample.num_visits();
        let usual = distances.iter().find(|(_, visits)| {
            beyond -= visits;
            beyond < 0.0
        });
        Self { known, squared: usual.map_or(0.0, |(square, _)| LIKE * LIKE * square) }
    }

    /// Which of these states are much farther from all known ones than known ones usually are from each other.
    pub fn beyond(&self, states: &Matrix) -> Vec<bool> {
        let is_beyond = |k: usize| !(nearest(&self.known, states.row(k), None) <= self.squared);
        parallel::map(states.num_rows(), is_beyond)
    }
}

/// The square of the distance to the nearest row, but the one left out.
fn nearest(rows: &Matrix, x: &[f64], left_out: Option<usize>) -> f64 {
    let others = rows.rows().enumerate().filter(|(k, _)| Some(*k) != left_out);
    others.map(|(_, y)| Similarity::SquaredDistance.of(x, y)).fold(f64::INFINITY, f64::min)
}

/// Sweeps after which what is still on its way to states that nothing is known of does not count.
const MAX_SWEEPS: usize = 1000;
/// Shares are wanted to this.
const ENOUGH: f64 = 1e-4;

/// The share of the value of every state that rests on states nothing is known of: the discount up to the first of them, on
/// average; 1 for these themselves.
pub fn share_unknown(sample: &Sample<'_>, is_unknown: &[bool]) -> Vec<f64> {
    let mut shares: Vec<f64> = is_unknown.iter().map(|unknown| f64::from(u8::from(*unknown))).collect();
    if !is_unknown.contains(&true) {
        return shares;
    }
    for _ in 0..MAX_SWEEPS {
        let mut moved: f64 = 0.0;
        for s in (0..shares.len()).filter(|&s| !is_unknown[s] && sample.visits()[s] > 0.0) {
            let next: f64 = sample.successors(s).map(|(next, n)| n * shares[next]).sum();
            let share = sample.gamma() * next / sample.visits()[s];
            moved = moved.max((share - shares[s]).abs());
            shares[s] = share;
        }
        if moved <= ENOUGH * (1.0 - sample.gamma()) {
            break;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::End;
    use crate::evaluate::{Log, LogBuilder};

    /// 500 visits to 100 points a unit apart, and perhaps one to a point far away; then the last state of a truncated episode.
    fn log(outlier: bool, last: f64) -> Log {
        let mut builder = LogBuilder::new(0.9, None).unwrap();
        (0..500)
            .for_each(|k| builder.episode(k, &[(k % 100) as u32], &[1.0], End::Terminated, None).unwrap());
        if outlier {
            builder.episode(500, &[100], &[1.0], End::Terminated, None).unwrap();
        }
        builder.episode(501, &[0, 101], &[1.0], End::Truncated, None).unwrap();
        let place = |s: usize| {
            if s < 100 {
                s as f64
            } else if s == 100 {
                400.0
            } else {
                last
            }
        };
        builder.build(Matrix::from_fn(102, 1, |s, _| place(s))).unwrap()
    }

    #[test]
    fn one_state_far_away_does_not_bring_others_within_reach() {
        for outlier in [false, true] {
            let log = log(outlier, 5.5);
            let whole = log.whole();
            for keys in [None, Some(Keys::of(&log, 1000))] {
                let reach = Reach::of(&whole, keys.as_ref());
                let asked = Matrix::from_vec(3, 1, vec![50.0, 200.0, 330.0]);
                assert_eq!(reach.beyond(&asked), [false, true, true], "{outlier}");
            }
            // Between two states that are a unit apart.
            assert_eq!(Reach::of(&whole, None).beyond(&Matrix::from_vec(1, 1, vec![50.5])), [false]);
        }
    }

    #[test]
    fn a_share_of_a_value_is_unknown_where_what_follows_is() {
        let log = log(false, 900.0);
        let (whole, unknown) = (log.whole(), log.number_of(101));
        let is_unknown: Vec<bool> = (0..log.num_states()).map(|s| s == unknown).collect();
        let shares = share_unknown(&whole, &is_unknown);
        // One of six visits to the first point led to it, the next step; nothing else did.
        let first = log.number_of(0);
        assert!((shares[first] - 0.9 / 6.0).abs() < 1e-12, "{shares:?}");
        assert!(
            shares.iter().enumerate().all(|(s, &x)| s == first || x == f64::from(u8::from(s == unknown)))
        );
    }
}
