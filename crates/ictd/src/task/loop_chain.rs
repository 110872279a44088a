//! Random directed graphs around a loop.

use super::boyan::normalised;
use super::family::{ANY_FEATURES, Generator, MAX_STATES};
use super::{Family, FiniteTask, MrpError, TaskError, TransitionError, TransitionKernel, assemble};
use crate::matrix::Matrix;
use crate::random::Stream;

/// Graphs drawn before giving up: with threshold 0.9 and 5 states one in five draws is periodic.
const MAX_DRAWS: usize = 10_000;

pub(super) const FAMILY: Generator = Generator {
    name: "loop",
    title: "Loop",
    usual: (10, 5),
    states: (3..=MAX_STATES, "3 to 5000"),
    features: ANY_FEATURES,
    draw: generate,
};

/// Loops of random size and density.
pub(super) const FIGURE_1: Generator = Generator {
    name: "figure-1",
    title: "Figure 1’s Loop",
    usual: (15, 5),
    states: (5..=MAX_STATES, "5 to 5000"),
    draw: |family, stream| {
        let num_states = 5 + stream.below(family.num_states as u32 - 4) as usize;
        let threshold = stream.uniform_in(0.1, 0.9);
        generate(&Family { num_states, threshold, ..family.clone() }, stream)
    },
    ..FAMILY
};

fn generate(family: &Family, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
    let (m, d) = (family.num_states, family.feature_dim);
    if !(0.0..1.0).contains(&family.threshold) {
        let found = family.threshold.to_string();
        return Err(TaskError::Size { field: "threshold", expected: "0 <= threshold < 1", found });
    }
    let weight = family.representable.then(|| (0..d).map(|_| stream.normal()).collect());
    let features = family.features(stream);
    let p = draw_graph(m, family.threshold, stream)?;
    let initial = normalised(stream.uniform_vec(m, 0.01, 0.99));
    assemble(p, features, initial, weight, family.gamma, stream)
}

fn draw_graph(m: usize, threshold: f64, stream: &mut Stream) -> Result<Matrix, TaskError> {
    for _ in 0..MAX_DRAWS {
        let mut p = Matrix::zeros(m, m);
        for i in 0..m {
            for j in 0..m {
                // Drawn for every pair, so that the stream's use does not depend on the outcome.
                let (keep, weight) = (stream.uniform() > threshold, stream.uniform_in(0.01, 0.99));
                if j == (i + 1) % m || (keep && i != j) {
                    p[(i, j)] = weight;
                }
            }
            let row = normalised(p.row(i).to_vec());
            p.row_mut(i).copy_from_slice(&row);
        }
        match TransitionKernel::new(p) {
            Ok(kernel) => return Ok(kernel.matrix().clone()),
            Err(TransitionError::Periodic { .. }) => {}
            Err(other) => return Err(MrpError::from(other).into()),
        }
    }
    Err(TaskError::NoErgodicDraw { attempts: MAX_DRAWS, num_states: m, threshold })
}
