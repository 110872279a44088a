//! TD by chain of thought.

use super::form::{Factors, Form, Step};
use super::sarsa::Sarsa;
use crate::context::Context;
use crate::matrix::Matrix;

/// TD by chain of thought (our reading of the abstract of arXiv 2605.07123).
///
/// The prompt is that of [`Sarsa`], and so are V and P. Instead of overwriting its last column (0, w̃) a step appends
/// (0, w̃) + (1/n)(V H)(Hᵀ P (0, w̃)) as a further column, as a model that writes token after token does: one layer is run again and again, and
/// H_l has n + 1 + l columns. Earlier weights are no sources: V and P read the rows of x, which are 0 there.
///
/// Its weights are those of [`Sarsa`].
#[derive(Clone, Debug)]
pub(super) struct ChainOfThought(pub Sarsa);

impl Form for ChainOfThought {
    fn row_names(&self, d: usize) -> Vec<String> {
        self.0.row_names(d)
    }

    fn prompt(&self, context: &Context) -> Matrix {
        self.0.prompt(context)
    }

    fn layer(&self, h: &Matrix, step: Step<'_>) -> Matrix {
        let last = h.num_cols() - 1;
        let thought = Matrix::from_fn(h.num_rows(), 1, |i, _| h[(i, last)]);
        let update = Sarsa::update(h, &thought, step);
        Matrix::from_fn(h.num_rows(), last + 2, |i, j| {
            if j <= last { h[(i, j)] } else { thought[(i, 0)] + update[(i, 0)] }
        })
    }

    fn value(&self, h: &Matrix, query: &[f64]) -> f64 {
        self.0.value(h, query)
    }

    fn factors(&self, context: &Context) -> Factors {
        self.0.factors(context)
    }
}
