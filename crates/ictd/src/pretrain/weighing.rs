//! Kernels as the passes take them.
//!
//! A built-in kernel is a [`LaneKernel`]: three formulas on lanes. Passes are compiled for all of them at once, and
//! [`by_kernel`] tells them apart outside the small loops that need to know. A kernel of one's own runs in the general
//! pass, one lane at a time, through its [`Kernel`] methods.

use std::sync::Arc;

use super::lanes::{Element, Machine, WIDTH, apart};
use crate::kernel::{Kernel, KernelName, Normalization, Similarity};

/// A kernel of scaled scores s = G/τ. Slopes are functions of the weight alone, so that scores need not be kept.
pub trait LaneKernel {
    /// Whether the score of two tokens is -½(z_i - z_j)ᵀA(z_i - z_j)/τ, not z_iᵀA z_j/τ ([`distance`](super::distance)).
    const DISTANCE: bool = false;
    /// Whether weights are divided by their sum, or by the number of sources.
    const BY_COLUMN: bool = true;
    /// What may be taken off all scores of a column whose largest this is, without changing normalised weights.
    #[inline(always)]
    fn shift<M: Machine>(m: M, _largest: M::Number) -> M::Number {
        m.splat(M::Element::default())
    }
    /// The unnormalised weight.
    fn weight<M: Machine>(m: M, score: M::Number) -> M::Number;
    /// Its derivative by the score.
    fn slope<M: Machine>(m: M, weight: M::Number) -> M::Number;
    /// What a column's weights are multiplied by.
    #[inline(always)]
    fn share<M: Machine>(m: M, total: M::Number, num_sources: usize) -> M::Number {
        if Self::BY_COLUMN {
            return m.recip(total);
        }
        m.splat(M::Element::of(1.0 / num_sources as f64))
    }
}

/// Softmax.
pub struct Exponential;

impl LaneKernel for Exponential {
    #[inline(always)]
    fn shift<M: Machine>(_: M, largest: M::Number) -> M::Number {
        largest
    }
    #[inline(always)]
    fn weight<M: Machine>(m: M, score: M::Number) -> M::Number {
        m.exp(score)
    }
    #[inline(always)]
    fn slope<M: Machine>(_: M, weight: M::Number) -> M::Number {
        weight
    }
}

/// Softmax of distances: the Gaussian kernel.
pub struct Gaussian;

impl LaneKernel for Gaussian {
    const DISTANCE: bool = true;
    #[inline(always)]
    fn shift<M: Machine>(m: M, largest: M::Number) -> M::Number {
        Exponential::shift(m, largest)
    }
    #[inline(always)]
    fn weight<M: Machine>(m: M, score: M::Number) -> M::Number {
        Exponential::weight(m, score)
    }
    #[inline(always)]
    fn slope<M: Machine>(m: M, weight: M::Number) -> M::Number {
        Exponential::slope(m, weight)
    }
}

/// The score itself.
pub struct Identity;

impl LaneKernel for Identity {
    const BY_COLUMN: bool = false;
    #[inline(always)]
    fn weight<M: Machine>(_: M, score: M::Number) -> M::Number {
        score
    }
    #[inline(always)]
    fn slope<M: Machine>(m: M, _: M::Number) -> M::Number {
        m.splat(M::Element::of(1.0))
    }
}

/// max(s, 0): the temperature cancels in the division by the sum.
pub struct Rectifier;

impl LaneKernel for Rectifier {
    #[inline(always)]
    fn weight<M: Machine>(m: M, score: M::Number) -> M::Number {
        m.max(score, m.splat(M::Element::default()))
    }
    /// 0 at the kink, as autodiff frameworks have it.
    #[inline(always)]
    fn slope<M: Machine>(m: M, weight: M::Number) -> M::Number {
        m.positive(weight)
    }
    /// A column without a positive score stays 0.
    #[inline(always)]
    fn share<M: Machine>(m: M, total: M::Number, _: usize) -> M::Number {
        let some = m.positive(total);
        some * m.recip(total + (m.splat(M::Element::of(1.0)) - some))
    }
}

/// exp(s) below 0, s + 1 above.
pub struct EluPlusOne;

