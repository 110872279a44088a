//! What may be said about a log and its evaluation: the same words as on the command line.

use ictd::evaluate::Scaling;
use ictd::kernel::KernelName;
use serde::Deserialize;

use super::{Estimator, EvaluateConfig};
use crate::LabError;
use crate::logs::{Missing, Wanted};

/// Options of an evaluation, by the names and with the defaults of the command's flags.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the fields of EvaluateConfig and of Wanted say what they are")]
pub struct Options {
    pub gamma: Option<f64>,
    pub estimator: Option<String>,
    pub scale: Option<Scaling>,
    pub kernel: Option<KernelName>,
    pub temperature: Option<f64>,
    pub layers: Option<usize>,
    pub ridge: Option<f64>,
    pub lambda: Option<f64>,
    pub compare: bool,
    pub seed: u64,
    pub strict: bool,
    pub episode: Option<String>,
    pub time: Option<String>,
    pub state: Option<String>,
    pub reward: Option<String>,
    pub terminated: Option<String>,
    pub truncated: Option<String>,
    pub id: Option<String>,
    pub missing: Option<String>,
}

impl Options {
    /// What is asked; refuses options without a discount.
    pub fn config(&self) -> Result<EvaluateConfig, LabError> {
        let gamma = self.gamma.ok_or_else(|| LabError::refused("gamma", "missing, expected the discount"))?;
        let usual = EvaluateConfig::new(gamma);
        let estimator = self.estimator.as_deref().map(str::parse::<Estimator>).transpose();
        Ok(EvaluateConfig {
            estimator: estimator.map_err(|e| LabError::refused("estimator", e))?.unwrap_or(usual.estimator),
            scaling: self.scale,
            kernel: self.kernel.unwrap_or(usual.kernel),
            temperature: self.temperature,
            layers: self.layers,
            ridge: self.ridge,
            lambda: self.lambda,
            compare: self.compare,
            seed: self.seed,
            strict: self.strict,
            ..usual
        })
    }

    /// What the columns of the log are.
    pub fn wanted(&self) -> Result<Wanted, LabError> {
        let missing = self.missing.as_deref().map(str::parse::<Missing>).transpose();
        Ok(Wanted {
            episode: self.episode.clone(),
            time: self.time.clone(),
            state: self.state.clone(),
            reward: self.reward.clone(),
            terminated: self.terminated.clone(),
            truncated: self.truncated.clone(),
            id: self.id.clone(),
            id_may_lack: false,
            missing: missing.map_err(|e| LabError::refused("missing", e))?.unwrap_or_default(),
        })
    }
}
