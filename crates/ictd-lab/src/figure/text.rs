//! Labels with sub- and superscripts, and the embedded fonts that measure them.

use std::sync::LazyLock;

use ttf_parser::{Face, OutlineBuilder};

use super::scene::{Anchor, Segment};
use super::style::{SCRIPT_SIZE, TEXT_SIZE};

/// Which of the embedded fonts a run of text uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Upright.
    Regular,
    /// Bold.
    Bold,
    /// Slanted, for mathematical letters.
    Oblique,
}

/// How a run stands to the baseline: on it, or smaller below or above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    Base,
    Sub,
    Super,
}

/// Characters of one style.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The characters.
    pub text: String,
    /// Their font.
    pub style: Style,
    /// Their height.
    pub script: Script,
}

/// A line of text made of runs.
///
/// Markup: `*x*` is slanted, `**x**` bold, `_{x}` a subscript, `^{x}` a superscript; slanted letters may
/// stand inside scripts.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The runs, left to right.
    pub runs: Vec<Run>,
}

/// The embedded font files, in the order of [`Style::ALL`].
static FILES: [&[u8]; 3] = [
    include_bytes!("../../fonts/DejaVuSans.ttf"),
    include_bytes!("../../fonts/DejaVuSans-Bold.ttf"),
    include_bytes!("../../fonts/DejaVuSans-Oblique.ttf"),
];

static FACES: LazyLock<[Option<Face<'static>>; 3]> =
    LazyLock::new(|| FILES.map(|data| Face::parse(data, 0).ok()));

impl Style {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Regular, Self::Bold, Self::Oblique];

    /// The font file.
    pub(super) fn file(self) -> &'static [u8] {
        FILES[self as usize]
    }

    /// The font, read.
    pub(super) fn face(self) -> Option<&'static Face<'static>> {
        FACES[self as usize].as_ref()
    }
}

impl Script {
    /// Size relative to the label's: six points beside text of seven, the smallest that can be read in print.
    pub fn scale(self) -> f64 {
        if self == Self::Base { 1.0 } else { SCRIPT_SIZE / TEXT_SIZE }
    }

    /// Distance below the baseline, relative to the label's size.
    pub fn drop(self) -> f64 {
        match self {
            Self::Base => 0.0,
            Self::Sub => 0.22,
            Self::Super => -0.32,
        }
    }
}

impl Label {
    /// Reads the markup; unmatched marks are ordinary characters.
    pub fn parse(markup: &str) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        let mut style = Style::Regular;
        let mut rest = markup;
        let mut push = |text: &str, style, script| {
            join(&mut runs, Run { text: text.to_owned(), style, script });
        };
        while let Some(c) = rest.chars().next() {
            let braced = |prefix: &str| rest.strip_prefix(prefix).and_then(|r| r.split_once('}'));
            let script = braced("_{").map(|found| (found, Script::Sub));
            if let Some(((inner, after), script)) =
                script.or(braced("^{").map(|found| (found, Script::Super)))
            {
                for (i, piece) in inner.split('*').enumerate() {
                    push(piece, if i % 2 == 1 { Style::Oblique } else { style }, script);
                }
                rest = after;
            } else if let Some(after) = rest.strip_prefix("**") {
                style = if style == Style::Bold { Style::Regular } else { Style::Bold };
                rest = after;
            } else if let Some(after) = rest.strip_prefix('*') {
                style = if style == Style::Oblique { Style::Regular } else { Style::Oblique };
                rest = after;
            } else {
                let (first, after) = rest.split_at(c.len_utf8());
                push(first, style, Script::Base);
                rest = after;
            }
        }
        Self { runs }
    }

    /// Width at a size, from the fonts' advance widths.
    pub fn width(&self, size: f64) -> f64 {
        self.runs.iter().map(|run| run_width(run, size)).sum()
    }

    /// The label in lines of at most a width, of nearly the same length; a word that is longer stands alone.
    pub fn wrap(&self, size: f64, width: f64) -> Vec<Self> {
        let lines = self.filled(size, width);
        // Where every word stands alone already, no width gives more lines.
        if lines.len() == self.filled(size, 0.0).len() {
            return lines;
        }
        let mut balanced = lines.clone();
        let mut narrower = width;
        while lines.len() > 1 {
            narrower *= 0.97;
            let tried = self.filled(size, narrower);
            if tried.len() > lines.len() || tried.iter().any(|line| line.width(size) > width) {
                break;
            }
            balanced = tried;
        }
        balanced
    }

    /// Lines filled word by word. No line ends beside a sign of relation: "γ = 0.9" is one word.
    fn filled(&self, size: f64, width: f64) -> Vec<Self> {
        let pieces = self.runs.iter().flat_map(|run| {
            run.text.split_inclusive(' ').map(|text| Run { text: text.to_owned(), ..run.clone() })
        });
        let pieces: Vec<Run> = pieces.collect();
        let is_relation = |c: Option<char>| c.is_some_and(|c| "=≤≥<>±".contains(c));
        let is_word = |a: &Run, b: &Run| {
            let (before, after) = (a.text.trim_end().chars().last(), b.text.chars().next());
            !a.text.ends_with(' ') || is_relation(before) || is_relation(after)
        };
        let total = |runs: &[Run]| runs.iter().map(|r| run_width(r, size)).sum::<f64>();
        let mut lines: Vec<Vec<Run>> = Vec::new();
        for word in pieces.chunk_by(is_word) {
            if lines.last().is_none_or(|line| total(line) + total(&trimmed(word)) > width) {
                lines.push(Vec::new());
            }
            let line = lines.last_mut().into_iter();
            line.for_each(|line| word.iter().for_each(|run| join(line, run.clone())));
        }
        lines.iter().map(|line| Self { runs: trimmed(line) }).collect()
    }

    /// Horizontal offset of the left end for an anchor.
    pub fn offset(&self, size: f64, anchor: Anchor) -> f64 {
        match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -0.5 * self.width(size),
            Anchor::End => -self.width(size),
        }
    }

    /// The outlines of all glyphs, baseline at the origin.
    pub fn outlines(&self, size: f64, anchor: Anchor) -> Vec<Segment> {
        let mut pen = Pen { segments: Vec::new(), x: self.offset(size, anchor), y: 0.0, scale: 1.0 };
        for run in &self.runs {
            let Some(face) = run.style.face() else { continue };
            pen.scale = run.script.scale() * size / f64::from(face.units_per_em());
            pen.y = run.script.drop() * size;
            for c in run.text.chars() {
                let glyph = face.glyph_index(c).unwrap_or_default();
                face.outline_glyph(glyph, &mut pen);
                pen.x += pen.scale * f64::from(face.glyph_hor_advance(glyph).unwrap_or(0));
            }
        }
        pen.segments
    }
}

