//! Whether a log looks like the same process at all times.

use super::RewardCell;
use super::cells::Cells;
use super::grid::Grid;
use super::log::{Log, LogError};

/// States are compared with themselves at other times; where they hardly repeat, groups of them, at most so many.
const MAX_GROUPS: usize = 256;
/// States repeat where they are left so often on average that most are left at several times; groups are that large.
const REPEATS: usize = 8;

/// How one part of a log, a phase of episodes or a stretch of time, differs from the whole.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Drift {
    /// Number of the phase or stretch.
    pub part: usize,
    /// Its transitions.
    pub transitions: f64,
    /// By how much TD errors there are larger on average than those of the same states at all times.
    pub shift: f64,
    /// The shift in standard errors, which it has if the process is always the same.
    pub z: f64,
    /// Where groups of states were compared, how much expected TD errors differ between groups: those of the states of a group
    /// may differ as much, whatever the time. 0 where states were compared with themselves.
    pub misfit: f64,
}

/// Drifts over the phases of episodes, and over stretches of time where the log has times.
#[derive(Clone, Debug, PartialEq)]
pub struct Drifts {
    /// By octave of the number of the step in its episode.
    pub phases: Vec<Drift>,
    /// By stretch of time.
    pub calendar: Vec<Drift>,
}

impl Drifts {
    /// Compares TD errors at these values with those of the same states at other times. In a process that does not change,
    /// what is expected of a TD error depends on its state alone, whatever the values.
    pub fn of(log: &Log, values: &[f64]) -> Result<Self, LogError> {
        let is_grouped = log.num_transitions() < REPEATS * log.num_states();
        let groups = (log.num_transitions() / REPEATS).clamp(1, MAX_GROUPS);
        let cells = is_grouped.then(|| Cells::of(log, groups)).transpose()?;
        let groups: Vec<u32> = match &cells {
            Some(cells) => cells.cell_of().to_vec(),
            None => (0..log.num_states() as u32).collect(),
        };
        let drifts = |grid| drifts(grid, &groups, is_grouped, log.gamma(), values);
        Ok(Self { phases: drifts(log.phases()), calendar: drifts(log.calendar()) })
    }
}

/// Number, sum and squares of TD errors.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    fn variance(&self) -> f64 {
        let centred = self.squares - self.sum * self.mean();
        if self.count > 1.0 { (centred / (self.count - 1.0)).max(0.0) } else { 0.0 }
    }
}

