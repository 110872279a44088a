//! Attention of any kind, through the distinct columns of a window.
//!
//! Columns that are equal in Z_0 are equal after every layer, so a window is its distinct columns and how often each is there. With
//! counts c_i a layer maps z_j to z_j + Σ_i A_ij u_i over distinct sources i, u_i = (c_i/n) P z_i, where A_ij = z_iᵀ Q z_j or, for
//! softmax, exp(z_iᵀ Q z_j) / (Σ_k c_k exp(z_iᵀ Q z_k) + exp(z_iᵀ Q z_q)). Sixteen consecutive windows have most of their
//! columns in common; one that a window of them lacks has count 0 there.

use super::config::Activation;
use super::products::{add_outer, add_product};
use super::program::{Feedback, Job, Program, put_windows};
use super::shape::PredecessorShape;
use crate::pretrain::lanes::{Element as _, Machine};

/// What backward needs of a layer: offsets into the cells of a group.
#[derive(Clone, Copy, Debug)]
struct Layer {
    /// Column by column z_j, then Q z_j, then u_i.
    z: usize,
    y: usize,
    u: usize,
    /// Source by source A_ij.
    a: usize,
}

impl Layer {
    /// Where layer `l` of a group of `sources` distinct columns stands.
    fn at(k: usize, sources: usize, l: usize) -> Self {
        let columns = sources + 1;
        let z = l * (2 * columns * k + sources * k + sources * columns);
        let (y, u) = (z + columns * k, z + 2 * columns * k);
        Self { z, y, u, a: u + sources * k }
    }
}

/// A group of windows in lanes.
#[derive(Clone, Debug, Default)]
struct Group<C> {
    /// The distinct columns that any of its windows has.
    sources: Vec<usize>,
    /// How often each is there, and the query's 1.
    counts: Vec<C>,
    /// All layers.
    cells: Vec<C>,
}

/// The pass, with everything of the windows that were asked for last.
#[derive(Clone, Debug)]
pub struct Columns<C> {
    shape: PredecessorShape,
    groups: Vec<Group<C>>,
    z_bar: Vec<C>,
    z_out: Vec<C>,
    y_bar: Vec<C>,
    a_bar: Vec<C>,
    u_bar: Vec<C>,
    params_bar: Vec<C>,
}

impl<C: Copy + Default> Columns<C> {
    /// Buffers for a shape.
    pub fn new(shape: &PredecessorShape) -> Self {
        let (groups, z_bar, z_out, y_bar, a_bar) = Default::default();
        let u_bar = vec![C::default(); shape.num_rows()];
        let params_bar = vec![C::default(); shape.num_params()];
        Self { shape: *shape, groups, z_bar, z_out, y_bar, a_bar, u_bar, params_bar }
    }
}

impl<M: Machine> Program<M> for Columns<M::Cell> {
    #[inline(always)]
    fn num_rows(&self) -> usize {
        self.shape.num_rows()
    }

