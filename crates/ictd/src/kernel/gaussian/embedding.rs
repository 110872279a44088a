//! Points whose inner products are the scores.

use super::tile::Real;
use crate::kernel::{Scores, Similarity};
use crate::linalg;
use crate::matrix::Matrix;
use crate::statistics::largest;

/// Points y and factors b with W(s, u) ∝ b(s)·2^⟨y_s, y_u⟩ in every column u: what attention with an exponential kernel and a
/// symmetric positive semidefinite block B comes to.
///
/// With softmax exp(x_sᵀBx_u/τ), with rbf exp(-(x_s - x_u)ᵀB(x_s - x_u)/(2τ)). With B = RᵀR and y = √(log₂e/τ)·R(x - x₀) both are
/// 2^⟨y_s, y_u⟩ times a factor of the source and one of the column, which normalising takes out again: b(s) = 2^⟨y_s, y₀⟩ for softmax,
/// where y₀ is where x₀ would be, and 2^(-‖y_s‖²/2) for rbf. x₀ is the middle of the box around all features, which makes points
/// short, hence exponents small and their rounding too.
#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    dim: usize,
    num_sources: usize,
    root: Root,
    /// √(log₂e/τ).
    scale: f64,
    /// x₀.
    centre: Vec<f64>,
    /// Point after point, sources first.
    points: Vec<f64>,
    /// b(s) of the sources, the largest being 1.
    factors: Vec<f64>,
    /// The largest ‖y‖².
    reach: f64,
    /// -log₂ of the smallest factor.
    spread: f64,
    /// What rounding of the points and factors may do to the logarithm (base 2) of a weight before normalising.
    placing_error: f64,
}

impl Embedding {
    /// Where weights are of that form, and numbers are within the range of double precision.
    pub fn of(scores: Scores<'_>) -> Option<Self> {
        let Scores { attention, block, statistics } = scores;
        let kernel = attention.kernel();
        // exp(c·G) with G an inner product, exp(-c·G/2) with G a squared distance: c = 1/τ.
        let exponent = kernel.exponent()?;
        let distances = match kernel.similarity() {
            Similarity::InnerProduct => false,
            Similarity::SquaredDistance => true,
            Similarity::SameState => return None,
        };
        let rate = if distances { -2.0 * exponent } else { exponent };
        if !(rate > 0.0) {
            return None;
        }
        let root = block.map_or_else(|| Some(Root::identity(statistics.feature_dim())), Root::of)?;
        let scale = (rate * std::f64::consts::LOG2_E).sqrt();
        let (d, n) = (statistics.feature_dim(), statistics.num_groups());
        let mut centre = vec![0.0; d];
        for (a, middle) in centre.iter_mut().enumerate() {
            let ends = (0..n).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), u| {
                let x = statistics.features(u)[a];
                (low.min(x), high.max(x))
            });
            *middle = 0.5 * ends.0 + 0.5 * ends.1;
        }
        let mut points = vec![0.0; d * n];
        for (u, y) in points.chunks_exact_mut(d).enumerate() {
            place(&root, scale, &centre, statistics.features(u), y);
        }
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let reach = largest(points.chunks_exact(d).map(|y| dot(y, y)));
        let mut origin = vec![0.0; d];
        place(&root, scale, &vec![0.0; d], &centre, &mut origin);
        let num_sources = statistics.num_source_groups();
        let sources = points.chunks_exact(d).take(num_sources);
        let mut logarithms: Vec<f64> =
            sources.map(|y| if distances { -0.5 * dot(y, y) } else { dot(y, &origin) }).collect();
        let top = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logarithms.iter_mut().for_each(|b| *b -= top);
        let spread = largest(logarithms.iter().map(|b| -b));
        let factors: Vec<f64> = logarithms.iter().map(|b| b.exp2()).collect();
        // Coordinates of y and y₀ are off by d + 4 roundings of the sizes that they are made of: differences from x₀ (which a product
        // with y₀ may meet again), the root and its own error, the scale. Distances do not know y₀.
        let steps = f64::EPSILON * (d as f64 + 4.0) + root.error;
        let from_origin = if distances { 0.0 } else { (reach * dot(&origin, &origin)).sqrt() };
        let placing_error = steps * 4.0 * (reach + from_origin);
        let usable = [reach, spread, placing_error].iter().all(|x| x.is_finite());
        usable.then_some(Self {
            dim: d,
            num_sources,
            root,
            scale,
            centre,
            points,
            factors,
            reach,
            spread,
            placing_error,
        })
    }

    /// The points of other features, one after another.
    pub fn place(&self, features: &Matrix) -> Vec<f64> {
        let mut points = vec![0.0; self.dim * features.num_rows()];
        for (x, y) in features.rows().zip(points.chunks_exact_mut(self.dim)) {
            place(&self.root, self.scale, &self.centre, x, y);
        }
        points
    }

    /// a(s) = b(s)·2^(‖y_s‖²/2) of a source: its weights are a(s)·κ(s, u) before normalising, κ being the Gaussian kernel.
    pub fn amplitude(&self, s: usize) -> f64 {
        self.factors[s] * (0.5 * self.square(s)).exp2()
    }

    /// Number of coordinates.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.points.len() / self.dim
    }

    /// The first points are sources.
    pub fn num_sources(&self) -> usize {
        self.num_sources
    }

    /// A point.
    pub fn point(&self, u: usize) -> &[f64] {
        &self.points[u * self.dim..(u + 1) * self.dim]
    }

    /// ‖y_u‖².
    pub fn square(&self, u: usize) -> f64 {
        self.point(u).iter().map(|y| y * y).sum()
    }

    /// All points in groups, each by coordinate: the first of all points of the group, then the second, and so on. Zeros fill up the
    /// last group.
    pub fn columns<T: Real>(&self) -> Vec<T> {
        let mut columns = vec![T::default(); self.len().next_multiple_of(T::GROUP) * self.dim];
        let groups = columns.chunks_exact_mut(T::GROUP * self.dim);
        for (group, points) in groups.zip(self.points.chunks(T::GROUP * self.dim)) {
            for (k, y) in points.chunks_exact(self.dim).enumerate() {
                y.iter().enumerate().for_each(|(a, y)| group[a * T::GROUP + k] = T::of(*y));
            }
        }
        columns
    }

    /// b(s) of the sources, the largest being 1.
    pub fn factors(&self) -> &[f64] {
        &self.factors
    }

    /// The largest ‖y‖²: no exponent is larger, up or down.
    pub fn reach(&self) -> f64 {
        self.reach
    }

    /// Exponents up or down of b(s)·2^⟨y_s, y_u⟩.
    pub fn range(&self) -> f64 {
        self.reach + self.spread
    }

    /// What rounding of points and factors may do to a weight before normalising, relatively.
    pub fn placing_error(&self) -> f64 {
        std::f64::consts::LN_2 * self.placing_error
    }
}

