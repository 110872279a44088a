//! A directory has one sweep, whoever works on it.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::*;

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
    let before = records(&extended.out);
    swept(&extended, 2);
    let after = records(&extended.out);
    assert_eq!((before, after), (12, 16), "the runs that both plans have were kept");
    let whole = swept(&request(dir.path(), &more, "whole"), 2);
    assert_eq!(results(&whole), results(&extended.out));
    let fresh = Request { fresh: true, ..request(dir.path(), PLAN, "out") };
    swept(&fresh, 2);
    assert_eq!(rows(&fresh.out).len(), 13);
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
        assert_eq!(records(&own.out), 5);
    }
    swept(&Request { fresh: true, ..own.clone() }, 2);
    assert_eq!(records(&own.out), 12);
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
        assert_eq!(records(&request.out), 5);
    }
    drop(worker);
    let shared = fresh.open(false).unwrap();
    assert!(!request.out.join("journal").exists());
    // Others may come now.
    request.open(false).unwrap().work(&(5..12), &Progress::default()).unwrap();
    shared.work(&(0..5), &Progress::default()).unwrap();
    assert_eq!(records(&request.out), 12);
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
        assert!(!second.is_finished() && records(&request.out) == 3);
        drop(first);
        second.join().unwrap().unwrap();
    });
    assert_eq!(records(&request.out), 6);
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

/// A sweep has the task files that it was begun with: others of their names are another sweep's, and a worker needs none of them.
#[test]
fn task_files_are_those_that_the_sweep_began_with() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("machine.json");
    fs::write(&file, MACHINE).unwrap();
    let text = "seeds = 2\n[set]\nepochs = 2\n[grid]\ntask = [\"machine.json\"]\nn = [3, 4]\n";
    let whole = swept(&request(dir.path(), text, "whole"), 1);
    let begun = request(dir.path(), text, "out");
    begun.open(false).unwrap().work(&(0..1), &Progress::default()).unwrap();
    fs::write(&file, MACHINE.replace("0.2]", "0.3]")).unwrap();
    for out in ["whole", "out"] {
        let changed = request(dir.path(), text, out);
        assert!(changed.finished().unwrap().is_none());
        let error = changed.open(true).unwrap_err().to_string();
        assert!(error.contains("the task file 'machine.json' has another content"), "{error}");
    }
    let other = swept(&request(dir.path(), text, "other"), 1);
    fs::remove_file(&file).unwrap();
    let gone_on = swept(&Request::of_directory(&begun.out).unwrap(), 1);
    let table = |out: &Path| fs::read_to_string(out.join(TABLE)).unwrap();
    assert_eq!(table(&gone_on), table(&whole));
    assert_ne!(table(&gone_on), table(&other));
    let again = Request { fresh: true, ..Request::of_directory(&begun.out).unwrap() };
    assert_eq!(table(&swept(&again, 1)), table(&whole));
}

/// What a plan is called is not what it sweeps.
#[test]
fn a_plan_by_another_name_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let out = swept(&request(dir.path(), PLAN, "out"), 2);
    let named = request(dir.path(), &format!("name = \"another\"\n{PLAN}"), "out");
    assert!(named.finished().unwrap().is_some());
    let before = fs::read(out.join(TABLE)).unwrap();
    swept(&named, 1);
    assert_eq!(before, fs::read(out.join(TABLE)).unwrap());
}
