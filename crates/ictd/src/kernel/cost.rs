//! What routes cost: a model of their time, so that the choice is the same on every machine, and of their memory.

/// Nanoseconds of one core for a weight between points of `dim` coordinates in double precision, computed once for both triangles.
fn weight(dim: usize) -> f64 {
    0.03 * (dim as f64 + 16.0)
}

/// Nanoseconds of one core for all weights between `states` states, in `layers` layers.
pub(crate) fn exact(states: usize, dim: usize, layers: usize) -> f64 {
    0.5 * (states as f64).powi(2) * layers as f64 * weight(dim)
}

/// What pivots may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub states: usize,
    pub dim: usize,
    pub layers: usize,
    /// Bytes.
    pub memory: f64,
}

impl Budget {
    /// The most pivots, chosen from so many points, that take no more time than exact layers and fit into memory.
    pub fn max_rank(&self, sample: usize) -> usize {
        let fits = |rank: usize| {
            self.time(rank, sample) <= exact(self.states, self.dim, self.layers)
                && self.bytes(rank, sample) <= self.memory
        };
        // Both grow with the rank.
        let (mut low, mut high) = (0, MAX_RANK + 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        low
    }

    /// Bytes of a thousand pivots, or of as many as are allowed.
    pub fn usual_bytes(&self) -> f64 {
        let sample = self.states.min(USUAL_SAMPLE);
        self.bytes(self.max_rank(sample).min(1000), sample)
    }

    /// Nanoseconds of one core: the factor of the sample, residuals of all states, then two products with k weights per state and layer.
    fn time(&self, rank: usize, sample: usize) -> f64 {
        let [n, k, sample] = [self.states, rank, sample].map(|x| x as f64);
        0.1 * sample * k * k + 0.02 * n * k * k + 2.0 * self.layers as f64 * n * k * weight(self.dim)
    }

    /// Bytes: points twice, a few numbers by state, the factor of the sample, three matrices of the pivots, panels of residuals.
    pub fn bytes(&self, rank: usize, sample: usize) -> f64 {
        let [n, k, d, sample] = [self.states, rank, self.dim, sample].map(|x| x as f64);
        // Not by the number of threads: the choice must not depend on it.
        8.0 * (n * (2.0 * d + 6.0) + sample * (k + d + 3.0) + 3.0 * k * k + PANELS * k)
    }
}

/// Points that pivots are chosen from, where there are many.
const USUAL_SAMPLE: usize = 8192;
/// Columns in the panels of all threads.
const PANELS: f64 = 16.0 * 256.0;
/// More pivots than these are no saving for any context that fits into memory.
const MAX_RANK: usize = 4096;
