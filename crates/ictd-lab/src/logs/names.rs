//! Names that columns have in the logs of others.

/// Columns that say which episode a row belongs to; the first of them that is there is taken.
pub(super) const EPISODE: &[&str] = &[
    "episode",
    "episode_id",
    "episodes",
    "eps_id",
    "trajectory",
    "trajectory_id",
    "traj",
    "traj_id",
    "ep",
    "session",
    "session_id",
    "customer",
    "customer_id",
    "user",
    "user_id",
    "patient",
    "patient_id",
    "subject_id",
    "id",
];

/// Columns by which rows are ordered.
pub(super) const TIME: &[&str] = &[
    "t",
    "time",
    "step",
    "timestep",
    "time_step",
    "steps",
    "step_num",
    "step_id",
    "timestamp",
    "datetime",
    "date",
    "day",
    "week",
    "month",
    "period",
    "round",
    "turn",
];

/// Whether a column of times counts the steps of an episode, so that a number that is left out is a gap. Any other holds times
/// of a calendar, which need not be evenly spaced and do not begin anew with an episode.
pub(super) fn counts_steps(column: &str) -> bool {
    let calendar = ["time", "timestamp", "datetime", "date", "day", "week", "month", "period"];
    let name = column.to_ascii_lowercase();
    TIME.contains(&name.as_str()) && !calendar.contains(&name.as_str())
}

pub(super) const REWARD: &[&str] = &["reward", "rewards", "r"];

/// What D4RL, d3rlpy, RLlib and Gymnasium call an end in a terminal state.
pub(super) const TERMINATED: &[&str] = &[
    "terminated",
    "terminateds",
    "terminations",
    "termination",
    "terminal",
    "terminals",
    "is_terminal",
    "done",
    "dones",
];

pub(super) const TRUNCATED: &[&str] =
    &["truncated", "truncateds", "truncations", "truncation", "timeout", "timeouts"];

/// Names of a state in one column.
pub(super) const STATE: &[&str] = &["state", "states", "obs", "observation", "observations", "s"];

/// What names of features begin with.
pub(super) const PREFIXES: &[&str] =
    &["s_", "obs_", "state_", "states_", "observation_", "observations_", "x_", "feature_", "features_"];

/// Columns that are no part of a state unless somebody says so.
pub(super) struct Others {
    names: &'static [&'static str],
    prefixes: &'static [&'static str],
}

pub(super) const NOT_STATES: Others = Others {
    names: &[
        "",
        "index",
        "action",
        "actions",
        "a",
        "info",
        "infos",
        "weight",
        "weights",
        "value",
        "values",
        "return",
        "returns",
        "logp",
        "pscore",
        "position",
        "seed",
        "episode_step",
        "total_steps",
        "unroll_id",
        "agent_index",
        "action_prob",
        "action_logp",
        "target_prob",
        "done",
        "dones",
        "terminal",
        "terminals",
        "timeout",
        "timeouts",
    ],
    prefixes: &["action_", "actions_", "a_", "info_", "infos_", "next_", "new_", "unnamed:", "action_dist"],
};

impl Others {
    pub(super) fn matches(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.names.contains(&name.as_str()) || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}
