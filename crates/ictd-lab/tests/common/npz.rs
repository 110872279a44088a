//! Arrays and archives as NumPy writes them, or would if it made mistakes.
#![allow(dead_code, missing_docs)]

/// An array; `descr` and `shape` as they stand in its header.
pub fn array(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    with_order("False", descr, shape, data)
}

/// An array whose entries stand column by column.
pub fn fortran(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    with_order("True", descr, shape, data)
}

fn with_order(fortran: &str, descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), data].concat()
}

/// An array of doubles.
pub fn doubles(shape: &str, numbers: &[f64]) -> Vec<u8> {
    array("'<f8'", shape, &numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

/// An archive of files, stored or deflated.
pub fn archive(files: &[(&str, Vec<u8>)], is_packed: bool) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let offset = (out.len() as u32).to_le_bytes();
        let (method, data) = match is_packed {
            true => (8, miniz_oxide::deflate::compress_to_vec(content, 6)),
            false => (0, content.clone()),
        };
        let mut common = vec![20, 0, 0, 0, method, 0, 0, 0, 0x21, 0];
        for number in [crc32(content), data.len() as u32, content.len() as u32] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        out.extend([b"PK\x03\x04", &common[..], name.as_bytes(), &data].concat());
        directory.extend([b"PK\x01\x02\x14\0", &common[..], &[0; 10], &offset, name.as_bytes()].concat());
    }
    let [begin, length] = [out.len(), directory.len()].map(|n| (n as u32).to_le_bytes());
    let count = (files.len() as u16).to_le_bytes();
    [&out[..], &directory, b"PK\x05\x06\0\0\0\0", &count, &count, &length, &begin, &[0, 0]].concat()
}

/// The checksum of zip and gzip, bit by bit.
pub fn crc32(content: &[u8]) -> u32 {
    let bit = |c: u32| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
    !content.iter().fold(!0, |c: u32, b| (0..8).fold(c ^ u32::from(*b), |c, _| bit(c)))
}
