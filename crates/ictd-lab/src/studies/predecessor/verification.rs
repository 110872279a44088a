//! The constructions against the algorithms they are built for, in the predecessor's setting.

use ictd::construction::{Algorithm, Construction, ConstructionConfig};
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

/// What is verified, the claims and what they are called.
const VERIFIED: [(Algorithm, &str, &str); 4] = [
    (Algorithm::Td, "construct-td", "TD(0)"),
    (Algorithm::TdLambda, "construct-td-lambda", "TD(λ)"),
    (Algorithm::ResidualGradient, "construct-residual-gradient", "residual gradient"),
    (Algorithm::AverageReward, "construct-average-reward", "average-reward TD"),
];

/// The construction of an algorithm, with step size 1 and C = I.
fn construct(algorithm: Algorithm) -> Result<Construction, LabError> {
    let lambda = if algorithm == Algorithm::TdLambda { LAMBDA } else { 0.0 };
    Ok(ConstructionConfig { lambda, ..ConstructionConfig::new(algorithm, LAYERS) }.check()?)
}

/// A prompt of independent normal numbers, as the authors draw it: successors are not the states that come next. A `Context` is a trajectory, so the
/// tokens and the direct algorithm are written here; layers are those of the construction.
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
    fn by_attention(&self, construction: &Construction) -> Result<Vec<f64>, LabError> {
        let ConstructionConfig { algorithm, gamma, .. } = *construction.config();
        let layer = construction
            .linear_layer(0, N, D)
            .ok_or_else(|| LabError::internal("verification", "layers are not of linear attention"))?;
        let rows = layer.score_matrix.num_rows();
        let mut z = Matrix::from_fn(rows, N + 1, |r, i| match r {
            r if r < D && i == N => self.query[r],
            _ if i == N => 0.0,
            r if r < D => self.features[(i, r)],
            r if r < 2 * D => gamma * self.successors[(i, r - D)],
            r if r == 2 * D => self.rewards[i],
            _ => 0.0,
        });
        // Where rewards are averaged the last row holds values, else minus them.
        let sign = if algorithm == Algorithm::AverageReward { 1.0 } else { -1.0 };
        let values = (0..LAYERS).map(|_| {
            z = layer.apply(&z, 1.0 / N as f64);
            sign * z[(rows - 1, N)]
        });
        Ok(values.collect())
    }

    /// The same by the algorithm, one transition after the other.
    fn directly(&self, construction: &Construction) -> Vec<f64> {
        let dot = |x: &[f64], w: &[f64]| x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
        let ConstructionConfig { algorithm, gamma, lambda, .. } = *construction.config();
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
    let constructions =
        VERIFIED.into_iter().map(|(algorithm, ..)| construct(algorithm)).collect::<Result<Vec<_>, _>>()?;
    let gaps = in_parallel(0..trials, |trial| {
        let prompt = Prompt::draw(&mut Stream::new(plan.seed, Purpose::Prompt, trial));
        let of = |construction: &Construction| {
            let pairs = prompt.by_attention(construction)?.into_iter().zip(prompt.directly(construction));
            // Relative to the value where that exceeds 1.
            Ok(pairs.map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).collect())
        };
        constructions.iter().map(of).collect::<Result<Vec<Vec<f64>>, LabError>>()
    })?;
    let (mut claims, mut rows, mut series) = (Vec::new(), Vec::new(), Vec::new());
    for (k, (_, id, name)) in VERIFIED.into_iter().enumerate() {
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
