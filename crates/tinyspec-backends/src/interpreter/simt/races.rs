//! Detects races between threads without a Barrier in between, by recording for each element which threads last wrote
//! and read it.

use super::super::linear::races::Touch;

/// A thread between two Barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub group: u32,
    pub thread: u32,
    /// The number of Barriers that the workgroup has passed.
    pub phase: u32,
}

impl Moment {
    const NEVER: Moment = Moment { group: u32::MAX, thread: 0, phase: 0 };

    /// Whether nothing orders the two.
    fn meets(self, other: Moment) -> bool {
        other != Moment::NEVER
            && (self.group != other.group || (self.thread != other.thread && self.phase == other.phase))
    }
}

/// The accesses of one kind to an element, as far as later ones may race with them: any two threads are enough, and
/// workgroups run in sequence.
#[derive(Clone, Copy)]
struct Trace {
    last: Moment,
    /// Another thread in the workgroup and phase of the last.
    other: Moment,
    /// An access of an earlier workgroup.
    earlier: Moment,
}

impl Trace {
    const EMPTY: Trace = Trace { last: Moment::NEVER, other: Moment::NEVER, earlier: Moment::NEVER };

    fn note(&mut self, here: Moment) {
        if here.meets(self.last) {
            let place = if self.last.group == here.group { &mut self.other } else { &mut self.earlier };
            *place = self.last;
        }
        self.last = here;
    }

    fn met(&self, here: Moment, is_local: bool) -> Option<Moment> {
        let all = [self.last, self.other, self.earlier];
        // Each workgroup has LOCAL memory of its own.
        all.into_iter().find(|&other| here.meets(other) && (!is_local || other.group == here.group))
    }
}

#[derive(Clone, Copy)]
struct Cell {
    writers: Trace,
    /// Whether the last write was an atomic addition.
    adds: bool,
    readers: Trace,
}

/// The access records of one buffer.
pub(super) struct Marks {
    cells: Vec<Cell>,
    is_local: bool,
}

/// The fault of an access.
pub(super) enum Clash {
    /// It races with this access of another thread.
    Meets(Moment, &'static str),
    /// No thread of the workgroup has written the element.
    Unwritten,
}

impl Marks {
    pub fn new(length: usize, is_local: bool) -> Marks {
        Marks { cells: vec![Cell { writers: Trace::EMPTY, adds: false, readers: Trace::EMPTY }; length], is_local }
    }

    /// Records an access to an existing element.
    pub fn touch(&mut self, element: usize, touch: Touch, here: Moment) -> Option<Clash> {
        let is_local = self.is_local;
        let cell = self.cells.get_mut(element)?;
        let both_add = touch == Touch::Add && cell.adds;
        if let Some(other) = cell.writers.met(here, is_local).filter(|_| !both_add) {
            return Some(Clash::Meets(other, if cell.adds { "adds to" } else { "writes" }));
        }
        if touch == Touch::Read {
            if is_local && cell.writers.last.group != here.group {
                return Some(Clash::Unwritten);
            }
            cell.readers.note(here);
            return None;
        }
        if let Some(other) = cell.readers.met(here, is_local) {
            return Some(Clash::Meets(other, "reads"));
        }
        cell.writers.note(here);
        cell.adds = touch == Touch::Add;
        None
    }
}
