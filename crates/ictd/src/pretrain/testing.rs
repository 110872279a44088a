//! Random problems for the tests of all passes.

use fearless_simd::Level;

use super::band::Band;
use super::engine::{Feedback, Hyper, Inapplicable, Job, Pass, PassOf, Precision};
use super::factored::Factored;
use super::general::General;
use super::level::SimdLevel;
use super::params::ParamsView;
use super::reading::QueryMix;
use super::rollout::Windows;
use super::shape::{Columns, Mask, Shape};
use super::states::{States, Visits};
use super::weighing::{BuiltIn, Weighing};
use crate::kernel::KernelName;
use crate::random::{Purpose, Stream};
use crate::transformer::Block;

/// The kernels that can be trained, softmax first.
pub const KERNELS: [KernelName; 5] =
    [KernelName::Softmax, KernelName::Linear, KernelName::Relu, KernelName::Elu1, KernelName::Rbf];

/// No mixing.
pub const HYPER: Hyper =
    Hyper { gamma: 0.9, temperature: 1.2, diagonal_mix: 0.0, query_mix: QueryMix::Mixed };

/// No mixing, and mixing with every treatment of the query.
pub const MIXINGS: [(f64, QueryMix); 4] =
    [(0.0, QueryMix::Mixed), (0.7, QueryMix::Mixed), (0.7, QueryMix::Scaled), (0.7, QueryMix::Unmixed)];

/// Every choice of columns.
pub fn all_columns() -> impl Iterator<Item = Columns> + Clone {
    (0..8).map(|k| Columns {
        last_state: k & 1 == 0,
        separate_query: k & 2 != 0,
        last_reward_hidden: k & 4 != 0,
    })
}

/// Shapes of scores that depend on features alone: all columns, tied and per layer, both blocks.
pub fn feature_shapes() -> impl Iterator<Item = Shape> {
    let sizes = [(3, 5, 3), (4, 10, 3), (2, 1, 2), (1, 4, 1), (4, 7, 5), (2, 17, 2), (7, 6, 2)];
    let blocks = [(Mask::Full, Block::TemporalShift), (Mask::Looped, Block::DualHead)];
    let kinds = blocks.into_iter().flat_map(|kind| [true, false].map(move |tied| (kind, tied)));
    let kinds = kinds.flat_map(|kind| all_columns().map(move |columns| (kind, columns)));
    sizes.into_iter().flat_map(move |(feature_dim, context_len, num_layers)| {
        kinds.clone().map(move |(((mask, block), tied), columns)| Shape {
            feature_dim,
            context_len,
            num_layers,
            tied,
            columns,
            block,
            mask,
        })
    })
}

/// The fast pass.
pub fn band<E: Precision>(shape: &Shape, kernel: &Weighing) -> PassOf<E> {
    Pass::Band(Band::new(*shape, kernel).unwrap())
}

/// The fast pass for linear attention.
pub fn factored<E: Precision>(shape: &Shape) -> PassOf<E> {
    Pass::Factored(Factored::new(*shape, &Weighing::BuiltIn(BuiltIn::Linear)).unwrap())
}

/// The pass by state.
pub fn states<E: Precision>(shape: &Shape, kernel: &Weighing) -> PassOf<E> {
    Pass::States(States::new(*shape, kernel).unwrap())
}

/// The general pass.
pub fn general<E: Precision>(shape: &Shape, kernel: &Weighing) -> PassOf<E> {
    Pass::General(General::new(*shape, kernel.clone()))
}

/// Random windows, parameters within the mask, and weights of the windows in the loss.
pub struct Problem {
    shape: Shape,
    features: Vec<Vec<f64>>,
    rewards: Vec<f64>,
    queries: Vec<Vec<f64>>,
    /// Of positions and of queries, where they are in a few states.
    states: Option<(Vec<usize>, Vec<usize>)>,
    params: Vec<f64>,
    pub bar: Vec<f64>,
}

fn single(x: &[f64]) -> Vec<f32> {
    x.iter().map(|&v| v as f32).collect()
}

impl Problem {
    pub fn new(shape: &Shape, num: usize) -> Self {
        let mut stream = Stream::new(11, Purpose::Prompt, 0);
        let positions = num + shape.context_len + 1;
        let mut rows = |count: usize| -> Vec<Vec<f64>> {
            (0..count).map(|_| stream.uniform_vec(shape.feature_dim, -1.0, 1.0)).collect()
        };
        let (features, queries) = (rows(positions), rows(num));
        let rewards = stream.uniform_vec(positions, -1.0, 1.0);
        let trained = shape.trained();
        let params = trained.iter().map(|&t| if t { stream.uniform_in(-0.8, 0.8) } else { 0.0 }).collect();
        let bar = stream.uniform_vec(num, -1.0, 1.0);
        Self { shape: *shape, features, rewards, queries, states: None, params, bar }
    }

