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

/// Layers that overflow end with exit code 3 and give those before, and null for those that there are not; so do layers that have no limit and grow.
#[test]
fn divergence_is_refused_with_the_layers_before() {
    for (steps, layers, given) in [("1e100", 5, 4), ("50", 20, 21)] {
        let count = layers + 1;
        let layers = &layers.to_string();
        let arguments = ["--construction", "td", "--step-size", steps, "--layers", layers, "--json"];
        let output = forward(CONTEXT, &arguments);
        assert_eq!(output.status.code(), Some(3), "{steps}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["judgement"], "refuse");
        let values = result["query_values"].as_array().unwrap();
        assert_eq!(
            (values.len(), values.iter().filter(|v| v.is_number()).count()),
            (count, given),
            "{result}"
        );
        assert!(values[given..].iter().all(Value::is_null), "{result}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("REFUSE: values "));
    }
}

/// Features that say a constant, and rewards that contradict transitions: values grow in a straight line for ever. With few layers that does not
/// show yet.
#[test]
fn values_that_grow_for_ever_are_refused_with_the_reason() {
    let context = r#"{"features": [[1,0],[0,1],[1,0],[0,1],[0,1]], "rewards": [1,0,-1,2]}"#;
    let run = |layers: &str| {
        let arguments =
            ["--construction", "average-reward", "--step-size", "1", "--layers", layers, "--json"];
        let output = forward(context, &arguments);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), result)
    };
    for layers in ["15", "100000"] {
        let (code, result) = run(layers);
        assert_eq!((code, &result["judgement"]), (Some(3), &Value::from("refuse")), "{result}");
        let reason = result["reasons"][0].as_str().unwrap();
        assert!(reason.starts_with("values have no limit: rewards contradict transitions"), "{reason}");
        assert!(result["limit"].is_null() && result["spectral_radius"].is_number(), "{result}");
    }
}

