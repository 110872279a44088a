//! How results show themselves: to a person, to a program, in files.

mod page;
mod records;

pub(crate) use page::{escape, page};
pub use records::Records;

use serde::Serialize;

use crate::LabError;
use crate::figure::Scene;
use crate::files::OutputDir;

/// Space between columns of text.
const GAP: usize = 2;
/// Columns of words are not made narrower than this.
const NARROWEST: usize = 12;

/// A result that shows itself: as JSON, which it serialises to, as text, as figures and as tables.
pub trait Report: Serialize {
    /// For a person, in lines of at most `width` characters.
    fn text(&self, width: usize) -> String;

    /// Figures, with the names of their files without endings.
    fn figures(&self) -> Vec<(String, Scene)> {
        Vec::new()
    }

    /// Records for CSV files.
    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(Vec::new())
    }

    /// The records of these names as text, numbers rounded, a blank line after each.
    fn shown(&self, names: &[&str], width: usize) -> String {
        // Records that have no table are an error of whoever writes them, not of whoever reads.
        let tables = self.tables().unwrap_or_default();
        let named = names.iter().filter_map(|name| tables.iter().find(|t| t.name() == *name));
        named.map(|records| records.table().text(width) + "\n").collect()
    }

    /// The name of the JSON file that has the whole result; `None` where figures and tables say everything.
    fn json_name(&self) -> Option<&str> {
        None
    }

    /// Whether what was checked holds; true where nothing was.
    fn holds(&self) -> bool {
        true
    }

    /// Writes tables, figures and JSON.
    fn write(&self, out: &OutputDir) -> Result<(), LabError>
    where
        Self: Sized,
    {
        let (tables, figures) = (self.tables()?, self.figures());
        out.expect(tables.len(), figures.len(), usize::from(self.json_name().is_some()));
        tables.iter().try_for_each(|records| out.records(records))?;
        figures.iter().try_for_each(|(name, figure)| out.figure(name, figure))?;
        self.json_name().map_or(Ok(()), |name| out.json(name, self))
    }
}

/// Several results of a kind, one after the other; each writes its own files.
impl<R: Report> Report for Vec<R> {
    fn text(&self, width: usize) -> String {
        self.iter().map(|report| report.text(width) + "\n").collect()
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        self.iter().flat_map(Report::figures).collect()
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        let tables = self.iter().map(Report::tables).collect::<Result<Vec<_>, _>>()?;
        Ok(tables.into_iter().flatten().collect())
    }

    fn holds(&self) -> bool {
        self.iter().all(Report::holds)
    }

    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        self.iter().try_for_each(|report| report.write(out))
    }
}

/// Headings and rows of cells, as they shall be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Columns of words besides the first: aligned to the left, and wrapped where space is short.
    words: Vec<usize>,
    /// Columns from the left that say which row it is.
    keys: usize,
}

impl Table {
    /// A table with numbers in all columns but the first.
    pub fn new<H: AsRef<str>>(header: &[H], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let header = header.iter().map(|h| h.as_ref().to_owned()).collect();
        Self { header, rows: rows.into_iter().collect(), words: Vec::new(), keys: 1 }
    }

    /// Says which columns have words in them, besides the first.
    #[must_use]
    pub fn words(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.words.extend(columns);
        self
    }

    /// Says how many columns from the left name a row, and stand before every part of a table that is too wide.
    #[must_use]
    fn keys(self, keys: usize) -> Self {
        Self { keys, ..self }
    }

