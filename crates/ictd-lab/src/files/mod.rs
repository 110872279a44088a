//! Files read and written.

mod context;
mod model;
mod numbers;
mod output;
pub mod process;
mod safetensors;
mod task;
mod tensorboard;

pub use context::{ContextFile, read_context};
pub use model::{Description, ModelFile, chosen, read_params};
pub use numbers::to_json_17;
pub use output::{OutputDir, Written};
pub use safetensors::Tensors;
pub use task::{AnyTask, NamedTask, TaskFile, read_task};
pub use tensorboard::EventFile;

use sha2::{Digest as _, Sha256};

/// SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
