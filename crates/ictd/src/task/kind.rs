//! The families of tasks by name: one list of names, sizes and limits for every command.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::TaskError;
use super::finite::check_size;

/// Largest number of states of a generated task: its transition matrix has 200 MB there.
const MAX_STATES: usize = 5000;
/// Largest feature dimension of a generated task.
const MAX_FEATURES: usize = 10_000;

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
    pub const NAMED: [(&'static str, Self); 6] = [
        ("boyan", Self::Boyan),
        ("loop", Self::Loop),
        ("figure-1", Self::Figure1),
        ("dense", Self::Dense),
        ("coin", Self::Coin),
        ("cartpole", Self::Cartpole),
    ];

    /// The names, separated by commas.
    pub fn names() -> String {
        Self::NAMED.map(|(name, _)| name).join(", ")
    }

    /// Refuses a number of states or of features that the family cannot have.
    pub(super) fn check_sizes(self, num_states: usize, feature_dim: usize) -> Result<(), TaskError> {
        let (states, expected) = match self {
            Self::Boyan | Self::Loop => (3..=MAX_STATES, "3 to 5000"),
            Self::Figure1 => (5..=MAX_STATES, "5 to 5000"),
            Self::Dense | Self::Coin => (1..=MAX_STATES, "1 to 5000"),
            // A million bins in all.
            Self::Cartpole => (1..=32, "1 to 32 bins per dimension"),
            Self::Own => (1..=usize::MAX, "at least 1"),
        };
        check_size("states", num_states, states, expected)?;
        match self {
            Self::Cartpole => check_size("features", feature_dim, 1..=100, "1 to 100"),
            _ => check_size("features", feature_dim, 1..=MAX_FEATURES, "1 to 10000"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::NAMED.iter().find(|(_, kind)| kind == self);
        f.write_str(found.map_or("own", |(name, _)| name))
    }
}

impl FromStr for Kind {
    type Err = TaskError;

    fn from_str(text: &str) -> Result<Self, TaskError> {
        let found = Self::NAMED.iter().find(|(name, _)| *name == text);
        found.map(|(_, kind)| *kind).ok_or_else(|| TaskError::Name(text.to_owned()))
    }
}
