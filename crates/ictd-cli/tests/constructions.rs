//! `forward --construction` and `circuit` as a user meets them.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;

use common::{CONTEXT, assert_refused, forward, ictd, ictd_in, json};
use ictd::construction::Algorithm;
use ictd_lab::files::Tensors;
use serde_json::Value;

fn values(output: &std::process::Output) -> Vec<f64> {
    serde_json::from_value(json(output)["query_values"].clone()).unwrap()
}

/// Two layers by hand on CONTEXT: n = 2, columns (φ, γφ', r), query φ_q.
#[test]
fn constructions_are_right_on_a_context_small_enough_for_paper() {
    let x = [[1.0f64, 0.5], [0.5, -0.25], [-1.0, 0.75]];
    let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
    let (alpha, lambda) = (0.3, 0.25);
    for algorithm in Algorithm::ALL {
        let gamma = if algorithm == Algorithm::AverageReward { 1.0 } else { 0.5 };
        let mut w = [0.0; 2];
        let mut expected = vec![0.0];
        for _ in 0..2 {
            let r = match algorithm {
                // 1 − 1 and −0.5 − (1 − 0.5)/2.
                Algorithm::AverageReward => [0.0, -0.75],
                // 1 − 0.5/2.
                Algorithm::MonteCarlo => [0.75, -0.5],
                _ => [1.0, -0.5],
            };
            let next = if algorithm == Algorithm::MonteCarlo { 0.0 } else { gamma };
            let delta = [0, 1].map(|i| r[i] + next * dot(x[i + 1], w) - dot(x[i], w));
            let along = |i: usize, a: usize| match algorithm {
                Algorithm::TdLambda if i == 1 => x[1][a] + lambda * x[0][a],
                Algorithm::ResidualGradient => x[i][a] - gamma * x[i + 1][a],
                _ => x[i][a],
            };
            w = [0, 1].map(|a| w[a] + alpha / 2.0 * (delta[0] * along(0, a) + delta[1] * along(1, a)));
            expected.push(dot(x[2], w));
        }
        let mut arguments =
            vec!["--construction", algorithm.as_str(), "--step-size", "0.3", "--layers", "2", "--json"];
        if algorithm == Algorithm::TdLambda {
            arguments.extend(["--lambda", "0.25"]);
        }
        if algorithm != Algorithm::AverageReward {
            arguments.extend(["--gamma", "0.5"]);
        }
        let output = forward(CONTEXT, &arguments);
        assert!(output.stdout.starts_with(b"{\"query_values\":["), "{algorithm}");
        let found = values(&output);
        assert_eq!(found.len(), 3, "{algorithm}");
        for (found, expected) in found.iter().zip(&expected) {
            // A dozen products of numbers of order 1.
            assert!((found - expected).abs() < 1e-15, "{algorithm}: {found} {expected}");
        }
    }
}

#[test]
fn tokens_text_and_files_are_those_of_the_construction() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("c.json"), CONTEXT).unwrap();
    let shapes = [("td", 5, 3), ("average-reward", 6, 3), ("sarsa", 8, 3), ("chain-of-thought", 8, 5)];
    for (name, rows, columns) in shapes {
        let arguments = ["forward", "--input", "c.json", "--construction", name, "--layers", "2", "--tokens"];
        let result = json(&ictd_in(dir.path(), &[&arguments[..], &["--json", "--out", name]].concat()));
        let tokens = result["tokens"].as_array().unwrap();
        assert_eq!(tokens.len(), 3, "{name}");
        assert_eq!(tokens[2].as_array().unwrap().len(), rows, "{name}");
        assert_eq!(tokens[2][0].as_array().unwrap().len(), columns, "{name}");
        assert_eq!(result["row_names"].as_array().unwrap().len(), rows, "{name}");
        for file in ["values.csv", "tokens.csv", "values.svg", "forward.json"] {
            assert!(dir.path().join(name).join(file).exists(), "{name}: {file} is missing");
        }
        let text = String::from_utf8(ictd_in(dir.path(), &arguments).stdout).unwrap();
        assert!(text.starts_with(name) && text.contains("v[query]") && text.contains("Z_2"), "{text}");
    }
}

