//! Long work that is watched, and that may be told to stop.

/// Sees how far work is and may end it. Results do not depend on it. `()` does not look.
pub trait Watch: Sync {
    /// Work of so many units begins; `unit` names them.
    fn begin(&self, work: &str, unit: &'static str, units: u64) -> Result<(), Stopped>;

    /// So many more of them are done.
    fn advance(&self, units: u64) -> Result<(), Stopped>;
}

impl Watch for () {
    fn begin(&self, _: &str, _: &'static str, _: u64) -> Result<(), Stopped> {
        Ok(())
    }
    fn advance(&self, _: u64) -> Result<(), Stopped> {
        Ok(())
    }
}

/// Work was told to stop before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped before it was done")]
pub struct Stopped;
