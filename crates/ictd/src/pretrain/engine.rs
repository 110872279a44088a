//! What training runs on: a program on the CPU's lanes.
//!
//! A [`Program`] is mathematics only, one source for every [`Machine`]. [`Precision`] is the one place where a program
//! meets the instructions at hand; [`Engine`] chooses the program.

use std::fmt::Debug;

use fearless_simd::{Level, dispatch};

use super::band::Band;
use super::general::General;
use super::lanes::{Element, Line, Machine, Plain, Wide};
use super::level::SimdLevel;
use super::params::ParamsView;
use super::reading::QueryMix;
use super::shape::Shape;
use super::weighing::Weighing;
use super::windows::Windows;
use crate::kernel::KernelName;

/// What a pass needs besides parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hyper {
    /// Discount γ.
    pub gamma: f64,
    /// Temperature τ.
    pub temperature: f64,
    /// Diagonal mixing ρ.
    pub diagonal_mix: f64,
    /// What mixing does to the query's own column.
    pub query_mix: QueryMix,
}

/// What a column keeps of its attention and what it gets of its own message: (1-ρ, ρ) on the context's columns,
/// and the query's by its [`QueryMix`]. A column that is not a source has no message of its own.
#[derive(Clone, Copy)]
pub struct Mixing<N> {
    /// Columns before the query.
    pub context: (N, N),
    /// The query's column.
    pub query: (N, N),
}

impl<N: Copy> Mixing<N> {
    #[inline(always)]
    pub(super) fn new<M: Machine<Number = N>>(m: M, hyper: Hyper) -> Self {
        let rho = hyper.diagonal_mix;
        let pair = |keep: f64, own: f64| (m.splat(M::Element::of(keep)), m.splat(M::Element::of(own)));
        let query = match hyper.query_mix {
            QueryMix::Mixed => pair(1.0 - rho, rho),
            QueryMix::Scaled => pair(1.0 - rho, 0.0),
            QueryMix::Unmixed => pair(1.0, 0.0),
        };
        Self { context: pair(1.0 - rho, rho), query }
    }
}

/// The windows from `first` on, and the parameters they are asked with.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a, E> {
    /// Discount, temperature, mixing.
    pub hyper: Hyper,
    /// The parameters.
    pub params: ParamsView<'a, E>,
    /// The contexts.
    pub windows: &'a Windows<E>,
    /// The first window.
    pub first: usize,
}

/// What a reverse pass is asked for: the derivative of Σ_t `out_bar[t]`·prediction(t), added to `gradient`.
pub struct Feedback<'a, E> {
    /// Discount, temperature, mixing, as in the forward pass.
    pub hyper: Hyper,
    /// The parameters of the forward pass.
    pub params: ParamsView<'a, E>,
    /// Weights of its windows, or of the first of them.
    pub out_bar: &'a [E],
    /// What is added to.
    pub gradient: &'a mut [f64],
}

/// Why a program cannot be used on a minibatch: a score is beyond its range or not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreOutOfRange;

/// Whether all scores were in a program's range.
pub type InRange = Result<(), ScoreOutOfRange>;

