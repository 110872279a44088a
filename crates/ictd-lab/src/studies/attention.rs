//! Attention weights as they are shown: in JSON, as a table and as heat maps.

use ictd::context::{Context, Role};
use ictd::operator::StateOperator;
use ictd::transformer::Transformer;
use serde::Serialize;

use super::forward::cut;
use crate::LabError;
use crate::figure::{Cell, Cells, ColorBar, Grid, Scene, diverging, sequential};
use crate::report::{Records, Table};

/// Most weights that are shown, those of all layers together: as many as a square of 200 columns has.
const MOST: usize = 40_000;
/// Most columns whose weights are printed.
const PRINTED: usize = 12;
/// How many layers are drawn, how many of them abreast, and about how wide each is, points: numbers that fill their rows.
const DRAWN: [(usize, usize, f64); 5] =
    [(6, 3, 120.0), (4, 2, 190.0), (3, 3, 120.0), (2, 2, 190.0), (1, 1, 400.0)];
/// Room for a name beside a row of cells, points.
const NAME_HEIGHT: f64 = 9.0;

/// The weights of every layer, or once where all layers have the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Weights {
    /// By layer, source and column.
    #[serde(rename = "attention")]
    layers: Vec<Vec<Vec<f64>>>,
    /// The column that a source is.
    #[serde(rename = "attention_sources")]
    sources: Vec<usize>,
    /// How many columns attend.
    #[serde(skip)]
    columns: usize,
    /// What columns are.
    #[serde(skip)]
    column: &'static str,
}

impl Weights {
    /// Refuses contexts with more weights than can be looked at, in one layer.
    pub fn admit(context: &Context) -> Result<(), LabError> {
        admit(context.num_transitions(), context.num_columns(), 1)
    }

    /// Of a Transformer on a context: what every column takes of every source's message, mixing included.
    pub fn of_context(transformer: &Transformer, context: &Context) -> Result<Self, LabError> {
        Self::admit(context)?;
        let roles = context.roles();
        let sources: Vec<usize> = (0..roles.len()).filter(|&j| roles[j] == Role::Source).collect();
        let num_layers = transformer.num_layers();
        // Two layers tell whether all have the same weights.
        let mut found = cut(transformer, num_layers.min(2))?.trace(context)?.1;
        if found.len() > 1 {
            admit(sources.len(), roles.len(), num_layers)?;
            found = transformer.trace(context)?.1;
        }
        let of_layer =
            |k: &ictd::kernel::KernelWeights| sources.iter().map(|&i| k.matrix().row(i).to_vec()).collect();
        let layers = found.iter().map(of_layer).collect();
        Ok(Self { layers, sources, columns: roles.len(), column: "column" })
    }

    /// Of the layer of a certificate: what the value of every state takes of the TD errors of every state that was left, all of its
    /// visits together.
    pub fn of_states(operator: &StateOperator) -> Result<Self, LabError> {
        let (sources, states) =
            (operator.statistics().num_source_groups(), operator.statistics().num_groups());
        admit(sources, states, 1)?;
        let by_state: Vec<Vec<f64>> =
            (0..states).map(|u| operator.predecessor_weights(u).collect()).collect();
        let of_source = |s: usize| by_state.iter().map(|row| row[s]).collect();
        let layer = (0..sources).map(of_source).collect();
        Ok(Self { layers: vec![layer], sources: (0..sources).collect(), columns: states, column: "state" })
    }

    /// What they are and where, and all of them where they are few.
    pub fn text(&self, width: usize) -> String {
        let columns = self.columns;
        let which = match self.layers.len() {
            0 => "in no layer",
            1 => "the same in every layer",
            _ => "layer by layer",
        };
        let (rows, column) = (self.sources.len(), self.column);
        let mut out = format!(
            "\nattention: {rows} sources × {columns} {column}s, {which} (attention in --json, attention.csv and attention.svg with --out)\n"
        );
        for (l, layer) in self.layers.iter().enumerate().filter(|_| columns <= PRINTED) {
            if self.layers.len() > 1 {
                out += &format!("layer {}\n", l + 1);
            }
            let header = ["source".to_owned()].into_iter().chain((0..columns).map(|j| j.to_string()));
            let rows = self.sources.iter().zip(layer).map(|(source, weights)| {
                [source.to_string()].into_iter().chain(weights.iter().map(|w| format!("{w:.4}"))).collect()
            });
            out += &Table::new(&header.collect::<Vec<_>>(), rows).text(width);
        }
        out
    }

