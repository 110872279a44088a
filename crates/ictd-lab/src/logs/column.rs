//! Columns as Arrow and Parquet keep them: rows of one entry or of a list of them, of which some are absent.

use std::ops::Range;

use super::cell::quoted;
use super::table::{Block, Values};
use crate::memory::{self, DOUBLE};

/// Structures in structures; more are damage.
pub(super) const DEEPEST: usize = 16;
/// What entries may be, for messages about others.
pub(super) const EXPECTED: &str = "expected numbers, truth values or texts";

/// Entries, and which of them are absent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub values: Values,
    /// Places of absent entries, in order.
    absent: Vec<usize>,
    /// Where rows are lists: how many entries each has, none where there is no list.
    lists: Option<Vec<Option<usize>>>,
}

impl Column {
    pub fn new(values: Values) -> Self {
        Self { values, absent: Vec::new(), lists: None }
    }

    /// Entries that stand where rows have one; what stands elsewhere means nothing.
    pub fn with_gaps(mut values: Values, is_there: &[bool]) -> Self {
        let gaps = is_there.iter().enumerate().filter(|(_, there)| !**there);
        let absent: Vec<usize> = gaps.map(|(k, _)| k).collect();
        for &k in &absent {
            match &mut values {
                Values::Float(all) => all[k] = f64::NAN,
                Values::Whole(all) => all[k] = 0,
                Values::Text(all) => all[k].clear(),
            }
        }
        Self { absent, ..Self::new(values) }
    }

    /// Rows are lists.
    pub fn of_lists(values: Values) -> Self {
        Self { lists: Some(Vec::new()), ..Self::new(values) }
    }

    /// A column of so many rows without any entry.
    pub fn of_nothing(rows: usize) -> Self {
        Self::new(Values::Float(vec![f64::NAN; rows]))
    }

    /// Bytes of memory that it takes.
    pub fn size(&self) -> f64 {
        let lists = self.lists.as_ref().map_or(0, Vec::len) * size_of::<Option<usize>>();
        self.values.memory() + 8.0 * self.absent.len() as f64 + lists as f64
    }

    /// Adds entries: one of `found` wherever one is there.
    pub fn spread(&mut self, found: Values, is_there: impl Iterator<Item = bool>) -> Result<(), String> {
        fn put<T: Clone>(
            all: &mut Vec<T>,
            found: Vec<T>,
            is_there: impl Iterator<Item = bool>,
            nothing: T,
            absent: &mut Vec<usize>,
        ) {
            let mut found = found.into_iter();
            for there in is_there {
                match there.then(|| found.next()).flatten() {
                    Some(entry) => all.push(entry),
                    None => {
                        absent.push(all.len());
                        all.push(nothing.clone());
                    }
                }
            }
        }
        let absent = &mut self.absent;
        match (&mut self.values, found) {
            (Values::Float(all), Values::Float(list)) => put(all, list, is_there, f64::NAN, absent),
            (Values::Whole(all), Values::Whole(list)) => put(all, list, is_there, 0, absent),
            (Values::Text(all), Values::Text(list)) => put(all, list, is_there, String::new(), absent),
            _ => return Err("found entries of two kinds, expected one".into()),
        }
        Ok(())
    }

    /// Begins a row that is a list of so many entries, or one that has none.
    pub fn begin_list(&mut self, length: Option<usize>) {
        self.lists.get_or_insert_default().push(length);
    }

    /// Counts one entry more in the list that was begun last.
    pub fn grow_list(&mut self) {
        if let Some(length) = self.lists.as_mut().and_then(|lists| lists.last_mut()) {
            *length = Some(length.unwrap_or(0) + 1);
        }
    }

    /// Adds so many absent entries.
    fn skip(&mut self, count: usize) {
        let length = self.values.len() + count;
        self.absent.extend(self.values.len()..length);
        match &mut self.values {
            Values::Float(all) => all.resize(length, f64::NAN),
            Values::Whole(all) => all.resize(length, 0),
            Values::Text(all) => all.resize(length, String::new()),
        }
    }

    /// Adds entries of another column of the same kind.
    pub fn extend(&mut self, other: &Self, range: Range<usize>) {
        let start = self.values.len();
        let [from, to] = [range.start, range.end].map(|end| other.absent.partition_point(|k| *k < end));
        self.absent.extend(other.absent[from..to].iter().map(|k| start + k - range.start));
        match (&mut self.values, &other.values) {
            (Values::Float(all), Values::Float(list)) => all.extend_from_slice(&list[range]),
            (Values::Whole(all), Values::Whole(list)) => all.extend_from_slice(&list[range]),
            (Values::Text(all), Values::Text(list)) => all.extend_from_slice(&list[range]),
            // The type of a column is that of its first part.
            _ => {}
        }
    }

    /// Adds entries of another column of the same kind by their places; none is an absent one.
    pub fn pick(&mut self, other: &Self, places: &[Option<usize>]) {
        for place in places {
            match place {
                Some(k) => self.extend(other, *k..k + 1),
                None => self.skip(1),
            }
        }
    }

    /// Adds the rows of another column of the same kind.
    pub fn append(&mut self, mut other: Self) {
        if let (Some(all), Some(lists)) = (&mut self.lists, &mut other.lists) {
            all.append(lists);
        }
        self.extend(&other, 0..other.values.len());
    }