impl LaneKernel for EluPlusOne {
    /// Where no score is positive every weight is an exponential, and the largest may be brought to 1.
    #[inline(always)]
    fn shift<M: Machine>(m: M, largest: M::Number) -> M::Number {
        m.min(largest, m.splat(M::Element::default()))
    }
    #[inline(always)]
    fn weight<M: Machine>(m: M, score: M::Number) -> M::Number {
        let zero = m.splat(M::Element::default());
        m.exp(m.min(score, zero)) + m.max(score, zero)
    }
    #[inline(always)]
    fn slope<M: Machine>(m: M, weight: M::Number) -> M::Number {
        m.min(weight, m.splat(M::Element::of(1.0)))
    }
}

/// The [`LaneKernel`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    Softmax,
    Linear,
    Relu,
    Elu1,
    Rbf,
}

/// `by_kernel!(kernel, K => code)`: the code with a [`BuiltIn`] as the type `K`.
macro_rules! by_kernel {
    ($kernel:expr, $K:ident => $code:expr) => {{
        use $crate::pretrain::weighing::{BuiltIn, EluPlusOne, Exponential, Gaussian, Identity, Rectifier};
        match $kernel {
            BuiltIn::Softmax => {
                type $K = Exponential;
                $code
            }
            BuiltIn::Linear => {
                type $K = Identity;
                $code
            }
            BuiltIn::Relu => {
                type $K = Rectifier;
                $code
            }
            BuiltIn::Elu1 => {
                type $K = EluPlusOne;
                $code
            }
            BuiltIn::Rbf => {
                type $K = Gaussian;
                $code
            }
        }
    }};
}
pub(super) use by_kernel;

/// The kernel of a pass.
#[derive(Clone, Debug)]
pub enum Weighing {
    BuiltIn(BuiltIn),
    /// A kernel of one's own, of scores as they are.
    Own(Arc<dyn Kernel>),
}

/// Why a kernel cannot be trained.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelNotTrainable {
    /// It must look at something that moves with A.
    #[error("kernel: looks at {0:?}, expected InnerProduct or SquaredDistance")]
    Similarity(Similarity),
    /// It must say how weights move with scores.
    #[error("kernel: has no slope, expected Kernel::slope to give a derivative")]
    NoSlope,
}

impl BuiltIn {
    /// Whether weights are divided by their sum.
    #[inline(always)]
    pub fn by_column(self) -> bool {
        by_kernel!(self, K => K::BY_COLUMN)
    }

    /// Whether scores are distances.
    #[inline(always)]
    pub fn sees_distances(self) -> bool {
        by_kernel!(self, K => K::DISTANCE)
    }

    /// From the totals of columns to their shares.
    #[inline(always)]
    pub fn share<M: Machine>(self, m: M, num_sources: usize, totals: &mut [M::Cell]) {
        by_kernel!(self, K => share_all::<M, K>(m, num_sources, totals));
    }
}

impl Weighing {
    /// A built-in kernel; `None` for those that cannot be trained.
    pub fn named(name: KernelName) -> Option<Self> {
        Some(Self::BuiltIn(match name {
            KernelName::Softmax => BuiltIn::Softmax,
            KernelName::Linear => BuiltIn::Linear,
            KernelName::Relu => BuiltIn::Relu,
            KernelName::Elu1 => BuiltIn::Elu1,
            KernelName::Rbf => BuiltIn::Rbf,
            KernelName::Tabular => return None,
        }))
    }

    /// A kernel of one's own.
    pub fn own(kernel: Arc<dyn Kernel>) -> Result<Self, KernelNotTrainable> {
        if kernel.similarity() == Similarity::SameState {
            return Err(KernelNotTrainable::Similarity(kernel.similarity()));
        }
        // Asked at a score of either sign: a kernel that cannot say leaves the trait's default, None everywhere.
        let scores = [0.5, -0.5];
        let mut weights = scores;
        kernel.weigh(&mut weights);
        if scores.iter().zip(weights).any(|(&score, weight)| kernel.slope(score, weight).is_none()) {
            return Err(KernelNotTrainable::NoSlope);
        }
        Ok(Self::Own(kernel))
    }

