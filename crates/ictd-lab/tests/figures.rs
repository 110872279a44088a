//! Figures of made-up numbers against stored drawings, so that a change of looks is a decision.
//!
//! After a change that is meant, look at the new drawings and store them with
//! `ICTD_RENEW_FIGURES=1 cargo test -p ictd-lab --test figures`.

use std::cell::RefCell;
use std::path::Path;

use ictd_lab::figure::style::{DASH, GRAY, INK, MUTED, PALETTE, PAPER, TEXT_SIZE};
use ictd_lab::figure::{
    Anchor, Area, Axis, Cell, Cells, Chart, Color, Grid, Label, Legend, Margins, Panel, Scene, Series, Shape,
    Stroke, Style, Width, contrast, diverging, to_pdf, to_png, to_svg,
};

/// Two charts: even and logarithmic axes, bands, dashes, a legend in two rows, notes.
fn charts() -> Scene {
    let curve = |k: f64| (1..=9).map(|x| (f64::from(x), k * 0.7_f64.powi(x))).collect::<Vec<_>>();
    let band = |k: f64| curve(k).into_iter().map(|(_, y)| (0.8 * y, 1.3 * y)).collect();
    let chart = |title: &str, x: Axis| Chart {
        title: title.into(),
        x,
        y: Axis::log("mean error ‖*v*_{*L*} − *v*_{π}‖_{∞}"),
        series: vec![
            Series::new("softmax at θ_{∗}", PALETTE[0], curve(1.0)).with_band(band(1.0)),
            Series::new("answering 0 at every length", PALETTE[1], vec![(1.0, 0.4), (9.0, 0.4)]).dashed(),
            Series { dash: DASH.to_vec(), ..Series::new("a fit", PALETTE[2], curve(3.0)) },
        ],
        note: "slope −0.36 ± 0.01 per layer".into(),
    };
    let panels =
        [chart("(a) depth", Axis::linear("layers *L*")), chart("(b) length", Axis::log("length *n*"))];
    let note = "mean ± s.e.m. over 300 made-up tasks, each with 40 contexts of its own length; dashed: what is compared with, which has no band";
    Grid::new("Error against depth and length", 2, panels, note.into()).scene()
}

/// A matrix with its colour bar, as wide as a column.
fn matrix() -> Scene {
    let names = ["*x*_{1}", "*x*_{2}", "*r*", "γ*v*′"].map(String::from);
    let entries: Vec<Vec<f64>> =
        (0..4).map(|i| (0..4).map(|j| f64::from(i * 4 + j) / 7.5 - 1.0).collect()).collect();
    let map = Cells::matrix("*A*_{0}", &names, &entries);
    Grid { width: Width::Column, ..Grid::new("", 1, [map], "made up".into()) }.scene()
}

/// Every kind of cell, groups of rows, and a legend for all.
fn map() -> Scene {
    let tile =
        |share, rows| Cell::Tile { color: GRAY.toward(PALETTE[2], share), text: format!("{share}"), rows };
    let bar = Cell::Bar {
        shares: vec![(0.25, PALETTE[0]), (0.75, PALETTE[1])],
        interval: (0.1, 0.4),
        text: "25/100".into(),
    };
    let shares = Cell::Shares(vec![(0.5, PALETTE[0]), (0.5, PALETTE[1])]);
    let words = |w: &str| Cell::Words(w.into());
    let map = Cells {
        columns: ["query", "first\nof two", "second", "third"].map(String::from).to_vec(),
        cells: vec![
            vec![words("source"), tile(1.0, 2), bar.clone(), shares.clone()],
            vec![words("masked"), Cell::Empty, bar, Cell::Empty],
            vec![words("next"), tile(0.0, 1), Cell::Empty, shares],
        ],
        widths: vec![0.2, 0.2, 0.4, 0.2],
        row_height: 20.0,
        groups: vec![0, 2],
        ..Cells::default()
    };
    let legend = Legend::squares([("TD block", PALETTE[0]), ("mirror block", PALETTE[1])]);
    Grid { legend, ..Grid::new("Cells", 1, [map], String::new()) }.scene()
}

