//! Properties of attention weights on any finite input.
#![allow(missing_docs)]

mod common;

use common::attention;
use ictd::context::{Context, End, Role};
use ictd::kernel::{KernelError, KernelName, KernelWeights, Normalization, Temperature};
use ictd::matrix::Matrix;
use ictd::prompt::TokenMatrix;
use ictd::transformer::AttentionParams;
use proptest::prelude::*;

fn weights(kernel: KernelName, tau: f64, rho: f64, context: &Context) -> Matrix {
    let theta = AttentionParams::theta_star(context.feature_dim());
    let prompt = TokenMatrix::prompt(context);
    let weights =
        KernelWeights::new(&attention(kernel, tau, rho), theta.score_matrix(), &prompt, context.roles());
    weights.unwrap().matrix().clone()
}

fn context(features: &[Vec<f64>]) -> Context {
    Context::builder().episode(features, &vec![0.0; features.len() - 1], End::Truncated).build().unwrap()
}

/// Features up to ±100 in one dimension: scores up to ±1e4.
fn features() -> impl Strategy<Value = Vec<Vec<f64>>> {
    (1usize..4, 2usize..12).prop_flat_map(|(d, columns)| {
        let entry = prop_oneof![-1.0f64..1.0, -100.0f64..100.0, Just(0.0), Just(100.0), Just(-100.0)];
        prop::collection::vec(prop::collection::vec(entry, d), columns)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Columns sum to 1 (relu and tabular: or to 0), weights are no NaN and not negative, and rows of
    /// columns that are not sources are 0.
    #[test]
    fn columns_of_normalised_kernels_sum_to_one(x in features(), tau in 0.01f64..100.0, rho in 0.0f64..1.0) {
        let context = context(&x);
        let last = x.len() - 1;
        for kernel in [KernelName::Softmax, KernelName::Relu, KernelName::Elu1, KernelName::Rbf, KernelName::Tabular] {
            let k = weights(kernel, tau, 0.0, &context);
            let mixed = weights(kernel, tau, rho, &context);
            for j in 0..=last {
                let sum: f64 = (0..=last).map(|i| k[(i, j)]).sum();
                let may_vanish = matches!(kernel, KernelName::Relu | KernelName::Tabular);
                // At most 11 positive numbers: 11 roundings of their sum.
                prop_assert!((sum - 1.0).abs() < 1e-14 || (may_vanish && sum == 0.0), "{kernel} {j}: {sum}");
                prop_assert!((0..=last).all(|i| k[(i, j)] >= 0.0));
                prop_assert_eq!(k[(last, j)], 0.0);
                for i in 0..last {
                    let expected = (1.0 - rho) * k[(i, j)] + if i == j { rho } else { 0.0 };
                    // The same weights, divided and mixed in another order: a few roundings of numbers below 1.
                    prop_assert!((mixed[(i, j)] - expected).abs() < 1e-14);
                }
            }
        }
    }

    /// The definitions written out, where they do not overflow.
    #[test]
    fn weights_are_the_formulas(x in prop::collection::vec(prop::collection::vec(-2.0f64..2.0, 2), 2..9), tau in 0.2f64..3.0) {
        let context = context(&x);
        let n = x.len() - 1;
        let dot = |i: usize, j: usize| -> f64 { x[i].iter().zip(&x[j]).map(|(a, b)| a * b).sum() };
        let formula = |kernel: KernelName, i: usize, j: usize| -> f64 {
            let s = dot(i, j) / tau;
            match kernel {
                KernelName::Softmax => s.exp(),
                KernelName::Relu => s.max(0.0),
                KernelName::Elu1 => if s > 0.0 { s + 1.0 } else { s.exp() },
                KernelName::Rbf => {
                    let d2: f64 = x[i].iter().zip(&x[j]).map(|(a, b)| (a - b).powi(2)).sum();
                    (-d2 / (2.0 * tau)).exp()
                }
                KernelName::Linear => s,
                KernelName::Tabular => f64::from(u8::from(x[i] == x[j])),
                other => panic!("no formula for {other}"),
            }
        };
        for kernel in KernelName::ALL {
            let k = weights(kernel, tau, 0.0, &context);
            for j in 0..=n {
                let sum: f64 = (0..n).map(|i| formula(kernel, i, j)).sum();
                let divisor = if kernel == KernelName::Linear { n as f64 } else { sum };
                for i in 0..n {
                    let expected = if divisor == 0.0 { 0.0 } else { formula(kernel, i, j) / divisor };
                    // Scores up to 40: their rounding moves an exponential by 40 units.
                    prop_assert!((k[(i, j)] - expected).abs() <= 1e-13 * (1.0 + expected.abs()), "{kernel} ({i}, {j})");
                }
            }
        }
    }
}

#[test]
fn terminal_columns_attend_to_nothing() {
    let x = [[1.0], [2.0], [3.0]];
    let context = Context::builder().episode(&x, &[1.0, 1.0], End::Terminated).query(&[1.0]).build().unwrap();
    assert_eq!(context.roles()[2], Role::Terminal);
    for kernel in KernelName::ALL {
        let k = weights(kernel, 1.0, 0.2, &context);
        assert!((0..4).all(|i| k[(i, 2)] == 0.0));
    }
}

#[test]
fn all_negative_scores_do_not_vanish_under_elu1() {
    // Scores -1e4 and -2e4: exp underflows, yet the weights are those of softmax.
    let x = [vec![100.0], vec![200.0], vec![-100.0]];
    let k = weights(KernelName::Elu1, 1.0, 0.0, &context(&x));
    assert_eq!((k[(0, 2)], k[(1, 2)]), (1.0, 0.0));
}

#[test]
fn relu_without_a_positive_score_is_zero_not_nan() {
    let x = [vec![1.0], vec![2.0], vec![-1.0]];
    let k = weights(KernelName::Relu, 1.0, 0.0, &context(&x));
    assert_eq!((k[(0, 2)], k[(1, 2)]), (0.0, 0.0));
}

/// Slopes are those of normalised weights: a column's weights move with a similarity as central differences say. Step
/// 1e-6 on similarities of order 1, away from kinks: truncation 1e-12, rounding 1e-10.
#[test]
fn slopes_are_finite_differences_of_weights() {
    let similarities = [0.7, -0.4, 1.3, 0.2, -1.1];
    for name in KernelName::ALL {
        let kernel = name.at(0.8).unwrap();
        let weights = |similarities: &[f64]| {
            let mut column = similarities.to_vec();
            kernel.weigh(&mut column);
            let divisor = match kernel.normalization() {
                Normalization::ByColumn => column.iter().sum(),
                Normalization::ByCount => column.len() as f64,
            };
            (column.iter().map(|w| w / divisor).collect::<Vec<f64>>(), column, divisor)
        };
        let (shares, unnormalised, divisor) = weights(&similarities);
        for k in 0..similarities.len() {
            let Some(slope) = kernel.slope(similarities[k], unnormalised[k]) else {
                assert_eq!(name, KernelName::Tabular);
                continue;
            };
            let moved = |by: f64| {
                let mut moved = similarities;
                moved[k] += by;
                weights(&moved).0
            };
            let (up, down) = (moved(1e-6), moved(-1e-6));
            for i in 0..similarities.len() {
                // (w_i / Σ)' = (w_i' - share_i·Σ') / Σ; a count does not move.
                let total = if kernel.normalization() == Normalization::ByColumn { slope } else { 0.0 };
                let own = if i == k { slope } else { 0.0 };
                let expected = (own - shares[i] * total) / divisor;
                assert!(((up[i] - down[i]) / 2e-6 - expected).abs() < 1e-9, "{name} {i} {k}");
            }
        }
    }
}

#[test]
fn names_round_trip_and_unknown_ones_are_refused() {
    for name in KernelName::ALL {
        assert_eq!(name.as_str().parse(), Ok(name));
    }
    assert_eq!("gauss".parse::<KernelName>(), Err(KernelError::Unknown("gauss".into())));
}

#[test]
fn temperature_must_be_positive_and_finite() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-310] {
        for name in KernelName::ALL {
            assert!(matches!(name.at(bad), Err(KernelError::Temperature(_))), "{name} {bad}");
        }
        assert!(Temperature::new(bad).is_err(), "{bad}");
    }
    assert!(KernelName::Softmax.at(1.2).is_ok());
}
