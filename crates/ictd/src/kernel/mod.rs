//! Attention kernels: how much source i counts for column j.
//!
//! A kernel turns a column of similarities into weights by implementing [`Kernel`], two short
//! methods; everything else (scores, masks, normalisation, diagonal mixing) is shared. The built-in
//! ones are [`Softmax`], [`Relu`], [`Elu1`], [`Rbf`], [`Linear`] and [`Tabular`].
//!
//! ```
//! use ictd::kernel::{Kernel, Similarity};
//!
//! /// Inverse-distance weights 1 / (1 + ‖x_i - x_j‖²).
//! #[derive(Debug)]
//! struct Cauchy;
//!
//! impl Kernel for Cauchy {
//!     fn similarity(&self) -> Similarity {
//!         Similarity::SquaredDistance
//!     }
//!     fn weigh(&self, column: &mut [f64]) {
//!         column.iter_mut().for_each(|d2| *d2 = 1.0 / (1.0 + *d2));
//!     }
//! }
//! ```

mod certainty;
mod cost;
mod effort;
mod elu1;
mod gaussian;
mod linear;
mod products;
mod rbf;
mod relu;
mod softmax;
mod tabular;
mod weights;

pub use effort::{Effort, Precision, Route};
pub use elu1::Elu1;
pub use linear::Linear;
pub use products::weights_memory;
pub use rbf::Rbf;
pub use relu::Relu;
pub use softmax::Softmax;
pub use tabular::Tabular;
pub use weights::KernelWeights;

pub(crate) use certainty::Certainty;
pub(crate) use gaussian::{Embedding, Pivots, TooMany};
pub(crate) use products::{GroupWeights, ProductError};
pub(crate) use weights::{Scores, add_block_gradient};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a kernel looks at for a source i and a column j.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Similarity {
    /// The score G = z_iᵀ A z_j; x_iᵀ B x_j when A has only a feature block B.
    InnerProduct,
    /// (z_i - z_j)ᵀ A (z_i - z_j); ‖x_i - x_j‖² at theta_*.
    SquaredDistance,
    /// 1 when both have the same features, else 0.
    SameState,
}

impl Similarity {
    /// The similarity of two feature vectors at theta_*.
    pub(crate) fn of(self, x: &[f64], y: &[f64]) -> f64 {
        let pairs = x.iter().zip(y);
        match self {
            Self::InnerProduct => pairs.map(|(a, b)| a * b).sum(),
            Self::SquaredDistance => pairs.map(|(a, b)| (a - b) * (a - b)).sum(),
            Self::SameState => f64::from(u8::from(x == y)),
        }
    }
}

/// What the weights of a column are divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalization {
    /// By their sum; a column whose weights are all 0 stays 0.
    ByColumn,
    /// By the number of sources n.
    ByCount,
}

/// How weights move with similarities.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Sensitivity {
    /// The logarithm of a weight moves by at most this per unit of similarity.
    Logarithm(f64),
    /// A weight moves by at most this per unit of similarity, before normalising.
    Weight(f64),
}

/// An attention kernel.
pub trait Kernel: std::fmt::Debug + Send + Sync {
    /// What the kernel looks at.
    fn similarity(&self) -> Similarity;

    /// What its weights are divided by.
    fn normalization(&self) -> Normalization {
        Normalization::ByColumn
    }

    /// Replaces the similarities of all sources to one column by unnormalised weights ≥ 0.
    ///
    /// With [`Normalization::ByColumn`] a factor common to the column is free; use it to keep
    /// exponentials in range, and leave at least one weight positive when mathematics says so.
    fn weigh(&self, column: &mut [f64]);

    /// `Some(c)` when the weight is c times the inner product: attention then factors through d
    /// numbers and a layer costs O(n·d) instead of O(n²).
    fn linear_scale(&self) -> Option<f64> {
        None
    }

