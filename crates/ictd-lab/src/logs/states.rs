//! The states of a log: labels, or vectors of features.

use ictd::matrix::Matrix;

use super::batch::{Batch, NONE};
use super::cell::{self, Failure};
use super::interner::Interner;
use crate::{LabError, memory};

/// The states that a log speaks of, by their numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum States {
    /// Names without further meaning.
    Labels(Vec<String>),
    /// One row of features per state.
    Features {
        /// Names of the features.
        names: Vec<String>,
        /// Row s: the features of state s.
        rows: Matrix,
    },
}

impl States {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Labels(labels) => labels.len(),
            Self::Features { rows, .. } => rows.num_rows(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A state in words: its label, or its features.
    pub fn describe(&self, state: u32) -> String {
        match self {
            Self::Labels(labels) => labels[state as usize].clone(),
            Self::Features { rows, .. } => {
                let texts: Vec<String> = rows.row(state as usize).iter().map(f64::to_string).collect();
                format!("({})", texts.join(", "))
            }
        }
    }
}

/// What a single column of states turned out to be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Text, or anything if so wanted.
    Text,
    /// Whole numbers: labels.
    Whole,
    /// Numbers some of which have a fraction: a feature.
    Number,
}

/// Numbers the states of all batches.
#[derive(Debug)]
pub(crate) struct StateTable {
    known: Interner,
    /// Features per state; 0 for labels.
    width: usize,
    is_label: bool,
    /// With the row in which the kind was first seen.
    kind: Option<(Kind, u64)>,
    /// How often each state was met, where means are wanted.
    visits: Option<Vec<u64>>,
    /// States at which memory is looked at next.
    check_at: usize,
}

impl StateTable {
    /// An empty table of labels (`width` 0) or features.
    pub fn new(width: usize, is_label: bool, counts: bool) -> Self {
        Self {
            known: Interner::default(),
            width,
            is_label,
            kind: None,
            visits: counts.then(Vec::new),
            check_at: 1 << 20,
        }
    }

    /// The number of a batch's state in the whole file; the batch begins at row `first`.
    pub fn number(&mut self, batch: &Batch, local: u32, first: u64, column: &str) -> Result<u32, TableError> {
        let key = batch.table.key(local as usize);
        let number = if self.width > 0 {
            self.known.intern(key).0
        } else {
            let origin = batch.origins[local as usize];
            let canonical = self.canonical(key, u64::from(origin), first, column)?;
            self.known.intern(canonical.as_bytes()).0
        };
        if self.known.len() >= self.check_at {
            self.check_at = 2 * self.known.len();
            // The matrix of features is made of the keys at the end, and numbers of states are kept elsewhere.
            memory::admit(
                2.0 * self.known.memory() + 16.0 * self.known.len() as f64,
                "the number of different states",
            )?;
        }
        Ok(number)
    }

    /// Counts a visit.
    pub fn visit(&mut self, state: u32) {
        if let Some(visits) = &mut self.visits {
            if visits.len() <= state as usize {
                visits.resize(state as usize + 1, 0);
            }
            visits[state as usize] += 1;
        }
    }

    /// A label as it is kept: numbers that are written differently are the same.
    fn canonical(&mut self, key: &[u8], row: u64, first: u64, column: &str) -> Result<String, TableError> {
        let fail = |found: String, expected: String| {
            TableError::Cell(Failure { row, column: column.into(), found, expected })
        };
        let text = std::str::from_utf8(key).map_err(|_| fail(cell::quoted(key), "UTF-8 text".into()))?;
        // Nothing: the mean is put there if these are numbers.
        if self.is_label || text.is_empty() {
            return Ok(text.to_owned());
        }
        let (kind, canonical) = match (cell::whole(text), cell::number(key)) {
            (Some(digits), _) => (Kind::Whole, digits),
            (None, Ok(x)) => (Kind::Number, (x + 0.0).to_string()),
            (None, Err("a number")) => (Kind::Text, text.to_owned()),
            (None, Err(expected)) => return Err(fail(cell::quoted(key), expected.into())),
        };
        match self.kind {
            None => self.kind = Some((kind, first + row)),
            Some((Kind::Whole, seen)) if kind == Kind::Number => self.kind = Some((kind, seen)),
            Some((known, seen)) if (known == Kind::Text) != (kind == Kind::Text) => {
                let expected = if known == Kind::Text { "text" } else { "a number" };
                return Err(fail(
                    cell::quoted(key),
                    format!("{expected} as in row {seen}; if these are labels say --state {column}:label"),
                ));
            }
            Some(_) => {}
        }
        Ok(canonical)
    }

