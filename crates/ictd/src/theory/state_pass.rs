//! The looped Transformer on states: values, and their gradient by the parameters of Θ^Looped.

use crate::matrix::Matrix;
use crate::transformer::AttentionParams;

/// A point of Θ^Looped (paper, Section 6): V's last row ends in u, A has the feature block B; both are shared
/// by all layers.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopedParams {
    /// V's last row on features; 0 in Θ^Looped, not 0 in checkpoints of wider masks.
    pub feature_row: Vec<f64>,
    /// u: coefficients of reward, target and value.
    pub value_row: [f64; 3],
    /// B, the d×d block of A.
    pub score_block: Matrix,
}

impl LoopedParams {
    /// theta_*: u = (1, 1, -1), B = I.
    pub fn theta_star(feature_dim: usize) -> Self {
        Self {
            feature_row: vec![0.0; feature_dim],
            value_row: [1.0, 1.0, -1.0],
            score_block: Matrix::identity(feature_dim),
        }
    }

    /// From V and A. `None` when scores depend on more than features, so that attention changes from layer to
    /// layer, or when layers overwrite features or rewards.
    pub fn of(params: &AttentionParams) -> Option<Self> {
        if !params.scores_features_only() || params.overwrites_inputs() {
            return None;
        }
        let d = params.feature_dim();
        let row = params.value_row();
        Some(Self {
            feature_row: row[..d].to_vec(),
            value_row: [row[d], row[d + 1], row[d + 2]],
            score_block: params.score_block(),
        })
    }

    /// Number of free parameters, d² + 3.
    pub fn num_free(&self) -> usize {
        3 + self.score_block.as_slice().len()
    }
}

/// Forward and reverse pass on the states of a context, with buffers that are reused.
///
/// The value of every state moves by v(s) += Σ_{s'} w(s', s)·q(s') with w the softmax weights of all visits to s'
/// and q(s') = ⟨a, x(s')⟩ + u₁ r(s') + u₂ γ E[v(next) | s'] + u₃ v(s') (appendix, proof of the gradient bound). Costs
/// O(L·states²), however long the context is.
#[derive(Clone, Debug, Default)]
pub struct StatePass {
    /// Which states occur, as numbers of the task.
    states: Vec<usize>,
    local: Vec<usize>,
    /// Visits by occurring state, and transitions among them as shares of the visits: first counted in a
    /// table, then those of state s at offsets[s]..offsets[s + 1].
    visits: Vec<f64>,
    table: Vec<f64>,
    offsets: Vec<usize>,
    next: Vec<(usize, f64)>,
    /// Layer by layer: v, then q.
    values: Vec<f64>,
    messages: Vec<f64>,
    /// Column by column: weights of all states for a state.
    weights: Vec<f64>,
    weights_bar: Vec<f64>,
    value_bar: Vec<f64>,
    message_bar: Vec<f64>,
}

const ABSENT: usize = usize::MAX;

impl StatePass {
    /// Loads the trajectory through `states` of a task with `num_states` states; its last state is the query.
    pub fn load(&mut self, num_states: usize, states: &[usize]) {
        self.local.clear();
        self.local.resize(num_states, ABSENT);
        self.states.clear();
        for &s in states {
            if self.local[s] == ABSENT {
                self.local[s] = self.states.len();
                self.states.push(s);
            }
        }
        let m = self.states.len();
        self.visits.clear();
        self.visits.resize(m, 0.0);
        self.table.clear();
        self.table.resize(m * m, 0.0);
        for pair in states.windows(2) {
            let (s, t) = (self.local[pair[0]], self.local[pair[1]]);
            self.visits[s] += 1.0;
            self.table[s * m + t] += 1.0;
        }
        self.index_transitions();
    }

