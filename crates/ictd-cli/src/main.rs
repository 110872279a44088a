//! The binary `ictd`: argument parsing and messages. Data goes to stdout, messages to stderr.

mod bound;
mod branches;
mod certify;
mod circuit;
mod control;
mod convert;
mod evaluate;
mod explore;
mod forward;
mod lemmas;
mod log_arguments;
mod mirror;
mod msve;
mod neu;
mod pretrain;
mod readings;
mod regimes;
mod reproduce;
mod runs;
mod screen;
mod sweep;
mod sweep_show;
mod task;
mod task_arguments;
mod verify;
mod watch;

use std::error::Error as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use ictd::evaluate::{Judgement, Level};
use ictd::kernel::KernelName;
use ictd_lab::files::OutputDir;
use ictd_lab::report::Report;
use ictd_lab::{LabError, Progress, did_you_mean, memory, one_line};
use screen::message;

/// Reinforcement learning in a Transformer's forward pass.
///
/// A softmax attention layer with the right parameters is one step of weighted softmax TD: give it
/// transitions, get state values, without training. `ictd` runs that forward pass, verifies the
/// equivalence to rounding, and reproduces the paper's figures.
#[derive(Debug, Parser)]
#[command(name = "ictd", version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Say nothing on stderr but errors
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reproduce the paper: every figure and claim, with verdicts and a report
    Reproduce(reproduce::Arguments),
    /// Verify that the forward pass is weighted softmax TD (Theorem 1, Lemma 1, Figure 7)
    Verify(verify::Arguments),
    /// Measure the value error against context length (Figure 1)
    Msve(msve::Arguments),
    /// Pretrain the block with multi-task TD and say what emerges (Figures 3, 5, 6)
    Pretrain(pretrain::Arguments),
    /// List the run directories of pretrain: what was trained, how far it is and what came of it
    Runs(runs::Arguments),
    /// Search the readings of the paper's experiment for those that show its figures (minutes)
    ///
    /// The paper leaves open whether the query is itself a source, whether its reward is visible, what
    /// diagonal mixing does to its column and which context targets are read from. Every combination is
    /// trained; an interrupted search continues where it was.
    Readings(readings::Arguments),
    /// Map which solution pretraining finds, over queries, sizes, temperatures and initial signs (minutes)
    Branches(branches::Arguments),
    /// Train every combination of what a plan varies, with every seed, here or on a cluster, and make one table of it
    ///
    /// A plan is a TOML file with a preset, what is varied and the seeds. Runs are kept in a journal: a sweep that was interrupted goes
    /// on where it was, with the same bytes at the end, in whatever order and by however many workers runs are done.
    /// "ictd sweep show DIR" looks at what is there.
    Sweep(sweep::Arguments),
    /// Explain the mirror block: how pretraining gets there, what it computes, what it costs
    ///
    /// The path is that of all seeds; the first half of them are trained to every end, and the first quarter with A held.
    Mirror(mirror::Arguments),
    /// Improve policies by attention: SARSA, Expected SARSA and Boltzmann TD on pairs of states and actions
    ///
    /// Compares attention with the algorithms, improves policies of random decision processes, follows the gap to the best values
    /// over β and asks what is certified. Exit code 1 where a criterion is not met.
    Control(control::Arguments),
    /// Certify whether layers converge with depth on a task or a context, and say what to change if not
    ///
    /// The status is "certified" when every layer contracts, "estimated" when errors vanish in the long run
    /// by the numbers, and "refused" otherwise, which ends with exit code 3. That the limit is right is not
    /// certified. A task is examined in the limit of long contexts; --n samples one, --input reads your own.
    /// Of more than 1000 states changes are tried on a part, which --seed decides; the verdict is about all up to 100,000 (20,000 with
    /// kernels other than softmax and rbf, 3000 with the linear kernel), and about the part beyond.
    Certify(certify::Arguments),
    /// Map where depth converges, over score scale and discount, and what repairs it
    ///
    /// A task file gives the process, the rewards and the features; its discount is replaced by those of the map.
    Regimes(regimes::Arguments),
    /// Evaluate Lemmas 4 to 7 and Theorem 2 with all constants, beside sampled contexts
    Bound(bound::Arguments),
    /// Estimate NEU, the pretraining objective of Theorem 3, over depth, context length and parameters
    Neu(neu::Arguments),
    /// Measure how tight the lemmas behind Theorem 3 are
    Lemmas(lemmas::Arguments),
    /// Run the forward pass on a context of your own
    ///
    /// The input is a JSON object with "features" (n+1 rows of d numbers) and "rewards" (n numbers), or
    /// with "episodes", a list of objects with "features", "rewards" and optionally "terminated". In both
    /// forms "queries" may add rows of features to evaluate. Or it is an NPZ archive: "features" and
    /// "rewards" of all episodes one after another, where there are several "lengths" (their transitions),
    /// optionally "terminated" and "queries". With --json the output has "values" and
    /// "targets", each one row per layer 0..L and one number per column: the states of every episode in
    /// order, then the queries; and "judgement" with "reasons", which are said on stderr too: how far the
    /// values are from the limit of infinitely many layers, and exit code 3 where they should not be used
    /// because layers diverge or attention collapses.
    /// With --construction layers are steps of another algorithm, by linear attention on one trajectory whose last row is the query; the output then begins with
    /// "query_values", one number per layer 0..L.
    Forward(forward::Arguments),
    /// Write a block whose algorithm is known, or a trained one, as safetensors with a card and a torch module
    ///
    /// Ground truth for tools that explain networks: circuit.safetensors has the matrices, card.json the algorithm, the shapes and what every layer makes
    /// of an example, and circuit.py, at most 60 lines of plain torch, reads both and reproduces it.
    Circuit(circuit::Arguments),
    /// Make a random task, or a trajectory of one, as JSON and CSV
    Task(task::Arguments),
    /// Find the value of every state in a log, with intervals and a judgement on whether to trust them
    ///
    /// One row of the log is a transition: the state that was left, and the reward. Columns are guessed from their names and
    /// printed. No model, no actions and no training are needed; values are those of the policy that acted. The judgement is
    /// "trust", "caution" or "refuse" with reasons; the exit code is 0, 0 or 3.
    Evaluate(evaluate::Arguments),
    /// Convert a log of episodes between CSV, JSON lines, NPZ, contexts and Minari data sets
    ///
    /// The columns are guessed from their names and printed. One row is a transition: the state that was left, and the reward. A
    /// last row without a reward has the state that the episode ended in.
    Convert(convert::Arguments),
    /// Write the explorer, a page in which a layer visibly does TD and trains live, or serve it on this machine
    ///
    /// The page is one HTML file that works without a network. `cargo xtask explorer` builds it; where it is found beside the
    /// binary or in target/explorer it is written to a file of your choice, whose path is printed.
    Explore(explore::Arguments),
    /// Print a script that completes commands and options in your shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What `--seeds` means, wherever it stands.
