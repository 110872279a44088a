//! Sweeps: the same table in whatever order and by however many workers runs are done, and nothing lost when one is killed.
#![allow(missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ictd_lab::studies::pretrain::{Settings, run_in_memory};
use ictd_lab::sweep::{Plan, Request, TABLE, columns, curve_file, table};
use ictd_lab::{LabError, Progress};
use sha2::{Digest as _, Sha256};

const PLAN: &str = r#"
seeds = "0..3"
metrics = "every 4"
checkpoints = "all"

[set]
epochs = 10
batch = 8

[grid]
kernel = ["softmax", "linear"]

[[zip]]
n = [5, 8]
layers = [2, 3]
"#;

fn plan(dir: &Path, text: &str) -> Result<Plan, LabError> {
    let path = dir.join("plan.toml");
    fs::write(&path, text).unwrap();
    Plan::read(&path)
}

fn request(dir: &Path, text: &str, name: &str) -> Request {
    Request { plan: plan(dir, text).unwrap(), out: dir.join(name), fresh: false, extend: false }
}

/// Does all runs on so many threads and writes the table.
fn swept(request: &Request, threads: usize) -> PathBuf {
    let pool = rayon_pool(threads);
    pool.install(|| {
        let opened = request.open(true).unwrap();
        let progress = Progress::default();
        opened.work(&(0..opened.sweep.num_runs()), &progress).unwrap();
        opened.finish(&progress, |_| {}).unwrap();
    });
    request.out.clone()
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Every file that results are in, with its bytes; journals differ in the order of their lines.
fn results(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = vec![(TABLE.to_owned(), fs::read(out.join(TABLE)).unwrap())];
    for setting in 0..4 {
        let name = curve_file(setting);
        found.push((name.clone(), fs::read(out.join(name)).unwrap()));
    }
    let mut folders: Vec<PathBuf> =
        fs::read_dir(out.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        found.extend(files.into_iter().map(|path| {
            (path.display().to_string().replace(&out.display().to_string(), ""), fs::read(&path).unwrap())
        }));
    }
    found
}

fn journals(out: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(out.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "log")).collect();
    files.sort();
    files
}

fn rows(out: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(out.join(TABLE)).unwrap();
    reader.records().map(|row| row.unwrap().iter().map(String::from).collect()).collect()
}

#[test]
fn order_workers_and_threads_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let alone = swept(&request(dir.path(), PLAN, "alone"), 1);
    let threads = swept(&request(dir.path(), PLAN, "threads"), 3);
    // Workers in another order, each with a part of its own; the last writes the table and trains nothing.
    let parts = request(dir.path(), PLAN, "parts");
    for runs in [7..12, 0..3, 3..7] {
        let worker = parts.open(false).unwrap();
        worker.work(&runs, &Progress::default()).unwrap();
    }
    assert_eq!(journals(&parts.out).len(), 3);
    swept(&parts, 2);
    assert_eq!(journals(&parts.out).len(), 3, "nothing was left to do");
    assert_eq!(results(&alone), results(&threads));
    assert_eq!(results(&alone), results(&parts.out));
    assert_eq!(results(&alone).len(), 1 + 4 + 4 * 3 * 2);
}

