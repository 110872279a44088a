//! The predecessor's Transformer: every pass against the token matrix written out, finite differences and PyTorch.
#![allow(missing_docs)]

use ictd::predecessor::{
    Activation, PairMeasures, Pays, PredecessorConfig, PredecessorLoss, PredecessorMask, PredecessorShape,
    PredecessorTrainer, Transition, td_weights, value_and_gradient,
};
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, Kind};
use serde_json::Value;
use std::ops::ControlFlow;

const GAMMA: f64 = 0.9;

/// Features, successors' features and rewards, of which every third transition is the first one again.
struct Prompt {
    rows: Vec<(Vec<f64>, Vec<f64>, f64)>,
    query: Vec<f64>,
}

impl Prompt {
    fn draw(shape: &PredecessorShape, seed: u64) -> Self {
        let mut stream = Stream::new(seed, Purpose::Prompt, 0);
        let d = shape.feature_dim;
        let mut rows: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
        for i in 0..shape.context_len {
            let new = (
                stream.uniform_vec(d, -1.0, 1.0),
                stream.uniform_vec(d, -1.0, 1.0),
                stream.uniform_in(-1.0, 1.0),
            );
            let row = if i % 3 == 2 { rows[0].clone() } else { new };
            rows.push(row);
        }
        Self { rows, query: stream.uniform_vec(d, -1.0, 1.0) }
    }

    fn context(&self) -> Vec<Transition<'_>> {
        self.rows.iter().map(|(x, next, r)| Transition { features: x, successor: next, reward: *r }).collect()
    }

    /// -Z_L[last, last] of the layers as they are written, column by column.
    fn literal(&self, shape: &PredecessorShape, params: &[f64]) -> f64 {
        let (k, n) = (shape.num_rows(), shape.context_len);
        let mut z: Vec<Vec<f64>> = self
            .rows
            .iter()
            .map(|(x, next, r)| x.iter().copied().chain(next.iter().map(|x| GAMMA * x)).chain([*r]).collect())
            .collect();
        z.push(self.query.iter().copied().chain(vec![0.0; k - shape.feature_dim]).collect());
        let times = |a: &[f64], x: &[f64]| -> Vec<f64> {
            a.chunks(k).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
        };
        for layer in 0..shape.num_layers {
            let (p, q) = shape.pair(params, if shape.tied { 0 } else { layer });
            let mut next = z.clone();
            for i in 0..n {
                let read = times(p, &z[i]);
                let score = |j: usize| times(q, &z[j]).iter().zip(&z[i]).map(|(y, x)| x * y).sum::<f64>();
                let mut row: Vec<f64> = (0..=n).map(score).collect();
                if shape.activation == Activation::Softmax {
                    let total: f64 = row.iter().map(|x| x.exp()).sum();
                    row.iter_mut().for_each(|x| *x = x.exp() / total);
                }
                for (column, weight) in next.iter_mut().zip(row) {
                    column.iter_mut().zip(&read).for_each(|(z, u)| *z += weight * u / n as f64);
                }
            }
            z = next;
        }
        -z[n][k - 1]
    }
}

fn shapes() -> Vec<PredecessorShape> {
    let mut shapes = Vec::new();
    for activation in [Activation::Linear, Activation::Softmax] {
        for (tied, mask) in [
            (true, PredecessorMask::Full),
            (false, PredecessorMask::Full),
            (true, PredecessorMask::Sparse),
            (false, PredecessorMask::Sparse),
        ] {
            for (feature_dim, num_layers) in [(1, 1), (3, 2), (4, 3), (2, 4), (2, 6)] {
                shapes.push(PredecessorShape {
                    feature_dim,
                    context_len: 7,
                    num_layers,
                    tied,
                    activation,
                    mask,
                });
            }
        }
    }
    shapes
}

fn draw_params(shape: &PredecessorShape, seed: u64) -> Vec<f64> {
    let mut params = Stream::new(seed, Purpose::Init, 0).uniform_vec(shape.num_params(), -0.6, 0.6);
    params.iter_mut().zip(shape.trained()).for_each(|(x, trained)| *x *= f64::from(u8::from(trained)));
    params
}

