//! Contexts of many distinct states: every route gives the same numbers, or numbers within the bounds that it states.
#![allow(missing_docs)]

mod common;

use common::{attention, distinct, episodes};
use ictd::context::{Context, End};
use ictd::kernel::{Effort, KernelName, Precision, Route};
use ictd::random::{Purpose, Stream};
use ictd::td::{Estimator as _, WeightedSoftmaxTd};
use ictd::transformer::{
    Approximation, AttentionParams, Evaluator, LayerValues, Parameters, TransformerConfig,
};
use ictd::watch::{Stopped, Watch};
use ictd::{Attention, Matrix, Transformer};
use proptest::prelude::*;

/// Nothing is kept: the routes of many states, on few.
fn anew() -> Effort {
    Effort { kept: 0, ..Effort::default() }
}

fn run(effort: Effort, transformer: &Transformer, context: &Context) -> (LayerValues, Evaluator) {
    let mut evaluator = Evaluator::with(effort);
    let values = evaluator.evaluate(transformer, context).unwrap();
    (values, evaluator)
}

fn theta_star(kernel: KernelName, temperature: f64, rho: f64, layers: usize) -> Transformer {
    TransformerConfig::theta_star(attention(kernel, temperature, rho), layers, 0.9).check().unwrap()
}

/// The largest difference of values over all layers and columns.
fn apart(a: &LayerValues, b: &LayerValues) -> f64 {
    assert_eq!((a.num_layers(), a.num_columns()), (b.num_layers(), b.num_columns()));
    let cells = (0..=a.num_layers()).flat_map(|l| (0..a.num_columns()).map(move |j| (l, j)));
    cells.map(|(l, j)| (a.value(l, j) - b.value(l, j)).abs()).fold(0.0, f64::max)
}

fn size(values: &LayerValues) -> f64 {
    (0..=values.num_layers()).flat_map(|l| values.values(l)).fold(1.0, |m: f64, v| m.max(v.abs()))
}

/// Above the size at which blocks are chosen, against TD written out.
#[test]
fn blocks_are_chosen_for_many_states_and_are_td() {
    let context = distinct(3, 3, 2100);
    for kernel in [KernelName::Softmax, KernelName::Rbf] {
        let transformer = theta_star(kernel, 0.7, 0.0, 3);
        let (values, evaluator) = run(Effort::default(), &transformer, &context);
        assert_eq!(evaluator.route().0, Route::Blocks);
        let td = WeightedSoftmaxTd {
            attention: attention(kernel, 0.7, 0.0),
            gamma: 0.9,
            step_sizes: vec![1.0; 3],
        };
        let plain = td.run(&context).unwrap();
        for l in 0..=3 {
            for (v, exact) in values.values(l).iter().zip(&plain[l]) {
                // 2100 weights with exponents of a few units: 1e-15 each, values of order 1.
                assert!((v - exact).abs() < 1e-12, "{kernel} {l}: {v} {exact}");
            }
        }
    }
}

/// Dimensions and numbers of states around the sizes of groups and blocks; queries, terminal states, repeated states.
#[test]
fn blocks_agree_with_kept_weights_at_every_size() {
    let mut contexts: Vec<Context> = [1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 513, 700]
        .into_iter()
        .enumerate()
        .map(|(k, n)| distinct(k as u64, 1 + k % 5, n))
        .collect();
    contexts.push(episodes(5, 3, 40, &[70, 50, 90]));
    contexts.push(distinct(6, 17, 300));
    for context in &contexts {
        for (kernel, rho) in [(KernelName::Softmax, 0.0), (KernelName::Softmax, 0.3), (KernelName::Rbf, 0.0)]
        {
            let transformer = theta_star(kernel, 0.8, rho, 4);
            let (kept, _) = run(Effort::default(), &transformer, context);
            let (double, by) = run(anew(), &transformer, context);
            assert_eq!(by.route().0, Route::Blocks);
            assert!(apart(&kept, &double) < 1e-12 * size(&kept), "{}", apart(&kept, &double));
            let (single, by) = run(Effort { precision: Precision::Single, ..anew() }, &transformer, context);
            let Approximation { value_error_bound, .. } = by.approximation().unwrap();
            assert_eq!(by.precision(), Precision::Single);
            // Far below the bound: roundings cancel.
            let off = apart(&kept, &single);
            assert!(off <= value_error_bound && off < 1e-5 * size(&kept), "{off} {value_error_bound}");
        }
    }
}

