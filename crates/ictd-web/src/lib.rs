//! The engine of the explorer: what the page in `page/` calls, compiled to WebAssembly.
//!
//! A thin shell over [`ictd_lab`], as the command line is. [`Engine::answer`] takes a request as JSON, `{"call": NAME, …}`,
//! and the bytes of a file where the call reads one, and gives `{"value": …}` or `{"error": "one line"}`. Whatever it is given, it
//! answers. The calls are listed at [`Engine`]; `abi` hands bytes over to a page and back.
//!
//! `cargo xtask explorer` builds the module and puts it into one HTML file together with the page.

mod abi;
mod calls;
mod engine;

pub use engine::Engine;
