//! What there is to see of a sweep, setting by setting.

use ictd::parallel;
use ictd::statistics::{Centre, wilson};
use serde::Serialize;

use super::curves::{Band, column_of};
use super::drawing::{self, MOST_CELLS, Words};
use super::estimate::{Bootstraps, Estimate, Sample, Statistic};
use super::page::{self, PAGE};
use super::runs::Runs;
use super::view::{Asked, View, plain};
use crate::figure::Scene;
use crate::files::OutputDir;
use crate::report::{Records, Report, wrapped};
use crate::sweep::{Metrics, curve_columns};
use crate::{LabError, Progress, counted};

/// Settings in the text; a file has all.
const SHOWN: usize = 60;
/// Settings whose curves are drawn.
const DRAWN: usize = 8;
/// Points drawn of a curve: more cannot be told apart.
const POINTS: usize = 150;
/// The table by setting.
const SUMMARY: &str = "summary";
/// All pictures, of which there are two at most at a time.
const FIGURES: [&str; 3] = ["heatmap", "along", "curves"];

/// A sweep as it is looked at.
#[derive(Debug, Serialize)]
pub struct Overview {
    name: String,
    done: usize,
    runs: usize,
    varied: Vec<String>,
    metric: String,
    statistic: &'static str,
    x: Option<String>,
    y: Option<String>,
    settings: Vec<Setting>,
    cells: Vec<Cell>,
    curve: Option<String>,
    curves: Vec<Line>,
    #[serde(skip)]
    rows: Runs,
    #[serde(skip)]
    view: View,
}

/// What became of a setting.
#[derive(Clone, Debug, Serialize)]
struct Setting {
    setting: usize,
    values: Vec<String>,
    runs: u64,
    td: u64,
    mirror: u64,
    none: u64,
    diverged: u64,
    td_share: Option<f64>,
    td_low: Option<f64>,
    td_high: Option<f64>,
    iqm: Option<f64>,
    iqm_low: Option<f64>,
    iqm_high: Option<f64>,
    median: Option<f64>,
}

/// A cell of the map, or a point along the only axis.
#[derive(Clone, Debug, Serialize)]
struct Cell {
    x: String,
    y: Option<String>,
    runs: u64,
    #[serde(flatten)]
    estimate: Estimate,
}

/// The curve of a setting.
#[derive(Clone, Debug, Serialize)]
struct Line {
    setting: usize,
    #[serde(flatten)]
    band: Band,
}

impl Overview {
    /// Of what is done of a sweep.
    pub fn new(rows: Runs, asked: &Asked, progress: &Progress) -> Result<Self, LabError> {
        let view = View::of(&rows, asked)?;
        let bootstraps = Bootstraps::default();
        let count = rows.settings.len();
        progress.begin("summing up", "settings", count as u64)?;
        let settings = parallel::try_map(count, |setting| {
            progress.step(1)?;
            Ok::<_, LabError>(Setting::of(&rows, view.metric, setting, &bootstraps))
        })?;
        let cells = cells(&rows, &view, &bootstraps);
        let metric = rows.metrics[view.metric].name.clone();
        let has_curves = matches!(rows.plan.metrics, Metrics::Every(_));
        let curve = has_curves.then(|| curve_columns()[column_of(&metric)].clone());
        let drawn = if has_curves { DRAWN } else { 0 };
        let line = |setting: usize| {
            let band = Band::of(&rows.curves(setting)?, column_of(&metric), view.middle(), POINTS);
            Ok(Line { setting, band })
        };
        let begun = (0..rows.settings.len()).filter(|&setting| !rows.rows(setting).is_empty());
        let curves = begun.take(drawn).map(line).collect::<Result<_, LabError>>()?;
        Ok(Self {
            name: rows.plan.name.clone(),
            done: rows.numbers.len(),
            runs: rows.num_runs(),
            varied: rows.varied.clone(),
            metric,
            statistic: view.statistic.name(),
            x: view.x.as_ref().map(|axis| axis.key.clone()),
            y: view.y.as_ref().map(|axis| axis.key.clone()),
            settings,
            cells,
            curve,
            curves,
            rows,
            view,
        })
    }

    /// The page in which all of this can be chosen.
    pub fn page(&self) -> Result<String, LabError> {
        page::html(&self.rows, &self.view)
    }

