//! The map of readings: as a figure, as text and in files.

use serde::Serialize;

use super::{Figure, PROMPTS, Readings, Row};
use crate::LabError;
use crate::figure::style::{GRID, INK, MUTED, TEXT_SIZE, TITLE_SIZE};
use crate::figure::{Anchor, Color, Scene, Stroke};
use crate::report::{Report, Table, wrapped};

impl Readings {
    /// The map: a row per reading, a column per figure, the share of seeds that show it.
    pub fn figure(&self) -> Scene {
        let (left, top, cell, height) = (430.0, 92.0, 96.0, 22.0);
        let total: f64 = PROMPTS.iter().map(|p| p.mixings().len() as f64 * height + 6.0).sum();
        let width = left + 5.0 * cell + 20.0;
        let mut scene = Scene::new(width, top + total + 40.0, "Which reading shows which figure");
        let title = "**Which reading shows which figure**";
        scene.text(0.5 * width, 22.0, title, TITLE_SIZE, Anchor::Middle, INK);
        let heads = ["query", "columns", "its reward", "target", "query’s column under ρ"];
        let at = [20.0, 90.0, 150.0, 225.0, 300.0];
        for (head, x) in heads.into_iter().zip(at) {
            scene.text(x, top - 12.0, head, TEXT_SIZE - 1.0, Anchor::Start, MUTED);
        }
        for (k, figure) in Figure::ALL.into_iter().enumerate() {
            let x = left + (k as f64 + 0.5) * cell;
            let (name, rest) = figure.name().split_once(", ").unwrap_or((figure.name(), ""));
            scene.text(x, top - 26.0, &format!("Figure {name}"), TEXT_SIZE, Anchor::Middle, INK);
            scene.text(x, top - 11.0, rest, TEXT_SIZE - 1.0, Anchor::Middle, MUTED);
        }
        let mut y = top;
        for prompt in PROMPTS {
            let block = prompt.mixings().len() as f64 * height;
            let words = [prompt.query, prompt.columns, prompt.query_reward, prompt.target];
            for (word, x) in words.into_iter().zip(at) {
                scene.text(x, y + 0.5 * block + 4.0, word, TEXT_SIZE, Anchor::Start, INK);
            }
            for (k, &mixing) in prompt.mixings().iter().enumerate() {
                let row_y = y + k as f64 * height;
                scene.text(at[4], row_y + 15.0, mixing, TEXT_SIZE, Anchor::Start, INK);
                for row in self.of(&prompt, mixing) {
                    let column = Figure::ALL.iter().position(|f| *f == row.figure).unwrap_or(0) as f64;
                    let x = left + column * cell;
                    match row.mixing {
                        Some(_) => share(&mut scene, row, [x, row_y, cell, height]),
                        None if k == 0 => share(&mut scene, row, [x, y, cell, block]),
                        None => {}
                    }
                }
            }
            y += block + 6.0;
        }
        let seeds = self.rows.first().map_or(0, |r| r.counts.seeds);
        let note = format!(
            "seeds of {seeds} that show the figure by its criterion (td: that end in the TD block); first the literal reading; Figures 3 and 5 have no mixing"
        );
        scene.text(0.5 * width, scene.height - 12.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
        scene
    }
}

impl Report for Readings {
    fn text(&self, width: usize) -> String {
        let rows = self.readings().map(|(prompt, mixing)| {
            let words = [prompt.query, prompt.columns, prompt.query_reward, prompt.target, mixing];
            let cells = self.of(&prompt, mixing).into_iter().map(|row| {
                let counts = row.counts;
                let share = format!("{}/{} ({:.2}–{:.2})", counts.shown, counts.seeds, row.low, row.high);
                let ends = if row.mixing.is_some() { format!(", {} td", counts.td) } else { String::new() };
                let lost = counts.diverged;
                share + &ends + &if lost > 0 { format!(", {lost} diverged") } else { String::new() }
            });
            words.into_iter().map(String::from).chain(cells).collect()
        });
        let mut header =
            ["query", "columns", "its reward", "target", "its column under ρ"].map(String::from).to_vec();
        header.extend(Figure::ALL.map(|f| format!("Figure {}", f.name())));
        let mut notes = "\nseeds that show a figure, of all, and the 95 % interval of their share (Wilson); td: seeds that end in the TD block\n"
            .to_owned();
        let best = self.best();
        if best.is_empty() {
            notes += "no reading shows a figure on every seed\n";
        }
        for (prompt, mixing, figures) in best {
            let names: Vec<&str> = figures.iter().map(|f| f.name()).collect();
            notes += &format!(
                "on every seed Figures {}: {} query, {} columns, reward {}, {} target, its column {mixing}\n",
                names.join("; "),
                prompt.query,
                prompt.columns,
                prompt.query_reward,
                prompt.target
            );
        }
        let table = Table::new(&header, rows).words(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        table.text(width) + &wrapped(&notes, width) + "\n" + &self.shown(&["first_gradient"], width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("readings".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        Ok(vec![
            Table::of("readings", self.rows.iter().map(Flat::from))?,
            Table::of("first_gradient", &self.gradients)?,
        ])
    }

    fn json_name(&self) -> Option<&str> {
        Some("readings")
    }
}

/// A cell of the map: white for no seed, green for all.
fn share(scene: &mut Scene, row: &Row, [x, y, width, height]: [f64; 4]) {
    let part = row.counts.shown as f64 / row.counts.seeds as f64;
    let mix = |from: f64, to: f64| (from + part * (to - from)).round() as u8;
    let fill = Color::rgb(mix(255.0, 0.0), mix(255.0, 158.0), mix(255.0, 115.0));
    scene.rect([x + 1.0, y + 1.0, width - 2.0, height - 2.0], Some(fill), Some(Stroke::solid(GRID, 0.6)));
    let ink = if part > 0.6 { Color::rgb(255, 255, 255) } else { INK };
    let mut text = format!("{}/{}", row.counts.shown, row.counts.seeds);
    if row.mixing.is_some() {
        text += &format!(", {} td", row.counts.td);
    }
    scene.text(x + 0.5 * width, y + 0.5 * height + 4.5, &text, TEXT_SIZE, Anchor::Middle, ink);
}

/// A row as CSV has it, where nothing can be nested.
#[derive(Serialize)]
struct Flat<'a> {
    query: &'a str,
    columns: &'a str,
    query_reward: &'a str,
    target: &'a str,
    mixing: &'a str,
    figure: Figure,
    seeds: u64,
    shown: u64,
    low: f64,
    high: f64,
    td: u64,
    mirror: u64,
    none: u64,
    diverged: u64,
    command: &'a str,
}

impl<'a> From<&'a Row> for Flat<'a> {
    fn from(row: &'a Row) -> Self {
        let Row { prompt, mixing, figure, counts, low, high, command } = row;
        Self {
            query: prompt.query,
            columns: prompt.columns,
            query_reward: prompt.query_reward,
            target: prompt.target,
            mixing: mixing.unwrap_or(""),
            figure: *figure,
            seeds: counts.seeds,
            shown: counts.shown,
            low: *low,
            high: *high,
            td: counts.td,
            mirror: counts.mirror,
            none: counts.none,
            diverged: counts.diverged,
            command,
        }
    }
}
