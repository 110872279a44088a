//! What a Transformer is made of, as Python says it.

use std::path::PathBuf;

use ictd::kernel::{Attention, KernelName};
use ictd::matrix::Matrix;
use ictd::pretrain::{Mask, QueryMix, QueryPosition};
use ictd::task::FeatureMap;
use ictd::transformer::{AttentionParams, Block, Parameters, Transformer, TransformerConfig};
use ictd_lab::LabError;
use ictd_lab::files::{Description, ModelFile, chosen, read_params};
use ictd_lab::memory::{self, DOUBLE};
use ictd_lab::studies::forward::{Options, StepSizes};
use pyo3::exceptions::{PyException, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::arrays::Numbers;
use crate::errors::{OrRaise, input_type, refused};
use crate::work::Manner;

/// Parameters, and what is known of them.
pub struct Model {
    pub file: ModelFile,
    /// Where layers have step sizes of their own, which no description has.
    step_sizes: Option<Vec<f64>>,
    /// The file, or what else it is.
    pub name: String,
}

impl Model {
    /// Parameters from a pair of arrays, a block or the path of a file.
    pub fn of(params: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let Some(given) = params.filter(|given| !given.is_none()) else { return Ok(None) };
        if given.hasattr("V")? {
            return Self::of_block(given).map(Some);
        }
        if let Ok(pair) = given.cast::<PyTuple>()
            && let Ok((v, a)) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
        {
            let parameters = parameters(&v, &a)?;
            let file = ModelFile { parameters, description: None, warning: None };
            return Ok(Some(Self { file, step_sizes: None, name: "V and A".into() }));
        }
        let path = given.extract::<PathBuf>().map_err(|error| {
            let expected = "expected a pair (V, A) of arrays, a block or the path of a file";
            let words = |kind| input_type(format!("params is of type {kind}, {expected}"));
            refused(given.py(), error, |_| given.get_type().name().map(words))
        })?;
        let name = path.display().to_string();
        let file = Manner::default().run(given.py(), "params", move |_| read_params(&path))?;
        if let Some(warning) = file.warning {
            let category: Bound<'_, PyType> = given.py().get_type::<PyUserWarning>();
            let text = std::ffi::CString::new(warning).unwrap_or_default();
            PyErr::warn(given.py(), &category, &text, 2)?;
        }
        Ok(Some(Self { file, step_sizes: None, name }))
    }

    fn of_block(block: &Bound<'_, PyAny>) -> PyResult<Self> {
        let parameters = parameters(&block.getattr("V")?, &block.getattr("A")?)?;
        let steps = step_sizes(&block.getattr("step_size")?)?;
        let (step_size, step_sizes) = match steps {
            StepSizes::All(size) => (size, None),
            StepSizes::Each(sizes) if sizes.len() == 1 => (sizes[0], None),
            StepSizes::Each(sizes) => (1.0, Some(sizes)),
        };
        let said = Description {
            block: block.getattr("block")?.extract::<String>()?.parse::<Block>().or_raise()?,
            kernel: block.getattr("kernel")?.extract::<String>()?.parse::<KernelName>().or_raise()?,
            temperature: block.getattr("temperature")?.extract()?,
            gamma: block.getattr("gamma")?.extract()?,
            layers: block.getattr("layers")?.extract()?,
            step_size,
            mask: Mask::None,
            tied: matches!(parameters, Parameters::Tied(_)),
            features: feature_dim(&parameters),
            n: usual_n(block)?,
            diagonal_mix: block.getattr("diagonal_mix")?.extract()?,
            query: QueryPosition::Next,
            query_mix: QueryMix::Mixed,
            score_scale: 1.0,
            feature_map: FeatureMap::Raw,
        };
        let file = ModelFile { parameters, description: Some(said), warning: None };
        Ok(Self { file, step_sizes, name: "block".into() })
    }

    /// The file, where all layers have one step size.
    pub fn with_one_step_size(self) -> PyResult<ModelFile> {
        match self.step_sizes {
            None => Ok(self.file),
            Some(sizes) => {
                let found = format!("a list of {}", sizes.len());
                Err(LabError::value("step size of the block", found, "one for all layers")).or_raise()
            }
        }
    }
}

/// The context length that a block was trained with, where it says one; 10 as of files that do not.
fn usual_n(block: &Bound<'_, PyAny>) -> PyResult<usize> {
    let said = block.getattr_opt("n")?.filter(|n| !n.is_none());
    said.map_or(Ok(10), |n| n.extract())
}

fn feature_dim(parameters: &Parameters) -> usize {
    match parameters {
        Parameters::ThetaStar => 0,
        Parameters::Tied(pair) => pair.feature_dim(),
        Parameters::PerLayer(pairs) => pairs.first().map_or(0, AttentionParams::feature_dim),
    }
}

/// (V, A) of all layers from two matrices, or of each from two stacks of them.
fn parameters(v: &Bound<'_, PyAny>, a: &Bound<'_, PyAny>) -> PyResult<Parameters> {
    let (v, a) = (Numbers::of(v, "V")?, Numbers::of(a, "A")?);
    if v.shape().len() != 3 && a.shape().len() != 3 {
        return Ok(Parameters::Tied(AttentionParams::new(v.matrix()?, a.matrix()?).or_raise()?));
    }
    let ((layers, v), (others, a)) = (v.matrices()?, a.matrices()?);
    if layers != others {
        let problem = format!("V has {layers} layers, A has {others}, expected as many");
        return Err(LabError::refused("params", problem)).or_raise();
    }
    let pairs = v.into_iter().zip(a).map(|(v, a)| AttentionParams::new(v, a).or_raise());
    Ok(Parameters::PerLayer(pairs.collect::<PyResult<_>>()?))
}

/// One step size for all layers, or one for each.
pub fn step_sizes(given: &Bound<'_, PyAny>) -> PyResult<StepSizes> {
    match given.extract::<f64>() {
        Ok(size) => Ok(StepSizes::All(size)),
        // Not one number, as its kind says it. Ctrl-C is no kind's word.
        Err(error) if error.is_instance_of::<PyException>(given.py()) => {
            Ok(StepSizes::Each(Numbers::of(given, "step_size")?.vector()?))
        }
        Err(error) => Err(error),
    }
}

/// What is said about a Transformer. What is as usual counts as not said, so that a checkpoint or a block can say it.
pub struct Spec<'a> {
    pub gamma: f64,
    pub kernel: &'a str,
    pub temperature: f64,
    pub layers: usize,
    pub step_size: StepSizes,
    pub block: &'a str,
    pub diagonal_mix: f64,
}

