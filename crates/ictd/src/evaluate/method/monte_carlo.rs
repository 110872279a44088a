//! Every-visit Monte Carlo.

use super::table::Table;
use super::{Fit, FitError, Method, centre};
use crate::evaluate::sample::Sample;

/// The mean of the discounted rewards that followed each visit, to the end of the episode. States that were never left have
/// the constant that fits best.
///
/// Monte Carlo knows nothing of what follows a truncated episode: there it takes the rewards that were seen for all there are,
/// and is biased towards 0 accordingly.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonteCarlo;

impl Method for MonteCarlo {
    fn name(&self) -> &'static str {
        "Monte Carlo"
    }

    fn fit(&self, sample: &Sample<'_>) -> Result<Box<dyn Fit>, FitError> {
        let constant = centre(sample)?;
        let means = sample.return_sums().into_iter().zip(sample.visits());
        let values = means.map(|(sum, &visits)| if visits > 0.0 { sum / visits } else { constant }).collect();
        Ok(Box::new(Table::new(sample, values, constant)))
    }
}
