//! Contexts, their statistics and their prompts.
#![allow(missing_docs)]

use ictd::context::{Context, ContextBuilder, ContextError, ContextStatistics, End, Role};
use ictd::matrix::Matrix;
use ictd::prompt::{TokenMatrix, shift};
use ictd::random::{Purpose, Stream};

const X: [[f64; 2]; 3] = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];

#[test]
fn columns_follow_episodes_then_queries() {
    let context = Context::builder()
        .query(&[5.0, 5.0])
        .episode(&X, &[1.0, 2.0], End::Terminated)
        .episode(&X[..2], &[3.0], End::Truncated)
        .build()
        .unwrap();
    use Role::*;
    assert_eq!(context.roles(), [Source, Source, Terminal, Source, Last, Query]);
    assert_eq!(context.rewards(), [1.0, 2.0, 0.0, 3.0, 0.0, 0.0]);
    assert_eq!(context.features_of(5), [5.0, 5.0]);
    assert_eq!((context.num_transitions(), context.feature_dim()), (3, 2));
}

#[test]
fn each_mistake_has_its_own_error() {
    let build = |b: ContextBuilder| b.build().unwrap_err();
    assert_eq!(build(Context::builder()), ContextError::Empty);
    let lonely = Context::builder().episode(&X[..1], &[], End::Truncated);
    assert_eq!(build(lonely), ContextError::Empty);
    assert_eq!(
        build(Context::builder().episode(&X, &[1.0], End::Truncated)),
        ContextError::EpisodeLength { episode: 0, features: 3, rewards: 1 }
    );
    let ragged = [vec![0.0, 1.0], vec![1.0]];
    assert_eq!(
        build(Context::builder().episode(&ragged, &[1.0], End::Truncated)),
        ContextError::FeatureLength { episode: 0, row: 1, expected: 2, found: 1 }
    );
    let nan = [[0.0, f64::NAN], [1.0, 1.0]];
    assert!(matches!(
        build(Context::builder().episode(&nan, &[1.0], End::Truncated)),
        ContextError::FeatureValue { episode: 0, row: 0, entry: 1, .. }
    ));
    assert!(matches!(
        build(Context::builder().episode(&X[..2], &[f64::INFINITY], End::Truncated)),
        ContextError::RewardValue { episode: 0, entry: 0, .. }
    ));
    let fine = Context::builder().episode(&X, &[1.0, 2.0], End::Truncated);
    assert_eq!(
        build(fine.clone().query(&[1.0])),
        ContextError::QueryLength { query: 0, expected: 2, found: 1 }
    );
    assert!(matches!(
        build(fine.query(&[1.0, f64::NAN])),
        ContextError::QueryValue { query: 0, entry: 1, .. }
    ));
    let empty: [[f64; 0]; 2] = [[], []];
    assert_eq!(build(Context::builder().episode(&empty, &[1.0], End::Truncated)), ContextError::NoFeatures);
}

#[test]
fn rows_one_after_another_are_the_same_context() {
    let rows = Context::builder()
        .episode(&X, &[1.0, 2.0], End::Terminated)
        .episode(&X[1..], &[3.0], End::Truncated)
        .query(&[5.0, 5.0]);
    let flat = Context::builder()
        .flat_episode(X.as_flattened(), 2, &[1.0, 2.0], End::Terminated)
        .flat_episode(X[1..].as_flattened(), 2, &[3.0], End::Truncated)
        .query(&[5.0, 5.0]);
    assert_eq!(flat.build(), rows.build());
}

#[test]
fn rows_one_after_another_are_checked_as_rows_are() {
    let build = |features: &[f64], dim: usize, rewards: &[f64]| {
        Context::builder().flat_episode(features, dim, rewards, End::Truncated).build().unwrap_err()
    };
    assert_eq!(build(&[1.0, 2.0], 0, &[1.0]), ContextError::NoFeatures);
    assert_eq!(
        build(&[1.0; 6], 2, &[1.0]),
        ContextError::EpisodeLength { episode: 0, features: 3, rewards: 1 }
    );
    // Entries that make no whole row.
    let short = |row, found| ContextError::FeatureLength { episode: 0, row, expected: 2, found };
    assert_eq!(build(&[1.0; 3], 2, &[1.0]), short(1, 1));
    assert_eq!(build(&[1.0], 2, &[]), short(0, 1));
    assert!(matches!(
        build(&[0.0, 1.0, 2.0, f64::NAN], 2, &[1.0]),
        ContextError::FeatureValue { episode: 0, row: 1, entry: 1, .. }
    ));
    let other = Context::builder().episode(&X, &[1.0, 2.0], End::Truncated);
    assert_eq!(
        other.flat_episode(&[1.0; 2], 1, &[1.0], End::Truncated).build(),
        Err(ContextError::FeatureLength { episode: 1, row: 0, expected: 2, found: 1 })
    );
}

