//! A search for certificates that claim too much: contexts drawn to be difficult, every claimed bound held against the
//! true error, which is computed apart from the crate, from the features on, in twice the precision.
#![allow(dead_code, missing_docs)]

use ictd::context::{Context, End};
use ictd::kernel::{Attention, KernelName};
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::theory::{CertificateConfig, Status};

use super::double_double::{Dd, solve};

/// Layers that are run to check a claim about the number of layers.
const MAX_LAYERS: u64 = 3000;

/// A context and a layer.
#[derive(Debug)]
pub struct Case {
    states: Vec<Vec<f64>>,
    /// Episodes as state numbers, with their rewards and whether they end in a terminal state.
    episodes: Vec<(Vec<usize>, Vec<f64>, End)>,
    queries: Vec<Vec<f64>>,
    pub kernel: KernelName,
    pub temperature: f64,
    pub gamma: f64,
    pub alpha: f64,
    pub layers: usize,
    pub tolerance: f64,
}

impl Case {
    /// What its certificate is asked about.
    pub fn config(&self) -> CertificateConfig {
        CertificateConfig { step_size: self.alpha, num_layers: self.layers, tolerance: self.tolerance }
    }
}

fn pick<T: Copy>(stream: &mut Stream, from: &[T]) -> T {
    from[stream.below(from.len() as u32) as usize]
}

fn power(stream: &mut Stream, low: f64, high: f64) -> f64 {
    10f64.powf(stream.uniform_in(low, high))
}

impl Case {
    /// Case number `index`: near-duplicates, chains that run in circles, long horizons, queries far away and close by,
    /// states that are never left, terminal ends, flat and very sharp scores, large rewards.
    pub fn new(seed: u64, index: u64) -> Self {
        let stream = &mut Stream::new(seed, Purpose::Evaluation, index);
        let (num_states, d) = (1 + stream.below(12) as usize, 1 + stream.below(4) as usize);
        let scale = power(stream, -1.0, 1.0);
        let style = stream.below(4);
        let mut states: Vec<Vec<f64>> = Vec::new();
        for s in 0..num_states {
            let mut x: Vec<f64> = stream.uniform_vec(d, -1.0, 1.0).iter().map(|x| scale * x).collect();
            match style {
                // Nearly a state that is there already.
                0 if s > 0 => {
                    let size = power(stream, -9.0, -1.0);
                    let other = &states[stream.below(s as u32) as usize];
                    x = other.iter().zip(&x).map(|(y, noise)| y + size * noise).collect();
                }
                // One feature each, as far as they go.
                1 => (0..d).for_each(|a| x[a] = if a == s % d { scale * (1 + s / d) as f64 } else { 0.0 }),
                2 => {
                    let norm = x.iter().map(|v| v * v).sum::<f64>().sqrt();
                    x.iter_mut().for_each(|v| *v *= scale / norm);
                }
                _ => {}
            }
            states.push(x);
        }
        let size = power(stream, -3.0, 6.0);
        let constant = stream.below(5) == 0;
        // A multiple of 2^-20 of a power of two: sums by state are exact, as data should be.
        let unit = size.log2().floor().exp2() / f64::from(1 << 20);
        let circles = stream.below(2) == 0;
        // States that only a last column reaches are never left.
        let inner = (1 + stream.below(num_states as u32)).max(1 + stream.below(num_states as u32));
        let episodes = (0..1 + stream.below(3))
            .map(|_| {
                let len = 1 + stream.below(40) as usize;
                let mut path = vec![stream.below(inner) as usize];
                for _ in 1..len {
                    let last = path[path.len() - 1];
                    let jump = stream.below(inner) as usize;
                    path.push(if circles && stream.below(8) > 0 {
                        (last + 1) % inner as usize
                    } else {
                        jump
                    });
                }
                let known = path[stream.below(len as u32) as usize];
                let any = stream.below(num_states as u32) as usize;
                path.push(if stream.below(2) == 0 { known } else { any });
                let reward = |x: f64| ((size * x) / unit).round() * unit;
                let rewards = (0..len)
                    .map(|_| reward(if constant { 1.0 } else { stream.uniform_in(-1.0, 1.0) }))
                    .collect();
                let end = if stream.below(3) == 0 { End::Terminated } else { End::Truncated };
                (path, rewards, end)
            })
            .collect();
        let queries = (0..stream.below(4))
            .map(|_| {
                let near = stream.below(2) == 0;
                let size = if near { power(stream, -8.0, 0.0) } else { power(stream, 0.0, 1.0) };
                let other = &states[stream.below(num_states as u32) as usize];
                other.iter().map(|y| y + scale * size * stream.uniform_in(-1.0, 1.0)).collect()
            })
            .collect();
        let far = stream.uniform();
        Self {
            states,
            episodes,
            queries,
            kernel: pick(
                stream,
                &[
                    KernelName::Softmax,
                    KernelName::Softmax,
                    KernelName::Rbf,
                    KernelName::Rbf,
                    KernelName::Elu1,
                    KernelName::Relu,
                    KernelName::Linear,
                    KernelName::Tabular,
                ],
            ),
            temperature: power(stream, -2.5, 1.5),
            gamma: pick(stream, &[0.0, 0.1, 0.5, 0.9, 0.99, 0.999, far]),
            alpha: stream.uniform_in(0.1, 1.9),
            layers: pick(stream, &[0, 1, 2, 5, 15, 50, 100, 200]),
            tolerance: if stream.below(8) == 0 {
                power(stream, -16.0, -9.0)
            } else {
                power(stream, -8.0, 1.0)
            } * size,
        }
    }

