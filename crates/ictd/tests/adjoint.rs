//! The reverse passes against a forward-mode derivative written from the definitions, against differences and each other.
#![allow(missing_docs)]

use ictd::context::{Context, ContextStatistics, End, Role};
use ictd::kernel::{Attention, KernelName, Normalization, Similarity};
use ictd::matrix::Matrix;
use ictd::pretrain::{Columns, Hyper, Mask, ParamsView, PretrainConfig, QueryMix, Shape, reference_gradient};
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, TaskSource as _};
use ictd::transformer::{
    Adjoint, AdjointError, AttentionParams, Block, ForwardError, Parameters, ParamsGradient, Transformer,
    TransformerConfig,
};

const LAYERS: usize = 4;

/// The kernels that have slopes.
const SMOOTH: [KernelName; 5] =
    [KernelName::Softmax, KernelName::Relu, KernelName::Elu1, KernelName::Rbf, KernelName::Linear];

/// Random parameters around `centre` times theta_*, with a feature row; around 0 they are directions.
fn random_params(d: usize, centre: f64, stream: &mut Stream) -> AttentionParams {
    let theta = AttentionParams::theta_star(d);
    let mut v = Matrix::zeros(d + 3, d + 3);
    let row = theta.value_row().iter().map(|x| centre * x + stream.uniform_in(-0.3, 0.3)).collect::<Vec<_>>();
    v.row_mut(d + 2).copy_from_slice(&row);
    let a = Matrix::from_fn(d + 3, d + 3, |i, j| match i.max(j) < d {
        true => centre * theta.score_matrix()[(i, j)] + stream.uniform_in(-0.3, 0.3),
        false => 0.0,
    });
    AttentionParams::new(v, a).unwrap()
}

/// One pair of parameters is that of all layers.
fn transformer(kernel: KernelName, rho: f64, params: Vec<AttentionParams>) -> Transformer {
    let attention = Attention::new(kernel.at(0.8).unwrap(), rho).unwrap();
    let parameters = match <[AttentionParams; 1]>::try_from(params) {
        Ok([tied]) => Parameters::Tied(tied),
        Err(params) => Parameters::PerLayer(params),
    };
    TransformerConfig {
        parameters,
        step_sizes: vec![1.0, 0.5, 0.7, 0.9],
        ..TransformerConfig::theta_star(attention, LAYERS, 0.9)
    }
    .check()
    .unwrap()
}

/// Every layer's parameters moved by `h` times a direction.
fn moved(params: &[AttentionParams], directions: &[AttentionParams], h: f64) -> Vec<AttentionParams> {
    let sum = |a: &Matrix, b: &Matrix| a - &b.map(|x| -h * x);
    let pairs = params.iter().zip(directions);
    pairs
        .map(|(p, x)| {
            let v = sum(p.value_matrix(), x.value_matrix());
            AttentionParams::new(v, sum(p.score_matrix(), x.score_matrix())).unwrap()
        })
        .collect()
}

fn episodes(seed: u64) -> Context {
    let mut stream = Stream::new(seed, Purpose::Prompt, 0);
    let table: Vec<Vec<f64>> = (0..5).map(|_| stream.uniform_vec(3, -1.0, 1.0)).collect();
    let mut builder = Context::builder().query(&table[1]).query(&stream.uniform_vec(3, -1.0, 1.0));
    for (length, end) in [(7, End::Truncated), (5, End::Terminated)] {
        let rows: Vec<&Vec<f64>> = (0..=length).map(|_| &table[stream.below(5) as usize]).collect();
        builder = builder.episode(&rows, &stream.uniform_vec(length, -1.0, 1.0), end);
    }
    builder.build().unwrap()
}

