//! Contexts as NPZ: arrays of numbers, read without a detour through text.
//!
//! | array | shape | |
//! |---|---|---|
//! | `features` | (n + E, d) | feature rows of E episodes one after another, each with one row more than it has transitions |
//! | `rewards` | (n,) | rewards of all episodes one after another |
//! | `lengths` | (E,) | transitions of every episode; without it there is one |
//! | `terminated` | (E,), or () for one | whether the last state of an episode is terminal; false when absent |
//! | `queries` | (q, d) | feature rows of states to evaluate |
//!
//! `states` and `values` may be there for the reader's information, as in JSON.

use std::path::Path;

use ictd::context::{Context, ContextError, End};

use super::context::at;
use super::npy::{self, Named};
use super::values::Values;
use crate::memory::{self, DOUBLE};
use crate::{LabError, did_you_mean};

/// Arrays that say what the context is.
const USED: [&str; 5] = ["features", "rewards", "lengths", "terminated", "queries"];
/// Arrays that may be there and are passed over.
const UNUSED: [&str; 2] = ["states", "values"];

/// The context of an archive.
pub(super) fn read(path: &Path, bytes: Vec<u8>) -> Result<Context, LabError> {
    let named = npy::archive(&bytes, is_wanted).map_err(|message| LabError::parse(path, message))?;
    // What follows takes as much again as the numbers that were in it.
    drop(bytes);
    let held: f64 = named.iter().map(|array| array.values.memory()).sum();
    let arrays = ContextArrays::new(named).map_err(|error| at(path, error))?;
    // The numbers, and the context with a byte for what every column is.
    memory::admit(held * (2.0 + 1.0 / DOUBLE), "the size of the arrays").map_err(|error| at(path, error))?;
    arrays.context().map_err(|error| at(path, error))
}

fn is_wanted(name: &str) -> Result<bool, String> {
    if ContextArrays::has(name) {
        return Ok(USED.contains(&name));
    }
    let (used, unused) = (USED.join(", "), UNUSED.join(" and "));
    let meant = did_you_mean(name, USED);
    Err(format!("{name}: found an array of that name, expected {used} ({unused} are passed over){meant}"))
}

/// The numbers of a context, whose shapes fit one another.
#[derive(Clone, Debug)]
pub(crate) struct ContextArrays {
    features: Rows,
    rewards: Vec<f64>,
    lengths: Vec<usize>,
    ends: Vec<End>,
    queries: Option<Rows>,
}

/// Numbers in rows.
#[derive(Clone, Debug)]
struct Rows {
    numbers: Vec<f64>,
    width: usize,
}

impl ContextArrays {
    /// The arrays of an archive as a context.
    pub fn new(named: Vec<Named>) -> Result<Self, LabError> {
        let mut arrays = Arrays(named);
        let missing = |name: &str| LabError::refused(name, "missing");
        let features = arrays.rows("features")?.ok_or_else(|| missing("features"))?;
        let rewards = arrays.list("rewards")?.ok_or_else(|| missing("rewards"))?;
        let queries = arrays.rows("queries")?;
        let lengths = arrays.lengths(&features, &rewards)?;
        let ends = arrays.ends(lengths.len())?;
        Ok(Self { features, rewards, lengths, ends, queries })
    }

    /// Whether a context may have an array of that name.
    pub fn has(name: &str) -> bool {
        USED.contains(&name) || UNUSED.contains(&name)
    }

    /// Number of features d.
    pub fn feature_dim(&self) -> usize {
        self.features.width
    }

    /// The feature rows one after another, the rewards and the end of every episode.
    pub fn episodes(&self) -> impl Iterator<Item = (&[f64], &[f64], End)> {
        let (mut row, mut step) = (0, 0);
        self.lengths.iter().zip(&self.ends).map(move |(&length, &end)| {
            let width = self.features.width;
            let rows = &self.features.numbers[row * width..(row + length + 1) * width];
            let rewards = &self.rewards[step..step + length];
            (row, step) = (row + length + 1, step + length);
            (rows, rewards, end)
        })
    }

    fn context(&self) -> Result<Context, LabError> {
        let mut builder = Context::builder();
        for (features, rewards, end) in self.episodes() {
            builder = builder.flat_episode(features, self.feature_dim(), rewards, end);
        }
        for query in self.queries.iter().flat_map(|rows| rows.numbers.chunks(rows.width)) {
            builder = builder.query(query);
        }
        Ok(builder.build()?)
    }
}

/// The arrays that are left to take.
struct Arrays(Vec<Named>);

