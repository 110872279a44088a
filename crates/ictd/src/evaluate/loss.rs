//! What is compared with episodes that were held out.

use super::cell::ReturnCell;
use super::folds::Folds;
use super::log::Log;
use super::method::{Basis, FitError, Lstd, Method};
use super::sample::Sample;
use super::table::Merge;

/// What is compared with the held-out episodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Σ (v(s) - g - d·w(last))² over held-out visits: the returns that followed, of truncated episodes with what w says of the
    /// last state. w is the same for all settings ([`Trials::settle`](super::Trials::settle)): if each took its own values, flat ones would seem
    /// better than they are, because they add no variance to the returns.
    Returns,
    /// Σ (v(s) - w(s))² over held-out visits, with w the values of tabular LSTD on the held-out episodes alone: the same
    /// returns where no state repeats, and less noisy where states do.
    #[default]
    HeldOutLstd,
}

/// Ridge of the linear function that completes returns before any setting was tried.
const FIRST_RIDGE: f64 = 1e-3;
/// Visits of which more than this share run into a state that no held-out episode leaves.
const OPEN_ENDED: f64 = 0.02;

impl Loss {
    /// The loss for the folds of a log: the values of tabular LSTD, unless held-out episodes are truncated in states that no
    /// other of them leaves. Tabular LSTD knows nothing of those, and takes one number for all of them; the returns take
    /// what is estimated from the other episodes.
    pub fn of(log: &Log, folds: &Folds) -> Self {
        let (mut open, mut all) = (0.0, 0.0);
        for (_, held_out) in folds.first() {
            let sample = log.sample(&held_out);
            let grid = log.returns();
            for pair in (0..grid.num_states()).flat_map(|s| grid.pairs_of(s)) {
                let is_open = grid.to(pair).is_some_and(|last| !(sample.visits()[last] > 0.0));
                let cells = grid.cells(pair).filter(|(block, _)| held_out[*block] > 0.0);
                let visits: f64 = cells.map(|(_, cell)| cell.count).sum();
                all += visits;
                open += if is_open { visits } else { 0.0 };
            }
        }
        if open > OPEN_ENDED * all { Self::Returns } else { Self::HeldOutLstd }
    }
}

/// Values at the cells of a fold, and at its last states. Single precision tells settings apart, and there may be many.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kept {
    cells: Vec<f32>,
    pub lasts: Vec<f32>,
}

/// What is held out in a fold, in the form its loss needs.
#[derive(Debug)]
pub(super) enum Target {
    /// Returns by state and, of truncated episodes, by place of the last state among `lasts`; what these are worth.
    Returns {
        cells: Vec<(usize, Option<usize>, ReturnCell)>,
        lasts: Vec<usize>,
        worth: Vec<f64>,
    },
    Values {
        targets: Vec<f64>,
        visits: Vec<f64>,
    },
}

impl Target {
    pub fn new(loss: Loss, training: &Sample<'_>, held_out: &Sample<'_>) -> Result<Self, FitError> {
        if loss == Loss::HeldOutLstd {
            let lstd = Lstd { basis: Basis::Table, traces: false, ridge: 0.0 };
            let targets = lstd.fit(held_out)?.values().to_vec();
            return Ok(Self::Values { targets, visits: held_out.visits().to_vec() });
        }
        let grid = held_out.log().returns();
        let (mut cells, mut lasts) = (Vec::new(), Vec::new());
        let mut place_of = vec![usize::MAX; held_out.num_states()];
        for s in 0..held_out.num_states() {
            for pair in grid.pairs_of(s) {
                let mut counted = grid.cells(pair).filter(|(block, _)| held_out.weights()[*block] > 0.0);
                if let Some((_, &first)) = counted.next() {
                    let mut merged = first;
                    counted.for_each(|(_, cell)| merged.merge(cell));
                    let last = grid.to(pair).map(|last| {
                        if place_of[last] == usize::MAX {
                            place_of[last] = lasts.len();
                            lasts.push(last);
                        }
                        place_of[last]
                    });
                    cells.push((s, last, merged));
                }
            }
        }
        let worth = first_guess(training, &lasts);
        Ok(Self::Returns { cells, lasts, worth })
    }

    /// The sum of losses over visits, and the values that would be needed for another.
    pub fn loss(&self, value: impl Fn(usize) -> f64) -> (f64, Kept) {
        match self {
            Self::Returns { cells, lasts, .. } => {
                let kept = Kept {
                    cells: cells.iter().map(|cell| value(cell.0) as f32).collect(),
                    lasts: lasts.iter().map(|&s| value(s) as f32).collect(),
                };
                (self.again(&kept), kept)
            }
            Self::Values { targets, visits } => {
                let square = |s: usize| visits[s] * (value(s) - targets[s]).powi(2);
                let sum = (0..targets.len()).filter(|&s| visits[s] > 0.0).map(square).sum();
                (sum, Kept::default())
            }
        }
    }

    /// The sum of losses of values that were kept; NaN where none are needed.
    pub fn again(&self, kept: &Kept) -> f64 {
        let Self::Returns { cells, worth, .. } = self else { return f64::NAN };
        let square = |((_, last, cell), &value): (&(usize, Option<usize>, ReturnCell), &f32)| {
            cell.squares(f64::from(value), last.map_or(0.0, |place| worth[place]))
        };
        cells.iter().zip(&kept.cells).map(square).sum()
    }
}

/// What states may be worth before any setting was tried: a linear function of their features, from other episodes.
fn first_guess(training: &Sample<'_>, states: &[usize]) -> Vec<f64> {
    let guess = Lstd { basis: Basis::Linear, traces: false, ridge: FIRST_RIDGE }.fit(training);
    let (low, high) = training.return_range().unwrap_or((f64::NAN, f64::NAN));
    match guess {
        Ok(fit) => states.iter().map(|&s| fit.values()[s].max(low).min(high)).collect(),
        Err(_) => vec![training.mean_value(); states.len()],
    }
}
