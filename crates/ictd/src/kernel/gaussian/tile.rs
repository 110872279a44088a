//! The innermost loops: sums of 2^⟨y_i, y_j⟩ over a rectangle of points, in single and in double precision from one source.
//!
//! # Numerics
//! A power of two is computed once and used twice, for the sum of its row and for that of its column. Columns stand in lanes,
//! rows are taken one after another; lanes and the order of all sums are fixed, so that CPUs with fused multiply-add give the
//! same bits.

use std::fmt::Debug;

use fearless_simd::{Level, Simd, dispatch, f32x16, f64x8, prelude::*, u32x16, u64x8};

use crate::vector::LEVEL;

/// Vectors of columns that a row meets at once: enough to hide the latency of multiply-add.
const VECTORS: usize = 4;
/// Rows that are taken at once: each loaded column is then used twice.
const ROWS: usize = 2;
/// Largest number of rows of a tile: their points and sums stay in the first-level cache.
pub(super) const MAX_ROWS: usize = 128;

/// A floating-point number of the loops.
pub(crate) trait Real: Copy + Debug + Default + Send + Sync + 'static {
    /// Columns come in groups of so many.
    const GROUP: usize;
    /// Rounding unit.
    const UNIT: f64;
    /// Largest relative error of a power of two, in rounding units.
    const POWER_ERROR: f64;
    /// Terms that are added in this precision before the sum goes on in double precision.
    const RUN: usize;
    /// Largest exponent, up or down, of what is summed: beyond it numbers leave the normal range.
    const RANGE: f64;

    /// From double precision, rounded.
    fn of(x: f64) -> Self;

    /// [`tile_at`](Self::tile_at) with the vector instructions of the CPU.
    fn tile<const N: usize>(
        dim: usize,
        rows: &[Self],
        p: [&[Self]; N],
        columns: &[Self],
        q: [&[Self]; N],
        row_sums: [&mut [f64]; N],
        column_sums: [&mut [f64]; N],
    ) {
        Self::tile_at(*LEVEL, dim, rows, p, columns, q, row_sums, column_sums);
    }

    /// Adds Σ_j 2^⟨y_i, y_j⟩·q(j) to the sums of the rows i and Σ_i 2^⟨y_i, y_j⟩·p(i) to those of the columns j, for `N` vectors
    /// p and q at once. Rows are points one after another, an even number of at most [`MAX_ROWS`]; columns are groups, in each the
    /// first coordinate of all, then the second, and so on.
    #[allow(clippy::too_many_arguments, reason = "rows and columns each with what they send and receive")]
    fn tile_at<const N: usize>(
        level: Level,
        dim: usize,
        rows: &[Self],
        p: [&[Self]; N],
        columns: &[Self],
        q: [&[Self]; N],
        row_sums: [&mut [f64]; N],
        column_sums: [&mut [f64]; N],
    );
}

