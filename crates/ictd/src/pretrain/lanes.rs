//! Numbers in lanes: one source for the vectorised float32 engine and the float64 reference.
//!
//! A [`Machine`] says what a number is. [`Plain`] works on one `f64` at a time; [`Wide`] on sixteen
//! `f32`, one per context, with the instructions of the CPU at hand. Sixteen lanes are used on every
//! CPU, whatever its vectors' width, so that sums over contexts have the same order and CPUs with fused
//! multiply-add give the same bits.

use std::fmt::Debug;
use std::ops::{Add, Mul, Neg, Sub};

use fearless_simd::{Simd, f32x16, prelude::*, u32x16};

/// Contexts per [`Wide`] number.
pub const WIDTH: usize = 16;

/// An element: what is stored in arrays.
pub trait Element: Copy + Debug + Default + PartialEq + Send + Sync + 'static {
    /// From double precision, rounded.
    fn of(x: f64) -> Self;
    /// To double precision, exactly.
    fn get(self) -> f64;
}

impl Element for f32 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn get(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn get(self) -> f64 {
        self
    }
}

/// Arithmetic on lanes of elements.
pub trait Machine: Copy {
    /// The element in a lane.
    type Element: Element;
    /// A number with all its lanes.
    type Number: Copy
        + Add<Output = Self::Number>
        + Sub<Output = Self::Number>
        + Mul<Output = Self::Number>
        + Neg<Output = Self::Number>;
    /// A number in memory.
    type Cell: Copy + Default + Debug + Send + Sync;
    /// Lanes per number.
    const LANES: usize;
    /// Whether the paper's sizes have a program of their own, in which they are constants. It takes long to compile.
    const UNROLLED: bool;

    /// The same element in every lane.
    fn splat(self, x: Self::Element) -> Self::Number;
    /// Lanes from consecutive elements; as many as there are lanes must be there.
    fn load(self, from: &[Self::Element]) -> Self::Number;
    /// Lanes to consecutive elements.
    fn store(self, x: Self::Number, to: &mut [Self::Element]);
    /// A number from memory.
    fn get(self, cell: &Self::Cell) -> Self::Number;
    /// A number to memory.
    fn put(self, x: Self::Number, cell: &mut Self::Cell);
    /// a·b + c, fused where the CPU can.
    fn fma(self, a: Self::Number, b: Self::Number, c: Self::Number) -> Self::Number;
    fn max(self, a: Self::Number, b: Self::Number) -> Self::Number;
    fn min(self, a: Self::Number, b: Self::Number) -> Self::Number;
    fn abs(self, x: Self::Number) -> Self::Number;
    /// 1 where x > 0, else 0.
    fn positive(self, x: Self::Number) -> Self::Number;
    fn recip(self, x: Self::Number) -> Self::Number;
    fn exp(self, x: Self::Number) -> Self::Number;
    /// The sum of all lanes of a number in memory, in double precision and a fixed order.
    fn sum(self, cell: &Self::Cell) -> f64;
    /// Runs a program of one size. It is compiled as a function of its own: all of them in one would be too much for the
    /// compiler to keep in registers.
    fn apart<R>(self, program: impl FnOnce() -> R) -> R;
}

/// `apart!(m, code)`: [`Machine::apart`].
macro_rules! apart {
    ($m:expr, $code:expr) => {
        $m.apart(
            #[inline(always)]
            || $code,
        )
    };
}
pub(crate) use apart;

/// Starts and widths of chunks of 4, 2 and 1 that cover `0..len`. Sums over the same terms are taken this many at a time: one alone waits
/// for its own additions. An iterator of its own, because a closure would not be inlined into the code for the CPU at hand.
pub(super) struct Chunks {
    start: usize,
    len: usize,
}

#[inline(always)]
pub(super) fn chunks(len: usize) -> Chunks {
    Chunks { start: 0, len }
}

impl Iterator for Chunks {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        let start = self.start;
        let width = match self.len - start {
            0 => return None,
            1 => 1,
            2 | 3 => 2,
            _ => 4,
        };
        self.start += width;
        Some((start, width))
    }
}