/// The numbers are those of `pretrain`, and the columns say what they are.
#[test]
fn rows_are_what_pretraining_finds() {
    let dir = tempfile::tempdir().unwrap();
    let out = swept(&request(dir.path(), PLAN, "sweep"), 2);
    let rows = rows(&out);
    let header: Vec<String> =
        ["kernel", "layers", "n", "seed"].map(String::from).into_iter().chain(columns()).collect();
    assert_eq!(rows[0], header);
    assert_eq!(rows.len(), 1 + 2 * 2 * 3);
    let keys: Vec<Vec<String>> = rows[1..].iter().map(|row| row[..4].to_vec()).collect();
    let expected = |kernel: &str, layers: &str, n: &str, seed: u64| {
        vec![kernel.to_owned(), layers.into(), n.into(), seed.to_string()]
    };
    assert_eq!(keys[0], expected("softmax", "2", "5", 0));
    assert_eq!(keys[4], expected("softmax", "3", "8", 1));
    assert_eq!(keys[11], expected("linear", "3", "8", 2));
    let overrides = ["epochs=10", "batch=8", "kernel=linear", "n=8", "layers=3"].map(String::from);
    let settings = Settings::preset("paper", &overrides).unwrap();
    let result = run_in_memory(&settings, &[2], &Progress::default()).unwrap();
    let cell = |name: &str| rows[12][header.iter().position(|column| column == name).unwrap()].clone();
    let last = &result.seeds[0].last;
    assert_eq!(cell("branch"), last.branch);
    assert_eq!(cell("best_step"), result.seeds[0].best_step.to_string());
    for (name, value) in [("v_em_signed", last.v_em_signed), ("td_loss", last.td_loss), ("msve", last.msve)] {
        assert_eq!(cell(name).parse::<f64>().unwrap(), value, "{name}");
    }
    // Curves have the points that were asked for, of the same history.
    let curve = fs::read_to_string(out.join(curve_file(3))).unwrap();
    let steps: Vec<&str> = curve.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(steps, ["20", "40"].repeat(3));
    let history = &result.states[0].history;
    let point: Vec<&str> = curve.lines().last().unwrap().split(',').collect();
    let (name, column) = (ictd::pretrain::Metric::EvalTdLoss, 1 + 9);
    assert_eq!(point[column].parse::<f32>().unwrap(), history[name][7], "of epoch 8");
}

/// A worker that is killed leaves a line cut short: that run is done again, and no other.
#[test]
fn a_line_that_was_cut_short_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let whole = swept(&request(dir.path(), PLAN, "whole"), 2);
    let request = request(dir.path(), PLAN, "cut");
    request.open(false).unwrap().work(&(0..12), &Progress::default()).unwrap();
    let [journal] = &journals(&request.out)[..] else { panic!("one worker has one journal") };
    let text = fs::read_to_string(journal).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 12);
    // Cut in the middle, one line damaged in a digit, one gone.
    let damaged = lines[4].replacen('1', "2", 1);
    let kept =
        [&lines[..4], &[damaged.as_str()], &lines[6..11], &[&lines[11][..lines[11].len() / 2]]].concat();
    fs::write(journal, kept.concat()).unwrap();
    swept(&request, 2);
    assert_eq!(results(&whole), results(&request.out));
    let added: usize =
        journals(&request.out).iter().map(|path| fs::read_to_string(path).unwrap().lines().count()).sum();
    assert_eq!(added, 11 + 3, "three runs were done again");
}

/// The same runs by two workers are no harm where they agree, and an error where they do not.
#[test]
fn runs_that_were_done_twice_must_agree() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "twice");
    request.open(false).unwrap().work(&(0..12), &Progress::default()).unwrap();
    let [journal] = &journals(&request.out)[..] else { panic!("one worker has one journal") };
    let text = fs::read_to_string(journal).unwrap();
    let again = journal.with_file_name("other-worker.log");
    fs::write(&again, &text).unwrap();
    swept(&request, 1);
    fs::remove_file(request.out.join("results.json")).unwrap();
    // A record with another result and a checksum that fits.
    let content = text.lines().next().unwrap().split_once('\t').unwrap().1.replacen(",0.", ",0.5", 1);
    let line = format!("{:08x}\t{content}\n", crc32fast::hash(content.as_bytes()));
    fs::write(&again, line).unwrap();
    let opened = request.open(true).unwrap();
    let error = opened.finish(&Progress::default(), |_| {}).unwrap_err();
    assert!(error.to_string().contains("was done twice with different results"), "{error}");
}

#[test]
fn a_finished_sweep_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "done");
    assert_eq!(request.finished().unwrap(), None);
    swept(&request, 2);
    let finished = request.finished().unwrap().unwrap();
    assert_eq!((finished.settings, finished.runs, finished.diverged), (4, 12, 0));
    // One that was touched is not.
    let table = fs::read_to_string(request.out.join(TABLE)).unwrap();
    fs::write(request.out.join(TABLE), table.replacen("softmax", "Softmax", 1)).unwrap();
    assert_eq!(request.finished().unwrap(), None);
    swept(&request, 2);
    assert_eq!(fs::read_to_string(request.out.join(TABLE)).unwrap(), table);
}

