//! Families, task sources and the streams they draw from.
#![allow(missing_docs)]

use ictd::random::{Purpose, Stream};
use ictd::task::{
    CartPole, Chain as _, Family, FeatureMap, FiniteTask, Kind, Physics, TaskError, TaskSource as _,
    chain_edges,
};
use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

fn stream(index: u64) -> Stream {
    Stream::new(5, Purpose::Task, index)
}

/// Where names are listed for people the list is whole.
#[test]
fn the_table_of_keys_knows_every_family() {
    let key = ictd::pretrain::Key::ALL.into_iter().find(|key| key.name == "task.kind").unwrap();
    assert_eq!(key.range, format!("{} or own", Kind::names()));
}

#[test]
fn every_name_is_a_family_that_draws_what_it_says() {
    for kind in Kind::NAMED {
        let name = kind.as_str();
        assert_eq!((name.parse(), kind.to_string().as_str()), (Ok(kind), name));
        assert_eq!(serde_json::to_value(kind).unwrap(), name);
        let family = Family::of(kind);
        family.check().unwrap();
        let chain = family.draw_chain(&mut stream(0)).unwrap();
        let table = chain.table();
        assert_eq!(table.features.len(), table.rewards.len() * family.feature_dim(), "{name}");
        match family.draw(&mut stream(0)) {
            // The same stream makes the same task on both ways.
            Ok(task) => {
                assert_eq!(table.features, task.features().as_slice(), "{name}");
                assert_eq!(table.rewards, task.mrp().rewards(), "{name}");
                assert_eq!(table.values, Some(task.values()), "{name}");
                assert!(family.is_exact() && task.mrp().num_states() <= family.num_states());
            }
            Err(error) => assert!(matches!(error, TaskError::Unknown(_)) && !family.is_exact(), "{name}"),
        }
    }
    assert_eq!("own".parse::<Kind>(), Err(TaskError::Name("own".into())));
}

#[test]
fn feature_maps_change_features_and_nothing_else() {
    let base = Family { num_states: 6, ..Family::paper() };
    let raw = base.draw(&mut stream(1)).unwrap();
    for feature_map in [FeatureMap::OneHot, FeatureMap::UnitNorm, FeatureMap::Raw] {
        let family = Family { feature_map, score_scale: 4.0, ..base.clone() };
        let task = family.draw(&mut stream(1)).unwrap();
        assert_eq!(task.mrp(), raw.mrp());
        assert_eq!(task.features().num_cols(), family.feature_dim());
        for s in 0..6 {
            let length = |t: &FiniteTask| t.features().row(s).iter().map(|x| x * x).sum::<f64>().sqrt();
            let expected = if feature_map == FeatureMap::Raw { 2.0 * length(&raw) } else { 2.0 };
            // Four squares, a root, a division: a few units in the last place of 2.2e-16.
            assert!((length(&task) - expected).abs() < 1e-15 * expected, "{feature_map:?}");
        }
    }
}

#[test]
fn each_key_outside_its_range_is_named() {
    let broken: [(&str, Kind, fn(&mut Family)); 10] = [
        ("states", Kind::Boyan, |f| f.num_states = 2),
        ("states", Kind::Figure1, |f| f.num_states = 4),
        ("states", Kind::Cartpole, |f| f.num_states = 33),
        ("states", Kind::Dense, |f| (f.num_states, f.feature_map) = (2001, FeatureMap::OneHot)),
        ("features", Kind::Coin, |f| f.feature_dim = 0),
        ("gamma", Kind::Loop, |f| f.gamma = f64::NAN),
        ("threshold", Kind::Loop, |f| f.threshold = 1.0),
        ("score-scale", Kind::Boyan, |f| f.score_scale = 0.0),
        ("one-hot", Kind::Cartpole, |f| f.feature_map = FeatureMap::OneHot),
        ("continuous", Kind::Boyan, |f| f.feature_map = FeatureMap::Coordinates),
    ];
    for (key, kind, breaks) in broken {
        let mut family = Family::of(kind);
        breaks(&mut family);
        let error = family.check().unwrap_err();
        assert!(matches!(&error, TaskError::Size { field, .. } if *field == key), "{key}: {error}");
    }
}

#[test]
fn broken_parts_are_named() {
    let cart = CartPole::generate(&Family::of(Kind::Cartpole), &mut stream(0)).unwrap();
    let physics = *cart.physics();
    let new = |physics, rewards| CartPole::new(physics, 0.9, rewards, None).unwrap_err().to_string();
    assert!(new(physics, vec![0.0; 17]).starts_with("rewards is 17 numbers"));
    assert!(new(Physics { force: f64::NAN, ..physics }, vec![0.0]).starts_with("force is NaN"));
    let mad = Physics { right_probability: 1.5, ..physics };
    assert!(new(mad, vec![0.0]).starts_with("right_probability is 1.5"));
    assert!(new(physics, vec![f64::INFINITY]).starts_with("reward of state 0"));
}

