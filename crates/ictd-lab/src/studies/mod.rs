//! The experiments: one file, or folder, per figure or claim, with what is computed, the criterion, the claim and
//! the figure (Figure 7 is drawn by what verifies [`theorem1`]).
//!
//! To add a claim: write a file with a [`Study`] of a few lines, or a claim into an existing one, list it in
//! [`STUDIES`], or [`PREDECESSOR`] for that paper, and store its value and its verdicts over seeds with [`reproduce`].

mod attention;
pub mod branches;
pub mod circuit;
mod claim;
mod compute;
pub mod control;
pub mod evaluate;
pub mod fig1;
mod fig2;
mod fig3_5;
mod fig4;
mod fig6;
mod first_gradient;
pub mod forward;
pub mod mirror;
pub mod predecessor;
pub mod pretrain;
pub mod readings;
pub mod reproduce;
mod self_concentration;
mod setting;
mod softmax_vs_linear;
mod study;
pub mod task;
mod task_options;
mod tasks;
pub mod theorem1;
pub mod theory;
mod tsm_cost;

pub use claim::{Claim, SLACK_LIMIT, Scope, Verdict, verdict};
pub use predecessor::PREDECESSOR;
pub use study::{Paper, Plan, Section, Study};
pub use task_options::TaskOptions;
pub use tasks::{TaskChoice, Tasks};

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use ictd::kernel::{Attention, KernelName};
use ictd::parallel;
use ictd::statistics::MeanSem;
use ictd::transformer::{Transformer, TransformerConfig};

use crate::LabError;

/// What `of` makes of every item, in the order of the items, so that sums do not depend on the number of threads.
fn in_parallel<I: Copy + Sync, T: Send>(
    items: impl IntoIterator<Item = I>,
    of: impl Fn(I) -> Result<T, LabError> + Sync,
) -> Result<Vec<T>, LabError> {
    let items: Vec<I> = items.into_iter().collect();
    parallel::try_map(items.len(), |i| of(items[i]))
}

/// The mean of numbers; NaN of none.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// Mean and standard error of at least one sample; `of` says what samples are.
fn mean_sem(of: &str, samples: impl IntoIterator<Item = f64>) -> Result<MeanSem, LabError> {
    let samples: Vec<f64> = samples.into_iter().collect();
    MeanSem::of(&samples).ok_or_else(|| LabError::value(of, 0, "at least 1"))
}

/// The standard error of a mean; of a single sample none is known.
fn known_sem(of: &MeanSem) -> Option<f64> {
    (of.count > 1).then_some(of.sem)
}

/// The two numbers of [`mean_sem`] alone.
fn mean_and_sem(of: &str, samples: impl IntoIterator<Item = f64>) -> Result<(f64, f64), LabError> {
    mean_sem(of, samples).map(|found| (found.mean, found.sem))
}

/// Removes a file or a directory, if it is there.
pub(crate) fn remove(path: PathBuf) -> Result<(), LabError> {
    let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    match removed {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(LabError::Write { path, source }),
        _ => Ok(()),
    }
}

/// The smallest and the largest of numbers.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

/// The paper's attention: softmax at temperature 1, without mixing.
fn softmax() -> Result<Attention, LabError> {
    Ok(Attention::new(KernelName::Softmax.at(1.0)?, 0.0)?)
}

/// The Transformer at theta_*, temperature 1, without mixing.
fn theta_star(kernel: KernelName, num_layers: usize, gamma: f64) -> Result<Transformer, LabError> {
    let attention = Attention::new(kernel.at(1.0)?, 0.0)?;
    Ok(TransformerConfig::theta_star(attention, num_layers, gamma).check()?)
}

/// All studies of the paper, in its order.
pub const STUDIES: [Study; 22] = [
    theorem1::STUDY,
    tsm_cost::STUDY,
    fig1::STUDY,
    softmax_vs_linear::STUDY,
    fig2::STUDY,
    fig4::STUDY,
    theory::assumption::STUDY,
    theory::theorem2::STUDY,
    theory::rates::STUDY,
    theory::depth::STUDY,
    theory::theorem3::STUDY,
    theory::theorem3::inequality::STUDY,
    theory::lemmas::STUDY,
    fig3_5::LITERAL,
    fig3_5::SOURCE,
    fig3_5::STATIONARY,
    fig3_5::GAIN,
    self_concentration::STUDY,
    fig6::LITERAL,
    fig6::SOURCE,
    fig6::STATIONARY,
    compute::STUDY,
];
