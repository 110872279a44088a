//! Sizes and numbers at the limits: refused in one line, or answered without NaN; never a panic.
#![allow(missing_docs)]

mod common;

use common::{assert_refused, forward, ictd, ictd_in, json, judged};

/// Every count and size that a user can give has a limit from the memory it would need, and is refused before the work.
#[test]
fn sizes_that_no_memory_holds_are_refused_before_the_work() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [
        "msve --layers 200000000000",
        "msve --layers 9000000000000000000",
        "msve --tasks 1000000000000",
        "msve --tasks 18446744073709551615",
        "verify --trials 1000000000000",
        "verify --trials 18446744073709551615",
        "verify --trials 100000 --length 2000",
        "pretrain --seeds 0..1000000",
        "pretrain --features 10000",
        "pretrain --set n=20000 --set rho.end=0.5",
        "pretrain --set epochs=1000000000 --seeds 0..1",
        "pretrain --set mask=relaxed --set n=2000 --set layers=100",
        "readings --seeds 100000",
        "mirror --seeds 100000 --epochs 1000000",
        "control --mdps 100000 --updates 100000",
        "neu --task dense --states 3 --features 1000 --samples 1000000",
        "task dense --states 5 --features 1000 --trajectory 10000000",
    ] {
        let output = ictd_in(dir.path(), &arguments.split(' ').collect::<Vec<_>>());
        assert_refused(&output, "expected at most 8 GB: lower ");
    }
    assert_refused(&forward(common::CONTEXT, &["--layers", "4000000000"]), "8 GB");
    // A sweep's memory does not grow with its runs; their number has a limit of its own.
    assert_refused(&ictd_in(dir.path(), &["branches", "--seeds", "100000"]), "expected 1 to 1000000");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a refusal leaves nothing behind");
}

/// 0·∞ in a bound is no violation, and ∞ − ∞ in the values no limit.
#[test]
fn what_is_no_number_is_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let bound =
        "bound --task dense --states 3 --one-hot --gamma 0 --score-scale 500 --lengths 1000 --contexts 20";
    let found = json(&ictd_in(dir.path(), &format!("{bound} --json").split(' ').collect::<Vec<_>>()));
    let rows = found[0]["comparisons"].as_array().unwrap();
    let bias = rows.iter().find(|row| row["statement"] == "Lemma 6, bias").unwrap();
    assert_eq!((&bias["bound"], &bias["covered"]), (&0.0.into(), &20.into()));
    let context = r#"{"features": [[1, 0], [0, 1], [1, 0]], "rewards": [-1e308, 0]}"#;
    let output = forward(context, &["--fixed-point", "--layers", "0", "--json"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && message.contains("overflows"), "{message}");
    assert!(judged(&output)["fixed_point"].is_null());
}

/// Scores so large that rounding decides weights: the norm has no bound, and says so.
#[test]
fn a_norm_without_a_bound_is_absent_with_a_reason() {
    let found = json(&ictd(&["certify", "--json", "--states", "3", "--score-scale", "1e200"]));
    assert!(found["contraction"]["norm_inf"].is_null() && found["status"] != "certified");
    let reasons = found["reasons"].to_string();
    assert!(reasons.contains("no finite bound") && !reasons.contains(" inf "), "{reasons}");
}

/// Score scales up to the largest double, on every command that takes them.
#[test]
fn score_scales_near_the_largest_double_do_not_panic() {
    let dir = tempfile::tempdir().unwrap();
    let commands =
        ["certify --out c", "bound --contexts 2 --lengths 10", "neu --samples 4 --lengths 5 --layers 1"];
    for command in commands {
        for scale in ["5e307", "1.7976931348623157e308"] {
            for tasks in
                ["--task dense --states 3", "--task dense --states 3 --one-hot", "--states 4 --unit-norm"]
            {
                let arguments = format!("{command} {tasks} --score-scale {scale}");
                let output = ictd_in(dir.path(), &arguments.split(' ').collect::<Vec<_>>());
                let message = String::from_utf8_lossy(&output.stderr);
                assert!(matches!(output.status.code(), Some(0..=3)), "{arguments}: {message}");
                assert!(!message.contains("panicked"), "{arguments}: {message}");
            }
        }
    }
}

/// Rewards of the smallest and the largest doubles: drawn, without coordinates that are no numbers.
#[test]
fn extreme_rewards_can_be_drawn() {
    let dir = tempfile::tempdir().unwrap();
    for reward in ["5e-324", "1e-310", "1e300", "1e306"] {
        let context = dir.path().join("context.json");
        let text = format!(r#"{{"features": [[1, 0], [0, 1], [1, 0]], "rewards": [{reward}, 0]}}"#);
        std::fs::write(&context, text).unwrap();
        let output =
            ictd_in(dir.path(), &["forward", "--input", "context.json", "--layers", "3", "--out", "o"]);
        assert!(output.status.success(), "{reward}: {}", String::from_utf8_lossy(&output.stderr));
        let svg = std::fs::read_to_string(dir.path().join("o/values.svg")).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{reward}");
    }
}
