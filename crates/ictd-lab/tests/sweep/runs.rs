//! What is done of a sweep, and what its table and curves say.

use ictd_lab::studies::pretrain::{Settings, run_in_memory};
use ictd_lab::sweep::{columns, table};

use super::*;

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
        ["kernel", "n", "layers", "seed"].map(String::from).into_iter().chain(columns()).collect();
    assert_eq!(rows[0], header);
    assert_eq!(rows.len(), 1 + 2 * 2 * 3);
    let keys: Vec<Vec<String>> = rows[1..].iter().map(|row| row[..4].to_vec()).collect();
    let expected = |kernel: &str, n: &str, layers: &str, seed: u64| {
        vec![kernel.to_owned(), n.into(), layers.into(), seed.to_string()]
    };
    assert_eq!(keys[0], expected("softmax", "5", "2", 0));
    assert_eq!(keys[4], expected("softmax", "8", "3", 1));
    assert_eq!(keys[11], expected("linear", "8", "3", 2));
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
    assert_eq!(records(&request.out), 11 + 3, "three runs were done again");
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

/// A smaller plan leaves no curves of settings that it does not have, and none where it asks for none.
#[test]
fn curves_are_those_of_the_plan() {
    let dir = tempfile::tempdir().unwrap();
    let curves = |out: &Path| fs::read_dir(out.join("curves")).map_or(0, Iterator::count);
    let out = swept(&request(dir.path(), PLAN, "out"), 2);
    assert_eq!(curves(&out), 4);
    let fewer = Request { extend: true, ..request(dir.path(), &PLAN.replace(", \"linear\"", ""), "out") };
    swept(&fewer, 2);
    assert_eq!((curves(&out), rows(&out).len(), records(&out)), (2, 1 + 6, 12));
    assert!(out.join(curve_file(1)).is_file() && fewer.finished().unwrap().is_some());
    let none = Request { extend: true, ..request(dir.path(), &PLAN.replace("every 4", "final"), "out") };
    swept(&none, 2);
    assert!(!out.join("curves").exists());
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

/// Cases that come to one configuration, as where what is typed is what a case says, have rows of their own and are trained once.
#[test]
fn settings_that_are_the_same_are_trained_once() {
    let dir = tempfile::tempdir().unwrap();
    let text = "seeds = 2\ncheckpoints = \"final\"\n[set]\nepochs = 4\nn = 5\n[[case]]\ntitle = \"as given\"\n[[case]]\ntitle = \"n = 5\"\nset = { n = 5 }\n[[case]]\ntitle = \"n = 8\"\nset = { n = 8 }\n";
    let whole = swept(&request(dir.path(), text, "whole"), 2);
    let rows = rows(&whole);
    assert_eq!((rows.len(), records(&whole)), (1 + 6, 4));
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
    assert_eq!(records(&parts.out), 4);
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
        assert_eq!((results(&out), records(&out)), (before.clone(), 12), "no second record of a run");
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
    assert!(folder.is_dir() && records(&request.out) == 12);
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

#[test]
fn what_is_missing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), PLAN, "my out");
    let opened = request.open(true).unwrap();
    opened.work(&(0..4), &Progress::default()).unwrap();
    let error = opened.finish(&Progress::default(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("8 runs without a record"), "{error}");
    assert!(error.contains("run 4 (kernel=softmax, n=8 layers=3, seed 1) the first"), "{error}");
    assert!(error.contains(&format!("ictd sweep '{}'", request.out.display())), "{error}");
}
