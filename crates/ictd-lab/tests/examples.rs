//! The examples of docs/extend.md run, and are as short as the page says.
#![allow(missing_docs)]

use std::path::Path;
use std::process::Command;

#[test]
fn examples_run_and_are_short() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    for (name, expected) in [
        ("new_kernel", "theta_* with it"),
        ("new_family", "trained on 200 tasks"),
        ("new_mrp", "kept: true\npretrain: branch"),
        ("new_claim", "reproduced"),
        ("early_stop", "stopped after"),
        ("evaluate_checkpoint", "after 3 layers"),
    ] {
        let source = std::fs::read_to_string(manifest.join(format!("examples/{name}.rs"))).unwrap();
        assert!(source.lines().count() < 50, "{name}");
        // Built with the tests, beside their own directory.
        let folder = std::env::current_exe().unwrap().parent().unwrap().join("../examples");
        let output = Command::new(folder.join(name)).arg(dir.path().join(name)).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(expected), "{name}: {text}");
    }
}
