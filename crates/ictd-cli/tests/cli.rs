//! The binary as a user meets it: data on stdout, messages on stderr, exit codes, files.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use assert_cmd::Command;

use common::{CONTEXT, assert_refused, forward, ictd, ictd_in, json};

/// The commands that help lists, each with its purpose.
fn commands_of_help() -> Vec<(String, String)> {
    let text = String::from_utf8(ictd(&["--help"]).stdout).unwrap();
    let listed = text.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let is_entry = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let entry = |line: &str| {
        let (name, purpose) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        (name.to_owned(), purpose.trim().to_owned())
    };
    listed.lines().filter(is_entry).map(entry).filter(|(name, _)| name != "help").collect()
}

/// Every command has a purpose, help of its own, the options that all have, and a line in the README; the README has no other.
#[test]
fn help_lists_every_family() {
    for command in ["task", "bound"] {
        let text = String::from_utf8(ictd(&[command, "--help"]).stdout).unwrap();
        for kind in ictd::task::Kind::NAMED {
            assert!(text.split([' ', ',', ';', '\n']).any(|word| word == kind.as_str()), "{command}: {kind}");
        }
    }
}

#[test]
fn help_and_readme_list_every_command_with_its_purpose() {
    let commands = commands_of_help();
    assert!(commands.len() >= 15, "{commands:?}");
    for (name, purpose) in &commands {
        assert!(purpose.len() > 20, "{name}: {purpose}");
        let output = ictd(&[name, "--help"]);
        assert!(output.status.success(), "{name}");
        let text = String::from_utf8(output.stdout).unwrap();
        for option in ["--quiet", "--json", "--out", "--seed"] {
            // What only reads and writes has neither chance nor a directory of results.
            let has = text.contains(option)
                || (name == "completions" && option != "--quiet")
                || (name == "runs" && matches!(option, "--out" | "--seed"))
                || (name == "convert" && matches!(option, "--out" | "--seed"))
                || (name == "explore" && matches!(option, "--json" | "--seed"));
            assert!(has, "{name} has no {option}:\n{text}");
        }
    }
    let readme = include_str!("../../../README.md");
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `ictd ")?.split('`').next());
    let mut listed: Vec<&str> = rows.collect();
    let mut known: Vec<&str> = commands.iter().map(|(name, _)| name.as_str()).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
}

/// `ictd` with environment variables.
fn ictd_with(variables: &[(&str, &str)], directory: &Path, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::cargo_bin("ictd").unwrap();
    for name in ["COLUMNS", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).current_dir(directory).args(arguments).output().unwrap()
}

#[test]
fn text_fits_the_width_that_it_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let commands: [&[&str]; 5] = [
        &["verify", "--trials", "1"],
        &["certify"],
        &["lemmas", "--trials", "5"],
        &["bound", "--contexts", "2", "--task", "coin", "--lengths", "10,30"],
        &["reproduce", "--only", "thm1"],
    ];
    for arguments in commands {
        let mut lines = Vec::new();
        for columns in ["60", "80", "200"] {
            let output = ictd_with(&[("COLUMNS", columns)], dir.path(), arguments);
            let text = String::from_utf8(output.stdout).unwrap();
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns.parse().unwrap(), "{arguments:?} at {columns}:\n{text}");
            lines.push(text.lines().count());
        }
        assert!(lines.is_sorted_by(|narrow, wide| narrow >= wide), "{arguments:?}: {lines:?}");
    }
}

