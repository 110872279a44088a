//! A forward pass step by step, beside the TD algorithm that it is.

use ictd::context::{Context, Role};
use ictd::kernel::{KernelName, KernelWeights};
use ictd::matrix::Matrix;
use ictd::statistics::largest;
use ictd::td::{Estimator, ReflectedTd, WeightedSoftmaxTd, td_errors};
use ictd::transformer::{AttentionParams, ForwardError, Parameters, Transformer};
use serde::Serialize;

use crate::LabError;
use crate::files::ParamsFile;
use crate::memory::{self, DOUBLE};
use crate::studies::forward::{Options, cut};

type Rows = Vec<Vec<f64>>;

/// Everything that happens in a forward pass.
#[derive(Clone, Debug, Serialize)]
pub struct Layers {
    /// The rows of the token matrix: features, reward, target, value.
    row_names: Vec<String>,
    /// What every column is: source, last, terminal or query.
    roles: Vec<&'static str>,
    /// Z_0, …, Z_L, row by row.
    tokens: Vec<Rows>,
    /// Whether all layers have the same scores and weights, which are then given once.
    shared: bool,
    /// K of every layer: row i, column j is the weight of source i for column j.
    weights: Vec<Rows>,
    /// The similarities that weights are made of, before the temperature.
    scores: Vec<Rows>,
    /// The values of all columns after 0, …, L layers.
    attention: Rows,
    /// The same by the TD algorithm, which knows nothing of Transformers; absent where none corresponds to the parameters.
    td: Option<Rows>,
    /// Which algorithm that is.
    algorithm: Option<String>,
    /// δ of every transition after 0, …, L layers.
    errors: Rows,
    /// The largest |attention − td|.
    difference: Option<f64>,
    /// V of every layer; one where all have the same.
    #[serde(rename = "V")]
    value_matrices: Vec<Rows>,
    /// A of every layer; one where all have the same.
    #[serde(rename = "A")]
    score_matrices: Vec<Rows>,
    /// The first layer whose values overflow: layers end before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    overflow: Option<usize>,
}

fn rows(matrix: &Matrix) -> Rows {
    matrix.rows().map(<[f64]>::to_vec).collect()
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Source => "source",
        Role::Last => "last",
        Role::Terminal => "terminal",
        _ => "query",
    }
}

/// Runs the plain path of the forward pass, and the algorithm.
pub fn layers(context: &Context, options: &Options, params: Option<ParamsFile>) -> Result<Layers, LabError> {
    let model = params.map(ParamsFile::into_model).transpose()?;
    let transformer = options.transformer(model)?.check()?;
    admit(&transformer, context)?;
    let (transformer, overflow) = match transformer.trace(context) {
        Err(ForwardError::Diverged { layer }) => (cut(&transformer, layer - 1)?, Some(layer)),
        _ => (transformer, None),
    };
    let (tokens, mut weights) = transformer.trace(context)?;
    let (config, roles, d) = (transformer.config(), context.roles(), context.feature_dim());
    let is_tied = !matches!(config.parameters, Parameters::PerLayer(_));
    let shared = weights.len() <= 1 && is_tied;
    if weights.is_empty() && is_tied {
        // Without layers it is still what the first would attend to.
        let params = transformer.params(0, d);
        weights.push(KernelWeights::new(&config.attention, params.score_matrix(), &tokens[0], roles)?);
    }
    let score = |layer: usize| {
        let params = transformer.params(layer, d);
        rows(&KernelWeights::similarities(&config.attention, params.score_matrix(), &tokens[layer], roles))
    };
    let pairs: Vec<_> =
        (0..if is_tied { 1 } else { config.num_layers }).map(|layer| transformer.params(layer, d)).collect();
    let attention: Rows = tokens.iter().map(|z| z.values().to_vec()).collect();
    let algorithm = algorithm(&transformer, options, d);
    let td = algorithm.as_ref().and_then(|algorithm| algorithm.run(context).ok());
    let apart = |td: &Rows| {
        let pairs = td.iter().flatten().zip(attention.iter().flatten());
        largest(pairs.map(|(v, w)| (v - w).abs()))
    };
    Ok(Layers {
        row_names: (0..d + 3).map(|i| tokens[0].row_name(i)).collect(),
        roles: roles.iter().copied().map(role_name).collect(),
        shared,
        scores: (0..weights.len()).map(score).collect(),
        weights: weights.iter().map(|k| rows(k.matrix())).collect(),
        difference: td.as_ref().map(apart),
        algorithm: algorithm.filter(|_| td.is_some()).map(|algorithm| algorithm.name().to_owned()),
        td,
        errors: attention.iter().map(|values| td_errors(context, config.gamma, values)).collect(),
        attention,
        value_matrices: pairs.iter().map(|pair| rows(pair.value_matrix())).collect(),
        score_matrices: pairs.iter().map(|pair| rows(pair.score_matrix())).collect(),
        tokens: tokens.iter().map(|z| rows(z.matrix())).collect(),
        overflow,
    })
}

