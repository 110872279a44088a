//! Where infinitely many layers lead on a context.

use ictd::context::{Context, ContextStatistics, Role};
use ictd::evaluate::Limit;
use ictd::kernel::{Effort, Route};
use ictd::operator::{AppliedOperator, StateOperator};
use ictd::theory::{Certificate, Spectrum};
use ictd::transformer::{Parameters, Transformer};
use serde::Serialize;

use crate::memory::DOUBLE;
use crate::{LabError, Progress, Watched};

/// Largest number of distinct states whose equations are formed and solved; beyond it layers are applied instead ...
const MAX_DENSE: usize = 5000;
/// ... up to this number where they are exact and quick, ...
const MAX_APPLIED: usize = 100_000;
/// ... and to this where weights are computed column by column.
const MAX_COLUMNS: usize = 20_000;
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
    /// ‖R - F v‖/‖R‖, what is left of the summed TD errors at the values as a share of the rewards, where layers were applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
}

/// Refuses what has no fixed point, or one that is too costly with the tolerance that was asked for, if any.
pub(super) fn check_fixed_point(
    transformer: &Transformer,
    statistics: &ContextStatistics,
    effort: &Effort,
    progress: &Progress,
) -> Result<(), LabError> {
    if transformer.config().parameters != Parameters::ThetaStar {
        return Err(LabError::refused("fixed-point", "expected theta_*, found --params"));
    }
    let num_states = statistics.num_groups();
    let attention = &transformer.config().attention;
    let kernel = attention.kernel();
    // Whether blocks can be formed does not depend on the tolerance, and is found out quickly without one.
    let by_column = || -> Result<bool, LabError> {
        let (exact, watch) = (Effort::default(), Watched { progress, prefix: "forward: limit" });
        Ok(AppliedOperator::planned_route(statistics, attention, &exact, &watch)? == Route::Columns)
    };
    let most = match kernel.exponent() {
        Some(_) if num_states > MAX_COLUMNS && by_column()? => MAX_COLUMNS,
        Some(_) if effort.tolerance.is_some() => usize::MAX,
        Some(_) => MAX_APPLIED,
        // Its equations have no more unknowns than there are features, which applying layers does not see.
        None if kernel.linear_scale().is_some() => MAX_DENSE,
        None => MAX_COLUMNS,
    };
    if num_states > most {
        let why = match most {
            MAX_COLUMNS => ", as weights are computed column by column",
            _ => "",
        };
        let problem = format!("the context has {num_states} distinct states, expected at most {most}{why}");
        return Err(LabError::refused("fixed-point", problem));
    }
    Ok(())
}

/// Bytes to look for the limit on so many states: the weights, the equations, and what is made of them to find eigenvalues; or vectors of
/// subspaces.
pub(super) fn memory(num_states: usize) -> f64 {
    let m = num_states as f64;
    DOUBLE * m * if num_states > MAX_DENSE { 64.0 } else { 8.0 * m }
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
        Some(format!(
            "it is looked for up to {JUDGED_STATES} distinct states and there are {states}, --fixed-point does so for more"
        ))
    } else {
        None
    }
}

/// What is known of the layers of theta_* on a context, however many they are.
pub(super) struct Solution {
    certificate: Result<Certificate, LabError>,
    /// The values of infinite depth, column by column.
    values: Result<Vec<f64>, LabError>,
    /// How many transitions the value of every source column rests on; empty for signed weights, and where layers were applied.
    pub effective: Vec<f64>,
    residual: Option<f64>,
}

impl Solution {
    /// By solving equations, or by applying layers where there are many states.
    pub fn of(
        transformer: &Transformer,
        statistics: &ContextStatistics,
        context: &Context,
        effort: &Effort,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        if statistics.num_groups() > MAX_DENSE {
            return Self::applied(transformer, statistics, context, effort, progress);
        }
        let config = transformer.config();
        let operator = StateOperator::of(statistics.clone(), &config.attention, config.gamma)?;
        let by_column = |by_state: Vec<f64>| by_column(by_state, statistics, context);
        let effective = if config.attention.kernel().linear_scale().is_some() {
            Vec::new()
        } else {
            let of_states = (0..statistics.num_groups()).map(|u| operator.effective_transitions(u)).collect();
            let columns = by_column(of_states).into_iter().zip(context.roles());
            columns.filter(|(_, role)| **role == Role::Source).map(|(ess, _)| ess).collect()
        };
        let certificate = Certificate::verdict(&operator, config.step_sizes[0]).map_err(Into::into);
        let solved = operator.infinite_depth();
        // The equations of the counted chain, which layers lead to where every state was left, know no weights: they can be solved where
        // those with weights are singular in double precision.
        let mut chain = None;
        if solved.is_err() && config.attention.kernel().linear_scale().is_none() {
            let watch = Watched { progress, prefix: "forward: limit" };
            let (attention, gamma) = (&config.attention, config.gamma);
            let mut applied = AppliedOperator::new(statistics.clone(), attention, gamma, effort, &watch)?;
            let found = applied.infinite_depth()?;
            chain = Some(found).filter(|found| found.is_complete() && found.products == 0);
        }
        let residual = chain.as_ref().map(|found| found.residual);
        let values = chain.map_or(solved, |found| Ok(found.values));
        Ok(Self { certificate, values: values.map(by_column).map_err(Into::into), effective, residual })
    }

