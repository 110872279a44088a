//! The constructions in linear attention against their algorithms.

use ictd::construction::{Algorithm, ConstructionConfig};
use ictd::context::Context;
use ictd::statistics::largest;
use ictd::watch::{Stopped, Watch};
use serde::Serialize;

use super::verify::{VerifyConfig, raise};
use crate::{LabError, Progress};

/// Decay of traces, as in the verification of arXiv 2405.13861.
const LAMBDA: f64 = 0.5;
/// A chain of thought grows with every layer, and what it costs with the square of their number: no more are compared.
pub(super) const MOST_LAYERS: usize = 200;

/// The largest discrepancies of one construction over all trials and layers, each divided by the size of the numbers compared where that
/// exceeds 1.
#[derive(Clone, Debug, Serialize)]
pub struct ConstructionDiscrepancies {
    pub(super) construction: Algorithm,
    /// Layers that were compared.
    pub(super) layers: usize,
    /// Values of the query: token matrices against the algorithm written directly.
    pub(super) tokens_vs_direct: f64,
    /// Values of the query: token matrices against the fast path.
    pub(super) full_vs_fast: f64,
}

/// Compares every construction on all contexts.
pub(super) fn run(
    config: &VerifyConfig,
    contexts: &[Context],
    progress: &Progress,
) -> Result<Vec<ConstructionDiscrepancies>, LabError> {
    let layers = config.num_layers.min(MOST_LAYERS);
    let of = |construction| -> Result<ConstructionDiscrepancies, LabError> {
        let mut row =
            ConstructionDiscrepancies { construction, layers, tokens_vs_direct: 0.0, full_vs_fast: 0.0 };
        for context in contexts {
            compare(config.gamma, context, &mut row, progress)?;
            progress.step(1)?;
        }
        Ok(row)
    };
    Algorithm::ALL.into_iter().map(of).collect()
}

/// Raises the discrepancies of a construction to those of one context.
fn compare(
    gamma: f64,
    context: &Context,
    row: &mut ConstructionDiscrepancies,
    progress: &Progress,
) -> Result<(), LabError> {
    let usual = ConstructionConfig::new(row.construction, row.layers);
    let is = |algorithm| row.construction == algorithm;
    let construction = ConstructionConfig {
        lambda: if is(Algorithm::TdLambda) { LAMBDA } else { 0.0 },
        gamma: if is(Algorithm::AverageReward) { usual.gamma } else { gamma },
        step_sizes: vec![step_size(context)],
        ..usual
    }
    .check()?;
    let plain = construction.plain_query_values(context, &Stops(progress))?;
    let last = context.num_transitions();
    let direct: Vec<f64> = construction.direct().run(context)?.iter().map(|values| values[last]).collect();
    raise(&mut row.tokens_vs_direct, &plain, &direct);
    raise(&mut row.full_vs_fast, &plain, &construction.query_values(context)?);
    Ok(())
}

/// Ends work between layers, which are not counted.
struct Stops<'a>(&'a Progress);

impl Watch for Stops<'_> {
    fn begin(&self, _: &str, _: &'static str, _: u64) -> Result<(), Stopped> {
        Ok(())
    }

    fn advance(&self, _: u64) -> Result<(), Stopped> {
        self.0.check().map_err(|_| Stopped)
    }
}

/// A step size at which no construction multiplies errors by more than 2 in a layer: traces are at most twice as long as the
/// longest features here, and differences too.
fn step_size(context: &Context) -> f64 {
    let squares = (0..context.num_columns()).map(|j| context.features_of(j).iter().map(|x| x * x).sum());
    let longest: f64 = largest(squares);
    if longest > 0.0 { 1.0 / (4.0 * longest) } else { 1.0 }
}
