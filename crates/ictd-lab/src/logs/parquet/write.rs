//! Columns as a Parquet file: one group of rows, pages without compression.

use super::super::table::Values;
use super::MARK;
use super::thrift::Writer;

/// Rows of a page.
const ROWS: usize = 1 << 16;

/// A column that was written.
struct Written<'a> {
    name: &'a str,
    values: &'a Values,
    begin: usize,
    end: usize,
}

/// The file. A number that is none and an empty text are absent entries.
pub(crate) fn to_bytes(columns: &[(String, Values)]) -> Vec<u8> {
    let mut file = MARK.to_vec();
    let mut written = Vec::new();
    for (name, values) in columns {
        let begin = file.len();
        for start in (0..values.len()).step_by(ROWS) {
            page(&mut file, values, start..(start + ROWS).min(values.len()));
        }
        written.push(Written { name, values, begin, end: file.len() });
    }
    let footer = footer(&written);
    file.extend(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(MARK);
    file
}

/// The numbers that types have in the format.
fn kind(values: &Values) -> i64 {
    match values {
        Values::Whole(_) => 2,
        Values::Float(_) => 5,
        Values::Text(_) => 6,
    }
}

fn page(file: &mut Vec<u8>, values: &Values, rows: std::ops::Range<usize>) {
    let count = rows.len();
    let is_there = |row: usize| match values {
        Values::Whole(_) => true,
        Values::Float(list) => !list[row].is_nan(),
        Values::Text(list) => !list[row].is_empty(),
    };
    // One group of eight levels per byte.
    let mut levels = vec![0u8; count.div_ceil(8)];
    rows.clone()
        .enumerate()
        .filter(|(_, row)| is_there(*row))
        .for_each(|(k, _)| levels[k / 8] |= 1 << (k % 8));
    let mut head = Vec::new();
    let mut groups = levels.len() << 1 | 1;
    while groups > 127 {
        head.push(groups as u8 | 128);
        groups >>= 7;
    }
    head.push(groups as u8);
    let mut body = ((head.len() + levels.len()) as u32).to_le_bytes().to_vec();
    body.extend([head, levels].concat());
    for row in rows.filter(|row| is_there(*row)) {
        match values {
            Values::Whole(list) => body.extend(list[row].to_le_bytes()),
            Values::Float(list) => body.extend(list[row].to_le_bytes()),
            Values::Text(list) => {
                body.extend((list[row].len() as u32).to_le_bytes());
                body.extend(list[row].as_bytes());
            }
        }
    }
    let mut header = Writer::default();
    header.begin();
    header.int32(1, 0);
    header.int32(2, body.len() as i64);
    header.int32(3, body.len() as i64);
    header.structure(5, |w| {
        w.int32(1, count as i64);
        // Plain entries, levels in runs and groups.
        [(2, 0), (3, 3), (4, 3)].into_iter().for_each(|(field, encoding)| w.int32(field, encoding));
    });
    header.end();
    file.extend(header.bytes);
    file.extend(body);
}

fn footer(columns: &[Written<'_>]) -> Vec<u8> {
    let rows = columns.first().map_or(0, |column| column.values.len()) as i64;
    let mut w = Writer::default();
    w.begin();
    w.int32(1, 1);
    let schema: Vec<Option<&Written<'_>>> = std::iter::once(None).chain(columns.iter().map(Some)).collect();
    w.structures(2, &schema, |w, column| match column {
        None => {
            w.text(4, "schema");
            w.int32(5, columns.len() as i64);
        }
        Some(column) => {
            w.int32(1, kind(column.values));
            // Entries may be absent.
            w.int32(3, 1);
            w.text(4, column.name);
            if matches!(column.values, Values::Text(_)) {
                // UTF-8, as old and new readers want to be told.
                w.int32(6, 0);
                w.structure(10, |w| w.structure(1, |_| {}));
            }
        }
    });
    w.int64(3, rows);
    w.structures(4, &[()], |w, ()| {
        w.structures(1, columns, |w, column| {
            let size = (column.end - column.begin) as i64;
            w.int64(2, column.begin as i64);
            w.structure(3, |w| {
                w.int32(1, kind(column.values));
                w.int32s(2, &[0, 3]);
                w.texts(3, &[column.name]);
                w.int32(4, 0);
                w.int64(5, rows);
                w.int64(6, size);
                w.int64(7, size);
                w.int64(9, column.begin as i64);
            });
        });
        w.int64(2, columns.last().map_or(0, |last| last.end - MARK.len()) as i64);
        w.int64(3, rows);
    });
    w.text(6, concat!("ictd version ", env!("CARGO_PKG_VERSION")));
    w.end();
    w.bytes
}
