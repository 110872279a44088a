//! Families of random tasks by name: one list of names, sizes and limits for every command.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::finite::check_size;
use super::mrp::is_discount;
use super::{CartPole, Chain, FiniteTask, TaskError, TaskSource, boyan, cartpole, coin, dense, loop_chain};
use crate::matrix::Matrix;
use crate::random::Stream;

/// Largest number of states of a generated task: its transition matrix has 200 MB there.
pub(super) const MAX_STATES: usize = 5000;
/// Feature dimensions of a generated task.
pub(super) const ANY_FEATURES: (RangeInclusive<usize>, &str) = (1..=10_000, "1 to 10000");

/// What a family's file says of it.
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

/// Largest number of states with one feature each.
const MAX_ONE_HOT: usize = 2000;

/// What is done to the features of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FeatureMap {
    /// Nothing.
    Raw,
    /// One feature per state instead of random ones.
    OneHot,
    /// Feature vectors are divided by their length.
    UnitNorm,
    /// Cart-pole: the four coordinates of the state instead of random features of its bin.
    Coordinates,
}

/// A family of random tasks.
///
/// | key | purpose | range |
/// |---|---|---|
/// | `kind` | how tasks are drawn | boyan, loop, figure-1, dense, coin, cartpole |
/// | `states` | number of states m; figure-1: the largest; cartpole: bins per dimension | at most 5000 |
/// | `features` | feature dimension d of random features | 1 to 10000 |
/// | `gamma` | discount γ | \[0, 1) |
/// | `representable` | values linear in the features; coin and cartpole draw rewards freely anyway | |
/// | `threshold` | loop: probability of leaving out an edge | \[0, 1) |
/// | `feature_map` | what is done to the features | raw, one-hot, unit-norm, coordinates |
/// | `score_scale` | scores are multiplied by this: features are scaled by its root, A = scale·I | > 0 |
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the table above")]
pub struct Family {
    pub kind: Kind,
    #[serde(rename = "states")]
    pub num_states: usize,
    #[serde(rename = "features")]
    pub feature_dim: usize,
    pub gamma: f64,
    pub representable: bool,
    pub threshold: f64,
    pub feature_map: FeatureMap,
    pub score_scale: f64,
}

impl Family {
    /// w ~ U(-1, 1)^d where values are linear in the features, then row s: x(s) ~ U(-1, 1)^d.
    pub(super) fn weight_and_features(&self, stream: &mut Stream) -> (Option<Vec<f64>>, Matrix) {
        let weight = self.representable.then(|| stream.uniform_vec(self.feature_dim, -1.0, 1.0));
        (weight, self.features(stream))
    }

    /// Row s: x(s) ~ U(-1, 1)^d.
    pub(super) fn features(&self, stream: &mut Stream) -> Matrix {
        let (m, d) = (self.num_states, self.feature_dim);
        Matrix::from_vec(m, d, stream.uniform_vec(m * d, -1.0, 1.0))
    }

    /// A family with its usual sizes, γ = 0.9, representable values and raw features at scale 1.
    pub fn of(kind: Kind) -> Self {
        let (num_states, feature_dim) = kind.generator().usual;
        Self {
            kind,
            num_states,
            feature_dim,
            gamma: 0.9,
            representable: true,
            threshold: 0.5,
            feature_map: FeatureMap::Raw,
            score_scale: 1.0,
        }
    }

    /// The sizes of a source that is no family.
    pub fn own(source: &dyn TaskSource) -> Self {
        let (num_states, feature_dim) = (source.num_states(), source.feature_dim());
        Self { num_states, feature_dim, gamma: source.gamma(), ..Self::of(Kind::Own) }
    }

    /// The paper's tasks (Table 1) at A = I.
    pub fn paper() -> Self {
        Self { num_states: 64, feature_dim: 4, gamma: 0.9, ..Self::of(Kind::Boyan) }
    }

    /// A family on which Assumption 5.1 holds uniformly: three states, one feature each, and scores so sharp
    /// that a stationary probability of 0.002 is enough.
    pub fn certified() -> Self {
        Self {
            num_states: 3,
            feature_dim: 3,
            gamma: 0.7,
            feature_map: FeatureMap::OneHot,
            score_scale: 8.0,
            ..Self::of(Kind::Dense)
        }
    }

