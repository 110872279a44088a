//! What a plan may say, and what it is told.

use super::*;

#[test]
fn bad_plans_are_one_line_that_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        ("kernels = 3", "line 1: kernels is no key of a plan"),
        ("seed = 3", "did you mean 'seeds'?"),
        ("seeds = \"5..5\"", "line 1: seeds is '5..5' (empty)"),
        ("seeds = [1, 1]", "1 is given twice"),
        ("\n\nmetrics = \"always\"", "line 3: metrics is 'always'"),
        ("checkpoints = \"last\"", "line 1: checkpoints is 'last'"),
        ("[grid]\nkernel = []", "line 2: grid.kernel is [], expected at least one value"),
        ("[grid]\nkernel = \"softmax\"", "line 2: grid.kernel is \"softmax\", expected a list of values"),
        ("[grid]\nn = [5, 5]", "line 2: grid.n has 'n=5' twice"),
        ("[grid]\nn = { from = 1, to = 2 }", "line 2: grid.n.points is missing"),
        ("[grid]\n\noptimizer.lr = 3", "line 3: grid.optimizer.lr is 3, expected a list of values"),
        ("[grid]\nn = {}", "line 2: grid.n.from is missing"),
        ("\nname = \"\"", "line 2: name is \"\", expected one line without / and \\"),
        ("name = \".\"", "line 1: name is \".\""),
        ("name = \"..\"", "line 1: name is \"..\""),
        ("name = \"../mine\"", "line 1: name is \"../mine\""),
        ("name = 'a\\b'", "line 1: name is"),
        ("name = \"a\\tb\"", "line 1: name is"),
        ("[grid]\nn = { from = 1, to = 2, points = 1 }", "points is 1, expected 2 to"),
        ("[grid]\nn = { from = 0, to = 2, points = 3, scale = \"log\" }", "expected positive numbers"),
        ("[grid]\nn = { from = 1, to = nan, points = 3 }", "expected a finite number"),
        ("[[zip]]\nn = [1, 2]\nlayers = [1]", "zip.layers has 1 value, expected 2 as n has"),
        ("[[zip]]", "zip has no keys"),
        ("[zip]\nn = [1]", "expected [[zip]]"),
        ("[[case]]\nset = { n = 5 }", "case has no title"),
        ("[[case]]\ntitle = \"a\"\n[[case]]\ntitle = \"a\"", "case 'a' stands there twice"),
        ("[[case]]\ntitle = \"a\"\nn = 3", "case.n is no key of a case"),
        ("[grid]\nn = [1]\n\n[[zip]]\nn = [2]", "line 5, [[zip]]: n: two axes vary it"),
        ("[grid]\ntau = [1, 2]\ntemperature = [1, 2]", "two axes vary it, as "),
        ("[[case]]\ntitle = \"a\"\nset = { tau = 1, temperature = 2 }", "too, expected one name of a key"),
        ("[set]\nn = 3\n[grid]\nn = [1]", "line 1, [set]: 'n=3' is what an axis varies"),
        ("preset = \"paper\"\nconfig = \"a.toml\"", "stands beside preset"),
        ("config = \"absent.toml\"", "absent.toml"),
        (
            "seeds = 1000000\n[grid]\nn = { from = 1, to = 1000, points = 1000 }",
            "runs is 1000000000 (1000 settings with 1000000 seeds), expected 1 to 1000000",
        ),
        ("grid = 3", "grid is 3, expected a table of keys"),
        ("x = [", "line 1"),
    ];
    for (text, expected) in cases {
        let error = plan(dir.path(), text).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(expected), "{text}: {message}");
        assert_eq!((message.lines().count(), error.exit_code()), (1, 2), "{text}");
    }
    // What is wrong with a key or a value is found with its place.
    for (text, expected) in [
        ("[grid]\nkernal = [\"softmax\"]", "plan.toml: line 2, [grid]: kernal is no key"),
        ("[grid]\nkernel = [\"softmax\", \"sofmax\"]", "line 2, [grid]: kernel is 'sofmax'"),
        ("[set]\nlayers = 2\n[grid]\nn = [3, -1]", "line 4, [grid]: n"),
        ("[grid]\nn = [3, 5]\n\"optimizer.lr\" = [1e-3, true]", "line 3, [grid]: optimizer.lr"),
        ("[set]\n\nlayers = \"two\"", "line 3, [set]: layers"),
        ("[set]\noptimizer = { lr = 1, rl = 2 }", "line 2, [set]: optimizer.rl is no key"),
        ("[set.optimizer]\nrl = 2", "line 2, [set]: optimizer.rl is no key"),
        ("[[zip]]\nn = [1, 2]\n[[zip]]\nlayers = [1, 2]\nkernal = [1, 2]", "line 5, [[zip]]: kernal"),
        ("[grid]\nn = [1]\noptimizer.rl = [1, 2]", "line 3, [grid]: optimizer.rl is no key"),
        ("[[zip]]\nn = [1, 2]\noptimizer.rl = [1, 2]", "line 3, [[zip]]: optimizer.rl is no key"),
        ("[[case]]\ntitle = \"a\"\n[[case]]\ntitle = \"b\"\nset = { n = 0 }", "line 5, [[case]] 'b': n"),
        ("preset = \"papers\"", "line 1: preset is 'papers'"),
        ("[grid]\nn = { from = 5, to = 10, points = 4 }", "line 2: grid.n has 6.66"),
        ("[grid]\ntemperature = { from = 1, to = 2, points = 3 }", "such as 1.0"),
        ("[[case]]\ntitle = \"a\\nb\"", "case.title is \"a\\nb\", expected one line"),
    ] {
        let error = plan(dir.path(), text).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(expected), "{text}: {message}");
        assert_eq!((message.lines().count(), error.exit_code()), (1, 2), "{text}: {message}");
    }
    // What only a combination makes wrong is found before the first run, and before a directory is made.
    let cartpole =
        "[grid]\nloss = [\"td\", \"true-value\"]\ntask = [\"boyan\", \"cartpole\"]\n[set]\nepochs = 1";
    for (text, expected) in [
        (cartpole, "PLAN: setting 3 ("),
        ("[grid]\ntemperature = [1, 1.0]", "settings 0 (temperature=1) and 1 (temperature=1.0) are the same"),
    ] {
        let request = request(dir.path(), text, "never");
        let message = request.open(true).unwrap_err().to_string();
        assert!(message.contains(expected) && message.lines().count() == 1, "{text}: {message}");
        assert!(!request.out.exists(), "{text}");
    }
}

