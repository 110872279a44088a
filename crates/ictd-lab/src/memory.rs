//! What a command will need of memory: estimated from its sizes and refused before the work, never found out by an abort.
//!
//! An estimate counts what is allocated by the sizes that a user gives, and a base for everything else. `ICTD_MEMORY=1` makes
//! the binary say the estimate and the peak that the system saw; the example `memory` compares them over many sizes.

use std::sync::atomic::{AtomicU64, Ordering};

use ictd::pretrain::MEMORY_LIMIT;

use crate::LabError;

/// Bytes of a double.
pub const DOUBLE: f64 = 8.0;

/// The program, its threads and fonts.
const BASE: f64 = 12e6;

/// The largest estimate so far, in bytes.
static ESTIMATE: AtomicU64 = AtomicU64::new(0);

/// Refuses work that needs more than [`MEMORY_LIMIT`] bytes besides the program; `lower` names the sizes to lower.
pub fn admit(bytes: f64, lower: &str) -> Result<(), LabError> {
    ESTIMATE.fetch_max((BASE + bytes) as u64, Ordering::Relaxed);
    // Negated, so that NaN is refused.
    if !(bytes <= MEMORY_LIMIT) {
        let found = format!("about {:.1} GB for these sizes", bytes / 1e9);
        return Err(LabError::value(
            "memory",
            found,
            format!("at most {} GB: lower {lower}", MEMORY_LIMIT / 1e9),
        ));
    }
    Ok(())
}

/// Bytes that work may need besides the program.
pub fn limit() -> f64 {
    MEMORY_LIMIT
}

/// The largest memory that was estimated since the program started, in bytes; 0 when nothing was.
pub fn estimated() -> u64 {
    ESTIMATE.load(Ordering::Relaxed)
}

/// Threads that work at once on `jobs` jobs.
pub fn threads(jobs: f64) -> f64 {
    (rayon::current_num_threads() as f64).min(jobs)
}

/// A task while it is drawn: P, its running sums, the system of its values with a copy and its factors, features twice.
pub fn task(num_states: usize, feature_dim: usize) -> f64 {
    let [m, d] = [num_states, feature_dim].map(|x| x as f64);
    DOUBLE * m * (5.0 * m + 2.0 * d + 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_in_one_line() {
        assert!(admit(1e9, "--tasks").is_ok());
        for bytes in [9e9, f64::INFINITY, f64::NAN] {
            let error = admit(bytes, "--tasks").unwrap_err();
            assert!(
                error.exit_code() == 2 && error.to_string().ends_with("at most 8 GB: lower --tasks"),
                "{error}"
            );
        }
        assert!(admit(9.6e13, "--layers").unwrap_err().to_string().contains("about 96000.0 GB"));
    }
}
