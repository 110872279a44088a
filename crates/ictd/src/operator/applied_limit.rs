//! Infinite depth on so many states that no system is formed.

use serde::Serialize;

use super::chain::Chain;
use super::{AppliedOperator, OperatorError};
use crate::krylov::{Gmres, Solution};
use crate::statistics::largest;
use crate::vector;

/// Residuals above this share of the rewards are no solution.
const TOLERANCE: f64 = 1e-6;
/// Products for one subspace, and for all of them.
const RESTART: usize = 30;
const MAX_PRODUCTS: usize = 44;
/// Sweeps over the counted chain: enough for discounts up to 0.9997, and as many as a product may wait for.
const MAX_SWEEPS: usize = 100_000;
const SWEEPS: usize = 1000;

/// The values of infinite depth from v = 0, as far as they were found, as [`StateOperator::infinite_depth`](super::StateOperator::infinite_depth)
/// has them. They are the limit where layers converge.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AppliedLimit {
    /// Values by state; those that were not found are of no use.
    pub values: Vec<f64>,
    /// The values of the first so many states were found: of all, of the source states alone, or of none.
    pub num_found: usize,
    /// ‖R - F v‖/‖R‖: what is left of the summed TD errors at these values, as a share of the reward sums, computed from the values.
    pub residual: f64,
    /// Products with the weights that were taken.
    pub products: usize,
}

impl AppliedLimit {
    /// Whether the values of all states were found.
    pub fn is_complete(&self) -> bool {
        self.num_found == self.values.len()
    }
}

impl AppliedOperator<'_> {
    /// The values of infinite depth.
    ///
    /// Where every state that was reached was left too and the kernel is positive definite, the limit on the source states solves F v = R,
    /// the equations of the chain that the context counted, whatever the weights are (`docs/proofs.md`); these are sparse. Otherwise, and
    /// for queries, v = Wᵀ y with F Wᵀ y = R is looked for by GMRES, after both sides are multiplied by about the inverse of F on source
    /// states. A kernel that is nearly flat has no solution that can be told from others: then none is given.
    pub fn infinite_depth(&mut self) -> Result<AppliedLimit, OperatorError> {
        let sources = self.statistics().num_source_groups();
        let rewards = self.statistics().reward_sums().to_vec();
        let size = vector::length(&rewards);
        self.begin("limit of infinite depth", MAX_PRODUCTS + 1)?;
        let chain = Chain { statistics: self.statistics(), gamma: self.gamma() };
        let counted = chain.solve(&rewards, MAX_SWEEPS, || self.check())?;
        let sweeps = counted.as_ref().map_or(SWEEPS, |(_, sweeps)| SWEEPS.min(*sweeps));
        let is_closed = self.never_left().is_empty() && self.log_masses().is_some();
        let counted = counted.filter(|_| is_closed).map(|(values, _)| values);
        if let Some(values) = &counted
            && sources == self.statistics().num_groups()
        {
            let residual = self.share_left(values, size);
            return Ok(AppliedLimit { values: values.clone(), num_found: sources, residual, products: 0 });
        }
        let right = self.precondition(&rewards, sweeps);
        let gmres = Gmres { restart: RESTART, max_products: MAX_PRODUCTS, tolerance: 0.1 * TOLERANCE };
        let Solution { x: y, residual: of_both_sides, products } =
            gmres.solve(&right, &mut |y: &[f64]| {
                let product = self.error_map(y)?;
                Ok::<_, OperatorError>(self.precondition(&product, sweeps))
            })?;
        let mut values = self.values(&y)?;
        let residual = self.share_left(&values, size);
        let mut limit = AppliedLimit { num_found: 0, residual, products: products + 1, values: Vec::new() };
        // Before they were multiplied and after.
        if largest([residual, of_both_sides]) <= TOLERANCE {
            limit.num_found = values.len();
        }
        if let Some(counted) = counted {
            // Known better than through the weights.
            values[..sources].copy_from_slice(&counted);
            limit.num_found = limit.num_found.max(sources);
        }
        limit.values = values;
        Ok(limit)
    }

    /// About F⁻¹ b on source states.
    fn precondition(&self, b: &[f64], sweeps: usize) -> Vec<f64> {
        Chain { statistics: self.statistics(), gamma: self.gamma() }.approximate(b, sweeps)
    }

    /// ‖R - F v‖/‖R‖; 0 where nothing is left.
    fn share_left(&self, v: &[f64], size: f64) -> f64 {
        let left = vector::length(&self.summed_errors(v));
        if left == 0.0 { 0.0 } else { left / size }
    }
}
