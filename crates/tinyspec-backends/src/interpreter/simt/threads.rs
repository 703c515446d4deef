//! The active threads of a workgroup: loops and conditions deactivate some for a while.

/// The threads of a workgroup that execute the next instruction.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    taking: Vec<bool>,
    count: usize,
}

impl Threads {
    pub fn all(size: usize) -> Threads {
        Threads { taking: vec![true; size], count: size }
    }

    /// The active threads for which the condition holds.
    pub fn filter(&self, holds: impl Fn(usize) -> bool) -> Threads {
        let mut count = 0;
        let decide = |(thread, &taking): (usize, &bool)| {
            let taking = taking && holds(thread);
            count += taking as usize;
            taking
        };
        let taking = self.taking.iter().enumerate().map(decide).collect();
        Threads { taking, count }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether all threads are active.
    pub fn are_all(&self) -> bool {
        self.count == self.taking.len()
    }

    pub fn take(&self, thread: usize) -> bool {
        self.taking.get(thread).is_some_and(|&taking| taking)
    }

    /// The first active and the first inactive thread.
    pub fn divergent(&self) -> Option<(usize, usize)> {
        let find = |taking: bool| self.taking.iter().position(|&other| other == taking);
        Some((find(true)?, find(false)?))
    }
}

/// Where threads are reactivated.
pub(super) enum Frame {
    /// After the loop.
    Loop(Threads),
    /// At this position.
    If(Threads, usize),
}
