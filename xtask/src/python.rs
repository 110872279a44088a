//! The Python package: built as `pip install` builds it, then its tests, types, examples and notebooks.

use std::process::{Child, Command};

use crate::{cargo, output, run};

const CRATE: &str = "crates/ictd-py";
const VENV: &str = "target/python-venv";
const PYTHON: &str = "target/python-venv/bin/python";
/// Bytes that a wheel may have.
const MAX_WHEEL: u64 = 5_000_000;
/// What tests need besides the package.
const REQUIREMENTS: &str = "crates/ictd-py/tests/requirements.txt";

/// The environment of the tests, which is made while other things are compiled: it waits for the network most of the time.
pub struct Environment(Option<Child>);

impl Environment {
    /// Begins to make it, unless it is there with what is asked for.
    pub fn begin() -> Self {
        let script = format!(
            "test -x {PYTHON} || python3 -m venv {VENV}; {PYTHON} -m pip install --quiet --no-compile --disable-pip-version-check --requirement {REQUIREMENTS}"
        );
        Self(Command::new("sh").args(["-ec", &script]).spawn().ok())
    }

    /// Waits until it is made.
    fn wait(self) -> bool {
        let made = self.0.and_then(|mut child| child.wait().ok()).is_some_and(|status| status.success());
        if !made {
            eprintln!("xtask python: could not make {VENV}, expected Python 3.11 or newer with venv and pip");
        }
        made
    }
}

/// Installs the package into the environment, built by cargo with these arguments.
fn install(build: &str) -> bool {
    // `--no-deps`: what it depends on is there already.
    let options =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"];
    let build = format!("--config-settings=build-args={build} --locked");
    run("python", Command::new(PYTHON).args(options).args([&build, CRATE]))
}

/// Types, tests, examples and notebooks, of a package built as tests of Rust are: what those have compiled is not compiled again.
pub fn test(environment: Environment) -> bool {
    let module = |step: &str, arguments: &[&str]| {
        let mut python = Command::new("../../target/python-venv/bin/python");
        python.env("ICTD_BINARY", "../../target/debug/ictd").env("ICTD_NO_SKIPS", "1");
        run(step, python.arg("-m").args(arguments).current_dir(CRATE))
    };
    environment.wait()
        && install("--profile dev --features as-in-tests")
        && module("types", &["mypy", "--package", "ictd"])
        && module("types", &["mypy.stubtest", "--concise", "--ignore-disjoint-bases", "ictd._core"])
        && module("types", &["pyright", "--pythonpath", "../../target/python-venv/bin/python"])
        && module("python", &["pytest", "--quiet", "tests"])
        && module(
            "examples",
            &["pytest", "--quiet", "--doctest-modules", "--import-mode=importlib", "--pyargs", "ictd"],
        )
}

/// What a reader does: `pip install` in a new environment, then the README's Python; with the newest NumPy and with the oldest. The wheel
/// is as small as is promised.
pub fn fresh() -> bool {
    let Some((program, expected)) = readme() else {
        eprintln!("xtask python: README.md has no Python");
        return false;
    };
    let reads = |numpy: &str| {
        let folder = "target/python-fresh";
        let python = format!("{folder}/bin/python");
        let pip = |wanted: &str| {
            let options = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted];
            run("set-up", Command::new(&python).args(options))
        };
        run("set-up", Command::new("python3").args(["-m", "venv", "--clear", folder]))
            && pip(numpy)
            && pip("./crates/ictd-py")
            && output(Command::new(&python).args(["-c", &program])).is_some_and(|printed| {
                eprintln!("xtask python: the README's Python with {numpy} prints {}", printed.trim_end());
                printed == expected
            })
    };
    Environment::begin().wait() && reads("numpy") && reads("numpy==1.26.*") && wheel_size()
}

/// The README's Python, and what it says that it prints.
fn readme() -> Option<(String, String)> {
    let text = std::fs::read_to_string("README.md").ok()?;
    let (program, _) = text.split_once("```python\n")?.1.split_once("```")?;
    let said = program.lines().filter_map(|line| line.strip_prefix("#> ")).map(|line| format!("{line}\n"));
    Some((program.to_owned(), said.collect()))
}

/// What the package costs over the engine and the command line.
pub fn bench() -> bool {
    let predict = ["build", "--release", "--locked", "--package", "ictd-lab", "--example", "predict"];
    let programs =
        ["crates/ictd-py/benches/overhead.py", "target/release/ictd", "target/release/examples/predict"];
    Environment::begin().wait()
        && cargo("build", &["build", "--release", "--locked"], &[])
        && cargo("build", &predict, &[])
        && install("--profile wheel")
        && run("bench", Command::new(PYTHON).args(programs))
        && wheel_size()
}

/// Prints the size of the wheel that `pip install` makes; whether it is as small as is promised.
fn wheel_size() -> bool {
    let folder = "target/python-wheel";
    let options = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, CRATE];
    // One of an earlier version is none of this one.
    let _ = std::fs::remove_dir_all(folder);
    if !run("wheel", Command::new(PYTHON).args(options)) {
        return false;
    }
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes: Vec<u64> = files.filter_map(|file| Some(file.metadata().ok()?.len())).collect();
    println!("wheel: {sizes:?} bytes, at most {MAX_WHEEL}");
    matches!(sizes[..], [size] if size <= MAX_WHEEL)
}
