//! Bytes made small for a page: repeats and literals, arithmetic-coded bit by bit with probabilities that adapt.
//!
//! Compiled code becomes a fifth smaller than with deflate, which browsers can undo themselves, so that `crates/ictd-web/start.js`
//! undoes this instead; the two files say the same.
//!
//! A flag says literal or repeat, another whether a repeat has the last distance. A literal is eight bits, given the byte before it. A
//! repeat is its length less two (eight bits), then the distance less one: how many bits it has and the second of them (six bits,
//! given the length), the rest as they are but for the last four.

/// Longest repeat.
const LONGEST: usize = 257;
/// Positions tried for a repeat: more gain little.
const TRIED: usize = 100;
/// How often steps are chosen by the prices that those before led to.
const ROUNDS: usize = 3;

/// The models, as places in one list: what each is given, and as many nodes as its bits have.
const FLAG: usize = 0;
const LAST: usize = FLAG + 8;
const LENGTH: usize = LAST + 8;
const SLOT: usize = LENGTH + 2 * 256;
const LOW: usize = SLOT + 4 * 64;
const LITERAL: usize = LOW + 64 * 32;
const MODELS: usize = LITERAL + 256 * 256;

/// An arithmetic coder: the code is a number between `low` and `high`, whose first bytes are written as soon as they agree.
struct Coder {
    low: u32,
    high: u32,
    out: Vec<u8>,
    /// Probabilities that a bit is 1, of 65536: one estimate that learns quickly, and one that learns slowly.
    quick: Vec<u16>,
    slow: Vec<u16>,
}

impl Coder {
    fn new() -> Self {
        let half = || vec![1 << 15; MODELS];
        Self { low: 0, high: u32::MAX, out: Vec::new(), quick: half(), slow: half() }
    }

    fn split(&mut self, bit: bool, probability: u32) {
        let middle = self.low + ((self.high - self.low) >> 12) * probability;
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        while (self.low ^ self.high) >> 24 == 0 {
            self.out.push((self.low >> 24) as u8);
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
        }
    }

    fn bit(&mut self, model: usize, bit: bool) {
        let (quick, slow) = (&mut self.quick[model], &mut self.slow[model]);
        // Of 4096, never 0 or 1.
        let probability = ((u32::from(*quick) + u32::from(*slow)) >> 5).clamp(1, 4095);
        let target = if bit { 65535 } else { 0 };
        *quick = (i32::from(*quick) + ((target - i32::from(*quick)) >> 4)) as u16;
        *slow = (i32::from(*slow) + ((target - i32::from(*slow)) >> 7)) as u16;
        self.split(bit, probability);
    }

    /// The bits of a value, the highest first, each given those before it.
    fn tree(&mut self, models: usize, bits: u32, value: usize) {
        let mut node = 1;
        for k in (0..bits).rev() {
            let bit = value >> k & 1;
            self.bit(models + node, bit == 1);
            node = 2 * node + bit;
        }
    }

    fn distance(&mut self, length: usize, distance: usize) {
        let value = distance - 1;
        let (slot, bits) = slot(distance);
        self.tree(SLOT + (length - 2).min(3) * 64, 6, slot);
        let rest = bits.saturating_sub(2);
        for k in (4..rest).rev() {
            self.split(value >> k & 1 == 1, 2048);
        }
        let modelled = rest.min(4);
        self.tree(LOW + slot * 32, modelled, value & ((1 << modelled) - 1));
    }
}

/// How many bits a distance less one has, and that number together with the second of them.
fn slot(distance: usize) -> (usize, u32) {
    let value = distance - 1;
    let bits = value.checked_ilog2().map_or(0, |top| top + 1);
    let second = if bits >= 2 { value >> (bits - 2) & 1 } else { 0 };
    (2 * bits as usize + second, bits)
}

impl Coder {
    /// What a bit would take now, in bits.
    fn price(&self, model: usize, bit: bool) -> f32 {
        let ones = (f32::from(self.quick[model]) + f32::from(self.slow[model])) / 131_072.0;
        -if bit { ones } else { 1.0 - ones }.max(1e-4).log2()
    }

    /// What a value would take now.
    fn tree_price(&self, models: usize, bits: u32, value: usize) -> f32 {
        (0..bits).map(|k| self.price(models + ((1 << bits | value) >> (k + 1)), value >> k & 1 == 1)).sum()
    }
}

/// What everything takes, in bits, by the models as they are at the end of a first try.
struct Prices {
    flag: [[f32; 2]; 8],
    last: [[f32; 2]; 8],
    literal: Vec<f32>,
    length: [Vec<f32>; 2],
    slot: [Vec<f32>; 4],
}

impl Prices {
    fn of(coder: &Coder) -> Self {
        let list =
            |models: usize, bits: u32| (0..1 << bits).map(|v| coder.tree_price(models, bits, v)).collect();
        let flags = |models: usize| {
            std::array::from_fn(|k| [false, true].map(|is_set| coder.price(models + k, is_set)))
        };
        let of_literals = |before: usize| -> Vec<f32> { list(LITERAL + 256 * before, 8) };
        Self {
            flag: flags(FLAG),
            last: flags(LAST),
            literal: (0..256).flat_map(of_literals).collect(),
            length: std::array::from_fn(|same| list(LENGTH + 256 * same, 8)),
            slot: std::array::from_fn(|k| list(SLOT + 64 * k, 6)),
        }
    }

