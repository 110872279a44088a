//! Attention weights on request, and certificates of trained parameters.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use common::{CONTEXT, assert_refused, forward, ictd, ictd_in, json, judged};
use serde_json::{Value, json};

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    let row = |row: &Value| row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    value.as_array().unwrap().iter().map(row).collect()
}

/// The softmax of scores by hand: two sources, three columns.
#[test]
fn forward_shows_attention_as_json_table_and_map() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("o");
    let found = judged(&forward(CONTEXT, &["--json", "--attention", "--out", out.to_str().unwrap()]));
    assert_eq!(found["attention_sources"], json!([0, 1]));
    assert_eq!(found["attention"].as_array().unwrap().len(), 1, "the same in every layer");
    let weights = matrix(&found["attention"][0]);
    let x = [[1.0, 0.5], [0.5, -0.25], [-1.0, 0.75_f64]];
    let score = |i: usize, j: usize| (x[i][0] * x[j][0] + x[i][1] * x[j][1]).exp();
    for j in 0..3 {
        let sum = score(0, j) + score(1, j);
        // A product, an exponential and a quotient.
        (0..2).for_each(|i| assert!((weights[i][j] - score(i, j) / sum).abs() < 1e-15));
    }
    let table = fs::read_to_string(out.join("attention.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!((lines[0], lines.len()), ("layer,source,column,weight", 7));
    assert_eq!(lines[2], format!("1,0,1,{}", weights[0][1]));
    let map = fs::read_to_string(out.join("attention.svg")).unwrap();
    assert!(map.contains("Attention weights") && map.contains("the same in every layer"));
    let text = String::from_utf8(forward(CONTEXT, &["--attention"]).stdout).unwrap();
    assert!(text.contains("attention: 2 sources × 3 columns") && text.contains("attention.svg"), "{text}");
    assert!(judged(&forward(CONTEXT, &["--json"]))["attention"].is_null());
}

/// Parameters that score memories have other weights in every layer, and the columns of two episodes are not all sources.
#[test]
fn attention_is_given_by_layer_where_it_differs() {
    let dir = tempfile::tempdir().unwrap();
    let params = dir.path().join("p.json");
    let v = [[0.0; 4], [0.0; 4], [0.0; 4], [0.0, 1.0, 1.0, -1.0]];
    let a = [[1.0, 0.0, 0.0, 0.5], [0.0; 4], [0.0; 4], [0.5, 0.0, 0.0, 0.0]];
    fs::write(&params, json!({ "V": v, "A": a }).to_string()).unwrap();
    let context = r#"{"episodes": [{"features": [[1.0], [0.5]], "rewards": [1.0], "terminated": true},
        {"features": [[0.2], [-0.5], [0.7]], "rewards": [0.0, 1.0]}]}"#;
    let arguments = [
        "--json",
        "--attention",
        "--layers",
        "3",
        "--diagonal-mix",
        "0.25",
        "--params",
        params.to_str().unwrap(),
    ];
    let found = judged(&forward(context, &arguments));
    assert_eq!(found["attention_sources"], json!([0, 2, 3]));
    let layers: Vec<_> = found["attention"].as_array().unwrap().iter().map(matrix).collect();
    assert_eq!(layers.len(), 3);
    assert_ne!(layers[0], layers[1]);
    for layer in layers {
        let sum = |j: usize| layer.iter().map(|row| row[j]).sum::<f64>();
        // Sources keep all, other columns what is not mixed, terminal ones nothing; three weights each.
        for (j, expected) in [1.0, 0.0, 1.0, 1.0, 0.75].into_iter().enumerate() {
            assert!((sum(j) - expected).abs() < 1e-15, "column {j}");
        }
    }
}

#[test]
fn more_weights_than_can_be_seen_are_refused() {
    let rows: Vec<[f64; 1]> = (0..=200).map(|k| [f64::from(k)]).collect();
    let context = json!({ "features": rows, "rewards": vec![1.0; 200] }).to_string();
    let refused = "attention is 40200 weights (200 sources × 201 columns), expected at most 40000";
    assert_refused(&forward(&context, &["--attention"]), refused);
    let certify = |more: &[&str]| {
        let arguments = [&["certify", "--input", "-", "--attention"], more].concat();
        Command::cargo_bin("ictd").unwrap().args(arguments).write_stdin(context.as_str()).output().unwrap()
    };
    assert_refused(&certify(&[]), refused);
}

/// The rows of M, state by state, as the diagonal of the certificate has it.
#[test]
fn certify_shows_attention_between_states() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("o");
    let arguments = ["certify", "--task", "dense", "--states", "5", "--attention", "--json"];
    let found = json(&ictd(&[&arguments[..], &["--out", out.to_str().unwrap()]].concat()));
    let weights = matrix(&found["attention"][0]);
    let diagonal: f64 = (0..5).map(|s| weights[s][s]).sum::<f64>() / 5.0;
    // Five numbers below 1.
    assert!((diagonal - found["contraction"]["mean_diag"].as_f64().unwrap()).abs() < 1e-15);
    (0..5).for_each(|u| assert!((weights.iter().map(|row| row[u]).sum::<f64>() - 1.0).abs() < 1e-15));
    assert!(out.join("attention.csv").is_file() && out.join("attention.svg").is_file());
    assert_refused(&ictd(&["certify", "--tasks", "3", "--attention"]), "--attention");
}

