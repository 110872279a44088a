//! The whole paper, as far as it is implemented, in one run.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::pretrain::{self, EmergenceFigures, RunResult, SeedResult, Settings};
use super::{Verdict, chain_topology, msve, shift_picture, verify};
use crate::LabError;
use crate::files::OutputDir;

/// A part of the paper that can be reproduced on its own.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Its name on the command line.
    pub id: &'static str,
    /// Where in the paper.
    pub paper: &'static str,
    run: fn(u64, &OutputDir) -> Result<Finding, LabError>,
}

/// A verdict and the numbers behind it.
type Finding = (Verdict, String);

/// What one study found. Times are kept apart because they differ from run to run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the study.
    pub id: &'static str,
    /// Where in the paper.
    pub paper: &'static str,
    /// Whether the claim holds.
    pub verdict: Verdict,
    /// The numbers behind the verdict.
    pub measured: String,
    /// The command that reruns it alone.
    pub command: String,
    /// Wall time in seconds.
    #[serde(skip)]
    pub seconds: f64,
}

/// All studies in the order of the paper.
pub const STUDIES: [Study; 9] = [
    Study { id: "fig1", paper: "Figure 1", run: figure_1 },
    Study { id: "fig2", paper: "Figure 2", run: figure_2 },
    Study { id: "fig3", paper: "Figures 3 and 5, the paper's setting", run: figures_3_and_5 },
    Study {
        id: "fig3-stationary",
        paper: "Figures 3 and 5, queries from the stationary law",
        run: figures_3_and_5_stationary,
    },
    Study { id: "fig3-gain", paper: "Figures 3 and 5, larger initial values", run: figures_3_and_5_gain },
    Study { id: "fig4", paper: "Figure 4", run: figure_4 },
    Study { id: "fig6", paper: "Figure 6, the paper's setting", run: figure_6 },
    Study {
        id: "fig6-stationary",
        paper: "Figure 6, queries from the stationary law, no mixing",
        run: figure_6_stationary,
    },
    Study { id: "fig7", paper: "Theorem 1, Lemma 1, special cases, Figure 7", run: figure_7 },
];

/// The studies with the given names, in the order of the paper; all of them when none is given.
pub fn select(names: &[String]) -> Result<Vec<Study>, LabError> {
    if let Some(unknown) = names.iter().find(|name| !STUDIES.iter().any(|s| s.id == name.as_str())) {
        let known: Vec<&str> = STUDIES.iter().map(|s| s.id).collect();
        return Err(LabError::Invalid(format!(
            "only: '{unknown}' is unknown, expected some of {}",
            known.join(", ")
        )));
    }
    let wanted = |s: &Study| names.is_empty() || names.iter().any(|name| name == s.id);
    Ok(STUDIES.into_iter().filter(wanted).collect())
}

/// Runs studies one after the other, tells `progress` about each, and writes everything to `out`.
pub fn run(
    studies: &[Study],
    seed: u64,
    out: &Path,
    mut progress: impl FnMut(&Outcome),
) -> Result<Vec<Outcome>, LabError> {
    let out = OutputDir::create(out)?;
    let mut outcomes = Vec::new();
    for study in studies {
        let start = Instant::now();
        let (verdict, measured) = (study.run)(seed, &out)?;
        let outcome = Outcome {
            id: study.id,
            paper: study.paper,
            verdict,
            measured,
            command: format!("ictd reproduce --only {} --seed {seed}", study.id),
            seconds: start.elapsed().as_secs_f64(),
        };
        progress(&outcome);
        outcomes.push(outcome);
    }
    out.json("outcomes", &outcomes)?;
    Ok(outcomes)
}

fn figure_1(seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
    let curve = msve::run(&msve::MsveConfig { seed, ..Default::default() })?;
    curve.write(out)?;
    let (first, last) = (&curve.points[0], &curve.points[curve.points.len() - 1]);
    let measured = format!(
        "MSVE {:.3} ± {:.3} at n = {}, {:.3} ± {:.3} at n = {}; rank correlation {:.2}",
        first.mean,
        first.sem,
        first.context_len,
        last.mean,
        last.sem,
        last.context_len,
        curve.rank_correlation
    );
    Ok((curve.verdict, measured))
}

fn figure_2(seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
    shift_picture::run(seed)?.write(out)?;
    Ok((Verdict::NotTestable, "an illustration, drawn from a real forward pass".into()))
}

fn figure_4(_: u64, out: &OutputDir) -> Result<Finding, LabError> {
    chain_topology::ChainTopology { num_states: 9 }.write(out)?;
    Ok((Verdict::NotTestable, "an illustration of the task generator's support".into()))
}

