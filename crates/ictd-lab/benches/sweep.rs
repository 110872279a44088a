//! What a sweep costs beside the training in it: 10,000 short runs with their journal and their table, and the same training alone.

use std::fs;
use std::path::Path;
use std::time::Instant;

use ictd::pretrain::{SimdLevel, Trainer};
use ictd_lab::Progress;
use ictd_lab::files::process::peak_rss_kib;
use ictd_lab::studies::pretrain::unmeasured_result;
use ictd_lab::sweep::{Plan, Request, Sweep, TABLE};
use rayon::prelude::*;

/// Ten settings with a thousand seeds each.
const PLAN: &str = "seeds = 1000\nmetrics = \"none\"\n[set]\nepochs = 50\n[grid]\ntemperature = [0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4]\n";
/// Each is timed so often, one after the other, and the medians are compared.
const TIMES: usize = 5;

fn main() {
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench-sweep");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).expect("a directory in target");
    let plan = |text: &str| {
        fs::write(out.join("plan.toml"), text).expect("a file in target");
        Plan::read(&out.join("plan.toml")).expect("a plan")
    };
    let (small, large) = (plan(&PLAN.replace("1000", "100")), plan(PLAN));
    swept(&small, &out.join("small"));
    let after_small = peak_rss_kib().unwrap_or(0);
    let sweep = Sweep::of(large.clone(), SimdLevel::Best.in_use()).expect("a sweep");
    let (mut alone, mut whole) = (Vec::new(), Vec::new());
    for k in 0..TIMES {
        alone.push(trained(&sweep));
        whole.push(swept(&large, &out.join(format!("large{k}"))));
    }
    let after_large = peak_rss_kib().unwrap_or(0);
    alone.sort_by(f64::total_cmp);
    whole.sort_by(f64::total_cmp);
    let (alone, whole) = (alone[TIMES / 2], whole[TIMES / 2]);
    let (files, bytes) = size(&out.join("large0"));
    let table = fs::metadata(out.join("large0").join(TABLE)).map_or(0, |found| found.len());
    println!("| 10,000 runs of 50 epochs, {} threads, median of {TIMES} | |", rayon::current_num_threads());
    println!("|---|---:|");
    println!("| training alone | {alone:.3} s |");
    println!("| the sweep, journal and table included | {whole:.3} s |");
    println!("| ratio | {:.3} |", whole / alone);
    println!("| peak memory after 1,000 runs | {:.1} MiB |", after_small as f64 / 1024.0);
    println!("| peak memory after {} runs | {:.1} MiB |", TIMES * 10_000, after_large as f64 / 1024.0);
    println!("| files, bytes | {files}, {:.1} MB |", bytes as f64 / 1e6);
    println!("| bytes of the table | {:.1} MB |", table as f64 / 1e6);
    let holds = whole <= 1.05 * alone && (after_large as f64) < 1.5 * after_small as f64;
    if !holds {
        eprintln!("expected a ratio of at most 1.05 and memory that does not grow");
        std::process::exit(1);
    }
}

/// Seconds of a sweep as the command does it.
fn swept(plan: &Plan, out: &Path) -> f64 {
    let start = Instant::now();
    let request = Request { plan: plan.clone(), out: out.to_owned(), fresh: true, extend: false };
    let opened = request.open(true).expect("a directory");
    let progress = Progress::default();
    opened.work(&(0..opened.sweep.num_runs()), &progress).expect("runs");
    opened.finish(&progress, |_| {}).expect("a table");
    start.elapsed().as_secs_f64()
}

/// Seconds of the training alone.
fn trained(sweep: &Sweep) -> f64 {
    let start = Instant::now();
    let ends: usize = (0..sweep.num_runs())
        .into_par_iter()
        .map(|run| {
            let (setting, seed) = sweep.run(run);
            let mut trainer = Trainer::<f32>::new(&setting.settings.config, seed).expect("a configuration");
            while !trainer.is_done() {
                trainer.epoch_unmeasured().expect("training");
            }
            usize::from(unmeasured_result(&setting.settings, seed, &trainer.into_state()).best_step > 0)
        })
        .sum();
    // What is counted must be computed.
    assert!(ends <= sweep.num_runs());
    start.elapsed().as_secs_f64()
}

/// Files of a directory and their bytes.
fn size(path: &Path) -> (usize, u64) {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.fold((0, 0), |(files, bytes), entry| match entry.metadata() {
        Ok(found) if found.is_dir() => {
            let inner = size(&entry.path());
            (files + inner.0, bytes + inner.1)
        }
        Ok(found) => (files + 1, bytes + found.len()),
        Err(_) => (files, bytes),
    })
}
