//! The seeds that a study trains, as a user writes them: one meaning in every command.

use std::fmt;
use std::ops::{Deref, Range};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::LabError;

/// More than this are a slip of the hand.
const MOST: u64 = 1_000_000;

/// Different seeds, at least one, in the order in which they were written: `5` for 0 to 4, `3..8` without 8, or a list of
/// seeds and ranges such as `1,4,7` or `0..5,10,20..25`. Each is below `u64::MAX`, so that a range can end after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl Seeds {
    /// The same seeds, the smallest first.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.0.sort_unstable();
        self
    }
}

impl Deref for Seeds {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for Seeds {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let refused = |why: String| {
            let expected = "a number of seeds like 5, a range like 0..5, or a list like 1,4,7..9";
            LabError::value("seeds", format!("'{text}' ({why})"), expected)
        };
        let number = |part: &str| {
            let part = part.trim();
            part.parse::<u64>().map_err(|_| refused(format!("'{part}' is no whole number, 0 or more")))
        };
        let range = |part: &str| -> Result<Range<u64>, LabError> {
            if let Some((first, end)) = part.split_once("..") {
                return Ok(number(first)?..number(end)?);
            }
            let seed = number(part)?;
            // Alone it is how many.
            let is_alone = part.len() == text.len();
            let end = seed.checked_add(1).ok_or_else(|| refused(format!("{seed} is too large")))?;
            Ok(if is_alone { 0..seed } else { seed..end })
        };
        let ranges = text.split(',').map(range).collect::<Result<Vec<_>, _>>()?;
        if let Some(Range { start, end }) = ranges.iter().find(|range| range.is_empty()) {
            return Err(refused(if *start == *end {
                "empty".into()
            } else {
                format!("{end} is below {start}")
            }));
        }
        // Counted before they are listed.
        if ranges.iter().map(|range| range.end - range.start).fold(0, u64::saturating_add) > MOST {
            return Err(refused("more than a million".into()));
        }
        let seeds: Vec<u64> = ranges.into_iter().flatten().collect();
        let mut sorted = seeds.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(refused(format!("{} is given twice", pair[0]))),
            None => Ok(Self(seeds)),
        }
    }
}

/// In the shortest form that cannot be mistaken for a number of seeds: `0..5`, `7..8`, `1,4,7`, `0..5,10`.
impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a.checked_add(1) == Some(*b));
        let alone = runs.clone().nth(1).is_none();
        for (k, run) in runs.enumerate() {
            f.write_str(if k == 0 { "" } else { "," })?;
            match run {
                [seed] if !alone => write!(f, "{seed}")?,
                [first, second] if !alone => write!(f, "{first},{second}")?,
                [first, ..] => write!(f, "{first}..{}", first + run.len() as u64)?,
                [] => {}
            }
        }
        Ok(())
    }
}

impl Serialize for Seeds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<u64> {
        text.parse::<Seeds>().unwrap().to_vec()
    }

    #[test]
    fn numbers_ranges_and_lists_are_read() {
        assert_eq!(read("3"), [0, 1, 2]);
        assert_eq!(read(" 1 "), [0]);
        assert_eq!(read("3..5"), [3, 4]);
        assert_eq!(read("1,4, 7"), [1, 4, 7]);
        assert_eq!(read("0..3,10,20..22"), [0, 1, 2, 10, 20, 21]);
        assert_eq!(read("4,1"), [4, 1], "in the order in which they are written");
        let last = u64::MAX - 1;
        assert_eq!(read(&format!("{last}..{}", u64::MAX)), [last]);
        assert_eq!(read("1000000").len(), 1_000_000);
    }

    #[test]
    fn what_is_no_seeds_is_one_line_that_names_them() {
        for (text, why) in [
            ("", "'' is no whole number"),
            ("0", "empty"),
            ("5..5", "empty"),
            ("5..3", "3 is below 5"),
            ("0..2,4..4", "empty"),
            ("-1", "'-1' is no whole number"),
            ("1,,2", "'' is no whole number"),
            ("1,", "'' is no whole number"),
            ("0..", "'' is no whole number"),
            ("1..2..3", "'2..3' is no whole number"),
            ("a..b", "'a' is no whole number"),
            ("1.5", "'1.5' is no whole number"),
            ("1,1", "1 is given twice"),
            ("0..5,3", "3 is given twice"),
            ("0..5,4..6", "4 is given twice"),
            ("1000001", "more than a million"),
            ("0..600000,600000..1200000", "more than a million"),
            ("0..18446744073709551615,5..18446744073709551615", "more than a million"),
            ("0,18446744073709551615", "too large"),
            ("18446744073709551616", "no whole number"),
        ] {
            let message = text.parse::<Seeds>().unwrap_err().to_string();
            assert!(message.starts_with("seeds is '") && message.contains(why), "{text}: {message}");
            assert_eq!(message.lines().count(), 1);
        }
    }

    #[test]
    fn the_shortest_form_reads_back_as_the_same() {
        for (text, short) in [
            ("5", "0..5"),
            ("1", "0..1"),
            ("7..8", "7..8"),
            ("1,2", "1..3"),
            ("1,4,7", "1,4,7"),
            ("0,1,2,3,4,10,20..25", "0..5,10,20..25"),
            ("0..2,5", "0,1,5"),
            ("4,1", "4,1"),
        ] {
            let seeds: Seeds = text.parse().unwrap();
            assert_eq!(seeds.to_string(), short);
            assert_eq!(short.parse::<Seeds>().unwrap(), seeds);
        }
    }
}
