//! Logs of episodes: counting, order, scaling, cells, refusals.

mod common;

use std::collections::BTreeMap;

use ictd::evaluate::{Cells, Grid, Log, LogBuilder, LogError, Sample, Scaler, Scaling};
use ictd::{End, Matrix, Purpose, Stream};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Episode {
    key: u64,
    states: Vec<u32>,
    rewards: Vec<f64>,
    end: End,
    times: Vec<f64>,
}

/// Episodes over `m` states; every third is truncated.
fn draw(seed: u64, count: usize, m: u32, longest: u32) -> Vec<Episode> {
    let mut stream = Stream::new(seed, Purpose::Trajectory, 0);
    (0..count)
        .map(|e| {
            let steps = 1 + stream.below(longest) as usize;
            let end = if e % 3 == 0 { End::Truncated } else { End::Terminated };
            let states = (0..steps + usize::from(end == End::Truncated)).map(|_| stream.below(m)).collect();
            let rewards = (0..steps).map(|_| 3.0 + stream.normal()).collect();
            let start = stream.uniform_in(-40.0, 1000.0);
            let times = (0..steps).map(|t| start + t as f64).collect();
            Episode { key: (e as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15), states, rewards, end, times }
        })
        .collect()
}

/// One feature, a different one for every state, not in order.
fn features(m: u32) -> Matrix {
    Matrix::from_fn(m as usize, 1, |s, _| ((s * 7 + 3) % m as usize) as f64)
}

fn build(episodes: &[Episode], gamma: f64, lambda: Option<f64>, features: Matrix) -> Log {
    let mut builder = LogBuilder::new(gamma, lambda).unwrap();
    for e in episodes {
        builder.episode(e.key, &e.states, &e.rewards, e.end, Some(&e.times)).unwrap();
    }
    builder.build(features).unwrap()
}