/// What no transition speaks of asks for care however many layers there are, and so do fewer transitions than features.
#[test]
fn queries_that_transitions_say_nothing_of_are_cautioned() {
    let reasons = |context: &str| {
        let arguments = ["--construction", "td", "--layers", "2000", "--gamma", "0.5", "--json"];
        let result = json(&forward(context, &arguments));
        (result["judgement"].as_str().unwrap().to_owned(), result["reasons"].to_string())
    };
    let (level, said) = reasons(r#"{"features": [[1,0],[0,1]], "rewards": [1]}"#);
    assert_eq!(level, "caution");
    assert!(
        said.contains("all of the query's features")
            && said.contains("fewer transitions (1) than there are features (2)"),
        "{said}"
    );
    let (level, said) = reasons(r#"{"features": [[1,0],[2,0],[1,0],[3,4]], "rewards": [1,1,1]}"#);
    assert!(level == "caution" && said.contains("80.0 % of the query's features"), "{said}");
    assert!(!said.contains("fewer transitions"), "{said}");
}

/// Large features, and nearly collinear ones: the limit is right, or null with the reason.
#[test]
fn limits_are_right_or_said_to_be_unknown() {
    let run = |context: &str, step: &str| {
        let arguments = ["--construction", "td", "--layers", "3", "--step-size", step, "--json"];
        json(&forward(context, &arguments))
    };
    let large = run(r#"{"features": [[1e155,0],[1e155,1]], "rewards": [1]}"#, "1e-310");
    assert!((large["limit"].as_f64().unwrap() - 10.0).abs() < 1e-9, "{large}");
    assert!((large["spectral_radius"].as_f64().unwrap() - 0.9).abs() < 1e-9, "{large}");
    for a in ["1e-12", "1e-17"] {
        let context =
            format!(r#"{{"features": [[1,0],[1,{a}],[1,0],[1,{a}],[1,0],[0,1]], "rewards": [1,0,-1,2,0]}}"#);
        let found = run(&context, "1");
        assert_eq!(
            (&found["limit"], found["judgement"].as_str()),
            (&Value::Null, Some("caution")),
            "{found}"
        );
        assert!(found["spectral_radius"].as_f64().is_none_or(|radius| radius > 0.999), "{found}");
        let reasons = found["reasons"].to_string();
        assert!(
            reasons.contains("nearly collinear") || reasons.contains("singular to working precision"),
            "{found}"
        );
    }
}

/// A step size in as few characters as say it, also in headings.
#[test]
fn headings_have_no_row_of_zeros() {
    let arguments = ["--construction", "td", "--step-size", "1e300", "--layers", "2"];
    let text = String::from_utf8(forward(CONTEXT, &arguments).stdout).unwrap();
    assert_eq!(text.lines().next(), Some("td: γ = 0.9, step size 1e300"));
    let arguments = ["--construction", "td-lambda", "--lambda", "1e-320", "--layers", "2"];
    let text = String::from_utf8(forward(CONTEXT, &arguments).stdout).unwrap();
    assert_eq!(text.lines().next(), Some("td-lambda: γ = 0.9, λ = 1e-320, step size 1"));
}

/// Trusted near the limit alone: not with a step size of 0, not on the way, and not because the last layers change little.
#[test]
fn values_away_from_their_limit_are_no_trust() {
    let scarce = r#"{"features": [[1, 0, 0], [0, 1, 0], [1, 0, 1]], "rewards": [1, 0]}"#;
    let seen = r#"{"features": [[1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]], "rewards": [1, 0, 1]}"#;
    let three = r#"{"features": [[1, 0.5], [0.5, -0.25], [-1, 0.75], [1, 0.5]], "rewards": [1, -0.5, 0.25]}"#;
    let cases = [
        (three, "1", "2000", "trust"),
        (three, "0", "20", "caution"),
        (three, "1e-6", "50", "caution"),
        (three, "1", "3", "caution"),
        (seen, "1", "2000", "trust"),
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

/// Directions that are 10^7 times smaller than others: their squares drown in rounding, so nobody knows the limit, and nobody says that there is
/// none. Exact limits are 1.1667 and 3.3333.
#[test]
fn small_directions_leave_the_limit_open() {
    let of = |a: &str| {
        let trusted =
            format!(r#"{{"features": [[1,0],[0,{a}],[1,{a}],[1,0],[1,{a}]], "rewards": [1,2,-1,1]}}"#);
        let refused =
            format!(r#"{{"features": [[1,0],[0,{a}],[1,0],[0,{a}],[1,0],[0,{a}]], "rewards": [1,2,1,2,1]}}"#);
        [trusted, refused]
    };
    for (a, name) in
        ["1e-3", "1e-7", "1e-9"].iter().flat_map(|a| ["td", "sarsa", "td-lambda"].map(|name| (a, name)))
    {
        for (context, exact) in of(a).iter().zip([7.0 / 6.0, 10.0 / 3.0]) {
            let lambda: &[&str] = if name == "td-lambda" { &["--lambda", "0"] } else { &[] };
            let arguments =
                [&["--construction", name, "--gamma", "0.5", "--layers", "200", "--json"], lambda].concat();
            let found = json(&forward(context, &arguments));
            assert_eq!(found["judgement"], "caution", "{name} {a}: {found}");
            match found["limit"].as_f64() {
                Some(limit) => assert!((limit - exact).abs() < 1e-8, "{name} {a}: {found}"),
                None => assert!(*a != "1e-3", "{name} {a}: {found}"),
            }
        }
    }
}

#[test]
fn values_that_swing_for_ever_are_refused_with_what_helps() {
    let ones = r#"{"features": [[1],[1],[1],[1]], "rewards": [1,1,1]}"#;
    for (step, code, told) in
        [("4", 3, "values swing about 2"), ("4.0001", 0, "multiplies errors by 1 + 5.0e-5")]
    {
        let arguments = ["--construction", "td", "--gamma", "0.5", "--step-size", step, "--layers", "8"];
        let output = forward(ones, &arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(told) && message.contains("lower the step size"), "{message}");
    }
}

/// Where the limit itself is no value to rely on: returns that end with the trajectory, residuals of random transitions, two transitions.
#[test]
fn limits_that_are_no_values_are_no_trust() {
    let ones = |n: usize| format!(r#"{{"features": {:?}, "rewards": {:?}}}"#, vec![[1]; n + 1], vec![1; n]);
    let random =
        r#"{"features": [[1, 0], [0, 1], [1, 0], [1, 1], [1, 0], [0, 1]], "rewards": [1, 0, 1, 0, 1]}"#;
    let cases = [
        ("monte-carlo", "0.9", ones(100), "returns end with the trajectory: rewards after it, 9.0 % of"),
        ("monte-carlo", "0.5", ones(100), "trust"),
        ("td", "0.5", ones(100), "trust"),
        ("residual-gradient", "0.5", ones(3), "trust"),
        ("residual-gradient", "0.5", random.into(), "equal states have different successors"),
        ("td", "0.5", random.into(), "trust"),
        ("td", "0.5", ones(2), "the value rests on 2 transitions, expected 3 or more"),
    ];
    for (name, gamma, context, expected) in cases {
        let arguments = ["--construction", name, "--gamma", gamma, "--layers", "5000", "--json"];
        let result = json(&forward(&context, &arguments));
        if expected == "trust" {
            assert_eq!(result["judgement"], "trust", "{name}: {}", result["reasons"]);
        } else {
            assert_eq!(result["judgement"], "caution", "{name}: {}", result["reasons"]);
            assert!(result["reasons"].to_string().contains(expected), "{name}: {}", result["reasons"]);
        }
    }
}

#[test]
fn combinations_without_meaning_are_one_line_that_names_them() {
    let cases: [(&[&str], &str); 21] = [
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
        (&["--construction", "td", "--fixed-point"], "where JSON has the limit in any case"),
        (&["--construction", "td", "--attention"], "--tokens gives the tokens"),
        (&["--construction", "td", "--last"], "whose values are those of the last row"),
        (&["--construction", "td", "--tolerance", "0.1"], "computed exactly"),
        (&["--construction", "td", "--precision", "single"], "computed exactly"),
        (&["--construction", "td", "--memory", "4"], "needs no weights of attention"),
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
        // The tensors say what layers they are of, and others are no layers with V and A.
        let path = out.join("circuit.safetensors");
        let path = path.to_str().unwrap();
        if ["td", "mirror"].contains(&name) {
            let said = &tensors.metadata;
            assert_eq!((said["format"].as_str(), said["kernel"].as_str()), ("ictd.circuit", "softmax"));
            assert_eq!((said["layers"].as_str(), said["step_size"].as_str()), ("4", "1.0"));
            let refused = forward(CONTEXT, &["--params", path, "--layers", "15"]);
            assert_refused(&refused, "layers is 15, expected 4");
            let again =
                ictd_in(dir.path(), &["circuit", "trained", "--params", path, "--out", "again", "--json"]);
            let again = json(&again);
            for key in ["algorithm", "formula", "block", "kernel", "layers", "gamma", "step_sizes"] {
                assert_eq!(again[key], card[key], "{name}: {key}");
            }
        } else {
            for refused in [forward(CONTEXT, &["--params", path]), ictd(&["certify", "--params", path])] {
                assert_refused(&refused, "a circuit of linear attention, with P and Q, expected V and A");
            }
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

/// A file of one's own is not what training found, an empty one says so, and a circuit of an earlier version is not run by guesses.
#[test]
fn parameters_are_taken_for_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    let trained =
        |name: &str| ictd_in(dir.path(), &["circuit", "trained", "--params", name, "--json", "--out", "o"]);
    let v = |last: &str| format!("[[0,0,0,0],[0,0,0,0],[0,0,0,0],{last}]");
    let a = "[[1,0,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,0]]";
    for (last, algorithm) in [
        ("[0,1,1,-1]", "weighted softmax TD"),
        ("[0,1,1,-2]", "what the parameters of --params compute: not known from a construction"),
    ] {
        write("p.json", format!(r#"{{"V": {}, "A": {a}}}"#, v(last)).as_bytes());
        assert_eq!(json(&trained("p.json"))["algorithm"], algorithm);
    }
    for name in ["e.safetensors", "e.json"] {
        write(name, b"");
        assert_refused(&trained(name), "the file is empty");
    }
    let mut old =
        Tensors { metadata: [("format".into(), "ictd.circuit".into())].into(), ..Tensors::default() };
    for name in ["V", "A"] {
        old.insert(name, &[4, 4], vec![0.0; 16]);
    }
    write("old.safetensors", &old.to_bytes());
    assert_refused(&trained("old.safetensors"), "a circuit of an earlier version");
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
