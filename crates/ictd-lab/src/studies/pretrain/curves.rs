//! The curves of a run as columns.

use ictd::pretrain::Metric;

use super::RunResult;

/// What was measured during training, a row per seed and gradient step.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// The seed of every row.
    pub seeds: Vec<u64>,
    /// The step of every row, from 1.
    pub steps: Vec<u64>,
    /// Every metric under its name; what is measured once per epoch stands at the epoch's last step, and is NaN elsewhere.
    pub metrics: Vec<(&'static str, Vec<f32>)>,
}

impl Curves {
    /// Those of the seeds that were asked for, in their order.
    pub fn of(result: &RunResult) -> Self {
        let batches = result.settings.config.batches;
        let of_seeds =
            result.seeds.iter().filter_map(|found| Some((found.seed, result.state(found.seed).ok()?)));
        let (mut seeds, mut steps) = (Vec::new(), Vec::new());
        let mut metrics = Metric::ALL.map(|metric| (metric.name(), Vec::new()));
        for (seed, state) in of_seeds {
            let count = state.steps();
            seeds.extend((0..count).map(|_| seed));
            steps.extend(1..=count);
            for (metric, (_, column)) in Metric::ALL.into_iter().zip(&mut metrics) {
                let values = &state.history[metric];
                if metric.is_per_step() {
                    column.extend_from_slice(values);
                    continue;
                }
                let first = column.len();
                column.resize(first + count as usize, f32::NAN);
                let lasts = column[first..].iter_mut().skip(batches - 1).step_by(batches);
                lasts.zip(values).for_each(|(slot, value)| *slot = *value);
            }
        }
        Self { seeds, steps, metrics: metrics.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Progress;
    use crate::studies::pretrain::{Settings, run_in_memory};

    #[test]
    fn what_is_measured_per_epoch_stands_at_its_last_step() {
        let small = ["epochs=2", "batches=3", "batch=4"].map(String::from);
        let settings = Settings::preset("paper", &small).unwrap();
        let result = run_in_memory(&settings, &[4, 1], &Progress::default()).unwrap();
        let curves = Curves::of(&result);
        assert_eq!(curves.seeds, [[4; 6], [1; 6]].concat());
        assert_eq!(curves.steps, [[1, 2, 3, 4, 5, 6]; 2].concat());
        for (metric, (name, column)) in Metric::ALL.into_iter().zip(&curves.metrics) {
            assert_eq!((metric.name(), column.len()), (*name, 12));
            let known: Vec<f32> = column.iter().copied().filter(|x| !x.is_nan()).collect();
            let all = [4, 1].map(|seed| result.state(seed).unwrap().history[metric].clone()).concat();
            assert_eq!(known, all);
            assert!(metric.is_per_step() || column.iter().skip(2).step_by(3).all(|x| !x.is_nan()));
        }
    }
}
