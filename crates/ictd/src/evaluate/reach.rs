//! How far the states of a log reach.

use rayon::prelude::*;

use super::keys::Keys;
use super::sample::Sample;
use crate::kernel::Similarity;
use crate::matrix::Matrix;

/// The states that were left, or landmarks among them, and how far one may be from them to be like them.
#[derive(Clone, Debug)]
pub struct Reach {
    known: Matrix,
    /// The square of the largest distance of a state from the nearest other, or twice that from its landmark.
    squared: f64,
}

impl Reach {
    /// The reach of the states that a sample left.
    pub fn of(sample: &Sample<'_>, keys: Option<&Keys>) -> Self {
        if let Some(keys) = keys {
            let radius = 2.0 * keys.largest_radius();
            return Self { known: keys.features().clone(), squared: radius * radius };
        }
        let x = sample.features();
        let left: Vec<usize> = (0..sample.num_states()).filter(|&s| sample.visits()[s] > 0.0).collect();
        let known = Matrix::from_fn(left.len(), x.num_cols(), |k, a| x[(left[k], a)]);
        let spacing = |k: usize| nearest(&known, known.row(k), Some(k));
        let squares: Vec<f64> = (0..left.len()).into_par_iter().map(spacing).collect();
        // A state alone has no distance to others.
        let squared = squares.into_iter().filter(|d| d.is_finite()).fold(0.0, f64::max);
        Self { known, squared }
    }

    /// Which of these states are farther from all known ones than known ones are from each other.
    pub fn beyond(&self, states: &Matrix) -> Vec<bool> {
        let is_beyond = |k: usize| !(nearest(&self.known, states.row(k), None) <= self.squared);
        (0..states.num_rows()).into_par_iter().map(is_beyond).collect()
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