    /// Settings as records, the first so many; `readable` ones have names without markup.
    fn summary(&self, most: usize, readable: bool) -> Result<Records, LabError> {
        let of_metric =
            ["iqm", "iqm_low", "iqm_high", "median"].map(|name| format!("{}_{name}", self.metric));
        let counts = ["runs", "td", "mirror", "none", "diverged", "td_share", "td_low", "td_high"];
        let header = [
            vec!["setting".into()],
            self.varied.clone(),
            counts.map(String::from).to_vec(),
            of_metric.to_vec(),
        ];
        let row = |setting: &Setting| {
            let value =
                |(key, value): (&String, &String)| if readable { plain(key, value) } else { value.clone() };
            let values = self.varied.iter().zip(&setting.values).map(value);
            let counts = [setting.runs, setting.td, setting.mirror, setting.none, setting.diverged];
            let Setting { td_share, td_low, td_high, iqm, iqm_low, iqm_high, median, .. } = setting;
            let numbers = [td_share, td_low, td_high, iqm, iqm_low, iqm_high, median];
            let number = |number: &Option<f64>| number.map_or_else(String::new, |x| format!("{x:?}"));
            let first = [setting.setting.to_string()].into_iter().chain(values);
            first.chain(counts.map(|count| count.to_string())).chain(numbers.map(number)).collect()
        };
        Records::of_cells(SUMMARY, &header.concat(), self.settings.iter().take(most).map(row))
    }

    /// How many runs there are, and what is put together where keys have no axis.
    fn note(&self) -> String {
        let seeds = counted(self.rows.plan.seeds.len(), "seed");
        let pooled = match self.view.pooled(&self.rows).as_slice() {
            [] => String::new(),
            keys => format!(", over all values of {}", keys.join(", ")),
        };
        let done = if self.done < self.runs { format!("{} of ", self.done) } else { String::new() };
        format!("{done}{}, {seeds} per setting{pooled}", counted(self.runs, "run"))
    }

    /// The map over both axes, or the intervals along the only one; none where nothing varies or there are too many cells.
    fn map(&self) -> Option<(String, Scene)> {
        let View { statistic, x, y, .. } = &self.view;
        let what = statistic.of(&self.metric);
        let x = x.as_ref()?;
        let estimates: Vec<Estimate> = self.cells.iter().map(|cell| cell.estimate).collect();
        let by = y.as_ref().map_or_else(|| x.key.clone(), |y| format!("{} and {}", y.key, x.key));
        let title = format!("{}: {what} by {by}", self.name);
        let note = self.note();
        if let Some(y) = y {
            let empty =
                if estimates.iter().any(|e| !e.value.is_finite()) { "; empty: no number" } else { "" };
            let words = Words { title: &title, label: &what, note: &format!("{note}{empty}") };
            let rows: Vec<Vec<Estimate>> = estimates.chunks(x.values.len()).map(<[_]>::to_vec).collect();
            return (estimates.len() <= MOST_CELLS)
                .then(|| (FIGURES[0].into(), drawing::heat_map(x, y, &rows, *statistic, &words)));
        }
        let note = format!("{note}; {}", statistic.interval());
        let words = Words { title: &title, label: &what, note: &note };
        Some((FIGURES[1].into(), drawing::along(x, &estimates, *statistic, &words)))
    }

    /// Curves of the first settings.
    fn curves(&self) -> Option<(String, Scene)> {
        let curve = self.curve.as_ref()?;
        // Settings whose runs diverged before the first point have none.
        let lines: Vec<(String, &Band)> = self
            .curves
            .iter()
            .filter(|line| !line.band.steps.is_empty())
            .map(|line| (self.view.name(&self.rows, line.setting), &line.band))
            .collect();
        let all = self.settings.iter().filter(|setting| setting.runs > 0).count();
        let part =
            if all > lines.len() { format!("{} of {all} settings; ", lines.len()) } else { String::new() };
        let middle = Statistic::Centre(self.view.middle());
        let note = format!("{part}line: {} over seeds; band: 25–75 % of them", middle.name());
        let title = format!("{}: {curve} over training", self.name);
        (!lines.is_empty()).then(|| {
            (FIGURES[2].into(), drawing::curves(&lines, &Words { title: &title, label: curve, note: &note }))
        })
    }
}