const SEEDS: &str =
    "Seeds: N for 0..N, a range A..B (B not included), or a list of seeds and ranges like 0..5,10,20..25";

/// Options of commands with one seed; those that train have many.
#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    output: Output,
    /// Seed of every random draw
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Where results go, for every command but those with ways of their own to directories.
#[derive(Debug, Args)]
struct Output {
    /// Print machine-readable JSON to stdout
    #[arg(long)]
    json: bool,
    /// Directory for figures and tables, created if needed [default: out/COMMAND for verify, msve,
    /// readings, branches, mirror, control, regimes, bound, neu and circuit; the others write files only when it is given]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Output {
    /// The directory asked for, or the command's own.
    fn out_or(&self, default: Option<&str>) -> Option<PathBuf> {
        self.out.clone().or_else(|| default.map(PathBuf::from))
    }

    /// Says where results will go: to the directory asked for, or to the command's own.
    fn announce(&self, progress: &Progress, default_out: Option<&str>) {
        self.out_or(default_out).into_iter().for_each(|out| progress.will_write(out));
    }

    /// Shows a result; its files go to the directory asked for, or to the command's own.
    fn present(
        &self,
        report: &impl Report,
        default_out: Option<&str>,
        progress: &Arc<Progress>,
    ) -> Result<Outcome, LabError> {
        present(report, self.json, self.out_or(default_out).as_deref(), progress)
    }
}

/// The directory that results are written to; this process has it already, unless the command has ways of its own to
/// directories.
fn results_in(out: &Path) -> Result<OutputDir, LabError> {
    OutputDir::locked(out, Duration::from_secs(5))
}

