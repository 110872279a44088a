//! The loops over slices that the fast paths spend their time in, vectorised with run-time CPU
//! dispatch (AVX-512, AVX2, SSE, NEON) from one source.
//!
//! # Numerics
//! Every loop works in blocks of eight lanes whatever the CPU's width, and adds lanes in a fixed
//! order, so all CPUs with fused multiply-add give the same bits; CPUs without it (x86 before 2013)
//! give a second set of bits.

use std::sync::LazyLock;

use fearless_simd::{Level, Simd, dispatch, f64x8, prelude::*, u64x8};

/// Lanes per block.
pub(crate) const LANES: usize = 8;

/// The CPU's vector instructions, detected once: detection costs more than a short column.
pub(crate) static LEVEL: LazyLock<Level> = LazyLock::new(Level::new);

/// The inner product of two slices of equal length.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    dispatch!(*LEVEL, simd => dot_impl(simd, x, y))
}

/// Adds `a · x` to `y`.
pub(crate) fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    dispatch!(*LEVEL, simd => axpy_impl(simd, a, x, y))
}

/// Adds `a · (x - b)²` to `y`.
pub(crate) fn axpy_squared_difference(a: f64, x: &[f64], b: f64, y: &mut [f64]) {
    dispatch!(*LEVEL, simd => axpy_squared_difference_impl(simd, a, x, b, y))
}

/// Replaces every entry v by exp(scale · (v - v_max)), where v_max is the entry with the largest
/// `scale · v`: the largest result is exactly 1, so nothing overflows and the sum is at least 1.
///
/// Results below 2⁻¹⁰²¹ become 0. Relative error elsewhere: at most 3 units in the last place.
pub(crate) fn exp_minus_max(scale: f64, values: &mut [f64]) {
    dispatch!(*LEVEL, simd => exp_minus_max_impl(simd, scale, values))
}

/// Replaces every entry v by exp(scale · v); all of `scale · v` must be ≤ 0.
pub(crate) fn exp_nonpositive_scaled(scale: f64, values: &mut [f64]) {
    dispatch!(*LEVEL, simd => exp_scaled_impl(simd, scale, 0.0, values))
}

/// Whether every entry is finite.
pub(crate) fn all_finite(x: &[f64]) -> bool {
    dispatch!(*LEVEL, simd => all_finite_impl(simd, x))
}

#[inline(always)]
fn all_finite_impl<S: Simd>(simd: S, x: &[f64]) -> bool {
    // 0 · x is 0 for finite x and NaN otherwise, and NaN survives addition.
    let mut poison = f64x8::splat(simd, 0.0);
    let (blocks, tail) = x.as_chunks::<LANES>();
    for block in blocks {
        poison = f64x8::from_slice(simd, block).mul_add(f64x8::splat(simd, 0.0), poison);
    }
    sum_lanes(poison) == 0.0 && tail.iter().all(|v| v.is_finite())
}

