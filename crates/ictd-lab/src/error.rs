//! What can go wrong in an experiment, and whose fault it is.

use std::path::PathBuf;

use ictd::context::ContextError;
use ictd::kernel::{AttentionError, KernelError};
use ictd::linalg::LinalgError;
use ictd::matrix::MatrixError;
use ictd::operator::OperatorError;
use ictd::task::TaskError;
use ictd::transformer::{BlockError, ForwardError, ParamsError, TransformerError};

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file could not be read.
    #[error("input {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what was expected.
    #[error("input {}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What was expected and found, and where.
        message: String,
    },
    /// An option or field has a value outside its range.
    #[error("{0}")]
    Invalid(String),
    /// A file could not be written.
    #[error("output {}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The input was fine but the computation has no finite answer.
    #[error("{0}")]
    Failed(String),
}

impl LabError {
    /// The exit status: 2 when the input is to blame, 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. } | Self::Parse { .. } | Self::Invalid(_) => 2,
            Self::Write { .. } | Self::Failed(_) => 1,
        }
    }
}

macro_rules! invalid {
    ($($error:ty),*) => {
        $(impl From<$error> for LabError {
            fn from(error: $error) -> Self {
                Self::Invalid(error.to_string())
            }
        })*
    };
}
invalid!(
    ContextError,
    KernelError,
    MatrixError,
    ParamsError,
    TransformerError,
    BlockError,
    TaskError,
    AttentionError
);

impl From<ForwardError> for LabError {
    fn from(error: ForwardError) -> Self {
        match error {
            ForwardError::Diverged { .. } => Self::Failed(error.to_string()),
            _ => Self::Invalid(error.to_string()),
        }
    }
}

impl From<LinalgError> for LabError {
    fn from(error: LinalgError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<OperatorError> for LabError {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::Linalg(error) => error.into(),
            other => Self::Invalid(other.to_string()),
        }
    }
}
