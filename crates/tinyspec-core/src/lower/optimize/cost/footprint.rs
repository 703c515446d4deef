//! The footprint of the loops, and how much of it a cache of some size has to fetch again.

use super::loops::Loops;
use crate::lower::live::RangeSet;
use smallvec::SmallVec;
use tinyspec_ir::NodeId;
use tinyspec_ir::affine::Footprint;

/// Bytes that move together.
pub(super) const LINE: f64 = 64.0;
/// The associativity of a cache: the lines it can hold of those whose addresses differ only in their upper bits.
const WAYS: f64 = 12.0;

/// How an access moves through its buffer.
pub(super) struct Walk {
    /// Elements that a trip of each axis moves it by.
    pub steps: Vec<i64>,
    /// Ranges it is inside of.
    pub open: RangeSet,
    /// Bytes of an element.
    pub size: f64,
    /// Ranges in which its index is not affine.
    pub irregular: RangeSet,
    /// The buffer that it reads or writes.
    pub of: NodeId,
    /// Bytes of the buffer.
    pub buffer: f64,
    /// Read from a copy that lies in the order of the loops.
    pub packed: bool,
}

impl Walk {
    /// The runs of neighbouring elements that the loops from axis `first` on reach, tiles included.
    fn runs(&self, loops: &Loops, first: usize) -> Runs {
        let is_inside = |axis: &usize| (loops.is_tile(*axis) || *axis >= first) && loops.moves(*axis, self.open);
        let (anywhere, linear): (SmallVec<[usize; 8]>, SmallVec<[usize; 8]>) =
            (0..loops.count()).filter(is_inside).partition(|&axis| loops.moves(axis, self.irregular));
        let steps = linear.into_iter().map(|axis| (self.steps[axis], loops.trips(axis) as i64));
        let Footprint { run, rows } = Footprint::of(steps);
        let places: f64 = anywhere.iter().map(|&axis| loops.trips(axis)).product();
        let apart = rows.iter().map(|row| power_of_two(row.0) as f64).fold(f64::INFINITY, f64::min);
        Runs {
            length: run as f64,
            count: places * rows.iter().map(|row| row.1 as f64).product::<f64>(),
            apart: if anywhere.is_empty() { apart } else { 1.0 },
        }
    }

    /// Distinct elements that the loops from axis `first` on reach.
    pub fn elements(&self, loops: &Loops, first: usize) -> f64 {
        let Runs { length, count, .. } = self.runs(loops, first);
        (length * count).min(self.buffer / self.size)
    }

    /// Bytes of their lines.
    fn footprint(&self, loops: &Loops, first: usize) -> f64 {
        self.room(loops, first, 0.0)
    }

    /// Bytes of a cache that they make unavailable to others, where lines `way` bytes apart share a set: with columns
    /// whose elements lie powers of two apart, most sets stay empty.
    fn room(&self, loops: &Loops, first: usize, way: f64) -> f64 {
        let Runs { length, count, apart } = self.runs(loops, first);
        let bytes = length * self.size;
        let each = match () {
            () if count == 1.0 || self.packed => bytes,
            () if bytes < LINE => (apart * self.size).min(way).max(LINE),
            () => bytes,
        };
        (count * each).min(self.buffer)
    }
}

/// Runs of neighbouring elements.
struct Runs {
    /// Elements of one.
    length: f64,
    count: f64,
    /// The greatest power of two that divides the distances between their starts, in elements.
    apart: f64,
}

/// The greatest power of two that divides it.
pub(super) fn power_of_two(number: i64) -> i64 {
    (number & number.wrapping_neg()).max(1)
}

/// The total bytes of all walks, given the bytes `of` each: among walks of one buffer inside of the same loops, one
/// fetches for the others.
fn joined(walks: &[Walk], of: impl Fn(&Walk) -> f64) -> f64 {
    let first = |walk: &Walk, position: usize| walks[..position].iter().all(|other| other.of != walk.of);
    let firsts = walks.iter().enumerate().filter(|(position, walk)| first(walk, *position));
    let most = |walk: &Walk| walks.iter().filter(|other| other.of == walk.of).map(&of).fold(0.0, f64::max);
    firsts.map(|(_, walk)| most(walk)).sum()
}

/// Bytes that the walks reach: each has to come from memory once.
pub(super) fn distinct(walks: &[Walk], loops: &Loops) -> f64 {
    joined(walks, |walk| walk.footprint(loops, 0))
}

/// Bytes that a cache of `capacity` fetches for all accesses together.
pub(super) fn traffic(walks: &[Walk], loops: &Loops, capacity: f64) -> f64 {
    // The first axis from which on the whole footprint stays in the cache.
    let total = |first: usize| joined(walks, |walk| walk.room(loops, first, capacity / WAYS));
    let fits = (0..=loops.count()).find(|&first| total(first) <= capacity).unwrap_or(loops.count());
    if fits == 0 {
        return 0.0;
    }
    // In the nearest enclosing loop, a trip finds the data that the one before left in the cache; further out they are
    // evicted.
    let nearest = (0..fits).rev().find(|&axis| !loops.is_tile(axis)).unwrap_or(0);
    let of = |walk: &Walk| {
        let outside = loops.around(walk.open).into_iter().filter(|&axis| axis < nearest);
        let trips: f64 = outside.map(|axis| loops.trips(axis)).product();
        trips * walk.footprint(loops, nearest)
    };
    match loops.is_reduce(nearest) {
        true => walks.iter().map(of).sum(),
        false => joined(walks, of),
    }
}
