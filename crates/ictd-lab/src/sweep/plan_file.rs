//! Plans as TOML files.
//!
//! ```toml
//! preset = "paper"            # or config = "own.toml", read from beside the plan
//! seeds = "0..20"
//! metrics = "final"
//!
//! [set]                       # every setting
//! epochs = 300
//!
//! [grid]                      # every combination
//! kernel = ["softmax", "linear"]
//! "init.gain" = { from = 0.01, to = 1.0, points = 5, scale = "log" }
//!
//! [[zip]]                     # keys that change together
//! n = [10, 20]
//! layers = [3, 6]
//!
//! [[case]]                    # settings with names
//! title = "from TD signs"
//! set = { "init.score_sign" = "td" }
//! ```

use std::fs;
use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;
use toml::{Table, Value};

use super::blame::{self, Part};
use super::grid;
use super::plan::{Axis, Base, Checkpoints, Choice, Metrics, Plan, key_of};
use crate::files::TaskFiles;
use crate::seeds::Seeds;
use crate::studies::pretrain::Settings;
use crate::{LabError, counted, did_you_mean};

/// Plans that the program brings along, by name.
pub const SHIPPED: [(&str, &str); 3] = [
    ("branches", include_str!("../../plans/branches.toml")),
    ("kernels", include_str!("../../plans/kernels.toml")),
    ("quick", include_str!("../../plans/quick.toml")),
];

/// What a plan may say.
const KEYS: [&str; 10] =
    ["name", "preset", "config", "seeds", "metrics", "checkpoints", "set", "grid", "zip", "case"];
impl Plan {
    /// A plan that the program brings along.
    pub fn shipped(name: &str) -> Option<Result<Self, LabError>> {
        let (_, text) = SHIPPED.into_iter().find(|(known, _)| *known == name)?;
        Some(parse(Path::new(name), text))
    }

    /// A plan as it would stand in a file, under a name; the file of a configuration is looked for here.
    pub fn written(name: &str, text: &str) -> Result<Self, LabError> {
        parse(Path::new(name), text)
    }

    /// The plan in a file, or the one that is shipped under that name.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let shipped = path.to_str().filter(|_| !path.exists()).and_then(Self::shipped);
        if let Some(plan) = shipped {
            return plan;
        }
        let text = fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                let names = SHIPPED.map(|(name, _)| name);
                let found = format!("'{}', which is no file", path.display());
                let meant = path.to_str().map_or_else(String::new, |typed| did_you_mean(typed, names));
                LabError::value(
                    "PLAN",
                    found,
                    format!("a file, a directory of a sweep, or one of {}{meant}", names.join(", ")),
                )
            }
            _ => LabError::Read { path: path.to_owned(), source },
        })?;
        parse(path, &text)
    }
}

