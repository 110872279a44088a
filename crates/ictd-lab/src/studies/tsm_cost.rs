//! What the temporal shift module saves (paper, Section 4): operations, counted while a layer is computed as the paper
//! writes it, and parameters.

use std::time::Instant;

use ictd::matrix::Matrix;
use ictd::prompt::TokenMatrix;
use ictd::random::{Purpose, Stream};
use ictd::task::FiniteTask;
use ictd::transformer::{AttentionParams, Block, TransformerConfig};
use serde::Serialize;

use super::theorem1::verify::raise;
use super::{Claim, Plan, Section, Study, Tasks, softmax, verdict};
use crate::LabError;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Chart, Scene, Series, Width};
use crate::files::OutputDir;

/// What one head and the temporal shift cost, against two heads.
pub const STUDY: Study = Study::new("tsm-cost", Section::Equivalence, &["tsm-cost"], judge);

/// Context lengths.
const LENGTHS: [usize; 6] = [10, 30, 100, 200, 500, 1000];
const GAMMA: f64 = 0.9;

/// How a layer is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// Two heads, each with its own scores, softmax and aggregation.
    TwoHeads,
    /// Two heads that share what they have in common.
    SharedHeads,
    /// One head and the temporal shift.
    TemporalShift,
}

/// The operations of one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Multiply-adds of matrix products.
    products: u64,
    exponentials: u64,
    /// Other additions, multiplications, divisions and moves.
    others: u64,
}

impl Tally {
    fn total(self) -> u64 {
        self.products + self.exponentials + self.others
    }

    fn product(&mut self, a: &Matrix, b: &Matrix) -> Matrix {
        self.products += (a.num_rows() * a.num_cols() * b.num_cols()) as u64;
        a.matmul(b)
    }

    /// Softmax of every column over the sources, all columns but the last.
    fn softmax(&mut self, scores: &Matrix) -> Matrix {
        let (columns, sources) = (scores.num_cols(), scores.num_rows() - 1);
        let mut weights = Matrix::zeros(scores.num_rows(), columns);
        for j in 0..columns {
            let largest = (0..sources).map(|i| scores[(i, j)]).fold(f64::NEG_INFINITY, f64::max);
            let mut total = 0.0;
            for i in 0..sources {
                weights[(i, j)] = (scores[(i, j)] - largest).exp();
                total += weights[(i, j)];
            }
            (0..sources).for_each(|i| weights[(i, j)] /= total);
            self.exponentials += sources as u64;
            // A comparison, a subtraction, an addition and a division for each.
            self.others += 4 * sources as u64;
        }
        weights
    }

    /// V Z softmax(Zᵀ A Z): one head.
    fn head(&mut self, params: &AttentionParams, z: &Matrix) -> Matrix {
        let keys = self.product(params.score_matrix(), z);
        let scores = self.product(&z.transpose(), &keys);
        let weights = self.softmax(&scores);
        let messages = self.product(params.value_matrix(), z);
        self.product(&messages, &weights)
    }

    /// γ times a row moved to the predecessor columns.
    fn shifted(&mut self, row: &[f64]) -> Vec<f64> {
        self.others += 2 * row.len() as u64;
        row[1..].iter().map(|x| GAMMA * x).chain([0.0]).collect()
    }

    fn add(&mut self, row: &mut [f64], update: &[f64]) {
        self.others += row.len() as u64;
        row.iter_mut().zip(update).for_each(|(z, u)| *z += u);
    }

    fn layer(&mut self, layer: Layer, params: &AttentionParams, z: &Matrix) -> Matrix {
        let last = z.num_rows() - 1;
        let mut next = z.clone();
        let current = self.head(params, z);
        if layer == Layer::TemporalShift {
            for i in 0..=last {
                self.add(next.row_mut(i), current.row(i));
            }
            let targets = self.shifted(next.row(last));
            next.row_mut(last - 1).copy_from_slice(&targets);
            return next;
        }
        let target = if layer == Layer::TwoHeads { self.head(params, z) } else { current.clone() };
        self.add(next.row_mut(last), current.row(last));
        let routed = self.shifted(target.row(last));
        self.add(next.row_mut(last - 1), &routed);
        next
    }
}

/// One length.
#[derive(Clone, Debug, Serialize)]
pub struct CostRow {
    pub n: usize,
    pub features: usize,
    /// Operations of a layer with two heads as the paper writes them.
    pub two_heads: u64,
    /// The same when the second head takes what it shares from the first.
    pub shared_heads: u64,
    pub temporal_shift: u64,
    pub ratio: f64,
    /// Parameters of a layer with two heads: V and A, which they share.
    pub parameters_two_heads: usize,
    /// Parameters of two heads with a V and an A each.
    pub parameters_unshared: usize,
    /// One head and the temporal shift, which has none.
    pub parameters_temporal_shift: usize,
    /// The largest difference of what was counted from the Transformer's token matrices, all constructions, in the second layer.
    pub discrepancy: f64,
}

/// The prompt after one layer, so that memory is not 0, with the transformer's next layer.
fn second_layer(task: &FiniteTask, n: usize, block: Block) -> Result<[TokenMatrix; 2], LabError> {
    let context = task.sample_context(n, &mut Stream::new(0, Purpose::Trajectory, 0)).0;
    let config = TransformerConfig { block, ..TransformerConfig::theta_star(softmax()?, 2, GAMMA) };
    let mut tokens = config.check()?.tokens(&context)?;
    let after = tokens.remove(2);
    Ok([tokens.remove(1), after])
}

