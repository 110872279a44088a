//! Families, task sources and the streams they draw from.
#![allow(missing_docs)]

use ictd::random::{Purpose, Stream};
use ictd::task::{CartPole, Family, FeatureMap, FiniteTask, Kind, Physics, TaskError, TaskSource as _};
use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

fn stream(index: u64) -> Stream {
    Stream::new(5, Purpose::Task, index)
}

#[test]
fn every_name_is_a_family_that_draws_what_it_says() {
    for (name, kind) in Kind::NAMED {
        assert_eq!((name.parse::<Kind>(), kind.to_string().as_str()), (Ok(kind), name));
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
        ("coordinates", Kind::Boyan, |f| f.feature_map = FeatureMap::Coordinates),
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
