//! Training configurations from presets, TOML files and overrides.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ictd::pretrain::{Key, PretrainConfig, SimdLevel};
use ictd::task::{Drawn, Family, FeatureMap, OwnTasks};
use serde::Serialize;
use toml::{Table, Value};

use super::differs::{self, Change};
use super::place::{line, with_line};
use crate::files::{TaskFiles, process, sha256};
use crate::studies::TaskChoice;
use crate::{LabError, did_you_mean, memory};

/// Keys that may stand outside the table `task`, and their names inside.
pub(super) const TASK_KEYS: [(&str, &str); 6] = [
    ("family", "kind"),
    ("states", "states"),
    ("features", "features"),
    ("gamma", "gamma"),
    ("representable", "representable"),
    ("threshold", "threshold"),
];

/// A resolved configuration: what is trained, under which name, and how it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Name of the preset or file.
    pub name: String,
    /// Everything, defaults filled in.
    pub config: PretrainConfig,
    /// What it changes: the preset, or the paper's setting.
    base: PretrainConfig,
    /// What the user typed.
    pub overrides: Vec<String>,
}

impl Settings {
    /// A preset with overrides `key=value`.
    pub fn preset(name: &str, overrides: &[String]) -> Result<Self, LabError> {
        Self::preset_among(name, overrides, &TaskFiles::default())
    }

    /// The same where some task files are known by name.
    pub(crate) fn preset_among(
        name: &str,
        overrides: &[String],
        files: &TaskFiles,
    ) -> Result<Self, LabError> {
        let config = PretrainConfig::preset(name).ok_or_else(|| {
            let names = PretrainConfig::PRESETS.map(|(name, _)| name);
            let (known, meant) = (names.join(", "), did_you_mean(name, names));
            LabError::value("preset", format!("'{name}'"), format!("one of {known}{meant}"))
        })?;
        let table = table_of(&config)?;
        Self::resolve(name, config, table, overrides, files)
    }

    /// A TOML file, on top of the paper's setting, with overrides `key=value`.
    pub fn file(path: &Path, overrides: &[String]) -> Result<Self, LabError> {
        let text =
            fs::read_to_string(path).map_err(|source| LabError::Read { path: path.to_owned(), source })?;
        let failed = |message: String| LabError::parse(path, with_line(&text, &message));
        let file: Table = text.parse().map_err(|e: toml::de::Error| {
            let place = e.span().map_or_else(String::new, |span| format!("line {}: ", line(&text, &span)));
            LabError::parse(path, place + e.message())
        })?;
        let base = PretrainConfig::paper();
        let mut table = table_of(&base)?;
        let files = TaskFiles::default();
        change(&mut table, file, &files).map_err(failed)?;
        let name = path.file_stem().map_or_else(|| "run".into(), |s| s.to_string_lossy().into_owned());
        Self::resolve(&name, base, table, overrides, &files).map_err(|error| {
            let message = error.to_string();
            let located = with_line(&text, &message);
            // What was typed has the last word.
            if located == message || !overrides.is_empty() { error } else { LabError::parse(path, located) }
        })
    }

    /// A resolved configuration as it was written, under a name, with overrides `key=value`.
    pub fn written(name: &str, toml: &str, overrides: &[String]) -> Result<Self, LabError> {
        Self::written_among(name, toml, overrides, &TaskFiles::default())
    }

    /// The same where some task files are known by name.
    pub(crate) fn written_among(
        name: &str,
        toml: &str,
        overrides: &[String],
        files: &TaskFiles,
    ) -> Result<Self, LabError> {
        let failed = |message: String| LabError::refused("config", message);
        let written: Table = toml.parse().map_err(|e: toml::de::Error| failed(e.message().to_owned()))?;
        let base = PretrainConfig::paper();
        let mut table = table_of(&base)?;
        change(&mut table, written, files).map_err(failed)?;
        Self::resolve(name, base, table, overrides, files)
    }

