//! Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
const PARITY: u32 = 0x1bd1_1bda;

/// Five groups of four add-rotate-xor rounds; the low word of counter, key and result is the first lane.
///
/// ```
/// // The all-zero vector of the Random123 test suite.
/// assert_eq!(tinyspec_ir::eval::threefry(0, 0), 0x99ba_4efe_6b20_0159);
/// ```
pub fn threefry(counter: u64, key: u64) -> u64 {
    let keys = [key as u32, (key >> 32) as u32, PARITY ^ key as u32 ^ (key >> 32) as u32];
    let (mut a, mut b) = ((counter as u32).wrapping_add(keys[0]), ((counter >> 32) as u32).wrapping_add(keys[1]));
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            a = a.wrapping_add(b);
            b = b.rotate_left(rotation) ^ a;
        }
        a = a.wrapping_add(keys[(group + 1) % 3]);
        b = b.wrapping_add(keys[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    a as u64 | (b as u64) << 32
}
