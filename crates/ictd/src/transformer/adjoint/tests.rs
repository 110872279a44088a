//! The reverse pass as the reference of the training pass, and on counts of trajectories.

use super::*;
use crate::context::Tally;
use crate::kernel::{Attention, KernelName};
use crate::pretrain::{Columns, Hyper, Mask, ParamsView, QueryMix, Shape, reference_gradient};
use crate::random::{Purpose, Stream};
use crate::task::{Family, TaskSource as _};
use crate::transformer::{AttentionParams, Block, Parameters, TransformerConfig};

const LAYERS: usize = 4;

/// Random parameters around theta_*, with a feature row.
fn random_params(d: usize, stream: &mut Stream) -> AttentionParams {
    let theta = AttentionParams::theta_star(d);
    let mut v = Matrix::zeros(d + 3, d + 3);
    let row = theta.value_row().iter().map(|x| x + stream.uniform_in(-0.3, 0.3)).collect::<Vec<_>>();
    v.row_mut(d + 2).copy_from_slice(&row);
    let a = Matrix::from_fn(d + 3, d + 3, |i, j| match i.max(j) < d {
        true => theta.score_matrix()[(i, j)] + stream.uniform_in(-0.3, 0.3),
        false => 0.0,
    });
    AttentionParams::new(v, a).unwrap()
}

/// A kernel at temperature 0.8.
fn transformer(kernel: KernelName, rho: f64, params: Vec<AttentionParams>) -> Transformer {
    let attention = Attention::new(kernel.at(0.8).unwrap(), rho).unwrap();
    let parameters = Parameters::PerLayer(params);
    TransformerConfig { parameters, ..TransformerConfig::theta_star(attention, LAYERS, 0.9) }.check().unwrap()
}

fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + a.abs()), "{what}: {a} {b}");
}

/// The training pass on one window is the adjoint on its columns, prediction and gradient; so the identity of the adjoint
/// (tests/adjoint.rs) is its own.
#[test]
fn the_training_pass_has_this_gradient() {
    let task = Family::paper().draw(&mut Stream::new(4, Purpose::Task, 0)).unwrap();
    let (d, n, gamma) = (4, 12, 0.9);
    let settings = [(true, 0.0), (false, 0.0), (true, 0.3), (false, 0.3)];
    let kernels = [KernelName::Softmax, KernelName::Linear, KernelName::Relu, KernelName::Elu1];
    for (kernel, (tied, rho)) in kernels.into_iter().flat_map(|k| settings.map(|s| (k, s))) {
        let mut stream = Stream::new(4, Purpose::Trajectory, 0);
        let states = task.mrp().sample_states(n, &mut stream);
        let pairs = if tied { 1 } else { LAYERS };
        let params: Vec<_> = (0..pairs).map(|_| random_params(d, &mut stream)).collect();
        let network = transformer(kernel, rho, params.clone());
        let context = task.context_of(&states, &[]);
        let statistics = ContextStatistics::per_column(&context);
        let mut pass = Adjoint::default();
        pass.forward(&network, &statistics).unwrap();
        let query = statistics.group_of(n).unwrap();
        let mut direction = vec![0.0; statistics.num_groups()];
        direction[query] = 1.0;
        let gradient = pass.backward(&network, &statistics, LAYERS, &direction).unwrap();

        let shape = Shape {
            feature_dim: d,
            context_len: n,
            num_layers: LAYERS,
            tied,
            columns: Columns::PAPER,
            block: Block::TemporalShift,
            mask: Mask::Full,
        };
        let rows: Vec<_> =
            states.iter().map(|&s| (task.features().row(s), task.mrp().rewards()[s])).collect();
        let flat: Vec<f64> = params
            .iter()
            .flat_map(|p| [p.value_matrix().as_slice(), p.score_matrix().as_slice()].concat())
            .collect();
        let hyper = Hyper { gamma, temperature: 0.8, diagonal_mix: rho, query_mix: QueryMix::Mixed };
        let (out, full) = reference_gradient(&shape, hyper, kernel, &flat, &rows, None).unwrap();
        close(out, pass.values(LAYERS)[query], 1e-13, "prediction");
        for pair in 0..pairs {
            let (v, a) = ParamsView::new(&shape, &full).matrices(pair);
            let what = format!("{kernel} tied {tied} rho {rho}");
            for (j, g) in gradient.value_rows.row(pair).iter().enumerate() {
                close(v[(d + 2, j)], *g, 1e-12, &format!("{what} V {j}"));
            }
            let block = &gradient.score_blocks[pair];
            for (i, j) in (0..d * d).map(|k| (k / d, k % d)) {
                close(a[(i, j)], block[(i, j)], 1e-12, &format!("{what} A {i} {j}"));
            }
        }
    }
}

/// The prompt that follows, from the counts of the one before, and shallower networks out of a deep one: the same values
/// and gradients as from a context written out.
#[test]
fn shifted_prompts_and_shallow_networks_need_no_new_pass() {
    let task = Family::paper().draw(&mut Stream::new(7, Purpose::Task, 0)).unwrap();
    let params = vec![random_params(4, &mut Stream::new(7, Purpose::Init, 0))];
    let deep = transformer(KernelName::Softmax, 0.0, params);
    let shallow = TransformerConfig { num_layers: 2, ..deep.config().clone() }.check().unwrap();
    let mut states = task.mrp().sample_states(12, &mut Stream::new(7, Purpose::Trajectory, 0));
    let (mut before, mut shifted) = (Tally::default(), Tally::default());
    let mut statistics = ContextStatistics::default();
    before.load(64, &states);
    let absent = (0..64).find(|s| !states.contains(s)).unwrap();
    for next in [states[3], absent] {
        shifted.load_shifted(&before, (states[0], states[1]), (states[12], next));
        shifted.fill(&task, &[next], &mut statistics);
        let fresh = ContextStatistics::per_state(&task.context_of(&[&states[1..], &[next]].concat(), &[]));
        let run = |network: &Transformer, statistics: &ContextStatistics, group: usize| {
            let mut pass = Adjoint::default();
            pass.forward(network, statistics).unwrap();
            let mut direction = vec![0.0; statistics.num_groups()];
            direction[group] = 1.0;
            (pass.values(2)[group], pass.backward(network, statistics, 2, &direction).unwrap())
        };
        let (value, gradient) = run(&deep, &statistics, statistics.group_of(next).unwrap());
        let (expected, reference) = run(&shallow, &fresh, fresh.group_of(12).unwrap());
        close(value, expected, 1e-13, "value");
        let numbers = |g: &ParamsGradient| [g.value_rows.as_slice(), g.score_blocks[0].as_slice()].concat();
        for (a, b) in numbers(&gradient).into_iter().zip(numbers(&reference)) {
            close(a, b, 1e-12, "gradient");
        }
    }
    // A state that does not occur is a query of its own.
    states.truncate(13);
    before.fill(&task, &[states[12], absent], &mut statistics);
    let mut pass = Adjoint::default();
    pass.forward(&deep, &statistics).unwrap();
    let expected = deep.values(&task.context_of(&states, &[absent])).unwrap().output();
    close(pass.values(LAYERS)[statistics.group_of(absent).unwrap()], expected, 1e-13, "query");
}
