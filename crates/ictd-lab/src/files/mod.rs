//! Files read and written.

mod input;
mod numbers;
mod output;
pub mod process;
mod safetensors;
mod tensorboard;

pub use input::{ContextFile, EpisodeFile, ParamsFile, read_context, read_params};
pub use numbers::to_json_17;
pub use output::{OutputDir, Written};
pub use safetensors::Tensors;
pub use tensorboard::EventFile;
