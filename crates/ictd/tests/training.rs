//! Training against the reference, itself and differences, and what may be asked of it.
#![allow(missing_docs)]

use std::ops::ControlFlow;
use std::sync::Arc;

use ictd::kernel::{Kernel, KernelName, Normalization, Relu, Similarity};
use ictd::pretrain::{
    Branch, Emergence, KernelNotTrainable, Key, Loss, Mask, Metric, ModelError, OptimizerName, ParamsView,
    PretrainConfig, QueryMix, QueryPosition, QueryReward, Shape, Sign, SimdLevel, SourceColumns, Target,
    TrainError, Trainer, drift, emergence_of, first_gradient, measure, reduced_params,
};
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, Kind, TaskSource as _};
use ictd::transformer::{Parameters, Transformer};

/// The state of seed 1 in a precision after some epochs.
macro_rules! trained {
    ($precision:ty, $config:expr, $epochs:expr) => {{
        let mut trainer = Trainer::<$precision>::new($config, 1).unwrap();
        (0..$epochs).for_each(|_| trainer.epoch().unwrap());
        trainer.into_state()
    }};
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
    sgd.optimizer.name = OptimizerName::Sgd;
    settings.push(sgd);
    settings.push(PretrainConfig { loss: Loss::FullGradient, ..paper.clone() });
    settings.push(PretrainConfig { tied: false, ..paper.clone() });
    for kernel in [KernelName::Linear, KernelName::Relu, KernelName::Elu1, KernelName::Rbf] {
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
        let (single, double) = (trained!(f32, &config, epochs), trained!(f64, &config, epochs));
        let start = trained!(f64, &config, 0).params;
        let moved = double.params.iter().zip(&start).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // More than a single step of the learning rate, 1e-3.
        assert!(moved > 1e-3, "{config:?} did not train");
        for (a, b) in single.params.iter().zip(&double.params) {
            // A hundred steps of rounding 6e-8 relative, which Adam's division by small moments enlarges.
            assert!((f64::from(*a) - b).abs() <= 1e-4, "{config:?}: {a} {b}");
        }
    }
}

/// From the state to a Transformer: on the windows of the fresh tasks that training measures itself on, written out as
/// contexts, its outputs have the error that was measured.
#[test]
fn a_trained_state_is_a_transformer() {
    let kernels = [KernelName::Softmax, KernelName::Linear, KernelName::Relu, KernelName::Elu1];
    let kernels = kernels.into_iter().zip([true, false, true, false]);
    for (kernel, tied) in kernels.chain([(KernelName::Rbf, true), (KernelName::Rbf, false)]) {
        let config =
            PretrainConfig { kernel, tied, query: QueryPosition::Skip, ..PretrainConfig::mask_full() };
        let state = trained!(f64, &config, 3);
        let msve = |transformer: Transformer, index: u64| {
            let stream = |k| Stream::new(1, Purpose::Evaluation, 3 * index + k);
            let task = config.task.draw(&mut stream(0)).unwrap();
            let states = task.mrp().sample_states(64 + 11, &mut stream(1));
            let error = |t: usize| {
                let (query, context) =
                    (states[t + 11], task.context_of(&states[t..=t + 10], &[states[t + 11]]));
                transformer.values(&context).unwrap().output() - task.values()[query]
            };
            (0..64).map(|t| error(t).powi(2)).sum::<f64>() / 64.0
        };
        let found = msve(state.transformer(&config).unwrap(), 2);
        // Measured after the third epoch, kept in single precision.
        let measured = f64::from(state.history[Metric::EvalMsve][2]);
        assert!((found - measured).abs() < 1e-7 * measured, "{kernel}: {found} {measured}");
        let found = msve(config.transformer(&state.params, config.num_steps()).unwrap(), config.epochs);
        let measured = measure(&config, 1, &state.params, 1).unwrap().msve;
        // Three layers on numbers of order 1, the mean of 64 squares.
        assert!((found - measured).abs() < 1e-12 * (1.0 + measured), "{kernel}: {found} {measured}");
    }
}

#[test]
fn resuming_gives_the_same_bits() {
    let config = PretrainConfig { epochs: 6, ..PretrainConfig::paper() };
    let whole = trained!(f32, &config, 6);
    let half = trained!(f32, &config, 3);
    let mut resumed = Trainer::<f32>::resume(&config, 1, half).unwrap();
    while !resumed.is_done() {
        resumed.epoch().unwrap();
    }
    assert_eq!(resumed.into_state(), whole);
}