fn drifts(
    grid: &Grid<RewardCell>,
    groups: &[u32],
    is_grouped: bool,
    gamma: f64,
    values: &[f64],
) -> Vec<Drift> {
    let num_groups = groups.iter().map(|&g| g as usize + 1).max().unwrap_or(0);
    // By group, by part.
    let mut table: Vec<Vec<Moments>> = vec![Vec::new(); num_groups];
    for s in 0..grid.num_states() {
        let parts = &mut table[groups[s] as usize];
        for pair in grid.pairs_of(s) {
            let change = gamma * grid.to(pair).map_or(0.0, |next| values[next]) - values[s];
            for (part, cell) in grid.cells(pair) {
                if parts.len() <= part {
                    parts.resize(part + 1, Moments::default());
                }
                let (count, sum) = (cell.count, cell.sum + cell.count * change);
                parts[part].add(Moments { count, sum, squares: cell.squares(change) });
            }
        }
    }
    let num_parts = table.iter().map(Vec::len).max().unwrap_or(0);
    let (mut count, mut excess, mut variance) =
        (vec![0.0; num_parts], vec![0.0; num_parts], vec![0.0; num_parts]);
    let (mut total, mut between, mut noise) = (0.0, 0.0, 0.0);
    for parts in &table {
        let mut all = Moments::default();
        parts.iter().for_each(|&part| all.add(part));
        if all.count > 0.0 {
            total += all.count;
            between += all.sum * all.mean();
            noise += all.variance();
        }
        for (k, part) in parts.iter().enumerate().filter(|(_, part)| part.count > 0.0) {
            count[k] += part.count;
            excess[k] += part.sum - part.count * all.mean();
            // The mean of the part is a part of the mean of the whole.
            variance[k] += all.variance() * part.count * (1.0 - part.count / all.count);
        }
    }
    let misfit = if is_grouped { ((between - noise) / total).max(0.0).sqrt() } else { 0.0 };
    let drift = |part: usize| {
        let error = variance[part].sqrt();
        let z = if error > 0.0 { excess[part] / error } else { 0.0 };
        Drift { part, transitions: count[part], shift: excess[part] / count[part], z, misfit }
    };
    (0..num_parts).filter(|&part| count[part] > 0.0).map(drift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::End;
    use crate::evaluate::LogBuilder;
    use crate::matrix::Matrix;
    use crate::random::{Purpose, Stream};

    /// Episodes of 16 steps through two states; rewards grow by `slope` per step beside noise.
    fn log(episodes: u64, slope: f64, calendar: f64) -> Log {
        let mut builder = LogBuilder::new(0.9, None).unwrap();
        let mut stream = Stream::new(3, Purpose::Trajectory, 0);
        for key in 0..episodes {
            let states: Vec<u32> = (0..17).map(|_| stream.below(2)).collect();
            let noise = stream.uniform_vec(16, -1.0, 1.0);
            let time = |t: usize| key as f64 * 16.0 + t as f64;
            let rewards: Vec<f64> =
                noise.iter().enumerate().map(|(t, r)| r + slope * t as f64 + calendar * time(t)).collect();
            let times: Vec<f64> = (0..16).map(time).collect();
            builder.episode(key, &states, &rewards, End::Truncated, Some(&times)).unwrap();
        }
        builder.build(Matrix::from_vec(2, 1, vec![0.0, 1.0])).unwrap()
    }

    fn largest(drifts: &[Drift]) -> f64 {
        drifts.iter().map(|d| d.z.abs()).fold(0.0, f64::max)
    }

    #[test]
    fn a_process_that_changes_within_episodes_or_over_time_shows_it() {
        let values = [0.3, -0.2];
        let still = Drifts::of(&log(200, 0.0, 0.0), &values).unwrap();
        assert_eq!(still.phases.len(), 5);
        assert!(largest(&still.phases) < 4.0 && largest(&still.calendar) < 4.0, "{still:?}");
        let phases = Drifts::of(&log(200, 0.1, 0.0), &values).unwrap();
        assert!(largest(&phases.phases) > 10.0 && largest(&phases.calendar) < 4.0, "{phases:?}");
        // Steps 8 to 15 are the last octave: their rewards are above the mean of all by 0.1·(11.5 - 7.5).
        let last = phases.phases.last().unwrap();
        assert!(last.transitions == 1600.0 && (last.shift - 0.4).abs() < 0.06, "{last:?}");
        let calendar = Drifts::of(&log(200, 0.0, 1e-3), &values).unwrap();
        assert!(largest(&calendar.calendar) > 10.0 && largest(&calendar.phases) < 4.0, "{calendar:?}");
    }

    /// z has variance 1 where nothing changes: over many logs its mean square is 1 within four standard errors.
    #[test]
    fn scores_of_a_process_that_does_not_change_have_unit_variance() {
        let scores: Vec<f64> = (0..60)
            .flat_map(|k| {
                let mut builder = LogBuilder::new(0.5, None).unwrap();
                for key in 0..40 {
                    let mut stream = Stream::new(k, Purpose::Trajectory, key);
                    let states: Vec<u32> = (0..9).map(|_| stream.below(3)).collect();
                    let rewards = stream.uniform_vec(8, -1.0, 1.0);
                    builder.episode(key, &states, &rewards, End::Truncated, None).unwrap();
                }
                let log = builder.build(Matrix::from_vec(3, 1, vec![0.0, 1.0, 2.0])).unwrap();
                Drifts::of(&log, &[1.0, 0.0, -1.0]).unwrap().phases.into_iter().map(|d| d.z)
            })
            .collect();
        let squares: f64 = scores.iter().map(|z| z * z).sum::<f64>() / scores.len() as f64;
        // Phases of one log share the mean, so that there are about three independent scores each of 60 times.
        assert!((squares - 1.0).abs() < 4.0 * (2.0f64 / 180.0).sqrt(), "{squares}");
    }
}