/// Implements [`Real`] for a precision: its vectors and their bits, lanes, the number that rounds to whole numbers when it is added,
/// the bits of a fraction, and the coefficients of the polynomial for 2^r, |r| ≤ 1/2, highest first.
macro_rules! real {
    ($float:ident, $vector:ident, $bits:ident, $lanes:literal, $round:literal, $fraction:literal, $run:literal, $range:literal, $error:literal, [$first:literal $(, $coefficient:literal)*]) => {
        #[allow(clippy::approx_constant, reason = "coefficients near those of the series, not the same")]
        impl Real for $float {
            const GROUP: usize = VECTORS * $lanes;
            const UNIT: f64 = $float::EPSILON as f64 / 2.0;
            const POWER_ERROR: f64 = $error;
            const RUN: usize = $run;
            const RANGE: f64 = $range;

            fn of(x: f64) -> Self {
                x as $float
            }

            fn tile_at<const N: usize>(
                level: Level,
                dim: usize,
                rows: &[Self],
                p: [&[Self]; N],
                columns: &[Self],
                q: [&[Self]; N],
                row_sums: [&mut [f64]; N],
                column_sums: [&mut [f64]; N],
            ) {
                #[inline(always)]
                fn power<S: Simd>(simd: S, t: $vector<S>) -> $vector<S> {
                    let shifted = t + $round;
                    let r = t - (shifted - $round);
                    let mut value = $vector::splat(simd, $first);
                    $( value = value.mul_add(r, $vector::splat(simd, $coefficient)); )*
                    let bits: $bits<S> = value.bitcast::<$bits<S>>() + (shifted.bitcast::<$bits<S>>() << $fraction);
                    bits.bitcast()
                }

                #[inline(always)]
                #[allow(clippy::too_many_arguments, reason = "as those of the tile")]
                fn program<S: Simd, const N: usize>(
                    simd: S,
                    dim: usize,
                    rows: &[$float],
                    p: [&[$float]; N],
                    columns: &[$float],
                    q: [&[$float]; N],
                    row_sums: [&mut [f64]; N],
                    column_sums: [&mut [f64]; N],
                ) {
                    const GROUP: usize = VECTORS * $lanes;
                    let num_rows = p[0].len();
                    // Lane by lane, what the rows have so far.
                    let mut of_rows = [[[0.0; $lanes]; MAX_ROWS]; N];
                    let groups = columns.as_chunks::<GROUP>().0;
                    for (g, group) in groups.chunks_exact(dim).enumerate() {
                        let mut factors = [[$vector::splat(simd, 0.0); VECTORS]; N];
                        for m in 0..N {
                            for w in 0..VECTORS {
                                let from = g * GROUP + w * $lanes;
                                factors[m][w] = $vector::from_slice(simd, &q[m][from..from + $lanes]);
                            }
                        }
                        let (first, later) = (&group[0], &group[1..]);
                        let mut begin = 0;
                        while begin < num_rows {
                            let end = (begin + $run).min(num_rows);
                            let mut of_columns = [[$vector::splat(simd, 0.0); VECTORS]; N];
                            let mut i = begin;
                            while i < end {
                                let (upper, rest) = rows[i * dim..(i + ROWS) * dim].split_at(dim);
                                let lower = &rest[..dim];
                                let mut t = [[$vector::splat(simd, 0.0); VECTORS]; ROWS];
                                for w in 0..VECTORS {
                                    let x = $vector::from_slice(simd, &first[w * $lanes..(w + 1) * $lanes]);
                                    t[0][w] = x * upper[0];
                                    t[1][w] = x * lower[0];
                                }
                                for ((xs, y), z) in later.iter().zip(&upper[1..]).zip(&lower[1..]) {
                                    let (y, z) = ($vector::splat(simd, *y), $vector::splat(simd, *z));
                                    for w in 0..VECTORS {
                                        let x = $vector::from_slice(simd, &xs[w * $lanes..(w + 1) * $lanes]);
                                        t[0][w] = x.mul_add(y, t[0][w]);
                                        t[1][w] = x.mul_add(z, t[1][w]);
                                    }
                                }
                                for r in 0..ROWS {
                                    for w in 0..VECTORS {
                                        t[r][w] = power(simd, t[r][w]);
                                    }
                                }
                                for m in 0..N {
                                    for r in 0..ROWS {
                                        let factor = $vector::splat(simd, p[m][i + r]);
                                        let mut sum = $vector::from_slice(simd, &of_rows[m][i + r]);
                                        for w in 0..VECTORS {
                                            of_columns[m][w] = t[r][w].mul_add(factor, of_columns[m][w]);
                                            sum = t[r][w].mul_add(factors[m][w], sum);
                                        }
                                        sum.store_slice(&mut of_rows[m][i + r]);
                                    }
                                }
                                i += ROWS;
                            }
                            for m in 0..N {
                                for w in 0..VECTORS {
                                    let from = g * GROUP + w * $lanes;
                                    let sums = &mut column_sums[m][from..from + $lanes];
                                    for (sum, x) in sums.iter_mut().zip(of_columns[m][w].to_array()) {
                                        *sum += f64::from(x);
                                    }
                                }
                            }
                            begin = end;
                        }
                    }
                    for m in 0..N {
                        for (sum, lanes) in row_sums[m].iter_mut().zip(&of_rows[m]) {
                            *sum += lanes.iter().map(|&x| f64::from(x)).sum::<f64>();
                        }
                    }
                }

                let lengths = [p[0].len() * dim, q[0].len() * dim, p[0].len() % ROWS];
                assert!(lengths == [rows.len(), columns.len(), 0] && p[0].len() <= MAX_ROWS, "tile: lengths differ");
                dispatch!(level, simd => program(simd, dim, rows, p, columns, q, row_sums, column_sums));
            }
        }
    };
}

