//! Files read and written.

mod input;
mod model;
mod numbers;
mod output;
pub mod process;
mod safetensors;
mod tensorboard;

pub use input::{ContextFile, EpisodeFile, read_context};
pub use model::{Description, ModelFile, read_params};
pub use numbers::to_json_17;
pub use output::OutputDir;
pub use safetensors::Tensors;
pub use tensorboard::EventFile;
