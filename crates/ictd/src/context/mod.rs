//! Contexts: what the Transformer is shown of a task.
//!
//! A context is a list of columns. Every episode contributes one column per transition (a *source*)
//! and one for its last state, which is not one; query columns follow. The paper's context, one
//! trajectory whose last state is the query, is the special case of a single truncated episode.

mod statistics;
mod tally;
mod unit_features;
mod weighted;

pub use statistics::ContextStatistics;
pub(crate) use tally::Tally;

use std::ops::Range;

use crate::matrix::Matrix;

/// What a column of a context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// A state that was left: carries a reward, and its successor is the next column.
    Source,
    /// The last state of a truncated episode: has a value, no reward, no successor.
    Last,
    /// The last state of a terminated episode: its value is 0 by definition.
    Terminal,
    /// A state that is only asked about.
    Query,
}

/// How an episode ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In a terminal state, whose value is 0.
    Terminated,
    /// Because recording stopped; the last state has a value like any other.
    Truncated,
}

/// Transitions with features and rewards, and the states to evaluate.
///
/// ```
/// use ictd::context::{Context, End};
/// let context = Context::builder()
///     .episode(&[[0.0], [1.0], [2.0]], &[0.5, -0.5], End::Truncated)
///     .query(&[3.0])
///     .build()?;
/// assert_eq!((context.num_transitions(), context.num_columns()), (2, 4));
/// # Ok::<(), ictd::context::ContextError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    features: Matrix,
    rewards: Vec<f64>,
    roles: Vec<Role>,
    num_transitions: usize,
}

/// Why the parts are not a context.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum ContextError {
    /// There must be at least one transition.
    #[error("rewards: the context is empty, expected at least one transition")]
    Empty,
    /// Feature vectors must have at least one entry.
    #[error("features: row 0 of episode 0 has no entries, expected at least one")]
    NoFeatures,
    /// An episode has one feature row more than it has rewards.
    #[error(
        "rewards: episode {episode} has {rewards} rewards and {features} feature rows, expected one row more than rewards"
    )]
    EpisodeLength { episode: usize, features: usize, rewards: usize },
    /// All feature rows must be as long as the very first.
    #[error("features: row {row} of episode {episode} has {found} entries, expected {expected}")]
    FeatureLength { episode: usize, row: usize, expected: usize, found: usize },
    /// Features must be finite.
    #[error("features: entry {entry} of row {row} of episode {episode} is {value}, expected a finite number")]
    FeatureValue { episode: usize, row: usize, entry: usize, value: f64 },
    /// Rewards must be finite.
    #[error("rewards: entry {entry} of episode {episode} is {value}, expected a finite number")]
    RewardValue { episode: usize, entry: usize, value: f64 },
    /// Queries must be as long as feature rows.
    #[error("queries: query {query} has {found} entries, expected {expected}")]
    QueryLength { query: usize, expected: usize, found: usize },
    /// Queries must be finite.
    #[error("queries: entry {entry} of query {query} is {value}, expected a finite number")]
    QueryValue { query: usize, entry: usize, value: f64 },
}

impl Context {
    /// Starts an empty context.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// The context of one trajectory of known states, followed by queries: row s of `table` holds the
    /// features of state s. The table is trusted to be finite.
    pub(crate) fn from_table(
        table: &Matrix,
        states: &[usize],
        queries: &[usize],
        reward: impl Fn(usize) -> f64,
    ) -> Self {
        let columns: Vec<usize> = states.iter().chain(queries).copied().collect();
        let n = states.len() - 1;
        let role = |j: usize| match j {
            j if j < n => Role::Source,
            j if j == n => Role::Last,
            _ => Role::Query,
        };
        Self {
            features: Matrix::from_fn(columns.len(), table.num_cols(), |j, a| table[(columns[j], a)] + 0.0),
            rewards: columns.iter().enumerate().map(|(j, &s)| if j < n { reward(s) } else { 0.0 }).collect(),
            roles: (0..columns.len()).map(role).collect(),
            num_transitions: n,
        }
    }

    /// Number of transitions n over all episodes.
    pub fn num_transitions(&self) -> usize {
        self.num_transitions
    }

    /// Number of columns, queries included.
    pub fn num_columns(&self) -> usize {
        self.roles.len()
    }

    /// Number of query columns; they are the last.
    pub fn num_queries(&self) -> usize {
        self.roles.iter().rev().take_while(|&&role| role == Role::Query).count()
    }

    /// The columns of every episode, its last state included, and how it ends.
    ///
    /// ```
    /// use ictd::{Context, End};
    /// let context = Context::builder()
    ///     .episode(&[[0.0], [1.0], [2.0]], &[0.5, -0.5], End::Terminated)
    ///     .episode(&[[3.0], [4.0]], &[1.0], End::Truncated)
    ///     .query(&[5.0])
    ///     .build()?;
    /// let episodes: Vec<_> = context.episodes().collect();
    /// assert_eq!(episodes, [(0..3, End::Terminated), (3..5, End::Truncated)]);
    /// # Ok::<(), ictd::context::ContextError>(())
    /// ```
    pub fn episodes(&self) -> impl Iterator<Item = (Range<usize>, End)> {
        let mut start = 0;
        self.roles.iter().enumerate().filter_map(move |(j, role)| {
            let end = match role {
                Role::Terminal => End::Terminated,
                Role::Last => End::Truncated,
                Role::Source | Role::Query => return None,
            };
            let columns = start..j + 1;
            start = j + 1;
            Some((columns, end))
        })
    }

