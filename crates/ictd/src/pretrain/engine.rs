//! What training runs on: a program on the CPU's lanes.
//!
//! A [`Program`] is mathematics only, one source for every [`Machine`]. [`Precision`] is the one place where a program
//! meets the instructions at hand; [`Engine`] chooses the program.

use std::fmt::Debug;

use fearless_simd::{Level, dispatch};

use super::band::Band;
use super::distance::{add_by_scores, with_symmetric_scores};
use super::factored::Factored;
use super::general::General;
use super::lanes::{Element, Line, Machine, Plain, Wide};
use super::level::SimdLevel;
use super::memory::MEMORY_LIMIT;
use super::params::ParamsView;
use super::reading::QueryMix;
use super::rollout::Windows;
use super::shape::Shape;
use super::states::States;
use super::weighing::Weighing;
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
        let (keep, own) = match hyper.query_mix {
            QueryMix::Mixed => (1.0 - rho, rho),
            QueryMix::Scaled => (1.0 - rho, 0.0),
            QueryMix::Unmixed => (1.0, 0.0),
        };
        let [context_keep, context_own, keep, own] =
            [1.0 - rho, rho, keep, own].map(|x| m.splat(M::Element::of(x)));
        Self { context: (context_keep, context_own), query: (keep, own) }
    }
}

/// The windows from `first` on, and the parameters they are asked with.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a, E> {
    pub hyper: Hyper,
    pub params: ParamsView<'a, E>,
    pub windows: &'a Windows<E>,
    pub first: usize,
}

/// What a reverse pass is asked for: the derivative of Σ_t `out_bar[t]`·prediction(t), added to `gradient`.
pub struct Feedback<'a, E> {
    /// As in the forward pass.
    pub hyper: Hyper,
    pub params: ParamsView<'a, E>,
    /// Weights of its windows, or of the first of them.
    pub out_bar: &'a [E],
    pub gradient: &'a mut [f64],
}

/// Why a program cannot be used on a minibatch: a score is beyond its range or not a number, or columns do not collapse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inapplicable;

/// Whether a program could be used.
pub type Applies = Result<(), Inapplicable>;

