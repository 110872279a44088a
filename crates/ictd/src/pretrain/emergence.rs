//! Emergence scores: how close learned parameters are to the TD block.

/// The paper's ε in both scores.
const EPSILON: f64 = 1e-8;

/// Which solution a run has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// The TD block: value signs (+, +, -) and a positive mean diagonal of A.
    Td,
    /// Its mirror image: value signs (-, -, +) and a negative mean diagonal of A.
    Mirror,
    /// Neither.
    None,
}

impl Branch {
    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Td => "td",
            Self::Mirror => "mirror",
            Self::None => "none",
        }
    }
}

/// The scores of the first layer's (V, A) (paper, "Emergence metrics").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Emergence {
    /// V_em: 0 unless the signs are (+, +, -), else how comparable the three magnitudes are.
    pub value: f64,
    /// A_em as the paper writes it: diagonality times comparability. The latter divides by the signed
    /// mean of the diagonal, so a spread around a negative mean scores 0, while an exactly uniform
    /// negative diagonal scores 1.
    pub score: f64,
    /// V_em with the sign of the branch: as V_em for (+, +, -), its negative for (-, -, +), else 0.
    pub value_signed: f64,
    /// A_em with the sign of the mean diagonal: A_em(A) when positive, -A_em(-A) when negative.
    pub score_signed: f64,
    /// The branch.
    pub branch: Branch,
}

impl Emergence {
    /// The scores of V's entries for reward, target and value, and of A's d×d block by its entries.
    pub(super) fn of(coefficients: [f64; 3], d: usize, entry: impl Fn(usize, usize) -> f64 + Copy) -> Self {
        let comparable = evenness(coefficients.into_iter().map(f64::abs));
        let [r, t, v] = coefficients;
        let value_sign = match (r > 0.0 && t > 0.0 && v < 0.0, r < 0.0 && t < 0.0 && v > 0.0) {
            (true, _) => 1.0,
            (_, true) => -1.0,
            _ => 0.0,
        };
        let diagonal = (0..d).map(|i| entry(i, i));
        let mean = diagonal.clone().sum::<f64>() / d as f64;
        let diagonality = diagonality(entry, d);
        let score = diagonality * evenness(diagonal.clone());
        let score_signed = match mean {
            m if m > 0.0 => score,
            m if m < 0.0 => -diagonality * evenness(diagonal.map(|a| -a)),
            _ => 0.0,
        };
        let branch = match (value_sign, mean) {
            (1.0, m) if m > 0.0 => Branch::Td,
            (-1.0, m) if m < 0.0 => Branch::Mirror,
            _ => Branch::None,
        };
        let value = if value_sign == 1.0 { comparable } else { 0.0 };
        Self { value, score, value_signed: value_sign * comparable, score_signed, branch }
    }

    /// min(V_em, A_em), which picks the paper's checkpoint.
    pub fn joint(&self) -> f64 {
        self.value.min(self.score)
    }

    /// The same for either branch.
    pub fn joint_signed(&self) -> f64 {
        self.value_signed.abs().min(self.score_signed.abs())
    }
}

/// A_diag: the share of the diagonal in the ℓ1 mass after dividing every column by its ℓ2 norm.
fn diagonality(entry: impl Fn(usize, usize) -> f64 + Copy, d: usize) -> f64 {
    let (mut on_diagonal, mut all) = (0.0, 0.0);
    for j in 0..d {
        let column = (0..d).map(|i| entry(i, j));
        let norm = column.clone().map(|x| x * x).sum::<f64>().sqrt();
        if norm > 0.0 {
            on_diagonal += entry(j, j).abs() / norm;
            all += column.map(|x| x.abs() / norm).sum::<f64>();
        }
    }
    on_diagonal / all.max(EPSILON)
}

/// C_V of magnitudes and C_A of a diagonal: 1 when all are equal, falling to 0. Divides by the signed mean.
fn evenness(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let count = values.len() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let spread: f64 = values.map(|x| (x - mean).abs()).sum();
    (1.0 - spread / (count * mean.max(EPSILON))).max(0.0)
}