/// The derivative of every column's value after the layers along a direction of the parameters: the product rule through
/// the definitions, column by column.
fn forward_mode(transformer: &Transformer, context: &Context, directions: &[AttentionParams]) -> Vec<f64> {
    let (config, d) = (transformer.config(), context.feature_dim());
    let (kernel, rho) = (config.attention.kernel(), config.attention.diagonal_mix());
    let columns = 0..context.num_columns();
    let sources: Vec<usize> = columns.clone().filter(|&j| context.roles()[j] == Role::Source).collect();
    let x = |j: usize| context.features_of(j);
    let (mut v, mut dv) = (vec![0.0; columns.len()], vec![0.0; columns.len()]);
    for layer in 0..LAYERS {
        let params = transformer.params(layer, d);
        let direction = &directions[layer % directions.len()];
        let similarity = |block: &Matrix, i: usize, j: usize| -> f64 {
            let apart: Vec<f64> = x(i).iter().zip(x(j)).map(|(a, b)| a - b).collect();
            let (left, right) = match kernel.similarity() {
                Similarity::SquaredDistance => (&apart[..], &apart[..]),
                _ => (x(i), x(j)),
            };
            left.iter().zip(block.mul_vec(right)).map(|(l, r)| l * r).sum()
        };
        let message = |row: &[f64], reward: f64, values: &[f64], i: usize| -> f64 {
            let token = x(i).iter().copied().chain([reward, config.gamma * values[i + 1], values[i]]);
            row.iter().zip(token).map(|(p, z)| p * z).sum()
        };
        let g: Vec<f64> =
            sources.iter().map(|&i| message(params.value_row(), context.rewards()[i], &v, i)).collect();
        let dg: Vec<f64> = sources
            .iter()
            .map(|&i| {
                let memory: f64 = [config.gamma * dv[i + 1], dv[i]]
                    .iter()
                    .zip(&params.value_row()[d + 1..])
                    .map(|(z, p)| z * p)
                    .sum();
                memory + message(direction.value_row(), context.rewards()[i], &v, i)
            })
            .collect();
        let (before, dbefore) = (v.clone(), dv.clone());
        for j in columns.clone().filter(|&j| context.roles()[j] != Role::Terminal) {
            let s: Vec<f64> = sources.iter().map(|&i| similarity(&params.score_block(), i, j)).collect();
            let ds: Vec<f64> = sources.iter().map(|&i| similarity(&direction.score_block(), i, j)).collect();
            let mut w = s.clone();
            kernel.weigh(&mut w);
            let dw: Vec<f64> = (0..w.len()).map(|k| kernel.slope(s[k], w[k]).unwrap() * ds[k]).collect();
            let (total, dtotal) = match kernel.normalization() {
                Normalization::ByColumn => (w.iter().sum::<f64>(), dw.iter().sum::<f64>()),
                Normalization::ByCount => (w.len() as f64, 0.0),
            };
            let (mut change, mut dchange) = (0.0, 0.0);
            for (k, &i) in sources.iter().enumerate().filter(|_| total != 0.0) {
                let own = if i == j { rho } else { 0.0 };
                let weight = (1.0 - rho) * w[k] / total + own;
                let dweight = (1.0 - rho) * (dw[k] - w[k] * dtotal / total) / total;
                change += weight * g[k];
                dchange += dweight * g[k] + weight * dg[k];
            }
            v[j] = before[j] + config.step_sizes[layer] * change;
            dv[j] = dbefore[j] + config.step_sizes[layer] * dchange;
        }
    }
    dv
}

/// ⟨gradient, direction⟩ over the entries of V's last row and of B.
fn product(gradient: &ParamsGradient, directions: &[AttentionParams]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let pairs = gradient.value_rows.rows().zip(&gradient.score_blocks).zip(directions);
    pairs.map(|((row, b), x)| dot(row, x.value_row()) + dot(b.as_slice(), x.score_block().as_slice())).sum()
}

fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + a.abs()), "{what}: {a} {b}");
}

