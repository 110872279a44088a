//! The whole paper in one run: every claim, with a verdict.
//!
//! A [`Study`] computes something once and judges the [`Claim`]s that rest on it. Criteria stand in the code of the
//! study. To add a claim: write a study of a few lines, or a claim into an existing one,
//! and list it in [`STUDIES`].

mod check;
mod concentration;
mod figures;
mod objective;
mod report;
mod stability;

pub use super::claim::{Claim, Scope};
use super::theory::assumption as convergence;
use super::{fig3_5 as emergence, fig6 as masks, theorem1 as equivalence, tsm_cost as cost};
pub use check::{Drift, drifts};
pub use stability::{Stability, Verdicts, measure, num_seeds, stability_drifts};

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Verdict;
use super::tsm_cost::CostTimes;
use crate::LabError;
use crate::files::{OutputDir, process, to_json_17};

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Seed of every random draw.
    pub seed: u64,
    /// Pretraining seeds; the paper's 5, and 10 for the masks, when `None`.
    pub seeds: Option<u64>,
    /// Fewer samples: everything is there, with wider intervals.
    pub quick: bool,
}

impl Plan {
    /// The full number of samples, or the quick one.
    pub fn samples(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    /// The pretraining seeds, `paper` of them unless told otherwise.
    pub fn seeds(&self, paper: u64) -> Vec<u64> {
        let number = self.seeds.unwrap_or(if self.quick { paper.min(3) } else { paper });
        (self.seed..self.seed + number).collect()
    }

    /// The options that give this plan.
    fn options(&self) -> String {
        let mut text = String::new();
        if self.seed != 0 {
            text += &format!(" --seed {}", self.seed);
        }
        if let Some(seeds) = self.seeds {
            text += &format!(" --seeds {seeds}");
        }
        if self.quick {
            text += " --quick";
        }
        text
    }
}

/// Reproduced or not, where there is nothing between.
pub fn verdict(holds: bool) -> Verdict {
    if holds { Verdict::Reproduced } else { Verdict::NotReproduced }
}

/// A computation and the claims that rest on it.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Its name on the command line.
    pub id: &'static str,
    /// The claims it judges.
    pub claims: &'static [&'static str],
    /// Computes, writes figures and numbers, judges.
    pub run: fn(&Plan, &OutputDir) -> Result<Vec<Claim>, LabError>,
}

/// All studies, in the order of the paper.
pub const STUDIES: [Study; 22] = [
    Study {
        id: "equivalence",
        claims: &["thm1", "lem1", "special-cases", "fig7", "step-size"],
        run: equivalence::run,
    },
    Study { id: "tsm-cost", claims: &["tsm-cost"], run: equivalence::cost },
    Study { id: "fig1", claims: &["fig1"], run: figures::figure_1 },
    Study { id: "softmax-vs-linear", claims: &["softmax-vs-linear"], run: figures::softmax_against_linear },
    Study { id: "fig2", claims: &["fig2"], run: figures::figure_2 },
    Study { id: "fig4", claims: &["fig4"], run: figures::figure_4 },
    Study {
        id: "assumption",
        claims: &["ass5.1", "ass5.1-at-identity", "stability"],
        run: convergence::assumption,
    },
    Study {
        id: "theorem2",
        claims: &["lem4", "lem5", "lem6", "lem7", "thm2-bound"],
        run: convergence::theorem_2,
    },
    Study { id: "rates", claims: &["thm2-decay", "thm2-floor"], run: convergence::rates },
    Study { id: "depth", claims: &["depth"], run: convergence::depth },
    Study { id: "theorem3", claims: &["thm3", "thm3-paper", "same-prompt"], run: objective::theorem_3 },
    Study { id: "thm3-bound", claims: &["thm3-bound"], run: objective::theorem_3_bound },
    Study { id: "lemmas", claims: &["lem8", "lem9", "lem10"], run: objective::lemmas },
    Study { id: "fig3", claims: &["fig3a", "fig3b", "fig3b-onset", "fig5"], run: emergence::literal },
    Study {
        id: "fig3-source",
        claims: &["fig3a-source", "fig3b-source", "fig3b-onset-source", "fig5-source"],
        run: emergence::source,
    },
    Study {
        id: "fig3-stationary",
        claims: &["fig3a-stationary", "fig3b-stationary", "fig5-stationary"],
        run: emergence::stationary,
    },
    Study { id: "fig3-gain", claims: &["fig3a-gain", "fig3b-gain", "fig5-gain"], run: emergence::gain },
    Study {
        id: "self-concentration",
        claims: &["self-concentration", "self-concentration-source"],
        run: concentration::run,
    },
    Study { id: "fig6", claims: &["fig6", "rho"], run: masks::literal },
    Study { id: "fig6-source", claims: &["fig6-source", "rho-source"], run: masks::source },
    Study { id: "fig6-stationary", claims: &["fig6-stationary"], run: masks::stationary },
    Study { id: "compute", claims: &["compute"], run: emergence::compute },
];