    pub fn context(&self, with_queries: bool) -> Context {
        let mut builder = Context::builder();
        for (path, rewards, end) in &self.episodes {
            let rows: Vec<&Vec<f64>> = path.iter().map(|&s| &self.states[s]).collect();
            builder = builder.episode(&rows, rewards, *end);
        }
        for query in self.queries.iter().filter(|_| with_queries) {
            builder = builder.query(query);
        }
        builder.build().unwrap()
    }

    pub fn has_queries(&self) -> bool {
        !self.queries.is_empty()
    }

    pub fn attention(&self) -> Attention {
        Attention::new(self.kernel.at(self.temperature).unwrap(), 0.0).unwrap()
    }
}

/// The layer of a case, from its features on in twice the precision.
struct Truth {
    gamma: Dd,
    alpha: Dd,
    linear: bool,
    features: Vec<Vec<Dd>>,
    /// Transitions: source, reward, successor unless terminal.
    transitions: Vec<(usize, Dd, Option<usize>)>,
    /// weights[u][s]: of one visit to s for u.
    weights: Vec<Vec<Dd>>,
}

impl Truth {
    /// `None` where the kernel has no answer that rounding does not decide (0/0).
    fn of(case: &Case) -> Option<Self> {
        let mut transitions = Vec::new();
        // States that look the same are the same.
        let first = |s: usize| (0..s).find(|&t| case.states[t] == case.states[s]).unwrap_or(s);
        for (path, rewards, end) in &case.episodes {
            for (k, &reward) in rewards.iter().enumerate() {
                let terminal = *end == End::Terminated && k + 1 == rewards.len();
                let next = (!terminal).then(|| first(path[k + 1]));
                transitions.push((first(path[k]), Dd::from(reward), next));
            }
        }
        let features: Vec<Vec<Dd>> = case
            .states
            .iter()
            .chain(&case.queries)
            .map(|x| x.iter().map(|&v| Dd::from(v)).collect())
            .collect();
        let num_sources = case.states.len();
        let mut visits = vec![0.0; num_sources];
        transitions.iter().for_each(|&(s, ..)| visits[s] += 1.0);
        let tau = Dd::from(case.temperature);
        let score = |x: &[Dd], y: &[Dd]| -> Dd {
            match case.kernel {
                KernelName::Rbf => {
                    let squared: Dd = x.iter().zip(y).map(|(&a, &b)| (a - b) * (a - b)).sum();
                    -squared / (tau * Dd::from(2.0))
                }
                KernelName::Tabular => Dd::from(f64::from(u8::from(x == y))),
                KernelName::Relu => x.iter().zip(y).map(|(&a, &b)| a * b).sum(),
                _ => x.iter().zip(y).map(|(&a, &b)| a * b).sum::<Dd>() / tau,
            }
        };
        let n = Dd::from(transitions.len() as f64);
        let mut weights = Vec::new();
        for x in &features {
            let scores: Vec<Dd> = features[..num_sources].iter().map(|y| score(x, y)).collect();
            let seen = || (0..num_sources).filter(|&s| visits[s] > 0.0);
            let top = seen().fold(Dd::from(f64::NEG_INFINITY), |m, s| m.max(scores[s]));
            let raw = |s: usize| -> Dd {
                let g = scores[s];
                match case.kernel {
                    _ if visits[s] == 0.0 => Dd::ZERO,
                    KernelName::Softmax | KernelName::Rbf => (g - top).exp(),
                    KernelName::Elu1 if top.high <= 0.0 => (g - top).exp(),
                    KernelName::Elu1 => {
                        if g.high > 0.0 {
                            g + Dd::ONE
                        } else {
                            g.exp()
                        }
                    }
                    KernelName::Relu => g.max(Dd::ZERO),
                    KernelName::Linear | KernelName::Tabular => g,
                    other => panic!("no formula for {other}"),
                }
            };
            let row: Vec<Dd> = (0..num_sources).map(raw).collect();
            let mut sum: Dd = (0..num_sources).map(|s| row[s] * Dd::from(visits[s])).sum();
            if case.kernel == KernelName::Linear {
                sum = n;
            }
            weights.push(row.iter().map(|&w| if sum.high == 0.0 { Dd::ZERO } else { w / sum }).collect());
        }
        let finite = |w: &Vec<Dd>| w.iter().all(|x| x.is_finite());
        weights.iter().all(finite).then_some(Self {
            gamma: Dd::from(case.gamma),
            alpha: Dd::from(case.alpha),
            linear: case.kernel == KernelName::Linear,
            features,
            transitions,
            weights,
        })
    }

