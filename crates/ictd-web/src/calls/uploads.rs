//! Calls about a file of the user's own, whose bytes come with the request.

use ictd_lab::LabError;
use ictd_lab::explore::{LogFile, Model};
use ictd_lab::studies::evaluate::Options;
use serde::Deserialize;

use crate::engine::{Fields, given, parsed};

/// A log, and what is said about it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    name: String,
    #[serde(default)]
    options: Options,
}

pub(crate) fn understand(fields: Fields, bytes: &[u8]) -> Result<Vec<u8>, LabError> {
    let Log { name, options } = parsed(fields)?;
    given(&LogFile { name: &name, bytes }.understand(&options)?)
}

pub(crate) fn evaluate(fields: Fields, bytes: &[u8]) -> Result<Vec<u8>, LabError> {
    let Log { name, options } = parsed(fields)?;
    given(&LogFile { name: &name, bytes }.evaluate(&options)?)
}

pub(crate) fn log_context(fields: Fields, bytes: &[u8]) -> Result<Vec<u8>, LabError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Request {
        name: String,
        #[serde(default)]
        options: Options,
        #[serde(default)]
        from: usize,
        transitions: usize,
    }
    let Request { name, options, from, transitions } = parsed(fields)?;
    given(&LogFile { name: &name, bytes }.window(&options, from, transitions)?)
}

pub(crate) fn checkpoint(fields: Fields, bytes: &[u8]) -> Result<Vec<u8>, LabError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Request {
        name: String,
    }
    let Request { name } = parsed(fields)?;
    given(&Model::read(&name, bytes)?)
}
