//! Computes the values of many states, and says how long that took: `cargo run --release -p ictd-lab --example predict -- LOG QUERIES GAMMA TIMES`.
//! `crates/ictd-py/benches/overhead.py` measures what Python adds to it.

use std::path::PathBuf;
use std::time::Instant;

use ictd_lab::logs::{Wanted, queries};
use ictd_lab::studies::evaluate::{EvaluateConfig, Fitted, Logged};
use ictd_lab::{LabError, Progress};

fn main() -> Result<(), LabError> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |name: &str| arguments.next().ok_or_else(|| LabError::refused(name, "missing"));
    let (log, asked) = (PathBuf::from(next("LOG")?), PathBuf::from(next("QUERIES")?));
    let gamma = next("GAMMA")?.parse().map_err(|_| LabError::refused("GAMMA", "expected a number"))?;
    let times: usize = next("TIMES")?.parse().map_err(|_| LabError::refused("TIMES", "expected a number"))?;
    let config = EvaluateConfig { temperature: Some(0.5), layers: Some(16), ..EvaluateConfig::new(gamma) };
    let (progress, wanted) = (Progress::default(), Wanted::default());
    let fitted = Fitted::new(Logged::read(&log, &wanted, &config, &progress)?, config, &progress)?;
    let queries = queries(&asked, fitted.reading(), &wanted)?;
    let time = |_: usize| {
        let start = Instant::now();
        fitted.values(&queries, &Progress::default()).map(|values| (start.elapsed().as_secs_f64(), values[0]))
    };
    let mut times = (0..times.max(1)).map(time).collect::<Result<Vec<_>, _>>()?;
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("{{\"seconds\": {}, \"first\": {}}}", times[0].0, times[0].1);
    Ok(())
}