    fn distance(&self, length: usize, distance: usize) -> f32 {
        let (slot, bits) = slot(distance);
        self.slot[(length - 2).min(3)][slot] + bits.saturating_sub(2) as f32
    }
}

/// The repeats of all positions: the length of each and its distance, longer ones further away.
fn repeats(bytes: &[u8]) -> Vec<Vec<(usize, usize)>> {
    let hash = |at: usize| {
        let key = bytes[at..at + 3].iter().fold(0, |n: u32, byte| n << 8 | u32::from(*byte));
        (key.wrapping_mul(0x9e37_79b1) >> 16) as usize
    };
    // The last position of every hash, and the one before each position.
    let (mut newest, mut before) = (vec![None; 1 << 16], vec![None; bytes.len()]);
    let mut found = vec![Vec::new(); bytes.len()];
    for at in 0..bytes.len().saturating_sub(2) {
        let place = &mut newest[hash(at)];
        let (mut next, mut longest) = (*place, 2);
        for _ in 0..TRIED {
            let Some(there) = next else { break };
            let length = common(bytes, at, at - there);
            if length > longest {
                found[at].push((length, at - there));
                longest = length;
            }
            next = before[there];
        }
        before[at] = *place;
        *place = Some(at);
    }
    found
}

fn common(bytes: &[u8], at: usize, distance: usize) -> usize {
    let (here, there) = (&bytes[at..], &bytes[at - distance..]);
    here.iter().zip(there).take(LONGEST).take_while(|(a, b)| a == b).count()
}

/// The cheapest way to a position.
#[derive(Clone, Copy)]
struct Way {
    price: f32,
    /// The last step: how many bytes, and the distance of a repeat; 0 for a literal.
    length: usize,
    distance: usize,
    history: usize,
    last: usize,
}

/// The steps that take the fewest bits, nearly: what a step costs depends on those before it, of which only the cheapest are kept.
fn cheapest(bytes: &[u8], repeats: &[Vec<(usize, usize)>], prices: &Prices) -> Vec<(usize, usize)> {
    let nowhere = Way { price: f32::INFINITY, length: 0, distance: 0, history: 0, last: 1 };
    let mut ways = vec![nowhere; bytes.len() + 1];
    ways[0].price = 0.0;
    for at in 0..bytes.len() {
        // Prices are compared over a few hundred bytes: sums that grow would lose their last places.
        let Way { price, history, last, .. } = ways[at];
        let offset = if at % 4096 == 0 { price } else { 0.0 };
        if offset > 0.0 {
            ways[at..].iter_mut().take(LONGEST + 1).for_each(|way| way.price -= offset);
        }
        let price = price - offset;
        let mut go = |length: usize, distance: usize, price: f32| {
            if price < ways[at + length].price {
                let is_repeat = usize::from(distance > 0);
                let last = if distance > 0 { distance } else { last };
                ways[at + length] =
                    Way { price, length, distance, history: (2 * history + is_repeat) % 8, last };
            }
        };
        let before = if at > 0 { usize::from(bytes[at - 1]) } else { 0 };
        go(1, 0, price + prices.flag[history][0] + prices.literal[256 * before + usize::from(bytes[at])]);
        let price = price + prices.flag[history][1];
        let again = if last <= at { common(bytes, at, last) } else { 0 };
        for length in 2..=again {
            go(length, last, price + prices.last[history][1] + prices.length[1][length - 2]);
        }
        let mut shortest = 3;
        for &(longest, distance) in &repeats[at] {
            for length in shortest..=longest {
                let length_price = prices.last[history][0] + prices.length[0][length - 2];
                go(length, distance, price + length_price + prices.distance(length, distance));
            }
            shortest = longest + 1;
        }
    }
    let (mut steps, mut at) = (Vec::new(), bytes.len());
    while at > 0 {
        let Way { length, distance, .. } = ways[at];
        steps.push((length, distance));
        at -= length;
    }
    steps.reverse();
    steps
}

fn write(bytes: &[u8], steps: &[(usize, usize)]) -> Coder {
    let mut coder = Coder::new();
    let (mut at, mut history, mut last) = (0, 0, 1);
    for &(length, distance) in steps {
        let is_repeat = distance > 0;
        coder.bit(FLAG + history, is_repeat);
        if is_repeat {
            let is_last = distance == last;
            coder.bit(LAST + history, is_last);
            coder.tree(LENGTH + 256 * usize::from(is_last), 8, length - 2);
            if !is_last {
                coder.distance(length, distance);
            }
            last = distance;
        } else {
            let before = if at > 0 { bytes[at - 1] } else { 0 };
            coder.tree(LITERAL + 256 * usize::from(before), 8, usize::from(bytes[at]));
        }
        at += length;
        history = (2 * history + usize::from(is_repeat)) % 8;
    }
    coder
}

/// The bytes made small.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let repeats = repeats(bytes);
    let mut coder = Coder::new();
    for _ in 0..ROUNDS {
        coder = write(bytes, &cheapest(bytes, &repeats, &Prices::of(&coder)));
    }
    coder.out.extend(coder.low.to_be_bytes());
    coder.out
}