    /// A configuration that was trained, as it was written, to be shown and not to be trained again: tasks of one's own are
    /// known by their name alone, and no file of them is read.
    pub(super) fn recorded(name: &str, toml: &str, overrides: Vec<String>) -> Result<Self, LabError> {
        let failed = |message: String| LabError::refused("config", message);
        let written: Table = toml.parse().map_err(|e: toml::de::Error| failed(e.message().to_owned()))?;
        let mut table = table_of(&PretrainConfig::paper())?;
        change(&mut table, written, &TaskFiles::default()).map_err(failed)?;
        let config = config_of(table).map_err(|wrong| failed(in_words(&wrong.message)))?;
        let base = PretrainConfig::preset(name).unwrap_or_else(PretrainConfig::paper);
        Ok(Self { name: name.to_owned(), config, base, overrides })
    }

    /// The same training on tasks that a program draws, which say their sizes themselves: keys of tasks are refused. The digest
    /// of the first one tells two families of the same name apart.
    pub fn on_tasks(self, tasks: Drawn) -> Result<Self, LabError> {
        if let Some((key, value)) = self.changes()?.into_iter().find(|(key, _)| key.starts_with("task")) {
            let problem = format!(
                "{value} beside tasks of one's own, expected no keys of tasks: they say it themselves"
            );
            return Err(LabError::refused(key, problem));
        }
        let first = tasks.first();
        let (mrp, gamma) = (first.mrp(), [first.mrp().gamma()]);
        let parts =
            [mrp.transitions().matrix().as_slice(), mrp.rewards(), mrp.initial_distribution(), &gamma];
        let numbers = parts.into_iter().chain([first.features().as_slice()]).flatten();
        let digest = sha256(&numbers.flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
        let name = tasks.name().to_owned();
        let mut config = self.config.on_tasks(&name, Arc::new(tasks));
        config.own.iter_mut().for_each(|own| own.sha256 = Some(digest.clone()));
        config.check()?;
        Ok(Self { config, ..self })
    }

    /// The value of a key by any of its names, as it is typed; of `task` what it was chosen by.
    pub fn value_of(&self, key: &str) -> Result<String, LabError> {
        let table = table_of(&self.config)?;
        let name = full_name(key);
        if name == "task" {
            let own = self.config.own.as_ref().map(|own| own.name.clone());
            return own.map_or_else(|| self.value_of("task.kind"), Ok);
        }
        let mut value = None;
        let mut inside = Some(&table);
        for part in name.split('.') {
            value = inside.and_then(|table| table.get(part));
            inside = value.and_then(Value::as_table);
        }
        match value {
            Some(Value::String(word)) => Ok(word.clone()),
            Some(value) if !value.is_table() => Ok(value.to_string()),
            _ => Err(LabError::refused(key, unknown(key, &table))),
        }
    }

    /// The paper's setting with these keys changed; one with dots is a key of a table.
    pub fn changed(changes: Table) -> Result<Self, LabError> {
        let mut config = PretrainConfig::paper();
        let mut table = table_of(&config)?;
        let mut starts = false;
        let files = TaskFiles::default();
        for (name, value) in changes {
            let nest = |value, key: &str| Value::Table(Table::from_iter([(key.to_owned(), value)]));
            if let Value::Table(changes) = name.rsplit('.').fold(value, nest) {
                change(&mut table, changes, &files).map_err(|problem| LabError::refused("set", problem))?;
            }
            // One after the other, so that the message can name the key.
            config = config_of(table.clone()).map_err(|wrong| invalid(&name, &wrong.message))?;
            starts |= name == "rho.start";
        }
        let settings = Self::checked("paper", PretrainConfig::paper(), config, &files)?;
        if starts {
            check_ramp(&settings.config)?;
        }
        Ok(settings)
    }

    fn resolve(
        name: &str,
        base: PretrainConfig,
        mut table: Table,
        overrides: &[String],
        files: &TaskFiles,
    ) -> Result<Self, LabError> {
        for text in overrides {
            let refused = |problem: String| LabError::refused("set", problem);
            let changes = assignment(text)
                .ok_or_else(|| refused(format!("'{text}' is no assignment, expected key=value")))?;
            change(&mut table, changes, files).map_err(refused)?;
        }
        let config = config_of(table).map_err(|wrong| invalid(&wrong.key, &wrong.message))?;
        let names = |text: &String| text.split_once('=').is_some_and(|(key, _)| key.trim() == "rho.start");
        let settings = Self { overrides: overrides.to_vec(), ..Self::checked(name, base, config, files)? };
        if overrides.iter().any(names) {
            check_ramp(&settings.config)?;
        }
        Ok(settings)
    }

    fn checked(
        name: &str,
        base: PretrainConfig,
        mut config: PretrainConfig,
        files: &TaskFiles,
    ) -> Result<Self, LabError> {
        config.simd = simd_level()?;
        config.check_family()?;
        read_own(&mut config, files)?;
        config.check()?;
        Ok(Self { name: name.to_owned(), config, base, overrides: Vec::new() })
    }

    /// The resolved configuration as TOML, keys sorted.
    pub fn to_toml(&self) -> Result<String, LabError> {
        toml::to_string(&table_of(&self.config)?).map_err(|e| LabError::internal("config", e))
    }

    /// The same with a comment on every key: what it is for, its values, its default.
    pub fn to_commented_toml(&self) -> Result<String, LabError> {
        let paper = Self { config: PretrainConfig::paper(), ..self.clone() }.to_toml()?;
        let mut text = String::from("# A key that is left out has its default.\n");
        for (line, entry) in entries(&self.to_toml()?) {
            if let Some(key) = entry.as_ref().and_then(|(name, _)| Key::named(name)) {
                let default = entries(&paper).find_map(|(_, e)| e.filter(|(name, _)| name == key.name));
                let default = default.map_or_else(|| "none".into(), |(_, value)| value);
                text += &format!("# {}: {} [default: {default}]\n", key.purpose, key.range);
            }
            text += &format!("{line}\n");
        }
        Ok(text)
    }

    /// The digest of the task file in a written configuration that is this one but for the content of that file.
    pub(super) fn other_tasks(&self, path: &Path) -> Option<String> {
        let mut found: Table = fs::read_to_string(path).ok()?.parse().ok()?;
        let own = table_of(&self.config).ok()?;
        let text = |table: &Table, key: &str| Some(table.get("own")?.get(key)?.as_str()?.to_owned());
        let digest = text(&found, "sha256")?;
        if text(&found, "name") != text(&own, "name") || Some(&digest) == text(&own, "sha256").as_ref() {
            return None;
        }
        // The file says its sizes too.
        for key in ["own", "task"] {
            found.insert(key.into(), own.get(key)?.clone());
        }
        (found == own).then_some(digest)
    }

    /// The keys that differ from the preset, or from the paper's setting in a file.
    pub(super) fn changes(&self) -> Result<Vec<Change>, LabError> {
        differs::changes(&table_of(&self.base)?, &table_of(&self.config)?)
    }

    /// The keys of a written configuration that differ from those of the preset of this name, or from the paper's setting.
    pub(super) fn changes_of(path: &Path, name: &str) -> Option<Vec<Change>> {
        let found: Table = fs::read_to_string(path).ok()?.parse().ok()?;
        let base = PretrainConfig::preset(name).unwrap_or_else(PretrainConfig::paper);
        differs::changes(&table_of(&base).ok()?, &found).ok()
    }

    /// SHA-256 of the resolved configuration.
    pub fn sha256(&self) -> Result<String, LabError> {
        Ok(sha256(self.to_toml()?.as_bytes()))
    }
}

/// The lines of a configuration as it is written, with the dotted key and the value of those that have one.
fn entries(toml: &str) -> impl Iterator<Item = (&str, Option<(String, String)>)> {
    let mut table = String::new();
    toml.lines().map(move |line| {
        if let Some(name) = line.strip_prefix('[') {
            table = format!("{}.", name.trim_end_matches(']'));
        }
        let entry = line.split_once(" = ");
        (line, entry.map(|(key, value)| (format!("{table}{key}"), value.to_owned())))
    })
}

/// The environment variable that forces the vector instructions of training.
pub const SIMD_VARIABLE: &str = "ICTD_SIMD";

/// The vector instructions that the environment asks for: the best there are where it says nothing.
pub fn simd_level() -> Result<SimdLevel, LabError> {
    let invalid = |what: &dyn std::fmt::Display| LabError::refused(SIMD_VARIABLE, what.to_string());
    let Some(name) = std::env::var_os(SIMD_VARIABLE) else { return Ok(SimdLevel::Best) };
    let level: SimdLevel = name.to_string_lossy().parse().map_err(|e| invalid(&e))?;
    if level.is_available() {
        return Ok(level);
    }
    let has: Vec<&str> =
        SimdLevel::NAMED.into_iter().filter(|l| l.is_available()).map(SimdLevel::as_str).collect();
    Err(invalid(&format!("this CPU or this program has no {level}, expected one of {}", has.join(", "))))
}

/// What computes besides the configuration: the program, and the vector instructions that it uses. Results of the same words are
/// the same.
pub(in crate::studies) fn computed_by() -> Result<String, LabError> {
    Ok(format!("{} {}", process::program_sha256(), simd_level()?.in_use()))
}

/// Refuses a start of diagonal mixing that no step has.
fn check_ramp(config: &PretrainConfig) -> Result<(), LabError> {
    let rho = &config.rho;
    if rho.steps > 0 || rho.start == rho.end {
        return Ok(());
    }
    let expected = format!(
        "rho.steps of 1 or more beside it: without a ramp rho is rho.end, {:?}, from the first step on",
        rho.end
    );
    Err(LabError::value("rho.start", format!("{:?}", rho.start), expected))
}

/// A value that a key cannot have; of words those that it can, as options of commands say it.
fn invalid(key: &str, message: &str) -> LabError {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((typed, known)) if message.starts_with("unknown variant") => {
            let expected =
                format!("one of {}{}", known.join(", "), did_you_mean(typed, known.iter().copied()));
            LabError::value(key, format!("'{typed}'"), expected)
        }
        _ => LabError::refused(key, in_words(message)),
    }
}