    /// TD errors summed by source state.
    fn errors(&self, v: &[Dd]) -> Vec<Dd> {
        let mut sums = vec![Dd::ZERO; self.weights[0].len()];
        for &(s, reward, next) in &self.transitions {
            let bootstrap = next.map_or(Dd::ZERO, |next| self.gamma * v[next]);
            sums[s] += reward + bootstrap - v[s];
        }
        sums
    }

    fn layer(&self, v: &[Dd]) -> Vec<Dd> {
        let errors = self.errors(v);
        let change = |row: &Vec<Dd>| -> Dd { row.iter().zip(&errors).map(|(&w, &e)| w * e).sum() };
        v.iter().zip(&self.weights).map(|(&v, row)| v + self.alpha * change(row)).collect()
    }

    fn after(&self, layers: u64) -> Vec<Dd> {
        (0..layers).fold(vec![Dd::ZERO; self.weights.len()], |v, _| self.layer(&v))
    }

    /// The limit: v = Σ y(s)·basis(s) with as many unknowns as there are directions that layers move in.
    fn limit(&self) -> Option<Vec<Dd>> {
        let num_sources = self.weights[0].len();
        let seen: Vec<usize> =
            (0..num_sources).filter(|&s| self.transitions.iter().any(|t| t.0 == s)).collect();
        let d = self.features[0].len();
        let basis =
            |u: usize, k: usize| if self.linear { self.features[u][k] } else { self.weights[u][seen[k]] };
        let size = if self.linear { d } else { seen.len() };
        let zero = vec![Dd::ZERO; self.weights.len()];
        // Equations: TD errors of every state that was left are 0; with linear weights their sums by feature are.
        let project = |errors: Vec<Dd>| -> Vec<Dd> {
            if self.linear {
                (0..d).map(|a| seen.iter().map(|&s| self.features[s][a] * errors[s]).sum()).collect()
            } else {
                seen.iter().map(|&s| errors[s]).collect()
            }
        };
        let right = project(self.errors(&zero));
        let columns: Vec<Vec<Dd>> = (0..size)
            .map(|k| {
                let v: Vec<Dd> = (0..self.weights.len()).map(|u| basis(u, k)).collect();
                let moved = project(self.errors(&v));
                right.iter().zip(moved).map(|(&b, m)| b - m).collect()
            })
            .collect();
        let a: Vec<Vec<Dd>> = (0..size).map(|i| columns.iter().map(|c| c[i]).collect()).collect();
        let y = solve(a, right)?;
        let value = |u: usize| (0..size).map(|k| basis(u, k) * y[k]).sum();
        Some((0..self.weights.len()).map(value).collect())
    }
}

