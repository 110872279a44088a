//! How many tasks of a family are in which regime.

use ictd::operator::StateOperator;
use ictd::theory::{Spectrum, Stability};
use serde::Serialize;

use super::{LayerConfig, check_states};
use crate::Progress;
use crate::error::{LabError, check_range};
use crate::memory::{self, DOUBLE};
use crate::report::{Report, Table};
use crate::studies::theory::{Tasks, on_tasks};

/// How many tasks of a family satisfy what.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Tasks examined.
    pub tasks: u64,
    /// Assumption 5.1.
    pub assumption_holds: u64,
    /// ‖J‖∞ < 1.
    pub norm_inf_below_one: u64,
    /// The spectral radius of J is below 1.
    pub spectral_radius_below_one: u64,
    /// Some eigenvalue of M - γP has a negative real part: no step size converges.
    pub unstable: u64,
    /// The form condition: some step size converges by proof.
    pub provably_stable: u64,
    /// The eigenvalues could not be found: part of no count that rests on them.
    pub undecided: u64,
    /// Layers that make the slowest error ten times smaller, ln 10/(-ln spectral radius): the median over the tasks with a
    /// spectral radius below 1.
    pub layers_per_tenfold_median: Option<f64>,
    /// The largest of them.
    pub layers_per_tenfold_worst: Option<f64>,
}

impl Report for Counts {
    fn text(&self, width: usize) -> String {
        let row = |name: &str, count: u64| vec![name.to_owned(), format!("{count} of {}", self.tasks)];
        let rows = [
            row("Assumption 5.1 holds", self.assumption_holds),
            row("a layer contracts, norm_inf < 1", self.norm_inf_below_one),
            row("spectral radius < 1", self.spectral_radius_below_one),
            row("provably stable for a small step", self.provably_stable),
            row("unstable: no step size converges", self.unstable),
            row("undecided: no eigenvalues found", self.undecided),
        ];
        Table::new(&["", "tasks"], rows).text(width)
    }

    fn json_name(&self) -> Option<&str> {
        Some("counts")
    }
}

/// Examines the first `tasks` tasks of a family, in the population.
pub fn count(
    family: &Tasks,
    tasks: u64,
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Counts, LabError> {
    check_states(family)?;
    check_range("tasks", tasks, 1..=1_000_000)?;
    let (m, d) = (family.num_states(), family.feature_dim());
    let thread = 0.65 * memory::task(m, d) + DOUBLE * (10 * m * m + 2 * d * d) as f64;
    memory::admit(32.0 * tasks as f64 + memory::threads(tasks as f64) * thread, "--states or --features")?;
    let (attention, step_size) = (config.attention()?, config.certificate.step_size);
    progress.begin("certify", "tasks", tasks)?;
    let flags = on_tasks(family, tasks, |_, task| {
        let operator = StateOperator::population(task, &attention)?;
        let stability = Stability::of(&operator)?;
        let spectrum = stability.spectrum.as_ref();
        let rate = spectrum.map(|spectrum| spectrum.spectral_radius(step_size));
        let flags = [
            stability.assumption,
            operator.jacobian_norm(step_size) < 1.0,
            rate.is_some_and(|rate| rate < 1.0),
            spectrum.is_some_and(Spectrum::is_unstable),
            stability.form_margin.is_some_and(|m| m > 0.0),
            spectrum.is_none(),
        ];
        progress.step(1)?;
        Ok((flags, rate))
    })?;
    let of = |k: usize| flags.iter().filter(|f| f.0[k]).count() as u64;
    let stable = flags.iter().filter_map(|f| f.1).filter(|rate| *rate < 1.0);
    let mut layers: Vec<f64> = stable.map(|rate| std::f64::consts::LN_10 / -rate.ln()).collect();
    layers.sort_by(f64::total_cmp);
    Ok(Counts {
        tasks,
        assumption_holds: of(0),
        norm_inf_below_one: of(1),
        spectral_radius_below_one: of(2),
        unstable: of(3),
        provably_stable: of(4),
        undecided: of(5),
        layers_per_tenfold_median: layers.get(layers.len() / 2).copied(),
        layers_per_tenfold_worst: layers.last().copied(),
    })
}
