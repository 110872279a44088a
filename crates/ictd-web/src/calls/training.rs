//! Calls about training.

use std::collections::BTreeMap;

use ictd_lab::LabError;
use ictd_lab::explore::{self, Opened, Training};
use serde::Serialize;

use crate::engine::{Fields, field, given, maybe, no_more};

/// Runs that are open at most: each keeps its parameters and its history.
const MAX_OPEN: usize = 64;

/// The runs that are open.
#[derive(Default)]
pub(crate) struct Trainings {
    open: BTreeMap<u32, Training>,
    next: u32,
}

/// What to train.
fn run(fields: &mut Fields) -> Result<(Fields, u64), LabError> {
    let (overrides, seed) = (maybe(fields, "overrides")?, maybe(fields, "seed")?);
    no_more(fields)?;
    Ok((overrides.unwrap_or_default(), seed.unwrap_or(0)))
}

/// Which run that is open.
fn which(fields: &mut Fields) -> Result<u32, LabError> {
    let id = field(fields, "id")?;
    no_more(fields)?;
    Ok(id)
}

pub(crate) fn train(fields: &mut Fields) -> Result<Vec<u8>, LabError> {
    let (overrides, seed) = run(fields)?;
    given(&explore::train(&overrides, seed)?)
}

fn unknown(id: u32) -> LabError {
    LabError::value("id", id, "that of a training run that is open")
}

impl Trainings {
    fn get(&mut self, id: u32) -> Result<&mut Training, LabError> {
        self.open.get_mut(&id).ok_or_else(|| unknown(id))
    }

    pub(crate) fn open(&mut self, fields: &mut Fields) -> Result<Vec<u8>, LabError> {
        #[derive(Serialize)]
        struct Answer<'a> {
            id: u32,
            #[serde(flatten)]
            opened: Opened<'a>,
        }
        let (overrides, seed) = run(fields)?;
        if self.open.len() >= MAX_OPEN {
            let expected = format!("at most {MAX_OPEN}: train_result and train_close forget one");
            return Err(LabError::value("training runs that are open", MAX_OPEN + 1, expected));
        }
        let training = Training::open(&overrides, seed)?;
        let id = self.next;
        let answer = given(&Answer { id, opened: training.opened() })?;
        self.open.insert(id, training);
        self.next = self.next.wrapping_add(1);
        Ok(answer)
    }

    pub(crate) fn advance(&mut self, fields: &mut Fields) -> Result<Vec<u8>, LabError> {
        let epochs: u64 = field(fields, "epochs")?;
        let id = which(fields)?;
        given(&self.get(id)?.advance(epochs)?)
    }

    pub(crate) fn params(&mut self, fields: &mut Fields) -> Result<Vec<u8>, LabError> {
        let id = which(fields)?;
        given(&self.get(id)?.model()?)
    }

    pub(crate) fn result(&mut self, fields: &mut Fields) -> Result<Vec<u8>, LabError> {
        let id = which(fields)?;
        given(&self.open.remove(&id).ok_or_else(|| unknown(id))?.result()?)
    }

    pub(crate) fn close(&mut self, fields: &mut Fields) -> Result<Vec<u8>, LabError> {
        let id = which(fields)?;
        self.open.remove(&id).ok_or_else(|| unknown(id))?;
        given(&())
    }
}
