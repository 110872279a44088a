//! Derivatives of constructions: against differences and against JAX.
#![allow(missing_docs)]

mod common;

use common::distinct;
use ictd::construction::{Algorithm, Construction, ConstructionConfig, ConstructionError};
use ictd::context::{Context, End};
use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::transformer::ForwardError;
use serde_json::Value;

const D: usize = 3;
const N: usize = 40;
const LAYERS: usize = 12;
/// Half the distance of a difference: its own error is about the square, and rounding over it 1e-11.
const STEP: f64 = 1e-5;

fn random(algorithm: Algorithm, stream: &mut Stream) -> ConstructionConfig {
    let preconditioners =
        (0..LAYERS).map(|_| Matrix::from_fn(D, D, |_, _| stream.uniform_in(-1.0, 1.0))).collect();
    let step_sizes = stream.uniform_vec(LAYERS, 0.1, 0.8);
    let lambda = if algorithm == Algorithm::TdLambda { 0.5 } else { 0.0 };
    ConstructionConfig { lambda, step_sizes, preconditioners, ..ConstructionConfig::new(algorithm, LAYERS) }
}

fn value(config: &ConstructionConfig, context: &Context) -> f64 {
    config.clone().check().unwrap().query_values(context).unwrap()[config.num_layers]
}

/// A configuration moved along a direction in preconditioners and step sizes.
fn moved(config: &ConstructionConfig, by: f64, along: &(Vec<Matrix>, Vec<f64>)) -> ConstructionConfig {
    let mut moved = config.clone();
    for (c, along) in moved.preconditioners.iter_mut().zip(&along.0) {
        *c = Matrix::from_fn(D, D, |i, j| c[(i, j)] + by * along[(i, j)]);
    }
    for (size, along) in moved.step_sizes.iter_mut().zip(&along.1) {
        *size += by * along;
    }
    moved
}

fn inner(construction: &Construction, context: &Context, along: &(Vec<Matrix>, Vec<f64>)) -> f64 {
    let gradient = construction.gradient(context).unwrap();
    let by_c = gradient.preconditioners.iter().zip(&along.0);
    let by_size = gradient.step_sizes.iter().zip(&along.1);
    by_c.map(|(g, u)| g.as_slice().iter().zip(u.as_slice()).map(|(g, u)| g * u).sum::<f64>()).sum::<f64>()
        + by_size.map(|(g, u)| g * u).sum::<f64>()
}

/// Every entry on its own, and all together: of central differences.
#[test]
fn derivatives_are_those_of_differences() {
    let mut stream = Stream::new(0, Purpose::Init, 2);
    for algorithm in Algorithm::ALL {
        let (config, context) = (random(algorithm, &mut stream), distinct(1, D, N));
        let construction = config.clone().check().unwrap();
        let zero = || (vec![Matrix::zeros(D, D); LAYERS], vec![0.0; LAYERS]);
        let mut directions = Vec::new();
        for layer in [0, LAYERS / 2, LAYERS - 1] {
            for entry in 0..D * D {
                let mut along = zero();
                along.0[layer] = Matrix::from_fn(D, D, |i, j| f64::from(i * D + j == entry));
                directions.push(along);
            }
            let mut along = zero();
            along.1[layer] = 1.0;
            directions.push(along);
        }
        let all = random(algorithm, &mut stream);
        directions.push((all.preconditioners, all.step_sizes));
        let mut largest = 0.0f64;
        for along in &directions {
            let ends = [STEP, -STEP].map(|by| value(&moved(&config, by, along), &context));
            let difference = (ends[0] - ends[1]) / (2.0 * STEP);
            let found = inner(&construction, &context, along);
            largest = largest.max(found.abs());
            assert!(
                (found - difference).abs() <= 1e-7 * difference.abs().max(1.0),
                "{algorithm}: {found} {difference}"
            );
        }
        assert!(largest > 1e-3, "{algorithm}: nothing depends on anything");
        let of_pass = value(&config, &context);
        assert!(
            (construction.gradient(&context).unwrap().value - of_pass).abs()
                <= 1e-15 * of_pass.abs().max(1.0)
        );
    }
}

