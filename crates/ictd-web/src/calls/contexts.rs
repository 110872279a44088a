//! Calls about a context.

use ictd_lab::files::{ContextFile, ParamsFile};
use ictd_lab::studies::forward;
use ictd_lab::studies::theory::certify::{self, Options};
use ictd_lab::{LabError, Progress, explore};
use serde::Deserialize;

use crate::engine::{Fields, given, parsed};

/// A context, and options of which parameters are read apart.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pass {
    context: ContextFile,
    #[serde(default)]
    options: Fields,
}

/// The parameters that options name, taken out of them.
fn params(options: &mut Fields) -> Result<Option<ParamsFile>, LabError> {
    let params = options.remove("params").unwrap_or_default();
    serde_json::from_value(params).map_err(|e| LabError::refused("params", e.to_string()))
}

pub(crate) fn forward(fields: Fields) -> Result<Vec<u8>, LabError> {
    let Pass { context, mut options } = parsed(fields)?;
    let model = params(&mut options)?.map(ParamsFile::into_model).transpose()?;
    let options: forward::Options = parsed(options)?;
    let transformer = options.transformer(model)?.check()?;
    let context = context.into_context()?;
    given(&forward::report(&transformer, &context, options.wanted(true, false), &Progress::default())?)
}

pub(crate) fn layers(fields: Fields) -> Result<Vec<u8>, LabError> {
    let Pass { context, mut options } = parsed(fields)?;
    let params = params(&mut options)?;
    given(&explore::layers(&context.into_context()?, &parsed(options)?, params)?)
}

/// A context, and what is asked about its layer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Examined {
    context: ContextFile,
    #[serde(default)]
    options: Options,
}

pub(crate) fn certify(fields: Fields) -> Result<Vec<u8>, LabError> {
    let Examined { context, options } = parsed(fields)?;
    let (context, config) = (context.into_context()?, options.config());
    given(&certify::context(&context, options.gamma, options.unit_norm, &config, &Progress::default())?)
}

pub(crate) fn spectrum(fields: Fields) -> Result<Vec<u8>, LabError> {
    let Examined { context, options } = parsed(fields)?;
    given(&explore::spectrum(&context.into_context()?, options.gamma, options.unit_norm, &options.config())?)
}