fn all() -> [(&'static str, Scene); 3] {
    [("charts", charts()), ("matrix", matrix()), ("map", map())]
}

#[test]
fn drawings_are_as_stored() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/figures");
    for (name, scene) in all() {
        let path = folder.join(format!("{name}.svg"));
        let drawn = to_svg(&scene);
        if std::env::var_os("ICTD_RENEW_FIGURES").is_some() {
            std::fs::write(&path, &drawn).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap();
        let differs = drawn.lines().zip(stored.lines()).find(|(a, b)| a != b);
        assert!(
            drawn == stored,
            "{name}: drawn and stored differ at {differs:?}; the head of this file says what to do"
        );
    }
}

/// In print every label has 7 points, numbers in small cells and scripts 6; nothing is cut off.
#[test]
fn text_is_large_enough_and_inside() {
    for (name, scene) in all() {
        assert!([Width::Column, Width::Page].iter().any(|w| w.points() == scene.width), "{name}");
        for shape in &scene.shapes {
            let Shape::Text { x, y, label, size, anchor, angle, .. } = shape else { continue };
            let text: String = label.runs.iter().map(|r| r.text.as_str()).collect();
            let number = name == "matrix" && text.replace('−', "-").parse::<f64>().is_ok();
            assert!(*size >= if number { 6.0 } else { TEXT_SIZE }, "{name}: '{text}' has {size} points");
            let has_scripts = label.runs.iter().any(|run| run.script.scale() < 1.0);
            let smallest = label.runs.iter().map(|run| size * run.script.scale()).fold(*size, f64::min);
            assert!(!has_scripts || smallest >= 6.0, "{name}: '{text}' has scripts of {smallest} points");
            assert!(*y >= 0.5 * size && *y <= scene.height, "{name}: '{text}'");
            if *angle == 0.0 {
                let left = x + label.offset(*size, *anchor);
                let right = left + label.width(*size);
                assert!(left >= 0.0 && right <= scene.width, "{name}: '{text}' from {left} to {right}");
            }
        }
    }
}

/// The page of a PDF has the size of print.
#[test]
fn pdf_pages_have_the_size_of_print() {
    for (name, scene) in all() {
        let pdf = to_pdf(&scene);
        let text = String::from_utf8_lossy(&pdf);
        let inches = if scene.width < 300.0 { 3.25 } else { 6.75 };
        assert!(text.contains(&format!("/MediaBox [0 0 {} ", 72.0 * inches)), "{name}");
    }
}

#[test]
fn text_is_readable_on_paper_and_on_dark_pages() {
    for color in [INK, MUTED] {
        assert!(contrast(color.rgb, PAPER.rgb) >= 4.5 && contrast(color.dark, PAPER.dark) >= 4.5);
    }
    for fill in PALETTE.into_iter().chain([GRAY, PAPER]) {
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let fill = PAPER.toward(fill, share);
            let ink = fill.text_on();
            assert!(contrast(fill.rgb, ink.rgb) >= 4.5 && contrast(fill.dark, ink.dark) >= 4.5);
        }
    }
}

/// Lines and fills want a contrast of 3 (WCAG 2.1, 1.4.11) on a dark page. On paper the two lightest colours of the
/// palette stay below it; they come last.
#[test]
fn lines_stand_out() {
    for (k, color) in PALETTE.into_iter().enumerate() {
        assert!(contrast(color.dark, PAPER.dark) >= 3.0);
        assert!(contrast(color.rgb, PAPER.rgb) >= if k < 3 { 3.0 } else { 2.0 }, "{k}");
    }
}

