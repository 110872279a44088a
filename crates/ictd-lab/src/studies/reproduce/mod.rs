//! A whole paper in one run: every claim, with a verdict.
//!
//! Here are the runner with its cache, the check against stored values, the count of verdicts over seeds, and the
//! page. What is computed and judged stands with the [studies](super).

mod check;
mod report;
mod show;
mod stability;

pub use check::{Drift, drifts};
pub use stability::{Stability, VerdictCounts, Verdicts, measure, num_seeds, stability_drifts};

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::pretrain::computed_by;
use super::tsm_cost::{self, CostTimes};
use super::{Claim, Paper, Plan, Study};
use crate::did_you_mean;
use crate::error::{LabError, check_range};
use crate::files::{LOCK, OutputDir, Written, is_unfinished, process, read_sealed, sha256, to_json_17};

/// The studies of a paper that judge the claims named, or the studies named; all of them when no name is given.
pub fn select(paper: Paper, names: &[String]) -> Result<Vec<Study>, LabError> {
    let studies = paper.studies();
    let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
    let is_of = |name: &str, study: &Study| study.id == name || study.claims.contains(&name);
    if let Some(unknown) = names.iter().find(|name| !studies.iter().any(|s| is_of(name, s))) {
        let other = Paper::ALL.into_iter().find(|other| other.studies().iter().any(|s| is_of(unknown, s)));
        if let Some(other) = other {
            let option = match other {
                Paper::Main => "--paper main",
                Paper::Predecessor => "--paper predecessor",
            };
            let problem = format!("'{unknown}' is of another paper, expected {option} beside it");
            return Err(LabError::refused("only", problem));
        }
        let known = studies.iter().flat_map(|s| s.claims.iter().copied().chain([s.id]));
        let meant = did_you_mean(unknown, known);
        let place = match paper {
            Paper::Main => "docs/reproduce.md",
            Paper::Predecessor => "docs/predecessor.md",
        };
        let problem =
            format!("'{unknown}' is unknown, expected claims or studies of the tables in {place}{meant}");
        return Err(LabError::refused("only", problem));
    }
    let wanted = |study: &Study| names.is_empty() || names.iter().any(|name| is_of(name, study));
    Ok(studies.iter().filter(|study| wanted(study)).copied().collect())
}

/// How long a study took.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// The study.
    pub study: &'static str,
    /// The claims it judged.
    pub claims: &'static [&'static str],
    /// Wall time; 0 when its results were there.
    pub seconds: f64,
    /// Whether its results were there from an earlier run.
    pub cached: bool,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The claims of the studies asked for, in their order.
    pub claims: Vec<Claim>,
    /// Times, which differ from run to run and stand in a file of their own.
    #[serde(skip)]
    pub timings: Vec<Timing>,
}

#[derive(Serialize)]
struct Timings<'a> {
    studies: &'a [Timing],
    total_seconds: f64,
    peak_rss_kib: Option<u64>,
    cpu: String,
    threads: usize,
    /// Seconds per layer of the constructions whose operations the claim `tsm-cost` counts, when it was judged anew.
    layers: Option<CostTimes>,
}

/// What a finished study leaves for later runs, in a file that carries a digest of itself.
#[derive(Serialize, Deserialize)]
struct Cached {
    /// Hash of everything the results depend on.
    key: String,
    claims: Vec<Claim>,
    /// Names of its figures and their SVG.
    figures: Vec<(String, String)>,
    /// Names and hashes of all files the study wrote.
    files: Vec<(String, String)>,
}

/// Marks a directory as one that reproductions of a paper are written to.
const MARKER: &str = "reproduce.txt";

fn marker_text(paper: Paper) -> String {
    let option = paper.option();
    format!(
        "Written by `ictd reproduce{option}`, which overwrites files here. report.html is the place to start.\n"
    )
}