    /// `Some(c)` when the weight is exp(c·similarity): products with all weights of a long context are then computed in blocks,
    /// or through a few of its states.
    fn exponent(&self) -> Option<f64> {
        None
    }

    /// The logarithm of the unnormalised weight at a similarity, when weights are a positive definite function
    /// of the features, strictly so for distinct ones; stability can then be proved without contraction
    /// ([`theory`](crate::theory)).
    fn log_weight(&self, _similarity: f64) -> Option<f64> {
        None
    }

    /// The derivative of a source's unnormalised weight by its own similarity, given both as [`weigh`](Self::weigh)
    /// had and left them; the column's common factor counts as a constant. With it a Transformer with this kernel can
    /// be differentiated, and so trained. `None` where weights have no derivative.
    fn slope(&self, _similarity: f64, _weight: f64) -> Option<f64> {
        None
    }

    /// How weights move with similarities, which says what rounding of the scores does to values. Without it
    /// certificates take weights as they are computed.
    fn sensitivity(&self) -> Option<Sensitivity> {
        None
    }
}

/// The name of a built-in kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum KernelName {
    /// [`Softmax`], the paper's.
    #[default]
    Softmax,
    /// [`Relu`].
    Relu,
    /// [`Elu1`].
    Elu1,
    /// [`Rbf`].
    Rbf,
    /// [`Linear`].
    Linear,
    /// [`Tabular`].
    Tabular,
}

/// Why a kernel could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The name must be that of a built-in kernel.
    #[error("kernel is '{0}', expected one of softmax, relu, elu1, rbf, linear, tabular")]
    Unknown(String),
    /// The temperature must be positive and finite.
    #[error("temperature is {0:?}, expected a finite number > 0 with a finite reciprocal")]
    Temperature(f64),
}

/// A temperature τ that scores can be divided by: positive and finite, and so is its reciprocal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature(f64);

impl Temperature {
    /// Refuses a number that is no temperature.
    pub fn new(temperature: f64) -> Result<Self, KernelError> {
        let usable = temperature > 0.0 && temperature.is_finite() && temperature.recip().is_finite();
        if usable { Ok(Self(temperature)) } else { Err(KernelError::Temperature(temperature)) }
    }

    /// τ.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl KernelName {
    /// All names, in the order of the tables.
    pub const ALL: [KernelName; 6] =
        [Self::Softmax, Self::Relu, Self::Elu1, Self::Rbf, Self::Linear, Self::Tabular];

    /// The name as typed and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Softmax => "softmax",
            Self::Relu => "relu",
            Self::Elu1 => "elu1",
            Self::Rbf => "rbf",
            Self::Linear => "linear",
            Self::Tabular => "tabular",
        }
    }

    /// The kernel at a temperature.
    pub fn at(self, temperature: f64) -> Result<Arc<dyn Kernel>, KernelError> {
        // Kernels without a temperature are as strict about it, so that a mistake does not depend on the kernel.
        let temperature = Temperature::new(temperature)?;
        Ok(match self {
            Self::Softmax => Arc::new(Softmax(temperature)),
            Self::Relu => Arc::new(Relu),
            Self::Elu1 => Arc::new(Elu1(temperature)),
            Self::Rbf => Arc::new(Rbf(temperature)),
            Self::Linear => Arc::new(Linear(temperature)),
            Self::Tabular => Arc::new(Tabular),
        })
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for KernelName {
    type Err = KernelError;
    fn from_str(name: &str) -> Result<Self, KernelError> {
        Self::ALL
            .into_iter()
            .find(|k| k.as_str() == name)
            .ok_or_else(|| KernelError::Unknown(name.to_owned()))
    }
}

/// A kernel and the paper's diagonal mixing ρ: weights (1-ρ)·K + ρ·[i = j] on context columns (paper, eq:rho).
///
/// A column that is not a source has no diagonal entry and keeps only the (1-ρ) part.
#[derive(Clone, Debug)]
pub struct Attention {
    kernel: Arc<dyn Kernel>,
    diagonal_mix: f64,
}

/// Why attention weights could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum AttentionError {
    /// ρ must be in [0, 1].
    #[error("diagonal mix is {0:?}, expected 0 <= rho <= 1")]
    DiagonalMix(f64),
    /// Scores must not overflow; `column` is the first whose scores are not finite.
    #[error("features: the scores of column {column} overflow; scale the features (or A) down")]
    ScoreOverflow { column: usize },
}

