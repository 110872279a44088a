//! Control by softmax TD on pairs: attention against the algorithms, policies that improve, the way to the optimum, what is certified.

mod claims;
mod exact;
mod figure;
mod learning;
mod setting;
mod show;
mod verify;

use serde::Serialize;

use super::{Claim, Plan, Section, Study};
use crate::error::check_range;
use crate::files::OutputDir;
use crate::memory::{self, DOUBLE};
use crate::report::Report as _;
use crate::{LabError, Progress};
use exact::{CertificateRow, ChoiceRow, GapRow};
use learning::{CurveRow, LearningRow, MdpRow};
use verify::VerificationRow;

/// Control, past the paper: judged by `ictd control`, and no part of [`STUDIES`](super::STUDIES), whose claims are about the paper.
pub const STUDY: Study = Study::new("control", Section::Others, &claims::ALL, judge);

/// What to run. The defaults are the sizes of the reference figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControlStudyConfig {
    /// Seed of all draws.
    pub seed: u64,
    /// Decision processes that policies are improved on.
    pub mdps: u64,
    /// Updates, each of one layer.
    pub updates: usize,
    /// Transitions that an update is shown.
    pub transitions: usize,
    /// Decision processes with exact expectations.
    pub exact_mdps: u64,
    /// Layers there.
    pub sweeps: usize,
    /// Prompts that attention and algorithms are compared on.
    pub trials: u64,
    /// Whether attention is compared with the algorithms and nothing else is done.
    pub verify: bool,
}

impl Default for ControlStudyConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            mdps: 30,
            updates: 200,
            transitions: 128,
            exact_mdps: 20,
            sweeps: 200,
            trials: 50,
            verify: false,
        }
    }
}

impl ControlStudyConfig {
    fn check(&self) -> Result<(), LabError> {
        check_range("trials", self.trials, 1..=1_000_000)?;
        check_range("mdps", self.mdps, 1..=100_000)?;
        check_range("updates", self.updates, 1..=100_000)?;
        check_range("transitions", self.transitions, 1..=1_000_000)?;
        check_range("exact-mdps", self.exact_mdps, 1..=100_000)?;
        check_range("sweeps", self.sweeps, 1..=100_000)?;
        // Curves of all settings and processes; histories and a batch of a thread at a time.
        let pairs = setting::Processes::REFERENCE.pairs() as f64;
        let curves = learning::SETTINGS.len() as f64 * self.mdps as f64 * (self.updates + 1) as f64;
        let batch = 7.0 * self.transitions as f64 + (self.sweeps + 1) as f64 * pairs + 8.0 * pairs * pairs;
        let exact = exact::num_rows() as f64 * self.exact_mdps as f64 * 8.0;
        let bytes = DOUBLE * (2.0 * curves + exact + memory::threads(64.0) * batch);
        memory::admit(bytes, "--mdps, --updates, --transitions, --exact-mdps or --sweeps")
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct ControlStudy {
    config: ControlStudyConfig,
    verification: Vec<VerificationRow>,
    learning: Vec<LearningRow>,
    curves: Vec<CurveRow>,
    mdps: Vec<MdpRow>,
    gap: Vec<GapRow>,
    certificates: Vec<CertificateRow>,
    choices: Vec<ChoiceRow>,
    claims: Vec<Claim>,
}

/// Runs the study.
pub fn run(config: &ControlStudyConfig, progress: &Progress) -> Result<ControlStudy, LabError> {
    config.check()?;
    let learned = learning::SETTINGS.len() as u64 * config.mdps;
    let swept = exact::num_rows() as u64 * config.exact_mdps;
    // An update and a sweep take about as long as one another, and a prompt as long as a hundred of them.
    let prompts = config.trials.saturating_mul(100);
    let updates = learned.saturating_mul(config.updates as u64);
    let sweeps = swept.saturating_mul(config.sweeps as u64);
    let total = if config.verify { prompts } else { prompts.saturating_add(updates).saturating_add(sweeps) };
    progress.begin("control: attention against algorithms", "updates", total)?;
    let mut found = ControlStudy {
        config: config.clone(),
        verification: verify::run(config, progress)?,
        learning: Vec::new(),
        curves: Vec::new(),
        mdps: Vec::new(),
        gap: Vec::new(),
        certificates: Vec::new(),
        choices: Vec::new(),
        claims: Vec::new(),
    };
    if !config.verify {
        progress.rename("control: policies that improve");
        (found.learning, found.curves, found.mdps) = learning::run(config, progress)?;
        progress.rename("control: exact expectations");
        (found.gap, found.certificates, found.choices) = exact::run(config, progress)?;
    }
    found.claims = claims::judge(&found);
    Ok(found)
}

/// The study as the reports of [`reproduce`](super::reproduce) run it.
fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let default = ControlStudyConfig::default();
    let config = ControlStudyConfig {
        seed: plan.seed,
        mdps: plan.samples(default.mdps, 5),
        exact_mdps: plan.samples(default.exact_mdps, 5),
        trials: plan.samples(default.trials, 5),
        ..default
    };
    let found = run(&config, &Progress::default())?;
    found.write(out)?;
    Ok(found.claims)
}
