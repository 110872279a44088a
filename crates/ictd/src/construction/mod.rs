//! Transformers of linear attention whose layers are steps of other algorithms: TD(0), TD(λ), the residual gradient, average-reward TD,
//! regression on returns, SARSA, and TD by chain of thought.
//!
//! [`Construction::tokens`] returns every token matrix, each layer computed as its formula is written; [`Construction::query_values`] the values of the query
//! alone, in O(n·d) per layer; [`Construction::direct`] is the algorithm without tokens. All three give the same values; a test says so.
//! [`Construction::gradient`] differentiates it by what is trained of it.
//!
//! ```
//! use ictd::construction::{Algorithm, ConstructionConfig};
//! use ictd::{Context, End};
//!
//! let context = Context::builder().episode(&[[1.0], [0.5], [1.0]], &[1.0, 0.0], End::Truncated).build()?;
//! let td_lambda = ConstructionConfig { lambda: 0.5, ..ConstructionConfig::new(Algorithm::TdLambda, 10) }.check()?;
//! let values = td_lambda.query_values(&context)?;
//! assert_eq!(values.len(), 11);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod algorithm;
mod average_reward;
mod chain_of_thought;
mod config;
mod direct;
mod fixed_point;
mod form;
mod gradient;
mod linear;
mod monte_carlo;
mod reach;
mod residual_gradient;
mod sarsa;
mod td;

pub use algorithm::{Algorithm, AlgorithmError};
pub use config::{ConstructionConfig, ConstructionError};
pub use gradient::ConstructionGradient;
pub use linear::{Head, LinearLayer};

use std::borrow::Cow;

use crate::context::{Context, End};
use crate::linalg::LinalgError;
use crate::matrix::Matrix;
use crate::statistics::largest;
use crate::transformer::ForwardError;
use crate::vector::dot;
use crate::watch::Watch;
use fixed_point::FixedPoint;
use form::{Form, Step};

/// A construction that can be run.
#[derive(Clone, Debug)]
pub struct Construction {
    config: ConstructionConfig,
}

/// What is known of where layers lead, where all are those of the first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outlook {
    /// [`Construction::spectral_radius`]; `None` without layers, or where it could not be found.
    pub spectral_radius: Option<f64>,
    /// The same without directions that no layer changes where there is a limit: below 1 layers converge to it.
    pub rate: Option<f64>,
    /// [`Construction::limit`].
    pub limit: Result<f64, ConstructionError>,
    /// How much of the query's features, as a share of their length, lies outside of what layers reach: no transition speaks of it.
    pub outside: f64,
}

impl Outlook {
    /// Whether the query asks for something that no transition speaks of, and not only by rounding.
    pub fn is_outside(&self) -> bool {
        self.outside > fixed_point::OUTSIDE
    }
}

impl Construction {
    /// What it is made of.
    pub fn config(&self) -> &ConstructionConfig {
        &self.config
    }

    /// Depth L.
    pub fn num_layers(&self) -> usize {
        self.config.num_layers
    }

    fn form(&self) -> Box<dyn Form> {
        self.config.algorithm.form(self.config.gamma, self.config.lambda)
    }

    fn step_size(&self, layer: usize) -> f64 {
        let sizes = &self.config.step_sizes;
        sizes[if sizes.len() == 1 { 0 } else { layer }]
    }

