//! What the loops touch, and how much of it a cache of some size has to fetch again.

use super::loops::Loops;
use crate::lower::live::RangeSet;

/// Bytes that move together.
const LINE: f64 = 64.0;

/// How an access moves through its buffer.
pub(super) struct Walk {
    /// Elements that a trip of each axis moves it by.
    pub steps: Vec<f64>,
    /// Ranges it is inside of.
    pub open: RangeSet,
    /// Bytes of an element.
    pub size: f64,
    /// Only Ranges decide where it is.
    pub regular: bool,
    /// Bytes of the buffer.
    pub buffer: f64,
    /// Read from a copy that lies in the order of the loops.
    pub packed: bool,
}

impl Walk {
    /// Length and number of the runs of neighbouring elements that the loops from axis `first` on reach, tiles
    /// included.
    fn runs(&self, loops: &Loops, first: usize) -> (f64, f64) {
        let inside = |axis: &usize| (loops.is_tile(*axis) || *axis >= first) && loops.moves(*axis, self.open);
        let inside = (0..loops.count()).filter(inside);
        if !self.regular {
            return (1.0, inside.map(|axis| loops.trips(axis)).product());
        }
        let mut moves: Vec<(f64, f64)> =
            inside.map(|axis| (self.steps[axis], loops.trips(axis))).filter(|&(step, _)| step > 0.0).collect();
        moves.sort_by(|a, b| a.0.total_cmp(&b.0));
        moves.into_iter().fold((1.0, 1.0), |(run, runs), (step, trips)| match step <= run {
            true => (run + (trips - 1.0) * step, runs),
            // What steps over more than a run starts others.
            false => (run, runs * trips),
        })
    }

    /// Distinct elements that the loops from axis `first` on reach.
    pub fn elements(&self, loops: &Loops, first: usize) -> f64 {
        let (run, runs) = self.runs(loops, first);
        (run * runs).min(self.buffer / self.size)
    }

    /// Bytes of their lines.
    fn footprint(&self, loops: &Loops, first: usize) -> f64 {
        let (run, runs) = self.runs(loops, first);
        let bytes = if runs > 1.0 && !self.packed { (run * self.size).max(LINE) } else { run * self.size };
        (runs * bytes).min(self.buffer)
    }
}

/// Bytes that a cache of `capacity` fetches for all accesses together.
pub(super) fn traffic(walks: &[Walk], loops: &Loops, capacity: f64) -> f64 {
    // From which axis on everything touched stays in the cache.
    let total = |first: usize| walks.iter().map(|walk| walk.footprint(loops, first)).sum::<f64>();
    let fits = (0..=loops.count()).find(|&first| total(first) <= capacity).unwrap_or(loops.count());
    if fits == 0 {
        return 0.0;
    }
    // Along the nearest loop around, what one trip leaves is found by the next; further out it is gone.
    let nearest = (0..fits).rev().find(|&axis| !loops.is_tile(axis)).unwrap_or(0);
    let of = |walk: &Walk| {
        let outside = loops.around(walk.open).into_iter().filter(|&axis| axis < nearest);
        let trips: f64 = outside.map(|axis| loops.trips(axis)).product();
        trips * walk.footprint(loops, nearest)
    };
    walks.iter().map(of).sum()
}