/// A forward and reverse pass over windows: `E` is an element, `C` a cell of the machine that runs it.
pub trait Program<E: Element, C> {
    /// The predictions of `out.len()` windows.
    fn forward<M: Machine<Element = E, Cell = C>>(&mut self, m: M, job: Job<'_, E>, out: &mut [E])
    -> Applies;
    /// The gradient, after [`forward`](Self::forward) on the same windows or more.
    fn backward<M: Machine<Element = E, Cell = C>>(&mut self, m: M, feedback: Feedback<'_, E>);
    /// Sum and minimum of the first layer's weights of the first `num` windows' sources for their own columns, before
    /// mixing, after [`forward`](Self::forward). The sum over n·num is the paper's d_t.
    fn diagonal<M: Machine<Element = E, Cell = C>>(&self, m: M, num: usize) -> (f64, f64);
}

/// One of the programs.
#[derive(Clone, Debug)]
pub enum Pass<E, C> {
    States(States<E, C>),
    Band(Band<E, C>),
    Factored(Factored<E, C>),
    General(General<C>),
}

impl<E, C> Pass<E, C> {
    /// The bytes that it would allocate for this many windows, of a pass that takes over from another.
    fn bytes(&self, num_windows: usize) -> f64 {
        match self {
            // Takes over from none.
            Self::States(_) => 0.0,
            Self::Band(band) => band.bytes_of(num_windows),
            Self::Factored(factored) => factored.bytes_of(num_windows),
            Self::General(general) => general.bytes_of(num_windows),
        }
    }

    /// Whether scores are distances.
    fn sees_distances(&self) -> bool {
        match self {
            Self::States(states) => states.kernel().sees_distances(),
            Self::Band(band) => band.kernel().sees_distances(),
            Self::Factored(_) => false,
            Self::General(general) => general.kernel().sees_distances(),
        }
    }
}

/// `each_pass!(pass, program => code)`: the code with the program of a [`Pass`].
macro_rules! each_pass {
    ($pass:expr, $program:ident => $code:expr) => {
        match $pass {
            Pass::States($program) => $code,
            Pass::Band($program) => $code,
            Pass::Factored($program) => $code,
            Pass::General($program) => $code,
        }
    };
}

/// A pass of a precision.
pub type PassOf<E> = Pass<E, <E as Precision>::Cell>;

/// A precision of training: `f32` on sixteen lanes, or `f64`, one number at a time, for checking it.
///
/// Its functions are not generic, so that programs are compiled here and not again where they are used.
pub trait Precision: Element {
    /// A number of its machine in memory.
    type Cell: Copy + Default + Debug + Send + Sync;
    /// Whether it trains on the fast program where that applies; the reference does not.
    const FAST: bool;
    /// [`Program::forward`], of distances with S in A's place.
    fn run_forward(level: Level, pass: &mut PassOf<Self>, job: Job<'_, Self>, out: &mut [Self]) -> Applies;
    /// [`Program::backward`], of distances with S in A's place.
    fn run_backward(level: Level, pass: &mut PassOf<Self>, feedback: Feedback<'_, Self>);
    /// [`Program::diagonal`].
    fn diagonal(level: Level, pass: &PassOf<Self>, num: usize) -> (f64, f64);

    /// The predictions of `out.len()` windows.
    fn forward(level: Level, pass: &mut PassOf<Self>, job: Job<'_, Self>, out: &mut [Self]) -> Applies {
        if !pass.sees_distances() {
            return Self::run_forward(level, pass, job, out);
        }
        let symmetric = with_symmetric_scores(job.params);
        let params = ParamsView::new(job.params.shape(), &symmetric);
        Self::run_forward(level, pass, Job { params, ..job }, out)
    }

    /// The gradient, after [`forward`](Self::forward) on the same windows or more.
    fn backward(level: Level, pass: &mut PassOf<Self>, feedback: Feedback<'_, Self>) {
        if !pass.sees_distances() {
            return Self::run_backward(level, pass, feedback);
        }
        let Feedback { params, gradient, .. } = feedback;
        let (symmetric, mut by_symmetric) = (with_symmetric_scores(params), vec![0.0; gradient.len()]);
        let params = ParamsView::new(params.shape(), &symmetric);
        Self::run_backward(level, pass, Feedback { params, gradient: &mut by_symmetric, ..feedback });
        add_by_scores(params.shape(), &by_symmetric, gradient);
    }
}

impl Precision for f64 {
    type Cell = f64;
    const FAST: bool = false;
    fn run_forward(_: Level, pass: &mut PassOf<f64>, job: Job<'_, f64>, out: &mut [f64]) -> Applies {
        each_pass!(pass, program => program.forward(Plain, job, out))
    }
    fn run_backward(_: Level, pass: &mut PassOf<f64>, feedback: Feedback<'_, f64>) {
        each_pass!(pass, program => program.backward(Plain, feedback))
    }
    fn diagonal(_: Level, pass: &PassOf<f64>, num: usize) -> (f64, f64) {
        each_pass!(pass, program => program.diagonal(Plain, num))
    }
}

impl Precision for f32 {
    type Cell = Line;
    const FAST: bool = true;
    fn run_forward(level: Level, pass: &mut PassOf<f32>, job: Job<'_, f32>, out: &mut [f32]) -> Applies {
        each_pass!(pass, program => dispatch!(level, simd => program.forward(Wide(simd), job, out)))
    }
    fn run_backward(level: Level, pass: &mut PassOf<f32>, feedback: Feedback<'_, f32>) {
        each_pass!(pass, program => dispatch!(level, simd => program.backward(Wide(simd), feedback)))
    }
    fn diagonal(level: Level, pass: &PassOf<f32>, num: usize) -> (f64, f64) {
        each_pass!(pass, program => dispatch!(level, simd => program.diagonal(Wide(simd), num)))
    }
}

/// The passes of a shape, the fastest first: by state where it applies, the band or for linear attention the factored pass
/// where they do, then the general pass, which takes anything. A minibatch that one cannot take goes to the next.
#[derive(Clone, Debug)]
pub struct Engine<E: Precision> {
    level: Level,
    passes: Vec<PassOf<E>>,
    /// Which of them ran last.
    used: usize,
}

impl<E: Precision> Engine<E> {
    /// Buffers for a shape and kernel, with a pass by state if contexts are long. A level that the CPU has not is the best
    /// it has.
    pub fn new(shape: Shape, kernel: &Weighing, level: SimdLevel, by_state: bool) -> Self {
        let states = if E::FAST && by_state { States::new(shape, kernel).map(Pass::States) } else { None };
        let factored = || Factored::new(shape, kernel).map(Pass::Factored);
        let band = || Band::new(shape, kernel).map(Pass::Band);
        let by_position = if E::FAST { factored().or_else(band) } else { None };
        let general = Pass::General(General::new(shape, kernel.clone()));
        let passes = states.into_iter().chain(by_position).chain([general]).collect();
        Self { level: level.find().unwrap_or_else(Level::new), passes, used: 0 }
    }

    /// [`Program::forward`].
    pub fn forward(&mut self, job: Job<'_, E>, out: &mut [E]) {
        for (k, pass) in self.passes.iter_mut().enumerate() {
            self.used = k;
            // Memory is counted for the first pass. Where those that take over would not fit, what they would have found is not
            // known.
            let fits = k == 0 || pass.bytes(out.len()) <= MEMORY_LIMIT;
            if fits && E::forward(self.level, pass, job, out).is_ok() {
                return;
            }
        }
        out.fill(E::of(f64::NAN));
    }

    /// [`Program::backward`].
    pub fn backward(&mut self, feedback: Feedback<'_, E>) {
        E::backward(self.level, &mut self.passes[self.used], feedback);
    }

    /// [`Program::diagonal`].
    pub fn diagonal(&mut self, num: usize) -> (f64, f64) {
        E::diagonal(self.level, &self.passes[self.used], num)
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
    let mut engine = Engine::<f64>::new(*shape, &Weighing::named(kernel)?, SimdLevel::Best, false);
    let params = ParamsView::new(shape, params);
    let (mut prediction, mut gradient) = ([0.0], vec![0.0; shape.num_params()]);
    engine.forward(Job { hyper, params, windows: &windows, first: 0 }, &mut prediction);
    engine.backward(Feedback { hyper, params, out_bar: &[1.0], gradient: &mut gradient });
    Some((prediction[0], gradient))
}
