//! Pages: the entries of a column in a group of rows, with what tells which of them are absent and where rows begin.

use super::super::column::Column;
use super::super::table::Values;
use super::encoding::{ENCODINGS, Kind, broken, hybrid, picked, plain, unpacked, with_length};
use super::thrift::{Node, structure};

const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;

/// How levels tell of absent entries and of lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Levels {
    /// The level of an entry that is there; one less for everything around it that may be absent or repeated.
    pub whole: u32,
    /// For lists: the level from which they have entries.
    pub list: Option<u32>,
}

/// A column of a group of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<'a> {
    /// The bytes of its pages.
    pub bytes: &'a [u8],
    pub kind: Kind,
    pub levels: Levels,
    pub codec: i64,
    /// How many levels there are: one for every entry, absent ones included, and for every list that has none.
    pub count: usize,
}

/// What a page says.
#[derive(Default)]
struct Page {
    /// The level of each entry.
    levels: Vec<u32>,
    /// For lists: 0 where an entry begins a row.
    repeats: Vec<u32>,
    encoding: Option<i64>,
    bytes: Vec<u8>,
    /// Where the entries begin.
    start: usize,
}

/// Bits that a level of at most `largest` takes.
fn bits(largest: u32) -> u8 {
    (u32::BITS - largest.leading_zeros()) as u8
}

impl Chunk<'_> {
    /// A page of at most `left` levels that unpacks to `size` bytes: levels are compressed with the entries or, in the second
    /// version, stand before what is compressed.
    fn page(&self, header: &Node<'_>, body: &[u8], size: usize, left: usize) -> Result<Page, String> {
        let is_first = header.whole(1) == Some(0);
        let fields = header.field(if is_first { 5 } else { 8 }).ok_or_else(broken)?;
        let count = fields.count(1).filter(|count| *count <= left).ok_or_else(broken)?;
        let Levels { whole, list } = self.levels;
        if is_first {
            let bytes = unpacked(self.codec, body, size)?;
            let mut rest = bytes.as_slice();
            let mut levels = |encoding: i64, largest: u32| match fields.whole(encoding) {
                _ if largest == 0 => Ok(Vec::new()),
                Some(RLE) => hybrid(with_length(&mut rest)?, bits(largest), count),
                _ => Err("found levels of an old encoding, expected those of RLE".into()),
            };
            let repeats = levels(4, u32::from(list.is_some()))?;
            let levels = if whole == 0 { vec![0; count] } else { levels(3, whole)? };
            let start = bytes.len() - rest.len();
            return Ok(Page { levels, repeats, encoding: fields.whole(2), bytes, start });
        }
        let [definitions, repetitions] = [5, 6].map(|k| fields.count(k).unwrap_or(0));
        let (repeats, rest) = body.split_at_checked(repetitions).ok_or_else(broken)?;
        let (levels, packed) = rest.split_at_checked(definitions).ok_or_else(broken)?;
        let repeats = if list.is_some() { hybrid(repeats, 1, count)? } else { Vec::new() };
        let levels = if whole == 0 { vec![0; count] } else { hybrid(levels, bits(whole), count)? };
        let codec = if fields.whole(7) == Some(0) { 0 } else { self.codec };
        let size = size.checked_sub(repetitions).and_then(|size| size.checked_sub(definitions));
        let bytes = unpacked(codec, packed, size.ok_or_else(broken)?)?;
        Ok(Page { levels, repeats, encoding: fields.whole(4), bytes, start: 0 })
    }

    /// Adds its entries to those of the groups of rows before.
    pub fn read(self, column: &mut Column) -> Result<(), String> {
        let mut rest = self.bytes;
        let mut dictionary = None;
        let mut read = 0;
        while read < self.count {
            let header =
                structure(&mut rest).ok_or("found a damaged header of a page, expected a whole one")?;
            let sizes = header.count(2).zip(header.count(3));
            let page = sizes.and_then(|(size, packed)| Some((size, rest.split_at_checked(packed)?)));
            let Some((size, (body, after))) = page else {
                return Err("found a page that ends early, expected a whole one".into());
            };
            rest = after;
            match header.whole(1) {
                Some(0 | 3) => {
                    let page = self.page(&header, body, size, self.count - read)?;
                    // A list does not go on from one group of rows to the next.
                    if read == 0 && page.repeats.first().is_some_and(|first| *first != 0) {
                        return Err(broken());
                    }
                    page.entries(self.kind, self.levels, dictionary.as_ref(), column)?;
                    read += page.levels.len();
                }
                Some(2) => {
                    let count = header.field(7).and_then(|h| h.count(1)).ok_or_else(broken)?;
                    let bytes = unpacked(self.codec, body, size)?;
                    dictionary = Some(plain(self.kind, &bytes, count)?);
                }
                // An index, and what later versions may have.
                _ => {}
            }
        }
        Ok(())
    }
}

