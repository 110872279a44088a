//! The passes that training runs on.

use fearless_simd::Level;

use super::band::BandWide;
use super::lanes::Element;
use super::reverse::{GeneralPlain, GeneralWide, Hyper};
use super::shape::{Mask, Shape};
use super::windows::Windows;

/// The passes of a precision: float32 on lanes for training, float64 for checking it.
pub trait Precision: Element {
    /// The pass.
    type Pass: Pass<Self>;
    /// A pass for a shape.
    fn pass(shape: Shape) -> Self::Pass;
}

/// Forward and reverse pass over windows.
pub trait Pass<E> {
    /// Predictions of `out.len()` windows from `first` on.
    fn forward(&mut self, hyper: Hyper, params: &[E], windows: &Windows<E>, first: usize, out: &mut [E]);
    /// Adds the derivative of Σ `out_bar`·prediction.
    fn backward(&mut self, hyper: Hyper, params: &[E], out_bar: &[E], gradient: &mut [f64]);
    /// Sum and minimum of the first layer's diagonal weights over `num` windows.
    fn diagonal(&self, num: usize) -> (f64, f64);
}

impl Precision for f64 {
    type Pass = GeneralPlain;
    fn pass(shape: Shape) -> GeneralPlain {
        GeneralPlain::new(shape)
    }
}

impl Pass<f64> for GeneralPlain {
    fn forward(
        &mut self,
        hyper: Hyper,
        params: &[f64],
        windows: &Windows<f64>,
        first: usize,
        out: &mut [f64],
    ) {
        GeneralPlain::forward(self, hyper, params, windows, first, out);
    }
    fn backward(&mut self, hyper: Hyper, params: &[f64], out_bar: &[f64], gradient: &mut [f64]) {
        GeneralPlain::backward(self, hyper, params, out_bar, gradient);
    }
    fn diagonal(&self, num: usize) -> (f64, f64) {
        GeneralPlain::diagonal(self, num)
    }
}

/// The single-precision pass: the band where it applies, the general pass elsewhere.
#[derive(Clone, Debug)]
pub struct WidePass {
    level: Level,
    band: Option<BandWide>,
    general: GeneralWide,
    used_band: bool,
}

impl Precision for f32 {
    type Pass = WidePass;
    fn pass(shape: Shape) -> WidePass {
        let by_features = matches!(shape.mask, Mask::Full | Mask::Looped) && shape.tied;
        WidePass {
            level: Level::new(),
            band: by_features.then(|| BandWide::new(shape)),
            general: GeneralWide::new(shape),
            used_band: false,
        }
    }
}

impl Pass<f32> for WidePass {
    fn forward(
        &mut self,
        hyper: Hyper,
        params: &[f32],
        windows: &Windows<f32>,
        first: usize,
        out: &mut [f32],
    ) {
        let band =
            self.band.as_mut().map(|band| band.forward(self.level, hyper, params, windows, first, out));
        self.used_band = matches!(band, Some(Ok(())));
        if !self.used_band {
            self.general.forward(self.level, hyper, params, windows, first, out);
        }
    }
    fn backward(&mut self, hyper: Hyper, params: &[f32], out_bar: &[f32], gradient: &mut [f64]) {
        match &mut self.band {
            Some(band) if self.used_band => band.backward(self.level, hyper, params, out_bar, gradient),
            _ => self.general.backward(self.level, hyper, params, out_bar, gradient),
        }
    }
    fn diagonal(&self, num: usize) -> (f64, f64) {
        match &self.band {
            Some(band) if self.used_band => band.diagonal(self.level, num),
            _ => self.general.diagonal(self.level, num),
        }
    }
}
