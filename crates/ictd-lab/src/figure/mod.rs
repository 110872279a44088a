//! Figures: studies say what is shown, as panels in a [`Grid`]; that makes a drawing of the size it is printed at, a [`Scene`],
//! which is written as SVG, PDF and PNG.
//!
//! Three floors: [`Chart`] and [`Cells`] are what a study fills with numbers; [`Panel`], [`Legend`], [`ColorBar`] and
//! [`Grid`] place them; [`Scene`] is shapes and text. Figures that are drawings by nature use the scene alone.

mod axis;
mod cells;
mod chart;
mod grid;
mod legend;
mod panel;
mod pdf;
mod raster;
mod scene;
pub mod style;
mod svg;
mod text;

pub use axis::Axis;
pub use cells::{Cell, Cells, ColorBar, diverging, sequential};
pub use chart::{Chart, Series};
pub use grid::{Grid, Width};
pub use legend::Legend;
pub use panel::{Area, Margins, Panel};
pub use pdf::to_pdf;
pub use raster::to_png;
pub(crate) use scene::Segment;
pub use scene::{Anchor, Color, Scene, Shape, Stroke, contrast};
pub use svg::to_svg;
pub use text::{Label, Run, Style};
