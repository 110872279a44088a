//! The result of a seed: its parameters and its best, measured on fresh tasks.

use ictd::pretrain::{Measurement, ParamsView, TrainState, measure};
use serde::{Deserialize, Deserializer, Serialize};

use super::Settings;
use crate::LabError;

/// Fresh tasks that the final numbers of a seed are measured on.
pub(crate) const MEASURED_TASKS: u64 = 300;

/// The numbers of a point of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// `td`, `mirror` or `none`.
    pub branch: String,
    /// V_em.
    #[serde(deserialize_with = "number")]
    pub v_em: f64,
    /// A_em.
    #[serde(deserialize_with = "number")]
    pub a_em: f64,
    /// V_em with the branch's sign.
    #[serde(deserialize_with = "number")]
    pub v_em_signed: f64,
    /// A_em with the diagonal's sign.
    #[serde(deserialize_with = "number")]
    pub a_em_signed: f64,
    /// V's last row, d + 3 numbers.
    pub value_row: Vec<f64>,
    /// A's diagonal, d numbers.
    pub score_diag: Vec<f64>,
    /// d_t on fresh tasks.
    #[serde(deserialize_with = "number")]
    pub diag_mean: f64,
    /// Smallest diagonal weight on fresh tasks.
    #[serde(deserialize_with = "number")]
    pub diag_min: f64,
    /// Mean δ² on fresh tasks.
    #[serde(deserialize_with = "number")]
    pub td_loss: f64,
    /// Mean square error against exact values on fresh tasks; NaN, `null` in JSON, where they are not known.
    #[serde(deserialize_with = "number")]
    pub msve: f64,
    /// The same for theta_*.
    #[serde(deserialize_with = "number")]
    pub msve_theta_star: f64,
}

/// The result of a seed: its final step, and its best.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeedResult {
    /// The seed.
    pub seed: u64,
    /// At the final step.
    #[serde(flatten)]
    pub last: Point,
    /// The step with the largest min(V_em, A_em); ties by the sign-aware score.
    pub best_step: u64,
    /// There.
    pub best: Point,
}

/// `null` is a number that is not known.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// The result of a seed in this state: its parameters and its best, measured on fresh tasks.
pub fn seed_result(settings: &Settings, seed: u64, state: &TrainState<f32>) -> Result<SeedResult, LabError> {
    let last = point(settings, seed, &state.params)?;
    let best = point(settings, seed, &state.best.params)?;
    Ok(SeedResult { seed, last, best_step: state.best.step, best })
}

/// The same without fresh tasks: what they would tell is not a number.
pub fn unmeasured_result(settings: &Settings, seed: u64, state: &TrainState<f32>) -> SeedResult {
    let unknown = Measurement {
        diagonal_mean: f64::NAN,
        diagonal_min: f64::NAN,
        td_loss: f64::NAN,
        msve: f64::NAN,
        msve_theta_star: f64::NAN,
        distance_to_theta_star: f64::NAN,
    };
    let point = |params: &[f32]| point_of(settings, params, unknown);
    SeedResult {
        seed,
        last: point(&state.params),
        best_step: state.best.step,
        best: point(&state.best.params),
    }
}

fn point(settings: &Settings, seed: u64, params: &[f32]) -> Result<Point, LabError> {
    Ok(point_of(settings, params, measure::<f32>(&settings.config, seed, params, MEASURED_TASKS)?))
}

fn point_of(settings: &Settings, params: &[f32], measured: Measurement) -> Point {
    let shape = settings.config.shape();
    let view = ParamsView::new(&shape, params);
    let emergence = view.emergence();
    let Measurement { diagonal_mean, diagonal_min, td_loss, msve, msve_theta_star, .. } = measured;
    Point {
        branch: emergence.branch.as_str().to_owned(),
        v_em: emergence.value,
        a_em: emergence.score,
        v_em_signed: emergence.value_signed,
        a_em_signed: emergence.score_signed,
        value_row: view.value_row(0).iter().map(|&x| f64::from(x)).collect(),
        score_diag: view.score_diagonal(0).collect(),
        diag_mean: diagonal_mean,
        diag_min: diagonal_min,
        td_loss,
        msve,
        msve_theta_star,
    }
}
