//! The algorithms that layers are steps of, without matrices of tokens.

use super::{Algorithm, Construction};
use crate::matrix::Matrix;
use crate::td::{AverageRewardTd, Estimator, LambdaTd, MonteCarloRegression, ResidualGradientTd};

impl Construction {
    /// The algorithm that layers are steps of, written directly: its iteration l gives the query the value of layer l.
    pub fn direct(&self) -> Box<dyn Estimator> {
        let step_sizes: Vec<f64> = (0..self.num_layers()).map(|layer| self.step_size(layer)).collect();
        let preconditioners: Vec<Matrix> = match self.config.preconditioners.as_slice() {
            [all] => vec![all.clone(); self.num_layers()],
            each => each.to_vec(),
        };
        let (gamma, lambda) = (self.config.gamma, self.config.lambda);
        match self.config.algorithm {
            // SARSA is TD on pairs of states and actions.
            Algorithm::Td | Algorithm::TdLambda | Algorithm::Sarsa | Algorithm::ChainOfThought => {
                Box::new(LambdaTd { lambda, gamma, step_sizes, preconditioners })
            }
            Algorithm::ResidualGradient => {
                Box::new(ResidualGradientTd { gamma, step_sizes, preconditioners })
            }
            Algorithm::AverageReward => Box::new(AverageRewardTd { step_sizes, preconditioners }),
            Algorithm::MonteCarlo => Box::new(MonteCarloRegression { gamma, step_sizes, preconditioners }),
        }
    }
}
