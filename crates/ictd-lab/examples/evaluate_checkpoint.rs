//! A trained block evaluated on a context of one's own.

use ictd::context::{Context, End};
use ictd::pretrain::{PretrainConfig, Trainer};
use ictd::task::Family;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task = Family { feature_dim: 2, ..Family::paper() };
    let config = PretrainConfig { epochs: 200, task, ..PretrainConfig::paper() };
    let mut trainer = Trainer::<f32>::new(&config, 0)?;
    while !trainer.is_done() {
        trainer.epoch_unmeasured()?;
    }
    // From the state to a Transformer: block, kernel, depth and parameters are the run's.
    let transformer = trainer.into_state().transformer(&config)?;
    let states = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]];
    let context =
        Context::builder().episode(&states, &[1.0, 0.0, 1.0], End::Truncated).query(&[1.0, 1.0]).build()?;
    let values = transformer.values(&context)?;
    println!("value of the query after {} layers: {:.6}", transformer.num_layers(), values.output());
    Ok(())
}
