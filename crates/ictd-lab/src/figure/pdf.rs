//! Writing a scene as PDF: one page of the drawing's size, text as text in embedded TrueType subsets (Type 42, which
//! journals take), no dates and no random identifiers, so that the same scene gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use subsetter::GlyphRemapper;
use ttf_parser::{Face, GlyphId};

use super::scene::{Color, Scene, Segment, Shape, Stroke, decimal};
use super::text::{Label, Style};

/// The glyphs of one font that the drawing uses: new number in the subset, and the character.
#[derive(Default)]
struct Glyphs {
    remapper: GlyphRemapper,
    characters: BTreeMap<u16, (GlyphId, char)>,
}

/// A file under construction: objects are numbered as they are added.
#[derive(Default)]
struct File {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl File {
    /// The number that the next object will have.
    fn next(&self) -> usize {
        self.offsets.len() + 1
    }

    fn object(&mut self, body: &[u8]) -> usize {
        let number = self.next();
        self.offsets.push(self.bytes.len());
        self.bytes.extend(format!("{number} 0 obj\n").bytes());
        self.bytes.extend(body);
        self.bytes.extend(b"\nendobj\n");
        number
    }

    fn stream(&mut self, entries: &str, data: &[u8]) -> usize {
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(data, 9);
        let head = format!("<< {entries} /Length {} /Filter /FlateDecode >>\nstream\n", packed.len());
        self.object(&[head.as_bytes(), &packed, b"\nendstream"].concat())
    }

    /// A font with the glyphs given; `None` where the embedded font cannot be read, which a test excludes.
    fn font(&mut self, style: Style, glyphs: &Glyphs) -> Option<usize> {
        let face = style.face()?;
        let subset = subsetter::subset(style.file(), 0, &glyphs.remapper).ok()?;
        let file = self.stream(&format!("/Length1 {}", subset.len()), &subset);
        // Six letters mark a subset; the same for all, because nothing is merged here.
        let name =
            ["ICTDAA+DejaVuSans", "ICTDAA+DejaVuSans-Bold", "ICTDAA+DejaVuSans-Oblique"][style as usize];
        let per_mille = |units: i16| 1000 * i32::from(units) / i32::from(face.units_per_em());
        let bounds = face.global_bounding_box();
        let [left, below, right, above] =
            [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max].map(per_mille);
        let (ascent, descent) = (per_mille(face.ascender()), per_mille(face.descender()));
        let capitals = face.capital_height().map_or(ascent, per_mille);
        let (slant, stem) =
            (if style == Style::Oblique { -11 } else { 0 }, if style == Style::Bold { 140 } else { 80 });
        let descriptor = format!(
            "<< /Type /FontDescriptor /FontName /{name} /Flags 4 /FontBBox [{left} {below} {right} {above}] /ItalicAngle {slant} \
             /Ascent {ascent} /Descent {descent} /CapHeight {capitals} /StemV {stem} /FontFile2 {file} 0 R >>"
        );
        let descriptor = self.object(descriptor.as_bytes());
        let (mut widths, mut unicode) = (String::new(), String::new());
        for (new, (old, c)) in &glyphs.characters {
            let _ = write!(widths, "{new} [{}] ", number(1000.0 * advance(face, *old)));
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units).iter().map(|u| format!("{u:04x}")).collect::<String>();
            let _ = writeln!(unicode, "1 beginbfchar <{new:04x}> <{units}> endbfchar");
        }
        let cid_font = format!(
            "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{name} /FontDescriptor {descriptor} 0 R \
             /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /CIDToGIDMap /Identity \
             /W [{widths}] >>"
        );
        let cid_font = self.object(cid_font.as_bytes());
        let map = format!(
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Text def /CMapType 2 def\n\
             1 begincodespacerange <0000> <ffff> endcodespacerange\n{unicode}endcmap end end"
        );
        let map = self.stream("", map.as_bytes());
        let font = format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /{name} /Encoding /Identity-H \
             /DescendantFonts [{cid_font} 0 R] /ToUnicode {map} 0 R >>"
        );
        Some(self.object(font.as_bytes()))
    }

    /// The page as the root of the file, the table of objects, the end.
    fn finish(mut self, page: &str, title: &str) -> Vec<u8> {
        let pages = self.next() + 1;
        let page = self.object(format!("<< /Type /Page /Parent {pages} 0 R {page} >>").as_bytes());
        self.object(format!("<< /Type /Pages /Kids [{page} 0 R] /Count 1 >>").as_bytes());
        let catalog = self.object(format!("<< /Type /Catalog /Pages {pages} 0 R >>").as_bytes());
        let title: String = title.encode_utf16().map(|unit| format!("{unit:04x}")).collect();
        let info = self.object(format!("<< /Title <feff{title}> /Creator (ictd) >>").as_bytes());
        let table = self.bytes.len();
        let mut tail = format!("xref\n0 {}\n0000000000 65535 f \n", self.next());
        self.offsets.iter().for_each(|offset| tail += &format!("{offset:010} 00000 n \n"));
        tail += &format!(
            "trailer\n<< /Size {} /Root {catalog} 0 R /Info {info} 0 R >>\nstartxref\n{table}\n%%EOF\n",
            self.next()
        );
        self.bytes.extend(tail.bytes());
        self.bytes
    }
}

