//! The same numbers for any number of threads and any vector instructions.

use std::io;

use super::process::Call;
use super::trees::Tree;
use super::{Attack, Case, Class, Fault, Lab, small};

const THREADS: [&str; 4] = ["2", "4", "7", "16"];

/// Commands in which work is spread over threads.
const COMMANDS: [&[&str]; 11] = [
    &small::PRETRAIN,
    &small::REPRODUCE,
    &small::READINGS,
    &["reproduce", "--only", "fig1,thm1,fig3a", "--quick", "--seeds", "2", "--out", "found"],
    &["msve", "--tasks", "20", "--lengths", "3,9,27", "--layers", "4", "--json"],
    &["verify", "--trials", "6", "--json"],
    &["certify", "--task", "dense", "--states", "12", "--json"],
    &["bound", "--states", "4", "--lengths", "50,500", "--contexts", "30", "--json"],
    &["neu", "--states", "4", "--lengths", "5,20", "--layers", "1,3", "--samples", "40", "--json"],
    &["lemmas", "--trials", "50", "--states", "4", "--json"],
    &["regimes", "--tasks", "2", "--states", "6", "--json"],
];

/// Levels with fused multiply-add, which give the same bits, and those without.
const GROUPS: [[&str; 2]; 2] = [["avx2", "avx512"], ["scalar", "sse2"]];

/// Parameters that the two groups of levels may differ by: they are numbers of single precision, and errors of rounding grow
/// while they are trained.
const TOLERANCE: f64 = 1e-4;

pub fn attacks(lab: &Lab) -> io::Result<Vec<Attack<'_>>> {
    let threads = Attack::finite("levels/threads", COMMANDS.len() * THREADS.len(), move |number, dir| {
        let (command, threads) =
            (COMMANDS[number as usize / THREADS.len()], THREADS[number as usize % THREADS.len()]);
        let with = |name: &str, threads: &str| {
            let dir = dir.join(name);
            std::fs::create_dir_all(&dir)?;
            result(lab.call(&dir, command).env("RAYON_NUM_THREADS", threads))
        };
        let (one, many) = (with("one", "1")?, with("many", threads)?);
        Ok(Case { line: many.line.clone(), faults: same(&one, &many).into_iter().collect() })
    });
    let levels: Vec<&str> = GROUPS.concat();
    let levels = Attack::finite("levels/simd", levels.len() * 2, move |number, dir| {
        let (level, is_source) = (levels[number as usize / 2], number % 2 == 1);
        let more: &[&str] = if is_source { &["--set", "query=source"] } else { &[] };
        let with = |level: &str| {
            let dir = dir.join(level);
            std::fs::create_dir_all(&dir)?;
            result(lab.call(&dir, &small::PRETRAIN).and(more).env("ICTD_SIMD", level))
        };
        let (found, group) = (with(level)?, GROUPS.iter().find(|group| group.contains(&level)));
        let line = found.line.clone();
        // A level that the processor lacks is refused.
        if found.code == Some(2) {
            return Ok(Case { line, faults: Vec::new() });
        }
        let mut faults = Vec::new();
        for other in GROUPS.concat().into_iter().filter(|other| *other != level) {
            let other_found = with(other)?;
            if other_found.code == Some(2) {
                continue;
            }
            let is_same = group.is_some_and(|group| group.contains(&other));
            let fault = if is_same { same(&other_found, &found) } else { near(&other_found, &found) };
            faults.extend(
                fault.map(|fault| Fault::new(fault.class, format!("beside {other}: {}", fault.what))),
            );
        }
        Ok(Case { line, faults })
    });
    Ok(vec![threads, levels])
}

struct Found {
    line: String,
    code: Option<i32>,
    stdout: serde_json::Value,
    tree: Tree,
    last_line: String,
}

fn result(call: Call) -> io::Result<Found> {
    let call = call.patient();
    let answer = call.run()?;
    let mut stdout = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    if let serde_json::Value::Object(entries) = &mut stdout {
        entries.remove("train_seconds");
    }
    let last_line = answer.last_line().to_owned();
    Ok(Found { line: call.line(), code: answer.code, stdout, tree: Tree::read(&call.dir), last_line })
}

fn same(expected: &Found, found: &Found) -> Option<Fault> {
    if found.code != expected.code || !matches!(found.code, Some(0 | 1 | 3)) {
        let what = format!("exit code {:?}, expected {:?}: {}", found.code, expected.code, found.last_line);
        return Some(Fault::new(Class::Other, what));
    }
    let silent = |what: String| Fault::new(Class::Silent, what);
    if found.stdout != expected.stdout {
        return Some(silent("prints other numbers".into()));
    }
    found.tree.difference(&expected.tree).map(silent)
}

/// Parameters of the same run agree within the tolerance.
fn near(expected: &Found, found: &Found) -> Option<Fault> {
    let parameters = |found: &Found| -> Vec<f64> {
        let seed = &found.stdout["seeds"][0];
        let list = |name: &str| seed[name].as_array().cloned().unwrap_or_default();
        [list("value_row"), list("score_diag")]
            .concat()
            .iter()
            .filter_map(serde_json::Value::as_f64)
            .collect()
    };
    let (wanted, got) = (parameters(expected), parameters(found));
    let largest = wanted.iter().zip(&got).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let is_near = !wanted.is_empty() && wanted.len() == got.len() && largest <= TOLERANCE;
    (!is_near).then(|| {
        Fault::new(Class::Silent, format!("parameters differ by {largest:e}, expected {TOLERANCE:e}"))
    })
}
