//! An experiment trained over seeds, and what its figures show.

use std::ops::ControlFlow;

use ictd::predecessor::{PairMeasures, PredecessorConfig, PredecessorMeasurement, PredecessorTrainer};
use serde::Serialize;

use super::settings::Experiment;
use crate::LabError;
use crate::studies::pretrain::simd_level;
use crate::studies::{Plan, in_parallel, mean_and_sem};

/// The runs of an experiment.
pub struct Trained {
    pub experiment: Experiment,
    pub config: PredecessorConfig,
    seeds: Vec<Seed>,
}

/// A run.
struct Seed {
    history: Vec<PredecessorMeasurement>,
    params: Vec<f32>,
}

/// Mean and standard error over seeds.
pub type Spread = (f64, f64);

/// A point of the curves of an experiment, each a mean over seeds with its standard error.
#[derive(Clone, Debug, Serialize)]
pub struct CurvePoint {
    pub mrp: u64,
    pub vd: f64,
    pub vd_sem: f64,
    pub iws: f64,
    pub iws_sem: f64,
    pub ss: f64,
    pub ss_sem: f64,
    pub msve: f64,
    pub msve_sem: f64,
    pub td_msve: f64,
    pub td_msve_sem: f64,
    pub alpha: f64,
    pub alpha_sem: f64,
    pub loss: f64,
    pub loss_sem: f64,
}

/// A point of the curves of a pair's entries.
#[derive(Clone, Debug, Serialize)]
pub struct PairPoint {
    pub mrp: u64,
    pub pair: usize,
    pub p_corner: f64,
    pub p_corner_sem: f64,
    pub p_rest: f64,
    pub p_rest_sem: f64,
    pub q_left: f64,
    pub q_left_sem: f64,
    pub q_right: f64,
    pub q_right_sem: f64,
    pub q_rest: f64,
    pub q_rest_sem: f64,
}

impl Trained {
    /// Trains all seeds.
    pub fn run(experiment: &Experiment, plan: &Plan) -> Result<Self, LabError> {
        let simd = simd_level()?;
        let config = PredecessorConfig { mrps: plan.samples(5000, 500), simd, ..experiment.config() };
        let seeds = in_parallel(plan.seeds(10), |seed| {
            let mut trainer = PredecessorTrainer::<f32>::new(&config, seed)?;
            trainer.train(|_| ControlFlow::Continue(()))?;
            Ok(Seed { history: trainer.history().to_vec(), params: trainer.params().to_vec() })
        })?;
        Ok(Self { experiment: *experiment, config, seeds })
    }

    /// Runs.
    pub fn num_seeds(&self) -> usize {
        self.seeds.len()
    }

    /// Pairs (P, Q) of a run.
    pub fn num_pairs(&self) -> usize {
        self.config.shape().num_pairs()
    }

    /// Measurements of a run.
    fn num_points(&self) -> usize {
        self.seeds.first().map_or(0, |s| s.history.len())
    }

    /// Mean and standard error over seeds of each one's mean over measurements; NaN where none has any.
    fn over(&self, points: std::ops::Range<usize>, of: impl Fn(&PredecessorMeasurement) -> f64) -> Spread {
        let of_seed = |seed: &Seed| {
            // Cart-poles whose visited states have too few features have no IWS.
            let found: Vec<f64> =
                seed.history[points.clone()].iter().map(&of).filter(|x| x.is_finite()).collect();
            found.iter().sum::<f64>() / found.len() as f64
        };
        let found = self.seeds.iter().map(of_seed).filter(|x| x.is_finite());
        mean_and_sem("seeds", found).unwrap_or((f64::NAN, f64::NAN))
    }

    /// Over the last tenth of training.
    pub fn last(&self, of: impl Fn(&PredecessorMeasurement) -> f64) -> Spread {
        let num = self.num_points();
        self.over(num - num.div_ceil(10)..num, of)
    }

