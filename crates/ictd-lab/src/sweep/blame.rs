//! Which part of a plan a mistake in a key or a value is in.

use ictd::pretrain::SimdLevel;

use super::plan::Plan;
use super::setting::Setting;
use crate::LabError;

/// A part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What every setting starts from.
    Base,
    /// A change of every setting, by its place among them.
    Set(usize),
    /// A choice of an axis.
    Choice {
        /// The place of the axis.
        axis: usize,
        /// The place of the choice.
        choice: usize,
    },
}

/// Makes a setting with every choice, the first ones of other axes beside it: what is wrong in one of them by itself is found
/// with its place, before all combinations are made.
pub fn tried(plan: &Plan) -> Result<(), (Part, LabError)> {
    let varied = plan.varied();
    let setting = |number: usize| Setting::of(plan, number, &varied, SimdLevel::Best);
    setting(0).map_err(|error| (first_wrong(plan), error))?;
    let mut stride = plan.num_settings();
    for (axis, own) in plan.axes.iter().enumerate() {
        stride /= own.choices.len();
        for choice in 1..own.choices.len() {
            setting(choice * stride).map_err(|error| (Part::Choice { axis, choice }, error))?;
        }
    }
    Ok(())
}

/// The part with which the first setting becomes one that cannot be.
fn first_wrong(plan: &Plan) -> Part {
    let fails = |changes: usize, axes: usize| {
        let (set, axes) = (plan.set[..changes].to_vec(), plan.axes[..axes].to_vec());
        Setting::of(&Plan { set, axes, ..plan.clone() }, 0, &[], SimdLevel::Best).is_err()
    };
    let (changes, axes) = (plan.set.len(), plan.axes.len());
    if fails(0, 0) {
        return Part::Base;
    }
    if let Some(number) = (1..=changes).find(|&count| fails(count, 0)) {
        return Part::Set(number - 1);
    }
    let axis = (1..=axes).find(|&count| fails(changes, count));
    axis.map_or(Part::Base, |count| Part::Choice { axis: count - 1, choice: 0 })
}
