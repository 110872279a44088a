//! Optimisers in the precision of the parameters.

use super::config::{Optimizer, OptimizerName};
use super::lanes::Element;

/// The moments of Adam; unused by SGD.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments<E> {
    /// Running mean of gradients.
    pub first: Vec<E>,
    /// Running mean of squared gradients.
    pub second: Vec<E>,
}

impl<E: Element> Moments<E> {
    /// Zero moments of `len` parameters.
    pub fn new(len: usize) -> Self {
        Self { first: vec![E::default(); len], second: vec![E::default(); len] }
    }
}

/// Applies one update to the parameters with indices `trained`. `gradient` is that of the loss, `step` counts
/// from 0.
///
/// Arithmetic is in double precision and rounded to the parameters' when stored.
pub(crate) fn update<E: Element>(
    optimizer: &Optimizer,
    step: u64,
    trained: &[usize],
    gradient: &[f64],
    moments: &mut Moments<E>,
    params: &mut [E],
) {
    let lr = optimizer.lr;
    match optimizer.name {
        // The loss is a mean of squares: half its gradient is the mean of δ ∇v.
        OptimizerName::Sgd => {
            for &k in trained {
                params[k] = E::of(params[k].get() - 0.5 * lr * gradient[k]);
            }
        }
        OptimizerName::Adam => {
            let (b1, b2) = (optimizer.beta1, optimizer.beta2);
            let t = (step + 1) as f64;
            let (correct1, correct2) = (1.0 - b1.powf(t), 1.0 - b2.powf(t));
            for &k in trained {
                let g = gradient[k];
                let first = b1 * moments.first[k].get() + (1.0 - b1) * g;
                let second = b2 * moments.second[k].get() + (1.0 - b2) * g * g;
                moments.first[k] = E::of(first);
                moments.second[k] = E::of(second);
                let change = lr * (first / correct1) / ((second / correct2).sqrt() + optimizer.epsilon);
                params[k] = E::of(params[k].get() - change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::PretrainConfig;
    use super::*;

    /// Adam's first step is lr·sign(g), whatever the gradient's size; untrained entries stay.
    #[test]
    fn first_adam_step_has_the_length_of_the_rate() {
        let optimizer = PretrainConfig::paper().optimizer;
        let mut moments = Moments::<f64>::new(3);
        let mut params = [1.0, 1.0, 1.0];
        update(&optimizer, 0, &[0, 1], &[5.0, -1e-3, 9.0], &mut moments, &mut params);
        assert!((params[0] - (1.0 - 1e-3)).abs() < 1e-11);
        // Epsilon 1e-8 against a root of 1e-3 costs a hundred-thousandth.
        assert!((params[1] - (1.0 + 1e-3)).abs() < 2e-8);
        assert_eq!(params[2], 1.0);
    }

    /// Three steps by PyTorch 2's documented formula, evaluated by hand in the test.
    #[test]
    fn adam_follows_its_recursion() {
        let optimizer = PretrainConfig::paper().optimizer;
        let gradients = [0.3, -0.2, 0.5];
        let (mut m, mut v, mut p) = (0.0, 0.0, 2.0);
        let mut moments = Moments::<f64>::new(1);
        let mut params = [2.0];
        for (step, g) in gradients.into_iter().enumerate() {
            update(&optimizer, step as u64, &[0], &[g], &mut moments, &mut params);
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            let t = step as i32 + 1;
            p -= 1e-3 * (m / (1.0 - 0.9f64.powi(t))) / ((v / (1.0 - 0.999f64.powi(t))).sqrt() + 1e-8);
            assert!((params[0] - p).abs() < 1e-14);
        }
    }
}