    /// The same on a trajectory through a few states, which are the first positions' features; rewards differ from visit
    /// to visit.
    pub fn of_states(shape: &Shape, num: usize, num_states: usize) -> Self {
        let mut problem = Self::new(shape, num);
        let mut stream = Stream::new(13, Purpose::Prompt, 0);
        let mut draw = |count: usize| -> Vec<usize> {
            (0..count).map(|_| (stream.uniform_in(0.0, 1.0) * num_states as f64) as usize).collect()
        };
        let states = draw(problem.features.len());
        let queries = if shape.columns.separate_query {
            draw(num)
        } else {
            let last = shape.columns.trajectory(shape.context_len) - 1;
            states[last..last + num].to_vec()
        };
        let table = problem.features[..num_states].to_vec();
        problem.features = states.iter().map(|&s| table[s].clone()).collect();
        problem.queries = queries.iter().map(|&s| table[s].clone()).collect();
        problem.states = Some((states, queries));
        problem
    }

    /// The same with features, queries and parameters rounded to single precision.
    pub fn rounded(mut self) -> Self {
        let round = |row: &mut Vec<f64>| row.iter_mut().for_each(|x| *x = f64::from(*x as f32));
        self.features.iter_mut().chain(&mut self.queries).for_each(round);
        round(&mut self.params);
        self
    }

    fn windows<E: Precision>(&self) -> Windows<E> {
        let mut windows = Windows::default();
        let rows: Vec<(&[f64], f64)> =
            self.features.iter().map(Vec::as_slice).zip(self.rewards.iter().copied()).collect();
        windows.fill(self.shape.feature_dim, rows.into_iter(), self.queries.iter().map(Vec::as_slice));
        if let Some((states, queries)) = &self.states {
            windows.set_visits(self.visits(states, queries));
        }
        windows
    }

    fn visits<E: Precision>(&self, states: &[usize], queries: &[usize]) -> Option<Visits<E>> {
        let (d, most) = (self.shape.feature_dim, states.iter().chain(queries).max().unwrap() + 1);
        let mut table = vec![0.0; most * d];
        let rows = self.features.iter().chain(&self.queries);
        for (&state, row) in states.iter().chain(queries).zip(rows) {
            table[state * d..(state + 1) * d].copy_from_slice(row);
        }
        Visits::of(&table, d, states, queries, most)
    }

    fn run<E: Precision>(
        &self,
        level: Level,
        pass: &mut PassOf<E>,
        hyper: Hyper,
        params: &[E],
        bar: &[E],
    ) -> Result<(Vec<E>, Vec<f64>), Inapplicable> {
        let (windows, params) = (self.windows(), ParamsView::new(&self.shape, params));
        let mut out = vec![E::default(); self.queries.len()];
        E::forward(level, pass, Job { hyper, params, windows: &windows, first: 0 }, &mut out)?;
        let mut gradient = vec![0.0; self.params.len()];
        E::backward(level, pass, Feedback { hyper, params, out_bar: bar, gradient: &mut gradient });
        Ok((out, gradient))
    }

    /// Predictions of all windows.
    pub fn forward(&self, pass: &mut PassOf<f64>, hyper: Hyper) -> Result<Vec<f64>, Inapplicable> {
        Ok(self.run(Level::new(), pass, hyper, &self.params, &[])?.0)
    }

    /// The gradient of Σ bar·prediction.
    pub fn gradient(
        &self,
        pass: &mut PassOf<f64>,
        hyper: Hyper,
        bar: &[f64],
    ) -> Result<Vec<f64>, Inapplicable> {
        Ok(self.run(Level::new(), pass, hyper, &self.params, bar)?.1)
    }

