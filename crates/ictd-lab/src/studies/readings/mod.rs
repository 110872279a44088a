//! Readings of the paper's experiment: what its sentences leave open, every combination, and which of its figures
//! each combination shows.
//!
//! The prompt's equation masks the query; the experiments section writes attention in R^{n×n} with sums over n
//! sources, which has no masked column. `Prompt` spells out the choices, [`run`] trains all of them.
//! `docs/readings.md` tells what each assumes and what follows.

mod prompt;
mod show;

use prompt::{Prompt, prompts};

use std::path::Path;
use std::time::{Duration, Instant};

use ictd::pretrain::{Branch, TrainState, emergence_of};
use ictd::statistics::wilson;
use serde::{Deserialize, Serialize};

use super::fig3_5::{Trend, emerged};
use super::first_gradient::FirstGradientSign;
use super::pretrain::{self, Settings};
use crate::error::{LabError, check_range};
use crate::files::{OutputDir, read_sealed};
use crate::{Progress, Seeds};

/// A figure that is looked for, and the preset that is trained for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Figure {
    #[serde(rename = "fig3a")]
    Matrices,
    /// Scores against kernel diagonality.
    #[serde(rename = "fig3b")]
    Diagonality,
    /// Kernel diagonality over training.
    #[serde(rename = "fig5")]
    Training,
    #[serde(rename = "fig6-full")]
    FullMask,
    #[serde(rename = "fig6-relaxed")]
    RelaxedMask,
}

impl Figure {
    /// All figures, in the order of the paper, and their names in it.
    const ALL: [(Figure, &str); 5] = [
        (Self::Matrices, "3(a)"),
        (Self::Diagonality, "3(b)"),
        (Self::Training, "5"),
        (Self::FullMask, "6, full mask"),
        (Self::RelaxedMask, "6, relaxed mask"),
    ];

    fn name(self) -> &'static str {
        // Declared in the same order.
        Self::ALL[self as usize].1
    }

    /// When a seed shows it: the criteria of the claims in `reproduce`, seed by seed.
    fn is_shown(self, batches: usize, state: &TrainState<f32>) -> bool {
        match self {
            Self::Matrices | Self::FullMask | Self::RelaxedMask => emerged(state),
            Self::Diagonality => {
                let trend = Trend::of(batches, state);
                trend.value_rises() && trend.score_is_high()
            }
            Self::Training => Trend::of(batches, state).diagonal_rises(),
        }
    }
}

/// One training experiment: a reading, a preset, and the figures that rest on it.
struct Experiment {
    prompt: Prompt,
    mixing: Option<&'static str>,
    preset: &'static str,
    figures: &'static [Figure],
}

/// All experiments, prompt by prompt.
fn experiments() -> Vec<Experiment> {
    let mut all = Vec::new();
    for prompt in prompts() {
        let figures: &[Figure] = &[Figure::Matrices, Figure::Diagonality, Figure::Training];
        all.push(Experiment { prompt, mixing: None, preset: "paper", figures });
        for &mixing in prompt.mixings() {
            let ablation = |preset, figures| Experiment { prompt, mixing: Some(mixing), preset, figures };
            all.push(ablation("mask-full", &[Figure::FullMask]));
            all.push(ablation("mask-relaxed", &[Figure::RelaxedMask]));
        }
    }
    all
}

impl Experiment {
    fn settings(&self, changes: &[String]) -> Result<Settings, LabError> {
        let mut overrides = self.prompt.overrides();
        overrides.extend(self.mixing.map(|mixing| format!("rho.query={mixing}")));
        overrides.extend_from_slice(changes);
        Settings::preset(self.preset, &overrides)
    }

    fn name(&self) -> String {
        let Prompt { query, columns, query_reward, target } = self.prompt;
        let mixing = self.mixing.map_or_else(String::new, |m| format!("-{m}"));
        format!("{}-{query}-{columns}-{query_reward}-{target}{mixing}", self.preset).replace('+', "plus")
    }
}

/// How many seeds of a reading show a figure, and where they end; flat, as CSV wants it.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    query: &'static str,
    columns: &'static str,
    query_reward: &'static str,
    target: &'static str,
    /// What mixing does to the query's column, for the figures that mix.
    mixing: Option<&'static str>,
    figure: Figure,
    seeds: u64,
    shown: u64,
    /// 95 % interval of the share of seeds that show it (Wilson).
    low: f64,
    high: f64,
    td: u64,
    mirror: u64,
    none: u64,
    diverged: u64,
    /// `ictd pretrain` with these arguments trains it.
    command: String,
}

