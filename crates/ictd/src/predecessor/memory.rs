//! Softmax attention with the sparse mask: only the memory, the last row of Z, changes from layer to layer.
//!
//! Scores x_iᵀ Q x_j with x = (φ, γφ') are those of Z_0 in every layer, and those between columns of the context are the same in
//! every window: their exponentials E_ij are numbers of a minibatch, not of a window. A window adds its counts c_i, its query and so
//! its normalisers N_i = Σ_j c_j E_ij + E_iq. With P's last row (p, c) a layer maps the memory to m_j + Σ_i u_i E_ij with
//! u_i = (c_i/n)(pᵀx_i + c m_i)/N_i, and the prediction is -m_q.

use super::program::{Feedback, Job, Program, put_windows};
use super::shape::PredecessorShape;
use crate::pretrain::lanes::{Element, Machine};

/// What a pair makes of the distinct columns of a minibatch.
#[derive(Clone, Debug, Default)]
struct Table<E, C> {
    /// Column by column: Qᵀ x_i, pᵀ x_i and the largest score.
    asked: Vec<E>,
    read: Vec<E>,
    largest: Vec<E>,
    /// E_ij divided by the exponential of the largest score of row i.
    weights: Vec<E>,
    /// Derivatives by the weights, by Qᵀ x_i and by pᵀ x_i, and by c.
    weights_bar: Vec<C>,
    asked_bar: Vec<C>,
    read_bar: Vec<C>,
    corner_bar: C,
}

/// A group of windows in lanes.
#[derive(Clone, Debug, Default)]
struct Group<C> {
    /// The distinct columns that any of its windows has.
    sources: Vec<usize>,
    /// How often each is there.
    counts: Vec<C>,
    /// Pair by pair, source by source: E_iq and 1/N_i.
    queries: Vec<C>,
    shares: Vec<C>,
    /// Layer by layer, source by source: m_i and u_i.
    memory: Vec<C>,
    reading: Vec<C>,
}

/// The pass, with everything of the windows that were asked for last.
#[derive(Clone, Debug)]
pub struct Memory<E, C> {
    shape: PredecessorShape,
    tables: Vec<Table<E, C>>,
    groups: Vec<Group<C>>,
    /// The distinct columns, row by row.
    transposed: Vec<E>,
    /// Layer by layer derivatives by the memory, then by E_iq and by 1/N_i.
    memory_bar: Vec<C>,
    queries_bar: Vec<C>,
    shares_bar: Vec<C>,
}

impl<E: Element, C: Copy + Default> Memory<E, C> {
    /// Buffers for a shape.
    pub fn new(shape: &PredecessorShape) -> Self {
        let (groups, transposed, memory_bar, queries_bar, shares_bar) = Default::default();
        let table = || {
            let (asked, read, largest, weights) = Default::default();
            let (weights_bar, asked_bar, read_bar) = Default::default();
            Table {
                asked,
                read,
                largest,
                weights,
                weights_bar,
                asked_bar,
                read_bar,
                corner_bar: C::default(),
            }
        };
        let tables = (0..shape.num_pairs()).map(|_| table()).collect();
        Self { shape: *shape, tables, groups, transposed, memory_bar, queries_bar, shares_bar }
    }

    /// What is the same for all windows.
    #[inline(always)]
    fn tabulate<M: Machine<Element = E, Cell = C>>(&mut self, m: M, k: usize, job: Job<'_, E>) {
        let (x, num) = (k - 1, job.prompts.num_columns());
        let stride = num.next_multiple_of(M::LANES);
        let zero = E::default();
        self.transposed.clear();
        self.transposed.resize(x * stride, zero);
        for c in 0..num {
            let slots = self.transposed[c..].iter_mut().step_by(stride);
            slots.zip(job.prompts.column(c, k)).for_each(|(slot, z)| *slot = *z);
        }
        for (pair, table) in self.tables.iter_mut().enumerate() {
            let (p, q) = self.shape.pair(job.params, pair);
            table.asked.clear();
            table.asked.resize(num * x, zero);
            table.read.clear();
            table.largest.clear();
            table.weights.clear();
            table.weights.resize(num * stride, zero);
            for c in 0..num {
                let column = job.prompts.column(c, k);
                let sum =
                    |of: &dyn Fn(usize) -> E| (0..x).map(|s| column[s].get() * of(s).get()).sum::<f64>();
                for (r, slot) in table.asked[c * x..(c + 1) * x].iter_mut().enumerate() {
                    *slot = E::of(sum(&|s| q[s * k + r]));
                }
                table.read.push(E::of(sum(&|s| p[k * x + s])));
                let (asked, row) =
                    (&table.asked[c * x..(c + 1) * x], &mut table.weights[c * stride..(c + 1) * stride]);
                for j in (0..stride).step_by(M::LANES) {
                    let mut score = m.splat(zero);
                    for (r, asked) in asked.iter().enumerate() {
                        score = m.fma(m.splat(*asked), m.load(&self.transposed[r * stride + j..]), score);
                    }
                    m.store(score, &mut row[j..]);
                }
                let largest = row[..num].iter().fold(f64::NEG_INFINITY, |l, s| l.max(s.get()));
                table.largest.push(E::of(largest));
                for j in (0..stride).step_by(M::LANES) {
                    let shifted = m.load(&row[j..]) - m.splat(E::of(largest));
                    m.store(m.exp(shifted), &mut row[j..]);
                }
            }
        }
    }
}

