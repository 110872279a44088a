//! What is tried: temperatures and depths of softmax TD, and other estimators beside it.

use std::sync::Arc;

use ictd::evaluate::method::{Basis, ConstantMean, Kbrl, LinearTd, Lstd, MonteCarlo, SoftmaxTd, TabularTd};
use ictd::evaluate::{
    Candidates, Curve, Depths, Folds, Keys, Log, Loss, Method, Sample, depths, temperatures, tune,
};
use ictd::kernel::KernelName;

use super::{EvaluateConfig, REFERENCE_LAYERS, Rival, Tried};
use crate::LabError;
use crate::error::check_range;

/// Deepest that is tried.
const DEEPEST: usize = 2048;
/// Depths without a smaller loss after which deeper ones are not tried.
const PATIENCE: usize = 4;
/// Ridges of least squares, as shares of the number of transitions.
const RIDGES: [f64; 6] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1];
/// Depths of estimators without a kernel.
const PLAIN_DEPTHS: [usize; 6] = [1, 4, 16, 64, 256, 1024];

/// Settings of softmax TD, and one number for all states.
pub(super) struct Grid {
    constant: Box<dyn Method>,
    depths: Vec<Depths>,
    temperatures: Vec<f64>,
    /// The widest that would be tried.
    widest: f64,
    kernel: KernelName,
}

/// The settings of the smallest loss.
pub(super) struct Best {
    pub method: SoftmaxTd,
    pub temperature: f64,
    /// Its place among the trials.
    pub place: usize,
}

impl Grid {
    pub fn new(
        config: &EvaluateConfig,
        whole: &Sample<'_>,
        keys: Option<Arc<Keys>>,
        without_features: bool,
    ) -> Result<Self, LabError> {
        let kernel = if without_features { KernelName::Tabular } else { config.kernel };
        if let Some(layers) = config.layers {
            check_range("layers", layers, 0..=1_000_000)?;
        }
        let usual = match kernel {
            KernelName::Softmax | KernelName::Rbf | KernelName::Elu1 => temperatures(whole),
            _ => vec![1.0],
        };
        let tried = config.temperature.map_or_else(|| usual.clone(), |t| vec![t]);
        let depths = config.layers.map_or_else(|| depths(DEEPEST), |layers| vec![layers]);
        let settings = |&temperature: &f64| {
            let method = SoftmaxTd {
                kernel: kernel.at(temperature)?,
                num_layers: 0,
                step_size: 1.0,
                centred: true,
                keys: keys.clone(),
            };
            Ok(Depths { method, depths: depths.clone(), patience: PATIENCE })
        };
        Ok(Self {
            constant: Box::new(ConstantMean),
            depths: tried.iter().map(settings).collect::<Result<_, LabError>>()?,
            temperatures: tried,
            widest: usual[0],
            kernel,
        })
    }

    pub fn kernel(&self) -> KernelName {
        self.kernel
    }

    /// One number for all states first, then every depth of every temperature.
    pub fn candidates(&self) -> Vec<&dyn Candidates> {
        let depths = self.depths.iter().map(|depths| depths as &dyn Candidates);
        [&self.constant as &dyn Candidates].into_iter().chain(depths).collect()
    }

    /// The temperature and depth of every trial but the first.
    fn settings(&self) -> impl Iterator<Item = (usize, f64, usize)> {
        let of = |(k, temperature): (usize, &f64)| {
            let temperature = *temperature;
            self.depths[k].depths.iter().map(move |&depth| (k, temperature, depth))
        };
        self.temperatures.iter().enumerate().flat_map(of)
    }

    pub fn best(&self, curve: &Curve) -> Result<Best, LabError> {
        let losses = curve.trials.iter().map(|trial| trial.loss).enumerate().skip(1);
        let finite = losses.zip(self.settings()).filter(|((_, loss), _)| loss.is_finite());
        let best = finite.min_by(|a, b| a.0.1.total_cmp(&b.0.1));
        let ((place, _), (k, temperature, num_layers)) = best.ok_or_else(|| {
            LabError::refused("evaluate", "every depth and temperature that was tried diverges")
        })?;
        let method = SoftmaxTd { num_layers, ..self.depths[k].method.clone() };
        Ok(Best { method, temperature, place })
    }

