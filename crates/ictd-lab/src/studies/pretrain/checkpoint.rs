//! Training states as checkpoints that PyTorch can load.

use std::fs;
use std::path::Path;

use ictd::pretrain::{Best, History, Metric, Moments, PretrainConfig, Shape, TrainState};

use super::Step;
use crate::files::{Description, FORMAT, SEALED_FORMAT, Tensors};

/// The whole state of a run: `V` and `A` (or `layers.l.V`, `layers.l.A`) of a step as the paper writes them, the
/// optimiser's moments, the best step and the histories; the metadata describe the Transformer of that step.
pub fn encode(
    config: &PretrainConfig,
    config_sha256: &str,
    seed: u64,
    state: &TrainState<f32>,
    step: Step,
) -> Result<Tensors, String> {
    let (params, at) = match step {
        Step::Final => (&state.params, state.steps()),
        Step::Best => (&state.best.params, state.best.step),
    };
    let shape = config.shape();
    let mut tensors = Tensors::default();
    let mask: Vec<f32> = shape.trained().iter().map(|&t| f32::from(u8::from(t))).collect();
    let rows = shape.num_rows();
    for (prefix, params) in [
        ("", params),
        ("opt.m.", &state.moments.first),
        ("opt.v.", &state.moments.second),
        ("best.", &state.best.params),
        ("mask.", &mask),
    ] {
        for (name, matrix) in names(&shape, prefix).iter().zip(params.chunks_exact(rows * rows)) {
            tensors.insert(name, &[rows, rows], matrix.to_vec());
        }
    }
    for metric in Metric::ALL {
        let values = &state.history[metric];
        tensors.insert(&history_name(metric), &[values.len()], values.clone());
    }
    let joint = |k: usize| format!("{:016x}", state.best.joint[k].to_bits());
    let entries = [
        ("format", "ictd.ckpt".into()),
        (FORMAT, SEALED_FORMAT.into()),
        ("config_sha256", config_sha256.to_owned()),
        ("seed", seed.to_string()),
        ("epoch", state.epoch.to_string()),
        ("step", state.steps().to_string()),
        ("rng", "ChaCha8, streams by (seed, purpose, epoch): no state".into()),
        ("best_step", state.best.step.to_string()),
        ("best_joint_bits", joint(0)),
        ("best_joint_signed_bits", joint(1)),
        ("layout", "row_major".into()),
        ("convention", "columns_are_tokens".into()),
    ];
    tensors.metadata = Description::of(config, at).metadata()?;
    tensors.metadata.extend(entries.into_iter().map(|(k, v)| (k.to_owned(), v)));
    Ok(tensors)
}

fn history_name(metric: Metric) -> String {
    format!("history.{}", metric.name())
}

/// The state in a checkpoint of this configuration and seed, of formats 1 to 3; says what does not fit. What the digest of
/// format 3 vouches for is looked at in all of them: earlier files have none.
pub fn decode(
    config: &PretrainConfig,
    config_sha256: &str,
    seed: u64,
    tensors: &Tensors,
) -> Result<TrainState<f32>, String> {
    let text = |key: &str| tensors.metadata.get(key).ok_or_else(|| format!("metadata {key} is missing"));
    let in_base = |base: u32, key: &str| -> Result<u64, String> {
        u64::from_str_radix(text(key)?, base).map_err(|_| format!("metadata {key} is no number"))
    };
    let number = |key: &str| in_base(10, key);
    let bits = |key: &str| match in_base(16, key).map(f64::from_bits)? {
        joint if joint.is_finite() => Ok(joint),
        joint => Err(format!("metadata {key} are those of {joint}, expected a finite number")),
    };
    // Refuses later formats.
    let description = Description::read(&tensors.metadata)?;
    if text("config_sha256")? != config_sha256 {
        return Err("the checkpoint belongs to another configuration".into());
    }
    if number("seed")? != seed {
        return Err(format!("the checkpoint belongs to seed {}, expected {seed}", number("seed")?));
    }
    let shape = config.shape();
    let history = History::try_from_fn(|metric| tensors.get(&history_name(metric)).map(<[f32]>::to_vec))?;
    let (epoch, best_step) = (number("epoch")?, number("best_step")?);
    if epoch > config.epochs {
        return Err(format!("metadata epoch is {epoch}, expected at most {}", config.epochs));
    }
    let steps = epoch.saturating_mul(config.batches as u64);
    for metric in Metric::ALL {
        let (name, values) = (history_name(metric), &history[metric]);
        let (found, expected) = (values.len(), if metric.is_per_step() { steps } else { epoch });
        if found as u64 != expected {
            return Err(format!("{name} has {found} entries, expected {expected}"));
        }
        // Errors against values that are not known are not numbers.
        let is_known = |x: &f32| x.is_finite() || metric == Metric::EvalMsve && x.is_nan();
        if let Some(k) = values.iter().position(|x| !is_known(x)) {
            return Err(format!("{name}: entry {k} is {}, expected a finite number", values[k]));
        }
    }
    if number("step")? != steps {
        return Err(format!("metadata step is {}, expected {steps}", number("step")?));
    }
    if best_step > steps {
        return Err(format!("metadata best_step is {best_step}, expected at most {steps}"));
    }
    // Files of earlier versions have the mixing of the run's end, whatever their step.
    let described = [steps, best_step, config.num_steps()].map(|step| Description::of(config, step));
    if description.is_some_and(|said| !described.contains(&said)) {
        return Err("the metadata describe another Transformer than the configuration".into());
    }
    let trained = shape.trained();
    let params = |prefix| read_params(tensors, &shape, &trained, prefix);
    if !trained.iter().zip(params("mask.")?).all(|(&trained, mask)| mask == f32::from(u8::from(trained))) {
        return Err("the mask is another than that of the configuration".into());
    }
    Ok(TrainState {
        epoch,
        params: params("")?,
        moments: Moments { first: params("opt.m.")?, second: params("opt.v.")? },
        history,
        best: Best {
            step: best_step,
            joint: [bits("best_joint_bits")?, bits("best_joint_signed_bits")?],
            params: params("best.")?,
        },
    })
}

