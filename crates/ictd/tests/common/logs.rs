//! Random logs of episodes, and estimators of their values.

use ictd::evaluate::method::{Basis, Lstd, SoftmaxTd};
use ictd::evaluate::{Log, LogBuilder, Sample};
use ictd::{End, KernelName, Matrix, Purpose, Stream};

pub fn softmax_td(kernel: KernelName, temperature: f64, num_layers: usize, centred: bool) -> SoftmaxTd {
    SoftmaxTd {
        kernel: kernel.at(temperature).unwrap(),
        num_layers,
        step_size: 0.9,
        centred,
        keys: None,
        stop: None,
    }
}

pub fn lstd(basis: Basis, ridge: f64) -> Lstd {
    Lstd { basis, traces: false, ridge }
}

/// Episodes of up to `longest` steps through `m` states of two random features.
pub fn random_log(seed: u64, episodes: u64, m: u32, longest: u32, gamma: f64) -> Log {
    let mut stream = Stream::new(seed, Purpose::Trajectory, 0);
    let mut builder = LogBuilder::new(gamma, Some(0.5)).unwrap();
    for key in 0..episodes {
        let steps = 1 + stream.below(longest) as usize;
        let end = if gamma < 1.0 && key % 2 == 0 { End::Truncated } else { End::Terminated };
        let states: Vec<u32> =
            (0..steps + usize::from(end == End::Truncated)).map(|_| stream.below(m)).collect();
        builder.episode(key, &states, &stream.uniform_vec(steps, -1.0, 2.0), end, None).unwrap();
    }
    builder.build(Matrix::from_fn(m as usize, 2, |_, _| stream.normal())).unwrap()
}

/// The largest difference.
pub fn gap(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    // Written so that NaN counts as a gap.
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |m, g| if g <= m { m } else { g })
}

/// Samples whose blocks are drawn with replacement.
pub fn resamples(log: &Log, count: u64) -> Vec<Sample<'_>> {
    let draw = |b: u64| {
        let mut stream = Stream::new(4, Purpose::Resampling, b);
        let mut weights = vec![0.0; log.num_blocks()];
        (0..weights.len()).for_each(|_| weights[stream.below(log.num_blocks() as u32) as usize] += 1.0);
        log.sample(&weights)
    };
    (0..count).map(draw).collect()
}