fn parse(path: &Path, text: &str) -> Result<Plan, LabError> {
    let line = |span: &Range<usize>| 1 + text.bytes().take(span.start).filter(|b| *b == b'\n').count();
    let spanned = DeTable::parse(text).map_err(|e| {
        let place = e.span().map_or_else(String::new, |span| format!("line {}: ", line(&span)));
        LabError::parse(path, place + e.message())
    })?;
    let table: Table = text.parse().map_err(|e: toml::de::Error| LabError::parse(path, e.message()))?;
    // Where a path of keys stands, as far as it is there.
    let place = |keys: &[&str]| place_in(spanned.get_ref(), keys).unwrap_or_default();
    let failed = |keys: &[&str], problem: String| {
        LabError::parse(path, format!("line {}: {}{problem}", line(&place(keys)), keys.join(".")))
    };
    let reader = Reader { table: &table, failed: &failed };
    reader.known()?;
    let (base, base_tasks) = reader.base(path)?;
    let text_of = |key: &'static str| match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Integer(number)) => Ok(Some(number.to_string())),
        // A list has no number of seeds in it.
        Some(Value::Array(list)) if key == "seeds" => match list.as_slice() {
            [Value::Integer(seed)] => Ok(Some(format!("{seed}..{}", i128::from(*seed) + 1))),
            list => Ok(Some(list.iter().map(written).collect::<Vec<_>>().join(","))),
        },
        Some(value) => Err(failed(&[key], format!(" is {value}, expected a text"))),
    };
    let in_place = |key: &'static str, error: LabError| {
        LabError::parse(path, format!("line {}: {error}", line(&place(&[key]))))
    };
    let seeds = text_of("seeds")?.unwrap_or_else(|| "0..5".into());
    let seeds: Seeds = seeds.parse().map_err(|e| in_place("seeds", e))?;
    let metrics = text_of("metrics")?.map_or(Ok(Metrics::Final), |text| text.parse());
    let checkpoints = text_of("checkpoints")?.map_or(Ok(Checkpoints::None), |text| text.parse());
    let stem = path.file_stem().map_or_else(|| "sweep".into(), |stem| stem.to_string_lossy().into_owned());
    // In the order of the file, which tables do not keep.
    let mut axes = reader.grid(|key| place(&["grid", key]).start)?;
    let block = |name: &str, number: usize| {
        let found = spanned.get_ref().iter().find(|(known, _)| known.get_ref() == name);
        found.and_then(|(_, list)| list.get_ref().as_array()?.get(number))
    };
    let start = |name: &str, number: usize| block(name, number).map_or(0, |table| table.span().start);
    let in_zip = |number: usize, key: &str| {
        let keys = block("zip", number).and_then(|list| place_in(list.get_ref().as_table()?, &[key]));
        keys.map_or(0, |span| span.start)
    };
    let zips = reader.zip(in_zip)?.into_iter().enumerate();
    axes.extend(zips.map(|(k, axis)| (start("zip", 0), Origin::Zip(k), axis)));
    axes.extend(reader.cases()?.map(|axis| (start("case", 0), Origin::Cases, axis)));
    axes.sort_by_key(|(start, ..)| *start);
    let origins: Vec<Origin> = axes.iter().map(|(_, origin, _)| *origin).collect();
    let name = text_of("name")?.unwrap_or(stem);
    // Unless somebody says another one, the directory is called so.
    if ["", ".", ".."].contains(&name.as_str())
        || name.contains(|c: char| c.is_control() || "/\\".contains(c))
    {
        let problem = format!(" is {name:?}, expected one line without / and \\, as a directory is called");
        return Err(failed(&["name"], problem));
    }
    let mut plan = Plan {
        name,
        base,
        set: reader.assignments("set")?,
        seeds: seeds.sorted(),
        metrics: metrics.map_err(|e| in_place("metrics", e))?,
        checkpoints: checkpoints.map_err(|e| in_place("checkpoints", e))?,
        axes: axes.into_iter().map(|(.., axis)| axis).collect(),
        tasks: base_tasks,
    };
    plan.keep_tasks(path.parent().unwrap_or(Path::new("")))?;
    // Where a key of a table among others stands, or the table where it does not have it.
    let in_block = |name: &str, number: usize, key: &str| {
        let Some(found) = block(name, number) else { return 0..0 };
        let own = found.get_ref().as_table().and_then(|table| place_in(table, &[key]));
        own.unwrap_or_else(|| found.span())
    };
    let of_axis = |axis: usize, choice: usize, key: &str| match origins[axis] {
        Origin::Grid => ("[grid]".to_owned(), place(&["grid", plan.axes[axis].keys[0].as_str()])),
        Origin::Zip(number) => ("[[zip]]".to_owned(), in_block("zip", number, key)),
        Origin::Cases => {
            let title = plan.axes[axis].choices[choice].title.clone().unwrap_or_default();
            (format!("[[case]] '{title}'"), in_block("case", choice, "set"))
        }
    };
    let located = |(section, span): (String, Range<usize>), error: &LabError| {
        let (line, message) = (line(&span), error.to_string());
        let message = message.strip_prefix("set: ").unwrap_or(&message);
        LabError::parse(path, format!("line {line}, {section}: {message}"))
    };
    plan.check().map_err(|error| {
        let named = |name: &String| plan.axes.iter().rposition(|axis| axis.keys.contains(name));
        match &error {
            LabError::Refused { name, .. } if name == "set" => {
                located(("[set]".into(), place(&["set"])), &error)
            }
            LabError::Refused { name, .. } => match named(name) {
                Some(axis) => located(of_axis(axis, 0, name), &error),
                None => LabError::parse(path, error.to_string()),
            },
            _ => LabError::parse(path, error.to_string()),
        }
    })?;
    blame::tried(&plan).map_err(|(part, error)| {
        let message = error.to_string();
        let key = message.trim_start_matches("set: ").split([' ', ':']).next().unwrap_or_default();
        match part {
            Part::Base if table.contains_key("preset") => {
                LabError::parse(path, format!("line {}: {message}", line(&place(&["preset"]))))
            }
            // A file has places of its own.
            Part::Base => LabError::parse(path, message),
            Part::Set(number) => {
                located(("[set]".into(), place(&["set", key_of(&plan.set[number])])), &error)
            }
            Part::Choice { axis, choice } => located(of_axis(axis, choice, key), &error),
        }
    })?;
    Ok(plan)
}

