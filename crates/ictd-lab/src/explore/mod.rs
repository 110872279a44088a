//! What the explorer, a page in a browser, shows beside the results of commands: small processes, every step of a forward
//! pass, eigenvalues, training while it goes on, windows of a log. All of it is data; drawing is the page's part.

mod layers;
mod log;
mod model;
mod process;
mod spectrum;
mod training;

pub use layers::{Layers, layers};
pub use log::{LogFile, Understood, Window};
pub use model::Model;
pub use process::{Process, ProcessKind, ProcessRequest, SampledPath, StateFeatures};
pub use spectrum::{SpectrumReport, spectrum};
pub use training::{Opened, Standing, Training, train};
