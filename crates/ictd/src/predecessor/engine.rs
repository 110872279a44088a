//! Passes over prompts, in single precision on sixteen lanes or in double precision one at a time.

use std::fmt::Debug;

use fearless_simd::{Level, dispatch};

use super::columns::Columns;
use super::comparator;
use super::config::Activation;
use super::memory::Memory;
use super::program::{Feedback, Job, Program as _};
use super::prompts::{Prompts, Transition};
use super::shape::{PredecessorMask, PredecessorShape};
use super::straight::{DEEPEST, Straight};
use super::trainer::{PredecessorError, PredecessorTrainer};
use super::weights::Weights;
use crate::pretrain::SimdLevel;
use crate::pretrain::lanes::{Element, Line, Plain, Wide};

/// One of the passes.
#[derive(Clone, Debug)]
pub enum Pass<E, C> {
    Weights(Weights<C>),
    Memory(Memory<E, C>),
    Straight(Straight<C>),
    Columns(Columns<C>),
}

/// `each_pass!(pass, program => code)`: the code with the program of a [`Pass`].
macro_rules! each_pass {
    ($pass:expr, $program:ident => $code:expr) => {
        match $pass {
            Pass::Weights($program) => $code,
            Pass::Memory($program) => $code,
            Pass::Straight($program) => $code,
            Pass::Columns($program) => $code,
        }
    };
}

/// A precision: `f32` on sixteen lanes, or `f64` for checking it.
///
/// Its functions are not generic, so that programs are compiled here and not again where they are used.
pub trait Arithmetic: Element {
    /// A number of its machine in memory.
    type Cell: Copy + Default + Debug + Send + Sync;
    /// `Program::forward`.
    fn forward(level: Level, pass: &mut Pass<Self, Self::Cell>, job: Job<'_, Self>, out: &mut [Self]);
    /// `Program::backward`.
    fn backward(
        level: Level,
        pass: &mut Pass<Self, Self::Cell>,
        job: Job<'_, Self>,
        feedback: Feedback<'_, Self>,
    );
    /// [`PredecessorTrainer::train_mrp`].
    fn train_mrp(trainer: &mut PredecessorTrainer<Self>) -> Result<(), PredecessorError>;
    /// `comparator::values`.
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
    fn train_mrp(trainer: &mut PredecessorTrainer<Self>) -> Result<(), PredecessorError> {
        trainer.next_mrp()
    }
    fn forward(_: Level, pass: &mut Pass<f64, f64>, job: Job<'_, f64>, out: &mut [f64]) {
        each_pass!(pass, program => program.forward(Plain, job, out));
    }
    fn backward(_: Level, pass: &mut Pass<f64, f64>, job: Job<'_, f64>, feedback: Feedback<'_, f64>) {
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
    fn train_mrp(trainer: &mut PredecessorTrainer<Self>) -> Result<(), PredecessorError> {
        trainer.next_mrp()
    }
    fn forward(level: Level, pass: &mut Pass<f32, Line>, job: Job<'_, f32>, out: &mut [f32]) {
        each_pass!(pass, program => dispatch!(level, simd => program.forward(Wide(simd), job, out)));
    }
    fn backward(level: Level, pass: &mut Pass<f32, Line>, job: Job<'_, f32>, feedback: Feedback<'_, f32>) {
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
    pass: Pass<E, E::Cell>,
}

impl<E: Arithmetic> Engine<E> {
    /// The fastest pass that there is for a shape. A level that the CPU has not is the best it has.
    pub fn new(shape: &PredecessorShape, level: SimdLevel) -> Self {
        let pass = match (shape.activation, shape.mask) {
            (Activation::Linear, PredecessorMask::Sparse) => Pass::Weights(Weights::new(shape)),
            (Activation::Softmax, PredecessorMask::Sparse) => Pass::Memory(Memory::new(shape)),
            (Activation::Linear, PredecessorMask::Full) if shape.num_layers <= DEEPEST => {
                Pass::Straight(Straight::new(shape))
            }
            _ => Pass::Columns(Columns::new(shape)),
        };
        Self { shape: *shape, level: level.find().unwrap_or_else(Level::new), pass }
    }

    /// The pass that takes any shape.
    pub fn by_columns(shape: &PredecessorShape) -> Self {
        Self { shape: *shape, level: Level::new(), pass: Pass::Columns(Columns::new(shape)) }
    }

    /// Whether prompts must say which columns they have.
    pub fn counts_columns(&self) -> bool {
        matches!(self.pass, Pass::Columns(_) | Pass::Memory(_))
    }

    /// `Program::forward`.
    pub fn forward(&mut self, job: Job<'_, E>, out: &mut [E]) {
        E::forward(self.level, &mut self.pass, job, out);
    }

    /// `Program::backward`.
    pub fn backward(&mut self, job: Job<'_, E>, feedback: Feedback<'_, E>) {
        E::backward(self.level, &mut self.pass, job, feedback);
    }

    /// `comparator::values`.
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
