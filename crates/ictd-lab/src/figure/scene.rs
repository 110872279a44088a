//! A drawing as a list of shapes, to be written as SVG or PDF or rendered to PNG.

use super::style::PAPER;
use super::text::Label;

/// A colour with opacity, and what stands for it on a dark page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Color {
    /// Red, green, blue on paper.
    pub rgb: [u8; 3],
    /// Red, green, blue where the reader prefers dark pages.
    pub dark: [u8; 3],
    /// Opacity in [0, 1].
    pub alpha: f64,
}

impl Color {
    /// An opaque colour that is the same on paper and on a dark page.
    pub const fn rgb(r: u8, g: u8, b: u8) -> Self {
        Self::themed([r, g, b], [r, g, b])
    }

    /// An opaque colour on paper and on a dark page.
    pub const fn themed(rgb: [u8; 3], dark: [u8; 3]) -> Self {
        Self { rgb, dark, alpha: 1.0 }
    }

    /// The same colour with another opacity.
    pub const fn with_alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// The colour a share of the way to another; shares outside [0, 1] are taken as the nearer end.
    pub fn toward(self, other: Self, share: f64) -> Self {
        let t = share.clamp(0.0, 1.0);
        let mix = |a: [u8; 3], b: [u8; 3]| {
            std::array::from_fn(|k| (f64::from(a[k]) + t * (f64::from(b[k]) - f64::from(a[k]))).round() as u8)
        };
        Self { rgb: mix(self.rgb, other.rgb), dark: mix(self.dark, other.dark), alpha: self.alpha }
    }

    /// The colour of text on a fill of this colour: the better readable of black and white, by theme.
    pub fn text_on(self) -> Self {
        let ink = |fill| {
            let [black, white] = [[0; 3], [255; 3]];
            if contrast(fill, black) > contrast(fill, white) { black } else { white }
        };
        Self::themed(ink(self.rgb), ink(self.dark))
    }
}

/// Contrast of two colours as WCAG 2 defines it, from 1 to 21; text wants 4.5.
pub fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let luminance = |rgb: [u8; 3]| {
        let [r, g, b] = rgb.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
    if a > b { a / b } else { b / a }
}

/// Height of a line of text over its size.
pub(super) const LEADING: f64 = 1.25;

/// How an outline is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Stroke {
    /// Colour of the line.
    pub color: Color,
    /// Width in points.
    pub width: f64,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub dash: Vec<f64>,
}

impl Stroke {
    /// A solid line.
    pub fn solid(color: Color, width: f64) -> Self {
        Self { color, width, dash: Vec::new() }
    }
}

/// A piece of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Segment {
    Move(f64, f64),
    Line(f64, f64),
    /// Two control points and the end.
    Cubic([f64; 6]),
    Close,
}

impl Segment {
    /// As the letter of an SVG path, and coordinates.
    pub fn parts(&self) -> (char, Vec<f64>) {
        match *self {
            Self::Move(x, y) => ('M', vec![x, y]),
            Self::Line(x, y) => ('L', vec![x, y]),
            Self::Cubic(c) => ('C', c.to_vec()),
            Self::Close => ('Z', Vec::new()),
        }
    }
}

/// Where a label's position lies horizontally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

/// A shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A filled and/or stroked path.
    Path {
        /// Its pieces.
        segments: Vec<Segment>,
        /// Colour of the inside.
        fill: Option<Color>,
        /// Outline.
        stroke: Option<Stroke>,
    },
    /// A line of text with its baseline at (x, y), turned by `angle` degrees around that point.
    Text {
        /// Horizontal position.
        x: f64,
        /// Position of the baseline.
        y: f64,
        /// What it says.
        label: Label,
        /// Size in points.
        size: f64,
        /// Colour.
        color: Color,
        /// Which end of the text is at x.
        anchor: Anchor,
        /// Clockwise turn in degrees.
        angle: f64,
    },
}

/// A drawing of the size it is printed at, origin at the top left, units points (1/72 inch).
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// What the drawing shows, for readers that cannot see it.
    pub title: String,
    /// Shapes from back to front.
    pub shapes: Vec<Shape>,
}

