//! Eigenvalues without the linear-algebra library: for matrices on which its iteration does not converge.
//!
//! Balancing, reduction to Hessenberg form by reflections, and the QR iteration with double shifts, after EISPACK's `balanc`,
//! `orthes` and `hqr` (Wilkinson and Reinsch, 1971). Slow beside the library, and it never gives up early: whenever ten
//! steps found no eigenvalue the shift is an exceptional one, each time another.

use crate::linalg::Eigenvalue;
use crate::matrix::Matrix;

/// Steps for one eigenvalue; three are usual.
const MAX_STEPS: usize = 300;
/// Steps between exceptional shifts.
const EXCEPTIONAL: usize = 10;

/// The matrix D⁻¹ Pᵀ A P D with a permutation P and a diagonal D of powers of two, times a power of two that brings its
/// largest entry near 1; and what its eigenvalues are to be multiplied by. No entry is rounded unless it underflows.
///
/// The permutation moves eigenvalues that stand alone (a row or a column that is 0 but for its diagonal) to the corners; D makes
/// the norms of a row and the column of the same number alike, among the rest.
pub(crate) fn balanced(a: &Matrix) -> (Matrix, f64) {
    let size = a.num_rows();
    let largest = a.as_slice().iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let scale = if largest > 0.0 { power_of_two_below(largest) } else { 1.0 };
    let mut a = a.map(|x| x / scale);
    let (mut low, mut high) = (0, size);
    let swap = |a: &mut Matrix, i: usize, j: usize| {
        if i != j {
            *a = Matrix::from_fn(size, size, |r, c| {
                let other = |k| {
                    if k == i {
                        j
                    } else if k == j {
                        i
                    } else {
                        k
                    }
                };
                a[(other(r), other(c))]
            });
        }
    };
    // Rows that are 0 but for their diagonal go to the end, columns to the beginning.
    while let Some(row) = (low..high).find(|&i| (low..high).all(|j| i == j || a[(i, j)] == 0.0)) {
        high -= 1;
        swap(&mut a, row, high);
    }
    while let Some(column) = (low..high).find(|&j| (low..high).all(|i| i == j || a[(i, j)] == 0.0)) {
        swap(&mut a, column, low);
        low += 1;
    }
    // Every round makes the sum of norms smaller; a hundred are far more than it takes.
    for _ in 0..100 {
        let mut changed = false;
        for i in low..high {
            let others = || (low..high).filter(|&j| j != i);
            let column: f64 = others().map(|j| a[(j, i)].abs()).sum();
            let row: f64 = others().map(|j| a[(i, j)].abs()).sum();
            if !(column > 0.0 && row > 0.0) {
                continue;
            }
            let factor = power_of_two_below((row / column).sqrt());
            // A twentieth less is no reason to change anything.
            if factor != 1.0 && column * factor + row / factor < 0.95 * (column + row) {
                changed = true;
                (0..size).for_each(|j| a[(j, i)] *= factor);
                (0..size).for_each(|j| a[(i, j)] /= factor);
            }
        }
        if !changed {
            break;
        }
    }
    (a, scale)
}

/// The largest power of two that is at most x, for 0 < x < ∞; 1 where there is none among ordinary numbers.
fn power_of_two_below(x: f64) -> f64 {
    let power = x.log2().floor().clamp(-1000.0, 1000.0).exp2();
    if power > 0.0 && power.is_finite() { power } else { 1.0 }
}

/// All eigenvalues of a square matrix of finite entries; `None` when the iteration does not converge after all.
pub(crate) fn eigenvalues(a: &Matrix) -> Option<Vec<Eigenvalue>> {
    let mut h = a.clone();
    reduce(&mut h);
    iterate(&mut h)
}

