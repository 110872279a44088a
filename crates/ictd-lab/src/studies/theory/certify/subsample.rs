//! A part of a context, where it has more states than can be examined.

use ictd::context::{Context, ContextStatistics, End};
use ictd::random::{Purpose, Stream};
use serde::Serialize;

use crate::LabError;

/// How much of a context was examined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Subsample {
    /// Distinct states that were examined.
    pub states: usize,
    /// Of how many.
    pub of: usize,
}

impl Subsample {
    /// What to know of the verdict.
    pub(super) fn warning(&self) -> String {
        format!(
            "{} of {} states, subsample: the verdict is about the subsample; among fewer states each attends to itself more, \
             so that the whole may converge less readily",
            self.states, self.of
        )
    }
}

/// Whole episodes in an order drawn from the seed as long as they have at most `most` distinct states together, or a stretch of
/// the first where that is too long; queries are left out, as no verdict rests on them.
pub(super) fn subsample(
    context: &Context,
    statistics: &ContextStatistics,
    most: usize,
    seed: u64,
) -> Result<Context, LabError> {
    let mut stream = Stream::new(seed, Purpose::Resampling, 0);
    let mut episodes: Vec<(std::ops::Range<usize>, End)> = context.episodes().collect();
    for k in (1..episodes.len()).rev() {
        episodes.swap(k, stream.below(k as u32 + 1) as usize);
    }
    let mut seen = Seen { known: vec![false; statistics.num_groups()], number: 0 };
    let mut taken = Vec::new();
    for (columns, end) in episodes {
        let before = seen.clone();
        columns.clone().for_each(|j| seen.add(statistics.group_of(j)));
        if seen.number > most {
            if taken.is_empty() {
                // More columns than states, so that there is a place to begin.
                let late = columns.end - most;
                let start = columns.start + stream.below((late - columns.start) as u32 + 1) as usize;
                taken.push(stretch(statistics, start..columns.end, end, most, before));
            }
            break;
        }
        taken.push((columns, end));
    }
    taken.sort_by_key(|(columns, _)| columns.start);
    let builder = taken.into_iter().fold(Context::builder(), |builder, (columns, end)| {
        let rows: Vec<&[f64]> = columns.clone().map(|j| context.features_of(j)).collect();
        builder.episode(&rows, &context.rewards()[columns.start..columns.end - 1], end)
    });
    Ok(builder.build()?)
}

/// The first columns that have at most `most` distinct states.
fn stretch(
    statistics: &ContextStatistics,
    columns: std::ops::Range<usize>,
    end: End,
    most: usize,
    mut seen: Seen,
) -> (std::ops::Range<usize>, End) {
    let too_many = columns.clone().find(|&j| {
        seen.add(statistics.group_of(j));
        seen.number > most
    });
    too_many.map_or((columns.clone(), end), |j| (columns.start..j, End::Truncated))
}

/// Which states were met.
#[derive(Clone)]
struct Seen {
    known: Vec<bool>,
    number: usize,
}

impl Seen {
    fn add(&mut self, state: Option<usize>) {
        if let Some(state) = state
            && !std::mem::replace(&mut self.known[state], true)
        {
            self.number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Episodes of as many transitions, no state twice.
    fn context(lengths: &[usize]) -> Context {
        let mut next = 0.0;
        let builder = lengths.iter().fold(Context::builder(), |builder, &length| {
            let rows: Vec<[f64; 1]> = (0..=length).map(|k| [next + k as f64]).collect();
            next += 1000.0;
            builder.episode(&rows, &vec![1.0; length], End::Terminated)
        });
        builder.query(&[0.5]).build().unwrap()
    }

    fn part(context: &Context, most: usize, seed: u64) -> Context {
        subsample(context, &ContextStatistics::per_state(context), most, seed).unwrap()
    }

    #[test]
    fn whole_episodes_are_taken_as_long_as_they_fit() {
        let whole = context(&[10; 20]);
        let found = part(&whole, 35, 0);
        assert_eq!((found.episodes().count(), found.num_transitions(), found.num_queries()), (3, 30, 0));
        assert!(found.episodes().all(|(columns, end)| columns.len() == 11 && end == End::Terminated));
        assert_eq!(found, part(&whole, 35, 0));
        assert!((1..5).any(|seed| part(&whole, 35, seed) != found), "the seed decides");
    }

    #[test]
    fn of_one_long_episode_a_stretch_is_taken() {
        let whole = context(&[500]);
        for seed in 0..20 {
            let found = part(&whole, 40, seed);
            let states = ContextStatistics::per_state(&found).num_groups();
            assert_eq!(states, 40, "seed {seed}");
            let first = found.features_of(0)[0];
            assert!((0..found.num_columns()).all(|j| found.features_of(j)[0] == first + j as f64));
        }
    }
}
