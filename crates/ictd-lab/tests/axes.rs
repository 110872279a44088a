//! Numbers that an axis cannot show, and ranges at the limits of double precision.

use ictd_lab::figure::style::PALETTE;
use ictd_lab::figure::{Axis, Chart, Series, Shape, Width, to_svg};

/// Points that are no numbers, or have no place on a logarithmic axis, are left out, the line is broken there, and the note
/// says how many.
#[test]
fn points_without_a_place_are_left_out_and_counted() {
    let points = vec![(1.0, 1.0), (2.0, f64::NAN), (3.0, 0.1), (4.0, f64::INFINITY), (5.0, 0.0), (6.0, 0.01)];
    let band = points.iter().map(|p| (0.5 * p.1, 2.0 * p.1)).collect();
    let series = Series::new("", PALETTE[0], points).with_band(band);
    let chart = Chart::new("t", Axis::linear("x"), Axis::log("y"), vec![series]).noted("made up");
    let scene = chart.scene(Width::Column);
    let svg = to_svg(&scene);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let lines = scene.shapes.iter().filter(
        |shape| matches!(shape, Shape::Path { stroke: Some(stroke), .. } if stroke.color == PALETTE[0]),
    );
    assert_eq!(lines.count(), 3);
    let texts: Vec<String> = scene
        .shapes
        .iter()
        .filter_map(|shape| match shape {
            Shape::Text { label, .. } => Some(label.runs.iter().map(|run| run.text.as_str()).collect()),
            Shape::Path { .. } => None,
        })
        .collect();
    assert!(texts.join(" ").contains("made up; left out: 3 points that the axes cannot show"), "{texts:?}");
}

/// Ranges at the limits of double precision, narrow ones, single values and ranges of one's own that are no numbers: a few
/// ticks, all with a place.
#[test]
fn every_range_has_ticks() {
    let tiny = f64::from_bits(1);
    let huge = 1.7e308;
    let ranges = [
        [0.0, tiny],
        [tiny, 2.0 * tiny],
        [-huge, huge],
        [1e300, 1e300],
        [1e15, 1e15 + 0.25],
        [1.0, 1.0 + f64::EPSILON],
        [f64::NAN, f64::NAN],
        [1e-310, 1e308],
    ];
    for [low, high] in ranges {
        for axis in [Axis::linear("y"), Axis::log("y"), Axis::log("y").over(1e-17, f64::INFINITY)] {
            let series = Series::new("", PALETTE[0], vec![(0.0, low), (1.0, high)]);
            let scene = Chart::new("t", Axis::linear("x"), axis, vec![series]).scene(Width::Column);
            assert!(scene.shapes.len() < 100, "{low} {high}: {} shapes", scene.shapes.len());
            let svg = to_svg(&scene);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{low} {high}");
        }
    }
}
