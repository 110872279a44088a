//! The chain that a context counted: its linear equations, which are sparse.

use crate::context::ContextStatistics;
use crate::statistics::largest;
use crate::watch::Stopped;

/// Changes below this share of the largest value are rounding.
const SETTLED: f64 = 1e-15;

/// F on the source states alone, F x = c·x - γ N x, with c the visits and N the counts of transitions between them.
pub(super) struct Chain<'a> {
    pub statistics: &'a ContextStatistics,
    pub gamma: f64,
}

impl Chain<'_> {
    /// Moves x towards the solution of F x = b: every entry once, from the last on (Gauss and Seidel). Returns the largest change.
    /// c(s) is at least the sum of the row of N, so that errors shrink by γ at least; where states follow one another in the
    /// order of their numbers, once is enough.
    fn sweep(&self, b: &[f64], x: &mut [f64]) -> f64 {
        let sources = x.len();
        let mut moved: f64 = 0.0;
        for s in (0..sources).rev() {
            let (mut sum, mut own) = (b[s], self.statistics.visits()[s]);
            for (next, count) in self.statistics.successors(s).filter(|&(next, _)| next < sources) {
                if next == s {
                    own -= self.gamma * count;
                } else {
                    sum += self.gamma * count * x[next];
                }
            }
            let value = if own > 0.0 { sum / own } else { 0.0 };
            moved = largest([moved, (value - x[s]).abs()]);
            x[s] = value;
        }
        moved
    }

    /// So many sweeps from x = 0: a linear map that is about the inverse of F.
    pub fn approximate(&self, b: &[f64], sweeps: usize) -> Vec<f64> {
        let mut x = vec![0.0; b.len()];
        (0..sweeps).for_each(|_| {
            self.sweep(b, &mut x);
        });
        x
    }

    /// The solution of F x = b and how many sweeps it took; `None` where `most` are not enough or numbers overflow. `check` is asked
    /// after every sweep whether to go on.
    pub fn solve(
        &self,
        b: &[f64],
        most: usize,
        check: impl Fn() -> Result<(), Stopped>,
    ) -> Result<Option<(Vec<f64>, usize)>, Stopped> {
        let mut x = vec![0.0; b.len()];
        for sweeps in 1..=most {
            let moved = self.sweep(b, &mut x);
            check()?;
            let size = largest(x.iter().map(|x| x.abs()));
            if !size.is_finite() {
                return Ok(None);
            }
            if moved <= SETTLED * size {
                return Ok(Some((x, sweeps)));
            }
        }
        Ok(None)
    }
}