/// Symmetric positive definite blocks of trained parameters, diagonal or not; others are weighed as before.
#[test]
fn score_blocks_that_are_positive_definite_take_blocks_and_others_do_not() {
    let context = distinct(9, 3, 200);
    let with = |block: Matrix| {
        let mut config = TransformerConfig::theta_star(attention(KernelName::Softmax, 1.0, 0.0), 3, 0.9);
        config.parameters = Parameters::Tied(AttentionParams::looped([1.0, 1.0, -1.0], &block));
        let transformer = config.check().unwrap();
        let (kept, _) = run(Effort::default(), &transformer, &context);
        let (values, evaluator) = run(anew(), &transformer, &context);
        assert!(apart(&kept, &values) < 1e-12 * size(&kept));
        evaluator.route().0
    };
    let root = Matrix::from_rows(&[[1.0, 0.2, -0.3], [0.1, 0.8, 0.4], [0.0, -0.5, 1.2]]).unwrap();
    let definite = root.matmul(&root.transpose());
    let symmetric = Matrix::from_fn(3, 3, |i, j| 0.5 * (definite[(i, j)] + definite[(j, i)]));
    assert_eq!(with(symmetric.clone()), Route::Blocks);
    assert_eq!(with(Matrix::diag(&[0.3, 0.0, 2.0])), Route::Blocks);
    assert_eq!(with(root), Route::Kept);
    assert_eq!(with(symmetric.map(|x| -x)), Route::Kept);
}

/// What is drawn for a case: a kernel from wide to sharp, points uniform, in clusters or repeated, offsets, visits.
fn drawn(seed: u64) -> (Context, Transformer) {
    let mut stream = Stream::new(seed, Purpose::Prompt, 0);
    let (n, d) = (60 + stream.below(240) as usize, 1 + stream.below(4) as usize);
    let kernel = if stream.below(2) == 0 { KernelName::Softmax } else { KernelName::Rbf };
    let temperature = 2f64.powf(stream.uniform_in(-1.0, 6.0));
    let centres: Vec<Vec<f64>> = (0..1 + stream.below(6)).map(|_| stream.uniform_vec(d, -1.0, 1.0)).collect();
    let (offset, form) = (stream.uniform_in(-2.0, 2.0), stream.below(3));
    let features: Vec<Vec<f64>> = (0..=n)
        .map(|_| {
            let x = stream.uniform_vec(d, -1.0, 1.0);
            let centre = &centres[stream.below(centres.len() as u32) as usize];
            let share = [1.0, 0.1, 0.5][form as usize];
            let rounded = |v: f64| if form == 2 { (4.0 * v).round() / 4.0 } else { v };
            x.iter().zip(centre).map(|(x, c)| offset + rounded(share * x + (1.0 - share) * c)).collect()
        })
        .collect();
    let rewards = stream.uniform_vec(n, -1.0, 1.0);
    let end = if stream.below(2) == 0 { End::Terminated } else { End::Truncated };
    let context = Context::builder()
        .episode(&features, &rewards, end)
        .query(&stream.uniform_vec(d, -2.0, 2.0))
        .build()
        .unwrap();
    (context, theta_star(kernel, temperature, 0.0, 1 + stream.below(12) as usize))
}

