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

    /// Whether it has lists where a row has values: rewards of many steps.
    pub fn is_episode(&self) -> bool {
        let is_reward = |name: &&String| names::REWARD.contains(&name.to_ascii_lowercase().as_str());
        self.keys().find(is_reward).and_then(|name| self.get(name)).is_some_and(is_list)
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

/// A column of values, each with its row; none for objects in objects, which are passed over.
pub(super) fn block(name: &str, cells: &[(u64, Option<&Value>)]) -> Result<Option<Block>, String> {
    let present =
        || cells.iter().filter_map(|(row, value)| value.filter(|v| !v.is_null()).map(|v| (*row, v)));
    if present().next().is_some_and(|(_, v)| v.is_object()) {
        return Ok(None);
    }
    let fail = |row: u64, found: &str, expected: &str| {
        Err(format!("row {row}, column {name}: found {found}, expected {expected}"))
    };
    let lists = present().filter(|(_, v)| is_list(v)).count();
    if lists > 0 {
        return wide(name, cells).map(Some);
    }
    let count = |what: fn(&Value) -> bool| present().filter(|(_, v)| what(v)).count();
    if let Some((row, _)) = present().find(|(_, v)| v.is_object()) {
        return fail(row, "an object", "a number or a text");
    }
    let (texts, flags) = (count(Value::is_string), count(Value::is_boolean));
    let (whole, all) = (count(is_whole), present().count());
    // Whole numbers stay what they are beside cells without a value, and texts or flags beside numbers can be told apart.
    let values =
        if texts > 0 || (0 < flags && flags < all) || (0 < whole && whole == all && all < cells.len()) {
            Values::Text(cells.iter().map(|(_, value)| text(*value)).collect())
        } else if whole == cells.len() {
            let whole = |v: &Value| v.as_i64().unwrap_or_else(|| i64::from(v.as_bool() == Some(true)));
            Values::Whole(present().map(|(_, v)| whole(v)).collect())
        } else {
            Values::Float(cells.iter().map(|(_, v)| v.and_then(Value::as_f64).unwrap_or(f64::NAN)).collect())
        };
    Ok(Some(Block { name: name.into(), width: None, values }))
}

fn is_whole(value: &Value) -> bool {
    value.is_boolean() || value.as_i64().is_some()
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Lists of numbers, all of one length.
fn wide(name: &str, cells: &[(u64, Option<&Value>)]) -> Result<Block, String> {
    let mut flat = Vec::new();
    let mut width = None;
    let place = |row: u64| format!("row {row}, column {name}: found");
    for (row, value) in cells {
        let before = flat.len();
        match value {
            Some(list @ Value::Array(_)) => {
                flatten(list, &mut flat)
                    .map_err(|found| format!("{} {found}, expected a number", place(*row)))?;
            }
            None | Some(Value::Null) => flat.extend(vec![f64::NAN; width.unwrap_or(0)]),
            Some(other) => {
                return Err(format!("{} {}, expected a list as before", place(*row), short(other)));
            }
        }
        let length = flat.len() - before;
        if *width.get_or_insert(length) != length {
            let expected = width.unwrap_or(0);
            return Err(format!("{} {length} entries, expected {expected} as before", place(*row)));
        }
    }
    match width {
        Some(0) | None => {
            Err(format!("{} an empty list, expected numbers", place(cells.first().map_or(0, |c| c.0))))
        }
        width => Ok(Block { name: name.into(), width, values: Values::Float(flat) }),
    }
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
