//! What we build on: licences, sources and versions of every dependency, and known advisories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use semver::{Version, VersionReq};
use serde_json::Value;

/// Licences that let anyone use, change and pass on a program made of both.
const LICENCES: [&str; 10] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "BSL-1.0",
    "Zlib",
    "ISC",
    "Unlicense",
    "Unicode-3.0",
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Crates that are there in several versions, and whose wish that is.
const DUPLICATES: [(&str, &str); 6] = [
    ("equator", "nano-gemm asks for an older one than faer"),
    ("equator-macro", "with equator"),
    ("miniz_oxide", "png asks for an older one than its flate2"),
    ("syn", "derive macros of different age; none is in the program"),
    ("thiserror", "sysctl, which is only built on macOS"),
    ("thiserror-impl", "with thiserror"),
];

/// Advisories that are known and borne, and why.
const BORNE: [(&str, &str); 2] = [
    (
        "RUSTSEC-2026-0192",
        "ttf-parser, unmaintained: it reads the three fonts in the program and nothing else",
    ),
    ("RUSTSEC-2024-0436", "paste, unmaintained: a macro of faer's build"),
];

struct Package {
    name: String,
    version: String,
    licence: String,
    source: String,
}

/// Fails on a licence that is not among those above, a crate from elsewhere, a version too many, or an advisory.
pub fn audit() -> bool {
    let Some(packages) = packages() else {
        eprintln!("xtask audit: cargo metadata gave nothing");
        return false;
    };
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for p in &packages {
        versions.entry(&p.name).or_default().push(&p.version);
        if !is_allowed(&p.licence) {
            problems.push(format!(
                "{} {}: licence '{}' is not among those allowed",
                p.name, p.version, p.licence
            ));
        }
        if p.source != CRATES_IO {
            problems.push(format!("{} {}: comes from {}, expected crates.io", p.name, p.version, p.source));
        }
    }
    versions.retain(|_, found| found.len() > 1);
    for (name, found) in &versions {
        match DUPLICATES.iter().find(|(known, _)| known == name) {
            Some((_, why)) => println!("{name} {}: {why}", found.join(", ")),
            None => problems.push(format!("{name} is there as {}, expected one version", found.join(", "))),
        }
    }
    let stale = DUPLICATES.iter().filter(|(name, _)| !versions.contains_key(name));
    problems.extend(
        stale.map(|(name, _)| format!("{name} has one version only: take it off the list in audit.rs")),
    );
    println!("{} crates: licences and sources looked at", packages.len());
    match advisory_database() {
        Some(database) => problems.extend(advisories(&database, &packages)),
        None => {
            println!("advisories not looked at: no copy of RustSec's in $ADVISORY_DB or ~/.cargo/advisory-db")
        }
    }
    problems.iter().for_each(|problem| println!("PROBLEM {problem}"));
    problems.is_empty()
}

/// Everything in Cargo.lock that is not ours.
fn packages() -> Option<Vec<Package>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .output()
        .ok()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).ok()?;
    let text = |package: &Value, key: &str| package[key].as_str().map(str::to_owned);
    let found = metadata["packages"].as_array()?.iter().filter(|package| !package["source"].is_null());
    found
        .map(|p| {
            Some(Package {
                name: text(p, "name")?,
                version: text(p, "version")?,
                licence: text(p, "license").unwrap_or_else(|| "none".into()),
                source: text(p, "source")?,
            })
        })
        .collect()
}

/// Whether an SPDX expression can be met: AND binds tighter than OR, `/` is an old way to write OR.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) && rest.is_empty()
}

fn any_of(words: &mut &[&str]) -> bool {
    let mut allowed = all_of(words);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        allowed |= all_of(words);
    }
    allowed
}

fn all_of(words: &mut &[&str]) -> bool {
    let mut allowed = one(words);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        allowed &= one(words);
    }
    allowed
}

fn one(words: &mut &[&str]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let allowed = any_of(words);
            let [")", rest @ ..] = *words else { return false };
            *words = rest;
            allowed
        }
        // An exception only adds permissions.
        [name, "WITH", _, rest @ ..] | [name, rest @ ..] => {
            *words = rest;
            LICENCES.contains(name)
        }
        [] => false,
    }
}

fn advisory_database() -> Option<PathBuf> {
    let given = std::env::var_os("ADVISORY_DB").map(PathBuf::from);
    let usual = std::env::home_dir().map(|home| home.join(".cargo/advisory-db"));
    given.or(usual).map(|root| root.join("crates")).filter(|crates| crates.is_dir())
}

/// Advisories for what we have that are not borne.
fn advisories(database: &Path, packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    for package in packages {
        let entries = fs::read_dir(database.join(&package.name)).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let Some(advisory) = read_advisory(&path) else {
                problems.push(format!("{}: not understood", path.display()));
                continue;
            };
            if !concerns(&advisory, &package.version) {
                continue;
            }
            let id = advisory["advisory"]["id"].as_str().unwrap_or("?").to_owned();
            match BORNE.iter().find(|(known, _)| *known == id) {
                Some((id, why)) => println!("{id}: {why}"),
                None => problems.push(format!("{id} concerns {} {}", package.name, package.version)),
            }
        }
    }
    problems
}

/// The TOML at the head of an advisory.
fn read_advisory(path: &Path) -> Option<toml::Table> {
    let text = fs::read_to_string(path).ok()?;
    let (head, _) = text.strip_prefix("```toml")?.split_once("```")?;
    head.parse().ok()
}

/// Whether a version is neither patched nor unaffected, and the advisory was not withdrawn.
fn concerns(advisory: &toml::Table, version: &str) -> bool {
    let Ok(version) = Version::parse(version) else { return true };
    let is_in = |key: &str| {
        let ranges = advisory.get("versions").and_then(|v| v.get(key)).and_then(toml::Value::as_array);
        let mut ranges = ranges.into_iter().flatten().filter_map(toml::Value::as_str);
        ranges.any(|range| VersionReq::parse(range).is_ok_and(|range| range.matches(&version)))
    };
    let withdrawn = advisory.get("advisory").is_some_and(|a| a.get("withdrawn").is_some());
    !withdrawn && !is_in("patched") && !is_in("unaffected")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_met_as_their_expressions_say() {
        for allowed in ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(MIT OR GPL-3.0) AND Unicode-3.0"] {
            assert!(is_allowed(allowed), "{allowed}");
        }
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception"));
        for refused in
            ["GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 AND (MIT OR Zlib)", "", "none", "(MIT", "MIT Zlib"]
        {
            assert!(!is_allowed(refused), "{refused}");
        }
    }

    #[test]
    fn an_advisory_concerns_what_is_not_patched() {
        let advisory = |more: &str| -> toml::Table {
            format!("[advisory]\nid = \"R\"\n{more}\n[versions]\npatched = [\">= 1.2.3\"]\nunaffected = [\"< 1.0.0\"]")
                .parse()
                .unwrap()
        };
        let open = advisory("");
        assert_eq!(
            ["0.9.0", "1.0.0", "1.2.2", "1.2.3"].map(|v| concerns(&open, v)),
            [false, true, true, false]
        );
        assert!(!concerns(&advisory("withdrawn = \"2026-01-01\""), "1.0.0"));
    }
}
