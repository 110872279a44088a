//! Being in the interpreter, and its end.
//!
//! Up to Python 3.13 a thread that wants the interpreter's lock when the interpreter ends is unwound by it, which the frames of Rust below it
//! answer by aborting the process. So threads of this library are counted while they are in Python ([`Inside`]). Before the interpreter ends
//! ([`watch_end`]) those are asked to come out and waited for, and from then on none goes in. What does not come out in time, and is unwound
//! at last, stands still where Python was called ([`call`]): with the process it ends all the same.

use std::cell::RefCell;
use std::ffi::{c_int, c_long, c_ulong};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PySystemExit;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Time that threads have to come out of Python when the interpreter ends.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often is looked whether they have.
const TICK: Duration = Duration::from_millis(2);

/// A thread that is in Python, or waits for the interpreter's lock to be.
struct Entry {
    key: u64,
    /// As the interpreter names it.
    thread: c_ulong,
    /// What ends the work that it does there.
    work: Option<Arc<AtomicBool>>,
    /// Whether Python that this library called may be ended by an exception.
    may_be_asked: bool,
    is_asked: bool,
}

/// Who is in Python.
struct Threads {
    /// The thread that ends the interpreter, which alone may go in then.
    ending: Option<c_ulong>,
    inside: Vec<Entry>,
    /// What ends work that nobody waits for any more: it goes in no more either.
    given_up: Vec<Arc<AtomicBool>>,
}

impl Threads {
    const NONE: Self = Self { ending: None, inside: Vec::new(), given_up: Vec::new() };
}

/// One for a process, others for those that it forks: these have none of its threads, and what those held stays held there.
static THREADS: [Mutex<Threads>; 8] = [const { Mutex::new(Threads::NONE) }; 8];
/// How often forked is the process that this is.
static FORKS: AtomicUsize = AtomicUsize::new(0);
static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// What ends the work of the thread, if it is one of this library's.
    static WORK: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// It is held for moments alone, and never by one who waits for the interpreter's lock.
fn threads() -> MutexGuard<'static, Threads> {
    let own = FORKS.load(Ordering::Relaxed) % THREADS.len();
    THREADS[own].lock().unwrap_or_else(PoisonError::into_inner)
}

/// This thread as the interpreter names it.
#[allow(unsafe_code, reason = "the interpreter is asked")]
fn this_thread() -> c_ulong {
    // SAFETY: needs neither the lock nor an interpreter.
    unsafe { ffi::PyThread_get_thread_ident() }
}

/// Says what this thread works on from now on: what is ended by this.
pub fn works_on(stop: Arc<AtomicBool>) {
    WORK.set(Some(stop));
}

/// Ends the work of this thread, on all of its threads.
pub fn stop_work() {
    WORK.with_borrow(|work| work.iter().for_each(|stop| stop.store(true, Ordering::Relaxed)));
}

/// While it lives the thread counts as being in Python.
pub struct Inside(u64);

impl Inside {
    /// Goes in to call Python; nothing where the interpreter ends, or the work was given up.
    pub fn enter() -> Option<Self> {
        Self::with(true)
    }

    fn with(may_be_asked: bool) -> Option<Self> {
        let (key, thread) = (NEXT.fetch_add(1, Ordering::Relaxed), this_thread());
        let work = WORK.with_borrow(Clone::clone);
        let mut threads = threads();
        let is_given_up =
            |stop: &Arc<AtomicBool>| threads.given_up.iter().any(|work| Arc::ptr_eq(work, stop));
        if threads.ending.is_some_and(|ending| ending != thread) || work.as_ref().is_some_and(is_given_up) {
            return None;
        }
        threads.inside.push(Entry { key, thread, work, may_be_asked, is_asked: false });
        Some(Self(key))
    }

    /// Whether it was asked to come out: what Python raises then is no failure of its own.
    pub fn is_asked(&self) -> bool {
        threads().inside.iter().any(|entry| entry.key == self.0 && entry.is_asked)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        threads().inside.retain(|entry| entry.key != self.0);
    }
}

/// What a thread raises that may not be in Python any more: at its end Python passes over it in silence.
pub fn ending() -> PyErr {
    PySystemExit::new_err(())
}

/// Stands still until the process ends.
fn stand_still() -> ! {
    loop {
        std::thread::park();
    }
}

/// Does it without the interpreter's lock. Comes back to it unless the interpreter has ended meanwhile.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let (done, inside) = py.detach(|| {
        let done = work();
        (done, Inside::with(false).unwrap_or_else(|| stand_still()))
    });
    drop(inside);
    done
}

