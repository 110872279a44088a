//! The same draws in every run.

/// A stream of numbers that its name and number decide (splitmix64).
pub struct Draw(u64);

impl Draw {
    /// The stream of case `number` of the attack `name`.
    pub fn new(name: &str, number: u64) -> Self {
        let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
        let mut draw =
            Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, hash) ^ number.wrapping_mul(0x9e37_79b9));
        draw.next();
        draw
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below the bound, which is at least 1. The bias of a bound far below 2^64 does not matter here.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of the items; there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
