//! Words for a shell, in what people copy and in scripts.

/// A word as a POSIX shell takes it: in single quotes where signs in it would mean something.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "=_-.,/:+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_must_be() {
        for (word, quoted) in [
            ("init.gain=0.1", "init.gain=0.1"),
            ("list=[1, 2]", "'list=[1, 2]'"),
            ("it's", "'it'\\''s'"),
            ("out/my sweep", "'out/my sweep'"),
            ("$HOME;ls", "'$HOME;ls'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
