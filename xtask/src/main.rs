//! Set-up, tests and benches of the repository: `cargo xtask help`.

#[cfg(unix)]
mod attack;
mod audit;
mod browser;
mod explorer;
mod pack;
mod python;

use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
cargo xtask test             format, lints, what we build on, all tests, the explorer, the Python package, documentation
cargo xtask explorer         the explorer as one HTML file (installs the target wasm32-unknown-unknown); its path comes last
cargo xtask slow             the full reproduction against stored values, its verdicts over 20 seeds, the report in a browser,
                             all readings, the branch map, interrupted and not, circuits in torch (installs it), the Python package
                             in new environments, a million damaged logs, sweeps on clusters (see cluster)
cargo xtask cluster [SCENARIO...]
                             sweeps on a Slurm and a HyperQueue of their own (installs them; needs root on Linux) while workers, nodes,
                             schedulers and the command itself are killed: the same bytes every time, in a table; seven minutes
cargo xtask search           certificates against 20,000 difficult contexts, in twice the precision
cargo xtask fuzz [SECONDS [READER [FIRST [INPUTS]]]]
                             damaged files for every reader, 60 seconds each, or for one (logs: all of logs) from input FIRST on, INPUTS at most
cargo xtask attack [quick|SECONDS|NAME [CASE]]
                             damaged files, senseless options, kills, two processes, full disks: cases and failures in a table;
                             a quick part, as many as fit into a time, those of a name, or one of them
cargo xtask attack table     copies the table of the last run to docs/reliability.md
cargo xtask audit            licences, sources, duplicate versions and advisories of everything we build on
cargo xtask bench forward    speed of the forward pass
cargo xtask bench theory     speed of certificates and spectra
cargo xtask bench pretrain   speed of pretraining against the same experiment in JAX (installs JAX)
cargo xtask bench predecessor
                             speed of the predecessor's nine experiments beside the same in PyTorch, prompt by prompt (installs it)
cargo xtask bench long [exact|pivots|growth|certify]
                             long contexts of distinct states, beside PyTorch (installs it; half an hour)
cargo xtask bench pretrain long
                             speed and memory of pretraining on contexts of up to 100,000 transitions
cargo xtask bench sweep      what 10,000 short runs cost beside the training in them
cargo xtask bench explorer   how fast the explorer opens, redraws and trains, beside the command line
cargo xtask bench python      what calls from Python cost over the engine and the command line, and the size of the wheel
cargo xtask bench evaluate [icu|minari|cdnow|speed]
                             values and intervals of evaluate against exact values, long rollouts and other estimators, a log that is not
                             stationary, long files; all of them, or one (installs minari, gymnasium, scikit-learn, pandas and data)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test(),
        ["explorer"] => explorer::explorer(),
        ["slow"] => slow(),
        ["cluster", scenarios @ ..] => cluster(scenarios),
        ["search"] => search(),
        ["fuzz", rest @ ..] if rest.len() <= 4 => fuzz(rest),
        ["attack", rest @ ..] if rest.len() <= 2 => attack(rest),
        ["audit"] => audit::audit(),
        ["bench", "forward"] => bench("forward"),
        ["bench", "theory"] => bench("theory"),
        ["bench", "pretrain"] => bench_pretrain(),
        ["bench", "predecessor"] => bench_predecessor(),
        ["bench", "long", rest @ ..] if rest.len() <= 1 => bench_long(rest),
        ["bench", "pretrain", "long"] => bench("pretrain_long"),
        ["bench", "sweep"] => bench("sweep"),
        ["bench", "explorer"] => explorer::bench(),
        ["bench", "python"] => python::bench(),
        ["bench", "evaluate", rest @ ..] if rest.len() <= 1 => bench_evaluate(rest),
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
    let environment = python::Environment::begin();
    let passed = component("rustfmt")
        && component("clippy")
        && cargo("format", &["fmt", "--all", "--check"], &[])
        && cargo(
            "lints",
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
            &[],
        )
        && audit::audit()
        && cargo("tests", &["test", "--workspace", "--locked"], &[])
        && explorer::test()
        && python::test(environment)
        && cargo(
            "documentation",
            &["doc", "--workspace", "--no-deps", "--locked"],
            &[("RUSTDOCFLAGS", "-D warnings")],
        );
    let outcome = if passed { "all passed" } else { "FAILED" };
    eprintln!("xtask test: {outcome} in {:.0} s", start.elapsed().as_secs_f64());
    passed
}