#[test]
fn lines_fit_and_lose_nothing() {
    let label = Label::parse("**mean** over *n* = 300 tasks, s.e.m._{x} drawn as a band around it");
    let text = |l: &Label| l.runs.iter().map(|r| r.text.as_str()).collect::<String>();
    let lines = label.wrap(7.0, 90.0);
    assert!(lines.len() > 2 && lines.iter().all(|line| line.width(7.0) <= 90.0));
    assert_eq!(lines.iter().map(text).collect::<Vec<_>>().join(" "), text(&label));
    assert_eq!(lines[0].runs[0].style, Style::Bold);
    assert_eq!(label.wrap(7.0, 1e4), [label]);
    assert!(Label::parse("").wrap(7.0, 90.0).is_empty());
}

/// Every colour that differs has its class and one rule; others have none.
#[test]
fn dark_pages_have_their_colours() {
    let mut scene = Scene::new(10.0, 10.0, "");
    let themed = Color::themed([1, 2, 3], [250, 251, 252]);
    scene.rect([0.0; 4], Some(themed), Some(Stroke::solid(themed, 1.0)));
    scene.rect([0.0; 4], Some(Color::rgb(9, 9, 9)), None);
    let svg = to_svg(&scene);
    assert_eq!(svg.matches(".f010203-fafbfc{fill:#fafbfc}").count(), 1);
    assert_eq!(svg.matches(".s010203-fafbfc{stroke:#fafbfc}").count(), 1);
    assert!(svg.contains("class=\"f010203-fafbfc s010203-fafbfc\"") && !svg.contains("class=\"f090909"));
}

/// Every entry of the table of objects points at its object, and the same scene gives the same bytes.
#[test]
fn the_table_of_objects_is_right() {
    let pdf = small_pdf();
    let text = String::from_utf8_lossy(&pdf);
    let start: usize = text.rsplit("startxref\n").next().unwrap().lines().next().unwrap().parse().unwrap();
    let table = std::str::from_utf8(&pdf[start..]).unwrap();
    let offsets: Vec<usize> =
        table.lines().skip(3).map_while(|l| l.strip_suffix(" 00000 n ")?.parse().ok()).collect();
    assert!(offsets.len() > 15, "three fonts of five objects each");
    for (k, offset) in offsets.into_iter().enumerate() {
        assert!(pdf[offset..].starts_with(format!("{} 0 obj\n", k + 1).as_bytes()));
    }
    // Subsets are far smaller than the fonts.
    assert!(pdf.len() < 20_000);
    assert!(text.contains("/MediaBox [0 0 234 100]") && text.contains("/G20 << /ca 0.2"));
    assert!(!text.contains("/CreationDate") && !text.contains("/ID"));
    assert_eq!(pdf, small_pdf());
}

/// A panel that remembers where it was drawn.
struct Probe<'a> {
    margins: Margins,
    height: f64,
    seen: &'a RefCell<Vec<(Area, Area)>>,
}

impl Panel for Probe<'_> {
    fn title(&self) -> &str {
        "probe"
    }
    fn sides(&self) -> (f64, f64) {
        (self.margins.left, self.margins.right)
    }
    fn ends(&self, _: f64, _: (f64, f64)) -> (f64, f64) {
        (self.margins.top, self.margins.bottom)
    }
    fn plot_height(&self, _: f64) -> f64 {
        self.height
    }
    fn draw(&self, _: &mut Scene, area: Area, plot: Area) {
        self.seen.borrow_mut().push((area, plot));
    }
}

#[test]
fn plots_line_up_and_nothing_overlaps() {
    let seen = RefCell::new(Vec::new());
    let panel = |(left, top, height)| {
        let margins = Margins { left, right: 3.0, top, bottom: 8.0 };
        Probe { margins, height, seen: &seen }
    };
    let panels = [(10.0, 5.0, 40.0), (20.0, 12.0, 60.0), (30.0, 5.0, 40.0), (5.0, 5.0, 40.0)];
    let scene = Grid::new("title", 2, panels.map(panel), "note".into()).scene();
    let seen = seen.borrow();
    let plots: Vec<Area> = seen.iter().map(|s| s.1).collect();
    assert_eq!((plots[0].left, plots[1].left), (plots[2].left, plots[3].left));
    assert_eq!((plots[0].top, plots[0].height), (plots[1].top, plots[1].height));
    assert!(plots.iter().all(|plot| plot.width == plots[0].width));
    assert_eq!(plots[0].height, 60.0);
    assert!(seen[0].0.right() < seen[1].0.left && seen[0].0.bottom() < seen[2].0.top);
    assert!(seen[3].0.right() <= scene.width && seen[3].0.bottom() < scene.height);
    assert_eq!(scene.width, 486.0);
}