#[test]
fn color_is_for_terminals_and_for_those_who_ask() {
    let dir = tempfile::tempdir().unwrap();
    let run = |variables: &[(&str, &str)], more: &[&str]| {
        let arguments = [&["verify", "--trials", "1", "--out", "o"], more].concat();
        let output = ictd_with(variables, dir.path(), &arguments);
        assert!(
            !String::from_utf8(fs::read(dir.path().join("o/verification.json")).unwrap())
                .unwrap()
                .contains('\x1b')
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let colored = run(&[("CLICOLOR_FORCE", "1")], &[]);
    assert!(colored.contains("\x1b[32mreproduced\x1b[0m"), "{colored}");
    let plain = run(&[], &[]);
    assert!(!plain.contains('\x1b'), "{plain}");
    assert_eq!(colored.replace("\x1b[32m", "").replace("\x1b[1m", "").replace("\x1b[0m", ""), plain);
    assert!(colored.contains("\x1b[1mname ") && colored.contains("discrepancy\x1b[0m\n---"), "{colored}");
    let failed = run(&[("CLICOLOR_FORCE", "1")], &["--tolerance", "0"]);
    assert!(failed.contains("\x1b[31mnot\x1b[0m \x1b[31mreproduced\x1b[0m"), "{failed}");
    let mistake = ictd_with(&[("CLICOLOR_FORCE", "1")], dir.path(), &["verify", "--trials", "0"]);
    assert!(mistake.stderr.starts_with(b"\x1b[31merror\x1b[0m: trials"), "{mistake:?}");
    assert!(!run(&[("CLICOLOR_FORCE", "1")], &["--json"]).contains('\x1b'));
    assert_eq!(run(&[("NO_COLOR", "1")], &[]), plain);
    // 0 forces nothing.
    assert_eq!(run(&[("CLICOLOR_FORCE", "0")], &[]), plain);
    for arguments in [&["verify", "--trials", "0"][..], &["--help"]] {
        let output = ictd_with(&[("CLICOLOR_FORCE", "0")], dir.path(), arguments);
        assert!(![output.stdout, output.stderr].concat().contains(&b'\x1b'), "{arguments:?}");
    }
}

#[test]
fn quiet_says_errors_only() {
    let dir = tempfile::tempdir().unwrap();
    let pretrain = ["pretrain", "--set", "epochs=20", "--seeds", "0..1"];
    for arguments in [&["verify", "--trials", "1"][..], &["reproduce", "--only", "thm1"], &pretrain] {
        let stderr = |output: std::process::Output| String::from_utf8(output.stderr).unwrap();
        assert_ne!(stderr(ictd_in(dir.path(), arguments)), "", "{arguments:?}");
        assert_eq!(stderr(ictd_in(dir.path(), &[arguments, &["--quiet"]].concat())), "", "{arguments:?}");
    }
    assert_refused(&ictd_in(dir.path(), &["--quiet", "verify", "--trials", "0"]), "trials");
}

#[test]
fn mistyped_names_are_answered_with_the_nearest_one() {
    let dir = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 14] = [
        (&["verfiy"], "'verify'"),
        (&["verify", "--trails", "3"], "'--trials'"),
        (
            &["msve", "--kernel", "sofmax"],
            "--kernel is 'sofmax', expected one of softmax, relu, elu1, rbf, linear, tabular; did you mean 'softmax'?",
        ),
        (
            &["pretrain", "--set", "kernel=sofmax"],
            "kernel is 'sofmax', expected one of softmax, linear, relu, elu1, rbf; did you mean 'softmax'?",
        ),
        (
            &["reproduce", "--only", "demo"],
            "'demo' is of another paper, expected --paper predecessor beside it",
        ),
        (&["certify", "--task", "boyann"], "did you mean 'boyan'?"),
        (&["task", "cartpol"], "did you mean 'cartpole'?"),
        (&["pretrain", "--preset", "papr"], "did you mean 'paper'?"),
        (&["pretrain", "--set", "qurey=skip"], "did you mean 'query'?"),
        (&["pretrain", "--set", "query=skp"], "did you mean 'skip'?"),
        (&["pretrain", "--set", "optimizer.nam=sgd"], "did you mean 'name'?"),
        (&["pretrain", "--set", "kernel=liner"], "did you mean 'linear'?"),
        (&["reproduce", "--only", "fig3aa"], "did you mean 'fig3a'?"),
        (&["completions", "fsh"], "'fish'"),
    ];
    for (arguments, meant) in cases {
        assert_refused(&ictd_in(dir.path(), arguments), meant);
    }
    let unknown = ictd_in(dir.path(), &["reproduce", "--only", "nope"]);
    assert_refused(
        &unknown,
        "'nope' is unknown, expected claims or studies of the tables in docs/reproduce.md",
    );
    assert!(unknown.stderr.len() < 150, "{}", String::from_utf8_lossy(&unknown.stderr));
    let far = ictd_in(dir.path(), &["task", "unicorn"]);
    assert!(!String::from_utf8_lossy(&far.stderr).contains("did you mean"));
}

#[test]
fn completions_know_commands_and_kernels() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = String::from_utf8(ictd(&["completions", shell]).stdout).unwrap();
        assert!(script.contains("certify") && script.contains("--kernel") || shell == "fish", "{shell}");
        // These two list values too.
        assert!(script.contains("elu1") || matches!(shell, "elvish" | "powershell"), "{shell}");
    }
}

