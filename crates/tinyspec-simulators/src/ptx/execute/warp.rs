//! A warp: its registers, and its lanes in strands that run apart.

use super::super::arithmetic::WARP;
use super::super::decode::Code;
use crate::lanes::registers::File;
use smallvec::SmallVec;

/// Lanes that are at the same instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strand {
    pub place: u32,
    pub mask: u32,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// At a `.sync` instruction, for the other lanes of the mask.
    Meeting(u32),
    /// Behind a barrier that is not complete.
    Waiting(usize),
}

pub(super) struct Warp {
    pub words: File<u32, WARP>,
    pub longs: File<u64, WARP>,
    pub predicates: Vec<u32>,
    pub predicates_known: Vec<u32>,
    pub strands: SmallVec<[Strand; 4]>,
    /// The lanes that threads run on.
    pub all: u32,
    /// Those that have not ended.
    pub live: u32,
}

impl Warp {
    pub fn new(code: &Code) -> Warp {
        Warp {
            // The last register of each kind is scratch for trials.
            words: File::new(code.words as usize + 1),
            longs: File::new(code.longs as usize + 1),
            predicates: vec![0; code.predicates as usize],
            predicates_known: vec![0; code.predicates as usize],
            strands: SmallVec::new(),
            all: 0,
            live: 0,
        }
    }

    /// Nothing has run.
    pub fn reset(&mut self, mask: u32) {
        self.words.reset();
        self.longs.reset();
        self.predicates_known.fill(0);
        self.strands.clear();
        self.strands.push(Strand { place: 0, mask, state: State::Ready });
        (self.all, self.live) = (mask, mask);
    }

    /// Some lanes of a strand go on alone.
    pub fn split(&mut self, strand: usize, lanes: u32, place: u32) {
        self.strands[strand].mask &= !lanes;
        self.strands.push(Strand { place, mask: lanes, state: State::Ready });
    }

    /// Joins the strands that meet at a place for the same members, once all of those are there.
    pub fn join(&mut self, place: u32, members: u32, required: u32) {
        let meets = |strand: &Strand| strand.place == place && strand.state == State::Meeting(members);
        let together = self.strands.iter().filter(|strand| meets(strand)).fold(0, |mask, strand| mask | strand.mask);
        if together & required == required {
            self.strands.retain(|strand| !meets(strand));
            self.strands.push(Strand { place, mask: together, state: State::Ready });
        }
    }

    /// Ends some lanes of a strand; others may have waited for them.
    pub fn exit(&mut self, lanes: u32) {
        self.live &= !lanes;
        for strand in &mut self.strands {
            strand.mask &= !lanes;
        }
        self.strands.retain(|strand| strand.mask != 0);
        let meeting: SmallVec<[(u32, u32); 4]> = self
            .strands
            .iter()
            .filter_map(|strand| match strand.state {
                State::Meeting(members) => Some((strand.place, members)),
                _ => None,
            })
            .collect();
        for (place, members) in meeting {
            self.join(place, members, members & self.live);
        }
    }
}
