//! The compiled half of `import ictd`: what the Python package in `python/ictd` calls.
//!
//! A thin shell over [`ictd`] and [`ictd_lab`], as the command line is: arrays become contexts, logs and tasks ([`arrays`]), results become
//! dictionaries that show themselves ([`report`]), errors become exceptions ([`errors`]), and whatever may take long runs without the
//! interpreter's lock, ends on Ctrl-C, with the interpreter too
//! ([`interpreter`]), and says how far it is ([`work`]). One file per topic besides; names that begin with an underscore
//! are private to the package.

mod arrays;
mod errors;
mod evaluate;
mod forward;
mod interpreter;
mod own_tasks;
mod report;
mod work;

mod context;
mod direct;
mod params;
mod tasks;
mod theory;
mod transformer;

mod studies;
mod sweeps;
mod training;

use pyo3::prelude::*;

/// `ictd._core`. Nothing in it needs the interpreter's lock to be safe.
#[pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::forward::forward;
    #[pymodule_export]
    use super::report::Report;

    // Estimators and logs.
    #[pymodule_export]
    use super::arrays::admit_entries;
    #[pymodule_export]
    use super::evaluate::{_evaluate, _fit, _read_log, Fitted};

    // The laboratory: contexts, Transformers, algorithms, tasks, theory.
    #[pymodule_export]
    use super::context::Context;
    #[pymodule_export]
    use super::direct::{
        algorithms, circuit, circuits, construct, construction_prompt, kernel_weights, kernels,
        least_squares, nonparametric_td, similarities, td,
    };
    #[pymodule_export]
    use super::tasks::{Family, Task, draw, families};
    #[pymodule_export]
    use super::theory::{bound, certificate, lemma_table, msve, neu, regime_map, verification};
    #[pymodule_export]
    use super::transformer::Transformer;

    // Training and studies.
    #[pymodule_export]
    use super::studies::{branch_map, improve_policies, mirror_block, reproduce_paper, search_readings};
    #[pymodule_export]
    use super::sweeps::{run_sweep, show_sweep, sweep_table};
    #[pymodule_export]
    use super::training::{Trained, list_runs, load_run, pretrain_seeds, print_config, read_checkpoint};

    /// The version of the library.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "a name of Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::arrays::begin(module.py())?;
        super::interpreter::watch_end(module)
    }
}