#[test]
fn keys_move_to_the_next_row_where_they_do_not_fit() {
    let legend = Legend::squares([("one", INK), ("two", INK), ("three", INK)]);
    let row = legend.height(1e3);
    assert_eq!(legend.height(80.0), 2.0 * row);
    // A key that is too wide still has a row.
    assert_eq!(legend.height(1.0), 3.0 * row);
    assert_eq!(Legend::default().height(100.0), 0.0);
}

fn small_pdf() -> Vec<u8> {
    let mut scene = Scene::new(234.0, 100.0, "θ over n");
    scene.rect([10.0, 10.0, 20.0, 5.0], Some(PALETTE[0].with_alpha(0.2)), Some(Stroke::solid(INK, 0.5)));
    scene.text(20.0, 50.0, "**a** *v*_{l} = 10^{−5}", 7.0, Anchor::Middle, INK);
    to_pdf(&scene)
}

#[test]
fn pixels_are_where_shapes_are() {
    let mut scene = Scene::new(20.0, 10.0, "test");
    scene.rect([10.0, 0.0, 10.0, 10.0], Some(Color::rgb(0, 114, 178)), None);
    scene.text(2.0, 9.0, "l", 10.0, Anchor::Start, Color::rgb(0, 0, 0));
    let pixmap = tiny_skia::Pixmap::decode_png(&to_png(&scene).unwrap()).unwrap();
    let at = |x: u32, y: u32| {
        let p = pixmap.pixel(x, y).unwrap();
        [p.red(), p.green(), p.blue()]
    };
    assert_eq!((at(1, 1), at(60, 20)), ([255, 255, 255], [0, 114, 178]));
    assert!((0..40).any(|x| at(x, 24)[0] < 100), "the letter left a dark pixel");
}

#[test]
fn text_is_escaped() {
    let mut scene = Scene::new(10.0, 10.0, "a < b");
    scene.text(1.0, 1.0, "x & y", 8.0, Anchor::Start, Color::rgb(0, 0, 0));
    let svg = to_svg(&scene);
    assert!(svg.contains("a &lt; b") && svg.contains("x &amp; y"));
}

#[test]
fn colours_are_centred_at_paper() {
    assert_eq!(diverging(0.0), PAPER);
    assert_eq!(diverging(1.0).rgb, [178, 24, 43]);
    assert_eq!(diverging(-7.0).rgb, [5, 80, 160]);
}

#[test]
fn groups_and_squares_make_the_height() {
    let cells = vec![vec![Cell::Empty; 10]; 4];
    let columns = vec![String::new(); 10];
    let squares = Cells { columns, cells, ..Cells::default() };
    assert_eq!(squares.plot_height(100.0), 40.0);
    let grouped = Cells { row_height: 12.0, groups: vec![0, 2], ..squares };
    // Four points between groups.
    assert_eq!(grouped.plot_height(100.0), 48.0 + 4.0);
}

/// A figure of more rows than a page has room for is as high as the page, and its plots share what is left.
#[test]
fn figures_are_no_higher_than_a_page() {
    let seen = RefCell::new(Vec::new());
    let margins = Margins { left: 5.0, right: 5.0, top: 10.0, bottom: 10.0 };
    let figure = |panels: usize| {
        let panel = |k: usize| Probe { margins, height: 60.0 + 60.0 * (k % 2) as f64, seen: &seen };
        Grid::new("title", 1, (0..panels).map(panel), String::new()).scene().height
    };
    assert!(figure(4) < 648.0);
    assert!((figure(8) - 648.0).abs() < 1e-9);
    let heights: Vec<f64> = seen.borrow().iter().map(|(_, plot)| plot.height).collect();
    assert_eq!(heights[..4], [60.0, 120.0, 60.0, 120.0]);
    assert!(heights[4] < 60.0 && (heights[5] - 2.0 * heights[4]).abs() < 1e-9);
}