    #[inline(always)]
    fn forward_of(&mut self, m: M, k: usize, job: Job<'_, M::Element>, out: &mut [M::Element]) {
        let (d, depth) = ((k - 1) / 2, self.shape.num_layers);
        let zero = m.splat(M::Element::default());
        let one = m.splat(M::Element::of(1.0));
        let share = m.splat(M::Element::of(1.0 / self.shape.context_len as f64));
        self.groups.resize_with(out.len().div_ceil(M::LANES), Group::default);
        for number in 0..self.groups.len() {
            let t = number * M::LANES;
            let mut group = std::mem::take(&mut self.groups[number]);
            let Group { sources, counts, cells } = &mut group;
            job.prompts.gather(m, t, sources, counts);
            let (num, columns) = (sources.len(), sources.len() + 1);
            counts.push(M::Cell::default());
            m.put(one, &mut counts[num]);
            cells.resize(Layer::at(k, num, depth).z, M::Cell::default());
            for (j, column) in cells[..columns * k].chunks_exact_mut(k).enumerate() {
                for (r, cell) in column.iter_mut().enumerate() {
                    let entry = match sources.get(j) {
                        Some(&c) => m.splat(job.prompts.column(c, k)[r]),
                        None if r < d => m.load(job.prompts.query(r, t)),
                        None => zero,
                    };
                    m.put(entry, cell);
                }
            }
            let mut value = zero;
            for l in 0..depth {
                let (p, q) = self.shape.pair(job.params, self.shape.pair_of(l));
                let at = Layer::at(k, num, l);
                let (here, next) = cells.split_at_mut(Layer::at(k, num, l + 1).z);
                let (z, rest) = here[at.z..].split_at_mut(at.y - at.z);
                let (y, rest) = rest.split_at_mut(at.u - at.y);
                let (u, a) = rest.split_at_mut(at.a - at.u);
                y.iter_mut().chain(u.iter_mut()).for_each(|cell| m.put(zero, cell));
                for (z, y) in z.chunks_exact(k).zip(y.chunks_exact_mut(k)) {
                    add_product(m, k, q, false, z, y);
                }
                for ((z, u), count) in z.chunks_exact(k).zip(u.chunks_exact_mut(k)).zip(&*counts) {
                    add_product(m, k, p, false, z, u);
                    let weight = m.get(count) * share;
                    u.iter_mut().for_each(|cell| m.put(m.get(cell) * weight, cell));
                }
                let is_last = l + 1 == depth;
                for (z, row) in z.chunks_exact(k).zip(a.chunks_exact_mut(columns)) {
                    weigh(m, k, self.shape.activation, z, y, counts, row);
                }
                // Of the last layer nobody reads more than the query's last entry.
                let query = &z[num * k..];
                if is_last {
                    value = -m.get(&query[k - 1]);
                    for (u, row) in u.chunks_exact(k).zip(a.chunks_exact(columns)) {
                        value = value - m.get(&u[k - 1]) * m.get(&row[num]);
                    }
                    continue;
                }
                for j in 0..columns {
                    let (old, new) = (&z[j * k..(j + 1) * k], &mut next[j * k..(j + 1) * k]);
                    for r in 0..k {
                        let mut sum = m.get(&old[r]);
                        for i in 0..num {
                            sum = m.fma(m.get(&a[i * columns + j]), m.get(&u[i * k + r]), sum);
                        }
                        m.put(sum, &mut new[r]);
                    }
                }
            }
            put_windows(m, value, &mut out[t..]);
            self.groups[number] = group;
        }
    }

