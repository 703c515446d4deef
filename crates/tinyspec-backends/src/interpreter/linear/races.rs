//! Detects races between iterations of parallel loops, by recording for each element which iterations last wrote and
//! read it.

use super::instruction::{Code, Space};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The kind of parallelism of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Parallel {
    /// Serial.
    No,
    /// Iterations are workgroups.
    Grid,
    /// Iterations are members of a workgroup, which wait for each other at the end of the loop.
    Group,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Touch {
    Read,
    Write,
    /// Atomically.
    Add,
}

/// The current iteration of all parallel loops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Iteration {
    grid: SmallVec<[i64; 4]>,
    group: SmallVec<[i64; 4]>,
    /// The number of the grid, and of the loop nest of a workgroup, each of which run in sequence.
    grids: u64,
    groups: u64,
}

#[derive(Default)]
struct Cell {
    writer: Option<(Iteration, Touch)>,
    reader: Option<Iteration>,
}

/// The loops of a running kernel, and the records of its memory.
#[derive(Default)]
pub(in super::super) struct Watch {
    here: Iteration,
    cells: FxHashMap<(Space, usize), Cell>,
}

impl Watch {
    fn counters(&mut self, level: Parallel) -> Option<&mut SmallVec<[i64; 4]>> {
        match level {
            Parallel::No => None,
            Parallel::Grid => Some(&mut self.here.grid),
            Parallel::Group => Some(&mut self.here.group),
        }
    }

    pub fn enter(&mut self, level: Parallel) {
        match level {
            Parallel::Grid if self.here.grid.is_empty() => self.here.grids += 1,
            Parallel::Group if self.here.group.is_empty() => self.here.groups += 1,
            _ => {}
        }
        if let Some(counters) = self.counters(level) {
            counters.push(0);
        }
    }

    pub fn next(&mut self, level: Parallel) {
        if let Some(counter) = self.counters(level).and_then(|counters| counters.last_mut()) {
            *counter += 1;
        }
    }

    pub fn leave(&mut self, level: Parallel) {
        if let Some(counters) = self.counters(level) {
            counters.pop();
        }
        // Everything after the outermost loop comes after all of its iterations.
        match level {
            Parallel::Grid if self.here.grid.is_empty() => self.here.grids += 1,
            Parallel::Group if self.here.group.is_empty() => self.here.groups += 1,
            _ => {}
        }
    }

    /// Records an access; if it races, returns a description.
    pub fn touch(&mut self, code: &Code, space: Space, element: usize, touch: Touch) -> Option<String> {
        let cell = self.cells.entry((space, element)).or_default();
        let is_local = matches!(space, Space::Local(_));
        let writer = cell.writer.as_ref().filter(|(other, before)| {
            !(touch == Touch::Add && *before == Touch::Add) && meets(&self.here, other, is_local)
        });
        let reader = cell.reader.as_ref().filter(|other| touch != Touch::Read && meets(&self.here, other, is_local));
        let found = writer.map(|(other, _)| (other, "wrote")).or(reader.map(|other| (other, "read")));
        if let Some((other, did)) = found {
            let does = match touch {
                Touch::Read => "reads",
                Touch::Write => "writes",
                Touch::Add => "adds to",
            };
            let (mine, other) = (self.here.show(), other.show());
            let memory = match space {
                Space::Param(slot) => code.buffer(slot),
                Space::Local(_) => "a local buffer".into(),
            };
            return Some(format!(
                "iteration {mine} {does} element {element} of {memory}, which iteration {other} {did}"
            ));
        }
        match touch {
            Touch::Read => cell.reader = Some(self.here.clone()),
            _ => cell.writer = Some((self.here.clone(), touch)),
        }
        None
    }
}

/// Whether two iterations run concurrently.
fn meets(a: &Iteration, b: &Iteration, is_local: bool) -> bool {
    if a.grids != b.grids {
        return false;
    }
    if a.grid != b.grid {
        // Each workgroup has its own local memory.
        return !is_local;
    }
    a.groups == b.groups && a.group != b.group
}

impl Iteration {
    fn show(&self) -> String {
        let counters: Vec<String> = self.grid.iter().chain(&self.group).map(i64::to_string).collect();
        format!("({})", counters.join(", "))
    }
}