/// A forward and reverse pass over windows: `E` is an element, `C` a cell of the machine that runs it.
pub trait Program<E: Element, C> {
    /// The predictions of `out.len()` windows.
    fn forward<M: Machine<Element = E, Cell = C>>(&mut self, m: M, job: Job<'_, E>, out: &mut [E])
    -> InRange;
    /// The gradient, after [`forward`](Self::forward) on the same windows or more.
    fn backward<M: Machine<Element = E, Cell = C>>(&mut self, m: M, feedback: Feedback<'_, E>);
    /// Sum and minimum of the first layer's weights of the first `num` windows' sources for their own columns, before
    /// mixing, after [`forward`](Self::forward). The sum over n·num is the paper's d_t.
    fn diagonal<M: Machine<Element = E, Cell = C>>(&self, m: M, num: usize) -> (f64, f64);
}

/// One of the programs. They are compiled here, once, and apart from one another: in one function they would be too
/// much for the compiler to keep in registers.
pub enum Chosen<'a, E, C> {
    /// The fast pass with the paper's sizes as constants.
    Paper(&'a mut Band<E, C>),
    /// The fast pass.
    Band(&'a mut Band<E, C>),
    /// The pass for anything.
    General(&'a mut General<C>),
}

/// A precision of training: `f32` on sixteen lanes, or `f64`, one number at a time, for checking it.
pub trait Precision: Element {
    /// A number of its machine in memory.
    type Cell: Copy + Default + Debug + Send + Sync;
    /// Whether it trains on the fast program where that applies; the reference does not.
    const FAST: bool;
    /// [`Program::forward`].
    fn forward(
        level: Level,
        program: Chosen<'_, Self, Self::Cell>,
        job: Job<'_, Self>,
        out: &mut [Self],
    ) -> InRange;
    /// [`Program::backward`].
    fn backward(level: Level, program: Chosen<'_, Self, Self::Cell>, feedback: Feedback<'_, Self>);
    /// [`Program::diagonal`].
    fn diagonal(level: Level, program: Chosen<'_, Self, Self::Cell>, num: usize) -> (f64, f64);
}

impl Precision for f64 {
    type Cell = f64;
    const FAST: bool = false;
    fn forward(_: Level, program: Chosen<'_, f64, f64>, job: Job<'_, f64>, out: &mut [f64]) -> InRange {
        match program {
            Chosen::Paper(program) | Chosen::Band(program) => program.forward(Plain, job, out),
            Chosen::General(program) => program.forward(Plain, job, out),
        }
    }
    fn backward(_: Level, program: Chosen<'_, f64, f64>, feedback: Feedback<'_, f64>) {
        match program {
            Chosen::Paper(program) | Chosen::Band(program) => program.backward(Plain, feedback),
            Chosen::General(program) => program.backward(Plain, feedback),
        }
    }
    fn diagonal(_: Level, program: Chosen<'_, f64, f64>, num: usize) -> (f64, f64) {
        match program {
            Chosen::Paper(program) | Chosen::Band(program) => program.diagonal(Plain, num),
            Chosen::General(program) => program.diagonal(Plain, num),
        }
    }
}

impl Precision for f32 {
    type Cell = Line;
    const FAST: bool = true;
    fn forward(level: Level, program: Chosen<'_, f32, Line>, job: Job<'_, f32>, out: &mut [f32]) -> InRange {
        match program {
            Chosen::Paper(program) => dispatch!(level, simd => program.forward_paper(Wide(simd), job, out)),
            Chosen::Band(program) => dispatch!(level, simd => program.forward(Wide(simd), job, out)),
            Chosen::General(program) => dispatch!(level, simd => program.forward(Wide(simd), job, out)),
        }
    }
    fn backward(level: Level, program: Chosen<'_, f32, Line>, feedback: Feedback<'_, f32>) {
        match program {
            Chosen::Paper(program) => dispatch!(level, simd => program.backward_paper(Wide(simd), feedback)),
            Chosen::Band(program) => dispatch!(level, simd => program.backward(Wide(simd), feedback)),
            Chosen::General(program) => dispatch!(level, simd => program.backward(Wide(simd), feedback)),
        }
    }
    fn diagonal(level: Level, program: Chosen<'_, f32, Line>, num: usize) -> (f64, f64) {
        match program {
            Chosen::Paper(program) | Chosen::Band(program) => {
                dispatch!(level, simd => program.diagonal(Wide(simd), num))
            }
            Chosen::General(program) => dispatch!(level, simd => program.diagonal(Wide(simd), num)),
        }
    }
}

/// The passes of a shape: the band where it applies, the general pass elsewhere and where a score leaves the band's
/// range.
#[derive(Clone, Debug)]
pub struct Engine<E: Precision> {
    level: Level,
    band: Option<Band<E, E::Cell>>,
    general: General<E::Cell>,
    used_band: bool,
    /// Windows of the last forward pass.
    asked: usize,
}

impl<E: Precision> Engine<E> {
    /// Buffers for a shape and kernel. A level that the CPU has not is the best it has.
    pub fn new(shape: Shape, kernel: &Weighing, level: SimdLevel) -> Self {
        let band = if E::FAST { Band::new(shape, kernel) } else { None };
        let level = level.find().unwrap_or_else(Level::new);
        Self { level, band, general: General::new(shape, kernel.clone()), used_band: false, asked: 0 }
    }

    /// The program of the last forward pass.
    fn used(&mut self) -> Chosen<'_, E, E::Cell> {
        match &mut self.band {
            Some(band) if self.used_band => band.chosen(self.asked),
            _ => Chosen::General(&mut self.general),
        }
    }

    /// [`Program::forward`].
    pub fn forward(&mut self, job: Job<'_, E>, out: &mut [E]) {
        self.asked = out.len();
        let done = self.band.as_mut().map(|band| E::forward(self.level, band.chosen(out.len()), job, out));
        self.used_band = done == Some(Ok(()));
        if !self.used_band {
            // The general pass takes any score.
            let _ = E::forward(self.level, Chosen::General(&mut self.general), job, out);
        }
    }

    /// [`Program::backward`].
    pub fn backward(&mut self, feedback: Feedback<'_, E>) {
        E::backward(self.level, self.used(), feedback);
    }

    /// [`Program::diagonal`].
    pub fn diagonal(&mut self, num: usize) -> (f64, f64) {
        E::diagonal(self.level, self.used(), num)
    }
}

/// The prediction of one prompt and its derivative by every parameter, by the reference pass: double precision, any mask,
/// `None` for a kernel that cannot be trained.
///
/// `trajectory` has features and reward of every column but a query's of its own.
pub fn reference_gradient(
    shape: &Shape,
    hyper: Hyper,
    kernel: KernelName,
    params: &[f64],
    trajectory: &[(&[f64], f64)],
    query: Option<&[f64]>,
) -> Option<(f64, Vec<f64>)> {
    let mut windows = Windows::default();
    windows.fill(shape.feature_dim, trajectory.iter().copied(), query.into_iter());
    let mut engine = Engine::<f64>::new(*shape, &Weighing::named(kernel)?, SimdLevel::Best);
    let params = ParamsView::new(shape, params);
    let (mut prediction, mut gradient) = ([0.0], vec![0.0; shape.num_params()]);
    engine.forward(Job { hyper, params, windows: &windows, first: 0 }, &mut prediction);
    engine.backward(Feedback { hyper, params, out_bar: &[1.0], gradient: &mut gradient });
    Some((prediction[0], gradient))
}
