//! What can go wrong in an experiment, and whose fault it is.

use std::error::Error;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ictd::construction::ConstructionError;
use ictd::context::ContextError;
use ictd::control::{ControlError, PairContextError};
use ictd::evaluate::LogError;
use ictd::kernel::{AttentionError, KernelError};
use ictd::linalg::LinalgError;
use ictd::matrix::MatrixError;
use ictd::operator::OperatorError;
use ictd::predecessor::PredecessorError;
use ictd::pretrain::{ConfigError, TrainError};
use ictd::task::{MdpError, TaskError};
use ictd::theory::NeuError;
use ictd::transformer::{AdjointError, BlockError, ForwardError, ParamsError, TransformerError};

use crate::one_line::one_line;

/// An error of any kind, as the cause of another.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why an experiment has no result. Every message is one line: what was found, what was expected, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A file could not be read.
    #[error("input {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not in the format that was expected.
    #[error("input {}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What was expected and found, and where.
        message: String,
    },
    /// A file has the right format, and its content is refused.
    #[error("input {}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<LabError>,
    },
    /// A file could not be written.
    #[error("output {}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// An option, key or field has a value outside its range.
    #[error("{name} is {found}, expected {expected}")]
    Value {
        /// The option as a user writes it.
        name: String,
        /// Its value.
        found: String,
        /// The values it may have.
        expected: String,
    },
    /// An option, key or field is missing, superfluous or contradicts another.
    #[error("{name}: {problem}")]
    Refused {
        /// The option as a user writes it.
        name: String,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
    /// A context is refused.
    #[error("{0}")]
    Context(#[from] ContextError),
    /// A kernel is refused.
    #[error("{0}")]
    Kernel(#[from] KernelError),
    /// Attention is refused.
    #[error("{0}")]
    Attention(#[from] AttentionError),
    /// A matrix is refused.
    #[error("{0}")]
    Matrix(#[from] MatrixError),
    /// Parameters are refused.
    #[error("{0}")]
    Params(#[from] ParamsError),
    /// A Transformer is refused.
    #[error("{0}")]
    Transformer(#[from] TransformerError),
    /// The name of a construction is refused.
    #[error("{0}")]
    Block(#[from] BlockError),
    /// A construction in linear attention is refused.
    #[error("{0}")]
    Construction(#[source] ConstructionError),
    /// A task is refused.
    #[error("{0}")]
    Task(#[from] TaskError),
    /// A decision process or a policy is refused.
    #[error("{0}")]
    Mdp(#[from] MdpError),
    /// A context of pairs is refused.
    #[error("{0}")]
    Pairs(#[from] PairContextError),
    /// Control is refused.
    #[error("{0}")]
    Control(#[source] ControlError),
    /// A log is refused.
    #[error("{0}")]
    Log(#[from] LogError),
    /// A training configuration is refused.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The forward pass refuses a context.
    #[error("{0}")]
    Forward(#[source] ForwardError),
    /// A layer is no operator on states, or has no such operator.
    #[error("{0}")]
    Operator(#[source] OperatorError),
    /// Training refuses a kernel.
    #[error("{0}")]
    Train(#[source] TrainError),
    /// A network cannot be differentiated.
    #[error("{0}")]
    Adjoint(#[source] AdjointError),
    /// NEU is not defined.
    #[error("{0}")]
    Neu(#[source] NeuError),
    /// A linear system or an eigenvalue problem has no trustworthy answer.
    #[error("{0}")]
    Linalg(#[from] LinalgError),
    /// The input was fine, and numbers left the finite range: training or layers diverge.
    #[error("{place}{source}{note}")]
    Diverged {
        /// Where, ending in a colon and a space; empty where the cause says it.
        place: String,
        /// What diverged.
        source: Cause,
        /// What else there is to say, starting with a semicolon; may be empty.
        note: String,
    },
    /// A study judged other claims than those it is listed with.
    #[error("study {study} judged {found}, expected {expected}")]
    Claims {
        /// The study.
        study: &'static str,
        /// Claims it judged.
        found: String,
        /// Claims it is listed with.
        expected: String,
    },
    /// Somebody asked for the end of the work, with a signal for instance.
    #[error("stopped")]
    Stopped,
    /// Something of the program's own went wrong: stored values, threads, a result that has no JSON.
    #[error("{what}: {source}")]
    Internal {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: Cause,
    },
}

impl LabError {
    /// A value outside its range.
    pub fn value(name: impl Into<String>, found: impl Display, expected: impl Display) -> Self {
        let [found, expected] = [found.to_string(), expected.to_string()].map(|text| one_line(&text));
        Self::Value { name: one_line(&name.into()), found, expected }
    }

    /// Something given that makes no sense as it is.
    pub fn refused(name: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Refused { name: one_line(&name.into()), problem: one_line(&problem.into()) }
    }

    /// A file in another format than the one expected.
    pub fn parse(path: &Path, message: impl Into<String>) -> Self {
        Self::Parse { path: path.to_owned(), message: one_line(&message.into()) }
    }

    /// Divergence, with nothing to add to its cause.
    pub fn diverged(source: impl Into<Cause>) -> Self {
        Self::Diverged { place: String::new(), source: source.into(), note: String::new() }
    }

    /// A failure of the program's own.
    pub fn internal(what: &'static str, source: impl Into<Cause>) -> Self {
        Self::Internal { what, source: source.into() }
    }

    /// The exit status: 2 when the input is to blame, 124 (as of `timeout`, on which engines resubmit) when the work was stopped,
    /// 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stopped => 124,
            Self::Write { .. }
            | Self::Linalg(_)
            | Self::Diverged { .. }
            | Self::Claims { .. }
            | Self::Internal { .. } => 1,
            _ => 2,
        }
    }
}

/// Refuses a value outside a range; NaN is in none.
pub fn check_range<T: PartialOrd + Display>(
    name: &str,
    found: T,
    range: RangeInclusive<T>,
) -> Result<(), LabError> {
    if range.contains(&found) {
        return Ok(());
    }
    Err(LabError::value(name, found, format!("{} to {}", range.start(), range.end())))
}

/// A core error that carries errors of other kinds: those become the laboratory's own, so that a kind of failure is one
/// variant wherever it arose.
macro_rules! from_core {
    ($($error:ident { $($inner:pat => $own:expr),* } else $variant:ident;)*) => {$(
        impl From<$error> for LabError {
            fn from(error: $error) -> Self {
                match error {
                    $($inner => $own,)*
                    other => Self::$variant(other),
                }
            }
        }
    )*};
}

impl From<PredecessorError> for LabError {
    fn from(error: PredecessorError) -> Self {
        match error {
            PredecessorError::Config(e) => e.into(),
            PredecessorError::Task(e) => e.into(),
            e @ PredecessorError::Diverged { .. } => Self::diverged(e),
        }
    }
}

from_core! {
    ForwardError {
        e @ ForwardError::Diverged { .. } => Self::diverged(e),
        ForwardError::Stopped(_) => Self::Stopped
    } else Forward;
    ConstructionError {
        ConstructionError::Forward(e) => e.into(),
        ConstructionError::Linalg(e) => e.into(),
        ConstructionError::Step(e) => e.into()
    } else Construction;
    OperatorError { OperatorError::Linalg(e) => e.into(), OperatorError::Stopped(_) => Self::Stopped } else Operator;
    ControlError {
        ControlError::Mdp(e) => e.into(),
        ControlError::Context(e) => e.into(),
        ControlError::Operator(e) => e.into(),
        e @ ControlError::Diverged { .. } => Self::diverged(e)
    } else Control;
    TrainError {
        TrainError::Config(e) => e.into(),
        TrainError::Task(e) => e.into(),
        e @ TrainError::Diverged { .. } => Self::diverged(e)
    } else Train;
    AdjointError { AdjointError::Forward(e) => e.into() } else Adjoint;
    NeuError {
        NeuError::Task(e) => e.into(),
        NeuError::Transformer(e) => e.into(),
        NeuError::Adjoint(e) => e.into(),
        e @ NeuError::Diverged { .. } => Self::diverged(e)
    } else Neu;
}