    /// Loads the prompt that follows that of `before`: without its first transition and with one more at its end, each as
    /// (state, next state) of the task. A state that only the dropped transition left stays without visits and weighs
    /// nothing. Costs O(states²), however long the context is.
    pub fn load_shifted(&mut self, before: &StatePass, first: (usize, usize), last: (usize, usize)) {
        self.local.clone_from(&before.local);
        self.states.clone_from(&before.states);
        self.visits.clone_from(&before.visits);
        let old = before.states.len();
        for state in [last.0, last.1] {
            if self.local[state] == ABSENT {
                self.local[state] = self.states.len();
                self.states.push(state);
                self.visits.push(0.0);
            }
        }
        let m = self.states.len();
        self.table.clear();
        self.table.resize(m * m, 0.0);
        for (row, counts) in self.table.chunks_exact_mut(m).zip(before.table.chunks_exact(old)) {
            row[..old].copy_from_slice(counts);
        }
        for ((s, t), change) in [(first, -1.0), (last, 1.0)] {
            let (s, t) = (self.local[s], self.local[t]);
            self.visits[s] += change;
            self.table[s * m + t] += change;
        }
        self.index_transitions();
    }

    /// Lists the transitions counted in the table by the state they leave.
    fn index_transitions(&mut self) {
        let m = self.states.len();
        self.next.clear();
        self.offsets.clear();
        for (row, visits) in self.table.chunks_exact(m).zip(&self.visits) {
            self.offsets.push(self.next.len());
            let followed = row.iter().enumerate().filter(|(_, count)| **count > 0.0);
            self.next.extend(followed.map(|(t, count)| (t, count / visits)));
        }
        self.offsets.push(self.next.len());
    }

    /// Values of all occurring states after `num_layers` layers; returns that of `query`, a state of the task
    /// that occurs.
    pub fn forward(
        &mut self,
        params: &LoopedParams,
        features: &Matrix,
        rewards: &[f64],
        gamma: f64,
        num_layers: usize,
        query: usize,
    ) -> f64 {
        let m = self.states.len();
        let [on_reward, on_target, on_value] = params.value_row;
        self.fill_weights(params, features);
        self.values.clear();
        self.values.resize((num_layers + 1) * m, 0.0);
        self.messages.clear();
        self.messages.resize(num_layers * m, 0.0);
        for layer in 0..num_layers {
            let (before, after) = self.values[layer * m..].split_at_mut(m);
            let messages = &mut self.messages[layer * m..(layer + 1) * m];
            for (s, q) in messages.iter_mut().enumerate() {
                let x = features.row(self.states[s]);
                let fixed: f64 = params.feature_row.iter().zip(x).map(|(a, x)| a * x).sum();
                let followed = &self.next[self.offsets[s]..self.offsets[s + 1]];
                let expected: f64 = followed.iter().map(|&(t, p)| p * before[t]).sum();
                *q = fixed
                    + on_reward * rewards[self.states[s]]
                    + on_target * gamma * expected
                    + on_value * before[s];
            }
            for (s, v) in after[..m].iter_mut().enumerate() {
                let column = &self.weights[s * m..(s + 1) * m];
                *v = before[s] + column.iter().zip(&*messages).map(|(w, q)| w * q).sum::<f64>();
            }
        }
        self.values[num_layers * m + self.local[query]]
    }

    /// The value of any state of the task after `num_layers` layers of the last [`forward`](Self::forward), read off the
    /// same prompt.
    pub fn value_of(&self, params: &LoopedParams, features: &Matrix, num_layers: usize, state: usize) -> f64 {
        let m = self.states.len();
        let local = self.local[state];
        if local != ABSENT {
            return self.values[num_layers * m + local];
        }
        // A state that does not occur moves by the same messages with weights of its own.
        let mut column = vec![0.0; m];
        self.weigh(params, features, state, &mut column);
        let moved = |q: &[f64]| column.iter().zip(q).map(|(w, q)| w * q).sum::<f64>();
        self.messages.chunks_exact(m).take(num_layers).map(moved).sum()
    }

