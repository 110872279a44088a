//! Values that must not change: an independent implementation's, and the random streams'.
#![allow(missing_docs)]

use ictd::context::{Context, End};
use ictd::kernel::{Attention, KernelName};
use ictd::matrix::Matrix;
use ictd::pretrain::{Columns, Hyper, Mask, QueryMix, Shape, reference_gradient};
use ictd::random::{Purpose, Stream};
use ictd::task::{CartPole, Family, Kind, TaskSource as _};
use ictd::transformer::{AttentionParams, Parameters, TransformerConfig};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Matrix {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(numbers).collect();
    Matrix::from_rows(&rows).unwrap()
}

/// Origin: golden/forward.py, plain Python written from the definitions alone. 24 cases: every kernel,
/// both blocks, theta_* and full random (V, A).
#[test]
fn token_matrices_are_those_of_an_independent_implementation() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("golden/forward.json")).unwrap();
    assert_eq!(cases.len(), 24);
    for case in &cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let number = |key: &str| case[key].as_f64().unwrap();
        let features: Vec<Vec<f64>> = case["features"].as_array().unwrap().iter().map(numbers).collect();
        let context = Context::builder()
            .episode(&features, &numbers(&case["rewards"]), End::Truncated)
            .build()
            .unwrap();
        let kernel: KernelName = text("kernel").parse().unwrap();
        let expected: Vec<Matrix> = case["Z"].as_array().unwrap().iter().map(matrix).collect();
        let config = TransformerConfig {
            block: text("block").parse().unwrap(),
            attention: Attention::new(kernel.at(number("temperature")).unwrap(), number("diagonal_mix"))
                .unwrap(),
            parameters: Parameters::Tied(
                AttentionParams::new(matrix(&case["V"]), matrix(&case["A"])).unwrap(),
            ),
            num_layers: expected.len() - 1,
            gamma: number("gamma"),
            step_sizes: vec![number("step_size")],
        };
        let transformer = config.check().unwrap();
        for (layer, (found, expected)) in
            transformer.tokens(&context).unwrap().iter().zip(&expected).enumerate()
        {
            for (a, b) in found.matrix().as_slice().iter().zip(expected.as_slice()) {
                // Four layers on numbers of order 1: a few dozen roundings.
                assert!((a - b).abs() < 1e-13, "{} {} layer {layer}: {a} {b}", text("kernel"), text("block"));
            }
        }
    }
}

/// Origin: this implementation at its first release. A change here changes every published number:
/// say "value-breaking" in the changelog and rerun the figures.
#[test]
fn tasks_of_a_seed_do_not_change() {
    let mut stream = Stream::new(7, Purpose::Task, 3);
    let boyan = Family::paper().draw(&mut stream).unwrap();
    assert_eq!(boyan.features()[(0, 0)], 0.5703263514802679);
    assert_eq!(boyan.mrp().rewards()[63], 0.05161860898067561);
    let mut stream = Stream::new(7, Purpose::Task, 4);
    let task = Family::of(Kind::Figure1).draw(&mut stream).unwrap();
    assert_eq!((task.mrp().num_states(), task.values()[0]), (15, 0.7209911966317017));
    let cart =
        CartPole::generate(&Family::of(Kind::Cartpole), &mut Stream::new(7, Purpose::Task, 5)).unwrap();
    let run = cart.rollout(100, &mut Stream::new(7, Purpose::Trajectory, 5));
    assert_eq!(
        run[100],
        [0.016878903585969204, -0.4940146463076549, -0.09254923634963988, 0.06508712430158894]
    );
}

/// Origin: golden/gradient.py, JAX's automatic differentiation in float64. 64 cases: every mask, both
/// blocks, tied and per layer, two mixings, the last state as query and a query of its own. 96 more: every choice of
/// columns with every treatment of the query's column, for the masks and blocks that read them differently. 144 more: linear,
/// ReLU and ELU + 1 attention, where columns of ReLU weights that are all 0 occur. 128 more: attention by distance, with every mask.
#[test]
fn gradients_are_those_of_automatic_differentiation() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("golden/gradient.json")).unwrap();
    assert_eq!(cases.len(), 432);
    let (d, n, layers) = (2, 4, 3);
    for case in &cases {
        let flag = |key: &str| case[key].as_bool().unwrap();
        let mask = match case["mask"].as_str().unwrap() {
            "full" => Mask::Full,
            "relaxed" => Mask::Relaxed,
            "none" => Mask::None,
            _ => Mask::Looped,
        };
        let shape = Shape {
            feature_dim: d,
            context_len: n,
            num_layers: layers,
            tied: flag("tied"),
            columns: Columns {
                last_state: flag("last_state"),
                separate_query: flag("separate"),
                last_reward_hidden: flag("hidden"),
            },
            block: case["block"].as_str().unwrap().parse().unwrap(),
            mask,
        };
        let rows: Vec<Vec<f64>> = case["features"].as_array().unwrap().iter().map(numbers).collect();
        let rewards: Vec<f64> = numbers(&case["rewards"]).into_iter().chain([0.0]).collect();
        let (trajectory, query) = rows.split_at(rows.len() - usize::from(flag("separate")));
        let positions: Vec<(&[f64], f64)> = trajectory.iter().map(Vec::as_slice).zip(rewards).collect();
        let (params, expected) = (numbers(&case["params"]), numbers(&case["gradient"]));
        let query_mix: QueryMix = serde_json::from_value(case["query_mix"].clone()).unwrap();
        let rho = case["rho"].as_f64().unwrap();
        let hyper = Hyper { gamma: 0.9, temperature: 1.2, diagonal_mix: rho, query_mix };
        let kernel = case["kernel"].as_str().unwrap().parse().unwrap();
        let query = query.first().map(Vec::as_slice);
        let (found, gradient) =
            reference_gradient(&shape, hyper, kernel, &params, &positions, query).unwrap();
        // Three layers on numbers of order 1, in both implementations.
        assert!((found - case["prediction"].as_f64().unwrap()).abs() < 1e-13, "{shape:?} {kernel}");
        let largest = expected.iter().fold(0f64, |m, g| m.max(g.abs()));
        for k in (0..params.len()).filter(|&k| shape.trained()[k]) {
            assert!((gradient[k] - expected[k]).abs() <= 1e-12 * (1.0 + largest), "{shape:?} parameter {k}");
        }
    }
}