/// `by_width!(width, W => code)`: the code with the width of a chunk as the constant `W`.
macro_rules! by_width {
    ($width:expr, $W:ident => $code:expr) => {
        match $width {
            4 => {
                const $W: usize = 4;
                $code
            }
            2 => {
                const $W: usize = 2;
                $code
            }
            _ => {
                const $W: usize = 1;
                $code
            }
        }
    };
}
pub(super) use by_width;

/// Adds the lanes of `totals` to a sum and takes the smallest of those of `minima`, as many lanes as are counted.
#[inline(always)]
pub(super) fn sum_and_smallest<M: Machine>(
    m: M,
    counted: usize,
    [totals, minima]: [M::Number; 2],
    (mut sum, mut smallest): (f64, f64),
) -> (f64, f64) {
    let mut lanes = [M::Element::default(); WIDTH];
    let counted = counted.min(M::LANES);
    m.store(totals, &mut lanes);
    sum += lanes[..counted].iter().map(|x| x.get()).sum::<f64>();
    m.store(minima, &mut lanes);
    smallest = lanes[..counted].iter().map(|x| x.get()).fold(smallest, f64::min);
    (sum, smallest)
}

/// Lanes from the elements that there are, at most as many as lanes; the others are 0.
#[inline(always)]
pub(super) fn load_part<M: Machine>(m: M, from: &[M::Element]) -> M::Number {
    let mut lanes = [M::Element::default(); WIDTH];
    lanes[..from.len()].copy_from_slice(from);
    m.load(&lanes)
}

/// The first lanes to as many elements as there are, at most as many as lanes.
#[inline(always)]
pub(super) fn store_part<M: Machine>(m: M, x: M::Number, to: &mut [M::Element]) {
    let mut lanes = [M::Element::default(); WIDTH];
    m.store(x, &mut lanes);
    to.copy_from_slice(&lanes[..to.len()]);
}

