//! Attention kernels: how much source i counts for column j.
//!
//! A kernel turns a column of similarities into weights by implementing [`Kernel`], three short
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

mod attention;
mod elu1;
mod group_weights;
mod linear;
mod named;
mod rbf;
mod relu;
mod softmax;
mod tabular;
mod weights;

pub use attention::{Attention, AttentionError};
pub use elu1::Elu1;
pub use linear::Linear;
pub use named::{KernelError, KernelName, Temperature};
pub use rbf::Rbf;
pub use relu::Relu;
pub use softmax::Softmax;
pub use tabular::Tabular;
pub use weights::KernelWeights;

pub(crate) use group_weights::{GroupWeights, Scores, add_block_gradient};

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
