//! The middle of a sample in one number, and an interval of it from resamples.

use crate::random::{Purpose, Stream};

use super::quantile;

/// Resamples behind an interval, of samples that are not large.
const RESAMPLES: usize = 2000;
/// The same of any sample.
const FEWEST_RESAMPLES: usize = 200;
/// Draws of all resamples together: where that would make too few of them, more.
const DRAWS: usize = 20_000_000;
/// Where the streams of resamples start, away from those of logs.
const FIRST_STREAM: u64 = 1 << 40;

/// A number for the middle of a sample. All of them are means of what is left when the same number of values is cut off at
/// either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Centre {
    /// The interquartile mean: ⌊n/4⌋ values are cut off at either end, as rliable does (`scipy.stats.trim_mean` with 0.25;
    /// Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice", 2021). Less moved by single
    /// seeds than the mean, and more exact than the median.
    Iqm,
    /// The median.
    Median,
    /// The mean.
    Mean,
}

impl Centre {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Iqm, Self::Median, Self::Mean];

    /// Of sorted numbers; NaN of none.
    ///
    /// ```
    /// use ictd::statistics::Centre;
    /// let sample = [0.0, 1.0, 2.0, 3.0, 100.0];
    /// assert_eq!(Centre::Iqm.of(&sample), 2.0);
    /// assert_eq!(Centre::Median.of(&sample), 2.0);
    /// assert_eq!(Centre::Mean.of(&sample), 21.2);
    /// ```
    pub fn of(self, sorted: &[f64]) -> f64 {
        let cut = self.cut(sorted.len());
        let kept = &sorted[cut..sorted.len() - cut];
        kept.iter().sum::<f64>() / kept.len() as f64
    }

    /// How many of n values are cut off at either end.
    fn cut(self, n: usize) -> usize {
        match self {
            Self::Iqm => n / 4,
            Self::Median => n.saturating_sub(1) / 2,
            Self::Mean => 0,
        }
    }

    /// Of a resample of sorted numbers that has each of them so many times.
    fn of_counts(self, sorted: &[f64], counts: &[u8]) -> f64 {
        let cut = self.cut(sorted.len());
        let kept = sorted.len() - 2 * cut;
        let (mut skip, mut take, mut sum) = (cut, kept, 0.0);
        for (value, &count) in sorted.iter().zip(counts) {
            let skipped = usize::from(count).min(skip);
            let taken = (usize::from(count) - skipped).min(take);
            skip -= skipped;
            take -= taken;
            sum += taken as f64 * value;
        }
        sum / kept as f64
    }
}

/// Resamples with replacement of samples of one size: the same for all of them, and on every machine.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    size: usize,
    /// How often every value is drawn, resample after resample.
    counts: Vec<u8>,
}

impl Bootstrap {
    /// 2000 resamples of `size` values; fewer of more than 10,000 values, 200 at least.
    pub fn new(size: usize) -> Self {
        let resamples = (DRAWS / size.max(1)).clamp(FEWEST_RESAMPLES, RESAMPLES);
        let mut counts = vec![0_u8; resamples * size];
        for (k, drawn) in counts.chunks_exact_mut(size.max(1)).enumerate() {
            let index = FIRST_STREAM + (size as u64) * RESAMPLES as u64 + k as u64;
            let mut stream = Stream::new(0, Purpose::Resampling, index);
            for _ in 0..size {
                let count = &mut drawn[stream.below(size as u32) as usize];
                *count = count.saturating_add(1);
            }
        }
        Self { size, counts }
    }