/// The address is seed 9 and stream (purpose, index), as written down when the purposes were numbered.
#[test]
fn purposes_keep_their_numbers_and_streams_serve_rand() {
    let purposes = [
        Purpose::Task,
        Purpose::Trajectory,
        Purpose::Prompt,
        Purpose::MonteCarlo,
        Purpose::Init,
        Purpose::Query,
        Purpose::Evaluation,
    ];
    for (purpose, number) in purposes.into_iter().zip(1u64..) {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        rng.set_stream((number << 48) | 5);
        let mut stream = Stream::new(9, purpose, 5);
        // Through rand's trait, as its distributions do.
        assert_eq!((stream.next_u64(), stream.next_u32()), (rng.next_u64(), rng.next_u32()));
    }
}

#[test]
fn boyan_s_support_is_the_chain_of_figure_4() {
    let task = Family::paper().draw(&mut Stream::new(1, Purpose::Task, 0)).unwrap();
    let p = task.mrp().transitions().matrix();
    let edges = chain_edges(64);
    for (s, next) in (0..64 * 64).map(|k| (k / 64, k % 64)) {
        assert_eq!(p[(s, next)] > 0.0, edges.contains(&(s, next)), "({s}, {next})");
    }
}

#[test]
fn representable_values_are_linear_in_the_features() {
    let task = Family::paper().draw(&mut Stream::new(2, Purpose::Task, 0)).unwrap();
    // The exact values come from ⟨w, x⟩; solving the Bellman equation is the other way.
    for (linear, solved) in task.values().iter().zip(task.mrp().values().unwrap()) {
        // Values of order 1, condition number at most (1 + γ)/(1 - γ) = 19.
        assert!((linear - solved).abs() < 1e-13);
    }
}

#[test]
fn free_rewards_lie_in_the_unit_interval_and_values_solve_bellman() {
    let family = Family { representable: false, ..Family::paper() };
    let task = family.draw(&mut Stream::new(2, Purpose::Task, 0)).unwrap();
    assert!(task.mrp().rewards().iter().all(|r| r.abs() < 1.0));
    for (v, tv) in task.values().iter().zip(task.mrp().bellman(task.values())) {
        // Values of order 10, condition number at most (1 + γ)/(1 - γ) = 19.
        assert!((v - tv).abs() < 1e-13);
    }
}

/// The chain without its matrix is the task of the generator, to the last bit.
#[test]
fn fast_chains_are_the_generator_s_tasks() {
    for index in 0..20 {
        let mut fast = Family::paper().draw_chain(&mut stream(index)).unwrap();
        let task = Family::paper().draw(&mut stream(index)).unwrap();
        assert_eq!(fast.table(), task.table());
        let mut states = Vec::new();
        let walk = || Stream::new(3, Purpose::Trajectory, index);
        fast.sample_states(331, &mut walk(), &mut states);
        assert_eq!(states, task.mrp().sample_states(331, &mut walk()));
        for (a, b) in fast.stationary().unwrap().iter().zip(task.stationary_distribution()) {
            // Both without subtractions, sums of at most 64 terms.
            assert!((a - b).abs() <= 1e-14 * b, "{a} {b}");
        }
    }
}

/// Drawing refuses what checking refuses.
#[test]
fn sizes_out_of_range_are_refused_when_drawing() {
    let small = Family { num_states: 2, ..Family::paper() };
    let flat = Family { feature_dim: 0, ..Family::paper() };
    for (family, key) in [(small, "states"), (flat, "features")] {
        let refused = |e: Option<TaskError>| matches!(e, Some(TaskError::Size { field, .. }) if field == key);
        assert!(
            refused(family.draw(&mut stream(0)).err()) && refused(family.draw_chain(&mut stream(0)).err())
        );
    }
}

#[test]
fn every_transition_of_a_dense_task_is_possible() {
    let family = Family { num_states: 7, feature_dim: 3, gamma: 0.8, ..Family::of(Kind::Dense) };
    let task = family.draw(&mut stream(0)).unwrap();
    assert!(task.mrp().transitions().matrix().as_slice().iter().all(|&p| p > 0.0));
    assert_eq!(task.features().num_cols(), 3);
}

