//! Kernel-based reinforcement learning.

use std::sync::Arc;

use super::lstd::check_size;
use super::smoother::{Smoother, pick};
use super::{Fit, FitError, Method, centre};
use crate::evaluate::sample::Sample;
use crate::kernel::{Kernel, Normalization};
use crate::linalg;
use crate::matrix::Matrix;

/// Kernel-based reinforcement learning (Ormoneit and Sen 2002): the fixed point of
/// v(x) = Σ_s K(x, s)·[Σr_s + γ Σ_s' N_ss' v(s')] / Σ_s n_s K(x, s), an average of backups, where softmax TD averages errors.
#[derive(Clone, Debug)]
pub struct Kbrl {
    /// Kernel, with its temperature; normalised by column.
    pub kernel: Arc<dyn Kernel>,
}

#[derive(Debug)]
struct KbrlFit {
    smoother: Smoother,
    constant: f64,
    visits: Matrix,
    /// Sums of centred backups of every source.
    backups: Matrix,
    values: Vec<f64>,
}

impl Method for Kbrl {
    fn name(&self) -> &'static str {
        "KBRL"
    }

    fn fit(&self, sample: &Sample<'_>) -> Result<Box<dyn Fit>, FitError> {
        if self.kernel.normalization() != Normalization::ByColumn {
            return Err(FitError::NotNormalized);
        }
        let constant = centre(sample)?;
        let (m, gamma) = (sample.num_states(), sample.gamma());
        let sources: Vec<usize> = (0..m).filter(|&s| sample.visits()[s] > 0.0).collect();
        let smoother = Smoother::new(self.kernel.clone(), pick(sample.features(), &sources))?;
        let column = |values: &[f64]| Matrix::from_fn(sources.len(), 1, |i, _| values[sources[i]]);
        let visits = column(sample.visits());
        // With v = c + u: u = W (E + γ N u), E the sums of TD errors of the constant and W the weights.
        let errors = column(&sample.td_errors(&vec![constant; m]));
        let weights = smoother.weights(sample.features(), &visits)?;
        let average = |sums: &Matrix| {
            let mut averages = Matrix::zeros(m, sums.num_cols());
            weights.add_averages(1.0, sums, &mut averages);
            averages
        };
        // Only states that something leads to appear on the right: the system is as large as there are of those.
        let mut place = vec![usize::MAX; m];
        let mut reached = Vec::new();
        for &s in &sources {
            for (next, _) in sample.successors(s).filter(|(_, count)| *count > 0.0) {
                if place[next] == usize::MAX {
                    place[next] = reached.len();
                    reached.push(next);
                }
            }
        }
        check_size(reached.len())?;
        let right = average(&errors);
        let mut system = Matrix::identity(reached.len());
        // W times the counts of transitions, row by row: weights of a row are few numbers times sparse rows.
        for (i, &u) in reached.iter().enumerate() {
            let own = weights.normalized(u);
            for (k, &s) in sources.iter().enumerate().filter(|(k, _)| own[*k] != 0.0) {
                for (next, count) in sample.successors(s).filter(|(_, count)| *count > 0.0) {
                    system[(i, place[next])] -= gamma * own[k] * count;
                }
            }
        }
        let b: Vec<f64> = reached.iter().map(|&u| right[(u, 0)]).collect();
        let solved = linalg::solve(&system, &b)?;
        let mut backups = errors;
        for (k, &s) in sources.iter().enumerate() {
            let next = sample.successors(s).filter(|(_, count)| *count > 0.0);
            backups[(k, 0)] += gamma * next.map(|(next, count)| count * solved[place[next]]).sum::<f64>();
        }
        let values = average(&backups).as_slice().iter().map(|u| constant + u).collect();
        Ok(Box::new(KbrlFit { smoother, constant, visits, backups, values }))
    }
}

impl Fit for KbrlFit {
    fn values(&self) -> &[f64] {
        &self.values
    }

    fn predict(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        let mut values = Matrix::from_fn(states.num_rows(), 1, |_, _| self.constant);
        self.smoother.weights(states, &self.visits)?.add_averages(1.0, &self.backups, &mut values);
        Ok(values.as_slice().to_vec())
    }
}
