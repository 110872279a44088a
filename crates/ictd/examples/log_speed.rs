//! How long it takes to count ten million transitions over 64 states, on one core.
//!
//!     cargo run --release -p ictd --example log_speed

use std::time::Instant;

use ictd::evaluate::LogBuilder;
use ictd::{End, Matrix, Purpose, Stream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
        let rewarded = length - usize::from(end == End::Truncated);
        for (e, states) in states.chunks(length).enumerate() {
            let first = e * length;
            let key = (e as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let times = timed.then(|| &times[first..first + rewarded]);
            builder.episode(key, states, &rewards[first..first + rewarded], end, times)?;
        }
        let counted = start.elapsed().as_secs_f64();
        let features = Matrix::identity(num_states as usize);
        let log = builder.build(features)?;
        let built = start.elapsed().as_secs_f64();
        println!(
            "episodes of {length}, {end:?}, times {timed}: counted {} transitions in {counted:.2} s, built after {built:.2} s",
            log.num_transitions()
        );
    }
    Ok(())
}