impl Arrays {
    fn take(&mut self, name: &str) -> Option<Named> {
        let place = self.0.iter().position(|array| array.name == name)?;
        Some(self.0.swap_remove(place))
    }

    /// The numbers of an array and its shape, which has so many axes where that is said.
    fn numbers(
        &mut self,
        name: &str,
        axes: Option<(usize, &str)>,
    ) -> Result<Option<(Vec<usize>, Vec<f64>)>, LabError> {
        let Some(Named { shape, values, .. }) = self.take(name) else { return Ok(None) };
        if let Some((_, expected)) = axes.filter(|(count, _)| *count != shape.len()) {
            let found = format!("found an array of shape {}", shown(&shape));
            return Err(LabError::refused(name, format!("{found}, expected {expected}")));
        }
        let numbers = match values {
            Values::Float(list) => list,
            Values::Whole(list) => list.into_iter().map(|n| n as f64).collect(),
            Values::Text(list) => {
                // Whole numbers are kept as texts where one of them does not fit into 63 bits.
                let large = |text: &String| text.parse::<u64>().is_ok_and(|n| i64::try_from(n).is_err());
                let found =
                    match list.iter().any(large) && list.iter().all(|text| text.parse::<u64>().is_ok()) {
                        true => "found a whole number beyond 2^63 - 1, expected smaller ones",
                        false => "found texts, expected numbers",
                    };
                return Err(LabError::refused(name, found));
            }
        };
        Ok(Some((shape, numbers)))
    }

    fn rows(&mut self, name: &str) -> Result<Option<Rows>, LabError> {
        let expected = "two axes: states and their features";
        let Some((shape, numbers)) = self.numbers(name, Some((2, expected)))? else { return Ok(None) };
        match shape[1] {
            0 => Err(LabError::refused(
                name,
                format!("found an array of shape {}, expected at least one feature", shown(&shape)),
            )),
            width => Ok(Some(Rows { numbers, width })),
        }
    }

    fn list(&mut self, name: &str) -> Result<Option<Vec<f64>>, LabError> {
        Ok(self.numbers(name, Some((1, "one axis")))?.map(|(_, numbers)| numbers))
    }

    /// The transitions of every episode: as many as there are rewards, and feature rows for all.
    fn lengths(&mut self, features: &Rows, rewards: &[f64]) -> Result<Vec<usize>, LabError> {
        let found = features.numbers.len() / features.width;
        let Some(lengths) = self.list("lengths")? else {
            if found != rewards.len() + 1 {
                let (episode, rewards) = (0, rewards.len());
                return Err(ContextError::EpisodeLength { episode, features: found, rewards }.into());
            }
            return Ok(vec![rewards.len()]);
        };
        let is_count = |length: f64| length >= 0.0 && length.fract() == 0.0;
        if let Some(entry) = lengths.iter().position(|&length| !is_count(length)) {
            let found = format!("entry {entry} is {}", lengths[entry]);
            return Err(LabError::refused("lengths", format!("{found}, expected a whole number, 0 or more")));
        }
        // Sums of whole numbers are exact as long as they can be equal to a number of rewards.
        let (transitions, episodes) = (lengths.iter().sum::<f64>(), lengths.len());
        if transitions != rewards.len() as f64 {
            let problem =
                format!("found {} entries, expected {transitions}, the sum of lengths", rewards.len());
            return Err(LabError::refused("rewards", problem));
        }
        let expected = rewards.len() + episodes;
        if found != expected {
            let each = "one more than transitions in every episode";
            let problem = format!("found {found} rows, expected {expected}: {each}");
            return Err(LabError::refused("features", problem));
        }
        Ok(lengths.into_iter().map(|length| length as usize).collect())
    }

    /// How each of so many episodes ends.
    fn ends(&mut self, episodes: usize) -> Result<Vec<End>, LabError> {
        let Some((_, flags)) = self.numbers("terminated", None)? else {
            return Ok(vec![End::Truncated; episodes]);
        };
        if flags.len() != episodes {
            let problem = format!("found {} entries, expected {episodes}, one per episode", flags.len());
            return Err(LabError::refused("terminated", problem));
        }
        let end = |(entry, flag): (usize, &f64)| match *flag {
            0.0 => Ok(End::Truncated),
            1.0 => Ok(End::Terminated),
            other => {
                let problem = format!("entry {entry} is {other}, expected true or false, or 1 or 0");
                Err(LabError::refused("terminated", problem))
            }
        };
        flags.iter().enumerate().map(end).collect()
    }
}

/// A shape as NumPy shows it.
fn shown(shape: &[usize]) -> String {
    match shape {
        [length] => format!("({length},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
