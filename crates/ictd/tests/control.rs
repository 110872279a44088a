//! Softmax TD on pairs: attention, algorithm and the map on distinct pairs are one; reductions, bounds, refusals.
#![allow(missing_docs)]

mod common;

use common::{attention, gap};
use ictd::control::{
    Backup, ControlConfig, ControlError, PairContext, PairContextError, PairOperator, PairTransition,
    Rollout, SoftmaxControl, boltzmann_value, epsilon_greedy, uniform_policy,
};
use ictd::kernel::KernelName;
use ictd::random::{Purpose, Stream};
use ictd::statistics::largest;
use ictd::task::{Mdp, MdpError};
use ictd::{Context, End, Estimator as _, Matrix, TransformerConfig, WeightedSoftmaxTd};

/// Ten layers of sums of some dozen terms of order 1.
const ROUNDING: f64 = 1e-13;

/// n transitions of a random walk over `states` × `actions` pairs with `d` random features; every seventh one ends an episode.
fn context(seed: u64, (states, actions, d): (usize, usize, usize), n: usize) -> PairContext {
    let mut stream = Stream::new(seed, Purpose::Prompt, 0);
    let features = Matrix::from_fn(states * actions, d, |_, _| stream.uniform_in(-1.0, 1.0));
    let mut draw = |count: usize| stream.below(count as u32) as usize;
    let (mut state, mut action) = (draw(states), draw(actions));
    let mut transitions = Vec::new();
    for k in 0..n {
        let (next, next_action) = (draw(states), draw(actions));
        let is_end = k % 7 == 6;
        transitions.push(PairTransition {
            state,
            action,
            reward: 0.0,
            next: (!is_end).then_some(next),
            next_action: (!is_end).then_some(next_action),
        });
        (state, action) = (next, next_action);
    }
    transitions.iter_mut().for_each(|t| t.reward = stream.uniform_in(-1.0, 1.0));
    PairContext::new(features, actions, transitions).unwrap()
}

fn control(backup: Backup, step_sizes: &[f64]) -> SoftmaxControl {
    ControlConfig { backup, temperature: 0.5, gamma: 0.9, step_sizes: step_sizes.to_vec() }.check().unwrap()
}

fn random_policy(seed: u64, states: usize, actions: usize) -> Matrix {
    let mut stream = Stream::new(seed, Purpose::Init, 0);
    Matrix::from_vec(states, actions, (0..states).flat_map(|_| stream.dirichlet(actions)).collect())
}

/// The policy that takes, in every state, the action that followed there; contexts made for it are consistent.
fn deterministic(states: usize, actions: usize) -> Matrix {
    Matrix::from_fn(states, actions, |s, a| f64::from(u8::from(s % actions == a)))
}

fn backups(seed: u64, states: usize, actions: usize) -> [Backup; 4] {
    let mut partial = random_policy(seed + 1, states, actions);
    // An action that is never taken in state 0.
    let moved = partial[(0, 0)];
    partial[(0, 0)] = 0.0;
    partial[(0, 1)] += moved;
    let expected = Backup::ExpectedSarsa(random_policy(seed, states, actions));
    [Backup::Sarsa, expected, Backup::ExpectedSarsa(partial), Backup::Boltzmann(3.0)]
}

#[test]
fn attention_algorithm_and_operator_are_one() {
    for seed in 0..20 {
        let (states, actions) = (4, 3);
        let context = context(seed, (states, actions, 5), 20);
        let mut stream = Stream::new(seed, Purpose::Init, 7);
        let step_sizes = stream.uniform_vec(10, 0.0, 1.0);
        for initial in [vec![0.0; 12], stream.uniform_vec(12, -1.0, 1.0)] {
            for backup in backups(seed, states, actions) {
                let control = control(backup, &step_sizes);
                let direct = control.direct(&context, &initial).unwrap();
                let tokens = control.tokens(&context, &initial).unwrap();
                let attended: Vec<Vec<f64>> = (0..=10).map(|l| tokens.values(l)).collect();
                assert!(gap(&attended, &direct) < ROUNDING, "{}", gap(&attended, &direct));
                let fast = PairOperator::empirical(&control, &context).unwrap().run(&initial).unwrap();
                assert!(gap(&fast, &direct) < ROUNDING, "{}", gap(&fast, &direct));
            }
        }
    }
}