#[inline(always)]
fn sum_lanes<S: Simd>(v: f64x8<S>) -> f64 {
    let a = v.to_array();
    ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

#[inline(always)]
fn dot_impl<S: Simd>(simd: S, x: &[f64], y: &[f64]) -> f64 {
    // Two accumulators hide the latency of the multiply-add.
    let (mut even, mut odd) = (f64x8::splat(simd, 0.0), f64x8::splat(simd, 0.0));
    let (x_pairs, x_rest) = x.as_chunks::<{ 2 * LANES }>();
    let (y_pairs, y_rest) = y.as_chunks::<{ 2 * LANES }>();
    for (a, b) in x_pairs.iter().zip(y_pairs) {
        even = f64x8::from_slice(simd, &a[..LANES]).mul_add(f64x8::from_slice(simd, &b[..LANES]), even);
        odd = f64x8::from_slice(simd, &a[LANES..]).mul_add(f64x8::from_slice(simd, &b[LANES..]), odd);
    }
    let (x_blocks, x_tail) = x_rest.as_chunks::<LANES>();
    let (y_blocks, y_tail) = y_rest.as_chunks::<LANES>();
    for (a, b) in x_blocks.iter().zip(y_blocks) {
        even = f64x8::from_slice(simd, a).mul_add(f64x8::from_slice(simd, b), even);
    }
    let tail: f64 = x_tail.iter().zip(y_tail).map(|(a, b)| a * b).sum();
    sum_lanes(even + odd) + tail
}

#[inline(always)]
fn axpy_impl<S: Simd>(simd: S, a: f64, x: &[f64], y: &mut [f64]) {
    let factor = f64x8::splat(simd, a);
    let (x_blocks, x_tail) = x.as_chunks::<LANES>();
    let (y_blocks, y_tail) = y.as_chunks_mut::<LANES>();
    for (u, v) in x_blocks.iter().zip(y_blocks) {
        f64x8::from_slice(simd, u).mul_add(factor, f64x8::from_slice(simd, v)).store_slice(v);
    }
    for (u, v) in x_tail.iter().zip(y_tail) {
        *v += a * u;
    }
}

#[inline(always)]
fn axpy_squared_difference_impl<S: Simd>(simd: S, a: f64, x: &[f64], b: f64, y: &mut [f64]) {
    let factor = f64x8::splat(simd, a);
    let centre = f64x8::splat(simd, b);
    let (x_blocks, x_tail) = x.as_chunks::<LANES>();
    let (y_blocks, y_tail) = y.as_chunks_mut::<LANES>();
    for (u, v) in x_blocks.iter().zip(y_blocks) {
        let difference = f64x8::from_slice(simd, u) - centre;
        (difference * difference).mul_add(factor, f64x8::from_slice(simd, v)).store_slice(v);
    }
    for (u, v) in x_tail.iter().zip(y_tail) {
        *v += a * ((u - b) * (u - b));
    }
}

#[inline(always)]
fn exp_minus_max_impl<S: Simd>(simd: S, scale: f64, values: &mut [f64]) {
    let sign = scale.signum();
    let mut running = f64x8::splat(simd, f64::NEG_INFINITY);
    let (blocks, tail) = values.as_chunks::<LANES>();
    for block in blocks {
        running = running.max(f64x8::from_slice(simd, block) * sign);
    }
    let maximum = tail.iter().map(|v| v * sign).chain(running.to_array()).fold(f64::NEG_INFINITY, f64::max);
    exp_scaled_impl(simd, scale, maximum * sign, values);
}

#[inline(always)]
fn exp_scaled_impl<S: Simd>(simd: S, scale: f64, pivot: f64, values: &mut [f64]) {
    let (blocks, tail) = values.as_chunks_mut::<LANES>();
    for block in blocks {
        let x = (f64x8::from_slice(simd, block) - pivot) * scale;
        exp_nonpositive(simd, x).store_slice(block);
    }
    if !tail.is_empty() {
        let mut padded = [pivot; LANES];
        padded[..tail.len()].copy_from_slice(tail);
        let x = (f64x8::load_array(simd, padded) - pivot) * scale;
        tail.copy_from_slice(&exp_nonpositive(simd, x).to_array()[..tail.len()]);
    }
}

/// exp(x) for x ≤ 0: x = k·ln 2 + r with |r| ≤ ln 2 / 2, then 2ᵏ times the Taylor polynomial of
/// degree 13, whose remainder is below 5e-18 there.
#[inline(always)]
fn exp_nonpositive<S: Simd>(simd: S, x: f64x8<S>) -> f64x8<S> {
    // Adding 1.5·2⁵² leaves the nearest integer in the low bits of the sum.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts, the first with 21 trailing zero bits, so that k times it is exact.
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN_2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
    const RECIPROCAL_FACTORIALS: [f64; 12] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
    ];
    // 2⁻¹⁰²¹: below it the exponent trick leaves the normal numbers.
    const LOWEST: f64 = -707.7;
    let clamped = x.max(f64x8::splat(simd, LOWEST));
    let shifted = clamped.mul_add(f64x8::splat(simd, std::f64::consts::LOG2_E), f64x8::splat(simd, ROUND));
    let k = shifted - ROUND;
    let r = k.mul_add(f64x8::splat(simd, -LN_2_HIGH), clamped);
    let r = k.mul_add(f64x8::splat(simd, -LN_2_LOW), r);
    let mut p = f64x8::splat(simd, RECIPROCAL_FACTORIALS[0]);
    for c in &RECIPROCAL_FACTORIALS[1..] {
        p = p.mul_add(r, f64x8::splat(simd, *c));
    }
    p = p.mul_add(r, f64x8::splat(simd, 1.0));
    p = p.mul_add(r, f64x8::splat(simd, 1.0));
    let bits: u64x8<S> = p.bitcast::<u64x8<S>>() + (shifted.bitcast::<u64x8<S>>() << 52);
    let scaled: f64x8<S> = bits.bitcast();
    x.simd_lt(f64x8::splat(simd, LOWEST)).select(f64x8::splat(simd, 0.0), scaled)
}

