//! The explorer as one HTML file: its page, its modules and its engine, nothing else to load.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pack::pack;
use crate::{browser, cargo, output, run};

const TARGET: &str = "wasm32-unknown-unknown";
const PAGE: &str = "crates/ictd-web/page";
/// What drives the page in a browser.
const DRIVER: &str = "crates/ictd-web/tests";
/// The text of the page's tour.
const GUIDE: &str = "docs/how-it-works.md";
/// Unpacks modules and engine in the page.
const START: &str = "crates/ictd-web/start.js";
/// What starts the page: its first module.
const MAIN: &str = r#"<script type="module" nonce="ictd">import "ictd/main";</script>"#;
const ENGINE: &str = "target/wasm32-unknown-unknown/explorer/ictd_web.wasm";
/// The file that is made.
const FILE: &str = "target/explorer/ictd-explorer.html";
/// Bytes that it may have.
const LARGEST: usize = 1_000_000;

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

/// Compares engine and page, and the page of a sweep, with the command line, which tests have built. Needs Node.
pub fn test() -> bool {
    let has_node = Command::new("node").arg("--version").output().is_ok_and(|found| found.status.success());
    if !has_node {
        eprintln!("xtask test: no Node found; install it (Debian: apt-get install nodejs)");
        return false;
    }
    explorer()
        && run(
            "engine",
            Command::new("node").args([
                "crates/ictd-web/tests/engine.mjs",
                ENGINE,
                "target/debug/ictd",
                FILE,
            ]),
        )
        && in_browser("page", &["--test", "page/"], "target/debug/ictd")
}

/// How fast the page is; beside the command line, which is built for release.
pub fn bench() -> bool {
    explorer()
        && cargo("build", &["build", "--release", "--locked"], &[])
        && in_browser("bench", &["page/bench.mjs"], "target/release/ictd")
}

/// Runs a program that drives the page in a browser, beside the command line. Installs the browser and its driver where they are missing.
fn in_browser(step: &str, program: &[&str], ictd: &str) -> bool {
    let Some(browser) = browser::provide() else { return false };
    let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    let driver = Path::new(DRIVER).join("node_modules/playwright-core/package.json");
    let whole = |path: &str| fs::canonicalize(path).unwrap_or_else(|_| path.into());
    (driver.is_file() || run("set-up", Command::new("npm").args(install).current_dir(DRIVER)))
        && run(
            step,
            Command::new("node")
                .args(program)
                .current_dir(DRIVER)
                .env("ICTD", whole(ictd))
                .env("ICTD_EXPLORER", whole(FILE))
                .env("ICTD_PICTURES", whole("target").join("explorer/pictures"))
                .env("CHROMIUM", browser),
        )
}

/// Builds the engine, and installs what that needs.
fn engine() -> bool {
    let mut where_it_would_be = Command::new("rustc");
    where_it_would_be.args(["--print", "target-libdir", "--target", TARGET]);
    let is_there = output(&mut where_it_would_be).is_some_and(|path| Path::new(path.trim()).is_dir());
    (is_there || run("set-up", Command::new("rustup").args(["target", "add", TARGET])))
        && cargo(
            "engine",
            &[
                "build",
                "--package",
                "ictd-web",
                "--lib",
                "--target",
                TARGET,
                "--profile",
                "explorer",
                "--locked",
            ],
            &[],
        )
}

