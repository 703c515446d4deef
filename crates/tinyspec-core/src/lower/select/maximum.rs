//! The maximum of many floats by integers of the same order.
//!
//! A maximum that lets every nan through and knows that -0 is below +0 takes six instructions, each of which waits for
//! the one before. A key takes four that wait for nothing, and the maximum of keys is one. Where a target has the
//! instruction that only loses the nans, a loop of it needs no keys: it notes apart whether there was a nan.

use super::decompose::Emit;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result};

/// Trips from which on keys pay.
const LEAST: i64 = 16;

/// Makes Reduces of integers out of Reduce-Max of floats.
pub(super) fn by_keys(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    if !order.iter().any(|&node| is_long(graph, node)) {
        return Ok(sink);
    }
    let mut new: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    // Keys of the new values that were made of some.
    let mut keys: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in order {
        let mut sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source.index()]).collect();
        let arg = graph.arg(node).clone();
        let of_key = sources.first().and_then(|source| keys.get(source).copied());
        if of_key.is_none() && !is_long(graph, node) || !matches!(arg, Arg::Reduce { op: Op::Max, .. }) {
            new[node.index()] = graph.add(graph.op(node), &sources, arg)?;
            continue;
        }
        let dtype = graph.dtype(node);
        let has_greater = dtype == DType::F32 && target.instructions.contains(&Instruction::Greater);
        let may_be_empty = sources[1..].iter().any(|&range| may_be_empty(graph, range));
        let mut emit = Emit { graph, fused: false };
        let mut greatest = match of_key {
            Some(key) => {
                sources[0] = key;
                emit.graph.add(Op::Reduce, &sources, arg)?
            }
            None if has_greater => apart(&mut emit, sources, arg)?,
            None => {
                sources[0] = key(&mut emit, sources[0])?;
                emit.graph.add(Op::Reduce, &sources, arg)?
            }
        };
        if may_be_empty {
            let least = emit.float(dtype, f64::NEG_INFINITY);
            let least = key(&mut emit, least)?;
            greatest = emit.op(Op::Max, greatest, least)?;
        }
        let bits = turned(&mut emit, greatest)?;
        let value = emit.bitcast(bits, dtype)?;
        keys.insert(value, greatest);
        new[node.index()] = value;
    }
    Ok(new[sink.index()])
}

/// The key of the greatest, by a Reduce of the numbers and one that finds a nan.
fn apart(emit: &mut Emit, mut sources: SmallVec<[NodeId; 4]>, arg: Arg) -> Result<NodeId> {
    let number = without_nan(emit.graph, sources[0]);
    let value = number.unwrap_or(sources[0]);
    let lowest = emit.number(value, f64::NEG_INFINITY);
    sources[0] = emit.instruction(Instruction::Greater, &[value, lowest])?;
    let most = emit.graph.add(Op::Reduce, &sources, arg.clone())?;
    let bits = emit.bitcast(most, DType::I32)?;
    let key = turned(emit, bits)?;
    if number.is_some() {
        return Ok(key);
    }
    sources[0] = emit.is_nan(value)?;
    let nan = emit.graph.add(Op::Reduce, &sources, arg)?;
    let greatest = emit.int(DType::I32, greatest(DType::I32));
    emit.select(nan, greatest, key)
}

/// The value that nans are taken out of, and -inf put in their place.
fn without_nan(graph: &Graph, chosen: NodeId) -> Option<NodeId> {
    let &[condition, least, value] = graph.sources(chosen) else { return None };
    let is_nan = graph.op(condition) == Op::CmpNe && graph.sources(condition) == [value, value];
    let is_least = graph.as_const(least).is_some_and(|least| least.as_float() == Some(f64::NEG_INFINITY));
    (graph.op(chosen) == Op::Where && is_nan && is_least).then_some(value)
}

/// A Reduce-Max of floats over a loop of many trips.
fn is_long(graph: &Graph, node: NodeId) -> bool {
    let Arg::Reduce { op: Op::Max, .. } = graph.arg(node) else { return false };
    let trips = |&range: &NodeId| graph.as_int(graph.source(range, 0)).map_or(LEAST, |trips| trips as i64);
    let loops = &graph.sources(node)[1..];
    matches!(graph.dtype(node), DType::F32 | DType::F64)
        && loops.iter().map(trips).fold(1, i64::saturating_mul) >= LEAST
}

/// The loop may make no trip; the least key is that of no number.
fn may_be_empty(graph: &Graph, range: NodeId) -> bool {
    let bound = graph.props(graph.source(range, 0)).interval.int();
    bound.is_none_or(|(least, _)| least < 1)
}

/// An integer for each float, in their order; the greatest one for any nan.
fn key(emit: &mut Emit, value: NodeId) -> Result<NodeId> {
    let dtype = if emit.graph.dtype(value) == DType::F32 { DType::I32 } else { DType::I64 };
    let bits = emit.bitcast(value, dtype)?;
    let key = turned(emit, bits)?;
    let nan = emit.is_nan(value)?;
    let greatest = emit.int(dtype, greatest(dtype));
    emit.select(nan, greatest, key)
}

/// All bits but the sign turned round where the sign is set: from bits to keys, and back.
fn turned(emit: &mut Emit, bits: NodeId) -> Result<NodeId> {
    let dtype = emit.graph.dtype(bits);
    let sign = emit.shift_right(bits, 8 * dtype.size() as i128 - 1)?;
    let turn = emit.mask(sign, greatest(dtype))?;
    emit.op(Op::Xor, bits, turn)
}

fn greatest(dtype: DType) -> i128 {
    dtype.int_range().map_or(0, |(_, greatest)| greatest)
}