    /// As text in lines of at most `width` characters: words and headings are wrapped first, then columns that do not fit
    /// follow below, beside the columns that name a row.
    pub fn text(&self, width: usize) -> String {
        let columns = self.header.len();
        if columns == 0 {
            return String::new();
        }
        let width = width.max(2 * NARROWEST + GAP);
        let words: Vec<bool> = (0..columns).map(|c| c == 0 || self.words.contains(&c)).collect();
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * (columns - 1);
        let natural = |one_line: bool| (0..columns).map(|c| self.natural_width(c, one_line)).collect();
        let mut widths: Vec<usize> = natural(true);
        if total(&widths) > width {
            widths = natural(false);
        }
        // The widest column of words gives way first.
        let full = widths.clone();
        while total(&widths) > width {
            let widest = (0..columns).filter(|&c| words[c] && widths[c] > NARROWEST);
            let Some(widest) = widest.max_by_key(|&c| widths[c]) else { break };
            widths[widest] -= 1;
        }
        if total(&widths) > width {
            // Columns will follow below anyway: words get their share of the line again.
            let share =
                |(c, &w): (usize, &usize)| if words[c] { w.min((width / 3).max(NARROWEST)) } else { w };
            widths = full.iter().enumerate().map(share).collect();
        }
        // Names that leave no room for anything else are left to the first column.
        let named = |keys: usize| widths[..keys].iter().sum::<usize>() + GAP * (keys - 1);
        let keys = if self.keys < columns && 2 * named(self.keys) <= width { self.keys } else { 1 };
        let mut text = String::new();
        let mut next = keys;
        loop {
            let mut block: Vec<usize> = (0..keys).collect();
            let mut used = named(keys);
            while next < columns && (block.len() == keys || used + GAP + widths[next] <= width) {
                used += GAP + widths[next];
                block.push(next);
                next += 1;
            }
            self.block(&mut text, &block, &widths, &words);
            if next >= columns {
                return text;
            }
            text.push('\n');
        }
    }

    /// What the cells of a column need, and its heading: on one line, or its longest word.
    fn natural_width(&self, column: usize, one_line: bool) -> usize {
        let length = |text: &str| text.chars().count();
        let heading = &self.header[column];
        let longest = heading.split_whitespace().map(length).max().unwrap_or(0);
        let cells = self.rows.iter().map(|row| length(&row[column])).max().unwrap_or(0);
        cells.max(if one_line { length(heading) } else { longest })
    }

    fn block(&self, text: &mut String, columns: &[usize], widths: &[usize], words: &[bool]) {
        line(text, &self.header, columns, widths, words);
        let rule: Vec<String> = columns.iter().map(|&c| "-".repeat(widths[c])).collect();
        text.push_str(&rule.join(&" ".repeat(GAP)));
        text.push('\n');
        self.rows.iter().for_each(|row| line(text, row, columns, widths, words));
    }
}

/// One row, on as many lines as its tallest cell needs.
fn line(text: &mut String, cells: &[String], columns: &[usize], widths: &[usize], words: &[bool]) {
    let wrapped: Vec<Vec<String>> = columns.iter().map(|&c| wrap(&cells[c], widths[c])).collect();
    for k in 0..wrapped.iter().map(Vec::len).max().unwrap_or(0) {
        let mut line = String::new();
        for (lines, &c) in wrapped.iter().zip(columns) {
            let (cell, width) = (lines.get(k).map_or("", String::as_str), widths[c]);
            if !line.is_empty() || c != columns[0] {
                line.push_str(&" ".repeat(GAP));
            }
            line += &if words[c] { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// A text broken at spaces into lines of at most `width` characters; longer words are cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + rest.len() > width {
            lines.push(String::new());
            used = 0;
        }
        let last = lines.len() - 1;
        if used > 0 {
            lines[last].push(' ');
            used += 1;
        }
        while rest.len() > width.max(1) {
            let tail = rest.split_off(width.max(1));
            let last = lines.len() - 1;
            lines[last].extend(rest);
            lines.push(String::new());
            rest = tail;
        }
        used += rest.len();
        let last = lines.len() - 1;
        lines[last].extend(rest);
    }
    lines
}

/// Every line of a text broken at spaces to at most `width` characters, what follows indented by two more.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut all = String::new();
    for line in text.lines() {
        if line.chars().count() <= width {
            all += line;
            all.push('\n');
            continue;
        }
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let room = width.saturating_sub(indent + 2).max(NARROWEST);
        for (k, part) in wrap(line, room).into_iter().enumerate() {
            all += &format!("{}{part}\n", " ".repeat(if k == 0 { indent } else { indent + 2 }));
        }
    }
    all
}
