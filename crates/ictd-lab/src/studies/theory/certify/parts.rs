//! Contexts by how many states they have: examined as a whole, with changes tried on a part, or as that part alone.

use ictd::context::{Context, ContextStatistics};
use ictd::kernel::Attention;

use super::subsample::subsample;
use super::{
    LayerConfig, MAX_STATES, Report, SUBSAMPLED_STATES, Subsample, admit, begin, context_bytes, report, whole,
};
use crate::error::check_range;
use crate::{LabError, Progress};

/// Largest number of distinct states that changes are tried on: each costs an eigenvalue problem, and together they take minutes beyond.
pub(super) const TRIED_STATES: usize = 1000;

/// What is examined.
pub(super) struct Subject<'a> {
    pub name: String,
    pub context: Option<&'a Context>,
    pub subsample: Option<Subsample>,
    /// A report on a part, with the changes that were tried there, where they are not to be tried here.
    pub tried: Option<Box<Report>>,
}

/// How it is examined.
#[derive(Clone, Copy)]
pub(super) struct Examination<'a> {
    pub attention: &'a Attention,
    pub gamma: f64,
    pub unit_norm: bool,
    pub config: &'a LayerConfig,
    pub progress: &'a Progress,
}

impl Examination<'_> {
    /// The certificate of a context. Where it, or the process that it comes from, has too many states, that of a part of it; where
    /// the context itself has, and weights can be computed as they are needed, that of the whole. Changes are tried on a part well before.
    pub fn context(self, name: String, context: &Context, known_states: usize) -> Result<Report, LabError> {
        let statistics = ContextStatistics::per_state(context);
        let (states, of) = (statistics.num_groups(), statistics.num_groups().max(known_states));
        if self.config.trained.is_some() {
            check_range("distinct states", of, 1..=TRIED_STATES)?;
        }
        if of <= MAX_STATES && states <= TRIED_STATES {
            let subject = Subject { name, context: Some(context), subsample: None, tried: None };
            return self.dense(subject, statistics);
        }
        if of <= MAX_STATES {
            let tried = Some(Box::new(self.part(&name, context, &statistics, of)?));
            return self.dense(Subject { name, context: Some(context), subsample: None, tried }, statistics);
        }
        let is_whole = known_states <= states && whole::is_possible(&statistics, self.config.kernel);
        if is_whole {
            whole::admit(&statistics, context_bytes(context.num_columns(), context.feature_dim()))?;
        }
        let part = self.part(&name, context, &statistics, of)?;
        if !is_whole {
            return Ok(part);
        }
        let statistics = if self.unit_norm { unit_features(&statistics)? } else { statistics };
        whole::report(name, context, statistics, self, part)
    }

    /// The report on a part of a context.
    pub fn part(
        self,
        subject: &str,
        context: &Context,
        statistics: &ContextStatistics,
        of: usize,
    ) -> Result<Report, LabError> {
        let part = subsample(context, statistics, SUBSAMPLED_STATES, self.config.seed)?;
        let of_part = ContextStatistics::per_state(&part);
        let name = format!("{subject}, of which {} are examined", part.num_transitions());
        let subsample = Some(Subsample { states: of_part.num_groups(), of });
        self.dense(Subject { name, context: Some(&part), subsample, tried: None }, of_part)
    }

    /// The certificate of as many states as matrices are formed for.
    pub fn dense(self, subject: Subject<'_>, mut statistics: ContextStatistics) -> Result<Report, LabError> {
        let Self { attention, gamma, unit_norm, config, progress } = self;
        let (columns, d) = (subject.context.map_or(0, Context::num_columns), statistics.feature_dim());
        admit(statistics.num_groups(), d, context_bytes(columns, d), config.draw)?;
        if unit_norm {
            statistics = unit_features(&statistics)?;
        }
        begin(progress)?;
        let (operator, trained) = config.operator(statistics, attention, gamma)?;
        report(subject, (&operator, trained), config, progress)
    }
}

/// Statistics with feature vectors of length 1.
pub(super) fn unit_features(statistics: &ContextStatistics) -> Result<ContextStatistics, LabError> {
    statistics.with_unit_features().ok_or_else(|| {
        LabError::refused("unit-norm", "a feature vector is 0, expected a length to divide by")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ictd::context::End;
    use ictd::evaluate::Level;
    use ictd::kernel::KernelName;

    /// The verdict is about all states, what to change about some.
    #[test]
    fn changes_are_tried_on_a_part_of_many_states() {
        let context = (0..10).fold(Context::builder(), |builder, episode| {
            let rows: Vec<[f64; 1]> = (0..=102).map(|k| [f64::from(1000 * episode + k)]).collect();
            builder.episode(&rows, &[1.0; 102], End::Terminated)
        });
        let context = context.build().unwrap();
        let config = LayerConfig { kernel: KernelName::Tabular, ..LayerConfig::default() };
        let found = super::super::context(&context, 0.9, false, &config, &Progress::default()).unwrap();
        assert_eq!((found.judgement, found.subsample), (Level::Trust, None));
        let examined = found.examined.unwrap();
        assert_eq!(examined.states, 1020);
        assert_eq!(examined.suggestions_from, Some(Subsample { states: 408, of: 1020 }));
        assert!(found.suggestions_note.ends_with("suggestions were tried on 408 of 1020 states"));
    }
}
