//! Krylov subspaces: eigenvalues of a matrix and systems with it, from its products with vectors alone.
//!
//! # Numerics
//! Vectors are orthogonalised twice, by modified Gram-Schmidt, one after another: sums have one order, whatever the number of threads.

mod arnoldi;
mod gmres;

pub(crate) use arnoldi::{Arnoldi, Ritz};
pub(crate) use gmres::{Gmres, Solution};
