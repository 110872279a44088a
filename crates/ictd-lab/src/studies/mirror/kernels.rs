//! The TD block and its mirror image under other kernels: for which of them they are one estimator.

use ictd::context::Context;
use ictd::kernel::KernelName;
use ictd::pretrain::PretrainConfig;
use ictd::statistics::fit::power;
use ictd::transformer::AttentionParams;
use serde::Serialize;

use super::estimator::{FIT_FROM, TEMPERATURES, TemperatureRow, block, compare};
use crate::LabError;

/// Both blocks with a kernel, at the highest temperature, and how they come together as it rises.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRow {
    pub kernel: KernelName,
    pub temperature: f64,
    /// As in [`TemperatureRow`].
    pub constant: f64,
    pub rest: f64,
    pub spread: f64,
    /// Slope of log rest against log τ; absent where nothing is left that could fall.
    pub rest_slope: Option<f64>,
    /// Slope of log spread against log τ.
    pub spread_slope: Option<f64>,
}

/// A rest below this share of the spread is rounding.
const ROUNDING: f64 = 1e-12;

/// Compares the blocks on contexts, kernel by kernel; not tabular, whose weights know no A.
pub fn run(config: &PretrainConfig, windows: &[Context]) -> Result<Vec<KernelRow>, LabError> {
    let kernels = KernelName::ALL.into_iter().filter(|kernel| *kernel != KernelName::Tabular);
    kernels.map(|kernel| row(config, windows, kernel)).collect()
}

fn row(config: &PretrainConfig, windows: &[Context], kernel: KernelName) -> Result<KernelRow, LabError> {
    let d = config.task.feature_dim;
    let warm = TEMPERATURES.into_iter().filter(|temperature| *temperature >= FIT_FROM);
    let rows = warm
        .map(|temperature| {
            let make = |params| block(config, kernel, params, temperature, config.num_layers);
            let (td, mirror) = (make(AttentionParams::theta_star(d))?, make(AttentionParams::mirror(d))?);
            compare(&td, &mirror, windows, temperature)
        })
        .collect::<Result<Vec<TemperatureRow>, LabError>>()?;
    let slope = |of: &dyn Fn(&TemperatureRow) -> f64| {
        let is_seen = rows.iter().all(|row| of(row) > ROUNDING * row.spread);
        let points: Vec<(f64, f64)> = rows.iter().map(|row| (row.temperature, of(row))).collect();
        power(&points).filter(|_| is_seen).map(|found| found.slope)
    };
    let (rest_slope, spread_slope) = (slope(&|row| row.rest), slope(&|row| row.spread));
    let TemperatureRow { temperature, constant, rest, spread } =
        rows.last().cloned().ok_or_else(|| LabError::value("temperatures", 0, "at least 1"))?;
    Ok(KernelRow { kernel, temperature, constant, rest, spread, rest_slope, spread_slope })
}

#[cfg(test)]
mod tests {
    use super::super::contexts::Contexts;
    use super::*;
    use ictd::context::End;

    /// What is written in docs/mirror.md, on a few contexts: smooth kernels that are positive at 0 leave a constant and terms of order
    /// 1/τ², the linear kernel nothing, and relu, which knows no temperature, another estimator.
    #[test]
    fn which_kernels_have_one_estimator_for_both_blocks() {
        let config = PretrainConfig::paper();
        let contexts = Contexts::sample(&config, 1, 5).unwrap();
        let build =
            |(rows, rewards): (_, _)| Context::builder().episode(rows, rewards, End::Truncated).build();
        let windows: Vec<Context> = contexts.first_windows().map(|window| build(window).unwrap()).collect();
        for KernelRow { kernel, constant, rest, spread, rest_slope, spread_slope, .. } in
            run(&config, &windows).unwrap()
        {
            match kernel {
                // The next order is 1/τ³: at τ = 8 it is a tenth of this one.
                KernelName::Softmax | KernelName::Elu1 | KernelName::Rbf => {
                    assert!((rest_slope.unwrap() + 2.0).abs() < 0.15, "{kernel}: {rest_slope:?}");
                    assert!((spread_slope.unwrap() + 1.0).abs() < 0.15, "{kernel}: {spread_slope:?}");
                    assert!(constant > 10.0 * rest);
                }
                KernelName::Linear => {
                    assert_eq!(rest_slope, None);
                    assert!(constant.max(rest) < 1e-12 * spread, "{constant} {rest} {spread}");
                }
                _ => assert!(rest > 0.1 * spread && rest_slope.unwrap().abs() < 1e-9, "{kernel}: {rest}"),
            }
        }
    }
}