/// Runs without the spaces at their end.
fn trimmed(runs: &[Run]) -> Vec<Run> {
    let mut runs = runs.to_vec();
    if let Some(last) = runs.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    runs
}

/// Adds a run to others, into the last one where their looks are the same.
fn join(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.style == run.style && last.script == run.script => last.text.push_str(&run.text),
        _ if run.text.is_empty() => {}
        _ => runs.push(run),
    }
}

/// Width of a label as figures have it.
pub(super) fn text_width(markup: &str) -> f64 {
    Label::parse(markup).width(TEXT_SIZE)
}

fn run_width(run: &Run, size: f64) -> f64 {
    let Some(face) = run.style.face() else { return 0.0 };
    let advance = |c| face.glyph_index(c).and_then(|g| face.glyph_hor_advance(g)).unwrap_or(0);
    let units: f64 = run.text.chars().map(|c| f64::from(advance(c))).sum();
    units * run.script.scale() * size / f64::from(face.units_per_em())
}

/// Turns a glyph's outline (y up, quadratic curves) into path segments (y down, cubic curves).
struct Pen {
    segments: Vec<Segment>,
    x: f64,
    y: f64,
    scale: f64,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f64, f64) {
        (self.x + self.scale * f64::from(x), self.y - self.scale * f64::from(y))
    }

    fn position(&self) -> (f64, f64) {
        match self.segments.last() {
            Some(Segment::Move(x, y) | Segment::Line(x, y)) => (*x, *y),
            Some(Segment::Cubic(c)) => (c[4], c[5]),
            _ => (self.x, self.y),
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.segments.push(Segment::Move(x, y));
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.segments.push(Segment::Line(x, y));
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        // Degree elevation: cubic control points lie two thirds of the way to the quadratic one.
        let ((px, py), (cx, cy), (x, y)) = (self.position(), self.at(x1, y1), self.at(x, y));
        let toward = |from: f64, to: f64| from + 2.0 / 3.0 * (to - from);
        let [(x1, y1), (x2, y2)] = [(px, py), (x, y)].map(|(x, y)| (toward(x, cx), toward(y, cy)));
        self.segments.push(Segment::Cubic([x1, y1, x2, y2, x, y]));
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.segments.push(Segment::Cubic([x1, y1, x2, y2, x, y]));
    }
    fn close(&mut self) {
        self.segments.push(Segment::Close);
    }
}