    /// The 95 % interval of the centre of sorted numbers, from the quantiles of the centres of resamples (the percentile
    /// bootstrap); `None` for fewer than two.
    ///
    /// # Panics
    /// When there are more or fewer numbers than resamples were made for.
    pub fn interval(&self, centre: Centre, sorted: &[f64]) -> Option<(f64, f64)> {
        assert_eq!(sorted.len(), self.size, "interval: a sample of another size");
        if self.size < 2 {
            return None;
        }
        let resamples = self.counts.chunks_exact(self.size);
        let mut centres: Vec<f64> = resamples.map(|counts| centre.of_counts(sorted, counts)).collect();
        centres.sort_unstable_by(f64::total_cmp);
        Some((quantile(&centres, 0.025), quantile(&centres, 0.975)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values by `scipy.stats.trim_mean(x, 0.25)`, `numpy.median` and `numpy.mean`.
    #[test]
    fn centres_are_those_of_other_software() {
        let sample = [-3.0, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 50.0, 51.0];
        for (count, iqm, median, mean) in [
            (1, -3.0, -3.0, -3.0),
            (2, -1.25, -1.25, -1.25),
            (3, -0.5, 0.5, -0.5),
            (4, 0.75, 0.75, 0.0),
            (5, 1.0, 1.0, 0.4),
            (7, 1.8, 1.5, 2.0),
            (8, 2.125, 1.75, 8.0),
            (9, 3.3, 2.0, 115.0 / 9.0),
        ] {
            let found = Centre::ALL.map(|centre| centre.of(&sample[..count]));
            for (found, expected) in found.into_iter().zip([iqm, median, mean]) {
                assert!((found - expected).abs() < 1e-14, "{count}: {found} is not {expected}");
            }
        }
        assert!(Centre::ALL.iter().all(|centre| centre.of(&[]).is_nan()));
    }

    #[test]
    fn a_resample_with_everything_once_is_the_sample() {
        let sample: Vec<f64> = (0..11).map(|k| f64::from(k * k)).collect();
        for centre in Centre::ALL {
            assert_eq!(centre.of_counts(&sample, &[1; 11]), centre.of(&sample));
        }
        // 0, 0, 16, 16, 16, 16, 16, 100, 100, 100, 100 without two at either end.
        let counts = [2, 0, 0, 0, 5, 0, 0, 0, 0, 0, 4];
        assert_eq!(Centre::Iqm.of_counts(&sample, &counts), (5.0 * 16.0 + 2.0 * 100.0) / 7.0);
        assert_eq!(Centre::Median.of_counts(&sample, &counts), 16.0);
    }

    /// Each resample has as many values as the sample, and intervals of normal samples are as wide as theory has them.
    #[test]
    fn intervals_are_as_wide_as_they_should_be() {
        let bootstrap = Bootstrap::new(400);
        assert!(
            bootstrap
                .counts
                .chunks(400)
                .all(|counts| counts.iter().map(|c| usize::from(*c)).sum::<usize>() == 400)
        );
        let mut stream = Stream::new(3, Purpose::User(9), 0);
        let mut sample: Vec<f64> = (0..400).map(|_| stream.normal()).collect();
        sample.sort_unstable_by(f64::total_cmp);
        // Standard errors of normal samples, times √n: 1 of the mean, √(π/2) of the median, 1.092 of the IQM.
        for (centre, error) in [(Centre::Mean, 1.0), (Centre::Iqm, 1.092), (Centre::Median, 1.2533)] {
            let (low, high) = bootstrap.interval(centre, &sample).unwrap();
            let expected = 2.0 * 1.96 * error / 20.0;
            assert!(low < centre.of(&sample) && centre.of(&sample) < high);
            assert!(((high - low) / expected - 1.0).abs() < 0.15, "{centre:?}: {} {expected}", high - low);
        }
    }

    #[test]
    fn intervals_are_the_same_every_time() {
        let sample: Vec<f64> = (0..10).map(f64::from).collect();
        let found = Bootstrap::new(10).interval(Centre::Iqm, &sample);
        assert_eq!(found, Bootstrap::new(10).interval(Centre::Iqm, &sample));
        // Means of six values; those that the first machine found.
        assert_eq!(found, Some((14.0 / 6.0, 41.0 / 6.0)));
        assert_eq!(Bootstrap::new(1).interval(Centre::Mean, &[1.0]), None);
        assert_eq!(Bootstrap::new(0).interval(Centre::Mean, &[]), None);
        assert_eq!(Bootstrap::new(5).interval(Centre::Median, &[2.0; 5]), Some((2.0, 2.0)));
        assert_eq!(Bootstrap::new(20_001).counts.len() / 20_001, 999);
    }
}