/// Whether a case took pivots; asserts that its bounds hold.
fn bounds_hold(seed: u64) -> bool {
    let (context, transformer) = drawn(seed);
    let tolerance = 10f64.powi(-1 - (seed % 9) as i32);
    let (exact, _) = run(Effort::default(), &transformer, &context);
    let (values, evaluator) = run(Effort { tolerance: Some(tolerance), ..anew() }, &transformer, &context);
    let (route, reason) = evaluator.route();
    let Some(Approximation { column_error_bound, value_error_bound, .. }) = evaluator.approximation() else {
        // Exact weights were cheaper, or their range too wide.
        assert_ne!(route, Route::Pivots);
        assert!(!reason.is_empty() && apart(&exact, &values) <= 1e-11 * size(&exact));
        return false;
    };
    assert!(column_error_bound <= tolerance, "{seed}");
    let off = apart(&exact, &values);
    // Exact values are rounded too.
    assert!(off <= value_error_bound + 1e-13 * size(&exact), "{seed}: {off} {value_error_bound}");
    // The first layer's messages are the rewards: its errors are those of columns.
    let rewards = context.rewards().iter().fold(0.0, |m: f64, r| m.max(r.abs()));
    let first = (0..exact.num_columns()).map(|j| (exact.value(1, j) - values.value(1, j)).abs());
    assert!(first.fold(0.0, f64::max) <= column_error_bound * rewards + 1e-13, "{seed}");
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn bounds_of_pivots_hold(seed in any::<u64>()) {
        bounds_hold(seed);
    }
}

/// With mixing a value also rests on its own message, which the norm of all messages bounds less well.
#[test]
fn bounds_hold_with_diagonal_mixing() {
    let mut taken = 0;
    for seed in 0..60 {
        let (context, transformer) = drawn(seed);
        let mut config = transformer.config().clone();
        config.attention =
            Attention::new(KernelName::Rbf.at(1.0).unwrap(), [0.1, 0.5, 1.0][seed as usize % 3]).unwrap();
        let transformer = config.check().unwrap();
        let (exact, _) = run(Effort::default(), &transformer, &context);
        for effort in
            [Effort { tolerance: Some(1e-2), ..anew() }, Effort { precision: Precision::Single, ..anew() }]
        {
            let (values, evaluator) = run(effort, &transformer, &context);
            let Some(known) = evaluator.approximation() else { continue };
            let off = apart(&exact, &values);
            assert!(off <= known.value_error_bound + 1e-13 * size(&exact), "{seed}: {off} {known:?}");
            taken += 1;
        }
    }
    assert!(taken >= 60, "{taken}");
}

/// What all sources have in common is divided out again, and must not cost digits on the way.
#[test]
fn a_constant_feature_changes_no_value() {
    let mut stream = Stream::new(21, Purpose::Prompt, 0);
    let plain: Vec<Vec<f64>> = (0..301).map(|_| stream.uniform_vec(3, -1.0, 1.0)).collect();
    let rewards = stream.uniform_vec(300, -1.0, 1.0);
    let with = |rows: &[Vec<f64>]| {
        let builder = Context::builder().episode(rows, &rewards, End::Truncated);
        builder.query(rows[7].as_slice()).build().unwrap()
    };
    for kernel in [KernelName::Softmax, KernelName::Rbf] {
        let transformer = theta_star(kernel, 1.0, 0.0, 15);
        let (expected, _) = run(Effort::default(), &transformer, &with(&plain));
        for constant in [1.0, 1e6, -1e8] {
            let rows: Vec<Vec<f64>> = plain.iter().map(|x| [x.as_slice(), &[constant]].concat()).collect();
            for effort in [Effort::default(), anew()] {
                let (values, evaluator) = run(effort, &transformer, &with(&rows));
                let off = apart(&expected, &values);
                // A thousand roundings of values of order 1.
                assert!(off < 1e-12, "{kernel} {constant} {:?}: {off}", evaluator.route());
            }
        }
    }
}

#[test]
fn many_of_the_cases_that_are_drawn_take_pivots() {
    assert!((0..100).filter(|&seed| bounds_hold(seed)).count() >= 30);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let context = distinct(4, 4, 3000);
    let transformer = theta_star(KernelName::Softmax, 1.0, 0.0, 3);
    let efforts = [
        Effort::default(),
        Effort { precision: Precision::Single, ..Effort::default() },
        Effort { tolerance: Some(1e-3), ..Effort::default() },
    ];
    for effort in efforts {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (values, evaluator) = run(effort, &transformer, &context);
                (
                    values.values(3).into_iter().map(f64::to_bits).collect::<Vec<_>>(),
                    evaluator.approximation(),
                )
            })
        };
        let one = with(1);
        assert!([2, 3, 5].into_iter().all(|threads| with(threads) == one));
    }
}

