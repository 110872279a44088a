//! Training against the reference, itself and differences.

use super::*;
use crate::kernel::{KernelName, Relu, Similarity};
use crate::pretrain::level::SimdLevel;
use crate::pretrain::measure::{first_gradient, measure, theta_star};
use crate::pretrain::reading::{QueryMix, QueryReward, SourceColumns, Target};
use crate::pretrain::shape::Mask;
use crate::pretrain::{Loss, QueryPosition};

fn trained<E: Precision>(config: &PretrainConfig, epochs: u64) -> TrainState<E> {
    let mut trainer = Trainer::<E>::new(config, 1).unwrap();
    for _ in 0..epochs {
        trainer.epoch().unwrap();
    }
    trainer.into_state()
}

/// A hundred steps in single precision on lanes against the double-precision reference, for every
/// loss, query, mask and optimiser: parameters of order 0.1 to 1 that moved by up to 0.1.
#[test]
fn single_precision_follows_double_for_a_hundred_steps() {
    let paper = PretrainConfig::paper();
    let mut settings = vec![paper.clone(), PretrainConfig::mask_relaxed()];
    for query in [QueryPosition::Skip, QueryPosition::Stationary] {
        for loss in [Loss::Td, Loss::FullGradient, Loss::TrueValue, Loss::MonteCarlo] {
            settings.push(PretrainConfig { query, loss, ..paper.clone() });
        }
    }
    settings.push(PretrainConfig { tied: false, mask: Mask::None, ..paper.clone() });
    let mut sgd = PretrainConfig { mask: Mask::Looped, ..paper.clone() };
    sgd.optimizer.name = crate::pretrain::OptimizerName::Sgd;
    settings.push(sgd);
    settings.push(PretrainConfig { loss: Loss::FullGradient, ..paper.clone() });
    settings.push(PretrainConfig { tied: false, ..paper.clone() });
    for kernel in [KernelName::Linear, KernelName::Relu, KernelName::Elu1] {
        settings.push(PretrainConfig { kernel, ..paper.clone() });
    }
    settings.push(PretrainConfig { target: Target::Same, loss: Loss::FullGradient, ..paper });
    let mixes = [QueryMix::Mixed, QueryMix::Scaled, QueryMix::Unmixed];
    for (preset, rho_query) in [PretrainConfig::mask_full(), PretrainConfig::mask_relaxed()]
        .into_iter()
        .flat_map(|preset| mixes.map(|mix| (preset.clone(), mix)))
    {
        let mut config = PretrainConfig { query: QueryPosition::Source, ..preset };
        config.rho.query = rho_query;
        // All values of the other keys, one with each treatment of the query.
        (config.source.columns, config.source.reward, config.target) = match rho_query {
            QueryMix::Mixed => (SourceColumns::N, QueryReward::Visible, Target::Shifted),
            QueryMix::Scaled => (SourceColumns::NPlus1, QueryReward::Hidden, Target::Shifted),
            QueryMix::Unmixed => (SourceColumns::N, QueryReward::Hidden, Target::Same),
        };
        settings.push(config);
    }
    for config in settings {
        let epochs = 100 / config.batches as u64;
        let (single, double) = (trained::<f32>(&config, epochs), trained::<f64>(&config, epochs));
        let start: Vec<f64> = initial_params(&config, 1);
        let moved = double.params.iter().zip(&start).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(moved > 1e-3, "{config:?} did not train");
        for (a, b) in single.params.iter().zip(&double.params) {
            assert!((f64::from(*a) - b).abs() <= 1e-4, "{config:?}: {a} {b}");
        }
    }
}

#[test]
fn resuming_gives_the_same_bits() {
    let config = PretrainConfig { epochs: 6, ..PretrainConfig::paper() };
    let whole = trained::<f32>(&config, 6);
    let half = trained::<f32>(&config, 3);
    let mut resumed = Trainer::<f32>::resume(&config, 1, half).unwrap();
    while !resumed.is_done() {
        resumed.epoch().unwrap();
    }
    assert_eq!(resumed.into_state(), whole);
}

