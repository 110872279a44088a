//! The explorer as one HTML file: its page, its modules and its engine, nothing else to load.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use miniz_oxide::deflate::compress_to_vec;

use crate::{cargo, output, run};

const TARGET: &str = "wasm32-unknown-unknown";
const PAGE: &str = "crates/ictd-web/page";
const ENGINE: &str = "target/wasm32-unknown-unknown/explorer/ictd_web.wasm";
/// The file that is made.
pub const FILE: &str = "target/explorer/ictd-explorer.html";
/// Bytes that it may have.
const LARGEST: usize = 1_000_000;
/// How hard miniz tries to make the engine small.
const EFFORT: u8 = 10;

/// Builds the engine and the page around it; prints where the file is.
pub fn explorer() -> bool {
    if !engine() {
        return false;
    }
    match assemble() {
        Ok(path) => {
            println!("{}", path.display());
            true
        }
        Err(error) => {
            eprintln!("xtask explorer: {error}");
            false
        }
    }
}

/// Builds the engine, and installs what that needs.
pub fn engine() -> bool {
    let mut where_it_would_be = Command::new("rustc");
    where_it_would_be.args(["--print", "target-libdir", "--target", TARGET]);
    let is_there = output(&mut where_it_would_be).is_some_and(|path| Path::new(path.trim()).is_dir());
    (is_there || run("set-up", Command::new("rustup").args(["target", "add", TARGET])))
        && cargo(
            "engine",
            &["build", "--package", "ictd-web", "--lib", "--target", TARGET, "--profile", "explorer", "--locked"],
            &[],
        )
}

/// Puts style, modules and engine into the page.
fn assemble() -> io::Result<PathBuf> {
    let (folder, file) = (Path::new(PAGE), Path::new(FILE));
    let style = fs::read_to_string(folder.join("style.css"))?;
    let engine = base64(&compress_to_vec(&fs::read(ENGINE)?, EFFORT));
    let page = fs::read_to_string(folder.join("index.html"))?;
    let page = replaced(
        &page,
        r#"<link rel="stylesheet" href="style.css">"#,
        &format!("<style>\n{style}</style>\n{}", import_map(folder)?),
    )?;
    let script = format!("<script type=\"application/octet-stream\" id=\"engine\">{engine}</script>\n</body>");
    let page = replaced(&page, "</body>", &script)?;
    eprintln!("xtask explorer: {} bytes, {} of them the engine", page.len(), engine.len());
    if page.len() > LARGEST {
        return Err(io::Error::other(format!("{} bytes, expected at most {LARGEST}", page.len())));
    }
    fs::create_dir_all(file.parent().unwrap_or(folder))?;
    fs::write(file, page)?;
    fs::canonicalize(file)
}

/// The page with what stands there once replaced.
fn replaced(page: &str, place: &str, with: &str) -> io::Result<String> {
    match page.split_once(place) {
        Some((before, after)) if !after.contains(place) => Ok([before, with, after].concat()),
        _ => Err(io::Error::other(format!("index.html: expected one {place}"))),
    }
}

/// A map from `ictd/NAME` to the module NAME.js, written out as an address.
fn import_map(folder: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_module = path.extension().is_some_and(|ending| ending == "js");
        names.extend(path.file_stem().and_then(|name| name.to_str()).filter(|_| is_module).map(str::to_owned));
    }
    names.sort();
    let entry = |name: &String| {
        let module = fs::read_to_string(folder.join(format!("{name}.js")))?;
        Ok(format!("\"ictd/{name}\":\"data:text/javascript;charset=utf-8,{}\"", escaped(&module)))
    };
    let entries = names.iter().map(entry).collect::<io::Result<Vec<_>>>()?;
    Ok(format!("<script type=\"importmap\">{{\"imports\":{{{}}}}}</script>", entries.join(",\n")))
}

/// Text as part of an address inside a JSON string inside HTML: what would end one of them, or be left out, is written as its
/// number. A third shorter than Base64.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' | '#' | '"' | '\\' | '<' | '\u{0}'..='\u{1f}' => out += &format!("%{:02X}", c as u32),
            c => out.push(c),
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |k: usize| u32::from(group.get(k).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for k in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * k)) as usize % 64];
            out.push(if k <= group.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_in_rfc_4648() {
        let known = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        known.into_iter().for_each(|(text, code)| assert_eq!(base64(text.as_bytes()), code));
    }

    #[test]
    fn modules_survive_json_html_and_addresses() {
        assert_eq!(escaped("a\n\"b\" % c # </d> \\ é"), "a%0A%22b%22 %25 c %23 %3C/d> %5C é");
        assert!(replaced("<a><a>", "<a>", "b").is_err() && replaced("", "<a>", "b").is_err());
        assert_eq!(replaced("x<a>y", "<a>", "b").unwrap(), "xby");
    }
}