#[test]
fn a_seed_may_be_the_largest_number() {
    let dir = tempfile::tempdir().unwrap();
    let found = plan(dir.path(), "seeds = [9223372036854775807]").unwrap();
    assert_eq!(found.seeds[..], [i64::MAX as u64]);
}

/// Keys with dots are the same with and without quotes, and as tables.
#[test]
fn dotted_keys_may_be_tables() {
    let dir = tempfile::tempdir().unwrap();
    let quoted = r#"
[grid]
n = [5, 8]
"optimizer.lr" = [1e-3, 2e-3]
"init.gain" = { from = 0.1, to = 1.0, points = 3 }
[[zip]]
"rho.start" = [0.5, 0.9]
"rho.steps" = [10, 20]
[[case]]
title = "a"
set = { "init.score_sign" = "td" }
[[case]]
title = "b"
"#;
    let expected = plan(dir.path(), quoted).unwrap();
    assert_eq!(expected.varied()[..4], ["case", "n", "optimizer.lr", "init.gain"]);
    let bare = quoted.replace("\"optimizer.lr\"", "optimizer.lr").replace("\"init.gain\"", "init.gain");
    let bare = bare.replace("\"rho.start\"", "rho.start").replace("\"rho.steps\"", "rho.steps");
    let bare = bare.replace("\"init.score_sign\"", "init.score_sign");
    assert!(!bare.contains("\"optimizer") && !bare.contains("\"init") && !bare.contains("\"rho"));
    let mut found = plan(dir.path(), &bare).unwrap();
    // Keys of a table have an order of their own.
    found.axes[3].keys.sort();
    found.axes[3].choices.iter_mut().for_each(|choice| choice.set.sort());
    let mut sorted = expected;
    sorted.axes[3].keys.sort();
    sorted.axes[3].choices.iter_mut().for_each(|choice| choice.set.sort());
    assert_eq!(found, sorted);
}

