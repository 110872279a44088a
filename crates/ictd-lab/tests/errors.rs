//! Every kind of failure: its message, its exit status and its cause.
#![allow(missing_docs)]

use std::error::Error as _;
use std::io::{Error, ErrorKind};

use ictd::construction::ConstructionError;
use ictd::context::ContextError;
use ictd::kernel::{AttentionError, KernelError};
use ictd::linalg::LinalgError;
use ictd::matrix::MatrixError;
use ictd::operator::OperatorError;
use ictd::pretrain::{PretrainConfig, TrainError};
use ictd::task::TaskError;
use ictd::theory::NeuError;
use ictd::transformer::{ForwardError, ParamsError, TransformerError};
use ictd_lab::error::{LabError, check_range};

/// Every kind: its message on one line, its exit status, and its cause.
#[test]
fn every_kind_has_a_message_a_code_and_a_cause() {
    let io = || Error::new(ErrorKind::NotFound, "no such file");
    let bad = |n| PretrainConfig { batch: n, ..PretrainConfig::paper() }.check().unwrap_err();
    let config = bad(0);
    let config_text = config.to_string();
    let value = || LabError::value("tasks", 0, "1 to 5");
    let cases: [(LabError, &str, u8, Option<&str>); 25] = [
        (LabError::Read { path: "a".into(), source: io() }, "input a: no such file", 2, Some("no such file")),
        (LabError::Parse { path: "a".into(), message: "line 1".into() }, "input a: line 1", 2, None),
        (
            LabError::Content { path: "a".into(), source: Box::new(value()) },
            "input a: tasks is 0, expected 1 to 5",
            2,
            Some("tasks is 0, expected 1 to 5"),
        ),
        (
            LabError::Write { path: "a".into(), source: io() },
            "output a: no such file",
            1,
            Some("no such file"),
        ),
        (value(), "tasks is 0, expected 1 to 5", 2, None),
        (LabError::refused("unit-norm", "a vector is 0"), "unit-norm: a vector is 0", 2, None),
        (
            ContextError::Empty.into(),
            "rewards: the context is empty",
            2,
            Some("rewards: the context is empty"),
        ),
        (KernelError::Unknown("x".into()).into(), "kernel is 'x'", 2, Some("kernel is 'x'")),
        (
            AttentionError::ScoreOverflow { column: 3 }.into(),
            "features: the scores of column 3",
            2,
            Some("features"),
        ),
        (
            MatrixError::Ragged { row: 1, found: 2, expected: 3 }.into(),
            "row 1 has 2 entries, expected 3",
            2,
            Some("row 1"),
        ),
        (ParamsError::Shape { name: "V", rows: 1, cols: 2 }.into(), "V is 1×2", 2, Some("V is 1×2")),
        (TransformerError::Gamma(2.0).into(), "gamma is 2.0", 2, Some("gamma is 2.0")),
        ("both".parse::<ictd::transformer::Block>().unwrap_err().into(), "block is 'both'", 2, Some("block")),
        (ConstructionError::Discounted(0.5).into(), "gamma is 0.5, expected 1", 2, Some("gamma is 0.5")),
        (
            ConstructionError::from(ForwardError::Diverged { layer: 7 }).into(),
            "values overflow in layer 7",
            1,
            Some("values overflow"),
        ),
        (TaskError::Features { rows: 1, cols: 2, states: 3 }.into(), "features", 2, Some("features")),
        (config.into(), &config_text, 2, Some(&config_text)),
        (ForwardError::FeatureDim { found: 1, expected: 2 }.into(), "params: made for 2", 2, Some("params")),
        (OperatorError::StepSize(0.0).into(), "step size is 0", 2, Some("step size")),
        (OperatorError::Linalg(LinalgError::NotFinite).into(), "the matrix has", 1, Some("the matrix has")),
        (
            ForwardError::Diverged { layer: 7 }.into(),
            "values overflow in layer 7",
            1,
            Some("values overflow"),
        ),
        (
            NeuError::Diverged { num_layers: 4 }.into(),
            "the values are not finite at L = 4",
            1,
            Some("the values are not finite"),
        ),
        (
            LabError::Claims { study: "s", found: "a".into(), expected: "b".into() },
            "study s judged a, expected b",
            1,
            None,
        ),
        (LabError::Stopped, "stopped", 124, None),
        (LabError::internal("threads", "none left"), "threads: none left", 1, Some("none left")),
    ];
    for (error, message, code, cause) in cases {
        let text = error.to_string();
        assert!(text.starts_with(message) && !text.contains('\n'), "{text}");
        assert_eq!(error.exit_code(), code, "{text}");
        match (error.source().map(ToString::to_string), cause) {
            (Some(found), Some(expected)) => assert!(found.starts_with(expected), "{found}"),
            (found, expected) => assert_eq!((found.is_none(), expected), (true, None), "{text}"),
        }
    }
}

/// Divergence is one kind, whatever diverges; a task or a configuration that is refused on the way is not it.
#[test]
fn divergence_is_a_kind_of_its_own() {
    let training = TrainError::Diverged { step: 31, what: "the loss grew" };
    for error in [
        LabError::from(training),
        NeuError::Diverged { num_layers: 1 }.into(),
        ForwardError::Diverged { layer: 1 }.into(),
    ] {
        assert!(matches!(error, LabError::Diverged { .. }), "{error}");
    }
    let task = || TaskError::Features { rows: 1, cols: 2, states: 3 };
    assert!(matches!(LabError::from(NeuError::Task(task())), LabError::Task(_)));
    assert!(matches!(LabError::from(TrainError::Task(task())), LabError::Task(_)));
    let placed = LabError::Diverged { place: "seed 3: ".into(), source: "x".into(), note: "; y".into() };
    assert_eq!(placed.to_string(), "seed 3: x; y");
}

#[test]
fn nan_is_in_no_range() {
    assert!(check_range("x", f64::NAN, 0.0..=1.0).is_err());
    assert!(check_range("x", 1.0, 0.0..=1.0).is_ok());
    let message = check_range("tasks", 7, 1..=5).unwrap_err().to_string();
    assert_eq!(message, "tasks is 7, expected 1 to 5");
}
