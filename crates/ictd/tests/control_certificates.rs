//! What is certified about softmax TD on pairs, against what layers do.
#![allow(missing_docs)]

use ictd::control::{
    Backup, BoltzmannCertificate, ControlConfig, ControlError, PairContext, PairOperator, Rollout,
    boltzmann_lipschitz, boltzmann_lipschitz_within, boltzmann_value, boltzmann_weights, uniform_policy,
};
use ictd::random::{Purpose, Stream};
use ictd::statistics::largest;
use ictd::task::Mdp;
use ictd::theory::Status;
use ictd::{CertificateConfig, Matrix};

/// ‖∇B‖₁ = Σ_b p_b·|1 + β(q_b - B)|.
fn slope(beta: f64, q: &[f64]) -> f64 {
    let value = boltzmann_value(beta, q);
    boltzmann_weights(beta, q).iter().zip(q).map(|(p, q)| p * (1.0 + beta * (q - value)).abs()).sum()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    largest(a.iter().zip(b).map(|(a, b)| (a - b).abs()))
}

/// The gradient as it is written in the docs is that of the value, by central differences.
#[test]
fn the_gradient_is_the_derivative() {
    let (q, h) = ([0.4, -0.3, 0.8, 0.1], 1e-6);
    for beta in [0.5, 3.0, 12.0] {
        let value = boltzmann_value(beta, &q);
        for (b, p) in boltzmann_weights(beta, &q).iter().enumerate() {
            let moved = |by: f64| {
                let mut q = q;
                q[b] += by;
                boltzmann_value(beta, &q)
            };
            let difference = (moved(h) - moved(-h)) / (2.0 * h);
            // h² times third derivatives of order β³, and rounding 1e-16 / h.
            assert!((difference - p * (1.0 + beta * (q[b] - value))).abs() < 1e-8 + 1e-11 * beta.powi(3));
        }
    }
}

/// Λ bounds the gradient of random values, is met by those with all actions but one equally far behind, and is a bound on difference
/// quotients.
#[test]
fn the_lipschitz_constant_is_a_bound_that_is_met() {
    let mut stream = Stream::new(1, Purpose::Prompt, 0);
    for actions in [1, 2, 3, 4, 10, 100] {
        let constant = boltzmann_lipschitz(actions);
        for _ in 0..2000 {
            let beta = stream.exponential() * 10.0;
            let scale = stream.exponential() * 2.0;
            let q = stream.uniform_vec(actions, -scale, scale);
            let range = q.iter().fold(f64::NEG_INFINITY, |m, x| m.max(*x))
                - q.iter().fold(f64::INFINITY, |m, x| m.min(*x));
            let (found, within) = (slope(beta, &q), boltzmann_lipschitz_within(actions, beta, range));
            assert!(found <= within * (1.0 + 1e-13) && within <= constant, "{actions}: {found} {within}");
            let other: Vec<f64> = q.iter().map(|q| q + 0.3 * stream.uniform_in(-1.0, 1.0)).collect();
            let moved = (boltzmann_value(beta, &q) - boltzmann_value(beta, &other)).abs();
            assert!(moved <= constant * distance(&q, &other) * (1.0 + 1e-12));
        }
        if actions > 1 {
            // All others 2Λ/β behind.
            let mut q = vec![-2.0 * constant / 3.0; actions];
            q[0] = 0.0;
            assert!((slope(3.0, &q) - constant).abs() < 1e-10, "{actions}: {} {constant}", slope(3.0, &q));
        }
    }
    // Λ·tanh Λ = 1 for two actions.
    let two = boltzmann_lipschitz(2);
    assert!((two * two.tanh() - 1.0).abs() < 1e-12 && two > 1.1996 && two < 1.1998);
    assert!(boltzmann_lipschitz(4) > 1.42 && boltzmann_lipschitz(4) < 1.43);
    assert_eq!(boltzmann_lipschitz_within(4, 2.0, 0.5), 1.0);
    assert_eq!(boltzmann_lipschitz_within(4, 1.0, f64::NAN), boltzmann_lipschitz(4));
}

/// Random processes and batches over scales and discounts: certified rates bound what a layer does to differences, iterates stay within the
/// bound, and the limit is as near to the optimum as the bound says. Both verdicts occur.
#[test]
fn certified_rates_bound_what_layers_do() {
    let (mut certified, mut not) = (0, 0);
    for case in 0..120u64 {
        let mut stream = Stream::new(case, Purpose::Task, 1);
        let gamma = [0.3, 0.5, 0.7, 0.9][case as usize % 4];
        let scale = [1.0, 5.0, 8.0, 20.0][case as usize / 4 % 4];
        let beta = [0.1, 1.0, 10.0, 100.0][case as usize / 16 % 4];
        let step_size = [0.5, 1.0][case as usize % 2];
        let mdp = Mdp::dirichlet(4, 3, gamma, &mut stream).unwrap();
        let features = Matrix::identity(12).map(|x| f64::sqrt(scale) * x);
        let config = ControlConfig {
            backup: Backup::Boltzmann(beta),
            temperature: 1.0,
            gamma,
            step_sizes: vec![step_size; 400],
        };
        let control = config.check().unwrap();
        let operator = if case % 3 == 0 {
            let mut walk = Rollout::new(&mdp, &mut stream).unwrap();
            let steps = walk.sample(&uniform_policy(4, 3), 400, &mut stream).unwrap();
            PairOperator::empirical(&control, &PairContext::new(features, 3, steps).unwrap()).unwrap()
        } else {
            PairOperator::expected(&control, &mdp, &features).unwrap()
        };
        let found = BoltzmannCertificate::of(&operator, step_size).unwrap();
        assert_eq!(found.certified, found.rate.is_some_and(|rate| rate < 1.0));
        if !found.certified {
            assert!(found.gap_bound.is_none() && found.reasons[0].starts_with("not certified"));
            not += 1;
            continue;
        }
        certified += 1;
        let (rate, bound) = (found.rate.unwrap(), found.value_bound.unwrap());
        for _ in 0..20 {
            let [a, b] = [0, 1].map(|_| stream.uniform_vec(12, -bound, bound));
            let after = distance(&operator.apply(step_size, &a), &operator.apply(step_size, &b));
            assert!(after <= rate * distance(&a, &b) * (1.0 + 1e-12));
        }
        let history = operator.run(&[0.0; 12]).unwrap();
        for pair in history.windows(3) {
            let (before, after) = (distance(&pair[0], &pair[1]), distance(&pair[1], &pair[2]));
            // Differences of values below 10 are rounded to 1e-15.
            assert!(after <= rate * before + 1e-14, "{after} {rate} {before}");
            assert!(largest(pair[2].iter().map(|q| q.abs())) <= bound);
        }
        if case % 3 != 0 {
            let optimal = mdp.optimal_action_values().unwrap();
            let left = 2.0 * bound * rate.powi(400);
            let gap = distance(&history[400], optimal.as_slice());
            assert!(gap <= found.gap_bound.unwrap() + left + 1e-13);
        }
    }
    assert!(certified > 20 && not > 20, "{certified} {not}");
}