#[test]
fn grids_may_be_given_by_their_ends() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[grid]\n\"optimizer.lr\" = { from = 1e-4, to = 1e-2, points = 3, scale = \"log\" }\nn = { from = 5, to = 20, points = 4 }\n";
    let found = plan(dir.path(), text).unwrap();
    let values: Vec<String> =
        found.axes.iter().flat_map(|axis| &axis.choices).flat_map(|c| c.set.clone()).collect();
    assert_eq!(values[0], "optimizer.lr=0.0001");
    // As one would type it: the setting is that of `--set optimizer.lr=0.001`.
    assert_eq!(values[1], "optimizer.lr=0.001");
    for (grid, expected) in [
        ("{ from = 0.1, to = 0.5, points = 5 }", ["0.1", "0.2", "0.3", "0.4", "0.5"]),
        (
            "{ from = 1e-4, to = 1e-2, points = 5, scale = \"log\" }",
            ["0.0001", "0.000316228", "0.001", "0.00316228", "0.01"],
        ),
        // Ends that are near to each other need more digits.
        (
            "{ from = 1.0, to = 1.000002, points = 5 }",
            ["1.0", "1.0000005", "1.000001", "1.0000015", "1.000002"],
        ),
    ] {
        let found = plan(dir.path(), &format!("[grid]\n\"init.gain\" = {grid}\n")).unwrap();
        let values =
            found.axes[0].choices.iter().map(|c| c.set[0].trim_start_matches("init.gain=").to_owned());
        assert_eq!(values.collect::<Vec<_>>(), expected);
    }
    assert_eq!(values[3..], ["n=5", "n=10", "n=15", "n=20"]);
}

/// Curves of which no run has a point are a mistake.
#[test]
fn points_of_curves_must_be_within_the_runs() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = |every: u64| {
        let text = format!("metrics = \"every {every}\"\n[grid]\nepochs = [3, 7]\n");
        request(dir.path(), &text, "out").sweep()
    };
    assert!(sweep(7).is_ok());
    let error = sweep(8).unwrap_err().to_string();
    assert_eq!(
        error,
        "metrics is 'every 8', expected at most the 7 epochs of the longest run between two points"
    );
}

/// A task file is looked for beside the plan that names it, wherever the command is given.
#[test]
fn task_files_stand_beside_their_plan() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("machine.json"), MACHINE).unwrap();
    let text = "seeds = 1\n[set]\nepochs = 2\n[grid]\ntask = [\"boyan\", \"machine.json\"]\n";
    let out = swept(&request(dir.path(), text, "out"), 1);
    assert_eq!(rows(&out)[2][0], "machine.json");
    let error = plan(dir.path(), "[set]\ntask = \"absent.json\"").unwrap_err().to_string();
    assert!(error.contains("plan.toml: line 2, [set]: ") && error.contains("absent.json"), "{error}");
}

#[test]
fn what_there_is_to_do_is_told_before() {
    let dir = tempfile::tempdir().unwrap();
    let own = request(dir.path(), PLAN, "out");
    let told = |request: &Request| {
        request
            .outlook(&(0..request.plan.num_runs()), 2, &Progress::default())
            .map(|outlook| outlook.to_string())
    };
    assert!(told(&own).unwrap().starts_with("plan: 4 settings × 3 seeds = 12 runs; about "));
    own.open(false).unwrap().work(&(0..5), &Progress::default()).unwrap();
    assert!(told(&own).unwrap().starts_with("plan: 4 settings × 3 seeds = 12 runs, 5 done before; about "));
    let fresh = told(&Request { fresh: true, ..own.clone() }).unwrap();
    assert!(fresh.ends_with("; --fresh removes checkpoints, journal, sweep.json"), "{fresh}");
    let more = request(dir.path(), &PLAN.replace("0..3", "0..4"), "out");
    assert!(told(&more).unwrap_err().to_string().contains("has another sweep"));
    assert!(told(&Request { extend: true, ..more }).unwrap().contains("16 runs, 5 done before"));
    assert_eq!(records(&own.out), 5, "nothing was done");
}
