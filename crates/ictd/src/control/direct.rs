//! The algorithms as they are defined, transition by transition: what attention is compared with.

use super::config::{ControlError, SoftmaxControl, finite};
use super::context::PairContext;
use crate::td::kernel_weights;

impl SoftmaxControl {
    /// The values of all pairs before the first and after every step, from `initial`:
    /// Q(x) += α Σ_k K(x_k, x)·(r_k + γ·B_k - Q(x_k)), with one weight per transition and pair. Costs O(pairs · transitions) per step.
    pub fn direct(&self, context: &PairContext, initial: &[f64]) -> Result<Vec<Vec<f64>>, ControlError> {
        self.check_context(context, initial)?;
        let sources: Vec<&[f64]> =
            (0..context.transitions().len()).map(|k| context.features().row(context.source(k))).collect();
        let kernel = self.attention().kernel();
        let weights: Vec<Vec<f64>> =
            context.features().rows().map(|x| kernel_weights(kernel, &sources, x)).collect();
        let mut history = vec![initial.to_vec()];
        for (t, &step_size) in self.config().step_sizes.iter().enumerate() {
            let q = &history[t];
            let errors = self.td_errors(context, q)?;
            let change = |w: &Vec<f64>| errors.iter().zip(w).map(|(e, w)| e * w).sum::<f64>();
            let next = q.iter().zip(&weights).map(|(q, w)| q + step_size * change(w)).collect();
            history.push(finite(next, t + 1)?);
        }
        Ok(history)
    }

    /// δ_k = r_k + γ·B_k - Q(s_k, a_k) of every transition; B is 0 after an end.
    fn td_errors(&self, context: &PairContext, q: &[f64]) -> Result<Vec<f64>, ControlError> {
        let error = |k: usize| {
            let bootstrap = self.bootstrap(context, q, k)?;
            Ok(context.transitions()[k].reward + self.config().gamma * bootstrap - q[context.source(k)])
        };
        (0..context.transitions().len()).map(error).collect()
    }

    /// B_k of a transition at the values of all pairs.
    fn bootstrap(&self, context: &PairContext, q: &[f64], k: usize) -> Result<f64, ControlError> {
        let Some(next) = context.transitions()[k].next else { return Ok(0.0) };
        match self.config().backup.of_state(next, &q[context.pairs_of(next)]) {
            Some(value) => Ok(value),
            None => Ok(context.successor(k)?.map_or(0.0, |pair| q[pair])),
        }
    }
}
