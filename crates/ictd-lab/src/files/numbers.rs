//! JSON with every floating-point number at 17 significant digits.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// 17 significant digits determine a double, and say so to readers in other languages.
struct SeventeenDigits;

impl Formatter for SeventeenDigits {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write!(writer, "{value:.16e}")
    }
}

/// The value as one line of JSON.
pub fn to_json_17(value: &impl Serialize) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, SeventeenDigits))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
