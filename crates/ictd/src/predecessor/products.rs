//! Products of small matrices and vectors in lanes.

use super::prompts::{Prompts, symmetric};
use crate::pretrain::lanes::Machine;

/// y ← y + S x with the first `len` rows and columns of the moments S of `k` rows.
#[inline(always)]
pub fn add_moments<M: Machine>(
    m: M,
    (k, len): (usize, usize),
    prompts: &Prompts<M::Element>,
    t: usize,
    x: &[M::Cell],
    y: &mut [M::Cell],
) {
    let (x, y) = (&x[..len], &mut y[..len]);
    for i in 0..len {
        let mut sum = m.get(&y[i]);
        for (j, x) in x.iter().enumerate() {
            sum = m.fma(m.load(prompts.moment(symmetric(k, i, j), t)), m.get(x), sum);
        }
        m.put(sum, &mut y[i]);
    }
}

/// y ← y + A x, or y + Aᵀ x.
#[inline(always)]
pub fn add_product<M: Machine>(
    m: M,
    k: usize,
    a: &[M::Element],
    transposed: bool,
    x: &[M::Cell],
    y: &mut [M::Cell],
) {
    let (a, x, y) = (&a[..k * k], &x[..k], &mut y[..k]);
    for i in 0..k {
        let mut sum = m.get(&y[i]);
        for j in 0..k {
            let entry = if transposed { a[j * k + i] } else { a[i * k + j] };
            sum = m.fma(m.splat(entry), m.get(&x[j]), sum);
        }
        m.put(sum, &mut y[i]);
    }
}

/// Ā ← Ā + u vᵀ.
#[inline(always)]
pub fn add_outer<M: Machine>(m: M, k: usize, u: &[M::Cell], v: &[M::Cell], a_bar: &mut [M::Cell]) {
    let (u, v, a_bar) = (&u[..k], &v[..k], &mut a_bar[..k * k]);
    for i in 0..k {
        let u = m.get(&u[i]);
        for j in 0..k {
            let cell = &mut a_bar[i * k + j];
            m.put(m.fma(u, m.get(&v[j]), m.get(cell)), cell);
        }
    }
}
