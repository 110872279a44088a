//! Tables: as CSV, and as text that fits a width.

use csv::{ReaderBuilder, StringRecord, Writer};
use serde::Serialize;

use crate::LabError;

/// Space between columns of text.
const GAP: usize = 2;
/// Columns of words are not made narrower than this.
const NARROWEST: usize = 12;

/// Named columns and rows of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    name: String,
    header: Vec<String>,
    /// All cells, row by row: one buffer, because tables of a context's values have millions.
    cells: StringRecord,
    /// Columns of words besides the first: aligned to the left, and wrapped where space is short.
    words: Vec<usize>,
    /// Whether it is of records: text then rounds numbers, which they have in full, and finds the words itself.
    rounds: bool,
}

impl Table {
    /// A table for a terminal: cells as they shall be read.
    pub fn new<H: AsRef<str>>(header: &[H], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        Self {
            name: String::new(),
            header: header.iter().map(|h| h.as_ref().to_owned()).collect(),
            cells: rows.into_iter().flatten().collect(),
            words: Vec::new(),
            rounds: false,
        }
    }

    /// A table for a file: one record per row, its fields the columns, numbers in their shortest exact form.
    pub fn of<R: Serialize>(name: &str, records: impl IntoIterator<Item = R>) -> Result<Self, LabError> {
        let mut writer = Writer::from_writer(Vec::new());
        for record in records {
            writer.serialize(record).map_err(failed)?;
        }
        let bytes = writer.into_inner().map_err(|e| failed(e.to_string()))?;
        let mut reader = ReaderBuilder::new().has_headers(false).from_reader(bytes.as_slice());
        let (mut header, mut cells, mut row) = (Vec::new(), StringRecord::new(), StringRecord::new());
        while reader.read_record(&mut row).map_err(failed)? {
            if header.is_empty() {
                header = row.iter().map(str::to_owned).collect();
            } else {
                cells.extend(row.iter());
            }
        }
        Ok(Self { name: name.to_owned(), header, cells, words: Vec::new(), rounds: true })
    }

    /// Only the columns of these names, in this order, of a table of records.
    #[must_use]
    pub fn only(&self, names: &[&str]) -> Self {
        let columns: Vec<usize> =
            names.iter().filter_map(|name| self.header.iter().position(|h| h == name)).collect();
        Self {
            name: self.name.clone(),
            header: columns.iter().map(|&c| self.header[c].clone()).collect(),
            cells: self.rows().flat_map(|row| columns.iter().map(|&c| row[c]).collect::<Vec<_>>()).collect(),
            words: Vec::new(),
            rounds: true,
        }
    }

    /// Says which columns have words in them, besides the first.
    #[must_use]
    pub fn words(mut self, columns: &[usize]) -> Self {
        self.words.extend(columns);
        self
    }

    /// The name of its file, without an ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rows.
    fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        let (columns, len) = (self.header.len().max(1), self.cells.len());
        (0..len / columns)
            .map(move |r| (0..columns).filter_map(|c| self.cells.get(r * columns + c)).collect())
    }

    /// As CSV, header first; empty without records, whose columns nobody knows.
    pub fn csv(&self) -> Result<String, LabError> {
        let mut writer = Writer::from_writer(Vec::new());
        if !self.header.is_empty() {
            writer.write_record(&self.header).map_err(failed)?;
        }
        for row in self.rows() {
            writer.write_record(row).map_err(failed)?;
        }
        let bytes = writer.into_inner().map_err(|e| failed(e.to_string()))?;
        String::from_utf8(bytes).map_err(failed)
    }

    /// As text in lines of at most `width` characters: words and headings are wrapped first, then columns that do not fit
    /// follow below, beside the first column again.
    pub fn text(&self, width: usize) -> String {
        let columns = self.header.len();
        if columns == 0 {
            return String::new();
        }
        let width = width.max(2 * NARROWEST + GAP);
        let shown = |cell: &str| if self.rounds { rounded(cell) } else { cell.to_owned() };
        let rows: Vec<Vec<String>> = self.rows().map(|row| row.into_iter().map(shown).collect()).collect();
        let is_word = |row: &Vec<String>, c: usize| !row[c].is_empty() && row[c].parse::<f64>().is_err();
        let is_words = |c: usize| {
            c == 0 || self.words.contains(&c) || (self.rounds && rows.iter().any(|row| is_word(row, c)))
        };
        let words: Vec<bool> = (0..columns).map(is_words).collect();
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * (columns - 1);
        let natural = |one_line: bool| (0..columns).map(|c| self.natural_width(c, &rows, one_line)).collect();
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
        let mut text = String::new();
        let mut next = 1;
        loop {
            let mut block = vec![0];
            let mut used = widths[0];
            while next < columns && (block.len() == 1 || used + GAP + widths[next] <= width) {
                used += GAP + widths[next];
                block.push(next);
                next += 1;
            }
            self.block(&mut text, &block, &widths, &words, &rows);
            if next >= columns {
                return text;
            }
            text.push('\n');
        }
    }

    /// What the cells of a column need, and its heading: on one line, or its longest word.
    fn natural_width(&self, column: usize, rows: &[Vec<String>], one_line: bool) -> usize {
        let length = |text: &str| text.chars().count();
        let heading = &self.header[column];
        let longest = heading.split_whitespace().map(length).max().unwrap_or(0);
        let cells = rows.iter().map(|row| length(&row[column])).max().unwrap_or(0);
        cells.max(if one_line { length(heading) } else { longest })
    }

    fn block(
        &self,
        text: &mut String,
        columns: &[usize],
        widths: &[usize],
        words: &[bool],
        rows: &[Vec<String>],
    ) {
        line(text, &self.header, columns, widths, words);
        let rule: Vec<String> = columns.iter().map(|&c| "-".repeat(widths[c])).collect();
        text.push_str(&rule.join(&" ".repeat(GAP)));
        text.push('\n');
        rows.iter().for_each(|row| line(text, row, columns, widths, words));
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

/// A number to four digits; anything else, and whole numbers, as they are.
fn rounded(cell: &str) -> String {
    let whole = |cell: &str| cell.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    match cell.parse::<f64>() {
        Ok(x) if !whole(cell) && x.is_finite() => {
            if x == 0.0 || (1e-2..1e4).contains(&x.abs()) {
                format!("{x:.4}")
            } else {
                format!("{x:.3e}")
            }
        }
        _ => cell.to_owned(),
    }
}

fn failed(error: impl Into<crate::error::Cause>) -> LabError {
    LabError::internal("table", error)
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
