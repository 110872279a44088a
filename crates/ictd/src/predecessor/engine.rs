//! Passes over prompts, in single precision on sixteen lanes or in double precision one at a time.

use std::fmt::Debug;

use fearless_simd::{Level, dispatch};

use super::columns::Columns;
use super::comparator;
use super::config::Activation;
use super::prompts::{Prompts, Transition};
use super::shape::PredecessorShape;
use super::straight::Straight;
use crate::pretrain::SimdLevel;
use crate::pretrain::lanes::{Element, Line, Machine, Plain, Wide};

/// What a pass is asked.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a, E> {
    /// The parameters.
    pub params: &'a [E],
    /// The prompts.
    pub prompts: &'a Prompts<E>,
}

/// What is fed back, and where derivatives go.
#[derive(Debug)]
pub struct Feedback<'a, E> {
    /// Derivatives by the predictions of the first windows.
    pub out_bar: &'a [E],
    /// Derivatives by parameters are added to these.
    pub gradient: &'a mut [f64],
    /// Derivatives by the queries' features, feature by feature, window by window.
    pub query_bar: Option<&'a mut [E]>,
}

/// A pass on a machine.
pub trait Program<M: Machine> {
    /// Predictions of as many windows as there is room for.
    fn forward(&mut self, m: M, job: Job<'_, M::Element>, out: &mut [M::Element]);
    /// Derivatives after [`forward`](Self::forward) of the same job.
    fn backward(&mut self, m: M, job: Job<'_, M::Element>, feedback: Feedback<'_, M::Element>);
}

/// One of the passes.
#[derive(Clone, Debug)]
pub enum Pass<C> {
    Straight(Straight<C>),
    Columns(Columns<C>),
}

/// `each_pass!(pass, program => code)`: the code with the program of a [`Pass`].
macro_rules! each_pass {
    ($pass:expr, $program:ident => $code:expr) => {
        match $pass {
            Pass::Straight($program) => $code,
            Pass::Columns($program) => $code,
        }
    };
}

/// A precision: `f32` on sixteen lanes, or `f64` for checking it.
pub trait Arithmetic: Element {
    /// A number of its machine in memory.
    type Cell: Copy + Default + Debug + Send + Sync;
    /// [`Program::forward`].
    fn forward(level: Level, pass: &mut Pass<Self::Cell>, job: Job<'_, Self>, out: &mut [Self]);
    /// [`Program::backward`].
    fn backward(level: Level, pass: &mut Pass<Self::Cell>, job: Job<'_, Self>, feedback: Feedback<'_, Self>);
    /// [`comparator::values`].
    fn comparator(
        level: Level,
        shape: &PredecessorShape,
        alpha: f64,
        prompts: &Prompts<Self>,
        out: [&mut [Self]; 2],
    );
}

impl Arithmetic for f64 {
    type Cell = f64;
    fn forward(_: Level, pass: &mut Pass<f64>, job: Job<'_, f64>, out: &mut [f64]) {
        each_pass!(pass, program => program.forward(Plain, job, out));
    }
    fn backward(_: Level, pass: &mut Pass<f64>, job: Job<'_, f64>, feedback: Feedback<'_, f64>) {
        each_pass!(pass, program => program.backward(Plain, job, feedback));
    }
    fn comparator(
        _: Level,
        shape: &PredecessorShape,
        alpha: f64,
        prompts: &Prompts<f64>,
        out: [&mut [f64]; 2],
    ) {
        comparator::values(Plain, shape, alpha, prompts, out);
    }
}

impl Arithmetic for f32 {
    type Cell = Line;
    fn forward(level: Level, pass: &mut Pass<Line>, job: Job<'_, f32>, out: &mut [f32]) {
        each_pass!(pass, program => dispatch!(level, simd => program.forward(Wide(simd), job, out)));
    }
    fn backward(level: Level, pass: &mut Pass<Line>, job: Job<'_, f32>, feedback: Feedback<'_, f32>) {
        each_pass!(pass, program => dispatch!(level, simd => program.backward(Wide(simd), job, feedback)));
    }
    fn comparator(
        level: Level,
        shape: &PredecessorShape,
        alpha: f64,
        prompts: &Prompts<f32>,
        out: [&mut [f32]; 2],
    ) {
        dispatch!(level, simd => comparator::values(Wide(simd), shape, alpha, prompts, out));
    }
}

/// A pass of a shape, in a precision.
#[derive(Clone, Debug)]
pub struct Engine<E: Arithmetic> {
    shape: PredecessorShape,
    level: Level,
    pass: Pass<E::Cell>,
}

impl<E: Arithmetic> Engine<E> {
    /// The fastest pass that there is for a shape. A level that the CPU has not is the best it has.
    pub fn new(shape: &PredecessorShape, level: SimdLevel) -> Self {
        let straight = if shape.activation == Activation::Linear { Straight::new(shape) } else { None };
        let pass = straight.map_or_else(|| Pass::Columns(Columns::new(shape)), Pass::Straight);
        Self { shape: *shape, level: level.find().unwrap_or_else(Level::new), pass }
    }

    /// The pass that takes any shape.
    pub fn by_columns(shape: &PredecessorShape) -> Self {
        Self { shape: *shape, level: Level::new(), pass: Pass::Columns(Columns::new(shape)) }
    }

    /// Whether prompts must say which columns they have.
    pub fn counts_columns(&self) -> bool {
        matches!(self.pass, Pass::Columns(_))
    }

    /// [`Program::forward`].
    pub fn forward(&mut self, job: Job<'_, E>, out: &mut [E]) {
        E::forward(self.level, &mut self.pass, job, out);
    }

    /// [`Program::backward`].
    pub fn backward(&mut self, job: Job<'_, E>, feedback: Feedback<'_, E>) {
        E::backward(self.level, &mut self.pass, job, feedback);
    }

    /// [`comparator::values`].
    pub fn comparator(&self, alpha: f64, prompts: &Prompts<E>, out: [&mut [E]; 2]) {
        E::comparator(self.level, &self.shape, alpha, prompts, out);
    }
}

/// A prediction and its derivatives.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueAndGradient {
    /// -Z_L[last, last].
    pub value: f64,
    /// By every entry of P and Q.
    pub by_params: Vec<f64>,
    /// By the query's features.
    pub by_query: Vec<f64>,
}

/// The prediction of one prompt and its derivatives in double precision, by the way that training takes for the shape or,
/// where `by_columns`, by the one that takes any.
pub fn value_and_gradient(
    shape: &PredecessorShape,
    params: &[f64],
    gamma: f64,
    context: &[Transition<'_>],
    query: &[f64],
    by_columns: bool,
) -> ValueAndGradient {
    let mut engine = if by_columns { Engine::by_columns(shape) } else { Engine::new(shape, SimdLevel::Best) };
    let mut prompts = Prompts::default();
    prompts.fill(
        shape,
        gamma,
        engine.counts_columns(),
        context.iter().copied().enumerate(),
        [(0, query)].into_iter(),
    );
    let job = Job { params, prompts: &prompts };
    let (mut value, mut by_params, mut by_query) =
        ([0.0], vec![0.0; shape.num_params()], vec![0.0; shape.feature_dim]);
    engine.forward(job, &mut value);
    let query_bar = Some(&mut by_query[..]);
    engine.backward(job, Feedback { out_bar: &[1.0], gradient: &mut by_params, query_bar });
    ValueAndGradient { value: value[0], by_params, by_query }
}