    /// Predictions, gradients and diagonals of a pass against those of the general pass, both in double precision: only the
    /// order of sums differs.
    pub fn assert_equals_general(&self, mut pass: PassOf<f64>, kernel: &Weighing, hyper: Hyper) {
        let mut reference = general(&self.shape, kernel);
        let close = |a: f64, b: f64, tolerance: f64| {
            assert!((a - b).abs() < tolerance * b.abs().max(1.0), "{:?} {kernel:?}: {a} {b}", self.shape);
        };
        let [a, b] = [&mut pass, &mut reference].map(|pass| self.forward(pass, hyper).unwrap());
        for (a, b) in a.iter().zip(&b) {
            close(*a, *b, 1e-13);
        }
        // One window fewer than the forward pass saw, as in training.
        let (num, bar) = (self.bar.len(), &self.bar[..self.bar.len() - 1]);
        let [a, b] = [&mut pass, &mut reference].map(|pass| self.gradient(pass, hyper, bar).unwrap());
        self.assert_gradients_agree(&a, &b, 1e-12);
        let [a, b] = [&pass, &reference].map(|pass| f64::diagonal(Level::new(), pass, num));
        close(a.0, b.0, 1e-12);
        close(a.1, b.1, 1e-13);
    }

    /// ⟨J x, y⟩ = ⟨x, Jᵀ y⟩ at every mixing, for a random direction x of the trained parameters, of length 1, and the
    /// windows' weights y: J by central differences of the forward pass, Jᵀ the reverse pass.
    pub fn assert_adjoint(&self, pass: impl Fn() -> PassOf<f64>) {
        let at = |(diagonal_mix, query_mix)| Hyper { diagonal_mix, query_mix, ..HYPER };
        self.assert_adjoint_at(&MIXINGS.map(at), pass);
    }

    /// [`assert_adjoint`](Self::assert_adjoint) without some mixings.
    pub fn assert_adjoint_at(&self, hypers: &[Hyper], pass: impl Fn() -> PassOf<f64>) {
        let mut stream = Stream::new(12, Purpose::Prompt, 0);
        let mut entry = |&trained: &bool| if trained { stream.normal() } else { 0.0 };
        let mut x: Vec<f64> = self.shape.trained().iter().map(&mut entry).collect();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let length = product(&x, &x).sqrt();
        x.iter_mut().for_each(|x| *x /= length);
        for &hyper in hypers {
            let at = |h: f64| {
                let moved: Vec<f64> = self.params.iter().zip(&x).map(|(p, x)| p + h * x).collect();
                self.run(Level::new(), &mut pass(), hyper, &moved, &[]).unwrap().0
            };
            let moved: Vec<f64> =
                at(1e-6).iter().zip(at(-1e-6)).map(|(up, down)| (up - down) / 2e-6).collect();
            let along = product(&moved, &self.bar);
            let back = product(&x, &self.gradient(&mut pass(), hyper, &self.bar).unwrap());
            // Step 1e-6: truncation is a sixth of 1e-12 times the third derivative along x, 2e5 at most, where layers
            // overwrite their inputs; rounding is some 1e-9.
            let close = (along - back).abs() <= 1e-7 * (1.0 + along.abs());
            assert!(close, "{:?} {hyper:?}: {along} {back}", self.shape);
        }
    }

    /// Predictions and gradients, with the first `counted` windows in the loss, in single precision on lanes against
    /// double precision: a few hundred single-precision roundings of numbers of order 1.
    pub fn assert_wide_agrees(
        &self,
        wide: &mut PassOf<f32>,
        reference: &mut PassOf<f64>,
        hyper: Hyper,
        level: SimdLevel,
        counted: usize,
    ) {
        let (params, bar) = (single(&self.params), single(&self.bar[..counted]));
        let (out, gradient) = self.run(level.find().unwrap(), wide, hyper, &params, &bar).unwrap();
        let (expected, expected_gradient) =
            self.run(Level::new(), reference, hyper, &self.params, &self.bar[..counted]).unwrap();
        for (a, b) in out.iter().zip(&expected) {
            assert!((f64::from(*a) - b).abs() < 2e-5 * (1.0 + b.abs()), "{:?}: {a} {b}", self.shape);
        }
        self.assert_gradients_agree(&gradient, &expected_gradient, 1e-4);
    }

    /// Compares gradients within the mask, by their largest entry: the general pass also differentiates by untrained
    /// entries.
    pub fn assert_gradients_agree(&self, found: &[f64], expected: &[f64], tolerance: f64) {
        let (trained, largest) = (self.shape.trained(), expected.iter().fold(0f64, |m, g| m.max(g.abs())));
        for (k, (a, b)) in found.iter().zip(expected).enumerate().filter(|&(k, _)| trained[k]) {
            assert!((a - b).abs() <= tolerance * largest, "{:?} {k}: {a} {b}", self.shape);
        }
    }
}
