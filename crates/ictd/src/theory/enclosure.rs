//! Proved bounds on the distance to infinite depth, rounding included.
//!
//! Every iterate is v = U y, and the limit is v_∞ = U y_∞ with K y_∞ = β ([`Coordinates`]); U has a row for every
//! state, queries included. So for any y at all
//!
//! v_∞ - U y = U K⁻¹ (β - K y),
//!
//! and the residual β - K y, summed TD errors, bounds the error of every state at once. With an approximate inverse Q
//! and E = I - K Q, ‖E‖ < 1, K⁻¹ = Q (I - E)⁻¹ whatever rounding did to Q.
//!
//! # Numerics
//! Sums of n terms are off by at most n·ε/2 of the sum of sizes (γ_n of rounding analysis); bounds here use n·ε, and
//! the other half pays for rounding in the bounds. Data are features, γ, visits, counts and reward sums as doubles;
//! underflow is not accounted for.

use crate::linalg;
use crate::matrix::Matrix;
use crate::operator::{Coordinates, StateOperator};
use crate::statistics::largest;

/// E must be at most this, so that its share of a bound is no larger than the rest.
const VERIFIED: f64 = 0.5;

/// U K⁻¹, enclosed.
pub(super) struct Enclosure<'a> {
    operator: &'a StateOperator,
    coordinates: Coordinates,
    /// Q, about K⁻¹.
    inverse: Matrix,
    /// U Q.
    response: Matrix,
    /// A bound on E in the norm max |x_i|/scale_i.
    defect: f64,
    /// ε times the largest number of terms of a sum.
    unit: f64,
}

/// Values, and how far they are from the limit at most.
pub(super) struct Ball {
    pub centre: Vec<f64>,
    pub radius: Vec<f64>,
}

fn add(x: &mut [f64], factor: f64, y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += factor * y);
}

fn sizes(x: &[f64]) -> Vec<f64> {
    x.iter().map(|x| x.abs()).collect()
}

impl<'a> Enclosure<'a> {
    /// `None` when the system cannot be told from a singular one in double precision.
    pub fn of(operator: &'a StateOperator) -> Option<Self> {
        let coordinates = Coordinates::of(operator);
        let inverse = linalg::approximate_inverse(&coordinates.system).ok()?;
        let response = linalg::product(&coordinates.basis, &inverse).ok()?;
        let product = linalg::product(&coordinates.system, &inverse).ok()?;
        let unit = f64::EPSILON * (operator.num_terms() + product.num_rows() + 16) as f64;
        let scales = &coordinates.scales;
        let defect = &Matrix::identity(product.num_rows()) - &product;
        let spread = inverse.mul_vec_of_sizes(scales);
        let mut rows = defect.mul_vec_of_sizes(scales);
        add(&mut rows, unit, &coordinates.system.mul_vec_of_sizes(&spread));
        let mut moved = coordinates.basis_error(&spread);
        add(&mut moved, unit, &coordinates.basis.mul_vec_of_sizes(&spread));
        add(&mut rows, 1.0 + unit, &coordinates.project_size(&operator.error_sizes(&moved)));
        let defect = largest(rows.iter().zip(scales).map(|(r, c)| r / c));
        (defect <= VERIFIED).then_some(Self { operator, coordinates, inverse, response, defect, unit })
    }

    /// U y, and a bound on its distance from v_∞, state by state.
    pub fn around(&self, y: &[f64]) -> Ball {
        let (centre, mut radius, summed) = self.values(y);
        let residual = self.coordinates.project(&summed);
        let statistics = self.operator.statistics();
        // Rounding of U y, of the TD errors, and of their projection.
        let mut sizes_of_errors = self.operator.error_sizes(&radius);
        let mut terms = self.operator.error_sizes(&sizes(&centre));
        add(&mut terms, 1.0, &sizes(statistics.reward_sums()));
        add(&mut terms, 1.0, &sizes(&summed));
        add(&mut sizes_of_errors, self.unit, &terms);
        let mut bound = sizes(&residual);
        add(&mut bound, 1.0 + self.unit, &self.coordinates.project_size(&sizes_of_errors));
        add(&mut radius, 1.0, &self.response_to(&bound));
        radius.iter_mut().for_each(|r| *r *= 1.0 + self.unit);
        Ball { centre, radius }
    }

    /// U Q r for the residual r of y: the distance from U y to the limit, up to rounding.
    pub fn correction(&self, y: &[f64]) -> Vec<f64> {
        self.response.mul_vec(&self.coordinates.project(&self.values(y).2))
    }

    /// U y, a bound on its rounding, and its summed TD errors.
    fn values(&self, y: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let basis = &self.coordinates.basis;
        let centre = basis.mul_vec(y);
        let mut rounding = self.coordinates.basis_error(&sizes(y));
        add(&mut rounding, self.unit, &basis.mul_vec_of_sizes(&sizes(y)));
        let summed = self.operator.summed_errors(&centre);
        (centre, rounding, summed)
    }

