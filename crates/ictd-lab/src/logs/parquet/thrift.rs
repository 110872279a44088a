//! Thrift's compact protocol, in which Parquet keeps everything but the numbers themselves.

/// Structures in structures; Parquet needs six.
const DEEPEST: usize = 16;

/// A value as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node<'a> {
    Whole(i64),
    Bytes(&'a [u8]),
    List(Vec<Node<'a>>),
    /// Fields by their numbers.
    Struct(Vec<(i64, Node<'a>)>),
    /// Numbers with a fraction, of which Parquet has none that matter.
    Other,
}

impl<'a> Node<'a> {
    /// The field of that number.
    pub fn field(&self, number: i64) -> Option<&Self> {
        let Self::Struct(fields) = self else { return None };
        fields.iter().find(|(n, _)| *n == number).map(|(_, node)| node)
    }

    /// A whole number, or whether something is so.
    pub fn whole(&self, number: i64) -> Option<i64> {
        match self.field(number)? {
            Self::Whole(n) => Some(*n),
            _ => None,
        }
    }

    /// A whole number that counts something.
    pub fn count(&self, number: i64) -> Option<usize> {
        self.whole(number).and_then(|n| usize::try_from(n).ok())
    }

    pub fn list(&self, number: i64) -> Option<&[Self]> {
        match self.field(number)? {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn text(&self, number: i64) -> Option<String> {
        match self.field(number)? {
            Self::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }
}

/// Reads a structure at the beginning of `bytes`, which are then those after it; none where they are damaged.
pub(super) fn structure<'a>(bytes: &mut &'a [u8]) -> Option<Node<'a>> {
    read_struct(bytes, DEEPEST)
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// A whole number of seven bits per byte.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(bytes)?;
        number |= u64::from(next & 127) << shift;
        if next < 128 {
            return Some(number);
        }
    }
    None
}

/// One with a sign.
fn zigzag(bytes: &mut &[u8]) -> Option<i64> {
    let n = varint(bytes)?;
    Some((n >> 1) as i64 ^ -((n & 1) as i64))
}

fn read_struct<'a>(bytes: &mut &'a [u8], depth: usize) -> Option<Node<'a>> {
    let mut fields = Vec::new();
    let mut number = 0i64;
    loop {
        let head = byte(bytes)?;
        if head == 0 {
            return Some(Node::Struct(fields));
        }
        number = match head >> 4 {
            0 => zigzag(bytes)?,
            more => number.checked_add(i64::from(more))?,
        };
        // In a field the type tells a truth value; in a list a byte does.
        let node = match head & 15 {
            1 => Node::Whole(1),
            2 => Node::Whole(0),
            kind => read(bytes, kind, depth)?,
        };
        fields.push((number, node));
    }
}

fn read<'a>(bytes: &mut &'a [u8], kind: u8, depth: usize) -> Option<Node<'a>> {
    let depth = depth.checked_sub(1)?;
    Some(match kind {
        1..=3 => Node::Whole(i64::from(byte(bytes)? as i8)),
        4..=6 => Node::Whole(zigzag(bytes)?),
        7 => {
            *bytes = bytes.get(8..)?;
            Node::Other
        }
        8 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            let (text, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Node::Bytes(text)
        }
        9 | 10 => {
            let head = byte(bytes)?;
            let length = if head >> 4 == 15 { varint(bytes)? } else { u64::from(head >> 4) };
            // Grown as it is read: every entry takes a byte at least, so that damage cannot ask for more than there is.
            let mut list = Vec::new();
            for _ in 0..length {
                list.push(read(bytes, head & 15, depth)?);
            }
            Node::List(list)
        }
        12 => read_struct(bytes, depth)?,
        _ => return None,
    })
}

/// Writes structures.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub bytes: Vec<u8>,
    /// Numbers of the last fields, of the structures that are open.
    open: Vec<i64>,
}

impl Writer {
    fn varint(&mut self, mut n: u64) {
        while n > 127 {
            self.bytes.push(n as u8 | 128);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    fn zigzag(&mut self, n: i64) {
        self.varint((n << 1 ^ n >> 63) as u64);
    }

    /// Fields come in the order of their numbers, none more than 15 after the one before.
    fn field(&mut self, number: i64, kind: u8) {
        let last = self.open.last_mut().map_or(0, |last| std::mem::replace(last, number));
        self.bytes.push(((number - last) as u8) << 4 | kind);
    }

    pub fn begin(&mut self) {
        self.open.push(0);
    }

    pub fn end(&mut self) {
        self.open.pop();
        self.bytes.push(0);
    }

    /// A structure as a field.
    pub fn structure(&mut self, number: i64, fields: impl FnOnce(&mut Self)) {
        self.field(number, 12);
        self.begin();
        fields(self);
        self.end();
    }

    pub fn int32(&mut self, number: i64, n: i64) {
        self.field(number, 5);
        self.zigzag(n);
    }

    pub fn int64(&mut self, number: i64, n: i64) {
        self.field(number, 6);
        self.zigzag(n);
    }

    fn raw(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    pub fn text(&mut self, number: i64, text: &str) {
        self.field(number, 8);
        self.raw(text);
    }

    fn list(&mut self, number: i64, length: usize, kind: u8) {
        self.field(number, 9);
        self.bytes.push(15 << 4 | kind);
        self.varint(length as u64);
    }

    /// A list of structures.
    pub fn structures<T>(&mut self, number: i64, list: &[T], mut fields: impl FnMut(&mut Self, &T)) {
        self.list(number, list.len(), 12);
        for entry in list {
            self.begin();
            fields(self, entry);
            self.end();
        }
    }

    pub fn int32s(&mut self, number: i64, list: &[i64]) {
        self.list(number, list.len(), 5);
        list.iter().for_each(|n| self.zigzag(*n));
    }

    pub fn texts(&mut self, number: i64, list: &[&str]) {
        self.list(number, list.len(), 8);
        list.iter().for_each(|text| self.raw(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::default();
        writer.begin();
        writer.int32(1, -3);
        writer.text(4, "é");
        writer.structure(5, |w| w.int64(12, i64::MIN));
        writer.structures(6, &[1, 300], |w, n| w.int32(1, *n));
        writer.texts(8, &["a", ""]);
        writer.end();
        writer.bytes.extend(b"rest");
        let mut bytes = writer.bytes.as_slice();
        let node = structure(&mut bytes).unwrap();
        assert_eq!(bytes, b"rest");
        assert_eq!((node.whole(1), node.text(4)), (Some(-3), Some("é".into())));
        assert_eq!(node.field(5).and_then(|n| n.whole(12)), Some(i64::MIN));
        assert_eq!(
            node.list(6).map(|l| l.iter().map(|n| n.whole(1)).collect()),
            Some(vec![Some(1), Some(300)])
        );
        assert_eq!(node.list(8), Some(&[Node::Bytes(b"a"), Node::Bytes(b"")][..]));
        assert_eq!((node.whole(4), node.field(7)), (None, None));
        for cut in 0..writer.bytes.len() - 4 {
            assert_eq!(structure(&mut &writer.bytes[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn structures_without_end_are_refused() {
        assert_eq!(structure(&mut &[0x1c; 100_000][..]), None);
    }
}
