//! From a request to an answer.

use ictd_lab::{LabError, one_line};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::calls::{self, Trainings};

/// Fields of a request.
pub(crate) type Fields = Map<String, Value>;

/// Answers the calls of a page, one after the other.
///
/// | call | fields | value |
/// |---|---|---|
/// | `about` | | `version` |
/// | `forward` | `context`, `options` | what `ictd forward --json` prints |
/// | `certify` | `context`, `options` | what `ictd certify --input … --json` prints |
/// | `spectrum` | `context`, `options` | eigenvalues of J, errors over depth: [`SpectrumReport`](ictd_lab::explore::SpectrumReport) |
/// | `layers` | `context`, `options` | every step of a forward pass: [`Layers`](ictd_lab::explore::Layers) |
/// | `process` | `kind`, `states`, `seed`, `gamma`, `features` | a [`Process`](ictd_lab::explore::Process) |
/// | `values` | `process` | its exact `values` |
/// | `sample` | `process`, `n`, `seed` | `context` and `states` of a trajectory |
/// | `train` | `overrides`, `seed` | what `ictd pretrain --seeds … --json` prints, in no time |
/// | `train_open` | `overrides`, `seed` | the `id` of a run, its `epochs` and `settings` |
/// | `train_advance` | `id`, `epochs` | where it is so many epochs later: [`Standing`](ictd_lab::explore::Standing) |
/// | `train_params` | `id` | `params` and `options` of a forward pass |
/// | `train_result` | `id` | the seed's entry in what `train` gives; the run is forgotten |
/// | `train_close` | `id` | nothing; the run is forgotten |
/// | `understand` | `name`, `options`, a log | what it is taken for: [`Understood`](ictd_lab::explore::Understood) |
/// | `evaluate` | `name`, `options`, a log | what `ictd evaluate --json` prints |
/// | `log_context` | `name`, `options`, `from`, `transitions`, a log | a window of it as a `context` |
/// | `checkpoint` | `name`, a checkpoint or parameters as JSON | `params` and `options` of a forward pass |
///
/// A `context` is what `ictd forward --input` reads. Options have the names of the command's flags, with `_` for `-`; of
/// `forward` and `layers` `params` may be an object with `V` and `A`, or with `layers`.
#[derive(Default)]
pub struct Engine {
    trainings: Trainings,
}

impl Engine {
    /// The answer to a request as JSON: `{"value": …}` or `{"error": …}`.
    pub fn answer(&mut self, request: &[u8], payload: &[u8]) -> Vec<u8> {
        self.value(request, payload).unwrap_or_else(|error| {
            let message = one_line(&error.to_string());
            Value::Object(Map::from_iter([("error".to_owned(), message.into())])).to_string().into_bytes()
        })
    }

    fn value(&mut self, request: &[u8], payload: &[u8]) -> Result<Vec<u8>, LabError> {
        let mut fields: Fields = serde_json::from_slice(request)
            .map_err(|e| LabError::refused("request", format!("expected a JSON object: {e}")))?;
        let name: String = field(&mut fields, "call")?;
        let fields = &mut fields;
        match name.as_str() {
            "about" => calls::about(fields),
            "forward" => calls::forward(fields),
            "certify" => calls::certify(fields),
            "spectrum" => calls::spectrum(fields),
            "layers" => calls::layers(fields),
            "process" => calls::process(fields),
            "values" => calls::values(fields),
            "sample" => calls::sample(fields),
            "train" => calls::train(fields),
            "train_open" => self.trainings.open(fields),
            "train_advance" => self.trainings.advance(fields),
            "train_params" => self.trainings.params(fields),
            "train_result" => self.trainings.result(fields),
            "train_close" => self.trainings.close(fields),
            "understand" => calls::understand(fields, payload),
            "evaluate" => calls::evaluate(fields, payload),
            "log_context" => calls::log_context(fields, payload),
            "checkpoint" => calls::checkpoint(fields, payload),
            _ => Err(LabError::value("call", format!("'{name}'"), "the name of a call")),
        }
    }
}

/// What `value` says, as a `T`; `name` names it in errors.
pub(crate) fn parsed<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, LabError> {
    serde_json::from_value(value).map_err(|error| LabError::refused(name, error.to_string()))
}

/// Takes a field out of a request; `None` where it is absent or null.
pub(crate) fn maybe<T: DeserializeOwned>(fields: &mut Fields, name: &str) -> Result<Option<T>, LabError> {
    let value = fields.remove(name).filter(|value| !value.is_null());
    value.map(|value| parsed(name, value)).transpose()
}

/// Takes a field out of a request that must have it.
pub(crate) fn field<T: DeserializeOwned>(fields: &mut Fields, name: &str) -> Result<T, LabError> {
    maybe(fields, name)?.ok_or_else(|| LabError::refused(name, "missing"))
}

/// Refuses what is left of a request when everything that the call knows was taken out.
pub(crate) fn no_more(fields: &Fields) -> Result<(), LabError> {
    match fields.keys().next() {
        Some(name) => {
            Err(LabError::refused("request", format!("found '{name}', which the call does not have")))
        }
        None => Ok(()),
    }
}

/// The answer with this value.
pub(crate) fn given(value: &impl Serialize) -> Result<Vec<u8>, LabError> {
    let mut bytes = br#"{"value":"#.to_vec();
    serde_json::to_writer(&mut bytes, value).map_err(|e| LabError::internal("answer", e))?;
    bytes.push(b'}');
    Ok(bytes)
}