/// The paper's setting for a hundred steps at every level that the CPU has: the same bits where multiplication and
/// addition are fused, and the same bits where they are not. The two kinds differ like single and double precision
/// above.
#[test]
fn levels_agree_in_bits_with_their_kind_and_closely_with_the_other() {
    let run = |simd| trained!(f32, &PretrainConfig { simd, ..PretrainConfig::paper() }, 20);
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
    let named = trained!(f64, &config, 4);
    for (a, b) in own.state().params.iter().zip(&named.params) {
        // Twenty steps on numbers of order 1, scores scaled in another place.
        assert!((a - b).abs() < 1e-11, "{a} {b}");
    }
    let refused = |kernel: KernelName| {
        Trainer::with_kernel(&config, kernel.at(1.0).unwrap(), 1).err().map(|e| e.to_string())
    };
    let similarity = TrainError::Kernel(KernelNotTrainable::Similarity(Similarity::SameState));
    assert_eq!(refused(KernelName::Tabular), Some(similarity.to_string()));
    assert_eq!([KernelName::Linear, KernelName::Rbf].map(refused), [None, None]);
    #[derive(Debug)]
    struct Flat;
    impl Kernel for Flat {
        fn similarity(&self) -> Similarity {
            Similarity::InnerProduct
        }
        fn normalization(&self) -> Normalization {
            Normalization::ByColumn
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
    assert_eq!(trainer.into_state(), trained!(f32, &PretrainConfig::paper(), 3));
}

#[test]
fn measuring_does_not_touch_training() {
    let config = PretrainConfig { epochs: 4, ..PretrainConfig::paper() };
    let mut unmeasured = Trainer::<f32>::new(&config, 1).unwrap();
    while !unmeasured.is_done() {
        unmeasured.epoch_unmeasured().unwrap();
    }
    let measured = trained!(f32, &config, 4);
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
    let star = reduced_params(&config.shape(), [1.0, 1.0, -1.0], 1.0);
    let params: Vec<f32> = star.iter().map(|&x| x as f32).collect();
    let found = measure::<f32>(&config, 0, &params, 20).unwrap();
    assert_eq!((found.msve, found.distance_to_theta_star), (found.msve_theta_star, 0.0));
    assert!(found.diagonal_mean > 0.1 && found.diagonal_min > 0.0);
}

/// With the exact values as targets the drift is the gradient of the MSVE: central differences with step
/// 1e-4, whose truncation is about 1e-8 of third derivatives of order 1.
#[test]
fn drift_is_the_gradient_of_the_loss() {
    for query in [QueryPosition::Next, QueryPosition::Stationary] {
        let config = PretrainConfig { loss: Loss::TrueValue, query, batch: 8, ..PretrainConfig::paper() };
        let shape = config.shape();
        let (u, a) = ([-0.8, 0.3, 0.2], -0.7);
        let msve =
            |u: [f64; 3], a: f64| drift::<f64>(&config, 4, &reduced_params(&shape, u, a), 1).unwrap()[0].msve;
        let found = drift::<f64>(&config, 4, &reduced_params(&shape, u, a), 1).unwrap()[0];
        let h = 1e-4;
        for k in 0..3 {
            let (mut up, mut down) = (u, u);
            up[k] += h;
            down[k] -= h;
            let difference = (msve(up, a) - msve(down, a)) / (2.0 * h);
            assert!((found.value[k] - difference).abs() < 1e-6, "{query:?} {k}: {found:?} {difference}");
        }
        // Moving the whole diagonal is d times moving its mean entry.
        let difference = (msve(u, a + h) - msve(u, a - h)) / (2.0 * h) / 4.0;
        assert!((found.score - difference).abs() < 1e-6, "{query:?}: {found:?} {difference}");
    }
}

/// Both look at the same fresh tasks.
#[test]
fn drift_and_measurement_see_the_same_tasks() {
    let config = PretrainConfig::paper();
    let params = reduced_params(&config.shape(), [1.0, 1.0, -1.0], 1.0);
    let found = drift::<f64>(&config, 2, &params, 3).unwrap();
    let measured = measure::<f64>(&config, 2, &params, 3).unwrap();
    let msve = found.iter().map(|d| d.msve).sum::<f64>() / 3.0;
    // The same sums in another order.
    assert!((msve - measured.msve).abs() < 1e-12 && (msve - measured.msve_theta_star).abs() < 1e-12);
    assert!((found.iter().map(|d| d.td_loss).sum::<f64>() / 3.0 - measured.td_loss).abs() < 1e-12);
}

#[test]
fn each_key_outside_its_range_is_named() {
    let broken: [(&str, fn(&mut PretrainConfig)); 17] = [
        ("task.kind", |c| c.task.kind = Kind::Own),
        ("loss", |c| (c.task, c.loss) = (Family::of(Kind::Cartpole), Loss::TrueValue)),
        ("query", |c| (c.task, c.query) = (Family::of(Kind::Cartpole), QueryPosition::Stationary)),
        ("states", |c| c.task.num_states = 2),
        ("features", |c| c.task.feature_dim = 0),
        ("n", |c| c.context_len = 0),
        ("layers", |c| c.num_layers = 0),
        ("epochs", |c| c.epochs = 0),
        ("gamma", |c| c.task.gamma = 1.0),
        ("temperature", |c| c.temperature = 0.0),
        ("kernel", |c| c.kernel = KernelName::Tabular),
        ("rho.start", |c| c.rho.start = 1.1),
        ("rho.end", |c| c.rho.end = f64::NAN),
        ("optimizer.lr", |c| c.optimizer.lr = -1.0),
        ("optimizer.beta1", |c| c.optimizer.beta1 = 1.0),
        ("init.gain", |c| c.init.gain = f64::INFINITY),
        ("source", |c| c.source.reward = QueryReward::Hidden),
    ];
    for (key, breaks) in broken {
        let mut config = PretrainConfig::paper();
        breaks(&mut config);
        let error = config.check().unwrap_err();
        assert_eq!(error.key, key);
        // What concerns one key alone is refused in the words of its table.
        if !matches!(key, "task.kind" | "loss" | "query" | "states" | "features" | "gamma" | "source") {
            assert_eq!(Some(error.expected), Key::named(key).map(|k| k.range), "{key}");
        }
    }
}

#[test]
fn presets_are_valid_and_named() {
    for (name, _) in PretrainConfig::PRESETS {
        PretrainConfig::preset(name).unwrap().check().unwrap();
    }
    assert_eq!(PretrainConfig::preset("nobody"), None);
    assert_eq!(PretrainConfig::mask_full().num_steps(), 9000);
}

#[test]
fn rho_climbs_linearly_then_stays() {
    let rho = PretrainConfig::mask_full().rho;
    assert_eq!((rho.at(0), rho.at(4000), rho.at(8000), rho.at(9999)), (0.68, 0.74, 0.80, 0.80));
    assert_eq!(PretrainConfig::paper().rho.at(0), 0.0);
}

/// Numbers that are their own places: V then A, row by row, pair by pair.
#[test]
fn entries_stand_where_the_layout_says() {
    for tied in [true, false] {
        let shape = Shape { feature_dim: 2, tied, mask: Mask::None, ..PretrainConfig::paper().shape() };
        let data: Vec<f64> = (0..shape.num_params()).map(|k| k as f64).collect();
        let view = ParamsView::new(&shape, &data);
        for layer in 0..3 {
            let start = if tied { 0.0 } else { 50.0 * layer as f64 };
            assert_eq!(view.value_row(layer), [20.0, 21.0, 22.0, 23.0, 24.0].map(|x| x + start));
            assert_eq!(view.score(layer, 1, 2), start + 25.0 + 7.0);
            let (v, a) = view.matrices(layer);
            assert_eq!((v[(3, 1)], a[(3, 1)]), (start + 16.0, start + 41.0));
            assert_eq!(view.score_block(layer).as_slice(), [25.0, 26.0, 30.0, 31.0].map(|x| x + start));
            assert_eq!(view.score_diagonal(layer).collect::<Vec<_>>(), [25.0 + start, 31.0 + start]);
        }
        let expected = if tied { 1 } else { 3 };
        assert!(match view.parameters().unwrap() {
            Parameters::Tied(_) => expected == 1,
            Parameters::PerLayer(layers) => layers.len() == expected,
            Parameters::ThetaStar => false,
        });
    }
}

#[test]
fn parameters_that_are_not_finite_are_no_transformer() {
    let config = PretrainConfig::paper();
    let mut params = vec![0f32; config.shape().num_params()];
    assert!(config.transformer(&params, 0).is_ok());
    params[3] = f32::NAN;
    assert!(matches!(config.transformer(&params, 0), Err(ModelError::Params(_))));
}

/// d = 4: full 2·7 + 16, relaxed adds 2·12, none 2·49, looped 3 + 16.
#[test]
fn masks_train_the_entries_of_the_paper() {
    let shape = PretrainConfig::paper().shape();
    let count = |mask| Shape { mask, ..shape }.trained().iter().filter(|&&t| t).count();
    assert_eq!(Mask::ALL.map(count), [30, 54, 98, 19]);
}

/// Traces are addressed by the metrics' order, and names must not collide.
#[test]
fn metrics_are_numbered_in_order_and_named_apart() {
    for (k, metric) in Metric::ALL.into_iter().enumerate() {
        assert_eq!((metric as usize, metric.is_per_step()), (k, k < 6));
        let others = Metric::ALL.into_iter().filter(|m| *m != metric);
        assert!(others.clone().all(|m| m.name() != metric.name() && m.tag() != metric.tag()));
    }
}

#[test]
fn initial_signs_are_imposed() {
    for (sign, factor) in [(Sign::Td, 1.0), (Sign::Mirror, -1.0)] {
        let mut config = PretrainConfig::paper();
        (config.init.score_sign, config.init.value_sign) = (sign, sign);
        let params = Trainer::<f64>::new(&config, 3).unwrap().into_state().params;
        let emergence = emergence_of(&config.shape(), &params);
        let expected = if factor > 0.0 { Branch::Td } else { Branch::Mirror };
        assert_eq!(emergence.branch, expected);
    }
}

/// The emergence scores of V's entries for reward, target and value, and of A's feature block.
fn scores(coefficients: [f64; 3], block: [[f64; 2]; 2]) -> Emergence {
    let shape = Shape { feature_dim: 2, ..PretrainConfig::paper().shape() };
    let mut params = reduced_params(&shape, coefficients, 0.0);
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        params[shape.score_index(0, i, j)] = block[i][j];
    }
    emergence_of(&shape, &params)
}

#[test]
fn the_td_block_scores_one() {
    let found = scores([1.0, 1.0, -1.0], [[1.0, 0.0], [0.0, 1.0]]);
    assert_eq!((found.value, found.score, found.branch), (1.0, 1.0, Branch::Td));
    assert_eq!(found.joint(), 1.0);
}

#[test]
fn the_mirror_block_scores_zero_unsigned_and_minus_one_signed() {
    let found = scores([-1.0, -1.0, 1.0], [[-0.8, 0.0], [0.0, -0.8 - 1e-6]]);
    assert_eq!((found.value, found.score, found.branch), (0.0, 0.0, Branch::Mirror));
    assert_eq!(found.value_signed, -1.0);
    // A spread of 1e-6 over 0.8.
    assert!((found.score_signed + 1.0).abs() < 1e-5);
}

/// Both consequences of dividing by the signed mean, pinned as the paper has them.
#[test]
fn negative_diagonals_score_one_when_uniform_and_zero_when_spread() {
    let row = [1.0, 1.0, -1.0];
    assert_eq!(scores(row, [[-0.5, 0.0], [0.0, -0.5]]).score, 1.0);
    assert_eq!(scores(row, [[-0.5, 0.0], [0.0, -0.6]]).score, 0.0);
}

/// By hand: magnitudes 1, 2, 3 have mean 2 and spread 2, so C_V = 1 - 2/6. A diagonal (1, 3) has
/// C_A = 1 - 2/4; the columns (1, 1)/√2 and (0, 3)/3 have diagonal mass 1/√2 + 1 of √2 + 1.
#[test]
fn scores_by_hand() {
    let found = scores([1.0, 2.0, -3.0], [[1.0, 0.0], [1.0, 3.0]]);
    // Here and below: a handful of operations on numbers of order 1.
    assert!((found.value - 2.0 / 3.0).abs() < 1e-15);
    let root = 2f64.sqrt();
    assert!((found.score - 0.5 * (1.0 / root + 1.0) / (root + 1.0)).abs() < 1e-15);
}

#[test]
fn zero_parameters_score_zero() {
    let found = scores([0.0; 3], [[0.0; 2]; 2]);
    assert_eq!((found.value, found.branch), (0.0, Branch::None));
    // A zero matrix has no diagonal mass.
    assert_eq!(found.score, 0.0);
}
