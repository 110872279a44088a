//! The prediction of linear attention, read off a window's weights: -wᵀφ_q.

use super::program::{Feedback, Job, put_windows};
use crate::pretrain::lanes::Machine;

/// Predictions of the windows in lanes from `t` on, whose weights are `w`.
#[inline(always)]
pub fn predict<M: Machine>(m: M, job: Job<'_, M::Element>, t: usize, w: &[M::Cell], out: &mut [M::Element]) {
    let mut value = m.splat(M::Element::default());
    for (a, cell) in w.iter().enumerate() {
        value = value - m.get(cell) * m.load(job.prompts.query(a, t));
    }
    put_windows(m, value, &mut out[t..]);
}

/// The derivatives of [`predict`] by the weights and by the queries.
#[inline(always)]
pub fn predict_back<M: Machine>(
    m: M,
    job: Job<'_, M::Element>,
    t: usize,
    w: &[M::Cell],
    feedback: &mut Feedback<'_, M::Element>,
    w_bar: &mut [M::Cell],
) {
    let bar = feedback.of_windows(m, t);
    for (a, (cell, cell_bar)) in w.iter().zip(w_bar).enumerate() {
        m.put(-(bar * m.load(job.prompts.query(a, t))), cell_bar);
        feedback.put_query(m, a, t, -(bar * m.get(cell)));
    }
}
