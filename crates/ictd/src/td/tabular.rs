//! Expected tabular TD on the empirical model.

use std::collections::BTreeMap;

use crate::context::{Context, Role};

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

impl TabularTd {
    /// The value estimates of all columns before the first and after every iteration.
    pub fn run(&self, context: &Context) -> Vec<Vec<f64>> {
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
        let by_column = |v: &[f64]| -> Vec<f64> {
            let value = |j: usize| if context.roles()[j] == Role::Terminal { 0.0 } else { v[state_of[j]] };
            columns.clone().map(value).collect()
        };
        let mut v = vec![0.0; model.len()];
        let mut history = vec![by_column(&v)];
        for alpha in &self.step_sizes {
            let update = |(s, row): (usize, &Row)| {
                if row.visits == 0.0 {
                    return 0.0;
                }
                let next: f64 = row.successors.iter().map(|(&s, count)| count / row.visits * v[s]).sum();
                v[s] + alpha * (row.reward / row.visits + self.gamma * next - v[s])
            };
            v = model.iter().enumerate().map(update).collect();
            history.push(by_column(&v));
        }
        history
    }
}
