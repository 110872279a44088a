//! What a cell of a table says: a number, yes or no, a time, or nothing.

pub(crate) use crate::one_line::quoted;

/// A cell that is refused: where, what was found, and what was expected.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// Relative to the first row of its batch.
    pub row: u64,
    /// Empty when the row as a whole is meant.
    pub column: String,
    pub found: String,
    pub expected: String,
}

impl Failure {
    /// A cell with text that is not what it should be.
    pub fn cell(row: usize, column: &str, found: &[u8], expected: impl Into<String>) -> Self {
        let found = if found.is_empty() { "no value".into() } else { quoted(found) };
        Self { row: row as u64, column: column.into(), found, expected: expected.into() }
    }

    /// A row as a whole.
    pub fn row(row: usize, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { row: row as u64, column: String::new(), found: found.into(), expected: expected.into() }
    }

    /// The message after the place of the row.
    pub fn text(&self) -> String {
        let column = if self.column.is_empty() { String::new() } else { format!(", column {}", self.column) };
        format!("{column}: found {}, expected {}", self.found, self.expected)
    }
}

/// Ways to say that there is no value.
pub(crate) fn is_missing(cell: &[u8]) -> bool {
    const MISSING: [&[u8]; 12] =
        [b"NA", b"N/A", b"n/a", b"#N/A", b"NaN", b"nan", b"NAN", b"null", b"NULL", b"None", b"<NA>", b"NaT"];
    cell.is_empty() || (cell.len() <= 4 && MISSING.contains(&cell))
}

/// A finite number, or what was expected instead.
pub(crate) fn number(cell: &[u8]) -> Result<f64, &'static str> {
    let text = std::str::from_utf8(cell).map_err(|_| "a number")?;
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        Ok(_) => Err("a finite number"),
        Err(_) => Err(why_no_number(text)),
    }
}

fn why_no_number(text: &str) -> &'static str {
    let digits = text.bytes().all(|b| b.is_ascii_digit() || b",.'_ +-".contains(&b));
    if !digits || !text.bytes().any(|b| b.is_ascii_digit()) {
        return "a number";
    }
    let mut groups = text.trim_start_matches(['+', '-']).split([',', '\'', '_', ' ']);
    let first = groups.next().unwrap_or_default();
    let in_threes = groups.clone().count() > 0
        && (1..=3).contains(&first.len())
        && groups.all(|g| g.split('.').next().is_some_and(|whole| whole.len() == 3));
    if in_threes {
        "a number without thousands separators"
    } else if text.contains(',') {
        "a number with a decimal point"
    } else {
        "a number"
    }
}

/// A whole number as it is written without a plus and leading zeros. One that is too large for an integer is the name of
/// something: as a number it would not be told apart from its neighbours.
pub(crate) fn whole(text: &str) -> Option<String> {
    if let Ok(n) = text.parse::<i64>() {
        return Some(n.to_string());
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let sign = if text.starts_with('-') { "-" } else { "" };
    is_whole.then(|| format!("{sign}{}", digits.trim_start_matches('0')))
}

/// Yes or no.
pub(crate) fn flag(cell: &[u8]) -> Option<bool> {
    match cell {
        b"0" | b"false" | b"False" | b"FALSE" | b"0.0" | b"no" | b"No" | b"f" | b"F" => Some(false),
        b"1" | b"true" | b"True" | b"TRUE" | b"1.0" | b"yes" | b"Yes" | b"t" | b"T" => Some(true),
        _ => None,
    }
}

/// A number, or a date with or without a time of day as seconds since 1970; and whether it is a date.
pub(crate) fn time(cell: &[u8]) -> Result<(f64, bool), &'static str> {
    if cell.len() >= 10 && cell[4] == b'-' && cell[7] == b'-' {
        let seconds = date(cell).ok_or("a date as 2026-01-31 or 2026-01-31T12:30:00")?;
        return Ok((seconds, true));
    }
    let explain = |why| if why == "a number" { "a number or a date as 2026-01-31" } else { why };
    number(cell).map(|x| (x, false)).map_err(explain)
}

