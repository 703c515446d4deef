//! Content hashes: 128 bits, the same in every process, for identities that outlive a graph.

use std::hash::{Hash, Hasher};

/// A 128-bit content hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContentHash(pub u128);

impl ContentHash {
    /// Hash of anything hashable.
    pub fn of(value: &(impl Hash + ?Sized)) -> ContentHash {
        let mut hasher = ContentHasher::default();
        value.hash(&mut hasher);
        hasher.content_hash()
    }
}

impl std::fmt::Display for ContentHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Two 64-bit lanes, each folded by a 64×64→128 multiplication.
#[derive(Clone, Debug)]
pub struct ContentHasher {
    low: u64,
    high: u64,
}

impl Default for ContentHasher {
    fn default() -> Self {
        ContentHasher { low: 0x243f_6a88_85a3_08d3, high: 0x1319_8a2e_0370_7344 }
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    (product as u64) ^ (product >> 64) as u64
}

impl ContentHasher {
    /// The hash so far, in full width.
    pub fn content_hash(&self) -> ContentHash {
        let low = fold(self.low ^ 0x9e37_79b9_7f4a_7c15, self.high | 1);
        let high = fold(self.high ^ 0xd1b5_4a32_d192_ed03, self.low | 1);
        ContentHash((high as u128) << 64 | low as u128)
    }
}

impl Hasher for ContentHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|&word| self.write_u64(u64::from_le_bytes(word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value as u64);
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        let (low, high) = (self.low, self.high);
        self.low = fold(low ^ value, 0xa076_1d64_78bd_642f).wrapping_add(high.rotate_left(23));
        self.high = fold(high.rotate_left(17) ^ value, 0xe703_7ed1_a0b4_28db).wrapping_add(low);
    }

    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
        self.write_u64((value >> 64) as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.content_hash().0 as u64
    }
}
