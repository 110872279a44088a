//! Transition matrices, reward processes, and decision processes under a policy.
#![allow(missing_docs)]

use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::task::{Mdp, MdpError, Mrp, MrpError, TransitionError, TransitionKernel};

fn kernel(rows: &[Vec<f64>]) -> Result<TransitionKernel, TransitionError> {
    TransitionKernel::new(Matrix::from_rows(rows).unwrap())
}

#[test]
fn invalid_matrices_are_refused_with_row_and_value() {
    assert_eq!(kernel(&[vec![0.5, 0.5], vec![0.5, 0.4]]), Err(TransitionError::RowSum { row: 1, sum: 0.9 }));
    assert_eq!(
        kernel(&[vec![1.1, -0.1], vec![0.5, 0.5]]),
        Err(TransitionError::NotAProbability { row: 0, col: 0, value: 1.1 })
    );
    let mut nan = Matrix::from_rows(&[vec![0.5, 0.5], vec![0.5, 0.5]]).unwrap();
    nan[(1, 0)] = f64::NAN;
    assert!(matches!(
        TransitionKernel::new(nan),
        Err(TransitionError::NotAProbability { row: 1, col: 0, .. })
    ));
    assert_eq!(kernel(&[vec![1.0, 0.0]]), Err(TransitionError::NotSquare { rows: 1, cols: 2 }));
    assert_eq!(kernel(&[]), Err(TransitionError::NotSquare { rows: 0, cols: 0 }));
}

#[test]
fn chains_that_are_not_ergodic_are_refused() {
    assert_eq!(kernel(&[vec![1.0, 0.0], vec![0.5, 0.5]]), Err(TransitionError::Reducible { from: 0, to: 1 }));
    assert_eq!(kernel(&[vec![0.5, 0.5], vec![0.0, 1.0]]), Err(TransitionError::Reducible { from: 1, to: 0 }));
    let cycle = [vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0], vec![1.0, 0.0, 0.0]];
    assert_eq!(kernel(&cycle), Err(TransitionError::Periodic { period: 3 }));
    assert!(kernel(&[vec![1.0]]).is_ok());
}

/// A two-state chain in closed form: μ = (b, a)/(a + b), eigenvalues 1 and 1 - a - b, and it is
/// reversible, so the reversibilisation has the same spectrum.
#[test]
fn two_states_match_the_closed_form() {
    let (a, b) = (0.3, 1e-7);
    let chain = kernel(&[vec![1.0 - a, a], vec![b, 1.0 - b]]).unwrap();
    let mu = chain.stationary_distribution();
    // A handful of operations, none of them a subtraction.
    assert!((mu[0] / (b / (a + b)) - 1.0).abs() < 1e-15, "small entries keep relative accuracy");
    assert!((mu[1] - a / (a + b)).abs() < 1e-15);
    let spectrum = chain.reversibilisation_spectrum().unwrap();
    // Eigenvalues of well-conditioned 2×2 matrices with entries below 1: some tens of roundings.
    assert!((spectrum[0] - 1.0).abs() < 1e-14 && (spectrum[1] - (1.0 - a - b)).abs() < 1e-14);
    let eigenvalues = chain.eigenvalues().unwrap();
    assert!((eigenvalues[1].re - (1.0 - a - b)).abs() < 1e-14 && eigenvalues[1].im == 0.0);
}

/// The chain of pairs (S_k, S_{k+1}) and the pairs that are its states, those with p(s' | s) > 0: (s, s') moves to
/// (s', s'') with probability p(s'' | s').
fn pair_chain(chain: &TransitionKernel) -> (TransitionKernel, Vec<(usize, usize)>) {
    let (p, m) = (chain.matrix(), chain.num_states());
    let all = (0..m).flat_map(|s| (0..m).map(move |next| (s, next)));
    let pairs: Vec<_> = all.filter(|&edge| p[edge] > 0.0).collect();
    let matrix =
        Matrix::from_fn(
            pairs.len(),
            pairs.len(),
            |i, j| {
                if pairs[i].1 == pairs[j].0 { p[pairs[j]] } else { 0.0 }
            },
        );
    (TransitionKernel::new(matrix).unwrap(), pairs)
}

#[test]
fn pairs_have_stationary_law_mu_times_p() {
    let chain = kernel(&[vec![0.0, 0.5, 0.5], vec![0.2, 0.0, 0.8], vec![1.0, 0.0, 0.0]]).unwrap();
    let mu = chain.stationary_distribution();
    let (pair_chain, pairs) = pair_chain(&chain);
    assert_eq!(pairs.len(), 5);
    // Two ways to λ_r of the pairs; eigenvalues of a well-conditioned problem of size 4.
    let slow = pair_chain.reversibilisation_spectrum().unwrap()[1];
    assert!((chain.pair_lambda_r().unwrap() - slow.max(0.0)).abs() < 1e-12);
    for (law, &(s, next)) in pair_chain.stationary_distribution().iter().zip(&pairs) {
        // Both sides are sums of a handful of products below 1.
        assert!((law - mu[s] * chain.matrix()[(s, next)]).abs() < 1e-15);
    }
}

