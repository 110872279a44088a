//! States drawn independently and uniformly.

use super::family::{ANY_FEATURES, Generator, MAX_STATES};
use super::{Family, FiniteTask, Mrp, TaskError};
use crate::matrix::Matrix;
use crate::random::Stream;

pub(super) const FAMILY: Generator = Generator {
    name: "coin",
    title: "coin",
    usual: (2, 2),
    states: (1..=MAX_STATES, "1 to 5000"),
    features: ANY_FEATURES,
    draw: generate,
};

fn generate(family: &Family, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
    let m = family.num_states;
    let features = family.features(stream);
    let rewards = stream.uniform_vec(m, -1.0, 1.0);
    let share = 1.0 / m as f64;
    let p = Matrix::from_fn(m, m, |_, _| share);
    FiniteTask::new(Mrp::new(p, rewards, family.gamma, vec![share; m])?, features)
}
