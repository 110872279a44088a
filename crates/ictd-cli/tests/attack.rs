//! The first cases of `cargo xtask attack`: the same in every run. Its readers have a test of their own.
#![cfg(unix)]
#![allow(dead_code, missing_docs)]

#[path = "../../../xtask/src/attack/mod.rs"]
mod attack;

use std::path::Path;

use attack::{Extent, Lab};

/// Attacks of which one case in so many is tried here, the first ones; `cargo xtask attack` does them all.
const ENABLED: [(&str, u64); 9] = [
    ("flags/task", 8),
    ("flags/forward", 8),
    ("flags", 100),
    ("known", 8),
    ("flips", 200),
    ("kills", 100),
    ("pairs", 100),
    ("directories", 10),
    ("levels", 8),
];

#[test]
fn attacks_find_nothing() {
    let lab = Lab::open(Path::new(env!("CARGO_BIN_EXE_ictd"))).unwrap();
    let wanted = ENABLED.map(|(name, part)| (name, Extent::Part(part)));
    let mut tried = Vec::new();
    attack::all(&lab, &wanted, |row| tried.push(row)).unwrap();
    // A name that is misspelt would try nothing.
    for (name, _) in ENABLED {
        assert!(tried.iter().any(|row| row.name.starts_with(name)), "{name}");
    }
    for row in &tried {
        println!("{}: {} cases, {} failed, {:.1} s", row.name, row.cases, row.failures.len(), row.seconds);
    }
    for row in tried {
        assert!(row.cases > 0 && row.failures.is_empty(), "{}: {:#?}", row.name, row.failures);
    }
}
