//! Flatbuffers, in which Arrow keeps everything but the entries themselves.
//!
//! What lies outside the bytes is not there: a field that damage points elsewhere has no value, as one that was left out.

/// A table: fields by their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    /// The table that these bytes begin with.
    pub fn root(bytes: &'a [u8]) -> Option<Self> {
        let at = follow(bytes, 0)?;
        Some(Self { bytes, at })
    }

    /// Where a field stands.
    fn field(&self, number: usize) -> Option<usize> {
        let back = i64::from(i32::from_le_bytes(chunk(self.bytes, self.at)?));
        let list = usize::try_from((self.at as i64).checked_sub(back)?).ok()?;
        let size = usize::from(u16::from_le_bytes(chunk(self.bytes, list)?));
        let place = 4 + 2 * number;
        (place + 2 <= size).then_some(())?;
        let offset = usize::from(u16::from_le_bytes(chunk(self.bytes, list.checked_add(place)?)?));
        (offset > 0).then_some(())?;
        self.at.checked_add(offset)
    }

    pub fn byte(&self, number: usize) -> Option<u8> {
        self.bytes.get(self.field(number)?).copied()
    }

    pub fn short(&self, number: usize) -> Option<i16> {
        chunk(self.bytes, self.field(number)?).map(i16::from_le_bytes)
    }

    pub fn int(&self, number: usize) -> Option<i32> {
        chunk(self.bytes, self.field(number)?).map(i32::from_le_bytes)
    }

    pub fn long(&self, number: usize) -> Option<i64> {
        chunk(self.bytes, self.field(number)?).map(i64::from_le_bytes)
    }

    /// A whole number that counts something; 0 where it was left out.
    pub fn count(&self, number: usize) -> Option<usize> {
        usize::try_from(self.long(number).unwrap_or(0)).ok()
    }

    pub fn table(&self, number: usize) -> Option<Self> {
        let at = follow(self.bytes, self.field(number)?)?;
        Some(Self { bytes: self.bytes, at })
    }

    /// Entries of so many bytes each.
    pub fn list<const N: usize>(&self, number: usize) -> Option<&'a [[u8; N]]> {
        let at = follow(self.bytes, self.field(number)?)?;
        let length = u32::from_le_bytes(chunk(self.bytes, at)?) as usize;
        let start = at.checked_add(4)?;
        let end = length.checked_mul(N).and_then(|size| start.checked_add(size))?;
        Some(self.bytes.get(start..end)?.as_chunks().0)
    }

    pub fn text(&self, number: usize) -> Option<String> {
        let bytes = self.list::<1>(number)?.as_flattened();
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// A list of tables; those that are not in the bytes are left out.
    pub fn tables(&self, number: usize) -> Option<impl Iterator<Item = Self> + use<'a>> {
        let length = self.list::<4>(number)?.len();
        let (bytes, start) = (self.bytes, follow(self.bytes, self.field(number)?)? + 4);
        let table = move |k: usize| Some(Self { bytes, at: follow(bytes, start + 4 * k)? });
        Some((0..length).filter_map(table))
    }
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Where something stands that is pointed to.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(u32::from_le_bytes(chunk(bytes, at)?) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of a byte, a number, a text and itself, with one field left out.
    fn example() -> Vec<u8> {
        let mut bytes = vec![20, 0, 0, 0];
        // The list of fields: its size, that of the table, and where they stand.
        bytes.extend([16u16, 20, 4, 8, 0, 12, 16, 0].iter().flat_map(|n| n.to_le_bytes()));
        bytes.extend([16, 0, 0, 0, 7, 0, 0, 0]);
        bytes.extend((-3i32).to_le_bytes());
        bytes.extend([8, 0, 0, 0]);
        bytes.extend([0, 0, 0, 0]);
        bytes.extend([2, 0, 0, 0, b'h', b'i']);
        bytes
    }

    #[test]
    fn fields_are_found_by_their_numbers() {
        let bytes = example();
        let table = Table::root(&bytes).unwrap();
        assert_eq!((table.byte(0), table.int(1), table.int(2)), (Some(7), Some(-3), None));
        assert_eq!((table.text(3), table.count(9)), (Some("hi".into()), Some(0)));
        assert_eq!(table.list::<2>(3), None);
        assert_eq!(table.table(4).map(|t| t.at), Some(36));
    }

    #[test]
    fn what_points_outside_is_not_there() {
        let bytes = example();
        for cut in 0..bytes.len() {
            let _ = Table::root(&bytes[..cut]).map(|t| (t.text(3), t.table(4), t.long(1), t.byte(5)));
        }
        for place in 0..bytes.len() {
            for value in [0, 127, 128, 255] {
                let mut changed = bytes.clone();
                changed[place] = value;
                let table = Table::root(&changed);
                let tables = table.and_then(|t| Some(t.tables(3)?.count()));
                assert!(tables.is_none_or(|n| n < bytes.len()), "{place} {value}");
            }
        }
        assert!(Table::root(&[255; 64]).and_then(|t| t.text(0)).is_none());
    }
}