#[test]
fn passes_are_the_token_matrix_written_out() {
    for (seed, shape) in shapes().into_iter().enumerate() {
        let (prompt, params) = (Prompt::draw(&shape, seed as u64), draw_params(&shape, seed as u64));
        let expected = prompt.literal(&shape, &params);
        for by_columns in [false, true] {
            let found =
                value_and_gradient(&shape, &params, GAMMA, &prompt.context(), &prompt.query, by_columns);
            // Up to six layers on numbers of order 1 that grow at most a hundredfold.
            assert!(
                (found.value - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                "{shape:?} {by_columns}"
            );
        }
    }
}

/// Central differences of the token matrix written out: truncation and rounding are about 1e-10 of the largest.
#[test]
fn derivatives_are_finite_differences() {
    for (seed, shape) in shapes().into_iter().enumerate() {
        let (prompt, params) = (Prompt::draw(&shape, seed as u64), draw_params(&shape, seed as u64));
        for by_columns in [false, true] {
            let found =
                value_and_gradient(&shape, &params, GAMMA, &prompt.context(), &prompt.query, by_columns);
            let largest = found.by_params.iter().fold(1f64, |m, g| m.max(g.abs()));
            // A pass of the sparse mask knows of no other entries.
            for k in (0..params.len()).filter(|&k| shape.trained()[k]) {
                let moved = |by: f64| {
                    let mut moved = params.clone();
                    moved[k] += by;
                    prompt.literal(&shape, &moved)
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!(
                    (found.by_params[k] - difference).abs() <= 1e-7 * largest,
                    "{shape:?} {by_columns} {k}"
                );
            }
            for a in 0..shape.feature_dim {
                let moved = |by: f64| {
                    let mut query = prompt.query.clone();
                    query[a] += by;
                    Prompt { rows: prompt.rows.clone(), query }.literal(&shape, &params)
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((found.by_query[a] - difference).abs() <= 1e-7 * largest, "{shape:?} query {a}");
            }
        }
    }
}

/// Origin: golden/predecessor.py, PyTorch's automatic differentiation of the token matrix.
#[test]
fn derivatives_are_those_of_pytorch() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("golden/predecessor.json")).unwrap();
    assert_eq!(cases.len(), 4);
    for case in &cases {
        let numbers = |value: &Value| -> Vec<f64> {
            value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
        };
        let rows =
            |key: &str| -> Vec<Vec<f64>> { case[key].as_array().unwrap().iter().map(numbers).collect() };
        let (features, successors, rewards) =
            (rows("features"), rows("successors"), numbers(&case["rewards"]));
        let context: Vec<Transition<'_>> = (0..rewards.len())
            .map(|i| Transition { features: &features[i], successor: &successors[i], reward: rewards[i] })
            .collect();
        let shape = PredecessorShape {
            feature_dim: 2,
            context_len: rewards.len(),
            num_layers: 3,
            tied: case["tied"].as_bool().unwrap(),
            activation: serde_json::from_value(case["activation"].clone()).unwrap(),
            mask: PredecessorMask::Full,
        };
        let (params, query) = (numbers(&case["params"]), numbers(&case["query"]));
        for by_columns in [false, true] {
            let found = value_and_gradient(&shape, &params, GAMMA, &context, &query, by_columns);
            let expected = [
                vec![case["value"].as_f64().unwrap()],
                numbers(&case["by_params"]),
                numbers(&case["by_query"]),
            ];
            let all = [vec![found.value], found.by_params, found.by_query];
            for (found, expected) in all.iter().flatten().zip(expected.iter().flatten()) {
                // Three layers: a few hundred roundings of numbers of order 1 to 10.
                assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{found} {expected}");
            }
        }
    }
}

/// The TD(0) block: P's corner 1, Q = α[[-I, I], [0, 0]].
fn td_block(shape: &PredecessorShape, alpha: f64) -> Vec<f64> {
    let (k, d) = (shape.num_rows(), shape.feature_dim);
    let mut pair = vec![0.0; 2 * k * k];
    pair[k * k - 1] = 1.0;
    for i in 0..d {
        pair[k * k + i * k + i] = -alpha;
        pair[k * k + i * k + i + d] = alpha;
    }
    pair.repeat(shape.num_pairs())
}

#[test]
fn the_td_block_is_td() {
    for shape in shapes().into_iter().filter(|s| s.activation == Activation::Linear) {
        let prompt = Prompt::draw(&shape, 5);
        let found = value_and_gradient(
            &shape,
            &td_block(&shape, 0.7),
            GAMMA,
            &prompt.context(),
            &prompt.query,
            false,
        );
        let weights = td_weights(&prompt.context(), GAMMA, 0.7, shape.num_layers);
        let value: f64 = weights.iter().zip(&prompt.query).map(|(w, x)| w * x).sum();
        assert!((found.value - value).abs() < 1e-13, "{shape:?}");
        for (w, slope) in weights.iter().zip(found.by_query) {
            assert!((w - slope).abs() < 1e-13, "{shape:?}");
        }
        let measures =
            PairMeasures::of(&shape, &td_block(&shape, 0.7).iter().map(|x| -x).collect::<Vec<f64>>());
        let d = shape.feature_dim as f64;
        for pair in measures {
            let expected =
                PairMeasures { p_corner: 1.0, p_rest: 0.0, q_left: -0.7 * d, q_right: 0.7 * d, q_rest: 0.0 };
            assert!((pair.q_left - expected.q_left).abs() + (pair.q_right - expected.q_right).abs() < 1e-14);
            assert_eq!((pair.p_corner, pair.p_rest, pair.q_rest), (1.0, 0.0, 0.0));
        }
    }
}

fn trained<E: ictd::predecessor::Arithmetic>(config: &PredecessorConfig, seed: u64) -> PredecessorTrainer<E> {
    let mut trainer = PredecessorTrainer::new(config, seed).unwrap();
    trainer.train(|_| ControlFlow::Continue(())).unwrap();
    trainer
}

/// Sixteen lanes of floats follow one double at a time: what 100 steps of Adam make of rounding.
#[test]
fn single_precision_trains_as_double_does() {
    let standard = PredecessorConfig { mrps: 20, ..PredecessorConfig::standard() };
    let cartpole = Family { num_states: 2, feature_dim: 4, ..Family::of(Kind::Cartpole) };
    let configs = [
        standard.clone(),
        PredecessorConfig { tied: false, num_layers: 2, mask: PredecessorMask::Full, ..standard.clone() },
        PredecessorConfig { activation: Activation::Softmax, ..standard.clone() },
        PredecessorConfig {
            activation: Activation::Softmax,
            mask: PredecessorMask::Full,
            ..standard.clone()
        },
        PredecessorConfig {
            num_layers: 6,
            mask: PredecessorMask::Full,
            loss: PredecessorLoss::MsveTrue,
            ..standard.clone()
        },
        PredecessorConfig { task: cartpole, pays: Pays::Entering, loss: PredecessorLoss::MsveMc, ..standard },
    ];
    for config in configs {
        let (single, double) = (trained::<f32>(&config, 1), trained::<f64>(&config, 1));
        for (a, b) in single.history().iter().zip(double.history()) {
            let pairs = [
                (a.alpha, b.alpha),
                (a.loss, b.loss),
                (a.value_difference, b.value_difference),
                (a.weight_similarity, b.weight_similarity),
                (a.sensitivity_similarity, b.sensitivity_similarity),
                (a.value_error, b.value_error),
                (a.td_value_error, b.td_value_error),
                (a.pairs[0].p_corner, b.pairs[0].p_corner),
                (a.pairs[0].q_left, b.pairs[0].q_left),
            ];
            for (a, b) in pairs {
                assert!((a - b).abs() < 2e-3 * b.abs().max(0.1), "{config:?}: {a} {b}");
            }
        }
        assert_eq!(single.history().len(), 2);
    }
}

/// The sparse mask keeps what it does not train at 0, and shares its initial values with the full one.
#[test]
fn masks_differ_in_what_they_train() {
    let full = PredecessorConfig { mrps: 3, mask: PredecessorMask::Full, ..PredecessorConfig::standard() };
    let sparse = PredecessorConfig { mask: PredecessorMask::Sparse, ..full.clone() };
    let before = PredecessorTrainer::<f32>::new(&full, 4).unwrap();
    let start = PredecessorTrainer::<f32>::new(&sparse, 4).unwrap();
    let after = trained::<f32>(&sparse, 4);
    for (k, is_trained) in sparse.shape().trained().into_iter().enumerate() {
        assert_eq!(start.params()[k], if is_trained { before.params()[k] } else { 0.0 });
        assert_eq!(after.params()[k] != start.params()[k], is_trained, "{k}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let config =
        PredecessorConfig { mrps: 10, activation: Activation::Softmax, ..PredecessorConfig::standard() };
    let [a, b] = [0, 1].map(|_| trained::<f32>(&config, 7));
    assert_eq!((a.params(), a.history()), (b.params(), b.history()));
    assert_ne!(a.params(), trained::<f32>(&config, 8).params());
}

#[test]
fn bad_configurations_are_refused() {
    let standard = PredecessorConfig::standard();
    let cartpole = PredecessorConfig { task: Family::of(Kind::Cartpole), ..standard.clone() };
    let cases: Vec<(&str, PredecessorConfig)> = vec![
        ("n", PredecessorConfig { context_len: 0, ..standard.clone() }),
        ("layers", PredecessorConfig { num_layers: 101, ..standard.clone() }),
        ("mrps", PredecessorConfig { mrps: 0, ..standard.clone() }),
        ("batches", PredecessorConfig { batches: 0, ..standard.clone() }),
        ("batch", PredecessorConfig { batch: 0, ..standard.clone() }),
        ("measure_every", PredecessorConfig { measure_every: 0, ..standard.clone() }),
        ("lr", PredecessorConfig { lr: f64::NAN, ..standard.clone() }),
        ("lr", PredecessorConfig { lr: 0.0, ..standard.clone() }),
        ("weight_decay", PredecessorConfig { weight_decay: -1.0, ..standard.clone() }),
        ("gain", PredecessorConfig { gain: f64::INFINITY, ..standard.clone() }),
        ("pays", PredecessorConfig { pays: Pays::Entering, ..standard.clone() }),
        ("loss", PredecessorConfig { loss: PredecessorLoss::MsveTrue, ..cartpole }),
        (
            "states",
            PredecessorConfig { task: Family { num_states: 2, ..standard.task.clone() }, ..standard.clone() },
        ),
        (
            "gamma",
            PredecessorConfig { task: Family { gamma: 1.0, ..standard.task.clone() }, ..standard.clone() },
        ),
        (
            "memory",
            PredecessorConfig { task: Family { feature_dim: 5000, ..standard.task.clone() }, ..standard },
        ),
    ];
    for (key, config) in cases {
        assert_eq!(config.check().unwrap_err().key, key, "{config:?}");
    }
}
