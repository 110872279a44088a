//! Set-up, tests and benches of the repository: `cargo xtask help`.

use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
cargo xtask test             format, lints, all tests, documentation
cargo xtask bench forward    speed of the forward pass
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test(),
        ["bench", "forward"] => bench("forward"),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            true
        }
        _ => {
            eprintln!("xtask: unknown command '{}'\n{HELP}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn test() -> bool {
    let start = Instant::now();
    let passed = component("rustfmt")
        && component("clippy")
        && cargo("format", &["fmt", "--all", "--check"], &[])
        && cargo(
            "lints",
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
            &[],
        )
        && cargo("tests", &["test", "--workspace", "--locked"], &[])
        && cargo(
            "documentation",
            &["doc", "--workspace", "--no-deps", "--locked"],
            &[("RUSTDOCFLAGS", "-D warnings")],
        );
    let outcome = if passed { "all passed" } else { "FAILED" };
    eprintln!("xtask test: {outcome} in {:.0} s", start.elapsed().as_secs_f64());
    passed
}

fn bench(name: &str) -> bool {
    cargo("bench", &["bench", "--quiet", "--package", "ictd-lab", "--bench", name, "--locked"], &[])
}

/// Installs a toolchain component that a minimal Rust installation lacks.
fn component(name: &str) -> bool {
    let tool = if name == "clippy" { "clippy" } else { "fmt" };
    let there =
        Command::new(env!("CARGO")).args([tool, "--version"]).output().is_ok_and(|o| o.status.success());
    there || run("set-up", Command::new("rustup").args(["component", "add", name]))
}

fn cargo(step: &str, arguments: &[&str], environment: &[(&str, &str)]) -> bool {
    run(step, Command::new(env!("CARGO")).args(arguments).envs(environment.iter().copied()))
}

fn run(step: &str, command: &mut Command) -> bool {
    eprintln!("xtask {step}: {command:?}");
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("xtask {step}: could not start: {error}");
            false
        }
    }
}
