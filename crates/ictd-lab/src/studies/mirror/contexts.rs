//! The literal setting's contexts and the block with four numbers, in direct form.
//!
//! A = a·I and V's last row (0, p_r, p_t, p_v). Written without the training engine, so that each checks the other.

use ictd::linalg::solve;
use ictd::matrix::Matrix;
use ictd::parallel;
use ictd::pretrain::PretrainConfig;
use ictd::random::{Purpose, Stream};
use ictd::task::TaskSource as _;
use serde::Serialize;

use crate::LabError;

/// Trajectories of fresh tasks of the literal setting, cut into overlapping contexts.
pub struct Contexts {
    gamma: f64,
    temperature: f64,
    num_layers: usize,
    n: usize,
    batch: usize,
    tasks: Vec<Trajectory>,
}

/// Position by position: features, reward and exact value.
struct Trajectory {
    features: Vec<Vec<f64>>,
    rewards: Vec<f64>,
    values: Vec<f64>,
}

/// A prediction and its derivative by (p_r, p_t, p_v).
#[derive(Clone, Copy, Default)]
struct Prediction {
    value: f64,
    slope: [f64; 3],
}

/// What a block does on the contexts: mean δ² and mean square error at the queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    pub td_loss: f64,
    pub msve: f64,
}

/// Uniform attention, where every value is k times the mean reward, for a query position.
#[derive(Clone, Debug, Serialize)]
pub struct ConstantRow {
    pub query: &'static str,
    /// E[r(query)·mean R].
    pub reward_own: f64,
    /// E[r(query)·mean R'], with R' the rewards of the window that makes the target.
    pub reward_next: f64,
    /// E[v(query)·mean R].
    pub value_own: f64,
    /// The k with the smallest mean δ², and that with the smallest mean square error.
    pub best_for_td_loss: f64,
    pub best_for_msve: f64,
}

impl Contexts {
    /// The fresh tasks on which the training engine measures `seed`.
    pub fn sample(config: &PretrainConfig, seed: u64, num_tasks: u64) -> Result<Self, LabError> {
        let draw = |task: u64| -> Result<Trajectory, LabError> {
            let index = 3 * (config.epochs + task);
            let task = config.task.draw(&mut Stream::new(seed, Purpose::Evaluation, index))?;
            let states = task.mrp().sample_states(
                config.batch + config.context_len + 1,
                &mut Stream::new(seed, Purpose::Evaluation, index + 1),
            );
            Ok(Trajectory {
                features: states.iter().map(|&s| task.features().row(s).to_vec()).collect(),
                rewards: states.iter().map(|&s| task.mrp().rewards()[s]).collect(),
                values: states.iter().map(|&s| task.values()[s]).collect(),
            })
        };
        Ok(Self {
            gamma: config.task.gamma,
            temperature: config.temperature,
            num_layers: config.num_layers,
            n: config.context_len,
            batch: config.batch,
            tasks: (0..num_tasks).map(draw).collect::<Result<_, _>>()?,
        })
    }

    /// The first context of every task: feature rows and rewards.
    pub fn first_windows(&self) -> impl Iterator<Item = (&[Vec<f64>], &[f64])> {
        self.tasks.iter().map(|task| (&task.features[..=self.n], &task.rewards[..self.n]))
    }

    /// Attention of A = a·I: per task, per window (one more than counted, for the last target), per column.
    fn weights(&self, a: f64) -> Vec<Vec<f64>> {
        let of_task = |task: &Trajectory| {
            let mut weights = Vec::with_capacity((self.batch + 1) * (self.n + 1) * self.n);
            for t in 0..=self.batch {
                for j in t..=t + self.n {
                    let scores = (t..t + self.n).map(|i| {
                        let product: f64 =
                            task.features[i].iter().zip(&task.features[j]).map(|(x, y)| x * y).sum();
                        a * product / self.temperature
                    });
                    let scores: Vec<f64> = scores.collect();
                    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let shares: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
                    let total: f64 = shares.iter().sum();
                    weights.extend(shares.iter().map(|s| s / total));
                }
            }
            weights
        };
        self.tasks.iter().map(of_task).collect()
    }

