//! Every path to the same number gives the same number: token matrices, columns, states, direct TD.
#![allow(missing_docs)]

mod common;

use common::{attention, distinct, episodes, full_params, gap, sparse_params};
use ictd::context::Context;
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::td::{Estimator, WeightedSoftmaxTd};
use ictd::transformer::{
    AttentionParams, Block, Evaluator, ForwardError, LayerValues, Parameters, ParamsError, Path, Transformer,
    TransformerConfig, temporal_shift,
};
use proptest::prelude::*;

/// Ten layers on values of order 10 with weights of order 1: rounding errors of 1e-15 per layer grow
/// at most by 2 + γ each, far less in fact; 1e-12 is the bound the software promises.
const TOLERANCE: f64 = 1e-12;

fn histories(values: &LayerValues) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let layers = 0..=values.num_layers();
    (layers.clone().map(|l| values.values(l)).collect(), layers.map(|l| values.targets(l)).collect())
}

/// Asserts that every exact path gives the values and targets of the token matrices.
fn assert_paths_agree(transformer: &Transformer, context: &Context, paths: &[Path]) {
    let tokens = transformer.tokens(context).unwrap();
    let plain_values: Vec<Vec<f64>> = tokens.iter().map(|z| z.values().to_vec()).collect();
    let plain_targets: Vec<Vec<f64>> = tokens.iter().map(|z| z.targets().to_vec()).collect();
    let scale = plain_values.iter().flatten().fold(1.0f64, |m, v| m.max(v.abs()));
    for &path in paths {
        let fast = Evaluator::default().evaluate_along(path, transformer, context).unwrap();
        let (values, targets) = histories(&fast);
        assert!(
            gap(&values, &plain_values) <= TOLERANCE * scale,
            "{path:?} values: {}",
            gap(&values, &plain_values)
        );
        assert!(gap(&targets, &plain_targets) <= TOLERANCE * scale, "{path:?} targets");
    }
}

#[test]
fn theta_star_is_weighted_softmax_td_for_every_kernel_and_block() {
    for kernel in KernelName::ALL {
        for (seed, context) in [episodes(1, 3, 4, &[7, 5, 9]), distinct(2, 8, 20)].into_iter().enumerate() {
            for rho in [0.0, 0.3] {
                let attention = attention(kernel, 1.2, rho);
                let step_sizes = vec![1.0, 0.5, 0.7, 1.0, 0.2, 1.0, 1.0, 0.9, 1.0, 0.3];
                let td = WeightedSoftmaxTd {
                    attention: attention.clone(),
                    gamma: 0.9,
                    step_sizes: step_sizes.clone(),
                };
                let direct = td.run(&context).unwrap();
                for block in Block::ALL {
                    let mut config = TransformerConfig::theta_star(attention.clone(), 10, 0.9);
                    (config.block, config.step_sizes) = (block, step_sizes.clone());
                    let transformer = config.check().unwrap();
                    let paths: &[Path] =
                        if rho == 0.0 { &[Path::Columns, Path::States] } else { &[Path::Columns] };
                    assert_paths_agree(&transformer, &context, paths);
                    let values = histories(&transformer.values(&context).unwrap()).0;
                    assert!(
                        gap(&values, &direct) <= TOLERANCE,
                        "{kernel} {block} {seed}: {}",
                        gap(&values, &direct)
                    );
                }
            }
        }
    }
}

/// Lemma 1 beyond theta_*: the blocks agree for any V with only a last row and any feature block.
#[test]
fn blocks_agree_whenever_only_the_current_memory_is_written() {
    for seed in 0..10 {
        let context = episodes(seed, 3, 5, &[6, 4]);
        let params = sparse_params(&mut Stream::new(seed, Purpose::Prompt, 1), 3);
        let run = |block| {
            let mut config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, 0.0), 4, 0.9);
            (config.block, config.parameters) = (block, Parameters::Tied(params.clone()));
            config.check().unwrap().tokens(&context).unwrap()
        };
        for (dual, tsm) in run(Block::DualHead).iter().zip(run(Block::TemporalShift)) {
            for (a, b) in dual.matrix().as_slice().iter().zip(tsm.matrix().as_slice()) {
                assert!((a - b).abs() <= TOLERANCE);
            }
        }
    }
}

