//! What of a sweep is looked at: a metric, a statistic, two axes.

use std::collections::HashMap;

use ictd::statistics::Centre;

use super::estimate::Statistic;
use super::runs::Runs;
use crate::figure::Label;
use crate::sweep::CASE;
use crate::sweep::row::{self, is_number};
use crate::{LabError, did_you_mean};

/// Instead of the vertical axis: everything but the horizontal one is put together.
pub const POOLED: &str = "none";
/// Characters that a number may have before it is written with a power of ten.
const MOST_DIGITS: usize = 8;
/// What is looked at where nobody says: the first of these that is known.
const METRICS: [&str; 2] = ["msve", "v_em"];

/// What was asked for; what was not follows from the plan.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// A column of the table.
    pub metric: Option<String>,
    /// A statistic by name.
    pub statistic: Option<Statistic>,
    /// The key along the horizontal axis.
    pub x: Option<String>,
    /// The key along the vertical axis, or [`POOLED`].
    pub y: Option<String>,
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// A place among the metrics.
    pub metric: usize,
    /// What is said of a cell.
    pub statistic: Statistic,
    /// A place among the keys that vary; none where nothing does.
    pub x: Option<Axis>,
    /// The same, for maps.
    pub y: Option<Axis>,
}

/// A key that varies, and the values it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name.
    pub key: String,
    /// The same with the keys that change together with it, as figures have it.
    pub label: String,
    /// Its values in the order of the plan.
    pub values: Vec<String>,
    /// The place of every setting's value.
    pub places: Vec<usize>,
}

impl View {
    /// Of what was asked for.
    pub fn of(runs: &Runs, asked: &Asked) -> Result<Self, LabError> {
        let names: Vec<&str> = runs.metrics.iter().map(|m| m.name.as_str()).collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let metric = match &asked.metric {
            None => METRICS.iter().find_map(|name| place(name)).unwrap_or(0),
            Some(name) => place(name).ok_or_else(|| {
                let why = match row::columns().contains(name) {
                    true if is_number(name) => ", which was not measured",
                    true => ", which is no number",
                    false => "",
                };
                let meant = did_you_mean(name, names.iter().copied());
                LabError::value(
                    "metric",
                    format!("'{name}'{why}"),
                    format!("one of {}{meant}", names.join(", ")),
                )
            })?,
        };
        let default = if asked.metric.is_some() { Statistic::ALL[4].1 } else { Statistic::ALL[0].1 };
        let (x, y) = axes(runs, asked)?;
        let axis = |key: usize| Axis::of(runs, key);
        Ok(Self { metric, statistic: asked.statistic.unwrap_or(default), x: x.map(axis), y: y.map(axis) })
    }

    /// The middle of curves: that of the statistic, or the median beside shares.
    pub fn middle(&self) -> Centre {
        if let Statistic::Centre(centre) = self.statistic { centre } else { Centre::Median }
    }

    /// What tells a setting from others, as figures have it: numbers with their keys, words without.
    pub fn name(&self, runs: &Runs, setting: usize) -> String {
        let part = |key: usize| {
            let (key, value) = (&runs.varied[key], &runs.settings[setting][key]);
            let name = shown(key, value);
            if value.parse::<f64>().is_ok() { format!("{key} = {name}") } else { name }
        };
        axes_of_plan(runs).into_iter().flatten().map(part).collect::<Vec<_>>().join(", ")
    }

    /// The keys that neither axis has, whose values stand in one cell; not those that change together with an axis.
    pub fn pooled<'a>(&self, runs: &'a Runs) -> Vec<&'a str> {
        let is_axis =
            |key: &usize| [&self.x, &self.y].into_iter().flatten().any(|axis| axis.key == runs.varied[*key]);
        let others = axes_of_plan(runs).into_iter().filter(|keys| !keys.iter().any(is_axis));
        others.flatten().map(|key| runs.varied[key].as_str()).collect()
    }
}