/// Assumption 5.1 with γΛ in the place of γ is what is asked at step size 1: self weights above (1 + γΛ)/2.
#[test]
fn certification_is_diagonal_dominance_with_a_larger_discount() {
    let mdp = Mdp::dirichlet(3, 4, 0.5, &mut Stream::new(2, Purpose::Task, 0)).unwrap();
    let needed = 0.5 * (1.0 + 0.5 * boltzmann_lipschitz(4));
    for scale in [1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0] {
        // Uniform visits of 12 one-hot pairs: M(s, s) = e^scale / (e^scale + 11).
        let own = f64::exp(scale) / (f64::exp(scale) + 11.0);
        let features = Matrix::identity(12).map(|x| f64::sqrt(scale) * x);
        let config = ControlConfig {
            backup: Backup::Boltzmann(1e3),
            temperature: 1.0,
            gamma: 0.5,
            step_sizes: vec![],
        };
        let operator = PairOperator::expected(&config.check().unwrap(), &mdp, &features).unwrap();
        let found = BoltzmannCertificate::of(&operator, 1.0).unwrap();
        assert_eq!(found.certified, own > needed, "scale {scale}: {own} {needed}");
    }
}

/// SARSA and Expected SARSA have the certificates of policy evaluation, with pairs as states: certified errors bound real ones.
#[test]
fn linear_backups_have_the_certificates_of_evaluation() {
    let mdp = Mdp::dirichlet(4, 3, 0.6, &mut Stream::new(3, Purpose::Task, 0)).unwrap();
    let mut stream = Stream::new(3, Purpose::Trajectory, 0);
    let steps =
        Rollout::new(&mdp, &mut stream).unwrap().sample(&uniform_policy(4, 3), 300, &mut stream).unwrap();
    let features = Matrix::identity(12).map(|x| 12f64.sqrt() * x);
    let context = PairContext::new(features, 3, steps).unwrap();
    for backup in [Backup::Sarsa, Backup::ExpectedSarsa(uniform_policy(4, 3))] {
        let config = ControlConfig { backup, temperature: 1.0, gamma: 0.6, step_sizes: vec![1.0; 15] };
        let operator = PairOperator::empirical(&config.check().unwrap(), &context).unwrap();
        let states = operator.states().unwrap();
        let certificate = CertificateConfig::default().certify(states).unwrap();
        assert_eq!(certificate.status, Status::Certified);
        let fixed_point = certificate.fixed_point.unwrap();
        let (values, limit) =
            (operator.run(&[0.0; 12]).unwrap().pop().unwrap(), states.infinite_depth().unwrap());
        let limit_of = |pair: usize| limit[(0..12).find(|&state| operator.pair_of(state) == pair).unwrap()];
        let error = largest((0..12).map(|pair| (values[pair] - limit_of(pair)).abs()));
        assert!(error <= fixed_point.error_bound.unwrap() && error > 1e-6, "{error}");
        assert!((error - fixed_point.error).abs() < 1e-13);
        let refused = BoltzmannCertificate::of(&operator, 1.0).unwrap_err();
        assert!(matches!(refused, ControlError::NotBoltzmann(_)));
    }
}

#[test]
fn a_pair_that_was_never_left_is_not_certified() {
    let step = |state, action, next| ictd::control::PairTransition {
        state,
        action,
        reward: 1.0,
        next: Some(next),
        next_action: None,
    };
    let context =
        PairContext::new(Matrix::identity(4).map(|x| 9.0 * x), 2, vec![step(0, 0, 1), step(1, 1, 0)]);
    let config =
        ControlConfig { backup: Backup::Boltzmann(1.0), temperature: 1.0, gamma: 0.5, step_sizes: vec![] };
    let operator = PairOperator::empirical(&config.check().unwrap(), &context.unwrap()).unwrap();
    let found = BoltzmannCertificate::of(&operator, 1.0).unwrap();
    assert!(!found.certified && found.reasons.iter().any(|r| r == "2 pairs were reached but never left"));
    assert!(BoltzmannCertificate::of(&operator, f64::NAN).is_err());
}
