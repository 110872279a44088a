//! `ictd bound`.

use clap::Args;
use ictd::task::Family;
use ictd_lab::LabError;
use ictd_lab::studies::theory::theorem2::{self, BoundConfig};

use crate::tasks::TaskArguments;
use crate::{Common, Outcome, message};

/// Arguments of `ictd bound`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    tasks: TaskArguments,
    /// Which task of the seed's sequence [default: 0]
    #[arg(long, allow_negative_numbers = true)]
    index: Option<u64>,
    /// Context lengths, separated by commas; the threshold of the contraction lemma is added where it can be
    /// sampled [default: 1000,30000]
    #[arg(long, value_delimiter = ',', value_name = "N,N,…", allow_negative_numbers = true)]
    lengths: Option<Vec<usize>>,
    /// Contexts per length
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true)]
    contexts: u64,
    /// Confidence: statements hold with probability 1 - DELTA
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    delta: f64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let seed = arguments.common.seed;
    let mut settings = BoundConfig::defaults(seed, arguments.contexts);
    settings.iter_mut().for_each(|s| s.delta = arguments.delta);
    // Any choice of a task or of lengths is one setting; without one three are compared.
    if arguments.tasks.is_given() || arguments.index.is_some() || arguments.lengths.is_some() {
        settings = vec![BoundConfig {
            family: arguments.tasks.tasks(Family::certified(), seed)?,
            index: arguments.index.unwrap_or(0),
            lengths: arguments.lengths.unwrap_or_else(|| vec![1000, 30_000]),
            at_threshold: true,
            contexts: arguments.contexts,
            delta: arguments.delta,
        }];
    }
    settings.iter().try_for_each(BoundConfig::check)?;
    let mut reports = Vec::new();
    for (k, config) in settings.iter().enumerate() {
        message(&format!("{}: {} contexts per length", config.family.describe(), config.contexts));
        reports.push(theorem2::run(config)?.named(&format!("bound{}", k + 1)));
    }
    arguments.common.present(&reports, Some("out/bound"))
}