/// What the proof says of every entry of Z: inputs stay, the current memory is Q of the column's pair, the target memory γ·B at sources
/// and 0 elsewhere.
#[test]
fn every_row_holds_what_the_proof_says() {
    let context = context(3, (4, 3, 5), 20);
    for backup in backups(3, 4, 3) {
        let control = control(backup.clone(), &[0.7; 5]);
        let (direct, tokens) =
            (control.direct(&context, &[0.0; 12]).unwrap(), control.tokens(&context, &[0.0; 12]).unwrap());
        let prompt = tokens.prompt();
        assert_eq!(tokens.num_layers(), 5);
        for (l, q) in direct.iter().enumerate() {
            let z = tokens.matrix(l);
            assert!((0..prompt.target_row()).all(|i| z.row(i) == prompt.tokens().row(i)));
            for j in 0..prompt.num_columns() {
                assert!((z[(prompt.value_row(), j)] - q[prompt.pair_of(j)]).abs() < ROUNDING);
                let expected = match context.transitions().get(j).and_then(|t| t.next.map(|next| (t, next))) {
                    None => 0.0,
                    Some((t, next)) => {
                        let values = &q[3 * next..3 * next + 3];
                        0.9 * match &backup {
                            Backup::Sarsa => values[t.next_action.unwrap()],
                            Backup::ExpectedSarsa(p) => {
                                values.iter().zip(p.row(next)).map(|(q, p)| p * q).sum()
                            }
                            Backup::Boltzmann(beta) => boltzmann_value(*beta, values),
                            _ => unreachable!(),
                        }
                    }
                };
                assert!((z[(prompt.target_row(), j)] - expected).abs() < ROUNDING);
            }
        }
    }
}

/// SARSA is Theorem 1 on the chain of pairs: the paper's Transformer, both blocks and both paths, given pairs for states.
#[test]
fn sarsa_is_the_transformer_on_pairs() {
    for seed in 0..10 {
        let context = context(seed, (4, 3, 5), 30);
        let step_sizes = vec![0.6; 10];
        let direct = control(Backup::Sarsa, &step_sizes).direct(&context, &[0.0; 12]).unwrap();
        let chain = context.chain().unwrap();
        // Episodes end where one does, and nowhere else: 4 of 30 transitions, and the last is cut off.
        assert_eq!((chain.episodes().count(), chain.num_queries()), (5, 12));
        for block in ictd::Block::ALL {
            let star = TransformerConfig::theta_star(attention(KernelName::Softmax, 0.5, 0.0), 10, 0.9);
            let transformer =
                TransformerConfig { block, step_sizes: step_sizes.clone(), ..star }.check().unwrap();
            let tokens = transformer.tokens(&chain).unwrap();
            let values = transformer.values(&chain).unwrap();
            let first = chain.num_columns() - 12;
            for (l, q) in direct.iter().enumerate() {
                for (pair, q) in q.iter().enumerate() {
                    assert!((tokens[l].values()[first + pair] - q).abs() < ROUNDING);
                    assert!((values.value(l, first + pair) - q).abs() < ROUNDING);
                }
            }
        }
    }
}

#[test]
fn without_a_temperature_of_its_own_boltzmann_is_the_uniform_policy() {
    let context = context(5, (4, 3, 5), 40);
    let run = |backup| control(backup, &[0.8; 20]).direct(&context, &[0.0; 12]).unwrap();
    let (zero, uniform) = (run(Backup::Boltzmann(0.0)), run(Backup::ExpectedSarsa(uniform_policy(4, 3))));
    assert!(gap(&zero, &uniform) < ROUNDING);
    // To first order in β: |B_β - mean| ≤ β·range²/4.
    assert!(gap(&run(Backup::Boltzmann(1e-9)), &uniform) < 1e-8);
}