#[test]
fn the_loop_is_there_and_self_loops_are_not() {
    for index in 0..50 {
        let family = Family::of(Kind::Figure1);
        let task = family.draw(&mut Stream::new(4, Purpose::Task, index)).unwrap();
        let m = task.mrp().num_states();
        assert!((5..=15).contains(&m));
        let p = task.mrp().transitions().matrix();
        assert!((0..m).all(|i| p[(i, i)] == 0.0 && p[(i, (i + 1) % m)] > 0.0));
    }
}

/// The share of kept edges over 200 tasks of 10 states: 16 000 candidate edges, five standard errors.
#[test]
fn edges_are_kept_with_one_minus_threshold() {
    let family = Family { feature_dim: 2, threshold: 0.3, representable: false, ..Family::of(Kind::Loop) };
    let mut kept = 0;
    for index in 0..200 {
        let task = family.draw(&mut Stream::new(8, Purpose::Task, index)).unwrap();
        let p = task.mrp().transitions().matrix();
        kept += p.as_slice().iter().filter(|&&x| x > 0.0).count() - 10;
    }
    let share = kept as f64 / 16_000.0;
    assert!((share - 0.7).abs() < 5.0 * (0.21f64 / 16_000.0).sqrt(), "{share}");
}

#[test]
fn impossible_graphs_are_refused() {
    let base = Family { num_states: 5, feature_dim: 2, representable: false, ..Family::of(Kind::Loop) };
    for threshold in [1.0, -0.1, f64::NAN] {
        let family = Family { threshold, ..base.clone() };
        let drawn = family.draw(&mut stream(0));
        assert!(matches!(drawn, Err(TaskError::Size { field: "threshold", .. })));
    }
    // So few edges that every draw is the bare loop, which has period 5.
    let sparse = Family { threshold: 1.0 - 1e-12, ..base };
    assert!(matches!(sparse.draw(&mut stream(0)), Err(TaskError::NoErgodicDraw { .. })));
}

fn cart_pole(gamma: f64) -> CartPole {
    let family = Family { feature_dim: 5, gamma, ..Family::of(Kind::Cartpole) };
    CartPole::generate(&family, &mut Stream::new(1, Purpose::Task, 0)).unwrap()
}

#[test]
fn states_stay_within_the_limits_and_restarts_happen() {
    let task = cart_pole(0.9);
    let run = task.rollout(5000, &mut Stream::new(1, Purpose::Trajectory, 0));
    assert!(run.iter().all(|s| s[0].abs() <= 2.4 && s[2].abs() <= 12f64.to_radians()));
    assert!(run.iter().skip(1).any(|s| s.iter().all(|x| x.abs() <= 0.05)), "no restart");
}

#[test]
fn bins_cover_the_box() {
    let task = cart_pole(0.9);
    assert_eq!(task.bin([-9.0, -9.0, -9.0, -9.0]), 0);
    assert_eq!(task.bin([9.0, 9.0, 9.0, 9.0]), 15);
    assert_eq!(task.bin([0.1, -0.1, 0.1, -0.1]), 0b1010);
}

/// γ = 0: the value is the reward, without error.
#[test]
fn myopic_value_is_the_reward() {
    let task = cart_pole(0.0);
    let s = [0.0; 4];
    let estimate = task.monte_carlo_value(s, 10, 1e-6, &mut Stream::new(1, Purpose::MonteCarlo, 0));
    assert_eq!((estimate.mean, estimate.sem), (task.reward(s), 0.0));
}

/// The chain samples the same run, and a return from it that its rewards confirm.
#[test]
fn chains_are_runs() {
    let task = cart_pole(0.9);
    let run = task.rollout(30, &mut Stream::new(1, Purpose::Trajectory, 0));
    let mut chain = task.draw_chain(&mut stream(0)).unwrap();
    let mut states = Vec::new();
    chain.sample_states(30, &mut Stream::new(1, Purpose::Trajectory, 0), &mut states);
    assert_eq!(chain.table().rewards, run.iter().map(|&s| task.reward(s)).collect::<Vec<_>>());
    assert_eq!(chain.table().values, None);
    assert_eq!(chain.table().features, run.iter().flat_map(|&s| task.features(s)).collect::<Vec<_>>());
    let mut stream = Stream::new(1, Purpose::MonteCarlo, 0);
    let sampled = chain.sample_return(0, 0.5, 0.1, &mut stream);
    let (mut state, mut stream) = (run[0], Stream::new(1, Purpose::MonteCarlo, 0));
    let mut total = 0.0;
    // 1, 1/2, 1/4 and 1/8 are above the tolerance.
    for k in 0..4 {
        total += 0.5f64.powi(k) * task.reward(state);
        state = task.step(state, &mut stream);
    }
    assert_eq!(sampled, total);
}
