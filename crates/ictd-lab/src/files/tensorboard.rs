//! TensorBoard event files with scalars.
//!
//! A file is a sequence of records: length, its checksum, payload, its checksum; the payload is a
//! protocol-buffer `Event` with a step and a `Summary` of one tag and value.

/// The bytes of an event file.
#[derive(Clone, Debug)]
pub struct EventFile {
    bytes: Vec<u8>,
    wall_time: f64,
}

impl EventFile {
    /// A file with its version record; every event carries the same wall time.
    pub fn new(wall_time: f64) -> Self {
        let mut file = Self { bytes: Vec::new(), wall_time };
        let mut event = Vec::new();
        double_field(&mut event, 1, wall_time);
        bytes_field(&mut event, 3, b"brain.Event:2");
        file.record(&event);
        file
    }

    /// Appends a scalar.
    pub fn scalar(&mut self, tag: &str, step: u64, value: f32) {
        let mut point = Vec::new();
        bytes_field(&mut point, 1, tag.as_bytes());
        // Field 2, wire type 5: simple_value.
        point.push(2 << 3 | 5);
        point.extend_from_slice(&value.to_le_bytes());
        let mut summary = Vec::new();
        bytes_field(&mut summary, 1, &point);
        let mut event = Vec::new();
        double_field(&mut event, 1, self.wall_time);
        // Field 2, wire type 0: step.
        event.push(2 << 3);
        varint(&mut event, step);
        bytes_field(&mut event, 5, &summary);
        self.record(&event);
    }

    /// The file's bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn record(&mut self, payload: &[u8]) {
        let length = (payload.len() as u64).to_le_bytes();
        self.bytes.extend_from_slice(&length);
        self.bytes.extend_from_slice(&masked_crc(&length).to_le_bytes());
        self.bytes.extend_from_slice(payload);
        self.bytes.extend_from_slice(&masked_crc(payload).to_le_bytes());
    }
}

fn double_field(out: &mut Vec<u8>, field: u8, value: f64) {
    out.push(field << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes_field(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78) as TensorFlow masks it.
fn masked_crc(bytes: &[u8]) -> u32 {
    let crc =
        !bytes.iter().fold(!0u32, |crc, &byte| TABLE[((crc ^ u32::from(byte)) & 0xff) as usize] ^ (crc >> 8));
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

static TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}
