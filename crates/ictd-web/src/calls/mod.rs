//! The calls: each reads its fields, asks the laboratory, and gives what it says.

mod contexts;
mod processes;
mod training;
mod uploads;

pub(crate) use contexts::{certify, forward, layers, spectrum};
pub(crate) use processes::{process, sample, values};
pub(crate) use training::{Trainings, train};
pub(crate) use uploads::{checkpoint, evaluate, log_context, understand};

use ictd_lab::LabError;
use serde::Serialize;

use crate::engine::{Fields, given, no_more};

/// Which program this is.
pub(crate) fn about(fields: &mut Fields) -> Result<Vec<u8>, LabError> {
    #[derive(Serialize)]
    struct About {
        version: &'static str,
    }
    no_more(fields)?;
    given(&About { version: env!("CARGO_PKG_VERSION") })
}
