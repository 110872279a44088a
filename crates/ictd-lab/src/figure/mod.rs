//! Figures: a drawing is built once as a [`Scene`] and written as SVG and PNG.

mod chart;
mod heatmap;
mod raster;
mod scene;
pub mod style;
mod svg;
mod text;

pub use chart::{Axis, Chart, Scale, Series};
pub use heatmap::Heatmap;
pub use raster::to_png;
pub use scene::{Anchor, Color, Scene, Segment, Shape, Stroke};
pub use svg::to_svg;
pub use text::{Label, Run, Script, Style};