impl Page {
    /// Adds its entries to a column.
    fn entries(
        &self,
        kind: Kind,
        Levels { whole, list }: Levels,
        dictionary: Option<&Values>,
        column: &mut Column,
    ) -> Result<(), String> {
        let mut bytes = &self.bytes[self.start..];
        let count = self.levels.iter().filter(|level| **level == whole).count();
        let found = match (self.encoding.unwrap_or(-1), kind) {
            (PLAIN, _) => plain(kind, bytes, count)?,
            (RLE, Kind::Bool) => {
                let list = hybrid(with_length(&mut bytes)?, 1, count)?;
                Values::Whole(list.into_iter().map(i64::from).collect())
            }
            (PLAIN_DICTIONARY | RLE_DICTIONARY, _) => {
                let dictionary =
                    dictionary.ok_or("found numbers of a dictionary, expected the dictionary too")?;
                // A page without entries may lack the width of their numbers.
                let (width, rest) = bytes.split_first().unwrap_or((&0, &[]));
                picked(dictionary, &hybrid(rest, *width, count)?, column.size())?
            }
            (other, _) => {
                let name = ENCODINGS.iter().find(|(n, _)| *n == other).map_or("unknown", |(_, name)| name);
                return Err(format!(
                    "found the encoding {name}, expected PLAIN or that of a dictionary: pandas and pyarrow write these"
                ));
            }
        };
        let Some(list) = list else {
            return column.spread(found, self.levels.iter().map(|level| *level == whole));
        };
        for (level, repeat) in self.levels.iter().zip(&self.repeats) {
            if *repeat == 0 {
                // One level below there is a list without entries.
                column.begin_list((*level + 1 >= list).then_some(0));
            }
            if *level >= list {
                column.grow_list();
            }
        }
        let entries = self.levels.iter().filter(|level| **level >= list);
        column.spread(found, entries.map(|level| *level == whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_whole_numbers_become_empty_texts() {
        let kind = Kind::Int64 { signed: false };
        let mut column = Column::new(kind.none());
        let bytes = [7u64, u64::MAX].map(u64::to_le_bytes).concat();
        let page = Page { levels: vec![1, 0, 1], encoding: Some(PLAIN), bytes, ..Page::default() };
        page.entries(kind, Levels { whole: 1, list: None }, None, &mut column).unwrap();
        let texts = ["7", "", "18446744073709551615"].map(String::from).to_vec();
        assert_eq!(column.finish(true, 0.0), Ok((vec![3], Values::Text(texts))));
    }

    #[test]
    fn levels_tell_lists_from_nothing() {
        let mut column = Column::of_lists(Kind::Double.none());
        let bytes = [1.0f64, 2.0, 3.0].map(f64::to_le_bytes).concat();
        // [1, 2], nothing, [absent, 3].
        let (levels, repeats) = (vec![3, 3, 0, 2, 3], vec![0, 1, 0, 0, 1]);
        let page = Page { levels, repeats, encoding: Some(PLAIN), bytes, start: 0 };
        page.entries(Kind::Double, Levels { whole: 3, list: Some(2) }, None, &mut column).unwrap();
        let Ok((shape, Values::Float(list))) = column.clone().finish(false, 0.0) else {
            panic!("{column:?}")
        };
        let expected = [1.0, 2.0, f64::NAN, f64::NAN, f64::NAN, 3.0];
        assert_eq!((shape, format!("{list:?}")), (vec![3, 2], format!("{expected:?}")));
        // A list without entries is no list that is not there.
        let page = Page { levels: vec![1], repeats: vec![0], encoding: Some(PLAIN), ..Page::default() };
        page.entries(Kind::Double, Levels { whole: 3, list: Some(2) }, None, &mut column).unwrap();
        assert_eq!(column.finish(false, 0.0), Err("row 3: found an empty list, expected numbers".into()));
    }
}
