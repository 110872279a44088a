//! Tasks that a program draws by seed and number.

use std::fmt::{Debug, Formatter};

use super::{FiniteTask, TaskError, TaskSource};
use crate::random::{EVALUATION_STREAMS, Purpose, Stream};

/// What draws the task of a seed and a number.
type Draw = dyn Fn(u64, u64) -> Result<FiniteTask, TaskError> + Send + Sync;

/// Tasks that a program draws on its own, by a seed and a number: it need not know [`Stream`]s, and whoever draws the same task
/// for the same two numbers makes the same training on every machine.
///
/// Training of a seed asks for the tasks 0, 1, … of that seed, one per epoch, and measures itself on those from
/// [`MEASURING`](Self::MEASURING) on.
///
/// ```
/// use ictd::random::{Purpose, Stream};
/// use ictd::task::{Drawn, Family, Kind, TaskSource};
/// let family = Family::of(Kind::Boyan);
/// let own = family.clone();
/// let drawn = Drawn::new("mine", move |seed, index| own.draw(&mut Stream::new(seed, Purpose::Task, index)))?;
/// assert_eq!((drawn.num_states(), drawn.feature_dim(), drawn.gamma()), (64, 4, 0.9));
/// let stream = || Stream::new(3, Purpose::Task, 7);
/// assert_eq!(drawn.draw(&mut stream())?, family.draw(&mut stream())?);
/// # Ok::<(), ictd::task::TaskError>(())
/// ```
pub struct Drawn {
    name: String,
    first: FiniteTask,
    draw: Box<Draw>,
}

impl Drawn {
    /// Number of the first task that measures training instead of being trained on.
    pub const MEASURING: u64 = 1 << 32;

    /// Tasks under a name. Their sizes and discount are those of task 0 of seed 0; later ones may have more or fewer states.
    pub fn new(
        name: &str,
        draw: impl Fn(u64, u64) -> Result<FiniteTask, TaskError> + Send + Sync + 'static,
    ) -> Result<Self, TaskError> {
        let first = draw(0, 0)?;
        Ok(Self { name: name.to_owned(), first, draw: Box::new(draw) })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Task 0 of seed 0.
    pub fn first(&self) -> &FiniteTask {
        &self.first
    }
}

impl Debug for Drawn {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drawn").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TaskSource for Drawn {
    fn describe(&self) -> String {
        let (m, d, gamma) = (self.num_states(), self.feature_dim(), self.gamma());
        format!("{}, {m} states, {d} features, γ = {gamma}", self.name)
    }

    fn num_states(&self) -> usize {
        self.first.num_states()
    }

    fn feature_dim(&self) -> usize {
        self.first.feature_dim()
    }

    fn gamma(&self) -> f64 {
        self.first.gamma()
    }

    /// The task whose numbers the stream would be, whatever was drawn from it before.
    fn draw(&self, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
        let (seed, purpose, index) = stream.address();
        let number = match purpose {
            Purpose::Evaluation => Self::MEASURING + index / EVALUATION_STREAMS,
            _ => index,
        };
        let task = (self.draw)(seed, number)?;
        let (d, gamma) = (task.feature_dim(), task.gamma());
        if (d, gamma) != (self.feature_dim(), self.gamma()) {
            return Err(TaskError::Own(format!(
                "task {number} of seed {seed} has {d} features and gamma {gamma}, expected {} and {} as task 0 of seed 0",
                self.feature_dim(),
                self.gamma()
            )));
        }
        Ok(task)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::pretrain::{PretrainConfig, Trainer, measure};
    use crate::task::Family;

    /// Trained on the tasks that a family would draw, parameters are those of the family to the last bit.
    #[test]
    fn training_asks_for_one_task_per_epoch_and_measures_on_others() {
        let config = PretrainConfig { epochs: 3, batch: 8, batches: 2, ..PretrainConfig::paper() };
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (family, seen) = (config.task.clone(), asked.clone());
        let drawn = Drawn::new("own", move |seed, index| {
            seen.lock().unwrap().push((seed, index));
            family.draw(&mut Stream::new(seed, Purpose::Task, index))
        });
        let own = config.on_tasks("own", Arc::new(drawn.unwrap()));
        let mut trainers = [&config, &own].map(|config| Trainer::<f32>::new(config, 5).unwrap());
        for trainer in &mut trainers {
            (0..3).for_each(|_| trainer.epoch().unwrap());
        }
        let [family, drawn] = trainers.map(Trainer::into_state);
        assert_eq!(family.params, drawn.params);
        measure::<f32>(&own, 5, &drawn.params, 2).unwrap();
        let measured = |epoch| (5, Drawn::MEASURING + epoch);
        let trained = (0..3).flat_map(|epoch| [(5, epoch), measured(epoch)]);
        let expected: Vec<_> =
            [(0, 0)].into_iter().chain(trained).chain([measured(3), measured(4)]).collect();
        assert_eq!(*asked.lock().unwrap(), expected);
    }

    #[test]
    fn every_task_has_the_features_and_the_discount_of_the_first() {
        let changing = |seed: u64, index: u64| {
            let family = Family { gamma: if index == 3 { 0.5 } else { 0.9 }, ..Family::paper() };
            family.draw(&mut Stream::new(seed, Purpose::Task, index))
        };
        let drawn = Drawn::new("own", changing).unwrap();
        assert!(drawn.draw(&mut Stream::new(1, Purpose::Task, 2)).is_ok());
        let error = drawn.draw(&mut Stream::new(1, Purpose::Task, 3)).unwrap_err();
        assert!(error.to_string().starts_with("task 3 of seed 1 has 4 features and gamma 0.5"), "{error}");
    }
}
