//! Expected tabular TD on the empirical model.

use std::collections::BTreeMap;

use super::{Estimator, iterate};
use crate::context::{Context, Role};
use crate::transformer::ForwardError;
use crate::watch::Watch;

/// Tabular TD with expected updates on the model estimated from the context:
/// v(s) ← v(s) + α·(r̂(s) + γ Σ p̂(s'|s)·v(s') - v(s)) for every state that was left; other states
/// keep the value 0. States are the same when their features are.
#[derive(Clone, Debug)]
pub struct TabularTd {
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
}

/// The empirical model of one state: visits, total reward, and how often each state followed.
#[derive(Default)]
struct Row {
    visits: f64,
    reward: f64,
    successors: BTreeMap<usize, f64>,
}

impl Estimator for TabularTd {
    fn name(&self) -> &str {
        "tabular TD"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let columns = 0..context.num_columns();
        let mut states: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        let state_of: Vec<usize> = columns
            .clone()
            .map(|j| {
                let bits = context.features_of(j).iter().map(|x| x.to_bits()).collect();
                let fresh = states.len();
                *states.entry(bits).or_insert(fresh)
            })
            .collect();
        let mut model: Vec<Row> = (0..states.len()).map(|_| Row::default()).collect();
        for j in columns.clone().filter(|&j| context.roles()[j] == Role::Source) {
            let row = &mut model[state_of[j]];
            row.visits += 1.0;
            row.reward += context.rewards()[j];
            // A terminal successor has value 0.
            if context.roles()[j + 1] != Role::Terminal {
                *row.successors.entry(state_of[j + 1]).or_default() += 1.0;
            }
        }
        let mut v = vec![0.0; model.len()];
        iterate(context, watch, &self.step_sizes, |step_size, _| {
            let update = |(s, row): (usize, &Row)| {
                if row.visits == 0.0 {
                    return 0.0;
                }
                let next: f64 = row.successors.iter().map(|(&s, count)| count / row.visits * v[s]).sum();
                v[s] + step_size * (row.reward / row.visits + self.gamma * next - v[s])
            };
            v = model.iter().enumerate().map(update).collect();
            state_of.iter().map(|&s| v[s]).collect()
        })
    }
}