fn two_states() -> Matrix {
    Matrix::from_rows(&[vec![0.5, 0.5], vec![0.25, 0.75]]).unwrap()
}

#[test]
fn values_solve_the_bellman_equation() {
    let mrp = Mrp::new(two_states(), vec![1.0, -2.0], 0.9, vec![1.0, 0.0]).unwrap();
    let v = mrp.values().unwrap();
    for (left, right) in v.iter().zip(mrp.bellman(&v)) {
        // Values of order 10, condition number (1 + γ)/(1 - γ) = 19.
        assert!((left - right).abs() < 1e-13);
    }
    // γ = 0: the value is the reward.
    let myopic = Mrp::new(two_states(), vec![1.0, -2.0], 0.0, vec![1.0, 0.0]).unwrap();
    assert_eq!(myopic.values().unwrap(), [1.0, -2.0]);
}

#[test]
fn each_broken_part_is_named() {
    let p0 = vec![0.5, 0.5];
    let new = |r: Vec<f64>, gamma, p0: Vec<f64>| Mrp::new(two_states(), r, gamma, p0).unwrap_err();
    assert_eq!(new(vec![1.0], 0.9, p0.clone()), MrpError::Length { what: "rewards", expected: 2, found: 1 });
    assert!(matches!(new(vec![1.0, f64::NAN], 0.9, p0.clone()), MrpError::Reward { state: 1, .. }));
    for gamma in [1.0, -0.1] {
        assert_eq!(new(vec![0.0; 2], gamma, p0.clone()), MrpError::Gamma(gamma));
    }
    assert!(matches!(new(vec![0.0; 2], f64::NAN, p0), MrpError::Gamma(_)));
    assert!(matches!(new(vec![0.0; 2], 0.9, vec![0.5, 0.6]), MrpError::Initial { .. }));
    assert!(matches!(new(vec![0.0; 2], 0.9, vec![1.5, -0.5]), MrpError::Initial { state: 0, .. }));
}

#[test]
fn trajectories_follow_edges() {
    let mrp = Mrp::new(two_states(), vec![1.0, -2.0], 0.9, vec![0.0, 1.0]).unwrap();
    let mut stream = Stream::new(1, Purpose::Trajectory, 0);
    let states = mrp.sample_states(10_000, &mut stream);
    assert_eq!((states.len(), states[0]), (10_001, 1));
    // Stationary law (1/3, 2/3); five standard errors with the chain's correlation time 5/3.
    let share = states.iter().filter(|&&s| s == 0).count() as f64 / 10_001.0;
    assert!((share - 1.0 / 3.0).abs() < 5.0 * (2.0f64 / 9.0 * (5.0 / 3.0) / 1e4).sqrt());
}

fn mdp() -> Mdp {
    Mdp {
        transitions: vec![
            Matrix::from_rows(&[vec![1.0, 0.0], vec![1.0, 0.0]]).unwrap(),
            Matrix::from_rows(&[vec![0.0, 1.0], vec![0.0, 1.0]]).unwrap(),
        ],
        rewards: Matrix::from_rows(&[vec![1.0, 3.0], vec![-1.0, 0.0]]).unwrap(),
        gamma: 0.5,
        initial_distribution: vec![1.0, 0.0],
    }
}

#[test]
fn policy_mixes_actions() {
    let policy = Matrix::from_rows(&[vec![0.25, 0.75], vec![0.5, 0.5]]).unwrap();
    let mrp = mdp().under_policy(&policy).unwrap();
    assert_eq!(mrp.transitions().matrix().row(0), [0.25, 0.75]);
    assert_eq!(mrp.rewards(), [2.5, -0.5]);
}

#[test]
fn bad_policies_and_shapes_are_refused() {
    let policy = Matrix::from_rows(&[vec![0.25, 0.7], vec![0.5, 0.5]]).unwrap();
    assert!(matches!(mdp().under_policy(&policy), Err(MdpError::Policy { state: 0, .. })));
    let wide = Matrix::zeros(2, 3);
    assert!(matches!(mdp().under_policy(&wide), Err(MdpError::Shape { .. })));
    let mut broken = mdp();
    broken.transitions[1][(0, 0)] = 0.5;
    let uniform = Matrix::from_fn(2, 2, |_, _| 0.5);
    let mut negative = mdp();
    negative.transitions[0].row_mut(1).copy_from_slice(&[1.5, -0.5]);
    assert!(matches!(negative.under_policy(&uniform), Err(MdpError::ActionRow { action: 0, state: 1, .. })));
    assert!(matches!(broken.under_policy(&uniform), Err(MdpError::ActionRow { action: 1, state: 0, .. })));
    // A deterministic policy that never leaves state 0 is not ergodic.
    let stay = Matrix::from_rows(&[vec![1.0, 0.0], vec![1.0, 0.0]]).unwrap();
    assert!(matches!(mdp().under_policy(&stay), Err(MdpError::Mrp(MrpError::Transition(_)))));
}