/// ⟨J x, y⟩ = ⟨x, Jᵀ y⟩ for every kernel with a slope, tied and per layer, on columns with and without mixing and on
/// states; and J x is what differences of forward passes say.
#[test]
fn the_adjoint_identity_holds() {
    for (k, kernel) in SMOOTH.into_iter().enumerate() {
        let mut stream = Stream::new(11, Purpose::Prompt, k as u64);
        for (pairs, rho, by_state) in
            [(1, 0.0, true), (LAYERS, 0.0, true), (1, 0.3, false), (LAYERS, 0.3, false)]
        {
            let context = episodes(k as u64);
            let statistics = match by_state {
                true => ContextStatistics::per_state(&context),
                false => ContextStatistics::per_column(&context),
            };
            let params: Vec<_> = (0..pairs).map(|_| random_params(3, 1.0, &mut stream)).collect();
            let x: Vec<_> = (0..pairs).map(|_| random_params(3, 0.0, &mut stream)).collect();
            let y = stream.uniform_vec(statistics.num_groups(), -1.0, 1.0);
            let network = transformer(kernel, rho, params.clone());
            let what = format!("{kernel} pairs {pairs} rho {rho}");

            let derivative = forward_mode(&network, &context, &x);
            let mut by_group = vec![0.0; y.len()];
            for (j, value) in derivative.iter().enumerate() {
                statistics.group_of(j).into_iter().for_each(|group| by_group[group] = *value);
            }
            let along: f64 = by_group.iter().zip(&y).map(|(a, b)| a * b).sum();
            let mut pass = Adjoint::default();
            pass.forward(&network, &statistics).unwrap();
            let gradient = pass.backward(&network, &statistics, LAYERS, &y).unwrap();
            // Sums of a few hundred terms of order 1.
            close(along, product(&gradient, &x), 1e-12, &what);

            let at = |h: f64| {
                let network = transformer(kernel, rho, moved(&params, &x, h));
                let mut pass = Adjoint::default();
                pass.forward(&network, &statistics).unwrap();
                pass.values(LAYERS).iter().zip(&y).map(|(a, b)| a * b).sum::<f64>()
            };
            // Central differences: error h² plus rounding/h, both about 1e-10 here.
            close(along, (at(1e-5) - at(-1e-5)) / 2e-5, 1e-7, &what);
        }
    }
}

#[test]
fn what_has_no_derivative_is_refused() {
    let context = episodes(0);
    let statistics = ContextStatistics::per_state(&context);
    let network = transformer(KernelName::Tabular, 0.0, vec![AttentionParams::theta_star(3)]);
    let mut pass = Adjoint::default();
    pass.forward(&network, &statistics).unwrap();
    let direction = vec![1.0; statistics.num_groups()];
    assert_eq!(pass.backward(&network, &statistics, 1, &direction), Err(AdjointError::NoSlope));
    let mut a = Matrix::zeros(6, 6);
    a[(5, 0)] = 1.0;
    let memory = AttentionParams::new(Matrix::zeros(6, 6), a).unwrap();
    let network = transformer(KernelName::Softmax, 0.0, vec![memory]);
    assert_eq!(pass.forward(&network, &statistics), Err(AdjointError::NeedsTokens));
    let network = transformer(KernelName::Softmax, 0.0, vec![AttentionParams::theta_star(2)]);
    let expected = ForwardError::FeatureDim { expected: 2, found: 3 };
    assert_eq!(pass.forward(&network, &statistics), Err(expected.into()));
}

/// The kernels that can be trained.
const TRAINED: [KernelName; 5] =
    [KernelName::Softmax, KernelName::Linear, KernelName::Relu, KernelName::Elu1, KernelName::Rbf];

/// Every mask, construction, tying and choice of columns.
fn shapes() -> impl Iterator<Item = Shape> {
    let base = Shape { feature_dim: 3, context_len: 5, ..PretrainConfig::paper().shape() };
    let kinds = Mask::ALL.into_iter().flat_map(|mask| Block::ALL.map(|block| (mask, block)));
    let kinds = kinds.flat_map(|kind| [true, false].map(|tied| (kind, tied)));
    kinds.flat_map(move |((mask, block), tied)| {
        (0..8).map(move |k| {
            let (last_state, separate_query, last_reward_hidden) = (k & 1 == 0, k & 2 != 0, k & 4 != 0);
            let columns = Columns { last_state, separate_query, last_reward_hidden };
            Shape { mask, block, tied, columns, ..base }
        })
    })
}