#[test]
fn verify_prints_a_row_per_kernel_and_writes_figure_7() {
    let dir = tempfile::tempdir().unwrap();
    let output = ictd_in(dir.path(), &["verify"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for kernel in ["softmax", "relu", "elu1", "rbf", "linear", "tabular"] {
        assert!(text.lines().any(|line| line.starts_with(kernel)), "{kernel} is missing:\n{text}");
    }
    for file in
        ["fig7.svg", "fig7.png", "fig7.csv", "verification.csv", "special_cases.csv", "verification.json"]
    {
        assert!(dir.path().join("out/verify").join(file).exists(), "{file} is missing");
    }
}

#[test]
fn verify_fails_when_a_discrepancy_exceeds_the_tolerance() {
    let dir = tempfile::tempdir().unwrap();
    let output = ictd_in(dir.path(), &["verify", "--trials", "2", "--tolerance", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("not reproduced"));
}

#[test]
fn msve_falls_and_the_same_seed_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let run = |out: &str| ictd_in(dir.path(), &["msve", "--tasks", "40", "--json", "--out", out]);
    let (first, second) = (run("a"), run("b"));
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(json(&first)["verdict"], "reproduced");
    for file in ["fig1.svg", "fig1.png", "fig1.csv", "fig1.json"] {
        let read = |out: &str| fs::read(dir.path().join(out).join(file)).unwrap();
        assert_eq!(read("a"), read("b"), "{file} differs");
    }
}

/// Arrays say what text says, as a file and on standard input.
#[test]
fn contexts_in_arrays_are_those_in_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ictd-lab/tests/data/contexts");
    for command in ["forward", "certify"] {
        let on = |input: &Path, stdin: Vec<u8>| {
            let mut program = Command::cargo_bin("ictd").unwrap();
            program.args([command, "--json", "--input"]).arg(input).write_stdin(stdin).output().unwrap()
        };
        let [text, arrays] = ["episodes.json", "episodes.npz"].map(|name| folder.join(name));
        let expected = on(&text, Vec::new());
        assert!(!expected.stdout.is_empty());
        assert_eq!(on(&arrays, Vec::new()), expected);
        assert_eq!(on(Path::new("-"), fs::read(&arrays).unwrap()), expected);
        let cut = fs::read(&arrays).unwrap()[..1000].to_vec();
        assert_refused(&on(Path::new("-"), cut), "input -: found a zip archive that ends early");
    }
}

#[test]
fn tasks_of_every_kind_are_made_and_written() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["boyan", "loop", "dense", "cartpole"] {
        let arguments = ["task", kind, "--seed", "3", "--trajectory", "5", "--out", kind];
        let output = ictd_in(dir.path(), &arguments);
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let table = fs::read_to_string(dir.path().join(kind).join("trajectory.csv")).unwrap();
        assert_eq!(table.lines().count(), 7, "{kind}: header, 5 transitions, last state");
        assert!(table.starts_with("episode,t,state,s_0,"));
        assert!(dir.path().join(kind).join("task.json").exists());
    }
    let task = json(&ictd(&["task", "dense", "--states", "4", "--json"]));
    let sum: f64 =
        task["stationary_distribution"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).sum();
    // Four numbers below 1, each with a rounding.
    assert!((sum - 1.0).abs() < 1e-14);
}

