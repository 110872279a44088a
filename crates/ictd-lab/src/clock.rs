//! How long work takes, where there is a clock.

use std::time::{Duration, Instant};

/// Whether this machine tells the time: a bare WebAssembly module cannot, and asking would end it.
const HAS_CLOCK: bool = !cfg!(all(target_family = "wasm", target_os = "unknown"));

/// A moment from which time is counted. Without a clock no time passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(Option<Instant>);

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        Self(HAS_CLOCK.then(Instant::now))
    }

    /// The time since.
    pub fn elapsed(self) -> Duration {
        self.0.map_or(Duration::ZERO, |moment| moment.elapsed())
    }
}