    fn predict(&self, task: &Trajectory, weights: &[f64], t: usize, u: [f64; 3]) -> Prediction {
        let (n, [p_r, p_t, p_v]) = (self.n, u);
        let weights = &weights[t * (n + 1) * n..(t + 1) * (n + 1) * n];
        let mut columns = vec![Prediction::default(); n + 1];
        for layer in 1..=self.num_layers {
            let message = |i: usize| {
                let (next, own) = (columns[i + 1], columns[i]);
                let reward = task.rewards[t + i];
                let mut slope = [reward, self.gamma * next.value, own.value];
                for k in 0..3 {
                    slope[k] += p_t * self.gamma * next.slope[k] + p_v * own.slope[k];
                }
                Prediction { value: p_r * reward + p_t * self.gamma * next.value + p_v * own.value, slope }
            };
            let messages: Vec<Prediction> = (0..n).map(message).collect();
            // Of the last layer the query's column alone is asked for.
            let first = if layer == self.num_layers { n } else { 0 };
            for (j, column) in columns.iter_mut().enumerate().skip(first) {
                for (message, w) in messages.iter().zip(&weights[j * n..(j + 1) * n]) {
                    column.value += w * message.value;
                    for k in 0..3 {
                        column.slope[k] += w * message.slope[k];
                    }
                }
            }
        }
        columns[n]
    }

    /// Calls `visit` with (trajectory, window, own prediction, the target's prediction, δ), in order.
    fn each(
        &self,
        weights: &[Vec<f64>],
        u: [f64; 3],
        mut visit: impl FnMut(&Trajectory, usize, Prediction, Prediction, f64),
    ) {
        for (task, weights) in self.tasks.iter().zip(weights) {
            let mut own = self.predict(task, weights, 0, u);
            for t in 0..self.batch {
                let next = self.predict(task, weights, t + 1, u);
                let delta = task.rewards[t + self.n] + self.gamma * next.value - own.value;
                visit(task, t, own, next, delta);
                own = next;
            }
        }
    }

    fn count(&self) -> f64 {
        (self.batch * self.tasks.len()) as f64
    }

    fn losses_with(&self, weights: &[Vec<f64>], u: [f64; 3]) -> Losses {
        let (mut td_loss, mut msve) = (0.0, 0.0);
        self.each(weights, u, |task, t, own, _, delta| {
            td_loss += delta * delta;
            msve += (own.value - task.values[t + self.n]).powi(2);
        });
        Losses { td_loss: td_loss / self.count(), msve: msve / self.count() }
    }

    /// E[δ·∇v] by (p_r, p_t, p_v): where semi-gradient TD pulls u, up to a factor.
    fn pull(&self, weights: &[Vec<f64>], u: [f64; 3]) -> [f64; 3] {
        let mut pull = [0.0; 3];
        self.each(weights, u, |_, _, own, _, delta| {
            for k in 0..3 {
                pull[k] += delta * own.slope[k] / self.count();
            }
        });
        pull
    }

    /// The u at which semi-gradient TD stands still for A = a·I, E[δ·∇v] = 0, by damped Newton steps (Levenberg
    /// and Marquardt) on the pull from `start`; `None` when it is not below 1e-6 after 60 of them.
    pub fn fixed_point(&self, a: f64, start: [f64; 3]) -> Option<([f64; 3], Losses)> {
        let weights = self.weights(a);
        let square = |x: &[f64; 3]| x.iter().map(|x| x * x).sum::<f64>();
        let (mut u, mut damping) = (start, 1e-3);
        let mut pull = self.pull(&weights, u);
        let mut slope: Option<Matrix> = None;
        for _ in 0..60 {
            if square(&pull).sqrt() < 1e-6 {
                return Some((u, self.losses_with(&weights, u)));
            }
            let matrix = slope.get_or_insert_with(|| {
                // Forward differences: their error of about 1e-5 slows the last steps, it does not move the point.
                let columns: Vec<[f64; 3]> = (0..3)
                    .map(|k| {
                        let mut moved = u;
                        moved[k] += 1e-5;
                        self.pull(&weights, moved)
                    })
                    .collect();
                Matrix::from_fn(3, 3, |i, k| (columns[k][i] - pull[i]) / 1e-5)
            });
            let mut normal = matrix.transpose().matmul(matrix);
            (0..3).for_each(|k| normal[(k, k)] += damping);
            let step = solve(&normal, &matrix.transpose().mul_vec(&pull)).ok()?;
            let tried = [0, 1, 2].map(|k| u[k] - step[k]);
            let found = self.pull(&weights, tried);
            if square(&found) < square(&pull) {
                (u, pull, slope, damping) = (tried, found, None, damping * 0.1);
            } else {
                damping *= 10.0;
            }
        }
        None
    }

