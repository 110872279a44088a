//! A result as parts that some other program keeps, and back.

use serde::{Deserialize, Serialize};

use super::{RunResult, SeedResult, Settings, Step, checkpoint, checkpoint_bytes};
use crate::LabError;
use crate::files::{Tensors, sha256};

/// All of a result but the states.
#[derive(Serialize, Deserialize)]
struct Kept {
    name: String,
    config: String,
    overrides: Vec<String>,
    train_seconds: f64,
    trained: usize,
    seeds: Vec<SeedResult>,
}

impl RunResult {
    /// All of it but the states, as JSON.
    pub fn to_json(&self) -> Result<String, LabError> {
        let Self { train_seconds, seeds, trained, settings, .. } = self;
        let kept = Kept {
            name: settings.name.clone(),
            config: settings.to_toml()?,
            overrides: settings.overrides.clone(),
            train_seconds: *train_seconds,
            trained: *trained,
            seeds: seeds.clone(),
        };
        serde_json::to_string(&kept).map_err(|e| LabError::internal("result", e))
    }

    /// The states as checkpoints, with their seeds.
    pub fn checkpoints(&self) -> Result<Vec<(u64, Vec<u8>)>, LabError> {
        let bytes = |(&seed, state)| Ok((seed, checkpoint_bytes(&self.settings, seed, state, Step::Final)?));
        self.state_seeds.iter().zip(&self.states).map(bytes).collect()
    }

    /// The result that [`to_json`](Self::to_json) and [`checkpoints`](Self::checkpoints) were made of. It can be looked at;
    /// training on tasks of a program's own needs the program again.
    pub fn from_parts(json: &str, checkpoints: &[(u64, Vec<u8>)]) -> Result<Self, LabError> {
        let kept: Kept = serde_json::from_str(json).map_err(|e| LabError::refused("run", e.to_string()))?;
        let settings = Settings::recorded(&kept.name, &kept.config, kept.overrides)?;
        let sha256 = sha256(kept.config.as_bytes());
        let state = |(seed, bytes): &(u64, Vec<u8>)| {
            let tensors = Tensors::from_bytes(bytes)?;
            checkpoint::decode(&settings.config, &sha256, *seed, &tensors)
        };
        let states = checkpoints.iter().map(state).collect::<Result<_, String>>();
        Ok(Self {
            train_seconds: kept.train_seconds,
            seeds: kept.seeds,
            trained: kept.trained,
            states: states.map_err(|problem| LabError::refused("checkpoint", problem))?,
            state_seeds: checkpoints.iter().map(|(seed, _)| *seed).collect(),
            settings,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Progress;
    use crate::files::to_json_17;
    use crate::studies::pretrain::run_in_memory;

    #[test]
    fn a_result_comes_back_as_it_was() {
        let small = ["tied=false", "epochs=3", "batch=4"].map(String::from);
        let settings = Settings::preset("mask-full", &small).unwrap();
        let result = run_in_memory(&settings, &[5, 2], &Progress::default()).unwrap();
        let back = RunResult::from_parts(&result.to_json().unwrap(), &result.checkpoints().unwrap()).unwrap();
        assert_eq!(to_json_17(&back).unwrap(), to_json_17(&result).unwrap());
        assert_eq!((&back.states, &back.state_seeds), (&result.states, &vec![5, 2]));
        assert_eq!(back.settings.to_toml().unwrap(), settings.to_toml().unwrap());
        assert_eq!(back.settings.overrides, small);
    }
}
