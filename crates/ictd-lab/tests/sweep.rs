//! Sweeps: the same table in whatever order and by however many workers runs are done, and nothing lost when one is killed.
#![allow(missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use ictd_lab::studies::pretrain::{Settings, run_in_memory};
use ictd_lab::sweep::{Plan, Request, TABLE, columns, curve_file};
use ictd_lab::{LabError, Progress};

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
        ("[grid]\nn = { from = 1, to = 2, points = 1 }", "points is 1, expected 2 to"),
        ("[grid]\nn = { from = 0, to = 2, points = 3, scale = \"log\" }", "expected positive numbers"),
        ("[grid]\nn = { from = 1, to = nan, points = 3 }", "expected a finite number"),
        ("[[zip]]\nn = [1, 2]\nlayers = [1]", "zip.n has 2 values, expected 1 as layers has"),
        ("[[zip]]", "zip has no keys"),
        ("[zip]\nn = [1]", "expected [[zip]]"),
        ("[[case]]\nset = { n = 5 }", "case has no title"),
        ("[[case]]\ntitle = \"a\"\n[[case]]\ntitle = \"a\"", "case 'a' stands there twice"),
        ("[[case]]\ntitle = \"a\"\nn = 3", "case.n is no key of a case"),
        ("[grid]\nn = [1]\n[[zip]]\nn = [2]", "n: two axes vary it"),
        ("[set]\nn = 3\n[grid]\nn = [1]", "'n=3' is what an axis varies"),
        ("preset = \"paper\"\nconfig = \"a.toml\"", "stands beside preset"),
        ("config = \"absent.toml\"", "absent.toml"),
        (
            "seeds = 1000000\n[grid]\nn = { from = 1, to = 1000, points = 1000 }",
            "runs is 1000000000, expected 1 to 1000000",
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
    // What is wrong with a key itself is found before the first run, and before a directory is made.
    for (text, expected) in [
        ("[grid]\nkernels = [\"softmax\"]", "kernels is no key"),
        ("[grid]\nkernel = [\"softmax\", \"sofmax\"]", "sofmax"),
        ("[grid]\nn = [3, -1]", "n"),
        ("preset = \"papers\"", "preset is 'papers'"),
    ] {
        let request = request(dir.path(), text, "never");
        let message = request.open(true).unwrap_err().to_string();
        assert!(message.contains(expected) && message.lines().count() == 1, "{text}: {message}");
        assert!(!request.out.exists(), "{text}");
    }
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

/// A worker of another sweep's runs waits for no one; one of the same unit finds it taken.
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
