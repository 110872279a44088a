//! Processes whose values are known, to test evaluations on.

use std::collections::HashMap;

use ictd::context::End;
use ictd::evaluate::LogBuilder;
use ictd::linalg;
use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};

use super::Logged;
use crate::LabError;
use crate::logs::{Counts, Reading, States};

/// A process, and how long its episodes are recorded.
#[derive(Debug)]
pub(super) struct Process {
    pub name: &'static str,
    pub gamma: f64,
    /// Numbers of episodes that it is tested with.
    pub sizes: &'static [usize],
    dynamics: Dynamics,
}

#[derive(Debug)]
enum Dynamics {
    Finite(Finite),
    /// Two coordinates that return to 0 at different speeds, rewards sin 2x + y²/2 and noise; every step may be the last.
    Points,
}

/// Finitely many states.
#[derive(Debug)]
struct Finite {
    /// Row s: where s leads to; the rest of 1 is the end.
    transitions: Matrix,
    start: Vec<f64>,
    /// The reward of leaving s to t is rewards(s, t), t = number of states for the end.
    rewards: fn(usize, usize, usize) -> f64,
    noise: f64,
    /// Absent for labels.
    features: Option<Matrix>,
    values: Vec<f64>,
    /// Episodes are truncated after so many steps.
    steps: usize,
}

/// Coordinates of [`Dynamics::Points`]: what stays of them in a step, and the noise that comes.
const KEPT: [f64; 2] = [0.9, 0.7];
const PUSHED: [f64; 2] = [0.4, 0.7];
/// The chance that the next step is not the last.
const GOES_ON: f64 = 0.95;
const POINTS_GAMMA: f64 = 0.95;
/// Longer than any episode that may be simulated.
const WITHOUT_END: usize = 1_000_000;

impl Finite {
    fn new(
        (transitions, start): (Matrix, Vec<f64>),
        rewards: fn(usize, usize, usize) -> f64,
        gamma: f64,
        (noise, steps): (f64, usize),
        features: Option<Matrix>,
    ) -> Result<Self, LabError> {
        let m = transitions.num_rows();
        let end = |s: usize| 1.0 - transitions.row(s).iter().sum::<f64>();
        let mean = |s: usize| {
            let moves: f64 = (0..m).map(|t| transitions[(s, t)] * rewards(s, t, m)).sum();
            moves + end(s) * rewards(s, m, m)
        };
        let system = Matrix::from_fn(m, m, |s, t| f64::from(u8::from(s == t)) - gamma * transitions[(s, t)]);
        let values = linalg::solve(&system, &(0..m).map(mean).collect::<Vec<f64>>())
            .map_err(|error| LabError::internal("values of a process", error))?;
        Ok(Self { transitions, start, rewards, noise, features, values, steps })
    }

    /// The next state; the number of states for the end.
    fn next(&self, row: &[f64], stream: &mut Stream) -> usize {
        let mut left = stream.uniform();
        let stays = row.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        stays.unwrap_or(row.len())
    }
}