/// The drawing operations and what they use.
#[derive(Default)]
struct Content {
    text: String,
    fonts: [Glyphs; 3],
    /// Opacities in percent.
    opacities: BTreeSet<u32>,
}

/// The scene as a PDF file of one page, in the colours for paper.
pub fn to_pdf(scene: &Scene) -> Vec<u8> {
    let mut content = Content::default();
    // From the page's lower left corner with y upwards to the scene's upper left with y downwards.
    let _ = writeln!(content.text, "1 0 0 -1 0 {} cm 1 j", number(scene.height));
    scene.shapes.iter().for_each(|shape| content.shape(shape));
    let mut file = File { bytes: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec(), offsets: Vec::new() };
    let mut fonts = String::new();
    for style in Style::ALL {
        let glyphs = &content.fonts[style as usize];
        if !glyphs.characters.is_empty() {
            let font = file.font(style, glyphs).unwrap_or_default();
            let _ = write!(fonts, "/F{} {font} 0 R ", style as usize);
        }
    }
    let state = |p: &u32| format!("/G{p} << /ca {0} /CA {0} >> ", number(f64::from(*p) / 100.0));
    let states: String = content.opacities.iter().map(state).collect();
    let stream = file.stream("", content.text.as_bytes());
    let page = format!(
        "/MediaBox [0 0 {} {}] /Contents {stream} 0 R /Resources << /Font << {fonts}>> /ExtGState << {states}>> >>",
        number(scene.width),
        number(scene.height)
    );
    file.finish(&page, &scene.title)
}

impl Content {
    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Path { segments, fill, stroke } => {
                // Filled first: a fill and its outline may differ in opacity.
                if let Some(color) = fill {
                    self.color(*color, "rg");
                    self.path(segments, "f");
                }
                if let Some(stroke) = stroke {
                    self.stroke(stroke);
                    self.path(segments, "S");
                }
            }
            Shape::Text { x, y, label, size, color, anchor, angle } => {
                self.color(*color, "rg");
                let (sin, cos) = angle.to_radians().sin_cos();
                let [cos, sin, back, x, y] = [cos, sin, -sin, *x, *y].map(number);
                let _ = write!(self.text, "q {cos} {sin} {back} {cos} {x} {y} cm ");
                self.label(label, *size, label.offset(*size, *anchor));
                self.text.push_str("Q\n");
            }
        }
    }

    fn label(&mut self, label: &Label, size: f64, mut x: f64) {
        for run in &label.runs {
            let Some(face) = run.style.face() else { continue };
            let (glyphs, size, drop) =
                (&mut self.fonts[run.style as usize], run.script.scale() * size, run.script.drop() * size);
            // Text stands upright in a space whose y points down.
            let (font, [points, at, drop]) = (run.style as usize, [size, x, drop].map(number));
            let _ = write!(self.text, "BT /F{font} {points} Tf 1 0 0 -1 {at} {drop} Tm <");
            for c in run.text.chars() {
                let old = face.glyph_index(c).unwrap_or_default();
                let new = glyphs.remapper.remap(old.0);
                glyphs.characters.insert(new, (old, c));
                let _ = write!(self.text, "{new:04x}");
                x += size * advance(face, old);
            }
            self.text.push_str("> Tj ET ");
        }
    }

    fn color(&mut self, color: Color, operator: &str) {
        let percent = (100.0 * color.alpha).round() as u32;
        self.opacities.insert(percent);
        let [r, g, b] = color.rgb.map(|c| number(f64::from(c) / 255.0));
        let _ = writeln!(self.text, "/G{percent} gs {r} {g} {b} {operator}");
    }

    fn stroke(&mut self, stroke: &Stroke) {
        self.color(stroke.color, "RG");
        let dashes: Vec<String> = stroke.dash.iter().map(|&d| number(d)).collect();
        let cap = if dashes.is_empty() { 1 } else { 0 };
        let _ = writeln!(self.text, "{} w {cap} J [{}] 0 d", number(stroke.width), dashes.join(" "));
    }

    fn path(&mut self, segments: &[Segment], operator: &str) {
        for (letter, coordinates) in segments.iter().map(Segment::parts) {
            coordinates.into_iter().for_each(|x| self.text += &format!("{} ", number(x)));
            // What SVG calls Z is h here.
            self.text.push(if letter == 'Z' { 'h' } else { letter.to_ascii_lowercase() });
            self.text.push('\n');
        }
        let _ = writeln!(self.text, "{operator}");
    }
}

/// The width of a glyph in a font of size 1.
fn advance(face: &Face, glyph: GlyphId) -> f64 {
    f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) / f64::from(face.units_per_em())
}

/// Three decimals: a thousandth of a point or of a colour.
fn number(x: f64) -> String {
    decimal(x, 3)
}