/// What takes minutes or needs a browser.
fn slow() -> bool {
    let out = "target/slow/reproduce";
    let ictd = |arguments: &[&str]| run("slow", Command::new("target/release/ictd").args(arguments));
    let features = ["test", "--package", "ictd-lab", "--features", "parquet", "--locked"];
    let columnar = |tests: &[&str]| cargo("Arrow and Parquet", &[&features[..], tests].concat(), &[]);
    cargo("build", &["build", "--release", "--locked"], &[])
        && ictd(&["reproduce", "--check", "--out", out])
        && browser::check(&format!("{out}/report.html"))
        && ictd(&["reproduce", "--paper", "predecessor", "--check", "--out", "target/slow/predecessor"])
        && ictd(&["reproduce", "--stability", "--out", "target/slow/stability"])
        && ictd(&["readings", "--out", "target/slow/readings"])
        && branches()
        && circuits()
        && python::fresh()
        && columnar(&["--lib", "logs::"])
        && columnar(&[
            "--test",
            "columnar",
            "--test",
            "malformed_logs",
            "--test",
            "log_rules",
            "--test",
            "sweep",
        ])
        && cluster(&[])
        && fuzz(&["86400", "logs", "0", FUZZ_LOGS])
}

/// Fails when a map that was interrupted and gone on with is not, to the byte, that of one that was not.
fn branches() -> bool {
    let [whole, cut] = ["target/slow/branches", "target/slow/branches-cut"];
    let map = |out: &str, more: &[&str]| {
        let mut map = Command::new("target/release/ictd");
        map.args(["branches", "--seeds", "2", "--out", out]).args(more);
        map
    };
    let begin = || map(cut, &["--fresh"]).stdout(std::process::Stdio::null()).spawn();
    let interrupted = || -> std::io::Result<bool> {
        let mut begun = begin()?;
        while records(cut) < 20 && begun.try_wait()?.is_none() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Command::new("kill").args(["-INT", &begun.id().to_string()]).status()?;
        Ok(begun.wait()?.code() == Some(124))
    };
    let same = |name: &&str| {
        let read = |out: &str| std::fs::read(format!("{out}/{name}")).ok();
        let is_same = read(whole).is_some() && read(whole) == read(cut);
        eprintln!(
            "xtask slow: {name} of an interrupted map: {}",
            if is_same { "the same" } else { "DIFFERS" }
        );
        is_same
    };
    let halfway = || {
        let (is_interrupted, done) = (interrupted().unwrap_or(false), records(cut));
        eprintln!("xtask slow: branches interrupted after {done} of 66 runs: {is_interrupted}");
        is_interrupted && done < 66
    };
    run("slow", &mut map(whole, &["--fresh"]))
        && halfway()
        && run("slow", &mut map(cut, &[]))
        && records(cut) == 66
        && ["branches.svg", "branches.csv", "first_gradient.csv", "results.csv"].iter().all(same)
}