    /// A record for every weight; layers are counted from 1.
    pub fn records(&self) -> Result<Records, LabError> {
        #[derive(Serialize)]
        struct Row {
            layer: usize,
            source: usize,
            column: usize,
            weight: f64,
        }
        let rows = self.layers.iter().enumerate().flat_map(|(l, layer)| {
            self.sources.iter().zip(layer).flat_map(move |(&source, weights)| {
                let cells = weights.iter().enumerate();
                cells.map(move |(column, &weight)| Row { layer: l + 1, source, column, weight })
            })
        });
        Records::of("attention", rows)
    }

    /// Heat maps, all with the same colours: of every layer, or of the first ones and the last.
    pub fn figure(&self) -> Scene {
        let count = self.layers.len();
        let fitting = DRAWN.into_iter().find(|&(drawn, ..)| drawn <= count);
        let (drawn, abreast, width) = fitting.unwrap_or((0, 1, 0.0));
        let shown = |l: usize| l + 1 < drawn || l + 1 == count;
        let weights = || self.layers.iter().flatten().flatten().copied();
        let largest = weights().fold(0.0, |m: f64, w| m.max(w.abs()));
        let scale = if largest > 0.0 { largest } else { 1.0 };
        let signed = weights().any(|w| w < 0.0);
        let color = |w: f64| if signed { diverging(w / scale) } else { sequential(w / scale) };
        let number = |x: f64| format!("{x:.2}").replace('-', "−");
        let bar = if signed {
            let ticks = [-scale, 0.0, scale].into_iter().zip([0.0, 0.5, 1.0]);
            ColorBar {
                color: |share| diverging(2.0 * share - 1.0),
                label: String::new(),
                ticks: ticks.map(|(x, at)| (at, number(x))).collect(),
            }
        } else {
            let ticks = vec![(0.0, "0".to_owned()), (1.0, number(scale))];
            ColorBar { color: sequential, label: String::new(), ticks }
        };
        let alone = count == 1;
        let panels = self.layers.iter().enumerate().filter(|&(l, _)| shown(l)).map(|(l, layer)| {
            let columns = layer.first().map_or(0, Vec::len);
            // Names of rows that would touch those before them are left out.
            let height = (width / columns.max(1) as f64).min(16.5);
            let every = (NAME_HEIGHT / height).ceil().max(1.0) as usize;
            let name = |(k, source): (usize, &usize)| {
                if k % every == 0 { source.to_string() } else { String::new() }
            };
            let tile = |&w: &f64| Cell::Tile { color: color(w), text: String::new(), rows: 1 };
            Cells {
                title: if alone { String::new() } else { format!("layer {}", l + 1) },
                x: self.column.into(),
                y: "source".into(),
                columns: (0..columns).map(|j| j.to_string()).collect(),
                rows: self.sources.iter().enumerate().map(name).collect(),
                cells: layer.iter().map(|row| row.iter().map(tile).collect()).collect(),
                bar: Some(bar.clone()),
                ..Cells::default()
            }
        });
        let note = match count {
            1 => "the same in every layer".to_owned(),
            _ if drawn < count => format!("{drawn} of {count} layers; the table has all"),
            _ => String::new(),
        };
        Grid::new("Attention weights", abreast, panels, note).scene()
    }
}

/// Refuses more weights than can be looked at.
fn admit(sources: usize, columns: usize, layers: usize) -> Result<(), LabError> {
    let found = sources.saturating_mul(columns).saturating_mul(layers);
    if found <= MOST {
        return Ok(());
    }
    let of = if layers > 1 { format!(" in {layers} layers") } else { String::new() };
    let found = format!("{found} weights ({sources} sources × {columns} columns{of})");
    Err(LabError::value("attention", found, format!("at most {MOST}: a shorter context, or a part of it")))
}
