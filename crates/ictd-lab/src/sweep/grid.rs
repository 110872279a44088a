//! Grids that are given by their ends.

use toml::{Table, Value};

/// Points of a grid that is given by its ends.
const MAX_POINTS: i64 = 10_000;
/// Digits that points of a grid are written with: as few as will do, and one less than rounding leaves right.
const FEW_DIGITS: [usize; 3] = [6, 10, 14];
/// The share of its distance to others by which a point may be moved.
const UNSEEN: f64 = 1e-3;

/// `{ from, to, points, scale }`: numbers at equal distances, or at equal ratios where the scale is `log`.
pub fn points(ends: &Table) -> Result<Vec<Value>, String> {
    let expected = "expected { from, to, points } and perhaps scale = \"linear\" or \"log\"";
    if let Some(key) = ends.keys().find(|key| !["from", "to", "points", "scale"].contains(&key.as_str())) {
        return Err(format!(".{key} is no part of a grid, {expected}"));
    }
    let number = |key: &str| match ends.get(key) {
        Some(Value::Integer(x)) => Ok(*x as f64),
        Some(Value::Float(x)) if x.is_finite() => Ok(*x),
        Some(other) => Err(format!(".{key} is {other}, expected a finite number")),
        None => Err(format!(".{key} is missing, {expected}")),
    };
    let (from, to) = (number("from")?, number("to")?);
    let count = match ends.get("points") {
        Some(Value::Integer(count)) if (2..=MAX_POINTS).contains(count) => *count,
        Some(other) => return Err(format!(".points is {other}, expected 2 to {MAX_POINTS}")),
        None => return Err(format!(".points is missing, {expected}")),
    };
    let is_log = match ends.get("scale").map(Value::as_str) {
        None | Some(Some("linear")) => false,
        Some(Some("log")) if from > 0.0 && to > 0.0 => true,
        Some(Some("log")) => {
            return Err(" begins or ends at 0 or below, expected positive numbers for scale = \"log\"".into());
        }
        Some(_) => return Err(format!(".scale is another word, {expected}")),
    };
    let whole = [ends.get("from"), ends.get("to")].iter().all(|end| matches!(end, Some(Value::Integer(_))));
    let at = |k: i64| {
        // The ends as they are given.
        if k == 0 || k == count - 1 {
            return if k == 0 { from } else { to };
        }
        let share = k as f64 / (count - 1) as f64;
        if is_log { from * (share * (to / from).ln()).exp() } else { from + share * (to - from) }
    };
    let exact: Vec<f64> = (0..count).map(at).collect();
    let points = FEW_DIGITS.iter().find_map(|&digits| rounded(&exact, digits)).unwrap_or(exact);
    // Whole numbers between whole ends, where keys count things. Others would be rounded, and be somewhere else.
    let value = |x: f64| match whole {
        true if (x - x.round()).abs() > 1e-9 * x.abs().max(1.0) => {
            let problem = format!(
                " has {x} among its points, expected whole numbers between whole ends, or ends with a point such as {from:?}"
            );
            Err(problem)
        }
        true => Ok(Value::Integer(x.round() as i64)),
        false => Ok(Value::Float(x)),
    };
    points.into_iter().map(value).collect()
}

/// Numbers with so many digits, but for the ends, where that moves none of them by as much as anybody sees beside their distances:
/// 0.3, not 0.30000000000000004, and 0.00316228 between 0.001 and 0.01.
fn rounded(exact: &[f64], digits: usize) -> Option<Vec<f64>> {
    let mut points = exact.to_vec();
    for (k, near) in exact.windows(3).enumerate() {
        let x = near[1];
        points[k + 1] = format!("{x:.*e}", digits - 1).parse().ok()?;
        let distance = (x - near[0]).abs().min((near[2] - x).abs());
        if (points[k + 1] - x).abs() > UNSEEN * distance {
            return None;
        }
    }
    Some(points)
}
