//! Rendering a scene to PNG.
//!
//! Shapes and glyph outlines go straight to tiny-skia: an SVG renderer with a text shaper would draw
//! the same picture for ten times the build time.

use tiny_skia::{FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, StrokeDash, Transform};

use super::scene::{Color, Scene, Segment, Shape, Stroke};

/// Pixels per point: 288 per inch.
const SCALE: f64 = 4.0;

/// The scene as a PNG file; `None` when it is too large for an image.
pub fn to_png(scene: &Scene) -> Option<Vec<u8>> {
    let mut pixmap = Pixmap::new((scene.width * SCALE).ceil() as u32, (scene.height * SCALE).ceil() as u32)?;
    let zoom = Transform::from_scale(SCALE as f32, SCALE as f32);
    for shape in &scene.shapes {
        match shape {
            Shape::Path { segments, fill, stroke } => {
                let Some(path) = build(segments) else { continue };
                if let Some(color) = fill {
                    pixmap.fill_path(&path, &paint(*color), FillRule::Winding, zoom, None);
                }
                if let Some(stroke) = stroke {
                    pixmap.stroke_path(&path, &paint(stroke.color), &pen(stroke), zoom, None);
                }
            }
            Shape::Text { x, y, label, size, color, anchor, angle } => {
                let Some(path) = build(&label.outlines(*size, *anchor)) else { continue };
                let place = zoom.pre_translate(*x as f32, *y as f32).pre_rotate(*angle as f32);
                pixmap.fill_path(&path, &paint(*color), FillRule::Winding, place, None);
            }
        }
    }
    pixmap.encode_png().ok()
}

fn build(segments: &[Segment]) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for segment in segments {
        match *segment {
            Segment::Move(x, y) => builder.move_to(x as f32, y as f32),
            Segment::Line(x, y) => builder.line_to(x as f32, y as f32),
            Segment::Cubic(c) => {
                let [x1, y1, x2, y2, x, y] = c.map(|v| v as f32);
                builder.cubic_to(x1, y1, x2, y2, x, y);
            }
            Segment::Close => builder.close(),
        }
    }
    builder.finish()
}

fn paint(color: Color) -> Paint<'static> {
    let [r, g, b] = color.rgb;
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, (color.alpha * 255.0).round() as u8);
    paint
}

fn pen(stroke: &Stroke) -> tiny_skia::Stroke {
    let dash = stroke.dash.iter().map(|&d| d as f32).collect::<Vec<f32>>();
    tiny_skia::Stroke {
        width: stroke.width as f32,
        line_cap: if stroke.dash.is_empty() { LineCap::Round } else { LineCap::Butt },
        line_join: LineJoin::Round,
        dash: StrokeDash::new(dash, 0.0),
        ..tiny_skia::Stroke::default()
    }
}
