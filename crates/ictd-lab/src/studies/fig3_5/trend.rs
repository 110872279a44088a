//! The numbers behind Figures 3, 5 and 6, and what they must be like for the picture to be there.

use ictd::pretrain::{Metric, TrainState};
use ictd::statistics::{MeanSem, quantile, spearman};
use serde::Serialize;

use crate::studies::{extent, mean};

/// Window of the trailing mean (paper, "Emergence vs. training step").
pub(super) const SMOOTHING: usize = 50;
/// Bins of the kernel diagonal mean (paper, "Plotting details").
const BINS: usize = 20;
/// Scores of at least this count as emerged: half of what the ideal block has.
pub const EMERGED: f64 = 0.5;

/// Means over seeds of smoothed traces at a step, of the seeds whose shown step lies beyond it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CurvePoint {
    pub step: usize,
    pub seeds: usize,
    pub v_em: f64,
    pub v_em_sem: f64,
    pub a_em: f64,
    pub a_em_sem: f64,
    pub v_em_signed: f64,
    pub v_em_signed_sem: f64,
    pub a_em_signed: f64,
    pub a_em_signed_sem: f64,
    pub diag_mean: f64,
    pub diag_mean_sem: f64,
}

/// Emergence scores of the evaluated points whose d_t falls into a bin.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Bin {
    pub diag_low: f64,
    pub diag_high: f64,
    pub points: usize,
    pub v_em: f64,
    pub v_em_q25: f64,
    pub v_em_q75: f64,
    pub a_em: f64,
    pub a_em_q25: f64,
    pub a_em_q75: f64,
    pub v_em_signed: f64,
    pub a_em_signed: f64,
}

/// How the curves of Figures 3(b) and 5 go.
#[derive(Clone, Copy, Debug)]
pub struct Trend {
    /// Rank correlation of V_em and d_t over bins.
    pub value_rank_correlation: f64,
    /// The largest mean V_em of a bin.
    pub value_largest: f64,
    /// Mean A_em of the upper half of the bins of d_t.
    pub score_upper_half: f64,
    pub bins: usize,
    pub onset: Option<Onset>,
    /// Rank correlation of d_t and the step up to a seed's best one: the median over seeds. Curves averaged over seeds that
    /// end at different steps would jump where one ends.
    pub diagonal_rank_correlation: f64,
    pub diagonal_first: f64,
    pub diagonal_last: f64,
}

/// The kernel diagonal mean at which each score sets in: the first bin whose mean reaches [`EMERGED`].
#[derive(Clone, Copy, Debug)]
pub struct Onset {
    pub score: f64,
    pub value: f64,
    /// Where V_em's lies in the observed range of d_t, from 0 to 1.
    pub value_position: f64,
}

impl Trend {
    /// From the bins of Figure 3(b), the curves of Figure 5 and the seeds behind them.
    pub(super) fn new(bins: &[Bin], curves: &[CurvePoint], states: &[TrainState<f32>]) -> Self {
        let centres: Vec<f64> = bins.iter().map(Bin::centre).collect();
        let values: Vec<f64> = bins.iter().map(|b| b.v_em).collect();
        let upper = &bins[bins.len() / 2..];
        let mut correlations: Vec<f64> = states.iter().map(diagonal_rank_correlation).collect();
        correlations.sort_by(f64::total_cmp);
        Self {
            value_rank_correlation: spearman(&centres, &values),
            value_largest: values.iter().copied().fold(0.0, f64::max),
            score_upper_half: upper.iter().map(|b| b.a_em).sum::<f64>() / upper.len().max(1) as f64,
            bins: bins.len(),
            onset: onset(bins),
            diagonal_rank_correlation: quantile(&correlations, 0.5),
            diagonal_first: curves.first().map_or(0.0, |p| p.diag_mean),
            diagonal_last: curves.last().map_or(0.0, |p| p.diag_mean),
        }
    }

    /// The trend of one seed.
    pub fn of(batches: usize, state: &TrainState<f32>) -> Self {
        let states = std::slice::from_ref(state);
        Self::new(&bins(batches, states), &curves(states), states)
    }

