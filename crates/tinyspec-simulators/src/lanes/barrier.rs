//! Barriers of a workgroup: the threads that have arrived, and the joined clock of their waves.

use super::clock::Clocks;

/// Barriers of a workgroup.
pub(crate) const BARRIERS: usize = 16;

#[derive(Default)]
struct Barrier {
    arrived: u32,
    /// Threads it waits for; 0 before the first has arrived.
    expected: u32,
    /// Waves that wait, each once.
    waiting: Vec<usize>,
    together: Vec<u32>,
    /// Threads whose predicate was true.
    votes: u32,
}

/// The barriers of one workgroup.
#[derive(Default)]
pub(crate) struct Barriers {
    all: [Barrier; BARRIERS],
}

impl Barriers {
    pub fn reset(&mut self) {
        for barrier in &mut self.all {
            *barrier = Barrier::default();
        }
    }

    /// `threads` lanes of a wave arrive, to wait or not, where `expected` are waited for. Whether the barrier is complete.
    pub fn arrive(
        &mut self,
        number: usize,
        (wave, threads): (usize, u32),
        expected: u32,
        waits: bool,
        clocks: &Clocks,
    ) -> Result<bool, String> {
        let barrier = &mut self.all[number];
        if barrier.arrived > 0 && barrier.expected != expected {
            let reason = format!(
                "it waits for {expected} threads at barrier {number}, where others wait for {}",
                barrier.expected
            );
            return Err(reason);
        }
        barrier.expected = expected;
        barrier.arrived += threads;
        if barrier.arrived > expected {
            return Err(format!("{} threads arrive at barrier {number}, which {expected} wait at", barrier.arrived));
        }
        clocks.join(&mut barrier.together, wave);
        if waits && !barrier.waiting.contains(&wave) {
            barrier.waiting.push(wave);
        }
        Ok(barrier.arrived == expected)
    }

    /// Completes a barrier: the waves to go on, which now know of each other.
    pub fn complete(&mut self, number: usize, clocks: &mut Clocks) -> Vec<usize> {
        let barrier = std::mem::take(&mut self.all[number]);
        for &wave in &barrier.waiting {
            clocks.learn(wave, &barrier.together);
        }
        barrier.waiting
    }

    /// Counts threads whose predicate is true.
    pub fn vote(&mut self, number: usize, votes: u32) {
        self.all[number].votes += votes;
    }

    /// Threads whose predicate was true, and threads in all.
    pub fn votes(&self, number: usize) -> (u32, u32) {
        (self.all[number].votes, self.all[number].arrived)
    }

    /// How many have arrived, and how many were to.
    pub fn state(&self, number: usize) -> (u32, u32) {
        (self.all[number].arrived, self.all[number].expected)
    }
}
