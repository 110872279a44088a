//! SIGKILL at any moment, by time and by system call.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::draw::Draw;
use super::process::Call;
use super::small::{self, Finished};
use super::trees::Tree;
use super::{Attack, Case, Class, Fault, Lab};

/// System calls at which to kill: those that change files, and those around them.
const CALLS: [&str; 7] = [
    "openat",
    "write",
    "fsync",
    "close",
    "?rename,?renameat,?renameat2",
    "?unlink,?unlinkat",
    "?mkdir,?mkdirat",
];

pub fn attacks(lab: &Lab) -> io::Result<Vec<Attack<'_>>> {
    let traced = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-e", "inject=openat:signal=KILL:when=1", "true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // Where it is not there, or may not trace, times are drawn instead.
    let has_strace = traced.is_ok_and(|status| !status.success());
    let pretrain = small::finished(lab, "trained", &small::PRETRAIN)?;
    let reproduce = small::finished(lab, "reproduced", &small::REPRODUCE)?;
    let sweep = small::swept(lab)?;
    let rerun = small::finished(lab, "trained", &small::PRETRAIN)?;
    let kill = |name: &'static str,
                command: &'static [&'static str],
                [start, more]: [&'static [&'static str]; 2],
                before: Tree,
                finished: Finished,
                is_result: fn(&str) -> bool| {
        move |number: u64, dir: &Path| {
            let mut draw = Draw::new(name, number);
            before.write(dir)?;
            let [first, again] = [start, more].map(|words| lab.call(dir, command).and(words));
            let mut line = Vec::new();
            // Sometimes what takes it up is killed too.
            for k in 0..1 + draw.below(4) / 3 {
                let call = if k == 0 { &first } else { &again };
                line.push(killed(call, &mut draw, has_strace, finished.seconds)?);
            }
            // A quarter starts over instead.
            let last = if draw.below(4) == 0 { &first } else { &again };
            let faults = taken_up(last, &finished, is_result)?;
            line.push(last.line());
            Ok(Case { line: line.join("; "), faults })
        }
    };
    Ok(vec![
        Attack::endless(
            "kills/pretrain",
            120,
            kill(
                "kills/pretrain",
                &small::PRETRAIN,
                [&["--fresh"], &["--resume"]],
                Tree::default(),
                pretrain,
                all,
            ),
        ),
        Attack::endless(
            "kills/reproduce",
            80,
            kill("kills/reproduce", &small::REPRODUCE, [&[], &[]], Tree::default(), reproduce, all),
        ),
        Attack::endless(
            "kills/sweep",
            120,
            kill("kills/sweep", &small::SWEEP, [&["--fresh"], &[]], small::plan(), sweep, small::is_swept),
        ),
        Attack::endless("kills/rerun", 60, move |number, dir| {
            let mut draw = Draw::new("kills/rerun", number);
            rerun.tree.write(dir)?;
            let anew = lab.call(dir, &small::PRETRAIN).and(["--fresh"]);
            let line = killed(&anew, &mut draw, has_strace, rerun.seconds)?;
            // The same seed gives the same bytes: results are those of before, or the same again. What the killed
            // process had begun beside them is the next one's to use or to remove.
            let lost = Tree::read(dir).lost(&rerun.tree);
            let mut faults = Vec::new();
            faults.extend(
                lost.map(|lost| Fault::new(Class::Other, format!("earlier results are lost: {lost}"))),
            );
            let again = lab.call(dir, &small::PRETRAIN).and([*draw.pick(&["--resume", "--fresh"])]);
            faults.extend(taken_up(&again, &rerun, all)?);
            Ok(Case { line: format!("on a finished run, {line}; {}", again.line()), faults })
        }),
    ])
}

/// Every file is a result.
fn all(_: &str) -> bool {
    true
}

/// Runs it to its end: what is there then is what is there after a run that nobody disturbed.
fn taken_up(call: &Call, expected: &Finished, is_result: fn(&str) -> bool) -> io::Result<Vec<Fault>> {
    let answer = call.run()?;
    let mut faults = answer.faults();
    if answer.code != Some(0) {
        faults.push(Fault::new(Class::Other, format!("is not taken up: {}", answer.last_line())));
    } else if let Some(difference) =
        Tree::read(&call.dir).only(is_result).difference(&expected.tree.clone().only(is_result))
    {
        let class = if difference.ends_with("differs") { Class::Silent } else { Class::Other };
        faults.push(Fault::new(class, difference));
    }
    Ok(faults)
}

/// Starts it and kills it, earlier until it is hit; says how.
fn killed(call: &Call, draw: &mut Draw, has_strace: bool, seconds: f64) -> io::Result<String> {
    let by_call = has_strace && draw.below(3) > 0;
    let calls = draw.pick(&CALLS);
    let mut when = 1 + draw.below(200);
    let mut after = Duration::from_secs_f64(seconds).mul_f64(draw.below(1_000_000) as f64 / 1e6);
    for _ in 0..20 {
        let (hit, how) = if by_call {
            let running = call.start_killed_at(calls, when, "killed")?;
            (running.wait()?.signal == Some(9), format!("{when}th {calls}"))
        } else {
            (call.start("killed")?.kill_after(after)?, format!("{after:.1?}"))
        };
        if hit {
            return Ok(format!("killed at {how}: {}", call.line()));
        }
        (when, after) = (1 + draw.below(when), after.mul_f64(draw.below(1000) as f64 / 1000.0));
    }
    Err(io::Error::other("it always ends before it is killed"))
}