    /// V_em rises with d_t, to something: rank correlation at least ½, and a bin that has emerged.
    pub fn value_rises(&self) -> bool {
        self.value_rank_correlation >= 0.5 && self.value_largest >= EMERGED
    }

    /// A_em is high in the upper half of the bins.
    pub fn score_is_high(&self) -> bool {
        self.score_upper_half >= EMERGED
    }

    /// V_em sets in after A_em, at an intermediate level of d_t: in the middle three fifths of its range.
    pub fn value_sets_in_late(&self) -> bool {
        self.onset.is_some_and(|o| o.value > o.score && (0.2..=0.8).contains(&o.value_position))
    }

    /// Kernels become increasingly diagonal: rank correlation of d_t and the step at least 0.8.
    pub fn diagonal_rises(&self) -> bool {
        self.diagonal_rank_correlation >= 0.8
    }
}

/// Rank correlation of a seed's smoothed d_t and the step, up to the step that stands for it.
fn diagonal_rank_correlation(state: &TrainState<f32>) -> f64 {
    // Neighbouring steps are smoothed over the same window: one point per window says as much.
    let smoothed = trailing_mean(&state.history[Metric::Diagonal][..shown(state).0]);
    let diagonal: Vec<f64> = smoothed.into_iter().step_by(SMOOTHING).collect();
    let steps: Vec<f64> = (0..diagonal.len()).map(|k| k as f64).collect();
    spearman(&steps, &diagonal)
}

fn onset(bins: &[Bin]) -> Option<Onset> {
    let first = |score: fn(&Bin) -> f64| bins.iter().find(|b| score(b) >= EMERGED).map(Bin::centre);
    let (score, value) = (first(|b| b.a_em)?, first(|b| b.v_em)?);
    let (low, high) = (bins.first()?.diag_low, bins.last()?.diag_high);
    Some(Onset { score, value, value_position: (value - low) / (high - low) })
}

impl Bin {
    pub(super) fn centre(&self) -> f64 {
        0.5 * (self.diag_low + self.diag_high)
    }
}

/// Whether a seed shows the TD block: min(V_em, A_em) reaches [`EMERGED`] at some step.
pub fn emerged(state: &TrainState<f32>) -> bool {
    state.best.joint[0] >= EMERGED
}

/// The step and parameters that stand for a seed: the best step where both scores are positive somewhere,
/// as in the paper; the final one where they never are and the paper's maximum picks nothing.
pub(super) fn shown(state: &TrainState<f32>) -> (usize, &[f32]) {
    if state.best.joint[0] > 0.0 {
        (state.best.step as usize, &state.best.params)
    } else {
        (state.steps() as usize, &state.params)
    }
}

/// Trailing means up to the step that stands for each seed, averaged over the seeds that are left.
pub(super) fn curves(states: &[TrainState<f32>]) -> Vec<CurvePoint> {
    let metrics = [Metric::Value, Metric::Score, Metric::ValueSigned, Metric::ScoreSigned, Metric::Diagonal];
    // Entry [metric][seed][step].
    let smoothed = metrics.map(|metric| -> Vec<Vec<f64>> {
        states.iter().map(|s| trailing_mean(&s.history[metric][..shown(s).0])).collect()
    });
    let longest = states.iter().map(|s| shown(s).0).max().unwrap_or(0);
    (0..longest)
        .filter_map(|step| {
            let at = |trace: usize| {
                let samples: Vec<f64> = smoothed[trace].iter().filter_map(|t| t.get(step).copied()).collect();
                MeanSem::of(&samples)
            };
            let [v, a, vs, asg, d] = [at(0)?, at(1)?, at(2)?, at(3)?, at(4)?];
            Some(CurvePoint {
                step: step + 1,
                seeds: v.count,
                v_em: v.mean,
                v_em_sem: v.sem,
                a_em: a.mean,
                a_em_sem: a.sem,
                v_em_signed: vs.mean,
                v_em_signed_sem: vs.sem,
                a_em_signed: asg.mean,
                a_em_signed_sem: asg.sem,
                diag_mean: d.mean,
                diag_mean_sem: d.sem,
            })
        })
        .collect()
}