/// What is not as usual.
fn unusual<T: PartialEq>(given: T, usual: T) -> Option<T> {
    Some(given).filter(|given| *given != usual)
}

impl Spec<'_> {
    /// The kernel and its temperature: what is said, or what the parameters were made for.
    pub fn kernel(&self, model: Option<&Model>) -> Result<(KernelName, f64), LabError> {
        let said = model.and_then(|model| model.file.description.as_ref());
        let kernel = unusual(self.kernel.parse()?, KernelName::Softmax).or(said.map(|said| said.kernel));
        let temperature = unusual(self.temperature, 1.0).or(said.map(|said| said.temperature));
        Ok((kernel.unwrap_or_default(), temperature.unwrap_or(1.0)))
    }

    /// The Transformer.
    pub fn transformer(self, model: Option<Model>) -> Result<Transformer, LabError> {
        let step_size = unusual(self.step_size, StepSizes::All(1.0));
        let (file, own) = model.map_or((None, None), |m| (Some(m.file), m.step_sizes));
        let options = Options {
            block: unusual(self.block.parse()?, Block::TemporalShift),
            kernel: unusual(self.kernel.parse()?, KernelName::Softmax),
            layers: unusual(self.layers, 15),
            gamma: Some(self.gamma),
            temperature: unusual(self.temperature, 1.0),
            diagonal_mix: unusual(self.diagonal_mix, 0.0),
            step_size: if own.is_some() { None } else { step_size.clone() },
            ..Options::default()
        };
        let mut config = options.transformer(file)?;
        if let Some(own) = own {
            let said = StepSizes::Each(own.clone());
            chosen("step size", step_size, Some(said.clone()), said)?;
            config.step_sizes = own;
        }
        Ok(config.check()?)
    }
}

/// Attention of a kernel by name.
pub fn attention(kernel: &str, temperature: f64, diagonal_mix: f64) -> Result<Attention, LabError> {
    Ok(Attention::new(kernel.parse::<KernelName>()?.at(temperature)?, diagonal_mix)?)
}

/// γ and step sizes of so many iterations, checked as those of layers are.
pub fn iterations(gamma: f64, layers: usize, step_size: &StepSizes) -> Result<Vec<f64>, LabError> {
    let sizes = match step_size {
        StepSizes::All(size) => vec![*size],
        StepSizes::Each(sizes) => sizes.clone(),
    };
    let config = TransformerConfig::theta_star(attention("softmax", 1.0, 0.0)?, layers, gamma);
    let checked = TransformerConfig { step_sizes: sizes, ..config }.check()?;
    let sizes = &checked.config().step_sizes;
    memory::admit(DOUBLE * layers as f64, "layers")?;
    Ok(if sizes.len() == 1 { vec![sizes[0]; layers] } else { sizes.clone() })
}

/// A d × d matrix for scores.
pub fn score_block(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Matrix>> {
    given.filter(|given| !given.is_none()).map(|given| Numbers::of(given, "A")?.matrix()).transpose()
}
