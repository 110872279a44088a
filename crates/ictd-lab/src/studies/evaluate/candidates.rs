//! What is tried: settings of every estimator, and how well they do on held-out episodes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ictd::evaluate::method::{Basis, ConstantMean, Kbrl, LinearTd, Lstd, MonteCarlo, SoftmaxTd, TabularTd};
use ictd::evaluate::{
    Candidates, Depths, FitError, Keys, Method, Sample, Trial, Trials, best, depths, temperatures,
};
use ictd::kernel::{Kernel, KernelName};
use serde::Serialize;

use super::show::short;
use super::{Estimator, EvaluateConfig};
use crate::error::check_range;
use crate::{LabError, Progress};

/// Deepest that is tried.
const DEEPEST: usize = 2048;
/// Depths without a smaller loss after which deeper ones are not tried.
const PATIENCE: usize = 4;
/// Ridges of least squares, as shares of the number of transitions.
const RIDGES: [f64; 6] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1];
/// Depths of TD without a kernel.
const PLAIN_DEPTHS: [usize; 6] = [1, 4, 16, 64, 256, 1024];
/// Step size of TD on features that have been scaled to unit variance.
const LINEAR_STEP: f64 = 0.1;
/// The rougher fit that the bias is estimated from is at least so deep.
const REFERENCE_LAYERS: usize = 16;

/// Where nothing can be held out: depth of the paper's figures, and a ridge in the middle of those that are tried.
const USUAL_LAYERS: usize = 15;
const USUAL_RIDGE: f64 = 1e-3;

/// What an estimator leaves open; absent where it does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Setting {
    pub temperature: Option<f64>,
    pub layers: Option<usize>,
    pub ridge: Option<f64>,
}