/// What a thread of this library's does in Python; nothing where the interpreter ends, or the work was given up.
pub fn attached<T>(work: impl FnOnce(Python<'_>, &Inside) -> T) -> Option<T> {
    let inside = Inside::enter()?;
    let _state = State::ensure();
    // It may have ended while this thread waited.
    let again = Inside::enter()?;
    drop(again);
    Some(Python::attach(|py| work(py, &inside)))
}

/// Where a thread that the interpreter unwinds stands still. One that comes back forgets it.
struct Unwound;

impl Drop for Unwound {
    fn drop(&mut self) {
        stand_still();
    }
}

/// Calls a function of C's that may unwind, though PyO3 declares that it does not.
///
/// What the compiler knows of the declaration it must not know of the call: it would leave out what stands still.
macro_rules! unwinding {
    ($function:path as fn($($kind:ty),*) -> $result:ty, $($argument:expr),*) => {{
        let known: unsafe extern "C" fn($($kind),*) -> $result = $function;
        // SAFETY: the two kinds of functions are called in the same way.
        let function = unsafe {
            std::mem::transmute::<unsafe extern "C" fn($($kind),*) -> $result, unsafe extern "C-unwind" fn($($kind),*) -> $result>(known)
        };
        let unwound = Unwound;
        // SAFETY: as the caller of this macro says.
        let found = unsafe { black_box(function)($($argument),*) };
        std::mem::forget(unwound);
        found
    }};
}

/// The interpreter's lock.
struct State(ffi::PyGILState_STATE);

impl State {
    #[allow(unsafe_code, reason = "PyO3's own way in aborts where the interpreter ends meanwhile")]
    fn ensure() -> Self {
        Self(unwinding!(ffi::PyGILState_Ensure as fn() -> ffi::PyGILState_STATE,))
    }
}

impl Drop for State {
    #[allow(unsafe_code, reason = "as above")]
    fn drop(&mut self) {
        // SAFETY: what `ensure` got, on its thread.
        unsafe { ffi::PyGILState_Release(self.0) }
    }
}

/// Calls Python that may take long or give up the lock.
#[allow(unsafe_code, reason = "PyO3's own call aborts where the interpreter ends meanwhile")]
pub fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    type Object = *mut ffi::PyObject;
    let arguments = arguments.into_pyobject(function.py()).map_err(Into::into)?;
    let keywords = keywords.map_or(std::ptr::null_mut(), |keywords| keywords.as_ptr());
    // Objects that live until it has come back, and a thread that has the lock.
    let found = unwinding!(
        ffi::PyObject_Call as fn(Object, Object, Object) -> Object,
        function.as_ptr(),
        arguments.as_ptr(),
        keywords
    );
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), found) }
}

/// Asks threads in Python to come out, which they do before the next line of Python: those that are chosen.
#[allow(unsafe_code, reason = "PyO3 has no name for it")]
fn ask(py: Python<'_>, is_chosen: impl Fn(&Entry) -> bool) {
    let kind = py.get_type::<PySystemExit>();
    for entry in threads().inside.iter_mut().filter(|entry| entry.may_be_asked && is_chosen(entry)) {
        entry.is_asked = true;
        // SAFETY: with the lock, and a class that lives on; a thread that is not there is passed over.
        let _: c_int = unsafe { ffi::PyThreadState_SetAsyncExc(entry.thread as c_long, kind.as_ptr()) };
    }
}

/// Asks the threads that do this work, which nobody waits for any more, to come out of Python and to stay out.
pub fn give_up(py: Python<'_>, stop: &Arc<AtomicBool>) {
    let mut found = threads();
    let given_up = &mut found.given_up;
    // Those that have come to their end are forgotten.
    given_up.retain(|work| Arc::strong_count(work) > 1);
    given_up.push(stop.clone());
    drop(found);
    ask(py, |entry| entry.work.as_ref().is_some_and(|work| Arc::ptr_eq(work, stop)));
}

/// What is done before the interpreter ends.
#[pyfunction]
fn end(py: Python<'_>) {
    let own = this_thread();
    threads().ending = Some(own);
    ask(py, |entry| entry.thread != own);
    py.detach(|| {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE && threads().inside.iter().any(|entry| entry.thread != own) {
            std::thread::sleep(TICK);
        }
    });
}

/// What is done in a process that was forked.
#[pyfunction]
fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    *threads() = Threads::NONE;
}

/// Has the interpreter say when it ends, and when it forks.
pub fn watch_end(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(end, module)?,))?;
    // Windows has no forks.
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        let keywords = PyDict::new(py);
        keywords.set_item("after_in_child", wrap_pyfunction!(forked, module)?)?;
        register.call((), Some(&keywords))?;
    }
    Ok(())
}
