//! `ictd certify`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ictd_lab::LabError;
use ictd_lab::files::{OutputDir, read_context};
use ictd_lab::studies::theory::certify::{self, Draw, LayerConfig};
use ictd_lab::studies::theory::{FamilyKind, TaskFamily};

use crate::{Common, Outcome, message, print_data, print_json, table};

/// Families of tasks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Kind {
    /// Boyan's chain, the paper's tasks
    Boyan,
    /// Random graph around a loop
    Loop,
    /// Every state reaches every state
    Dense,
    /// States drawn independently and uniformly
    Coin,
}

/// Which tasks.
#[derive(Debug, Default, Args)]
pub struct FamilyArguments {
    /// Family of tasks, with the sizes of `ictd task`, discount 0.9 and raw features at scale 1 unless told otherwise
    #[arg(long)]
    pub task: Option<Kind>,
    /// Number of states
    #[arg(long, allow_negative_numbers = true)]
    pub states: Option<usize>,
    /// Feature dimension
    #[arg(long, allow_negative_numbers = true)]
    pub features: Option<usize>,
    /// Discount
    #[arg(long, allow_negative_numbers = true)]
    pub gamma: Option<f64>,
    /// One feature per state instead of random ones
    #[arg(long)]
    pub one_hot: bool,
    /// Divide feature vectors by their length
    #[arg(long)]
    pub unit_norm: bool,
    /// Multiply scores: A = SCALE·I
    #[arg(long, value_name = "SCALE", allow_negative_numbers = true)]
    pub score_scale: Option<f64>,
}

impl FamilyArguments {
    /// The family asked for. What is not given is as for `ictd task` when a family is named, else as in `default`.
    pub fn family(&self, default: TaskFamily) -> TaskFamily {
        let kind = self.task.map(|task| match task {
            Kind::Boyan => FamilyKind::Boyan,
            Kind::Loop => FamilyKind::Loop,
            Kind::Dense => FamilyKind::Dense,
            Kind::Coin => FamilyKind::Coin,
        });
        let base = kind.map_or(default.clone(), |kind| TaskFamily::of_kind(kind, default.seed));
        TaskFamily {
            states: self.states.unwrap_or(base.states),
            features: self.features.unwrap_or(base.features),
            gamma: self.gamma.unwrap_or(base.gamma),
            one_hot: self.one_hot || base.one_hot,
            unit_norm: self.unit_norm,
            score_scale: self.score_scale.unwrap_or(base.score_scale),
            ..base
        }
    }

    /// Whether any option was given.
    pub fn is_given(&self) -> bool {
        self.task.is_some()
            || self.states.is_some()
            || self.features.is_some()
            || self.gamma.is_some()
            || self.one_hot
            || self.unit_norm
            || self.score_scale.is_some()
    }
}

/// Arguments of `ictd certify`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Context as JSON, as for `forward`; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["task", "tasks", "n", "states", "features", "one_hot", "score_scale", "index"])]
    input: Option<PathBuf>,
    #[command(flatten)]
    family: FamilyArguments,
    /// Which task of the seed's sequence [default: 0]
    #[arg(long, conflicts_with = "tasks", allow_negative_numbers = true)]
    index: Option<u64>,
    /// Count over the first N tasks instead of examining one
    #[arg(long, value_name = "N", conflicts_with = "n", allow_negative_numbers = true)]
    tasks: Option<u64>,
    /// Examine a sampled context of N transitions instead of the limit of long ones
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    n: Option<usize>,
    /// Kernel: softmax, relu, elu1, rbf, linear or tabular
    #[arg(long, default_value = "softmax")]
    kernel: String,
    /// Temperature of the scores
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    temperature: f64,
    /// Step size of every layer
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    step_size: f64,
    /// Depth whose error is reported
    #[arg(long, default_value_t = 15, allow_negative_numbers = true)]
    layers: usize,
    /// Absolute tolerance for the number of layers needed
    #[arg(long, default_value_t = 1e-3, allow_negative_numbers = true)]
    tolerance: f64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let config = LayerConfig {
        kernel: arguments.kernel.parse()?,
        temperature: arguments.temperature,
        step_size: arguments.step_size,
        num_layers: arguments.layers,
        tolerance: arguments.tolerance,
        draw: if arguments.common.out.is_some() { Draw::Yes } else { Draw::No },
    };
    let family = arguments.family.family(TaskFamily::paper(arguments.common.seed));
    if let Some(tasks) = arguments.tasks {
        let counts = certify::count(&family, tasks, &config)?;
        if let Some(out) = &arguments.common.out {
            OutputDir::create(out)?.json("counts", &counts)?;
        }
        if arguments.common.json {
            print_json(&counts)?;
            return Ok(Outcome::Success);
        }
        let row = |name: &str, count: u64| vec![name.to_owned(), format!("{count} of {tasks}")];
        let rows = [
            row("Assumption 5.1 holds", counts.assumption_holds),
            row("a layer contracts, norm_inf < 1", counts.norm_inf_below_one),
            row("spectral radius < 1", counts.spectral_radius_below_one),
            row("provably stable for a small step", counts.provably_stable),
            row("unstable: no step size converges", counts.unstable),
        ];
        print_data(&format!("{}\n\n{}", family.describe(), table::render(&["", "tasks"], &rows)))?;
        return Ok(Outcome::Success);
    }
    let report = match (&arguments.input, arguments.n) {
        (Some(path), _) => {
            let (gamma, unit_norm) = (arguments.family.gamma.unwrap_or(0.9), arguments.family.unit_norm);
            certify::context(&read_context(path)?, gamma, unit_norm, &config)?
        }
        (None, Some(n)) => certify::sampled(&family, arguments.index.unwrap_or(0), n, &config)?,
        (None, None) => certify::task(&family, arguments.index.unwrap_or(0), &config)?,
    };
    if let Some(out) = &arguments.common.out {
        report.write(&OutputDir::create(out)?)?;
        message(&format!("certificate and figure: {}", out.display()));
    }
    if arguments.common.json {
        print_json(&report)?
    } else {
        print_data(&report.text())?
    }
    // A refusal is a result: the certificate says what to do.
    Ok(Outcome::Success)
}