/// Differentiated through both ends the gradient of a step is that of the mean δ²: central differences with step 1e-5, for
/// targets of the next window, of independent queries and of the same context.
#[test]
fn gradients_through_the_target_are_finite_differences() {
    let queries =
        [QueryPosition::Next, QueryPosition::Skip, QueryPosition::Stationary, QueryPosition::Source];
    let targets = [Target::Shifted, Target::Same];
    for (query, target) in queries.into_iter().flat_map(|query| targets.map(|target| (query, target))) {
        let mut config =
            PretrainConfig { query, target, loss: Loss::FullGradient, batch: 7, ..PretrainConfig::paper() };
        config.init.gain = 1.0;
        let mut trainer = Trainer::<f64>::new(&config, 3).unwrap();
        trainer.batch.sample_fresh(0).unwrap();
        let (params, hyper) = (trainer.state.params.clone(), trainer.batch.hyper(0));
        trainer.step(0).unwrap();
        let gradient = trainer.batch.gradient.clone();
        let mut loss = |k: usize, by: f64| {
            let mut moved = params.clone();
            moved[k] += by;
            trainer.batch.predict(hyper, &moved, 0)
        };
        let largest = gradient.iter().fold(0f64, |m, g| m.max(g.abs()));
        assert!(largest > 1e-3);
        for k in (0..params.len()).filter(|&k| config.shape().trained()[k]) {
            let difference = (loss(k, 1e-5) - loss(k, -1e-5)) / 2e-5;
            // The bound the software promises; truncation and rounding are about 1e-10.
            assert!((gradient[k] - difference).abs() <= 1e-7 * largest, "{query:?} {target:?} parameter {k}");
        }
    }
}

/// The paper's setting for a hundred steps at every level that the CPU has: the same bits where multiplication and
/// addition are fused, and the same bits where they are not. The two kinds differ like single and double precision
/// above.
#[test]
fn levels_agree_in_bits_with_their_kind_and_closely_with_the_other() {
    let run = |simd| trained::<f32>(&PretrainConfig { simd, ..PretrainConfig::paper() }, 20);
    let levels = SimdLevel::NAMED.into_iter().filter(|level| level.is_available());
    let runs: Vec<_> = levels.map(|level| (level, run(level))).collect();
    assert!(runs.iter().any(|(level, _)| *level == SimdLevel::Scalar));
    for (level, state) in &runs {
        for (other, expected) in &runs {
            if level.fuses_multiply_add() == other.fuses_multiply_add() {
                assert!(state == expected, "{level} and {other} differ");
            }
            for (a, b) in state.params.iter().zip(&expected.params) {
                assert!((a - b).abs() <= 1e-4, "{level} {other}: {a} {b}");
            }
        }
    }
    assert!(runs.iter().any(|(_, state)| *state == run(SimdLevel::Best)));
}

/// ReLU by name and as a kernel of one's own: the same training; kernels that cannot be differentiated are refused.
#[test]
fn kernels_of_one_s_own_are_trained() {
    let config = PretrainConfig { kernel: KernelName::Relu, epochs: 4, ..PretrainConfig::paper() };
    let mut own = Trainer::with_kernel(&config, Arc::new(Relu), 1).unwrap();
    own.train(|_| ControlFlow::Continue(())).unwrap();
    let named = trained::<f64>(&config, 4);
    for (a, b) in own.state().params.iter().zip(&named.params) {
        // Twenty steps on numbers of order 1, scores scaled in another place.
        assert!((a - b).abs() < 1e-11, "{a} {b}");
    }
    let refused = |kernel: KernelName| {
        Trainer::with_kernel(&config, kernel.at(1.0).unwrap(), 1).err().map(|e| e.to_string())
    };
    let similarity = TrainError::Kernel(KernelNotTrainable::Similarity(Similarity::SquaredDistance));
    assert_eq!(refused(KernelName::Rbf), Some(similarity.to_string()));
    assert_eq!(refused(KernelName::Linear), None);
    #[derive(Debug)]
    struct Flat;
    impl Kernel for Flat {
        fn similarity(&self) -> Similarity {
            Similarity::InnerProduct
        }
        fn normalization(&self) -> crate::kernel::Normalization {
            crate::kernel::Normalization::ByColumn
        }
        fn weigh(&self, column: &mut [f64]) {
            column.fill(1.0);
        }
    }
    let error = Trainer::with_kernel(&config, Arc::new(Flat), 1).err();
    assert_eq!(error, Some(TrainError::Kernel(KernelNotTrainable::NoSlope)));
}

