//! Circuits: blocks whose algorithm is known, in files for other software, so that tools that explain networks can be tried on them.

mod card;
mod name;

pub use card::Circuit;
pub use name::CircuitName;

use ictd::construction::{Algorithm, ConstructionConfig};
use ictd::context::{Context, End};
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;
use ictd::pretrain::{Mask, QueryMix, QueryPosition};
use ictd::random::{Purpose, Stream};
use ictd::statistics::largest;
use ictd::task::FeatureMap;
use ictd::td::LinearTd;
use ictd::transformer::{AttentionParams, Parameters};

use crate::error::{LabError, check_range};
use crate::files::{CIRCUIT, Description, FORMAT, ModelFile, SEALED_FORMAT, Tensors};
use crate::memory;
use crate::studies::forward::{Options, StepSizes};
use card::{Example, Layers};

/// Numbers that the example may have on the card, which is then 50 MB long.
const MOST_NUMBERS: usize = 1_000_000;
/// Many layers are least-squares TD where they are nearer than this, or what a module reproduces is another algorithm than the card says.
const SOLVED: f64 = 1e-6;

/// Sizes of a circuit; what is not given is the checkpoint's, or a default.
///
/// | option | default | range |
/// |---|---|---|
/// | `features` | 4 | 1 to 64 |
/// | `layers` | 4, or 200 for lstd | 1 to 1000, fewer with many features |
/// | `gamma` | 0.9 | \[0, 1) |
/// | `step_size` | 1, or 2 for lstd | a finite number |
/// | `seed` | 0 | of the example |
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the table above")]
pub struct CircuitConfig {
    pub features: Option<usize>,
    pub layers: Option<usize>,
    pub gamma: Option<f64>,
    pub step_size: Option<f64>,
    pub seed: u64,
}

impl CircuitConfig {
    /// Makes the circuit of a name; `model` has the parameters of a trained one.
    pub fn circuit(&self, name: CircuitName, model: Option<ModelFile>) -> Result<Circuit, LabError> {
        match (name, &model) {
            (CircuitName::Trained, None) => {
                let problem = "missing, expected a checkpoint of `ictd pretrain` beside the name trained";
                Err(LabError::refused("params", problem))
            }
            (CircuitName::Trained, Some(_)) => self.block(name, model),
            (_, Some(_)) => {
                let problem = format!("found beside {name}, which is constructed, expected the name trained");
                Err(LabError::refused("params", problem))
            }
            _ => match name.construction() {
                Some(algorithm) => self.linear(name, algorithm),
                None => self.block(name, None),
            },
        }
    }