    /// Whether weights are divided by their sum.
    #[inline(always)]
    pub fn by_column(&self) -> bool {
        match self {
            Self::BuiltIn(kernel) => kernel.by_column(),
            Self::Own(kernel) => kernel.normalization() == Normalization::ByColumn,
        }
    }

    /// Whether scores are distances.
    #[inline(always)]
    pub fn sees_distances(&self) -> bool {
        match self {
            Self::BuiltIn(kernel) => kernel.sees_distances(),
            Self::Own(kernel) => kernel.similarity() == Similarity::SquaredDistance,
        }
    }

    /// Whether slopes are the weights themselves and need no room of their own.
    #[inline(always)]
    pub fn slope_is_weight(&self) -> bool {
        matches!(self, Self::BuiltIn(BuiltIn::Softmax | BuiltIn::Rbf))
    }

    /// Replaces a column of scores by its normalised weights, and writes what their derivatives by the scores are multiples
    /// of, where there is room: slope over divisor.
    #[inline(always)]
    pub fn weigh<M: Machine>(&self, m: M, column: &mut [M::Cell], slopes: &mut [M::Cell]) {
        match self {
            Self::BuiltIn(BuiltIn::Softmax) => weigh_on_lanes::<M, Exponential>(m, column, slopes),
            // Cheap enough to be called, and compiled once for programs of all sizes.
            Self::BuiltIn(kernel) => {
                apart!(m, by_kernel!(kernel, K => weigh_on_lanes::<M, K>(m, column, slopes)));
            }
            Self::Own(kernel) => weigh_by_lane(m, &**kernel, column, slopes),
        }
    }
}

#[inline(always)]
fn share_all<M: Machine, K: LaneKernel>(m: M, num_sources: usize, totals: &mut [M::Cell]) {
    for total in totals {
        m.put(K::share(m, m.get(total), num_sources), total);
    }
}

#[inline(always)]
fn weigh_on_lanes<M: Machine, K: LaneKernel>(m: M, column: &mut [M::Cell], slopes: &mut [M::Cell]) {
    let mut largest = m.get(&column[0]);
    for cell in &column[1..] {
        largest = m.max(largest, m.get(cell));
    }
    let shift = K::shift(m, largest);
    let mut total = m.splat(M::Element::default());
    for cell in column.iter_mut() {
        let weight = K::weight(m, m.get(cell) - shift);
        total = total + weight;
        m.put(weight, cell);
    }
    let share = K::share(m, total, column.len());
    for (cell, slope) in column.iter().zip(slopes) {
        m.put(K::slope(m, m.get(cell)) * share, slope);
    }
    for cell in column.iter_mut() {
        m.put(m.get(cell) * share, cell);
    }
}

fn weigh_by_lane<M: Machine>(m: M, kernel: &dyn Kernel, column: &mut [M::Cell], slopes: &mut [M::Cell]) {
    // What the kernel looks at, as a multiple of the score.
    let scale = if kernel.similarity() == Similarity::SquaredDistance { -2.0 } else { 1.0 };
    let mut lanes = [M::Element::default(); WIDTH];
    let mut table = vec![[[M::Element::default(); WIDTH]; 2]; column.len()];
    for lane in 0..M::LANES {
        let scores: Vec<f64> = column
            .iter()
            .map(|cell| {
                m.store(m.get(cell), &mut lanes);
                scale * lanes[lane].get()
            })
            .collect();
        let mut weights = scores.clone();
        kernel.weigh(&mut weights);
        let divisor = match kernel.normalization() {
            Normalization::ByColumn => weights.iter().sum(),
            Normalization::ByCount => weights.len() as f64,
        };
        let share = if divisor == 0.0 { 0.0 } else { 1.0 / divisor };
        for ((row, score), weight) in table.iter_mut().zip(scores).zip(weights) {
            // Where a kernel has no derivative the gradient is not a number, and training says so.
            let slope = scale * kernel.slope(score, weight).unwrap_or(f64::NAN);
            (row[0][lane], row[1][lane]) = (M::Element::of(weight * share), M::Element::of(slope * share));
        }
    }
    for ((cell, slope), row) in column.iter_mut().zip(slopes).zip(&table) {
        m.put(m.load(&row[0]), cell);
        m.put(m.load(&row[1]), slope);
    }
}
