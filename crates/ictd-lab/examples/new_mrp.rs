//! A reward process of one's own in a file, through `certify`, `bound` and `pretrain`.

use std::fs;
use std::path::PathBuf;

use ictd_lab::Progress;
use ictd_lab::report::Report as _;
use ictd_lab::studies::TaskChoice;
use ictd_lab::studies::pretrain::{Settings, run_in_memory};
use ictd_lab::studies::theory::certify::{self, LayerConfig};
use ictd_lab::studies::theory::theorem2::{self, BoundConfig};

/// A machine that works, wears out and is repaired; the values follow from the rest.
const MACHINE: &str = r#"{
  "gamma": 0.8,
  "transitions": [[0.9, 0.1, 0.0], [0.2, 0.6, 0.2], [0.7, 0.0, 0.3]],
  "rewards": [1.0, 0.2, -2.0],
  "features": [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]]
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "out/new_mrp".into()));
    fs::create_dir_all(&out)?;
    let path = out.join("machine.json");
    fs::write(&path, MACHINE)?;
    let name = path.display().to_string();
    let tasks = TaskChoice::named(&name)?.tasks(0)?;
    println!("{}, values {:.3?}", tasks.describe(), tasks.task(0)?.values());
    let layer = LayerConfig::default();
    println!(
        "certify: {}",
        certify::task(&tasks, 0, &layer, &Progress::default())?.certificate.status.as_str()
    );
    let settings =
        BoundConfig { family: tasks, lengths: vec![1000], ..BoundConfig::defaults(0, 50)[1].clone() };
    let report = theorem2::run(&settings, &Progress::default())?;
    println!("bound: {} statements, kept: {}", report.comparisons.len(), report.holds());
    let settings = Settings::preset("paper", &[format!("task={name}"), "epochs=50".into()])?;
    let result = run_in_memory(&settings, &[0], &Progress::default())?;
    println!("pretrain: branch {}, MSVE {:.3}", result.seeds[0].last.branch, result.seeds[0].last.msve);
    Ok(())
}