    fn fill_weights(&mut self, params: &LoopedParams, features: &Matrix) {
        let m = self.states.len();
        let mut weights = std::mem::take(&mut self.weights);
        weights.clear();
        weights.resize(m * m, 0.0);
        for (column, &state) in weights.chunks_exact_mut(m).zip(&self.states) {
            self.weigh(params, features, state, column);
        }
        self.weights = weights;
    }

    /// w(s', s) = c(s')·exp(g(s', s)) / Σ for a state s of the task, with g = x(s')ᵀ B x(s).
    fn weigh(&self, params: &LoopedParams, features: &Matrix, state: usize, column: &mut [f64]) {
        let key = params.score_block.mul_vec(features.row(state));
        let mut largest = f64::NEG_INFINITY;
        for (t, score) in column.iter_mut().enumerate() {
            *score = features.row(self.states[t]).iter().zip(&key).map(|(x, k)| x * k).sum();
            if self.visits[t] > 0.0 {
                largest = largest.max(*score);
            }
        }
        let mut total = 0.0;
        for (score, visits) in column.iter_mut().zip(&self.visits) {
            *score = if *visits > 0.0 { visits * (*score - largest).exp() } else { 0.0 };
            total += *score;
        }
        column.iter_mut().for_each(|w| *w /= total);
    }

