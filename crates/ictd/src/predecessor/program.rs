//! What a pass is: predictions of windows in lanes and their derivatives, on a machine.

use super::prompts::Prompts;
use crate::pretrain::lanes::{Element, Machine, WIDTH, apart};

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

impl<E: Element> Feedback<'_, E> {
    /// Derivatives by the predictions from window `t` on; lanes without a window have none.
    #[inline(always)]
    pub fn of_windows<M: Machine<Element = E>>(&self, m: M, t: usize) -> M::Number {
        let mut lanes = [E::default(); WIDTH];
        let bars = &self.out_bar[t..];
        let num = bars.len().min(M::LANES);
        lanes[..num].copy_from_slice(&bars[..num]);
        m.load(&lanes)
    }

    /// Writes the derivatives by feature `a` of the queries from window `t` on, where they are asked for.
    #[inline(always)]
    pub fn put_query<M: Machine<Element = E>>(&mut self, m: M, a: usize, t: usize, bar: M::Number) {
        let num = self.out_bar.len();
        if let Some(query_bar) = self.query_bar.as_deref_mut() {
            put_windows(m, bar, &mut query_bar[a * num + t..(a + 1) * num]);
        }
    }
}

/// Stores lanes of a number, no more than there is room for: the last windows may not fill all.
#[inline(always)]
pub fn put_windows<M: Machine>(m: M, x: M::Number, slots: &mut [M::Element]) {
    let mut lanes = [M::Element::default(); WIDTH];
    m.store(x, &mut lanes);
    let num = slots.len().min(M::LANES);
    slots[..num].copy_from_slice(&lanes[..num]);
}

/// Runs the code with the rows of the experiments' sizes, d = 4 and d = 8, as constants.
macro_rules! sized {
    ($m:expr, $k:expr, $rows:ident => $code:expr) => {
        match $k {
            9 if M::UNROLLED => {
                const $rows: usize = 9;
                apart!($m, $code)
            }
            17 if M::UNROLLED => {
                const $rows: usize = 17;
                apart!($m, $code)
            }
            #[allow(non_snake_case, reason = "the same name as where it is a constant")]
            $rows => $code,
        }
    };
}

/// A pass on a machine.
pub trait Program<M: Machine> {
    /// Rows k of Z.
    fn num_rows(&self) -> usize;
    /// [`forward`](Self::forward) for k rows.
    fn forward_of(&mut self, m: M, k: usize, job: Job<'_, M::Element>, out: &mut [M::Element]);
    /// [`backward`](Self::backward) for k rows.
    fn backward_of(&mut self, m: M, k: usize, job: Job<'_, M::Element>, feedback: Feedback<'_, M::Element>);

    /// Predictions of as many windows as there is room for.
    #[inline(always)]
    fn forward(&mut self, m: M, job: Job<'_, M::Element>, out: &mut [M::Element]) {
        sized!(m, self.num_rows(), K => self.forward_of(m, K, job, out));
    }

    /// Derivatives after [`forward`](Self::forward) of the same job.
    #[inline(always)]
    fn backward(&mut self, m: M, job: Job<'_, M::Element>, feedback: Feedback<'_, M::Element>) {
        sized!(m, self.num_rows(), K => self.backward_of(m, K, job, feedback));
    }
}
