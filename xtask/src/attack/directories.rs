//! Directories that cannot be written to, or not as one thinks.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use super::small;
use super::trees::Tree;
use super::{Attack, Case, Class, Fault, Lab};

/// Commands that write, without the directory they write to; and what makes each of them refuse its input.
const COMMANDS: [(&[&str], &[&str]); 7] = [
    (
        &[
            "pretrain", "--set", "epochs=4", "--set", "batch=2", "--seeds", "1", "--set", "states=4",
            "--json", "--fresh",
        ],
        &["--set", "kernel=none"],
    ),
    (&["reproduce", "--only", "fig4", "--quick", "--seeds", "1"], &["--only", "none"]),
    (
        &[
            "readings", "--seeds", "1", "--set", "epochs=1", "--set", "batch=1", "--set", "n=1", "--set",
            "states=3",
        ],
        &["--set", "kernel=none"],
    ),
    (&["msve", "--tasks", "2", "--lengths", "3,5", "--layers", "2"], &["--gamma", "2"]),
    (&["verify", "--trials", "2", "--layers", "2", "--length", "3"], &["--gamma", "2"]),
    (&["certify", "--states", "4"], &["--gamma", "2"]),
    (&["task", "dense", "--states", "3"], &["--gamma", "2"]),
];

/// What is wrong with a directory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    /// Its path is this, where `occupied` is a file, `loop` a link to itself and `nowhere` one to nothing.
    Path(&'static str, End),
    /// A name, or a whole path, that is too long.
    Long(&'static str, usize),
    /// It cannot be written to, or the disk is full; with earlier results in it or without.
    ReadOnly(bool),
    Full(bool),
    /// No file may have more than two kilobytes.
    Limited,
    /// One of the files to write is there as a directory.
    Taken,
    /// What is printed goes to a full disk, or nowhere.
    Shell(&'static str, End),
    /// The input is refused, so that nothing is there to be written.
    Input,
}

/// How it must end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Done,
    Refused,
    /// Either way, as long as it is said.
    Any,
}

const WRONG: [Wrong; 22] = [
    Wrong::Path("occupied", End::Refused),
    Wrong::Path("occupied/below", End::Refused),
    Wrong::Path("loop", End::Refused),
    Wrong::Path("loop/below", End::Refused),
    Wrong::Path("nowhere", End::Any),
    Wrong::Path("/proc/none", End::Refused),
    Wrong::Path("", End::Any),
    Wrong::Path("a/b/c/d", End::Done),
    Wrong::Path("odd é\u{202e} '\"$(x) name", End::Done),
    Wrong::Path("line\nbreak", End::Any),
    Wrong::Path("../case/./dots", End::Done),
    Wrong::Long("x", 300),
    Wrong::Long("x/", 5000),
    Wrong::ReadOnly(false),
    Wrong::ReadOnly(true),
    Wrong::Full(false),
    Wrong::Full(true),
    Wrong::Limited,
    Wrong::Taken,
    Wrong::Shell("exec \"$0\" \"$@\" >/dev/full", End::Refused),
    Wrong::Shell("exec \"$0\" \"$@\" 2>/dev/full", End::Any),
    Wrong::Input,
];

pub fn attacks(lab: &Lab) -> io::Result<Vec<Attack<'_>>> {
    let earlier = COMMANDS.iter().enumerate().map(|(k, (command, _))| {
        let words: Vec<&str> = command.iter().copied().chain(["--out", "out"]).collect();
        Ok(small::finished(lab, &format!("earlier-{k}"), &words)?.tree)
    });
    let earlier = earlier.collect::<io::Result<Vec<Tree>>>()?;
    let probe = Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"])
        .stderr(Stdio::null())
        .status();
    let can_mount = probe.is_ok_and(|status| status.success());
    if !can_mount {
        eprintln!("directories: nothing can be mounted here; full disks are left out");
    }
    Ok(vec![Attack::finite("directories", COMMANDS.len() * WRONG.len(), move |number, dir| {
        let (which, wrong) = (number as usize / WRONG.len(), WRONG[number as usize % WRONG.len()]);
        attempt(lab, dir, which, wrong, &earlier[which], can_mount)
    })])
}