fn trailing_mean(values: &[f32]) -> Vec<f64> {
    (0..values.len())
        .map(|end| {
            let window = &values[(end + 1).saturating_sub(SMOOTHING)..=end];
            window.iter().map(|&x| f64::from(x)).sum::<f64>() / window.len() as f64
        })
        .collect()
}

/// The evaluated points of all seeds, one per epoch, in equal-width bins of d_t.
pub(super) fn bins(batches: usize, states: &[TrainState<f32>]) -> Vec<Bin> {
    // (d_t, V_em, A_em, signed V_em, signed A_em) at the end of every epoch.
    let points: Vec<[f64; 5]> = states
        .iter()
        .flat_map(|s| {
            let h = &s.history;
            h[Metric::EvalDiagonal].iter().enumerate().map(move |(epoch, &d)| {
                let step = (epoch + 1) * batches - 1;
                let scores = [Metric::Value, Metric::Score, Metric::ValueSigned, Metric::ScoreSigned];
                let [v, a, v_signed, a_signed] = scores.map(|metric| h[metric][step]);
                [d, v, a, v_signed, a_signed].map(f64::from)
            })
        })
        .collect();
    let (low, high) = extent(points.iter().map(|p| p[0]));
    let width = (high - low) / BINS as f64;
    (0..BINS)
        .filter_map(|k| {
            let inside = |p: &&[f64; 5]| (((p[0] - low) / width) as usize).min(BINS - 1) == k;
            let members: Vec<&[f64; 5]> = points.iter().filter(inside).collect();
            if members.is_empty() {
                return None;
            }
            let quartiles = |i: usize| {
                let mut values: Vec<f64> = members.iter().map(|p| p[i]).collect();
                values.sort_by(f64::total_cmp);
                [0.25, 0.75].map(|q| quantile(&values, q))
            };
            let mean = |i: usize| mean(members.iter().map(|p| p[i]));
            let ([v_em_q25, v_em_q75], [a_em_q25, a_em_q75]) = (quartiles(1), quartiles(2));
            Some(Bin {
                diag_low: low + k as f64 * width,
                diag_high: low + (k + 1) as f64 * width,
                points: members.len(),
                v_em: mean(1),
                v_em_q25,
                v_em_q75,
                a_em: mean(2),
                a_em_q25,
                a_em_q75,
                v_em_signed: mean(3),
                a_em_signed: mean(4),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_means_use_what_is_there() {
        let values: Vec<f32> = (0..60).map(|i| i as f32).collect();
        let means = trailing_mean(&values);
        assert_eq!((means[0], means[1], means[49], means[50]), (0.0, 0.5, 24.5, 25.5));
    }

    /// Every condition of Figures 3(b) and 5 fails by itself, and by numbers that are none.
    #[test]
    fn each_condition_can_fail() {
        let onset = |score, value, value_position| Some(Onset { score, value, value_position });
        let good = Trend {
            value_rank_correlation: 0.6,
            value_largest: 0.6,
            score_upper_half: 0.6,
            bins: 20,
            onset: onset(0.1, 0.2, 0.5),
            diagonal_rank_correlation: 0.9,
            diagonal_first: 0.1,
            diagonal_last: 0.2,
        };
        assert!(
            good.value_rises() && good.score_is_high() && good.value_sets_in_late() && good.diagonal_rises()
        );
        for bad in [0.4, f64::NAN] {
            assert!(!Trend { value_rank_correlation: bad, ..good }.value_rises());
            assert!(!Trend { value_largest: bad, ..good }.value_rises());
            assert!(!Trend { score_upper_half: bad, ..good }.score_is_high());
            assert!(!Trend { diagonal_rank_correlation: bad, ..good }.diagonal_rises());
        }
        for bad in [None, onset(0.2, 0.1, 0.5), onset(0.1, 0.2, 0.9), onset(0.1, f64::NAN, 0.5)] {
            assert!(!Trend { onset: bad, ..good }.value_sets_in_late(), "{bad:?}");
        }
    }
}
