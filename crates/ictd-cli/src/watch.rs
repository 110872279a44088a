//! Long work as a person sees it: a line that says how far it is, and its end on Ctrl-C or SIGTERM.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ictd_lab::Progress;
use ictd_lab::files::is_writing;

use crate::screen;

/// Work that is over by then says nothing.
const FIRST: Duration = Duration::from_secs(2);
/// Time between lines that replace one another on a terminal.
const ON_TERMINAL: Duration = Duration::from_secs(1);
/// Time between lines that stay, in a file for instance.
const ELSEWHERE: Duration = Duration::from_secs(10);
/// How often signals and clocks are looked at.
const TICK: Duration = Duration::from_millis(20);
/// Time that work has to come to an orderly end: the current item, a last checkpoint.
const GRACE: Duration = Duration::from_millis(800);
/// Time that a file has to get its name after that.
const FOR_FILES: Duration = Duration::from_millis(400);
/// The code of `timeout`: engines resubmit on it.
pub const STOPPED: u8 = 124;

/// Work of that name, watched from now on by a thread of its own until the process ends.
///
/// A signal asks for the end of the work, which studies look for between items. Where an item takes longer than a second,
/// as eigenvalues of thousands of states do, the process ends all the same: files appear whole or not at all, so nothing
/// half-written is left. A second signal does not wait.
pub fn watched(name: &str) -> Arc<Progress> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Without a handler a signal ends the process as usual.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, STOPPED.into(), stop.clone());
        let _ = signal_hook::flag::register(signal, stop.clone());
    }
    let progress = Arc::new(Progress::new(name, stop));
    let seen = progress.clone();
    // Where no thread can be made, work goes on unwatched.
    let _ = std::thread::Builder::new().spawn(move || watch(&seen));
    progress
}

fn watch(progress: &Progress) {
    let (start, terminal) = (Instant::now(), std::io::stderr().is_terminal());
    let mut next = FIRST;
    let mut stopped = None;
    loop {
        std::thread::sleep(TICK);
        if progress.is_stopped() && stopped.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            let since = Instant::now();
            while is_writing() && since.elapsed() < FOR_FILES {
                std::thread::sleep(Duration::from_millis(1));
            }
            progress.clean_up();
            screen::message("stopped");
            std::process::exit(STOPPED.into());
        }
        if stopped.is_none() && start.elapsed() >= next {
            next = start.elapsed() + if terminal { ON_TERMINAL } else { ELSEWHERE };
            screen::progress(&progress.standing().to_string(), terminal);
        }
    }
}