    /// Feature dimension d.
    pub fn feature_dim(&self) -> usize {
        self.features.num_cols()
    }

    /// The features of column `j`.
    pub fn features_of(&self, j: usize) -> &[f64] {
        self.features.row(j)
    }

    /// The reward paid on leaving each column; 0 on columns that are not sources.
    pub fn rewards(&self) -> &[f64] {
        &self.rewards
    }

    /// What each column is.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }
}

/// Collects episodes and queries; every mistake is reported by [`build`](Self::build).
#[derive(Clone, Debug, Default)]
pub struct ContextBuilder {
    features: Vec<f64>,
    dim: Option<usize>,
    rewards: Vec<f64>,
    roles: Vec<Role>,
    queries: Vec<f64>,
    num_episodes: usize,
    num_queries: usize,
    error: Option<ContextError>,
}

impl ContextBuilder {
    /// Adds an episode: T + 1 feature rows and T rewards.
    #[must_use]
    pub fn episode<R: AsRef<[f64]>>(mut self, features: &[R], rewards: &[f64], end: End) -> Self {
        if self.error.is_none() {
            self.error = self.push_episode(features.iter().map(AsRef::as_ref), rewards, end).err();
        }
        self
    }

    /// Adds an episode whose T + 1 feature rows, each of `feature_dim` entries, stand one after another.
    ///
    /// ```
    /// use ictd::{Context, End};
    /// let flat = Context::builder().flat_episode(&[0.0, 1.0, 2.0, 3.0], 2, &[0.5], End::Truncated);
    /// let rows = Context::builder().episode(&[[0.0, 1.0], [2.0, 3.0]], &[0.5], End::Truncated);
    /// assert_eq!(flat.build()?, rows.build()?);
    /// # Ok::<(), ictd::context::ContextError>(())
    /// ```
    #[must_use]
    pub fn flat_episode(mut self, features: &[f64], feature_dim: usize, rewards: &[f64], end: End) -> Self {
        if feature_dim == 0 {
            self.error.get_or_insert(ContextError::NoFeatures);
        }
        if self.error.is_none() {
            self.dim.get_or_insert(feature_dim);
            self.error = self.push_episode(features.chunks(feature_dim), rewards, end).err();
        }
        self
    }

    /// Adds a query column.
    #[must_use]
    pub fn query(mut self, features: &[f64]) -> Self {
        let query = self.num_queries;
        if let Some(entry) = features.iter().position(|x| !x.is_finite()) {
            self.error.get_or_insert(ContextError::QueryValue { query, entry, value: features[entry] });
        }
        if let Some(expected) = self.dim.filter(|&d| d != features.len()) {
            self.error.get_or_insert(ContextError::QueryLength { query, expected, found: features.len() });
        }
        self.dim.get_or_insert(features.len());
        self.queries.extend(features.iter().map(|x| x + 0.0));
        self.num_queries += 1;
        self
    }

    fn push_episode<'a>(
        &mut self,
        rows: impl ExactSizeIterator<Item = &'a [f64]>,
        rewards: &[f64],
        end: End,
    ) -> Result<(), ContextError> {
        let episode = self.num_episodes;
        self.num_episodes += 1;
        if rows.len() != rewards.len() + 1 {
            return Err(ContextError::EpisodeLength {
                episode,
                features: rows.len(),
                rewards: rewards.len(),
            });
        }
        let num_rows = rows.len();
        for (row, x) in rows.enumerate() {
            let expected = *self.dim.get_or_insert(x.len());
            if expected == 0 {
                return Err(ContextError::NoFeatures);
            }
            if x.len() != expected {
                return Err(ContextError::FeatureLength { episode, row, expected, found: x.len() });
            }
            if let Some(entry) = x.iter().position(|v| !v.is_finite()) {
                return Err(ContextError::FeatureValue { episode, row, entry, value: x[entry] });
            }
            if row == 0 {
                self.features.reserve(num_rows * expected);
            }
            // Adding 0 turns -0 into 0, so that equal features have equal bits.
            self.features.extend(x.iter().map(|v| v + 0.0));
        }
        if let Some(entry) = rewards.iter().position(|r| !r.is_finite()) {
            return Err(ContextError::RewardValue { episode, entry, value: rewards[entry] });
        }
        self.rewards.reserve(num_rows);
        self.rewards.extend_from_slice(rewards);
        self.rewards.push(0.0);
        self.roles.extend(std::iter::repeat_n(Role::Source, rewards.len()));
        self.roles.push(match end {
            End::Terminated => Role::Terminal,
            End::Truncated => Role::Last,
        });
        Ok(())
    }

    /// The context, or the first mistake.
    pub fn build(mut self) -> Result<Context, ContextError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let num_transitions = self.roles.iter().filter(|&&role| role == Role::Source).count();
        if num_transitions == 0 {
            return Err(ContextError::Empty);
        }
        self.features.append(&mut self.queries);
        self.rewards.extend(std::iter::repeat_n(0.0, self.num_queries));
        self.roles.extend(std::iter::repeat_n(Role::Query, self.num_queries));
        let dim = self.dim.unwrap_or(0);
        let features = Matrix::from_vec(self.roles.len(), dim, self.features);
        Ok(Context { features, rewards: self.rewards, roles: self.roles, num_transitions })
    }
}