/// The message on one line, with Rust's type names in words.
fn in_words(message: &str) -> String {
    let names = [
        ("usize", "a whole number"),
        ("u64", "a whole number"),
        ("f64", "a number"),
        ("\n", " "),
        ("invalid type: unit variant, expected string only", "expected a word"),
    ];
    names.into_iter().fold(message.trim_end().to_owned(), |text, (name, words)| text.replace(name, words))
}

/// A key that has no value of its kind, and what is said of it.
struct Wrong {
    key: String,
    message: String,
}

/// The configuration that a table says.
fn config_of(table: Table) -> Result<PretrainConfig, Wrong> {
    serde_path_to_error::deserialize(Value::Table(table))
        .map_err(|e| Wrong { key: e.path().to_string(), message: e.inner().message().to_owned() })
}

pub(super) fn table_of(value: &impl Serialize) -> Result<Table, LabError> {
    Table::try_from(value).map_err(|e| LabError::internal("config", e))
}

/// Takes the tasks that `text` names, a family or a file, into the table.
fn choose(table: &mut Table, text: &str, files: &TaskFiles) -> Result<(), String> {
    let failed = |e: LabError| e.to_string();
    table.remove("own");
    let family = match TaskChoice::among(text, files).map_err(failed)? {
        TaskChoice::Family(family) => family,
        TaskChoice::File { file, .. } => {
            let own = OwnTasks { name: file.name.clone(), sha256: Some(file.sha256.clone()), source: None };
            table.insert("own".into(), Value::Table(table_of(&own).map_err(failed)?));
            Family::own(&*file.source(false, 1.0).map_err(failed)?)
        }
    };
    table.insert("task".into(), Value::Table(table_of(&family).map_err(failed)?));
    Ok(())
}