impl Setting {
    /// In words.
    pub fn words(&self) -> String {
        let parts = [
            self.temperature.map(|t| format!("temperature {}", short(t))),
            self.layers.map(|n| format!("{n} layers")),
            self.ridge.map(|r| format!("ridge {r:.0e}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Settings worth trying on a log.
#[derive(Debug)]
pub(super) struct Settings {
    pub kernel: KernelName,
    has_features: bool,
    keys: Option<Arc<Keys>>,
    /// What ends the work.
    stop: Arc<AtomicBool>,
    /// Temperatures that are tried; of the kernel alone where it has none.
    temperatures: Vec<f64>,
    /// The widest that would be tried.
    widest: f64,
    depths: Vec<usize>,
    plain_depths: Vec<usize>,
    ridges: Vec<f64>,
}

/// Tabular TD of this depth: softmax TD where a state is like itself alone.
pub(super) fn tabular_td(setting: Setting) -> TabularTd {
    TabularTd { num_layers: setting.layers.unwrap_or(0), step_size: 1.0, centred: true }
}

/// How the settings of an estimator did.
#[derive(Debug)]
pub(super) struct Tuned {
    pub estimator: Estimator,
    pub settings: Vec<Setting>,
    pub trials: Vec<Trial>,
    /// The place of the best.
    pub best: usize,
}

impl Tuned {
    pub fn setting(&self) -> Setting {
        self.settings[self.best]
    }

    pub fn trial(&self) -> &Trial {
        &self.trials[self.best]
    }

    /// Completes returns of truncated episodes by the best setting, and chooses anew.
    pub fn settle(&mut self, trials: &mut Trials<'_>) {
        self.best = trials.settle(&mut self.trials).unwrap_or(self.best);
    }
}

impl Settings {
    pub fn new(
        config: &EvaluateConfig,
        whole: &Sample<'_>,
        keys: Option<Arc<Keys>>,
        has_features: bool,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        if let Some(layers) = config.layers {
            check_range("layers", layers, 0..=1_000_000)?;
        }
        let kernel = if has_features { config.kernel } else { KernelName::Tabular };
        let usual = match kernel {
            KernelName::Softmax | KernelName::Rbf | KernelName::Elu1 => temperatures(whole),
            _ => vec![1.0],
        };
        let given = |x: Option<usize>, usual: Vec<usize>| x.map_or(usual, |x| vec![x]);
        Ok(Self {
            kernel,
            has_features,
            keys,
            stop: progress.stop(),
            widest: usual[0],
            temperatures: config.temperature.map_or(usual, |t| vec![t]),
            depths: given(config.layers, depths(DEEPEST)),
            plain_depths: given(config.layers, PLAIN_DEPTHS.to_vec()),
            ridges: config.ridge.map_or_else(|| RIDGES.to_vec(), |ridge| vec![ridge]),
        })
    }

    fn kernel(&self, setting: Setting) -> Result<Arc<dyn Kernel>, LabError> {
        Ok(self.kernel.at(setting.temperature.unwrap_or(1.0))?)
    }

    /// Softmax TD with these settings.
    pub fn softmax_td(&self, setting: Setting) -> Result<SoftmaxTd, LabError> {
        Ok(SoftmaxTd {
            kernel: self.kernel(setting)?,
            num_layers: setting.layers.unwrap_or(0),
            step_size: 1.0,
            centred: true,
            keys: self.keys.clone(),
            stop: Some(self.stop.clone()),
        })
    }

    /// A rougher fit to tell the bias by: at most half as wide, and at most an eighth of the median squared distance, where a
    /// state sees little but its like; and not shallower.
    pub fn reference(&self, setting: Setting) -> Result<SoftmaxTd, LabError> {
        let narrower = |t: f64| (t / 2.0).min(self.widest / 16.0);
        let layers = setting.layers.unwrap_or(0).max(REFERENCE_LAYERS);
        self.softmax_td(Setting {
            temperature: setting.temperature.map(narrower),
            layers: Some(layers),
            ..setting
        })
    }

    /// An estimator with these settings.
    pub fn method(&self, estimator: Estimator, setting: Setting) -> Result<Box<dyn Method>, LabError> {
        let ridge = setting.ridge.unwrap_or(0.0);
        let lstd = |basis, traces| -> Box<dyn Method> { Box::new(Lstd { basis, traces, ridge }) };
        let num_layers = setting.layers.unwrap_or(0);
        Ok(match estimator {
            Estimator::SoftmaxTd if !self.has_features => Box::new(tabular_td(setting)),
            Estimator::SoftmaxTd => Box::new(self.softmax_td(setting)?),
            Estimator::KernelLstd => lstd(Basis::Kernel(self.kernel(setting)?), false),
            Estimator::LinearLstd => lstd(Basis::Linear, false),
            Estimator::Lstd => lstd(Basis::Table, false),
            Estimator::LstdLambda => lstd(Basis::Table, true),
            Estimator::Kbrl => Box::new(Kbrl { kernel: self.kernel(setting)? }),
            Estimator::TabularTd => Box::new(tabular_td(setting)),
            Estimator::LinearTd => Box::new(LinearTd { num_layers, step_size: LINEAR_STEP, centred: true }),
            Estimator::MonteCarlo => Box::new(MonteCarlo),
            Estimator::Constant => Box::new(ConstantMean),
        })
    }

    /// What is tried of an estimator.
    fn of(&self, estimator: Estimator) -> Vec<Setting> {
        let none = Setting::default();
        let kernels = || self.temperatures.iter().map(|&t| Setting { temperature: Some(t), ..none });
        let ridges = |s: Setting| self.ridges.iter().map(move |&r| Setting { ridge: Some(r), ..s });
        let layers = |s: Setting, depths: &[usize]| -> Vec<Setting> {
            depths.iter().map(|&n| Setting { layers: Some(n), ..s }).collect()
        };
        match estimator {
            Estimator::SoftmaxTd if !self.has_features => layers(none, &self.plain_depths),
            Estimator::SoftmaxTd => kernels().flat_map(|s| layers(s, &self.depths)).collect(),
            Estimator::KernelLstd => kernels().flat_map(ridges).collect(),
            Estimator::Kbrl => kernels().collect(),
            Estimator::LinearLstd => ridges(none).collect(),
            Estimator::TabularTd | Estimator::LinearTd => layers(none, &self.plain_depths),
            _ => vec![none],
        }
    }

    /// The setting where nothing can be held out to choose one: the median squared distance as temperature, 15 layers, a ridge of 1e-3, unless
    /// they are given.
    pub fn usual(&self, estimator: Estimator) -> Setting {
        let of = self.of(estimator).first().copied().unwrap_or_default();
        let depths = if of.temperature.is_some() { &self.depths } else { &self.plain_depths };
        let given = |depths: &[usize]| if let [one] = *depths { one } else { USUAL_LAYERS };
        Setting {
            // The first is twice the median.
            temperature: of.temperature.map(|widest| self.temperatures.get(1).copied().unwrap_or(widest)),
            layers: of.layers.map(|_| given(depths)),
            ridge: of.ridge.map(|ridge| if self.ridges.len() == 1 { ridge } else { USUAL_RIDGE }),
        }
    }

    /// Tries all settings of an estimator on held-out episodes. The error says why none has values.
    ///
    /// # Errors
    /// [`LabError::Refused`] where no setting has values, or it would take hours.
    pub fn tune(
        &self,
        estimator: Estimator,
        trials: &Trials<'_>,
        progress: &Progress,
    ) -> Result<Tuned, LabError> {
        if !self.has_features && matches!(estimator, Estimator::LinearLstd | Estimator::LinearTd) {
            let problem = "labels are too many for features of their own, expected features";
            return Err(LabError::refused(estimator.as_str(), problem));
        }
        let settings = self.of(estimator);
        let (states, limit) =
            (trials.num_states(), if estimator == Estimator::KernelLstd { 1024 } else { usize::MAX });
        if states > limit && settings.len() > 1 {
            let problem =
                format!("{states} states, expected at most {limit} to try {} settings", settings.len());
            return Err(LabError::refused(
                estimator.as_str(),
                problem + "; --temperature and --ridge try one",
            ));
        }
        let mut found = Vec::with_capacity(settings.len());
        // All depths of softmax TD come from one run.
        let together = estimator == Estimator::SoftmaxTd && self.has_features;
        let step = if together { self.depths.len() } else { 1 };
        progress.begin(
            format!("evaluate: settings of {} on held-out episodes", estimator.title()),
            "settings",
            (settings.len() / step) as u64,
        )?;
        for settings in settings.chunks(step) {
            let candidates: Box<dyn Candidates> = if together {
                Box::new(Depths {
                    method: self.softmax_td(settings[0])?,
                    depths: self.depths.clone(),
                    patience: PATIENCE,
                })
            } else {
                Box::new(self.method(estimator, settings[0])?)
            };
            found.extend(trials.of(&*candidates));
            progress.step(1)?;
        }
        let best = best(&found).ok_or_else(|| match found.iter().find_map(|trial| trial.error.as_ref()) {
            Some(why) if !matches!(why, FitError::Diverged { .. }) => {
                LabError::refused(estimator.as_str(), why.to_string())
            }
            _ => LabError::diverged(format!("{} overflows with every setting", estimator.title())),
        })?;
        Ok(Tuned { estimator, settings, trials: found, best })
    }
}
