//! Training states as checkpoints that PyTorch can load.

use ictd::pretrain::{Best, History, Moments, PretrainConfig, Shape, TrainState};

use crate::files::Tensors;

/// Names of the per-step and per-epoch histories in a checkpoint and in metrics.
pub const HISTORIES: [&str; 10] = [
    "td_loss",
    "v_em",
    "a_em",
    "v_em_signed",
    "a_em_signed",
    "diag_mean",
    "eval_diag_mean",
    "eval_diag_min",
    "eval_td_loss",
    "eval_msve",
];

/// Histories with one entry per gradient step come first; the others have one per epoch.
pub const PER_STEP: usize = 6;

/// The histories in the order of their names.
pub fn histories(history: &History) -> [&Vec<f32>; 10] {
    [
        &history.td_loss,
        &history.value,
        &history.score,
        &history.value_signed,
        &history.score_signed,
        &history.diagonal,
        &history.eval_diagonal,
        &history.eval_diagonal_min,
        &history.eval_td_loss,
        &history.eval_msve,
    ]
}

fn histories_mut(history: &mut History) -> [&mut Vec<f32>; 10] {
    [
        &mut history.td_loss,
        &mut history.value,
        &mut history.score,
        &mut history.value_signed,
        &mut history.score_signed,
        &mut history.diagonal,
        &mut history.eval_diagonal,
        &mut history.eval_diagonal_min,
        &mut history.eval_td_loss,
        &mut history.eval_msve,
    ]
}

/// The whole state of a run: `V` and `A` (or `layers.l.V`, `layers.l.A`) as the paper writes them, the
/// optimiser's moments, the best step and the histories.
pub fn encode(config: &PretrainConfig, config_sha256: &str, seed: u64, state: &TrainState<f32>) -> Tensors {
    let shape = config.shape();
    let mut tensors = Tensors::default();
    insert_params(&mut tensors, &shape, "", &state.params);
    insert_params(&mut tensors, &shape, "opt.m.", &state.moments.first);
    insert_params(&mut tensors, &shape, "opt.v.", &state.moments.second);
    insert_params(&mut tensors, &shape, "best.", &state.best.params);
    let mask = shape.trained().iter().map(|&t| f32::from(u8::from(t))).collect::<Vec<f32>>();
    insert_params(&mut tensors, &shape, "mask.", &mask);
    for (name, values) in HISTORIES.iter().zip(histories(&state.history)) {
        tensors.insert(&format!("history.{name}"), &[values.len()], values.clone());
    }
    let joint = |k: usize| format!("{:016x}", state.best.joint[k].to_bits());
    let entries = [
        ("format", "ictd.ckpt".into()),
        ("schema_version", "1".into()),
        ("config_sha256", config_sha256.to_owned()),
        ("seed", seed.to_string()),
        ("epoch", state.epoch.to_string()),
        ("step", state.history.td_loss.len().to_string()),
        ("rng", "ChaCha8, streams by (seed, purpose, epoch): no state".into()),
        ("best_step", state.best.step.to_string()),
        ("best_joint_bits", joint(0)),
        ("best_joint_signed_bits", joint(1)),
        ("layout", "row_major".into()),
        ("convention", "columns_are_tokens".into()),
    ];
    tensors.metadata = entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    tensors
}

/// The state in a checkpoint of this configuration and seed; says what does not fit.
pub fn decode(
    config: &PretrainConfig,
    config_sha256: &str,
    seed: u64,
    tensors: &Tensors,
) -> Result<TrainState<f32>, String> {
    let text = |key: &str| tensors.metadata.get(key).ok_or_else(|| format!("metadata {key} is missing"));
    let number = |key: &str| -> Result<u64, String> {
        text(key)?.parse().map_err(|_| format!("metadata {key} is no number"))
    };
    let bits = |key: &str| -> Result<f64, String> {
        u64::from_str_radix(text(key)?, 16)
            .map(f64::from_bits)
            .map_err(|_| format!("metadata {key} is no number"))
    };
    if text("config_sha256")? != config_sha256 {
        return Err("the checkpoint belongs to another configuration".into());
    }
    if number("seed")? != seed {
        return Err(format!("the checkpoint belongs to seed {}, expected {seed}", number("seed")?));
    }
    let shape = config.shape();
    let mut history = History::default();
    for (name, slot) in HISTORIES.iter().zip(histories_mut(&mut history)) {
        *slot = tensors.get(&format!("history.{name}"))?.to_vec();
    }
    let (epoch, best_step) = (number("epoch")?, number("best_step")?);
    let steps = epoch.saturating_mul(config.batches as u64);
    for (k, (name, values)) in HISTORIES.iter().zip(histories(&history)).enumerate() {
        let expected = if k < PER_STEP { steps } else { epoch };
        if values.len() as u64 != expected {
            return Err(format!("history.{name} has {} entries, expected {expected}", values.len()));
        }
    }
    if best_step > steps {
        return Err(format!("metadata best_step is {best_step}, expected at most {steps}"));
    }
    Ok(TrainState {
        epoch,
        params: read_params(tensors, &shape, "")?,
        moments: Moments {
            first: read_params(tensors, &shape, "opt.m.")?,
            second: read_params(tensors, &shape, "opt.v.")?,
        },
        history,
        best: Best {
            step: best_step,
            joint: [bits("best_joint_bits")?, bits("best_joint_signed_bits")?],
            params: read_params(tensors, &shape, "best.")?,
        },
    })
}

/// `V` and `A` of every pair, and their names.
fn names(shape: &Shape, prefix: &str) -> Vec<String> {
    let pairs =
        (0..shape.num_pairs()).map(|l| if shape.tied { String::new() } else { format!("layers.{l}.") });
    pairs.flat_map(|layer| ["V", "A"].map(|name| format!("{prefix}{layer}{name}"))).collect()
}

fn insert_params(tensors: &mut Tensors, shape: &Shape, prefix: &str, params: &[f32]) {
    let rows = shape.num_rows();
    for (name, matrix) in names(shape, prefix).iter().zip(params.chunks_exact(rows * rows)) {
        tensors.insert(name, &[rows, rows], matrix.to_vec());
    }
}

fn read_params(tensors: &Tensors, shape: &Shape, prefix: &str) -> Result<Vec<f32>, String> {
    let mut params = Vec::with_capacity(shape.num_params());
    for name in names(shape, prefix) {
        params.extend_from_slice(tensors.get(&name)?);
    }
    if params.len() == shape.num_params() { Ok(params) } else { Err("tensors have another size".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ictd::pretrain::Trainer;

    #[test]
    fn states_survive_a_checkpoint_and_strangers_are_refused() {
        for tied in [true, false] {
            let config = PretrainConfig { tied, ..PretrainConfig::mask_relaxed() };
            let mut trainer = Trainer::<f32>::new(&config, 5).unwrap();
            trainer.epoch().unwrap();
            let state = trainer.into_state();
            let bytes = encode(&config, "abc", 5, &state).to_bytes();
            let tensors = Tensors::from_bytes(&bytes).unwrap();
            assert_eq!(decode(&config, "abc", 5, &tensors).unwrap(), state);
            assert!(decode(&config, "abd", 5, &tensors).unwrap_err().contains("another configuration"));
            assert!(decode(&config, "abc", 6, &tensors).unwrap_err().contains("seed 5"));
        }
    }
}
