//! The constructions in linear attention: plain path, fast path and direct algorithm give the same numbers.
#![allow(missing_docs)]

mod common;

use common::{attention, distinct, episodes, gap};
use ictd::construction::{Algorithm, Construction, ConstructionConfig, ConstructionError};
use ictd::context::{Context, End};
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::td::{Estimator, LambdaTd, LinearTd, MonteCarloRegression, ResidualGradientTd};
use ictd::transformer::{ForwardError, TransformerConfig, TransformerError};
use serde_json::Value;

// The sizes of the verification in arXiv 2405.13861.
const D: usize = 3;
const N: usize = 100;
const LAYERS: usize = 40;
const TRIALS: u64 = 30;
const GAMMA: f64 = 0.9;
const LAMBDA: f64 = 0.5;

/// A construction with a step size for every layer and, where asked, a random preconditioner for each.
fn random(algorithm: Algorithm, trial: u64, preconditioned: bool) -> Construction {
    let mut stream = Stream::new(trial, Purpose::Init, 1);
    let c = |_| Matrix::from_fn(D, D, |_, _| stream.uniform_in(-1.0, 1.0));
    let preconditioners = if preconditioned { (0..LAYERS).map(c).collect() } else { Vec::new() };
    let step_sizes = stream.uniform_vec(LAYERS, 0.0, 0.5);
    let lambda = if algorithm == Algorithm::TdLambda { LAMBDA } else { 0.0 };
    let config = ConstructionConfig::new(algorithm, LAYERS);
    ConstructionConfig { lambda, step_sizes, preconditioners, ..config }.check().unwrap()
}

/// The same without tokens: values of all columns.
fn direct(construction: &Construction, context: &Context) -> Vec<Vec<f64>> {
    construction.direct().run(context).unwrap()
}

/// The largest difference as a share of the largest value, or as it is where values are below 1.
fn relative(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let size = b.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    gap(&[a.to_vec()], &[b.to_vec()]) / size
}

/// The claim of every construction, and that of its fast path. 40 layers of sums of 100 products round to about 1e-14.
#[test]
fn layers_are_steps_of_their_algorithm_on_either_path() {
    for algorithm in Algorithm::ALL {
        for (trial, preconditioned) in (0..TRIALS).flat_map(|t| [(t, false), (t, true)]) {
            let construction = random(algorithm, trial, preconditioned);
            let context = distinct(trial, D, N);
            let expected: Vec<f64> = direct(&construction, &context).iter().map(|v| v[N]).collect();
            let plain = construction.plain_query_values(&context, &()).unwrap();
            let fast = construction.query_values(&context).unwrap();
            assert_eq!((expected.len(), expected[0]), (LAYERS + 1, 0.0));
            assert!(expected[LAYERS].abs() > 1e-6, "{algorithm}: nothing happens");
            assert!(relative(&plain, &expected) <= 1e-12, "{algorithm} trial {trial}");
            assert!(relative(&plain, &fast) <= 1e-12, "{algorithm} trial {trial}: fast path");
        }
    }
}

/// What the last row of tokens means on every column, not only on the query's: TD errors, or differences of values.
#[test]
fn memory_rows_hold_what_their_names_say() {
    for algorithm in
        [Algorithm::Td, Algorithm::TdLambda, Algorithm::ResidualGradient, Algorithm::AverageReward]
    {
        let (construction, context) = (random(algorithm, 3, true), distinct(3, D, N));
        let values = direct(&construction, &context);
        for (z, v) in construction.tokens(&context).unwrap().iter().zip(&values) {
            let expected: Vec<f64> = (0..N)
                .map(|i| match algorithm {
                    Algorithm::AverageReward => v[i] - v[i + 1],
                    _ => context.rewards()[i] + GAMMA * v[i + 1] - v[i],
                })
                .collect();
            assert!(relative(&z.row(z.num_rows() - 1)[..N], &expected) <= 1e-12, "{algorithm}");
        }
        let names = construction.row_names(D);
        assert_eq!(names.len(), construction.tokens(&context).unwrap()[0].num_rows());
    }
}

