//! The theory commands as a user meets them.
#![allow(missing_docs)]

mod common;

use std::fs;

use assert_cmd::Command;
use common::{CONTEXT, assert_refused, forward, ictd, ictd_in, json, judged};

#[test]
fn certify_counts_the_known_regimes() {
    let counts = json(&ictd(&[
        "certify",
        "--task",
        "boyan",
        "--states",
        "64",
        "--features",
        "4",
        "--tasks",
        "50",
        "--json",
    ]));
    assert_eq!(counts["tasks"], 50);
    for (key, expected) in [
        ("assumption_holds", 0),
        ("norm_inf_below_one", 0),
        ("spectral_radius_below_one", 50),
        ("unstable", 0),
    ] {
        assert_eq!(counts[key], expected, "{key}");
    }
    let sharp = json(&ictd(&["certify", "--tasks", "50", "--score-scale", "20", "--json"]));
    // About 90 %; fewer than 35 of 50 would have probability 1e-5.
    assert!(sharp["unstable"].as_u64().unwrap() >= 35);
}

#[test]
fn a_refused_task_comes_with_repairs_that_the_command_confirms() {
    let dir = tempfile::tempdir().unwrap();
    let report = judged(&ictd_in(dir.path(), &["certify", "--score-scale", "20", "--out", "out", "--json"]));
    assert_eq!((&report["schema"], &report["status"]), (&"ictd.certificate/1".into(), &"refused".into()));
    assert_eq!(report["judgement"], "refuse");
    assert!(!report["reasons"].as_array().unwrap().is_empty());
    assert!(!report["contraction"]["offenders"].as_array().unwrap().is_empty());
    for file in ["certificate.json", "depth.svg", "depth.png", "depth.csv"] {
        assert!(dir.path().join("out").join(file).is_file(), "{file}");
    }
    let best = &report["suggestions"][0];
    let options = best["options"].as_str().unwrap();
    assert!(report["suggestion"].as_str().unwrap().contains(options));
    // Among the repairs is one that is proved to converge: a kernel that is narrow enough.
    let proved =
        report["suggestions"].as_array().unwrap().iter().find(|s| s["status"] == "certified").unwrap();
    let narrow: Vec<&str> = proved["options"].as_str().unwrap().split(' ').collect();
    assert!(narrow.contains(&"--temperature"), "{narrow:?}");
    assert_eq!(judged(&ictd(&[&["certify", "--json"], &narrow[..]].concat()))["status"], "certified");
    let mut arguments = vec!["certify", "--json"];
    arguments.extend(options.split(' '));
    let repaired = json(&ictd(&arguments));
    assert_eq!(repaired["status"], best["status"]);
    // A refused task has changes that make it converge, and the best of them shows at this depth.
    assert_eq!(best["helps"], "at this depth");
    assert!(best["error_at_depth"].as_f64().unwrap() < report["error_at_depth"].as_f64().unwrap());
    assert!(report["suggestions_note"].as_str().unwrap().contains("after 15 layers"));
    // The step size is printed with four decimals.
    let rho = |report: &serde_json::Value| report.as_f64().unwrap();
    assert!((rho(&repaired["contraction"]["spectral_radius"]) - rho(&best["spectral_radius"])).abs() < 1e-3);
}

#[test]
fn certify_reads_contexts() {
    let certify = |text: &str, more: &[&str]| {
        let arguments = [&["certify", "--input", "-", "--json"], more].concat();
        Command::cargo_bin("ictd").unwrap().args(arguments).write_stdin(text).output().unwrap()
    };
    let report = json(&certify(CONTEXT, &["--gamma", "0.5"]));
    assert_eq!((&report["n_transitions"], &report["n_episodes"]), (&2.into(), &1.into()));
    assert_eq!(report["contraction"]["never_left_states"], 1);
    // One state that stays where it is: the kernel has nothing to weigh.
    let loops = r#"{"features": [[1.0], [1.0], [1.0]], "rewards": [1.0, 1.0]}"#;
    let report = json(&certify(loops, &["--gamma", "0.5"]));
    assert_eq!(report["status"], "certified");
    let zero = r#"{"features": [[0.0], [1.0]], "rewards": [1.0]}"#;
    assert_refused(&certify(zero, &["--unit-norm"]), "unit-norm");
    assert_refused(&certify(CONTEXT, &["--gamma", "1"]), "gamma");
    assert_refused(&certify("{", &[]), "input");
}

