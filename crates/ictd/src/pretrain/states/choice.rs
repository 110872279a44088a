//! When training goes by state.

use super::super::config::PretrainConfig;
use super::super::shape::Mask;
use crate::kernel::KernelName;
use crate::task::{Kind, TaskSource as _};

/// Sources from which on it pays on as many states (`cargo xtask bench pretrain long`). Shorter contexts keep the results that they
/// have always had, to the last bit.
const LONG: usize = 64;

impl PretrainConfig {
    /// The most states that the pass by state takes, as many as there are sources; with the linear kernel as many as have no
    /// more weights than a layer has products by position, 2n·d. `None` where contexts are short or their columns do not
    /// collapse.
    ///
    /// - Masks that let scores see rewards or memories: two columns of a state score differently.
    /// - Diagonal mixing: a column's own message depends on the state that follows it, and with every layer on one more.
    pub(in super::super) fn most_states(&self) -> Option<usize> {
        let collapses =
            matches!(self.mask, Mask::Full | Mask::Looped) && self.rho.start == 0.0 && self.rho.end == 0.0;
        let most = match self.kernel {
            KernelName::Linear => (2 * self.context_len * self.task.feature_dim()).isqrt(),
            _ => self.context_len,
        };
        (collapses && self.context_len >= LONG).then_some(most.min(self.context_len))
    }

    /// The states that a task of the configuration can have.
    pub(in super::super) fn states_of_a_task(&self) -> usize {
        match self.task.kind {
            Kind::Cartpole => self.task.num_states.saturating_pow(4),
            _ => self.task.num_states,
        }
    }
}
