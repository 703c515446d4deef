//! The maximum of many floats by integer keys of the same order.
//!
//! A maximum that propagates nan and orders -0 below +0 takes six dependent instructions. A key takes three independent
//! ones, and the maximum of keys is one. If a target has an instruction that only drops nans, a loop of it needs no
//! keys: it records separately whether there was a nan. If neither nans nor signs of zeros matter (`optimize/nans.rs`),
//! a compare and select will do, which most processors have as one instruction.
//!
//! -inf has the least key, which is also the result of an empty maximum. Negative nans would be below it, so they wrap
//! around to the others above +inf.

use super::decompose::Emit;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_backends::Target;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::{Arg, Builder, DType, Graph, NodeId, Op, Result};

/// The least number of terms for which keys pay.
const LEAST: i64 = 16;

/// Turns Reduce-Max of floats into Reduces of integers.
pub(in super::super) fn by_keys(graph: &mut Graph, sink: NodeId, target: &Target) -> Result<NodeId> {
    let order = graph.reachable(&[sink]);
    let long = long(graph, &order);
    if long.is_empty() {
        return Ok(sink);
    }
    let mut new: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    // The keys of new values that were converted from keys.
    let mut keys: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in order {
        let mut sources: SmallVec<[NodeId; 4]> = graph.sources(node).iter().map(|source| new[source.index()]).collect();
        let arg = graph.arg(node).clone();
        let of_key = sources.first().and_then(|source| keys.get(source).copied());
        if of_key.is_none() && !long.contains(&node) || !matches!(arg, Arg::Reduce { op: Op::Max, .. }) {
            new[node.index()] = graph.add(graph.op(node), &sources, arg)?;
            continue;
        }
        let dtype = graph.dtype(node);
        let is_loop = sources.len() > 1;
        let has_greater = is_loop && dtype == DType::F32 && target.instructions.contains(&Instruction::Greater);
        let mut emit = Emit { graph, fused: false };
        let greatest = match of_key {
            Some(key) => {
                sources[0] = key;
                emit.graph.add(Op::Reduce, &sources, arg)?
            }
            None if has_greater => maximum_and_nan(&mut emit, sources, arg)?,
            // The lanes that are left are reduced by keys.
            None if plain(emit.graph, sources[0]).is_some() => {
                let most = emit.graph.add(Op::Reduce, &sources, arg)?;
                key(&mut emit, most)?
            }
            None => {
                sources[0] = key(&mut emit, sources[0])?;
                emit.graph.add(Op::Reduce, &sources, arg)?
            }
        };
        let value = float(&mut emit, greatest, dtype)?;
        keys.insert(value, greatest);
        new[node.index()] = value;
    }
    Ok(new[sink.index()])
}

/// The key of the maximum, from a Reduce of the numbers and one that detects a nan.
fn maximum_and_nan(emit: &mut Emit, mut sources: SmallVec<[NodeId; 4]>, arg: Arg) -> Result<NodeId> {
    let number = without_nan(emit.graph, sources[0]);
    let value = number.unwrap_or(sources[0]);
    let lowest = emit.number(value, f64::NEG_INFINITY);
    sources[0] = emit.instruction(Instruction::Greater, &[value, lowest])?;
    let most = emit.graph.add(Op::Reduce, &sources, arg.clone())?;
    let key = key(emit, most)?;
    if number.is_some() {
        return Ok(key);
    }
    sources[0] = emit.is_nan(value)?;
    let nan = emit.graph.add(Op::Reduce, &sources, arg)?;
    let above = emit.float(DType::F32, f64::NAN);
    let above = self::key(emit, above)?;
    emit.select(nan, above, key)
}

/// The operand of an op that replaces nan by -inf.
fn without_nan(graph: &Graph, chosen: NodeId) -> Option<NodeId> {
    let &[condition, least, value] = graph.sources(chosen) else { return None };
    let is_nan = graph.op(condition) == Op::CmpNe && graph.sources(condition) == [value, value];
    let is_least = graph.as_const(least).is_some_and(|least| least.as_float() == Some(f64::NEG_INFINITY));
    (graph.op(chosen) == Op::Where && is_nan && is_least).then_some(value)
}

