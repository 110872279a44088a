//! Where in a TOML file a key stands, for messages about its value.

use std::ops::Range;

use toml::de::DeTable;

use super::settings::TASK_KEYS;

/// The message with the line before it that the key stands in which it begins with; as it is where the file has no such key.
pub(super) fn with_line(text: &str, message: &str) -> String {
    let key = message.split([' ', ':']).next().unwrap_or_default();
    let outside = |(old, name): &(&'static str, &str)| {
        (key == format!("task.{name}") || key == *name).then_some((*old).to_owned())
    };
    // Keys have older names and places.
    let names = [key.to_owned(), format!("task.{key}"), key.replace("temperature", "tau")];
    let span =
        names.into_iter().chain(TASK_KEYS.iter().filter_map(outside)).find_map(|name| span(text, &name));
    match span {
        Some(span) => format!("line {}: {message}", line(text, &span)),
        None => message.to_owned(),
    }
}

/// The line, from 1, that a part of the text begins in.
pub(super) fn line(text: &str, span: &Range<usize>) -> usize {
    1 + text.bytes().take(span.start).filter(|b| *b == b'\n').count()
}

/// Where a dotted key stands.
fn span(text: &str, dotted: &str) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let (mut table, mut found) = (table.get_ref(), None);
    for name in dotted.split('.') {
        let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
        found = Some(key.span());
        match value.get_ref().as_table() {
            Some(inner) => table = inner,
            // What is below a value is not there.
            None => return found.filter(|_| dotted.ends_with(name)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_they_stand() {
        let text = "# a comment\nstates = 3\n\n[optimizer]\nlr = 1\n[task]\ngamma = 0.5\n[source]\n";
        for (message, found) in [
            ("states is 3, expected 4", "line 2: states is 3, expected 4"),
            ("task.states: no", "line 2: task.states: no"),
            ("optimizer.lr: no", "line 5: optimizer.lr: no"),
            ("task.gamma: no", "line 7: task.gamma: no"),
            ("source is set", "line 8: source is set"),
            ("lr: no", "lr: no"),
            ("", ""),
        ] {
            assert_eq!(with_line(text, message), found);
        }
        assert_eq!(with_line("tau = 3", "temperature is 3"), "line 1: temperature is 3");
    }
}
