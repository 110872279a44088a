//! Control: softmax TD on pairs of a state and an action.
//!
//! With x(s, a) the features of a pair and K the softmax weights of the pairs that were left, one step is
//! Q(x) += α Σ_k K(x_k, x)·(r_k + γ·B_k - Q(x_k)). What B_k is makes the algorithm ([`Backup`]): Q(s', a') is SARSA,
//! Σ_b π(b|s')·Q(s', b) Expected SARSA, and Σ_b p_b·Q(s', b) with p ∝ exp(β·Q(s', ·)) takes a step towards the best policy, as
//! Q-learning does in the limit of large β.
//!
//! [`SoftmaxControl`] runs each of them three ways: as an algorithm ([`SoftmaxControl::direct`]), as attention on full token matrices
//! ([`SoftmaxControl::tokens`]: two softmax heads per layer, the second in the place of the temporal shift), and on distinct
//! pairs ([`PairOperator`], fast). `docs/constructions/control.md` has the proof that they are one map.
//!
//! ```
//! use ictd::control::{Backup, ControlConfig, PairContext, PairTransition};
//! use ictd::Matrix;
//!
//! // Two states, two actions, one-hot features of pairs; action 1 pays in state 0.
//! let step = |state, action, reward, next| PairTransition { state, action, reward, next: Some(next), next_action: None };
//! let context = PairContext::new(
//!     Matrix::identity(4).map(|x| 3.0 * x),
//!     2,
//!     vec![step(0, 0, 0.0, 1), step(1, 0, 0.0, 0), step(0, 1, 1.0, 1), step(1, 1, 0.0, 0)],
//! )?;
//! let config = ControlConfig { backup: Backup::Boltzmann(20.0), temperature: 1.0, gamma: 0.5, step_sizes: vec![1.0; 60] };
//! let control = config.check()?;
//! let q = control.direct(&context, &[0.0; 4])?;
//! // Q*(0, 1) = 1 + γ·0.5·Q*(0, 1) = 4/3: the best policy is paid every other step.
//! assert!((q[60][1] - 4.0 / 3.0).abs() < 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attention;
mod backup;
mod boltzmann;
mod certificate;
mod config;
mod context;
mod direct;
mod operator;
mod policy;
mod prompt;
mod rollout;

pub use attention::PairTokens;
pub use backup::Backup;
pub use boltzmann::{boltzmann_lipschitz, boltzmann_lipschitz_within, boltzmann_value, boltzmann_weights};
pub use certificate::BoltzmannCertificate;
pub use config::{ControlConfig, ControlError, SoftmaxControl};
pub use context::{PairContext, PairContextError, PairTransition};
pub use operator::PairOperator;
pub use policy::{epsilon_greedy, uniform_policy};
pub use prompt::PairPrompt;
pub use rollout::Rollout;