#[test]
fn full_parameters_take_the_token_path() {
    let context = episodes(3, 2, 3, &[20]);
    let params = full_params(&mut Stream::new(3, Purpose::Prompt, 1), 2);
    let mut config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, 0.0), 3, 0.9);
    config.parameters = Parameters::Tied(params);
    let values = config.check().unwrap().values(&context).unwrap();
    assert_eq!(values.path(), Path::Tokens);
}

#[test]
fn repeated_states_take_the_state_path_and_mixing_does_not() {
    let context = episodes(3, 2, 3, &[40]);
    let path = |rho| {
        let config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, rho), 3, 0.9);
        config.check().unwrap().values(&context).unwrap().path()
    };
    assert_eq!((path(0.0), path(0.1)), (Path::States, Path::Columns));
}

#[test]
fn terminal_values_are_zero_in_every_layer() {
    let context = episodes(5, 3, 4, &[5, 6]);
    let config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, 0.0), 8, 0.9);
    let transformer = config.check().unwrap();
    let terminal = 12; // columns 0..=5 are the first episode, 6..=12 the second, which terminates
    assert_eq!(context.roles()[terminal], ictd::context::Role::Terminal);
    let values = transformer.values(&context).unwrap();
    for (layer, z) in transformer.tokens(&context).unwrap().iter().enumerate() {
        assert_eq!((z.values()[terminal], values.value(layer, terminal)), (0.0, 0.0));
        assert_eq!((z.targets()[terminal - 1], values.target(layer, terminal - 1)), (0.0, 0.0));
    }
}

#[test]
fn evaluator_can_be_reused_for_contexts_of_any_size() {
    let mut evaluator = Evaluator::default();
    let config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, 0.0), 5, 0.9);
    let transformer = config.check().unwrap();
    for (seed, n) in [(1, 30), (2, 3), (3, 17), (4, 1)] {
        for context in [distinct(seed, 3, n), episodes(seed, 3, 4, &[n, 2])] {
            let fresh = transformer.values(&context).unwrap().output();
            assert_eq!(evaluator.output(&transformer, &context).unwrap(), fresh);
            for path in [Path::States, Path::Columns] {
                let fresh = Evaluator::default().evaluate_along(path, &transformer, &context);
                assert_eq!(evaluator.evaluate_along(path, &transformer, &context), fresh);
            }
        }
    }
}

/// The module equals the matrices of the paper: U = I - e e', W = γ e_{d+2} e_{d+3}', Z ↦ UZ + WZΠ.
#[test]
fn temporal_shift_is_u_z_plus_w_z_pi() {
    let (d, n, gamma) = (2, 3, 0.9);
    let context = distinct(1, d, n);
    let mut config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, 0.0), 2, gamma);
    config.parameters = Parameters::Tied(full_params(&mut Stream::new(1, Purpose::Prompt, 1), d));
    // Two layers fill every row.
    let tokens = config.check().unwrap().tokens(&context).unwrap().remove(2);
    let z = tokens.matrix().clone();
    let mut u = Matrix::identity(d + 3);
    u[(d + 1, d + 1)] = 0.0;
    let mut w = Matrix::zeros(d + 3, d + 3);
    w[(d + 1, d + 2)] = gamma;
    let pi = Matrix::from_fn(n + 1, n + 1, |i, j| f64::from(u8::from(i == j + 1)));
    let (uz, wzpi) = (u.matmul(&z), w.matmul(&z).matmul(&pi));
    let literal = Matrix::from_fn(d + 3, n + 1, |i, j| uz[(i, j)] + wzpi[(i, j)]);
    // The last layer has shifted already: a shift with another γ in between shows that it is done anew.
    let half = temporal_shift(tokens.clone(), 0.5, context.roles());
    assert_ne!(half.matrix(), &literal);
    assert_eq!(temporal_shift(half, gamma, context.roles()).matrix(), &literal);
}

#[test]
fn names_of_constructions_round_trip() {
    for block in Block::ALL {
        assert_eq!(block.as_str().parse(), Ok(block));
    }
    assert!("both".parse::<Block>().is_err());
}

#[test]
fn divergence_and_overflow_are_errors_not_nan() {
    let context = distinct(1, 3, 10);
    let mut config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, 0.0), 2000, 0.9);
    config.step_sizes = vec![50.0];
    let diverging = config.check().unwrap();
    assert!(matches!(diverging.values(&context), Err(ForwardError::Diverged { .. })));
    assert!(matches!(diverging.tokens(&context), Err(ForwardError::Diverged { .. })));

    let huge = Context::builder()
        .episode(&[[1e200], [-1e200], [1e200]], &[1.0, 1.0], ictd::context::End::Truncated)
        .build()
        .unwrap();
    for kernel in [KernelName::Softmax, KernelName::Relu, KernelName::Elu1, KernelName::Rbf] {
        let config = TransformerConfig::theta_star(attention(kernel, 1.0, 0.0), 1, 0.9);
        let transformer = config.check().unwrap();
        assert!(matches!(transformer.values(&huge), Err(ForwardError::Attention(_))), "{kernel}");
        assert!(matches!(transformer.tokens(&huge), Err(ForwardError::Attention(_))), "{kernel}");
    }
}

