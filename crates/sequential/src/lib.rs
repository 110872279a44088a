//! The part of rayon's interface that the workspace uses, on one thread.
//!
//! A WebAssembly module in a page has one thread: there rayon would run everything in its order all the same, through code that is
//! a tenth of the module. Crates depend on this one under rayon's name where they are built for it. Results are the same, since
//! they never depend on the number of threads.
//!
//! ```
//! use ictd_sequential::prelude::*;
//!
//! let doubled: Vec<u32> = (1..4).into_par_iter().map(|x| 2 * x).collect();
//! assert_eq!(doubled, [2, 4, 6]);
//! ```

use std::iter::{Enumerate, FlatMap, Map, Zip};
use std::slice::{Chunks, ChunksExact, ChunksExactMut, ChunksMut};

/// What `use rayon::prelude::*` brings into scope.
pub mod prelude {
    pub use crate::{
        IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, IntoParallelRefMutIterator,
        ParallelIterator, ParallelSlice, ParallelSliceMut,
    };
}

/// How many threads there are.
pub fn current_num_threads() -> usize {
    1
}

/// Both results, the first computed first.
pub fn join<A, B>(first: impl FnOnce() -> A, second: impl FnOnce() -> B) -> (A, B) {
    (first(), second())
}

/// Where work is handed in that may borrow from outside.
#[derive(Debug)]
pub struct Scope(());

impl Scope {
    /// Does the work.
    pub fn spawn(&self, work: impl FnOnce(&Self)) {
        work(self);
    }
}

/// Does what is handed in, and returns when all of it is done.
pub fn scope<T>(work: impl FnOnce(&Scope) -> T) -> T {
    work(&Scope(()))
}

/// An iterator with the methods of a parallel one.
#[derive(Clone, Debug)]
pub struct Sequential<I>(I);

impl<I: Iterator> IntoIterator for Sequential<I> {
    type Item = I::Item;
    type IntoIter = I;

    fn into_iter(self) -> I {
        self.0
    }
}

/// The methods of parallel iterators, under their names.
#[allow(missing_docs, reason = "they do what rayon's do, one item after the other")]
pub trait ParallelIterator: IntoIterator + Sized {
    fn map<T, F: FnMut(Self::Item) -> T>(self, f: F) -> Sequential<Map<Self::IntoIter, F>> {
        Sequential(self.into_iter().map(f))
    }

    fn flat_map_iter<T: IntoIterator, F: FnMut(Self::Item) -> T>(
        self,
        f: F,
    ) -> Sequential<FlatMap<Self::IntoIter, T, F>> {
        Sequential(self.into_iter().flat_map(f))
    }

    fn for_each(self, f: impl FnMut(Self::Item)) {
        self.into_iter().for_each(f);
    }

    fn for_each_init<T>(self, init: impl FnOnce() -> T, mut f: impl FnMut(&mut T, Self::Item)) {
        let mut state = init();
        self.into_iter().for_each(|item| f(&mut state, item));
    }

    fn try_for_each<E>(self, f: impl FnMut(Self::Item) -> Result<(), E>) -> Result<(), E> {
        self.into_iter().try_for_each(f)
    }

    fn try_for_each_init<T, E>(
        self,
        init: impl FnOnce() -> T,
        mut f: impl FnMut(&mut T, Self::Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = init();
        self.into_iter().try_for_each(|item| f(&mut state, item))
    }

    fn collect<C: FromIterator<Self::Item>>(self) -> C {
        self.into_iter().collect()
    }

    fn unzip<A, B, FromA: Default + Extend<A>, FromB: Default + Extend<B>>(self) -> (FromA, FromB)
    where
        Self: IntoIterator<Item = (A, B)>,
    {
        self.into_iter().unzip()
    }
}

impl<I: Iterator> ParallelIterator for Sequential<I> {}

/// The methods of parallel iterators whose items have numbers.
#[allow(missing_docs, reason = "they do what rayon's do, one item after the other")]
pub trait IndexedParallelIterator: ParallelIterator {
    fn enumerate(self) -> Sequential<Enumerate<Self::IntoIter>> {
        Sequential(self.into_iter().enumerate())
    }

    fn zip<T: IntoIterator>(self, other: T) -> Sequential<Zip<Self::IntoIter, T::IntoIter>> {
        Sequential(self.into_iter().zip(other))
    }

