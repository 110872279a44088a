//! Calls about a file of the user's own, whose bytes come with the request.

use ictd_lab::LabError;
use ictd_lab::explore::{LogFile, Model};
use ictd_lab::studies::evaluate::Options;

use crate::engine::{Fields, field, given, maybe, no_more};

/// The name of a log, and what is said about it.
fn log(fields: &mut Fields) -> Result<(String, Options), LabError> {
    Ok((field(fields, "name")?, maybe(fields, "options")?.unwrap_or_default()))
}

pub(crate) fn understand(fields: &mut Fields, bytes: &[u8]) -> Result<Vec<u8>, LabError> {
    let (name, options) = log(fields)?;
    no_more(fields)?;
    given(&LogFile { name: &name, bytes }.understand(&options)?)
}

pub(crate) fn evaluate(fields: &mut Fields, bytes: &[u8]) -> Result<Vec<u8>, LabError> {
    let (name, options) = log(fields)?;
    no_more(fields)?;
    given(&LogFile { name: &name, bytes }.evaluate(&options)?)
}

pub(crate) fn log_context(fields: &mut Fields, bytes: &[u8]) -> Result<Vec<u8>, LabError> {
    let (name, options) = log(fields)?;
    let from: Option<usize> = maybe(fields, "from")?;
    let transitions: usize = field(fields, "transitions")?;
    no_more(fields)?;
    given(&LogFile { name: &name, bytes }.window(&options, from.unwrap_or(0), transitions)?)
}

pub(crate) fn checkpoint(fields: &mut Fields, bytes: &[u8]) -> Result<Vec<u8>, LabError> {
    let name: String = field(fields, "name")?;
    no_more(fields)?;
    given(&Model::read(&name, bytes)?)
}
