//! The settings in which the predecessor trains.

use ictd::predecessor::{Activation, Pays, PredecessorConfig, PredecessorLoss, PredecessorMask};
use ictd::task::{Family, Kind};

use crate::studies::Scope;

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its claims: those on parameters, where they are made, then those on similarity.
    pub claims: &'static [&'static str],
    /// What it is called in figures.
    pub title: &'static str,
    /// Where it stands in the predecessor's run script, or what it changes.
    pub place: &'static str,
    /// Whose claim it is.
    pub scope: Scope,
    /// What is trained, given the standard experiment.
    change: fn(PredecessorConfig) -> PredecessorConfig,
}

impl Experiment {
    /// The configuration.
    pub fn config(&self) -> PredecessorConfig {
        (self.change)(PredecessorConfig::standard())
    }
}

const LINEAR: Experiment = Experiment {
    id: "linear",
    claims: &["linear-parameters", "linear-similarity"],
    title: "linear, 3 tied layers",
    place: "linear_standard",
    scope: Scope::Paper,
    change: |standard| standard,
};

const FULL: Experiment = Experiment { scope: Scope::ChangedSetting, ..LINEAR };

/// The nine experiments of the run script, then changes of the first.
pub const EXPERIMENTS: [Experiment; 16] = [
    LINEAR,
    Experiment {
        id: "linear-2",
        claims: &["linear-2-parameters", "linear-2-similarity"],
        title: "linear, 2 tied layers",
        place: "linear_2layers",
        change: |standard| PredecessorConfig { num_layers: 2, ..standard },
        ..LINEAR
    },
    Experiment {
        id: "linear-4",
        claims: &["linear-4-parameters", "linear-4-similarity"],
        title: "linear, 4 tied layers",
        place: "linear_4layers",
        change: |standard| PredecessorConfig { num_layers: 4, ..standard },
        ..LINEAR
    },
    Experiment {
        id: "untied",
        claims: &["untied-parameters", "untied-similarity"],
        title: "linear, 3 layers of their own",
        place: "linear_seq",
        change: |standard| PredecessorConfig { tied: false, ..standard },
        ..LINEAR
    },
    Experiment {
        id: "untied-2",
        claims: &["untied-2-parameters", "untied-2-similarity"],
        title: "linear, 2 layers of their own",
        place: "linear_seq_2layers",
        change: |standard| PredecessorConfig { tied: false, num_layers: 2, ..standard },
        ..LINEAR
    },
    Experiment {
        id: "untied-4",
        claims: &["untied-4-parameters", "untied-4-similarity"],
        title: "linear, 4 layers of their own",
        place: "linear_seq_4layers",
        change: |standard| PredecessorConfig { tied: false, num_layers: 4, ..standard },
        ..LINEAR
    },
    Experiment {
        id: "large",
        claims: &["large-parameters", "large-similarity"],
        title: "linear, 8 features, 20 states, n = 60",
        place: "linear_large",
        change: |standard| PredecessorConfig {
            task: Family { num_states: 20, feature_dim: 8, ..standard.task },
            context_len: 60,
            ..standard
        },
        ..LINEAR
    },
    Experiment {
        id: "softmax",
        claims: &["softmax-similarity"],
        title: "softmax, 3 tied layers",
        place: "nonlinear_standard",
        change: |standard| PredecessorConfig { activation: Activation::Softmax, ..standard },
        ..LINEAR
    },
    Experiment {
        id: "softmax-representable",
        claims: &["softmax-representable-similarity"],
        title: "softmax, values linear in the features",
        place: "nonlinear_rep",
        change: |standard| PredecessorConfig {
            activation: Activation::Softmax,
            task: Family { representable: true, ..standard.task },
            ..standard
        },
        ..LINEAR
    },
    Experiment {
        id: "linear-full",
        claims: &["linear-full-parameters", "linear-full-similarity"],
        title: "linear, 3 tied layers, all entries trained",
        place: "linear_standard, all entries of P and Q trained",
        change: |standard| PredecessorConfig { mask: PredecessorMask::Full, ..standard },
        ..FULL
    },
    Experiment {
        id: "softmax-full",
        claims: &["softmax-full-similarity"],
        title: "softmax, 3 tied layers, all entries trained",
        place: "nonlinear_standard, all entries of P and Q trained",
        change: |standard| PredecessorConfig {
            activation: Activation::Softmax,
            mask: PredecessorMask::Full,
            ..standard
        },
        ..FULL
    },
    Experiment {
        id: "softmax-representable-full",
        claims: &["softmax-representable-full-similarity"],
        title: "softmax, values linear in the features, all entries trained",
        place: "nonlinear_rep, all entries of P and Q trained",
        change: |standard| PredecessorConfig {
            activation: Activation::Softmax,
            mask: PredecessorMask::Full,
            task: Family { representable: true, ..standard.task },
            ..standard
        },
        ..FULL
    },
    Experiment {
        id: "loop",
        claims: &["loop-parameters", "loop-similarity"],
        title: "linear, Loop",
        place: "linear_standard on Loop",
        change: |standard| PredecessorConfig {
            task: Family { kind: Kind::Loop, ..standard.task },
            ..standard
        },
        ..FULL
    },
    Experiment {
        id: "cartpole",
        claims: &["cartpole-parameters", "cartpole-similarity"],
        title: "linear, cart-pole, 2 bins per dimension",
        place: "linear_standard on cart-pole",
        change: |standard| PredecessorConfig {
            task: Family { kind: Kind::Cartpole, num_states: 2, ..standard.task },
            pays: Pays::Entering,
            ..standard
        },
        ..FULL
    },
    Experiment {
        id: "true-values",
        claims: &["true-values-parameters", "true-values-similarity"],
        title: "linear, loss against exact values",
        place: "linear_standard with the loss msve_true",
        change: |standard| PredecessorConfig { loss: PredecessorLoss::MsveTrue, ..standard },
        ..FULL
    },
    Experiment {
        id: "monte-carlo",
        claims: &["monte-carlo-parameters", "monte-carlo-similarity"],
        title: "linear, loss against sampled returns",
        place: "linear_standard with the loss msve_mc",
        change: |standard| PredecessorConfig { loss: PredecessorLoss::MsveMc, ..standard },
        ..FULL
    },
];