impl<M: Machine> Program<M> for Memory<M::Element, M::Cell> {
    #[inline(always)]
    fn num_rows(&self) -> usize {
        self.shape.num_rows()
    }

    #[inline(always)]
    fn forward_of(&mut self, m: M, k: usize, job: Job<'_, M::Element>, out: &mut [M::Element]) {
        self.tabulate(m, k, job);
        let (d, x, depth) = ((k - 1) / 2, k - 1, self.shape.num_layers);
        let zero = m.splat(M::Element::default());
        let share = m.splat(M::Element::of(1.0 / self.shape.context_len as f64));
        let stride = job.prompts.num_columns().next_multiple_of(M::LANES);
        self.groups.resize_with(out.len().div_ceil(M::LANES), || Group {
            sources: Vec::new(),
            counts: Vec::new(),
            queries: Vec::new(),
            shares: Vec::new(),
            memory: Vec::new(),
            reading: Vec::new(),
        });
        for (number, group) in self.groups.iter_mut().enumerate() {
            let t = number * M::LANES;
            let Group { sources, counts, queries, shares, memory, reading } = group;
            job.prompts.gather(m, t, sources, counts);
            let num = sources.len();
            for buffer in [&mut *queries, &mut *shares] {
                buffer.resize(num * self.tables.len(), M::Cell::default());
            }
            for (pair, table) in self.tables.iter().enumerate() {
                for (i, &c) in sources.iter().enumerate() {
                    let mut score = m.splat(M::Element::of(-table.largest[c].get()));
                    for r in 0..d {
                        score =
                            m.fma(m.splat(table.asked[c * x + r]), m.load(job.prompts.query(r, t)), score);
                    }
                    let query = m.exp(score);
                    let (mut total, row) = (query, &table.weights[c * stride..]);
                    for (&j, count) in sources.iter().zip(&*counts) {
                        total = m.fma(m.splat(row[j]), m.get(count), total);
                    }
                    m.put(query, &mut queries[pair * num + i]);
                    m.put(m.recip(total), &mut shares[pair * num + i]);
                }
            }
            for buffer in [&mut *memory, &mut *reading] {
                buffer.resize(num * depth, M::Cell::default());
            }
            for (slot, &c) in memory.iter_mut().zip(&*sources) {
                m.put(m.splat(job.prompts.column(c, k)[x]), slot);
            }
            let mut value = zero;
            for l in 0..depth {
                let pair = self.shape.pair_of(l);
                let (table, own) = (&self.tables[pair], pair * num);
                let corner = m.splat(self.shape.pair(job.params, pair).0[k * k - 1]);
                let (here, next) = memory[l * num..].split_at_mut(num);
                let reading = &mut reading[l * num..(l + 1) * num];
                for (i, &c) in sources.iter().enumerate() {
                    let read = m.fma(corner, m.get(&here[i]), m.splat(table.read[c]));
                    let u = m.get(&counts[i]) * share * m.get(&shares[own + i]) * read;
                    m.put(u, &mut reading[i]);
                    value = value - u * m.get(&queries[own + i]);
                }
                // Of the last layer nobody reads more than the query's entry.
                if l + 1 < depth {
                    for (j, &to) in sources.iter().enumerate() {
                        let mut sum = m.get(&here[j]);
                        for (u, &from) in reading.iter().zip(&*sources) {
                            sum = m.fma(m.splat(table.weights[from * stride + to]), m.get(u), sum);
                        }
                        m.put(sum, &mut next[j]);
                    }
                }
            }
            put_windows(m, value, &mut out[t..]);
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
        let (d, x, depth) = ((k - 1) / 2, k - 1, self.shape.num_layers);
        let zero = m.splat(M::Element::default());
        let share = m.splat(M::Element::of(1.0 / self.shape.context_len as f64));
        let (all, pairs) = (job.prompts.num_columns(), self.tables.len());
        let stride = all.next_multiple_of(M::LANES);
        for table in &mut self.tables {
            table.weights_bar.resize(all * all, M::Cell::default());
            table.asked_bar.resize(all * x, M::Cell::default());
            table.read_bar.resize(all, M::Cell::default());
            let bars = [&mut table.weights_bar, &mut table.asked_bar, &mut table.read_bar];
            bars.into_iter().flatten().chain([&mut table.corner_bar]).for_each(|cell| m.put(zero, cell));
        }
        for number in 0..feedback.out_bar.len().div_ceil(M::LANES) {
            let t = number * M::LANES;
            let Group { sources, counts, queries, shares, memory, reading } = &self.groups[number];
            let num = sources.len();
            // The query's memory is read by nobody, so its derivative is the same in every layer.
            let bar = -feedback.of_windows(m, t);
            self.memory_bar.resize(num * (depth + 1), M::Cell::default());
            for (buffer, len) in [(&mut self.queries_bar, pairs * num), (&mut self.shares_bar, pairs * num)] {
                buffer.resize(len, M::Cell::default());
                buffer.iter_mut().for_each(|cell| m.put(zero, cell));
            }
            self.memory_bar[num * depth..num * (depth + 1)].iter_mut().for_each(|cell| m.put(zero, cell));
            for l in (0..depth).rev() {
                let pair = self.shape.pair_of(l);
                let (table, own) = (&mut self.tables[pair], pair * num);
                let corner = m.splat(self.shape.pair(job.params, pair).0[k * k - 1]);
                let mut corner_bar = m.get(&table.corner_bar);
                let (here, next) = self.memory_bar[l * num..].split_at_mut(num);
                let next = &next[..num];
                for (i, &c) in sources.iter().enumerate() {
                    let mut u_bar = bar * m.get(&queries[own + i]);
                    if l + 1 < depth {
                        let row = &table.weights[c * stride..];
                        for (&j, cell) in sources.iter().zip(next) {
                            u_bar = m.fma(m.splat(row[j]), m.get(cell), u_bar);
                        }
                    }
                    let cell = &mut self.queries_bar[own + i];
                    m.put(m.fma(m.get(&reading[l * num + i]), bar, m.get(cell)), cell);
                    let memory = m.get(&memory[l * num + i]);
                    let read = m.fma(corner, memory, m.splat(table.read[c]));
                    let weight = m.get(&counts[i]) * share * u_bar;
                    let cell = &mut self.shares_bar[own + i];
                    m.put(m.fma(weight, read, m.get(cell)), cell);
                    let read_bar = weight * m.get(&shares[own + i]);
                    m.put(m.get(&table.read_bar[c]) + read_bar, &mut table.read_bar[c]);
                    corner_bar = m.fma(read_bar, memory, corner_bar);
                    m.put(m.fma(corner, read_bar, m.get(&next[i])), &mut here[i]);
                }
                m.put(corner_bar, &mut table.corner_bar);
            }
            for (pair, table) in self.tables.iter_mut().enumerate() {
                let own = pair * num;
                for (i, &c) in sources.iter().enumerate() {
                    let inverse = m.get(&shares[own + i]);
                    let total_bar = -(m.get(&self.shares_bar[own + i]) * inverse * inverse);
                    for (j, &to) in sources.iter().enumerate() {
                        let cell = &mut table.weights_bar[c * all + to];
                        let mut sum = m.fma(total_bar, m.get(&counts[j]), m.get(cell));
                        for l in (0..depth - 1).filter(|l| self.shape.pair_of(*l) == pair) {
                            let next = m.get(&self.memory_bar[(l + 1) * num + j]);
                            sum = m.fma(m.get(&reading[l * num + i]), next, sum);
                        }
                        m.put(sum, cell);
                    }
                    let query = m.get(&queries[own + i]);
                    let score_bar = query * (m.get(&self.queries_bar[own + i]) + total_bar);
                    // From here on what was E_iq's derivative is that of the score.
                    m.put(score_bar, &mut self.queries_bar[own + i]);
                    for r in 0..d {
                        let cell = &mut table.asked_bar[c * x + r];
                        m.put(m.fma(score_bar, m.load(job.prompts.query(r, t)), m.get(cell)), cell);
                    }
                }
            }
            if feedback.query_bar.is_some() {
                for r in 0..d {
                    let mut sum = zero;
                    for (pair, table) in self.tables.iter().enumerate() {
                        for (i, &c) in sources.iter().enumerate() {
                            let asked = m.splat(table.asked[c * x + r]);
                            sum = m.fma(asked, m.get(&self.queries_bar[pair * num + i]), sum);
                        }
                    }
                    feedback.put_query(m, r, t, sum);
                }
            }
        }
        for (pair, table) in self.tables.iter_mut().enumerate() {
            let (p_bar, q_bar) = self.shape.pair_mut(feedback.gradient, pair);
            p_bar[k * k - 1] += m.sum(&table.corner_bar);
            for c in 0..all {
                for r in 0..x {
                    let mut sum = m.get(&table.asked_bar[c * x + r]);
                    for j in 0..all {
                        // The derivative by a score is that by its exponential, times it.
                        let weight =
                            table.weights[c * stride + j].get() * self.transposed[r * stride + j].get();
                        let weight = m.splat(M::Element::of(weight));
                        sum = m.fma(weight, m.get(&table.weights_bar[c * all + j]), sum);
                    }
                    m.put(sum, &mut table.asked_bar[c * x + r]);
                }
                let column = job.prompts.column(c, k);
                let read_bar = m.sum(&table.read_bar[c]);
                for s in 0..x {
                    p_bar[k * x + s] += read_bar * column[s].get();
                }
                for r in 0..x {
                    let asked_bar = m.sum(&table.asked_bar[c * x + r]);
                    for s in 0..x {
                        q_bar[s * k + r] += asked_bar * column[s].get();
                    }
                }
            }
        }
    }
}
