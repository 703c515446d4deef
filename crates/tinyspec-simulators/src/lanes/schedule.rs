//! The order of concurrent work: random, and the same for the same seed.

/// Draws what comes next.
pub(crate) struct Schedule {
    random: fastrand::Rng,
}

/// Instructions that a wave runs before another may, at the most.
const LONGEST_TURN: u64 = 512;

impl Schedule {
    pub fn new(seed: u64) -> Schedule {
        Schedule { random: fastrand::Rng::with_seed(seed) }
    }

    /// One of so many.
    pub fn pick(&mut self, count: usize) -> usize {
        if count <= 1 { 0 } else { self.random.usize(..count) }
    }

    /// How many instructions the next turn takes.
    pub fn turn(&mut self) -> u64 {
        self.random.u64(1..=LONGEST_TURN)
    }

    /// Some things in another order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        self.random.shuffle(things);
    }

    /// A permutation of `0..count` that is computed, not stored: its multiplier and its first.
    pub fn permutation(&mut self, count: u64) -> Permutation {
        let mut step = self.random.u64(..).max(1) % count.max(1);
        while step == 0 || gcd(step, count) != 1 {
            step = (step + 1) % count.max(2);
            if count <= 1 {
                step = 1;
                break;
            }
        }
        Permutation { count, step, first: self.random.u64(..count.max(1)) }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Numbers in another order.
pub(crate) struct Permutation {
    count: u64,
    step: u64,
    first: u64,
}

impl Permutation {
    pub fn at(&self, number: u64) -> u64 {
        let place = u128::from(number) * u128::from(self.step) + u128::from(self.first);
        (place % u128::from(self.count.max(1))) as u64
    }
}