impl Row {
    fn prompt(&self) -> Prompt {
        let Self { query, columns, query_reward, target, .. } = *self;
        Prompt { query, columns, query_reward, target }
    }
}

/// Seeds by what they show and where they end; `none` in neither block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counts {
    seeds: u64,
    shown: u64,
    td: u64,
    mirror: u64,
    none: u64,
    diverged: u64,
}

/// What the search found.
#[derive(Clone, Debug, Serialize)]
pub struct Readings {
    rows: Vec<Row>,
    /// The first gradient of every prompt; the target does not matter to it.
    gradients: Vec<FirstGradientSign>,
    /// Keeps the directory until the result is written there too.
    #[serde(skip)]
    _out: OutputDir,
}

/// What to search with.
#[derive(Clone, Debug)]
pub struct Search {
    /// Seeds of every experiment.
    pub seeds: Seeds,
    /// Further keys of the configuration, for all of them.
    pub changes: Vec<String>,
    /// Train everything again instead of taking up what an earlier search left.
    pub fresh: bool,
}

/// A finished experiment, as kept for a search that goes on later.
#[derive(Serialize, Deserialize)]
struct Finished {
    key: String,
    counts: Vec<(Figure, Counts)>,
}

/// Trains every reading and counts which figures it shows. Finished experiments are kept in the directory `out`, and a
/// later search with the same seeds and program takes them up. Tells `tell` about each, in a line.
pub fn run(
    search: &Search,
    out: &Path,
    progress: &Progress,
    mut tell: impl FnMut(&str),
) -> Result<Readings, LabError> {
    check_range("seeds", search.seeds.len(), 1..=100_000)?;
    let chosen = ["query", "source", "target", "rho", "mask"];
    let is_chosen = |c: &&String| chosen.contains(&c.split(['.', '=']).next().unwrap_or(""));
    if let Some(key) = search.changes.iter().find(is_chosen) {
        let problem = format!("'{key}' is what readings differ in, expected another key");
        return Err(LabError::refused("set", problem));
    }
    let all = experiments();
    let settings = all.iter().map(|e| e.settings(&search.changes)).collect::<Result<Vec<_>, _>>()?;
    settings.iter().try_for_each(|s| s.admit(search.seeds.len(), false))?;
    let epochs = |s: &Settings| s.config.epochs.saturating_mul(search.seeds.len() as u64);
    progress.begin("readings", "epochs", settings.iter().map(epochs).fold(0, u64::saturating_add))?;
    let out = OutputDir::locked(out, Duration::ZERO)?;
    let journal = out.below("journal")?;
    let work = |s: &Settings| (s.config.num_steps() * s.config.batch as u64) as f64;
    let mut left: f64 = settings.iter().map(work).sum();
    let (mut trained, mut seconds) = (0.0, 0.0);
    let mut rows = Vec::new();
    for (done, (experiment, settings)) in all.iter().zip(&settings).enumerate() {
        let key = format!("{} {} {}", settings.sha256()?, search.seeds, pretrain::computed_by()?);
        let known = if search.fresh { None } else { read_finished(&journal, experiment, &key) };
        let cached = known.is_some();
        progress.rename(format!("readings [{}/{}] {}", done + 1, all.len(), experiment.prompt));
        let counts = match known {
            Some(counts) => {
                progress.skip(epochs(settings));
                counts
            }
            None => {
                let start = Instant::now();
                let finished =
                    Finished { key, counts: count(experiment, settings, &search.seeds, progress)? };
                journal.sealed_json(&experiment.name(), &finished)?;
                trained += work(settings);
                seconds += start.elapsed().as_secs_f64();
                finished.counts
            }
        };
        left -= work(settings);
        let first = rows.len();
        let row = |(figure, counts)| row(experiment, settings, &search.seeds, figure, counts);
        rows.extend(counts.into_iter().map(row));
        let ahead = match cached {
            true => "from an earlier search".into(),
            false if trained > 0.0 => format!("{:.0} s left", seconds / trained * left),
            false => String::new(),
        };
        let figure = |r: &Row| format!("Figure {} {}/{}", r.figure.name(), r.shown, r.seeds);
        let figures: Vec<String> = rows[first..].iter().map(figure).collect();
        let mixing = experiment.mixing.map_or_else(String::new, |m| format!(", {m}"));
        let reading = format!("{}{mixing}: {}", experiment.prompt, figures.join(", "));
        tell(&format!("[{}/{}] {reading}; {ahead}", done + 1, all.len()));
    }
    let gradients = prompts().filter(|p| p.target == "shifted").count() * search.seeds.len();
    progress.begin("readings: first gradients", "seeds", gradients as u64)?;
    let gradients = prompts()
        .filter(|p| p.target == "shifted")
        .map(|p| {
            let overrides = [p.overrides(), search.changes.clone()].concat();
            let settings = Settings::preset("paper", &overrides)?;
            let name = format!("{}, {} columns, reward {}", p.query, p.columns, p.query_reward);
            FirstGradientSign::measure(&name, &settings, &search.seeds, progress)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Readings { rows, gradients, _out: out })
}

fn read_finished(journal: &OutputDir, experiment: &Experiment, key: &str) -> Option<Vec<(Figure, Counts)>> {
    let finished: Finished = read_sealed(&journal.path().join(format!("{}.json", experiment.name())))?;
    let figures = finished.counts.iter().map(|(figure, _)| figure);
    (finished.key == key && figures.eq(experiment.figures)).then_some(finished.counts)
}

fn count(
    experiment: &Experiment,
    settings: &Settings,
    seeds: &[u64],
    progress: &Progress,
) -> Result<Vec<(Figure, Counts)>, LabError> {
    // Only Figure 3(b) looks at the measurements.
    let measured = experiment.figures.contains(&Figure::Diagonality);
    let states = pretrain::train(settings, seeds, measured, progress)?.states;
    let shape = settings.config.shape();
    let mut ends = Counts { seeds: seeds.len() as u64, ..Counts::default() };
    for state in &states {
        match state.as_ref().map(|s| emergence_of(&shape, &s.params).branch) {
            Some(Branch::Td) => ends.td += 1,
            Some(Branch::Mirror) => ends.mirror += 1,
            Some(Branch::None) => ends.none += 1,
            None => ends.diverged += 1,
        }
    }
    let shown = |figure: Figure| {
        let shows = |s: &&TrainState<f32>| figure.is_shown(settings.config.batches, s);
        states.iter().flatten().filter(shows).count() as u64
    };
    Ok(experiment.figures.iter().map(|&f| (f, Counts { shown: shown(f), ..ends })).collect())
}

fn row(experiment: &Experiment, settings: &Settings, seeds: &Seeds, figure: Figure, counts: Counts) -> Row {
    let (low, high) = wilson(counts.shown, counts.seeds);
    let keys: Vec<String> = settings.overrides.iter().map(|o| format!("--set {o}")).collect();
    let command = format!("ictd pretrain --preset {} {} --seeds {seeds}", experiment.preset, keys.join(" "));
    let Prompt { query, columns, query_reward, target } = experiment.prompt;
    let (mixing, Counts { seeds, shown, td, mirror, none, diverged }) = (experiment.mixing, counts);
    Row {
        query,
        columns,
        query_reward,
        target,
        mixing,
        figure,
        seeds,
        shown,
        low,
        high,
        td,
        mirror,
        none,
        diverged,
        command,
    }
}

impl Readings {
    /// The rows of a prompt and a mixing for the figures, in the order of [`Figure::ALL`]; figures without mixing have
    /// the same row for every mixing.
    fn of(&self, prompt: &Prompt, mixing: &str) -> Vec<&Row> {
        let fits = |row: &&Row| row.prompt() == *prompt && row.mixing.is_none_or(|m| m == mixing);
        self.rows.iter().filter(fits).collect()
    }

    /// Every reading once: prompt and mixing.
    fn readings(&self) -> impl Iterator<Item = (Prompt, &'static str)> {
        prompts().flat_map(|p| p.mixings().iter().map(move |&m| (p, m)))
    }

    /// The readings that show most figures on every seed, with those figures.
    fn best(&self) -> Vec<(Prompt, &'static str, Vec<Figure>)> {
        let on_every_seed = |prompt: &Prompt, mixing| -> Vec<Figure> {
            let every = |row: &&Row| row.shown == row.seeds;
            self.of(prompt, mixing).into_iter().filter(every).map(|row| row.figure).collect()
        };
        let all: Vec<_> = self.readings().map(|(p, m)| (p, m, on_every_seed(&p, m))).collect();
        let most = all.iter().map(|(_, _, figures)| figures.len()).max().unwrap_or(0);
        all.into_iter().filter(|(_, _, figures)| figures.len() == most && most > 0).collect()
    }
}
