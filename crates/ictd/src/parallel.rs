//! Work that threads share.
//!
//! Results come in the order of the work and not of time, so that nothing depends on the number of threads. What the pool of
//! threads is handed has one type whatever the work is: code that shares it out is compiled once and not for every caller.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// What `of` makes of 0, 1, … `count` − 1.
pub fn map<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let cells: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    each(count, &|i| {
        let made = of(i);
        *cells[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    });
    cells.into_iter().filter_map(|cell| cell.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// What `of` makes of 0, 1, … `count` − 1, or the first error in this order; work behind an error is left out as far as it has
/// not begun.
pub fn try_map<T: Send, E: Send>(
    count: usize,
    of: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    // Only work behind a failure is left out, never before it: the first failure is found whatever threads do.
    let failed = AtomicUsize::new(usize::MAX);
    let made = map(count, |i| {
        (i <= failed.load(Ordering::Relaxed)).then(|| {
            let made = of(i);
            if made.is_err() {
                failed.fetch_min(i, Ordering::Relaxed);
            }
            made
        })
    });
    made.into_iter().flatten().collect()
}

fn each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(work);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
    }

    #[test]
    fn results_come_in_order() {
        for threads in [1, 2, 7] {
            for count in [0, 1, 2, 1000] {
                let squares = with_threads(threads, || map(count, |i| i * i));
                assert_eq!(squares, (0..count).map(|i| i * i).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_first_error_in_order_is_the_one() {
        for threads in [1, 2, 7] {
            let found = with_threads(threads, || {
                try_map(1000, |i| {
                    // Later failures come earlier in time.
                    std::thread::sleep(std::time::Duration::from_micros(if i == 137 { 3000 } else { 10 }));
                    if i == 137 || i > 400 { Err(i) } else { Ok(i) }
                })
            });
            assert_eq!(found, Err(137));
        }
        assert_eq!(try_map(3, Ok::<usize, ()>), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn work_behind_an_error_is_left_out() {
        let begun = AtomicUsize::new(0);
        let failing = |i: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if i == 0 { Err(()) } else { Ok(()) }
        };
        assert_eq!(with_threads(1, || try_map(1000, failing)), Err(()));
        assert_eq!(begun.into_inner(), 1);
    }
}