    /// A bound on |U K⁻¹ r|, state by state, over all residuals r of sizes up to `residual`.
    fn response_to(&self, residual: &[f64]) -> Vec<f64> {
        let Coordinates { basis, scales, .. } = &self.coordinates;
        let share = largest(residual.iter().zip(scales).map(|(r, c)| r / c));
        let mut all = residual.to_vec();
        add(&mut all, share * self.defect / (1.0 - self.defect), scales);
        let inner = self.inverse.mul_vec_of_sizes(&all);
        let mut bound = self.response.mul_vec_of_sizes(&all);
        add(&mut bound, self.unit, &basis.mul_vec_of_sizes(&inner));
        add(&mut bound, 1.0, &self.coordinates.basis_error(&inner));
        bound.iter_mut().for_each(|b| *b *= 1.0 + self.unit);
        bound
    }

    /// A bound on what errors of at most 1 on the states that were left make of the error of every state.
    pub fn amplification(&self) -> Vec<f64> {
        let ones = vec![1.0; self.operator.statistics().num_groups()];
        let residual = self.coordinates.project_size(&self.operator.error_sizes(&ones));
        self.response_to(&residual)
    }

    /// The coordinates of v = 0.
    pub fn start(&self) -> Vec<f64> {
        vec![0.0; self.coordinates.right.len()]
    }

    /// The values after one more layer; their coordinates y move along.
    pub fn layer(&self, step_size: f64, values: &[f64], y: &mut [f64]) -> Vec<f64> {
        let errors = self.operator.summed_errors(values);
        add(y, step_size * self.coordinates.step, &self.coordinates.project(&errors));
        self.operator.apply_errors(step_size, values, &errors)
    }

    /// How many layers bring every state within `tolerance` of the limit, as computed in double precision, given
    /// ‖J‖∞ ≤ `norm` < 1 on the states that were left, and that nothing else is reached.
    ///
    /// On those states the error after L layers is at most norm^L·V + η/(1 - norm), with V the largest limit and η the
    /// rounding of one layer. On any other state u it is at most A(u)·(that + L·η) + L·η, with A(u) its
    /// [`amplification`](Self::amplification): roundings of the left states add up to L·η there too, and move the
    /// residual like errors do.
    pub fn sufficient_layers(&self, step_size: f64, norm: f64, tolerance: f64) -> Option<u64> {
        let statistics = self.operator.statistics();
        let sources = statistics.num_source_groups();
        // The limit as computed: U Q β.
        let limit = self.around(&self.inverse.mul_vec(&self.coordinates.right));
        let upper: Vec<f64> = limit.centre.iter().zip(&limit.radius).map(|(c, r)| c.abs() + r).collect();
        // Before any layer every value is 0.
        if largest(upper.iter().copied()) <= tolerance {
            return Some(0);
        }
        let start = largest(upper[..sources].iter().copied());
        let others = largest(self.amplification().into_iter().skip(sources));
        let errors = self.operator.weight_errors();
        // Values stay within 3·V, and TD errors with them, as long as rounding adds up to V at most: checked below.
        let rewards = statistics.reward_sums().iter().zip(statistics.visits()).map(|(r, c)| (r / c).abs());
        let td = (1.0 + self.operator.gamma()) * 3.0 * start + largest(rewards);
        let rounding = |u: usize, values: f64| {
            let weight: f64 = self.operator.predecessor_weights(u).map(f64::abs).sum();
            self.unit * (step_size * weight * td + values) + step_size * errors[u] * td
        };
        let on_left = largest((0..sources).map(|u| rounding(u, 3.0 * start)));
        // Elsewhere values stay within this.
        let range = largest(upper.iter().copied()) + (3.0 * others + 1.0) * start;
        let on_others = largest((sources..upper.len()).map(|u| rounding(u, range)));
        let floor = on_left / (1.0 - norm);
        let log = (norm - 1.0).ln_1p();
        // What rounding alone can do on states that were left, and elsewhere.
        let rounded = |layers: f64| {
            let elsewhere = others * (floor + layers * on_left) + layers * on_others;
            if sources < upper.len() { floor.max(elsewhere) } else { floor }
        };
        let factor = if sources < upper.len() { others.max(1.0) } else { 1.0 };
        let mut layers = 0.0;
        // Rounding grows with depth: a few rounds find whether both fit.
        for _ in 0..6 {
            let small = floor + layers * on_left.max(on_others) <= start;
            // The power of the norm is itself rounded.
            let reached = (layers * log).exp() * factor * start * (1.0 + 1e-9) + rounded(layers);
            if layers > 0.0 && small && reached <= tolerance {
                return Some(layers as u64);
            }
            let room = (tolerance - rounded(layers)) * (1.0 - 1e-9);
            if !(norm < 1.0 && small && room > 0.0) {
                return None;
            }
            layers = ((room / (factor * start)).ln() / log).ceil().max(1.0);
        }
        None
    }
}
