//! `ictd reproduce` as a user meets it.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;

use common::{assert_refused, ictd_in, json};

/// Files of a reproduction that must not differ from run to run.
fn stable_files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_file() && !p.ends_with("timings.json"))
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&p).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn the_whole_paper_twice_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    for out in ["a", "b"] {
        let output = ictd_in(dir.path(), &["reproduce", "--quick", "--seeds", "2", "--out", out]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("not testable"));
        assert!(String::from_utf8_lossy(&output.stderr).contains("MB of memory"));
    }
    let (a, b) = (stable_files(&dir.path().join("a")), stable_files(&dir.path().join("b")));
    assert!(a.iter().map(|f| &f.0).eq(b.iter().map(|f| &f.0)));
    for (x, y) in a.iter().zip(&b) {
        assert!(x.1 == y.1, "{} differs", x.0);
    }
    let names: Vec<&str> = a.iter().map(|f| f.0.as_str()).collect();
    for figure in ["fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7"] {
        for ending in ["svg", "pdf", "png"] {
            assert!(names.contains(&format!("{figure}.{ending}").as_str()), "{figure}.{ending}");
        }
    }
    let claims: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("a/claims.json")).unwrap()).unwrap();
    let claims = claims["claims"].as_array().unwrap();
    assert!(claims.len() > 30);
    let keys =
        ["id", "paper", "criterion", "measured", "uncertainty", "verdict", "figure", "data", "command"];
    for claim in claims {
        assert!(keys.iter().all(|key| claim.get(key).is_some()), "{claim}");
        for file in ["figure", "data"] {
            let ending = if file == "figure" { ".svg" } else { "" };
            if let Some(name) = claim[file].as_str() {
                assert!(dir.path().join("a").join(format!("{name}{ending}")).is_file(), "{name}");
            }
        }
    }
    let report = fs::read_to_string(dir.path().join("a/report.html")).unwrap();
    assert!(report.contains("Where results differ, and why"));
    // Self-contained: nothing is loaded from elsewhere.
    assert!(!report.contains("src=\"") && !report.contains("<link") && !report.contains("@import"));
}

#[test]
fn finished_studies_are_not_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let output = ictd_in(
            dir.path(),
            &[&["reproduce", "--only", "fig1,thm1", "--quick", "--out", "o"], more].concat(),
        );
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(!run(&[]).contains("from an earlier run"));
    assert_eq!(run(&[]).matches("from an earlier run").count(), 2);
    // Another seed, a missing file or --fresh make it run.
    assert!(!run(&["--seed", "1"]).contains("from an earlier run"));
    run(&[]);
    fs::remove_file(dir.path().join("o/fig1.csv")).unwrap();
    assert_eq!(run(&[]).matches("from an earlier run").count(), 1);
    // So does a file that is no longer what was written.
    fs::write(dir.path().join("o/fig1.svg"), "<svg/>").unwrap();
    assert_eq!(run(&[]).matches("from an earlier run").count(), 1);
    assert!(fs::read_to_string(dir.path().join("o/fig1.svg")).unwrap().len() > 100);
    assert!(!run(&["--fresh"]).contains("from an earlier run"));
    // A run of one claim keeps the others in the report.
    let output = ictd_in(dir.path(), &["reproduce", "--only", "fig1", "--quick", "--out", "o", "--json"]);
    assert_eq!(json(&output)["claims"].as_array().unwrap().len(), 1);
    let all: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("o/claims.json")).unwrap()).unwrap();
    assert_eq!(all["claims"].as_array().unwrap().len(), 6);
}

/// Verdicts over seeds are counted in a directory that a reproduction may use too, and in no other.
#[test]
fn stability_counts_verdicts_and_leaves_the_directory_usable() {
    let dir = tempfile::tempdir().unwrap();
    let output = ictd_in(dir.path(), &["reproduce", "--stability", "--only", "fig2", "--json", "--out", "o"]);
    let found = json(&output);
    assert_eq!(found[0]["id"], "fig2");
    assert_eq!(found[0]["verdicts"]["not testable"], 20);
    assert!(String::from_utf8_lossy(&output.stderr).contains("stability: 1 of 1 claims as stored"));
    assert!(ictd_in(dir.path(), &["reproduce", "--only", "fig2", "--out", "o"]).status.success());
    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/thesis.txt"), "precious").unwrap();
    let arguments = ["reproduce", "--stability", "--only", "fig2", "--out", "mine"];
    assert_refused(&ictd_in(dir.path(), &arguments), "thesis.txt");
}

#[test]
fn check_compares_with_stored_values() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["reproduce", "--only", "thm1,fig1,rates,fig2", "--check", "--json", "--out", "o"];
    let output = ictd_in(dir.path(), &arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("check: 9 of 9 claims as stored"), "{message}");
    assert_eq!(json(&output)["claims"].as_array().unwrap().len(), 9);
}

#[test]
fn bad_requests_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert_refused(&ictd_in(dir.path(), &["reproduce", "--only", "fig99"]), "fig99");
    assert_refused(&ictd_in(dir.path(), &["reproduce", "--seeds", "0"]), "seeds");
    assert_refused(&ictd_in(dir.path(), &["reproduce", "--check", "--quick"]), "--quick");
    let largest = u64::MAX.to_string();
    assert_refused(&ictd_in(dir.path(), &["reproduce", "--only", "fig3a", "--seed", &largest]), "seed");
    // Somebody else's files.
    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/report.html"), "precious").unwrap();
    assert_refused(&ictd_in(dir.path(), &["reproduce", "--only", "fig1", "--out", "mine"]), "report.html");
    assert_eq!(fs::read_to_string(dir.path().join("mine/report.html")).unwrap(), "precious");
    assert_eq!(fs::read_dir(dir.path().join("mine")).unwrap().count(), 1);
    // A file where the directory should be.
    fs::write(dir.path().join("file"), "").unwrap();
    let output = ictd_in(dir.path(), &["reproduce", "--only", "fig1", "--out", "file"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("file"));
}

/// The predecessor has its own studies, directory, report and stored values.
#[test]
fn another_paper_is_judged_on_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        ictd_in(dir.path(), &[&["reproduce", "--paper", "predecessor"], arguments].concat())
    };
    let output = run(&["--only", "demo,construct-td", "--check", "--json"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("check: 5 of 5 claims as stored"), "{message}");
    let claims = json(&output);
    assert_eq!(claims["claims"][0]["command"], "ictd reproduce --paper predecessor --only demo");
    let report = fs::read_to_string(dir.path().join("out/predecessor/report.html")).unwrap();
    assert!(report.contains("Transformers Can Learn Temporal Difference Methods"));
    assert!(run(&["--only", "softmax-similarity", "--quick", "--seeds", "1"]).status.success());
    // What is of one paper is unknown to the other, and neither writes into the other's directory.
    assert_refused(&run(&["--only", "fig1"]), "fig1");
    assert_refused(&ictd_in(dir.path(), &["reproduce", "--only", "demo"]), "demo");
    assert_refused(
        &ictd_in(dir.path(), &["reproduce", "--only", "fig2", "--out", "out/predecessor"]),
        "has the reproduction of another paper, expected an empty",
    );
    assert_refused(&run(&["--stability"]), "stability");
    assert_refused(&ictd_in(dir.path(), &["reproduce", "--paper", "somebody"]), "main, predecessor");
}
