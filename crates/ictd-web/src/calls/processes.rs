//! Calls about a process.

use ictd_lab::LabError;
use ictd_lab::explore::{Process, ProcessRequest};
use serde::Serialize;

use crate::engine::{Fields, field, given, maybe, no_more, parsed};

pub(crate) fn process(fields: &mut Fields) -> Result<Vec<u8>, LabError> {
    let request: ProcessRequest = parsed("process", std::mem::take(fields).into())?;
    given(&request.make()?)
}

pub(crate) fn values(fields: &mut Fields) -> Result<Vec<u8>, LabError> {
    #[derive(Serialize)]
    struct Exact {
        values: Vec<f64>,
    }
    let process: Process = field(fields, "process")?;
    no_more(fields)?;
    given(&Exact { values: process.values()? })
}

pub(crate) fn sample(fields: &mut Fields) -> Result<Vec<u8>, LabError> {
    let (process, n): (Process, usize) = (field(fields, "process")?, field(fields, "n")?);
    let seed: u64 = maybe(fields, "seed")?.unwrap_or(0);
    no_more(fields)?;
    given(&process.sample(n, seed)?)
}
