//! A checkpoint as whoever looks at it wants it.

use std::path::Path;
use std::str::FromStr;

use ictd::pretrain::{Columns, Emergence, Shape, emergence_of};
use ictd::transformer::{AttentionParams, Parameters};

use crate::LabError;
use crate::files::{Description, Tensors, params_of, read_bytes};

/// Which step of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// The last.
    #[default]
    Final,
    /// The one with the largest min(V_em, A_em).
    Best,
}

impl FromStr for Step {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        match text {
            "final" => Ok(Self::Final),
            "best" => Ok(Self::Best),
            _ => Err(LabError::value("which", format!("'{text}'"), "final or best")),
        }
    }
}

/// The parameters in a checkpoint, what it says of them, and what they are.
#[derive(Clone, Debug)]
pub struct Stored {
    /// (V, A) of the layers.
    pub pairs: Vec<AttentionParams>,
    /// The Transformer that they belong to.
    pub description: Description,
    /// The seed of the run.
    pub seed: u64,
    /// The step that the parameters are of.
    pub step: u64,
    /// The scores of the first layer.
    pub emergence: Emergence,
}

impl Stored {
    /// The checkpoint in a file; also of training on other columns than contexts have.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        Self::of(path, &read_bytes(path)?)
    }

    /// The same of bytes, where the file would be this one.
    pub fn of(path: &Path, bytes: &[u8]) -> Result<Self, LabError> {
        let refused = |message: String| LabError::parse(path, message);
        let model = params_of(path, bytes)?;
        let nothing =
            || refused("says nothing of its training, expected a checkpoint of format 2 or 3".into());
        let description = model.description.ok_or_else(nothing)?;
        let pairs = match model.parameters {
            Parameters::Tied(pair) => vec![pair],
            Parameters::PerLayer(pairs) => pairs,
            Parameters::ThetaStar => Vec::new(),
        };
        let tensors = Tensors::from_bytes(bytes).map_err(refused)?;
        let number = |key: &str| {
            let said = tensors.metadata.get(key).and_then(|text| text.parse::<u64>().ok());
            said.ok_or_else(|| refused(format!("metadata {key} is missing or no number")))
        };
        // The best step's file is that of the last one with other parameters, and keeps its number.
        let own =
            tensors.tensors.iter().filter(|(name, _)| !name.contains("opt.") && !name.contains("mask."));
        let own = own.filter(|(name, _)| name.ends_with('V') || name.ends_with('A'));
        let is_best = own
            .filter(|(name, _)| !name.starts_with("best."))
            .all(|(name, tensor)| tensors.tensors.get(&format!("best.{name}")) == Some(tensor));
        let step = number(if is_best { "best_step" } else { "step" })?;
        let shape = Shape {
            feature_dim: description.features,
            context_len: description.n,
            num_layers: description.layers,
            tied: description.tied,
            columns: Columns::PAPER,
            block: description.block,
            mask: description.mask,
        };
        let numbers = pairs.iter().flat_map(|pair| [pair.value_matrix(), pair.score_matrix()]);
        let params: Vec<f64> = numbers.flat_map(|matrix| matrix.as_slice().to_vec()).collect();
        Ok(Self { emergence: emergence_of(&shape, &params), seed: number("seed")?, step, description, pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Progress;
    use crate::studies::pretrain::{Settings, run_in_memory};

    /// What is read is what was trained: parameters, steps and scores, of shared layers and of layers of their own.
    #[test]
    fn checkpoints_are_read_as_they_were_trained() {
        for tied in ["tied=true", "tied=false"] {
            let small = [tied, "epochs=3", "batches=2", "batch=4"].map(String::from);
            let settings = Settings::preset("paper", &small).unwrap();
            let result = run_in_memory(&settings, &[6], &Progress::default()).unwrap();
            let found = &result.seeds[0];
            for (which, point, step) in
                [(Step::Final, &found.last, 6), (Step::Best, &found.best, found.best_step)]
            {
                let bytes = result.checkpoint(6, which).unwrap();
                let stored = Stored::of(Path::new("x.safetensors"), &bytes).unwrap();
                assert_eq!((stored.seed, stored.step), (6, step));
                assert_eq!(stored.pairs.len(), if tied == "tied=true" { 1 } else { 3 });
                let Emergence { value, score, branch, .. } = stored.emergence;
                assert_eq!((value, score, branch.as_str()), (point.v_em, point.a_em, point.branch.as_str()));
            }
        }
        assert_eq!(
            "last".parse::<Step>().unwrap_err().to_string(),
            "which is 'last', expected final or best"
        );
    }
}
