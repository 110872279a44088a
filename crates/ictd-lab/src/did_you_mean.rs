//! What a mistyped name was probably meant to be.

/// "; did you mean 'query'?" where a known name is close to the one typed, else nothing: one slip in a short name, one in
/// three letters of a longer one.
pub fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    // The comparison costs the product of the lengths, and no name is this long.
    if typed.len() > 200 {
        return String::new();
    }
    let near = known.into_iter().map(|name| (strsim::osa_distance(typed, name), name));
    let closest = near.min_by_key(|(distance, _)| *distance);
    match closest.filter(|(distance, _)| *distance <= (typed.chars().count() / 3).max(1)) {
        Some((_, name)) => format!("; did you mean '{name}'?"),
        None => String::new(),
    }
}
