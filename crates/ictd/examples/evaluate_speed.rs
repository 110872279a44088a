//! How long it takes to count ten million transitions over 64 states on one core, and to gather, tune and resample 50,000
//! distinct states of six features.
//!
//!     cargo run --release -p ictd --example evaluate_speed

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use ictd::evaluate::method::SoftmaxTd;
use ictd::evaluate::{Depths, Folds, Keys, LogBuilder, Loss, Sample, Scaler, Scaling};
use ictd::evaluate::{depths, temperatures, tune};
use ictd::{End, KernelName, Matrix, Purpose, Stream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    count()?;
    continuous()
}

fn key(episode: usize) -> u64 {
    (episode as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

/// Every pair of states is as likely as every other, which is the hardest on caches.
fn count() -> Result<(), Box<dyn std::error::Error>> {
    let (num_states, total) = (64, 10_000_000);
    let mut stream = Stream::new(1, Purpose::Trajectory, 0);
    let states: Vec<u32> = (0..total).map(|_| stream.below(num_states)).collect();
    let rewards = stream.uniform_vec(total, -1.0, 1.0);
    let times: Vec<f64> = (0..total).map(|t| t as f64).collect();
    for (length, end, timed) in [
        (100_000, End::Terminated, false),
        (100, End::Terminated, false),
        (10, End::Terminated, false),
        (10, End::Terminated, true),
        (100, End::Truncated, false),
    ] {
        let start = Instant::now();
        let mut builder = LogBuilder::new(0.9, None)?;
        let steps = length - usize::from(end == End::Truncated);
        for (e, states) in states.chunks(length).enumerate() {
            let rows = e * length..e * length + steps;
            let times = timed.then(|| &times[rows.clone()]);
            builder.episode(key(e), states, &rewards[rows], end, times)?;
        }
        let counted = start.elapsed().as_secs_f64();
        let log = builder.build(Matrix::identity(num_states as usize))?;
        let built = start.elapsed().as_secs_f64();
        let n = log.num_transitions();
        println!(
            "{n} transitions in episodes of {length}, {end:?}, times {timed}: {counted:.2} s, built after {built:.2} s"
        );
    }
    Ok(())
}

fn continuous() -> Result<(), Box<dyn std::error::Error>> {
    let (total, length, d) = (50_000, 50, 6);
    let mut stream = Stream::new(2, Purpose::Trajectory, 0);
    let mut builder = LogBuilder::new(0.95, None)?;
    let mut features = Vec::with_capacity(total * d);
    for e in 0..total / length {
        let first = (e * length) as u32;
        let mut x: Vec<f64> = (0..d).map(|_| stream.normal()).collect();
        let mut rewards = Vec::with_capacity(length);
        for _ in 0..length {
            rewards.push(x[0] + 0.5 * x[1] * x[2] + stream.normal());
            features.extend(x.iter().zip([1.0, 1e3, 1e-3, 1.0, 50.0, 1.0]).map(|(x, unit)| x * unit));
            x.iter_mut().for_each(|x| *x = 0.9 * *x + 0.43 * stream.normal());
        }
        let states: Vec<u32> = (first..first + length as u32).collect();
        builder.episode(key(e), &states, &rewards, End::Terminated, None)?;
    }
    let start = Instant::now();
    let lap = |what: &str| println!("{what} after {:.2} s", start.elapsed().as_secs_f64());
    let log = builder.build(Matrix::from_vec(total, d, features))?;
    lap("built");
    let log = log.with_features(&Scaler::of(Scaling::Standardize, &log).apply(log.features()))?;
    lap("scaled");
    let keys = Arc::new(Keys::of(&log, 256));
    lap(&format!("{} keys of radius {:.2}", keys.states().len(), keys.radius()));
    let widths = temperatures(&log.whole());
    lap(&format!("{} temperatures from {:.2}", widths.len(), widths[0]));
    let method = |temperature: f64, num_layers| {
        let (kernel, keys) = (KernelName::Rbf.at(temperature)?, Some(keys.clone()));
        Ok::<_, ictd::kernel::KernelError>(SoftmaxTd {
            kernel,
            num_layers,
            step_size: 1.0,
            centred: true,
            keys,
            stop: None,
        })
    };
    let candidates: Vec<Depths> = widths
        .iter()
        .map(|&temperature| Ok(Depths { method: method(temperature, 0)?, depths: depths(2048), patience: 4 }))
        .collect::<Result<_, ictd::kernel::KernelError>>()?;
    let candidates: Vec<&dyn ictd::evaluate::Candidates> = candidates.iter().map(|c| c as _).collect();
    let curve = tune(&log, &Folds::new(&log, 5, 2, 0)?, Loss::HeldOutLstd, &candidates)?;
    let settings = depths(2048);
    let (temperature, layers) = (widths[curve.best / settings.len()], settings[curve.best % settings.len()]);
    lap(&format!(
        "tuned: temperature {temperature:.3}, {layers} layers, loss {:.3}",
        curve.trials[curve.best].loss
    ));
    let samples: Vec<Sample<'_>> = (0..100)
        .map(|b| {
            let mut stream = Stream::new(3, Purpose::Resampling, b);
            let mut weights = vec![0.0; log.num_blocks()];
            (0..log.num_blocks())
                .for_each(|_| weights[stream.below(log.num_blocks() as u32) as usize] += 1.0);
            log.sample(&weights)
        })
        .collect();
    lap("100 samples");
    let fits = method(temperature, layers)?.fit_all(&samples, &[], |_| ControlFlow::Continue(()))?;
    lap(&format!("100 fits of {layers} layers ({:.3})", fits.values()[(0, 0)]));
    Ok(())
}
