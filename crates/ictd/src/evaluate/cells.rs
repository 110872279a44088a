//! Gathering many states in few cells.

use super::keys::Keys;
use super::log::{Log, LogError};
use crate::kernel::Similarity;
use crate::matrix::Matrix;

/// A log whose states are cells of neighbouring states.
///
/// This changes the dynamics: a cell is followed by what follows any of its states. It is meant for estimators that need few
/// states, as least squares on a table; softmax TD keeps the states and has [`Keys`].
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    log: Log,
    cell_of: Vec<u32>,
    radius: f64,
}

impl Cells {
    /// Gathers the states of a log in at most `max_cells` cells about landmarks ([`Keys::of`]), or leaves them as they are where
    /// there are no more. A cell's features are the mean over the visits of its states.
    ///
    /// # Panics
    /// When `max_cells` is 0.
    pub fn of(log: &Log, max_cells: usize) -> Result<Self, LogError> {
        let m = log.num_states();
        if m <= max_cells {
            return Ok(Self { log: log.clone(), cell_of: (0..m as u32).collect(), radius: 0.0 });
        }
        let (x, visits, keys) = (log.features(), log.whole().visits().to_vec(), Keys::of(log, max_cells));
        let mut sums = Matrix::zeros(keys.features().num_rows(), x.num_cols());
        let mut weights = vec![0.0; sums.num_rows()];
        for (s, &cell) in keys.key_of().iter().enumerate().filter(|(s, _)| visits[*s] > 0.0) {
            weights[cell as usize] += visits[s];
            // About the landmark, so that a cell of equal features keeps them.
            let own = x.row(s).iter().zip(keys.features().row(cell as usize));
            let sum = sums.row_mut(cell as usize).iter_mut();
            sum.zip(own).for_each(|(sum, (x, centre))| *sum += visits[s] * (x - centre));
        }
        let centre = |c: usize, a: usize| keys.features()[(c, a)] + sums[(c, a)] / weights[c];
        let centres = Matrix::from_fn(sums.num_rows(), x.num_cols(), centre);
        let (log, cell_of) = log.gather(keys.key_of(), &centres)?;
        let total: f64 = visits.iter().sum();
        let squares = (0..m).filter(|&s| visits[s] > 0.0).map(|s| {
            let centre = log.features().row(cell_of[s] as usize);
            visits[s] / total * Similarity::SquaredDistance.of(x.row(s), centre)
        });
        let radius = squares.sum::<f64>().sqrt();
        Ok(Self { log, cell_of, radius })
    }

    /// The log of the cells.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The cell of every state of the log that was gathered.
    pub fn cell_of(&self) -> &[u32] {
        &self.cell_of
    }

    /// Root mean square distance of a visit's state from the centre of its cell.
    pub fn radius(&self) -> f64 {
        self.radius
    }
}