/// y = scale·R(x - x₀).
fn place(root: &Root, scale: f64, centre: &[f64], x: &[f64], y: &mut [f64]) {
    let apart: Vec<f64> = x.iter().zip(centre).map(|(x, middle)| x - middle).collect();
    root.apply(&apart, y);
    y.iter_mut().for_each(|y| *y *= scale);
}

/// R with RᵀR = B for a symmetric positive semidefinite B.
#[derive(Clone, Debug)]
enum RootForm {
    /// √B(a, a).
    Diagonal(Vec<f64>),
    /// Upper triangular.
    Full(Matrix),
}

#[derive(Clone, Debug)]
struct Root {
    form: RootForm,
    /// The largest |B - RᵀR| entry, relative to what rows of R have.
    error: f64,
}

impl Root {
    fn identity(d: usize) -> Self {
        Self { form: RootForm::Diagonal(vec![1.0; d]), error: 0.0 }
    }

    fn of(block: &Matrix) -> Option<Self> {
        let d = block.num_rows();
        let symmetric = (0..d).all(|a| (0..a).all(|b| block[(a, b)] == block[(b, a)]));
        let diagonal: Vec<f64> = (0..d).map(|a| block[(a, a)]).collect();
        if !symmetric || !diagonal.iter().all(|x| *x >= 0.0) {
            return None;
        }
        let is_diagonal = (0..d).all(|a| (0..d).all(|b| a == b || block[(a, b)] == 0.0));
        if is_diagonal {
            let roots = diagonal.iter().map(|x| x.sqrt()).collect();
            return Some(Self { form: RootForm::Diagonal(roots), error: 0.0 });
        }
        let root = linalg::cholesky(block)?.transpose();
        let back = root.transpose().matmul(&root);
        let largest_error = largest(block.as_slice().iter().zip(back.as_slice()).map(|(a, b)| (a - b).abs()));
        // Distances are measured by B: what its error makes of them is relative to its smallest stretch.
        let smallest = (0..d).map(|a| root[(a, a)] * root[(a, a)]).fold(f64::INFINITY, f64::min);
        Some(Self { form: RootForm::Full(root), error: d as f64 * largest_error / smallest })
    }

    /// Rx.
    fn apply(&self, x: &[f64], y: &mut [f64]) {
        match &self.form {
            RootForm::Diagonal(roots) => {
                for ((y, x), root) in y.iter_mut().zip(x).zip(roots) {
                    *y = root * x;
                }
            }
            RootForm::Full(root) => {
                for (y, row) in y.iter_mut().zip(root.rows()) {
                    *y = row.iter().zip(x).map(|(r, x)| r * x).sum();
                }
            }
        }
    }
}