/// All processes of the test.
pub(super) fn processes() -> Result<Vec<Process>, LabError> {
    // Nineteen states in a row, steps to either side, 1 for leaving at the right: S&B, Example 6.2, with more states.
    let m = 19;
    let walk = Matrix::from_fn(m, m, |s, t| if s.abs_diff(t) == 1 { 0.5 } else { 0.0 });
    let middle = (0..m).map(|s| f64::from(u8::from(s == m / 2))).collect();
    let line = Matrix::from_fn(m, 1, |s, _| s as f64);
    let won = |s: usize, t: usize, m: usize| f64::from(u8::from(s + 1 == m && t == m));
    let walk = Finite::new((walk, middle), won, 1.0, (0.0, WITHOUT_END), Some(line))?;
    // Thirty states on a circle, drifting to one side.
    let m = 30;
    let ring = Matrix::from_fn(m, m, |s, t| match (t + m - s) % m {
        0 => 0.95 * 0.15,
        1 => 0.95 * 0.6,
        d if d == m - 1 => 0.95 * 0.25,
        _ => 0.0,
    });
    let angle = |s: usize, m: usize| std::f64::consts::TAU * s as f64 / m as f64;
    let circle =
        Matrix::from_fn(m, 2, |s, a| if a == 0 { libm::cos(angle(s, m)) } else { libm::sin(angle(s, m)) });
    let waves = |s: usize, _: usize, m: usize| {
        let angle = std::f64::consts::TAU * s as f64 / m as f64;
        libm::sin(2.0 * angle) + f64::from(u8::from(libm::cos(angle) > 0.8))
    };
    let ring = Finite::new((ring, vec![1.0 / m as f64; m]), waves, 0.95, (0.5, WITHOUT_END), Some(circle))?;
    // The same, never ending: recording stops after twenty steps.
    let endless = Matrix::from_fn(m, m, |s, t| ring.transitions[(s, t)] / 0.95);
    let endless = Finite::new((endless, ring.start.clone()), waves, 0.9, (0.5, 20), ring.features.clone())?;
    // Forty states with nothing but names.
    let m = 40;
    let mut stream = Stream::new(0, Purpose::Evaluation, u64::from(u32::MAX));
    let mut names = Matrix::from_fn(m, m, |_, _| stream.uniform().powi(4));
    for s in 0..m {
        let total: f64 = names.row(s).iter().sum();
        (0..m).for_each(|t| names[(s, t)] *= 0.9 / total);
    }
    let levels = |s: usize, _: usize, _: usize| ((s * 7) % 11) as f64 / 5.0 - 1.0;
    let names = Finite::new((names, vec![1.0 / m as f64; m]), levels, 0.9, (0.5, WITHOUT_END), None)?;
    // Three plans, recorded for a year of a hundred months that count: most of what follows is not seen.
    let plans = Matrix::from_vec(3, 3, vec![0.88, 0.04, 0.0, 0.02, 0.92, 0.03, 0.0, 0.02, 0.965]);
    let fees = |s: usize, _: usize, _: usize| [10.0, 30.0, 60.0][s];
    let plans = Finite::new((plans, vec![0.6, 0.3, 0.1]), fees, 0.99, (5.0, 12), None)?;
    let finite = |name, gamma, finite| Process {
        name,
        gamma,
        sizes: &[100, 300, 1000],
        dynamics: Dynamics::Finite(finite),
    };
    Ok(vec![
        finite("walk: 19 states in a row, undiscounted", 1.0, walk),
        finite("ring: 30 states on a circle, noisy rewards", 0.95, ring),
        finite("endless ring: recorded for 20 steps", 0.9, endless),
        finite("names: 40 states without features", 0.9, names),
        finite("plans: three names, recorded for 12 steps of 100 that count", 0.99, plans),
        Process {
            name: "points: two numbers, no state twice",
            gamma: POINTS_GAMMA,
            sizes: &[30, 100],
            dynamics: Dynamics::Points,
        },
    ])
}

/// A simulated log, and the true values of its states by their numbers in it.
pub(super) struct Simulated {
    pub logged: Logged,
    pub truth: Vec<f64>,
}

impl Process {
    /// Simulates so many episodes.
    pub fn simulate(&self, episodes: usize, stream: &mut Stream) -> Result<Simulated, LabError> {
        let mut builder = LogBuilder::new(self.gamma, None)?;
        let mut known = Known::default();
        let mut counts = Counts { episodes: episodes as u64, ..Counts::default() };
        for episode in 0..episodes {
            let (states, rewards, end) = match &self.dynamics {
                Dynamics::Finite(finite) => finite.episode(&mut known, stream),
                Dynamics::Points => points(&mut known, stream),
            };
            counts.transitions += rewards.len() as u64;
            builder.episode(episode as u64, &states, &rewards, end, None)?;
        }
        let truth = match &self.dynamics {
            Dynamics::Finite(finite) => known.given.iter().map(|&s| finite.values[s]).collect(),
            Dynamics::Points => known.points.chunks_exact(2).map(|x| value_of_point([x[0], x[1]])).collect(),
        };
        let (states, columns) = self.states(known);
        let reading = Reading {
            mapping: Vec::new(),
            state_columns: columns,
            visited: states.len(),
            tells_ends: true,
            means: Vec::new(),
            states,
            ids: Vec::new(),
            first: Vec::new(),
            counts,
            warnings: Vec::new(),
        };
        Ok(Simulated { logged: Logged::new(reading, builder)?, truth })
    }

    fn states(&self, known: Known) -> (States, Vec<String>) {
        let features = |names: &[&str], rows: Matrix| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            (States::Features { names: names.clone(), rows }, names)
        };
        match &self.dynamics {
            Dynamics::Finite(Finite { features: Some(all), .. }) => {
                let rows =
                    Matrix::from_fn(known.given.len(), all.num_cols(), |k, a| all[(known.given[k], a)]);
                features(&["x", "y"][..all.num_cols()], rows)
            }
            Dynamics::Finite(_) => {
                let labels = known.given.iter().map(|s| format!("state {s}")).collect();
                (States::Labels(labels), vec!["state".into()])
            }
            Dynamics::Points => {
                features(&["x", "y"], Matrix::from_vec(known.points.len() / 2, 2, known.points))
            }
        }
    }
}