#[test]
fn small_example_by_hand() {
    let (a, b, c) = ([0.0], [1.0], [2.0]);
    let context = Context::builder()
        .episode(&[a, b, a, b, c], &[1.0, 2.0, 3.0, 4.0], End::Truncated)
        .episode(&[b, c], &[5.0], End::Terminated)
        .query(&a)
        .build()
        .unwrap();
    let s = ContextStatistics::per_state(&context);
    assert_eq!((s.num_groups(), s.num_source_groups(), s.num_transitions()), (3, 2, 5));
    assert_eq!(s.visits(), [2.0, 3.0]);
    assert_eq!(s.reward_sums(), [4.0, 11.0]);
    assert_eq!(s.successors(0).collect::<Vec<_>>(), [(1, 2.0)]);
    assert_eq!(s.successors(1).collect::<Vec<_>>(), [(0, 1.0), (2, 1.0)]);
    assert_eq!(s.group_of(6), None, "terminal");
    assert_eq!(s.group_of(7), Some(0), "query of a known state");
}

/// Totals are preserved and equal features share a group, for tables small and larger than the
/// first hash table.
#[test]
fn nothing_is_lost() {
    for num_states in [3u32, 2000] {
        let mut stream = Stream::new(1, Purpose::Prompt, u64::from(num_states));
        let table: Vec<Vec<f64>> = (0..num_states).map(|_| stream.uniform_vec(2, -1.0, 1.0)).collect();
        let states: Vec<usize> = (0..=5000).map(|_| stream.below(num_states) as usize).collect();
        let features: Vec<&Vec<f64>> = states.iter().map(|&s| &table[s]).collect();
        let features: Vec<Vec<f64>> = features.into_iter().cloned().collect();
        let rewards = stream.uniform_vec(5000, -1.0, 1.0);
        let context = Context::builder().episode(&features, &rewards, End::Truncated).build().unwrap();
        let s = ContextStatistics::per_state(&context);
        assert_eq!(s.visits().iter().sum::<f64>(), 5000.0);
        let followers: f64 = (0..s.num_source_groups()).flat_map(|g| s.successors(g)).map(|(_, c)| c).sum();
        assert_eq!(followers, 5000.0);
        let mut state_of_group = vec![None; s.num_groups()];
        for (j, &state) in states.iter().enumerate() {
            let known = state_of_group[s.group_of(j).unwrap()].get_or_insert(state);
            assert_eq!(*known, state);
        }
        let distinct: std::collections::BTreeSet<_> = states.iter().collect();
        assert_eq!(s.num_groups(), distinct.len());
    }
}

#[test]
fn prompt_is_the_matrix_of_the_paper() {
    let context = Context::builder()
        .episode(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], &[0.5, -0.5], End::Truncated)
        .build()
        .unwrap();
    let z = TokenMatrix::prompt(&context);
    let expected =
        [vec![1.0, 3.0, 5.0], vec![2.0, 4.0, 6.0], vec![0.5, -0.5, 0.0], vec![0.0; 3], vec![0.0; 3]];
    assert_eq!(z.matrix(), &Matrix::from_rows(&expected).unwrap());
    assert_eq!(z.row_name(0), "x0");
    assert!(z.to_string().contains("target"));
}

/// Shift and reset identities: Π moves left and pads with 0, and n + 1 shifts leave nothing.
#[test]
fn shift_is_right_multiplication_by_pi() {
    let n = 4;
    let roles: Vec<Role> = (0..=n).map(|j| if j < n { Role::Source } else { Role::Last }).collect();
    let pi = Matrix::from_fn(n + 1, n + 1, |i, j| f64::from(u8::from(i == j + 1)));
    let row: Vec<f64> = (1..=n + 1).map(|x| x as f64).collect();
    let product = Matrix::from_rows(&[&row]).unwrap().matmul(&pi);
    assert_eq!(shift(&row, &roles), product.row(0));
    let emptied = (0..=n).fold(row, |row, _| shift(&row, &roles));
    assert_eq!(emptied, vec![0.0; n + 1]);
}

#[test]
fn shift_does_not_cross_episodes() {
    use Role::*;
    let roles = [Source, Terminal, Source, Last, Query];
    assert_eq!(shift(&[1.0, 2.0, 3.0, 4.0, 5.0], &roles), [2.0, 0.0, 4.0, 0.0, 0.0]);
}

/// Squares of these overflow or underflow, their lengths do not.
#[test]
fn very_long_and_very_short_features_have_a_direction() {
    for size in [1e-200, 1e200] {
        let rows = [[3.0 * size, 4.0 * size], [0.0, size], [3.0 * size, 4.0 * size]];
        let context = Context::builder().episode(&rows, &[1.0, 2.0], End::Truncated).build().unwrap();
        let unit = ContextStatistics::per_state(&context).with_unit_features().unwrap();
        assert_eq!(unit.num_groups(), 2);
        for (found, expected) in unit.features(0).iter().zip([0.6, 0.8]) {
            assert!((found - expected).abs() < 1e-15);
        }
    }
}
