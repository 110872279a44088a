//! Different keys, numbered in the order in which they turn up.

/// Keys stand one after the other in one buffer, so that millions of short ones cost little more than their bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    /// Open addressing: number of a key plus one, 0 where free. Its length is a power of two.
    slots: Vec<u32>,
}

impl Interner {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The key of a number.
    pub fn key(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// The number of a key, and whether it is new. More than 2³² − 2 keys are more than any memory guard lets pass.
    pub fn intern(&mut self, key: &[u8]) -> (u32, bool) {
        if 4 * (self.len() + 1) > 3 * self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash(key) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => break,
                taken if self.key(taken as usize - 1) == key => return (taken - 1, false),
                _ => slot = (slot + 1) & mask,
            }
        }
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.slots[slot] = self.len() as u32;
        (self.len() as u32 - 1, true)
    }

    fn grow(&mut self) {
        let length = (2 * self.slots.len()).max(64);
        let mut slots = vec![0u32; length];
        for number in 0..self.len() {
            let mut slot = hash(self.key(number)) as usize & (length - 1);
            while slots[slot] != 0 {
                slot = (slot + 1) & (length - 1);
            }
            slots[slot] = number as u32 + 1;
        }
        self.slots = slots;
    }

    /// Bytes it occupies.
    pub fn memory(&self) -> f64 {
        (self.bytes.capacity() + 8 * self.ends.capacity() + 4 * self.slots.capacity()) as f64
    }
}

/// A hash that is the same in every run and on every machine: episodes are dealt to blocks by it.
pub(crate) fn hash(key: &[u8]) -> u64 {
    let mix = |h: u64, word: u64| (h ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let (words, rest) = key.as_chunks::<8>();
    let mut h = words.iter().fold(key.len() as u64, |h, word| mix(h, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    h = mix(h, u64::from_le_bytes(last));
    // The finaliser of SplitMix64, so that low bits depend on all others.
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbered_in_order_and_found_again() {
        let mut interner = Interner::default();
        for k in 0..1000u32 {
            assert_eq!(interner.intern(k.to_string().as_bytes()), (k, true));
        }
        for k in 0..1000u32 {
            assert_eq!(interner.intern(k.to_string().as_bytes()), (k, false));
            assert_eq!(interner.key(k as usize), k.to_string().as_bytes());
        }
        assert_eq!((interner.intern(b""), interner.intern(b"\0")), ((1000, true), (1001, true)));
    }

    #[test]
    fn the_hash_never_changes() {
        // From the same formulas in Python.
        assert_eq!([hash(b""), hash(b"episode 17")], [0, 0x20a6_91a1_11fb_9840]);
        let low: std::collections::HashSet<u64> =
            (0..4096u32).map(|k| hash(k.to_string().as_bytes()) % 256).collect();
        assert_eq!(low.len(), 256);
    }
}
