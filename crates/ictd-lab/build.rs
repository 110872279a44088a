//! Puts the compiler's version and the commit into the program, for the provenance of runs.

use std::process::Command;

/// What a command prints, without the last line end; `None` when it fails.
fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = printed(&rustc, &["--version"]).unwrap_or_else(|| "unknown".into());
    // Without git, or outside a checkout, the commit is unknown and nothing else changes.
    let commit = printed("git", &["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let dirty =
        printed("git", &["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty());
    println!("cargo::rustc-env=ICTD_RUSTC={version}");
    println!("cargo::rustc-env=ICTD_COMMIT={commit}{}", if dirty { " with changes" } else { "" });
    println!("cargo::rerun-if-changed=build.rs");
    // A file that is not there would count as changed every time.
    let log =
        printed("git", &["rev-parse", "--absolute-git-dir"]).map(|folder| format!("{folder}/logs/HEAD"));
    if let Some(log) = log.filter(|log| std::path::Path::new(log).is_file()) {
        println!("cargo::rerun-if-changed={log}");
    }
}
