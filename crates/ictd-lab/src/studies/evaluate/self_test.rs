//! How often intervals hold the true value, on processes whose values are known.

use ictd::evaluate::method::{Basis, ConstantMean, Lstd};
use ictd::evaluate::{Level, Method};
use ictd::random::{Purpose, Stream};
use ictd::statistics::MeanSem;
use serde::Serialize;

use super::asked::order;
use super::processes::{Process, Simulated, processes};
use super::{EvaluateConfig, failed, run};
use crate::error::check_range;
use crate::report::{Records, Report, Table, wrapped};
use crate::{LabError, Progress};

/// Intervals that are meant to hold 95 % of the truth should hold this much where the judgement is trust.
const ENOUGH: f64 = 0.9;

/// What was found on logs of one process and one size.
#[derive(Clone, Debug, Serialize)]
struct Line {
    process: &'static str,
    episodes: usize,
    logs: usize,
    /// Logs that were judged to be trusted.
    trusted: usize,
    /// Share of visits whose state has its true value in its interval, and the standard error of that over logs.
    coverage: f64,
    coverage_error: f64,
    /// The same of the logs that were judged to be trusted.
    trusted_coverage: Option<f64>,
    trusted_error: Option<f64>,
    /// The same of intervals from resampled episodes alone.
    uncorrected: f64,
    /// Share of logs whose interval for the worth of an episode holds it.
    mean_coverage: f64,
    /// Root mean square errors over visits: of the values, of one number for all states, of tabular LSTD.
    error: f64,
    constant_error: f64,
    lstd_error: f64,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct SelfTest {
    lines: Vec<Line>,
    holds: bool,
}

/// What one log says.
struct Outcome {
    trusted: bool,
    coverage: f64,
    uncorrected: f64,
    mean_holds: bool,
    squares: f64,
}

/// Evaluates `logs` simulated logs of every process and size.
pub fn self_test(logs: u64, seed: u64, progress: &Progress) -> Result<SelfTest, LabError> {
    check_range("logs", logs, 2..=10_000)?;
    check_range("seed", seed, 0..=u64::MAX - 10_000)?;
    let processes = processes()?;
    let mut lines = Vec::new();
    for (number, process) in processes.iter().enumerate() {
        for &episodes in process.sizes {
            lines.push(line(process, number, episodes, logs, seed, progress)?);
        }
    }
    // Intervals that are never trusted say nothing of those that are.
    let is_tested = lines.iter().any(|line| line.trusted > 0);
    Ok(SelfTest { holds: is_tested && lines.iter().all(Line::holds), lines })
}

fn line(
    process: &Process,
    number: usize,
    episodes: usize,
    logs: u64,
    seed: u64,
    progress: &Progress,
) -> Result<Line, LabError> {
    let (mut outcomes, mut constants, mut lstds) = (Vec::new(), Vec::new(), Vec::new());
    // The commands within have names of their own: theirs would hide how far the whole is.
    let quiet = progress.quiet();
    progress.begin(format!("{}, {episodes} episodes", process.name), "logs", logs)?;
    for k in 0..logs {
        let index = (number as u64) << 48 | (episodes as u64) << 24 | k;
        let mut stream = Stream::new(seed, Purpose::Evaluation, index);
        let simulated = process.simulate(episodes, &mut stream)?;
        let config = EvaluateConfig { seed: seed + k, ..EvaluateConfig::new(process.gamma) };
        outcomes.push(outcome(&simulated, &config, &quiet)?);
        constants.push(squares(&simulated, &ConstantMean)?);
        lstds.push(squares(&simulated, &Lstd { basis: Basis::Table, traces: false, ridge: 0.0 })?);
        progress.step(1)?;
    }
    let root = |squares: &[f64]| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt();
    let mean = |of: &dyn Fn(&Outcome) -> f64| {
        MeanSem::of(&outcomes.iter().map(of).collect::<Vec<f64>>())
            .map_or((f64::NAN, f64::NAN), |m| (m.mean, m.sem))
    };
    let trusted: Vec<f64> = outcomes.iter().filter(|o| o.trusted).map(|o| o.coverage).collect();
    let trusted_mean = MeanSem::of(&trusted);
    let (coverage, coverage_error) = mean(&|o| o.coverage);
    Ok(Line {
        process: process.name,
        episodes,
        logs: outcomes.len(),
        trusted: trusted.len(),
        coverage,
        coverage_error,
        trusted_coverage: trusted_mean.map(|m| m.mean),
        trusted_error: trusted_mean.map(|m| m.sem),
        uncorrected: mean(&|o| o.uncorrected).0,
        mean_coverage: mean(&|o| f64::from(u8::from(o.mean_holds))).0,
        error: root(&outcomes.iter().map(|o| o.squares).collect::<Vec<f64>>()),
        constant_error: root(&constants),
        lstd_error: root(&lstds),
    })
}

fn outcome(simulated: &Simulated, config: &EvaluateConfig, progress: &Progress) -> Result<Outcome, LabError> {
    let Simulated { logged, truth } = simulated;
    let found = run(logged, None, config, progress)?;
    let order = order(logged);
    let quantile = found.chosen.quantile.unwrap_or(f64::NAN);
    // Rows are in the order of states, the truth in that of the log.
    let rows = || found.rows.iter().zip(order.iter().map(|&s| &truth[s]));
    let total: f64 = rows().map(|(row, _)| row.visits as f64).sum();
    let share = |holds: &dyn Fn(&super::Row, f64) -> f64| {
        rows().map(|(row, &v)| row.visits as f64 * holds(row, v)).sum::<f64>() / total
    };
    let whole = logged.log.whole();
    let initial = whole.initial();
    let starts = (0..truth.len()).map(|s| (initial[logged.log.number_of(s as u32)], truth[s]));
    let worth = starts.map(|(n, v)| n * v).sum::<f64>() / initial.iter().sum::<f64>();
    let is_in = |holds: bool| f64::from(u8::from(holds));
    Ok(Outcome {
        trusted: found.judgement == Level::Trust,
        coverage: share(&|row, v| is_in(row.interval.low <= v && v <= row.interval.high)),
        uncorrected: share(&|row, v| {
            is_in((row.interval.value - v).abs() <= quantile * row.interval.scatter)
        }),
        mean_holds: found.mean.is_some_and(|m| m.low <= worth && worth <= m.high),
        squares: share(&|row, v| (row.interval.value - v).powi(2)),
    })
}

/// The mean square error of another estimator over visits.
fn squares(Simulated { logged, truth }: &Simulated, method: &dyn Method) -> Result<f64, LabError> {
    let whole = logged.log.whole();
    let fit = method.fit(&whole).map_err(failed)?;
    let square = |s: usize| {
        let number = logged.log.number_of(s as u32);
        whole.visits()[number] * (fit.values()[number] - truth[s]).powi(2)
    };
    Ok((0..truth.len()).map(square).sum::<f64>() / whole.num_visits())
}

impl Line {
    /// Whether intervals that were judged to be trusted hold enough of the truth, as far as so few logs can tell.
    fn holds(&self) -> bool {
        let (Some(coverage), Some(error)) = (self.trusted_coverage, self.trusted_error) else { return true };
        coverage + 2.0 * error >= ENOUGH
    }
}

impl Report for SelfTest {
    fn text(&self, width: usize) -> String {
        let share = |x: f64, error: f64| format!("{:.1} ± {:.1}", 100.0 * x, 100.0 * error);
        let percent = |x: f64| format!("{:.1}", 100.0 * x);
        let errors =
            |line: &Line| [line.error, line.constant_error, line.lstd_error].map(|x| format!("{x:.3}"));
        let header = [
            "process",
            "episodes",
            "trusted",
            "covered %",
            "resampling alone %",
            "mean covered %",
            "error",
            "one number",
            "tabular LSTD",
        ];
        let rows = self.lines.iter().map(|line| {
            let [error, constant, lstd] = errors(line);
            let name = line.process.split(':').next().unwrap_or_default().to_owned();
            let trusted = format!("{} of {}", line.trusted, line.logs);
            let (all, plain) = (share(line.coverage, line.coverage_error), percent(line.uncorrected));
            let mean = percent(line.mean_coverage);
            vec![name, line.episodes.to_string(), trusted, all, plain, mean, error, constant, lstd]
        });
        let mut names: Vec<&str> = self.lines.iter().map(|line| line.process).collect();
        names.dedup();
        let all = Table::new(&header, rows).words([0]).text(width) + "\n" + &names.join("\n") + "\n\n";
        let verdict = if self.holds {
            "Where the judgement is trust, 95 % intervals hold the truth of at least 90 % of visits, to two standard errors."
        } else {
            "DOES NOT HOLD: where the judgement is trust, 95 % intervals hold the truth of less than 90 % of visits."
        };
        all + &wrapped(&format!("{verdict}\n"), width)
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![Records::of("self-test", &self.lines)?])
    }

    fn json_name(&self) -> Option<&str> {
        Some("self-test")
    }

    fn holds(&self) -> bool {
        self.holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a circle scaling rounds coordinates to one: rows must still be those of the states they name.
    #[test]
    fn every_row_is_compared_with_the_truth_of_its_state() {
        let processes = processes().unwrap();
        let ring = &processes[1];
        let simulated = ring.simulate(300, &mut Stream::new(5, Purpose::Evaluation, 0)).unwrap();
        let found = outcome(&simulated, &EvaluateConfig::new(ring.gamma), &Progress::default()).unwrap();
        let lstd = squares(&simulated, &Lstd { basis: Basis::Table, traces: false, ridge: 0.0 }).unwrap();
        // With so many episodes both are about as good; states that are mixed up are off by the distance to their neighbours, five times as much.
        assert!(found.squares < 2.0 * lstd, "{} {lstd}", found.squares);
    }
}
