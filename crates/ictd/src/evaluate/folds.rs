//! Episodes that are held out in turn.

use super::log::Log;
use super::tune::TuneError;
use crate::random::{Purpose, Stream};

/// Several partitions of the blocks of a log into folds.
#[derive(Clone, Debug, PartialEq)]
pub struct Folds {
    /// By partition, by block.
    fold_of: Vec<Vec<usize>>,
    pub(super) num_folds: usize,
}

impl Folds {
    /// `repeats` random partitions into `num_folds` folds of as equal numbers of blocks as can be; as many folds as blocks
    /// where there are fewer blocks.
    pub fn new(log: &Log, num_folds: usize, repeats: usize, seed: u64) -> Result<Self, TuneError> {
        let num_blocks = log.num_blocks();
        if num_blocks < 2 {
            return Err(TuneError::TooFewBlocks { found: num_blocks });
        }
        let num_folds = num_folds.clamp(2, num_blocks);
        let partition = |repeat: usize| {
            let mut stream = Stream::new(seed, Purpose::Resampling, 1 + repeat as u64);
            let mut folds: Vec<usize> = (0..num_blocks).map(|block| block % num_folds).collect();
            for k in (1..num_blocks).rev() {
                folds.swap(k, stream.below(k as u32 + 1) as usize);
            }
            folds
        };
        Ok(Self { fold_of: (0..repeats.max(1)).map(partition).collect(), num_folds })
    }

    /// For every partition and fold: the weights of blocks that train, and of those that are held out.
    pub(super) fn weights(&self) -> Vec<(Vec<f64>, Vec<f64>)> {
        self.fold_of.iter().flat_map(|fold_of| self.of(fold_of)).collect()
    }

    /// The same of the first partition alone.
    pub(super) fn first(&self) -> Vec<(Vec<f64>, Vec<f64>)> {
        self.of(&self.fold_of[0])
    }

    fn of(&self, fold_of: &[usize]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let weights = |fold: usize| {
            let held_out: Vec<f64> = fold_of.iter().map(|f| f64::from(u8::from(*f == fold))).collect();
            (held_out.iter().map(|w| 1.0 - w).collect(), held_out)
        };
        (0..self.num_folds).map(weights).collect()
    }
}