/// Where a path of keys stands in a table: the last of them that is there. A dotted key may stand there as one or as tables.
fn place_in(table: &DeTable<'_>, keys: &[&str]) -> Option<Range<usize>> {
    let (mut table, mut found) = (Some(table), None);
    for key in keys {
        let is_one = table.is_some_and(|table| table.iter().any(|(name, _)| name.get_ref() == key));
        let parts = if is_one { vec![*key] } else { key.split('.').collect() };
        for part in parts {
            let own = table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == part));
            let Some((name, value)) = own else { return found };
            (table, found) = (value.get_ref().as_table(), Some(name.span()));
        }
    }
    found
}

/// Which part of the file an axis is from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// A key of `[grid]`.
    Grid,
    /// The `[[zip]]` of this number.
    Zip(usize),
    /// All `[[case]]`.
    Cases,
}

/// A plan's table, and how what is wrong in it is said.
struct Reader<'a> {
    table: &'a Table,
    failed: &'a dyn Fn(&[&str], String) -> LabError,
}

impl Reader<'_> {
    fn known(&self) -> Result<(), LabError> {
        match self.table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            Some(key) => {
                let meant = did_you_mean(key, KEYS);
                let problem = format!(" is no key of a plan, expected one of {}{meant}", KEYS.join(", "));
                Err((self.failed)(&[key], problem))
            }
            None => Ok(()),
        }
    }

    /// What every setting starts from, and the task file that it names.
    fn base(&self, plan: &Path) -> Result<(Base, TaskFiles), LabError> {
        let mut tasks = TaskFiles::default();
        let text = |key| match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(value) => Err((self.failed)(&[key], format!(" is {value}, expected a text"))),
        };
        match (text("preset")?, text("config")?) {
            (Some(_), Some(_)) => {
                Err((self.failed)(&["config"], " stands beside preset, expected one of them".into()))
            }
            (None, Some(file)) => {
                let path = plan.parent().unwrap_or(Path::new("")).join(&file);
                let settings = Settings::file(&path, &[])?;
                if let Some(own) = &settings.config.own {
                    tasks.keep(&own.name, Path::new(&own.name))?;
                }
                Ok((Base { toml: Some(settings.to_toml()?), name: settings.name }, tasks))
            }
            (preset, None) => {
                Ok((Base { name: preset.unwrap_or_else(|| "paper".into()), toml: None }, tasks))
            }
        }
    }

    /// A table of keys and values as `key=value`.
    fn assignments(&self, name: &str) -> Result<Vec<String>, LabError> {
        match self.table.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Table(table)) => Ok(changes(table)),
            Some(value) => Err((self.failed)(&[name], format!(" is {value}, expected a table of keys"))),
        }
    }

    /// Every key an axis of its own, with where it stands.
    fn grid(&self, start: impl Fn(&str) -> usize) -> Result<Vec<(usize, Origin, Axis)>, LabError> {
        let table = match self.table.get("grid") {
            None => return Ok(Vec::new()),
            Some(Value::Table(table)) => table,
            Some(value) => {
                return Err((self.failed)(&["grid"], format!(" is {value}, expected a table of keys")));
            }
        };
        let axis = |(key, value): (String, &Value)| {
            let failed = |problem: String| (self.failed)(&["grid", &key], problem);
            let values = match value {
                Value::Table(ends) => grid::points(ends).map_err(failed)?,
                value => list(value).map_err(failed)?,
            };
            let set = |value: &Value| Choice { title: None, set: vec![assigned(&key, value)] };
            let choices: Vec<Choice> = values.iter().map(set).collect();
            distinct(&choices).map_err(failed)?;
            Ok((start(&key), Origin::Grid, Axis { keys: vec![key], choices }))
        };
        flat(table).into_iter().map(axis).collect()
    }

    /// Every `[[zip]]` an axis whose keys change together.
    fn zip(&self, start: impl Fn(usize, &str) -> usize) -> Result<Vec<Axis>, LabError> {
        let failed = |problem: String| (self.failed)(&["zip"], problem);
        let axis = |(number, table): (usize, &Table)| {
            let lists = flat(table).into_iter().map(|(key, value)| match list(value) {
                Ok(values) => Ok((key, values)),
                Err(problem) => Err(failed(format!(".{key}{problem}"))),
            });
            let mut lists = lists.collect::<Result<Vec<_>, _>>()?;
            lists.sort_by_key(|(key, _)| start(number, key));
            let length = lists.first().map_or(0, |(_, values)| values.len());
            if let Some((key, values)) = lists.iter().find(|(_, values)| values.len() != length) {
                let first = &lists[0].0;
                let problem = format!(
                    ".{key} has {}, expected {length} as {first} has",
                    counted(values.len(), "value")
                );
                return Err(failed(problem));
            }
            if lists.is_empty() {
                return Err(failed(" has no keys, expected lists of values".into()));
            }
            let choice = |k: usize| Choice {
                title: None,
                set: lists.iter().map(|(key, values)| assigned(key, &values[k])).collect(),
            };
            let choices: Vec<Choice> = (0..length).map(choice).collect();
            distinct(&choices).map_err(failed)?;
            Ok(Axis { keys: lists.into_iter().map(|(key, _)| key).collect(), choices })
        };
        self.blocks("zip")?.into_iter().enumerate().map(axis).collect()
    }

    /// All `[[case]]` together one axis of settings with names.
    fn cases(&self) -> Result<Option<Axis>, LabError> {
        let failed = |problem: String| (self.failed)(&["case"], problem);
        let mut axis = Axis { keys: Vec::new(), choices: Vec::new() };
        for table in self.blocks("case")? {
            if let Some(key) = table.keys().find(|key| !["title", "set"].contains(&key.as_str())) {
                return Err(failed(format!(".{key} is no key of a case, expected title and set")));
            }
            let Some(Value::String(title)) = table.get("title") else {
                return Err(failed(" has no title, expected a text".into()));
            };
            if title.contains(char::is_control) {
                return Err(failed(format!(".title is {title:?}, expected one line")));
            }
            let set = match table.get("set") {
                None => Vec::new(),
                Some(Value::Table(set)) => {
                    for (key, _) in flat(set) {
                        if !axis.keys.contains(&key) {
                            axis.keys.push(key);
                        }
                    }
                    changes(set)
                }
                Some(value) => return Err(failed(format!(".set is {value}, expected a table of keys"))),
            };
            if axis.choices.iter().any(|choice| choice.title.as_ref() == Some(title)) {
                return Err(failed(format!(" '{title}' stands there twice, expected names that differ")));
            }
            axis.choices.push(Choice { title: Some(title.clone()), set });
        }
        Ok(if axis.choices.is_empty() { None } else { Some(axis) })
    }

    fn blocks(&self, name: &str) -> Result<Vec<&Table>, LabError> {
        let expected = || (self.failed)(&[name], format!(" is no list of tables, expected [[{name}]]"));
        match self.table.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => list.iter().map(|v| v.as_table().ok_or_else(expected)).collect(),
            Some(_) => Err(expected()),
        }
    }
}

