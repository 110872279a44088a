//! `--seeds` means the same wherever it stands.
#![allow(missing_docs)]

mod common;

use common::{assert_refused, ictd, ictd_in, json};

const COMMANDS: [&str; 6] = ["pretrain", "branches", "readings", "mirror", "reproduce", "sweep"];

/// The help of an option in one line, without its default.
fn help(command: &str, option: &str) -> Option<String> {
    let text = String::from_utf8(ictd(&[command, "--help"]).stdout).unwrap();
    let entry = text.split(&format!("      {option} ")).nth(1)?;
    let words: Vec<&str> = entry.split("\n      --").next()?.split_whitespace().collect();
    Some(words[1..].join(" ").split(" [default").next()?.to_owned())
}

#[test]
fn every_command_says_the_same_about_seeds() {
    let texts = COMMANDS.map(|command| help(command, "--seeds").unwrap());
    assert!(texts[0].contains("A..B") && texts[0].contains("0..5,10,20..25"), "{}", texts[0]);
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:#?}");
    // No other command has the option.
    let listed = String::from_utf8(ictd(&["--help"]).stdout).unwrap();
    for line in listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        assert!(COMMANDS.contains(&name) || help(name, "--seeds").is_none(), "{name}");
    }
}

#[test]
fn seeds_that_are_none_are_refused_everywhere_alike() {
    let dir = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        for bad in ["0", "5..5", "1,,2", "1,1", "-1", "a", "2000000", "0,18446744073709551615"] {
            let output = ictd_in(dir.path(), &[command, "--seeds", bad]);
            assert_refused(&output, &format!("error: seeds is '{bad}' ("));
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Where seeds were counted from `--seed` the range says it; a mistyped option is answered with the one that is there.
#[test]
fn commands_with_many_seeds_have_no_other() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["pretrain", "branches", "readings", "mirror"] {
        let output = ictd_in(dir.path(), &[command, "--seed", "3"]);
        assert_refused(&output, "'--seed'");
        assert!(String::from_utf8_lossy(&output.stderr).contains("'--seeds'"), "{command}");
    }
}

fn trained(arguments: &[&str]) -> Vec<u64> {
    let dir = tempfile::tempdir().unwrap();
    let small = ["pretrain", "--set", "epochs=1", "--set", "batch=1", "--json", "--seeds"];
    let found = json(&ictd_in(dir.path(), &[&small[..], arguments].concat()));
    found["seeds"].as_array().unwrap().iter().map(|seed| seed["seed"].as_u64().unwrap()).collect()
}

#[test]
fn numbers_ranges_and_lists_train_what_they_say() {
    assert_eq!(trained(&["2"]), [0, 1]);
    assert_eq!(trained(&["3..5"]), [3, 4]);
    assert_eq!(trained(&["0..2,7,4..6"]), [0, 1, 7, 4, 5]);
}

/// The path of `mirror` and the readings take any seeds, and name them as they can be typed.
#[test]
fn studies_take_lists_too() {
    let dir = tempfile::tempdir().unwrap();
    let mirror = ["mirror", "--seeds", "5,1..3", "--epochs", "2", "--tasks", "1", "--json"];
    let found = json(&ictd_in(dir.path(), &mirror));
    assert_eq!(found["settling"][0]["seeds"], 3);
    let readings = ["readings", "--seeds", "2,5", "--set", "epochs=1", "--set", "batch=1", "--set", "n=1"];
    let found = json(&ictd_in(dir.path(), &[&readings[..], &["--json"]].concat()));
    let command = found["rows"][0]["command"].as_str().unwrap();
    assert!(command.ends_with("--seeds 2,5"), "{command}");
    let only = ["reproduce", "--only", "fig3a", "--quick", "--seeds", "4..6", "--seed", "3", "--json"];
    let found = json(&ictd_in(dir.path(), &only));
    let command = found["claims"][0]["command"].as_str().unwrap();
    assert!(command.contains("--seed 3 --seeds 4..6"), "{command}");
}
