//! Files read and written.

mod context;
mod context_npz;
mod lock;
mod model;
pub(crate) mod npy;
mod numbers;
mod output;
pub mod process;
mod safetensors;
mod seal;
mod task;
mod task_files;
mod tensorboard;
mod values;
pub(crate) mod zip;

pub use context::{ContextFile, read_context};
pub(crate) use context::{
    EpisodeFile, Numbers, at, nan_or_null, numbers_or_null, parse_json, read_bytes, rows,
};
pub(crate) use context_npz::ContextArrays;
pub(crate) use model::{CIRCUIT, params_of};
pub use model::{Description, ModelFile, ParamsFile, chosen, read_params};
pub use numbers::to_json_17;
pub use output::{OutputDir, Written, is_writing};
pub use safetensors::Tensors;
pub use task::{AnyTask, NamedTask, TaskFile, read_task, task_of};
pub use task_files::TaskFiles;
pub use tensorboard::EventFile;

pub(crate) use lock::{DirLock, LOCK, Mode};
pub(crate) use output::{is_unfinished, sync_directory};
pub(crate) use safetensors::{FORMAT, SEALED_FORMAT};
pub(crate) use seal::read_sealed;
pub use values::Values;

use std::fs::File;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Whether a file has this SHA-256.
pub(crate) fn is_whole(path: &Path, digest: &str) -> bool {
    File::open(path).and_then(process::sha256_of).is_ok_and(|own| own == digest)
}

/// Bytes in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