/// Runs studies one after the other and writes everything to `path`. Studies whose results are there from an
/// earlier run of the same plan, program and vector instructions are not run again, unless `fresh`. Claims of other studies that are there
/// stay in `claims.json` and in the report. `progress` hears of every study when
/// it starts, with `None`, and when it ends; an error of it ends the run, and a later one takes up what was judged.
pub fn run(
    studies: &[Study],
    plan: &Plan,
    path: &Path,
    fresh: bool,
    mut progress: impl FnMut(&Study, Option<(&Timing, &[Claim])>) -> Result<(), LabError>,
) -> Result<Reproduction, LabError> {
    plan.seeds.as_ref().map_or(Ok(()), |seeds| check_range("seeds", seeds.len(), 1..=10_000))?;
    check_range("seed", plan.seed, 0..=u64::MAX - 10_000)?;
    let paper = paper_of(studies);
    let out = claim_directory(path, paper)?;
    let start = Instant::now();
    let cache = out.below("cache")?;
    let (mut claims, mut figures, mut timings) = (Vec::new(), Vec::new(), Vec::new());
    for study in studies {
        progress(study, None)?;
        let key = key(study, plan)?;
        let begin = Instant::now();
        let known = if fresh { None } else { read_cached(&cache, study, &key, path) };
        let cached = known.is_some();
        let Cached { claims: found, figures: drawn, .. } = match known {
            Some(known) => known,
            None => {
                // An earlier entry stays: its hashes tell whether its files do, should this not come to an end.
                out.take_written();
                let mut found = study.judge(plan, &out)?;
                for claim in &mut found {
                    claim.command =
                        format!("ictd reproduce{} --only {}{}", paper.option(), claim.id, plan.options());
                }
                stability::annotate(&mut found, plan)?;
                let Written { files: mut names, figures } = out.take_written();
                names.sort();
                names.dedup();
                let hashed = |name: String| file_hash(&path.join(&name)).map(|hash| (name, hash));
                let files = names.into_iter().filter_map(hashed).collect();
                let judged = Cached { key, claims: found, figures, files };
                cache.sealed_json(study.id, &judged)?;
                judged
            }
        };
        let seconds = if cached { 0.0 } else { begin.elapsed().as_secs_f64() };
        let timing = Timing { study: study.id, claims: study.claims, seconds, cached };
        progress(study, Some((&timing, &found)))?;
        claims.extend(found);
        figures.extend(drawn);
        timings.push(timing);
    }
    let all = with_others(&claims, &mut figures, studies, plan, &cache, path)?;
    out.json("claims", &all)?;
    let layers = studies.iter().any(|s| s.id == tsm_cost::STUDY.id).then(tsm_cost::measure).transpose()?;
    let times = Timings {
        studies: &timings,
        total_seconds: start.elapsed().as_secs_f64(),
        peak_rss_kib: process::peak_rss_kib(),
        cpu: process::cpu_name(),
        threads: rayon::current_num_threads(),
        layers,
    };
    out.json("timings", &times)?;
    out.write("report.html", report::html(paper, &all.claims, &figures, plan).as_bytes())?;
    Ok(Reproduction { claims, timings })
}

/// The paper whose studies these are; they are of one.
fn paper_of(studies: &[Study]) -> Paper {
    studies.first().map_or_else(Paper::default, |study| study.paper)
}

/// The claims just judged and those of other studies that an earlier run of the same plan left, in the order of the
/// paper; studies that are not the paper's come last. Figures of others join those given.
fn with_others(
    found: &[Claim],
    figures: &mut Vec<(String, String)>,
    studies: &[Study],
    plan: &Plan,
    cache: &OutputDir,
    path: &Path,
) -> Result<Reproduction, LabError> {
    let mut claims = Vec::new();
    let known = paper_of(studies).studies();
    for study in known {
        let asked = studies.iter().any(|s| s.id == study.id);
        let other = if asked { None } else { read_cached(cache, study, &key(study, plan)?, path) };
        if let Some(other) = other {
            claims.extend(other.claims);
            figures.extend(other.figures);
        }
        claims.extend(found.iter().filter(|c| study.claims.contains(&c.id.as_str())).cloned());
    }
    let is_paper = |claim: &&Claim| known.iter().any(|s| s.claims.contains(&claim.id.as_str()));
    claims.extend(found.iter().filter(|claim| !is_paper(claim)).cloned());
    Ok(Reproduction { claims, timings: Vec::new() })
}

fn file_hash(path: &Path) -> Option<String> {
    Some(sha256(&fs::read(path).ok()?))
}

/// Opens a directory for a reproduction, for this process alone, and marks it as one; refuses one with files in it that no reproduction of this paper wrote.
fn claim_directory(path: &Path, paper: Paper) -> Result<OutputDir, LabError> {
    let entries = fs::read_dir(path).into_iter().flatten();
    let names = entries.filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned()));
    // Half-written files and locks of a killed run are nobody's.
    let first = names.filter(|n| !is_unfinished(n) && n != LOCK).min();
    let marker = fs::read_to_string(path.join(MARKER)).unwrap_or_default();
    if let Some(name) = first.filter(|_| marker != marker_text(paper)) {
        let found = if Paper::ALL.into_iter().any(|other| marker == marker_text(other)) {
            "has the reproduction of another paper".to_owned()
        } else {
            format!("has files that no reproduction wrote ('{name}' for one)")
        };
        let problem = format!("{found}, expected an empty or new directory");
        return Err(LabError::refused(format!("out {}", path.display()), problem));
    }
    let out = OutputDir::locked(path, Duration::ZERO)?;
    out.write(MARKER, marker_text(paper).as_bytes())?;
    Ok(out)
}

fn key(study: &Study, plan: &Plan) -> Result<String, LabError> {
    let plan = to_json_17(plan).map_err(|e| LabError::internal("plan", e))?;
    // The executable stands for the code: another build may compute something else.
    let text = format!("{} {} {} {plan}", env!("CARGO_PKG_VERSION"), computed_by()?, study.id);
    Ok(sha256(text.as_bytes()))
}

/// What an earlier run left, if it is undamaged, its key is the same and its files are still what it wrote.
fn read_cached(cache: &OutputDir, study: &Study, key: &str, path: &Path) -> Option<Cached> {
    let cached: Cached = read_sealed(&cache.path().join(format!("{}.json", study.id)))?;
    let same = |(name, hash): &(String, String)| file_hash(&path.join(name)).as_ref() == Some(hash);
    (cached.key == key && cached.files.iter().all(same)).then_some(cached)
}
