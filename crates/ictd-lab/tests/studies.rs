//! What studies find, by their results and files.
#![allow(missing_docs)]

use std::collections::BTreeSet;
use std::fs;

use ictd::pretrain::PretrainConfig;
use ictd_lab::Progress;
use ictd_lab::files::OutputDir;
use ictd_lab::report::Report as _;
use ictd_lab::studies::fig1::{self, MsveConfig};
use ictd_lab::studies::pretrain::Settings;
use ictd_lab::studies::readings::{self, Search};
use ictd_lab::studies::reproduce::select;
use ictd_lab::studies::theorem1::verify::{self, VerifyConfig};
use ictd_lab::studies::{Claim, Paper, Plan, branches};
use serde_json::{Value, json};

/// The claims of a study on few samples, and the text of one of its files.
fn judged(study: &str, file: &str) -> (Vec<Claim>, String) {
    let dir = tempfile::tempdir().unwrap();
    let out = OutputDir::create(dir.path()).unwrap();
    let plan = Plan { seed: 3, seeds: "3..4".parse().ok(), quick: true };
    let claims = select(Paper::Main, &[study.to_owned()]).unwrap()[0].judge(&plan, &out).unwrap();
    (claims, fs::read_to_string(dir.path().join(file)).unwrap())
}

/// The numbers of the columns of these names, row by row.
fn columns<const N: usize>(csv: &str, names: [&str; N]) -> Vec<[f64; N]> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let at = names.map(|name| header.iter().position(|h| h == name).unwrap());
    let row = |row: csv::StringRecord| at.map(|k| row[k].parse().unwrap());
    reader.records().map(|record| row(record.unwrap())).collect()
}

#[test]
fn thread_counts_do_not_change_a_bit() {
    for (study, file) in [("fig1", "fig1.csv"), ("softmax-vs-linear", "softmax_vs_linear.csv")] {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| judged(study, file))
        };
        assert_eq!(with(1), with(4));
    }
}

fn curve(config: &MsveConfig) -> Value {
    serde_json::to_value(fig1::run(config, &Progress::default()).unwrap()).unwrap()
}

/// An error that does not fall must not be called reproduced: with step size 0 it is constant, that of the
/// predictor 0.
#[test]
fn a_flat_curve_is_not_reproduced() {
    let found = curve(&MsveConfig { num_tasks: 10, step_size: 0.0, ..Default::default() });
    assert_eq!((&found["verdict"], &found["beats_zero_from"]), (&json!("not reproduced"), &Value::Null));
    let points = found["points"].as_array().unwrap();
    assert!(points.iter().all(|p| p["msve"] == found["zero"] && p["gain"] == 0.0));
}

#[test]
fn longer_contexts_do_not_decide() {
    let short = MsveConfig { num_tasks: 20, longer_lens: Vec::new(), ..Default::default() };
    let long = MsveConfig { longer_lens: vec![500, 7], ..short.clone() };
    let (a, b) = (curve(&short), curve(&long));
    let points = |found: &Value| found["points"].as_array().unwrap().len();
    assert_eq!((points(&a), points(&b)), (20, 21));
    // One trajectory per task: longer contexts change nothing about its prefixes.
    for name in ["rank_correlation", "drop", "zero"] {
        assert!(a[name].is_f64() && a[name] == b[name], "{name}");
    }
}

#[test]
fn the_verdict_follows_the_tolerance() {
    let usual = VerifyConfig { num_trials: 3, ..Default::default() };
    let strict = VerifyConfig { tolerance: 0.0, ..usual.clone() };
    assert_eq!(
        [&usual, &strict].map(|config| verify::run(config, &Progress::default()).unwrap().holds()),
        [true, false]
    );
}

#[test]
fn scaled_values_are_step_sizes() {
    let found = columns(&judged("step-size", "step_size.csv").1, ["discrepancy"]);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|[discrepancy]| *discrepancy < 1e-12), "{found:?}");
}

/// By hand with p = d + 3 rows and T = n + 1 columns: a head has AZ and VZ with p²T each, the scores and the
/// aggregation with pT² each, and a softmax of 5nT.
#[test]
fn operations_are_those_of_the_shapes() {
    let names = ["n", "features", "two_heads", "shared_heads", "temporal_shift", "discrepancy"];
    let rows = columns(&judged("tsm-cost", "tsm_cost.csv").1, names);
    assert_eq!(rows.len(), 6);
    for [n, features, two_heads, shared_heads, temporal_shift, discrepancy] in rows {
        let (p, t) = (features + 3.0, n + 1.0);
        let head = 2.0 * p * p * t + 2.0 * p * t * t + 5.0 * n * t;
        assert_eq!(two_heads, 2.0 * head + 4.0 * t);
        assert_eq!(shared_heads, head + 4.0 * t);
        assert_eq!(temporal_shift, head + p * t + 2.0 * t);
        assert!(discrepancy < 1e-12);
    }
}

#[test]
fn every_cell_of_the_branch_maps_can_be_trained() {
    let changes = ["epochs=1", "batch=2"].map(String::from);
    for (map, expected) in [(branches::Map::Settings, 11 * 3), (branches::Map::Kernels, 15 * 4)] {
        let (dir, mut cells) = (tempfile::tempdir().unwrap(), 0);
        let (seeds, changes) = ("3..4".parse().unwrap(), changes.to_vec());
        let search = branches::Search { map, seeds, changes, fresh: false, extend: false };
        branches::run(&search, dir.path(), &Progress::default(), |_| cells += 1).unwrap();
        assert_eq!(cells, expected, "{map:?}");
    }
}

/// What a row's command trains.
fn trained(row: &Value) -> Settings {
    let words: Vec<&str> = row["command"].as_str().unwrap().split(' ').collect();
    let after = |flag: &str| words.windows(2).filter(|w| w[0] == flag).map(|w| w[1].to_owned()).collect();
    let (presets, keys): (Vec<String>, Vec<String>) = (after("--preset"), after("--set"));
    Settings::preset(&presets[0], &keys).unwrap()
}

/// Every reading is trained, no two are the same, and the first is the preset as it stands. A search that is taken up
/// trains nothing again and finds the same.
#[test]
fn a_search_takes_up_what_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let mut search = Search {
        seeds: "3..4".parse().unwrap(),
        changes: vec!["epochs=2".into(), "batch=4".into()],
        fresh: false,
    };
    let found = |search: &Search| {
        let mut cached = 0;
        let found = readings::run(search, dir.path(), &Progress::default(), |line| {
            cached += usize::from(line.ends_with("from an earlier search"));
        });
        (serde_json::to_value(found.unwrap()).unwrap()["rows"].as_array().unwrap().clone(), cached)
    };
    let (rows, cached) = found(&search);
    assert_eq!((rows.len(), cached), (3 * 10 + 2 * 28, 0));
    let literal = PretrainConfig { epochs: 2, batch: 4, ..PretrainConfig::paper() };
    assert_eq!(trained(&rows[0]).config, literal);
    let different: BTreeSet<String> = rows.iter().map(|row| trained(row).sha256().unwrap()).collect();
    assert_eq!(different.len(), 10 + 2 * 28);
    assert_eq!(found(&search), (rows.clone(), 66));
    // A damaged entry is trained again.
    fs::write(dir.path().join("journal/paper-masked-nplus1-hidden-shifted.json"), "{").unwrap();
    assert_eq!(found(&search), (rows, 65));
    search.seeds = "4..5".parse().unwrap();
    assert_eq!(found(&search).1, 0);
}
