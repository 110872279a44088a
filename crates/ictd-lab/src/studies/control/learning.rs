//! Policies that improve: every layer is shown transitions of the policy that is greedy, but for ε, at the values before it.

use ictd::control::{ControlConfig, PairContext, PairOperator, Rollout, epsilon_greedy};
use ictd::random::{Purpose, Stream};
use ictd::task::Mdp;
use serde::Serialize;

use super::ControlStudyConfig;
use super::setting::{PairFeatures, Processes, Update};
use crate::studies::{in_parallel, known_sem, mean_sem};
use crate::{LabError, Progress};

const PROCESSES: Processes = Processes::REFERENCE;
/// The reference's ε and score scale.
const EPSILON: f64 = 0.1;
const SCALE: f64 = 12.0;

/// The reference's step size of layer l, from 1.
fn step_size(layer: usize) -> f64 {
    0.35 / (1.0 + 0.02 * (layer as f64 - 1.0)).sqrt()
}

/// One way to fill in what the reference leaves open.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub update: Update,
    pub features: PairFeatures,
    pub scale: f64,
    /// Whether every update starts from the initial law, instead of where the one before stopped.
    pub restarts: bool,
}

const BASE: Setting =
    Setting { update: Update::Sarsa, features: PairFeatures::OneHot, scale: SCALE, restarts: false };

/// The setting that is judged, first, and others beside it, each of which changes one thing.
pub const SETTINGS: [Setting; 7] = [
    BASE,
    Setting { update: Update::ExpectedSarsa, ..BASE },
    Setting { update: Update::Boltzmann(20.0), ..BASE },
    Setting { features: PairFeatures::Random(9), ..BASE },
    Setting { features: PairFeatures::Random(4), ..BASE },
    // Features, not scores, multiplied by 12: a table.
    Setting { scale: SCALE * SCALE, ..BASE },
    Setting { restarts: true, ..BASE },
];

/// What a setting made of all processes: mean returns of the ε-greedy policy, with standard errors, which a single process has none of.
#[derive(Clone, Debug, Serialize)]
pub struct LearningRow {
    pub update: String,
    pub features: String,
    pub score_scale: f64,
    pub restarts: bool,
    pub mdps: u64,
    /// Before the first update, when all actions are alike.
    pub start: f64,
    pub start_sem: Option<f64>,
    /// The same when equal values favour the first action.
    pub start_first_action: f64,
    pub start_first_action_sem: Option<f64>,
    /// The same where every process starts in its first state, too.
    pub start_first_state: f64,
    pub start_first_state_sem: Option<f64>,
    /// After the first update.
    pub first: f64,
    /// After the last one.
    pub end: f64,
    pub end_sem: Option<f64>,
    /// Processes on which the end is better than the start.
    pub improved: u64,
    /// What the best policy earns.
    pub optimum: f64,
    pub optimum_sem: Option<f64>,
    /// The best policy with the same ε: what exact values would earn.
    pub epsilon_optimum: f64,
    /// The end as reward per step in the long run.
    pub end_average: f64,
}

/// A point of the learning curves.
#[derive(Clone, Debug, Serialize)]
pub struct CurveRow {
    pub setting: usize,
    pub update: usize,
    pub mean: f64,
    pub sem: Option<f64>,
}

/// A process in the setting that is judged.
#[derive(Clone, Debug, Serialize)]
pub struct MdpRow {
    pub mdp: u64,
    pub start: f64,
    pub end: f64,
    pub optimum: f64,
}

/// What became of one process in one setting.
struct Learned {
    /// The return before the first and after every update.
    returns: Vec<f64>,
    start_first_action: f64,
    start_first_state: f64,
    optimum: f64,
    epsilon_optimum: f64,
    end_average: f64,
}

