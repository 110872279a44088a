//! The forward pass on arrays.

use ictd::context::{Context, End};
use ictd::kernel::{Attention, KernelName};
use ictd::transformer::{Block, TransformerConfig};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::arrays::Numbers;
use crate::errors::of_lab;
use ictd_lab::LabError;

/// The values of every column after every layer.
#[pyfunction]
#[pyo3(signature = (features, rewards, gamma, kernel, temperature, layers, step_size, block))]
pub fn forward<'py>(
    py: Python<'py>,
    features: &Bound<'py, PyAny>,
    rewards: &Bound<'py, PyAny>,
    gamma: f64,
    kernel: &str,
    temperature: f64,
    layers: usize,
    step_size: f64,
    block: &str,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let features = Numbers::of(features, "features")?.matrix()?;
    let rewards = Numbers::of(rewards, "rewards")?.vector()?;
    let values = py.detach(|| -> Result<Vec<f64>, LabError> {
        let kernel: KernelName = kernel.parse()?;
        let block: Block = block.parse()?;
        let transformer = TransformerConfig {
            block,
            step_sizes: vec![step_size],
            ..TransformerConfig::theta_star(Attention::new(kernel.at(temperature)?, 0.0)?, layers, gamma)
        };
        let transformer = transformer.check()?;
        let context = Context::builder()
            .flat_episode(features.as_slice(), features.num_cols(), &rewards, End::Truncated)
            .build()?;
        let values = transformer.values(&context)?;
        Ok((0..=layers).flat_map(|l| values.values(l)).collect())
    });
    let values = values.map_err(of_lab)?;
    let columns = values.len() / (layers + 1);
    PyArray1::from_vec(py, values).reshape([layers + 1, columns])
}
