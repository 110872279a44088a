//! The readers of contexts, with inputs that they accept.
#![allow(dead_code, missing_docs)]

use std::fs;
use std::path::Path;

use ictd::transformer::Parameters;
use ictd_lab::files::read_context;

use super::fuzz::{Answer, Reader, words};
use super::npz;
use super::readers::evaluate;

pub fn all() -> Vec<Reader> {
    vec![json(), archives(), arrays()]
}

fn json() -> Reader {
    let texts = [
        r#"{"features": [[1, 0.5], [0.5, -0.25], [-1.0, 0.75]], "rewards": [1.0, -0.5]}"#,
        r#"{"features": [[1], [2], [1]], "rewards": [1, 2], "terminated": true, "queries": [[0.5], [1]], "states": [0, 1, 0], "values": [1, 2, 1]}"#,
        r#"{"episodes": [{"features": [[0.1], [0.2]], "rewards": [1.0], "terminated": true},
                 {"features": [[0.2], [0.3], [0.1]], "rewards": [2.0, 3.0]}], "queries": [[0.15], [0.25]]}"#,
    ];
    Reader {
        name: "context",
        refuses: true,
        valid: texts.map(|text| text.as_bytes().to_vec()).to_vec(),
        words: words![
            "\"features\"",
            "\"rewards\"",
            "\"episodes\"",
            "\"queries\"",
            "\"terminated\"",
            "[1]",
            "[1, 0.5]"
        ],
        read: Box::new(|path, input| run_context(path, input.len())),
    }
}

/// Reads a context and runs a Transformer on it.
fn run_context(path: &Path, number: usize) -> Answer {
    match read_context(path) {
        // Large contexts are read and not run: the time is that of layers, not of the reader.
        Ok(context) if context.num_columns() <= 64 && context.feature_dim() <= 64 => {
            evaluate(Parameters::ThetaStar, &context, number)
        }
        read => read.into(),
    }
}

const ARRAY_WORDS: &[&str] = words![
    "'<f8'", "'>f4'", "'|b1'", "'<i8'", "'<U1'", "'|O'", "(3, 2)", "(3,)", "()", "(2, 0)", "'shape'", "True",
    "features", "rewards", "PK"
];

/// Whole archives, as NumPy wrote them.
fn archives() -> Reader {
    let file = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/contexts");
        fs::read(folder.join(name)).expect("a file")
    };
    Reader {
        name: "context-npz",
        refuses: true,
        valid: ["one.npz", "episodes.npz", "packed.npz"].map(file).to_vec(),
        words: ARRAY_WORDS,
        read: Box::new(|path, input| run_context(path, input.len())),
    }
}

/// The arrays alone are damaged, one after another in a fixed order; names, sizes and checksums of the archive fit.
fn arrays() -> Reader {
    const MAGIC: &[u8] = b"\x93NUMPY";
    const NAMES: [&str; 5] = ["features", "rewards", "lengths", "terminated", "queries"];
    let doubles = |shape: &str, numbers: &[f64]| npz::doubles(shape, numbers);
    let [features, rewards] =
        [doubles("(5, 1)", &[0.1, 0.2, 0.2, 0.3, 0.1]), doubles("(3,)", &[1.0, 2.0, 3.0])];
    let lengths = npz::array("'<i4'", "(2,)", &[1, 0, 0, 0, 2, 0, 0, 0]);
    let terminated = npz::array("'|b1'", "(2,)", &[1, 0]);
    let queries = npz::fortran("'<f4'", "(2, 1)", &[0, 0, 128, 63, 0, 0, 0, 63]);
    let one = [doubles("(3, 2)", &[1.0, 0.5, 0.5, -0.25, -1.0, 0.75]), doubles("(2,)", &[1.0, -0.5])];
    Reader {
        name: "context-arrays",
        refuses: true,
        valid: vec![one.concat(), [features, rewards, lengths, terminated, queries].concat()],
        words: ARRAY_WORDS,
        read: Box::new(|path, input| {
            let mut starts: Vec<usize> =
                (0..input.len()).filter(|&k| input[k..].starts_with(MAGIC)).take(NAMES.len()).collect();
            starts.push(input.len());
            let parts = starts.windows(2).map(|ends| input[ends[0]..ends[1]].to_vec());
            let files: Vec<(&str, Vec<u8>)> = NAMES.into_iter().zip(parts).collect();
            fs::write(path, npz::archive(&files, input.len() % 2 == 0))
                .expect("the scratch directory can be written to");
            run_context(path, input.len())
        }),
    }
}