    /// Fixed points on both sides of a = 0, in order of a. On each side the walk starts at |a| = 1 from the signs
    /// that A's sign asks for and goes to `smaller` and to `larger` |a|, each point the start of the next.
    pub fn fixed_points(&self, smaller: &[f64], larger: &[f64]) -> Vec<(f64, Option<([f64; 3], Losses)>)> {
        let walks = [(-1.0, smaller), (-1.0, larger), (1.0, smaller), (1.0, larger)];
        let walk = |(sign, sizes): (f64, &[f64])| {
            let (mut last, mut start) = (1.0, [2.0, 1.5, -2.0].map(|p: f64| sign * p));
            let mut found = Vec::new();
            for &size in [1.0].iter().chain(sizes) {
                // Scores times V stay about the same where scores are small.
                let point = self.fixed_point(sign * size, start.map(|p| p * last / size));
                if let Some((u, _)) = point {
                    (last, start) = (size, u);
                }
                found.push((sign * size, point));
            }
            found
        };
        let mut all = parallel::map(walks.len(), |k| walk(walks[k])).concat();
        all.sort_by(|x, y| x.0.total_cmp(&y.0));
        // Both walks of a side begin at the same point.
        all.dedup_by_key(|x| x.0);
        all
    }

    /// Mean reward, ⟨x_q, Cov(x, R)⟩ and ⟨x_q, Cov(x, γh' − h)⟩ of a window.
    fn statistics(&self, task: &Trajectory, t: usize) -> [f64; 3] {
        let (n, d) = (self.n, task.features[t].len());
        let rows = &task.features[t..=t + n];
        let mean: Vec<f64> = (0..d).map(|k| rows[..n].iter().map(|x| x[k]).sum::<f64>() / n as f64).collect();
        let covariance = |y: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (0..d).map(|k| (0..n).map(|i| (rows[i][k] - mean[k]) * y(i)).sum::<f64>() / n as f64).collect()
        };
        let along = |j: usize, c: &[f64]| rows[j].iter().zip(c).map(|(x, c)| x * c).sum::<f64>();
        let reward = covariance(&|i| task.rewards[t + i]);
        let bootstrap = covariance(&|i| self.gamma * along(i + 1, &reward) - along(i, &reward));
        let mean_reward = task.rewards[t..t + n].iter().sum::<f64>() / n as f64;
        [mean_reward, along(n, &reward), along(n, &bootstrap)]
    }

    /// The averages behind the first gradients: C = E[r(q)·mean R] and D = E[r(q)·⟨x_q, Cov(x, R)⟩]/d.
    pub fn correlations(&self) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for task in &self.tasks {
            for t in 0..self.batch {
                let [mean, covariance, _] = self.statistics(task, t);
                let reward = task.rewards[t + self.n];
                sums[0] += reward * mean;
                sums[1] += reward * covariance;
            }
        }
        let d = self.tasks.first().map_or(1, |task| task.features[0].len());
        let [mean, covariance] = sums.map(|sum| sum / self.count());
        [mean, covariance / d as f64]
    }

    /// The block under uniform attention, v = k·mean R, for a query `ahead` states after the last context
    /// transition.
    pub fn constants(&self, query: &'static str, ahead: usize) -> ConstantRow {
        let mut sums = [0.0; 6];
        for task in &self.tasks {
            let mean = |t: usize| task.rewards[t..t + self.n].iter().sum::<f64>() / self.n as f64;
            for t in 0..self.batch {
                let (own, next) = (mean(t), mean(t + 1));
                let (reward, value) = (task.rewards[t + self.n + ahead], task.values[t + self.n + ahead]);
                let change = self.gamma * next - own;
                let products =
                    [reward * own, reward * next, value * own, reward * change, change * change, own * own];
                sums.iter_mut().zip(products).for_each(|(sum, x)| *sum += x / self.count());
            }
        }
        let [reward_own, reward_next, value_own, reward_change, change_square, own_square] = sums;
        let (best_for_td_loss, best_for_msve) = (-reward_change / change_square, value_own / own_square);
        ConstantRow { query, reward_own, reward_next, value_own, best_for_td_loss, best_for_msve }
    }

    /// How much δ still correlates at (u, a·I) with what predictions are made of, order by order in A, each without its
    /// parts along those before: 0, the mean reward; 1, ⟨x_q, Cov(x, R)⟩; 2, ⟨x_q, Cov(x, γh' − h)⟩ with h = ⟨x, Cov(x, R)⟩.
    /// In units of √(E[r²]·E[f²]).
    pub fn orders(&self, u: [f64; 3], a: f64) -> [f64; 3] {
        let mut statistics: [Vec<f64>; 3] = Default::default();
        let (mut deltas, mut rewards) = (Vec::new(), 0.0);
        self.each(&self.weights(a), u, |task, t, _, _, delta| {
            for (all, own) in statistics.iter_mut().zip(self.statistics(task, t)) {
                all.push(own);
            }
            deltas.push(delta);
            rewards += task.rewards[t + self.n].powi(2);
        });
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        for k in 1..3 {
            let (before, rest) = statistics.split_at_mut(k);
            for f in before.iter() {
                let share = dot(&rest[0], f) / dot(f, f);
                rest[0].iter_mut().zip(f).for_each(|(x, f)| *x -= share * f);
            }
        }
        statistics.map(|f| dot(&deltas, &f) / (rewards * dot(&f, &f)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use ictd::pretrain::{drift, reduced_params};

    use super::*;

    /// Two ways to the same numbers: direct form and engine, on the same tasks.
    #[test]
    fn the_engine_predicts_what_the_direct_form_does() {
        let config = PretrainConfig { batch: 8, ..PretrainConfig::paper() };
        let contexts = Contexts::sample(&config, 3, 2).unwrap();
        let (u, a) = ([-0.9, -0.5, 0.4], -0.8);
        let found = contexts.losses_with(&contexts.weights(a), u);
        let engine = drift::<f64>(&config, 3, &reduced_params(&config.shape(), u, a), 2).unwrap();
        let mean = |f: &dyn Fn(usize) -> f64| (f(0) + f(1)) / 2.0;
        // Three layers on numbers of order 1.
        assert!((found.td_loss - mean(&|k| engine[k].td_loss)).abs() < 1e-12);
        assert!((found.msve - mean(&|k| engine[k].msve)).abs() < 1e-12);
    }

    /// At a fixed point the engine's semi-gradient by u is zero.
    #[test]
    fn fixed_points_stop_the_engine() {
        let config = PretrainConfig { batch: 16, ..PretrainConfig::paper() };
        let contexts = Contexts::sample(&config, 0, 12).unwrap();
        let (u, _) = contexts.fixed_point(-0.8, [-1.5, -1.5, 1.5]).unwrap();
        let drifts = drift::<f64>(&config, 0, &reduced_params(&config.shape(), u, -0.8), 12).unwrap();
        for k in 0..3 {
            let gradient = drifts.iter().map(|d| d.value[k]).sum::<f64>() / 12.0;
            // Twice a pull below 1e-6.
            assert!(gradient.abs() < 2e-6, "{k}: {gradient} at {u:?}");
        }
    }
}