/// The derivatives of layers that share a preconditioner add up to that by the one they share.
#[test]
fn what_layers_share_has_the_sum() {
    let context = distinct(2, D, N);
    for algorithm in Algorithm::ALL {
        let c = Matrix::from_fn(D, D, |i, j| 0.3 * f64::from(i == j) + 0.1 * (i as f64 - j as f64));
        let config = |size: f64, c: &Matrix| ConstructionConfig {
            step_sizes: vec![size],
            preconditioners: vec![c.clone()],
            ..ConstructionConfig::new(algorithm, LAYERS)
        };
        let gradient = config(0.5, &c).check().unwrap().gradient(&context).unwrap();
        let by_size: f64 = gradient.step_sizes.iter().sum();
        let ends = [STEP, -STEP].map(|by| value(&config(0.5 + by, &c), &context));
        assert!((by_size - (ends[0] - ends[1]) / (2.0 * STEP)).abs() <= 1e-7, "{algorithm}");
        let by_corner: f64 = gradient.preconditioners.iter().map(|g| g[(0, 1)]).sum();
        let shifted = |by: f64| Matrix::from_fn(D, D, |i, j| c[(i, j)] + by * f64::from((i, j) == (0, 1)));
        let ends = [STEP, -STEP].map(|by| value(&config(0.5, &shifted(by)), &context));
        assert!((by_corner - (ends[0] - ends[1]) / (2.0 * STEP)).abs() <= 1e-7, "{algorithm}");
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    serde_json::from_value(value.clone()).unwrap()
}

fn matrix(value: &Value) -> Matrix {
    let rows: Vec<Vec<f64>> = serde_json::from_value(value.clone()).unwrap();
    Matrix::from_rows(&rows).unwrap()
}

/// Layers written as attention and differentiated by JAX in double precision (golden/construction_gradient.py): a few hundred roundings of
/// numbers of order 1.
#[test]
fn derivatives_are_those_of_jax() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("golden/construction_gradient.json")).unwrap();
    let names: Vec<String> = Algorithm::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(cases.iter().map(|case| case["construction"].as_str().unwrap()).collect::<Vec<_>>(), names);
    for case in &cases {
        let number = |key: &str| case[key].as_f64().unwrap();
        let list = |key: &str| -> Vec<Matrix> { case[key].as_array().unwrap().iter().map(matrix).collect() };
        let features: Vec<Vec<f64>> = serde_json::from_value(case["features"].clone()).unwrap();
        let context = Context::builder()
            .episode(&features, &numbers(&case["rewards"]), End::Truncated)
            .build()
            .unwrap();
        let preconditioners = list("C");
        let construction = ConstructionConfig {
            algorithm: case["construction"].as_str().unwrap().parse().unwrap(),
            lambda: number("lambda"),
            num_layers: preconditioners.len(),
            gamma: number("gamma"),
            step_sizes: numbers(&case["step_sizes"]),
            preconditioners,
        };
        let found = construction.check().unwrap().gradient(&context).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-14 * b.abs().max(1.0);
        assert!(near(found.value, number("value")), "{}", case["construction"]);
        for (found, expected) in found.preconditioners.iter().zip(list("by_C")) {
            assert!(found.as_slice().iter().zip(expected.as_slice()).all(|(a, b)| near(*a, *b)), "{case}");
        }
        assert!(
            found.step_sizes.iter().zip(numbers(&case["by_step_size"])).all(|(a, b)| near(*a, b)),
            "{case}"
        );
    }
}

#[test]
fn values_that_overflow_have_no_derivatives() {
    let config = ConstructionConfig { step_sizes: vec![1e200], ..ConstructionConfig::new(Algorithm::Td, 9) };
    let found = config.check().unwrap().gradient(&distinct(0, D, N));
    assert!(matches!(found, Err(ConstructionError::Forward(ForwardError::Diverged { .. }))), "{found:?}");
}
