//! The first cases of `cargo xtask attack`: the same in every run. Its readers have a test of their own.
#![cfg(unix)]
#![allow(dead_code, missing_docs)]

#[path = "../../../xtask/src/attack/mod.rs"]
mod attack;

use std::path::Path;

use attack::{Extent, Lab};

/// Attacks of which one case in so many is tried here, the first ones; `cargo xtask attack` does them all.
const ENABLED: [(&str, u64); 11] = [
    ("flags/task", 8),
    ("flags/forward", 8),
    ("flags/completions", 30),
    ("flags/branches", 60),
    ("flips/readings-journal", 200),
    ("flips/context", 25),
    ("flips/params-json", 25),
    ("flips/config", 25),
    ("directories", 10),
    ("levels/threads", 8),
    ("levels/simd", 4),
];

#[test]
fn attacks_find_nothing() {
    let lab = Lab::open(Path::new(env!("CARGO_BIN_EXE_ictd"))).unwrap();
    let wanted = ENABLED.map(|(name, part)| (name, Extent::Part(part)));
    let mut tried = Vec::new();
    attack::all(&lab, &wanted, |row| tried.push(row)).unwrap();
    // A name that is misspelt would try nothing.
    assert_eq!(tried.len(), ENABLED.len());
    for row in tried {
        println!("{}: {} cases, {:.1} s", row.name, row.cases, row.seconds);
        assert!(row.cases > 0 && row.failures.is_empty(), "{}: {:#?}", row.name, row.failures);
    }
}
