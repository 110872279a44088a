//! The keys of a training configuration: what each is for, and the values it takes.

/// A key, as files and the command line name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// With dots.
    pub name: &'static str,
    /// What it says.
    pub purpose: &'static str,
    /// The values it takes, in the words that refuse others.
    pub range: &'static str,
}

const POSITIVE: &str = "a finite number > 0";
const MIX: &str = "0 <= rho <= 1";
const DECAY: &str = "at least 0 and below 1";
const BOOL: &str = "true or false";
const SIGN: &str = "random, td or mirror";

const fn key(name: &'static str, purpose: &'static str, range: &'static str) -> Key {
    Key { name, purpose, range }
}

impl Key {
    /// All of them, as a sorted file has them.
    pub const ALL: [Key; 35] = [
        key("batch", "contexts per minibatch", "1 to 100000"),
        key("batches", "minibatches per task", "1 to 1000000"),
        key("block", "construction: one head and a shift, or two heads", "tsm or dual"),
        key("epochs", "tasks, one after the other", "1 to 1000000000"),
        key("kernel", "attention kernel", "softmax, linear, relu, elu1 or rbf"),
        key("layers", "depth L", "1 to 10000"),
        key("loss", "loss", "td, full-gradient, true-value or monte-carlo"),
        key("mask", "trained entries", "full, relaxed, none or looped"),
        key("n", "context length", "1 to 100000"),
        key("query", "state asked about", "next, skip, stationary or source"),
        key("target", "context of the successor's value", "shifted or same"),
        key("temperature", "temperature τ of the scores, also tau", POSITIVE),
        key("tied", "one (V, A) for all layers", BOOL),
        key("init.gain", "Xavier gain", "a finite number >= 0"),
        key("init.score_sign", "sign of A's first diagonal", SIGN),
        key("init.value_sign", "signs of V's first entries", SIGN),
        key("optimizer.beta1", "Adam: decay of the mean", DECAY),
        key("optimizer.beta2", "Adam: decay of the square", DECAY),
        key("optimizer.epsilon", "Adam: floor", POSITIVE),
        key("optimizer.lr", "learning rate", POSITIVE),
        key(
            "optimizer.name",
            "optimiser; sgd steps by half the gradient of the loss, lr times the mean of δ∇v",
            "adam or sgd",
        ),
        key("rho.end", "diagonal mixing ρ after the ramp", MIX),
        key("rho.query", "what ρ does to the query's column", "mixed, scaled or unmixed"),
        key("rho.start", "diagonal mixing ρ at the start", MIX),
        key("rho.steps", "steps of the ramp", "0 or more"),
        key("source.columns", "columns where the query is a source", "n or n+1"),
        key("source.reward", "whether such a query shows its reward", "visible or hidden"),
        key("task.feature_map", "features", "raw, one-hot, unit-norm or coordinates"),
        key("task.features", "feature dimension d", "1 to 10000"),
        key("task.gamma", "discount γ", "0 <= gamma < 1"),
        key("task.kind", "family", "boyan, loop, figure-1, dense, coin, cartpole or own"),
        key("task.representable", "values linear in the features", BOOL),
        key("task.score_scale", "scores are multiplied by this", POSITIVE),
        key("task.states", "states m, of cartpole bins", "up to 5000, by family"),
        key("task.threshold", "loop: probability of leaving out an edge", "0 <= threshold < 1"),
    ];

    /// The key of a name.
    pub fn named(name: &str) -> Option<Key> {
        Self::ALL.into_iter().find(|key| key.name == name)
    }

    /// The values that a key takes.
    pub(super) fn range_of(name: &str) -> &'static str {
        Self::named(name).map_or("another value", |key| key.range)
    }
}
