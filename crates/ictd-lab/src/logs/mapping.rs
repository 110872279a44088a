//! Which column is what: guessed from names, or said.

use std::fmt::Write as _;
use std::path::Path;

use super::names::{self, NOT_STATES, PREFIXES};
use crate::{LabError, did_you_mean};

/// What to do with a row that lacks a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Refuse the file, naming the cell.
    #[default]
    Refuse,
    /// Leave the row out. The episode is cut there: what comes before and after is never joined.
    Drop,
    /// Put the mean of the column in place of a missing feature. A row without a reward is refused.
    Mean,
}

impl std::str::FromStr for Missing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "drop" => Ok(Self::Drop),
            "mean" => Ok(Self::Mean),
            _ => Err(format!("'{text}' is no way to treat missing values, expected refuse, drop or mean")),
        }
    }
}

/// Columns as a user names them; what is not named is guessed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The column that says which episode a row belongs to.
    pub episode: Option<String>,
    /// The column by which rows of an episode are ordered.
    pub time: Option<String>,
    /// Columns of the state, separated by commas, or what their names begin with. `NAME:label` makes labels of numbers.
    pub state: Option<String>,
    /// The column of rewards.
    pub reward: Option<String>,
    /// The column that says that an episode ended in a terminal state.
    pub terminated: Option<String>,
    /// The column that says that recording ended.
    pub truncated: Option<String>,
    /// The column whose entries are to be given a value each.
    pub id: Option<String>,
    /// Whether that column may be absent: where it is asked for in a file of queries, a log need not have it.
    pub id_may_lack: bool,
    /// What to do with rows that lack a value.
    pub missing: Missing,
}

impl Wanted {
    /// Whether a column or an array of that name is asked for.
    pub(super) fn names(&self, name: &str) -> bool {
        let said = [&self.episode, &self.time, &self.reward, &self.terminated, &self.truncated, &self.id];
        let begins =
            |part: &str| name.get(..part.len()).is_some_and(|start| start.eq_ignore_ascii_case(part));
        let mut states = self.state.iter().flat_map(|said| said.trim_end_matches(":label").split(','));
        said.into_iter().flatten().any(|said| said.eq_ignore_ascii_case(name))
            || states.any(|part| !part.trim().is_empty() && begins(part.trim()))
    }
}

/// What every column of a table was taken for. Numbers are positions in `header`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    /// Names of all columns.
    pub header: Vec<String>,
    /// The column of episodes; without it episodes end where a flag says so.
    pub episode: Option<usize>,
    /// The column of times; without it the order of rows is the order in time.
    pub time: Option<usize>,
    /// Columns of the state.
    pub states: Vec<usize>,
    /// Columns of the state that followed, in the order of `states`.
    pub next: Vec<usize>,
    /// The column of rewards.
    pub reward: usize,
    /// The column of terminal ends.
    pub terminated: Option<usize>,
    /// The column of ends of recording.
    pub truncated: Option<usize>,
    /// The column of ids.
    pub id: Option<usize>,
    /// Whether the column of terminal ends marks those of recording too: where both are set, recording ended.
    pub done_is_any_end: bool,
    /// Whether a single state column is to be taken for labels whatever it holds.
    pub is_label: bool,
    /// What a reader of the mapping should know.
    pub warnings: Vec<String>,
}

/// Characters of a role in the lines of a mapping.
pub(super) const ROLE: usize = 11;

