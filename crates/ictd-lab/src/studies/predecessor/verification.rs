//! The constructions against the algorithms they are built for, in the predecessor's setting.

use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use serde::Serialize;

use crate::LabError;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Chart, Series, Width};
use crate::files::OutputDir;
use crate::studies::{Claim, Plan, in_parallel, verdict};

/// Feature dimension, context length, depth and λ of the verification.
const D: usize = 3;
const N: usize = 100;
const LAYERS: usize = 40;
const LAMBDA: f64 = 0.5;
/// What discrepancies may be.
const ROUNDING: f64 = 1e-12;
/// Exact zeros are drawn here.
const FLOOR: f64 = 1e-17;

/// An algorithm that linear attention does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Algorithm {
    Td,
    TdLambda,
    ResidualGradient,
    AverageReward,
}

impl Algorithm {
    const ALL: [(Algorithm, &str, &str); 4] = [
        (Self::Td, "construct-td", "TD(0)"),
        (Self::TdLambda, "construct-td-lambda", "TD(λ)"),
        (Self::ResidualGradient, "construct-residual-gradient", "residual gradient"),
        (Self::AverageReward, "construct-average-reward", "average-reward TD"),
    ];

    fn gamma(self) -> f64 {
        if self == Self::AverageReward { 1.0 } else { 0.9 }
    }

    fn lambda(self) -> f64 {
        if self == Self::TdLambda { LAMBDA } else { 0.0 }
    }
}

/// A prompt of independent normal numbers.
struct Prompt {
    features: Matrix,
    successors: Matrix,
    rewards: Vec<f64>,
    query: Vec<f64>,
}

impl Prompt {
    fn draw(stream: &mut Stream) -> Self {
        let features = Matrix::from_fn(N, D, |_, _| stream.normal());
        let successors = Matrix::from_fn(N, D, |_, _| stream.normal());
        let rewards = (0..N).map(|_| stream.normal()).collect();
        Self { features, successors, rewards, query: (0..D).map(|_| stream.normal()).collect() }
    }

    /// The query's value after every layer of attention: token matrices, as the construction is written.
    fn by_attention(&self, algorithm: Algorithm) -> Vec<f64> {
        let averages = algorithm == Algorithm::AverageReward;
        let rows = 2 * D + 1 + usize::from(averages);
        let gamma = algorithm.gamma();
        let mut z = Matrix::from_fn(rows, N + 1, |r, i| match r {
            r if r < D && i == N => self.query[r],
            _ if i == N => 0.0,
            r if r < D => self.features[(i, r)],
            r if r < 2 * D => gamma * self.successors[(i, r - D)],
            r if r == 2 * D => self.rewards[i],
            _ => 0.0,
        });
        let q = Matrix::from_fn(rows, rows, |r, c| {
            let (upper, left) = (r < D, c < D);
            match (r < 2 * D && c < 2 * D && r % D == c % D, upper) {
                (true, true) => {
                    if left {
                        -1.0
                    } else {
                        1.0
                    }
                }
                (true, false) if algorithm == Algorithm::ResidualGradient => {
                    if left {
                        1.0
                    } else {
                        -1.0
                    }
                }
                _ => 0.0,
            }
        });
        let mask = Matrix::from_fn(N + 1, N + 1, |i, j| match i.checked_sub(j) {
            Some(steps) if i < N => algorithm.lambda().powi(steps as i32),
            _ => 0.0,
        });
        let corner =
            |from: usize| Matrix::from_fn(rows, rows, |r, c| f64::from(u8::from((r, c) == (rows - 1, from))));
        // Running means of rewards, minus them.
        let centred = Matrix::from_fn(N + 1, N + 1, |i, j| {
            f64::from(u8::from(i <= j)) / (j + 1) as f64 - f64::from(u8::from(i == j))
        });
        let last = corner(rows - 1);
        let sign = if averages { 1.0 } else { -1.0 };
        (0..LAYERS)
            .map(|_| {
                let scores = z.transpose().matmul(&q).matmul(&z);
                let mut update = last.matmul(&z).matmul(&mask).matmul(&scores);
                if averages {
                    let rewards = corner(2 * D).matmul(&z).matmul(&centred).matmul(&mask).matmul(&scores);
                    update = Matrix::from_fn(rows, N + 1, |r, i| update[(r, i)] + rewards[(r, i)]);
                }
                z = Matrix::from_fn(rows, N + 1, |r, i| z[(r, i)] + update[(r, i)] / N as f64);
                sign * z[(rows - 1, N)]
            })
            .collect()
    }

