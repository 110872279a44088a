//! The map of readings: as a figure, as text and in files.

use super::{Figure, Readings, Row, prompts};
use crate::LabError;
use crate::figure::style::{PALETTE, PAPER};
use crate::figure::{Cell, Cells, Grid, Scene};
use crate::report::{Records, Report, Table, wrapped};

impl Readings {
    /// The map: a row per reading, a column per figure, the share of seeds that show it.
    pub fn figure(&self) -> Scene {
        let heads = ["query", "columns", "its\nreward", "target", "its column\nunder ρ"];
        let figures = Figure::ALL.map(|(_, name)| format!("Figure {}", name.replace(", ", "\n")));
        let (mut cells, mut groups) = (Vec::new(), Vec::new());
        for prompt in prompts() {
            groups.push(cells.len());
            for (k, &mixing) in prompt.mixings().iter().enumerate() {
                let words = [prompt.query, prompt.columns, prompt.query_reward, prompt.target];
                let words = words.map(|word| if k == 0 { word } else { "" });
                let mut row: Vec<Cell> =
                    words.into_iter().chain([mixing]).map(|w| Cell::Words(w.to_owned())).collect();
                let found = self.of(&prompt, mixing);
                row.extend(Figure::ALL.map(|(figure, _)| {
                    let own = found.iter().find(|r| r.figure == figure);
                    // Without mixing one cell stands for all rows of the prompt.
                    let rows =
                        if own.is_some_and(|r| r.mixing.is_none()) { prompt.mixings().len() } else { 1 };
                    own.filter(|_| rows == 1 || k == 0).map_or(Cell::Empty, |row| share(row, rows))
                }));
                cells.push(row);
            }
        }
        let seeds = self.rows.first().map_or(0, |r| r.seeds);
        let note = format!(
            "seeds of {seeds} that show the figure by its criterion (td: that end in the TD block); first the literal reading; Figures 3 and 5 have no mixing"
        );
        let map = Cells {
            columns: heads.map(String::from).into_iter().chain(figures).collect(),
            cells,
            widths: [[0.08; 4].as_slice(), &[0.1], &[0.116; 5]].concat(),
            row_height: 14.0,
            groups,
            ..Cells::default()
        };
        Grid::new("Which reading shows which figure", 1, [map], note).scene()
    }
}

impl Report for Readings {
    fn text(&self, width: usize) -> String {
        let rows = self.readings().map(|(prompt, mixing)| {
            let words = [prompt.query, prompt.columns, prompt.query_reward, prompt.target, mixing];
            let cells = self.of(&prompt, mixing).into_iter().map(|row| {
                let share = format!("{}/{} ({:.2}–{:.2})", row.shown, row.seeds, row.low, row.high);
                let ends = if row.mixing.is_some() { format!(", {} td", row.td) } else { String::new() };
                let lost = row.diverged;
                share + &ends + &if lost > 0 { format!(", {lost} diverged") } else { String::new() }
            });
            words.into_iter().map(String::from).chain(cells).collect()
        });
        let mut header =
            ["query", "columns", "its reward", "target", "its column under ρ"].map(String::from).to_vec();
        header.extend(Figure::ALL.map(|(_, name)| format!("Figure {name}")));
        let mut notes = "\nseeds that show a figure, of all, and the 95 % interval of their share (Wilson); td: seeds that end in the TD block\n"
            .to_owned();
        let best = self.best();
        if best.is_empty() {
            notes += "no reading shows a figure on every seed\n";
        }
        for (prompt, mixing, figures) in best {
            let names: Vec<&str> = figures.iter().map(|f| f.name()).collect();
            notes += &format!("on every seed Figures {}: {prompt}, its column {mixing}\n", names.join("; "));
        }
        let table = Table::new(&header, rows).words([1, 2, 3, 4, 5, 6, 7, 8, 9]);
        table.text(width) + &wrapped(&notes, width) + "\n" + &self.shown(&["first_gradient"], width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("readings".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![Records::of("readings", &self.rows)?, Records::of("first_gradient", &self.gradients)?])
    }

    fn json_name(&self) -> Option<&str> {
        Some("readings")
    }
}

/// A cell of the map: paper for no seed, green for all.
fn share(row: &Row, rows: usize) -> Cell {
    let color = PAPER.toward(PALETTE[2], row.shown as f64 / row.seeds as f64);
    let mut text = format!("{}/{}", row.shown, row.seeds);
    if row.mixing.is_some() {
        text += &format!(", {} td", row.td);
    }
    Cell::Tile { color, text, rows }
}