impl Setting {
    fn of(rows: &Runs, metric: usize, setting: usize, bootstraps: &Bootstraps) -> Self {
        let sample = Sample::of(rows, metric, rows.rows(setting));
        let [td, mirror, none, diverged] = sample.counts;
        let runs = sample.runs();
        let share = (runs > 0).then(|| wilson(td, runs));
        let iqm = bootstraps.estimate(Centre::Iqm, &sample.sorted);
        let number = |x: f64| Some(x).filter(|x| x.is_finite());
        Self {
            setting,
            values: rows.settings[setting].clone(),
            runs,
            td,
            mirror,
            none,
            diverged,
            td_share: number(td as f64 / runs as f64),
            td_low: share.map(|ends| ends.0),
            td_high: share.map(|ends| ends.1),
            iqm: number(iqm.value),
            iqm_low: iqm.interval.map(|ends| ends.0),
            iqm_high: iqm.interval.map(|ends| ends.1),
            median: number(Centre::Median.of(&sample.sorted)),
        }
    }
}

/// The cells of the map, row by row.
fn cells(rows: &Runs, view: &View, bootstraps: &Bootstraps) -> Vec<Cell> {
    let Some(x) = &view.x else { return Vec::new() };
    let columns = x.values.len();
    let mut members = vec![Vec::new(); columns * view.y.as_ref().map_or(1, |y| y.values.len())];
    for setting in 0..rows.settings.len() {
        let row = view.y.as_ref().map_or(0, |y| y.places[setting]);
        members[row * columns + x.places[setting]].extend(rows.rows(setting));
    }
    let cell = |(k, members): (usize, Vec<usize>)| {
        let sample = Sample::of(rows, view.metric, members.into_iter());
        Cell {
            x: x.values[k % columns].clone(),
            y: view.y.as_ref().map(|y| y.values[k / columns].clone()),
            runs: sample.runs(),
            estimate: sample.estimate(view.statistic, bootstraps),
        }
    };
    members.into_iter().enumerate().map(cell).collect()
}

impl Report for Overview {
    fn text(&self, width: usize) -> String {
        let settings = counted(self.settings.len(), "setting");
        let mut text = wrapped(&format!("{}: {settings}, {}", self.name, self.note()), width) + "\n";
        let case = crate::sweep::CASE;
        // The name of a case stands for the keys that make it.
        let of_case =
            self.rows.plan.axes.iter().filter(|axis| axis.choices.iter().any(|c| c.title.is_some()));
        let told: Vec<&String> = of_case.flat_map(|axis| &axis.keys).collect();
        let keys = self.varied.iter().filter(|key| *key == case || !told.contains(key)).map(String::as_str);
        let of_metric =
            ["iqm", "iqm_low", "iqm_high", "median"].map(|name| format!("{}_{name}", self.metric));
        let diverged: u64 = self.settings.iter().map(|setting| setting.diverged).sum();
        let mut names = vec!["setting"];
        names.extend(keys);
        names.extend(["runs", "td", "mirror", "none"]);
        names.extend((diverged > 0).then_some("diverged"));
        names.extend(["td_share", "td_low", "td_high"]);
        names.extend(of_metric.iter().map(String::as_str));
        // Rows of cells have the same length, so that there is nothing to fail.
        if let Ok(records) = self.summary(SHOWN, true) {
            text += &records.only(&names).text(width);
        }
        if self.settings.len() > SHOWN {
            text += &format!("… {SHOWN} of {settings}; {SUMMARY}.csv has all\n");
        }
        let share = "td_low to td_high: 95 % interval of the share (Wilson)";
        let iqm =
            format!("{0}_iqm_low to {0}_iqm_high: that of the interquartile mean (bootstrap)", self.metric);
        text += &wrapped(&format!("\n{share}; {iqm}"), width);
        if diverged > 0 {
            let have = if diverged == 1 { "has" } else { "have" };
            let lost =
                format!("{} diverged and {have} no numbers; shares are of all", counted(diverged, "run"));
            text += &wrapped(&lost, width);
        }
        if self.cells.len() > MOST_CELLS {
            let cells =
                format!("a map of {} cells is not drawn, other axes may have fewer", self.cells.len());
            text += &wrapped(&cells, width);
        }
        text
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        self.map().into_iter().chain(self.curves()).collect()
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![self.summary(usize::MAX, false)?])
    }

    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        let (tables, figures) = (self.tables()?, self.figures());
        out.expect(tables.len(), figures.len(), 1);
        // Pictures of what was looked at before would be taken for those of now.
        for name in FIGURES.into_iter().filter(|name| figures.iter().all(|(own, _)| own != name)) {
            ["svg", "pdf", "png"].iter().try_for_each(|ending| out.clear(&format!("{name}.{ending}")))?;
        }
        tables.iter().try_for_each(|records| out.records(records))?;
        figures.iter().try_for_each(|(name, figure)| out.figure(name, figure))?;
        out.write(PAGE, self.page()?.as_bytes())
    }
}
