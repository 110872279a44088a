//! What a person sees: the width of text, its colours, and messages.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Color, Style};

/// Width of text where neither a terminal nor COLUMNS tells another.
const WIDTH: usize = 100;
/// Narrower than this tables cannot be read; the terminal breaks their lines.
const NARROWEST: usize = 40;

/// Whether only errors are said; decided before a command runs.
pub static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether the last line on the terminal says how far work is.
static SHOWN: Mutex<bool> = Mutex::new(false);
/// Back to the first column, and the line away.
const CLEAR: &str = "\r\x1b[K";

/// Characters per line on stdout.
pub fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(said).unwrap_or(WIDTH).max(NARROWEST)
}

/// Prints a line to stderr unless messages are unwanted.
pub fn message(line: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        error(line);
    }
}

/// Prints a line to stderr; that nobody can read it is no reason to stop.
pub fn error(line: &str) {
    clear();
    let mut stderr = std::io::stderr();
    let line = painted(line, &stderr);
    let _ = writeln!(stderr, "{line}");
}

/// Shows how far work is: on a terminal in place of the last such line, elsewhere as a message.
pub fn progress(line: &str, terminal: bool) {
    if QUIET.load(Ordering::Relaxed) {
        return;
    }
    if !terminal {
        return message(line);
    }
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // A line that breaks could not be replaced.
    let width = terminal_size::terminal_size_of(std::io::stderr()).map_or(WIDTH, |(w, _)| usize::from(w.0));
    let line: String = line.chars().take(width.saturating_sub(1)).collect();
    let _ = write!(std::io::stderr(), "{CLEAR}{line}");
    *shown = true;
}

/// Takes away the line that says how far work is.
pub fn clear() {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::take(&mut *shown) {
        let _ = write!(std::io::stderr(), "{CLEAR}");
    }
}

/// The text with headings of tables and words of judgement in colour, where the stream is a terminal that has them;
/// NO_COLOR and CLICOLOR_FORCE have the last word.
pub fn painted(text: &str, stream: &impl RawStream) -> String {
    let is_plain = AutoStream::choice(stream) == ColorChoice::Never || is_unforced(stream);
    if is_plain { text.to_owned() } else { colored(text) }
}

/// Whether CLICOLOR_FORCE is 0, which asks for no colour outside a terminal; the library takes it for a 1.
pub fn is_unforced(stream: &impl RawStream) -> bool {
    std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value == "0") && !stream.is_terminal()
}

fn colored(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut painted: Vec<String> = Vec::with_capacity(lines.len());
    // Where the paragraph begins: its lines above a rule are a heading.
    let mut first = 0;
    let mut before = "";
    for (k, line) in lines.iter().enumerate() {
        if line.is_empty() {
            first = k + 1;
        } else if line.contains("--") && line.bytes().all(|b| b == b'-' || b == b' ') {
            let bold = Style::new().bold();
            (first..k).for_each(|h| painted[h] = format!("{bold}{}{bold:#}", lines[h]));
        }
        painted.push(judged(line, &mut before));
    }
    painted.join("\n")
}

/// A line with its words of judgement in colour. A line may end in "not": `before` is the last word of the one before.
fn judged<'a>(line: &'a str, before: &mut &'a str) -> String {
    let mut text = String::new();
    let mut pieces = line.split_inclusive(' ').peekable();
    while let Some(piece) = pieces.next() {
        let word = word(piece);
        let next = pieces.peek().map_or("", |next| self::word(next));
        let color = match (word.to_lowercase().as_str(), next) {
            ("not", "reproduced") | ("refused", _) => Some(AnsiColor::Red),
            ("reproduced", _) if *before == "not" => Some(AnsiColor::Red),
            ("reproduced" | "certified", _) => Some(AnsiColor::Green),
            ("consistent", _) => Some(AnsiColor::Cyan),
            ("partly" | "estimated" | "testable", _) => Some(AnsiColor::Yellow),
            ("error" | "drift", _) if line.starts_with(piece) && piece.ends_with(": ") => {
                Some(AnsiColor::Red)
            }
            ("warning", _) if line.starts_with(piece) => Some(AnsiColor::Yellow),
            _ => None,
        };
        let style = color.map_or_else(Style::new, |c| Style::new().fg_color(Some(Color::Ansi(c))));
        text += &piece.replacen(word, &format!("{style}{word}{style:#}"), usize::from(color.is_some()));
        if !word.is_empty() {
            *before = word;
        }
    }
    text
}

fn word(piece: &str) -> &str {
    piece.trim_matches(|c: char| !c.is_alphabetic())
}