fn date(cell: &[u8]) -> Option<f64> {
    let whole = |from: usize, to: usize| -> Option<i64> {
        let part = cell.get(from..to)?;
        let digits = part.iter().all(u8::is_ascii_digit);
        digits.then(|| part.iter().fold(0, |n, b| 10 * n + i64::from(b - b'0')))
    };
    let (year, month, day) = (whole(0, 4)?, whole(5, 7)?, whole(8, 10)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=longest).contains(&day) {
        return None;
    }
    // Days since 1970 of the proleptic Gregorian calendar; the year begins in March.
    let y = year - i64::from(month <= 2);
    let (era, m) = (y.div_euclid(400), (month + 9) % 12);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * m + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let mut seconds = days as f64 * 86_400.0;
    let mut rest = &cell[10..];
    if !rest.is_empty() {
        if !matches!(rest[0], b'T' | b' ') || rest.get(3) != Some(&b':') {
            return None;
        }
        let (hour, minute) = (whole(11, 13)?, whole(14, 16)?);
        rest = &cell[16..];
        let mut second = 0.0;
        if rest.first() == Some(&b':') {
            let end = rest[1..]
                .iter()
                .position(|b| !b.is_ascii_digit() && *b != b'.')
                .map_or(rest.len(), |k| k + 1);
            second = std::str::from_utf8(&rest[1..end]).ok()?.parse::<f64>().ok()?;
            rest = &rest[end..];
        }
        let offset = match rest {
            b"" | b"Z" => 0.0,
            [sign @ (b'+' | b'-'), h1, h0, m1, m0] | [sign @ (b'+' | b'-'), h1, h0, b':', m1, m0] => {
                if [h1, h0, m1, m0].iter().any(|digit| !digit.is_ascii_digit()) {
                    return None;
                }
                let two = |a: &u8, b: &u8| f64::from(10 * (a - b'0') + b - b'0');
                let size = 3600.0 * two(h1, h0) + 60.0 * two(m1, m0);
                if *sign == b'+' { size } else { -size }
            }
            _ => return None,
        };
        if !(hour < 24 && minute < 60 && second < 61.0) {
            return None;
        }
        seconds += (3600 * hour + 60 * minute) as f64 + second - offset;
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_others_explained() {
        assert_eq!(number(b"-1.5e3"), Ok(-1500.0));
        assert_eq!(number(b".5"), Ok(0.5));
        for (text, expected) in [
            ("1,234", "a number without thousands separators"),
            ("1,234,567.5", "a number without thousands separators"),
            ("1'000", "a number without thousands separators"),
            ("0,5", "a number with a decimal point"),
            ("1.234,5", "a number with a decimal point"),
            ("five", "a number"),
            ("-", "a number"),
            ("12 kg", "a number"),
            ("inf", "a finite number"),
            ("1e999", "a finite number"),
        ] {
            assert_eq!(number(text.as_bytes()), Err(expected), "{text}");
        }
    }

    #[test]
    fn dates_are_seconds_since_1970() {
        for (text, seconds) in [
            ("1970-01-01", 0.0),
            ("1969-12-31", -86_400.0),
            ("2000-03-01", 951_868_800.0),
            ("2024-02-29T12:30:15.5Z", 1_709_209_815.5),
            ("2024-02-29 12:30", 1_709_209_800.0),
            ("2024-02-29T12:30:00+02:00", 1_709_202_600.0),
            ("1970-01-01T00:00:00-0100", 3600.0),
        ] {
            assert_eq!(time(text.as_bytes()), Ok((seconds, true)), "{text}");
        }
        for text in [
            "2023-02-29",
            "2023-13-01",
            "2023-01-00",
            "2023-01-01x",
            "2023-01-01T25:00",
            "2023-01-01T10",
            "2026-01-01T00:00:00+xy:zz",
        ] {
            assert!(time(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(time(b"17.5"), Ok((17.5, false)));
    }

    #[test]
    fn flags_are_not_guessed() {
        assert_eq!((flag(b"True"), flag(b"0"), flag(b"2"), flag(b"")), (Some(true), Some(false), None, None));
    }
}