/// A relation and its two sides stay on one line.
/// Words that are wider than the line stand alone, and no narrower line is looked for.
#[test]
fn words_that_are_too_long_stand_alone() {
    let long = "eval_msve_theta_star over_training_and_evaluation";
    for (text, lines) in [(long, 2), ("one_word_that_is_far_too_long", 1), ("", 0)] {
        assert_eq!(Label::parse(text).wrap(7.0, 20.0).len(), lines, "{text}");
    }
}

#[test]
fn lines_do_not_break_beside_a_relation() {
    let label = Label::parse("tasks with γ = 0.9 and *n* = 300, mean ± s.e.m.");
    for width in 40..200 {
        for line in label.wrap(7.0, f64::from(width)) {
            let text: String = line.runs.iter().map(|r| r.text.as_str()).collect();
            assert!(!text.starts_with(['=', '±']) && !text.ends_with(['=', '±']), "{width}: '{text}'");
        }
    }
}

/// What the vertical ticks of an empty chart say.
fn ticks(axis: Axis) -> Vec<String> {
    let chart = Chart::new("title", Axis::linear("x"), axis, Vec::new());
    let text = |shape: Shape| match shape {
        Shape::Text { label, anchor: Anchor::End, .. } => {
            Some(label.runs.into_iter().map(|r| r.text).collect())
        }
        _ => None,
    };
    chart.scene(Width::Column).shapes.into_iter().filter_map(text).collect()
}

