//! `ictd readings` as a user meets it.
#![allow(missing_docs)]

mod common;

use common::{assert_refused, ictd_in, json};

const SMALL: [&str; 7] = ["readings", "--seeds", "1", "--set", "epochs=2", "--set", "batch=4"];

#[test]
fn a_search_goes_on_where_it_was_and_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let search = |more: &[&str]| ictd_in(dir.path(), &[&SMALL[..], &["--json"], more].concat());
    let first = search(&[]);
    let found = json(&first);
    assert_eq!(found["rows"].as_array().unwrap().len(), 86);
    assert_eq!(found["gradients"].as_array().unwrap().len(), 5);
    let message = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(message.contains("[66/66]") && message.contains("s left"), "{message}");
    let again = search(&[]);
    assert_eq!(json(&again), found);
    assert_eq!(String::from_utf8_lossy(&again.stderr).matches("from an earlier search").count(), 66);
    assert!(!String::from_utf8_lossy(&search(&["--fresh"]).stderr).contains("from an earlier search"));
    for name in ["readings.json", "readings.csv", "readings.svg", "readings.png", "first_gradient.csv"] {
        assert!(dir.path().join("out/readings").join(name).is_file(), "{name}");
    }
}

#[test]
fn bad_searches_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |more: &[&str], field: &str| {
        assert_refused(&ictd_in(dir.path(), &[&["readings"][..], more].concat()), field);
    };
    refused(&["--seeds", "0"], "seeds");
    refused(&["--seed", "18446744073709551615"], "seed");
    refused(&["--set", "query=skip"], "query");
    refused(&["--set", "rho.start=0"], "rho.start");
    refused(&["--set", "tau=0"], "temperature");
    refused(&["--set", "mask=relaxed"], "mask");
    refused(&["--set", "states=6000"], "states");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}

/// The reading that shows the published figures, on a few seeds and the whole way: every one ends in the TD block, and with
/// its reward hidden in the mirror block.
#[test]
fn a_query_that_is_a_rewarded_source_leads_to_the_td_block() {
    let dir = tempfile::tempdir().unwrap();
    for (reward, branch) in [("visible", "td"), ("hidden", "mirror")] {
        let reward = format!("source.reward={reward}");
        let arguments = [
            "pretrain",
            "--set",
            "query=source",
            "--set",
            &reward,
            "--set",
            "epochs=1500",
            "--seeds",
            "0..3",
        ];
        let found = json(&ictd_in(dir.path(), &[&arguments[..], &["--json"]].concat()));
        let seeds = found["seeds"].as_array().unwrap();
        assert!(seeds.iter().all(|s| s["branch"] == branch), "{seeds:?}");
    }
}
