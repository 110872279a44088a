//! Scores of distances, as scores of products.
//!
//! With the symmetric part S = ½(A + Aᵀ) of a score matrix
//!
//! -½(z_i - z_j)ᵀA(z_i - z_j) = z_iᵀS z_j + o_i + o_j, where o_i = -½z_iᵀS z_i:
//!
//! a product, a term of the source and one of the column. Passes are handed S in A's place and add the two terms; here
//! parameters become what they are handed, and a gradient by S becomes one by A. Where weights are exponentials that are
//! divided by their sum the column's term cancels, and nothing comes back through it.

use super::lanes::Element;
use super::params::ParamsView;
use super::shape::Shape;

/// The same parameters with S in the place of every A.
pub(super) fn with_symmetric_scores<E: Element>(params: ParamsView<'_, E>) -> Vec<E> {
    let (shape, mut data) = (params.shape(), params.data().to_vec());
    for (pair, i, j) in entries(shape) {
        let mean = 0.5 * (params.score(pair, i, j).get() + params.score(pair, j, i).get());
        data[shape.score_index(pair, i, j)] = E::of(mean);
    }
    data
}

/// Adds a derivative by V and S to one by V and A: an entry of A moves two of S by half as much.
pub(super) fn add_by_scores(shape: &Shape, by_symmetric: &[f64], gradient: &mut [f64]) {
    let mut by_scores = by_symmetric.to_vec();
    for (pair, i, j) in entries(shape) {
        let both = [(i, j), (j, i)].map(|(i, j)| by_symmetric[shape.score_index(pair, i, j)]);
        by_scores[shape.score_index(pair, i, j)] = 0.5 * (both[0] + both[1]);
    }
    gradient.iter_mut().zip(by_scores).for_each(|(sum, x)| *sum += x);
}

/// Places in the score matrices of all pairs.
fn entries(shape: &Shape) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
    let (pairs, rows) = (shape.num_pairs(), shape.num_rows());
    (0..pairs * rows * rows).map(move |k| (k / (rows * rows), k / rows % rows, k % rows))
}
