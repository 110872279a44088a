//! What a configuration changes of the one it starts from, and the name that a directory gets by that.

use ictd::task::{Family, Kind};
use toml::{Table, Value};

use super::settings::table_of;
use crate::LabError;

/// Characters of all changes in a name, and of one value: paths have limits.
const LONGEST_NAME: usize = 76;
const LONGEST_VALUE: usize = 24;
/// Keys that say most of what was trained: they come first, so that none of them is cut.
const TELLING: [&str; 9] = ["task", "kernel", "block", "query", "target", "loss", "mask", "tied", "layers"];
/// Stands for what was cut.
const CUT: &str = "...";

/// A key, dotted as for `--set`, and its value as short as it can be written.
pub(super) type Change = (String, String);

/// The keys whose values differ from those of `base`, sorted. Own tasks are the key `task` with the name of their file: what
/// the file says is no change of its own.
pub(super) fn changes(base: &Table, found: &Table) -> Result<Vec<Change>, LabError> {
    let (mut base, mut found) = (base.clone(), found.clone());
    let mut all = Vec::new();
    if let Some(Value::Table(own)) = found.remove("own") {
        let name = own.get("name").map_or_else(String::new, short);
        all.push(("task".to_owned(), name.rsplit(['/', '\\']).next().unwrap_or(&name).to_owned()));
        let mut task = table_of(&Family::of(Kind::Own))?;
        let said = found.get("task").and_then(Value::as_table).into_iter().flatten();
        task.extend(
            said.filter(|(key, _)| ["states", "features", "gamma"].contains(&key.as_str()))
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        base.insert("task".into(), Value::Table(task));
    }
    collect(&base, &found, "", &mut all);
    all.sort();
    Ok(all)
}

fn collect(base: &Table, found: &Table, prefix: &str, all: &mut Vec<Change>) {
    for (key, value) in found {
        match (base.get(key), value) {
            (Some(Value::Table(base)), Value::Table(found)) => {
                collect(base, found, &format!("{prefix}{key}."), all);
            }
            (Some(base), value) if base == value => {}
            _ => all.push((format!("{prefix}{key}"), short(value))),
        }
    }
}

/// A value in as few characters as it can be read from.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(x) => {
            let (plain, scientific) = (x.to_string(), format!("{x:e}"));
            if scientific.len() < plain.len() { scientific } else { plain }
        }
        other => other.to_string(),
    }
}

/// The changes as a part of a file name, on every system: `kernel=linear,n=5`. Those that say most come first, the others by their keys. Empty
/// where there are none.
pub(super) fn name(changes: &[Change]) -> String {
    let mut name = String::new();
    let place = |(key, _): &&Change| TELLING.iter().position(|told| told == key).unwrap_or(TELLING.len());
    let mut changes: Vec<&Change> = changes.iter().collect();
    // Stable: what is not told apart stays in its order.
    changes.sort_by_key(place);
    for (key, value) in changes {
        let separator = if name.is_empty() { "" } else { "," };
        let entry = format!("{separator}{}={}", safe(key), cut(safe(value)));
        if name.len() + entry.len() > LONGEST_NAME {
            return name + separator + CUT;
        }
        name += &entry;
    }
    name
}

/// Only what no file system minds, and no shell; one byte per character.
fn safe(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' }).collect()
}

fn cut(mut value: String) -> String {
    if value.len() > LONGEST_VALUE {
        value.truncate(LONGEST_VALUE - CUT.len());
        value += CUT;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::pretrain::Settings;

    fn named(preset: &str, overrides: &[&str]) -> String {
        let overrides: Vec<String> = overrides.iter().map(|s| s.to_string()).collect();
        name(&Settings::preset(preset, &overrides).unwrap().changes().unwrap())
    }

    #[test]
    fn names_say_what_differs_from_the_preset() {
        assert_eq!(named("paper", &[]), "");
        assert_eq!(named("paper", &["n=5", "kernel=linear"]), "kernel=linear,n=5");
        assert_eq!(named("paper", &["n=10", "tau=1.2"]), "", "as it is anyway");
        assert_eq!(named("mask-full", &["batches=10", "epochs=3000"]), "epochs=3000");
        assert_eq!(
            named("paper", &["states=16", "optimizer.lr=3e-4", "temperature=2"]),
            "optimizer.lr=3e-4,task.states=16,temperature=2"
        );
        assert_eq!(
            named("paper", &["query=source", "source.columns=n+1"]),
            "query=source,source.columns=n+1"
        );
    }

    #[test]
    fn names_are_short_and_safe() {
        let all = ["batch=9", "batches=9", "epochs=9", "n=9", "layers=9", "states=9", "features=3", "tau=9"];
        let long = named("paper", &all);
        assert_eq!(long, "layers=9,batch=9,batches=9,epochs=9,n=9,task.features=3,task.states=9,...");
        let telling = named("paper", &[&all[..], &["kernel=linear", "query=skip", "block=dual"]].concat());
        assert!(telling.starts_with("kernel=linear,block=dual,query=skip,layers=9,batch=9,"), "{telling}");
        assert!(long.len() <= 80);
        let own = |name: &str| vec![("task".to_owned(), name.to_owned())];
        assert_eq!(name(&own("a b:é*?\"<>|=,\n.json")), format!("task=a_b{}.json", "_".repeat(11)));
        assert_eq!(name(&own(&"x".repeat(300))), format!("task={}...", "x".repeat(21)));
    }

    /// A file of tasks is named once, and what it says about sizes is not repeated.
    #[test]
    fn own_tasks_are_one_change() {
        let text = "n = 10\n[task]\nkind = \"own\"\nstates = 3\nfeatures = 2\ngamma = 0.5\nscore_scale = 2.0\n[own]\nname = \"mine/two.json\"\nsha256 = \"00\"";
        let mut found: Table = text.parse().unwrap();
        let base = table_of(&ictd::pretrain::PretrainConfig::paper()).unwrap();
        let changes = changes(&base, &found).unwrap();
        assert_eq!(name(&changes), "task=two.json,task.score_scale=2");
        found.remove("own");
        assert!(super::changes(&base, &found).unwrap().len() > 2);
    }
}
