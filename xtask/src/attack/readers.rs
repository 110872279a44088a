//! Damaged files for every reader, in one process: see the example `fuzz_readers`.

use std::io::{self, BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{Case, Class, Fault, Row};

/// Reads the table that the example prints: one row per reader.
pub fn attacks(command: &mut Command) -> io::Result<Vec<Row>> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let lines = child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
    let mut rows: Vec<Row> = Vec::new();
    for line in lines {
        let line = line?;
        eprintln!("{line}");
        if let Some(failure) = line.strip_prefix("  ") {
            let class = if failure.contains("panicked") { Class::Panic } else { Class::Other };
            let number = failure.split("input ").nth(1).and_then(|rest| rest.split(':').next()?.parse().ok());
            let case = Case { line: String::new(), faults: vec![Fault::new(class, failure)] };
            if let Some(row) = rows.last_mut() {
                row.failures.push((number.unwrap_or(0), case));
            }
            continue;
        }
        let mut words = line.split_whitespace();
        if let (Some(name), Some(Ok(cases))) = (words.next(), words.next().map(str::parse)) {
            rows.push(Row { name: format!("readers/{name}"), cases, failures: Vec::new(), seconds: 0.0 });
        }
    }
    let status = child.wait()?;
    // What nothing could catch ended the process before its table was done.
    if !status.success() && rows.iter().all(|row| row.failures.is_empty()) {
        let class = if status.code() == Some(3) { Class::Hang } else { Class::Abort };
        let fault = Fault::new(class, format!("the process ended with {status}"));
        let case = Case { line: format!("{command:?}"), faults: vec![fault] };
        let seconds = start.elapsed().as_secs_f64();
        rows.push(Row { name: "readers/last".into(), cases: 1, failures: vec![(0, case)], seconds });
    }
    Ok(rows)
}