    /// C of a layer for d features.
    fn preconditioner(&self, layer: usize, d: usize) -> Cow<'_, Matrix> {
        match self.config.preconditioners.as_slice() {
            [] => Cow::Owned(Matrix::identity(d)),
            [all] => Cow::Borrowed(all),
            each => Cow::Borrowed(&each[layer]),
        }
    }

    /// What the rows of its token matrices are called, for d features.
    pub fn row_names(&self, feature_dim: usize) -> Vec<String> {
        self.form().row_names(feature_dim)
    }

    /// The matrices of a layer on a trajectory of n transitions with d features; `None` where layers are not of linear attention alone.
    pub fn linear_layer(&self, layer: usize, context_len: usize, feature_dim: usize) -> Option<LinearLayer> {
        let c = self.preconditioner(layer, feature_dim);
        let (rows, columns) = (2 * feature_dim + 1, context_len + 1);
        let td = |lambda| td::Td { gamma: self.config.gamma, lambda }.matrices(rows, columns, &c);
        match self.config.algorithm {
            Algorithm::Td | Algorithm::MonteCarlo => Some(td(0.0)),
            Algorithm::TdLambda => Some(td(self.config.lambda)),
            Algorithm::ResidualGradient => {
                Some(residual_gradient::ResidualGradient::matrices(rows, columns, &c))
            }
            Algorithm::AverageReward => Some(average_reward::AverageReward::matrices(rows + 1, columns, &c)),
            Algorithm::Sarsa | Algorithm::ChainOfThought => None,
        }
    }

    /// Refuses contexts of other than one trajectory whose last state is the query, and those of another feature dimension.
    pub fn check_context(&self, context: &Context) -> Result<(), ConstructionError> {
        let episodes: Vec<End> = context.episodes().map(|(_, end)| end).collect();
        if let Some(c) = self.config.preconditioners.first()
            && c.num_rows() != context.feature_dim()
        {
            let (expected, found) = (context.feature_dim(), c.num_rows());
            return Err(ConstructionError::FeatureDim { expected, found });
        }
        match episodes[..] {
            [_] if context.num_queries() > 0 => Err(ConstructionError::Queries(context.num_queries())),
            [End::Truncated] => Ok(()),
            [_] => Err(ConstructionError::Terminated),
            _ => Err(ConstructionError::Episodes(episodes.len())),
        }
    }

    /// The token matrices before the first and after every layer: the reference path, exactly as the formulas are written.
    pub fn tokens(&self, context: &Context) -> Result<Vec<Matrix>, ConstructionError> {
        self.tokens_watched(context, &())
    }

    /// As [`tokens`](Self::tokens); `watch` is told of every layer.
    pub fn tokens_watched(
        &self,
        context: &Context,
        watch: &dyn Watch,
    ) -> Result<Vec<Matrix>, ConstructionError> {
        let mut tokens = Vec::with_capacity(self.num_layers() + 1);
        self.each_layer(context, watch, |z| tokens.push(z.clone()))?;
        Ok(tokens)
    }

    /// The values of the query before the first and after every layer, read off token matrices of which one is kept at a time; `watch` is
    /// told of every layer.
    pub fn plain_query_values(
        &self,
        context: &Context,
        watch: &dyn Watch,
    ) -> Result<Vec<f64>, ConstructionError> {
        let mut values = Vec::with_capacity(self.num_layers() + 1);
        self.each_layer(context, watch, |z| values.push(self.value(z, context)))?;
        Ok(values)
    }

    /// Hands over the token matrices before the first and after every layer.
    fn each_layer(
        &self,
        context: &Context,
        watch: &dyn Watch,
        mut each: impl FnMut(&Matrix),
    ) -> Result<(), ConstructionError> {
        self.check_context(context)?;
        let form = self.form();
        let mut z = form.prompt(context);
        each(&z);
        for layer in 0..self.num_layers() {
            let c = self.preconditioner(layer, context.feature_dim());
            z = form.layer(&z, self.step(layer, context, &c));
            if z.as_slice().iter().any(|x| !x.is_finite()) {
                return Err(ForwardError::Diverged { layer: layer + 1 }.into());
            }
            each(&z);
            watch.advance(1).map_err(ForwardError::from)?;
        }
        Ok(())
    }

    /// The value of the query, read off a token matrix of this context.
    pub fn value(&self, tokens: &Matrix, context: &Context) -> f64 {
        self.form().value(tokens, context.features_of(context.num_transitions()))
    }

    /// The values of the query before the first and after every layer: the fast path.
    pub fn query_values(&self, context: &Context) -> Result<Vec<f64>, ConstructionError> {
        self.query_values_watched(context, &())
    }

    /// As [`query_values`](Self::query_values); `watch` is told of every layer.
    pub fn query_values_watched(
        &self,
        context: &Context,
        watch: &dyn Watch,
    ) -> Result<Vec<f64>, ConstructionError> {
        self.check_context(context)?;
        let factors = self.form().factors(context);
        let query = context.features_of(context.num_transitions());
        let mut delta = factors.rewards.clone();
        let mut values = vec![0.0];
        for layer in 0..self.num_layers() {
            let c = self.preconditioner(layer, context.feature_dim());
            let change = factors.layer(&mut delta, self.step(layer, context, &c));
            let value = values[layer] + dot(query, &change);
            // Negated, so that NaN is divergence.
            if !(value.is_finite() && crate::vector::all_finite(&delta)) {
                return Err(ForwardError::Diverged { layer: layer + 1 }.into());
            }
            values.push(value);
            watch.advance(1).map_err(ForwardError::from)?;
        }
        Ok(values)
    }

    /// What is known of where layers lead, where all are those of the first: an eigenvalue problem of as many rows as there are features.
    pub fn outlook(&self, context: &Context) -> Result<Outlook, ConstructionError> {
        self.outlook_watched(context, &())
    }

    /// As [`outlook`](Self::outlook); `watch` is told of every transition.
    pub fn outlook_watched(
        &self,
        context: &Context,
        watch: &dyn Watch,
    ) -> Result<Outlook, ConstructionError> {
        self.check_context(context)?;
        let fixed_point = self.fixed_point(context, watch)?;
        let share = (self.num_layers() > 0).then(|| self.step_size(0) / context.num_transitions() as f64);
        Ok(Outlook {
            spectral_radius: share.and_then(|share| fixed_point.spectral_radius(share).ok()),
            rate: share.and_then(|share| fixed_point.rate(share).ok()),
            limit: self.limit_of(&fixed_point, context),
            outside: fixed_point.outside,
        })
    }

    /// What errors of the weights that layers reach are multiplied by in the long run, per layer, where all layers are those of the first;
    /// `None` without layers. Weights that layers reach are those in the span of the C e_i, with e_i what the TD error of transition i is
    /// multiplied by (its features, for TD): features that nothing is said of have weights of 0, which are no errors.
    pub fn spectral_radius(&self, context: &Context) -> Result<Option<f64>, ConstructionError> {
        self.check_context(context)?;
        if self.num_layers() == 0 {
            return Ok(None);
        }
        let share = self.step_size(0) / context.num_transitions() as f64;
        self.fixed_point(context, &())?.spectral_radius(share).map(Some)
    }

    /// The value of the query that layers lead to from weights of 0 where they converge, whatever their step sizes; refused where they
    /// [drift](ConstructionError::Drift), the context leaves it open, or layers have preconditioners of their own.
    pub fn limit(&self, context: &Context) -> Result<f64, ConstructionError> {
        self.check_context(context)?;
        self.limit_of(&self.fixed_point(context, &())?, context)
    }

    fn limit_of(&self, fixed_point: &FixedPoint, context: &Context) -> Result<f64, ConstructionError> {
        if self.config.preconditioners.len() > 1 {
            let (found, layers) = (self.config.preconditioners.len(), 1);
            return Err(ConstructionError::Preconditioners { found, layers });
        }
        fixed_point.value(context.num_transitions())
    }

    /// That of the first layer's preconditioner.
    fn fixed_point(&self, context: &Context, watch: &dyn Watch) -> Result<FixedPoint, ConstructionError> {
        let c = self.preconditioner(0, context.feature_dim());
        let query = context.features_of(context.num_transitions());
        let reward = largest(context.rewards().iter().map(|r| r.abs()));
        let found = FixedPoint::new(&self.form().factors(context), &c, query, reward, watch);
        Ok(found.map_err(ForwardError::from)?)
    }

    fn step<'a>(&self, layer: usize, context: &Context, preconditioner: &'a Matrix) -> Step<'a> {
        Step { size: self.step_size(layer), num_transitions: context.num_transitions(), preconditioner }
    }
}