    /// Measurements of the last tenth of training, of all seeds, for which there is no such number.
    pub fn lost(&self, of: impl Fn(&PredecessorMeasurement) -> f64) -> usize {
        let last = self.num_points() - self.num_points().div_ceil(10);
        self.seeds.iter().flat_map(|seed| &seed.history[last..]).filter(|m| !of(m).is_finite()).count()
    }

    /// Over the first tenth.
    pub fn first(&self, of: impl Fn(&PredecessorMeasurement) -> f64) -> Spread {
        self.over(0..self.num_points().div_ceil(10), of)
    }

    /// The curves, each point a mean over `every` measurements.
    pub fn curves(&self, every: usize) -> Vec<CurvePoint> {
        let point = |at: usize| {
            let over = |of: fn(&PredecessorMeasurement) -> f64| self.over(at..at + every, of);
            let (vd, vd_sem) = over(|m| m.value_difference);
            let (iws, iws_sem) = over(|m| m.weight_similarity);
            let (ss, ss_sem) = over(|m| m.sensitivity_similarity);
            let (msve, msve_sem) = over(|m| m.value_error);
            let (td_msve, td_msve_sem) = over(|m| m.td_value_error);
            let (alpha, alpha_sem) = over(|m| m.alpha);
            let (loss, loss_sem) = over(|m| m.loss);
            CurvePoint {
                mrp: self.seeds[0].history[at + every - 1].mrp,
                vd,
                vd_sem,
                iws,
                iws_sem,
                ss,
                ss_sem,
                msve,
                msve_sem,
                td_msve,
                td_msve_sem,
                alpha,
                alpha_sem,
                loss,
                loss_sem,
            }
        };
        (0..self.num_points() / every).map(|k| point(k * every)).collect()
    }

    /// The curves of the pairs' entries.
    pub fn pair_curves(&self, every: usize) -> Vec<PairPoint> {
        let point = |at: usize, pair: usize| {
            let over = |of: fn(&PairMeasures) -> f64| self.over(at..at + every, |m| of(&m.pairs[pair]));
            let ((p_corner, p_corner_sem), (p_rest, p_rest_sem)) = (over(|p| p.p_corner), over(|p| p.p_rest));
            let ((q_left, q_left_sem), (q_right, q_right_sem)) = (over(|p| p.q_left), over(|p| p.q_right));
            let (q_rest, q_rest_sem) = over(|p| p.q_rest);
            let mrp = self.seeds[0].history[at + every - 1].mrp;
            PairPoint {
                mrp,
                pair,
                p_corner,
                p_corner_sem,
                p_rest,
                p_rest_sem,
                q_left,
                q_left_sem,
                q_right,
                q_right_sem,
                q_rest,
                q_rest_sem,
            }
        };
        let pairs = 0..self.num_pairs();
        let points = (0..self.num_points() / every).map(|k| k * every);
        points
            .flat_map(|at| pairs.clone().map(move |pair| (at, pair)))
            .map(|(at, pair)| point(at, pair))
            .collect()
    }

    /// The means over seeds of the final P and Q of a pair, row by row, signs aligned, each divided by its largest entry.
    pub fn matrices(&self, pair: usize) -> [Vec<Vec<f64>>; 2] {
        let shape = self.config.shape();
        let k = shape.num_rows();
        let mut sums = [vec![0.0; k * k], vec![0.0; k * k]];
        for seed in &self.seeds {
            let (p, q) = shape.pair(&seed.params, pair);
            let sign = if p[k * k - 1] < 0.0 { -1.0 } else { 1.0 };
            for (sum, entries) in sums.iter_mut().zip([p, q]) {
                sum.iter_mut().zip(entries).for_each(|(s, x)| *s += sign * f64::from(*x));
            }
        }
        sums.map(|sum| {
            let largest = sum.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
            sum.chunks(k).map(|row| row.iter().map(|x| x / largest).collect()).collect()
        })
    }
}