/// All cells of a grid by state, second state and part.
fn cells<T: Copy>(grid: &Grid<T>) -> BTreeMap<(usize, Option<usize>, usize), T> {
    let pairs = (0..grid.num_states()).flat_map(|s| grid.pairs_of(s).map(move |pair| (s, pair)));
    pairs.flat_map(|(s, p)| grid.cells(p).map(move |(part, cell)| ((s, grid.to(p), part), *cell))).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-11 * (1.0 + b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_log_holds_what_a_plain_count_finds(seed in 0u64..1000, count in 1usize..9, m in 1u32..6, longest in 1u32..12) {
        let (episodes, gamma) = (draw(seed, count, m, longest), 0.8);
        let log = build(&episodes, gamma, None, features(m));
        let state = |s: u32| log.number_of(s);
        let mut keys: Vec<u64> = episodes.iter().map(|e| e.key).collect();
        keys.sort_unstable();
        let mut stream = Stream::new(seed, Purpose::Query, 0);
        let values = stream.uniform_vec(log.num_states(), -5.0, 5.0);
        let mut rewards: BTreeMap<(usize, Option<usize>, usize), Vec<f64>> = BTreeMap::new();
        let mut phases = rewards.clone();
        let mut losses = vec![0.0; count];
        let mut initial = vec![0.0; log.num_states()];
        for e in &episodes {
            let block = keys.iter().position(|key| *key == e.key).unwrap();
            initial[state(e.states[0])] += 1.0;
            for (t, &r) in e.rewards.iter().enumerate() {
                let (from, to) = (state(e.states[t]), e.states.get(t + 1).map(|&s| state(s)));
                rewards.entry((from, to, block)).or_default().push(r);
                let phase = if t == 0 { 0 } else { (t as f64).log2().floor() as usize + 1 };
                phases.entry((from, to, phase)).or_default().push(r);
                let mut ahead = 0.0;
                for (k, r) in e.rewards[t..].iter().enumerate() {
                    ahead += gamma.powi(k as i32) * r;
                }
                if e.end == End::Truncated {
                    let last = state(e.states[e.rewards.len()]);
                    ahead += gamma.powi((e.rewards.len() - t) as i32) * values[last];
                }
                losses[block] += (values[from] - ahead).powi(2);
            }
        }
        for (grid, expected) in [(log.transitions(), &rewards), (log.phases(), &phases)] {
            let found = cells(grid);
            prop_assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            for (place, rewards) in expected {
                let cell = found[place];
                let mean = rewards.iter().sum::<f64>() / rewards.len() as f64;
                prop_assert_eq!(cell.count, rewards.len() as f64);
                prop_assert!(close(cell.sum, rewards.iter().sum()));
                prop_assert!(close(cell.spread, rewards.iter().map(|r| (r - mean).powi(2)).sum()));
                prop_assert!(close(cell.squares(0.7), rewards.iter().map(|r| (r + 0.7).powi(2)).sum()));
            }
        }
        for (found, expected) in log.return_losses(&values).into_iter().zip(losses) {
            prop_assert!(close(found, expected), "{} {}", found, expected);
        }
        prop_assert_eq!(log.whole().initial(), initial);
        let total: usize = episodes.iter().map(|e| e.rewards.len()).sum();
        prop_assert_eq!(log.num_transitions(), total);
        prop_assert_eq!(cells(log.calendar()).values().map(|cell| cell.count).sum::<f64>(), total as f64);
    }
}

/// Everything about a log but the caller's numbers.
fn contents(log: &Log) -> String {
    let sample = log.whole();
    let range = sample.return_range();
    let grids = (log.transitions(), log.returns(), log.phases(), log.calendar(), log.stretches());
    let traces = {
        use ictd::evaluate::Method;
        use ictd::evaluate::method::{Basis, Lstd};
        Lstd { basis: Basis::Table, traces: true, ridge: 0.0 }.fit(&sample).unwrap().values().to_vec()
    };
    format!("{:?} {:?} {grids:?} {range:?} {traces:?}", log.features(), log.block_sizes())
}

#[test]
fn order_of_episodes_and_numbers_of_states_do_not_matter() {
    for count in [40, 700] {
        let episodes = draw(5, count, 6, 20);
        let log = build(&episodes, 0.9, Some(0.6), features(6));
        assert_eq!(log.num_blocks(), if count == 40 { 40 } else { log.num_blocks().clamp(100, 128) });
        assert_eq!(log.num_episodes(), count);
        let mut shuffled = episodes.clone();
        let mut stream = Stream::new(6, Purpose::Prompt, 0);
        for k in (1..count).rev() {
            shuffled.swap(k, stream.below(k as u32 + 1) as usize);
        }
        for e in &mut shuffled {
            e.states.iter_mut().for_each(|s| *s = 5 - *s);
        }
        let x = features(6);
        let renumbered = Matrix::from_fn(6, 1, |s, a| x[(5 - s, a)]);
        let other = build(&shuffled, 0.9, Some(0.6), renumbered);
        assert_eq!(contents(&log), contents(&other));
        assert_eq!(log.number_of(2), other.number_of(3));
    }
}

#[test]
fn stretches_of_time_hold_all_times_whatever_their_scale() {
    for (scale, offset) in [(1.0, 0.0), (1e-9, 0.0), (1e12, -3e14), (3.0, 1.7e9)] {
        let mut builder = LogBuilder::new(1.0, None).unwrap();
        let times: Vec<f64> = (0..100).map(|t| offset + scale * f64::from(t * 37 % 100)).collect();
        builder.episode(0, &[0; 100], &[1.0; 100], End::Terminated, Some(&times)).unwrap();
        let log = builder.build(Matrix::zeros(1, 1)).unwrap();
        let stretches = log.stretches();
        assert!((8..=16).contains(&stretches.len()), "{stretches:?}");
        for ((_, _, part), cell) in cells(log.calendar()) {
            let (from, to) = stretches[part];
            let inside = times.iter().filter(|t| (from..to).contains(*t)).count();
            // The episode's last transition is a pair of its own.
            assert!(cell.count <= inside as f64 && inside > 0);
        }
        assert_eq!(cells(log.calendar()).values().map(|cell| cell.count).sum::<f64>(), 100.0);
    }
}

#[test]
fn a_log_of_a_context_has_its_episodes_and_its_queries() {
    let context = common::episodes(3, 2, 5, &[4, 7, 5]);
    let log = Log::from_context(&context, 0.9).unwrap();
    assert_eq!((log.num_episodes(), log.num_transitions(), log.num_truncated()), (3, 16, 2));
    let query = context.num_columns() - 1;
    assert_eq!(log.features().row(log.number_of(query as u32)), context.features_of(query));
    assert_eq!(log.whole().visits()[log.number_of(query as u32)], 0.0);
}

#[test]
fn standardized_features_have_mean_0_and_deviation_1_over_visits() {
    let mut builder = LogBuilder::new(0.9, None).unwrap();
    builder.episode(0, &[0, 1, 1, 2], &[1.0; 4], End::Terminated, None).unwrap();
    let x = Matrix::from_rows(&[[1e200, 0.1, 3.0], [-1e200, 0.1, 1.0], [3e200, 0.1, 2.0]]).unwrap();
    let log = builder.build(x).unwrap();
    let scaler = Scaler::of(Scaling::Standardize, &log);
    assert_eq!(scaler.constant_features(), [1]);
    let scaled = log.with_features(&scaler.apply(log.features())).unwrap();
    let sample = scaled.whole();
    for a in [0, 2] {
        let mean = |f: &dyn Fn(f64) -> f64| -> f64 {
            (0..3).map(|s| sample.visits()[s] / 4.0 * f(scaled.features()[(s, a)])).sum()
        };
        assert!(mean(&|x| x).abs() < 1e-15 && (mean(&|x| x * x) - 1.0).abs() < 1e-14);
    }
    assert!((0..3).all(|s| scaled.features()[(s, 1)] == 0.0));
    assert_eq!(Scaler::of(Scaling::None, &log).apply(log.features()), *log.features());
}

#[test]
fn states_that_scaling_makes_equal_become_one() {
    let mut builder = LogBuilder::new(0.5, None).unwrap();
    builder.episode(0, &[0, 1, 2, 3], &[1.0, 2.0, 4.0, 8.0], End::Terminated, None).unwrap();
    let log =
        builder.build(Matrix::from_rows(&[[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 0.0]]).unwrap()).unwrap();
    let unit = log.with_features(&Scaler::of(Scaling::UnitNorm, &log).apply(log.features())).unwrap();
    assert_eq!(unit.num_states(), 3);
    assert_eq!(unit.number_of(0), unit.number_of(1));
    let s = unit.number_of(0);
    assert_eq!((unit.whole().visits()[s], unit.whole().reward_sums()[s]), (2.0, 3.0));
    // Returns 1 + 2/2 + 4/4 + 8/8 and 2 + 4/2 + 8/4.
    assert_eq!(unit.whole().return_sums()[s], 4.0 + 6.0);
}

#[test]
fn cells_lose_no_transition_and_say_how_wide_they_are() {
    let mut stream = Stream::new(8, Purpose::Trajectory, 0);
    let x = Matrix::from_fn(300, 2, |_, _| stream.uniform());
    let mut builder = LogBuilder::new(0.9, Some(0.5)).unwrap();
    for e in 0..10u32 {
        let states: Vec<u32> = (30 * e..30 * e + 30).collect();
        let end = if e % 2 == 0 { End::Truncated } else { End::Terminated };
        let steps = 30 - usize::from(end == End::Truncated);
        builder.episode(u64::from(e), &states, &stream.uniform_vec(steps, 0.0, 1.0), end, None).unwrap();
    }
    let log = builder.build(x).unwrap();
    let found = Cells::of(&log, 40).unwrap();
    let again = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert_eq!(again.install(|| Cells::of(&log, 40)).unwrap(), found);
    assert_eq!(found.log().num_states(), 40);
    assert!(found.radius() > 0.0 && found.radius() < 0.3);
    let (fine, coarse) = (log.whole(), found.log().whole());
    let sum = |x: &[f64]| x.iter().sum::<f64>();
    let sums =
        |s: &Sample<'_>| [sum(s.visits()), sum(s.reward_sums()), sum(&s.return_sums()), sum(&s.initial())];
    for (a, b) in sums(&fine).into_iter().zip(sums(&coarse)) {
        assert!(close(a, b));
    }
    // The loss of values that are the same throughout a cell is the same for cells and for states.
    let values = stream.uniform_vec(40, -1.0, 1.0);
    let spread: Vec<f64> = found.cell_of().iter().map(|&c| values[c as usize]).collect();
    for (a, b) in found.log().return_losses(&values).into_iter().zip(log.return_losses(&spread)) {
        assert!(close(a, b));
    }
    let all = Cells::of(&log, 300).unwrap();
    assert_eq!((all.log(), all.radius()), (&log, 0.0));
}

#[test]
fn equal_rows_are_one_state_and_unused_rows_are_states() {
    let mut builder = LogBuilder::new(0.5, None).unwrap();
    builder.episode(1, &[0, 2], &[1.0, 1.0], End::Terminated, None).unwrap();
    let log = builder.build(Matrix::from_vec(4, 1, vec![0.0, 5.0, -0.0, -7.0])).unwrap();
    assert_eq!(log.num_states(), 3);
    assert_eq!((log.number_of(0), log.number_of(2)), (1, 1));
    assert_eq!(log.whole().visits(), [0.0, 2.0, 0.0]);
}

#[test]
fn what_is_no_log_is_refused() {
    let refused = |gamma: f64, states: &[u32], rewards: &[f64], end: End, times: Option<&[f64]>| {
        LogBuilder::new(gamma, None).and_then(|mut b| b.episode(7, states, rewards, end, times)).unwrap_err()
    };
    let (done, cut) = (End::Terminated, End::Truncated);
    assert!(matches!(LogBuilder::new(f64::NAN, None), Err(LogError::Gamma(_))));
    assert!(matches!(LogBuilder::new(1.1, None), Err(LogError::Gamma(_))));
    assert!(matches!(LogBuilder::new(0.5, Some(f64::NAN)), Err(LogError::Lambda(_))));
    assert_eq!(refused(0.9, &[], &[], done, None), LogError::NoTransition { episode: 0 });
    assert_eq!(refused(0.9, &[0], &[1.0], cut, None), LogError::States { episode: 0, found: 1, expected: 2 });
    assert_eq!(refused(1.0, &[0, 1], &[1.0], cut, None), LogError::Undiscounted { episode: 0 });
    assert_eq!(refused(0.9, &[u32::MAX], &[1.0], done, None), LogError::StateNumber { episode: 0 });
    assert!(matches!(refused(0.9, &[0], &[f64::NAN], done, None), LogError::Reward { step: 0, .. }));
    assert_eq!(refused(0.9, &[0, 0], &[1e145, 1.0], done, None), LogError::Overflow { episode: 0 });
    assert_eq!(
        refused(0.9, &[0], &[1.0], done, Some(&[])),
        LogError::Times { episode: 0, found: 0, expected: 1 }
    );
    assert!(matches!(refused(0.9, &[0], &[1.0], done, Some(&[f64::INFINITY])), LogError::Time { .. }));
    let builder = LogBuilder::new(0.9, None).unwrap();
    assert_eq!(builder.build(Matrix::zeros(1, 1)).unwrap_err(), LogError::Empty);
    let mut builder = LogBuilder::new(0.9, None).unwrap();
    builder.episode(0, &[0, 1], &[1.0, 1.0], done, None).unwrap();
    let error = builder.clone().build(Matrix::zeros(1, 1)).unwrap_err();
    assert_eq!(error, LogError::Features { found: 1, expected: 2 });
    let error = builder.build(Matrix::from_vec(2, 1, vec![0.0, f64::NAN])).unwrap_err();
    assert!(matches!(error, LogError::Feature { row: 1, col: 0, .. }));
    // An episode that was refused leaves nothing behind.
    let mut builder = LogBuilder::new(0.9, None).unwrap();
    builder.episode(0, &[0], &[f64::NAN], done, None).unwrap_err();
    assert_eq!(builder.build(Matrix::zeros(1, 1)).unwrap_err(), LogError::Empty);
}