    #[inline(always)]
    fn backward_of(
        &mut self,
        m: M,
        k: usize,
        job: Job<'_, M::Element>,
        mut feedback: Feedback<'_, M::Element>,
    ) {
        let (d, depth) = ((k - 1) / 2, self.shape.num_layers);
        let zero = m.splat(M::Element::default());
        let share = m.splat(M::Element::of(1.0 / self.shape.context_len as f64));
        self.params_bar.iter_mut().for_each(|cell| m.put(zero, cell));
        for number in 0..feedback.out_bar.len().div_ceil(M::LANES) {
            let t = number * M::LANES;
            let group = &self.groups[number];
            let (num, columns) = (group.sources.len(), group.sources.len() + 1);
            for buffer in [&mut self.z_bar, &mut self.y_bar] {
                buffer.resize(columns * k, M::Cell::default());
            }
            self.a_bar.resize(columns, M::Cell::default());
            self.z_bar.iter_mut().for_each(|cell| m.put(zero, cell));
            m.put(-feedback.of_windows(m, t), &mut self.z_bar[columns * k - 1]);
            for l in (0..depth).rev() {
                let pair = self.shape.pair_of(l);
                let (p, q) = self.shape.pair(job.params, pair);
                let (p_bar, q_bar) = self.shape.pair_mut(&mut self.params_bar, pair);
                let at = Layer::at(k, num, l);
                let cells = &group.cells[..Layer::at(k, num, l + 1).z];
                let (z, y, u, a) =
                    (&cells[at.z..at.y], &cells[at.y..at.u], &cells[at.u..at.a], &cells[at.a..]);
                // Columns whose next values somebody reads.
                let read = if l + 1 == depth { num } else { 0 };
                // What comes back along the scores and weights is kept apart until all of it is read.
                self.z_out.clone_from(&self.z_bar);
                self.y_bar.iter_mut().for_each(|cell| m.put(zero, cell));
                for i in 0..num {
                    let (z_i, u_i) = (&z[i * k..(i + 1) * k], &u[i * k..(i + 1) * k]);
                    let row = &a[i * columns..(i + 1) * columns];
                    let mut through = zero;
                    for j in read..columns {
                        let z_out = &self.z_out[j * k..(j + 1) * k];
                        let mut a_bar = zero;
                        for r in 0..k {
                            a_bar = m.fma(m.get(&u_i[r]), m.get(&z_out[r]), a_bar);
                        }
                        through = m.fma(a_bar, m.get(&row[j]), through);
                        m.put(a_bar, &mut self.a_bar[j]);
                    }
                    // Scores: of all columns where they share a normaliser.
                    if self.shape.activation == Activation::Softmax {
                        for j in 0..columns {
                            let a_bar = if j < read { zero } else { m.get(&self.a_bar[j]) };
                            let x_bar = m.get(&row[j]) * (a_bar - m.get(&group.counts[j]) * through);
                            m.put(x_bar, &mut self.a_bar[j]);
                        }
                    }
                    let scored = if self.shape.activation == Activation::Softmax { 0 } else { read };
                    // Sums over columns stay in registers.
                    for r in 0..k {
                        let (mut u_bar, mut z_bar) = (zero, m.get(&self.z_bar[i * k + r]));
                        for j in read..columns {
                            u_bar = m.fma(m.get(&row[j]), m.get(&self.z_out[j * k + r]), u_bar);
                        }
                        for j in scored..columns {
                            z_bar = m.fma(m.get(&self.a_bar[j]), m.get(&y[j * k + r]), z_bar);
                        }
                        m.put(u_bar, &mut self.u_bar[r]);
                        m.put(z_bar, &mut self.z_bar[i * k + r]);
                    }
                    for j in scored..columns {
                        let x_bar = m.get(&self.a_bar[j]);
                        for (cell, z) in self.y_bar[j * k..(j + 1) * k].iter_mut().zip(z_i) {
                            m.put(m.fma(x_bar, m.get(z), m.get(cell)), cell);
                        }
                    }
                    let weight = m.get(&group.counts[i]) * share;
                    self.u_bar.iter_mut().for_each(|cell| m.put(m.get(cell) * weight, cell));
                    add_outer(m, k, &self.u_bar, z_i, p_bar);
                    add_product(m, k, p, true, &self.u_bar, &mut self.z_bar[i * k..(i + 1) * k]);
                }
                for j in 0..columns {
                    let y_bar = &self.y_bar[j * k..(j + 1) * k];
                    add_outer(m, k, y_bar, &z[j * k..(j + 1) * k], q_bar);
                    add_product(m, k, q, true, y_bar, &mut self.z_bar[j * k..(j + 1) * k]);
                }
            }
            for a in 0..d {
                feedback.put_query(m, a, t, m.get(&self.z_bar[num * k + a]));
            }
        }
        feedback.gradient.iter_mut().zip(&self.params_bar).for_each(|(g, cell)| *g += m.sum(cell));
    }
}

/// The weights A_ij of a source z_i for all columns, from Q z_j.
#[inline(always)]
fn weigh<M: Machine>(
    m: M,
    k: usize,
    activation: Activation,
    z: &[M::Cell],
    y: &[M::Cell],
    counts: &[M::Cell],
    row: &mut [M::Cell],
) {
    let zero = m.splat(M::Element::default());
    for (cell, y) in row.iter_mut().zip(y.chunks_exact(k)) {
        let mut score = zero;
        for r in 0..k {
            score = m.fma(m.get(&z[r]), m.get(&y[r]), score);
        }
        m.put(score, cell);
    }
    if activation == Activation::Linear {
        return;
    }
    let mut largest = m.get(&row[0]);
    for cell in &*row {
        largest = m.max(largest, m.get(cell));
    }
    let mut total = zero;
    for (cell, count) in row.iter_mut().zip(counts) {
        let weight = m.exp(m.get(cell) - largest);
        total = m.fma(m.get(count), weight, total);
        m.put(weight, cell);
    }
    let scale = m.recip(total);
    row.iter_mut().for_each(|cell| m.put(m.get(cell) * scale, cell));
}