    /// A rougher fit to tell the bias by: at most half as wide, and at most an eighth of the median squared distance, where a state sees
    /// little but its like; and not shallower.
    pub fn reference(&self, best: &Best) -> Result<SoftmaxTd, LabError> {
        let temperature = (best.temperature / 2.0).min(self.widest / 16.0);
        let kernel = self.kernel.at(temperature)?;
        let num_layers = best.method.num_layers.max(REFERENCE_LAYERS);
        Ok(SoftmaxTd { kernel, num_layers, ..best.method.clone() })
    }

    /// Every setting with its loss.
    pub fn tried(&self, curve: &Curve) -> Vec<Tried> {
        let finite = |x: f64| x.is_finite().then_some(x);
        let tried = curve.trials.iter().skip(1).zip(self.settings());
        tried
            .map(|(trial, (_, temperature, layers))| Tried {
                temperature,
                layers,
                loss: finite(trial.loss),
                standard_error: finite(trial.sem),
            })
            .collect()
    }
}

/// A method with its settings in words.
type Setting = (String, Box<dyn Method>);

/// Other estimators at the settings that do best on the same held-out episodes.
pub(super) fn rivals(log: &Log, folds: &Folds, grid: &Grid) -> Vec<Rival> {
    let kernels = || {
        grid.temperatures
            .iter()
            .filter_map(|&t| Some((format!("temperature {t:.3e}"), grid.kernel.at(t).ok()?)))
    };
    let ridges = |basis: &Basis, words: &str| -> Vec<Setting> {
        let setting = |&ridge: &f64| -> Setting {
            let method = Lstd { basis: basis.clone(), traces: false, ridge };
            (format!("{words}ridge {ridge:.0e}"), Box::new(method))
        };
        RIDGES.iter().map(setting).collect()
    };
    let plain = |method: Box<dyn Method>| vec![(String::new(), method)];
    let layers = |make: &dyn Fn(usize) -> Box<dyn Method>| -> Vec<Setting> {
        PLAIN_DEPTHS.iter().map(|&n| (format!("{n} layers"), make(n))).collect()
    };
    let families: Vec<(&'static str, Vec<Setting>)> = vec![
        (
            "ridge kernel LSTD",
            kernels().flat_map(|(t, k)| ridges(&Basis::Kernel(k), &format!("{t}, "))).collect(),
        ),
        ("ridge linear LSTD", ridges(&Basis::Linear, "")),
        ("KBRL", kernels().map(|(t, kernel)| (t, Box::new(Kbrl { kernel }) as Box<dyn Method>)).collect()),
        ("tabular LSTD", plain(Box::new(Lstd { basis: Basis::Table, traces: false, ridge: 0.0 }))),
        ("tabular TD", layers(&|n| Box::new(TabularTd { num_layers: n, step_size: 1.0, centred: true }))),
        ("linear TD", layers(&|n| Box::new(LinearTd { num_layers: n, step_size: 0.1, centred: true }))),
        ("every-visit Monte Carlo", plain(Box::new(MonteCarlo))),
        ("one number for all", plain(Box::new(ConstantMean))),
    ];
    families.into_iter().map(|(estimator, settings)| rival(log, folds, estimator, &settings)).collect()
}

fn rival(log: &Log, folds: &Folds, estimator: &'static str, settings: &[Setting]) -> Rival {
    let candidates: Vec<&dyn Candidates> =
        settings.iter().map(|(_, method)| method as &dyn Candidates).collect();
    let failed = |why: String| Rival {
        estimator,
        settings: String::new(),
        loss: None,
        mean: None,
        why_not: Some(why),
    };
    let curve = match tune(log, folds, Loss::default(), &candidates) {
        Ok(curve) => curve,
        Err(error) => return failed(error.to_string()),
    };
    let (words, method) = &settings[curve.best];
    let whole = log.whole();
    let mean = method.fit(&whole).map(|fit| {
        let initial = whole.initial();
        let total: f64 = initial.iter().sum();
        initial.iter().zip(fit.values()).map(|(n, v)| n * v).sum::<f64>() / total
    });
    match mean {
        Ok(mean) => Rival {
            estimator,
            settings: words.clone(),
            loss: Some(curve.trials[curve.best].loss),
            mean: Some(mean),
            why_not: None,
        },
        Err(error) => failed(error.to_string()),
    }
}
