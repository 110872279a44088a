//! Objects of JSON whose keys stay in their order, and lists of their values as columns.

use std::fmt::{Formatter, Result as FmtResult};

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;

use super::names;
use super::table::{Block, Values};

/// An object in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object(Vec<(String, Value)>);

impl Object {
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(key, _)| key)
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value of the key for rewards.
    pub fn rewards(&self) -> Option<&Value> {
        self.0.iter().find(|(name, _)| names::is_reward(name)).map(|(_, value)| value)
    }

    /// Whether it has lists where a row has values: rewards of many steps.
    pub fn is_episode(&self) -> bool {
        self.rewards().is_some_and(is_list)
    }

    /// Whether it is a context as `ictd task` writes it.
    pub fn is_context(&self) -> bool {
        self.get("episodes").is_some_and(is_list) || self.get("features").is_some_and(is_list)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut Formatter<'_>) -> FmtResult {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries: Vec<(String, Value)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    // Objects of more keys than this are no rows; comparing them all would take long.
                    if entries.len() >= 10_000 {
                        return Err(A::Error::custom("more than 10000 keys"));
                    }
                    if entries.iter().any(|(name, _)| *name == key) {
                        return Err(A::Error::custom(format!("the key '{key}' is there twice")));
                    }
                    entries.push((key, value));
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

pub(super) fn is_list(value: &Value) -> bool {
    value.is_array()
}

/// A value with its row; none where the key is not there.
pub(super) type Cell<'a> = (u64, Option<&'a Value>);

/// What the values of a key are. The first rows decide, whatever they are read together with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Objects in objects, which are passed over.
    Passed,
    /// Numbers, texts and truth values.
    Plain,
    /// Lists of so many numbers.
    List(usize),
}

impl Kind {
    /// By the first value that is there.
    pub fn of(cells: &[Cell<'_>]) -> Self {
        match cells.iter().filter_map(|(_, value)| *value).find(|value| !value.is_null()) {
            Some(Value::Object(_)) => Self::Passed,
            Some(list @ Value::Array(_)) => Self::List(entries(list)),
            _ => Self::Plain,
        }
    }
}

/// Keys of the first of some rows, in its order, each with what its values are.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    first: u64,
    kinds: Vec<(String, Kind)>,
}

impl Keys {
    /// `cells` gives the values of a key in these rows.
    pub fn new<'a>(
        (first, object): (u64, &Object),
        cells: impl Fn(&str) -> Result<Vec<Cell<'a>>, String>,
    ) -> Result<Self, String> {
        let kind = |name: &String| Ok((name.clone(), Kind::of(&cells(name)?)));
        Ok(Self { first, kinds: object.keys().map(kind).collect::<Result<_, String>>()? })
    }

    /// The columns of rows; a key that one lacks has no value there.
    pub fn blocks<'a>(
        &self,
        rows: &[(u64, Object)],
        cells: impl Fn(&str) -> Result<Vec<Cell<'a>>, String>,
    ) -> Result<Vec<Block>, String> {
        for (number, object) in rows {
            if let Some(other) =
                object.keys().find(|name| !self.kinds.iter().any(|(known, _)| known == *name))
            {
                let first = self.first;
                return Err(format!("row {number}: found the key '{other}', expected those of row {first}"));
            }
        }
        let mut blocks = Vec::new();
        for (name, kind) in &self.kinds {
            match kind {
                Kind::Passed => {}
                Kind::Plain => blocks.push(block(name, &cells(name)?)?),
                Kind::List(width) => blocks.push(wide(name, *width, &cells(name)?)?),
            }
        }
        Ok(blocks)
    }
}

/// A column of plain values.
fn block(name: &str, cells: &[Cell<'_>]) -> Result<Block, String> {
    let present =
        || cells.iter().filter_map(|(row, value)| value.filter(|v| !v.is_null()).map(|v| (*row, v)));
    let fail = |row: u64, found: &str, expected: &str| {
        Err(format!("row {row}, column {name}: found {found}, expected {expected}"))
    };
    let count = |what: fn(&Value) -> bool| present().filter(|(_, v)| what(v)).count();
    if let Some((row, value)) = present().find(|(_, v)| v.is_object() || is_list(v)) {
        return fail(row, if is_list(value) { "a list" } else { "an object" }, "a number or a text");
    }
    let (texts, flags) = (count(Value::is_string), count(Value::is_boolean));
    let (whole, small, all) = (count(is_whole), count(is_small), present().count());
    // Whole numbers stay what they are beside cells without a value and where they are large, and texts or flags beside
    // numbers can be told apart.
    let as_text = whole == all && 0 < all && small < cells.len();
    let values = if texts > 0 || (0 < flags && flags < all) || as_text {
        Values::Text(cells.iter().map(|(_, value)| text(*value)).collect())
    } else if small == cells.len() {
        let whole = |v: &Value| v.as_i64().unwrap_or_else(|| i64::from(v.as_bool() == Some(true)));
        Values::Whole(present().map(|(_, v)| whole(v)).collect())
    } else {
        Values::Float(cells.iter().map(|(_, v)| v.and_then(Value::as_f64).unwrap_or(f64::NAN)).collect())
    };
    Ok(Block { name: name.into(), width: None, values })
}

fn is_whole(value: &Value) -> bool {
    value.is_boolean() || value.is_i64() || value.is_u64()
}

/// Whether it is a whole number below 2⁶³, or a truth value.
fn is_small(value: &Value) -> bool {
    value.is_boolean() || value.is_i64()
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Lists of so many numbers.
fn wide(name: &str, width: usize, cells: &[Cell<'_>]) -> Result<Block, String> {
    let mut flat = Vec::new();
    let place = |row: u64| format!("row {row}, column {name}: found");
    for (row, value) in cells {
        let before = flat.len();
        match value {
            Some(list @ Value::Array(_)) => {
                flatten(list, &mut flat)
                    .map_err(|found| format!("{} {found}, expected a number", place(*row)))?;
            }
            None | Some(Value::Null) => flat.resize(before + width, f64::NAN),
            Some(other) => {
                return Err(format!("{} {}, expected a list as before", place(*row), short(other)));
            }
        }
        let length = flat.len() - before;
        if length != width {
            return Err(format!("{} {length} entries, expected {width} as before", place(*row)));
        }
    }
    match width {
        0 => Err(format!("{} an empty list, expected numbers", place(cells.first().map_or(0, |c| c.0)))),
        _ => Ok(Block { name: name.into(), width: Some(width), values: Values::Float(flat) }),
    }
}

/// How many entries there are in a list and the lists in it.
fn entries(value: &Value) -> usize {
    value.as_array().map_or(1, |list| list.iter().map(entries).sum())
}

fn flatten(value: &Value, flat: &mut Vec<f64>) -> Result<(), String> {
    match value {
        Value::Array(list) => list.iter().try_for_each(|v| flatten(v, flat)),
        Value::Null => {
            flat.push(f64::NAN);
            Ok(())
        }
        Value::Bool(flag) => {
            flat.push(f64::from(u8::from(*flag)));
            Ok(())
        }
        other => match other.as_f64() {
            Some(x) => {
                flat.push(x);
                Ok(())
            }
            None => Err(short(other)),
        },
    }
}

fn short(value: &Value) -> String {
    super::cell::quoted(value.to_string().as_bytes())
}