/// The operand of an op that removes nan and the sign of zero.
pub(super) fn plain(graph: &Graph, number: NodeId) -> Option<NodeId> {
    let (Op::Add, &[chosen, zero]) = (graph.op(number), graph.sources(number)) else { return None };
    let is_zero = graph.as_const(zero)?.as_float().is_some_and(|zero| zero.to_bits() == 0);
    is_zero.then(|| without_nan(graph, chosen))?
}

/// The Reduce-Maxes of floats that have many terms. A Reduce over the axes of a tile may continue one over loops: the terms
/// of such a pair are counted together.
fn long(graph: &Graph, order: &[NodeId]) -> FxHashSet<NodeId> {
    let mut long = FxHashSet::default();
    for &node in order {
        let Some(own) = terms(graph, node) else { continue };
        let inner = Some(graph.source(node, 0)).and_then(|source| Some((source, terms(graph, source)?)));
        if own.saturating_mul(inner.map_or(1, |(_, terms)| terms)) >= LEAST {
            long.insert(node);
            long.extend(inner.map(|(source, _)| source));
        }
    }
    long
}

/// Terms of a Reduce-Max of floats, over loops and axes of the tile.
fn terms(graph: &Graph, node: NodeId) -> Option<i64> {
    let (Arg::Reduce { op: Op::Max, axes }, [value, loops @ ..]) = (graph.arg(node), graph.sources(node)) else {
        return None;
    };
    let trips = |&range: &NodeId| graph.as_int(graph.source(range, 0)).map_or(LEAST, |trips| trips as i64);
    let shape = &graph.props(*value).shape;
    let length = |&axis: &u32| shape.get(axis as usize).and_then(|dim| dim.as_const()).unwrap_or(1);
    let is_float = matches!(graph.dtype(node), DType::F32 | DType::F64);
    is_float.then(|| loops.iter().map(trips).chain(axes.iter().map(length)).fold(1, i64::saturating_mul))
}

/// The keys of a running maximum's terms; `None` if they are not floats.
pub(super) fn keys(graph: &mut Graph, terms: NodeId) -> Result<Option<NodeId>> {
    let has_keys = matches!(graph.dtype(terms), DType::F32 | DType::F64);
    has_keys.then(|| key(&mut Emit { graph, fused: false }, terms)).transpose()
}

/// The floats of keys.
pub(super) fn floats(graph: &mut Graph, keys: NodeId) -> Result<NodeId> {
    let dtype = if graph.dtype(keys) == DType::I32 { DType::F32 } else { DType::F64 };
    float(&mut Emit { graph, fused: false }, keys, dtype)
}

/// An integer for each float, in the same order; nans have the greatest.
fn key(emit: &mut Emit, value: NodeId) -> Result<NodeId> {
    let dtype = if emit.graph.dtype(value) == DType::F32 { DType::I32 } else { DType::I64 };
    let bits = emit.bitcast(value, dtype)?;
    let order = turned(emit, bits)?;
    let least = emit.int(dtype, -signed_nans(dtype));
    emit.op(Op::Add, order, least)
}

/// The float that has this key.
fn float(emit: &mut Emit, key: NodeId, dtype: DType) -> Result<NodeId> {
    let least = emit.integer(key, signed_nans(emit.graph.dtype(key)));
    let order = emit.op(Op::Add, key, least)?;
    let bits = turned(emit, order)?;
    emit.bitcast(bits, dtype)
}

/// The number of negative nans: all mantissas except that of the infinity.
fn signed_nans(dtype: DType) -> i128 {
    let mantissa = if dtype == DType::I32 { 23 } else { 52 };
    (1 << mantissa) - 1
}

/// Flips all bits but the sign if the sign is set: from bits to keys, and back.
fn turned(emit: &mut Emit, bits: NodeId) -> Result<NodeId> {
    let dtype = emit.graph.dtype(bits);
    let sign = emit.shift_right(bits, 8 * dtype.size() as i128 - 1)?;
    let turn = emit.mask(sign, greatest(dtype))?;
    emit.op(Op::Xor, bits, turn)
}

fn greatest(dtype: DType) -> i128 {
    dtype.int_range().map_or(0, |(_, greatest)| greatest)
}
