//! Exact expectations: how far Boltzmann's limit is from the optimum, and what is certified about the way there.

use ictd::CertificateConfig;
use ictd::control::{BoltzmannCertificate, ControlConfig, PairOperator, uniform_policy};
use ictd::statistics::largest;
use serde::Serialize;

use super::ControlStudyConfig;
use super::setting::{PairFeatures, Processes, Update};
use crate::studies::{in_parallel, known_sem, mean_sem};
use crate::{LabError, Progress};

/// The reference's step size and score scale.
const STEP_SIZE: f64 = 0.5;
const SCALE: f64 = 20.0;
/// β of the gaps; the reference has 1 and 20.
const BETAS: [f64; 8] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
/// Where certificates are asked for beside: γ, score scale, update.
const DISCOUNTS: [f64; 3] = [0.5, 0.7, 0.9];
const SCALES: [f64; 3] = [4.0, 6.0, 20.0];
const UPDATES: [Update; 4] =
    [Update::ExpectedSarsa, Update::Boltzmann(0.1), Update::Boltzmann(1.0), Update::Boltzmann(20.0)];
const REFERENCE: Processes = Processes::REFERENCE;
/// What the reference leaves open of its processes and features: the gaps at its two β in other settings than the one that is judged.
const CHOICES: [Setting; 5] = [
    BASE,
    Setting { processes: Processes { least_reward: 0.0, ..REFERENCE }, ..BASE },
    Setting { processes: Processes { actions: 2, ..REFERENCE }, ..BASE },
    Setting { processes: Processes { states: 5, ..REFERENCE }, ..BASE },
    Setting { features: PairFeatures::Random(36), ..BASE },
];
/// Differences below this are not compared: values are of order 1, and their rounding would show.
const SMALLEST_STEP: f64 = 1e-9;

/// The gap to the optimum at one β.
#[derive(Clone, Debug, Serialize)]
pub struct GapRow {
    pub beta: f64,
    pub mdps: u64,
    /// ‖Q - Q*‖∞ after all layers: mean, standard error and largest.
    pub gap: f64,
    pub gap_sem: Option<f64>,
    pub largest_gap: f64,
    /// γ·log|A|/(β(1-γ)).
    pub bound: f64,
    /// Processes whose gap is below it.
    pub below: u64,
    /// Processes whose layers contract by proof.
    pub certified: u64,
    /// The largest rate of the certificates.
    pub certified_rate: Option<f64>,
    /// The largest factor between two changes in a row, of all layers and processes.
    pub measured_rate: f64,
}

/// What is certified of an update at a discount and a scale.
#[derive(Clone, Debug, Serialize)]
pub struct CertificateRow {
    pub update: String,
    pub gamma: f64,
    pub score_scale: f64,
    pub mdps: u64,
    /// Processes whose layers contract by proof.
    pub certified: u64,
    /// The largest rate of the certificates, certified or not.
    pub rate: Option<f64>,
    /// The largest factor between two changes in a row.
    pub measured_rate: f64,
    /// Processes on which the certified rate was exceeded: none, if the proof is right.
    pub exceeded: u64,
}

/// The gaps at the reference's two β in one setting.
#[derive(Clone, Debug, Serialize)]
pub struct ChoiceRow {
    pub states: usize,
    pub actions: usize,
    pub rewards: String,
    pub features: String,
    pub mdps: u64,
    pub gap_1: f64,
    pub gap_1_sem: Option<f64>,
    pub gap_20: f64,
    pub gap_20_sem: Option<f64>,
}

/// What sweeps are made with.
#[derive(Clone, Copy, Debug)]
struct Setting {
    processes: Processes,
    features: PairFeatures,
    scale: f64,
}

const BASE: Setting = Setting { processes: REFERENCE, features: PairFeatures::OneHot, scale: SCALE };

/// What layers did on one process.
struct Swept {
    gap: f64,
    certified: bool,
    rate: Option<f64>,
    measured_rate: f64,
}

impl Swept {
    fn is_exceeded(&self) -> bool {
        // Differences above the smallest that counts are rounded to a millionth of themselves at most.
        self.certified && !self.rate.is_some_and(|rate| self.measured_rate <= rate * (1.0 + 1e-6))
    }
}

