//! Gathering many states in few cells.

use rayon::prelude::*;

use super::log::{Log, LogError};
use crate::matrix::Matrix;
use crate::random::{Purpose, Stream};
use crate::vector;

/// A log whose states are cells of neighbouring states.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    log: Log,
    cell_of: Vec<u32>,
    radius: f64,
    largest_radius: f64,
}

impl Cells {
    /// Gathers the states of a log in at most `max_cells` cells, or leaves them as they are where there are no more.
    ///
    /// So many of the states that were left are drawn as landmarks, every state goes to the nearest one (the first of equally
    /// near), and a cell's features are the mean over the visits of its states. The same log and seed give the same cells.
    ///
    /// # Panics
    /// When `max_cells` is 0.
    pub fn of(log: &Log, max_cells: usize, seed: u64) -> Result<Self, LogError> {
        assert!(max_cells > 0, "Cells::of: at least one cell expected");
        let m = log.num_states();
        if m <= max_cells {
            let cell_of = (0..m as u32).collect();
            return Ok(Self { log: log.clone(), cell_of, radius: 0.0, largest_radius: 0.0 });
        }
        let (x, visits) = (log.features(), log.whole().visits().to_vec());
        let landmarks = landmarks(&visits, max_cells, seed);
        let nearest = nearest(x, &landmarks);
        let d = x.num_cols();
        let mut sums = Matrix::zeros(landmarks.len(), d);
        let mut weights = vec![0.0; landmarks.len()];
        for (s, &cell) in nearest.iter().enumerate().filter(|(s, _)| visits[*s] > 0.0) {
            weights[cell as usize] += visits[s];
            let sum = sums.row_mut(cell as usize);
            // About the landmark, so that a cell of equal features keeps them.
            let own = x.row(s).iter().zip(x.row(landmarks[cell as usize]));
            sum.iter_mut().zip(own).for_each(|(sum, (x, l))| *sum += visits[s] * (x - l));
        }
        let centres =
            Matrix::from_fn(landmarks.len(), d, |c, a| x[(landmarks[c], a)] + sums[(c, a)] / weights[c]);
        let (log, cell_of) = log.gather(&nearest, &centres)?;
        let distance = |s: usize| {
            let pairs = x.row(s).iter().zip(log.features().row(cell_of[s] as usize));
            pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>()
        };
        let distances: Vec<f64> = (0..m).map(distance).collect();
        let total: f64 = visits.iter().sum();
        let mean = distances.iter().zip(&visits).map(|(d2, n)| d2 * n).sum::<f64>() / total;
        let largest = distances.iter().fold(0.0, |largest: f64, d2| largest.max(*d2));
        Ok(Self { log, cell_of, radius: mean.sqrt(), largest_radius: largest.sqrt() })
    }

    /// The log of the cells.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The cell of every state of the log that was gathered.
    pub fn cell_of(&self) -> &[u32] {
        &self.cell_of
    }

    /// Root mean square distance of a visited state from the centre of its cell: small against the width of a kernel (√τ for
    /// the Gaussian one) when nothing is lost.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// The largest distance of a state from the centre of its cell.
    pub fn largest_radius(&self) -> f64 {
        self.largest_radius
    }
}

/// `count` of the states with visits, in order, drawn without replacement.
fn landmarks(visits: &[f64], count: usize, seed: u64) -> Vec<usize> {
    let mut seen: Vec<usize> = (0..visits.len()).filter(|&s| visits[s] > 0.0).collect();
    let mut stream = Stream::new(seed, Purpose::Resampling, 0);
    let count = count.min(seen.len());
    for k in 0..count {
        let pick = k + stream.below((seen.len() - k) as u32) as usize;
        seen.swap(k, pick);
    }
    seen.truncate(count);
    seen.sort_unstable();
    seen
}

/// The nearest landmark of every state, the first of equally near.
fn nearest(x: &Matrix, landmarks: &[usize]) -> Vec<u32> {
    let columns: Vec<Vec<f64>> =
        (0..x.num_cols()).map(|a| landmarks.iter().map(|&s| x[(s, a)]).collect()).collect();
    let find = |distances: &mut Vec<f64>, s: usize| {
        distances.fill(0.0);
        for (column, &own) in columns.iter().zip(x.row(s)) {
            vector::axpy_squared_difference(1.0, column, own, distances);
        }
        let mut best = 0;
        for (cell, d2) in distances.iter().enumerate() {
            if *d2 < distances[best] {
                best = cell;
            }
        }
        best as u32
    };
    (0..x.num_rows()).into_par_iter().map_init(|| vec![0.0; landmarks.len()], find).collect()
}
