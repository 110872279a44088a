//! What came of the attacks, as a table.

use std::fmt::Write as _;
use std::{fs, io};

use super::{Case, Class, Fault};

/// The page with the table of the latest run, and what stands around it there.
const PAGE: &str = "docs/reliability.md";
const MARKS: [&str; 2] = ["<!-- attack table -->\n", "<!-- end of attack table -->"];
/// Where a run leaves its table.
pub const FILE: &str = "target/attack/table.md";
/// Characters of a line of theirs.
const WIDTH: usize = 600;

/// An attack and its failures, by case.
pub struct Row {
    pub name: String,
    pub cases: u64,
    pub failures: Vec<(u64, Case)>,
    pub seconds: f64,
}

impl Row {
    fn count(&self, class: Class) -> usize {
        let has = |case: &Case| case.faults.iter().any(|fault| fault.class == class);
        self.failures.iter().filter(|(_, case)| has(case)).count()
    }
}

/// The table in Markdown; a case with faults of several classes is counted in each of them.
pub fn markdown(rows: &[Row]) -> String {
    let headings: String = Class::ALL.map(|(_, heading)| format!(" {heading} |")).concat();
    let mut text = format!("| attack | cases |{headings}\n|---|---:|{}\n", "---:|".repeat(Class::ALL.len()));
    let mut line = |name: &str, cases: u64, counts: &dyn Fn(Class) -> usize| {
        let counts: String = Class::ALL.map(|(class, _)| format!(" {} |", counts(class))).concat();
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {name} | {cases} |{counts}");
    };
    for row in rows {
        line(&row.name, row.cases, &|class| row.count(class));
    }
    let all = |class| rows.iter().map(|row| row.count(class)).sum();
    line("all", rows.iter().map(|row| row.cases).sum(), &all);
    text
}

/// So many first failures of each class, with what repeats them.
pub fn failures(rows: &[Row], listed: usize) -> String {
    let mut text = String::new();
    for row in rows {
        for (class, heading) in Class::ALL {
            let of_class = |case: &Case| case.faults.iter().find(|f| f.class == class).cloned();
            let found = row.failures.iter().filter_map(|(n, case)| Some((n, &case.line, of_class(case)?)));
            for (number, line, Fault { what, .. }) in found.take(listed) {
                let cut = |text: &str| text.chars().take(WIDTH).collect::<String>();
                let _ =
                    writeln!(text, "{heading}: cargo xtask attack {} {number}\n  {}", row.name, cut(line));
                let _ = writeln!(text, "  {}", cut(&what));
            }
        }
    }
    text
}

/// Copies the table of the last run to its page.
pub fn publish() -> io::Result<()> {
    let (page, table) = (fs::read_to_string(PAGE)?, fs::read_to_string(FILE)?);
    let parts =
        page.split_once(MARKS[0]).and_then(|(before, rest)| Some((before, rest.split_once(MARKS[1])?.1)));
    let (before, after) =
        parts.ok_or_else(|| io::Error::other(format!("{PAGE} has no place for the table")))?;
    fs::write(PAGE, format!("{before}{}\n{table}\n{}{after}", MARKS[0], MARKS[1]))
}
