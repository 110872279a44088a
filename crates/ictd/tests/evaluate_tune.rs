//! Choosing settings by held-out episodes.

mod common;

use common::logs::{gap, lstd, random_log, resamples, softmax_td};
use ictd::evaluate::method::{Basis, Kbrl, SoftmaxTd, TabularTd};
use ictd::evaluate::{Candidates, Depths, FitError, Folds, Loss, Method, Sample, TuneError};
use ictd::evaluate::{LogBuilder, depths, temperatures, tune};
use ictd::random::{Purpose, Stream};
use ictd::{End, KernelName, Matrix};

#[test]
fn depths_of_one_run_are_fits_of_their_own() {
    let log = random_log(8, 20, 15, 8, 0.9);
    let candidates =
        Depths { method: softmax_td(KernelName::Rbf, 0.5, 0, true), depths: depths(11), patience: 9 };
    assert_eq!(candidates.depths, [0, 1, 2, 3, 4, 6, 8, 11]);
    let samples = resamples(&log, 2);
    let mut shown = 0;
    candidates.visit(&samples, &mut |values| {
        let depth = candidates.depths[shown];
        let single = softmax_td(KernelName::Rbf, 0.5, depth, true).fit(&samples[1]).unwrap();
        let column: Vec<f64> = values.unwrap().rows().map(|row| row[1]).collect();
        assert!(gap(&column, single.values()) < 1e-13);
        shown += 1;
        // The smallest loss is the fourth, at three layers.
        (shown as f64 - 4.0).abs()
    });
    assert_eq!(shown, 8);
    shown = 0;
    Depths { patience: 2, ..candidates.clone() }.visit(&samples, &mut |_| {
        shown += 1;
        (shown as f64 - 4.0).abs()
    });
    assert_eq!(shown, 6);
}

/// The loss of one method, fold by fold, from fits of its own.
#[test]
fn a_held_out_loss_is_that_of_the_folds_one_by_one() {
    let log = random_log(9, 3, 5, 9, 0.9);
    let method: Box<dyn Method> = Box::new(TabularTd { num_layers: 3, step_size: 0.5, centred: true });
    // As many folds as blocks: which block is in which fold does not matter.
    let folds = Folds::new(&log, 7, 1, 0).unwrap();
    let (mut returns, mut values, mut visits) = (0.0, 0.0, 0.0);
    for out in 0..3 {
        let weights: Vec<f64> = (0..3).map(|b| f64::from(u8::from(b == out))).collect();
        let rest: Vec<f64> = weights.iter().map(|w| 1.0 - w).collect();
        let (training, held_out) = (log.sample(&rest), log.sample(&weights));
        let (low, high) = training.return_range().unwrap();
        let fit = method.fit(&training).unwrap();
        let held: Vec<f64> = fit.values().iter().map(|v| v.clamp(low, high)).collect();
        let target = lstd(Basis::Table, 0.0).fit(&held_out).unwrap();
        let n = held_out.visits();
        visits += held_out.num_visits();
        returns += held_out.return_loss(&held) * held_out.num_visits();
        values += (0..held.len()).map(|s| n[s] * (held[s] - target.values()[s]).powi(2)).sum::<f64>();
    }
    for (loss, expected) in [(Loss::Returns, returns), (Loss::HeldOutLstd, values)] {
        let curve = tune(&log, &folds, loss, &[&method]).unwrap();
        // Values that complete returns are kept in single precision.
        let tolerance = if loss == Loss::Returns { 1e-6 } else { 1e-12 };
        let (found, expected) = (curve.trials[0].loss, expected / visits);
        assert!((found - expected).abs() < tolerance * expected, "{loss:?} {found} {expected}");
        assert!(curve.trials[0].sem > 0.0 && curve.trials[0].error.is_none());
    }
}

