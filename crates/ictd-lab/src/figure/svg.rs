//! Writing a scene as SVG.
//!
//! Colours stand in attributes, which every program reads; a style sheet replaces them where the reader prefers dark pages.
//! Classes of the sheet are named after the colours they replace, so that drawings may share a page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::grid::Width;
use super::scene::{Anchor, Color, Scene, Segment, Shape, decimal};
use super::text::{Label, Script, Style};

/// Verdana has nearly the metrics of DejaVu Sans and is there where DejaVu is not.
const FONTS: &str = "DejaVu Sans, Verdana, sans-serif";

/// Pixels of a screen per point: labels of 7 points are then as large as text.
const SCREEN: f64 = 2.0;

/// The scene as an SVG document. The same scene gives the same bytes.
pub fn to_svg(scene: &Scene) -> String {
    let mut out = String::new();
    let (w, h) = (number(scene.width), number(scene.height));
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {w} {h}\" role=\"img\"{} \
         font-family=\"{FONTS}\" stroke-linejoin=\"round\" stroke-linecap=\"round\">",
        number(SCREEN * scene.width),
        number(SCREEN * scene.height),
        // A page lets wide figures scroll on a phone.
        if scene.width > Width::Column.points() { " class=\"wide\"" } else { "" }
    );
    let _ = writeln!(out, "<title>{}</title>", escape(&scene.title));
    let _ = writeln!(out, "<style>@media (prefers-color-scheme: dark) {{{}}}</style>", dark_rules(scene));
    for shape in &scene.shapes {
        match shape {
            Shape::Path { segments, fill, stroke } => {
                let _ = write!(out, "<path d=\"{}\"", path_data(segments));
                classes(&mut out, paints(shape));
                match fill {
                    Some(color) => paint(&mut out, "fill", *color),
                    None => out.push_str(" fill=\"none\""),
                }
                if let Some(stroke) = stroke {
                    paint(&mut out, "stroke", stroke.color);
                    let _ = write!(out, " stroke-width=\"{}\"", number(stroke.width));
                    if !stroke.dash.is_empty() {
                        let dashes: Vec<String> = stroke.dash.iter().map(|&d| number(d)).collect();
                        let _ =
                            write!(out, " stroke-dasharray=\"{}\" stroke-linecap=\"butt\"", dashes.join(" "));
                    }
                }
                out.push_str("/>\n");
            }
            Shape::Text { x, y, label, size, color, anchor, angle } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let [x, y, points, angle] = [*x, *y, *size, *angle].map(number);
                let _ =
                    write!(out, "<text x=\"{x}\" y=\"{y}\" font-size=\"{points}\" text-anchor=\"{anchor}\"");
                classes(&mut out, paints(shape));
                paint(&mut out, "fill", *color);
                if angle != "0" {
                    let _ = write!(out, " transform=\"rotate({angle} {x} {y})\"");
                }
                let _ = writeln!(out, ">{}</text>", spans(label, *size));
            }
        }
    }
    out.push_str("</svg>\n");
    out
}

/// What a shape paints in which colour, where that differs on a dark page.
fn paints(shape: &Shape) -> impl Iterator<Item = (&'static str, Color)> {
    let (fill, stroke) = match shape {
        Shape::Path { fill, stroke, .. } => (*fill, stroke.as_ref().map(|s| s.color)),
        Shape::Text { color, .. } => (Some(*color), None),
    };
    let all = fill.map(|c| ("fill", c)).into_iter().chain(stroke.map(|c| ("stroke", c)));
    all.filter(|(_, color)| color.rgb != color.dark)
}

fn class((attribute, color): (&str, Color)) -> String {
    format!("{}{}-{}", &attribute[..1], hex(color.rgb), hex(color.dark))
}

fn classes(out: &mut String, paints: impl Iterator<Item = (&'static str, Color)>) {
    let names: Vec<String> = paints.map(class).collect();
    if !names.is_empty() {
        let _ = write!(out, " class=\"{}\"", names.join(" "));
    }
}

/// A rule for every colour that differs on a dark page, in the order of their names.
fn dark_rules(scene: &Scene) -> String {
    let rule = |p: (&str, Color)| format!(".{}{{{}:#{}}}", class(p), p.0, hex(p.1.dark));
    scene.shapes.iter().flat_map(paints).map(rule).collect::<BTreeSet<_>>().into_iter().collect()
}

fn hex(rgb: [u8; 3]) -> String {
    rgb.iter().map(|c| format!("{c:02x}")).collect()
}

fn paint(out: &mut String, attribute: &str, color: Color) {
    let _ = write!(out, " {attribute}=\"#{}\"", hex(color.rgb));
    if color.alpha < 1.0 {
        let _ = write!(out, " {attribute}-opacity=\"{}\"", number(color.alpha));
    }
}

fn spans(label: &Label, size: f64) -> String {
    let mut out = String::new();
    let mut drop = 0.0;
    for run in &label.runs {
        let target = run.script.drop() * size;
        let style = match run.style {
            Style::Regular => "",
            Style::Bold => " font-weight=\"bold\"",
            Style::Oblique => " font-style=\"italic\"",
        };
        let shift = if target == drop { String::new() } else { format!(" dy=\"{}\"", number(target - drop)) };
        let scale = match run.script {
            Script::Base => String::new(),
            script => format!(" font-size=\"{}\"", number(script.scale() * size)),
        };
        let attributes = format!("{style}{shift}{scale}");
        let text = escape(&run.text);
        let _ = match attributes.as_str() {
            "" => write!(out, "{text}"),
            _ => write!(out, "<tspan{attributes}>{text}</tspan>"),
        };
        drop = target;
    }
    out
}

fn path_data(segments: &[Segment]) -> String {
    let part = |(letter, coordinates): (char, Vec<f64>)| {
        let numbers: Vec<String> = coordinates.into_iter().map(number).collect();
        format!("{letter}{}", numbers.join(" "))
    };
    segments.iter().map(|segment| part(segment.parts())).collect()
}

/// Two decimals: a hundredth of a point.
fn number(x: f64) -> String {
    decimal(x, 2)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
