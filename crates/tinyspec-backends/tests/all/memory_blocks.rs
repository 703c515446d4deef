//! Memory of GPUs in blocks: which piece is given and taken back.

#[path = "../../src/gpu/driver/blocks.rs"]
mod blocks;

use blocks::{Blocks, block_of, piece_of};

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
