//! The files of a circuit: tensors, a card, and the module that reads both.

use std::collections::BTreeMap;

use ictd::context::Context;
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;
use ictd::statistics::largest;
use serde::{Serialize, Serializer};

use super::CircuitName;
use crate::LabError;
use crate::files::{OutputDir, Tensors, sha256};
use crate::report::{Report, Table, wrapped};

/// The module that runs a circuit in plain torch.
const MODULE: &str = include_str!("circuit.py");

/// A circuit: its tensors and its card. Serialises to the card.
#[derive(Clone, Debug)]
pub struct Circuit {
    tensors: Vec<u8>,
    card: Card,
}

/// What a circuit is and what it computes, for people and programs.
#[derive(Clone, Debug, Serialize)]
struct Card {
    format: &'static str,
    name: CircuitName,
    algorithm: &'static str,
    formula: &'static str,
    #[serde(flatten)]
    layers: Layers,
    /// Shape of every tensor.
    tensors: BTreeMap<String, Vec<usize>>,
    /// Of circuit.safetensors.
    sha256: String,
    example: Example,
}

/// What layers are made of beside their tensors.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Layers {
    /// `tsm` and `dual` have matrices V and A, `linear` has P and Q.
    pub block: &'static str,
    pub matrices: [&'static str; 2],
    pub kernel: KernelName,
    pub temperature: f64,
    pub diagonal_mix: f64,
    pub gamma: f64,
    #[serde(rename = "features")]
    pub feature_dim: usize,
    #[serde(rename = "layers")]
    pub num_layers: usize,
    /// One for each layer.
    pub step_sizes: Vec<f64>,
    /// Whether all layers have the same matrices; otherwise they are called `layers.0.V` and so on.
    pub tied: bool,
    /// What the rows of tokens hold.
    pub rows: Vec<String>,
    /// What the last row of the query's column is multiplied by to give its value.
    pub value_sign: f64,
}

/// A prompt and what every layer makes of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Example {
    pub features: Vec<Vec<f64>>,
    pub rewards: Vec<f64>,
    /// Entry l: the value of the query after l layers.
    pub query_values: Vec<f64>,
    /// The value of the query at the solution of least-squares TD, where layers come to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_squares: Option<f64>,
    /// Entry l: the token matrix after l layers, row by row.
    pub tokens: Vec<Vec<Vec<f64>>>,
}

impl Example {
    /// What layers made of a context; the values of the query are read off with this sign.
    pub fn of<'a>(context: &Context, tokens: impl Iterator<Item = &'a Matrix>, sign: f64) -> Self {
        let n = context.num_transitions();
        let tokens: Vec<Vec<Vec<f64>>> = tokens.map(|z| z.rows().map(<[f64]>::to_vec).collect()).collect();
        Self {
            features: (0..=n).map(|j| context.features_of(j).to_vec()).collect(),
            rewards: context.rewards()[..n].to_vec(),
            // Adding 0 turns -0 into 0.
            query_values: tokens.iter().map(|z| sign * z[z.len() - 1][n] + 0.0).collect(),
            least_squares: None,
            tokens,
        }
    }
}

impl Circuit {
    /// Puts everything on a card: its name, and the circuit whose algorithm it computes, which for parameters of one's own may be another.
    pub(super) fn new(
        (name, computes): (CircuitName, CircuitName),
        layers: Layers,
        tensors: &Tensors,
        example: Example,
    ) -> Self {
        let (algorithm, formula) = computes.algorithm();
        let shape = |(name, (shape, _)): (&String, &(Vec<usize>, _))| (name.clone(), shape.clone());
        let bytes = tensors.to_bytes();
        let card = Card {
            format: "ictd.circuit 1",
            name,
            algorithm,
            formula,
            layers,
            tensors: tensors.tensors.iter().map(shape).collect(),
            sha256: sha256(&bytes),
            example,
        };
        Self { tensors: bytes, card }
    }

    /// The file of its tensors, in the safetensors format.
    pub fn tensors(&self) -> &[u8] {
        &self.tensors
    }
}

impl Serialize for Circuit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.card.serialize(serializer)
    }
}

impl Report for Circuit {
    fn text(&self, width: usize) -> String {
        let Card { name, algorithm, formula, layers, example, .. } = &self.card;
        let Layers { block, num_layers, feature_dim, gamma, .. } = layers;
        let values = &example.query_values;
        let mut out = wrapped(
            &format!(
                "{name}: {algorithm}\n{formula}\n{block} block, {num_layers} layers, {feature_dim} features, γ = {gamma}\n\n"
            ),
            width,
        );
        // The first and the last few say enough of many.
        let shown = |layer: usize| layer <= 4 || layer + 2 > values.len();
        let rows = values.iter().enumerate().filter(|(layer, _)| shown(*layer));
        let rows = rows.map(|(layer, value)| vec![layer.to_string(), format!("{value:.9}")]);
        out += &Table::new(&["layer", "v[query] of the example"], rows).text(width);
        if let Some(limit) = example.least_squares {
            let gap = largest(values.last().map(|value| (value - limit).abs()));
            out += &wrapped(
                &format!("\nleast-squares TD gives {limit:.9}: {gap:.1e} from the last layer\n"),
                width,
            );
        }
        out + &wrapped(
            "\n`python circuit.py` runs it in torch and prints the largest difference from the card\n",
            width,
        )
    }

    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        out.expect(0, 0, 3);
        out.write("circuit.safetensors", &self.tensors)?;
        out.json("card", &self.card)?;
        out.write("circuit.py", MODULE.as_bytes())
    }
}