impl Attention {
    /// Attention with a kernel and ρ.
    pub fn new(kernel: Arc<dyn Kernel>, diagonal_mix: f64) -> Result<Self, AttentionError> {
        // A range test, so that NaN is refused.
        if !(0.0..=1.0).contains(&diagonal_mix) {
            return Err(AttentionError::DiagonalMix(diagonal_mix));
        }
        Ok(Self { kernel, diagonal_mix })
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    /// The kernel, to be shared.
    pub(crate) fn shared_kernel(&self) -> Arc<dyn Kernel> {
        self.kernel.clone()
    }

    /// ρ.
    pub fn diagonal_mix(&self) -> f64 {
        self.diagonal_mix
    }

    /// Replaces the similarities of all sources to one column by its weights, `own` being the source that is the column itself, if any.
    ///
    /// ```
    /// use ictd::{Attention, KernelName};
    /// let attention = Attention::new(KernelName::Softmax.at(1.0)?, 0.5)?;
    /// let mut column = [0.0, 3.0_f64.ln()];
    /// attention.weigh_column(&mut column, Some(0));
    /// assert!((column[0] - 0.625).abs() < 1e-15 && (column[1] - 0.375).abs() < 1e-15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weigh_column(&self, column: &mut [f64], own: Option<usize>) {
        self.kernel.weigh(column);
        self.normalize_column(column, &vec![1.0; column.len()], column.len(), own);
    }

    /// Turns the unnormalised weights of all sources for one column into its weights, `visits[i]` being how often source
    /// i occurred and `own` the source that is the column itself, if any; returns what each was multiplied by before
    /// mixing.
    pub(crate) fn normalize_column(
        &self,
        column: &mut [f64],
        visits: &[f64],
        num_transitions: usize,
        own: Option<usize>,
    ) -> f64 {
        let mut largest = 1.0;
        let divisor = match self.kernel.normalization() {
            Normalization::ByCount => num_transitions as f64,
            Normalization::ByColumn => {
                let mut sum = crate::vector::dot(column, visits);
                if !(1e-290..f64::INFINITY).contains(&sum) && sum > 0.0 {
                    // A sum that overflows or whose reciprocal would: bring the largest weight to 1 first.
                    largest = column.iter().copied().fold(0.0, f64::max);
                    column.iter_mut().for_each(|w| *w /= largest);
                    sum = crate::vector::dot(column, visits);
                }
                sum
            }
        };
        let factor = if divisor == 0.0 { 0.0 } else { (1.0 - self.diagonal_mix) / divisor };
        column.iter_mut().for_each(|w| *w *= factor);
        if let Some(own) = own {
            column[own] += self.diagonal_mix;
        }
        factor / largest
    }

    /// What moving the divisor takes off the gradient by a weight, per visit: Σ_s b(s)·K(s), with b the gradient by
    /// weights and K the weights before mixing; 0 where the divisor is a count.
    pub(crate) fn divisor_gradient(&self, weights: &[f64], bars: &[f64], own: Option<usize>) -> f64 {
        let rho = self.diagonal_mix;
        if self.kernel.normalization() == Normalization::ByCount || rho == 1.0 {
            return 0.0;
        }
        let mixed = own.map_or(0.0, |own| rho * bars[own]);
        (crate::vector::dot(weights, bars) - mixed) / (1.0 - rho)
    }
}
