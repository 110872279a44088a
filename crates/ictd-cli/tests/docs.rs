//! Every command in the README and the docs, run as it stands there, with fewer samples where that takes long.
#![allow(missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;

/// Added to commands that take long as they are: the same code, fewer samples.
const SMALLER: [(&str, &[&str]); 9] = [
    ("reproduce", &["--quick", "--seeds", "1"]),
    ("pretrain", &["--set", "epochs=20"]),
    ("readings", &["--seeds", "1", "--set", "epochs=2"]),
    ("mirror", &["--seeds", "1", "--epochs", "20", "--tasks", "3"]),
    ("regimes", &["--tasks", "1", "--states", "12"]),
    ("bound", &["--contexts", "2"]),
    ("neu", &["--samples", "20"]),
    ("lemmas", &["--trials", "20"]),
    ("msve", &["--tasks", "20"]),
];
/// Minutes as they are and smaller alike, as is --self-test; `cargo xtask slow` runs them.
const SLOW: [&str; 1] = ["branches"];
/// More than any of them takes, smaller as they are.
const PATIENCE: Duration = Duration::from_secs(300);
/// It needs a page that `cargo xtask explorer` builds, and serves it until it is stopped; it has tests of its own.
const EXPLORE: &str = "explore";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Lines of the `sh` blocks, continuation lines joined, without comments, and the exit code that a comment tells.
fn commands(text: &str) -> Vec<(String, i32)> {
    let mut found = Vec::new();
    for block in text.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default().replace("\\\n", " ");
        found.extend(block.lines().map(|line| {
            let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
            (command.trim().to_owned(), if comment.contains("exit code 3") { 3 } else { 0 })
        }));
    }
    found
}

/// What the shell would hand to the program: words, with single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (k, part) in line.split('\'').enumerate() {
        if k % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// The README and every page of the docs, in order.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    for folder in ["docs", "docs/constructions"] {
        pages.extend(fs::read_dir(root().join(folder)).unwrap().map(|e| e.unwrap().path()));
    }
    pages.retain(|p| p.extension().is_some_and(|e| e == "md"));
    pages.sort();
    pages
}

#[test]
fn commands_in_the_docs_run() {
    let dir = tempfile::tempdir().unwrap();
    // Commands speak of the logs of the tutorial as seen from the root.
    fs::create_dir_all(dir.path().join("docs/data")).unwrap();
    for log in fs::read_dir(root().join("docs/data")).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&log, dir.path().join("docs/data").join(log.file_name().unwrap())).unwrap();
    }
    let mut ran = 0;
    for page in pages() {
        for (line, code) in commands(&fs::read_to_string(&page).unwrap()) {
            let Some((before, arguments)) = line.split_once("cargo run --release -- ") else {
                let other = [
                    "cargo xtask ",
                    "cargo run --release -p ictd-lab --example ",
                    "pip install ./crates/ictd-py",
                ];
                assert!(other.iter().any(|o| line.starts_with(o)), "{}: {line}", page.display());
                continue;
            };
            let mut arguments = words(arguments);
            let name = arguments[0].as_str();
            if SLOW.contains(&name) || name == EXPLORE || arguments.iter().any(|a| a == "--self-test") {
                continue;
            }
            // --check compares full runs, and --quick is given once.
            let as_it_is = arguments.iter().any(|a| a == "--check" || a == "--quick");
            let smaller = SMALLER.iter().find(|(name, _)| *name == arguments[0] && !as_it_is);
            arguments.extend(smaller.iter().flat_map(|(_, more)| more.iter().map(|s| s.to_string())));
            let mut command = Command::cargo_bin("ictd").unwrap();
            command.current_dir(dir.path()).args(&arguments);
            if let Some(input) = before.strip_prefix("echo ") {
                command.write_stdin(words(input)[0].clone());
            }
            // One that never ends is a failure, and not a test that never ends.
            let output = command.timeout(PATIENCE).output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{}: {line}\n{message}", page.display());
            ran += 1;
        }
    }
    // A test that finds nothing to run would pass.
    assert!(ran >= 35, "{ran}");
}

