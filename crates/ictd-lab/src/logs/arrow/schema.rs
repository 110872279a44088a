//! What the columns of an Arrow file hold, and how their entries are laid out.

use super::super::column::{DEEPEST, EXPECTED};
use super::super::table::Values;
use super::damaged;
use super::flatbuffer::Table;

/// A field takes more than so many bytes.
const FIELD: usize = 8;

/// How entries are kept, and what they mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Nothing at all.
    Null,
    Bool,
    /// So many bytes each.
    Whole {
        bytes: usize,
        signed: bool,
    },
    /// So many bytes each.
    Float(usize),
    /// Places of 32 bits, or 64 where they are wide.
    Text {
        wide: bool,
    },
    /// Texts of which short ones stand beside their lengths.
    View,
    List {
        wide: bool,
    },
    /// Lists of so many entries.
    Lists(usize),
    Struct,
    /// Passed over where nobody asks for it.
    Other(&'static str),
}

/// Entries that stand once for all rows that have them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dictionary {
    pub id: i64,
    /// How rows name an entry.
    pub places: Kind,
}

/// A column, or what one is made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub name: String,
    pub kind: Kind,
    pub dictionary: Option<Dictionary>,
    pub children: Vec<Field>,
}

/// The columns of a file.
pub(super) fn fields(schema: &Table<'_>, size: usize) -> Result<Vec<Field>, String> {
    if schema.short(0).unwrap_or(0) != 0 {
        return Err("found numbers of the other byte order, expected that of Intel and ARM".into());
    }
    // Damage can make one field part of many: more of them than there are bytes for are not read.
    let mut left = size / FIELD;
    let fields = schema.tables(1).ok_or_else(damaged)?;
    fields.map(|field| Field::new(&field, DEEPEST, &mut left)).collect()
}

impl Field {
    fn new(table: &Table<'_>, depth: usize, left: &mut usize) -> Result<Self, String> {
        *left = left.checked_sub(1).ok_or_else(damaged)?;
        let depth = depth.checked_sub(1).ok_or_else(damaged)?;
        let name = table.text(0).unwrap_or_default();
        let kind = kind(table).ok_or_else(damaged)?;
        let kind = kind.map_err(|found| format!("column {name}: found {found}, {EXPECTED}"))?;
        let children = table.tables(5).into_iter().flatten();
        let children =
            children.map(|child| Self::new(&child, depth, left)).collect::<Result<Vec<_>, String>>()?;
        let dictionary = table.table(4).map(|encoding| {
            let places =
                encoding.table(1).map_or(Some(Kind::Whole { bytes: 4, signed: true }), |t| whole(&t));
            Some(Dictionary { id: encoding.long(0).unwrap_or(0), places: places? })
        });
        let dictionary = dictionary.map(|d| d.ok_or_else(damaged)).transpose()?;
        let expected = match kind {
            Kind::List { .. } | Kind::Lists(_) => Some(1),
            Kind::Struct | Kind::Other(_) => None,
            _ => Some(0),
        };
        if expected.is_some_and(|n| n != children.len()) {
            return Err(damaged());
        }
        Ok(Self { name, kind, dictionary, children })
    }

    /// Whether a row is one entry.
    fn is_plain(&self) -> bool {
        !matches!(self.kind, Kind::List { .. } | Kind::Lists(_) | Kind::Struct | Kind::Other(_))
    }

