//! Random contexts and Transformers for the tests, all from seeded streams.
#![allow(dead_code, missing_docs)]

pub mod logs;

use ictd::context::{Context, End};
use ictd::kernel::{Attention, KernelName};
use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::transformer::AttentionParams;

/// A context of several episodes over `num_states` random states of `d` features, with terminated and
/// truncated ends and two queries, one of a known state and one of a new one.
pub fn episodes(seed: u64, d: usize, num_states: u32, lengths: &[usize]) -> Context {
    let mut stream = Stream::new(seed, Purpose::Prompt, 0);
    let table: Vec<Vec<f64>> = (0..num_states).map(|_| stream.uniform_vec(d, -1.0, 1.0)).collect();
    let mut builder = Context::builder();
    for (e, &len) in lengths.iter().enumerate() {
        let features: Vec<Vec<f64>> =
            (0..=len).map(|_| table[stream.below(num_states) as usize].clone()).collect();
        let rewards = stream.uniform_vec(len, -1.0, 1.0);
        let end = if e % 2 == 1 { End::Terminated } else { End::Truncated };
        builder = builder.episode(&features, &rewards, end);
    }
    builder.query(&table[0]).query(&stream.uniform_vec(d, -1.0, 1.0)).build().unwrap()
}

/// One truncated trajectory of n transitions over distinct random states.
pub fn distinct(seed: u64, d: usize, n: usize) -> Context {
    let mut stream = Stream::new(seed, Purpose::Prompt, 0);
    let features: Vec<Vec<f64>> = (0..=n).map(|_| stream.uniform_vec(d, -1.0, 1.0)).collect();
    Context::builder().episode(&features, &stream.uniform_vec(n, -1.0, 1.0), End::Truncated).build().unwrap()
}

pub fn attention(kernel: KernelName, temperature: f64, rho: f64) -> Attention {
    Attention::new(kernel.at(temperature).unwrap(), rho).unwrap()
}

/// Random parameters with only V's last row and A's feature block: the family the fast path covers.
pub fn sparse_params(stream: &mut Stream, d: usize) -> AttentionParams {
    let mut v = Matrix::zeros(d + 3, d + 3);
    v.row_mut(d + 2).copy_from_slice(&stream.uniform_vec(d + 3, -1.0, 1.0));
    let a =
        Matrix::from_fn(d + 3, d + 3, |i, j| if i < d && j < d { stream.uniform_in(-1.0, 1.0) } else { 0.0 });
    AttentionParams::new(v, a).unwrap()
}

/// Random parameters with every entry filled.
pub fn full_params(stream: &mut Stream, d: usize) -> AttentionParams {
    let mut random = || Matrix::from_fn(d + 3, d + 3, |_, _| stream.uniform_in(-0.3, 0.3));
    AttentionParams::new(random(), random()).unwrap()
}

/// The largest |a - b| over two histories of values.
pub fn gap(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b).flat_map(|(x, y)| {
        assert_eq!(x.len(), y.len());
        x.iter().zip(y)
    });
    // Written so that NaN counts as a gap.
    pairs.map(|(x, y)| (x - y).abs()).fold(0.0, |m, g| if g <= m { m } else { g })
}