#[test]
fn another_plan_needs_a_word_in_the_same_directory() {
    let dir = tempfile::tempdir().unwrap();
    swept(&request(dir.path(), PLAN, "out"), 2);
    let more = PLAN.replace("0..3", "0..4");
    let refused = request(dir.path(), &more, "out").open(true).unwrap_err();
    assert!(refused.to_string().starts_with("out: ") && refused.exit_code() == 2, "{refused}");
    let extended = Request { extend: true, ..request(dir.path(), &more, "out") };
    let before: usize =
        journals(&extended.out).iter().map(|p| fs::read_to_string(p).unwrap().lines().count()).sum();
    swept(&extended, 2);
    let after: usize =
        journals(&extended.out).iter().map(|p| fs::read_to_string(p).unwrap().lines().count()).sum();
    assert_eq!((before, after), (12, 16), "the runs that both plans have were kept");
    let whole = swept(&request(dir.path(), &more, "whole"), 2);
    assert_eq!(results(&whole), results(&extended.out));
    let fresh = Request { fresh: true, ..request(dir.path(), PLAN, "out") };
    swept(&fresh, 2);
    assert_eq!(rows(&fresh.out).len(), 13);
}

/// A smaller plan leaves no curves of settings that it does not have, and none where it asks for none.
#[test]
fn curves_are_those_of_the_plan() {
    let dir = tempfile::tempdir().unwrap();
    let curves = |out: &Path| fs::read_dir(out.join("curves")).map_or(0, Iterator::count);
    let out = swept(&request(dir.path(), PLAN, "out"), 2);
    assert_eq!(curves(&out), 4);
    let fewer = Request { extend: true, ..request(dir.path(), &PLAN.replace(", \"linear\"", ""), "out") };
    swept(&fewer, 2);
    assert_eq!((curves(&out), rows(&out).len(), lines(&out)), (2, 1 + 6, 12));
    assert!(out.join(curve_file(1)).is_file() && fewer.finished().unwrap().is_some());
    let none = Request { extend: true, ..request(dir.path(), &PLAN.replace("every 4", "final"), "out") };
    swept(&none, 2);
    assert!(!out.join("curves").exists());
}

/// Rows are there for whoever asks, whatever became of parameters: the table is read, and nothing is made anew.
#[test]
fn a_table_is_read_without_parameters() {
    let dir = tempfile::tempdir().unwrap();
    let out = swept(&request(dir.path(), PLAN, "out"), 2);
    fs::remove_dir_all(out.join("checkpoints")).unwrap();
    fs::remove_dir_all(out.join("journal")).unwrap();
    let (text, runs) = table(&out, &Progress::default()).unwrap();
    assert_eq!((text, runs), (fs::read_to_string(out.join(TABLE)).unwrap(), 12));
}

/// The table as Parquet is a part of what is finished.
#[cfg(feature = "parquet")]
#[test]
fn a_lost_table_in_parquet_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "out");
    let parquet = swept(&request, 2).join("results.parquet");
    let before = fs::read(&parquet).unwrap();
    for damage in
        [&(|| fs::remove_file(&parquet)) as &dyn Fn() -> std::io::Result<()>, &|| fs::write(&parquet, "")]
    {
        assert!(request.finished().unwrap().is_some());
        damage().unwrap();
        assert!(request.finished().unwrap().is_none());
        swept(&request, 2);
        assert_eq!(fs::read(&parquet).unwrap(), before);
    }
}

