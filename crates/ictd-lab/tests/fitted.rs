//! Logs from arrays, and estimators that are asked again and again.
#![allow(missing_docs)]

use ictd_lab::logs::{Arrays, Missing, Values, queries_of};
use ictd_lab::studies::evaluate::{Estimator, EvaluateConfig, Fitted, Logged, run};
use ictd_lab::{LabError, Progress};

/// Two features, 24 episodes of four steps; every third is cut short.
fn arrays() -> Arrays {
    let (mut states, mut rewards, mut episode, mut terminated) = (vec![], vec![], vec![], vec![]);
    for k in 0..24usize {
        let is_cut = k.is_multiple_of(3);
        for t in 0..4 + usize::from(is_cut) {
            let (x, y) = (((k * 7 + t * 3) % 5) as f64, ((k + t * t) % 3) as f64);
            states.extend([x, y]);
            rewards.push(if t == 4 { f64::NAN } else { x - 0.5 * y + 0.1 * (k % 4) as f64 });
            episode.push(k as i64);
            terminated.push(i64::from(!is_cut && t == 3));
        }
    }
    Arrays {
        columns: vec!["x".into(), "y".into()],
        is_label: false,
        states: Values::Float(states),
        next: None,
        rewards: ("rewards".into(), rewards),
        episode: Some(Values::Whole(episode)),
        time: None,
        terminated: Some(Values::Whole(terminated)),
        truncated: None,
        missing: Missing::Refuse,
    }
}

fn logged(arrays: Arrays, config: &EvaluateConfig) -> Result<Logged, LabError> {
    Logged::of_arrays(arrays, config, &Progress::default())
}

fn refused(arrays: Arrays) -> String {
    logged(arrays, &EvaluateConfig::new(0.9)).unwrap_err().to_string()
}

#[test]
fn what_is_fitted_says_what_an_evaluation_says() {
    for estimator in Estimator::ALL {
        let config = EvaluateConfig { estimator, ..EvaluateConfig::new(0.9) };
        let evaluation =
            run(&logged(arrays(), &config).unwrap(), None, &config, &Progress::default()).unwrap();
        let fitted = Fitted::new(logged(arrays(), &config).unwrap(), config, &Progress::default()).unwrap();
        let again = fitted.evaluation(&Progress::default()).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&evaluation).unwrap());
        let states = fitted.states();
        let ictd_lab::logs::States::Features { rows, .. } = states.0 else { panic!("features expected") };
        let queries = queries_of(Values::Float(rows.as_slice().to_vec()), fitted.reading()).unwrap();
        let values = fitted.values(&queries, &Progress::default()).unwrap();
        let rows = fitted.rows(&queries, &Progress::default()).unwrap();
        for ((value, row), own) in values.iter().zip(&rows).zip(evaluation.rows()) {
            // Values alone are summed in another order than beside resamples.
            assert!((value - row.interval().value).abs() <= 1e-12 * value.abs().max(1.0), "{estimator:?}");
            assert_eq!(row.interval(), own.interval(), "{estimator:?}");
        }
    }
}

#[test]
fn one_episode_has_values_and_is_refused() {
    let mut one = arrays();
    one.episode = Some(Values::Whole(vec![0; 104]));
    one.terminated = None;
    one.rewards.1.iter_mut().filter(|r| r.is_nan()).for_each(|r| *r = 0.0);
    for estimator in Estimator::ALL {
        let config = EvaluateConfig { estimator, ..EvaluateConfig::new(0.9) };
        let fitted =
            Fitted::new(logged(one.clone(), &config).unwrap(), config, &Progress::default()).unwrap();
        assert!(fitted.is_refused());
        let queries = queries_of(Values::Float(vec![1.0, 2.0, 9.0, 9.0]), fitted.reading()).unwrap();
        assert!(
            fitted.values(&queries, &Progress::default()).unwrap().iter().all(|v| v.is_finite()),
            "{estimator:?}"
        );
        let rows = fitted.rows(&queries, &Progress::default()).unwrap();
        assert_eq!(rows[0].interval().low, rows[1].interval().low, "{estimator:?}");
    }
}

#[test]
fn arrays_are_refused_by_name_and_row() {
    let with = |change: &dyn Fn(&mut Arrays)| {
        let mut given = arrays();
        change(&mut given);
        refused(given)
    };
    let text = with(&|a| a.rewards.1[2] = f64::NAN);
    assert!(text.starts_with("arrays: row 2, column rewards: found no value"), "{text}");
    let text = with(&|a| a.states = Values::Float(vec![f64::INFINITY; 208]));
    assert!(text.starts_with("arrays: row 0, column x: found 'inf'"), "{text}");
    let text = with(&|a| a.episode = Some(Values::Whole(vec![0; 3])));
    assert_eq!(text, "episode: found 3 rows, expected 104 as X has");
    let text = with(&|a| a.states = Values::Float(Vec::new()));
    assert_eq!(text, "X: found 0 rows, expected at least one transition");
    let text = with(&|a| a.columns.clear());
    assert!(text.contains("0 feature(s)"), "{text}");
    let text = with(&|a| a.terminated = Some(Values::Whole(vec![7; 104])));
    assert!(text.starts_with("arrays: row 0, column terminated: found '7'"), "{text}");
}

#[test]
fn episodes_of_arrays_may_be_interleaved() {
    let config = EvaluateConfig::new(0.9);
    let fitted = |arrays| Fitted::new(logged(arrays, &config).unwrap(), config.clone(), &Progress::default());
    let given = arrays();
    // All first steps, all second steps, …
    let episodes = match &given.episode {
        Some(Values::Whole(list)) => list.clone(),
        _ => unreachable!(),
    };
    let step = |row: usize| episodes[..row].iter().filter(|e| **e == episodes[row]).count();
    let mut order: Vec<usize> = (0..episodes.len()).collect();
    order.sort_by_key(|&row| (step(row), row));
    let floats = |of: &Values| match of {
        Values::Float(list) => list.clone(),
        _ => unreachable!(),
    };
    let whole = |of: &Option<Values>| match of {
        Some(Values::Whole(list)) => Some(Values::Whole(order.iter().map(|&row| list[row]).collect())),
        _ => unreachable!(),
    };
    let states = floats(&given.states);
    let mixed = Arrays {
        states: Values::Float(order.iter().flat_map(|&row| states[2 * row..2 * row + 2].to_vec()).collect()),
        rewards: ("rewards".into(), order.iter().map(|&row| given.rewards.1[row]).collect()),
        episode: whole(&given.episode),
        terminated: whole(&given.terminated),
        ..given.clone()
    };
    let queries = |fitted: &Fitted| queries_of(Values::Float(vec![1.0, 2.0]), fitted.reading()).unwrap();
    let (straight, mixed) = (fitted(given).unwrap(), fitted(mixed).unwrap());
    assert_eq!(
        straight.values(&queries(&straight), &Progress::default()).unwrap(),
        mixed.values(&queries(&mixed), &Progress::default()).unwrap()
    );
}