/// Figure 3's claim: both scores are high at the best step. Reproduced when every seed has
/// min(V_em, A_em) of at least one half there; partly when some have.
fn emergence_verdict(result: &RunResult) -> Verdict {
    let emerged = result.seeds.iter().filter(|s| s.best.v_em.min(s.best.a_em) >= 0.5).count();
    match emerged {
        0 => Verdict::NotReproduced,
        n if n == result.seeds.len() => Verdict::Reproduced,
        _ => Verdict::Partly,
    }
}

/// The branches of the seeds and their scores at the best step.
fn emergence_text(result: &RunResult) -> String {
    let count = |branch| result.seeds.iter().filter(|s| s.last.branch == branch).count();
    let range = |score: fn(&SeedResult) -> f64| {
        let values = result.seeds.iter().map(score);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        format!("{low:.2} to {high:.2}")
    };
    format!(
        "branches: {} td, {} mirror, {} none; at the best step min(V_em, A_em) {}, signed V_em {}, signed A_em {}",
        count("td"),
        count("mirror"),
        count("none"),
        range(|s| s.best.v_em.min(s.best.a_em)),
        range(|s| s.best.v_em_signed),
        range(|s| s.best.a_em_signed)
    )
}

/// A setting in which the published picture is looked for, as changes of a preset. The first is the paper's;
/// `docs/mirror.md` has the search that found the others.
struct Setting {
    title: &'static str,
    /// Appended to the names of files.
    suffix: &'static str,
    changes: &'static [&'static str],
}

const LITERAL: Setting = Setting { title: "the paper’s setting", suffix: "", changes: &[] };
const STATIONARY: Setting = Setting {
    title: "stationary queries, TD signs",
    suffix: "_stationary",
    changes: &["query=stationary", "init.score_sign=td", "init.value_sign=td"],
};
const STATIONARY_UNMIXED: Setting = Setting {
    title: "stationary queries, TD signs, ρ = 0",
    suffix: "_stationary",
    changes: &[
        "query=stationary",
        "init.score_sign=td",
        "init.value_sign=td",
        "rho.start=0.0",
        "rho.end=0.0",
    ],
};
const GAIN: Setting = Setting {
    title: "TD signs, gain 1",
    suffix: "_gain",
    changes: &["init.gain=1.0", "init.score_sign=td", "init.value_sign=td"],
};

impl Setting {
    fn train(&self, preset: &str, seeds: &[u64]) -> Result<(Settings, RunResult), LabError> {
        let changes: Vec<String> = self.changes.iter().map(|&c| c.to_owned()).collect();
        let settings = Settings::preset(preset, &changes)?;
        let result = pretrain::run_in_memory(&settings, seeds)?;
        Ok((settings, result))
    }

    fn figures_3_and_5(&self, seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
        let (settings, result) = self.train("paper", &(seed..seed + 5).collect::<Vec<_>>())?;
        let (figure_3, figure_5) = (format!("fig3{}", self.suffix), format!("fig5{}", self.suffix));
        EmergenceFigures::new(&settings, self.title, &result).write(out, &figure_3, &figure_5)?;
        Ok((emergence_verdict(&result), emergence_text(&result)))
    }

    fn figure_6(&self, seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
        let seeds: Vec<u64> = (seed..seed + 10).collect();
        let run = |preset: &str| -> Result<(EmergenceFigures, RunResult), LabError> {
            let (settings, result) = self.train(preset, &seeds)?;
            Ok((EmergenceFigures::new(&settings, self.title, &result), result))
        };
        let (full, relaxed) = (run("mask-full")?, run("mask-relaxed")?);
        pretrain::write_figure_6(out, &format!("fig6{}", self.suffix), &full.0, &relaxed.0)?;
        let verdict = match (emergence_verdict(&full.1), emergence_verdict(&relaxed.1)) {
            (a, b) if a == b => a,
            _ => Verdict::Partly,
        };
        Ok((
            verdict,
            format!("full mask: {}; relaxed mask: {}", emergence_text(&full.1), emergence_text(&relaxed.1)),
        ))
    }
}

fn figures_3_and_5(seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
    LITERAL.figures_3_and_5(seed, out)
}

fn figures_3_and_5_stationary(seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
    STATIONARY.figures_3_and_5(seed, out)
}

fn figures_3_and_5_gain(seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
    GAIN.figures_3_and_5(seed, out)
}

fn figure_6(seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
    LITERAL.figure_6(seed, out)
}

fn figure_6_stationary(seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
    STATIONARY_UNMIXED.figure_6(seed, out)
}

fn figure_7(seed: u64, out: &OutputDir) -> Result<Finding, LabError> {
    let found = verify::run(&verify::VerifyConfig { seed, ..Default::default() })?;
    found.write(out)?;
    let measured =
        format!("largest discrepancy {:.1e} (rounding level: ≤ {:.0e})", found.worst, found.config.tolerance);
    Ok((found.verdict, measured))
}