/// What stands under a command is what it prints: line by line and in this order, also where the page leaves lines out.
#[test]
fn what_forward_prints_in_the_docs_is_what_it_prints() {
    let mut compared = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for part in text.split("```sh\n").skip(1) {
            let Some((block, after)) = part.split_once("```\n") else { continue };
            let Some(shown) = after.trim_start_matches('\n').strip_prefix("```text\n") else { continue };
            let shown = shown.split("```").next().unwrap_or_default();
            let commands = commands(&format!("```sh\n{block}```"));
            if !commands.iter().all(|(line, _)| line.contains("-- forward ")) {
                continue;
            }
            let mut printed = Vec::new();
            for (line, _) in commands {
                let (before, arguments) = line.split_once("cargo run --release -- ").unwrap();
                let mut command = Command::cargo_bin("ictd").unwrap();
                command.args(words(arguments));
                if let Some(input) = before.strip_prefix("echo ") {
                    command.write_stdin(words(input)[0].clone());
                }
                let output = command.timeout(PATIENCE).output().unwrap();
                for text in [output.stdout, output.stderr] {
                    printed.extend(String::from_utf8(text).unwrap().lines().map(|l| l.trim_end().to_owned()));
                }
            }
            let mut left = printed.iter();
            for line in shown.lines().map(str::trim_end).filter(|line| *line != "…") {
                let found = left.any(|printed| printed == line);
                assert!(found, "{}: '{line}' is not, or not in this order, in {printed:#?}", page.display());
            }
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared}");
}

/// The table of keys in the docs is the commented configuration, row by row.
#[test]
fn the_table_of_keys_is_what_print_config_says() {
    let output = Command::cargo_bin("ictd").unwrap().args(["pretrain", "--print-config"]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    let mut table = String::new();
    let mut rows = Vec::new();
    for pair in lines.windows(2) {
        if let Some(name) = pair[1].strip_prefix('[') {
            table = name.replace(']', ".");
        } else if let Some((key, _)) = pair[1].split_once(" = ") {
            let comment = pair[0].trim_start_matches("# ").trim_end_matches(']');
            let (about, default) = comment.split_once(" [default: ").unwrap();
            let (purpose, range) = about.rsplit_once(": ").unwrap();
            rows.push(format!("| `{table}{key}` | {} | {purpose} | {range} |", default.trim_matches('"')));
        }
    }
    let page = fs::read_to_string(root().join("docs/pretrain.md")).unwrap();
    let written: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(rows.len() > 30);
    assert_eq!(written, rows, "the table should be:\n{}", rows.join("\n"));
}

/// What a link to a heading says after `#`: lower case, hyphens for spaces, letters, digits and hyphens only.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|&c| c.is_alphanumeric() || c == '-' || c == '_').collect()
}

/// Links between pages lead to a file, and to a heading in it where they name one; every page is in the index.
#[test]
fn links_in_the_docs_lead_somewhere() {
    let [index, map] =
        ["README", "index"].map(|name| fs::read_to_string(root().join(format!("docs/{name}.md"))).unwrap());
    let mut headings = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for part in text.split("](").skip(1) {
            let link = part.split(')').next().unwrap_or_default();
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let found = text.lines().any(|line| line.starts_with('#') && anchor(line) == heading);
                assert!(found, "{}: {link}", page.display());
                headings += 1;
            }
        }
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let is_listed =
            index.contains(&format!("({name})")) || map.contains(&format!("(constructions/{name})"));
        assert!(name == "README.md" || is_listed, "{name} is not in the index");
    }
    assert!(headings >= 10, "{headings}");
}

/// Every construction has a page, and all pages have the same headings.
#[test]
fn constructions_have_pages_of_one_form() {
    let folder = root().join("docs/constructions");
    for algorithm in ictd::construction::Algorithm::ALL {
        assert!(folder.join(format!("{algorithm}.md")).exists(), "{algorithm} has no page");
    }
    let expected = ["What it computes", "Prompt", "Layer", "Why it is so", "Run it", "Verified", "Sources"];
    for page in fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()) {
        let text = fs::read_to_string(&page).unwrap();
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, expected, "{}", page.display());
    }
}

/// Words that readers stumbled on, and references that only the authors could follow, stay out of the docs.
#[test]
fn the_docs_say_it_in_the_words_of_the_glossary() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '§') {
            let bad = ["road", "roads", "strangers", "litter", "SPEC", "§", "TODO"];
            assert!(!bad.contains(&word), "{}: {word}", page.display());
        }
        assert!(!text.contains("Lead ("), "{}", page.display());
    }
}