    /// The family on which Theorem 2's premises hold at the smallest n: two states drawn independently. Among
    /// score scales 0.45 makes C·exp(-4·C_x²) nearly largest at γ = 0.1.
    pub fn fastest() -> Self {
        Self { gamma: 0.1, feature_map: FeatureMap::OneHot, score_scale: 0.45, ..Self::of(Kind::Coin) }
    }

    /// Checks every key against its range.
    pub fn check(&self) -> Result<(), TaskError> {
        let refuse = |field, found: String, expected| Err(TaskError::Size { field, expected, found });
        self.kind.check_sizes(self.num_states, self.feature_dim)?;
        if !is_discount(self.gamma) {
            return refuse("gamma", self.gamma.to_string(), "0 <= gamma < 1");
        }
        if !(0.0..1.0).contains(&self.threshold) {
            return refuse("threshold", self.threshold.to_string(), "0 <= threshold < 1");
        }
        if !(self.score_scale > 0.0 && self.score_scale.is_finite()) {
            return refuse("score-scale", self.score_scale.to_string(), "a finite number > 0");
        }
        match (self.feature_map, self.kind) {
            (FeatureMap::OneHot, Kind::Cartpole | Kind::Own | Kind::Figure1) => {
                refuse("one-hot", format!("set for {}", self.kind), "a family with a fixed number of states")
            }
            (FeatureMap::OneHot, _) if self.num_states > MAX_ONE_HOT => {
                let expected = "at most 2000 with one-hot features";
                refuse("states", self.num_states.to_string(), expected)
            }
            (FeatureMap::Coordinates, kind) if kind != Kind::Cartpole => {
                refuse("continuous", format!("set for {kind}"), "cartpole")
            }
            (FeatureMap::Coordinates, _) if self.score_scale != 1.0 => {
                refuse("score-scale", self.score_scale.to_string(), "1 where features are coordinates")
            }
            (FeatureMap::Coordinates, _) if self.feature_dim != 4 => {
                refuse("features", self.feature_dim.to_string(), "the 4 coordinates")
            }
            _ => Ok(()),
        }
    }

    fn has_raw_features(&self) -> bool {
        self.feature_map == FeatureMap::Raw && self.score_scale == 1.0
    }
}

impl TaskSource for Family {
    fn describe(&self) -> String {
        let title = self.kind.generator().title;
        let states = match self.kind {
            Kind::Figure1 => format!("5 to {} states", self.num_states),
            Kind::Cartpole => format!("{} bins per dimension", self.num_states),
            _ => format!("{} states", self.num_states),
        };
        let features = match self.feature_map {
            FeatureMap::Raw => format!("{} features", self.feature_dim),
            FeatureMap::OneHot => "one-hot features".to_owned(),
            FeatureMap::UnitNorm => format!("{} unit-norm features", self.feature_dim),
            FeatureMap::Coordinates => "4 coordinates as features".to_owned(),
        };
        format!("{title}, {states}, {features}, γ = {}, score scale {}", self.gamma, self.score_scale)
    }

    fn num_states(&self) -> usize {
        self.num_states
    }

    fn feature_dim(&self) -> usize {
        if self.feature_map == FeatureMap::OneHot { self.num_states } else { self.feature_dim }
    }

    fn gamma(&self) -> f64 {
        self.gamma
    }

    fn draw(&self, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
        self.kind.check_sizes(self.num_states, self.feature_dim)?;
        let task = (self.kind.generator().draw)(self, stream)?;
        match self.feature_map {
            _ if self.has_raw_features() => Ok(task),
            FeatureMap::OneHot => {
                let one_hot = Matrix::diag(&vec![self.score_scale.sqrt(); self.num_states]);
                FiniteTask::new(task.mrp().clone(), one_hot)
            }
            map => task.rescaled(map == FeatureMap::UnitNorm, self.score_scale),
        }
    }

    fn draw_chain(&self, stream: &mut Stream) -> Result<Box<dyn Chain>, TaskError> {
        match self.kind {
            Kind::Cartpole => Ok(Box::new(CartPole::generate(self, stream)?.chain())),
            // The values of free rewards, or of features that were changed, need the whole matrix.
            Kind::Boyan if self.representable && self.has_raw_features() => {
                self.kind.check_sizes(self.num_states, self.feature_dim)?;
                Ok(Box::new(boyan::chain(self, stream)?))
            }
            _ => Ok(Box::new(self.draw(stream)?)),
        }
    }

    fn is_exact(&self) -> bool {
        self.kind != Kind::Cartpole
    }
}
