//! Suballocates memory from large blocks: drivers take long to allocate memory, and wait for all work before they free
//! it. All work of a device goes through one stream, in order, so freed memory can be reused at once.

use std::collections::{BTreeMap, BTreeSet};

/// The alignment of suballocations, the same as that of allocations by the drivers.
const GRANULE: usize = 256;
/// The largest pieces that share blocks.
const SHARED: usize = 16 << 20;
/// The size of a shared block.
const BLOCK: usize = 32 << 20;
/// Larger pieces have blocks of their own, whose sizes are multiples of this.
const PAGE: usize = 2 << 20;

/// The blocks that a driver has allocated, and their free parts. This is bookkeeping only: nothing here calls the
/// driver.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Bytes of each block.
    blocks: BTreeMap<u64, usize>,
    /// Bytes of each free part.
    free: BTreeMap<u64, usize>,
    /// The same, by size.
    sizes: BTreeSet<(usize, u64)>,
}

/// The size of the block to allocate for a piece if no free part is large enough; `None` if no memory is that large.
pub(super) fn block_of(bytes: usize) -> Option<usize> {
    if bytes <= SHARED { Some(BLOCK) } else { bytes.checked_next_multiple_of(PAGE) }
}

/// The bytes that a piece takes up in its block, at least one granule.
pub(super) fn piece_of(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(GRANULE)
}

impl Blocks {
    /// Takes the smallest free part that holds a piece.
    pub fn take(&mut self, piece: usize) -> Option<u64> {
        let &(bytes, address) = self.sizes.range((piece, 0)..).next()?;
        self.remove(address, bytes);
        if bytes > piece {
            self.insert(address + piece as u64, bytes - piece);
        }
        Some(address)
    }

    /// Frees a piece.
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

    /// Adds a new block, all of it free.
    pub fn add(&mut self, address: u64, bytes: usize) {
        self.blocks.insert(address, bytes);
        self.insert(address, bytes);
    }

    /// Removes the unused blocks, which go back to the driver.
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

    /// Removes all blocks.
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