/// A run that diverges is a row that says so, and is not tried again.
#[test]
fn divergence_is_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let text = "seeds = 2\nmetrics = \"none\"\n[set]\nepochs = 30\n[grid]\n\"optimizer.lr\" = [1e-3, 1e6]\n";
    let request = request(dir.path(), text, "out");
    let out = swept(&request, 2);
    let rows = rows(&out);
    assert_eq!(rows[3][2], "diverged");
    assert!(rows[3][3..].iter().all(String::is_empty));
    assert_eq!(request.finished().unwrap().unwrap().diverged, 2);
    // Nothing was measured.
    let column = rows[0].iter().position(|name| name == "msve").unwrap();
    assert_eq!(rows[1][column], "");
}

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
        ("[[zip]]\nn = [1, 2]\nlayers = [1]", "zip.n has 2 values, expected 1 as layers has"),
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
    let middle: f64 = values[1].trim_start_matches("optimizer.lr=").parse().unwrap();
    assert!((middle - 1e-3).abs() < 1e-15, "{middle}");
    assert_eq!(values[3..], ["n=5", "n=10", "n=15", "n=20"]);
}

/// Workers share a directory; who writes the table has it alone.
#[test]
fn a_directory_has_one_sweep_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "out");
    let worker = request.open(false).unwrap();
    request.open(false).unwrap();
    let error = request.open(true).unwrap_err();
    assert!(error.to_string().contains("in use by"), "{error}");
    drop(worker);
    request.open(true).unwrap();
}

fn lines(out: &Path) -> usize {
    journals(out).iter().map(|path| fs::read_to_string(path).unwrap().lines().count()).sum()
}

/// The directory as another build of the program would have begun it.
fn begun_by_another_build(out: &Path) {
    let path = out.join("sweep.json");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("\"program\": \"").unwrap();
    let other = format!("{before}\"program\": \"{}{}", "0".repeat(64), &rest[64..]);
    let (content, _) = other.rsplit_once("\"sha256\": \"").unwrap();
    let empty = format!("{content}\"sha256\": \"\"\n}}\n");
    let digest: String = Sha256::digest(empty.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(&path, format!("{content}\"sha256\": \"{digest}\"\n}}\n")).unwrap();
}

/// What another build computed is never removed but by `--fresh`, and never mixed with what this one computes.
#[test]
fn runs_of_another_build_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let own = request(dir.path(), PLAN, "out");
    own.open(false).unwrap().work(&(0..5), &Progress::default()).unwrap();
    begun_by_another_build(&own.out);
    for extend in [false, true] {
        let refused = Request { extend, ..own.clone() }.open(true).unwrap_err().to_string();
        assert!(refused.contains("begun by another build") && refused.contains("--fresh"), "{refused}");
        assert_eq!(lines(&own.out), 5);
    }
    swept(&Request { fresh: true, ..own.clone() }, 2);
    assert_eq!(lines(&own.out), 12);
}

/// Cases that come to one configuration, as where what is typed is what a case says, have rows of their own and are trained once.
#[test]
fn settings_that_are_the_same_are_trained_once() {
    let dir = tempfile::tempdir().unwrap();
    let text = "seeds = 2\ncheckpoints = \"final\"\n[set]\nepochs = 4\nn = 5\n[[case]]\ntitle = \"as given\"\n[[case]]\ntitle = \"n = 5\"\nset = { n = 5 }\n[[case]]\ntitle = \"n = 8\"\nset = { n = 8 }\n";
    let whole = swept(&request(dir.path(), text, "whole"), 2);
    let rows = rows(&whole);
    assert_eq!((rows.len(), lines(&whole)), (1 + 6, 4));
    assert_eq!(rows[1][1..], rows[3][1..]);
    assert_ne!(rows[1][1..], rows[5][1..]);
    let listed = fs::read_to_string(whole.join("checkpoints.csv")).unwrap();
    assert_eq!(listed.lines().next(), Some("case,n,seed,checkpoint,file,sha256"));
    assert_eq!(listed.lines().count(), 1 + 6);
    // Workers of other parts, the one with the copies first.
    let parts = request(dir.path(), text, "parts");
    for runs in [2..6, 0..2] {
        parts.open(false).unwrap().work(&runs, &Progress::default()).unwrap();
    }
    swept(&parts, 1);
    assert_eq!(lines(&parts.out), 4);
    for name in [TABLE, "checkpoints.csv"] {
        assert_eq!(fs::read(parts.out.join(name)).unwrap(), fs::read(whole.join(name)).unwrap());
    }
    let outlook = parts.outlook(&(0..6), 1, &Progress::default()).unwrap().to_string();
    let expected = "3 settings × 2 seeds = 6 runs, 6 done before, 2 with the result of another";
    assert!(outlook.ends_with(expected), "{outlook}");
}

