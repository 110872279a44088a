//! Training that is watched: opened, advanced a few epochs at a time, looked at in between.

use ictd::pretrain::{Metric, ParamsView, PretrainConfig, Trainer};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Model;
use crate::files::{Description, ModelFile};
use crate::studies::pretrain::{self, RunResult, SeedResult, Settings};
use crate::{LabError, Progress};

/// One seed in training.
pub struct Training {
    settings: Settings,
    seed: u64,
    trainer: Trainer<f32>,
}

/// What a training run is before its first epoch.
#[derive(Clone, Debug, Serialize)]
pub struct Opened<'a> {
    /// Epochs that it has.
    pub epochs: u64,
    /// Every setting, defaults filled in.
    pub settings: &'a PretrainConfig,
}

/// What one epoch came to.
#[derive(Clone, Debug, Serialize)]
struct Epoch {
    /// Epochs done, this one included.
    epoch: u64,
    /// V_em at its end.
    v_em: f64,
    /// A_em at its end.
    a_em: f64,
    /// d_t on a fresh task.
    d_t: f64,
    /// Mean δ² on a fresh task.
    loss: f64,
    /// What V's last row takes of reward, target and value.
    coefficients: [f64; 3],
}

/// Where training is.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// Epochs done.
    epoch: u64,
    /// Whether that is all of them.
    done: bool,
    /// The epochs that were done now.
    history: Vec<Epoch>,
    /// V of the first layer.
    #[serde(rename = "V")]
    value_matrix: Vec<Vec<f64>>,
    /// A of the first layer.
    #[serde(rename = "A")]
    score_matrix: Vec<Vec<f64>>,
    /// `td`, `mirror` or `none`.
    branch: &'static str,
}

fn settings(overrides: &Map<String, Value>) -> Result<Settings, LabError> {
    let changes =
        toml::Table::try_from(overrides).map_err(|e| LabError::refused("overrides", e.to_string()))?;
    Settings::changed(changes)
}

/// Trains a seed to its end: what `ictd pretrain --json` prints.
pub fn train(overrides: &Map<String, Value>, seed: u64) -> Result<RunResult, LabError> {
    pretrain::run_in_memory(&settings(overrides)?, &[seed], &Progress::default())
}

impl Training {
    /// A run before its first epoch.
    pub fn open(overrides: &Map<String, Value>, seed: u64) -> Result<Self, LabError> {
        let settings = settings(overrides)?;
        settings.admit(1, false)?;
        let trainer = Trainer::new(&settings.config, seed)?;
        Ok(Self { settings, seed, trainer })
    }

    /// What it is.
    pub fn opened(&self) -> Opened<'_> {
        Opened { epochs: self.settings.config.epochs, settings: &self.settings.config }
    }

    fn view(&self) -> ParamsView<'_, f32> {
        ParamsView::new(&self.settings.config.shape(), &self.trainer.state().params)
    }

    /// Trains for so many epochs, or to the end.
    pub fn advance(&mut self, epochs: u64) -> Result<Standing, LabError> {
        let mut history = Vec::new();
        for _ in 0..epochs {
            if self.trainer.is_done() {
                break;
            }
            self.trainer.epoch()?;
            history.push(self.last_epoch());
        }
        let (value_matrix, score_matrix) = self.view().matrices(0);
        let rows = |matrix: ictd::Matrix| matrix.rows().map(<[f64]>::to_vec).collect();
        Ok(Standing {
            epoch: self.trainer.state().epoch,
            done: self.trainer.is_done(),
            history,
            value_matrix: rows(value_matrix),
            score_matrix: rows(score_matrix),
            branch: self.view().emergence().branch.as_str(),
        })
    }

    fn last_epoch(&self) -> Epoch {
        let (state, d) = (self.trainer.state(), self.settings.config.shape().feature_dim);
        let last = |metric: Metric| state.history[metric].last().map_or(f64::NAN, |&x| f64::from(x));
        let row = self.view().value_row(0);
        Epoch {
            epoch: state.epoch,
            v_em: last(Metric::Value),
            a_em: last(Metric::Score),
            d_t: last(Metric::EvalDiagonal),
            loss: last(Metric::EvalTdLoss),
            coefficients: [row[d], row[d + 1], row[d + 2]].map(f64::from),
        }
    }

    /// The entry of the seed in what `ictd pretrain --json` prints, for the run as far as it is.
    pub fn result(self) -> Result<SeedResult, LabError> {
        pretrain::seed_result(&self.settings, self.seed, &self.trainer.into_state())
    }

    /// The network as trained so far, as the forward pass takes it; refuses one that was trained with attention that contexts do
    /// not have.
    pub fn model(&self) -> Result<Model, LabError> {
        let config = &self.settings.config;
        let description = Description::of(config, self.trainer.state().steps());
        let parameters = self.view().parameters()?;
        Model::of(ModelFile { parameters, description: Some(description), warning: None })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::explore::layers;
    use crate::studies::forward::Options;

    fn overrides(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn watched_training_is_training() {
        let changes = overrides(&json!({"epochs": 30, "query": "skip", "optimizer": {"lr": 1e-3}}));
        let whole = serde_json::to_value(train(&changes, 4).unwrap()).unwrap();
        let mut watched = Training::open(&changes, 4).unwrap();
        assert_eq!(watched.opened().epochs, 30);
        let first = watched.advance(7).unwrap();
        assert_eq!((first.epoch, first.done, first.history.len()), (7, false, 7));
        let rest = watched.advance(100).unwrap();
        assert_eq!((rest.epoch, rest.done, rest.history.len()), (30, true, 23));
        assert_eq!(rest.history[22].coefficients[0], rest.value_matrix[6][4]);
        let model = watched.model().unwrap();
        assert_eq!(serde_json::to_value(watched.result().unwrap()).unwrap(), whole["seeds"][0]);
        // The network can be stepped into.
        let said = serde_json::to_value(&model).unwrap();
        let options: Options = serde_json::from_value(said["options"].clone()).unwrap();
        let features = [[0.1, 0.2, 0.3, 0.4], [0.5, -0.6, 0.7, 0.8], [0.0, 0.1, -0.9, 0.3]];
        let builder = ictd::Context::builder().episode(&features, &[1.0, 0.5], ictd::End::Truncated);
        layers(&builder.build().unwrap(), &options, Some(model.params)).unwrap();
    }

    #[test]
    fn bad_settings_are_refused_in_a_line() {
        for bad in [
            json!({"epohcs": 3}),
            json!({"epochs": "many"}),
            json!({"optimizer": 3}),
            json!({"task": "no-such"}),
            json!({"n": 1e12}),
            json!({"query": null}),
            json!({"states": [1, 2]}),
        ] {
            let error = Training::open(&overrides(&bad), 0).err().unwrap().to_string();
            assert!(!error.contains('\n') && !error.is_empty(), "{bad}: {error}");
        }
    }

    #[test]
    fn what_contexts_do_not_have_is_noted_or_refused() {
        let model = |changes: Value| {
            let mut trained = Training::open(&overrides(&changes), 0).unwrap();
            trained.advance(1).unwrap();
            trained.model().map(|model| serde_json::to_value(model).unwrap())
        };
        let source = model(json!({"query": "source", "epochs": 1})).unwrap();
        assert!(source["note"].as_str().unwrap().contains("the last source"));
        assert!(model(json!({"epochs": 1})).unwrap()["note"].is_null());
        let unmixed = json!({"epochs": 1, "rho": {"start": 0.5, "end": 0.5, "query": "unmixed"}});
        assert!(model(unmixed).unwrap_err().to_string().contains("rho.query in training"));
    }
}