/// What a certificate says about queries: bounded, and no reason to say less about the rest.
#[test]
fn queries_are_bounded_and_weaken_nothing() {
    let of = |queries: &str, command: &str, more: &[&str]| {
        let text = format!(
            r#"{{"features": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], "rewards": [1.0, -0.5, 2.0, 0.5]{queries}}}"#
        );
        let arguments = [&[command, "--input", "-", "--json", "--temperature", "0.05"], more].concat();
        json(&Command::cargo_bin("ictd").unwrap().args(arguments).write_stdin(text).output().unwrap())
    };
    let layers = ["--gamma", "0.5", "--layers", "7"];
    let (without, with) =
        (of("", "certify", &layers), of(r#", "queries": [[0.6, 0.5], [9.0, -3.0]]"#, "certify", &layers));
    for key in ["status", "reasons", "contraction", "stability", "steps"] {
        assert_eq!(without[key], with[key], "{key}");
    }
    assert_eq!(with["status"], "certified");
    let fixed = &with["fixed_point"];
    let number = |key: &str| fixed[key].as_f64().unwrap();
    assert!(number("error_bound_inf") >= number("error_to_empirical_fixed_point_inf"));
    // As many layers as are said to be enough are enough, for the queries too.
    let enough = fixed["layers_sufficient"].as_u64().unwrap().to_string();
    let values = of(
        r#", "queries": [[0.6, 0.5], [9.0, -3.0]]"#,
        "forward",
        &["--gamma", "0.5", "--layers", &enough, "--fixed-point"],
    );
    assert_eq!(values["fixed_point"]["status"], "certified");
    let last = values["values"].as_array().unwrap().last().unwrap().as_array().unwrap();
    for (v, limit) in last.iter().zip(values["fixed_point"]["values"].as_array().unwrap()) {
        assert!((v.as_f64().unwrap() - limit.as_f64().unwrap()).abs() <= 1e-3);
    }
}

/// One spectrum, one verdict.
#[test]
fn forward_and_certify_never_contradict_each_other() {
    let mut refused = 0;
    for seed in 0..12 {
        let mut stream = ictd::random::Stream::new(seed, ictd::random::Purpose::Prompt, 0);
        // Three states, two of them more or less the same.
        let gap = if seed % 2 == 0 { 1.0 } else { 1e-6 };
        let x = stream.uniform_vec(2, -3.0, 3.0);
        let states = [[x[0], x[1]], [x[0] + gap * stream.uniform(), x[1]], [x[1], -x[0]]];
        let rows: Vec<String> = (0..13).map(|_| format!("{:?}", states[stream.below(3) as usize])).collect();
        let text = format!(r#"{{"features": [{}], "rewards": {:?}}}"#, rows.join(","), [1.0; 12]);
        let run = |command: &str| {
            let arguments =
                if command == "forward" { &["forward", "--fixed-point"][..] } else { &["certify"] };
            let mut process = Command::cargo_bin("ictd").unwrap();
            process.args(arguments).args(["--input", "-", "--json", "--temperature", "0.3"]);
            process.write_stdin(text.clone()).output().unwrap()
        };
        let certificate = judged(&run("certify"));
        refused += u32::from(certificate["status"] == "refused");
        let output = run("forward");
        // A limit that rounding would spoil is refused by both.
        if output.status.code() == Some(1) {
            assert!(String::from_utf8_lossy(&output.stderr).contains("singular"));
            assert!(certificate["fixed_point"].is_null());
            continue;
        }
        let fixed = &judged(&output)["fixed_point"];
        assert_eq!(fixed["status"], certificate["status"]);
        assert_eq!(fixed["spectral_radius"], certificate["contraction"]["spectral_radius"]);
        assert_eq!(fixed["converges"], certificate["status"] != "refused");
    }
    assert!((1..12).contains(&refused), "{refused}");
}

/// Whatever the verdict, there is something to do, and it is what the command says it is.
#[test]
fn every_certificate_suggests_something() {
    let layers = |report: &serde_json::Value| {
        let words = report["suggestion"].as_str().unwrap().to_owned();
        let enough = words.split("--layers ").nth(1)?.split(')').next()?.to_owned();
        Some(enough)
    };
    let mut seen = std::collections::BTreeSet::new();
    for kernel in ["softmax", "rbf", "linear", "relu", "elu1", "tabular"] {
        for more in
            [&["--states=6"][..], &["--states=6", "--score-scale=30"], &["--states=6", "--step-size=50"]]
        {
            let arguments = [&["certify", "--json", "--kernel", kernel], more].concat();
            let report = judged(&ictd(&arguments));
            assert!(report["certifies"].as_str().unwrap().starts_with("convergence with depth"));
            assert!(!report["suggestion"].as_str().unwrap().is_empty(), "{arguments:?}");
            let refused = report["judgement"] == "refuse";
            assert_eq!(refused, report["suggestion"].as_str().unwrap().starts_with("try "), "{arguments:?}");
            seen.insert(report["status"].as_str().unwrap().to_owned());
            if let Some(enough) = layers(&report) {
                let with = judged(&ictd(&[&arguments[..], &["--layers", &enough]].concat()));
                // The error there is within 1 %, and one layer earlier it is not.
                assert!(with["error_at_depth"].as_f64().unwrap() <= 0.01 + 1e-9, "{arguments:?}");
                let fewer = (enough.parse::<u64>().unwrap() - 1).to_string();
                let with = judged(&ictd(&[&arguments[..], &["--layers", &fewer]].concat()));
                assert!(with["error_at_depth"].as_f64().unwrap() > 0.01 - 1e-9, "{arguments:?}");
            }
        }
    }
    assert!(seen.contains("certified") && seen.contains("estimated") && seen.contains("refused"), "{seen:?}");
}

/// More states than matrices are formed for: all of them by products where that is quick, else a part, which the seed decides.
#[test]
fn above_the_limit_of_states_products_or_a_subsample_decide() {
    let dir = tempfile::tempdir().unwrap();
    // 3100 states on a line far apart, in episodes of 31.
    let episode = |k: usize| {
        let features: Vec<[f64; 1]> = (0..32).map(|t| [(32 * k + t) as f64]).collect();
        serde_json::json!({ "features": features, "rewards": vec![1.0; 31], "terminated": true })
    };
    let context = serde_json::json!({ "episodes": (0..100).map(episode).collect::<Vec<_>>() });
    fs::write(dir.path().join("c.json"), context.to_string()).unwrap();
    let of = |kernel: &str| {
        let arguments = ["certify", "--input", "c.json", "--kernel", kernel, "--json", "--layers", "2"];
        let output = ictd_in(dir.path(), &arguments);
        (judged(&output), output.stdout)
    };
    let (report, bytes) = of("tabular");
    let (examined, part) = (&report["examined"], &report["examined"]["suggestions_from"]);
    assert_eq!((&examined["states"], &examined["route"]), (&3100.into(), &"kept".into()));
    assert_eq!((&part["of"], &part["states"], &report["subsample"]), (&3100.into(), &496.into(), &().into()));
    assert_eq!((&report["n_episodes"], &report["n_transitions"]), (&100.into(), &3100.into()));
    // Every state has its own value, so that layers contract by proof.
    assert_eq!((&report["status"], &report["judgement"]), (&"certified".into(), &"trust".into()));
    // Nilpotent: products find no eigenvalue but 0, if slowly, and say how well.
    assert!(report["spectrum"]["method"] == "arnoldi" && report["spectrum"]["residual"].as_f64() > Some(0.0));
    let fixed = &report["fixed_point"];
    let (error, largest) =
        (fixed["error_to_empirical_fixed_point_inf"].as_f64().unwrap(), 10.0 * (1.0 - 0.9_f64.powi(31)));
    assert!((fixed["largest_value"].as_f64().unwrap() - largest).abs() < 1e-12);
    // Two layers of tabular TD: 1 + 0.9 of it.
    assert!((error - (largest - 1.9)).abs() < 1e-12, "{error}");
    assert_eq!(of("tabular").1, bytes);
    // The linear kernel moves values in few directions: a part is examined.
    let (report, bytes) = of("linear");
    assert_eq!((&report["subsample"]["of"], &report["subsample"]["states"]), (&3100.into(), &496.into()));
    assert_eq!((&report["n_episodes"], &report["n_transitions"]), (&16.into(), &496.into()));
    let warning = "496 of 3100 states, subsample: the verdict is about the subsample";
    assert!(report["data_warnings"].to_string().contains(warning) && report["judgement"] != "trust");
    assert_eq!(of("linear").1, bytes);
}

/// Values that should not be used say so, and the command ends with 3; others say how far they are.
#[test]
fn forward_judges_its_values() {
    let loops = r#"{"features": [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]], "rewards": [1, 0, 1, 0]}"#;
    let of = |more: &[&str]| {
        let output = forward(loops, &[&["--json"], more].concat());
        let result = judged(&output);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!((1..=3).contains(&said.lines().count()), "{said}");
        assert!(said.starts_with(&result["judgement"].as_str().unwrap().to_uppercase()), "{said}");
        (result["judgement"].as_str().unwrap().to_owned(), result["reasons"][0].as_str().unwrap().to_owned())
    };
    // Two visits of each state: the values rest on few transitions however deep they are.
    let (level, _) = of(&["--kernel", "tabular", "--layers", "200"]);
    assert_eq!(level, "caution");
    // The limit is v = 1/(1 - γ²) and γ times it. With γ = 0.9 the slowest error falls by 0.9 a layer, with its two values the
    // same: what is left of both after 15 layers is 0.9¹⁵ of their mean of 5, and their spread is near 0.26.
    let (level, reason) = of(&["--kernel", "tabular", "--layers", "15"]);
    let far = 100.0 * 0.9f64.powi(15) * 5.0 / (0.5 * 0.1 / 0.19);
    let told: f64 =
        reason.split("15 layers are ").nth(1).unwrap().split(" %").next().unwrap().parse().unwrap();
    // Five columns, three of them of the first state, and the fast error is gone.
    assert!(level == "caution" && (told / far - 1.0).abs() < 0.05, "{told} {far}: {reason}");
    let (level, reason) = of(&["--kernel", "tabular", "--step-size", "3"]);
    assert!(level == "refuse" && reason.contains("diverge"), "{reason}");
    let (level, reason) = of(&["--temperature", "1e12"]);
    assert!(level == "refuse" && reason.contains("collapsed"), "{reason}");
    let quiet = forward(loops, &["--quiet", "--step-size", "3"]);
    assert!(quiet.status.code() == Some(3) && quiet.stderr.is_empty() && !quiet.stdout.is_empty());
}

#[test]
fn theorem_2_keeps_its_promise_where_its_premises_hold() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "bound",
        "--task",
        "coin",
        "--states",
        "2",
        "--gamma",
        "0.1",
        "--one-hot",
        "--score-scale",
        "0.45",
        "--contexts",
        "20",
        "--lengths",
        "100",
        "--json",
    ];
    let reports = json(&ictd_in(dir.path(), &arguments));
    let report = &reports[0];
    assert!(report["failed_premises"].as_array().unwrap().is_empty());
    let theorem: Vec<_> = report["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["premises"] == true && c["statement"].as_str().unwrap().starts_with("Theorem 2"))
        .collect();
    assert!(!theorem.is_empty());
    for comparison in theorem {
        assert_eq!(comparison["covered"], comparison["contexts"]);
    }
    // The paper's tasks do not satisfy the assumption, and the report says so.
    let reports = json(&ictd_in(
        dir.path(),
        &[
            "bound",
            "--task",
            "boyan",
            "--states",
            "64",
            "--features",
            "4",
            "--gamma",
            "0.9",
            "--score-scale",
            "1",
            "--contexts",
            "2",
            "--lengths",
            "100",
            "--json",
        ],
    ));
    let premises = reports[0]["failed_premises"].as_array().unwrap();
    assert!(premises[0].as_str().unwrap().contains("Assumption 5.1"));
}

#[test]
fn neu_falls_with_length_and_reads_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let arguments =
        ["neu", "--one-hot", "--lengths", "30,100,300", "--layers", "2,20", "--samples", "500", "--json"];
    let reports = json(&ictd_in(dir.path(), &arguments));
    let point = |n: u64, layers: u64| {
        let points = reports[0]["points"].as_array().unwrap();
        points.iter().find(|p| p["n"] == n && p["layers"] == layers).unwrap()["neu"].as_f64().unwrap()
    };
    assert!(point(300, 20) < point(30, 20) && point(300, 20) < point(300, 2));
    assert!(dir.path().join("out/neu/landscape.svg").is_file());
    let trained = ["pretrain", "--seeds", "1", "--set", "epochs=5", "--json"];
    json(&ictd_in(dir.path(), &trained));
    let root = fs::read_dir(dir.path().join("runs/paper")).unwrap().next().unwrap().unwrap().path();
    let checkpoint = root.join("seed_0000/ckpt/best.safetensors");
    let points = json(&ictd(&["neu", "--params", checkpoint.to_str().unwrap(), "--samples", "50", "--json"]));
    assert_eq!((points.as_array().unwrap().len(), &points[0]["theta"]), (2, &"theta_*".into()));
}

#[test]
fn regimes_and_lemmas_write_their_tables() {
    let dir = tempfile::tempdir().unwrap();
    let map = json(&ictd_in(dir.path(), &["regimes", "--states", "8", "--tasks", "2", "--json"]));
    let cells = map["cells"].as_array().unwrap();
    // Unnormalised kernels, docs/proofs.md (b): a step size per state is stable everywhere.
    let repaired: Vec<_> = cells.iter().filter(|c| c["repair"] == "step-per-state").collect();
    assert!(!repaired.is_empty() && repaired.iter().all(|c| c["unstable"] == 0));
    assert!(dir.path().join("out/regimes/regimes.svg").is_file());
    let rows = json(&ictd(&["lemmas", "--trials", "50", "--json"]));
    let ratios: Vec<f64> = rows.as_array().unwrap().iter().map(|r| r["ratio"].as_f64().unwrap()).collect();
    // Lemmas hold, up to the rounding of both sides; a ratio of 0 would mean that nothing was compared.
    assert!(ratios.len() >= 3 && ratios.iter().all(|r| (1e-12..=1.0 + 1e-12).contains(r)), "{ratios:?}");
}

#[test]
fn bad_theory_arguments_are_one_line() {
    for (arguments, field) in [
        (&["certify", "--states", "2"][..], "states"),
        (&["certify", "--features", "0"], "features"),
        (&["certify", "--gamma", "1"], "gamma"),
        (&["certify", "--score-scale", "0"], "score-scale"),
        (&["certify", "--score-scale", "1e308"], "scores of column 0 overflow"),
        (&["certify", "--score-scale", "inf"], "score-scale"),
        (&["certify", "--temperature", "nan"], "temperature"),
        (&["certify", "--step-size", "inf"], "step-size"),
        (&["certify", "--step-size", "-1"], "step-size"),
        (&["certify", "--temperature", "0"], "temperature"),
        (&["certify", "--tolerance", "nan"], "tolerance"),
        (&["certify", "--tasks", "0"], "tasks"),
        (
            &["certify", "--task", "coin", "--kernel", "linear", "--score-scale", "3e307", "--n", "50"],
            "features: state 1 has an entry of size 5",
        ),
        (&["certify", "--n", "0"], "n is 0"),
        (&["certify", "--input", "no-such.json"], "no-such.json"),
        (&["certify", "--task", "nobody"], "nobody"),
        (&["bound", "--contexts", "1"], "contexts"),
        (&["bound", "--delta", "2"], "delta"),
        (&["bound", "--task", "boyan", "--states", "300"], "states"),
        (&["neu", "--samples", "1"], "samples"),
        (&["neu", "--layers", "-1"], "--layers is '-1', expected a whole number"),
        (&["neu", "--one-hot", "--lengths", "0"], "n is 0"),
        (&["neu", "--params", "no-such.safetensors"], "no-such.safetensors"),
        (&["regimes", "--tasks", "0"], "tasks"),
        (&["lemmas", "--trials", "0"], "trials"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        assert_refused(&ictd_in(dir.path(), arguments), field);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{arguments:?} left files");
    }
}
