//! The columns of a Parquet file: structures and lists taken apart into what has entries of its own.

use super::super::column::{DEEPEST, EXPECTED};
use super::encoding::Kind;
use super::pages::Levels;
use super::thrift::Node;
use super::{damaged, nests};

/// What has entries of its own.
#[derive(Clone, Debug)]
pub(super) struct Leaf<'a> {
    /// Its own name after those of the structures it stands in.
    pub names: Vec<String>,
    /// What the file says about it.
    pub node: &'a Node<'a>,
    pub levels: Levels,
    /// Whether a row is more than a list.
    is_nested: bool,
}

/// Where a walk through the columns is.
#[derive(Clone, Debug, Default)]
struct Place {
    names: Vec<String>,
    level: u32,
    list: Option<u32>,
    is_nested: bool,
}

/// All columns in the order of the file; the first element stands for the whole.
pub(super) fn leaves<'a>(elements: &'a [Node<'a>]) -> Option<Vec<Leaf<'a>>> {
    let (root, mut rest) = elements.split_first()?;
    let mut found = Vec::new();
    for _ in 0..root.count(5)? {
        walk(&mut rest, &Place::default(), DEEPEST, &mut found)?;
    }
    rest.is_empty().then_some(found)
}

fn walk<'a>(rest: &mut &'a [Node<'a>], outer: &Place, depth: usize, found: &mut Vec<Leaf<'a>>) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let (node, after) = rest.split_first()?;
    *rest = after;
    let mut place = outer.clone();
    let repetition = node.whole(3);
    place.level += u32::from(matches!(repetition, Some(1 | 2)));
    // A list has names for itself and for its entries; only that of the column counts.
    if outer.list.is_none() && (repetition != Some(2) || outer.names.is_empty()) {
        place.names.push(node.text(4)?);
    }
    let children = node.count(5).unwrap_or(0);
    if repetition == Some(2) {
        place.is_nested |= outer.list.is_some() || children > 1;
        place.list = Some(place.level);
    }
    if children == 0 {
        let Place { names, level, list, is_nested } = place;
        found.push(Leaf { names, node, levels: Levels { whole: level, list }, is_nested });
        return Some(());
    }
    // Entries that are structures or lists.
    place.is_nested |= outer.list.is_some();
    (0..children).try_for_each(|_| walk(rest, &place, depth, found))
}

impl Leaf<'_> {
    /// What the entries are, or why they cannot be read.
    pub fn kind(&self) -> Result<Kind, String> {
        let leaf = self.node;
        if self.is_nested {
            return Err(nests());
        }
        let logical = leaf.field(10);
        if leaf.whole(6) == Some(5) || logical.is_some_and(|l| l.field(5).is_some()) {
            return Err(format!("found decimals, {EXPECTED}: floating-point numbers can be read"));
        }
        let is_unsigned = |bits: i64| {
            let integer = logical.and_then(|l| l.field(10));
            integer.is_some_and(|i| i.whole(2) == Some(0)) || leaf.whole(6) == Some(bits)
        };
        let is_half = leaf.whole(2) == Some(2) && logical.is_some_and(|l| l.field(15).is_some());
        Ok(match leaf.whole(1) {
            Some(0) => Kind::Bool,
            Some(1) => Kind::Int32 { signed: !is_unsigned(13) },
            Some(2) => Kind::Int64 { signed: !is_unsigned(14) },
            Some(4) => Kind::Float,
            Some(5) => Kind::Double,
            Some(6) => Kind::Text,
            Some(7) if is_half => Kind::Half,
            Some(3) => {
                return Err(format!("found times of 96 bits, {EXPECTED}: those of 64 bits can be read"));
            }
            Some(7) => return Err(format!("found entries of a fixed number of bytes, {EXPECTED}")),
            _ => return Err(damaged()),
        })
    }
}
