//! What a certificate rests on, to be drawn: the eigenvalues of a layer, and its errors over depth.

use ictd::context::Context;
use ictd::theory::{Certificate, DepthErrors};
use serde::Serialize;

use crate::LabError;
use crate::error::check_range;
use crate::studies::theory::certify::{LayerConfig, operator_of};

/// Largest depth that is drawn.
const MAX_LAYERS: usize = 10_000;

/// The eigenvalues of J = I − α(M − γP), and the distance to infinite depth after 0, …, L layers.
#[derive(Clone, Debug, Serialize)]
pub struct SpectrumReport {
    /// Real and imaginary parts, in no particular order; `None` where they could not be found.
    eigenvalues: Option<Vec<[f64; 2]>>,
    /// ‖J‖∞, rounded up; `None` where no finite number is above it by proof.
    norm_inf: Option<f64>,
    /// ‖v_l − v_∞‖∞; `None` where there is no limit, or values overflow.
    error: Vec<Option<f64>>,
    /// A proved bound on it; `None` where nothing is proved.
    bound: Vec<Option<f64>>,
}

/// Examines the layer of a context as `certify` does.
pub fn spectrum(
    context: &Context,
    gamma: f64,
    unit_norm: bool,
    config: &LayerConfig,
) -> Result<SpectrumReport, LabError> {
    let (step_size, num_layers) = (config.certificate.step_size, config.certificate.num_layers);
    check_range("layers", num_layers, 0..=MAX_LAYERS)?;
    let operator = operator_of(context, gamma, unit_norm, config)?;
    let certificate = Certificate::verdict(&operator, step_size)?;
    let eigenvalues = certificate.stability.spectrum.as_ref().map(|spectrum| {
        spectrum.values().iter().map(|z| [1.0 - step_size * z.re, -step_size * z.im]).collect()
    });
    let nothing = || vec![None; num_layers + 1];
    let (error, bound) = DepthErrors::of(&operator, step_size, num_layers)
        .map_or_else(|| (nothing(), nothing()), |found| (found.errors, found.bounds));
    Ok(SpectrumReport { eigenvalues, norm_inf: certificate.contraction.norm_inf, error, bound })
}

#[cfg(test)]
mod tests {
    use ictd::context::End;

    use super::*;
    use crate::Progress;
    use crate::studies::theory::certify;

    #[test]
    fn it_agrees_with_the_certificate() {
        let features = [[0.3, -0.2], [0.9, 0.1], [-0.5, 0.7], [0.3, -0.2], [0.9, 0.1]];
        let rewards = [1.0, -0.5, 0.25, 0.5];
        let context = Context::builder().episode(&features, &rewards, End::Truncated).build().unwrap();
        for temperature in [0.01, 1.0] {
            let config = LayerConfig { temperature, ..LayerConfig::default() };
            let found = spectrum(&context, 0.9, false, &config).unwrap();
            let report = certify::context(&context, 0.9, false, &config, &Progress::default()).unwrap();
            let said = &report.certificate;
            assert_eq!(found.norm_inf, said.contraction.norm_inf);
            let radius = found.eigenvalues.unwrap().iter().map(|z| z[0].hypot(z[1])).fold(0.0, f64::max);
            assert!((radius - said.contraction.spectral_radius.unwrap()).abs() < 1e-14);
            let fixed = said.fixed_point.as_ref().unwrap();
            assert_eq!(found.error.last(), Some(&Some(fixed.error)));
            assert_eq!(found.bound.last(), Some(&fixed.error_bound));
            assert_eq!((found.error.len(), found.bound.len()), (16, 16));
        }
    }
}