impl Scene {
    /// An empty drawing on paper; markup in its title is left out.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let title = Label::parse(title).runs.into_iter().map(|run| run.text).collect();
        let mut scene = Self { width, height, title, shapes: Vec::new() };
        scene.rect([0.0, 0.0, width, height], Some(PAPER), None);
        scene
    }

    /// Adds a path.
    pub(crate) fn path(&mut self, segments: Vec<Segment>, fill: Option<Color>, stroke: Option<Stroke>) {
        self.shapes.push(Shape::Path { segments, fill, stroke });
    }

    /// Adds a rectangle `[x, y, width, height]`.
    pub fn rect(&mut self, [x, y, w, h]: [f64; 4], fill: Option<Color>, stroke: Option<Stroke>) {
        let corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)];
        self.polygon(&corners, fill, stroke);
    }

    /// Adds a closed polygon.
    pub fn polygon(&mut self, points: &[(f64, f64)], fill: Option<Color>, stroke: Option<Stroke>) {
        let mut segments = open_path(points);
        segments.push(Segment::Close);
        self.path(segments, fill, stroke);
    }

    /// Adds an open line through points.
    pub fn polyline(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        self.path(open_path(points), None, Some(stroke));
    }

    /// A mark on a line: a dot, or a ring around the dot of another line that goes through the same point.
    pub(super) fn mark(&mut self, x: f64, y: f64, color: Color, is_ring: bool) {
        if is_ring {
            self.circle(x, y, 2.4, None, Some(Stroke::solid(color, 0.8)));
        } else {
            self.circle(x, y, 1.5, Some(color), None);
        }
    }

    /// Adds a circle, as four cubic arcs (control points at 0.5523 of the radius).
    pub fn circle(&mut self, x: f64, y: f64, radius: f64, fill: Option<Color>, stroke: Option<Stroke>) {
        let (r, k) = (radius, 0.552_284_75 * radius);
        self.path(
            vec![
                Segment::Move(x + r, y),
                Segment::Cubic([x + r, y + k, x + k, y + r, x, y + r]),
                Segment::Cubic([x - k, y + r, x - r, y + k, x - r, y]),
                Segment::Cubic([x - r, y - k, x - k, y - r, x, y - r]),
                Segment::Cubic([x + k, y - r, x + r, y - k, x + r, y]),
                Segment::Close,
            ],
            fill,
            stroke,
        );
    }

    /// Adds a filled triangle with its tip at (x, y) pointing along (dx, dy).
    pub fn arrow_head(&mut self, x: f64, y: f64, dx: f64, dy: f64, size: f64, color: Color) {
        let norm = dx.hypot(dy);
        let (ux, uy) = (dx / norm, dy / norm);
        let (bx, by) = (x - size * ux, y - size * uy);
        let half = 0.4 * size;
        self.polygon(
            &[(x, y), (bx - half * uy, by + half * ux), (bx + half * uy, by - half * ux)],
            Some(color),
            None,
        );
    }

    /// Adds horizontal text, nothing for none; see [`Label`] for the markup.
    pub fn text(&mut self, x: f64, y: f64, markup: &str, size: f64, anchor: Anchor, color: Color) {
        let label = Label::parse(markup);
        if !label.runs.is_empty() {
            self.shapes.push(Shape::Text { x, y, label, size, color, anchor, angle: 0.0 });
        }
    }

    /// Adds text that reads upwards, centred at (x, y).
    pub fn upward_text(&mut self, x: f64, y: f64, markup: &str, size: f64, color: Color) {
        let (label, anchor) = (Label::parse(markup), Anchor::Middle);
        self.shapes.push(Shape::Text { x, y, label, size, color, anchor, angle: -90.0 });
    }

    /// Adds lines of text centred at x below one another, the first with its top at y.
    pub(super) fn lines(&mut self, x: f64, y: f64, lines: Vec<Label>, size: f64, color: Color) {
        let mut bottom = y;
        for label in lines {
            bottom += LEADING * size;
            let (y, anchor) = (bottom - 0.3 * size, Anchor::Middle);
            self.shapes.push(Shape::Text { x, y, label, size, color, anchor, angle: 0.0 });
        }
    }
}

fn open_path(points: &[(f64, f64)]) -> Vec<Segment> {
    let piece =
        |(i, &(x, y)): (usize, &(f64, f64))| if i == 0 { Segment::Move(x, y) } else { Segment::Line(x, y) };
    points.iter().enumerate().map(piece).collect()
}

/// A number with at least one decimal as files have it: without zeros at the end, or a sign of zero.
pub(super) fn decimal(x: f64, decimals: usize) -> String {
    let text = format!("{x:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.to_owned() }
}
