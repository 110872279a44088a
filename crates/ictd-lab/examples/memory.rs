//! Peak memory of the binary against what it estimated before it began, on ten sizes of every command that allocates by its
//! arguments: `cargo build --release && cargo run --release -p ictd-lab --example memory [COMMAND]`.
//!
//! Ends with status 1 where an estimate is off by more than half, memory below 50 MB counted as 50 MB.

use std::error::Error;
use std::path::Path;
use std::process::Command;

/// The program, its threads and fonts, and what the allocator keeps.
const FLOOR: f64 = 50.0;
/// How far an estimate may be off, either way.
const FACTOR: f64 = 1.5;

/// A command with what all sizes share, and the sizes.
const TABLE: [(&str, &str, [&str; 10]); 12] = [
    (
        "verify",
        "",
        [
            "--trials 200 --states 200 --layers 1 --length 5",
            "--trials 400 --states 200 --layers 1 --length 5",
            "--trials 200 --features 100 --layers 1 --length 30",
            "--trials 5000 --features 5 --layers 1 --length 20",
            "--trials 20 --states 400 --layers 1 --length 5",
            "--trials 10 --states 600 --layers 1 --length 5",
            "--trials 1 --length 1500 --layers 3",
            "--trials 1 --length 300 --layers 500",
            "--trials 1 --features 500 --layers 200",
            "--trials 1 --layers 10000",
        ],
    ),
    (
        "msve",
        "",
        [
            "--tasks 200000 --lengths 1,2 --layers 1 --states 5",
            "--tasks 400000 --lengths 1,2 --layers 1 --states 5",
            "--tasks 4 --lengths 1,30 --layers 300000",
            "--tasks 4 --lengths 1,30 --layers 1000000",
            "--tasks 4 --task dense --lengths 1,30 --layers 300000",
            "--tasks 2 --task dense --states 1000 --lengths 1,30 --layers 2",
            "--tasks 2 --task dense --states 800 --lengths 1,30 --layers 2",
            "--tasks 2 --task dense --states 300 --lengths 1,30 --layers 20000",
            "--tasks 2 --lengths 1,100000 --layers 5 --features 100",
            "--tasks 2 --lengths 1,100000 --layers 5 --features 200",
        ],
    ),
    (
        "pretrain",
        "--seeds 0..2 --set epochs=1 --set batches=1",
        [
            "--set n=100000 --set layers=3 --set batch=64",
            "--set n=500 --set layers=20 --set batch=2 --set rho.end=0.5",
            "--set n=200 --set layers=3 --set batch=8000",
            "--set n=30 --set layers=200 --set batch=64",
            "--set tied=false --set n=100 --set layers=20 --set batch=4",
            "--set mask=relaxed --set n=40 --set layers=20 --set batch=8",
            "--set mask=none --set n=30 --set layers=20 --set batch=15",
            "--features 60 --set n=4 --set layers=2 --set batch=2",
            "--set epochs=20000 --set batches=20 --set batch=1 --set n=1 --set layers=1",
            "--task dense --states 300 --set n=4 --set layers=1 --set batch=1 --set query=stationary",
        ],
    ),
    (
        "certify",
        "",
        [
            "--states 200",
            "--states 400",
            "--states 500",
            "--states 300 --one-hot",
            "--task dense --states 400",
            "--n 1000000",
            "--n 3000000",
            "--task dense --states 5 --features 100 --n 200000",
            "--tasks 4 --states 600",
            "--tasks 20000 --task dense --states 3",
        ],
    ),
    (
        "regimes",
        "--tasks 1",
        [
            "--states 8",
            "--states 16",
            "--states 32",
            "--states 64",
            "--states 96",
            "--task dense --states 64",
            "--task dense --states 100",
            "--task loop --states 100",
            "--states 64 --features 500",
            "--states 64 --features 2000",
        ],
    ),
    (
        "bound",
        "--lengths 10",
        [
            "--task coin --one-hot --contexts 20000",
            "--task coin --one-hot --contexts 50000",
            "--task coin --one-hot --contexts 100000",
            "--task coin --one-hot --contexts 200000",
            "--task dense --states 5 --contexts 20000",
            "--task dense --states 50 --contexts 2",
            "--task dense --states 100 --contexts 2",
            "--task dense --states 200 --contexts 2",
            "--task dense --states 3 --features 1000 --contexts 2",
            "--task dense --states 20 --features 500 --contexts 2",
        ],
    ),
    (
        "neu",
        "--lengths 10",
        [
            "--task dense --states 3 --samples 20000 --layers 1",
            "--task dense --states 3 --samples 40000 --layers 1",
            "--task dense --states 3 --samples 20000 --layers 1,2,3",
            "--task dense --states 3 --features 30 --samples 4000 --layers 1",
            "--task dense --states 3 --features 60 --samples 2000 --layers 1",
            "--task dense --states 3 --features 100 --samples 1000 --layers 1,2",
            "--task dense --states 60 --samples 4 --layers 1",
            "--task dense --states 120 --samples 4 --layers 1",
            "--task dense --states 3 --samples 4 --layers 10000",
            "--task dense --states 30 --samples 4 --layers 10000",
        ],
    ),
    (
        "lemmas",
        "--trials 2",
        [
            "--task dense --states 50",
            "--task dense --states 100",
            "--task dense --states 200",
            "--task dense --states 300",
            "--task dense --states 400",
            "--task dense --states 500",
            "--states 300",
            "--task dense --states 5 --features 100",
            "--task dense --states 5 --features 200",
            "--task dense --states 100 --one-hot",
        ],
    ),
    (
        "forward",
        "",
        [
            "--input short.json --layers 100000",
            "--input short.json --layers 300000",
            "--input short.json --layers 1000000",
            "--input short.json --layers 100000 --tokens",
            "--input long.json --layers 2",
            "--input long.json --layers 20",
            "--input long.json --layers 100",
            "--input long.json --layers 10 --json",
            "--input short.json --layers 300000 --json",
            "--input short.json --layers 3 --fixed-point",
        ],
    ),
    (
        "task",
        "",
        [
            "dense --states 500",
            "dense --states 1000",
            "dense --states 700",
            "boyan --states 1000",
            "loop --states 1000",
            "dense --states 1000 --one-hot",
            "dense --states 5 --trajectory 100000",
            "dense --states 5 --trajectory 300000",
            "dense --states 5 --trajectory 1000000",
            "dense --states 5 --features 100 --trajectory 100000",
        ],
    ),
    // The estimate is of reading alone: where states are many the fit takes more, and is off.
    (
        "evaluate",
        "--gamma 0.9",
        [
            "labels-8.csv",
            "labels-64.csv",
            "labels-256.csv",
            "labels-512.csv",
            "labels-1000.csv",
            "labels-2000.csv",
            "labels-4000.csv",
            "features.csv",
            "labels-512.csv --temperature 1 --layers 10",
            "labels-256.csv --compare",
        ],
    ),
    (
        "convert",
        "",
        [
            "labels-64.csv log.tsv",
            "labels-64.csv log.jsonl",
            "labels-64.csv log.npz",
            "labels-64.csv log.json",
            "labels-64.csv minari-v0",
            "log.npz again.csv",
            "log.jsonl again.npz",
            "features.csv features.npz",
            "features.csv features.json",
            "minari-v0 again.jsonl",
        ],
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let chosen = std::env::args().nth(1);
    let binary = std::env::current_exe()?.with_file_name("../ictd");
    let directory = std::env::temp_dir().join(format!("ictd-memory-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    for (name, transitions) in [("short.json", 3), ("long.json", 100_000)] {
        write_context(&directory.join(name), transitions)?;
    }
    for states in [8, 64, 256, 512, 1000, 2000, 4000] {
        let label = |k: usize| ((7919 * k + 31 * (k / STEPS)) % states).to_string();
        write_log(&directory.join(format!("labels-{states}.csv")), "state", 300_000, label)?;
    }
    let feature = |k: usize| {
        let coordinates = (1..7).map(|a| (((7919 * a * k) % 10_007) as f64 / 10_007.0).to_string());
        coordinates.collect::<Vec<_>>().join(",")
    };
    write_log(&directory.join("features.csv"), "s_0,s_1,s_2,s_3,s_4,s_5", 100_000, feature)?;
    println!("{:<9}{:<82}{:>10}{:>10}{:>8}", "command", "sizes", "estimated", "peak", "ratio");
    let mut failures = 0;
    for (command, shared, sizes) in TABLE {
        for size in sizes.iter().filter(|_| chosen.as_ref().is_none_or(|c| c == command)) {
            let arguments = size.split_whitespace().chain(shared.split_whitespace());
            let output = Command::new(&binary)
                .args([command, "-q"])
                .args(arguments)
                // The second name says where it goes.
                .args(["--out", "out"].iter().filter(|_| command != "convert"))
                .current_dir(&directory)
                .env("ICTD_MEMORY", "1")
                .output()?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let line = said.lines().find(|line| line.starts_with("memory:")).unwrap_or_default();
            let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let [estimated, peak] = numbers[..] else {
                return Err(format!("{command} {size}: {said}").into());
            };
            let [estimated, peak] = [estimated, peak].map(|kib| kib * 1024.0 / 1e6);
            let ratio = estimated.max(FLOOR) / peak.max(FLOOR);
            let is_off =
                !(1.0 / FACTOR..=FACTOR).contains(&ratio) || !matches!(output.status.code(), Some(0 | 1 | 3));
            failures += u32::from(is_off);
            let mark = if is_off { "  OFF" } else { "" };
            println!("{command:<9}{size:<82}{estimated:>7.0} MB{peak:>7.0} MB{ratio:>8.2}{mark}");
        }
    }
    std::fs::remove_dir_all(&directory)?;
    println!("{failures} off by more than {FACTOR}");
    if failures > 0 { Err("estimates and peaks differ".into()) } else { Ok(()) }
}

/// Steps of an episode of a log.
const STEPS: usize = 50;

/// A log of as many rows.
fn write_log(path: &Path, header: &str, rows: usize, state: impl Fn(usize) -> String) -> std::io::Result<()> {
    let row = |k: usize| {
        let (episode, t) = (k / STEPS, k % STEPS);
        format!("{episode},{t},{},{},{}\n", state(k), k % 3, u8::from(t + 1 == STEPS))
    };
    let text = format!("episode,t,{header},reward,terminated\n{}", (0..rows).map(row).collect::<String>());
    std::fs::write(path, text)
}

/// A context of as many transitions through five states.
fn write_context(path: &Path, transitions: usize) -> std::io::Result<()> {
    let feature = |k: usize| format!("[{}, 1, {}]", (7 * k) % 5, (3 * k) % 5);
    let features: Vec<String> = (0..=transitions).map(feature).collect();
    let rewards: Vec<String> = (0..transitions).map(|k| (k % 3).to_string()).collect();
    let text = format!("{{\"features\": [{}], \"rewards\": [{}]}}", features.join(", "), rewards.join(", "));
    std::fs::write(path, text)
}