fn list(value: &Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(values) if values.is_empty() => Err(" is [], expected at least one value".into()),
        Value::Array(values) => Ok(values.clone()),
        value => Err(format!(" is {value}, expected a list of values")),
    }
}

fn distinct(choices: &[Choice]) -> Result<(), String> {
    let mut seen = std::collections::HashSet::new();
    match choices.iter().find(|choice| !seen.insert(&choice.set)) {
        Some(twice) => Err(format!(" has '{}' twice, expected values that differ", twice.set.join(" "))),
        None => Ok(()),
    }
}

/// The entries of a table; tables inside give dotted keys, but for a grid that is given by its ends, which is a value.
fn flat(table: &Table) -> Vec<(String, &Value)> {
    let is_grid = |inner: &Table| ["from", "to", "points"].iter().any(|key| inner.contains_key(*key));
    let mut entries = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !inner.is_empty() && !is_grid(inner) => {
                entries.extend(flat(inner).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            value => entries.push((key.clone(), value)),
        }
    }
    entries
}

/// The entries of a table as `key=value`.
fn changes(table: &Table) -> Vec<String> {
    let is_empty = |value: &Value| value.as_table().is_some_and(Table::is_empty);
    let entries = flat(table).into_iter().filter(|(_, value)| !is_empty(value));
    entries.map(|(key, value)| assigned(&key, value)).collect()
}

fn assigned(key: &str, value: &Value) -> String {
    format!("{key}={}", written(value))
}

/// A value as it is typed after `--set key=`: words without quotes, unless they would be read as something else.
fn written(value: &Value) -> String {
    match value {
        Value::String(word) if format!("x = {word}").parse::<Table>().is_err() && !word.contains('"') => {
            word.clone()
        }
        value => value.to_string(),
    }
}