fn sweep(
    config: &ControlStudyConfig,
    setting: &Setting,
    update: Update,
    index: u64,
    progress: &Progress,
) -> Result<Swept, LabError> {
    let Processes { states, actions, gamma, .. } = setting.processes;
    let mdp = setting.processes.draw(config.seed, index)?;
    let features = setting.features.table(states * actions, setting.scale, config.seed, index);
    let backup = update.under(&uniform_policy(states, actions));
    let step_sizes = vec![STEP_SIZE; config.sweeps];
    let control = ControlConfig { backup, temperature: 1.0, gamma, step_sizes }.check()?;
    let operator = PairOperator::expected(&control, &mdp, &features)?;
    let history = operator.run(&vec![0.0; states * actions])?;
    let distance = |a: &[f64], b: &[f64]| largest(a.iter().zip(b).map(|(a, b)| (a - b).abs()));
    let steps: Vec<f64> = history.windows(2).map(|w| distance(&w[0], &w[1])).collect();
    let measured = steps.windows(2).filter(|w| w[0] > SMALLEST_STEP).map(|w| w[1] / w[0]);
    let (certified, rate) = match operator.states() {
        Ok(states) => {
            let asked = CertificateConfig { step_size: STEP_SIZE, ..Default::default() };
            let norm = asked.certify(states)?.contraction.norm_inf;
            (norm.is_some_and(|norm| norm < 1.0), norm)
        }
        Err(_) => {
            let found = BoltzmannCertificate::of(&operator, STEP_SIZE)?;
            (found.certified, found.rate)
        }
    };
    let optimal = mdp.optimal_action_values()?;
    progress.step(config.sweeps as u64)?;
    let gap = distance(&history[config.sweeps], optimal.as_slice());
    Ok(Swept { gap, certified, rate, measured_rate: largest(measured) })
}

/// Gaps over β, certificates, and gaps by what was chosen.
type Exact = (Vec<GapRow>, Vec<CertificateRow>, Vec<ChoiceRow>);

/// Runs that are made per process.
pub fn num_rows() -> usize {
    BETAS.len() + DISCOUNTS.len() * SCALES.len() * UPDATES.len() + 2 * CHOICES.len()
}

/// Sweeps over all processes, settings and β.
pub fn run(config: &ControlStudyConfig, progress: &Progress) -> Result<Exact, LabError> {
    let on_all = |setting: Setting, update| {
        in_parallel(0..config.exact_mdps, |index| sweep(config, &setting, update, index, progress))
    };
    let gap = |swept: &[Swept]| mean_sem("exact-mdps", swept.iter().map(|s| s.gap));
    let count = |swept: &[Swept], of: fn(&Swept) -> bool| swept.iter().filter(|s| of(s)).count() as u64;
    let rate = |swept: &[Swept]| {
        let rates: Option<Vec<f64>> = swept.iter().map(|s| s.rate).collect();
        rates.map(largest)
    };
    let measured_rate = |swept: &[Swept]| largest(swept.iter().map(|s| s.measured_rate));
    let (mut gaps, mut certificates, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    for beta in BETAS {
        let swept = on_all(BASE, Update::Boltzmann(beta))?;
        let mean = gap(&swept)?;
        let Processes { actions, gamma, .. } = REFERENCE;
        let bound = gamma * (actions as f64).ln() / (beta * (1.0 - gamma));
        gaps.push(GapRow {
            beta,
            mdps: config.exact_mdps,
            gap: mean.mean,
            gap_sem: known_sem(&mean),
            largest_gap: largest(swept.iter().map(|s| s.gap)),
            bound,
            below: swept.iter().filter(|s| s.gap <= bound).count() as u64,
            certified: count(&swept, |s| s.certified),
            certified_rate: rate(&swept),
            measured_rate: measured_rate(&swept),
        });
    }
    for gamma in DISCOUNTS {
        for score_scale in SCALES {
            for update in UPDATES {
                let processes = Processes { gamma, ..REFERENCE };
                let swept = on_all(Setting { processes, scale: score_scale, ..BASE }, update)?;
                certificates.push(CertificateRow {
                    update: update.name(),
                    gamma,
                    score_scale,
                    mdps: config.exact_mdps,
                    certified: count(&swept, |s| s.certified),
                    rate: rate(&swept),
                    measured_rate: measured_rate(&swept),
                    exceeded: count(&swept, Swept::is_exceeded),
                });
            }
        }
    }
    for setting in CHOICES {
        let [one, twenty] = [1.0, 20.0].map(|beta| gap(&on_all(setting, Update::Boltzmann(beta))?));
        let ((one, twenty), processes) = ((one?, twenty?), setting.processes);
        choices.push(ChoiceRow {
            states: processes.states,
            actions: processes.actions,
            rewards: format!("U({}, 1)", processes.least_reward),
            features: setting.features.name(),
            mdps: config.exact_mdps,
            gap_1: one.mean,
            gap_1_sem: known_sem(&one),
            gap_20: twenty.mean,
            gap_20_sem: known_sem(&twenty),
        });
    }
    Ok((gaps, certificates, choices))
}