#[test]
fn a_deterministic_policy_is_sarsa_on_its_actions() {
    let (states, actions) = (4, 3);
    let base = context(6, (states, actions, 5), 40);
    let mut transitions = base.transitions().to_vec();
    transitions.iter_mut().for_each(|t| t.next_action = t.next.map(|next| next % actions));
    let context = PairContext::new(base.features().clone(), actions, transitions).unwrap();
    let run = |backup| control(backup, &[0.8; 20]).direct(&context, &[0.0; 12]).unwrap();
    let expected = run(Backup::ExpectedSarsa(deterministic(states, actions)));
    assert!(gap(&run(Backup::Sarsa), &expected) < ROUNDING);
}

#[test]
fn one_action_is_weighted_softmax_td() {
    let pairs = context(7, (6, 1, 4), 40);
    let mut builder = Context::builder();
    let row = |s: usize| pairs.features().row(s);
    for t in pairs.transitions() {
        let end = if t.next.is_some() { End::Truncated } else { End::Terminated };
        builder = builder.episode(&[row(t.state), row(t.next.unwrap_or(0))], &[t.reward], end);
    }
    let states = (0..6).fold(builder, |b, s| b.query(row(s))).build().unwrap();
    let td = WeightedSoftmaxTd {
        attention: attention(KernelName::Softmax, 0.5, 0.0),
        gamma: 0.9,
        step_sizes: vec![0.8; 20],
    };
    let evaluated: Vec<Vec<f64>> =
        td.run(&states).unwrap().into_iter().map(|v| v[states.num_columns() - 6..].to_vec()).collect();
    for backup in [Backup::Sarsa, Backup::ExpectedSarsa(uniform_policy(6, 1)), Backup::Boltzmann(5.0)] {
        let found = control(backup, &[0.8; 20]).direct(&pairs, &[0.0; 6]).unwrap();
        assert!(gap(&found, &evaluated) < ROUNDING);
    }
}

/// A finite β is as far from Q-learning as log|A|/β says in every layer, and exactly there when one action is ahead by far.
#[test]
fn large_beta_tends_to_the_maximum() {
    let q = [0.3, -0.2, 0.9, 0.1];
    for beta in [0.5, 1.0, 4.0, 20.0, 300.0] {
        let below = 0.9 - boltzmann_value(beta, &q);
        assert!((0.0..=4f64.ln() / beta).contains(&below), "{beta}: {below}");
    }
    assert!((boltzmann_value(1e6, &q) - 0.9).abs() < 1e-15);
    assert!((boltzmann_value(1e300, &[1.0, 1.0, -1e300]) - 1.0).abs() < 1e-15);
}

#[test]
fn exact_expectations_find_the_values_of_a_policy_and_the_optimum() {
    let mdp = Mdp::dirichlet(5, 3, 0.6, &mut Stream::new(1, Purpose::Task, 0)).unwrap();
    let features = Matrix::identity(15).map(|x| 30f64.sqrt() * x);
    let run = |backup| {
        let config = ControlConfig { backup, temperature: 1.0, gamma: 0.6, step_sizes: vec![1.0; 120] };
        let operator = PairOperator::expected(&config.check().unwrap(), &mdp, &features).unwrap();
        operator.run(&[0.0; 15]).unwrap().pop().unwrap()
    };
    let policy = random_policy(2, 5, 3);
    let (q, v) = (run(Backup::ExpectedSarsa(policy.clone())), mdp.policy_values(&policy).unwrap());
    for (s, v) in v.iter().enumerate() {
        let mean: f64 = policy.row(s).iter().zip(&q[3 * s..]).map(|(p, q)| p * q).sum();
        // 0.6^120 is 2e-27; what is left is rounding.
        assert!((mean - v).abs() < 1e-13);
    }
    let optimal = mdp.optimal_action_values().unwrap();
    let off = |q: &[f64]| largest(q.iter().zip(optimal.as_slice()).map(|(a, b)| (a - b).abs()));
    for beta in [1.0, 10.0, 100.0] {
        let bound = 0.6 * 3f64.ln() / (beta * 0.4);
        let off = off(&run(Backup::Boltzmann(beta)));
        assert!(off > 0.0 && off <= bound, "{beta}: {off} {bound}");
    }
    assert!(off(&run(Backup::Boltzmann(1e6))) < 1e-12);
}

