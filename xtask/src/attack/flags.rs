//! Values that nobody means, for every option of every command, as `--help` lists them.

use std::fs;
use std::io;
use std::path::Path;

use super::draw::Draw;
use super::process::Call;
use super::trees::Tree;
use super::{Attack, Case, Lab, small};

/// Small settings of each command, without which most cases would take minutes.
const SMALL: [(&str, &[&str]); 17] = [
    ("reproduce", &["--only=fig4", "--quick", "--seeds=1"]),
    ("verify", &["--trials=2", "--layers=2", "--length=3", "--features=2", "--states=3"]),
    ("msve", &["--tasks=2", "--layers=2", "--lengths=3,5"]),
    ("pretrain", &["--set=epochs=3", "--set=batch=2", "--seeds=1", "--states=5", "--features=2"]),
    (
        "readings",
        &["--seeds=1", "--set=epochs=1", "--set=batches=1", "--set=batch=1", "--set=n=1", "--set=states=3"],
    ),
    (
        "branches",
        &["--seeds=1", "--set=epochs=1", "--set=batches=1", "--set=batch=1", "--set=n=1", "--set=layers=1"],
    ),
    (
        "sweep",
        &[
            "quick",
            "--seeds=1",
            "--set=epochs=2",
            "--set=batches=1",
            "--set=batch=2",
            "--set=n=2",
            "--set=states=3",
        ],
    ),
    ("mirror", &["--seeds=1", "--epochs=2", "--tasks=1"]),
    ("control", &["--verify", "--trials=1"]),
    ("certify", &["--states=4"]),
    ("regimes", &["--tasks=1", "--states=4"]),
    ("bound", &["--states=4", "--lengths=10", "--contexts=3"]),
    ("neu", &["--states=4", "--lengths=3", "--layers=1", "--samples=4"]),
    ("lemmas", &["--trials=2", "--states=4"]),
    ("forward", &["--input=CONTEXT", "--layers=2"]),
    ("circuit", &["td"]),
    ("task", &["dense"]),
];

/// Values at the ends of what can be written, and what is no value at all.
const VALUES: [&str; 62] = [
    "0",
    "-0.0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "5",
    "8",
    "7.5",
    "0.5",
    "0.9",
    "0.99",
    "0.999999999",
    "1000",
    "999",
    "1e-3",
    "1e-16",
    "1e-300",
    "1e-320",
    "5e-324",
    "-5e-324",
    "1e16",
    "1e100",
    "1e154",
    "5e307",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "1e999",
    "65536",
    "4294967295",
    "4294967296",
    "200000000000",
    "1000000000000000",
    "9000000000000000000",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "NaN",
    "nan",
    "-NaN",
    "inf",
    "-inf",
    "Infinity",
    "",
    " ",
    "\n",
    "1\n2",
    "a",
    "é\u{202e}",
    "0x10",
    "1_000",
    "+1",
    "--",
    "-",
    "null",
    "true",
    "1e",
    "{}",
];

/// Lists and ranges.
const LISTS: [&str; 14] = [
    "1,2",
    ",",
    "1,,2",
    "0,1",
    "3,3",
    "5..0",
    "0..2",
    "0..0",
    "..",
    "0..18446744073709551615",
    "18446744073709551615",
    "1,-1",
    "1000000,1",
    "9000000000000000000,1",
];

const NAMES: [&str; 14] = [
    "boyan",
    "loop",
    "figure-1",
    "dense",
    "coin",
    "cartpole",
    "TASK",
    "CONTEXT",
    "PARAMS",
    "CONFIG",
    "NONE",
    ".",
    "/dev/null",
    "BINARY",
];

const KERNELS: [&str; 6] = ["softmax", "relu", "elu1", "rbf", "linear", "tabular"];

/// Directories below the one of the case, so that nothing else is written to.
const DIRS: [&str; 9] =
    ["new", "a/b/c", "", "occupied", "occupied/below", "odd é\u{202e} name", "line\nbreak", "-", "NaN"];

const KEYS: [&str; 30] = [
    "epochs",
    "batches",
    "batch",
    "n",
    "layers",
    "temperature",
    "init.gain",
    "optimizer.lr",
    "optimizer.beta1",
    "optimizer.beta2",
    "optimizer.epsilon",
    "rho.start",
    "rho.end",
    "rho.steps",
    "task.gamma",
    "task.states",
    "task.features",
    "task.score_scale",
    "task.threshold",
    "query",
    "target",
    "kernel",
    "mask",
    "tied",
    "loss",
    "block",
    "source.columns",
    "init.score_sign",
    "optimizer.name",
    "rho.query",
];

const WORDS: [&str; 12] = [
    "skip",
    "source",
    "same",
    "none",
    "relaxed",
    "looped",
    "false",
    "sgd",
    "stationary",
    "n+1",
    "dual",
    "linear",
];

/// An option as `--help` shows it.
struct Flag {
    name: String,
    /// What its value is called; none where it takes none.
    value: Option<String>,
}