/// Parameters that are gone or damaged are found and trained again, and a half-written file goes.
#[test]
fn lost_checkpoints_are_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "out");
    let out = swept(&request, 2);
    let before = results(&out);
    let list = fs::read_to_string(out.join("checkpoints.csv")).unwrap();
    let files: Vec<PathBuf> =
        list.lines().skip(1).map(|row| out.join(row.split(',').nth(5).unwrap())).collect();
    assert_eq!(files.len(), 12 * 2);
    let leftover = files[0].with_file_name(".seed_0015.final.safetensors.123456.tmp");
    let damages: [&dyn Fn(); 3] = [
        &|| fs::remove_file(&files[3]).unwrap(),
        &|| {
            let mut bytes = fs::read(&files[7]).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            fs::write(&files[7], bytes).unwrap();
        },
        &|| fs::remove_dir_all(files[0].parent().unwrap()).unwrap(),
    ];
    for damage in damages {
        assert!(request.finished().unwrap().is_some());
        damage();
        assert!(request.finished().unwrap().is_none());
        fs::create_dir_all(leftover.parent().unwrap()).unwrap();
        fs::write(&leftover, "half").unwrap();
        swept(&request, 2);
        assert_eq!((results(&out), lines(&out)), (before.clone(), 12), "no second record of a run");
        assert!(!leftover.exists());
    }
}

/// Records without their parameters are no finished sweep: the table is not written, and they are counted as runs to do.
#[test]
fn a_table_is_not_written_without_parameters() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "out");
    request.open(false).unwrap().work(&(0..12), &Progress::default()).unwrap();
    let folder = fs::read_dir(request.out.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    fs::remove_dir_all(&folder).unwrap();
    let told = request.outlook(&(0..12), 1, &Progress::default()).unwrap().to_string();
    assert!(told.contains("= 12 runs, 9 done before; about "), "{told}");
    let opened = request.open(true).unwrap();
    let refused = opened.finish(&Progress::default(), |_| {}).unwrap_err().to_string();
    assert!(refused.contains("3 runs without the parameters that were kept, run "), "{refused}");
    assert!(!request.out.join(TABLE).exists());
    opened.work(&(0..12), &Progress::default()).unwrap();
    opened.finish(&Progress::default(), |_| {}).unwrap();
    assert!(folder.is_dir() && lines(&request.out) == 12);
}

/// Where work is shared, what is removed is nobody's at that moment.
#[test]
fn nothing_is_removed_under_a_worker() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "out");
    let worker = request.open(false).unwrap();
    worker.work(&(0..5), &Progress::default()).unwrap();
    let fresh = Request { fresh: true, ..request.clone() };
    for alone in [false, true] {
        let refused = fresh.open(alone).unwrap_err().to_string();
        assert!(refused.contains("in use by"), "{refused}");
        assert_eq!(lines(&request.out), 5);
    }
    drop(worker);
    let shared = fresh.open(false).unwrap();
    assert!(!request.out.join("journal").exists());
    // Others may come now.
    request.open(false).unwrap().work(&(5..12), &Progress::default()).unwrap();
    shared.work(&(0..5), &Progress::default()).unwrap();
    assert_eq!(lines(&request.out), 12);
}

