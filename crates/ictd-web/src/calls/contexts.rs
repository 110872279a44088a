//! Calls about a context.

use ictd_lab::files::{ContextFile, ParamsFile};
use ictd_lab::studies::forward;
use ictd_lab::studies::theory::certify::{self, Options};
use ictd_lab::{LabError, Progress, explore};

use crate::engine::{Fields, field, given, maybe, no_more, parsed};

/// A context, options of a forward pass, and parameters, which stand among the options.
fn pass(fields: &mut Fields) -> Result<(ContextFile, forward::Options, Option<ParamsFile>), LabError> {
    let context = field(fields, "context")?;
    let mut options: Fields = maybe(fields, "options")?.unwrap_or_default();
    no_more(fields)?;
    let params = maybe(&mut options, "params")?;
    Ok((context, parsed("options", options.into())?, params))
}

pub(crate) fn forward(fields: &mut Fields) -> Result<Vec<u8>, LabError> {
    let (context, options, params) = pass(fields)?;
    let model = params.map(ParamsFile::into_model).transpose()?;
    let transformer = options.transformer(model)?.check()?;
    let context = context.into_context()?;
    given(&forward::report(&transformer, &context, options.wanted(true, false), &Progress::default())?)
}

pub(crate) fn layers(fields: &mut Fields) -> Result<Vec<u8>, LabError> {
    let (context, options, params) = pass(fields)?;
    given(&explore::layers(&context.into_context()?, &options, params)?)
}

/// A context, and what is asked about its layer.
fn examined(fields: &mut Fields) -> Result<(ContextFile, Options), LabError> {
    let (context, options) = (field(fields, "context")?, maybe(fields, "options")?);
    no_more(fields)?;
    Ok((context, options.unwrap_or_default()))
}

pub(crate) fn certify(fields: &mut Fields) -> Result<Vec<u8>, LabError> {
    let (context, options) = examined(fields)?;
    let (context, config) = (context.into_context()?, options.config());
    given(&certify::context(&context, options.gamma, options.unit_norm, &config, &Progress::default())?)
}

pub(crate) fn spectrum(fields: &mut Fields) -> Result<Vec<u8>, LabError> {
    let (context, options) = examined(fields)?;
    given(&explore::spectrum(&context.into_context()?, options.gamma, options.unit_norm, &options.config())?)
}