impl Mapping {
    /// Finds the columns; `place` names the header in errors.
    pub fn guess(path: &Path, place: &str, header: Vec<String>, wanted: &Wanted) -> Result<Self, LabError> {
        let fail = |message: String| LabError::parse(path, format!("{place}: {message}"));
        for (k, name) in header.iter().enumerate() {
            if !name.is_empty() && header[..k].contains(name) {
                return Err(fail(format!("found the column '{name}' twice, expected different names")));
            }
        }
        let mut found = Self { header, ..Self::default() };
        let said = found.said(wanted).map_err(fail)?;
        let find = |role: &str, aliases: &[&str], name: &Option<String>| {
            found.role(role, aliases, name.as_deref(), &said).map_err(fail)
        };
        let episode = find("episode", names::EPISODE, &wanted.episode)?;
        let reward = find("reward", names::REWARD, &wanted.reward)?;
        if wanted.terminated.is_none() && found.has_all(&["done", "terminal"]) {
            return Err(fail(
                "found both 'done' and 'terminal', expected one; in SCOPE-RL 'done' is the agent's end and 'terminal' that \
                 of recording: say --terminated done --truncated terminal, or the reverse"
                    .into(),
            ));
        }
        let terminated = find("terminated", names::TERMINATED, &wanted.terminated)?;
        let truncated = find("truncated", names::TRUNCATED, &wanted.truncated)?;
        let time = find("time", names::TIME, &wanted.time)?;
        let id = match &wanted.id {
            Some(name) if wanted.id_may_lack && found.named("id", name).is_err() => None,
            Some(_) => find("id", &[], &wanted.id)?,
            None => None,
        };
        if reward.is_none() || (episode.is_none() && terminated.is_none() && truncated.is_none()) {
            let (role, option) = match reward {
                None => ("rewards (reward, rewards or r)", "--reward"),
                Some(_) if found.has_all(&["action", "pscore"]) => (
                    "episodes: logs of single decisions, as those of bandits, have no state values",
                    "--episode",
                ),
                Some(_) => (
                    "episodes (episode, episode_id, trajectory, …) or ends (terminated, truncated)",
                    "--episode",
                ),
            };
            let columns = found.header.iter().filter(|name| !name.is_empty()).map(String::as_str);
            let columns = columns.take(12).collect::<Vec<_>>().join(", ");
            return Err(fail(format!(
                "found the columns {columns}, expected one for {role}; name it with {option}"
            )));
        }
        (found.episode, found.time, found.terminated, found.truncated) =
            (episode, time, terminated, truncated);
        (found.reward, found.id) = (reward.unwrap_or_default(), id);
        found.find_states(wanted.state.as_deref()).map_err(fail)?;
        found.find_next();
        found.warn(wanted);
        Ok(found)
    }

    /// Columns that a user gives a role: each has one. An id may be the name of an episode as well.
    fn said(&self, wanted: &Wanted) -> Result<Vec<usize>, String> {
        let Wanted { episode, time, reward, terminated, truncated, .. } = wanted;
        let roles = ["episode", "time", "reward", "terminated", "truncated"];
        let mut said: Vec<(usize, &str)> = Vec::new();
        for (role, name) in roles.into_iter().zip([episode, time, reward, terminated, truncated]) {
            let Some(name) = name else { continue };
            let column = self.named(role, name)?;
            if let Some((_, other)) = said.iter().find(|(known, _)| *known == column) {
                return Err(format!("found '{name}' for --{other} and --{role}, expected different columns"));
            }
            said.push((column, role));
        }
        Ok(said.into_iter().map(|(column, _)| column).collect())
    }

    /// The column of a role: the one that was named, or the only one whose name is among the aliases of highest rank and that
    /// has no role in `taken`.
    fn role(
        &self,
        role: &str,
        aliases: &[&str],
        name: Option<&str>,
        taken: &[usize],
    ) -> Result<Option<usize>, String> {
        if let Some(name) = name {
            return self.named(role, name).map(Some);
        }
        let is_free = |k: &usize| !taken.contains(k);
        let alike = |alias: &&str| self.header.iter().position(|name| name.eq_ignore_ascii_case(alias));
        Ok(aliases.iter().filter_map(alike).find(is_free))
    }

    /// The column that a user named.
    fn named(&self, role: &str, name: &str) -> Result<usize, String> {
        let exact = self.header.iter().position(|column| column == name);
        exact.or_else(|| self.header.iter().position(|c| c.eq_ignore_ascii_case(name))).ok_or_else(|| {
            let near = did_you_mean(name, self.header.iter().map(String::as_str));
            format!("found no column '{name}', expected it for --{role}{near}")
        })
    }

