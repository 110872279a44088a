//! Where tasks come from, and what sampling needs to know of one.

use std::fmt::Debug;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{FiniteTask, TaskError};
use crate::random::Stream;

/// What tasks are drawn from: a [`Family`](super::Family), a single [`FiniteTask`] (which draws itself), or a
/// source of one's own.
///
/// ```
/// use ictd::random::{Purpose, Stream};
/// use ictd::task::{Family, Kind, TaskSource};
/// let task = Family::of(Kind::Boyan).draw(&mut Stream::new(0, Purpose::Task, 0))?;
/// assert_eq!(task.mrp().num_states(), 64);
/// # Ok::<(), ictd::task::TaskError>(())
/// ```
pub trait TaskSource: Debug + Send + Sync {
    /// The source in words, for tables and captions.
    fn describe(&self) -> String;

    /// Number of states m, the largest where tasks differ in it.
    fn num_states(&self) -> usize;

    /// Feature dimension d of every task.
    fn feature_dim(&self) -> usize;

    /// Discount γ of every task.
    fn gamma(&self) -> f64;

    /// Draws a task with everything that is known exactly about it. A source whose tasks can only be sampled
    /// refuses with [`TaskError::Unknown`].
    fn draw(&self, stream: &mut Stream) -> Result<FiniteTask, TaskError>;

    /// Draws a task to be sampled from, as training does: the same numbers of the stream make the same task
    /// as in [`draw`](Self::draw).
    fn draw_chain(&self, stream: &mut Stream) -> Result<Box<dyn Chain>, TaskError> {
        Ok(Box::new(self.draw(stream)?))
    }

    /// Whether values and stationary laws are known, so that [`draw`](Self::draw) succeeds.
    fn is_exact(&self) -> bool {
        true
    }
}

/// A Markov reward process that can be sampled. States are numbered: a chain with finitely many states uses
/// their indices, any other one numbers states as it meets them and lets its table grow.
///
/// Trajectories and returns are sampled whole behind one call, so that a step costs no dynamic dispatch.
pub trait Chain: Debug + Send {
    /// Features, rewards and, if known, values of the states numbered so far.
    fn table(&self) -> StateTable<'_>;

    /// A first state.
    fn start(&mut self, stream: &mut Stream) -> usize;

    /// A successor of `state`.
    fn next(&mut self, state: usize, stream: &mut Stream) -> usize;

    /// The stationary law over all states, if it is known.
    fn stationary(&self) -> Option<Vec<f64>>;

    /// Appends a trajectory of `num_transitions` transitions to `states`.
    fn sample_states(&mut self, num_transitions: usize, stream: &mut Stream, states: &mut Vec<usize>) {
        states.reserve(num_transitions + 1);
        let mut state = self.start(stream);
        states.push(state);
        for _ in 0..num_transitions {
            state = self.next(state, stream);
            states.push(state);
        }
    }

    /// A discounted return from `state`, followed until rewards count for `tolerance` at most.
    fn sample_return(&mut self, state: usize, gamma: f64, tolerance: f64, stream: &mut Stream) -> f64 {
        let (mut state, mut discount, mut total) = (state, 1.0, 0.0);
        while discount > tolerance {
            total += discount * self.table().rewards[state];
            state = self.next(state, stream);
            discount *= gamma;
        }
        total
    }
}

/// What a [`Chain`] knows of its states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateTable<'a> {
    /// State by state: d features.
    pub features: &'a [f64],
    /// The reward paid on leaving each state.
    pub rewards: &'a [f64],
    /// The exact values; `None` where they are not known.
    pub values: Option<&'a [f64]>,
}

/// Tasks that no [`Family`](super::Family) draws: those of a file, or of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnTasks {
    /// The file, or any name.
    pub name: String,
    /// SHA-256 of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The tasks; absent after reading a configuration until somebody reads the file.
    #[serde(skip)]
    pub source: Option<Arc<dyn TaskSource>>,
}

impl PartialEq for OwnTasks {
    /// The same name and content; sources themselves cannot be compared.
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.sha256) == (&other.name, &other.sha256)
    }
}
