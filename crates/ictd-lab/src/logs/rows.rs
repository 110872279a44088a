//! Rows that wait for the end of their episode.

/// Rows as lists of their columns, which take a third of the memory of a list of rows. Lists of columns that are not there are
/// empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    pub states: Vec<u32>,
    pub next: Vec<u32>,
    /// NaN where there is none.
    pub rewards: Vec<f64>,
    pub flags: Vec<u8>,
    pub times: Vec<f64>,
    /// Where they stand in the file.
    pub places: Vec<u64>,
    pub ids: Vec<u32>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Flags of the last row; none where there is no row.
    pub fn last_flags(&self) -> u8 {
        self.flags.last().copied().unwrap_or(0)
    }

    pub fn clear(&mut self) {
        let Self { states, next, rewards, flags, times, places, ids } = self;
        states.clear();
        next.clear();
        rewards.clear();
        flags.clear();
        times.clear();
        places.clear();
        ids.clear();
    }

    /// The rows of these numbers.
    pub fn chosen(&self, numbers: &[u32]) -> Self {
        fn pick<T: Copy>(list: &[T], numbers: &[u32]) -> Vec<T> {
            if list.is_empty() { Vec::new() } else { numbers.iter().map(|&k| list[k as usize]).collect() }
        }
        Self {
            states: pick(&self.states, numbers),
            next: pick(&self.next, numbers),
            rewards: pick(&self.rewards, numbers),
            flags: pick(&self.flags, numbers),
            times: pick(&self.times, numbers),
            places: pick(&self.places, numbers),
            ids: pick(&self.ids, numbers),
        }
    }

    /// Puts the rows in the order of time; those of one time stay in the order of the file.
    pub fn sort_by_time(&mut self) {
        if self.times.is_sorted() {
            return;
        }
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by(|&a, &b| self.times[a as usize].total_cmp(&self.times[b as usize]));
        *self = self.chosen(&order);
    }
}
