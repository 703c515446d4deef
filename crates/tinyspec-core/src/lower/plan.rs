//! Register/Memory Plan: assigns memory to the values of a schedule and of a kernel, the same to those of which no two are needed at once.
//!
//! Temporaries of a schedule share one arena, LOCAL Buffers of a kernel the scratch of a call, and registers are merged.

mod lifetimes;
mod locals;
mod registers;

pub use locals::locals;
pub(super) use registers::registers;

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The alignment of every offset: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// The live range of a value: from the step that writes it to the last that reads it, inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    /// The step that writes it.
    pub first: usize,
    /// The last step that reads it.
    pub last: usize,
    /// Size.
    pub bytes: usize,
}

/// Assigns offsets in one arena to values, and returns its size. Values whose lifetimes overlap do not overlap in
/// memory.
pub fn arena(lifetimes: &[Lifetime]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|&value| (lifetimes[value].first, std::cmp::Reverse(lifetimes[value].bytes)));
    let mut offsets = vec![0; lifetimes.len()];
    let mut free = Free::default();
    // Live values, the one that ends first on top.
    let mut active: BinaryHeap<(std::cmp::Reverse<usize>, usize)> = BinaryHeap::new();
    for value in order {
        while let Some(&(std::cmp::Reverse(last), done)) = active.peek()
            && last < lifetimes[value].first
        {
            active.pop();
            free.release(offsets[done], size(&lifetimes[done]));
        }
        offsets[value] = free.take(size(&lifetimes[value]));
        active.push((std::cmp::Reverse(lifetimes[value].last), value));
    }
    (offsets, free.end)
}

fn size(lifetime: &Lifetime) -> usize {
    lifetime.bytes.next_multiple_of(ALIGNMENT)
}

/// Holes of the arena, by offset and by size.
#[derive(Default)]
struct Free {
    by_offset: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
    end: usize,
}

impl Free {
    /// The smallest hole that fits, else new space at the end.
    fn take(&mut self, bytes: usize) -> usize {
        if bytes == 0 {
            return 0;
        }
        let Some(&(size, offset)) = self.by_size.range((bytes, 0)..).next() else {
            // A hole at the very end grows.
            let last = self.by_offset.last_key_value().map(|(&offset, &size)| (offset, size));
            let offset = match last.filter(|(offset, size)| offset + size == self.end) {
                Some((offset, size)) => {
                    self.remove(offset, size);
                    offset
                }
                None => self.end,
            };
            self.end = offset + bytes;
            return offset;
        };
        self.remove(offset, size);
        if size > bytes {
            self.insert(offset + bytes, size - bytes);
        }
        offset
    }

    fn release(&mut self, mut offset: usize, mut bytes: usize) {
        if bytes == 0 {
            return;
        }
        if let Some((&before, &size)) = self.by_offset.range(..offset).next_back()
            && before + size == offset
        {
            self.remove(before, size);
            (offset, bytes) = (before, size + bytes);
        }
        if let Some(&size) = self.by_offset.get(&(offset + bytes)) {
            self.remove(offset + bytes, size);
            bytes += size;
        }
        self.insert(offset, bytes);
    }

    fn insert(&mut self, offset: usize, size: usize) {
        self.by_offset.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    fn remove(&mut self, offset: usize, size: usize) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
}