/// Lines of the journals of a sweep.
fn records(out: &str) -> usize {
    let files = std::fs::read_dir(format!("{out}/journal")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.map(|text| text.lines().count()).sum()
}

/// Sweeps on clusters that are disturbed; fails when a table differs, or a run was done twice.
fn cluster(scenarios: &[&str]) -> bool {
    // Debian's names; where they are there already nothing is asked of the network.
    let has = |program: &&str| Command::new(program).arg("-V").output().is_ok();
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        run("set-up", apt.arg("--quiet=2").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let installed = ["slurmctld", "slurmd", "munged", "ip"].iter().all(has)
        || (apt(&["update"]) && apt(&["install", "--yes", "slurm-wlm", "munge", "iproute2"]));
    let folder = "xtask/cluster";
    let python = || venv("target/cluster-venv", &format!("{folder}/requirements.txt"));
    let Some(python) = installed.then(python).flatten() else { return false };
    let suite = format!("{folder}/run.py");
    cargo("build", &["build", "--release", "--locked"], &[])
        && run("cluster", Command::new(python).args(["-B", &suite, "target/release/ictd"]).args(scenarios))
}

/// Where torch is installed for `bench long` and for circuits, and what else is.
const TORCH: (&str, &str) = ("target/long-venv", "crates/ictd-lab/benches/long/requirements.txt");

/// The Python that has torch; `None` where it cannot be installed.
fn torch() -> Option<String> {
    let (folder, requirements) = TORCH;
    venv(folder, requirements)
}

/// A Python that has what a list asks for; `None` where that cannot be installed.
fn venv(folder: &str, requirements: &str) -> Option<String> {
    let python = format!("{folder}/bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--requirement", requirements];
    let ready = (std::path::Path::new(&python).exists()
        || run("set-up", Command::new("python3").args(["-m", "venv", folder])))
        && run("set-up", Command::new(&python).args(pip));
    ready.then_some(python)
}

/// Largest difference between a circuit in torch and ours.
const CIRCUIT_TOLERANCE: f64 = 1e-6;

/// What is trained for a moment and then a circuit: plain, deep with diagonal mixing, and layers of their own with two heads.
const TRAINED: [&[&str]; 3] = [
    &[],
    &["rho.start=0.9", "rho.end=0.9", "n=20", "layers=15"],
    &["tied=false", "block=dual", "mask=none", "kernel=elu1"],
];

/// Fails when a circuit computes something else in torch than here: the constructed ones, and those that are trained for a moment.
fn circuits() -> bool {
    let Some(python) = torch() else { return false };
    let out = "target/slow/circuit";
    let ictd = |arguments: &[&str]| output(Command::new("target/release/ictd").args(arguments));
    let holds = |name: &str, more: &[&str]| {
        let difference = || -> Option<f64> {
            ictd(&[&["circuit", name, "--out", out], more].concat())?;
            let text = output(Command::new(&python).arg(format!("{out}/circuit.py")))?;
            text.trim().strip_prefix("largest difference ")?.parse().ok()
        };
        let found = difference();
        eprintln!("xtask slow: circuit {name} in torch, largest difference {found:?}");
        found.is_some_and(|difference| difference <= CIRCUIT_TOLERANCE)
    };
    let trained = |(k, keys): (usize, &&[&str])| {
        let run_dir = format!("target/slow/circuit-run{k}");
        let set = keys.iter().flat_map(|key| ["--set", key]);
        let arguments = ["pretrain", "--set", "epochs=20", "--seeds", "0..1", "--fresh", "--out", &run_dir];
        ictd(&arguments.into_iter().chain(set).collect::<Vec<_>>())?;
        let found = output(Command::new("find").args([&run_dir, "-name", "best.safetensors"]))?;
        Some(holds("trained", &["--params", found.lines().next()?]))
    };
    ["td", "mirror", "td-linear", "residual-gradient", "monte-carlo", "lstd"]
        .iter()
        .all(|name| holds(name, &[]))
        && TRAINED.iter().enumerate().all(|run| trained(run).unwrap_or(false))
}

/// Inputs for each of the nineteen readers of logs and queries: more than a million in all, however long they take.
const FUZZ_LOGS: &str = "80000";

/// Fails when a certificate claims too much.
fn search() -> bool {
    let example =
        ["run", "--quiet", "--release", "--locked", "--package", "ictd", "--example", "certificate_search"];
    cargo("search", &example, &[])
}

/// Memory that reading may take, in KiB of address space: an allocation without bound ends the process.
const FUZZ_MEMORY: u32 = 4 << 20;

/// Fails when a reader panics, hangs, takes memory without bound, or refuses in more than a line.
fn fuzz(arguments: &[&str]) -> bool {
    build_fuzz() && run("fuzz", fuzz_readers().args(arguments))
}

/// Without optimisation for release, so that overflowing sums are seen.
fn build_fuzz() -> bool {
    // The whole workspace, as for the tests, so that what we build on is not compiled twice; readers that are left out of
    // the usual build are read here.
    let readers = ["--features", "ictd-lab/parquet", "--example", "fuzz_readers"];
    cargo("build", &[&["build", "--quiet", "--locked", "--workspace"], &readers[..]].concat(), &[])
}

fn fuzz_readers() -> Command {
    let program = "target/debug/examples/fuzz_readers";
    // Where there is no shell there is no limit either.
    if cfg!(unix) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {FUZZ_MEMORY}; exec \"$0\" \"$@\""), program]);
        shell
    } else {
        Command::new(program)
    }
}

