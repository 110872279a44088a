//! Text of others in messages of one line.

/// Characters that a message has at most: what was expected stands at its end, so the middle is left out.
const LONGEST: usize = 1000;

/// The text on one line, for messages that quote what a file or an argument says: line breaks and other control characters
/// are written as escapes, and a very long text loses its middle.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    let length = line.chars().count();
    if length <= LONGEST {
        return line;
    }
    let part = |skip: usize, take: usize| line.chars().skip(skip).take(take).collect::<String>();
    format!("{} … {}", part(0, LONGEST / 2), part(length - LONGEST / 2, LONGEST / 2))
}

/// Text of a file in quotes, a long one cut.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("'{}…'", &text[..end]),
        None => format!("'{text}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_are_escaped_and_long_texts_keep_their_ends() {
        assert_eq!(one_line("é is no key"), "é is no key");
        assert_eq!(one_line("a\nb\0"), "a\\nb\\u{0}");
        let line = one_line(&format!("first{}last", "\n".repeat(10_000)));
        assert!(line.starts_with("first") && line.ends_with("last") && line.chars().count() < 1010, "{line}");
    }
}