#[test]
fn the_first_of_equals_is_chosen_and_what_fails_never_is() {
    let log = random_log(10, 12, 5, 9, 0.9);
    let folds = Folds::new(&log, 4, 2, 0).unwrap();
    let good = |layers| -> Box<dyn Method> {
        Box::new(TabularTd { num_layers: layers, step_size: 1.0, centred: true })
    };
    let diverging = Depths {
        method: SoftmaxTd { step_size: 1e30, ..softmax_td(KernelName::Tabular, 1.0, 0, true) },
        depths: vec![0, 40],
        patience: 4,
    };
    let singular: Box<dyn Method> = Box::new(Kbrl { kernel: KernelName::Linear.at(1.0).unwrap() });
    let (one, same) = (good(5), good(5));
    let curve = tune(&log, &folds, Loss::Returns, &[&singular, &diverging, &one, &same]).unwrap();
    assert_eq!(curve.trials.len(), 5);
    assert_eq!(curve.trials[0].error, Some(FitError::NotNormalized));
    assert!(curve.trials[2].loss.is_nan() && curve.trials[1].loss.is_finite());
    assert_eq!(curve.trials[3], curve.trials[4]);
    assert_eq!(curve.best, if curve.trials[1].loss <= curve.trials[3].loss { 1 } else { 3 });
    let error = tune(&log, &folds, Loss::Returns, &[&singular]).unwrap_err();
    assert_eq!(error, TuneError::NoCandidate { settings: 1, first: Some(FitError::NotNormalized) });
    let error = tune(&log, &folds, Loss::Returns, &[]).unwrap_err();
    assert_eq!(error, TuneError::NoCandidate { settings: 0, first: None });
    let one_block = random_log(11, 1, 5, 9, 0.9);
    assert_eq!(Folds::new(&one_block, 5, 1, 0).unwrap_err(), TuneError::TooFewBlocks { found: 1 });
}

#[test]
fn temperatures_go_from_all_alike_to_each_its_own() {
    let log = random_log(12, 60, 50, 9, 0.9);
    let found = temperatures(&log.whole());
    assert!(found.len() >= 4 && found.windows(2).all(|pair| pair[1] == 0.5 * pair[0]), "{found:?}");
}

/// Where states repeat a state that an episode was cut in is left by others; where they do not, nobody knows what follows.
#[test]
fn returns_are_the_loss_where_episodes_are_cut_in_states_that_no_other_leaves() {
    let log = |fresh: bool, end: End| {
        let mut builder = LogBuilder::new(0.9, None).unwrap();
        for key in 0..20u32 {
            let states: Vec<u32> = (0..4).map(|t| if fresh { 4 * key + t } else { (key + t) % 3 }).collect();
            let left = if end == End::Terminated { &states[..3] } else { &states[..] };
            builder.episode(key.into(), left, &[1.0, 0.0, 2.0], end, None).unwrap();
        }
        builder.build(Matrix::from_fn(80, 1, |s, _| s as f64)).unwrap()
    };
    for (fresh, end, expected) in [
        (false, End::Truncated, Loss::HeldOutLstd),
        (true, End::Terminated, Loss::HeldOutLstd),
        (true, End::Truncated, Loss::Returns),
    ] {
        let log = log(fresh, end);
        assert_eq!(Loss::of(&log, &Folds::new(&log, 5, 1, 0).unwrap()), expected, "{fresh} {end:?}");
    }
}

/// Values that are a multiple of the feature.
struct Slopes(Vec<f64>);

impl Candidates for Slopes {
    fn num_settings(&self) -> usize {
        self.0.len()
    }

    fn visit(&self, training: &[Sample<'_>], show: &mut dyn FnMut(Result<&Matrix, FitError>) -> f64) {
        let x = training[0].features();
        for slope in &self.0 {
            show(Ok(&Matrix::from_fn(x.num_rows(), training.len(), |s, _| slope * x[(s, 0)])));
        }
    }
}

/// Rewards are the feature, and what follows does not depend on it: the right slope is 1. With its own values after the end,
/// a slope c would have the loss (c - 1)² + γ²c², which is smallest at 0.55.
#[test]
fn flat_values_are_not_favoured_where_episodes_are_cut_short() {
    let mut builder = LogBuilder::new(0.9, None).unwrap();
    let mut stream = Stream::new(3, Purpose::Trajectory, 0);
    let features = stream.uniform_vec(600, -1.0, 1.0);
    for key in 0..300 {
        let state = 2 * key as usize;
        builder
            .episode(key, &[state as u32, state as u32 + 1], &[features[state]], End::Truncated, None)
            .unwrap();
    }
    let log = builder.build(Matrix::from_vec(600, 1, features)).unwrap();
    let folds = Folds::new(&log, 5, 2, 0).unwrap();
    let slopes = Slopes(vec![0.0, 0.3, 0.55, 0.8, 1.0, 1.2]);
    assert_eq!(tune(&log, &folds, Loss::Returns, &[&slopes]).unwrap().best, 4);
}