/// Puts style, modules and engine into the page.
fn assemble() -> io::Result<PathBuf> {
    let (folder, file) = (Path::new(PAGE), Path::new(FILE));
    let page = fs::read_to_string(folder.join("index.html"))?;
    let style = fs::read_to_string(folder.join("style.css"))?;
    let style = format!("<style>\n{style}</style>");
    let page = replaced(&page, r#"<link rel="stylesheet" href="style.css">"#, &style)?;
    let (modules, engine) = (modules(folder)?, without_names(&fs::read(ENGINE)?));
    let start = fs::read_to_string(START)?;
    let guide = fs::read_to_string(GUIDE)?;
    if guide.contains("</script") {
        return Err(io::Error::other(format!("{GUIDE}: expected no end of a script in it")));
    }
    let scripts = [
        format!("<script type=\"text/markdown\" id=\"how-it-works\">{guide}</script>"),
        packed("engine", &engine),
        packed("modules", modules.as_bytes()),
        format!("<script nonce=\"ictd\">\n{start}</script>"),
        MAIN.to_owned(),
    ];
    let size = scripts[1].len();
    let page = replaced(&page, MAIN, &scripts.join("\n"))?;
    eprintln!("xtask explorer: {} bytes, {size} of them the engine", page.len());
    if page.len() > LARGEST {
        return Err(io::Error::other(format!("{} bytes, expected at most {LARGEST}", page.len())));
    }
    fs::create_dir_all(file.parent().unwrap_or(folder))?;
    fs::write(file, page)?;
    fs::canonicalize(file)
}

/// Bytes as `start.js` finds them.
fn packed(id: &str, bytes: &[u8]) -> String {
    let (length, text) = (bytes.len(), text(&pack(bytes)));
    format!("<script type=\"application/octet-stream\" id=\"{id}\" data-length=\"{length}\">{text}</script>")
}

/// The page with what stands there once replaced.
fn replaced(page: &str, place: &str, with: &str) -> io::Result<String> {
    match page.split_once(place) {
        Some((before, after)) if !after.contains(place) => Ok([before, with, after].concat()),
        _ => Err(io::Error::other(format!("index.html: expected one {place}"))),
    }
}

/// The texts of all modules by name, as JSON.
fn modules(folder: &Path) -> io::Result<String> {
    let mut texts = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "js") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            texts.insert(name, fs::read_to_string(&path)?);
        }
    }
    Ok(serde_json::to_string(&texts)?)
}

/// A module without its custom sections, which hold the names of functions: whoever looks at sizes wants them, a page does not.
fn without_names(module: &[u8]) -> Vec<u8> {
    let (header, mut rest) = module.split_at(8.min(module.len()));
    let mut kept = header.to_vec();
    while let [id, after @ ..] = rest {
        // The length of a section: seven bits a byte, least first.
        let digits = after.iter().take_while(|byte| **byte >= 0x80).count() + 1;
        let length = after.iter().take(digits).rev().fold(0, |n, byte| n << 7 | usize::from(byte & 0x7f));
        let (section, next) = rest.split_at((1 + digits + length).min(rest.len()));
        if *id != 0 {
            kept.extend_from_slice(section);
        }
        rest = next;
    }
    kept
}

/// Four bytes in five letters, the highest first: those from # to x but <, which could end a script. Zeros may follow.
fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(4) * 5);
    for group in bytes.chunks(4) {
        let number = (0..4).fold(0, |n: u32, k| n << 8 | u32::from(group.get(k).copied().unwrap_or(0)));
        for power in [85u32.pow(4), 85u32.pow(3), 85u32.pow(2), 85, 1] {
            let letter = b'#' + (number / power % 85) as u8;
            out.push(char::from(letter + u8::from(letter >= b'<')));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_keep_the_bytes_and_end_no_script() {
        let bytes: Vec<u8> = (0..4096u32).map(|k| (k.wrapping_mul(2_654_435_761) >> 21) as u8).collect();
        let letters = text(&bytes);
        assert!(letters.chars().all(|c| ('#'..='x').contains(&c) && c != '<'));
        let digit = |letter: u8| u32::from(letter - b'#' - u8::from(letter > b'<'));
        let number = |group: &[u8]| group.iter().fold(0u32, |n, &letter| 85 * n + digit(letter));
        let back: Vec<u8> =
            letters.as_bytes().chunks(5).flat_map(|group| number(group).to_be_bytes()).collect();
        assert_eq!(back, bytes);
        assert_eq!(text(&[255]).len(), 5);
    }

    #[test]
    fn only_custom_sections_are_left_out() {
        let long = [vec![10, 0x83, 0x01], vec![7; 131]].concat();
        let module = [b"\0asm\x01\0\0\0", &[1, 2, 8, 9][..], &[0, 3, 1, 2, 3], &long, &[0, 0]].concat();
        assert_eq!(without_names(&module), [b"\0asm\x01\0\0\0", &[1, 2, 8, 9][..], &long].concat());
        assert_eq!(without_names(b""), b"");
    }

    #[test]
    fn only_one_place_is_replaced() {
        assert!(replaced("<a><a>", "<a>", "b").is_err() && replaced("", "<a>", "b").is_err());
        assert_eq!(replaced("x<a>y", "<a>", "b").unwrap(), "xby");
    }
}