/// A sweep that an engine works on can be started over, and nothing that is left of a killed `--fresh` is taken for somebody else's.
#[test]
fn the_folder_of_an_engine_goes_with_the_sweep() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "out");
    request.open(false).unwrap().work(&(0..2), &Progress::default()).unwrap();
    fs::create_dir(request.out.join("engine")).unwrap();
    let fresh = Request { fresh: true, ..request.clone() };
    let told = fresh.outlook(&(0..12), 1, &Progress::default()).unwrap().to_string();
    assert!(told.ends_with("; --fresh removes engine, checkpoints, journal, sweep.json"), "{told}");
    drop(fresh.open(true).unwrap());
    assert!(!request.out.join("engine").exists());
}

/// Whoever looks whether a directory is in use has it for a moment: a worker that comes then waits.
#[test]
fn a_worker_waits_for_whoever_looks() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "out");
    drop(request.open(false).unwrap());
    let looked = fs::File::options().create(true).truncate(false).write(true).open(request.out.join(".lock"));
    let looked = looked.unwrap();
    looked.lock().unwrap();
    let looking = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        looked.unlock().unwrap();
    });
    request.open(false).unwrap();
    looking.join().unwrap();
}

/// A unit that an engine begins twice is done by one of both: the second begins when the first has ended, and finds all done.
#[test]
fn a_unit_has_one_worker_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "out");
    let opened = request.open(false).unwrap();
    let folder = request.out.join("journal");
    fs::create_dir(&folder).unwrap();
    let first = fs::File::create(folder.join(".0000000-0000003.lock")).unwrap();
    first.lock().unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| opened.work(&(0..3), &Progress::default()));
        // Other runs are nobody's business.
        request.open(false).unwrap().work(&(3..6), &Progress::default()).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert!(!second.is_finished() && lines(&request.out) == 3);
        drop(first);
        second.join().unwrap().unwrap();
    });
    assert_eq!(lines(&request.out), 6);
}

/// A directory that is no sweep's is left alone, whatever it has under the names of a sweep.
#[test]
fn directories_of_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "out");
    for name in [TABLE, "checkpoints/mine.bin", "curves/00000.csv"] {
        let file = request.out.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "mine").unwrap();
        for (fresh, extend) in [(false, false), (true, false), (false, true)] {
            let refused = Request { fresh, extend, ..request.clone() }.open(true).unwrap_err();
            assert!(refused.to_string().contains("has no sweep.json but"), "{refused}");
            assert_eq!(refused.exit_code(), 2);
            assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        }
        fs::remove_dir_all(&request.out).unwrap();
    }
    // Other names are nobody's business.
    fs::create_dir_all(&request.out).unwrap();
    fs::write(request.out.join("notes.txt"), "mine").unwrap();
    swept(&request, 2);
    assert!(request.out.join("notes.txt").exists());
}

#[test]
fn what_is_missing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "my out");
    let opened = request.open(true).unwrap();
    opened.work(&(0..4), &Progress::default()).unwrap();
    let error = opened.finish(&Progress::default(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("8 runs without a record"), "{error}");
    assert!(error.contains("run 4 (kernel=softmax, layers=3 n=8, seed 1) the first"), "{error}");
    assert!(error.contains(&format!("ictd sweep '{}'", request.out.display())), "{error}");
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
    assert_eq!(lines(&own.out), 5, "nothing was done");
}

/// A task file is looked for beside the plan that names it, wherever the command is given.
#[test]
fn task_files_stand_beside_their_plan() {
    let dir = tempfile::tempdir().unwrap();
    let machine = r#"{"gamma": 0.8, "transitions": [[0.9, 0.1], [0.2, 0.8]], "rewards": [1, 0.2], "features": [[3, 0], [0, 3]]}"#;
    fs::write(dir.path().join("machine.json"), machine).unwrap();
    let text = "seeds = 1\n[set]\nepochs = 2\n[grid]\ntask = [\"boyan\", \"machine.json\"]\n";
    let out = swept(&request(dir.path(), text, "out"), 1);
    let beside = dir.path().join("machine.json").display().to_string();
    assert_eq!(rows(&out)[2][0], beside);
    let error = plan(dir.path(), "[set]\ntask = \"absent.json\"").unwrap_err().to_string();
    assert!(error.contains("plan.toml: line 2, [set]: ") && error.contains("absent.json"), "{error}");
}