fn attempt(
    lab: &Lab,
    dir: &Path,
    which: usize,
    wrong: Wrong,
    earlier: &Tree,
    can_mount: bool,
) -> io::Result<Case> {
    let (command, bad) = COMMANDS[which];
    fs::write(dir.join("occupied"), "a file\n")?;
    symlink("loop", dir.join("loop"))?;
    symlink("missing/inner", dir.join("nowhere"))?;
    let call = lab.call(dir, command);
    let mut kept = Tree::default();
    let out = |call: super::process::Call, path: &str| call.and(["--out", path]);
    let (call, end) = match wrong {
        Wrong::Path(path, end) => (out(call, path), end),
        Wrong::Long(part, length) => (out(call, &part.repeat(length)), End::Refused),
        Wrong::Shell(script, end) => (out(call, "out").shell(script), end),
        Wrong::Limited => {
            // The signal is ignored, so that writing fails instead; messages are a file that may not grow either, and not all
            // commands write that much.
            let script = "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\" --quiet";
            (out(call, "out").shell(script), End::Any)
        }
        Wrong::Input => {
            // `--only` is given once.
            let words: Vec<&str> =
                command.iter().copied().filter(|word| !matches!(*word, "--only" | "fig4")).collect();
            (out(lab.call(dir, &words).and(bad), "out"), End::Refused)
        }
        Wrong::Taken => {
            // The last one in order is none that says where the run belongs.
            let Some(path) = earlier.files.keys().next_back() else {
                return Err(io::Error::other("nothing is written"));
            };
            fs::create_dir_all(dir.join(path).join("inside"))?;
            let marker = earlier.files.iter().filter(|(path, _)| path.ends_with("reproduce.txt"));
            Tree { files: marker.map(|(p, b)| (p.clone(), b.clone())).collect() }.write(dir)?;
            (out(call, "out"), End::Any)
        }
        Wrong::ReadOnly(before) | Wrong::Full(before) => {
            if before {
                kept = earlier.clone();
                kept.write(&dir.join("earlier"))?;
            }
            match (can_mount, wrong) {
                (true, Wrong::ReadOnly(_)) => {
                    (out(call, "mounted/out").shell(mounted("remount,ro", "64m", false)), End::Refused)
                }
                (true, _) => {
                    (out(call, "mounted/out").shell(mounted("remount,rw", "2m", true)), End::Refused)
                }
                (false, Wrong::ReadOnly(_)) => {
                    kept.write(&dir.join("after"))?;
                    lock(&dir.join("after"), 0o555)?;
                    (out(call, "after/out"), End::Any)
                }
                (false, _) => return Ok(Case { line: "left out".into(), faults: Vec::new() }),
            }
        }
    };
    let answer = call.run()?;
    let mut faults = answer.faults();
    let mut other = |what: String| faults.push(Fault::new(Class::Other, what));
    if answer.code == Some(99) {
        return Err(io::Error::other(format!("nothing could be mounted: {}", answer.last_line())));
    }
    match (end, answer.code) {
        (End::Done, code) if code != Some(0) => other(format!("is refused: {}", answer.last_line())),
        (End::Refused, Some(0)) => other("succeeds, expected to be refused".into()),
        (End::Refused | End::Any, Some(1 | 2)) if !answer.is_refusal() && !call.shell.contains("2>") => {
            other(format!("fails without one line that says why: {}", answer.last_line()));
        }
        _ => {}
    }
    if dir.join("after").exists() {
        lock(&dir.join("after"), 0o755)?;
        let lost = Tree::read(&dir.join("after")).difference(&kept);
        if let Some(lost) = lost.filter(|_| !kept.files.is_empty()) {
            other(format!("earlier results: {lost}"));
        }
    }
    if let Some(path) = Tree::read(dir).ending(".tmp").first() {
        other(format!("{} is left behind", path.display()));
    }
    if wrong == Wrong::Input && dir.join("out").exists() {
        other("the directory is made though the input is refused".into());
    }
    let what = match wrong {
        Wrong::Path(..) | Wrong::Long(..) => String::new(),
        other => format!("{other:?}: "),
    };
    Ok(Case { line: format!("{what}{}", call.line()), faults })
}

/// Runs the program with a small file system of its own, and copies what is in it when it has ended.
fn mounted(options: &str, size: &str, fill: bool) -> String {
    let fill = if fill { "head -c 8m /dev/zero > mounted/fill 2>/dev/null;" } else { "" };
    format!(
        "exec unshare -rm sh -c 'mkdir mounted && mount -t tmpfs -o size={size} none mounted || exit 99; \
         if [ -d earlier ]; then cp -a earlier/. mounted/ || exit 99; fi; {fill} mount -o {options} mounted || exit 99; \
         \"$0\" \"$@\"; code=$?; rm -f mounted/fill 2>/dev/null; mkdir after && cp -a mounted/. after/ || exit 99; exit $code' \
         \"$0\" \"$@\""
    )
}

/// Sets the permissions of a directory and of those in it.
fn lock(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o700))?;
    for entry in fs::read_dir(path)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            lock(&entry.path(), mode)?;
        }
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