/// The studies that judge the claims named, or the studies named; all of them when no name is given.
pub fn select(names: &[String]) -> Result<Vec<Study>, LabError> {
    let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
    let is_known = |name: &str| STUDIES.iter().any(|s| s.id == name || s.claims.contains(&name));
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let mut known: Vec<&str> = Vec::new();
        for study in &STUDIES {
            known.extend(study.claims);
            if !study.claims.contains(&study.id) {
                known.push(study.id);
            }
        }
        return Err(LabError::Invalid(format!(
            "only: '{unknown}' is unknown, expected some of {}",
            known.join(", ")
        )));
    }
    let wanted = |s: &Study| {
        names.is_empty() || names.iter().any(|name| name == s.id || s.claims.contains(&name.as_str()))
    };
    Ok(STUDIES.into_iter().filter(wanted).collect())
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

/// What a finished study leaves for later runs.
#[derive(Serialize, Deserialize)]
struct Cached {
    /// Hash of everything the results depend on.
    key: String,
    claims: Vec<Claim>,
    /// Names and hashes of all files the study wrote.
    files: Vec<(String, String)>,
}

/// Marks a directory as one that reproductions are written to.
const MARKER: &str = "reproduce.txt";
const MARKER_TEXT: &str =
    "Written by `ictd reproduce`, which overwrites files here. report.html is the place to start.\n";

/// Runs studies one after the other and writes everything to `path`. Studies whose results are there from an
/// earlier run of the same plan and version are not run again, unless `fresh`. Claims of other studies that are there
/// stay in `claims.json` and in the report. `progress` hears of every study when
/// it starts, with `None`, and when it ends.
pub fn run(
    studies: &[Study],
    plan: &Plan,
    path: &Path,
    fresh: bool,
    mut progress: impl FnMut(&Study, Option<(&Timing, &[Claim])>),
) -> Result<Reproduction, LabError> {
    if plan.seeds.is_some_and(|n| !(1..=10_000).contains(&n)) {
        let found = plan.seeds.unwrap_or(0);
        return Err(LabError::Invalid(format!("seeds is {found}, expected 1 to 10000")));
    }
    if plan.seed > u64::MAX - 10_000 {
        return Err(LabError::Invalid(format!(
            "seed is {}, expected at most {}",
            plan.seed,
            u64::MAX - 10_000
        )));
    }
    let out = claim_directory(path)?;
    let start = Instant::now();
    let cache = OutputDir::create(&path.join("cache"))?;
    let (mut claims, mut timings) = (Vec::new(), Vec::new());
    for study in studies {
        progress(study, None);
        let key = key(study, plan)?;
        let begin = Instant::now();
        let known = if fresh { None } else { read_cached(&cache, study, &key, path) };
        let cached = known.is_some();
        let found = match known {
            Some(claims) => claims,
            None => {
                // From here on the files are in flux: whoever comes after a crash must not trust them.
                forget(&cache, study)?;
                out.take_written();
                let mut found = (study.run)(plan, &out)?;
                for claim in &mut found {
                    claim.command = format!("ictd reproduce --only {}{}", claim.id, plan.options());
                }
                stability::annotate(&mut found, plan)?;
                let mut names = out.take_written();
                names.sort();
                names.dedup();
                let hashed = |name: String| Some((file_hash(&path.join(&name))?, name));
                let files = names.into_iter().filter_map(hashed).map(|(hash, name)| (name, hash)).collect();
                cache.json(study.id, &Cached { key, claims: found.clone(), files })?;
                found
            }
        };
        let seconds = if cached { 0.0 } else { begin.elapsed().as_secs_f64() };
        let timing = Timing { study: study.id, claims: study.claims, seconds, cached };
        progress(study, Some((&timing, &found)));
        claims.extend(found);
        timings.push(timing);
    }
    let reproduction = Reproduction { claims, timings };
    let all = with_others(&reproduction, studies, plan, &cache, path)?;
    out.json("claims", &all)?;
    let layers = studies.iter().any(|s| s.id == "tsm-cost").then(cost::measure).transpose()?;
    out.json(
        "timings",
        &Timings {
            studies: &reproduction.timings,
            total_seconds: start.elapsed().as_secs_f64(),
            peak_rss_kib: process::peak_rss_kib(),
            cpu: process::cpu_name(),
            threads: rayon::current_num_threads(),
            layers,
        },
    )?;
    out.write("report.html", report::html(&all, plan, path)?.as_bytes())?;
    Ok(reproduction)
}

