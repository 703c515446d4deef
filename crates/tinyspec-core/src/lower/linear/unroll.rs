//! Unrolls innermost loops of multiply-adds. Loop control and address increments take four instructions per trip, which is
//! significant for a tile of few registers: it has twelve multiply-adds and eight loads. Instructions are not scheduled across
//! trips: the loads of all trips together would need more registers.

use super::Instructions;
use crate::lower::live::trips;
use tinyspec_backends::Target;
use tinyspec_ir::address::register;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::{Arg, Builder, Const, DType, Graph, NodeId, Op, Result};

/// Unroll factors; the first that divides the trip count is taken.
const TIMES: [i64; 4] = [4, 3, 2, 5];
/// With this many loads and multiply-adds in a trip, the loop overhead is less than a tenth.
const LARGE: usize = 40;
/// Multiply-adds of a trip below which their latency dominates.
const LEAST: usize = 4;
/// Trips of a launch below which the gain does not repay compiling the additional instructions.
const LEAST_TRIPS: i64 = 1 << 14;

/// Emits several trips of each innermost loop of multiply-adds as one.
///
/// # Errors
/// When [`tinyspec_ir::derive()`] rejects a node, which would be a bug in this pass.
pub fn unroll(graph: &mut Graph, linear: NodeId, target: &Target) -> Result<NodeId> {
    if !target.instructions.contains(&Instruction::SchedulingBarrier) {
        return Ok(linear);
    }
    let list = graph.sources(linear).to_vec();
    let (mut around, mut found) = (Vec::new(), Vec::new());
    for (position, &node) in list.iter().enumerate() {
        match graph.op(node) {
            Op::Range => {
                // Loops without a constant trip count serve many sizes.
                let outer = around
                    .iter()
                    .fold(1i64, |all, &range| all.saturating_mul(trips(graph, range).unwrap_or(LEAST_TRIPS)));
                found.extend(times(graph, &list[position..], outer).map(|(length, times)| (position, length, times)));
                around.push(node);
            }
            Op::End => drop(around.pop()),
            _ => {}
        }
    }
    if found.is_empty() {
        return Ok(linear);
    }
    let mut instructions = Instructions::default();
    let mut position = 0;
    for (start, length, times) in found {
        instructions.copy_all(graph, &list[position..start])?;
        position = start + length;
        unrolled(graph, &mut instructions, &list[start..position], times)?;
    }
    instructions.copy_all(graph, &list[position..])?;
    instructions.linear(graph)
}

/// The number of instructions of the loop that begins here, inside of loops of `outer` trips, and how many of its trips become one.
fn times(graph: &Graph, list: &[NodeId], outer: i64) -> Option<(usize, i64)> {
    let (&range, rest) = list.split_first()?;
    if matches!(graph.arg(range), Arg::Range { axis, .. } if axis.is_parallel()) {
        return None;
    }
    let trips = trips(graph, range)?;
    let times = TIMES.into_iter().find(|times| trips % times == 0 && trips >= 2 * times)?;
    let (mut products, mut loads) = (0, 0);
    for (position, &node) in rest.iter().enumerate() {
        let sources = graph.sources(node);
        match graph.op(node) {
            Op::End => {
                let is_tile = products >= LEAST && products > loads && products + loads < LARGE;
                return (is_tile && trips.saturating_mul(outer) >= LEAST_TRIPS).then_some((position + 2, times));
            }
            Op::Mulacc => products += 1,
            Op::Load | Op::Store if register(graph, sources[0]).is_some() => {}
            Op::Load if sources.len() == 1 => loads += 1,
            Op::Cast | Op::After => {}
            Op::Load | Op::Range | Op::If | Op::Store | Op::AtomicAdd | Op::Custom => return None,
            _ if sources.contains(&range) => return None,
            _ => {}
        }
    }
    None
}

/// Emits a loop that executes `times` trips in one.
fn unrolled(graph: &mut Graph, instructions: &mut Instructions, list: &[NodeId], times: i64) -> Result<()> {
    let &[range, ref body @ .., end] = list else { return Ok(()) };
    let bound = graph.index(trips(graph, range).unwrap_or(times) / times);
    let arg = graph.arg(range).clone();
    instructions.copy_as(graph, range, Op::Range, &[bound], arg)?;
    let mut registers: Vec<NodeId> = Vec::new();
    for &node in body.iter().filter(|&&node| matches!(graph.op(node), Op::Load | Op::Store)) {
        let place = graph.source(node, 0);
        if register(graph, place).is_some() && !registers.contains(&place) {
            registers.push(place);
        }
    }
    let before = instructions.replacements();
    let mut last = None;
    for trip in 0..times {
        instructions.restore(before.clone());
        // A trip reads values that the previous trip wrote to registers.
        let outside: Vec<NodeId> = registers.iter().copied().filter(|place| !body.contains(place)).collect();
        for (place, last) in outside.into_iter().zip(last.iter().cycle()) {
            let own = instructions.push(graph, Op::After, &[instructions.now(place), *last], Arg::None)?;
            instructions.replace(place, own);
        }
        for &node in body {
            let mut new = instructions.copy(graph, node)?;
            if graph.op(node) == Op::Cast && graph.source(node, 0) == range {
                new = index_of_trip(graph, instructions, new, times, trip)?;
                instructions.replace(node, new);
            }
            if let Some(last) = last.filter(|_| registers.contains(&node)) {
                let place = instructions.push(graph, Op::After, &[new, last], Arg::None)?;
                instructions.replace(node, place);
            }
        }
        let effect = instructions.now(graph.source(end, 0));
        let barrier = Arg::Text(Instruction::SchedulingBarrier.name().into());
        last = Some(match trip + 1 < times {
            true => instructions.push(graph, Op::Ins, &[effect], barrier)?,
            false => effect,
        });
    }
    let sources = [last.unwrap_or(end), instructions.now(range)];
    let new = instructions.copy_as(graph, end, Op::End, &sources, Arg::None)?;
    instructions.replace_effects(graph, body, new);
    Ok(())
}

/// The index of a trip, of which `times` are one of the loop that counts `index`.
fn index_of_trip(
    graph: &mut Graph,
    instructions: &mut Instructions,
    index: NodeId,
    times: i64,
    trip: i64,
) -> Result<NodeId> {
    let dtype: DType = graph.dtype(index);
    let [times, trip_of] = [times, trip].map(|number| graph.constant(Const::int(dtype, number.into())));
    let first = instructions.push(graph, Op::Mul, &[index, times], Arg::None)?;
    if trip == 0 { Ok(first) } else { instructions.push(graph, Op::Add, &[first, trip_of], Arg::None) }
}