/// A random prompt and parameters within the mask.
struct Prompt {
    shape: Shape,
    features: Vec<Vec<f64>>,
    rewards: Vec<f64>,
    query: Vec<f64>,
    params: Vec<f64>,
}

impl Prompt {
    fn new(shape: Shape) -> Self {
        let mut stream = Stream::new(11, Purpose::Prompt, 0);
        let mut row = || stream.uniform_vec(shape.feature_dim, -1.0, 1.0);
        let (features, query) = ((0..=shape.context_len).map(|_| row()).collect(), row());
        let rewards = stream.uniform_vec(shape.context_len + 1, -1.0, 1.0);
        let mut entry = |trained: &bool| if *trained { stream.uniform_in(-0.8, 0.8) } else { 0.0 };
        let params = shape.trained().iter().map(&mut entry).collect();
        Self { shape, features, rewards, query, params }
    }

    /// The prediction of the training pass and its gradient, at other parameters.
    fn run(&self, hyper: Hyper, kernel: KernelName, params: &[f64]) -> (f64, Vec<f64>) {
        let trajectory: Vec<_> =
            self.features.iter().map(Vec::as_slice).zip(self.rewards.iter().copied()).collect();
        let query = self.shape.columns.separate_query.then_some(&self.query[..]);
        reference_gradient(&self.shape, hyper, kernel, params, &trajectory, query).unwrap()
    }
}

fn mixed(diagonal_mix: f64, query_mix: QueryMix) -> Hyper {
    Hyper { gamma: 0.9, temperature: 1.2, diagonal_mix, query_mix }
}

/// The training pass predicts what the Transformer outputs, whose contexts have the paper's columns; the others are in
/// the golden values of `golden_values.rs`.
#[test]
fn predictions_are_those_of_the_transformer() {
    for shape in shapes().filter(|s| s.columns.last_state && !s.columns.last_reward_hidden) {
        for (rho, kernel) in [0.0, 0.4].into_iter().flat_map(|rho| TRAINED.map(|kernel| (rho, kernel))) {
            let prompt = Prompt::new(shape);
            let out = prompt.run(mixed(rho, QueryMix::Mixed), kernel, &prompt.params).0;
            let attention = Attention::new(kernel.at(1.2).unwrap(), rho).unwrap();
            let transformer = TransformerConfig {
                block: shape.block,
                parameters: ParamsView::new(&shape, &prompt.params).parameters().unwrap(),
                ..TransformerConfig::theta_star(attention, 3, 0.9)
            };
            let mut context =
                Context::builder().episode(&prompt.features, &prompt.rewards[..5], End::Truncated);
            if shape.columns.separate_query {
                context = context.query(&prompt.query);
            }
            let values = transformer.check().unwrap().values(&context.build().unwrap()).unwrap();
            let expected = values.output();
            // Three layers on numbers of order 1.
            assert!((out - expected).abs() < 1e-13, "{shape:?} {kernel}: {out} {expected}");
        }
    }
}