/// Fails when an attack finds anything; the table is in `target/attack/table.md`.
#[cfg(unix)]
fn attack(arguments: &[&str]) -> bool {
    if arguments == ["table"] {
        return attack::publish().map_err(|error| eprintln!("xtask attack: {error}")).is_ok();
    }
    let built = cargo("build", &["build", "--release", "--locked"], &[])
        && (!attack::wants_readers(arguments) || build_fuzz());
    built && attack::command(arguments, std::path::Path::new("target/release/ictd"), fuzz_readers())
}

#[cfg(not(unix))]
fn attack(_: &[&str]) -> bool {
    eprintln!("xtask attack: needs signals, a shell and limits, expected a Unix system");
    false
}

fn bench(name: &str) -> bool {
    cargo("bench", &["bench", "--quiet", "--package", "ictd-lab", "--bench", name, "--locked"], &[])
}

/// Trains the paper's experiment here and in JAX, one after the other on the same machine, and prints the
/// ratio of the times.
fn bench_pretrain() -> bool {
    let venv = "target/bench-venv";
    let python = format!("{venv}/bin/python");
    let has_jax = || {
        Command::new(&python).args(["-c", "import jax"]).output().is_ok_and(|output| output.status.success())
    };
    let ready = has_jax()
        || (run("set-up", Command::new("python3").args(["-m", "venv", venv]))
            && run("set-up", Command::new(&python).args(["-m", "pip", "install", "--quiet", "jax"])));
    if !ready || !bench("pretrain") || !cargo("build", &["build", "--release", "--locked"], &[]) {
        return false;
    }
    let ours = |_: usize| {
        let mut command = Command::new("target/release/ictd");
        command.args([
            "pretrain",
            "--preset",
            "paper",
            "--seeds",
            "0..5",
            "--json",
            "--fresh",
            "--out",
            "target/bench-runs",
        ]);
        output(&mut command).and_then(|text| number(&text, "\"train_seconds\":"))
    };
    // Ours before and after JAX, which takes long enough for once, so that both meet the same machine.
    let mut times: Vec<f64> = (0..5).filter_map(ours).collect();
    let jax = |arguments: &[&str]| {
        let mut jax = Command::new(&python);
        jax.arg("crates/ictd-lab/benches/pretrain_jax.py").args(arguments);
        eprintln!("xtask bench: {jax:?} (up to two minutes)");
        let text = output(&mut jax)?;
        ["seconds", "td", "mirror"]
            .iter()
            .map(|key| number(&text, &format!("\"{key}\": ")))
            .collect::<Option<Vec<f64>>>()
    };
    let Some(literal) = jax(&["3000", "5"]) else { return false };
    times.extend((0..5).filter_map(ours));
    times.sort_by(f64::total_cmp);
    let Some(&ours) = times.get(5) else { return false };
    println!("| the paper's experiment: 5 seeds × 3000 tasks × 5 minibatches × 64 contexts | seconds |");
    println!("|---|---:|");
    println!("| JAX, one compiled program, all seeds at once, training only | {:.2} |", literal[0]);
    println!("| ictd, with a measurement after every epoch, median of 10 | {ours:.3} |");
    println!("| ratio | {:.0} |\n", literal[0] / ours);
    let Some(source) = jax(&["1000", "5", "source"]) else { return false };
    println!("| JAX, 5 seeds | TD block | mirror block |\n|---|---:|---:|");
    println!("| the paper's prompt, 3000 tasks | {} | {} |", literal[1], literal[2]);
    println!("| the query a source, 1000 tasks | {} | {} |", source[1], source[2]);
    true
}