/// States in the order in which they were first met.
#[derive(Default)]
struct Known {
    numbers: HashMap<usize, u32>,
    given: Vec<usize>,
    points: Vec<f64>,
}

impl Known {
    fn number(&mut self, s: usize) -> u32 {
        *self.numbers.entry(s).or_insert_with(|| {
            self.given.push(s);
            self.given.len() as u32 - 1
        })
    }

    fn point(&mut self, x: [f64; 2]) -> u32 {
        self.points.extend(x);
        self.points.len() as u32 / 2 - 1
    }
}

impl Finite {
    fn episode(&self, known: &mut Known, stream: &mut Stream) -> (Vec<u32>, Vec<f64>, End) {
        let m = self.transitions.num_rows();
        let mut s = self.next(&self.start, stream).min(m - 1);
        let (mut states, mut rewards) = (Vec::new(), Vec::new());
        while s < m && rewards.len() < self.steps {
            let t = self.next(self.transitions.row(s), stream);
            states.push(known.number(s));
            rewards.push((self.rewards)(s, t, m) + self.noise * stream.normal());
            s = t;
        }
        if s < m {
            states.push(known.number(s));
            return (states, rewards, End::Truncated);
        }
        (states, rewards, End::Terminated)
    }
}

fn points(known: &mut Known, stream: &mut Stream) -> (Vec<u32>, Vec<f64>, End) {
    let spread = |a: usize| PUSHED[a] / (1.0 - KEPT[a] * KEPT[a]).sqrt();
    let mut x = [0, 1].map(|a| spread(a) * stream.normal());
    let (mut states, mut rewards) = (Vec::new(), Vec::new());
    loop {
        states.push(known.point(x));
        rewards.push(libm::sin(2.0 * x[0]) + 0.5 * x[1] * x[1] + 0.3 * stream.normal());
        if stream.uniform() > GOES_ON {
            return (states, rewards, End::Terminated);
        }
        x = [0, 1].map(|a| KEPT[a] * x[a] + PUSHED[a] * stream.normal());
    }
}

/// Σ_k (γ·0.95)^k E[sin 2x_k + y_k²/2], of Gaussian coordinates.
fn value_of_point(x: [f64; 2]) -> f64 {
    let discount = POINTS_GAMMA * GOES_ON;
    let term = |k: i32| {
        let kept = KEPT.map(|c| c.powi(k));
        let variance =
            |a: usize| PUSHED[a] * PUSHED[a] * (1.0 - kept[a] * kept[a]) / (1.0 - KEPT[a] * KEPT[a]);
        let sine = libm::sin(2.0 * kept[0] * x[0]) * libm::exp(-2.0 * variance(0));
        discount.powi(k) * (sine + 0.5 * ((kept[1] * x[1]).powi(2) + variance(1)))
    };
    // What is left out is below 1e-12 of the first.
    (0..300).map(term).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns from the start, with the value of where recording stopped, less the value of the start.
    #[test]
    fn values_are_the_means_of_simulated_returns() {
        for Process { name, gamma, dynamics, .. } in processes().unwrap() {
            let mut stream = Stream::new(1, Purpose::Evaluation, 0);
            let mut gap = || {
                let mut known = Known::default();
                let (states, rewards, end) = match &dynamics {
                    Dynamics::Finite(finite) => finite.episode(&mut known, &mut stream),
                    Dynamics::Points => points(&mut known, &mut stream),
                };
                let value = |s: u32| match &dynamics {
                    Dynamics::Finite(finite) => finite.values[known.given[s as usize]],
                    Dynamics::Points => {
                        let at = 2 * s as usize;
                        value_of_point([known.points[at], known.points[at + 1]])
                    }
                };
                let last = if end == End::Truncated { value(states[rewards.len()]) } else { 0.0 };
                rewards.iter().rev().fold(last, |sum, r| r + gamma * sum) - value(states[0])
            };
            let gaps: Vec<f64> = (0..4000).map(|_| gap()).collect();
            let found = ictd::statistics::MeanSem::of(&gaps).unwrap();
            // One of 15,000 by chance, and the seed is fixed.
            assert!(found.sem > 0.0 && found.mean.abs() < 4.0 * found.sem, "{name}: {found:?}");
        }
    }
}