    pub fn rows(&self) -> usize {
        self.lists.as_ref().map_or(self.values.len(), Vec::len)
    }

    /// Whether an entry is there.
    pub fn has(&self, place: usize) -> bool {
        self.absent.binary_search(&place).is_err()
    }

    /// How many rows there are, and for lists how many entries a row has; whole numbers of which some are absent, or too large
    /// for their type, are kept as texts. `held` bytes of memory are taken already.
    pub fn finish(self, is_unsigned: bool, held: f64) -> Result<(Vec<usize>, Values), String> {
        let Some(lists) = &self.lists else {
            return Ok((vec![self.values.len()], self.told(is_unsigned, held)?));
        };
        let width = lists.iter().flatten().next().copied();
        for (row, length) in lists.iter().enumerate() {
            match (*length, width) {
                (Some(0), _) => return Err(format!("row {row}: found an empty list, expected numbers")),
                (Some(n), Some(width)) if n != width => {
                    return Err(format!("row {row}: found {n} entries, expected {width} as before"));
                }
                _ => {}
            }
        }
        let Some(width) = width else {
            return match lists.len() {
                0 => Ok((vec![0, 1], self.values)),
                _ => Err("found no list in any row, expected lists of numbers".into()),
            };
        };
        let shape = vec![lists.len(), width];
        let absent = lists.iter().filter(|list| list.is_none()).count();
        if absent == 0 {
            return Ok((shape, self.told(is_unsigned, held)?));
        }
        // Rows without a list take next to nothing in the file.
        let each = 8.0 + if let Values::Text(_) = self.values { Values::text_memory(0) } else { DOUBLE };
        let held = held + self.size() + each * absent as f64 * width as f64;
        admit(held)?;
        let mut whole = Self::new(self.values.none());
        let mut at = 0;
        for list in lists {
            match list {
                Some(_) => {
                    whole.extend(&self, at..at + width);
                    at += width;
                }
                None => whole.skip(width),
            }
        }
        Ok((shape, whole.told(is_unsigned, held)?))
    }

    fn told(self, is_unsigned: bool, held: f64) -> Result<Values, String> {
        let Self { values, absent, .. } = self;
        let Values::Whole(list) = values else { return Ok(values) };
        let is_large = is_unsigned && list.iter().any(|n| *n < 0);
        if absent.is_empty() && !is_large {
            return Ok(Values::Whole(list));
        }
        let text = |n: &i64| if is_unsigned { (*n as u64).to_string() } else { n.to_string() };
        admit(held + Values::text_memory(20) * list.len() as f64)?;
        let mut texts: Vec<String> = list.iter().map(text).collect();
        absent.iter().for_each(|&row| texts[row].clear());
        Ok(Values::Text(texts))
    }
}

fn admit(bytes: f64) -> Result<(), String> {
    memory::admit(bytes, "the number of rows").map_err(|e| e.to_string())
}

/// A text, if these bytes are one.
pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    text.map_err(|_| format!("found {}, expected UTF-8 text", quoted(bytes)))
}

/// A column under the names of the structures that it stands in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaf {
    /// The last one is its own.
    pub names: Vec<String>,
    shape: Vec<usize>,
    values: Values,
}

impl Leaf {
    /// `held` bytes of memory are taken already.
    pub fn new(names: Vec<String>, column: Column, is_unsigned: bool, held: f64) -> Result<Self, String> {
        let found = column.finish(is_unsigned, held);
        let (shape, values) = found.map_err(|message| format!("column {}: {message}", names.join("_")))?;
        Ok(Self { names, shape, values })
    }

    /// Takes lists of one entry for that entry.
    pub fn as_numbers(&mut self) {
        if let [_, 1] = *self.shape {
            self.shape.pop();
        }
    }

    /// Names are joined by underscores, as those of dictionaries in HDF5 are.
    pub fn block(self) -> Block {
        Block::new(&self.names.join("_"), &self.shape, self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_list_are_counted_before_they_take_memory() {
        let mut column = Column::of_lists(Values::Float(Vec::new()));
        column.begin_list(Some(1000));
        column.extend(&Column::of_nothing(1000), 0..1000);
        (0..1000).for_each(|_| column.begin_list(None));
        let limit = ictd::pretrain::MEMORY_LIMIT;
        assert!(column.clone().finish(false, limit - 1.7e7).is_ok());
        let error = column.finish(false, limit - 1.5e7).unwrap_err();
        assert!(error.contains("at most 8 GB: lower the number of rows"), "{error}");
    }

    #[test]
    fn entries_of_lists_are_absent_where_they_were() {
        let mut column = Column::of_lists(Values::Whole(Vec::new()));
        let entries =
            Column::with_gaps(Values::Whole(vec![1, 2, 3, 4, 5, 6]), &[true, true, true, false, true, true]);
        column.begin_list(Some(2));
        column.extend(&entries, 2..4);
        column.begin_list(None);
        column.begin_list(Some(2));
        column.extend(&entries, 4..6);
        let texts = ["3", "", "", "", "5", "6"].map(String::from).to_vec();
        assert_eq!(column.finish(false, 0.0), Ok((vec![3, 2], Values::Text(texts))));
    }
}