/// Trains the predecessor's nine experiments here, and a few tasks of each in PyTorch, and prints the ratio of the times.
fn bench_predecessor() -> bool {
    let Some(python) = torch() else { return false };
    let mut ours = Command::new(env!("CARGO"));
    ours.args(["bench", "--quiet", "--package", "ictd-lab", "--bench", "predecessor", "--locked"]);
    let mut theirs = Command::new(python);
    theirs.arg("crates/ictd-lab/benches/predecessor_torch.py");
    let mut seconds = Vec::new();
    for command in [&mut ours, &mut theirs] {
        eprintln!("xtask bench: {command:?} (a minute)");
        let Some(text) = output(command) else { return false };
        let Some((table, json)) = text.trim_end().rsplit_once('\n') else { return false };
        println!("{table}\n");
        let Some(found) = number(json, "\"seconds\": ") else { return false };
        seconds.push(found);
    }
    println!("| the nine experiments, 10 seeds × 5000 tasks each, two cores | seconds |\n|---|---:|");
    println!("| PyTorch, prompt by prompt, extrapolated from a few tasks | {:.0} |", seconds[1]);
    println!("| ictd, measurements included | {:.1} |", seconds[0]);
    println!("| ratio | {:.0} |", seconds[1] / seconds[0]);
    true
}

/// Calls `ictd` on long contexts beside PyTorch and fails when a criterion does not hold.
fn bench_long(study: &[&str]) -> bool {
    let Some(python) = torch() else { return false };
    cargo("build", &["build", "--release", "--locked"], &[])
        && run("bench", Command::new(&python).args(["-B", "crates/ictd-lab/benches/long/run.py"]).args(study))
}

/// Calls `ictd evaluate` on data of others and fails when a criterion does not hold.
fn bench_evaluate(study: &[&str]) -> bool {
    let (venv, folder) = ("target/evaluate-venv", "crates/ictd-lab/benches/evaluate");
    let python = format!("{venv}/bin/python");
    let pip = |arguments: &[&str]| {
        run("set-up", Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(arguments))
    };
    let list = |name: &str| format!("{folder}/{name}.txt");
    // Where all is installed already, nothing is asked of the network.
    (std::path::Path::new(&python).exists()
        || run("set-up", Command::new("python3").args(["-m", "venv", venv])))
        && pip(&["--requirement", &list("requirements")])
        && pip(&["--no-deps", "--requirement", &list("data")])
        && cargo("build", &["build", "--release", "--locked"], &[])
        && run("bench", Command::new(&python).args(["-B", &format!("{folder}/run.py")]).args(study))
}

/// What a command that succeeds prints.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The number after `key`.
fn number(text: &str, key: &str) -> Option<f64> {
    let rest = text.split_once(key)?.1;
    rest[..rest.find([',', '}'])?].trim().parse().ok()
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
