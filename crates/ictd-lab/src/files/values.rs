//! Entries of arrays, as binary formats keep them.

use std::mem;

use crate::memory::DOUBLE;

/// Entries of an array, row after row.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// NaN where there is no value.
    Float(Vec<f64>),
    /// Whole numbers.
    Whole(Vec<i64>),
    /// Empty where there is no value.
    Text(Vec<String>),
}

impl Values {
    /// Bytes of the largest entry, without the text that it refers to.
    pub(crate) const LARGEST: f64 = size_of::<String>() as f64;

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Float(list) => list.len(),
            Self::Whole(list) => list.len(),
            Self::Text(list) => list.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// No entries of the same kind.
    #[cfg(feature = "parquet")]
    pub(crate) fn none(&self) -> Self {
        match self {
            Self::Float(_) => Self::Float(Vec::new()),
            Self::Whole(_) => Self::Whole(Vec::new()),
            Self::Text(_) => Self::Text(Vec::new()),
        }
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> f64 {
        match self {
            Self::Text(list) => list.iter().map(|t| Self::text_memory(t.len())).sum(),
            values => DOUBLE * values.len() as f64,
        }
    }

    /// Bytes of a text of that length; the allocator gives none less than 32.
    pub(crate) fn text_memory(length: usize) -> f64 {
        (size_of::<String>() + 32.max(length + 8)) as f64
    }

    /// The entries of an array of that shape row after row (the last index moves fastest), where they stood column after
    /// column (the first does), as in Fortran.
    #[must_use]
    pub(crate) fn row_by_row(self, shape: &[usize]) -> Self {
        match self {
            Self::Float(list) => Self::Float(rows_first(list, shape)),
            Self::Whole(list) => Self::Whole(rows_first(list, shape)),
            Self::Text(list) => Self::Text(rows_first(list, shape)),
        }
    }
}

fn rows_first<T: Default>(mut list: Vec<T>, shape: &[usize]) -> Vec<T> {
    let mut stride = 1;
    let mut strides = Vec::new();
    for length in shape {
        strides.push(stride);
        stride *= length;
    }
    let mut index = vec![0; shape.len()];
    let mut place = 0;
    let mut out = Vec::with_capacity(list.len());
    for _ in 0..list.len() {
        out.push(mem::take(&mut list[place]));
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            place += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            // Back to the beginning of this axis, and on along the one before.
            place -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_rows() {
        let matrix = Values::Whole(vec![0, 10, 1, 11, 2, 12]).row_by_row(&[2, 3]);
        assert_eq!(matrix, Values::Whole(vec![0, 1, 2, 10, 11, 12]));
        // Entry (i, j, k) is 100·i + 10·j + k.
        let entry = |i: usize, j: usize, k: usize| (100 * i + 10 * j + k).to_string();
        let (mut fortran, mut c) = (Vec::new(), Vec::new());
        for (a, b, e) in (0..24).map(|n| (n / 12, n / 4 % 3, n % 4)) {
            c.push(entry(a, b, e));
        }
        for (e, b, a) in (0..24).map(|n| (n / 6, n / 2 % 3, n % 2)) {
            fortran.push(entry(a, b, e));
        }
        assert_eq!(Values::Text(fortran).row_by_row(&[2, 3, 4]), Values::Text(c));
        assert_eq!(Values::Float(vec![]).row_by_row(&[3, 0]), Values::Float(vec![]));
    }
}
