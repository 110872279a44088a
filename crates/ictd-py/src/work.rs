//! Long work: without the interpreter's lock, on as many threads as asked for, ended by Ctrl-C, and telling how far it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ictd_lab::{LabError, Progress};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{input_type, no_thread, of_lab, panicked};
use crate::interpreter::{Inside, call, detached, ending, give_up, works_on};

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(20);
/// Time between calls of a callback.
const BETWEEN_CALLS: Duration = Duration::from_millis(200);
/// Time that work has to come to an orderly end after Ctrl-C. After it the work goes on by itself until it next looks.
const GRACE: Duration = Duration::from_millis(600);

/// What a caller says about how work is done.
#[derive(Default)]
pub struct Manner<'py> {
    /// Threads; one per core where it is not said.
    pub threads: Option<usize>,
    /// Told how far work is, as keywords: `name`, `done`, `total`, `unit`, `seconds`. What it raises ends the work.
    pub callback: Option<Bound<'py, PyAny>>,
}

/// What came within a tick. The receiver is borrowed for writing, so that one thread alone has it.
fn waited<T>(receive: &mut Receiver<T>) -> Result<T, RecvTimeoutError> {
    receive.recv_timeout(TICK)
}

impl<'py> Manner<'py> {
    /// With so many threads, and a callback or none.
    pub fn new(threads: Option<usize>, callback: Option<Bound<'py, PyAny>>) -> Self {
        Self { threads, callback }
    }

    /// Refuses a number of threads also where none are started, and what is no callback also where none is called.
    pub fn check(&self) -> PyResult<()> {
        if let Some(callback) = self.callback.as_ref().filter(|callback| !callback.is_callable()) {
            let kind = callback.get_type().name()?;
            return Err(input_type(format!("callback is of type {kind}, expected a function")));
        }
        self.threads
            .map_or(Ok(()), |threads| ictd_lab::error::check_range("threads", threads, 1..=1024))
            .map_err(of_lab)
    }

    /// Does little work where it is asked for, as a process that forked has no other threads, and more as [`run`](Self::run) does.
    pub fn run_sized<T: Send + 'static>(
        &self,
        py: Python<'py>,
        name: &str,
        is_small: bool,
        work: impl FnOnce(&Arc<Progress>) -> Result<T, LabError> + Send + 'static,
    ) -> PyResult<T> {
        if !is_small {
            return self.run(py, name, work);
        }
        self.check()?;
        detached(py, || work(&Arc::default())).map_err(of_lab)
    }

    /// Does it, on threads of its own: a process that forks has none of its parent's.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'py>,
        name: &str,
        work: impl FnOnce(&Arc<Progress>) -> Result<T, LabError> + Send + 'static,
    ) -> PyResult<T> {
        self.check()?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or(0));
        let stop = Arc::new(AtomicBool::new(false));
        let own = stop.clone();
        let pool = pool.start_handler(move |_| works_on(own.clone())).build().map_err(no_thread)?;
        let progress = Arc::new(Progress::new(name, stop.clone()));
        let (send, mut receive) = channel();
        let seen = progress.clone();
        let thread = std::thread::Builder::new().spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&seen))));
            // Nobody listens any more where work was given up.
            let _ = send.send(done);
        });
        thread.map_err(no_thread)?;
        let mut failure: Option<(PyErr, Instant)> = None;
        let mut called = Instant::now();
        loop {
            match detached(py, || waited(&mut receive)) {
                Ok(Ok(done)) => return failure.map_or_else(|| done.map_err(of_lab), |(error, _)| Err(error)),
                Ok(Err(payload)) => return Err(panicked(payload)),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(crate::errors::internal("work ended without a result"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            match &failure {
                Some((_, since)) if since.elapsed() < GRACE => continue,
                None => {}
                Some(_) => {
                    // A function of Python's that does not come back would have the interpreter's lock as often as its callers.
                    give_up(py, &stop);
                    return Err(failure.map_or_else(|| of_lab(LabError::Stopped), |(error, _)| error));
                }
            }
            let mut told = py.check_signals();
            if told.is_ok() && called.elapsed() >= BETWEEN_CALLS {
                called = Instant::now();
                told = self.tell(py, &progress);
            }
            if let Err(error) = told {
                stop.store(true, Ordering::Relaxed);
                failure = Some((error, Instant::now()));
            }
        }
    }

    fn tell(&self, py: Python<'py>, progress: &Progress) -> PyResult<()> {
        let Some(callback) = &self.callback else { return Ok(()) };
        let standing = progress.standing();
        let said = PyDict::new(py);
        said.set_item("name", standing.name)?;
        said.set_item("done", standing.done)?;
        said.set_item("total", standing.total)?;
        said.set_item("unit", standing.unit)?;
        said.set_item("seconds", standing.elapsed.as_secs_f64())?;
        let _inside = Inside::enter().ok_or_else(ending)?;
        call(callback, (), Some(&said)).map(drop)
    }
}
