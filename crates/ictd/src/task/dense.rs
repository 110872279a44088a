//! Random dense reward processes.

use super::boyan::normalised;
use super::family::{ANY_FEATURES, Generator, MAX_STATES};
use super::{Family, FiniteTask, TaskError, assemble};
use crate::matrix::Matrix;
use crate::random::Stream;

pub(super) const FAMILY: Generator = Generator {
    name: "dense",
    title: "dense",
    usual: (10, 4),
    states: (1..=MAX_STATES, "1 to 5000"),
    features: ANY_FEATURES,
    draw: generate,
};

fn generate(family: &Family, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
    let m = family.num_states;
    let (weight, features) = family.weight_and_features(stream);
    let initial = normalised(stream.uniform_vec(m, 0.0, 1.0));
    let rows = (0..m).flat_map(|_| normalised(stream.uniform_vec(m, 0.0, 1.0))).collect();
    assemble(Matrix::from_vec(m, m, rows), features, initial, weight, family.gamma, stream)
}