/// Trains one seed and returns its last checkpoint.
fn train(dir: &Path, changes: &[&str]) -> PathBuf {
    let fixed = ["epochs=4", "n=5", "states=6", "features=2", "init.value_sign=td", "init.score_sign=td"];
    let changes = fixed.iter().chain(changes).flat_map(|change| ["--set", change]);
    let start = ["pretrain", "--seeds", "3..4", "--json", "--out", "runs"];
    json(&ictd_in(dir, &start.into_iter().chain(changes).collect::<Vec<_>>()));
    let folders = |path: &Path| fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let found = folders(&dir.join("runs/paper")).into_iter().next().unwrap();
    found.join("seed_0003/ckpt/step_00000020.safetensors")
}

/// A trained layer is a step of TD: the certificate's step size and discount are those that its parameters come to.
#[test]
fn certify_takes_what_the_checkpoint_says_and_refuses_what_contradicts_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = train(dir.path(), &["kernel=rbf", "temperature=0.7", "gamma=0.8", "layers=2"]);
    let certify = |path: &Path, more: &[&str]| {
        let fixed = ["certify", "--states", "6", "--features", "2", "--params", path.to_str().unwrap()];
        let (typed, gamma) =
            if more.contains(&"--gamma") { (more, &[][..]) } else { (more, &["--gamma", "0.8"][..]) };
        ictd_in(dir.path(), &[&fixed, gamma, typed].concat())
    };
    let found = judged(&certify(&path, &["--json", "--attention"]));
    let kernel = &found["kernel"];
    assert_eq!((&kernel["name"], &kernel["temperature"]), (&json!("rbf"), &json!(0.7)));
    let trained = |key: &str| found["trained"][key].as_f64().unwrap();
    assert_eq!((trained("gamma"), trained("step_size")), (0.8, 1.0));
    assert_eq!(found["step_size"].as_f64(), Some(trained("step_factor")));
    assert_eq!(found["suggestions"], json!([]));
    assert_eq!(matrix(&found["attention"][0]).len(), 6);
    for (flag, value, field) in [
        ("--kernel", "softmax", "kernel is softmax, expected rbf as the checkpoint was trained with"),
        ("--gamma", "0.9", "gamma is 0.9, expected 0.8"),
        ("--layers", "3", "layers is 3, expected 2"),
        ("--temperature", "1", "temperature is 1, expected 0.7"),
        ("--step-size", "0.5", "step size is 0.5, expected 1"),
    ] {
        assert_refused(&certify(&path, &[flag, value]), field);
    }
    assert_refused(&certify(&path, &["--states", "1001"]), "states");
    for (change, field) in [
        ("tied=false", "params is V and A of 3 layers, expected one V and A for all layers"),
        ("rho.end=0.5", "diagonal mix of the checkpoint is 0.5, expected 0"),
        ("mask=relaxed", "params: scores depend on rewards or memory"),
        ("init.value_sign=mirror", "such layers are no steps of TD"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = train(dir.path(), &["gamma=0.8", change]);
        assert_refused(&certify(&path, &[]), field);
    }
}

/// Of trained linear attention too: the certificate of its d directions.
#[test]
fn certify_examines_trained_linear_attention() {
    let dir = tempfile::tempdir().unwrap();
    let path = train(dir.path(), &["gamma=0.8", "kernel=linear"]);
    let arguments = ["certify", "--states", "6", "--features", "2", "--gamma", "0.8", "--json", "--params"];
    let output = ictd_in(dir.path(), &[&arguments[..], &[path.to_str().unwrap()]].concat());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["kernel"]["name"], &found["kernel"]["normalize"]), (&json!("linear"), &json!(false)));
    assert!(
        found["contraction"]["spectral_radius"].is_number() && found["suggestions"] == json!([]),
        "{found}"
    );
}

/// Every kernel by name is trained, and tabular, which does not use A, is refused by its key.
#[test]
fn checkpoints_of_every_kernel_run_and_tabular_is_refused() {
    for kernel in ["softmax", "linear", "relu", "elu1", "rbf"] {
        for more in [&["block=dual"][..], &["tied=false"]] {
            let dir = tempfile::tempdir().unwrap();
            let kernel = format!("kernel={kernel}");
            let path = train(dir.path(), &[&[kernel.as_str()], more].concat());
            let found = judged(&forward(CONTEXT, &["--json", "--params", path.to_str().unwrap()]));
            assert_eq!(found["values"].as_array().unwrap().len(), 4);
        }
    }
    let refused = ictd(&["pretrain", "--set", "kernel=tabular"]);
    assert_refused(&refused, "kernel is tabular, expected softmax, linear, relu, elu1 or rbf");
}

#[test]
fn without_layers_there_are_columns_all_the_same() {
    let output = forward(CONTEXT, &["--attention", "--layers", "0"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("attention: 2 sources × 3 columns, in no layer"), "{text}");
}