/// Layers that overflow end with exit code 3 and give those before; so do layers that have no limit and grow.
#[test]
fn divergence_is_refused_with_the_layers_before() {
    for (steps, layers, given) in [("1e100", "5", 4), ("50", "20", 21)] {
        let arguments = ["--construction", "td", "--step-size", steps, "--layers", layers, "--json"];
        let output = forward(CONTEXT, &arguments);
        assert_eq!(output.status.code(), Some(3), "{steps}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["judgement"], "refuse");
        assert_eq!(result["query_values"].as_array().unwrap().len(), given, "{result}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("REFUSE: values "));
    }
}

/// Trusted near the limit alone: not with a step size of 0, not on the way, and not because the last layers change little; a direction that
/// no transition speaks of is no obstacle, because weights stay 0 there.
#[test]
fn values_away_from_their_limit_are_no_trust() {
    let scarce = r#"{"features": [[1, 0, 0], [0, 1, 0], [1, 0, 1]], "rewards": [1, 0]}"#;
    let cases = [
        (CONTEXT, "1", "2000", "trust"),
        (CONTEXT, "0", "20", "caution"),
        (CONTEXT, "1e-6", "50", "caution"),
        (CONTEXT, "1", "3", "caution"),
        (scarce, "1", "2000", "trust"),
        (scarce, "1", "3", "caution"),
    ];
    for (context, step, layers, expected) in cases {
        let arguments =
            ["--construction", "td", "--gamma", "0.5", "--step-size", step, "--layers", layers, "--json"];
        let result = json(&forward(context, &arguments));
        assert_eq!(result["judgement"], expected, "step size {step}, {layers} layers: {}", result["reasons"]);
        let value = result["query_values"].as_array().unwrap().last().unwrap().as_f64().unwrap();
        match result["limit"].as_f64() {
            Some(limit) => assert_eq!((value - limit).abs() <= 0.01 * limit.abs(), expected == "trust"),
            None => assert_eq!(step, "0"),
        }
    }
}

#[test]
fn combinations_without_meaning_are_one_line_that_names_them() {
    let cases: [(&[&str], &str); 18] = [
        (&["--lambda", "0.5"], "lambda"),
        (&["--construction", "td", "--lambda", "0.5"], "lambda"),
        (&["--construction", "sarsa", "--lambda", "0"], "lambda"),
        (&["--construction", "td-lambda", "--lambda", "1.5"], "lambda"),
        (&["--construction", "td-lambda", "--lambda", "nan"], "lambda"),
        (&["--construction", "average-reward", "--gamma", "0.9"], "gamma"),
        (&["--construction", "td", "--gamma", "1"], "gamma"),
        (&["--construction", "td", "--step-size", "1,2", "--layers", "3"], "step sizes"),
        (&["--construction", "td", "--step-size", "inf"], "step size"),
        (&["--construction", "td-lambda", "--kernel", "softmax"], "kernel"),
        (&["--construction", "td", "--params", "p.json"], "params"),
        (&["--construction", "td", "--block", "dual"], "block"),
        (&["--construction", "td", "--temperature", "2"], "temperature"),
        (&["--construction", "td", "--diagonal-mix", "0.5"], "diagonal-mix"),
        (&["--construction", "td", "--fixed-point"], "fixed-point"),
        (&["--construction", "td", "--attention"], "attention"),
        (&["--construction", "td", "--tolerance", "0.1"], "tolerance"),
        (&["--construction", "tdlambda"], "construction"),
    ];
    for (arguments, named) in cases {
        assert_refused(&forward(CONTEXT, arguments), named);
    }
    let contexts = [
        (r#"{"features": [[1], [2]], "rewards": [1], "terminated": true}"#, "terminated"),
        (r#"{"features": [[1], [2]], "rewards": [1], "queries": [[1]]}"#, "queries"),
        (
            r#"{"episodes": [{"features": [[1], [2]], "rewards": [1]}, {"features": [[1], [2]], "rewards": [1]}]}"#,
            "episodes",
        ),
    ];
    for (context, named) in contexts {
        assert_refused(&forward(context, &["--construction", "td"]), named);
    }
}

#[test]
fn verify_has_a_row_for_every_construction() {
    let dir = tempfile::tempdir().unwrap();
    let result = json(&ictd_in(dir.path(), &["verify", "--trials", "5", "--json"]));
    let rows = result["constructions"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["construction"].as_str().unwrap()).collect();
    assert_eq!(names, Algorithm::ALL.map(Algorithm::as_str));
    for row in rows {
        for key in ["tokens_vs_direct", "full_vs_fast"] {
            assert!(row[key].as_f64().unwrap() <= 1e-12, "{row}");
        }
    }
    let table = fs::read_to_string(dir.path().join("out/verify/constructions.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + rows.len());
    let text = String::from_utf8(ictd_in(dir.path(), &["verify", "--trials", "1"]).stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("td-lambda")), "{text}");
}

fn card(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("card.json")).unwrap()).unwrap()
}

/// What stands on the card is what `forward` gives on its example; tensors have the shapes it says, and the module is short.
#[test]
fn circuits_are_what_forward_computes() {
    let dir = tempfile::tempdir().unwrap();
    let constructions = [
        ("td-linear", "td"),
        ("residual-gradient", "residual-gradient"),
        ("monte-carlo", "monte-carlo"),
        ("lstd", "td"),
    ];
    for name in ["td", "mirror", "td-linear", "residual-gradient", "monte-carlo", "lstd"] {
        let out = dir.path().join(name);
        let printed = json(&ictd_in(dir.path(), &["circuit", name, "--json", "--out", name]));
        let card = card(&out);
        assert_eq!((&card, card["format"].as_str()), (&printed, Some("ictd.circuit 1")), "{name}");
        let tensors = Tensors::from_bytes(&fs::read(out.join("circuit.safetensors")).unwrap()).unwrap();
        let shapes = card["tensors"].as_object().unwrap();
        assert_eq!(tensors.tensors.len(), shapes.len());
        for (tensor, shape) in shapes {
            let expected: Vec<usize> = serde_json::from_value(shape.clone()).unwrap();
            assert_eq!(tensors.tensors[tensor].0, expected, "{name}: {tensor}");
        }
        let module = fs::read_to_string(out.join("circuit.py")).unwrap();
        assert!(module.lines().count() <= 60 && module.contains("__main__"), "{name}");

        let example = &card["example"];
        let context =
            serde_json::json!({"features": example["features"], "rewards": example["rewards"]}).to_string();
        let depth = card["layers"].to_string();
        let step = card["step_sizes"][0].to_string();
        let construction = constructions.iter().find(|(circuit, _)| *circuit == name);
        let path = out.join("circuit.safetensors");
        let how =
            construction.map_or(vec!["--params", path.to_str().unwrap()], |(_, c)| vec!["--construction", c]);
        let fixed = ["--layers", &depth, "--step-size", &step, "--json", "--tokens"];
        let result: Value =
            serde_json::from_slice(&forward(&context, &[&fixed[..], &how].concat()).stdout).unwrap();
        assert_eq!(result["tokens"], example["tokens"], "{name}");
        let expected: Vec<f64> = serde_json::from_value(example["query_values"].clone()).unwrap();
        for (layer, value) in expected.iter().enumerate() {
            let found = match construction {
                Some(_) => &result["query_values"][layer],
                None => result["values"][layer].as_array().unwrap().last().unwrap(),
            };
            // Token matrices against fast paths.
            assert!((found.as_f64().unwrap() - value).abs() < 1e-12, "{name} layer {layer}");
        }
        if name == "lstd" {
            let limit = example["least_squares"].as_f64().unwrap();
            assert!((expected[expected.len() - 1] - limit).abs() < 1e-9, "{limit}");
        }
    }
}

#[test]
fn trained_circuits_come_from_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let trained = ["pretrain", "--set", "epochs=5", "--seeds", "0..1", "--out", "runs", "--json"];
    assert!(ictd_in(dir.path(), &trained).status.success());
    let checkpoint = walk(dir.path()).into_iter().find(|p| p.ends_with(".safetensors")).unwrap();
    let out =
        json(&ictd_in(dir.path(), &["circuit", "trained", "--params", &checkpoint, "--json", "--out", "c"]));
    assert_eq!((out["block"].as_str(), out["kernel"].as_str()), (Some("tsm"), Some("softmax")));
    assert_eq!(card(&dir.path().join("c")), out);
    let refused = |arguments: &[&str], named: &str| assert_refused(&ictd_in(dir.path(), arguments), named);
    refused(&["circuit", "trained"], "params");
    refused(&["circuit", "td", "--params", &checkpoint], "params");
    refused(&["circuit", "trained", "--params", &checkpoint, "--features", "63"], "features");
    refused(&["circuit", "trained", "--params", &checkpoint, "--gamma", "0.1234"], "gamma");
    refused(&["circuit", "td", "--features", "0"], "features");
    refused(&["circuit", "lstd", "--layers", "0"], "layers");
    refused(&["circuit", "td-linear", "--gamma", "1"], "gamma");
    refused(&["circuit", "td-linear", "--step-size", "1e300"], "step size");
    refused(&["circuit", "lstd", "--layers", "3"], "layers");
    refused(&["circuit", "td", "--features", "64", "--layers", "1000"], "layers");
    assert!(!dir.path().join("out/circuit").exists());
    assert_refused(&ictd(&["circuit", "tdd"]), "'td'");
}

/// All files below a directory, as paths.
fn walk(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let files = |path: std::path::PathBuf| {
        if path.is_dir() { walk(&path) } else { vec![path.to_str().unwrap().to_owned()] }
    };
    entries.flat_map(files).collect()
}