    /// A block of attention with matrices V and A.
    fn block(&self, name: CircuitName, model: Option<ModelFile>) -> Result<Circuit, LabError> {
        let constructed = |d: usize| match name {
            CircuitName::Mirror => AttentionParams::mirror(d),
            _ => AttentionParams::theta_star(d),
        };
        let mut model = match model {
            Some(model) => model,
            None => {
                let d = self.features.unwrap_or(4);
                check_range("features", d, 1..=64)?;
                ModelFile { parameters: Parameters::Tied(constructed(d)), description: None, warning: None }
            }
        };
        let d = feature_dim(&model.parameters);
        check_range("features", d, 1..=64)?;
        if let Some(found) = self.features.filter(|found| *found != d) {
            return Err(LabError::value("features", found, format!("{d}, as the parameters have")));
        }
        model.parameters = rounded(&model.parameters)?;
        let said = model.description.clone();
        let kernel = said.as_ref().map_or(KernelName::Softmax, |said| said.kernel);
        let temperature = said.as_ref().map_or(1.0, |said| said.temperature);
        // Parameters by layer say how many there are.
        let usual = match &model.parameters {
            Parameters::PerLayer(pairs) => Some(pairs.len()),
            _ => Some(name.usual_layers()),
        };
        let options = Options {
            layers: self.layers.or(said.as_ref().map(|said| said.layers)).or(usual),
            gamma: self.gamma,
            step_size: self.step_size.map(StepSizes::All),
            ..Options::default()
        };
        let transformer = options.transformer(Some(model))?.check()?;
        let config = transformer.config();
        admit(d, config.num_layers)?;
        let context = self.example(d)?;
        let z = transformer.tokens(&context).map_err(overflow)?;
        let mut tensors = named();
        let (pairs, tied) = match &config.parameters {
            Parameters::PerLayer(pairs) => (pairs.as_slice(), false),
            Parameters::Tied(pair) => (std::slice::from_ref(pair), true),
            Parameters::ThetaStar => (&[][..], true),
        };
        for (layer, pair) in pairs.iter().enumerate() {
            let place = if tied { String::new() } else { format!("layers.{layer}.") };
            insert(&mut tensors, &format!("{place}V"), pair.value_matrix());
            insert(&mut tensors, &format!("{place}A"), pair.score_matrix());
        }
        let steps = &config.step_sizes;
        let description = Description {
            block: config.block,
            kernel,
            temperature,
            gamma: config.gamma,
            layers: config.num_layers,
            // All layers have the same.
            step_size: steps[0],
            mask: said.as_ref().map_or(Mask::None, |said| said.mask),
            tied,
            features: d,
            n: said.as_ref().map_or(context.num_transitions(), |said| said.n),
            diagonal_mix: config.attention.diagonal_mix(),
            query: said.as_ref().map_or(QueryPosition::Next, |said| said.query),
            query_mix: said.as_ref().map_or(QueryMix::Mixed, |said| said.query_mix),
            score_scale: said.as_ref().map_or(1.0, |said| said.score_scale),
            feature_map: said.as_ref().map_or(FeatureMap::Raw, |said| said.feature_map),
        };
        let metadata = description.metadata().map_err(|e| LabError::internal("circuit", e))?;
        tensors.metadata.extend(metadata);
        tensors.metadata.insert(FORMAT.into(), SEALED_FORMAT.into());
        // What anybody's parameters compute is known where they are those of a construction.
        let computes = match name {
            CircuitName::Trained if pairs.iter().all(|pair| *pair == AttentionParams::theta_star(d)) => {
                CircuitName::Td
            }
            CircuitName::Trained if pairs.iter().all(|pair| *pair == AttentionParams::mirror(d)) => {
                CircuitName::Mirror
            }
            name => name,
        };
        let computes = if kernel == KernelName::Softmax { computes } else { name };
        let layers = Layers {
            block: config.block.as_str(),
            matrices: ["V", "A"],
            kernel,
            temperature,
            diagonal_mix: config.attention.diagonal_mix(),
            gamma: config.gamma,
            feature_dim: d,
            num_layers: config.num_layers,
            step_sizes: (0..config.num_layers).map(|l| steps[if steps.len() == 1 { 0 } else { l }]).collect(),
            tied,
            rows: (0..d + 3).map(|i| z[0].row_name(i)).collect(),
            value_sign: 1.0,
        };
        let example = Example::of(&context, z.iter().map(|z| z.matrix()), layers.value_sign);
        Ok(Circuit::new((name, computes), layers, &tensors, example))
    }

    /// Layers of linear attention with matrices P and Q.
    fn linear(&self, name: CircuitName, algorithm: Algorithm) -> Result<Circuit, LabError> {
        let d = self.features.unwrap_or(4);
        check_range("features", d, 1..=64)?;
        // With many features the usual depth is too much for a card.
        let layers = self.layers.unwrap_or(name.usual_layers().min(most_layers(d)));
        admit(d, layers)?;
        let step_size = self.step_size.unwrap_or(name.usual_step_size());
        let usual = ConstructionConfig::new(algorithm, layers);
        let gamma = self.gamma.unwrap_or(usual.gamma);
        let construction = ConstructionConfig { gamma, step_sizes: vec![step_size], ..usual }.check()?;
        let context = self.example(d)?;
        let z = construction.tokens(&context).map_err(overflow)?;
        let mut tensors = named();
        // Those of one head.
        if let Some(layer) = construction.linear_layer(0, context.num_transitions(), d) {
            insert(&mut tensors, "Q", &layer.score_matrix);
            layer.heads.iter().for_each(|head| insert(&mut tensors, "P", &head.value_matrix));
        }
        let layers = Layers {
            block: "linear",
            matrices: ["P", "Q"],
            kernel: KernelName::Linear,
            temperature: 1.0,
            diagonal_mix: 0.0,
            gamma,
            feature_dim: d,
            num_layers: layers,
            step_sizes: vec![step_size; layers],
            tied: true,
            rows: construction.row_names(d),
            value_sign: -1.0,
        };
        let mut example = Example::of(&context, z.iter(), layers.value_sign);
        if name == CircuitName::Lstd {
            example.least_squares = Some(Self::solved(&context, gamma, &example.query_values)?);
        }
        Ok(Circuit::new((name, name), layers, &tensors, example))
    }

