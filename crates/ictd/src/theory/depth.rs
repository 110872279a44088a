//! How far values are from the limit of infinite depth, layer by layer.

use super::enclosure::Enclosure;
use crate::operator::StateOperator;
use crate::statistics::largest;

/// The values of a layer's iteration from v = 0, beside their limit.
pub(super) struct Descent<'a> {
    operator: &'a StateOperator,
    step_size: f64,
    /// `None` where the equations cannot be told from singular ones in double precision.
    pub enclosure: Option<Enclosure<'a>>,
    /// v_∞.
    pub limit: Vec<f64>,
    /// v_l.
    pub values: Vec<f64>,
    /// The coordinates of v_l; empty without an enclosure.
    coordinates: Vec<f64>,
}

impl<'a> Descent<'a> {
    /// Before the first layer; `None` where there is no limit.
    pub fn new(operator: &'a StateOperator, step_size: f64) -> Option<Self> {
        let limit = operator.infinite_depth().ok()?;
        let enclosure = Enclosure::of(operator);
        let coordinates = enclosure.as_ref().map_or_else(Vec::new, Enclosure::start);
        let values = vec![0.0; limit.len()];
        Some(Self { operator, step_size, enclosure, limit, values, coordinates })
    }

    /// One more layer.
    pub fn layer(&mut self) {
        self.values = match &self.enclosure {
            Some(enclosure) => enclosure.layer(self.step_size, &self.values, &mut self.coordinates),
            None => self.operator.apply(self.step_size, &self.values),
        };
    }

    /// ‖v_l - v_∞‖∞, and a proved bound on it, rounding included.
    pub fn distance(&self) -> (f64, Option<f64>) {
        let Some(enclosure) = &self.enclosure else {
            let distances = self.values.iter().zip(&self.limit).map(|(v, limit)| (v - limit).abs());
            return (largest(distances), None);
        };
        let ball = enclosure.around(&self.coordinates);
        let rounding: Vec<f64> = ball.centre.iter().zip(&self.values).map(|(c, v)| c - v).collect();
        let corrections = enclosure.correction(&self.coordinates).into_iter();
        let distances = corrections.zip(&rounding).map(|(c, r)| (c + r).abs());
        let bounds = rounding.iter().zip(&ball.radius).map(|(r, radius)| r.abs() + radius);
        (largest(distances), Some(largest(bounds)).filter(|bound| bound.is_finite()))
    }
}

/// The distance to infinite depth after 0, …, L layers.
#[derive(Clone, Debug, PartialEq)]
pub struct DepthErrors {
    /// ‖v_l - v_∞‖∞; `None` where values overflow.
    pub errors: Vec<Option<f64>>,
    /// A proved bound on it, rounding included; `None` where nothing is proved.
    pub bounds: Vec<Option<f64>>,
}

impl DepthErrors {
    /// Those of layers with step size α; `None` where there is no limit to be near to. The last of them is that of a
    /// [`Certificate`](super::Certificate) for the same depth, where it converges.
    pub fn of(operator: &StateOperator, step_size: f64, num_layers: usize) -> Option<Self> {
        let mut descent = Descent::new(operator, step_size)?;
        let mut found = Self { errors: Vec::new(), bounds: Vec::new() };
        for layer in 0..=num_layers {
            if layer > 0 {
                descent.layer();
            }
            let (error, bound) = descent.distance();
            let error = Some(error).filter(|error| error.is_finite());
            found.bounds.push(bound.filter(|_| error.is_some()));
            found.errors.push(error);
        }
        Some(found)
    }
}