    /// The same by the algorithm, one transition after the other.
    fn directly(&self, algorithm: Algorithm) -> Vec<f64> {
        let dot = |x: &[f64], w: &[f64]| x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
        let (gamma, lambda) = (algorithm.gamma(), algorithm.lambda());
        let mut w = vec![0.0; D];
        (0..LAYERS)
            .map(|_| {
                let (mut step, mut trace, mut paid) = (vec![0.0; D], vec![0.0; D], 0.0);
                for i in 0..N {
                    let (x, next) = (self.features.row(i), self.successors.row(i));
                    paid += self.rewards[i];
                    let baseline =
                        if algorithm == Algorithm::AverageReward { paid / (i + 1) as f64 } else { 0.0 };
                    let delta = self.rewards[i] - baseline + gamma * dot(next, &w) - dot(x, &w);
                    for a in 0..D {
                        trace[a] = lambda * trace[a] + x[a];
                        let along = match algorithm {
                            Algorithm::ResidualGradient => x[a] - gamma * next[a],
                            _ => trace[a],
                        };
                        step[a] += delta * along / N as f64;
                    }
                }
                w.iter_mut().zip(step).for_each(|(w, s)| *w += s);
                dot(&w, &self.query)
            })
            .collect()
    }
}

#[derive(Serialize)]
struct Row {
    algorithm: &'static str,
    layer: usize,
    /// Mean and largest discrepancy over prompts.
    mean: f64,
    largest: f64,
}

/// The largest of sizes; NaN where one is.
fn largest_of(sizes: impl Iterator<Item = f64>) -> f64 {
    sizes.fold(0.0, |m, x| if m.is_nan() || x <= m { m } else { x })
}

/// Judges whether attention and algorithms agree.
pub fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let trials = plan.samples(30, 10);
    let gaps = in_parallel(0..trials, |trial| {
        let prompt = Prompt::draw(&mut Stream::new(plan.seed, Purpose::Prompt, trial));
        Ok(Algorithm::ALL.map(|(algorithm, ..)| {
            let pairs = prompt.by_attention(algorithm).into_iter().zip(prompt.directly(algorithm));
            // Relative to the value where that exceeds 1.
            pairs.map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).collect::<Vec<f64>>()
        }))
    })?;
    let (mut claims, mut rows, mut series) = (Vec::new(), Vec::new(), Vec::new());
    for (k, (_, id, name)) in Algorithm::ALL.into_iter().enumerate() {
        let of_layer = |layer: usize| gaps.iter().map(move |trial| trial[k][layer]);
        let own: Vec<Row> = (0..LAYERS)
            .map(|layer| Row {
                algorithm: name,
                layer: layer + 1,
                mean: of_layer(layer).sum::<f64>() / trials as f64,
                largest: largest_of(of_layer(layer)),
            })
            .collect();
        let largest = largest_of(own.iter().map(|row| row.largest));
        let points = own.iter().map(|row| (row.layer as f64, row.mean.max(FLOOR))).collect();
        series.push(Series::new(name, PALETTE[k], points));
        rows.extend(own);
        let says = format!(
            "A layer of linear attention with the parameters of the construction is a step of {name}."
        );
        let criterion = format!(
            "the largest discrepancy over prompts and layers, relative to values above 1, is at most {ROUNDING:e}"
        );
        claims.push(
            Claim::new(id, &format!("Verification, {name}"), &says, &criterion)
                .found(
                    verdict(largest <= ROUNDING),
                    largest,
                    format!("largest discrepancy {largest:.1e} over {LAYERS} layers"),
                    format!("{trials} prompts, d = {D}, n = {N}"),
                )
                .shown(Some("predecessor_verification"), Some("predecessor_verification.csv")),
        );
    }
    let chart = Chart::new(
        "Linear attention against its algorithms",
        Axis::linear("layer"),
        Axis::log("mean discrepancy"),
        series,
    );
    let note = format!(
        "mean over {trials} prompts of normal numbers, d = {D}, n = {N}; an exact 0 is drawn at 1e−17"
    );
    out.csv("predecessor_verification", rows)?;
    out.figure("predecessor_verification", &chart.noted(note).scene(Width::Column))?;
    Ok(claims)
}