/// The state in a checkpoint file of this configuration and seed, and whether the file carries a digest; says what is wrong
/// with it otherwise.
pub fn read(
    path: &Path,
    config: &PretrainConfig,
    config_sha256: &str,
    seed: u64,
) -> Result<(TrainState<f32>, bool), String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let tensors = Tensors::from_bytes(&bytes)?;
    Ok((decode(config, config_sha256, seed, &tensors)?, tensors.is_sealed()))
}

/// `V` and `A` of every pair, and their names.
fn names(shape: &Shape, prefix: &str) -> Vec<String> {
    let pairs =
        (0..shape.num_pairs()).map(|l| if shape.tied { String::new() } else { format!("layers.{l}.") });
    pairs.flat_map(|layer| ["V", "A"].map(|name| format!("{prefix}{layer}{name}"))).collect()
}

/// Numbers by layer, finite, and zero where nothing is trained.
fn read_params(tensors: &Tensors, shape: &Shape, trained: &[bool], prefix: &str) -> Result<Vec<f32>, String> {
    let rows = shape.num_rows();
    let mut params = Vec::with_capacity(shape.num_params());
    for (name, trained) in names(shape, prefix).iter().zip(trained.chunks_exact(rows * rows)) {
        let (found, numbers) =
            tensors.tensors.get(name).ok_or_else(|| format!("tensor {name} is missing"))?;
        if *found != [rows, rows] {
            return Err(format!("tensor {name} has shape {found:?}, expected {:?}", [rows, rows]));
        }
        let is_wrong = |(&x, &trained): (&f32, &bool)| !x.is_finite() || !trained && x != 0.0;
        if let Some(k) = numbers.iter().zip(trained).position(is_wrong) {
            let expected = if trained[k] { "a finite number" } else { "0 as it is not trained" };
            let (i, j) = (k / rows, k % rows);
            return Err(format!("tensor {name}: entry ({i}, {j}) is {}, expected {expected}", numbers[k]));
        }
        params.extend_from_slice(numbers);
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ictd::pretrain::Trainer;

    #[test]
    fn states_survive_a_checkpoint_and_those_of_others_are_refused() {
        for tied in [true, false] {
            let config = PretrainConfig { tied, ..PretrainConfig::mask_relaxed() };
            let mut trainer = Trainer::<f32>::new(&config, 5).unwrap();
            trainer.epoch().unwrap();
            let state = trainer.into_state();
            let bytes = encode(&config, "abc", 5, &state, Step::Final).unwrap().to_bytes();
            let tensors = Tensors::from_bytes(&bytes).unwrap();
            assert_eq!(decode(&config, "abc", 5, &tensors).unwrap(), state);
            assert!(decode(&config, "abd", 5, &tensors).unwrap_err().contains("another configuration"));
            assert!(decode(&config, "abc", 6, &tensors).unwrap_err().contains("seed 5"));
        }
    }

    /// On a ramp, in a run that was interrupted: that of the stored step, and not of the run's end, which files of earlier versions have.
    #[test]
    fn the_mixing_of_a_checkpoint_is_that_of_its_step() {
        let config = PretrainConfig::mask_full();
        let mut trainer = Trainer::<f32>::new(&config, 0).unwrap();
        (0..3).for_each(|_| trainer.epoch().unwrap());
        let mut state = trainer.into_state();
        state.best.step = 7;
        for (step, at) in [(Step::Final, 30.0), (Step::Best, 7.0)] {
            let mut tensors = encode(&config, "abc", 0, &state, step).unwrap();
            let said: f64 = tensors.metadata["diagonal_mix"].parse().unwrap();
            // Two products and a sum of numbers below 1.
            assert!((said - (0.68 + 0.12 * at / 8000.0)).abs() < 1e-15, "{said}");
            assert!(decode(&config, "abc", 0, &tensors).is_ok());
            tensors.metadata.insert("diagonal_mix".into(), "0.8".into());
            assert!(decode(&config, "abc", 0, &tensors).is_ok());
            tensors.metadata.insert("diagonal_mix".into(), "0.7".into());
            assert!(decode(&config, "abc", 0, &tensors).unwrap_err().contains("another Transformer"));
        }
    }
}
