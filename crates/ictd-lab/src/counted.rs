//! Numbers of things in words.

/// `1 seed`, `2 seeds`.
pub(crate) fn counted(number: impl TryInto<u64>, thing: &str) -> String {
    // A number that is too large is more than one.
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!([0, 1, 2].map(|n: usize| counted(n, "seed")), ["0 seeds", "1 seed", "2 seeds"]);
    }
}
