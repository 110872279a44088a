//! The vector instructions that training runs on.

use std::fmt;
use std::str::FromStr;

use fearless_simd::Level;

/// Which vector instructions single-precision training uses.
///
/// Levels with fused multiply-add (avx2, avx512, and 64-bit ARM's) give the same bits, and so do those without it
/// (scalar, sse2); the two groups differ in the last place of every operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimdLevel {
    /// The best that the CPU has.
    #[default]
    Best,
    /// None (programs that were built with the feature `scalar`).
    Scalar,
    /// SSE2 (every x86-64).
    Sse2,
    /// AVX2 and FMA (x86-64).
    Avx2,
    /// AVX-512 (x86-64, Ice Lake or later).
    Avx512,
}

/// The name must be that of a level.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("'{0}' is no SIMD level, expected one of scalar, sse2, avx2, avx512")]
pub struct SimdLevelError(String);

impl SimdLevel {
    /// The levels with a name, weakest first.
    pub const NAMED: [SimdLevel; 4] = [Self::Scalar, Self::Sse2, Self::Avx2, Self::Avx512];

    /// The name as typed and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether this CPU has it.
    pub fn is_available(self) -> bool {
        self.find().is_some()
    }

    /// Whether multiplication and addition are rounded once; `None` where it depends on the CPU.
    pub fn fuses_multiply_add(self) -> Option<bool> {
        match self {
            Self::Best => None,
            Self::Scalar | Self::Sse2 => Some(false),
            Self::Avx2 | Self::Avx512 => Some(true),
        }
    }

    /// The level that is meant where the best is asked for; itself where that has no name.
    pub fn in_use(self) -> Self {
        // Elsewhere the only level with a name that there is, is none of the best.
        if self == Self::Best && cfg!(target_arch = "x86_64") {
            Self::NAMED.into_iter().rfind(|level| level.is_available()).unwrap_or(self)
        } else {
            self
        }
    }

    pub(crate) fn find(self) -> Option<Level> {
        match self {
            Self::Best => Some(Level::new()),
            #[cfg(feature = "scalar")]
            Self::Scalar => Some(Level::fallback()),
            #[cfg(not(feature = "scalar"))]
            Self::Scalar => None,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => Level::new().as_sse2().map(Level::Sse2),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Level::new().as_avx2().map(Level::Avx2),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => Level::new().as_avx512().map(Level::Avx512),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Sse2 | Self::Avx2 | Self::Avx512 => None,
        }
    }
}

impl fmt::Display for SimdLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for SimdLevel {
    type Err = SimdLevelError;
    fn from_str(name: &str) -> Result<Self, SimdLevelError> {
        let found = Self::NAMED.into_iter().find(|level| level.as_str() == name);
        found.ok_or_else(|| SimdLevelError(name.to_owned()))
    }
}
