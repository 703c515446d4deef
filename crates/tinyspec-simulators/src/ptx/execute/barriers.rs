//! Barriers: their completion, and deadlocks.

use super::super::decode::{Action, BarrierKind};
use super::warp::{State, Warp};
use super::{Shared, Stop};
use crate::FaultKind;
use crate::lanes::{Mask, Trouble, show_lanes};

/// Lets the warps go on that wait at a complete barrier.
pub(super) fn complete(shared: &mut Shared, warps: &mut [Warp], number: usize) {
    let (count, threads) = shared.barriers.votes(number);
    for warp in shared.barriers.complete(number, &mut shared.clocks) {
        let warp = &mut warps[warp];
        for strand in 0..warp.strands.len() {
            let waiting = warp.strands[strand];
            if waiting.state != State::Waiting(number) {
                continue;
            }
            let action = &shared.code.steps[waiting.place as usize].action;
            if let Action::Barrier { kind, to: Some(to), .. } = *action {
                let to = to as usize;
                let verdict = match kind {
                    BarrierKind::And => count == threads,
                    _ => count > 0,
                };
                if kind == BarrierKind::Count {
                    for lane in crate::lanes::lanes_of(waiting.mask.into()) {
                        warp.words.values[to][lane] = count;
                    }
                    warp.words.mark(to as u32, waiting.mask, u32::MAX);
                } else {
                    let verdict = if verdict { waiting.mask } else { 0 };
                    warp.predicates[to] = (warp.predicates[to] & !waiting.mask) | verdict;
                    warp.predicates_known[to] |= waiting.mask;
                }
            }
            warp.strands[strand].state = State::Ready;
            warp.strands[strand].place += 1;
        }
    }
}

/// No strand is ready: all have ended, or some wait for an event that does not come.
pub(super) fn end(shared: &Shared, warps: &[Warp]) -> Result<(), Stop> {
    for (number, warp) in warps.iter().enumerate() {
        for strand in &warp.strands {
            let mut elsewhere: Vec<String> = Vec::new();
            for (other, warp) in warps.iter().enumerate() {
                let ended = warp.all & !warp.live;
                if ended != 0 {
                    elsewhere.push(format!("{} of warp {other} ended", show_lanes(ended.into())));
                }
                for apart in warp.strands.iter().filter(|apart| other != number || apart.place != strand.place) {
                    let line = shared.code.steps[apart.place as usize].line;
                    let lanes = show_lanes(apart.mask.into());
                    if apart.place != strand.place {
                        elsewhere.push(format!("{lanes} of warp {other} wait at line {line}"));
                    }
                }
            }
            elsewhere.truncate(4);
            let elsewhere = match elsewhere.is_empty() {
                true => "nobody else is left".into(),
                false => elsewhere.join("; "),
            };
            let reason = match strand.state {
                State::Waiting(barrier) => {
                    let (arrived, expected) = shared.barriers.state(barrier);
                    format!("wait at barrier {barrier}, which {arrived} of {expected} threads reach: {elsewhere}")
                }
                State::Meeting(members) => {
                    let missing = show_lanes(Mask::from(members & warp.live & !strand.mask));
                    format!("wait for {missing}, which do not come here: {elsewhere}")
                }
                State::Ready => continue,
            };
            let trouble = Trouble::new(FaultKind::Divergence, strand.mask.into(), reason);
            return Err(Stop { trouble, place: strand.place as usize, warp: number });
        }
    }
    Ok(())
}