impl Settings {
    /// Refuses more seeds than fit into memory: all train at once, and the files of one are written at a time.
    pub(crate) fn admit(&self, seeds: usize, with_files: bool) -> Result<(), LabError> {
        let config = &self.config;
        config.check()?;
        let memory = config.memory();
        let others = (memory::threads(seeds as f64) - 1.0) * memory.task;
        let training = memory.of_seeds(seeds) + others;
        // A metric's row in memory, in CSV and as an event.
        let entries = (6.0 * config.batches as f64 + 4.0) * config.epochs as f64;
        let writing = if with_files { seeds as f64 * memory.state + 160.0 * entries } else { 0.0 };
        let lower = "the number of seeds, n, states, features, layers, batch, batches or epochs";
        memory::admit(training.max(writing), lower)
    }
}

/// What `key=value` says. A bare word is a string: `query=skip` needs no quotes.
pub(crate) fn assignment(text: &str) -> Option<Table> {
    let (key, value) = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()))?;
    let toml = |value: &str| format!("{key} = {value}").parse().ok();
    toml(value).or_else(|| toml(&Value::from(value).to_string()))
}

/// Changes what a file or an assignment says; keys of the task may stand outside its table, and `task` may name tasks.
fn change(table: &mut Table, mut changes: Table, files: &TaskFiles) -> Result<(), String> {
    if let Some(Value::String(text)) = changes.get("task") {
        choose(table, text, files)?;
        changes.remove("task");
    }
    if !table.contains_key("own") {
        table.extend(changes.remove_entry("own"));
    }
    for (old, name) in TASK_KEYS {
        let Some(value) = changes.remove(old) else { continue };
        let task = changes.entry("task").or_insert_with(|| Value::Table(Table::new()));
        match task.as_table_mut() {
            Some(task) => task.insert(name.to_owned(), value),
            None => return Err(format!("task is {}, expected a table, a family or a file", task.type_str())),
        };
    }
    merge(table, changes, "")
}