/// Too many pivots, or too little memory for them: exact weights, and the reason says so.
#[test]
fn pivots_that_do_not_pay_are_not_taken() {
    let context = distinct(8, 6, 2500);
    let sharp = theta_star(KernelName::Softmax, 0.02, 0.0, 2);
    let (_, evaluator) = run(Effort { tolerance: Some(1e-6), ..Effort::default() }, &sharp, &context);
    assert_eq!(evaluator.route().0, Route::Blocks);
    assert!(evaluator.route().1.contains("take longer or more memory"), "{}", evaluator.route().1);
    assert_eq!(evaluator.approximation(), None);
    let wide = theta_star(KernelName::Softmax, 30.0, 0.0, 20);
    let roomy = Effort { tolerance: Some(1e-4), ..Effort::default() };
    assert_eq!(run(roomy, &wide, &context).1.route().0, Route::Pivots);
    let cramped = Effort { memory: 1e4, ..roomy };
    assert_eq!(run(cramped, &wide, &context).1.route().0, Route::Blocks);
}

/// Zero features, copies of one state, tiny and huge numbers, offsets: the same as kept weights, or the same refusal.
#[test]
fn extreme_contexts_are_weighed_as_ever() {
    let mut stream = Stream::new(2, Purpose::Prompt, 0);
    let base: Vec<Vec<f64>> = (0..101).map(|_| stream.uniform_vec(2, -1.0, 1.0)).collect();
    let scaled = |scale: f64, offset: f64| -> Vec<Vec<f64>> {
        base.iter().map(|x| x.iter().map(|v| scale * v + offset).collect()).collect()
    };
    let mut far = scaled(1.0, 0.0);
    far[50] = vec![300.0, -300.0];
    let cases = [
        vec![vec![0.0, 0.0]; 101],
        vec![vec![3.0, -2.0]; 101],
        scaled(1e-300, 0.0),
        scaled(1e-8, 0.0),
        scaled(1.0, 1e3),
        scaled(30.0, 0.0),
        scaled(1e6, 0.0),
        scaled(1e200, 0.0),
        far,
    ];
    let rewards = stream.uniform_vec(100, -1.0, 1.0);
    for (case, features) in cases.iter().enumerate() {
        let context = Context::builder()
            .episode(features, &rewards, End::Truncated)
            .query(&[0.5, 0.5])
            .build()
            .unwrap();
        for kernel in [KernelName::Softmax, KernelName::Rbf] {
            let transformer = theta_star(kernel, 1.0, 0.0, 3);
            let kept = transformer.values(&context);
            let efforts = [
                anew(),
                Effort { precision: Precision::Single, ..anew() },
                Effort { tolerance: Some(1e-3), ..anew() },
            ];
            for effort in efforts {
                let mut evaluator = Evaluator::with(effort);
                let found = evaluator.evaluate(&transformer, &context);
                match (&kept, &found) {
                    (Ok(kept), Ok(found)) => {
                        let bound = evaluator.approximation().map_or(0.0, |known| known.value_error_bound);
                        // Scores of 1e6, the offset's, are rounded by 1e-10, and values with them.
                        let off = apart(kept, found);
                        assert!(off <= bound + 1e-8, "case {case} {kernel} {effort:?}: {off}");
                    }
                    (kept, found) => assert_eq!(kept.is_err(), found.is_err(), "case {case} {kernel}"),
                }
            }
        }
    }
}

/// A watcher that stops at once.
struct Impatient;

impl Watch for Impatient {
    fn begin(&self, _: &str, _: &'static str, _: u64) -> Result<(), Stopped> {
        Ok(())
    }
    fn advance(&self, _: u64) -> Result<(), Stopped> {
        Err(Stopped)
    }
}

#[test]
fn every_route_can_be_stopped() {
    let context = distinct(4, 4, 400);
    let transformer = theta_star(KernelName::Softmax, 4.0, 0.0, 3);
    for effort in [Effort::default(), anew(), Effort { tolerance: Some(1e-2), ..anew() }] {
        let stopped = Evaluator::with(effort).evaluate_watched(&transformer, &context, &Impatient);
        assert_eq!(stopped, Err(Stopped.into()));
    }
}
