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

/// Times of a calendar that are counted if they are whole numbers.
const COUNTED: &[&str] = &["day", "week", "month", "period"];

/// Whether a column of times counts the steps of an episode. Any other holds times of a calendar, which do not begin anew with
/// an episode.
pub(super) fn counts_steps(column: &str) -> bool {
    let calendar = ["time", "timestamp", "datetime", "date"];
    let name = column.to_ascii_lowercase();
    TIME.contains(&name.as_str()) && ![&calendar, COUNTED].concat().contains(&name.as_str())
}

/// Whether whole numbers in a column of times are consecutive, so that one that is left out is a gap.
pub(super) fn may_count_steps(column: &str) -> bool {
    counts_steps(column) || COUNTED.contains(&column.to_ascii_lowercase().as_str())
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

/// Whether a column of that name holds rewards.
pub(super) fn is_reward(name: &str) -> bool {
    REWARD.contains(&name.to_ascii_lowercase().as_str())
}

/// Whether a column of that name is known to have a part in a log.
pub(super) fn is_role(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let state = NEXT.iter().find_map(|next| name.strip_prefix(next)).unwrap_or(&name);
    let roles = [EPISODE, TIME, REWARD, TERMINATED, TRUNCATED];
    roles.iter().any(|role| role.contains(&name.as_str())) || STATE.contains(&state)
}

/// What names of the state that followed begin with.
pub(super) const NEXT: &[&str] = &["next_", "new_"];

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
    ],
    prefixes: &["action_", "actions_", "a_", "info_", "infos_", "next_", "new_", "unnamed:", "action_dist"],
};

impl Others {
    /// Also what may have another role, and names of something.
    pub(super) fn matches(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.names.contains(&name.as_str())
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
            || name.ends_with("_id")
            || is_role(&name)
    }
}