/// To Hessenberg form, by reflections.
fn reduce(a: &mut Matrix) {
    let size = a.num_rows();
    for k in 0..size.saturating_sub(2) {
        let scale: f64 = (k + 1..size).map(|i| a[(i, k)].abs()).sum();
        if scale == 0.0 {
            continue;
        }
        let mut v: Vec<f64> = (k + 1..size).map(|i| a[(i, k)] / scale).collect();
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v[0] += norm.copysign(v[0]);
        let half: f64 = 0.5 * v.iter().map(|x| x * x).sum::<f64>();
        for j in k..size {
            let share = v.iter().enumerate().map(|(i, v)| v * a[(k + 1 + i, j)]).sum::<f64>() / half;
            v.iter().enumerate().for_each(|(i, v)| a[(k + 1 + i, j)] -= share * v);
        }
        for i in 0..size {
            let row = &mut a.row_mut(i)[k + 1..];
            let share = row.iter().zip(&v).map(|(x, v)| x * v).sum::<f64>() / half;
            row.iter_mut().zip(&v).for_each(|(x, v)| *x -= share * v);
        }
        (k + 2..size).for_each(|i| a[(i, k)] = 0.0);
    }
}

/// The QR iteration on a Hessenberg matrix: EISPACK's `hqr`.
fn iterate(a: &mut Matrix) -> Option<Vec<Eigenvalue>> {
    let size = a.num_rows();
    let norm: f64 = a.as_slice().iter().map(|x| x.abs()).sum();
    let mut values = Vec::with_capacity(size);
    // What exceptional shifts took off the diagonal.
    let mut shifted = 0.0;
    let mut end = size;
    while end > 0 {
        let mut steps = 0;
        loop {
            let last = end - 1;
            let first = isolated_from(a, last, norm);
            let x = a[(last, last)];
            if first == last {
                values.push(Eigenvalue { re: x + shifted, im: 0.0 });
                end -= 1;
                break;
            }
            let (y, w) = (a[(last - 1, last - 1)], a[(last, last - 1)] * a[(last - 1, last)]);
            if first + 1 == last {
                values.extend(pair(x, y, w, shifted));
                end -= 2;
                break;
            }
            if steps == MAX_STEPS {
                return None;
            }
            let mut shift = (x, y, w);
            if steps % EXCEPTIONAL == EXCEPTIONAL - 1 {
                shifted += x;
                (0..=last).for_each(|i| a[(i, i)] -= x);
                // EISPACK's is the first; the others keep it from returning to where it was.
                let s = (a[(last, last - 1)].abs() + a[(last - 1, last - 2)].abs())
                    * (1.0 + 0.1 * (steps / EXCEPTIONAL) as f64);
                shift = (0.75 * s, 0.75 * s, -0.4375 * s * s);
            }
            steps += 1;
            double_step(a, first, last, shift);
            // Overflow and what comes of it.
            if !a.row(last)[last].is_finite() {
                return None;
            }
        }
    }
    values.iter().all(|z| z.re.is_finite() && z.im.is_finite()).then_some(values)
}

/// The first row of the block that ends in `last`: where the entry below the diagonal is rounding of its neighbours.
fn isolated_from(a: &mut Matrix, last: usize, norm: f64) -> usize {
    for l in (1..=last).rev() {
        let beside = a[(l - 1, l - 1)].abs() + a[(l, l)].abs();
        let beside = if beside == 0.0 { norm } else { beside };
        if a[(l, l - 1)].abs() <= f64::EPSILON * beside {
            a[(l, l - 1)] = 0.0;
            return l;
        }
    }
    0
}

/// The eigenvalues of a block of two: x and y on the diagonal, w the product of the others.
fn pair(x: f64, y: f64, w: f64, shifted: f64) -> [Eigenvalue; 2] {
    let p = 0.5 * (y - x);
    let q = p * p + w;
    let (z, x) = (q.abs().sqrt(), x + shifted);
    if q >= 0.0 {
        let z = p + z.copysign(p);
        let other = if z == 0.0 { x } else { x - w / z };
        [x + z, other].map(|re| Eigenvalue { re, im: 0.0 })
    } else {
        [z, -z].map(|im| Eigenvalue { re: x + p, im })
    }
}

