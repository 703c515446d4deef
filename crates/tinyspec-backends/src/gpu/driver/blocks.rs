//! Memory in large blocks: drivers take long to give memory, and wait for all work before they take it back. All work of a
//! device goes through one stream, in order, so what one tensor lets go the next may have at once.

use std::collections::{BTreeMap, BTreeSet};

/// Every piece begins at a multiple of this, which is what drivers align memory to.
const GRANULE: usize = 256;
/// Pieces up to this size share blocks.
const SHARED: usize = 16 << 20;
/// Bytes of a block that is shared.
const BLOCK: usize = 32 << 20;
/// Larger pieces have blocks of their own, of multiples of this.
const PAGE: usize = 2 << 20;

/// What a driver gave, and which parts of it are free. Addresses alone: nothing here asks the driver.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Bytes of each block.
    blocks: BTreeMap<u64, usize>,
    /// Bytes of each free part.
    free: BTreeMap<u64, usize>,
    /// The same, by size.
    sizes: BTreeSet<(usize, u64)>,
}

/// Bytes of the block that a piece is taken from where no free part will do; none where no memory is as large.
pub(super) fn block_of(bytes: usize) -> Option<usize> {
    if bytes <= SHARED { Some(BLOCK) } else { bytes.checked_next_multiple_of(PAGE) }
}

/// Bytes that a piece takes of its block: none is empty.
pub(super) fn piece_of(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(GRANULE)
}

impl Blocks {
    /// The smallest free part that holds a piece.
    pub fn take(&mut self, piece: usize) -> Option<u64> {
        let &(bytes, address) = self.sizes.range((piece, 0)..).next()?;
        self.remove(address, bytes);
        if bytes > piece {
            self.insert(address + piece as u64, bytes - piece);
        }
        Some(address)
    }

    /// A piece is free again.
    pub fn give(&mut self, mut address: u64, mut piece: usize) {
        let Some((&block, &bytes)) = self.blocks.range(..=address).next_back() else { return };
        let (before, behind) =
            (self.free.range(..address).next_back(), self.free.get_key_value(&(address + piece as u64)));
        let before = before.filter(|&(&start, &length)| start >= block && start + length as u64 == address);
        let behind = behind.filter(|(start, _)| **start < block + bytes as u64);
        let [before, behind] = [before, behind].map(|part| part.map(|(&start, &length)| (start, length)));
        for (start, length) in before.into_iter().chain(behind) {
            self.remove(start, length);
            (address, piece) = (address.min(start), piece + length);
        }
        self.insert(address, piece);
    }

    /// A block that the driver gave, all of it free.
    pub fn add(&mut self, address: u64, bytes: usize) {
        self.blocks.insert(address, bytes);
        self.insert(address, bytes);
    }

    /// Forgets the blocks of which nothing is used: they go back to the driver.
    pub fn take_unused(&mut self) -> Vec<u64> {
        let is_unused = |&(address, bytes): &(&u64, &usize)| self.free.get(address) == Some(bytes);
        let unused: Vec<(u64, usize)> =
            self.blocks.iter().filter(is_unused).map(|(&start, &bytes)| (start, bytes)).collect();
        for &(address, bytes) in &unused {
            self.remove(address, bytes);
            self.blocks.remove(&address);
        }
        unused.into_iter().map(|(address, _)| address).collect()
    }

    /// Forgets all blocks.
    pub fn take_all(&mut self) -> Vec<u64> {
        std::mem::take(self).blocks.into_keys().collect()
    }

    /// Bytes of free parts.
    pub fn unused(&self) -> usize {
        self.free.values().sum()
    }

    fn insert(&mut self, address: u64, bytes: usize) {
        self.free.insert(address, bytes);
        self.sizes.insert((bytes, address));
    }

    fn remove(&mut self, address: u64, bytes: usize) {
        self.free.remove(&address);
        self.sizes.remove(&(bytes, address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of two blocks, taken and given in many orders: none overlap, and in the end both blocks are whole.
    #[test]
    fn pieces_never_overlap_and_grow_together_again() {
        for seed in 1..50u64 {
            let mut state = seed;
            let mut random = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % below
            };
            let mut blocks = Blocks::default();
            // Side by side, as a driver may give them.
            blocks.add(0x10_0000, 64 << 10);
            blocks.add(0x11_0000, 64 << 10);
            let mut held: Vec<(u64, usize)> = Vec::new();
            for _ in 0..300 {
                if random(3) > 0
                    && let Some(piece) = piece_of(random(20 << 10))
                    && let Some(address) = blocks.take(piece)
                {
                    let end = address + piece as u64;
                    assert!(held.iter().all(|&(start, bytes)| end <= start || start + bytes as u64 <= address));
                    assert_eq!(address >> 16, (end - 1) >> 16, "a piece of two blocks");
                    held.push((address, piece));
                } else if !held.is_empty() {
                    let (address, piece) = held.swap_remove(random(held.len()));
                    blocks.give(address, piece);
                }
                assert_eq!(blocks.unused() + held.iter().map(|piece| piece.1).sum::<usize>(), 128 << 10);
            }
            held.into_iter().for_each(|(address, piece)| blocks.give(address, piece));
            assert_eq!(blocks.take_unused(), [0x10_0000, 0x11_0000]);
            assert_eq!((blocks.take(256), blocks.take_all()), (None, vec![]));
        }
    }

    #[test]
    fn the_smallest_part_that_will_do_is_taken() {
        let mut blocks = Blocks::default();
        blocks.add(0, 4096);
        let parts: Vec<u64> = [1024, 256, 512, 256].iter().filter_map(|&piece| blocks.take(piece)).collect();
        assert_eq!(parts, [0, 1024, 1280, 1792]);
        blocks.give(0, 1024);
        blocks.give(1280, 512);
        assert_eq!([blocks.take(512), blocks.take(300), blocks.take(3000)], [Some(1280), Some(0), None]);
        assert_eq!((piece_of(0), piece_of(257), block_of(1)), (Some(256), Some(512), Some(32 << 20)));
        assert_eq!((block_of(17 << 20), piece_of(usize::MAX), block_of(usize::MAX)), (Some(18 << 20), None, None));
    }
}
