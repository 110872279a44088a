//! The Python package: built as `pip install` builds it, then its tests, types, examples and notebooks.

use std::process::{Child, Command};

use crate::{cargo, output, run};

const CRATE: &str = "crates/ictd-py";
const VENV: &str = "target/python-venv";
const PYTHON: &str = "target/python-venv/bin/python";
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
        run(
            step,
            python.arg("-m").args(arguments).current_dir(CRATE).env("ICTD_BINARY", "../../target/debug/ictd"),
        )
    };
    environment.wait()
        && install("--profile dev --features as-in-tests")
        && module("types", &["mypy", "--package", "ictd"])
        && module("python", &["pytest", "--quiet", "tests"])
        && module(
            "examples",
            &[
                "pytest",
                "--quiet",
                "--doctest-modules",
                "--doctest-ignore-import-errors",
                "--import-mode=importlib",
                "--pyargs",
                "ictd",
            ],
        )
}

/// What the package costs over the engine and the command line.
pub fn bench() -> bool {
    let predict = ["build", "--release", "--locked", "--package", "ictd-lab", "--example", "predict"];
    let programs =
        ["crates/ictd-py/benches/overhead.py", "target/release/ictd", "target/release/examples/predict"];
    Environment::begin().wait()
        && cargo("build", &["build", "--release", "--locked"], &[])
        && cargo("build", &predict, &[])
        && install("--profile release")
        && run("bench", Command::new(PYTHON).args(programs))
        && wheel_size()
}

/// Prints the size of the wheel that `pip install` makes.
fn wheel_size() -> bool {
    let folder = "target/python-wheel";
    let options = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, CRATE];
    let size = "import pathlib, sys; [print(f'{f.name}: {f.stat().st_size / 1e6:.2f} MB') for f in pathlib.Path(sys.argv[1]).glob('*.whl')]";
    run("wheel", Command::new(PYTHON).args(options))
        && output(Command::new(PYTHON).args(["-c", size, folder])).is_some_and(|text| {
            print!("{text}");
            !text.is_empty()
        })
}