#[test]
fn bad_input_is_one_line_and_leaves_nothing() {
    let good = CONTEXT;
    let cases: [(&str, &[&str], &str); 22] = [
        (r#"{"features": [[1]], "rewards": []}"#, &[], "rewards"),
        (r#"{"features": [], "rewards": []}"#, &[], "rewards"),
        (r#"{"episodes": []}"#, &[], "empty"),
        (r#"{"features": [[1, 2], [1]], "rewards": [1]}"#, &[], "features"),
        (r#"{"features": [[NaN], [1]], "rewards": [1]}"#, &[], "features"),
        (r#"{"features": [[1], [1]], "rewards": [null]}"#, &[], "rewards"),
        (r#"{"features": [[1], [1]], "rewards": [1, 2]}"#, &[], "rewards"),
        (r#"{"features": [[1], [1]], "rewards": ["one"]}"#, &[], "rewards[0]"),
        (r#"{"features": [[1], [1]], "rewards": [1], "querys": []}"#, &[], "querys"),
        ("not json", &[], "expected a JSON object"),
        (good, &["--gamma", "1"], "gamma"),
        (good, &["--gamma", "-0.1"], "gamma"),
        (good, &["--gamma", "nan"], "gamma"),
        (good, &["--temperature", "-1"], "temperature"),
        (good, &["--temperature", "0"], "temperature"),
        (good, &["--kernel", "gauss"], "kernel"),
        (good, &["--block", "triple"], "block"),
        (good, &["--diagonal-mix", "1.5"], "diagonal mix"),
        (good, &["--step-size", "1,2", "--layers", "3"], "step sizes"),
        (good, &["--layers", "many"], "--layers"),
        (good, &["--layers", "1000000000"], "layers"),
        (good, &["--temperature", "1e-310"], "temperature"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    for (context, arguments, field) in cases {
        let mut all = arguments.to_vec();
        all.extend(["--json", "--out", out.to_str().unwrap()]);
        assert_refused(&forward(context, &all), field);
        assert!(!out.exists(), "{field}: an output directory was left");
    }
    let refused: &[(&[&str], &str)] = &[
        (&["forward", "--input", "no-such-file.json"], "no-such-file.json"),
        (&["forward", "--input", "."], "input ."),
        (&["forward"], "--input"),
        (&["forward", "--input", "-", "--params", "no-such-file.json"], "no-such-file.json"),
        (&["verify", "--trials", "0"], "trials"),
        (&["verify", "--gamma", "2"], "gamma"),
        (&["verify", "--states", "2"], "states"),
        (&["verify", "--length", "100000"], "length"),
        (&["verify", "--layers", "-1"], "--layers"),
        (&["msve", "--tasks", "1"], "tasks"),
        (&["msve", "--kernel", "gauss"], "kernel"),
        (&["msve", "--lengths", "0,3"], "lengths"),
        (&["msve", "--lengths", "1,1000000000000"], "lengths"),
        (&["task", "boyan", "--states", "2"], "states"),
        (&["task", "boyan", "--states", "18446744073709551615"], "states"),
        (&["task", "dense", "--features", "18446744073709551615"], "features"),
        (&["task", "cartpole", "--states", "65536"], "bins"),
        (&["task", "loop", "--threshold", "1"], "threshold"),
        (&["task", "boyan", "--threshold", "0.5"], "threshold"),
        (&["task", "dense", "--gamma", "1"], "gamma"),
        (&["task", "dense", "--trajectory", "0"], "trajectory"),
        (&["task", "dense", "--trajectory", "18446744073709551615"], "trajectory"),
        (&["task", "unicorn"], "unicorn"),
        (&["reproduce", "--only", "fig99"], "fig99"),
        (&["frobnicate"], "frobnicate"),
    ];
    for (arguments, field) in refused {
        assert_refused(&ictd_in(dir.path(), arguments), field);
        assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "{arguments:?} left a file");
    }
}

/// `ictd … | head` and a full disk behind stderr: what nobody reads is no error, and no panic.
#[test]
fn a_reader_that_stops_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["verify", "--trials", "1"][..], &["verify", "--trials", "1", "--json"], &["--help"]] {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("ictd"))
            .current_dir(dir.path())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {message}");
        assert!(!message.contains("panicked") && !message.contains("error"), "{arguments:?}: {message}");
    }
    let script =
        format!("'{}' verify --trials 1 2>/dev/full", assert_cmd::cargo::cargo_bin("ictd").display());
    let full = Command::new("sh").current_dir(dir.path()).args(["-c", &script]).output().unwrap();
    assert_eq!(full.status.code(), Some(0));
}

#[test]
fn an_output_path_that_is_a_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("taken"), "precious").unwrap();
    let output = ictd_in(dir.path(), &["verify", "--trials", "1", "--out", "taken"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(dir.path().join("taken")).unwrap(), "precious");
}