    /// A state in words.
    pub fn describe(&self, state: u32) -> String {
        let key = self.known.key(state as usize);
        if self.width == 0 {
            return String::from_utf8_lossy(key).into_owned();
        }
        let texts: Vec<String> =
            features(key).map(|x| if x.is_nan() { "?".into() } else { x.to_string() }).collect();
        format!("({})", texts.join(", "))
    }

    /// Whether states turned out to be names without further meaning.
    pub fn has_labels(&self) -> bool {
        self.width == 0 && !matches!(self.kind, Some((Kind::Number, _)))
    }

    /// The states in that order; `names` are those of the columns. Also the means that entries were replaced by, and how many.
    pub fn finish(self, order: &[u32], names: Vec<String>) -> Result<(States, Vec<f64>, u64), String> {
        let text = |s: usize| String::from_utf8_lossy(self.known.key(s)).into_owned();
        if self.has_labels() {
            return Ok((States::Labels(order.iter().map(|&s| text(s as usize)).collect()), Vec::new(), 0));
        }
        let (count, width) = (self.known.len(), self.width.max(1));
        let mut rows = Vec::with_capacity(count * width);
        for s in 0..count {
            match self.width {
                0 => rows.push(cell::number(self.known.key(s)).unwrap_or(f64::NAN)),
                _ => rows.extend(features(self.known.key(s))),
            }
        }
        // Means are those of all rows, whether their transitions could be used or not.
        let mut rows = Matrix::from_vec(count, width, rows);
        let (means, replaced) = match &self.visits {
            Some(visits) => fill_with_means(&mut rows, visits, &names)?,
            None => (Vec::new(), 0),
        };
        let chosen = Matrix::from_fn(order.len(), width, |s, a| rows[(order[s] as usize, a)]);
        Ok((States::Features { names, rows: chosen }, means, replaced))
    }
}

/// The number that a label is the usual way to write: `07` is a label of its own.
pub(crate) fn whole_label(label: &str) -> Option<i64> {
    label.parse::<i64>().ok().filter(|n| n.to_string() == label)
}

/// States that transitions were handed on with, in that order: terminal states and those beside gaps are left out.
#[derive(Debug, Default)]
pub(crate) struct Used {
    numbers: Vec<u32>,
    /// States of the file, by their new numbers.
    pub order: Vec<u32>,
}

impl Used {
    /// The new number of a state.
    pub fn number(&mut self, state: u32) -> u32 {
        let known = state as usize;
        if self.numbers.len() <= known {
            self.numbers.resize(known + 1, NONE);
        }
        if self.numbers[known] == NONE {
            self.numbers[known] = self.order.len() as u32;
            self.order.push(state);
        }
        self.numbers[known]
    }
}

/// Why a state is refused.
#[derive(Debug)]
pub(crate) enum TableError {
    /// Because of what a cell says.
    Cell(Failure),
    /// For another reason.
    Other(LabError),
}

impl From<LabError> for TableError {
    fn from(error: LabError) -> Self {
        Self::Other(error)
    }
}

/// The features in a key.
fn features(key: &[u8]) -> impl Iterator<Item = f64> {
    key.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
}

/// Puts the mean of a column over all rows of the file in place of NaN. Sums run over states in sorted order, so that the
/// order of the file does not show.
fn fill_with_means(rows: &mut Matrix, visits: &[u64], names: &[String]) -> Result<(Vec<f64>, u64), String> {
    let mut order: Vec<usize> = (0..rows.num_rows()).collect();
    let by_features = |a: &usize, b: &usize| {
        let pairs = rows.row(*a).iter().zip(rows.row(*b));
        pairs.map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    order.sort_by(by_features);
    let (mut means, mut replaced) = (Vec::new(), 0);
    for column in 0..rows.num_cols() {
        let count = |s: usize| visits.get(s).copied().unwrap_or(0);
        let present = || order.iter().map(|&s| (rows[(s, column)], count(s))).filter(|(x, _)| !x.is_nan());
        let weight: u64 = present().map(|(_, n)| n).sum();
        // Divided first: the sum of large features may leave the range.
        let mean: f64 = present().map(|(x, n)| x * (n as f64 / weight as f64)).sum();
        let missing: Vec<usize> = order.iter().copied().filter(|&s| rows[(s, column)].is_nan()).collect();
        if weight == 0 && !missing.is_empty() {
            let name = names.get(column).map_or("", String::as_str);
            return Err(format!("column {name}: found no value at all, expected some"));
        }
        for s in missing {
            rows[(s, column)] = mean;
            replaced += count(s);
        }
        means.push(mean);
    }
    Ok((means, replaced))
}
