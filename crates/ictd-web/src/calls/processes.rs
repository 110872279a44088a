//! Calls about a process.

use ictd_lab::LabError;
use ictd_lab::explore::{Process, ProcessRequest};
use serde::{Deserialize, Serialize};

use crate::engine::{Fields, given, parsed};

pub(crate) fn process(fields: Fields) -> Result<Vec<u8>, LabError> {
    given(&parsed::<ProcessRequest>(fields)?.make()?)
}

pub(crate) fn values(fields: Fields) -> Result<Vec<u8>, LabError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Request {
        process: Process,
    }
    #[derive(Serialize)]
    struct Exact {
        values: Vec<f64>,
    }
    let values = parsed::<Request>(fields)?.process.values()?;
    given(&Exact { values })
}

pub(crate) fn sample(fields: Fields) -> Result<Vec<u8>, LabError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Request {
        process: Process,
        n: usize,
        #[serde(default)]
        seed: u64,
    }
    let Request { process, n, seed } = parsed(fields)?;
    given(&process.sample(n, seed)?)
}