#[test]
fn a_callback_stops_training_after_its_epoch() {
    let mut trainer = Trainer::<f32>::new(&PretrainConfig::paper(), 1).unwrap();
    let stop = |t: &Trainer<f32>| {
        if t.state().epoch == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    trainer.train(stop).unwrap();
    assert_eq!((trainer.state().epoch, trainer.is_done()), (3, false));
    assert_eq!(trainer.into_state(), trained::<f32>(&PretrainConfig::paper(), 3));
}

/// From the state to a Transformer: its output on a context is what training predicts of the window.
#[test]
fn a_trained_state_is_a_transformer() {
    for (kernel, tied) in [(KernelName::Softmax, true), (KernelName::Linear, false)] {
        let config =
            PretrainConfig { kernel, tied, query: QueryPosition::Skip, ..PretrainConfig::mask_full() };
        let mut trainer = Trainer::<f64>::new(&config, 1).unwrap();
        (0..3).for_each(|_| trainer.epoch().unwrap());
        trainer.batch.sample_fresh(9).unwrap();
        let (hyper, params) = (trainer.batch.hyper(trainer.state.steps()), trainer.state.params.clone());
        trainer.batch.predict(hyper, &params, 0);
        let transformer = trainer.state().transformer(&config).unwrap();
        for t in 0..5 {
            let context = trainer.batch.rollout.context(t, &trainer.batch.shape);
            let output = transformer.values(&context).unwrap().output();
            // Three layers on numbers of order 1.
            assert!((output - trainer.batch.out[t]).abs() < 1e-13, "{kernel}");
        }
    }
}

#[test]
fn measuring_does_not_touch_training() {
    let config = PretrainConfig { epochs: 4, ..PretrainConfig::paper() };
    let mut unmeasured = Trainer::<f32>::new(&config, 1).unwrap();
    while !unmeasured.is_done() {
        unmeasured.epoch_unmeasured().unwrap();
    }
    let measured = trained::<f32>(&config, 4);
    assert_eq!(unmeasured.state().params, measured.params);
    let counts = [&unmeasured.state().history, &measured.history].map(|h| h[Metric::EvalDiagonal].len());
    assert_eq!(counts, [0, 4]);
}

#[test]
fn divergence_is_an_error_and_keeps_finite_parameters() {
    for lr in [10.0, 1e6] {
        let mut config = PretrainConfig::paper();
        config.optimizer.lr = lr;
        diverges(&config);
    }
}

fn diverges(config: &PretrainConfig) {
    let mut trainer = Trainer::<f32>::new(config, 1).unwrap();
    let error = loop {
        if let Err(error) = trainer.epoch() {
            break error;
        }
        assert!(!trainer.is_done(), "did not diverge");
    };
    assert!(matches!(error, TrainError::Diverged { .. }));
    assert!(trainer.state().params.iter().all(|p| p.is_finite()));
}

/// At zero parameters the first gradient is -2·L times the correlation, exactly.
#[test]
fn first_gradient_at_zero_is_the_correlation() {
    let queries =
        [QueryPosition::Next, QueryPosition::Skip, QueryPosition::Stationary, QueryPosition::Source];
    let visible = queries.map(|query| (query, QueryReward::Visible));
    for (query, reward) in visible.into_iter().chain([(QueryPosition::Source, QueryReward::Hidden)]) {
        let mut config = PretrainConfig { query, ..PretrainConfig::paper() };
        config.source.reward = reward;
        config.init.gain = 0.0;
        let found = first_gradient(&config, 2, 5).unwrap();
        for (gradient, correlation) in found.gradient.iter().zip(&found.reward_correlation) {
            // Means of 64 products below 10.
            assert!((gradient + 2.0 * 3.0 * correlation).abs() < 1e-12, "{gradient} {correlation}");
        }
    }
}

/// theta_* measured against itself.
#[test]
fn measuring_theta_star_gives_its_own_error() {
    let config = PretrainConfig::paper();
    let params: Vec<f32> = theta_star(&config.shape()).iter().map(|&x| x as f32).collect();
    let found = measure::<f32>(&config, 0, &params, 20).unwrap();
    assert_eq!((found.msve, found.distance_to_theta_star), (found.msve_theta_star, 0.0));
    assert!(found.diagonal_mean > 0.1 && found.diagonal_min > 0.0);
}
