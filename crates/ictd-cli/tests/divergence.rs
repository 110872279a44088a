//! `forward --construction` refuses values that diverged, whatever is known of the layers, and cautions values that no layer can change.
#![allow(missing_docs)]

mod common;

use common::{forward, json};
use serde_json::{Value, json};

/// Exit code, judgement and the first reason.
fn judged(context: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = forward(context, &[&["--construction"], arguments, &["--json"]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (output.status.code(), text(&result["judgement"]), text(&result["reasons"][0]))
}

fn assert_diverged(context: &str, arguments: &[&str], because: &str) {
    let (code, level, reason) = judged(context, arguments);
    assert_eq!((code, level.as_str()), (Some(3), "refuse"), "{reason}");
    assert!(reason.starts_with("values diverge: ") && reason.contains(because), "{reason}");
    assert!(reason.contains("lower the step size or the depth"), "{reason}");
}

const SQUARE: &str = r#"{"features": [[1,0],[0,1],[1,1],[1,0]], "rewards": [1,0,-1]}"#;

/// Layers have no one factor, and the limit is known.
#[test]
fn step_sizes_that_differ_hide_no_divergence() {
    let steps = |size: &str, last: &str| [vec![size; 59], vec![last]].concat().join(",");
    let run = |steps: &str| judged(SQUARE, &["td", "--layers", "60", "--step-size", steps]);
    assert_diverged(
        SQUARE,
        &["td", "--layers", "60", "--step-size", &steps("30", "30")],
        "multiplies errors by",
    );
    assert_diverged(
        SQUARE,
        &["td", "--layers", "60", "--step-size", &steps("30", "30.1")],
        "from its limit 0.07",
    );
    // Steps that grow change values more and more, on the way to the limit all the same.
    let ramp: Vec<String> = (1..=60).map(|k| format!("{}", 0.0001 * f64::from(k))).collect();
    assert_eq!(run(&ramp.join(",")).1, "caution");
    assert_eq!(run(&steps("1", "1.1")).0, Some(0));
}

/// Eigenvalues of so many are not looked for, and no limit is known.
#[test]
fn many_features_hide_no_divergence() {
    let context = |d: usize, scale: f64| {
        // 31 states with features of a few values, as unlike each other as numbers of a small generator are.
        let feature = |i: usize, j: usize| scale * ((i * 7919 + j * 104_729 + i * j * 31) % 13) as f64;
        let rows: Vec<Vec<f64>> = (0..31).map(|i| (0..d).map(|j| feature(i, j)).collect()).collect();
        let rewards: Vec<f64> = (0..30).map(|i| f64::from(i % 5)).collect();
        json!({"features": rows, "rewards": rewards}).to_string()
    };
    for (d, because) in [(300, "multiplies errors by"), (301, "and no limit is known")] {
        assert_diverged(&context(d, 1.0), &["td", "--layers", "20"], because);
    }
    // Small steps of as many features are only not known.
    assert_eq!(judged(&context(301, 0.001), &["td", "--layers", "20"]).1, "caution");
}

/// Of features that are collinear but for rounding neither factor nor limit is known.
#[test]
fn collinear_features_hide_no_divergence() {
    let context = r#"{"features": [[0,-3,0,3],[0,-3,3,3],[0,-3,-3,3],[-3,3,-3,0]], "rewards": [-3,0,3]}"#;
    assert_diverged(context, &["td", "--gamma", "0", "--layers", "200"], "and no limit is known");
    assert_eq!(
        judged(context, &["td", "--gamma", "0", "--layers", "200", "--step-size", "0.01"]).1,
        "caution"
    );
}

/// Errors elsewhere grow until the query's own change is less than their rounding, and its value stands still: 50013.7 where exact arithmetic
/// has 6.6e67.
#[test]
fn values_that_rounding_froze_are_refused() {
    let states = [0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1];
    let rows = states.map(|s| if s == 0 { [1, 0] } else { [0, 1] });
    let context = json!({"features": rows, "rewards": [2, -3, -3, 2, -3, 0, -3, 3, -2, -2]}).to_string();
    let of = |layers| {
        ["td-lambda", "--lambda", "0.5", "--gamma", "0.5", "--step-size", "-0.5", "--layers", layers]
    };
    for (layers, because) in [("100", "those before by"), ("2000", "leaves rounding in place of the value")] {
        assert_diverged(&context, &of(layers), because);
    }
}

#[test]
fn features_of_0_ask_for_care() {
    let zeros = r#"{"features": [[0],[0],[0],[0]], "rewards": [1,2,3]}"#;
    let last = r#"{"features": [[1],[2],[1.5],[0]], "rewards": [5,7,6]}"#;
    for (context, name) in [(zeros, "td"), (last, "td"), (last, "sarsa"), (last, "monte-carlo")] {
        let arguments =
            ["--construction", name, "--layers", "400", "--step-size", "0.1", "--gamma", "0.1", "--json"];
        let result = json(&forward(context, &arguments));
        assert_eq!(result["judgement"], "caution", "{name}: {result}");
        let said = "the query's features are all 0: its value is 0 whatever the rewards are";
        assert!(result["reasons"].to_string().contains(said), "{name}: {result}");
    }
    // Kernels that give a score of 0 no weight; that of softmax is 1.
    for (kernel, context, said) in [
        ("linear", zeros, Some("4 of 4 values are 0 whatever")),
        ("linear", last, Some("1 of 4 values are 0 whatever")),
        ("relu", zeros, Some("4 of 4 values are 0 whatever")),
        ("softmax", zeros, None),
    ] {
        let arguments = ["--kernel", kernel, "--step-size", "0.1", "--layers", "400", "--json"];
        let result = json(&forward(context, &arguments));
        let reasons = result["reasons"].to_string();
        match said {
            Some(said) => {
                assert!(result["judgement"] == "caution" && reasons.contains(said), "{kernel}: {result}")
            }
            None => assert!(!reasons.contains("whatever"), "{kernel}: {result}"),
        }
    }
}
