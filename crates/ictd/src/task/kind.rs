//! The families of tasks by name: one list of names, sizes and limits for every command.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::finite::check_size;
use super::{Family, FiniteTask, TaskError, boyan, cartpole, coin, dense, loop_chain};
use crate::random::Stream;

/// Largest number of states of a generated task: its transition matrix has 200 MB there.
pub(super) const MAX_STATES: usize = 5000;
/// Feature dimensions of a generated task.
pub(super) const ANY_FEATURES: (RangeInclusive<usize>, &str) = (1..=10_000, "1 to 10000");

/// What a family's file says of it, and all that is said of it anywhere.
pub(super) struct Generator {
    /// As typed.
    pub name: &'static str,
    /// In tables and captions.
    pub title: &'static str,
    /// Usual numbers of states and of features.
    pub usual: (usize, usize),
    /// Numbers of states it can have, and the same in words.
    pub states: (RangeInclusive<usize>, &'static str),
    /// Feature dimensions it can have, and the same in words.
    pub features: (RangeInclusive<usize>, &'static str),
    /// Draws a task whose sizes are within the ranges.
    pub draw: fn(&Family, &mut Stream) -> Result<FiniteTask, TaskError>,
}

const OWN: Generator = Generator {
    name: "own",
    title: "own",
    usual: (1, 1),
    states: (1..=usize::MAX, "at least 1"),
    features: ANY_FEATURES,
    draw: |_, _| Err(TaskError::Unknown("the source of tasks of one's own")),
};

/// How tasks are drawn. Unless said otherwise features are x(s) ~ U(-1, 1)^d, and rewards are representable
/// (v(s) = ⟨w, x(s)⟩ with w ~ U(-1, 1)^d and r = (I - γP) v) or free (r ~ U(-1, 1)^m). States are 0, …, m - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Randomised Boyan chain (paper, Algorithm 2, and its commented-out variant): the paper's tasks. It moves one or
    /// two states ahead and restarts at random from its end; m ≥ 3.
    /// # Transitions
    /// From i ≤ m - 3: to i + 1 with probability ε_i, to i + 2 with 1 - ε_i, ε_i ~ U(0, 1). From m - 2 to
    /// m - 1. From m - 1 to every state with probabilities z / Σz, z ~ U(0, 1)^m.
    /// # Start
    /// p₀ ∝ U(0, 1)^m.
    /// # Stationary law
    /// Positive everywhere; aperiodic because m - 1 has a self-loop.
    /// # References
    /// J. Boyan, "Least-squares temporal difference learning", 1999; the paper's Algorithm 2, adapted
    /// there from arXiv 2405.13861.
    /// # Version history
    /// 1: draws in the order weight, features, p₀, ε, z (then r when not representable).
    Boyan,
    /// Random graph around a directed loop (the predecessor's "Loop", used for its Figure 1): a loop through all states
    /// with random shortcuts; m ≥ 3, threshold in [0, 1).
    /// # Transitions
    /// Edge i → i + 1 (mod m) always, i → i never, every other edge with probability 1 - threshold;
    /// weights U(0.01, 0.99) on the edges, rows normalised. Draws without a shortcut that breaks the
    /// loop's period are repeated: the paper assumes ergodic chains, the predecessor does not check.
    /// # Rewards
    /// Representable with the weight w ~ N(0, I), as in the predecessor, or free.
    /// # Start
    /// p₀ ∝ U(0.01, 0.99)^m.
    /// # Stationary law
    /// Positive everywhere because the loop visits every state.
    /// # References
    /// arXiv 2405.13861 (InContextTD), demonstration of in-context TD.
    /// # Version history
    /// 1: draws in the order weight, features, graph and its weights, p₀ (then r when not representable).
    Loop,
    /// Loops of random size and density, Figure 1's tasks: m uniform in 5..=`num_states`, threshold ~ U(0.1, 0.9).
    #[serde(rename = "figure-1")]
    Figure1,
    /// Every state reaches every state in one step: the simplest ergodic family, no structure, fast mixing; m ≥ 1.
    /// # Transitions
    /// Rows ∝ U(0, 1)^m.
    /// # Start
    /// p₀ ∝ U(0, 1)^m.
    /// # Stationary law
    /// Positive everywhere, close to uniform.
    /// # Version history
    /// 1: draws in the order weight, features, p₀, rows of P (then r when not representable).
    Dense,
    /// States drawn independently and uniformly: every step forgets the last. The chain that mixes fastest, on which the
    /// paper's constants are smallest; m ≥ 1. Transitions, start and stationary law are uniform, rewards free.
    /// # Version history
    /// 1: draws in the order features, r.
    Coin,
    /// Randomised cart-pole ([`CartPole`](super::CartPole)) with `num_states` bins per dimension; it can be sampled, its
    /// values are not known.
    Cartpole,
    /// No family: tasks that somebody else draws (see [`OwnTasks`](super::OwnTasks)); the family says their sizes.
    Own,
}

impl Kind {
    /// The families by name, in the order in which they are listed to a user.
    pub const NAMED: [Self; 6] =
        [Self::Boyan, Self::Loop, Self::Figure1, Self::Dense, Self::Coin, Self::Cartpole];

    pub(super) const fn generator(self) -> &'static Generator {
        match self {
            Self::Boyan => &boyan::FAMILY,
            Self::Loop => &loop_chain::FAMILY,
            Self::Figure1 => &loop_chain::FIGURE_1,
            Self::Dense => &dense::FAMILY,
            Self::Coin => &coin::FAMILY,
            Self::Cartpole => &cartpole::FAMILY,
            Self::Own => &OWN,
        }
    }

    /// The name as typed and printed.
    pub const fn as_str(self) -> &'static str {
        self.generator().name
    }

    /// The names, separated by commas.
    pub fn names() -> String {
        Self::NAMED.map(Self::as_str).join(", ")
    }

    /// Refuses a number of states or of features that the family cannot have.
    pub(super) fn check_sizes(self, num_states: usize, feature_dim: usize) -> Result<(), TaskError> {
        let generator = self.generator();
        check_size("states", num_states, &generator.states)?;
        check_size("features", feature_dim, &generator.features)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = TaskError;

    fn from_str(text: &str) -> Result<Self, TaskError> {
        let found = Self::NAMED.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| TaskError::Name(text.to_owned()))
    }
}
