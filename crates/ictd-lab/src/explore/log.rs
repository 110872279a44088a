//! A log in memory: what it is taken for, and a window of it as a context.

use std::collections::BTreeMap;

use ictd::context::End;
use ictd::evaluate::LogBuilder;
use ictd::matrix::Matrix;
use serde::Serialize;

use crate::error::check_range;
use crate::files::{ContextFile, EpisodeFile, rows};
use crate::logs::{self, Counts, Episode, Kept, OwnedEpisode, Reading, Sink, States, Transition};
use crate::studies::evaluate::{EvaluateConfig, Evaluation, Logged, Options, run};
use crate::{LabError, Progress};

/// Transitions that are shown as they were understood.
const SHOWN: usize = 5;
/// Largest number of transitions of a window.
const MAX_TRANSITIONS: usize = 1000;

/// What a log is taken for.
#[derive(Clone, Debug, Serialize)]
pub struct Understood {
    /// The role of every column, one line each.
    columns: Vec<String>,
    /// Columns of the state.
    state_columns: Vec<String>,
    /// Rows of the file.
    rows: u64,
    /// How much was read and left out.
    counts: Counts,
    /// Different states.
    states: usize,
    /// The first transitions.
    first: Vec<Transition>,
    /// What should be known about the file.
    warnings: Vec<String>,
}

/// A part of a log as a context.
#[derive(Clone, Debug, Serialize)]
pub struct Window {
    context: ContextFile,
}

/// The bytes of a log under its name.
#[derive(Clone, Copy, Debug)]
pub struct LogFile<'a> {
    /// As the user calls it; its ending may say what it is written in.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// Takes episodes as they are, and into a log.
struct Taken {
    kept: Kept,
    log: LogBuilder,
}

impl Sink for Taken {
    fn episode(&mut self, episode: Episode<'_>) -> Result<(), LabError> {
        self.kept.episode(episode)?;
        Sink::episode(&mut self.log, episode)
    }
}

impl LogFile<'_> {
    /// Reads it for these questions.
    fn read(self, options: &Options, config: &EvaluateConfig) -> Result<(Reading, Taken), LabError> {
        let make = || Ok(Taken { kept: Kept::default(), log: config.builder()? });
        logs::read_bytes(self.name, self.bytes, &options.wanted()?, make, &Progress::default())
    }

    /// What it is taken for.
    pub fn understand(self, options: &Options) -> Result<Understood, LabError> {
        let (reading, Taken { kept: Kept(episodes), .. }) = self.read(options, &any_discount(options)?)?;
        let describe = |state: Option<&u32>| {
            state.map_or_else(|| "(end)".to_owned(), |&state| reading.states.describe(state))
        };
        let transitions = episodes.iter().flat_map(|episode| {
            (0..episode.rewards.len()).map(|step| Transition {
                episode: episode.name.clone(),
                step,
                state: describe(episode.states.get(step)),
                reward: episode.rewards[step],
                next: describe(episode.states.get(step + 1)),
            })
        });
        Ok(Understood {
            first: transitions.take(SHOWN).collect(),
            columns: reading.columns(),
            rows: reading.counts.rows,
            counts: reading.counts,
            states: reading.states.len(),
            state_columns: reading.state_columns,
            warnings: reading.warnings,
        })
    }

    /// What `ictd evaluate --json` prints.
    pub fn evaluate(self, options: &Options) -> Result<Evaluation, LabError> {
        let config = options.config()?;
        let (reading, taken) = self.read(options, &config)?;
        run(&Logged::new(reading, taken.log)?, None, &config, &Progress::default())
    }

    /// The transitions from number `from` on, episode after episode. Features are scaled as for an evaluation; labels become
    /// one feature each.
    pub fn window(self, options: &Options, from: usize, transitions: usize) -> Result<Window, LabError> {
        check_range("transitions", transitions, 1..=MAX_TRANSITIONS)?;
        let config = any_discount(options)?;
        let (reading, Taken { kept: Kept(episodes), log }) = self.read(options, &config)?;
        let parts = parts(&episodes, from, transitions);
        if parts.is_empty() {
            let expected = format!("less than the {} transitions of the log", reading.counts.transitions);
            return Err(LabError::value("from", from, expected));
        }
        let features = match &reading.states {
            States::Labels(labels) => one_hot(labels.len(), &parts),
            States::Features { rows, .. } => {
                let rows = rows.clone();
                Logged::new(reading, log)?.scaled(&config, &rows)
            }
        };
        let features = rows(&features);
        let episode = |part: Part<'_>| {
            let width = features.first().map_or(0, Vec::len);
            let mut of_states: Vec<_> = part.states.iter().map(|&s| features[s as usize].clone()).collect();
            // What a terminal state looks like does not matter, and nobody looks.
            of_states.resize(part.rewards.len() + 1, vec![Some(0.0); width]);
            let rewards = part.rewards.iter().copied().map(Some).collect();
            EpisodeFile { features: of_states, rewards, terminated: part.terminated }
        };
        let episodes = Some(parts.into_iter().map(episode).collect());
        Ok(Window { context: ContextFile { episodes, ..ContextFile::default() } })
    }
}