/// Central differences with step 1e-5: truncation about 1e-10 of third derivatives of order 10,
/// rounding about 1e-11; 1e-7 of the largest gradient is the bound the software promises. Softmax is tried with every mixing, every other
/// kernel with one of the four that takes turns over the shapes. V's row d+1 has no influence: its gradient
/// is exactly 0.
#[test]
fn gradients_are_finite_differences_for_every_kernel_mask_block_tying_and_rho() {
    let mixings = [mixed(0.0, QueryMix::Mixed), mixed(0.7, QueryMix::Mixed)];
    let mixings = mixings.into_iter().chain([mixed(0.7, QueryMix::Scaled), mixed(0.7, QueryMix::Unmixed)]);
    for (turn, shape) in shapes().enumerate() {
        for (k, hyper) in mixings.clone().enumerate() {
            for kernel in [TRAINED[0], TRAINED[1 + (turn + k) % 4]] {
                let prompt = Prompt::new(shape);
                let gradient = prompt.run(hyper, kernel, &prompt.params).1;
                let at = |k: usize, by: f64| {
                    let mut moved = prompt.params.clone();
                    moved[k] += by;
                    prompt.run(hyper, kernel, &moved).0
                };
                let difference = |k: usize| (at(k, 1e-5) - at(k, -1e-5)) / 2e-5;
                let trained: Vec<usize> = (0..gradient.len()).filter(|&k| shape.trained()[k]).collect();
                let largest = trained.iter().map(|&k| gradient[k].abs()).fold(0.0, f64::max);
                assert!(largest > 1e-3, "{shape:?} {kernel} {hyper:?}");
                for k in trained {
                    let gap = (gradient[k] - difference(k)).abs();
                    assert!(gap <= 1e-7 * largest, "{shape:?} {kernel} {hyper:?} parameter {k}: {gap}");
                }
                let row = shape.value_index(0, shape.feature_dim + 1, 0);
                assert!(gradient[row..row + shape.num_rows()].iter().all(|&g| g == 0.0));
            }
        }
    }
}

/// The training pass on one window is the adjoint on its columns, prediction and gradient.
#[test]
fn the_training_pass_has_this_gradient() {
    let task = Family::paper().draw(&mut Stream::new(4, Purpose::Task, 0)).unwrap();
    let (d, n) = (4, 12);
    let settings = [(true, 0.0), (false, 0.0), (true, 0.3), (false, 0.3)];
    for (kernel, (tied, rho)) in TRAINED.into_iter().flat_map(|k| settings.map(|s| (k, s))) {
        let mut stream = Stream::new(4, Purpose::Trajectory, 0);
        let states = task.mrp().sample_states(n, &mut stream);
        let pairs = if tied { 1 } else { LAYERS };
        let params: Vec<_> = (0..pairs).map(|_| random_params(d, 1.0, &mut stream)).collect();
        let config = transformer(kernel, rho, params.clone()).config().clone();
        let network = TransformerConfig { step_sizes: vec![1.0], ..config }.check().unwrap();
        let statistics = ContextStatistics::per_column(&task.context_of(&states, &[]));
        let mut pass = Adjoint::default();
        pass.forward(&network, &statistics).unwrap();
        let query = statistics.group_of(n).unwrap();
        let mut direction = vec![0.0; statistics.num_groups()];
        direction[query] = 1.0;
        let gradient = pass.backward(&network, &statistics, LAYERS, &direction).unwrap();

        let paper = PretrainConfig::paper().shape();
        let shape = Shape { feature_dim: d, context_len: n, num_layers: LAYERS, tied, ..paper };
        let rows: Vec<_> =
            states.iter().map(|&s| (task.features().row(s), task.mrp().rewards()[s])).collect();
        let flat: Vec<f64> = params
            .iter()
            .flat_map(|p| [p.value_matrix().as_slice(), p.score_matrix().as_slice()].concat())
            .collect();
        let hyper = Hyper { temperature: 0.8, ..mixed(rho, QueryMix::Mixed) };
        let (out, full) = reference_gradient(&shape, hyper, kernel, &flat, &rows, None).unwrap();
        // Four layers on a dozen columns of order 1; gradients are sums of as many of them again.
        close(out, pass.values(LAYERS)[query], 1e-13, "prediction");
        for pair in 0..pairs {
            let (v, a) = ParamsView::new(&shape, &full).matrices(pair);
            let what = format!("{kernel} tied {tied} rho {rho}");
            for (j, g) in gradient.value_rows.row(pair).iter().enumerate() {
                close(v[(d + 2, j)], *g, 1e-12, &format!("{what} V {j}"));
            }
            let block = &gradient.score_blocks[pair];
            for (i, j) in (0..d * d).map(|k| (k / d, k % d)) {
                close(a[(i, j)], block[(i, j)], 1e-12, &format!("{what} A {i} {j}"));
            }
        }
    }
}