/// One `f64` at a time: the reference.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Machine for Plain {
    type Element = f64;
    type Number = f64;
    type Cell = f64;
    const LANES: usize = 1;
    const UNROLLED: bool = false;

    #[inline(always)]
    fn splat(self, x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn load(self, from: &[f64]) -> f64 {
        from[0]
    }
    #[inline(always)]
    fn store(self, x: f64, to: &mut [f64]) {
        to[0] = x;
    }
    #[inline(always)]
    fn get(self, cell: &f64) -> f64 {
        *cell
    }
    #[inline(always)]
    fn put(self, x: f64, cell: &mut f64) {
        *cell = x;
    }
    #[inline(always)]
    fn fma(self, a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
    #[inline(always)]
    fn max(self, a: f64, b: f64) -> f64 {
        a.max(b)
    }
    #[inline(always)]
    fn min(self, a: f64, b: f64) -> f64 {
        a.min(b)
    }
    #[inline(always)]
    fn abs(self, x: f64) -> f64 {
        x.abs()
    }
    #[inline(always)]
    fn positive(self, x: f64) -> f64 {
        if x > 0.0 { 1.0 } else { 0.0 }
    }
    #[inline(always)]
    fn recip(self, x: f64) -> f64 {
        1.0 / x
    }
    #[inline(always)]
    fn exp(self, x: f64) -> f64 {
        x.exp()
    }
    #[inline(always)]
    fn sum(self, cell: &f64) -> f64 {
        *cell
    }
    #[inline(always)]
    fn apart<R>(self, program: impl FnOnce() -> R) -> R {
        program()
    }
}

/// Sixteen `f32` at a time.
#[derive(Clone, Copy, Debug)]
pub struct Wide<S>(pub S);

/// Sixteen floats on a cache line of their own.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Line([f32; WIDTH]);

impl<S: Simd> Machine for Wide<S> {
    type Element = f32;
    type Number = f32x16<S>;
    type Cell = Line;
    const LANES: usize = WIDTH;
    // Not for x86 CPUs of before 2013, nor the scalar code that checks the others.
    const UNROLLED: bool = <S::f32s as SimdBase<S>>::LEN > 4 || cfg!(target_arch = "aarch64");

    #[inline(always)]
    fn splat(self, x: f32) -> f32x16<S> {
        f32x16::splat(self.0, x)
    }
    #[inline(always)]
    fn load(self, from: &[f32]) -> f32x16<S> {
        f32x16::from_slice(self.0, &from[..WIDTH])
    }
    #[inline(always)]
    fn store(self, x: f32x16<S>, to: &mut [f32]) {
        x.store_slice(&mut to[..WIDTH]);
    }
    #[inline(always)]
    fn get(self, cell: &Line) -> f32x16<S> {
        f32x16::load_array_ref(self.0, &cell.0)
    }
    #[inline(always)]
    fn put(self, x: f32x16<S>, cell: &mut Line) {
        x.store_slice(&mut cell.0);
    }
    #[inline(always)]
    fn fma(self, a: f32x16<S>, b: f32x16<S>, c: f32x16<S>) -> f32x16<S> {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn max(self, a: f32x16<S>, b: f32x16<S>) -> f32x16<S> {
        a.max(b)
    }
    #[inline(always)]
    fn min(self, a: f32x16<S>, b: f32x16<S>) -> f32x16<S> {
        a.min(b)
    }
    #[inline(always)]
    fn abs(self, x: f32x16<S>) -> f32x16<S> {
        x.abs()
    }
    #[inline(always)]
    fn positive(self, x: f32x16<S>) -> f32x16<S> {
        let (zero, one) = (f32x16::splat(self.0, 0.0), f32x16::splat(self.0, 1.0));
        x.simd_gt(zero).select(one, zero)
    }
    #[inline(always)]
    fn recip(self, x: f32x16<S>) -> f32x16<S> {
        f32x16::splat(self.0, 1.0) / x
    }

    /// x = k·ln 2 + r with |r| ≤ ln 2 / 2, then 2ᵏ times the Taylor polynomial of degree 7, whose
    /// remainder is below 6e-9 there. Arguments are limited to ±87, where results are normal numbers.
    #[inline(always)]
    fn exp(self, x: f32x16<S>) -> f32x16<S> {
        // Adding 1.5·2²³ leaves the nearest integer in the low bits of the sum.
        const ROUND: f32 = 12_582_912.0;
        // ln 2 in two parts, the first with 9 trailing zero bits, so that k times it is exact.
        const LN_2_HIGH: f32 = 0.693_359_4;
        const LN_2_LOW: f32 = -2.121_944_4e-4;
        let c = |v: f32| f32x16::splat(self.0, v);
        let x = x.max(c(-87.0)).min(c(87.0));
        let shifted = x.mul_add(c(std::f32::consts::LOG2_E), c(ROUND));
        let k = shifted - ROUND;
        let r = k.mul_add(c(-LN_2_LOW), k.mul_add(c(-LN_2_HIGH), x));
        let mut p = c(1.0 / 5040.0);
        for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            p = p.mul_add(r, c(coefficient));
        }
        let bits: u32x16<S> = p.bitcast::<u32x16<S>>() + (shifted.bitcast::<u32x16<S>>() << 23);
        bits.bitcast()
    }

    #[inline(always)]
    fn sum(self, cell: &Line) -> f64 {
        cell.0.iter().map(|&v| f64::from(v)).sum()
    }
    #[inline(always)]
    fn apart<R>(self, program: impl FnOnce() -> R) -> R {
        self.0.vectorize(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fearless_simd::{Level, dispatch};

    #[inline(always)]
    fn exp_all<S: Simd>(simd: S, x: &mut [f32]) {
        let machine = Wide(simd);
        for block in x.chunks_exact_mut(WIDTH) {
            let value = machine.exp(machine.load(block));
            machine.store(value, block);
        }
    }

    #[test]
    fn exponential_is_accurate_over_the_whole_range() {
        let arguments: Vec<f32> = (0..16_000).map(|i| -87.0 + 174.0 * (i as f32) / 16_000.0).collect();
        let mut values = arguments.clone();
        let level = Level::new();
        dispatch!(level, simd => exp_all(simd, &mut values));
        for (x, y) in arguments.iter().zip(values) {
            let exact = f64::from(*x).exp();
            // Four roundings of the polynomial and reduction: 2.4e-7 relative.
            assert!((f64::from(y) - exact).abs() <= 2.4e-7 * exact, "{x}: {y} {exact}");
        }
    }
}