fn distance(a: &[Dd], b: &[Dd]) -> Dd {
    // NaN counts as infinitely far.
    let gap =
        |(&x, &y): (&Dd, &Dd)| if (x - y).is_finite() { (x - y).abs() } else { Dd::from(f64::INFINITY) };
    a.iter().zip(b).map(gap).fold(Dd::ZERO, Dd::max)
}

/// What the search saw.
#[derive(Debug)]
pub struct Outcome {
    pub cases: u64,
    pub with_queries: u64,
    pub by_status: [u64; 3],
    pub bounds: u64,
    pub false_bounds: u64,
    /// Bounds below the error that the certificate itself gives.
    pub below_own_error: u64,
    pub layer_claims: u64,
    pub false_layer_claims: u64,
    /// Bounds below 0.99 of an error above 1e-10 of the largest value: false beyond rounding.
    pub grossly_false: u64,
    /// The smallest bound/error - 1, where errors are above and below 1e-10 of the largest value.
    pub tightest: f64,
    pub tightest_of_small: f64,
    /// Half, nine of ten and all of bound/error are below, where errors are above it.
    pub quantiles: [f64; 3],
    /// The largest error after the layers said to be enough, as a share of the tolerance: at most 1.
    pub closest_layers: f64,
    /// Certificates that could not be made.
    pub errors: u64,
    /// The first false claims, in words.
    pub examples: Vec<String>,
}

/// Examines cases `0..cases`.
pub fn run(seed: u64, cases: u64) -> Outcome {
    let mut outcome = Outcome {
        cases,
        with_queries: 0,
        by_status: [0; 3],
        bounds: 0,
        false_bounds: 0,
        below_own_error: 0,
        layer_claims: 0,
        false_layer_claims: 0,
        grossly_false: 0,
        tightest: f64::INFINITY,
        tightest_of_small: f64::INFINITY,
        quantiles: [f64::NAN; 3],
        closest_layers: 0.0,
        errors: 0,
        examples: Vec::new(),
    };
    let mut ratios = Vec::new();
    for index in 0..cases {
        examine(&Case::new(seed, index), index, &mut outcome, &mut ratios);
    }
    ratios.sort_by(f64::total_cmp);
    outcome.quantiles = [0.5, 0.9, 1.0].map(|share| {
        let last = ratios.len().saturating_sub(1) as f64;
        ratios.get((share * last) as usize).copied().unwrap_or(f64::NAN)
    });
    outcome
}