fn learn(
    config: &ControlStudyConfig,
    setting: &Setting,
    index: u64,
    progress: &Progress,
) -> Result<Learned, LabError> {
    let (actions, gamma, pairs) = (PROCESSES.actions, PROCESSES.gamma, PROCESSES.pairs());
    let mdp = PROCESSES.draw(config.seed, index)?;
    let features = setting.features.table(pairs, setting.scale, config.seed, index);
    let mut stream = Stream::new(config.seed, Purpose::Trajectory, index);
    let mut walk = Rollout::new(&mdp, &mut stream)?;
    let mut q = vec![0.0; pairs];
    let mut policy = epsilon_greedy(&q, actions, EPSILON)?;
    let mut returns = vec![mdp.policy_return(&policy)?];
    for layer in 1..=config.updates {
        if setting.restarts {
            walk.restart(&mut stream);
        }
        let transitions = walk.sample(&policy, config.transitions, &mut stream)?;
        let context = PairContext::new(features.clone(), actions, transitions)?;
        let backup = setting.update.under(&policy);
        let layer = ControlConfig { backup, temperature: 1.0, gamma, step_sizes: vec![step_size(layer)] };
        q = PairOperator::empirical(&layer.check()?, &context)?.run(&q)?.swap_remove(1);
        policy = epsilon_greedy(&q, actions, EPSILON)?;
        returns.push(mdp.policy_return(&policy)?);
        progress.step(1)?;
    }
    let best = mdp.optimal_action_values()?;
    let earned = |epsilon| -> Result<f64, LabError> {
        Ok(mdp.policy_return(&epsilon_greedy(best.as_slice(), actions, epsilon)?)?)
    };
    let first = |length: usize, every: usize| -> Vec<f64> {
        (0..length).map(|k| f64::from(u8::from(k % every == 0))).collect()
    };
    let first_action = epsilon_greedy(&first(pairs, actions), actions, EPSILON)?;
    let states = mdp.num_states();
    let from_first_state = Mdp { initial_distribution: first(states, states), ..mdp.clone() };
    Ok(Learned {
        returns,
        start_first_action: mdp.policy_return(&first_action)?,
        start_first_state: from_first_state.policy_return(&first_action)?,
        optimum: earned(0.0)?,
        epsilon_optimum: earned(EPSILON)?,
        end_average: average_reward(&mdp, &policy)?,
    })
}

/// Rewards per step in the long run under a policy.
fn average_reward(mdp: &Mdp, policy: &ictd::Matrix) -> Result<f64, LabError> {
    let chain = mdp.under_policy(policy)?;
    let mu = chain.transitions().stationary_distribution();
    Ok(mu.iter().zip(chain.rewards()).map(|(mu, r)| mu * r).sum())
}

/// Learns in all settings on all processes.
pub fn run(
    config: &ControlStudyConfig,
    progress: &Progress,
) -> Result<(Vec<LearningRow>, Vec<CurveRow>, Vec<MdpRow>), LabError> {
    let all: Vec<(usize, u64)> =
        (0..SETTINGS.len()).flat_map(|s| (0..config.mdps).map(move |index| (s, index))).collect();
    let learned = in_parallel(all, |(s, index)| learn(config, &SETTINGS[s], index, progress))?;
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    let per_setting = learned.chunks_exact(config.mdps as usize);
    for (s, (setting, learned)) in SETTINGS.iter().zip(per_setting).enumerate() {
        let mean = |of: &dyn Fn(&Learned) -> f64| mean_sem("mdps", learned.iter().map(of));
        for update in 0..=config.updates {
            let at = mean(&|l| l.returns[update])?;
            curves.push(CurveRow { setting: s, update, mean: at.mean, sem: known_sem(&at) });
        }
        let last = config.updates;
        let (start, end) = (mean(&|l| l.returns[0])?, mean(&|l| l.returns[last])?);
        let (optimum, first_action) = (mean(&|l| l.optimum)?, mean(&|l| l.start_first_action)?);
        let first_state = mean(&|l| l.start_first_state)?;
        rows.push(LearningRow {
            update: setting.update.name(),
            features: setting.features.name(),
            score_scale: setting.scale,
            restarts: setting.restarts,
            mdps: config.mdps,
            start: start.mean,
            start_sem: known_sem(&start),
            start_first_action: first_action.mean,
            start_first_action_sem: known_sem(&first_action),
            start_first_state: first_state.mean,
            start_first_state_sem: known_sem(&first_state),
            first: mean(&|l| l.returns[1])?.mean,
            end: end.mean,
            end_sem: known_sem(&end),
            improved: learned.iter().filter(|l| l.returns[last] > l.returns[0]).count() as u64,
            optimum: optimum.mean,
            optimum_sem: known_sem(&optimum),
            epsilon_optimum: mean(&|l| l.epsilon_optimum)?.mean,
            end_average: mean(&|l| l.end_average)?.mean,
        });
    }
    let row = |(mdp, l): (u64, &Learned)| MdpRow {
        mdp,
        start: l.returns[0],
        end: l.returns[config.updates],
        optimum: l.optimum,
    };
    Ok((rows, curves, (0..config.mdps).zip(&learned).map(row).collect()))
}