#[test]
fn policies_and_walks_are_what_they_say() {
    let policy = epsilon_greedy(&[0.0, 0.0, 1.0, -1.0, 2.0, 1.0], 3, 0.3).unwrap();
    let close = |a: &[f64], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-15);
    assert!(close(policy.row(0), [0.1, 0.1, 0.8]) && close(policy.row(1), [0.1, 0.8, 0.1]));
    let tied = epsilon_greedy(&[2.0, 2.0, 1.0], 3, 0.0).unwrap();
    assert!(close(tied.row(0), [0.5, 0.5, 0.0]));
    assert_eq!(
        epsilon_greedy(&[1.0], 1, f64::NAN).unwrap_err().to_string(),
        "epsilon is NaN, expected 0 <= epsilon <= 1"
    );
    let mut stream = Stream::new(4, Purpose::Trajectory, 0);
    let mdp = Mdp::dirichlet(3, 2, 0.5, &mut Stream::new(4, Purpose::Task, 0)).unwrap();
    let mut walk = Rollout::new(&mdp, &mut stream).unwrap();
    let policy = random_policy(4, 3, 2);
    let steps = walk.sample(&policy, 60_000, &mut stream).unwrap();
    assert!(steps.windows(2).all(|w| w[0].next == Some(w[1].state) && w[0].next_action == Some(w[1].action)));
    // 60,000 steps: shares of some 20,000 visits have a standard error of at most 0.0036; five of them.
    for s in 0..3 {
        let left: Vec<_> = steps.iter().filter(|t| t.state == s && t.action == 0).collect();
        let visits = steps.iter().filter(|t| t.state == s).count() as f64;
        assert!((left.len() as f64 / visits - policy[(s, 0)]).abs() < 0.018);
        for next in 0..3 {
            let share = left.iter().filter(|t| t.next == Some(next)).count() as f64 / left.len() as f64;
            let se = 5.0 * (0.25 / left.len() as f64).sqrt();
            assert!((share - mdp.transitions[0][(s, next)]).abs() < se);
        }
        assert!(left.iter().all(|t| t.reward == mdp.rewards[(s, 0)]));
    }
}

/// Flat Dirichlet draws of three: E p = 1/3, E p² = 1/6.
#[test]
fn dirichlet_draws_have_their_moments() {
    let mut stream = Stream::new(9, Purpose::Task, 0);
    let draws: Vec<Vec<f64>> = (0..40_000).map(|_| stream.dirichlet(3)).collect();
    for k in 0..3 {
        let mean = |f: fn(f64) -> f64| draws.iter().map(|p| f(p[k])).sum::<f64>() / 40_000.0;
        // Standard deviations 0.236 and 0.2, over √40,000, times five.
        assert!((mean(|p| p) - 1.0 / 3.0).abs() < 0.006 && (mean(|p| p * p) - 1.0 / 6.0).abs() < 0.005);
    }
}

