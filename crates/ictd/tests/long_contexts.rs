//! Training on long contexts goes by state: the same training as by position, to rounding.
#![allow(missing_docs)]

use ictd::kernel::KernelName;
use ictd::pretrain::{
    Loss, Mask, Metric, PretrainConfig, QueryPosition, QueryReward, SimdLevel, SourceColumns, Target,
    TrainState, Trainer,
};
use ictd::task::{Family, Kind};
use ictd::transformer::Block;

/// The paper's setting with 70 sources on 10 states.
fn long() -> PretrainConfig {
    let task = Family { num_states: 10, ..Family::paper() };
    PretrainConfig { task, context_len: 70, epochs: 4, ..PretrainConfig::paper() }
}

/// Mixing that single precision does not see: columns with mixing do not collapse by state, so training goes by position.
fn by_position(config: &PretrainConfig) -> PretrainConfig {
    let mut config = config.clone();
    (config.rho.start, config.rho.end) = (f64::MIN_POSITIVE, f64::MIN_POSITIVE);
    config
}

fn trained(config: &PretrainConfig) -> TrainState<f32> {
    let mut trainer = Trainer::<f32>::new(config, 1).unwrap();
    while !trainer.is_done() {
        trainer.epoch().unwrap();
    }
    trainer.into_state()
}

/// Every query, target, loss, kernel, construction and kind of sharing.
fn settings() -> Vec<PretrainConfig> {
    let mut settings = Vec::new();
    let losses = [Loss::Td, Loss::FullGradient, Loss::TrueValue, Loss::MonteCarlo];
    let queries =
        [QueryPosition::Next, QueryPosition::Skip, QueryPosition::Stationary, QueryPosition::Source];
    for (query, loss) in queries.into_iter().flat_map(|query| losses.map(|loss| (query, loss))) {
        settings.push(PretrainConfig { query, loss, ..long() });
    }
    for loss in [Loss::Td, Loss::FullGradient] {
        settings.push(PretrainConfig { target: Target::Same, loss, ..long() });
    }
    for kernel in [KernelName::Linear, KernelName::Relu, KernelName::Elu1] {
        settings.push(PretrainConfig { kernel, ..long() });
    }
    settings.push(PretrainConfig { tied: false, block: Block::DualHead, ..long() });
    settings.push(PretrainConfig { mask: Mask::Looped, block: Block::DualHead, ..long() });
    settings.push(PretrainConfig { num_layers: 1, ..long() });
    let mut source = PretrainConfig { query: QueryPosition::Source, ..long() };
    (source.source.columns, source.source.reward) = (SourceColumns::NPlus1, QueryReward::Hidden);
    settings.push(source);
    settings.push(PretrainConfig { task: Family::of(Kind::Dense), ..long() });
    settings
}

/// Twenty steps: parameters of order 0.1 that moved by up to 0.02. The history compares losses, measurements and the
/// kernel's diagonal.
#[test]
fn by_state_and_by_position_train_alike() {
    for config in settings() {
        let (states, positions) = (trained(&config), trained(&by_position(&config)));
        assert_ne!(states.params, positions.params, "{config:?} was trained by the same pass");
        for (a, b) in states.params.iter().zip(&positions.params) {
            // Roundings of 6e-8 relative, which Adam's division by small moments enlarges.
            assert!((a - b).abs() <= 2e-5, "{config:?}: {a} {b}");
        }
        for metric in Metric::ALL {
            // Emergence scores divide by spreads that are close to 0 at the start.
            if metric.name().ends_with("signed") || metric.name().ends_with("_em") {
                continue;
            }
            for (a, b) in states.history[metric].iter().zip(&positions.history[metric]) {
                assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{config:?} {}: {a} {b}", metric.name());
            }
        }
    }
}

/// Trajectories on more states than there are sources go by position, others of the same run by state.
#[test]
fn tasks_with_many_states_train_by_position() {
    let many = PretrainConfig { task: Family { num_states: 400, ..Family::paper() }, ..long() };
    assert_eq!(trained(&many).params, trained(&by_position(&many)).params);
}

#[test]
fn short_contexts_keep_their_bits() {
    let short = PretrainConfig { context_len: 63, ..long() };
    assert_eq!(trained(&short).params, trained(&by_position(&short)).params);
}

#[test]
fn levels_agree_in_bits_with_their_kind() {
    let levels = SimdLevel::NAMED.into_iter().filter(|level| level.is_available());
    let runs: Vec<_> = levels.map(|simd| (simd, trained(&PretrainConfig { simd, ..long() }))).collect();
    for (level, state) in &runs {
        for (other, expected) in &runs {
            let alike = level.fuses_multiply_add() == other.fuses_multiply_add();
            assert!(!alike || state == expected, "{level} and {other} differ");
        }
    }
}

#[test]
fn resuming_gives_the_same_bits() {
    let mut trainer = Trainer::<f32>::new(&long(), 1).unwrap();
    (0..2).for_each(|_| trainer.epoch().unwrap());
    let mut resumed = Trainer::<f32>::resume(&long(), 1, trainer.into_state()).unwrap();
    (0..2).for_each(|_| resumed.epoch().unwrap());
    assert_eq!(resumed.into_state(), trained(&long()));
}

/// A hundred thousand transitions in one epoch of one minibatch: memory is linear in them, so the sizes are accepted.
#[test]
fn the_longest_contexts_are_trained() {
    let config =
        PretrainConfig { context_len: 100_000, epochs: 1, batches: 1, batch: 4, ..PretrainConfig::paper() };
    assert!(config.memory().of_seeds(1) < 1e8, "{:?}", config.memory());
    let state = trained(&config);
    assert!(state.history[Metric::TdLoss][0].is_finite());
    assert!(by_position(&config).check().is_err());
}
