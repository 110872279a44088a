//! Where infinitely many layers lead on a context.

use ictd::context::{Context, ContextStatistics, Role};
use ictd::evaluate::Limit;
use ictd::operator::StateOperator;
use ictd::theory::{Certificate, Spectrum};
use ictd::transformer::{Parameters, Transformer};
use serde::Serialize;

use crate::LabError;

/// Largest number of distinct states of the fixed point: its system is dense.
const MAX_STATES: usize = 5000;
/// Largest number of distinct states whose fixed point is looked for unasked, to judge values: it takes a fraction of a second.
const JUDGED_STATES: usize = 500;

/// The infinite-depth values and whether the iteration reaches them.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FixedPoint {
    pub values: Vec<f64>,
    /// Factor by which TD errors shrink per layer in the long run, at the first layer's step size; absent where it could not be
    /// found.
    pub spectral_radius: Option<f64>,
    /// Whether layers with that step size reach the values: what a certificate says, so not where rounding decides.
    pub converges: bool,
    /// The certificate's status: `certified`, `estimated`, `refused` or `undecided`.
    pub status: &'static str,
}

/// Refuses what has no fixed point, or one that is too costly.
pub(super) fn check_fixed_point(
    transformer: &Transformer,
    statistics: &ContextStatistics,
) -> Result<(), LabError> {
    if transformer.config().parameters != Parameters::ThetaStar {
        return Err(LabError::refused("fixed-point", "expected theta_*, found --params"));
    }
    let num_states = statistics.num_groups();
    if num_states > MAX_STATES {
        let problem = format!("the context has {num_states} distinct states, expected at most {MAX_STATES}");
        return Err(LabError::refused("fixed-point", problem));
    }
    Ok(())
}

/// Why the limit is not looked for; `None` where it is.
pub(super) fn why_unknown(
    transformer: &Transformer,
    statistics: &ContextStatistics,
    with_fixed_point: bool,
) -> Option<String> {
    let (config, states) = (transformer.config(), statistics.num_groups());
    if with_fixed_point {
        None
    } else if config.parameters != Parameters::ThetaStar {
        Some("it is looked for without --params only".into())
    } else if config.attention.diagonal_mix() != 0.0 {
        Some("it is looked for without diagonal mixing only".into())
    } else if states > JUDGED_STATES {
        let more = if states <= MAX_STATES { ", --fixed-point does so for more" } else { "" };
        Some(format!("it is looked for up to {JUDGED_STATES} distinct states and there are {states}{more}"))
    } else {
        None
    }
}

/// What is known of the layers of theta_* on a context, however many they are.
pub(super) struct Solution {
    certificate: Result<Certificate, LabError>,
    /// The values of infinite depth, column by column.
    values: Result<Vec<f64>, LabError>,
    /// How many transitions the value of every source column rests on; empty for signed weights.
    pub effective: Vec<f64>,
}

impl Solution {
    pub fn of(
        transformer: &Transformer,
        statistics: &ContextStatistics,
        context: &Context,
    ) -> Result<Self, LabError> {
        let config = transformer.config();
        let operator = StateOperator::of(statistics.clone(), &config.attention, config.gamma)?;
        let by_column = |by_state: Vec<f64>| -> Vec<f64> {
            let value = |j| statistics.group_of(j).map_or(0.0, |u| by_state[u]);
            (0..context.num_columns()).map(value).collect()
        };
        let effective = if config.attention.kernel().linear_scale().is_some() {
            Vec::new()
        } else {
            let of_states = (0..statistics.num_groups()).map(|u| operator.effective_transitions(u)).collect();
            let columns = by_column(of_states).into_iter().zip(context.roles());
            columns.filter(|(_, role)| **role == Role::Source).map(|(ess, _)| ess).collect()
        };
        Ok(Self {
            certificate: Certificate::verdict(&operator, config.step_sizes[0]).map_err(Into::into),
            values: operator.infinite_depth().map(by_column).map_err(Into::into),
            effective,
        })
    }

    /// Where more layers lead.
    pub fn limit(&self) -> Limit<'_> {
        let certificate = match &self.certificate {
            Ok(certificate) => certificate,
            Err(error) => return Limit::Unknown(error.to_string()),
        };
        let unstable = certificate.stability.spectrum.as_ref().is_some_and(Spectrum::is_unstable);
        let too_large = certificate.steps.largest_stable.is_some_and(|limit| certificate.step_size >= limit);
        match (&self.values, certificate.contraction.spectral_radius) {
            (Ok(values), _) if certificate.status.converges() => Limit::Known(values),
            (_, Some(radius)) if (unstable || too_large) && radius >= 1.0 => Limit::Diverges(radius),
            (Err(error), _) => Limit::Unknown(error.to_string()),
            _ => Limit::Unknown("rounding decides whether layers converge".into()),
        }
    }

    pub fn fixed_point(self) -> Result<FixedPoint, LabError> {
        let (values, certificate) = (self.values?, self.certificate?);
        Ok(FixedPoint {
            values,
            spectral_radius: certificate.contraction.spectral_radius,
            converges: certificate.status.converges(),
            status: certificate.status.as_str(),
        })
    }
}