    /// Nothing is split.
    fn with_min_len(self, _: usize) -> Sequential<Self::IntoIter> {
        Sequential(self.into_iter())
    }
}

impl<I: Iterator> IndexedParallelIterator for Sequential<I> {}

/// What parallel iterators are made of.
pub trait IntoParallelIterator: IntoIterator + Sized {
    /// The items by value.
    fn into_par_iter(self) -> Sequential<Self::IntoIter> {
        Sequential(self.into_iter())
    }
}

impl<T: IntoIterator> IntoParallelIterator for T {}

/// What parallel iterators over references are made of.
pub trait IntoParallelRefIterator<'a> {
    /// What goes through the items.
    type Iter: Iterator;

    /// The items by reference.
    fn par_iter(&'a self) -> Sequential<Self::Iter>;
}

impl<'a, T: ?Sized + 'a> IntoParallelRefIterator<'a> for T
where
    &'a T: IntoIterator,
{
    type Iter = <&'a T as IntoIterator>::IntoIter;

    fn par_iter(&'a self) -> Sequential<Self::Iter> {
        Sequential(self.into_iter())
    }
}

/// What parallel iterators over mutable references are made of.
pub trait IntoParallelRefMutIterator<'a> {
    /// What goes through the items.
    type Iter: Iterator;

    /// The items by mutable reference.
    fn par_iter_mut(&'a mut self) -> Sequential<Self::Iter>;
}

impl<'a, T: ?Sized + 'a> IntoParallelRefMutIterator<'a> for T
where
    &'a mut T: IntoIterator,
{
    type Iter = <&'a mut T as IntoIterator>::IntoIter;

    fn par_iter_mut(&'a mut self) -> Sequential<Self::Iter> {
        Sequential(self.into_iter())
    }
}

/// Slices in parts.
#[allow(missing_docs, reason = "they do what rayon's do, one item after the other")]
pub trait ParallelSlice<T> {
    fn par_chunks(&self, size: usize) -> Sequential<Chunks<'_, T>>;
    fn par_chunks_exact(&self, size: usize) -> Sequential<ChunksExact<'_, T>>;
}

impl<T> ParallelSlice<T> for [T] {
    fn par_chunks(&self, size: usize) -> Sequential<Chunks<'_, T>> {
        Sequential(self.chunks(size))
    }

    fn par_chunks_exact(&self, size: usize) -> Sequential<ChunksExact<'_, T>> {
        Sequential(self.chunks_exact(size))
    }
}

/// Slices in parts that can be changed.
#[allow(missing_docs, reason = "they do what rayon's do, one item after the other")]
pub trait ParallelSliceMut<T> {
    fn par_chunks_mut(&mut self, size: usize) -> Sequential<ChunksMut<'_, T>>;
    fn par_chunks_exact_mut(&mut self, size: usize) -> Sequential<ChunksExactMut<'_, T>>;
}

impl<T> ParallelSliceMut<T> for [T] {
    fn par_chunks_mut(&mut self, size: usize) -> Sequential<ChunksMut<'_, T>> {
        Sequential(self.chunks_mut(size))
    }

    fn par_chunks_exact_mut(&mut self, size: usize) -> Sequential<ChunksExactMut<'_, T>> {
        Sequential(self.chunks_exact_mut(size))
    }
}

#[cfg(test)]
mod tests {
    use super::prelude::*;

    #[test]
    fn items_come_in_their_order() {
        let mut sums = [0; 5];
        sums.par_chunks_mut(2).enumerate().for_each(|(k, part)| part.fill(k));
        assert_eq!(sums, [0, 0, 1, 1, 2]);
        let pairs: Vec<(u32, &str)> =
            vec![1, 2].into_par_iter().zip(&["a", "b"]).map(|(n, s)| (n, *s)).collect();
        assert_eq!(pairs, [(1, "a"), (2, "b")]);
        let failed: Result<Vec<u32>, u32> =
            (0..9).into_par_iter().map(|x| if x < 4 { Ok(x) } else { Err(x) }).collect();
        assert_eq!(failed, Err(4));
        let mut seen = Vec::new();
        let stopped = (0..9).into_par_iter().try_for_each_init(
            || 10,
            |state, x| {
                *state += x;
                seen.push(*state);
                if x < 2 { Ok(()) } else { Err(x) }
            },
        );
        assert_eq!((stopped, seen), (Err(2), vec![10, 11, 13]));
        let (first, second) = super::join(|| 1, || 2);
        assert_eq!(super::scope(|scope| (scope.spawn(|_| ()), first + second).1), 3);
    }
}