// Polynomials with the smallest largest relative error on |r| ≤ 1/2 (that of single precision with 2⁰ = 1), 9.1e-8 and 2.1e-16. Errors count that and
// a rounding for the last multiply-add: the smaller terms add a fourth of one each at most.
real!(
    f32,
    f32x16,
    u32x16,
    16,
    12_582_912.0,
    23,
    64,
    100.0,
    3.0,
    [1.326_472_7e-3, 9.671_513e-3, 5.550_733_7e-2, 0.240_222_42, 0.693_147, 1.0]
);
real!(
    f64,
    f64x8,
    u64x8,
    8,
    6_755_399_441_055_744.0,
    52,
    128,
    900.0,
    4.0,
    [
        7.037_278_846_726_901e-9,
        1.020_853_792_965_740_4e-7,
        1.321_566_283_595_924e-6,
        1.525_265_811_640_985_5e-5,
        1.540_352_996_112_707_6e-4,
        1.333_355_822_856_176_6e-3,
        9.618_129_108_034_597e-3,
        5.550_410_866_445_883e-2,
        0.240_226_506_959_087_68,
        0.693_147_180_559_949_8,
        1.0
    ]
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// Row and column sums of a tile with two vectors of messages.
    fn sums<T: Real>(level: Level, dim: usize, scale: f64) -> (Vec<f64>, Vec<f64>) {
        let mut stream = Stream::new(7, Purpose::Prompt, dim as u64);
        let (num_rows, num_columns) = (MAX_ROWS - 2, 3 * T::GROUP);
        let mut draw = |len: usize, size: f64| -> Vec<T> {
            stream.uniform_vec(len, -size, size).into_iter().map(T::of).collect()
        };
        let (rows, columns) = (draw(num_rows * dim, scale), draw(num_columns * dim, scale));
        let (p, q) =
            ([draw(num_rows, 1.0), draw(num_rows, 1.0)], [draw(num_columns, 1.0), draw(num_columns, 1.0)]);
        let mut of_rows = [vec![0.0; num_rows], vec![0.0; num_rows]];
        let mut of_columns = [vec![0.0; num_columns], vec![0.0; num_columns]];
        let [p, q] = [&p, &q].map(|m| m.each_ref().map(Vec::as_slice));
        let (row_sums, column_sums) =
            (of_rows.each_mut().map(Vec::as_mut_slice), of_columns.each_mut().map(Vec::as_mut_slice));
        T::tile_at(level, dim, &rows, p, &columns, q, row_sums, column_sums);
        (of_rows.concat(), of_columns.concat())
    }

    /// The promise of the module's Numerics note, on whatever levels this CPU has.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn all_levels_with_fused_multiply_add_give_the_same_bits() {
        let levels = [Level::new().as_avx2().map(Level::Avx2), Level::new().as_avx512().map(Level::Avx512)];
        for dim in [1, 2, 5, 16] {
            let of_levels: Vec<_> = levels
                .into_iter()
                .flatten()
                .map(|level| (sums::<f32>(level, dim, 1.0), sums::<f64>(level, dim, 1.0)))
                .collect();
            assert!(of_levels.windows(2).all(|pair| pair[0] == pair[1]), "{dim}");
        }
    }

    /// One row and one column with coordinates t and 1: the sum is 2^t.
    fn worst_power<T: Real>(largest: f64) -> f64 {
        let mut stream = Stream::new(8, Purpose::Prompt, 0);
        let mut worst = 0.0f64;
        for _ in 0..2000 {
            let t: Vec<f64> = stream.uniform_vec(2, -largest, largest);
            let rows: Vec<T> = t.iter().map(|t| T::of(*t)).collect();
            let mut columns = vec![T::default(); T::GROUP];
            let mut q = columns.clone();
            (columns[0], q[0]) = (T::of(1.0), T::of(1.0));
            let (mut sums, mut unused) = (vec![0.0; 2], vec![0.0; T::GROUP]);
            let p = [T::default(); 2];
            T::tile(1, &rows, [&p], &columns, [&q], [&mut sums], [&mut unused]);
            for (sum, t) in sums.iter().zip(t) {
                // The argument as it was rounded.
                let exact = if T::UNIT > 1e-10 { f64::from(t as f32).exp2() } else { t.exp2() };
                worst = worst.max((sum / exact - 1.0).abs());
            }
        }
        worst
    }

    #[test]
    fn powers_are_as_accurate_as_is_said() {
        assert!(worst_power::<f32>(100.0) <= f32::POWER_ERROR * f32::UNIT);
        // The library's own power is off by a unit.
        assert!(worst_power::<f64>(900.0) <= (f64::POWER_ERROR + 1.0) * f64::UNIT);
    }
}