#[test]
fn zero_layers_return_the_prompt() {
    for parameters in [Parameters::ThetaStar, Parameters::PerLayer(Vec::new())] {
        let mut config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, 0.0), 0, 0.9);
        config.parameters = parameters;
        let transformer = config.check().unwrap();
        let context = distinct(1, 3, 5);
        assert_eq!(transformer.values(&context).unwrap().output(), 0.0);
        assert_eq!(transformer.tokens(&context).unwrap(), [ictd::prompt::TokenMatrix::prompt(&context)]);
    }
}

#[test]
fn parameters_of_another_dimension_are_refused() {
    let mut config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, 0.0), 1, 0.9);
    config.parameters = Parameters::Tied(ictd::transformer::AttentionParams::theta_star(4));
    let error = config.check().unwrap().values(&distinct(1, 3, 5)).unwrap_err();
    assert_eq!(error, ForwardError::FeatureDim { expected: 4, found: 3 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Random shapes, parameters tied or per layer, any kernel: the fast paths equal the token path.
    #[test]
    fn fast_paths_equal_the_token_path(
        seed in 0u64..1_000_000,
        d in 1usize..5,
        num_states in 1u32..8,
        lengths in prop::collection::vec(1usize..12, 1..4),
        kernel in 0usize..6,
        per_layer: bool,
        dual: bool,
    ) {
        let context = episodes(seed, d, num_states, &lengths);
        let mut stream = Stream::new(seed, Purpose::Prompt, 1);
        let mut config = TransformerConfig::theta_star(attention(KernelName::ALL[kernel], 0.8, 0.0), 3, 0.7);
        config.block = if dual { Block::DualHead } else { Block::TemporalShift };
        config.parameters = if per_layer {
            Parameters::PerLayer((0..3).map(|_| sparse_params(&mut stream, d)).collect())
        } else {
            Parameters::Tied(sparse_params(&mut stream, d))
        };
        assert_paths_agree(&config.check().unwrap(), &context, &[Path::Columns, Path::States]);
    }
}

#[test]
fn theta_star_is_that_of_the_paper() {
    let theta = AttentionParams::theta_star(2);
    assert_eq!(theta.value_row(), [0.0, 0.0, 1.0, 1.0, -1.0]);
    assert_eq!(theta.score_block(), Matrix::identity(2));
    assert!(!theta.overwrites_inputs() && theta.scores_features_only() && !theta.scores_memory());
}

#[test]
fn structure_is_seen() {
    let theta = AttentionParams::theta_star(2);
    let with_score = |i: usize, j: usize| {
        let mut a = theta.score_matrix().clone();
        a[(i, j)] = 0.5;
        AttentionParams::new(theta.value_matrix().clone(), a).unwrap()
    };
    let reward = with_score(0, 2);
    assert!(!reward.scores_features_only() && !reward.scores_memory());
    let memory = with_score(4, 1);
    assert!(!memory.scores_features_only() && memory.scores_memory());
    let mut v = theta.value_matrix().clone();
    v[(2, 0)] = 1.0;
    assert!(AttentionParams::new(v, theta.score_matrix().clone()).unwrap().overwrites_inputs());
}

#[test]
fn bad_shapes_and_entries_are_refused() {
    let square = Matrix::zeros(5, 5);
    assert!(matches!(
        AttentionParams::new(square.clone(), Matrix::zeros(5, 4)),
        Err(ParamsError::Shape { name: "A", rows: 5, cols: 4 })
    ));
    assert!(matches!(
        AttentionParams::new(Matrix::zeros(3, 3), Matrix::zeros(3, 3)),
        Err(ParamsError::Shape { name: "V", .. })
    ));
    let mut nan = square.clone();
    nan[(1, 2)] = f64::NAN;
    assert!(matches!(
        AttentionParams::new(nan, square),
        Err(ParamsError::NotFinite { name: "V", row: 1, col: 2, .. })
    ));
}