/// Writes a result's files, prints it as JSON or as text, and says where the files are.
fn present(
    report: &impl Report,
    json: bool,
    out: Option<&Path>,
    progress: &Arc<Progress>,
) -> Result<Outcome, LabError> {
    present_in(report, json, out.map(results_in).transpose()?, progress)
}

/// The same with a directory that is open.
fn present_in(
    report: &impl Report,
    json: bool,
    out: Option<OutputDir>,
    progress: &Arc<Progress>,
) -> Result<Outcome, LabError> {
    let place = out.as_ref().map(|out| out.path().to_owned());
    if let Some(out) = out {
        progress.begin("writing figures and tables", "files", 0)?;
        report.write(&out.watched(progress))?;
    }
    progress.begin("printing", "", 0)?;
    if json {
        print_json(report)?
    } else {
        print_data(&screen::painted(&report.text(screen::width()), &std::io::stdout()))?
    }
    if let Some(place) = place {
        message(&format!("figures and tables: {}", place.display()));
    }
    Ok(if report.holds() { Outcome::Success } else { Outcome::ClaimFailed })
}

/// Reasons of a judgement that are said; JSON has all.
const SAID: usize = 3;

/// Says whether to use a result and why, the gravest reasons first, and how the command ends.
fn judged(judgement: &Judgement) -> Outcome {
    for (k, reason) in judgement.reasons.iter().take(SAID).enumerate() {
        let level = judgement.level.as_str().to_uppercase();
        message(&if k == 0 { format!("{level}: {}", reason.text) } else { format!("  - {}", reason.text) });
    }
    if judgement.level == Level::Refuse { Outcome::Refused } else { Outcome::Success }
}

/// What a finished command says about its result.
enum Outcome {
    /// All is well.
    Success,
    /// The command ran, and what it checked does not hold.
    ClaimFailed,
    /// The command ran, and its result should not be used.
    Refused,
    /// A signal stopped the command after a checkpoint.
    Stopped,
}

fn main() -> ExitCode {
    let typed = command().try_get_matches().and_then(|matches| {
        let name = matches.subcommand_name().unwrap_or_default().to_owned();
        Cli::from_arg_matches(&matches).map(|cli| (name, cli))
    });
    let (name, cli) = match typed {
        Ok(typed) => typed,
        Err(error) => return usage_error(&error),
    };
    screen::QUIET.store(cli.quiet, Ordering::Relaxed);
    let progress = &watch::watched(&name);
    let result = match cli.command {
        Command::Reproduce(arguments) => reproduce::run(arguments, progress),
        Command::Verify(arguments) => verify::run(arguments, progress),
        Command::Msve(arguments) => msve::run(arguments, progress),
        Command::Pretrain(arguments) => pretrain::run(arguments, progress),
        Command::Runs(arguments) => runs::run(arguments, progress),
        Command::Readings(arguments) => readings::run(arguments, progress),
        Command::Branches(arguments) => branches::run(arguments, progress),
        Command::Sweep(arguments) => sweep::run(arguments, progress),
        Command::Mirror(arguments) => mirror::run(arguments, progress),
        Command::Control(arguments) => control::run(arguments, progress),
        Command::Certify(arguments) => certify::run(arguments, progress),
        Command::Regimes(arguments) => regimes::run(arguments, progress),
        Command::Bound(arguments) => bound::run(arguments, progress),
        Command::Neu(arguments) => neu::run(arguments, progress),
        Command::Lemmas(arguments) => lemmas::run(arguments, progress),
        Command::Forward(arguments) => forward::run(arguments, progress),
        Command::Circuit(arguments) => circuit::run(arguments, progress),
        Command::Task(arguments) => task::run(arguments, progress),
        Command::Evaluate(arguments) => evaluate::run(arguments, progress),
        Command::Convert(arguments) => convert::run(arguments, progress),
        Command::Explore(arguments) => explore::run(arguments, progress),
        Command::Completions { shell } => completions(shell),
    };
    if std::env::var_os("ICTD_MEMORY").is_some() {
        let peak = ictd_lab::files::process::peak_rss_kib().unwrap_or(0);
        screen::error(&format!("memory: estimated {} KiB, peak {peak} KiB", memory::estimated() / 1024));
    }
    match &result {
        Ok(_) => progress.release(),
        Err(_) => progress.clean_up(),
    }
    match result {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::ClaimFailed) => ExitCode::FAILURE,
        Ok(Outcome::Refused) => ExitCode::from(3),
        Ok(Outcome::Stopped) => ExitCode::from(watch::STOPPED),
        Err(LabError::Stopped) => {
            message("stopped");
            ExitCode::from(watch::STOPPED)
        }
        Err(error) => {
            screen::error(&one_line(&format!("error: {error}")));
            ExitCode::from(error.exit_code())
        }
    }
}