/// Counts at every length. Counts depend on shapes alone, so nothing here is random.
pub fn run() -> Result<Vec<CostRow>, LabError> {
    let task = Tasks::paper(0).draw(0)?;
    let d = task.features().num_cols();
    let params = AttentionParams::theta_star(d);
    let row = |n: usize| {
        let mut discrepancy = 0.0;
        let mut count = |layer: Layer, block: Block| -> Result<u64, LabError> {
            let [before, after] = second_layer(&task, n, block)?;
            let mut tally = Tally::default();
            let computed = tally.layer(layer, &params, before.matrix());
            raise(&mut discrepancy, computed.as_slice(), after.matrix().as_slice());
            Ok(tally.total())
        };
        let two_heads = count(Layer::TwoHeads, Block::DualHead)?;
        let shared_heads = count(Layer::SharedHeads, Block::DualHead)?;
        let temporal_shift = count(Layer::TemporalShift, Block::TemporalShift)?;
        let parameters = 2 * (d + 3) * (d + 3);
        Ok(CostRow {
            n,
            features: d,
            two_heads,
            shared_heads,
            temporal_shift,
            ratio: two_heads as f64 / temporal_shift as f64,
            parameters_two_heads: parameters,
            parameters_unshared: 2 * parameters,
            parameters_temporal_shift: parameters,
            discrepancy,
        })
    };
    LENGTHS.into_iter().map(row).collect()
}

/// Measured seconds per layer, which differ from run to run.
#[derive(Clone, Debug, Serialize)]
pub struct CostTimes {
    pub n: usize,
    pub two_heads_seconds: f64,
    pub shared_heads_seconds: f64,
    pub temporal_shift_seconds: f64,
}

/// Times the layers that [`run`] counts: the best of five, which other programs disturb least.
pub fn measure() -> Result<CostTimes, LabError> {
    let n = 500;
    let [before, _] = second_layer(&Tasks::paper(0).draw(0)?, n, Block::TemporalShift)?;
    // Dense ones: products skip zeros, of which theta_* is full.
    let rows = before.feature_dim() + 3;
    let mut stream = Stream::new(0, Purpose::Prompt, 0);
    let mut dense = || Matrix::from_fn(rows, rows, |_, _| stream.uniform_in(-0.1, 0.1));
    let params = AttentionParams::new(dense(), dense())?;
    let time = |layer: Layer| {
        let once = |_| {
            let start = Instant::now();
            std::hint::black_box(Tally::default().layer(layer, &params, before.matrix()));
            start.elapsed().as_secs_f64()
        };
        (0..5).map(once).fold(f64::INFINITY, f64::min)
    };
    Ok(CostTimes {
        n,
        two_heads_seconds: time(Layer::TwoHeads),
        shared_heads_seconds: time(Layer::SharedHeads),
        temporal_shift_seconds: time(Layer::TemporalShift),
    })
}

/// Operations per layer over the length.
pub fn figure(rows: &[CostRow]) -> Scene {
    let line = |name: &str, color, of: fn(&CostRow) -> u64| {
        Series::new(name, color, rows.iter().map(|r| (r.n as f64, of(r) as f64)).collect())
    };
    let series = vec![
        line("two heads", PALETTE[1], |r| r.two_heads),
        line("one head and shift", PALETTE[0], |r| r.temporal_shift),
        line("two heads, shared", PALETTE[2], |r| r.shared_heads).dashed(),
    ];
    Chart::new("Operations of a layer", Axis::log("context length *n*"), Axis::log("operations"), series)
        .noted("multiply-adds, exponentials and other operations, counted; 4 features")
        .scene(Width::Column)
}

fn judge(_: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let rows = run()?;
    out.csv("tsm_cost", &rows)?;
    out.figure("tsm_cost", &figure(&rows))?;
    let claim = Claim::new(
        "tsm-cost",
        "Section 4, cost",
        "One head and the temporal shift, which has no parameters, equal two heads and reduce computation: O(n²p) + O(np) against 2·O(n²p) with p = d + 3.",
        "counted by the shapes of what a layer computes as written, two heads need more operations at every length and between 1.95 and 2 times as many at \
         n = 1000; parameters are not more; what was computed equals the Transformer to rounding",
    )
    .shown(Some("tsm_cost"), Some("tsm_cost.csv"));
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(vec![claim]) };
    let holds = rows.iter().all(|r| {
        r.two_heads > r.temporal_shift
            && r.parameters_temporal_shift <= r.parameters_two_heads
            && r.discrepancy <= 1e-12
    }) && (1.95..=2.0).contains(&last.ratio);
    let CostRow { n, ratio, two_heads, shared_heads, temporal_shift, .. } = last;
    let CostRow { parameters_temporal_shift: parameters, parameters_unshared: unshared, .. } = last;
    let measured = format!(
        "{:.3} times the operations at n = {}, {ratio:.4} at n = {n} ({two_heads} against {temporal_shift}); {parameters} parameters per layer either way, \
         because the heads share V and A ({unshared} with their own). Two heads that also share what they compute need {shared_heads}: the saving is that of \
         not computing it twice",
        first.ratio, first.n
    );
    let uncertainty = "counts; measured times are in timings.json".to_owned();
    Ok(vec![claim.found(verdict(holds), *ratio, measured, uncertainty)])
}
