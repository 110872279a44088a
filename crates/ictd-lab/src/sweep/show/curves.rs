//! Curves of settings: the middle of their runs and the half of them around it, step by step.

use std::collections::BTreeMap;

use ictd::statistics::{Centre, quantile};
use serde::Serialize;

use super::runs::Curve;
use crate::sweep::row::curve_columns;

/// One metric over gradient steps, over the runs of a setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Band {
    /// Steps.
    pub steps: Vec<u64>,
    /// The middle of the runs.
    pub middle: Vec<f64>,
    /// A quarter of them is below.
    pub low: Vec<f64>,
    /// A quarter of them is above.
    pub high: Vec<f64>,
}

impl Band {
    /// Of a column of curves, at no more than `most` steps. Runs that diverged end before others.
    pub fn of(curves: &[Curve], column: usize, centre: Centre, most: usize) -> Self {
        let mut by_step: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for point in curves.iter().flat_map(|curve| &curve.points) {
            let (Some(step), Some(value)) = (point.first(), point.get(column)) else { continue };
            if !value.is_nan() {
                by_step.entry(*step as u64).or_default().push(*value);
            }
        }
        let last = by_step.len().saturating_sub(1);
        let drawn = by_step.len().min(most);
        let is_drawn = |k: usize| drawn < 2 || (0..drawn).any(|i| i * last / (drawn - 1) == k);
        let mut band = Self::default();
        for (k, (step, mut values)) in by_step.into_iter().enumerate() {
            if is_drawn(k) {
                values.sort_unstable_by(f64::total_cmp);
                band.steps.push(step);
                band.middle.push(centre.of(&values));
                band.low.push(quantile(&values, 0.25));
                band.high.push(quantile(&values, 0.75));
            }
        }
        band
    }
}

/// The column of curves that belongs to a column of the table: of what is only known at the end, what comes nearest.
pub fn column_of(metric: &str) -> usize {
    let columns = curve_columns();
    let find = |name: &str| columns.iter().position(|known| known == name);
    let name = metric.trim_start_matches("best.");
    let near = if name.starts_with("msve") { "eval_msve" } else { "td_loss" };
    find(name).or_else(|| find(&format!("eval_{name}"))).or_else(|| find(near)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_taken_step_by_step() {
        let curve = |seed: u64, values: &[f64]| Curve {
            seed,
            points: values.iter().enumerate().map(|(k, v)| vec![10.0 * (k + 1) as f64, *v]).collect(),
        };
        let runs = [
            curve(0, &[1.0, 10.0, 5.0]),
            curve(1, &[2.0, 20.0]),
            curve(2, &[3.0, 60.0, f64::NAN]),
            curve(3, &[4.0]),
            curve(4, &[5.0]),
        ];
        let band = Band::of(&runs, 1, Centre::Median, 10);
        assert_eq!(band.steps, [10, 20, 30]);
        assert_eq!(band.middle, [3.0, 20.0, 5.0]);
        assert_eq!((band.low[0], band.high[0]), (2.0, 4.0));
        assert_eq!((band.low[1], band.high[1]), (15.0, 40.0));
        assert_eq!(Band::of(&runs, 1, Centre::Median, 2).steps, [10, 30], "the ends are among them");
        assert_eq!(Band::of(&[], 1, Centre::Median, 2), Band::default());
    }

    #[test]
    fn every_metric_has_a_curve() {
        let columns = curve_columns();
        for (metric, curve) in [
            ("v_em", "v_em"),
            ("best.a_em_signed", "a_em_signed"),
            ("msve", "eval_msve"),
            ("msve_theta_star", "eval_msve"),
            ("diag_min", "eval_diag_min"),
            ("diag_mean", "diag_mean"),
            ("best.td_loss", "td_loss"),
            ("best_step", "td_loss"),
        ] {
            assert_eq!(columns[column_of(metric)], curve, "{metric}");
        }
    }
}