    /// Why it cannot be read, if so.
    pub fn refusal(&self) -> Option<String> {
        match self.kind {
            Kind::Other(found) => Some(format!("found {found}, {EXPECTED}")),
            _ if self.dictionary.is_some() && !self.is_plain() => {
                Some(format!("found a dictionary of lists or structures, {EXPECTED}"))
            }
            Kind::List { .. } | Kind::Lists(_) => {
                let child = &self.children[0];
                let nested = "found lists of lists or structures, expected lists of numbers";
                let empty = "found empty lists, expected lists of numbers";
                match self.kind {
                    _ if !child.is_plain() || child.kind == Kind::Null => Some(nested.into()),
                    Kind::Lists(0) => Some(empty.into()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Adds what has entries of its own, each under the names of the structures around it.
    pub fn leaves<'f>(&'f self, outer: &[String], found: &mut Vec<(Vec<String>, &'f Self)>) {
        let names = [outer, std::slice::from_ref(&self.name)].concat();
        match self.kind {
            Kind::Struct if self.dictionary.is_none() => {
                self.children.iter().for_each(|child| child.leaves(&names, found));
            }
            _ => found.push((names, self)),
        }
    }

    /// What an entry is: that of a list, or itself.
    pub fn entry(&self) -> &Self {
        match self.kind {
            Kind::List { .. } | Kind::Lists(_) => &self.children[0],
            _ => self,
        }
    }

    pub fn is_unsigned(&self) -> bool {
        matches!(self.entry().kind, Kind::Whole { bytes: 8, signed: false })
    }

    /// No entries yet.
    pub fn none(&self) -> Values {
        match self.entry().kind {
            Kind::Float(_) => Values::Float(Vec::new()),
            Kind::Bool | Kind::Whole { .. } => Values::Whole(Vec::new()),
            _ => Values::Text(Vec::new()),
        }
    }
}

fn whole(table: &Table<'_>) -> Option<Kind> {
    let bytes = match table.int(0)? {
        8 => 1,
        16 => 2,
        32 => 4,
        64 => 8,
        _ => return None,
    };
    Some(Kind::Whole { bytes, signed: table.byte(1).unwrap_or(0) != 0 })
}

/// What a field holds, or what it is called where it cannot even be passed over; none where it is damaged.
fn kind(field: &Table<'_>) -> Option<Result<Kind, &'static str>> {
    let table = field.table(3)?;
    // Dates and times are the numbers that they are stored as.
    let moment = |bytes: usize| Kind::Whole { bytes, signed: true };
    let milliseconds = 1;
    Some(Ok(match field.byte(2)? {
        1 => Kind::Null,
        2 => whole(&table)?,
        3 => match table.short(0).unwrap_or(0) {
            0 => Kind::Float(2),
            1 => Kind::Float(4),
            2 => Kind::Float(8),
            _ => return None,
        },
        4 | 5 => Kind::Text { wide: false },
        6 => Kind::Bool,
        7 => Kind::Other("decimals"),
        8 => moment(if table.short(0).unwrap_or(milliseconds) == 0 { 4 } else { 8 }),
        9 => moment(if table.int(1).unwrap_or(32) == 32 { 4 } else { 8 }),
        10 | 18 => moment(8),
        11 => Kind::Other("spans of a calendar"),
        12 => Kind::List { wide: false },
        13 => Kind::Struct,
        15 => Kind::Other("entries of a fixed number of bytes"),
        16 => Kind::Lists(usize::try_from(table.int(0).unwrap_or(0)).ok()?),
        17 => Kind::Other("maps"),
        19 | 20 => Kind::Text { wide: true },
        21 => Kind::List { wide: true },
        23 | 24 => Kind::View,
        14 => return Some(Err("unions")),
        22 => return Some(Err("runs of entries")),
        25 | 26 => return Some(Err("views of lists")),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Structures of `width` parts each, `levels` of them in one another; all parts of one are the same bytes.
    fn nested(levels: usize, width: usize) -> Vec<u8> {
        let numbers = |list: &[u32]| list.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let places = |list: &[u16]| list.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        // The schema has a list of one field; a field has a kind, what is said about it, and a list of parts.
        let mut bytes = [numbers(&[12]), places(&[8, 8, 0, 4]), numbers(&[8, 4, 1, 20])].concat();
        bytes.extend(places(&[16, 16, 0, 0, 4, 8, 0, 12]));
        for level in 0..levels {
            let back = bytes.len() as u32 - 28;
            bytes.extend(numbers(&[back, 13, 4, 4, width as u32]));
            // Each points to what stands after the list.
            let after = |k: usize| (4 * (width - k)) as u32;
            bytes.extend(numbers(&(0..width).map(after).collect::<Vec<u32>>()));
            if level + 1 == levels {
                bytes.extend(numbers(&[bytes.len() as u32 - 28, 1, 4, 0]));
            }
        }
        bytes
    }

    #[test]
    fn structures_are_read_as_deep_as_they_make_sense() {
        let read = |bytes: &[u8]| fields(&Table::root(bytes).unwrap(), bytes.len());
        let found = read(&nested(2, 2)).unwrap();
        assert_eq!((found[0].kind, found[0].children.len()), (Kind::Struct, 2));
        assert_eq!(found[0].children[1].children[1].kind, Kind::Null);
        assert_eq!(read(&nested(15, 1)).map(|f| f.len()), Ok(1));
        // Too deep, and more parts than there are bytes for, which would take years.
        assert_eq!(read(&nested(16, 1)), Err(damaged()));
        assert_eq!(read(&nested(15, 20)), Err(damaged()));
    }
}
