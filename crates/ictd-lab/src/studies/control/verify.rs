//! Attention against the algorithms, over random prompts.

use ictd::control::{ControlConfig, PairContext, PairOperator, PairTransition, Rollout};
use ictd::random::{Purpose, Stream};
use ictd::statistics::largest;
use ictd::task::Mdp;
use ictd::{Matrix, TransformerConfig};
use serde::Serialize;

use super::ControlStudyConfig;
use super::setting::Update;
use crate::studies::in_parallel;
use crate::studies::theorem1::verify::raise;
use crate::{LabError, Progress};

/// Prompts: transitions of random processes of 5 states and 3 actions, 8 random features per pair, one transition in ten the last
/// of an episode.
const STATES: usize = 5;
const ACTIONS: usize = 3;
const FEATURES: usize = 8;
const LENGTH: usize = 20;
const LAYERS: usize = 10;
const GAMMA: f64 = 0.9;
const END: f64 = 0.1;
const UPDATES: [Update; 3] = [Update::Sarsa, Update::ExpectedSarsa, Update::Boltzmann(5.0)];

/// The largest discrepancies of an update from its algorithm over all prompts, layers and pairs, each divided by the largest value
/// where that exceeds 1.
#[derive(Clone, Debug, Serialize)]
pub struct VerificationRow {
    pub update: String,
    pub trials: u64,
    pub layers: usize,
    /// Two heads on full token matrices.
    pub attention: f64,
    /// The layer on distinct pairs.
    pub pairs: f64,
    /// The paper's Transformer on the chain of pairs, which is SARSA.
    pub transformer: Option<f64>,
}

/// A prompt, values to start from, a policy and step sizes U(0, 1).
struct Prompt {
    context: PairContext,
    initial: Vec<f64>,
    policy: Matrix,
    step_sizes: Vec<f64>,
}

fn prompt(seed: u64, trial: u64) -> Result<Prompt, LabError> {
    let mut stream = Stream::new(seed, Purpose::Prompt, trial);
    let mdp = Mdp::dirichlet(STATES, ACTIONS, GAMMA, &mut stream)?;
    let laws = (0..STATES).flat_map(|_| stream.dirichlet(ACTIONS)).collect();
    let policy = Matrix::from_vec(STATES, ACTIONS, laws);
    let mut transitions = Rollout::new(&mdp, &mut stream)?.sample(&policy, LENGTH, &mut stream)?;
    for t in &mut transitions {
        if stream.uniform() < END {
            *t = PairTransition { next: None, next_action: None, ..*t };
        }
    }
    let pairs = STATES * ACTIONS;
    let features = Matrix::from_fn(pairs, FEATURES, |_, _| stream.uniform_in(-1.0, 1.0));
    let context = PairContext::new(features, ACTIONS, transitions)?;
    let (initial, step_sizes) = (stream.uniform_vec(pairs, -1.0, 1.0), stream.uniform_vec(LAYERS, 0.0, 1.0));
    Ok(Prompt { context, initial, policy, step_sizes })
}

/// The discrepancies of one update on one prompt: attention, pairs, Transformer.
fn compare(update: Update, prompt: &Prompt) -> Result<[Option<f64>; 3], LabError> {
    let Prompt { context, initial, policy, step_sizes } = prompt;
    let (backup, step_sizes) = (update.under(policy), step_sizes.clone());
    let config = ControlConfig { backup, temperature: 1.0, gamma: GAMMA, step_sizes: step_sizes.clone() };
    let control = config.check()?;
    let direct = control.direct(context, initial)?;
    let tokens = control.tokens(context, initial)?;
    let pairs = PairOperator::empirical(&control, context)?.run(initial)?;
    let mut worst = [0.0; 3];
    for (l, q) in direct.iter().enumerate() {
        raise(&mut worst[0], &tokens.values(l), q);
        raise(&mut worst[1], &pairs[l], q);
    }
    if update != Update::Sarsa {
        return Ok([Some(worst[0]), Some(worst[1]), None]);
    }
    // The Transformer's prompts start from 0.
    let chain = context.chain()?;
    let star = TransformerConfig::theta_star(control.attention().clone(), LAYERS, GAMMA);
    let transformer = TransformerConfig { step_sizes, ..star }.check()?;
    let from_zero = control.direct(context, &vec![0.0; initial.len()])?;
    for (z, q) in transformer.tokens(&chain)?.iter().zip(&from_zero) {
        raise(&mut worst[2], &z.values()[chain.num_columns() - q.len()..], q);
    }
    Ok(worst.map(Some))
}

/// Compares all updates on all prompts.
pub fn run(config: &ControlStudyConfig, progress: &Progress) -> Result<Vec<VerificationRow>, LabError> {
    let found = in_parallel(0..config.trials, |trial| {
        let prompt = prompt(config.seed, trial)?;
        let compared = UPDATES.map(|update| compare(update, &prompt));
        progress.step(100)?;
        compared.into_iter().collect::<Result<Vec<_>, _>>()
    })?;
    let row = |(k, update): (usize, &Update)| {
        let worst = |of: usize| found[0][k][of].map(|_| largest(found.iter().filter_map(|f| f[k][of])));
        VerificationRow {
            update: update.name(),
            trials: config.trials,
            layers: LAYERS,
            attention: worst(0).unwrap_or(f64::NAN),
            pairs: worst(1).unwrap_or(f64::NAN),
            transformer: worst(2),
        }
    };
    Ok(UPDATES.iter().enumerate().map(row).collect())
}
