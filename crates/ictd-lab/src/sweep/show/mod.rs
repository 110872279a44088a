//! Looking at a sweep, finished or not: what its runs ended in, setting by setting.
//!
//! [`Runs`] are the rows of the table as columns, from the journal as long as there is no table. An [`Overview`] of them is a
//! report: a table by setting, a map over two of the keys that vary, curves, and a [`page`](Overview::page) in which all of that can be
//! chosen anew.

mod curves;
mod dots;
mod drawing;
mod estimate;
mod export;
mod overview;
mod page;
mod runs;
mod view;
mod watch;

pub use estimate::{Estimate, Statistic};
pub use export::tensorboard;
pub use overview::Overview;
pub use page::PAGE;
pub use runs::Runs;
pub use view::{Asked, POOLED};
pub use watch::watch;
