//! `forward`: values and targets, what it reads and writes, divergence, and the limit of `--fixed-point`.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;

use ictd::kernel::{Attention, KernelName};
use ictd::transformer::TransformerConfig;
use ictd_lab::files::ContextFile;

use common::{CONTEXT, assert_refused, forward, ictd, ictd_in, json, judged};

#[test]
fn forward_prints_values_and_targets_with_17_digits() {
    let output = forward(CONTEXT, &["--layers", "3", "--gamma", "0.5", "--json"]);
    let result = json(&output);
    let rows = |key: &str| result[key].as_array().unwrap().clone();
    assert_eq!((rows("values").len(), rows("targets").len()), (4, 4));
    for (values, targets) in rows("values").iter().zip(rows("targets")) {
        assert_eq!(values.as_array().unwrap().len(), 3);
        // The target of a column is γ times the value of the next.
        assert_eq!(targets[0].as_f64().unwrap(), 0.5 * values[1].as_f64().unwrap());
        assert_eq!(targets[2], 0.0);
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let digits = text.split("\"values\":[[").nth(1).unwrap().split(',').nth(4).unwrap();
    assert_eq!(digits.trim_matches(['[', ']', '-']).split('e').next().unwrap().len(), 18, "{digits}");
}

/// One softmax layer by hand: v(S_j) = Σ R_k exp(⟨x_k, x_j⟩) / Σ exp(⟨x_k, x_j⟩).
#[test]
fn forward_is_right_on_a_context_small_enough_for_paper() {
    let x = [[1.0f64, 0.5], [0.5, -0.25], [-1.0, 0.75]];
    let r = [1.0, -0.5];
    let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
    for block in ["dual", "tsm"] {
        let result = json(&forward(CONTEXT, &["--layers", "1", "--block", block, "--json"]));
        for j in 0..3 {
            let e = [dot(x[0], x[j]).exp(), dot(x[1], x[j]).exp()];
            let expected = (r[0] * e[0] + r[1] * e[1]) / (e[0] + e[1]);
            // One exponential, two products, one quotient.
            assert!((result["values"][1][j].as_f64().unwrap() - expected).abs() < 1e-15);
        }
    }
}

#[test]
fn forward_reads_episodes_queries_and_files_and_writes_everything() {
    let dir = tempfile::tempdir().unwrap();
    let episodes = r#"{"episodes": [{"features": [[0.1], [0.2]], "rewards": [1], "terminated": true},
                                    {"features": [[0.2], [0.3], [0.1]], "rewards": [2, 3]}],
                       "queries": [[0.15]]}"#;
    fs::write(dir.path().join("c.json"), episodes).unwrap();
    let arguments = [
        "forward",
        "--input",
        "c.json",
        "--layers",
        "2",
        "--tokens",
        "--fixed-point",
        "--json",
        "--out",
        "o",
    ];
    let result = json(&ictd_in(dir.path(), &arguments));
    assert_eq!(result["values"][2].as_array().unwrap().len(), 6);
    assert_eq!(result["values"][2][1], 0.0, "terminal");
    assert_eq!(result["tokens"].as_array().unwrap().len(), 3);
    assert_eq!(result["fixed_point"]["values"].as_array().unwrap().len(), 6);
    for file in ["values.csv", "tokens.csv", "forward.json", "values.svg", "values.png"] {
        assert!(dir.path().join("o").join(file).exists(), "{file} is missing");
    }
}

