//! Sampled transitions of a decision process.

use super::context::PairTransition;
use crate::matrix::Matrix;
use crate::random::{Stream, running_sums};
use crate::task::{Mdp, MdpError, check_policy};

/// A walk through a decision process that goes on from batch to batch, under policies that may change between them.
#[derive(Clone, Debug)]
pub struct Rollout<'a> {
    mdp: &'a Mdp,
    /// For every action and state the running sums of p(· | s, a).
    cumulative: Vec<Vec<Vec<f64>>>,
    state: usize,
}

impl<'a> Rollout<'a> {
    /// A walk that starts in a state drawn from p₀.
    pub fn new(mdp: &'a Mdp, stream: &mut Stream) -> Result<Self, MdpError> {
        mdp.check()?;
        let cumulative = mdp.transitions.iter().map(|p| p.rows().map(running_sums).collect()).collect();
        let mut rollout = Self { mdp, cumulative, state: 0 };
        rollout.restart(stream);
        Ok(rollout)
    }

    /// Goes back to a state drawn from p₀.
    pub fn restart(&mut self, stream: &mut Stream) {
        self.state = stream.categorical(&running_sums(&self.mdp.initial_distribution));
    }

    /// The next `count` transitions, with actions, and the action after the last, drawn from a policy with π(a | s) in entry (s, a).
    pub fn sample(
        &mut self,
        policy: &Matrix,
        count: usize,
        stream: &mut Stream,
    ) -> Result<Vec<PairTransition>, MdpError> {
        check_policy(policy, self.mdp.num_states(), self.mdp.num_actions())?;
        let laws: Vec<Vec<f64>> = policy.rows().map(running_sums).collect();
        let mut action = stream.categorical(&laws[self.state]);
        let mut transitions = Vec::with_capacity(count);
        for _ in 0..count {
            let (state, taken) = (self.state, action);
            self.state = stream.categorical(&self.cumulative[taken][state]);
            action = stream.categorical(&laws[self.state]);
            let reward = self.mdp.rewards[(state, taken)];
            let (next, next_action) = (Some(self.state), Some(action));
            transitions.push(PairTransition { state, action: taken, reward, next, next_action });
        }
        Ok(transitions)
    }
}
