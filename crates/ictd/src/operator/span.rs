//! The directions that linear attention moves values in.

use crate::context::ContextStatistics;
use crate::matrix::Matrix;

/// Directions shorter than this share of the longest vector are rounding.
const NOISE: f64 = 1e-12;

/// With the linear kernel v(u) = ⟨B x_u, w⟩, and a layer adds α/n times Σ_s x_s·(summed TD errors of s) to w: a row of `moved` for x_s and one of
/// `seen` for B x_u, for every state, in coordinates that leave out what has no influence. B is the identity at theta_*.
#[derive(Clone, Debug)]
pub(super) struct Directions {
    /// What the TD errors of a state move w by.
    pub moved: Matrix,
    /// What the value of a state sees of w.
    pub seen: Matrix,
}

impl Directions {
    /// In all d coordinates.
    pub fn all(statistics: &ContextStatistics, block: Option<&Matrix>) -> Self {
        let (groups, d) = (statistics.num_groups(), statistics.feature_dim());
        let moved = Matrix::from_fn(groups, d, |u, a| statistics.features(u)[a]);
        let seen = block.map_or_else(|| moved.clone(), |block| moved.matmul(&block.transpose()));
        Self { moved, seen }
    }

    /// In an orthonormal basis of the span of the states that were left, in which w moves: what lies beyond it would only add eigenvalues 0 to
    /// the map of a layer. With a block B only what is seen of it counts: of the rest nothing is fed back.
    pub fn reduced(statistics: &ContextStatistics, block: Option<&Matrix>) -> Self {
        let all = Self::all(statistics, block);
        let left: Vec<&[f64]> = all.moved.rows().take(statistics.num_source_groups()).collect();
        let inside = match basis(&left) {
            Some(basis) => all.projected(&basis),
            None => all,
        };
        if block.is_none() {
            return inside;
        }
        let seen: Vec<&[f64]> = inside.seen.rows().collect();
        match basis(&seen) {
            Some(basis) => inside.projected(&basis),
            None => inside,
        }
    }

    /// In coordinates of orthonormal vectors.
    fn projected(&self, basis: &[Vec<f64>]) -> Self {
        let project =
            |rows: &Matrix| Matrix::from_fn(rows.num_rows(), basis.len(), |u, k| dot(rows.row(u), &basis[k]));
        Self { moved: project(&self.moved), seen: project(&self.seen) }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// An orthonormal basis of the span of some vectors; `None` when they span all dimensions.
fn basis(vectors: &[&[f64]]) -> Option<Vec<Vec<f64>>> {
    let d = vectors.first().map_or(0, |x| x.len());
    let mut rest: Vec<Vec<f64>> = vectors.iter().map(|x| x.to_vec()).collect();
    let length = |x: &Vec<f64>| dot(x, x).sqrt();
    let longest = rest.iter().map(length).fold(0.0, f64::max);
    let mut basis: Vec<Vec<f64>> = Vec::new();
    while basis.len() < d {
        // The one that sticks out most of what the basis spans.
        let Some(k) = (0..rest.len()).max_by(|&a, &b| length(&rest[a]).total_cmp(&length(&rest[b]))) else {
            break;
        };
        let size = length(&rest[k]);
        if !(size > NOISE * longest) {
            break;
        }
        let mut direction: Vec<f64> = rest[k].iter().map(|x| x / size).collect();
        // Once more against rounding.
        for q in &basis {
            let share = dot(q, &direction);
            direction.iter_mut().zip(q).for_each(|(x, q)| *x -= share * q);
        }
        let size = length(&direction);
        direction.iter_mut().for_each(|x| *x /= size);
        for x in &mut rest {
            let share = dot(&direction, x);
            x.iter_mut().zip(&direction).for_each(|(x, q)| *x -= share * q);
        }
        basis.push(direction);
    }
    (basis.len() < d).then_some(basis)
}