#[test]
fn ticks_are_round_numbers_inside_the_range() {
    let linear = |low, high| ticks(Axis::linear("y").over(low, high));
    assert_eq!(linear(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(linear(-7.0, 40.0), ["0", "10", "20", "30", "40"]);
    assert_eq!(linear(0.0, 2e12)[1], "5.0·1011");
    assert_eq!(ticks(Axis::log("y").over(1e-3, 10.0)), ["10−3", "10−2", "10−1", "100", "101"]);
}

#[test]
fn a_single_value_and_no_value_have_a_range() {
    assert_eq!(ticks(Axis::linear("y")), ["0.0", "0.5", "1.0"]);
    let one = Series::new("one", INK, vec![(3.0, 3.0)]);
    let scene = Chart::new("title", Axis::linear("x"), Axis::log("y"), vec![one]).scene(Width::Column);
    let svg = to_svg(&scene);
    // Half a decade below and above.
    assert!(
        svg.contains(">2<") && svg.contains(">5<") && !svg.contains("NaN") && !svg.contains("inf"),
        "{svg}"
    );
}

#[test]
fn numbers_are_short() {
    let mut scene = Scene::new(10.0, 10.0, "test");
    scene.polyline(&[(1.0, 0.25), (-0.001, -3.1), (100.0, 0.0)], Stroke::solid(INK, 1.0));
    assert!(to_svg(&scene).contains("d=\"M1 0.25L0 -3.1L100 0\""));
}

#[test]
fn markup_becomes_runs() {
    let label = Label::parse("error *v*_{l} = 10^{−5}");
    let (base, below, above) = (0.0, 0.22, -0.32);
    let seen: Vec<_> = label.runs.iter().map(|r| (r.text.as_str(), r.style, r.script.drop())).collect();
    assert_eq!(
        seen,
        [
            ("error ", Style::Regular, base),
            ("v", Style::Oblique, base),
            ("l", Style::Regular, below),
            (" = 10", Style::Regular, base),
            ("−5", Style::Regular, above),
        ]
    );
    assert_eq!(Label::parse("Z_{*l*+1}").runs[1].style, Style::Oblique);
    assert_eq!(Label::parse("**n** = 5").runs[0].style, Style::Bold);
}

/// Texts of a scene with where they stand and whether they are upright.
fn texts(scene: &Scene) -> Vec<(String, f64, bool)> {
    let text = |shape: &Shape| {
        let Shape::Text { x, label, angle, .. } = shape else { return None };
        Some((label.runs.iter().map(|r| r.text.as_str()).collect(), *x, *angle == 0.0))
    };
    scene.shapes.iter().filter_map(text).collect()
}

/// Square cells of a few points, in the middle of a page.
#[test]
fn what_rows_are_stands_beside_small_cells() {
    let tile = |share| Cell::Tile { color: diverging(share), text: String::new(), rows: 1 };
    let map = Cells {
        x: "column".into(),
        y: "source".into(),
        columns: (0..4).map(|j| j.to_string()).collect(),
        rows: ["a", "b", "c"].map(String::from).to_vec(),
        cells: vec![vec![tile(0.5); 4]; 3],
        ..Cells::default()
    };
    let found = texts(&Grid::new("", 1, [map], String::new()).scene());
    let row = found.iter().find(|(text, ..)| text == "b").unwrap().1;
    let label = found.iter().find(|(_, _, upright)| !upright).unwrap();
    let gap = row - label.1;
    // The name of a row, of one letter, and a little room.
    assert!(label.0 == "source" && gap > 4.0 && gap < 2.0 * TEXT_SIZE, "{gap}");
}

/// As many of forty as have room, each as far from the next as all others.
#[test]
fn names_of_columns_are_left_out_evenly() {
    let tile = Cell::Tile { color: GRAY, text: String::new(), rows: 1 };
    let map = |count: usize| Cells {
        x: "column".into(),
        columns: (0..count).map(|j| j.to_string()).collect(),
        rows: vec![String::new()],
        cells: vec![vec![tile.clone(); count]],
        ..Cells::default()
    };
    for (count, most) in [(4, 1), (40, 4)] {
        let scene = Grid { width: Width::Column, ..Grid::new("", 1, [map(count)], String::new()) }.scene();
        let named: Vec<usize> = texts(&scene).iter().filter_map(|(text, ..)| text.parse().ok()).collect();
        let every = named[1] - named[0];
        assert!(every >= 1 && every <= most && (count < 10 || every > 1), "{named:?}");
        assert_eq!(named, (0..count).step_by(every).collect::<Vec<_>>());
    }
}

/// On logarithmic axes that span less than two powers of ten.
#[test]
fn very_small_and_large_numbers_on_short_axes_are_powers_of_ten() {
    let labels = |low: f64, high: f64| {
        let points = vec![(1.0, low), (2.0, high)];
        let (x, y) = (Axis::linear("x"), Axis::log("y"));
        let chart = Chart::new("", x, y, vec![Series::new("s", PALETTE[0], points)]);
        texts(&chart.scene(Width::Column)).into_iter().map(|(text, ..)| text).collect::<Vec<_>>()
    };
    for (low, high, expected) in [
        (2e-16, 6e-16, ["2·10−16", "5·10−16"]),
        (2e8, 1.2e9, ["2·108", "109"]),
        (0.02, 0.06, ["0.02", "0.05"]),
    ] {
        let found = labels(low, high);
        assert!(expected.iter().all(|label| found.contains(&label.to_string())), "{found:?}");
    }
}

/// Every character that figures use must be in the embedded subsets: those that are not all look the same.
#[test]
fn fonts_are_embedded_and_have_the_characters() {
    for mark in ["", "**", "*"] {
        let outlines = |c: char| Label::parse(&format!("{mark}{c}")).outlines(10.0, Anchor::Start);
        let missing = outlines('\u{10fffd}');
        for c in "azAZ09−–·×±≤→∞γατρδμθ‖Σ½\u{302}".chars() {
            assert!(!outlines(c).is_empty() && outlines(c) != missing, "{c}");
        }
    }
    assert!(Label::parse("mm").width(10.0) > Label::parse("ii").width(10.0));
}
