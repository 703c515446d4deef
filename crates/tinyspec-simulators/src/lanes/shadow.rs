//! The access history of each piece of memory: its last writer, and enough of its readers.

use super::clock::{Now, Stamp};

/// Of many threads that touched a piece, any two of a workgroup are enough, and one of an earlier workgroup.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    writer: Stamp,
    /// The last reader, or the last that changed it atomically.
    last: Stamp,
    /// Another one that nothing orders with the last.
    other: Stamp,
    /// One of an earlier workgroup.
    earlier: Stamp,
}

impl Cell {
    pub const NEW: Cell = Cell { writer: Stamp::NEVER, last: Stamp::NEVER, other: Stamp::NEVER, earlier: Stamp::NEVER };

    /// Whether a thread of this workgroup has written it.
    #[inline]
    pub fn is_written(&self, now: &Now) -> bool {
        now.is_here(self.writer) || (self.last.is_atomic() && now.is_here(self.last))
    }

    /// Notes a read; returns the access that it races with.
    #[inline]
    pub fn read(&mut self, now: &Now, lane: usize) -> Option<Met> {
        if !now.knows(self.writer)
            && let Some(met) = self.met_writer(now, lane)
        {
            return Some(met);
        }
        let me = now.stamp.lane(lane);
        if self.last.is_beside(me) {
            if self.last.lane_of() != lane {
                self.last = self.last.shared();
            }
            return None;
        }
        self.read_first(now, me, lane)
    }

    /// The wave's first read since its last synchronisation.
    fn read_first(&mut self, now: &Now, me: Stamp, lane: usize) -> Option<Met> {
        if let Some(met) = self.met_atomic(now, lane) {
            return Some(met);
        }
        self.note(now, me, lane);
        None
    }

    /// Notes that several lanes read, if it is clear that they meet nobody.
    #[inline]
    pub fn read_together(&mut self, now: &Now, lane: usize) -> bool {
        let me = now.stamp.lane(lane);
        let is_clear = (now.knows(self.writer) || self.writer == Stamp::NEVER)
            && (self.last.is_beside(me) || self.read_first(now, me, lane).is_none());
        if is_clear {
            self.last = self.last.shared();
        }
        is_clear
    }

    #[inline]
    fn met_writer(&self, now: &Now, lane: usize) -> Option<Met> {
        now.meets(self.writer, lane).then_some(Met(self.writer, "wrote"))
    }

    /// Those who changed it atomically, met by an access that is not atomic.
    #[inline]
    fn met_atomic(&self, now: &Now, lane: usize) -> Option<Met> {
        let all = [self.last, self.other, self.earlier];
        if !all.iter().any(|stamp| stamp.is_atomic()) {
            return None;
        }
        let met = all.into_iter().find(|stamp| stamp.is_atomic() && now.meets(*stamp, lane));
        met.map(|stamp| Met(stamp, "changed atomically"))
    }

    #[inline]
    fn note(&mut self, now: &Now, me: Stamp, lane: usize) {
        if now.meets(self.last, lane) {
            if now.is_here(self.last) {
                self.other = self.last;
            } else {
                self.earlier = self.last;
            }
        }
        self.last = me;
    }

    /// Notes a write; returns the access that it races with.
    #[inline(always)]
    pub fn write(&mut self, now: &Now, lane: usize) -> Option<Met> {
        let is_clear = |stamp: Stamp| stamp == Stamp::NEVER || now.knows(stamp);
        let is_first = [self.writer, self.last, self.other, self.earlier].into_iter().all(is_clear);
        let met = if is_first { None } else { self.met_by_write(now, lane) };
        if met.is_none() {
            self.writer = now.stamp.lane(lane);
        }
        met
    }

    #[inline(never)]
    fn met_by_write(&self, now: &Now, lane: usize) -> Option<Met> {
        if let Some(met) = self.met_writer(now, lane) {
            return Some(met);
        }
        for stamp in [self.last, self.other, self.earlier] {
            if now.meets(stamp, lane) {
                return Some(Met(stamp, if stamp.is_atomic() { "changed atomically" } else { "read" }));
            }
        }
        None
    }

    /// Notes an atomic change, or a strong access.
    pub fn change(&mut self, now: &Now, lane: usize) -> Option<Met> {
        if let Some(met) = self.met_writer(now, lane) {
            return Some(met);
        }
        let readers = [self.last, self.other, self.earlier];
        let met = readers.into_iter().find(|stamp| !stamp.is_atomic() && now.meets(*stamp, lane));
        if let Some(stamp) = met {
            return Some(Met(stamp, "read"));
        }
        self.note(now, now.stamp.lane(lane).atomic(), lane);
        None
    }
}

/// An earlier access that races with the current one, and its kind.
pub(crate) struct Met(pub Stamp, pub &'static str);

/// Cells of a page.
const PAGE: usize = 1024;

/// The cells of a buffer. Pages of them are allocated when they are first touched.
pub(crate) struct Shadow {
    pages: Vec<Option<Box<[Cell; PAGE]>>>,
}

impl Shadow {
    pub fn new(cells: usize) -> Shadow {
        Shadow { pages: std::iter::repeat_with(|| None).take(cells.div_ceil(PAGE)).collect() }
    }

    /// Replaces each cell by so many copies of it, a power of two.
    pub fn split(&mut self, copies: usize) {
        let page = |number: usize| {
            let old = self.pages[number / copies].as_ref()?;
            let first = number % copies * (PAGE / copies);
            Some(Box::new(std::array::from_fn(|cell| old[first + cell / copies])))
        };
        self.pages = (0..self.pages.len() * copies).map(page).collect();
    }

    /// Consecutive cells inside of the buffer: a power of two, at a multiple of it.
    #[inline]
    pub fn cells(&mut self, first: usize, count: usize) -> &mut [Cell] {
        let page = self.pages[first / PAGE].get_or_insert_with(|| Box::new([Cell::NEW; PAGE]));
        &mut page[first % PAGE..][..count]
    }
}
