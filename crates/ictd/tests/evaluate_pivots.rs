//! Softmax TD on many states by way of pivots: the values of all states, within the bound.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use common::logs::{gap, random_log, resamples, softmax_td};
use ictd::evaluate::method::{SoftmaxTd, SoftmaxTdFits};
use ictd::evaluate::{Keys, Log};
use ictd::{KernelName, Matrix};

/// 2500 states of two features, more than are attended to one by one.
fn log() -> Log {
    random_log(11, 1500, 2500, 9, 0.9)
}

fn with_keys(method: SoftmaxTd, log: &Log) -> SoftmaxTd {
    SoftmaxTd { keys: Some(Arc::new(Keys::of(log, 64))), ..method }
}

fn fit(method: &SoftmaxTd, log: &Log) -> SoftmaxTdFits {
    method.fit_all(&resamples(log, 3), &[], |_| ControlFlow::Continue(())).unwrap()
}

/// The largest |TD error| of a visit in any layer: rewards are at most 2 and values no larger than 20.
const LARGEST_ERROR: f64 = 2.0 + 1.9 * 20.0;

#[test]
fn pivots_give_the_values_of_all_states_within_their_bound() {
    let log = log();
    // States of the log, others among them, and some so far out that no pivot is near.
    let places = Matrix::from_fn(400, 2, |i, a| match i % 4 {
        0 => log.features()[(i, a)],
        1 | 2 => 0.01 * (i as f64 - 200.0) * (1.0 - 2.0 * a as f64),
        _ => 0.2 * (i as f64 - 200.0),
    });
    for (kernel, temperature, layers) in
        [(KernelName::Rbf, 2.0, 60), (KernelName::Rbf, 0.7, 9), (KernelName::Softmax, 3.0, 30)]
    {
        let plain = softmax_td(kernel, temperature, layers, true);
        let (dense, short) = (fit(&plain, &log), fit(&with_keys(plain, &log), &log));
        assert_eq!(dense.averaging(), None);
        let averaging = short.averaging().unwrap();
        assert_eq!(averaging.name, "pivots", "{kernel:?} {temperature}: {averaging:?}");
        let bound = averaging.bound.unwrap();
        assert!(bound > 0.0 && bound <= 1e-3 && averaging.rank < 500, "{averaging:?}");
        // What every layer adds at most, if none enlarges the errors of those before.
        let most = f64::from(layers as u32) * bound * LARGEST_ERROR;
        let apart = gap(dense.values().as_slice(), short.values().as_slice());
        assert!(apart < most, "{kernel:?} {temperature}: {apart:e} of {most:e}");
        let [a, b] = [&dense, &short].map(|fits| fits.predict(&places).unwrap());
        let apart = gap(a.as_slice(), b.as_slice());
        assert!(apart < most, "{kernel:?} {temperature}: {apart:e} of {most:e}");
        let [a, b] = [&dense, &short].map(|fits| fits.effective(&places).unwrap());
        for (a, b) in a.iter().zip(&b) {
            // Of squares of weights the bound is that of weights times how uneven they are, for which a hundred is much.
            assert!((a - b).abs() <= 100.0 * bound * a, "{kernel:?} {temperature}: {a} {b}");
        }
    }
}

#[test]
fn no_layers_leave_the_constant_everywhere() {
    let log = log();
    let fits = fit(&with_keys(softmax_td(KernelName::Rbf, 2.0, 0, false), &log), &log);
    assert_eq!(fits.averaging().unwrap().name, "pivots");
    assert!(fits.values().as_slice().iter().all(|v| *v == 0.0));
    let far = Matrix::from_vec(1, 2, vec![1e3, 0.0]);
    assert!(fits.predict(&far).unwrap().as_slice().iter().all(|v| *v == 0.0));
}

#[test]
fn landmarks_stay_where_the_kernel_is_narrow_or_has_no_pivots_or_states_are_few() {
    let log = log();
    for (kernel, temperature, why) in
        [(KernelName::Rbf, 1e-3, "the kernel is narrow"), (KernelName::Elu1, 1.0, "not exponential")]
    {
        let fits = fit(&with_keys(softmax_td(kernel, temperature, 3, true), &log), &log);
        let averaging = fits.averaging().unwrap();
        assert!(averaging.is_by_landmarks() && averaging.rank == 64, "{averaging:?}");
        assert!(averaging.reason.contains(why), "{averaging:?}");
    }
    let small = random_log(3, 300, 500, 9, 0.9);
    let fits = fit(&with_keys(softmax_td(KernelName::Rbf, 2.0, 3, true), &small), &small);
    assert_eq!(fits.averaging().unwrap().name, "landmarks");
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let log = log();
    let method = with_keys(softmax_td(KernelName::Rbf, 2.0, 20, true), &log);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fits = fit(&method, &log);
            let found = [fits.values().clone(), fits.predict(log.features()).unwrap()];
            found.iter().flat_map(|m| m.as_slice()).map(|x| x.to_bits()).collect::<Vec<u64>>()
        })
    };
    assert_eq!(run(1), run(3));
}