/// Reads the task file that a configuration names, and checks that it is the one that was named.
fn read_own(config: &mut PretrainConfig, files: &TaskFiles) -> Result<(), LabError> {
    let Some(own) = &mut config.own else { return Ok(()) };
    let file = files.read(&own.name)?;
    if let Some(expected) = own.sha256.as_ref().filter(|expected| **expected != file.sha256) {
        let (name, found) = (&own.name, file.sha256);
        let problem = format!(
            "{name} has SHA-256 {found}, expected {expected}: the file is not the one of this configuration"
        );
        return Err(LabError::refused("own", problem));
    }
    let unit_norm = config.task.feature_map == FeatureMap::UnitNorm;
    own.source = Some(file.source(unit_norm, config.task.score_scale)?);
    own.sha256 = Some(file.sha256);
    Ok(())
}

/// Replaces entries of `table` by those of `with`; refuses keys that are not there.
fn merge(table: &mut Table, with: Table, prefix: &str) -> Result<(), String> {
    for (key, value) in with {
        // The temperature is also known by its letter.
        let key = if key == "tau" { "temperature".to_owned() } else { key };
        let path = format!("{prefix}{key}");
        match (table.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => merge(inner, value, &format!("{path}."))?,
            (Some(Value::Table(inner)), _) => {
                return Err(format!("{path} is a table, expected one of its keys: {}", keys(inner)));
            }
            // An integer where a fraction is expected is one.
            (Some(slot @ Value::Float(_)), Value::Integer(n)) => *slot = Value::Float(n as f64),
            (Some(slot), value) => *slot = value,
            (None, _) => return Err(unknown(&path, table)),
        }
    }
    Ok(())
}

fn unknown(key: &str, table: &Table) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    let inside = |(name, part): (&String, &Value)| {
        part.as_table().is_some_and(|t| t.contains_key(last)).then(|| format!("{name}.{last}"))
    };
    let meant = match table.iter().find_map(inside) {
        Some(inside) => format!("; did you mean '{inside}'?"),
        None => {
            let outside = TASK_KEYS.iter().filter(|_| table.contains_key("task")).map(|(old, _)| *old);
            did_you_mean(last, table.keys().map(String::as_str).chain(outside))
        }
    };
    format!("{key} is no key, expected one of {}{meant}", keys(table))
}

/// The name that a key has in a written configuration, by any of its names.
pub(crate) fn full_name(key: &str) -> String {
    match TASK_KEYS.iter().find(|(outside, _)| *outside == key) {
        Some((_, inside)) => format!("task.{inside}"),
        None if key == "tau" => "temperature".to_owned(),
        None => key.to_owned(),
    }
}

fn keys(table: &Table) -> String {
    table.keys().cloned().collect::<Vec<_>>().join(", ")
}