/// The claims just judged and those of other studies that an earlier run of the same plan left, in the order of the
/// paper; studies that are not the paper's come last.
fn with_others(
    found: &Reproduction,
    studies: &[Study],
    plan: &Plan,
    cache: &OutputDir,
    path: &Path,
) -> Result<Reproduction, LabError> {
    let mut all = Reproduction { claims: Vec::new(), timings: Vec::new() };
    for study in &STUDIES {
        if !studies.iter().any(|s| s.id == study.id) {
            all.claims.extend(read_cached(cache, study, &key(study, plan)?, path).unwrap_or_default());
        }
        all.claims.extend(found.claims.iter().filter(|c| study.claims.contains(&c.id.as_str())).cloned());
    }
    let placed = |claim: &&Claim| !all.claims.iter().any(|c| c.id == claim.id);
    let others: Vec<Claim> = found.claims.iter().filter(placed).cloned().collect();
    all.claims.extend(others);
    Ok(all)
}

fn forget(cache: &OutputDir, study: &Study) -> Result<(), LabError> {
    let path = cache.path().join(format!("{}.json", study.id));
    match fs::remove_file(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(LabError::Write { path, source }),
        _ => Ok(()),
    }
}

fn file_hash(path: &Path) -> Option<String> {
    Some(hex(&fs::read(path).ok()?))
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Opens a directory for a reproduction and marks it as one; refuses others.
fn claim_directory(path: &Path) -> Result<OutputDir, LabError> {
    refuse_foreign(path)?;
    let out = OutputDir::create(path)?;
    out.write(MARKER, MARKER_TEXT.as_bytes())?;
    Ok(out)
}

/// Refuses a directory with files in it that no reproduction wrote.
fn refuse_foreign(path: &Path) -> Result<(), LabError> {
    let Ok(entries) = fs::read_dir(path) else { return Ok(()) };
    let mut names: Vec<String> =
        entries.filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    // Half-written files of a killed run are nobody's.
    names.retain(|n| !(n.starts_with('.') && n.ends_with(".tmp")));
    let marked = fs::read_to_string(path.join(MARKER)).is_ok_and(|text| text == MARKER_TEXT);
    if names.is_empty() || marked {
        return Ok(());
    }
    Err(LabError::Invalid(format!(
        "out {}: has files that no reproduction wrote ('{}' for one), expected an empty or new directory",
        path.display(),
        names[0]
    )))
}

fn key(study: &Study, plan: &Plan) -> Result<String, LabError> {
    let plan = to_json_17(plan).map_err(|e| LabError::Failed(format!("plan: {e}")))?;
    // The executable stands for the code: another build may compute something else.
    let text = format!("{} {} {} {plan}", env!("CARGO_PKG_VERSION"), process::build_stamp(), study.id);
    Ok(hex(text.as_bytes()))
}

/// The claims of an earlier run, if its key is the same and its files are still what it wrote.
fn read_cached(cache: &OutputDir, study: &Study, key: &str, path: &Path) -> Option<Vec<Claim>> {
    let text = fs::read_to_string(cache.path().join(format!("{}.json", study.id))).ok()?;
    let cached: Cached = serde_json::from_str(&text).ok()?;
    let same = |(name, hash): &(String, String)| file_hash(&path.join(name)).as_ref() == Some(hash);
    (cached.key == key && cached.files.iter().all(same)).then_some(cached.claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_known() {
        let mut names: Vec<&str> = STUDIES.iter().flat_map(|s| s.claims.iter().copied()).collect();
        let total = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), total);
        assert_eq!(select(&["thm2-floor".into()]).unwrap()[0].id, "rates");
        assert!(select(&["nobody".into()]).is_err());
    }

    /// Every study judges exactly the claims it is listed with.
    #[test]
    fn studies_judge_what_they_list() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let plan = Plan { seed: 0, seeds: Some(2), quick: true };
        // Those without training: the others are run by the tests of the command.
        for study in STUDIES.into_iter().filter(|s| {
            ["equivalence", "tsm-cost", "fig1", "softmax-vs-linear", "fig2", "fig4", "rates", "depth"]
                .contains(&s.id)
        }) {
            let found = (study.run)(&plan, &out).unwrap();
            let ids: Vec<&str> = found.iter().map(|c| c.id.as_str()).collect();
            assert_eq!(ids, study.claims);
        }
    }
}