/// One attack per command.
pub fn attacks(lab: &Lab) -> io::Result<Vec<Attack<'_>>> {
    let inputs = lab.dir("inputs")?;
    for (name, text) in [("CONTEXT", small::CONTEXT), ("TASK", small::TASK), ("PARAMS", small::PARAMS)] {
        fs::write(inputs.join(name), text)?;
    }
    fs::write(inputs.join("CONFIG"), "epochs = 2\nbatch = 2\n")?;
    fs::write(inputs.join("BINARY"), [0xff, 0xfe, 0, 1, 2, 3])?;
    let help = lab.call(&inputs, &["--help"]).run()?;
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<String> =
        names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect();
    let mut attacks = Vec::new();
    for command in names.into_iter().filter(|name| name != "help") {
        let flags = flags(lab, &inputs, &command)?;
        let inputs = inputs.clone();
        let name = format!("flags/{command}");
        attacks.push(Attack::endless(&*name, 300, {
            let name = name.clone();
            move |number, dir| {
                let mut draw = Draw::new(&name, number);
                fs::write(dir.join("occupied"), "a file\n")?;
                let call = Call::new(&lab.program, dir, arguments(&command, &flags, &inputs, &mut draw));
                let answer = call.run()?;
                let mut faults = answer.faults_with(&Tree::read(dir));
                // Exact values of cart-poles are not known, and neither are errors against them.
                if call.line().contains("cartpole") {
                    faults.retain(|fault| !fault.what.starts_with("null as msve"));
                }
                Ok(Case { line: call.line(), faults })
            }
        }));
    }
    Ok(attacks)
}

fn flags(lab: &Lab, dir: &Path, command: &str) -> io::Result<Vec<Flag>> {
    let help = lab.call(dir, &[command, "-h"]).run()?;
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let flag = |line: &str| {
        let rest = line.trim_start().split_once("--").filter(|(before, _)| before.len() <= 4)?.1;
        let mut words = rest.split_whitespace();
        let name = words.next()?.to_owned();
        let value = words.next().filter(|word| word.starts_with('<')).map(str::to_owned);
        (name != "help").then_some(Flag { name, value })
    };
    Ok(help.lines().filter(|line| line.starts_with("  ")).filter_map(flag).collect())
}

/// Words of a command line: small settings, of which one to three options are given other values.
fn arguments(command: &str, flags: &[Flag], inputs: &Path, draw: &mut Draw) -> Vec<String> {
    let small = SMALL.iter().find(|(name, _)| *name == command).map_or(&[][..], |(_, words)| words);
    let mut words: Vec<String> = small.iter().map(|word| named(word, inputs)).collect();
    if flags.is_empty() || command == "completions" {
        words.push(value("SHELL", inputs, draw));
    }
    for _ in 0..1 + draw.below(5) / 3 {
        let Some(flag) = (!flags.is_empty()).then(|| draw.pick(flags)) else { break };
        let option = format!("--{}", flag.name);
        if flag.name != "set" {
            words.retain(|word| word.split('=').next() != Some(&option));
        }
        match &flag.value {
            None => words.push(option),
            // A value may begin with a hyphen; both ways to write it are common.
            Some(kind) if draw.below(2) == 0 => words.push(format!("{option}={}", value(kind, inputs, draw))),
            Some(kind) => words.extend([option, value(kind, inputs, draw)]),
        }
    }
    if draw.below(2) == 0 && !words.iter().any(|word| word == "--json") && command != "completions" {
        words.push("--json".into());
    }
    // A word that belongs to no option.
    if draw.below(20) == 0 {
        words.push(value("WORD", inputs, draw));
    }
    words.insert(0, command.to_owned());
    words
}

fn value(kind: &str, inputs: &Path, draw: &mut Draw) -> String {
    // Sometimes what another option expects.
    let list: &[&str] = match draw.below(12) {
        0 if kind != "<DIR>" => return "x".repeat(70_000),
        1 if kind != "<DIR>" => &NAMES,
        2 if kind != "<DIR>" => &LISTS,
        _ if kind == "<KEY=VALUE>" => {
            let (key, word) =
                (draw.pick(&KEYS), if draw.below(4) == 0 { draw.pick(&WORDS) } else { draw.pick(&VALUES) });
            return format!("{key}={word}");
        }
        _ if kind == "<DIR>" => &DIRS,
        _ if kind.contains("NAME") || kind.contains("FILE") => &NAMES,
        _ if kind.contains("KERNEL") || kind == "SHELL" => &KERNELS,
        _ if kind.contains(',') || kind.contains("SEEDS") => {
            if draw.below(2) == 0 {
                &LISTS
            } else {
                &VALUES
            }
        }
        _ => &VALUES,
    };
    named(list[draw.below(list.len())], inputs)
}

/// The word with the name of an input replaced by its path.
fn named(word: &str, inputs: &Path) -> String {
    let (before, last) = word.rsplit_once('=').map_or(("", word), |(before, last)| (before, last));
    let is_input = matches!(last, "CONTEXT" | "TASK" | "PARAMS" | "CONFIG" | "BINARY" | "NONE");
    match (is_input, before) {
        (false, _) => word.to_owned(),
        (true, "") => inputs.join(last).to_string_lossy().into_owned(),
        (true, before) => format!("{before}={}", inputs.join(last).display()),
    }
}