#[test]
fn chains_of_thought_keep_every_weight_vector_of_sarsa() {
    let context = distinct(5, D, N);
    let [sarsa, thoughts] = [Algorithm::Sarsa, Algorithm::ChainOfThought].map(|a| random(a, 5, true));
    let (sarsa, thoughts) = (sarsa.tokens(&context).unwrap(), thoughts.tokens(&context).unwrap());
    let last = &thoughts[LAYERS];
    assert_eq!((last.num_rows(), last.num_cols()), (3 * D + 2, N + 1 + LAYERS));
    for (layer, h) in sarsa.iter().enumerate() {
        let column = |z: &Matrix, j: usize| -> Vec<f64> { (0..z.num_rows()).map(|i| z[(i, j)]).collect() };
        assert!(relative(&column(last, N + layer), &column(h, N)) <= 1e-12);
        // Transitions stand unchanged.
        assert_eq!(column(last, 7), column(&sarsa[0], 7));
    }
}

/// λ = 0 is TD(0), SARSA on pairs is linear TD on their features, and so is the paper's Transformer with the linear kernel; traces start
/// anew with episodes.
#[test]
fn special_cases_are_what_they_were() {
    let td = |algorithm, step_size| {
        ConstructionConfig { step_sizes: vec![step_size], ..ConstructionConfig::new(algorithm, 10) }
            .check()
            .unwrap()
    };
    for seed in 0..10 {
        let context = distinct(seed, D, 30);
        let linear = LinearTd { gamma: GAMMA, step_sizes: vec![0.4; 10] }.run(&context).unwrap();
        let expected: Vec<f64> = linear.iter().map(|v| v[30]).collect();
        for algorithm in [Algorithm::Td, Algorithm::TdLambda, Algorithm::Sarsa, Algorithm::ChainOfThought] {
            let found = td(algorithm, 0.4).query_values(&context).unwrap();
            assert!(relative(&found, &expected) < 1e-13, "{algorithm}");
        }
        let mut config = TransformerConfig::theta_star(attention(KernelName::Linear, 1.0, 0.0), 10, GAMMA);
        config.step_sizes = vec![0.4];
        let softmax_free = config.check().unwrap().run(&context).unwrap();
        let found: Vec<f64> = softmax_free.iter().map(|v| v[30]).collect();
        assert!(relative(&found, &expected) < 1e-13);
        let many = episodes(seed, 4, 6, &[9, 4, 7]);
        let direct =
            LambdaTd { lambda: 0.0, gamma: GAMMA, step_sizes: vec![0.4; 10], preconditioners: vec![] };
        let linear = LinearTd { gamma: GAMMA, step_sizes: vec![0.4; 10] };
        assert!(gap(&direct.run(&many).unwrap(), &linear.run(&many).unwrap()) < 1e-13);
    }
}

/// On two copies of an episode traces, returns and residuals are those of one: n doubles and so does every sum.
#[test]
fn episodes_do_not_run_into_each_other() {
    let mut stream = Stream::new(0, Purpose::Prompt, 0);
    let features: Vec<Vec<f64>> = (0..9).map(|_| stream.uniform_vec(2, -1.0, 1.0)).collect();
    let rewards = stream.uniform_vec(8, -1.0, 1.0);
    let (step_sizes, preconditioners) = (vec![0.5; 6], Vec::new());
    let lambda = LambdaTd { lambda: 0.7, gamma: GAMMA, step_sizes, preconditioners };
    let LambdaTd { step_sizes, preconditioners, .. } = lambda.clone();
    let residual = ResidualGradientTd { gamma: GAMMA, step_sizes, preconditioners };
    let LambdaTd { step_sizes, preconditioners, .. } = lambda.clone();
    let returns = MonteCarloRegression { gamma: GAMMA, step_sizes, preconditioners };
    for end in [End::Terminated, End::Truncated] {
        let one = Context::builder().episode(&features, &rewards, end).build().unwrap();
        let two = Context::builder()
            .episode(&features, &rewards, end)
            .episode(&features, &rewards, end)
            .build()
            .unwrap();
        let all: [&dyn Estimator; 3] = [&lambda, &residual, &returns];
        for estimator in all {
            let (one, two) = (estimator.run(&one).unwrap(), estimator.run(&two).unwrap());
            for (one, two) in one.iter().zip(&two) {
                assert!(
                    relative(&two[..9], one) < 1e-14 && relative(&two[9..], one) < 1e-14,
                    "{}",
                    estimator.name()
                );
            }
        }
    }
}