    /// The gradient by u (3 numbers) and B (row by row) of the value of `query`, which occurs, after `num_layers`
    /// layers of the last [`forward`](Self::forward).
    #[allow(clippy::too_many_arguments, reason = "the task and the point, as in forward")]
    pub fn backward(
        &mut self,
        params: &LoopedParams,
        features: &Matrix,
        rewards: &[f64],
        gamma: f64,
        num_layers: usize,
        query: usize,
        gradient: &mut [f64],
    ) {
        let m = self.states.len();
        let [_, on_target, on_value] = params.value_row;
        gradient.fill(0.0);
        self.value_bar.clear();
        self.value_bar.resize(m, 0.0);
        self.value_bar[self.local[query]] = 1.0;
        self.weights_bar.clear();
        self.weights_bar.resize(m * m, 0.0);
        self.message_bar.resize(m, 0.0);
        for layer in (0..num_layers).rev() {
            let values = &self.values[layer * m..(layer + 1) * m];
            let messages = &self.messages[layer * m..(layer + 1) * m];
            self.message_bar.fill(0.0);
            for s in 0..m {
                let bar = self.value_bar[s];
                if bar != 0.0 {
                    let column = s * m..(s + 1) * m;
                    for (t, w) in self.weights[column.clone()].iter().enumerate() {
                        self.message_bar[t] += bar * w;
                    }
                    for (w_bar, q) in self.weights_bar[column].iter_mut().zip(messages) {
                        *w_bar += bar * q;
                    }
                }
            }
            for s in 0..m {
                let bar = self.message_bar[s];
                let followed = &self.next[self.offsets[s]..self.offsets[s + 1]];
                let expected: f64 = followed.iter().map(|&(t, p)| p * values[t]).sum();
                gradient[0] += bar * rewards[self.states[s]];
                gradient[1] += bar * gamma * expected;
                gradient[2] += bar * values[s];
                self.value_bar[s] += on_value * bar;
                for &(t, p) in followed {
                    self.value_bar[t] += on_target * gamma * bar * p;
                }
            }
        }
        let d = features.num_cols();
        for s in 0..m {
            let column = &self.weights[s * m..(s + 1) * m];
            let bars = &self.weights_bar[s * m..(s + 1) * m];
            let mean: f64 = column.iter().zip(bars).map(|(w, b)| w * b).sum();
            // Σ_t (score's share of t)·x(t), then its outer product with x(s).
            let mut pulled = vec![0.0; d];
            for t in 0..m {
                let score_bar = column[t] * (bars[t] - mean);
                if score_bar != 0.0 {
                    let y = features.row(self.states[t]);
                    pulled.iter_mut().zip(y).for_each(|(sum, y)| *sum += score_bar * y);
                }
            }
            let x = features.row(self.states[s]);
            for (slots, y) in gradient[3..].chunks_exact_mut(d).zip(&pulled) {
                slots.iter_mut().zip(x).for_each(|(slot, x)| *slot += y * x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Attention, KernelName};
    use crate::pretrain::{Columns, Hyper, Mask, QueryMix, Shape, reference_gradient};
    use crate::random::{Purpose, Stream};
    use crate::task::Boyan;
    use crate::transformer::{Block, TransformerConfig};

    fn params(d: usize, stream: &mut Stream) -> LoopedParams {
        LoopedParams {
            feature_row: vec![0.0; d],
            value_row: [0.8, 1.1, -0.7],
            score_block: Matrix::from_fn(d, d, |i, j| {
                f64::from(u8::from(i == j)) + 0.3 * stream.uniform_in(-1.0, 1.0)
            }),
        }
    }

    /// On states against column by column, values and gradients: the same sums in another order.
    #[test]
    fn agrees_with_the_pass_over_columns() {
        let task = Boyan::paper().generate(&mut Stream::new(4, Purpose::Task, 0)).unwrap();
        let (d, n, layers, gamma) = (4, 40, 5, 0.9);
        let mut stream = Stream::new(4, Purpose::Trajectory, 0);
        let states = task.mrp().sample_states(n, &mut stream);
        let theta = params(d, &mut stream);
        let mut pass = StatePass::default();
        pass.load(64, &states);
        let query = states[n];
        let value = pass.forward(&theta, task.features(), task.mrp().rewards(), gamma, layers, query);
        let mut gradient = vec![0.0; theta.num_free()];
        pass.backward(&theta, task.features(), task.mrp().rewards(), gamma, layers, query, &mut gradient);

        let shape = Shape {
            feature_dim: d,
            context_len: n,
            num_layers: layers,
            tied: true,
            columns: Columns::PAPER,
            block: Block::TemporalShift,
            mask: Mask::Looped,
        };
        let rows: Vec<_> =
            states.iter().map(|&s| (task.features().row(s), task.mrp().rewards()[s])).collect();
        let mut flat = vec![0.0; shape.num_params()];
        let start = shape.value_index(0, d + 2, d);
        flat[start..start + 3].copy_from_slice(&theta.value_row);
        let scores = |i: usize| shape.score_index(0, i, 0)..shape.score_index(0, i, d);
        (0..d).for_each(|i| flat[scores(i)].copy_from_slice(theta.score_block.row(i)));
        let hyper = Hyper { gamma, temperature: 1.0, diagonal_mix: 0.0, query_mix: QueryMix::Mixed };
        let (out, full) = reference_gradient(&shape, hyper, KernelName::Softmax, &flat, &rows, None).unwrap();
        assert!((out - value).abs() < 1e-12, "{out} {value}");
        let mut expected = full[start..start + 3].to_vec();
        (0..d).for_each(|i| expected.extend_from_slice(&full[scores(i)]));
        let largest = expected.iter().fold(0f64, |m, x| m.max(x.abs()));
        for (a, b) in gradient.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-12 * largest, "{a} {b}");
        }
    }

    /// At theta_* it is the Transformer.
    #[test]
    fn theta_star_is_the_transformer() {
        let task = Boyan::paper().generate(&mut Stream::new(5, Purpose::Task, 0)).unwrap();
        let states = task.mrp().sample_states(30, &mut Stream::new(5, Purpose::Trajectory, 0));
        let mut pass = StatePass::default();
        pass.load(64, &states);
        let theta = LoopedParams::theta_star(4);
        let value = pass.forward(&theta, task.features(), task.mrp().rewards(), 0.9, 7, states[30]);
        let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
        let transformer = TransformerConfig::theta_star(attention, 7, 0.9).check().unwrap();
        let expected = transformer.values(&task.context_of(&states, &[])).unwrap().output();
        assert!((value - expected).abs() < 1e-13);
        assert_eq!(pass.value_of(&theta, task.features(), 7, states[30]), value);
        // A state that does not occur is a query of its own.
        let absent = (0..64).find(|s| !states.contains(s)).unwrap();
        let expected = transformer.values(&task.context_of(&states, &[absent])).unwrap().output();
        assert!((pass.value_of(&theta, task.features(), 7, absent) - expected).abs() < 1e-13);
    }

    /// The prompt that follows, from the counts of the one before, and shallower networks out of a deep one.
    #[test]
    fn shifted_prompts_and_shallow_networks_need_no_new_pass() {
        let task = Boyan::paper().generate(&mut Stream::new(7, Purpose::Task, 0)).unwrap();
        let (features, rewards) = (task.features(), task.mrp().rewards());
        let theta = params(4, &mut Stream::new(7, Purpose::Init, 0));
        let mut states = task.mrp().sample_states(12, &mut Stream::new(7, Purpose::Trajectory, 0));
        let (mut before, mut shifted, mut fresh) =
            (StatePass::default(), StatePass::default(), StatePass::default());
        before.load(64, &states);
        let absent = (0..64).find(|s| !states.contains(s)).unwrap();
        for next in [states[3], absent] {
            let last = states[12];
            shifted.load_shifted(&before, (states[0], states[1]), (last, next));
            let deep = shifted.forward(&theta, features, rewards, 0.9, 6, next);
            states.push(next);
            fresh.load(64, &states[1..]);
            states.pop();
            let expected = fresh.forward(&theta, features, rewards, 0.9, 6, next);
            assert!((deep - expected).abs() < 1e-13, "{deep} {expected}");
            let shallow = fresh.forward(&theta, features, rewards, 0.9, 2, next);
            assert!((shifted.value_of(&theta, features, 2, next) - shallow).abs() < 1e-13);
            let (mut a, mut b) = (vec![0.0; theta.num_free()], vec![0.0; theta.num_free()]);
            shifted.backward(&theta, features, rewards, 0.9, 2, next, &mut a);
            fresh.backward(&theta, features, rewards, 0.9, 2, next, &mut b);
            assert!(a.iter().zip(&b).all(|(x, y)| (x - y).abs() < 1e-12));
        }
    }

    #[test]
    fn gradient_matches_finite_differences() {
        let task = Boyan::paper().generate(&mut Stream::new(6, Purpose::Task, 0)).unwrap();
        let states = task.mrp().sample_states(15, &mut Stream::new(6, Purpose::Trajectory, 0));
        let mut theta = params(4, &mut Stream::new(6, Purpose::Init, 0));
        let mut pass = StatePass::default();
        pass.load(64, &states);
        let run = |pass: &mut StatePass, theta: &LoopedParams| {
            pass.forward(theta, task.features(), task.mrp().rewards(), 0.9, 4, states[15])
        };
        run(&mut pass, &theta);
        let mut gradient = vec![0.0; theta.num_free()];
        pass.backward(&theta, task.features(), task.mrp().rewards(), 0.9, 4, states[15], &mut gradient);
        for k in 0..gradient.len() {
            let mut moved = |h: f64| {
                let slot = |t: &mut LoopedParams, h: f64| {
                    if k < 3 { t.value_row[k] += h } else { t.score_block[((k - 3) / 4, (k - 3) % 4)] += h }
                };
                slot(&mut theta, h);
                let value = run(&mut pass, &theta);
                slot(&mut theta, -h);
                value
            };
            // Central differences: error h² plus rounding/h, both about 1e-10 here.
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((slope - gradient[k]).abs() < 1e-8, "{k}: {slope} {}", gradient[k]);
        }
    }
}