    fn has_all(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.header.iter().any(|column| column.eq_ignore_ascii_case(name)))
    }

    /// Columns whose names begin so and go on with a number or a name, not those of the next state.
    fn with_prefix(&self, prefix: &str) -> Vec<usize> {
        let begins = |name: &str| {
            name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
                && name.len() > prefix.len()
        };
        (0..self.header.len()).filter(|&k| begins(&self.header[k])).collect()
    }

    fn find_states(&mut self, said: Option<&str>) -> Result<(), String> {
        if let Some(said) = said {
            return self.said_states(said);
        }
        let taken: Vec<usize> = self.taken();
        let free = |k: &usize| !taken.contains(k);
        let prefixed = PREFIXES.iter().map(|prefix| self.with_prefix(prefix));
        let prefixed = prefixed.map(|found| found.into_iter().filter(free).collect::<Vec<_>>());
        if let Some(found) = prefixed.into_iter().find(|found| !found.is_empty()) {
            self.states = found;
        } else if let Some(one) = self.role("state", names::STATE, None, &taken)? {
            self.states = vec![one];
        } else {
            let is_state = |k: &usize| free(k) && !NOT_STATES.matches(&self.header[*k]);
            self.states = (0..self.header.len()).filter(is_state).collect();
        }
        if self.states.is_empty() {
            let columns = self.header.join(", ");
            return Err(format!(
                "found the columns {columns}, expected one for the state; name it with --state"
            ));
        }
        Ok(())
    }

    fn said_states(&mut self, said: &str) -> Result<(), String> {
        let (said, is_label) = said.strip_suffix(":label").map_or((said, false), |name| (name, true));
        let taken = self.taken();
        let ends = [Some(self.reward), self.terminated, self.truncated];
        for part in said.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let mut found: Vec<usize> = match self.header.iter().position(|column| column == part) {
                Some(one) => vec![one],
                None => self.with_prefix(part).into_iter().filter(|k| !taken.contains(k)).collect(),
            };
            if found.is_empty() {
                found = vec![self.named("state", part)?];
            }
            if let [one] = *found
                && ends.contains(&Some(one))
            {
                return Err(format!(
                    "found '{part}' for --state and for another role, expected different columns"
                ));
            }
            found.retain(|k| !self.states.contains(k));
            self.states.append(&mut found);
        }
        self.is_label = is_label;
        match self.states.len() {
            0 => Err(format!("found '{said}', expected names of columns after --state")),
            n if n > 1 && is_label => {
                Err(format!("found {n} columns, expected one for --state {said}:label"))
            }
            _ => Ok(()),
        }
    }

    /// Columns of the next state: `next_` or `new_` before the names of all state columns.
    fn find_next(&mut self) {
        let after = |k: &usize| {
            let name = &self.header[*k];
            names::NEXT.iter().find_map(|n| self.header.iter().position(|c| *c == format!("{n}{name}")))
        };
        self.next = self.states.iter().map(after).collect::<Option<_>>().unwrap_or_default();
    }

    /// Columns that have a role already.
    fn taken(&self) -> Vec<usize> {
        let roles = [self.episode, self.time, Some(self.reward), self.terminated, self.truncated, self.id];
        roles
            .into_iter()
            .flatten()
            .chain(self.states.iter().copied())
            .chain(self.next.iter().copied())
            .collect()
    }

    /// Says what is doubtful about it.
    pub(super) fn warn(&mut self, wanted: &Wanted) {
        let Self { header, .. } = self;
        if let (Some(k), None) = (self.terminated, &wanted.terminated)
            && header[k].to_ascii_lowercase().starts_with("done")
        {
            // Old Gym, Stable-Baselines3 and rsl_rl set it at time limits too.
            self.done_is_any_end = self.truncated.is_some();
            let name = &header[k];
            if self.truncated.is_none() {
                self.warnings.push(format!(
                    "'{name}' is taken for terminated; if it also marks where recording stopped, values there are wrong"
                ));
            }
        }
        if self.terminated.is_none() {
            self.warnings.push(
                "no column for terminated: no episode is taken to have ended in a terminal state".into(),
            );
        }
    }

    /// One line per role, for a person.
    pub fn lines(&self) -> Vec<String> {
        let name = |k: usize| if self.header[k].is_empty() { "(no name)" } else { &self.header[k] };
        let list = |columns: &[usize]| {
            let mut text: String = columns.iter().take(8).map(|&k| name(k)).collect::<Vec<_>>().join(", ");
            if columns.len() > 8 {
                // Writing to a string cannot fail.
                let _ = write!(text, ", … ({} columns)", columns.len());
            }
            text
        };
        let taken = self.taken();
        let unused: Vec<usize> = (0..self.header.len()).filter(|k| !taken.contains(k)).collect();
        let one = |role: &str, column: Option<usize>, without: &str| {
            format!("{role:<ROLE$} {}", column.map_or_else(|| without.to_owned(), |k| name(k).to_owned()))
        };
        let mut lines = vec![
            one("episode", self.episode, "none: an episode ends where a flag says so"),
            one("time", self.time, "none: rows are in the order of time"),
            format!("{:<ROLE$} {}", "state", list(&self.states)),
            one("reward", Some(self.reward), ""),
            one("terminated", self.terminated, "none"),
            one("truncated", self.truncated, "none"),
        ];
        if !self.next.is_empty() {
            lines.insert(3, format!("{:<ROLE$} {}", "next state", list(&self.next)));
        }
        lines.extend(self.id.map(|k| one("id", Some(k), "")));
        if !unused.is_empty() {
            lines.push(format!("{:<ROLE$} {}", "not used", list(&unused)));
        }
        lines
    }

    /// Names of the state columns.
    pub fn state_names(&self) -> Vec<String> {
        self.states.iter().map(|&k| self.header[k].clone()).collect()
    }
}