/// Without C the residual gradient descends the mean squared TD error, here as far as it goes: the least squares.
#[test]
fn long_passes_come_to_their_limits() {
    let context = distinct(1, D, N);
    let deep = |algorithm| {
        let config = ConstructionConfig::new(algorithm, 4000);
        let construction = ConstructionConfig { step_sizes: vec![1.5], ..config }.check().unwrap();
        let radius = construction.spectral_radius(&context).unwrap().unwrap();
        assert!(radius < 1.0, "{algorithm}: {radius}");
        let value = construction.query_values(&context).unwrap()[4000];
        let limit = construction.limit(&context).unwrap();
        // A system of three equations of order 1.
        assert!((value - limit).abs() < 1e-12, "{algorithm}: {value} and {limit}");
        value
    };
    let value = |w: &[f64]| w.iter().zip(context.features_of(N)).map(|(w, x)| w * x).sum::<f64>();
    let lstd = LinearTd { gamma: GAMMA, step_sizes: vec![] }.fixed_point(&context).unwrap();
    assert!((deep(Algorithm::Td) - value(&lstd)).abs() < 1e-12);
    let solve = |rows: &dyn Fn(usize) -> Vec<f64>, targets: &dyn Fn(usize) -> f64| {
        let (mut a, mut b) = (Matrix::zeros(D, D), vec![0.0; D]);
        for k in 0..N {
            let x = rows(k);
            for i in 0..D {
                b[i] += x[i] * targets(k);
                for j in 0..D {
                    a[(i, j)] += x[i] * x[j];
                }
            }
        }
        ictd::linalg::solve(&a, &b).unwrap()
    };
    let difference = |k: usize| -> Vec<f64> {
        context.features_of(k).iter().zip(context.features_of(k + 1)).map(|(x, y)| x - GAMMA * y).collect()
    };
    let least = solve(&difference, &|k| context.rewards()[k]);
    assert!((deep(Algorithm::ResidualGradient) - value(&least)).abs() < 1e-12);
    let returns = |k: usize| (k..N).map(|i| GAMMA.powi((i - k) as i32) * context.rewards()[i]).sum();
    let least = solve(&|k| context.features_of(k).to_vec(), &returns);
    assert!((deep(Algorithm::MonteCarlo) - value(&least)).abs() < 1e-12);
}

/// Every construction's value is that of its limit after enough layers, with any step sizes, whether transitions say something of every
/// direction of the features or not.
#[test]
fn limits_are_those_of_deep_passes() {
    let context = distinct(2, D, N);
    for algorithm in Algorithm::ALL {
        let lambda = if algorithm == Algorithm::TdLambda { 0.5 } else { 0.0 };
        let config = ConstructionConfig { lambda, ..ConstructionConfig::new(algorithm, 6000) };
        let steps: Vec<f64> = (0..6000).map(|layer| [0.5, 0.9, 1.2][layer % 3]).collect();
        let construction = ConstructionConfig { step_sizes: steps, ..config.clone() }.check().unwrap();
        let deep = construction.query_values(&context).unwrap()[6000];
        assert!((deep - construction.limit(&context).unwrap()).abs() < 1e-10, "{algorithm}");
        // Two transitions say nothing about the third direction, and features of zeros nothing at all.
        // Some of them make layers diverge.
        let plain = config.check().unwrap();
        let mut converging = 0;
        for seed in 0..20 {
            let few = distinct(seed, D, 2);
            if plain.spectral_radius(&few).unwrap().unwrap() < 0.99 {
                converging += 1;
                let deep = plain.query_values(&few).unwrap()[6000];
                assert!((deep - plain.limit(&few).unwrap()).abs() < 1e-10, "{algorithm}, seed {seed}");
            }
        }
        assert!(converging >= 3, "{algorithm}: {converging} of 20");
        let zeros = Context::builder().episode(&[[0.0; D]; 3], &[1.0, 2.0], End::Truncated).build().unwrap();
        assert_eq!(construction.limit(&zeros).unwrap(), 0.0, "{algorithm}");
        assert_eq!(construction.spectral_radius(&zeros).unwrap(), Some(0.0), "{algorithm}");
    }
    let each = ConstructionConfig {
        preconditioners: vec![Matrix::identity(D); 3],
        ..ConstructionConfig::new(Algorithm::Td, 3)
    };
    let refused = each.check().unwrap().limit(&context).unwrap_err();
    assert!(matches!(refused, ConstructionError::Preconditioners { found: 3, .. }), "{refused}");
}