#[test]
fn forward_takes_parameters_tied_or_per_layer() {
    let dir = tempfile::tempdir().unwrap();
    // theta_* for two features, with V halved.
    let v = "[[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,0.5,0.5,-0.5]]";
    let a = "[[1,0,0,0,0],[0,1,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0]]";
    let tied = dir.path().join("tied.json");
    fs::write(&tied, format!(r#"{{"V": {v}, "A": {a}}}"#)).unwrap();
    let layers = dir.path().join("layers.json");
    fs::write(&layers, format!(r#"{{"layers": [{{"V": {v}, "A": {a}}}, {{"V": {v}, "A": {a}}}]}}"#)).unwrap();
    let values = |output: &std::process::Output| {
        let result = judged(output);
        (result["values"].clone(), result["targets"].clone())
    };
    let with = |path: &Path| {
        values(&forward(CONTEXT, &["--layers", "2", "--json", "--params", path.to_str().unwrap()]))
    };
    let halved = values(&forward(CONTEXT, &["--layers", "2", "--json", "--step-size", "0.5"]));
    assert_eq!(with(&tied), halved);
    assert_eq!(with(&layers), halved);
    // Layers one by one are as many as there are; one pair for all does not say how many.
    let params = layers.to_str().unwrap();
    assert_eq!(values(&forward(CONTEXT, &["--json", "--params", params])), halved);
    assert_refused(&forward(CONTEXT, &["--layers", "3", "--params", params]), "3");
    let card =
        json(&ictd_in(dir.path(), &["circuit", "trained", "--params", params, "--json", "--out", "c"]));
    assert_eq!(card["layers"], 2);
    let refused = ["circuit", "trained", "--params", params, "--layers", "3", "--out", "never"];
    assert_refused(&ictd_in(dir.path(), &refused), "3");
}

#[test]
fn what_is_no_number_in_json_is_told_in_words() {
    let found = forward(r#"{"features": [["x"], [1]], "rewards": [1]}"#, &[]);
    assert_refused(&found, r#"features[0][0]: invalid type: string "x", expected a number"#);
}

/// What one command writes another reads, and the numbers are the library's, to the last digit.
#[test]
fn a_trajectory_can_be_piped_into_forward() {
    let trajectory = ictd(&["task", "boyan", "--trajectory", "30", "--json"]);
    let text = String::from_utf8(trajectory.stdout).unwrap();
    let result = json(&forward(&text, &["--json"]));
    let context = serde_json::from_str::<ContextFile>(&text).unwrap().into_context().unwrap();
    let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
    let transformer = TransformerConfig::theta_star(attention, 15, 0.9).check().unwrap();
    let values = transformer.values(&context).unwrap();
    for layer in 0..=15 {
        let row: Vec<f64> = serde_json::from_value(result["values"][layer].clone()).unwrap();
        assert_eq!((row.len(), row), (31, values.values(layer)), "layer {layer}");
    }
    assert!(values.output() != 0.0);
}

#[test]
fn divergence_is_a_refusal_not_nan() {
    for more in [&[][..], &["--tokens"], &["--params", "p.json"]] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.json");
        // theta_* for two features.
        let v = "[[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,1,1,-1]]";
        let a = "[[1,0,0,0,0],[0,1,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0]]";
        fs::write(&path, format!(r#"{{"V": {v}, "A": {a}}}"#)).unwrap();
        let more = more.iter().map(|word| if *word == "p.json" { path.to_str().unwrap() } else { word });
        let more: Vec<&str> = more.collect();
        let output =
            forward(CONTEXT, &[&["--layers", "5000", "--step-size", "100", "--json"], &more[..]].concat());
        let result = judged(&output);
        assert_eq!(result["judgement"], "refuse");
        let reason = result["reasons"][0].as_str().unwrap();
        assert!(String::from_utf8_lossy(&output.stderr).contains("diverge"));
        // What was finite is there.
        let rows = result["values"].as_array().unwrap();
        assert!(reason.starts_with(&format!("values overflow in layer {}:", rows.len())), "{reason}");
        assert_eq!(result["targets"].as_array().unwrap().len(), rows.len());
        assert!(rows.iter().flat_map(|row| row.as_array().unwrap()).all(|v| v.is_f64()));
    }
}

/// The linear kernel has rank d; its convergence is that of the weight vector.
#[test]
fn fixed_point_of_the_linear_kernel_says_that_it_converges() {
    let context =
        String::from_utf8(ictd(&["task", "boyan", "--trajectory", "300", "--json"]).stdout).unwrap();
    let arguments = ["--kernel", "linear", "--layers", "20000", "--fixed-point", "--json"];
    let result = json(&forward(&context, &arguments));
    assert_eq!(result["fixed_point"]["converges"], true);
    let (limit, last) = (&result["fixed_point"]["values"][300], &result["values"][20000][300]);
    // Values of order 1; what 20,000 layers leave, and a solve with a condition number below 1e6.
    assert!((limit.as_f64().unwrap() - last.as_f64().unwrap()).abs() < 1e-9);
    assert!(last.as_f64().unwrap().abs() > 1e-3, "{last}");
}

#[test]
fn an_ill_conditioned_fixed_point_is_refused_not_guessed() {
    let run = ictd(&["task", "cartpole", "--continuous", "--trajectory", "60", "--json"]);
    let output = forward(&String::from_utf8(run.stdout).unwrap(), &["--fixed-point", "--json"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("condition number"));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["fixed_point"].is_null() && result["values"][15].as_array().unwrap().len() == 61);
}

/// Where every state was left the limit does not depend on weights, however flat they are; `--last` gives that of the last column.
#[test]
fn flat_weights_do_not_hide_the_limit_of_a_closed_context() {
    let rows: Vec<[f64; 2]> = (0..201).map(|k| [(k as f64 * 0.7).sin(), (k as f64 * 1.3).cos()]).collect();
    let context =
        serde_json::json!({"episodes": [{"features": rows, "rewards": vec![1.0; 200], "terminated": true}]});
    let output = forward(
        &context.to_string(),
        &["--fixed-point", "--temperature", "1e6", "--layers", "1", "--tokens", "--last", "--json"],
    );
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let limit = result["fixed_point"]["values"].as_array().unwrap();
    assert_eq!((limit.len(), &limit[0]), (1, &0.0.into()));
    assert_eq!(result["tokens"][1][0].as_array().unwrap().len(), 1);
    let all =
        forward(&context.to_string(), &["--fixed-point", "--temperature", "1e6", "--layers", "1", "--json"]);
    let all: serde_json::Value = serde_json::from_slice(&all.stdout).unwrap();
    // 200 rewards of 1, discounted by 0.9.
    let first = all["fixed_point"]["values"][0].as_f64().unwrap();
    assert!((first - (1.0 - 0.9_f64.powi(200)) / 0.1).abs() < 1e-9, "{first}");
    assert_eq!(all["fixed_point"]["converges"], false);
}
