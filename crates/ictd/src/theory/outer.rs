//! The outermost eigenvalues of a layer on many states, by Krylov iteration.

use serde::Serialize;

use crate::krylov::{Arnoldi, Ritz};
use crate::linalg::Eigenvalue;
use crate::operator::{AppliedOperator, OperatorError};
use crate::random::{Purpose, Stream};

/// Products between two looks at what was found.
const LOOK: usize = 10;
/// An eigenvalue counts as found when its residual is below this share of the distance that decides: to the unit circle, or to the
/// imaginary axis. Where vectors are far from orthogonal residuals say less about eigenvalues, but they do say what layers do: with a
/// residual ε at a distance δ outside the circle some number of layers enlarges an error δ/ε times, a thousandfold (Kreiss, 1962).
const FOUND: f64 = 1e-3;
/// Distances below this are rounding.
const NOISE: f64 = 1e-9;

/// Layers that change errors by less than this do not bring them anywhere.
const STILL: f64 = 1e-12;

/// What an iteration found of the eigenvalues of J = I - α(M - γP) on TD errors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Krylov {
    /// The iteration.
    pub method: &'static str,
    /// Products with the weights that it took.
    pub products: usize,
    /// ‖J x - θ x‖/‖x‖ of the eigenvalue θ below with its vector x, computed from a product with x: θ is an eigenvalue of a matrix that
    /// differs from J by so much.
    pub residual: f64,
    /// An eigenvalue outside the unit circle where one was found, else the largest of the iteration, found or not.
    pub ritz: Eigenvalue,
}

/// The outermost eigenvalues, and what is known of them.
#[derive(Clone, Debug)]
pub(super) struct Outer {
    pub krylov: Krylov,
    /// The largest |1 - αλ|, where it was found.
    pub radius: Option<f64>,
    /// The smallest real part of the λ, where it was found.
    pub smallest_real_part: Option<f64>,
}

/// Where a Ritz value θ of F Wᵀ stands: 1 - αθ, or its conjugate, and how far that is from the unit circle.
struct Place {
    factor: Eigenvalue,
    modulus: f64,
    distance: f64,
}

impl Place {
    fn of(value: Eigenvalue, step_size: f64) -> Self {
        let factor = Eigenvalue { re: 1.0 - step_size * value.re, im: step_size * value.im };
        let modulus = factor.modulus();
        Self { factor, modulus, distance: (1.0 - modulus).abs() }
    }
}

/// Whether a residual is small beside the distance that decides.
fn is_small(residual: f64, distance: f64) -> bool {
    distance > NOISE && residual < FOUND * distance
}

/// The Ritz values that decide: one outside the unit circle that seems to be found, if any; the outermost; the one with the smallest
/// real part.
struct Deciding<'a> {
    outside: Option<&'a Ritz>,
    leading: &'a Ritz,
    lowest: &'a Ritz,
}

impl<'a> Deciding<'a> {
    fn of(ritz: &'a [Ritz], step_size: f64) -> Option<Self> {
        let place = |r: &Ritz| Place::of(r.value, step_size);
        let share = |r: &Ritz| step_size * r.estimate / place(r).distance;
        let outside = ritz.iter().filter(|r| place(r).modulus > 1.0);
        let outside = outside
            .filter(|r| is_small(step_size * r.estimate, place(r).distance))
            .min_by(|a, b| share(a).total_cmp(&share(b)));
        let leading = ritz.iter().max_by(|a, b| place(a).modulus.total_cmp(&place(b).modulus))?;
        let lowest = ritz.iter().min_by(|a, b| a.value.re.total_cmp(&b.value.re))?;
        Some(Self { outside, leading, lowest })
    }

    /// Whether more products would change nothing.
    fn is_settled(&self, step_size: f64) -> bool {
        let leading = Place::of(self.leading.value, step_size);
        let both = is_small(10.0 * step_size * self.leading.estimate, leading.distance)
            && is_small(10.0 * self.lowest.estimate, self.lowest.value.re.abs());
        let sure = |r: &Ritz| is_small(10.0 * step_size * r.estimate, Place::of(r.value, step_size).distance);
        self.outside.is_some_and(sure) || both
    }
}

impl Outer {
    /// By Arnoldi's iteration on summed TD errors of at most so many products; `None` where there is nothing to iterate on, or numbers
    /// overflow.
    pub fn of(
        operator: &mut AppliedOperator<'_>,
        step_size: f64,
        most: usize,
    ) -> Result<Option<Self>, OperatorError> {
        // Any fixed stream will do: the vector has a share of every direction.
        let sources = operator.statistics().num_source_groups();
        let start = Stream::new(0, Purpose::Evaluation, 3).uniform_vec(sources, -1.0, 1.0);
        let Some(mut arnoldi) = Arnoldi::new(&start) else { return Ok(None) };
        operator.begin("eigenvalues", most + 4)?;
        let mut apply = |y: &[f64]| operator.error_map(y);
        let mut ritz = Vec::new();
        while arnoldi.steps() < most {
            let more = arnoldi.extend(&mut apply)?;
            if !more || arnoldi.steps().is_multiple_of(LOOK) || arnoldi.steps() == most {
                ritz = arnoldi.ritz()?;
                if !more || Deciding::of(&ritz, step_size).is_some_and(|found| found.is_settled(step_size)) {
                    break;
                }
            }
        }
        let Some(Deciding { outside, leading, lowest }) = Deciding::of(&ritz, step_size) else {
            return Ok(None);
        };
        let mut products = arnoldi.steps();
        let mut residual = |ritz: &Ritz| {
            products += if ritz.value.im == 0.0 { 1 } else { 2 };
            arnoldi.residual(ritz, &mut apply)
        };
        let shown = outside.unwrap_or(leading);
        let place = Place::of(shown.value, step_size);
        let of_shown = residual(shown)?;
        let is_found = is_small(step_size * of_shown, place.distance);
        let is_leading = std::ptr::eq(shown, leading);
        // One outside says that the largest is there too, wherever it is.
        let radius = (is_found && is_leading).then_some(place.modulus);
        let of_lowest = if std::ptr::eq(lowest, shown) { of_shown } else { residual(lowest)? };
        let smallest_real_part = is_small(of_lowest, lowest.value.re.abs()).then_some(lowest.value.re);
        let krylov =
            Krylov { method: "arnoldi", products, residual: step_size * of_shown, ritz: place.factor };
        Ok(Some(Self { krylov, radius, smallest_real_part }))
    }

    /// Whether an eigenvalue is so near to 1 that its errors stay for more than 10¹² layers, by a residual that is as small.
    pub fn stands_still(&self) -> bool {
        (1.0 - self.krylov.ritz.modulus()).abs().max(self.krylov.residual) < STILL
    }

    /// How many times larger an error gets at some depth at least, where an eigenvalue outside the unit circle was found: its distance
    /// from the circle over its residual.
    pub fn growth(&self) -> Option<f64> {
        let distance = self.krylov.ritz.modulus() - 1.0;
        let found = distance > 0.0 && is_small(self.krylov.residual, distance);
        // Residuals below rounding are no better than it.
        found.then(|| distance / self.krylov.residual.max(f64::EPSILON))
    }
}