/// The places of the horizontal and the vertical key. Unless somebody chose, rows are what the plan varies first and columns what it
/// varies next, as in its table.
fn axes(runs: &Runs, asked: &Asked) -> Result<(Option<usize>, Option<usize>), LabError> {
    let keys = &runs.varied;
    let find = |option: &'static str, key: &String| {
        keys.iter().position(|known| known == key).ok_or_else(|| {
            let known = if keys.is_empty() {
                "no key, as none varies".to_owned()
            } else {
                format!("one of {}", keys.join(", "))
            };
            let meant = did_you_mean(key, keys.iter().map(String::as_str));
            LabError::value(option, format!("'{key}'"), known + &meant)
        })
    };
    let x = asked.x.as_ref().map(|key| find("x", key)).transpose()?;
    let pooled = asked.y.as_deref() == Some(POOLED);
    let y = asked.y.as_ref().filter(|_| !pooled).map(|key| find("y", key)).transpose()?;
    if x.is_some() && x == y {
        return Err(LabError::refused(
            "y",
            format!("'{}' is on the other axis, expected another key", keys[x.unwrap_or(0)]),
        ));
    }
    // Of keys that change together the first, unless one of them is chosen.
    let is_chosen = |keys: &Vec<usize>| [x, y].into_iter().flatten().any(|key| keys.contains(&key));
    let firsts = axes_of_plan(runs).into_iter().filter(|keys| !is_chosen(keys));
    let mut rest = firsts.filter_map(|keys| keys.first().copied());
    Ok(match (x, y) {
        (None, None) if pooled => (rest.next(), None),
        (None, None) => match (rest.next(), rest.next()) {
            (Some(first), Some(next)) => (Some(next), Some(first)),
            (only, _) => (only, None),
        },
        (Some(x), None) if !pooled => (Some(x), rest.next()),
        (None, Some(y)) => match rest.next() {
            Some(x) => (Some(x), Some(y)),
            None => (Some(y), None),
        },
        chosen => chosen,
    })
}

/// The keys of every axis of the plan that has several choices: one, or those that change together. Cases are told by their names.
pub fn axes_of_plan(runs: &Runs) -> Vec<Vec<usize>> {
    let axes = runs.plan.axes.iter().filter(|axis| axis.choices.len() > 1);
    let place = |key: &str| runs.varied.iter().position(|known| known == key);
    let keys = |axis: &crate::sweep::Axis| -> Vec<usize> {
        if axis.choices.iter().any(|choice| choice.title.is_some()) {
            place(CASE).into_iter().collect()
        } else {
            axis.keys.iter().filter_map(|key| place(key)).collect()
        }
    };
    axes.map(keys).filter(|keys| !keys.is_empty()).collect()
}

/// A key with those that change together with it.
pub fn label(runs: &Runs, key: usize) -> String {
    let own = axes_of_plan(runs).into_iter().find(|keys| keys.contains(&key)).unwrap_or_default();
    let others = own.into_iter().filter(|other| *other != key);
    let others: Vec<&str> = others.map(|other| runs.varied[other].as_str()).collect();
    let with = if others.is_empty() { String::new() } else { format!(" (with {})", others.join(", ")) };
    format!("{}{with}", runs.varied[key])
}

impl Axis {
    pub fn of(runs: &Runs, key: usize) -> Self {
        let (mut values, mut known) = (Vec::new(), HashMap::new());
        let mut place = |setting: &Vec<String>| {
            *known.entry(setting[key].clone()).or_insert_with_key(|value| {
                values.push(value.clone());
                values.len() - 1
            })
        };
        let places = runs.settings.iter().map(&mut place).collect();
        Self { key: runs.varied[key].clone(), label: label(runs, key), values, places }
    }

    /// Its values as figures have them.
    pub fn names(&self) -> Vec<String> {
        self.values.iter().map(|value| shown(&self.key, value)).collect()
    }

    /// Its values as numbers, if all of them are.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.values.iter().map(|value| value.parse().ok().filter(|x: &f64| x.is_finite())).collect()
    }
}

/// A value of a key without the markup that names of cases have.
pub fn plain(key: &str, value: &str) -> String {
    if key == CASE {
        Label::parse(value).runs.into_iter().map(|run| run.text).collect()
    } else {
        shown(key, value)
    }
}

/// A value of a key as people read it: numbers of many digits that are few with a power of ten have it, 1e30 for instance.
fn shown(key: &str, value: &str) -> String {
    let Some(number) = value.parse::<f64>().ok().filter(|x| key != CASE && x.is_finite()) else {
        return value.to_owned();
    };
    let power = format!("{number:e}");
    if value.len() > MOST_DIGITS && power.len() < value.len() { power } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_many_digits_have_a_power_of_ten() {
        for (value, name) in [
            ("1000000000000000019884624838656.0", "1e30"),
            ("0.0000001", "1e-7"),
            ("-0.0000001", "-1e-7"),
            ("0.001", "0.001"),
            ("100000.0", "100000.0"),
            ("0.12345678901", "0.12345678901"),
            ("softmax", "softmax"),
            ("1000000000000", "1e12"),
        ] {
            assert_eq!(shown("init.gain", value), name);
        }
        assert_eq!(plain(CASE, "*n* = 1000000000000"), "n = 1000000000000");
        assert_eq!(shown(CASE, "1000000000000"), "1000000000000");
    }
}