/// One step with two shifts, on the block from `first` to `last`.
fn double_step(a: &mut Matrix, first: usize, last: usize, (x, y, w): (f64, f64, f64)) {
    // Two small entries in a row below the diagonal are as good as one that is 0.
    let mut m = last - 2;
    let (mut p, mut q, mut r);
    loop {
        let z = a[(m, m)];
        let (rr, s) = (x - z, y - z);
        p = (rr * s - w) / a[(m + 1, m)] + a[(m, m + 1)];
        q = a[(m + 1, m + 1)] - z - rr - s;
        r = a[(m + 2, m + 1)];
        let s = p.abs() + q.abs() + r.abs();
        (p, q, r) = (p / s, q / s, r / s);
        if m == first {
            break;
        }
        let left = a[(m, m - 1)].abs() * (q.abs() + r.abs());
        let right = p.abs() * (a[(m - 1, m - 1)].abs() + z.abs() + a[(m + 1, m + 1)].abs());
        if left <= f64::EPSILON * right {
            break;
        }
        m -= 1;
    }
    for i in m + 2..=last {
        a[(i, i - 2)] = 0.0;
        if i != m + 2 {
            a[(i, i - 3)] = 0.0;
        }
    }
    for k in m..last {
        let three = k + 1 != last;
        let mut scale = 1.0;
        if k != m {
            (p, q, r) = (a[(k, k - 1)], a[(k + 1, k - 1)], if three { a[(k + 2, k - 1)] } else { 0.0 });
            scale = p.abs() + q.abs() + r.abs();
            if scale == 0.0 {
                continue;
            }
            (p, q, r) = (p / scale, q / scale, r / scale);
        }
        let s = (p * p + q * q + r * r).sqrt().copysign(p);
        if s == 0.0 {
            continue;
        }
        if k != m {
            a[(k, k - 1)] = -s * scale;
        } else if first != m {
            a[(k, k - 1)] = -a[(k, k - 1)];
        }
        p += s;
        let (x, y, z) = (p / s, q / s, r / s);
        (q, r) = (q / p, r / p);
        for j in k..=last {
            let mut share = a[(k, j)] + q * a[(k + 1, j)];
            if three {
                share += r * a[(k + 2, j)];
                a[(k + 2, j)] -= share * z;
            }
            a[(k + 1, j)] -= share * y;
            a[(k, j)] -= share * x;
        }
        for i in first..=last.min(k + 3) {
            let row = a.row_mut(i);
            let mut share = x * row[k] + y * row[k + 1];
            if three {
                share += z * row[k + 2];
                row[k + 2] -= share * r;
            }
            row[k + 1] -= share * q;
            row[k] -= share;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::linalg;
    use crate::random::{Purpose, Stream};

    /// The largest distance of an eigenvalue to its partner, each the nearest that is left.
    pub(crate) fn distance(found: &[Eigenvalue], mut expected: Vec<Eigenvalue>) -> f64 {
        assert_eq!(found.len(), expected.len());
        let mut worst: f64 = 0.0;
        for z in found {
            let apart = |w: &Eigenvalue| (z.re - w.re).hypot(z.im - w.im);
            let nearest = (0..expected.len())
                .min_by(|&a, &b| apart(&expected[a]).total_cmp(&apart(&expected[b])))
                .unwrap();
            worst = worst.max(apart(&expected.swap_remove(nearest)));
        }
        worst
    }

    fn random(size: usize, index: u64) -> Matrix {
        let mut stream = Stream::new(5, Purpose::Prompt, index);
        Matrix::from_fn(size, size, |_, _| stream.uniform_in(-1.0, 1.0))
    }

    #[test]
    fn eigenvalues_are_those_of_the_library() {
        for index in 0..60 {
            let a = random(1 + index as usize % 20, index);
            let expected = linalg::eigenvalues(&a).unwrap();
            let (balanced, scale) = balanced(&a);
            for matrix in [&a, &a.transpose(), &balanced.map(|x| scale * x)] {
                // Random matrices are well conditioned: a thousand roundings.
                let found = eigenvalues(matrix).unwrap();
                assert!(distance(&found, expected.clone()) < 1e-11, "matrix {index}");
            }
        }
    }

    /// A cycle is its own QR step: without exceptional shifts the iteration stands still.
    #[test]
    fn cycles_have_the_roots_of_unity() {
        for size in [3, 4, 8, 17] {
            let cycle = Matrix::from_fn(size, size, |i, j| f64::from(u8::from((i + 1) % size == j)));
            let found = eigenvalues(&cycle).unwrap();
            let root = |k: usize| {
                let angle = std::f64::consts::TAU * k as f64 / size as f64;
                Eigenvalue { re: angle.cos(), im: angle.sin() }
            };
            assert!(distance(&found, (0..size).map(root).collect()) < 1e-12, "{size}");
        }
    }

    /// Triangular matrices, with permuted rows and columns, of entries of all sizes: what stands alone is isolated exactly.
    #[test]
    fn balancing_isolates_what_stands_alone() {
        let size = 7;
        let order = [3, 0, 6, 2, 5, 1, 4];
        let upper = |i: usize, j: usize| {
            if i > j { 0.0 } else { (i + 2 * j + 1) as f64 * 10f64.powi(20 * (i as i32 - j as i32)) }
        };
        let a = Matrix::from_fn(size, size, |i, j| upper(order[i], order[j]));
        let (balanced, scale) = balanced(&a);
        let mut found: Vec<f64> = eigenvalues(&balanced).unwrap().iter().map(|z| scale * z.re).collect();
        found.sort_by(f64::total_cmp);
        assert_eq!(found, (0..size).map(|i| upper(i, i)).collect::<Vec<_>>());
    }

    /// Entries near the limits of double precision, and rows and columns of very different sizes.
    #[test]
    fn sizes_of_entries_do_not_matter() {
        for index in 0..20 {
            let a = random(6, index);
            let expected = linalg::eigenvalues(&a).unwrap();
            for scale in [1e-290, 1e290] {
                let (balanced, factor) = balanced(&a.map(|x| scale * x));
                let back =
                    |z: Eigenvalue| Eigenvalue { re: z.re * (factor / scale), im: z.im * (factor / scale) };
                let found: Vec<_> = eigenvalues(&balanced).unwrap().into_iter().map(back).collect();
                assert!(distance(&found, expected.clone()) < 1e-11);
            }
            let skewed = Matrix::from_fn(6, 6, |i, j| a[(i, j)] * 2f64.powi(30 * (i as i32 - j as i32)));
            let (balanced, factor) = balanced(&skewed);
            let found = eigenvalues(&balanced.map(|x| factor * x)).unwrap();
            assert!(distance(&found, expected) < 1e-10);
        }
    }

    /// Sharp softmax on a chain: matrices whose entries reach from 1 to underflow, on which the library gives up on some
    /// processors. Both ways find a spectrum, and the same sums of eigenvalues: the trace.
    #[test]
    fn sharp_layers_have_a_spectrum() {
        use crate::{Attention, Family, KernelName, StateOperator, TaskSource as _};
        let family = Family { num_states: 8, score_scale: 1000.0, ..Family::paper() };
        let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
        for index in 0..40 {
            let task = family.draw(&mut Stream::new(0, Purpose::Task, index)).unwrap();
            let operator = StateOperator::population(&task, &attention).unwrap();
            let map = operator.difference_matrix();
            let trace: f64 = (0..8).map(|i| map[(i, i)]).sum();
            let (balanced, scale) = balanced(&map);
            let own = eigenvalues(&balanced).unwrap().iter().map(|z| scale * z.re).sum::<f64>();
            let library: f64 = linalg::eigenvalues(&map).unwrap().iter().map(|z| z.re).sum();
            assert!((own - trace).abs() < 1e-12 && (library - trace).abs() < 1e-12, "task {index}");
        }
    }
}