/// The commands and their options. A negative number is the value of the option before it, so that what is wrong with it
/// can be said.
fn command() -> clap::Command {
    let takes_numbers = |arg: clap::Arg| {
        let takes = arg.get_action().takes_values();
        if takes { arg.allow_negative_numbers(true) } else { arg }
    };
    let plain = screen::is_unforced(&std::io::stdout());
    let color = if plain { clap::ColorChoice::Never } else { clap::ColorChoice::Auto };
    Cli::command().color(color).mut_subcommands(|sub| sub.mut_args(takes_numbers))
}

/// Help and version go to stdout as they are; a mistake becomes one line on stderr.
fn usage_error(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        // A closed pipe is the reader's choice.
        let _ = error.print();
        return ExitCode::from(u8::from(error.use_stderr()) * 2);
    }
    let text = error.render().to_string();
    // What was typed may have empty lines of its own: the message ends where clap goes on.
    let ends = ["\n\nUsage:", "\n\nFor more", "\n\n  tip:"].iter().filter_map(|end| text.find(end)).min();
    let message: Vec<&str> = text[..ends.unwrap_or(text.len())].split('\n').map(str::trim).collect();
    let message = in_words(error).unwrap_or_else(|| message.join(" "));
    let is_said = error.get(ContextKind::ValidValue).is_some();
    let tips = text.lines().filter(|_| !is_said);
    let meant: String =
        tips.filter_map(|line| line.trim().strip_prefix("tip: ")).map(|t| format!("; {t}")).collect();
    screen::error(&format!("{}{meant} (see --help)", one_line(message.trim_end())));
    ExitCode::from(2)
}

/// A value that an option cannot take, as every other value that is refused: what it is and what was expected.
fn in_words(error: &clap::Error) -> Option<String> {
    let said = |kind| error.get(kind).map(|value| value.to_string());
    let option = said(ContextKind::InvalidArg)?;
    let option = option.split([' ', '=']).next().unwrap_or_default();
    if let (ErrorKind::InvalidValue, Some(ContextValue::Strings(known))) =
        (error.kind(), error.get(ContextKind::ValidValue))
        && !known.is_empty()
    {
        // What the library says of the same words in a file.
        let typed = said(ContextKind::InvalidValue).unwrap_or_default();
        let meant = did_you_mean(&typed, known.iter().map(String::as_str));
        return Some(format!("error: {option} is '{typed}', expected one of {}{meant}", known.join(", ")));
    }
    let source = error.source()?.to_string();
    let expected = match source.as_str() {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "a whole number, 0 or more"
        }
        "number too large to fit in target type" => "a smaller number",
        "invalid float literal" | "cannot parse float from empty string" => "a number",
        // Our own names say what they are.
        _ => return Some(format!("error: {source}")),
    };
    Some(format!("error: {option} is '{}', expected {expected}", said(ContextKind::InvalidValue)?))
}

/// The script by which a shell completes what is typed.
fn completions(shell: clap_complete::Shell) -> Result<Outcome, LabError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "ictd", &mut script);
    print_data(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Success)
}

/// Kernels by name, so that help, completions and suggestions know them.
fn kernels() -> impl TypedValueParser<Value = KernelName> {
    PossibleValuesParser::new(KernelName::ALL.map(KernelName::as_str))
        .try_map(|name| name.parse::<KernelName>())
}

/// Prints data to stdout; a reader that has seen enough (a closed pipe) is no error.
fn print_data(text: &str) -> Result<(), LabError> {
    screen::clear();
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(LabError::Write { path: "standard output".into(), source: e })
        }
        _ => Ok(()),
    }
}

/// Prints a value as one line of JSON with 17 significant digits.
fn print_json(value: &impl serde::Serialize) -> Result<(), LabError> {
    let line = ictd_lab::files::to_json_17(value)
        .map_err(|e| LabError::Write { path: "standard output".into(), source: std::io::Error::other(e) })?;
    print_data(&(line + "\n"))
}