    /// The value of the query at the solution of least-squares TD, where the last layer has come to it.
    fn solved(context: &Context, gamma: f64, values: &[f64]) -> Result<f64, LabError> {
        let weights = LinearTd { gamma, step_sizes: Vec::new() }.fixed_point(context)?;
        let query = context.features_of(context.num_transitions());
        let solution: f64 = weights.iter().zip(query).map(|(w, x)| w * x).sum();
        let gap = largest(values.last().map(|value| (value - solution).abs()));
        if gap <= SOLVED {
            return Ok(solution);
        }
        let problem = format!(
            "the last is {gap:.1e} from least-squares TD on the example, expected at most {SOLVED:.0e}: more layers, fewer features, or another step size"
        );
        Err(LabError::refused("layers", problem))
    }

    /// One trajectory with features and rewards U(−1, 1).
    fn example(&self, d: usize) -> Result<Context, LabError> {
        let (n, mut stream) = (example_len(d), Stream::new(self.seed, Purpose::Prompt, 0));
        let features: Vec<Vec<f64>> = (0..=n).map(|_| stream.uniform_vec(d, -1.0, 1.0)).collect();
        let rewards = stream.uniform_vec(n, -1.0, 1.0);
        Ok(Context::builder().episode(&features, &rewards, End::Truncated).build()?)
    }
}

/// Transitions of the example: many for each feature, so that they say something of all.
fn example_len(features: usize) -> usize {
    30.max(8 * features)
}

/// Numbers of a token matrix of the example.
fn numbers(features: usize) -> usize {
    (2 * features + 3) * (example_len(features) + 1)
}

/// Layers whose token matrices a card has room for.
fn most_layers(features: usize) -> usize {
    (MOST_NUMBERS / numbers(features)).min(1000)
}

/// Refuses sizes whose card would be too large: it has every token matrix of the example. Those that are left take less than a second.
fn admit(features: usize, layers: usize) -> Result<(), LabError> {
    let numbers = numbers(features);
    check_range("layers", layers, 1..=most_layers(features))?;
    // They take 8 bytes as matrices and as rows, and up to 50 as indented text.
    memory::admit(70.0 * numbers as f64 * (layers + 1) as f64, "--layers or --features")
}

/// An example that diverges is no example: the step size is to blame.
fn overflow(error: impl Into<LabError>) -> LabError {
    match error.into() {
        LabError::Diverged { source, .. } => LabError::refused("step size", source.to_string()),
        other => other,
    }
}

/// No tensors yet, in a file that says what it is.
fn named() -> Tensors {
    let metadata = [("format".to_owned(), CIRCUIT.to_owned())].into();
    Tensors { metadata, ..Tensors::default() }
}

fn insert(tensors: &mut Tensors, name: &str, matrix: &Matrix) {
    let numbers = matrix.as_slice().iter().map(|&x| x as f32).collect();
    tensors.insert(name, &[matrix.num_rows(), matrix.num_cols()], numbers);
}

fn feature_dim(parameters: &Parameters) -> usize {
    match parameters {
        Parameters::Tied(pair) => pair.feature_dim(),
        Parameters::PerLayer(pairs) => pairs.first().map_or(0, AttentionParams::feature_dim),
        Parameters::ThetaStar => 0,
    }
}

/// Parameters as files of single precision hold them.
fn rounded(parameters: &Parameters) -> Result<Parameters, LabError> {
    let single = |matrix: &Matrix| matrix.map(|x| f64::from(x as f32));
    let pair = |p: &AttentionParams| AttentionParams::new(single(p.value_matrix()), single(p.score_matrix()));
    Ok(match parameters {
        Parameters::ThetaStar => Parameters::ThetaStar,
        Parameters::Tied(p) => Parameters::Tied(pair(p)?),
        Parameters::PerLayer(pairs) => {
            Parameters::PerLayer(pairs.iter().map(pair).collect::<Result<_, _>>()?)
        }
    })
}