/// The questions of an evaluation for which the discount does not matter.
fn any_discount(options: &Options) -> Result<EvaluateConfig, LabError> {
    Options { gamma: Some(options.gamma.unwrap_or(0.9)), ..options.clone() }.config()
}

/// A part of an episode: T rewards and T + 1 states, T where the last is terminal and not in the file.
struct Part<'a> {
    states: &'a [u32],
    rewards: &'a [f64],
    terminated: bool,
}

/// The transitions asked for, as parts of episodes.
fn parts(episodes: &[OwnedEpisode], from: usize, transitions: usize) -> Vec<Part<'_>> {
    let (mut skip, mut left) = (from, transitions);
    let mut found = Vec::new();
    for episode in episodes {
        let steps = episode.rewards.len();
        let begin = skip.min(steps);
        let end = steps.min(begin + left);
        skip -= begin;
        left -= end - begin;
        if begin < end {
            found.push(Part {
                states: &episode.states[begin..episode.states.len().min(end + 1)],
                rewards: &episode.rewards[begin..end],
                terminated: end == steps && episode.end == End::Terminated,
            });
        }
    }
    found
}

/// One feature for every label that occurs in the parts, in the order in which they do.
fn one_hot(num_states: usize, parts: &[Part<'_>]) -> Matrix {
    let mut places = BTreeMap::new();
    for &state in parts.iter().flat_map(|part| part.states) {
        let next = places.len();
        places.entry(state as usize).or_insert(next);
    }
    Matrix::from_fn(num_states, places.len().max(1), |s, a| f64::from(u8::from(places.get(&s) == Some(&a))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "episode,t,x,y,reward,terminated\n\
        a,0,1,10,0.5,0\na,1,2,20,0.25,0\na,2,3,30,1,1\n\
        b,0,2,10,0,0\nb,1,4,20,0.5,0\nb,2,1,30,,0\n";

    fn file(bytes: &str) -> LogFile<'_> {
        LogFile { name: "log.csv", bytes: bytes.as_bytes() }
    }

    fn window(options: &Options, from: usize, n: usize) -> Result<ictd::Context, LabError> {
        file(LOG).window(options, from, n)?.context.into_context()
    }

    #[test]
    fn a_log_is_understood_and_seen_through_a_window() {
        let options = Options::default();
        let found = file(LOG).understand(&options).unwrap();
        assert_eq!((found.rows, found.counts.transitions, found.first.len()), (6, 5, 5));
        assert_eq!((found.first[2].next.as_str(), found.first[3].step), ("(end)", 0));
        let context = window(&options, 1, 3).unwrap();
        assert_eq!((context.num_transitions(), context.episodes().count()), (3, 2));
        let unscaled = Options { scale: Some(ictd::evaluate::Scaling::None), ..options.clone() };
        let context = window(&unscaled, 1, 3).unwrap();
        assert_eq!(context.features_of(0), [2.0, 20.0]);
        assert_eq!(context.rewards(), [0.25, 1.0, 0.0, 0.0, 0.0]);
        assert!(window(&options, 5, 1).unwrap_err().to_string().contains("less than the 5 transitions"));
        assert!(window(&options, 0, 0).is_err());
        let labels = "episode,state,reward\n1,a,0\n1,b,1\n1,a,2\n1,c,\n";
        let context = file(labels).window(&options, 0, 3).unwrap().context.into_context().unwrap();
        assert_eq!((context.feature_dim(), context.features_of(2)), (3, &[1.0, 0.0, 0.0][..]));
    }

    #[test]
    fn bytes_that_are_no_log_are_refused_in_a_line() {
        let options = Options { gamma: Some(0.9), ..Options::default() };
        for bytes in [&b""[..], b"a,b\n1,2\n", b"\xff\xfe\x00", b"\x89HDF\r\n\x1a\n", b"PK\x03\x04", b"[1, 2"]
        {
            for name in ["log.csv", "log.npz", "log.jsonl", ""] {
                let error = LogFile { name, bytes }.evaluate(&options).unwrap_err().to_string();
                assert!(!error.contains('\n') && !error.is_empty(), "{error}");
            }
        }
        assert!(file(LOG).evaluate(&Options::default()).unwrap_err().to_string().contains("gamma"));
    }
}