fn examine(case: &Case, index: u64, outcome: &mut Outcome, ratios: &mut Vec<f64>) {
    outcome.with_queries += u64::from(case.has_queries());
    let context = case.context(true);
    let found = StateOperator::empirical(&context, &case.attention(), case.gamma)
        .and_then(|operator| case.config().certify(&operator).map(|c| (operator, c)));
    let Ok((operator, certificate)) = found else {
        outcome.errors += 1;
        return;
    };
    outcome.by_status[match certificate.status {
        Status::Certified => 0,
        Status::Estimated => 1,
        Status::Refused | Status::Undecided => 2,
    }] += 1;
    let Some(fixed) = certificate.fixed_point else { return };
    if fixed.error_bound.is_none() && fixed.layers_sufficient.is_none() {
        return;
    }
    let mut note = |what: String| {
        if outcome.examples.len() < 10 {
            outcome.examples.push(format!("case {index} ({}): {what}", case.kernel));
        }
    };
    let Some((truth, limit)) = Truth::of(case).and_then(|truth| truth.limit().map(|limit| (truth, limit)))
    else {
        // A bound on the distance to a limit that cannot be found is one that nobody can rely on.
        outcome.bounds += 1;
        outcome.false_bounds += 1;
        note("a bound, and no limit".into());
        return;
    };
    // The states of the truth that occur as columns, and the values that the crate computes for them.
    let mut groups = vec![None; truth.weights.len()];
    let columns = case.episodes.iter().flat_map(|(path, _, end)| {
        path.iter()
            .enumerate()
            .map(move |(k, &s)| (*end == End::Truncated || k + 1 < path.len()).then_some(s))
    });
    let queries = (case.states.len()..truth.weights.len()).map(Some);
    for (column, state) in columns.chain(queries).enumerate() {
        if let (Some(state), Some(group)) = (state, operator.statistics().group_of(column)) {
            groups[state] = Some(group);
        }
    }
    let occurring: Vec<usize> = (0..groups.len()).filter(|&u| groups[u].is_some()).collect();
    let among = |v: &[Dd]| -> Vec<Dd> { occurring.iter().map(|&u| v[u]).collect() };
    let limit = among(&limit);
    let largest = limit.iter().fold(Dd::ZERO, |m, x| m.max(x.abs())).high;
    let computed = |layers: u64| -> Vec<Dd> {
        let mut v = vec![0.0; operator.statistics().num_groups()];
        for _ in 0..layers {
            v = operator.apply(case.alpha, &v);
        }
        occurring.iter().filter_map(|&u| groups[u]).map(|g| Dd::from(v[g])).collect()
    };
    // The layers as the crate computes them, and as they are.
    let error_after = |layers: u64| {
        let exact = distance(&among(&truth.after(layers)), &limit);
        distance(&computed(layers), &limit).max(exact)
    };
    if let Some(bound) = fixed.error_bound {
        outcome.bounds += 1;
        let error = error_after(case.layers as u64);
        if !(Dd::from(bound) >= error) {
            outcome.false_bounds += 1;
            note(format!("bound {bound:.6e}, error {:.6e}, {:?}", error.high, certificate.status));
        }
        outcome.below_own_error += u64::from(!(bound >= fixed.error));
        if error.high > 0.0 {
            let slack = ((Dd::from(bound) - error) / error).high;
            let small = error.high < 1e-10 * largest;
            let tightest = if small { &mut outcome.tightest_of_small } else { &mut outcome.tightest };
            *tightest = tightest.min(slack);
            outcome.grossly_false += u64::from(!small && slack < -0.01);
            if !small {
                ratios.push(1.0 + slack);
            }
        }
    }
    if let Some(layers) = fixed.layers_sufficient.filter(|&l| l <= MAX_LAYERS) {
        outcome.layer_claims += 1;
        // Enough is enough for more layers too.
        for layers in [layers, layers + 1, 2 * layers] {
            let error = error_after(layers);
            if !(error <= Dd::from(case.tolerance)) {
                outcome.false_layer_claims += 1;
                note(format!("{layers} layers, error {:.6e}, tolerance {:.6e}", error.high, case.tolerance));
                break;
            }
            outcome.closest_layers = outcome.closest_layers.max(error.high / case.tolerance);
        }
    }
}