/// The length of a vector, also where its square overflows or underflows.
pub(crate) fn length(x: &[f64]) -> f64 {
    let norm = |scale: f64| scale * x.iter().map(|v| (v / scale) * (v / scale)).sum::<f64>().sqrt();
    let plain = norm(1.0);
    let largest = x.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    if (plain.is_finite() && plain > 0.0) || largest == 0.0 { plain } else { norm(largest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// Every length around the block sizes, so that blocks, pairs of blocks and tails are all met.
    #[test]
    fn loops_agree_with_their_definitions_at_every_length() {
        let mut stream = Stream::new(5, Purpose::Prompt, 0);
        for len in 0..40 {
            let x = stream.uniform_vec(len, -1.0, 1.0);
            let y = stream.uniform_vec(len, -1.0, 1.0);
            let literal: f64 = x.iter().zip(&y).map(|(a, b)| a * b).sum();
            // Sums of at most 40 products below 1: 40 roundings of 1.1e-16 each.
            assert!((dot(&x, &y) - literal).abs() < 5e-15);
            let mut z = y.clone();
            axpy(0.7, &x, &mut z);
            for i in 0..len {
                assert!((z[i] - (y[i] + 0.7 * x[i])).abs() < 5e-16);
            }
            let mut z = y.clone();
            axpy_squared_difference(0.7, &x, 0.2, &mut z);
            for i in 0..len {
                assert!((z[i] - (y[i] + 0.7 * (x[i] - 0.2).powi(2))).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn exponential_is_within_three_ulps_of_the_platform_library() {
        let mut stream = Stream::new(6, Purpose::Prompt, 0);
        for len in [1, 3, 8, 13, 1000] {
            for spread in [1e-9, 1.0, 40.0, 700.0] {
                for scale in [1.0, -0.5] {
                    let x = stream.uniform_vec(len, -spread, 0.0);
                    let mut y = x.clone();
                    exp_minus_max(scale, &mut y);
                    let top = x.iter().map(|v| v * scale).fold(f64::NEG_INFINITY, f64::max);
                    for (a, b) in x.iter().zip(&y) {
                        let argument = a * scale - top;
                        // One rounding of the argument moves the result by |argument| units.
                        let slack = 3.0 + argument.abs();
                        let expected = argument.exp();
                        assert!(
                            (b - expected).abs() <= slack * f64::EPSILON * expected,
                            "{a} {b} {expected}"
                        );
                    }
                    assert_eq!(y.iter().copied().fold(0.0, f64::max), 1.0);
                }
            }
        }
    }

    /// The promise of the module's Numerics note, on whatever levels this CPU has.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn all_levels_with_fused_multiply_add_give_the_same_bits() {
        let levels = [Level::new().as_avx2().map(Level::Avx2), Level::new().as_avx512().map(Level::Avx512)];
        let mut stream = Stream::new(9, Purpose::Prompt, 0);
        let (x, y) = (stream.uniform_vec(1003, -9.0, 9.0), stream.uniform_vec(1003, -9.0, 9.0));
        let results: Vec<_> = levels
            .into_iter()
            .flatten()
            .map(|level| {
                let (mut sums, mut squares, mut exponentials) = (y.clone(), y.clone(), x.clone());
                dispatch!(level, simd => axpy_impl(simd, 0.3, &x, &mut sums));
                dispatch!(level, simd => axpy_squared_difference_impl(simd, 0.3, &x, 0.1, &mut squares));
                dispatch!(level, simd => exp_minus_max_impl(simd, 0.7, &mut exponentials));
                let product = dispatch!(level, simd => dot_impl(simd, &x, &y));
                let bits = |v: Vec<f64>| v.into_iter().map(f64::to_bits).collect::<Vec<u64>>();
                (product.to_bits(), bits(sums), bits(squares), bits(exponentials))
            })
            .collect();
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn one_bad_entry_anywhere_is_seen() {
        for len in 1..20 {
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                for place in 0..len {
                    let mut x = vec![1e308; len];
                    assert!(all_finite(&x));
                    x[place] = bad;
                    assert!(!all_finite(&x));
                }
            }
        }
    }

    #[test]
    fn exponential_of_far_apart_scores_underflows_to_zero_without_nan() {
        let mut values = [1e4, -1e4, 0.0, 1e300, -1e300];
        exp_minus_max(1.0, &mut values);
        assert_eq!(values, [0.0, 0.0, 0.0, 1.0, 0.0]);
        let mut equal = [1e4; 11];
        exp_minus_max(1.0, &mut equal);
        assert_eq!(equal, [1.0; 11]);
    }
}
