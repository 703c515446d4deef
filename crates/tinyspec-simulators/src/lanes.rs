//! The machine under every simulator: waves of lanes, their memory, and what orders their accesses.
//!
//! An instruction set brings its registers and instructions; from here it takes `memory` (bounds, alignment, initialisation,
//! races), `barrier`s with the vector clocks of `clock`, and the random but repeatable order of `schedule`.

pub(crate) mod barrier;
pub(crate) mod clock;
pub mod launch;
pub(crate) mod memory;
pub(crate) mod registers;
pub(crate) mod schedule;
pub(crate) mod shadow;

use crate::FaultKind;

/// A set of lanes of a wave, by bit.
pub(crate) type Mask = u64;

/// The lanes of a mask, in order.
pub(crate) fn lanes_of(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        if lane == 64 {
            return None;
        }
        mask &= mask - 1;
        Some(lane)
    })
}

/// The fault of an instruction; the simulator adds kernel and instruction.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub kind: FaultKind,
    /// The lanes it is about.
    pub lanes: Mask,
    pub reason: String,
}

impl Trouble {
    pub fn new(kind: FaultKind, lanes: Mask, reason: impl Into<String>) -> Box<Trouble> {
        Box::new(Trouble { kind, lanes, reason: reason.into() })
    }
}

/// Lanes in words: `lane 3`, `lanes 0-15, 17`.
pub(crate) fn show_lanes(mask: Mask) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for lane in lanes_of(mask) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == lane => *last = lane,
            _ => runs.push((lane, lane)),
        }
    }
    let run = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let text = runs.iter().map(run).collect::<Vec<_>>().join(", ");
    if mask.count_ones() == 1 { format!("lane {text}") } else { format!("lanes {text}") }
}