#[test]
fn bad_parts_are_refused() {
    let step = PairTransition { state: 0, action: 1, reward: 0.5, next: Some(1), next_action: Some(0) };
    let new = |rows: usize, step: PairTransition| PairContext::new(Matrix::identity(rows), 2, vec![step]);
    let refused = |change: fn(&mut PairTransition)| {
        let mut step = step;
        change(&mut step);
        new(4, step).unwrap_err().to_string()
    };
    assert_eq!(refused(|t| t.state = 2), "transition 0: state is 2, expected 0 to 1");
    assert_eq!(refused(|t| t.action = 5), "transition 0: action is 5, expected 0 to 1");
    assert_eq!(refused(|t| t.next = Some(3)), "transition 0: next state is 3, expected 0 to 1");
    assert_eq!(refused(|t| t.next_action = Some(3)), "transition 0: next action is 3, expected 0 to 1");
    assert_eq!(
        refused(|t| t.next = None),
        "transition 0: next action is 0, expected none: the episode ends there"
    );
    assert_eq!(refused(|t| t.reward = f64::NAN), "transition 0: reward is NaN, expected a finite number");
    assert!(matches!(new(3, step), Err(PairContextError::Features { rows: 3, cols: 3, actions: 2 })));
    let context = PairContext::new(Matrix::identity(4), 2, Vec::new());
    assert_eq!(context, Err(PairContextError::Empty));
    let infinite = Matrix::from_fn(4, 1, |i, _| if i == 3 { f64::INFINITY } else { 0.0 });
    let error = PairContext::new(infinite, 2, vec![step]).unwrap_err().to_string();
    assert_eq!(error, "features: entry 0 of state 1, action 1 is inf, expected a finite number");

    let good = ControlConfig { backup: Backup::Sarsa, temperature: 1.0, gamma: 0.5, step_sizes: vec![1.0] };
    let refused = |change: fn(&mut ControlConfig)| {
        let mut config = good.clone();
        change(&mut config);
        config.check().unwrap_err()
    };
    assert!(matches!(refused(|c| c.gamma = 1.0), ControlError::Gamma(_)));
    assert!(matches!(refused(|c| c.backup = Backup::Boltzmann(f64::NAN)), ControlError::Beta(_)));
    assert!(matches!(refused(|c| c.backup = Backup::Boltzmann(-1.0)), ControlError::Beta(_)));
    assert!(matches!(refused(|c| c.temperature = 0.0), ControlError::Temperature(_)));
    assert!(matches!(
        refused(|c| c.step_sizes = vec![1.0, f64::NAN]),
        ControlError::StepSize { layer: 1, .. }
    ));

    let context = new(4, PairTransition { next_action: None, ..step }).unwrap();
    let sarsa = good.clone().check().unwrap();
    let missing = ControlError::Context(PairContextError::NoNextAction { transition: 0 });
    assert_eq!(sarsa.direct(&context, &[0.0; 4]), Err(missing.clone()));
    assert_eq!(sarsa.tokens(&context, &[0.0; 4]), Err(missing.clone()));
    assert_eq!(PairOperator::empirical(&sarsa, &context).unwrap_err(), missing);
    let short = sarsa.direct(&context, &[0.0; 3]).unwrap_err().to_string();
    assert_eq!(short, "initial values: 3 given, expected one for each of the 4 pairs");
    let nan = sarsa.direct(&context, &[0.0, f64::NAN, 0.0, 0.0]).unwrap_err();
    assert!(matches!(nan, ControlError::InitialValue { pair: 1, .. }));
    let wide = ControlConfig { backup: Backup::ExpectedSarsa(uniform_policy(2, 3)), ..good.clone() };
    let wide = wide.check().unwrap();
    assert!(matches!(wide.direct(&context, &[0.0; 4]), Err(ControlError::Mdp(MdpError::Shape { .. }))));
    let diverging =
        ControlConfig { step_sizes: vec![1e200; 4], backup: Backup::Boltzmann(1.0), ..good.clone() };
    let diverging = diverging.check().unwrap();
    for found in [
        diverging.direct(&context, &[2.0; 4]).unwrap_err(),
        diverging.tokens(&context, &[2.0; 4]).unwrap_err(),
        PairOperator::empirical(&diverging, &context).unwrap().run(&[2.0; 4]).unwrap_err(),
    ] {
        let late = matches!(found, ControlError::Diverged { layer: 2 } | ControlError::Attention(_));
        assert!(late, "{found}");
    }

    let mdp = Mdp::dirichlet(2, 2, 0.5, &mut Stream::new(0, Purpose::Task, 0)).unwrap();
    assert_eq!(
        PairOperator::expected(&sarsa, &mdp, &Matrix::identity(4)).unwrap_err(),
        ControlError::NoActions
    );
    let boltzmann = ControlConfig { backup: Backup::Boltzmann(1.0), ..good }.check().unwrap();
    let rows = PairOperator::expected(&boltzmann, &mdp, &Matrix::identity(3)).unwrap_err();
    assert_eq!(rows, ControlError::FeatureRows { found: 3, expected: 4 });
    let operator = PairOperator::expected(&boltzmann, &mdp, &Matrix::identity(4)).unwrap();
    assert_eq!(operator.states().unwrap_err(), ControlError::NotLinear);
    let empty = Mdp::dirichlet(0, 2, 0.5, &mut Stream::new(0, Purpose::Task, 0));
    assert!(matches!(empty, Err(MdpError::Empty { states: 0, actions: 2 })));
}
