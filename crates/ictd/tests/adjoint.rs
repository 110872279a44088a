//! The reverse pass against a forward-mode derivative written from the definitions, and against differences.
#![allow(missing_docs)]

use ictd::context::{Context, ContextStatistics, End, Role};
use ictd::kernel::{Attention, KernelName, Normalization, Similarity};
use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::transformer::{
    Adjoint, AdjointError, AttentionParams, ForwardError, Parameters, ParamsGradient, Transformer,
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
