//! The reverse pass against a forward-mode derivative written from the definitions, against differences, and as the
//! reference of the training pass.

use super::*;
use crate::context::{Context, End, Role, Tally};
use crate::kernel::{Attention, KernelName, Normalization, Similarity};
use crate::pretrain::{Columns, GeneralPlain, Hyper, Mask, QueryMix, Shape, Windows};
use crate::random::{Purpose, Stream};
use crate::task::{Boyan, FiniteTask};
use crate::transformer::{AttentionParams, Block, Parameters, TransformerConfig};

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

fn transformer(kernel: KernelName, rho: f64, params: Vec<AttentionParams>) -> Transformer {
    let attention = Attention::new(kernel.at(0.8).unwrap(), rho).unwrap();
    TransformerConfig {
        parameters: Parameters::PerLayer(params),
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
            v[j] = before[j] + transformer.step_size(layer) * change;
            dv[j] = dbefore[j] + transformer.step_size(layer) * dchange;
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

/// The training pass on one window is the adjoint on its columns, prediction and gradient, and satisfies the same identity.
#[test]
fn the_training_pass_has_this_gradient() {
    let task = Boyan::paper().generate(&mut Stream::new(4, Purpose::Task, 0)).unwrap();
    let (d, n, gamma) = (4, 12, 0.9);
    for (tied, rho) in [(true, 0.0), (false, 0.0), (true, 0.3), (false, 0.3)] {
        let mut stream = Stream::new(4, Purpose::Trajectory, 0);
        let states = task.mrp().sample_states(n, &mut stream);
        let pairs = if tied { 1 } else { LAYERS };
        let params: Vec<_> = (0..pairs).map(|_| random_params(d, 1.0, &mut stream)).collect();
        let x: Vec<_> = (0..pairs).map(|_| random_params(d, 0.0, &mut stream)).collect();
        let mut config = transformer(KernelName::Softmax, rho, params.clone()).config().clone();
        config.step_sizes = vec![1.0];
        let network = config.check().unwrap();
        let context = task.context_of(&states, &[]);
        let statistics = ContextStatistics::per_column(&context);
        let mut pass = Adjoint::default();
        pass.forward(&network, &statistics).unwrap();
        let query = statistics.group_of(n).unwrap();
        let mut direction = vec![0.0; statistics.num_groups()];
        direction[query] = 1.0;
        let gradient = pass.backward(&network, &statistics, LAYERS, &direction).unwrap();

        let shape = Shape {
            feature_dim: d,
            context_len: n,
            num_layers: LAYERS,
            tied,
            columns: Columns::PAPER,
            block: Block::TemporalShift,
            mask: Mask::Full,
        };
        let mut windows = Windows::<f64>::default();
        let rows = states.iter().map(|&s| (task.features().row(s), task.mrp().rewards()[s]));
        windows.fill(d, rows, std::iter::empty());
        let flat: Vec<f64> = params
            .iter()
            .flat_map(|p| [p.value_matrix().as_slice(), p.score_matrix().as_slice()].concat())
            .collect();
        let hyper = Hyper { gamma, temperature: 0.8, diagonal_mix: rho, query_mix: QueryMix::Mixed };
        let mut general = GeneralPlain::new(shape);
        let mut out = [0.0];
        general.forward(hyper, &flat, &windows, 0, &mut out);
        close(out[0], pass.values(LAYERS)[query], 1e-13, "prediction");
        let mut full = vec![0.0; flat.len()];
        general.backward(hyper, &flat, &[1.0], &mut full);
        for pair in 0..pairs {
            let (v, a) = shape.matrices(&full, pair);
            for (j, g) in gradient.value_rows.row(pair).iter().enumerate() {
                close(v[(d + 2, j)], *g, 1e-12, &format!("tied {tied} rho {rho} V {j}"));
            }
            let block = &gradient.score_blocks[pair];
            for (i, j) in (0..d * d).map(|k| (k / d, k % d)) {
                close(a[(i, j)], block[(i, j)], 1e-12, &format!("tied {tied} rho {rho} A {i} {j}"));
            }
        }
        let along = forward_mode(&network, &context, &x)[n];
        close(along, product(&gradient, &x), 1e-12, "identity");
    }
}

fn boyan(index: u64) -> FiniteTask {
    Boyan::paper().generate(&mut Stream::new(7, Purpose::Task, index)).unwrap()
}

/// The prompt that follows, from the counts of the one before, and shallower networks out of a deep one: the same values
/// and gradients as from a context written out.
#[test]
fn shifted_prompts_and_shallow_networks_need_no_new_pass() {
    let task = boyan(0);
    let params = vec![random_params(4, 1.0, &mut Stream::new(7, Purpose::Init, 0))];
    let mut network = transformer(KernelName::Softmax, 0.0, params).config().clone();
    network.step_sizes = vec![1.0];
    let deep = network.clone().check().unwrap();
    let shallow = TransformerConfig { num_layers: 2, ..network }.check().unwrap();
    let mut states = task.mrp().sample_states(12, &mut Stream::new(7, Purpose::Trajectory, 0));
    let (mut before, mut shifted) = (Tally::default(), Tally::default());
    let mut statistics = ContextStatistics::default();
    before.load(64, &states);
    let absent = (0..64).find(|s| !states.contains(s)).unwrap();
    for next in [states[3], absent] {
        shifted.load_shifted(&before, (states[0], states[1]), (states[12], next));
        shifted.fill(&task, &[next], &mut statistics);
        let fresh = ContextStatistics::per_state(&task.context_of(&[&states[1..], &[next]].concat(), &[]));
        let run = |network: &Transformer, statistics: &ContextStatistics, group: usize| {
            let mut pass = Adjoint::default();
            pass.forward(network, statistics).unwrap();
            let mut direction = vec![0.0; statistics.num_groups()];
            direction[group] = 1.0;
            (pass.values(2)[group], pass.backward(network, statistics, 2, &direction).unwrap())
        };
        let (value, gradient) = run(&deep, &statistics, statistics.group_of(next).unwrap());
        let (expected, reference) = run(&shallow, &fresh, fresh.group_of(12).unwrap());
        close(value, expected, 1e-13, "value");
        let numbers = |g: &ParamsGradient| [g.value_rows.as_slice(), g.score_blocks[0].as_slice()].concat();
        for (a, b) in numbers(&gradient).into_iter().zip(numbers(&reference)) {
            close(a, b, 1e-12, "gradient");
        }
    }
    // A state that does not occur is a query of its own.
    states.truncate(13);
    before.fill(&task, &[states[12], absent], &mut statistics);
    let mut pass = Adjoint::default();
    pass.forward(&deep, &statistics).unwrap();
    let expected = deep.values(&task.context_of(&states, &[absent])).unwrap().output();
    close(pass.values(LAYERS)[statistics.group_of(absent).unwrap()], expected, 1e-13, "query");
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