/// One-hot features of two states can say a constant, which layers of average-reward TD leave as it is. They have a limit where the centred rewards
/// of a closed path sum to 0, by hand w = (1.5, −1.5) here; otherwise every layer adds the same.
#[test]
fn where_features_say_a_constant_rewards_decide_whether_there_is_a_limit() {
    let on = |states: &[usize], rewards: &[f64]| {
        let rows: Vec<[f64; 2]> =
            states.iter().map(|&s| if s == 0 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
        Context::builder().episode(&rows, rewards, End::Truncated).build().unwrap()
    };
    let config = ConstructionConfig::new(Algorithm::AverageReward, 4000);
    let average = ConstructionConfig { step_sizes: vec![0.5], ..config }.check().unwrap();
    // Centred: 0, 9, 6, −15.
    let calm = on(&[0, 1, 0, 1, 0], &[0.0, 18.0, 18.0, -8.0]);
    let outlook = average.outlook(&calm).unwrap();
    assert!((outlook.limit.unwrap() - 1.5).abs() < 1e-13);
    // Roundings of TD errors of order 1 add up over 4000 layers.
    assert!((average.query_values(&calm).unwrap()[4000] - 1.5).abs() < 1e-11);
    let endless = on(&[0, 1, 0, 1, 1], &[1.0, 0.0, -1.0, 2.0]);
    let found = average.outlook(&endless).unwrap();
    let Err(ConstructionError::Drift { per_layer }) = found.limit else { panic!("{found:?}") };
    let values = average.query_values(&endless).unwrap();
    // The rounding of a value of some hundreds.
    assert!((values[4000] - values[3999] - 0.5 * per_layer).abs() < 1e-12 && per_layer > 0.05, "{per_layer}");
    for outlook in [average.outlook(&calm).unwrap(), found] {
        assert!((outlook.spectral_radius.unwrap() - 1.0).abs() < 1e-12, "{outlook:?}");
        assert!(outlook.rate.unwrap() < 0.8, "{outlook:?}");
    }
}

/// Sizes of features do not matter, and directions that rounding may have hidden are not taken for none.
#[test]
fn limits_of_large_and_nearly_collinear_features() {
    let td = |step: f64| {
        let config = ConstructionConfig::new(Algorithm::Td, 3);
        ConstructionConfig { step_sizes: vec![step], ..config }.check().unwrap()
    };
    let on = |rows: &[[f64; 2]], rewards: &[f64]| {
        Context::builder().episode(rows, rewards, End::Truncated).build().unwrap()
    };
    // w = 1/(0.1·size), a step of α·0.1·size² = 0.1.
    for (size, step) in [(1e155, 1e-310), (1.0, 1.0), (1e-150, 1e300)] {
        let large = on(&[[size, 0.0], [size, if size > 1.0 { 1.0 } else { 0.0 }]], &[1.0]);
        let outlook = td(step).outlook(&large).unwrap();
        assert!((outlook.limit.unwrap() - 10.0).abs() < 1e-10, "{size}");
        assert!((outlook.spectral_radius.unwrap() - 0.9).abs() < 1e-10, "{size}");
    }
    let rewards = [1.0, 0.0, -1.0, 2.0, 0.0];
    let collinear = |a: f64| {
        let rows = [[1.0, 0.0], [1.0, a], [1.0, 0.0], [1.0, a], [1.0, 0.0], [0.0, 1.0]];
        td(1.0).outlook(&on(&rows, &rewards)).unwrap()
    };
    // Origin: the two equations in Python's fractions.
    for (a, limit) in [(1.0, 0.8163265306122449), (1e-3, 13.13197636244255)] {
        let found = collinear(a).limit.unwrap();
        assert!((found - limit).abs() < 1e-7 * limit.abs(), "{a}: {found}");
    }
    for a in [1e-7, 1e-9, 1e-12, 1e-15, 1e-17, 1e-160] {
        let found = collinear(a);
        assert!(
            found.limit.is_err() && found.spectral_radius.is_none_or(|r| r > 1.0 - 1e-7),
            "{a}: {found:?}"
        );
    }
    // A query that transitions speak of is not touched by what they do not say.
    assert!((collinear(0.0).outside - 1.0).abs() < 1e-15);
}

/// Origin: golden/construction.py, NumPy, by attention and transition by transition. 14 cases: every construction, with and without
/// preconditioners.
#[test]
fn tokens_and_values_are_those_of_an_independent_implementation() {
    let numbers = |value: &Value| -> Vec<f64> { serde_json::from_value(value.clone()).unwrap() };
    let matrix = |value: &Value| {
        let rows: Vec<Vec<f64>> = serde_json::from_value(value.clone()).unwrap();
        Matrix::from_rows(&rows).unwrap()
    };
    let cases: Vec<Value> = serde_json::from_str(include_str!("golden/construction.json")).unwrap();
    assert_eq!(cases.len(), 2 * Algorithm::ALL.len());
    for case in &cases {
        let number = |key: &str| case[key].as_f64().unwrap();
        let features: Vec<Vec<f64>> = serde_json::from_value(case["features"].clone()).unwrap();
        let context = Context::builder()
            .episode(&features, &numbers(&case["rewards"]), End::Truncated)
            .build()
            .unwrap();
        let expected: Vec<Matrix> = case["tokens"].as_array().unwrap().iter().map(matrix).collect();
        let construction = ConstructionConfig {
            algorithm: case["construction"].as_str().unwrap().parse().unwrap(),
            lambda: number("lambda"),
            num_layers: expected.len() - 1,
            gamma: number("gamma"),
            step_sizes: vec![number("step_size")],
            preconditioners: case["C"].as_array().unwrap().iter().map(matrix).collect(),
        }
        .check()
        .unwrap();
        // Four layers on numbers of order 1: a few dozen roundings.
        for (found, expected) in construction.tokens(&context).unwrap().iter().zip(&expected) {
            assert_eq!(found.num_rows(), expected.num_rows());
            assert!(relative(found.as_slice(), expected.as_slice()) < 1e-14, "{}", case["construction"]);
        }
        let values = construction.query_values(&context).unwrap();
        assert!(relative(&values, &numbers(&case["values"])) < 1e-14, "{}", case["construction"]);
    }
}

#[test]
fn what_has_no_meaning_is_refused() {
    let config = |algorithm| ConstructionConfig::new(algorithm, 3);
    let refused = |config: ConstructionConfig| config.check().unwrap_err();
    let td = || config(Algorithm::Td);
    assert_eq!(
        refused(ConstructionConfig { lambda: 0.5, ..td() }),
        ConstructionError::NoTraces { algorithm: Algorithm::Td, found: 0.5 }
    );
    for lambda in [-0.1, 1.1] {
        let config = ConstructionConfig { lambda, ..config(Algorithm::TdLambda) };
        assert_eq!(refused(config), ConstructionError::Lambda(lambda));
    }
    assert!(matches!(refused(ConstructionConfig { lambda: f64::NAN, ..td() }), ConstructionError::Lambda(_)));
    let averaged = ConstructionConfig { gamma: 0.9, ..config(Algorithm::AverageReward) };
    assert_eq!(refused(averaged), ConstructionError::Discounted(0.9));
    for gamma in [1.0, -0.5] {
        assert_eq!(refused(ConstructionConfig { gamma, ..td() }), TransformerError::Gamma(gamma).into());
    }
    let steps = ConstructionConfig { step_sizes: vec![1.0; 2], ..td() };
    assert_eq!(refused(steps), TransformerError::StepSizes { found: 2, layers: 3 }.into());
    let two = ConstructionConfig { preconditioners: vec![Matrix::identity(2); 2], ..td() };
    assert_eq!(refused(two), ConstructionError::Preconditioners { found: 2, layers: 3 });
    let uneven = ConstructionConfig { preconditioners: vec![Matrix::zeros(2, 3)], ..td() };
    assert_eq!(refused(uneven), ConstructionError::Preconditioner { layer: 0, rows: 2, cols: 3 });

    let construction = td().check().unwrap();
    let on = |context: &Context| construction.query_values(context).unwrap_err();
    assert_eq!(on(&episodes(0, 2, 4, &[3, 4])), ConstructionError::Episodes(2));
    assert_eq!(on(&episodes(0, 2, 4, &[3])), ConstructionError::Queries(2));
    let ended = Context::builder().episode(&[[1.0], [2.0]], &[1.0], End::Terminated).build().unwrap();
    assert_eq!(on(&ended), ConstructionError::Terminated);
    let other = ConstructionConfig { preconditioners: vec![Matrix::identity(2)], ..td() }.check().unwrap();
    let expected = ConstructionError::FeatureDim { expected: D, found: 2 };
    assert_eq!(other.query_values(&distinct(0, D, 4)).unwrap_err(), expected);
    let wild = ConstructionConfig { step_sizes: vec![1e200], ..td() }.check().unwrap();
    let layers: Vec<ConstructionError> = vec![
        wild.query_values(&distinct(0, D, 4)).unwrap_err(),
        wild.tokens(&distinct(0, D, 4)).unwrap_err(),
    ];
    for error in layers {
        assert!(matches!(error, ConstructionError::Forward(ForwardError::Diverged { layer: 2 })), "{error}");
    }
    assert!("tdlambda".parse::<Algorithm>().unwrap_err().to_string().contains("td-lambda"));
}