/// The TD algorithm whose iterations the layers are: weighted softmax TD at θ_*, TD on reflected transitions at its mirror image.
fn algorithm(transformer: &Transformer, options: &Options, feature_dim: usize) -> Option<Box<dyn Estimator>> {
    let config = transformer.config();
    let step_sizes = match config.step_sizes.as_slice() {
        [size] => vec![*size; config.num_layers],
        sizes => sizes.to_vec(),
    };
    let is = |params: AttentionParams| match &config.parameters {
        Parameters::ThetaStar => params == AttentionParams::theta_star(feature_dim),
        Parameters::Tied(pair) => *pair == params,
        Parameters::PerLayer(pairs) => !pairs.is_empty() && pairs.iter().all(|pair| *pair == params),
    };
    let (attention, gamma) = (config.attention.clone(), config.gamma);
    if is(AttentionParams::theta_star(feature_dim)) {
        return Some(Box::new(WeightedSoftmaxTd { attention, gamma, step_sizes }));
    }
    // It is written for the softmax kernel without diagonal mixing.
    let is_plain = options.kernel.is_none_or(|kernel| kernel == KernelName::Softmax);
    let reflected = is_plain && attention.diagonal_mix() == 0.0 && is(AttentionParams::mirror(feature_dim));
    let temperature = options.temperature.unwrap_or(1.0);
    reflected.then(|| Box::new(ReflectedTd { temperature, gamma, step_sizes }) as Box<dyn Estimator>)
}

/// Refuses what would not fit: tokens, scores and weights of every layer, as numbers and as text.
fn admit(transformer: &Transformer, context: &Context) -> Result<(), LabError> {
    let [layers, n, d] =
        [transformer.num_layers() + 1, context.num_columns(), context.feature_dim()].map(|x| x as f64);
    // A number takes 24 bytes as text.
    memory::admit(
        (2.0 * DOUBLE + 24.0) * layers * n * (d + 6.0 + 2.0 * n),
        "layers, or the number of columns",
    )
}

#[cfg(test)]
mod tests {
    use ictd::context::End;

    use super::*;

    fn context() -> Context {
        let features = [[0.3, -0.2], [0.9, 0.1], [-0.5, 0.7], [0.3, -0.2]];
        let builder = Context::builder().episode(&features, &[1.0, -0.5, 0.25], End::Truncated);
        builder.query(&[0.1, 0.4]).build().unwrap()
    }

    fn model(params: AttentionParams) -> ParamsFile {
        ParamsFile::of(&Parameters::Tied(params)).unwrap()
    }

    #[test]
    fn layers_are_td_at_theta_star_and_at_its_mirror_image() {
        for kernel in KernelName::ALL {
            let options = Options { kernel: Some(kernel), layers: Some(6), ..Options::default() };
            let found = layers(&context(), &options, None).unwrap();
            // Six steps of sums of three terms below 10 in size.
            assert!(found.difference.unwrap() < 1e-13, "{kernel}: {:?}", found.difference);
            assert_eq!((found.tokens.len(), found.weights.len(), found.errors[0].len()), (7, 1, 3));
            assert_eq!(found.errors[0], [1.0, -0.5, 0.25]);
        }
        let options = Options { temperature: Some(0.5), ..Options::default() };
        let mirror = layers(&context(), &options, Some(model(AttentionParams::mirror(2)))).unwrap();
        assert!(mirror.difference.unwrap() < 1e-13 && mirror.algorithm.unwrap().contains("reflected"));
        let other = AttentionParams::looped([1.0, 0.5, -1.0], &Matrix::identity(2));
        let other = layers(&context(), &options, Some(model(other))).unwrap();
        assert!(other.td.is_none() && other.difference.is_none());
    }

    #[test]
    fn layers_end_before_values_overflow() {
        let options =
            Options { step_size: Some(crate::studies::forward::StepSizes::All(1e300)), ..Options::default() };
        let found = layers(&context(), &options, None).unwrap();
        let overflow = found.overflow.unwrap();
        assert_eq!(found.attention.len(), overflow);
        assert!(found.attention.iter().flatten().all(|v| v.is_finite()));
        // None at all is an answer too.
        let none = Options { layers: Some(0), ..Options::default() };
        let none = layers(&context(), &none, None).unwrap();
        assert_eq!((none.tokens.len(), none.weights.len(), none.scores.len()), (1, 1, 1));
    }
}
