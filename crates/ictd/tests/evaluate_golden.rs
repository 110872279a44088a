//! Estimators of logged episodes against an implementation in NumPy.

use ictd::evaluate::method::{Basis, ConstantMean, Kbrl, LinearTd, Lstd, MonteCarlo, SoftmaxTd, TabularTd};
use ictd::evaluate::{Intervals, Log, LogBuilder, Method};
use ictd::{End, Kernel, KernelName, Matrix};
use serde_json::Value;
use std::sync::Arc;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Matrix {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(numbers).collect();
    Matrix::from_rows(&rows).unwrap()
}

fn log(case: &Value) -> Log {
    let lambda = case["lambda"].as_f64();
    let mut builder = LogBuilder::new(case["gamma"].as_f64().unwrap(), lambda).unwrap();
    for (key, episode) in case["episodes"].as_array().unwrap().iter().enumerate() {
        let states: Vec<u32> = numbers(&episode["states"]).into_iter().map(|s| s as u32).collect();
        let end = if episode["truncated"].as_bool().unwrap() { End::Truncated } else { End::Terminated };
        builder.episode(key as u64, &states, &numbers(&episode["rewards"]), end, None).unwrap();
    }
    builder.build(matrix(&case["features"])).unwrap()
}

fn method(settings: &Value) -> Box<dyn Method> {
    let number = |key: &str| settings[key].as_f64().unwrap();
    let flag = |key: &str| settings[key].as_bool().unwrap();
    let kernel = || -> Arc<dyn Kernel> {
        let name: KernelName = settings["kernel"].as_str().unwrap().parse().unwrap();
        name.at(number("temperature")).unwrap()
    };
    let depth = || (number("layers") as usize, number("step_size"), flag("centred"));
    let lstd = |basis: Basis| Box::new(Lstd { basis, traces: flag("traces"), ridge: number("ridge") });
    match settings["name"].as_str().unwrap() {
        "softmax TD" => {
            let (num_layers, step_size, centred) = depth();
            Box::new(SoftmaxTd { kernel: kernel(), num_layers, step_size, centred, keys: None, stop: None })
        }
        "tabular TD" => {
            let (num_layers, step_size, centred) = depth();
            Box::new(TabularTd { num_layers, step_size, centred })
        }
        "linear TD" => {
            let (num_layers, step_size, centred) = depth();
            Box::new(LinearTd { num_layers, step_size, centred })
        }
        "table LSTD" => lstd(Basis::Table),
        "linear LSTD" => lstd(Basis::Linear),
        "kernel LSTD" => lstd(Basis::Kernel(kernel())),
        "KBRL" => Box::new(Kbrl { kernel: kernel() }),
        "Monte Carlo" => Box::new(MonteCarlo),
        "constant mean" => Box::new(ConstantMean),
        name => panic!("{name}"),
    }
}

/// Origin: golden/evaluate.py, NumPy, transition by transition. Six logs of nine episodes: discounts from 0.3 to 1, traces from
/// 0 to 1, both kinds of ends, weights on episodes, a state that is never left, a known and a new query.
#[test]
fn every_estimator_is_that_of_a_plain_implementation() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("golden/evaluate.json")).unwrap();
    assert_eq!(cases.len(), 6);
    for case in &cases {
        let log = log(case);
        let sample = log.sample(&numbers(&case["weights"]));
        let queries = matrix(&case["queries"]);
        let estimates = case["estimates"].as_array().unwrap();
        assert_eq!(estimates.len(), 32);
        for settings in estimates {
            let fit = method(settings).fit(&sample).unwrap();
            let expected = numbers(&settings["values"]);
            let (states, asked) = expected.split_at(log.num_states());
            let size = expected.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
            let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-10 * size;
            for (s, &value) in states.iter().enumerate() {
                let found = fit.values()[log.number_of(s as u32)];
                assert!(close(found, value), "state {s}: {found} {value} {settings}");
            }
            let values = fit.predict(log.features()).unwrap();
            assert!(values.iter().zip(fit.values()).all(|(a, b)| close(*a, *b)), "{settings}");
            for (found, &value) in fit.predict(&queries).unwrap().into_iter().zip(asked) {
                assert!(close(found, value), "query: {found} {value} {settings}");
            }
            let (loss, expected) = (sample.return_loss(fit.values()), settings["loss"].as_f64().unwrap());
            assert!((loss - expected).abs() <= 1e-10 * size * size, "{loss} {expected} {settings}");
        }
    }
}

/// Origin: golden/evaluate.py. Twelve resamples of the same six logs, with weights that are given.
#[test]
fn intervals_are_those_of_a_plain_implementation() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("golden/evaluate.json")).unwrap();
    for case in &cases {
        let (log, golden) = (log(case), &case["intervals"]);
        let weights: Vec<Vec<f64>> = golden["weights"].as_array().unwrap().iter().map(numbers).collect();
        let method = |settings: &Value| {
            let settings = numbers(settings);
            SoftmaxTd {
                kernel: KernelName::Rbf.at(settings[0]).unwrap(),
                num_layers: settings[1] as usize,
                step_size: 1.0,
                centred: true,
                keys: None,
                stop: None,
            }
        };
        let (chosen, rough) = (method(&golden["chosen"]), method(&golden["rough"]));
        let found = Intervals::of_softmax_td(&log, &chosen, &rough, &weights).unwrap();
        let size = numbers(&golden["value"]).iter().fold(1.0, |m: f64, v| m.max(v.abs()));
        let close = |found: f64, expected: &Value, what: &str| {
            let expected = expected.as_f64().unwrap();
            // Quantiles of Student's t are known to three digits after the point here.
            let tolerance = if what == "low" || what == "high" { 1e-3 } else { 1e-10 };
            assert!((found - expected).abs() <= tolerance * size, "{what}: {found} {expected}");
        };
        close(found.bias(), &golden["bias"], "bias");
        close(found.mean().value, &golden["mean"], "mean");
        close(found.mean().scatter, &golden["mean_scatter"], "scatter of the mean");
        let (states, queries) = (found.states(), found.predict(&matrix(&case["queries"])).unwrap());
        let of_states = (0..states.len()).map(|s| states[log.number_of(s as u32)]);
        for (k, i) in of_states.chain(queries).enumerate() {
            let parts = [("value", i.value), ("scatter", i.scatter), ("low", i.low), ("high", i.high)];
            parts.into_iter().for_each(|(part, x)| close(x, &golden[part][k], part));
        }
    }
}