    fn applied(
        transformer: &Transformer,
        statistics: &ContextStatistics,
        context: &Context,
        effort: &Effort,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        let config = transformer.config();
        let watch = Watched { progress, prefix: "forward: limit" };
        let mut operator =
            AppliedOperator::new(statistics.clone(), &config.attention, config.gamma, effort, &watch)?;
        let certificate = Certificate::verdict_applied(&mut operator, config.step_sizes[0])?;
        let limit = operator.infinite_depth()?;
        let residual = limit.residual;
        let values = if limit.is_complete() && operator.route() == Route::Pivots && limit.products > 0 {
            // The equations of the counted chain, which need no products, do not know weights; these do.
            let problem =
                "it rests on weights that pivots stand for, which gives it no bound, expected no --tolerance";
            Err(LabError::refused("fixed-point", problem))
        } else if limit.is_complete() {
            Ok(by_column(limit.values, statistics, context))
        } else {
            let problem = format!(
                "{residual:.1e} of the rewards is left after {} products, expected at most 1e-6",
                limit.products
            );
            Err(LabError::refused("fixed-point", problem))
        };
        Ok(Self { certificate: Ok(certificate), values, effective: Vec::new(), residual: Some(residual) })
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
            residual: self.residual,
        })
    }
}

/// Numbers by state as numbers by column, 0 for terminal ones.
fn by_column(by_state: Vec<f64>, statistics: &ContextStatistics, context: &Context) -> Vec<f64> {
    let value = |j| statistics.group_of(j).map_or(0.0, |u| by_state[u]);
    (0..context.num_columns()).map(value).collect()
}

#[cfg(test)]
mod tests {
    use ictd::context::End;
    use ictd::kernel::{Attention, KernelName};
    use ictd::transformer::TransformerConfig;

    use super::super::{Asked, Wanted, report};
    use super::*;

    fn walk(states: usize, scale: f64) -> Context {
        let rows: Vec<[f64; 1]> = (0..states).map(|k| [scale * (k as f64 / states as f64 - 0.5)]).collect();
        Context::builder().episode(&rows, &vec![1.0; states - 1], End::Terminated).build().unwrap()
    }

    /// Layers that take long get a tolerance of their own; the limit does not.
    #[test]
    fn limits_of_many_states_are_refused_unless_a_tolerance_is_asked_for() {
        let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
        let transformer = TransformerConfig::theta_star(attention, 1000, 0.9).check().unwrap();
        let problem = |context: &Context, tolerance: Option<f64>| {
            let asked = Asked { tolerance, ..Asked::default() };
            let wanted = Wanted { asked, fixed_point: true, ..Wanted::default() };
            report(&transformer, context, wanted, &Progress::default()).unwrap_err().to_string()
        };
        let found = problem(&walk(100_002, 1.0), None);
        assert!(found.contains("100001 distinct states, expected at most 100000"), "{found}");
        // Scores of 1e8 are too large for blocks, with a tolerance too.
        for tolerance in [None, Some(1e-3)] {
            let found = problem(&walk(20_002, 1e6), tolerance);
            assert!(found.contains("expected at most 20000, as weights are computed column"), "{found}");
        }
    }

    /// Ten states, but as many messages as columns.
    #[test]
    fn layers_with_mixing_are_planned_by_columns() {
        let rows: Vec<[f64; 1]> = (0..=40_000).map(|k| [f64::from(k * 7 % 10)]).collect();
        let context = Context::builder().episode(&rows, &vec![1.0; 40_000], End::Truncated).build().unwrap();
        let attention = Attention::new(KernelName::Softmax.at(100.0).unwrap(), 0.1).unwrap();
        let transformer = TransformerConfig::theta_star(attention, 60, 0.9).check().unwrap();
        let wanted = Wanted { last: true, json: true, ..Wanted::default() };
        let found = report(&transformer, &context, wanted, &Progress::default()).unwrap();
        assert_eq!(found.route.name, "pivots");
        assert!(found.route.reason.starts_with("40001 columns: "), "{}", found.route.reason);
    }
}
