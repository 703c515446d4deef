//! Reads instruction sequences: lanes, gates and conditions, and the versions of a loop that unswitching has made.

use crate::{Builder, DType, Graph, NodeId, Op, address::behind_after, masks::conjuncts};
use rustc_hash::FxHashMap;

/// The number of lanes of a machine value; 1 for a scalar.
pub fn lanes(graph: &Graph, node: NodeId) -> i64 {
    graph.props(node).shape.first().and_then(|dim| dim.as_const()).unwrap_or(1)
}

/// If a gate's lanes compare constants with one number (`constant < number`), the largest constant and the number: all lanes are open
/// exactly if that comparison holds.
pub fn greatest_bound(graph: &Graph, gate: NodeId) -> Option<(NodeId, NodeId)> {
    let (Op::CmpLt, &[bounds, numbers]) = (graph.op(gate), graph.sources(gate)) else { return None };
    if (graph.op(bounds), graph.op(numbers)) != (Op::Stack, Op::Expand) || graph.dtype(bounds).is_unsigned() {
        return None;
    }
    let number = graph.source(numbers, 0);
    let known: Option<Vec<i128>> = graph.sources(bounds).iter().map(|&bound| graph.as_int(bound)).collect();
    let (greatest, _) = known?.into_iter().enumerate().max_by_key(|&(_, bound)| bound)?;
    graph.props(number).shape.is_empty().then_some((graph.source(bounds, greatest), number))
}

/// The lanes of a gate that may be open, one bit each of the first 128: all but those that a comparison of constants among its
/// conjuncts closes. A scalar gate applies to every lane.
pub fn open_lanes(graph: &Graph, gate: NodeId) -> u128 {
    let count = match lanes(graph, gate) {
        1 => return u128::MAX,
        count => count.clamp(0, u128::BITS.into()) as usize,
    };
    let constants = |node: NodeId| -> Option<Vec<i128>> {
        let sources = graph.sources(node);
        match graph.op(node) {
            Op::Stack => sources.iter().map(|&lane| graph.as_int(lane)).collect(),
            Op::Expand => Some(vec![graph.as_int(sources[0])?; count]),
            _ => None,
        }
    };
    let set = |is_open: &dyn Fn(usize) -> bool| (0..count).fold(0, |set, lane| set | u128::from(is_open(lane)) << lane);
    let mut open = set(&|_| true);
    for (conjunct, holds) in conjuncts(graph, gate, true) {
        let known: Option<Vec<bool>> = match (graph.op(conjunct), graph.sources(conjunct)) {
            (Op::CmpLt, &[a, b]) => {
                constants(a).zip(constants(b)).map(|(a, b)| a.iter().zip(b).map(|(a, b)| *a < b).collect())
            }
            _ => constants(conjunct).map(|lanes| lanes.iter().map(|&lane| lane != 0).collect()),
        };
        if let Some(known) = known {
            open &= set(&|lane| known.get(lane).is_none_or(|&known| known == holds));
        }
    }
    open
}

/// The condition that this one negates: `c` for `c != true`.
pub fn negated(graph: &Graph, condition: NodeId) -> Option<NodeId> {
    match (graph.op(condition), graph.sources(condition)) {
        (Op::CmpNe, &[negated, one]) if graph.dtype(negated) == DType::Bool && graph.as_int(one) == Some(1) => {
            Some(negated)
        }
        _ => None,
    }
}

/// The condition of an If, without the effects that it depends on.
pub fn condition(graph: &Graph, block: NodeId) -> NodeId {
    behind_after(graph, graph.source(block, 0))
}

/// Whether `next`, the instruction after `endif`, is the If of the opposite condition: exactly one of the two blocks runs.
pub fn is_otherwise(graph: &Graph, endif: NodeId, next: NodeId) -> bool {
    (graph.op(endif), graph.op(next)) == (Op::Endif, Op::If)
        && negated(graph, condition(graph, next)) == Some(condition(graph, graph.source(endif, 0)))
}

/// A block that is open.
struct Open {
    /// The loops of the block before it, if that has the opposite condition.
    opposite: Option<Vec<NodeId>>,
    /// Its own loops, only the first version of each.
    loops: Vec<NodeId>,
}

/// For each further version of a loop, the first. The versions stand in adjacent blocks of opposite conditions.
pub fn versions(graph: &Graph, instructions: &[NodeId]) -> FxHashMap<NodeId, NodeId> {
    let mut first: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut open = vec![Open { opposite: None, loops: Vec::new() }];
    let mut closed = Vec::new();
    let mut before = None;
    for &node in instructions {
        match graph.op(node) {
            Op::If => {
                let is_second = before.is_some_and(|before| is_otherwise(graph, before, node));
                let opposite = is_second.then(|| std::mem::take(&mut closed));
                open.push(Open { opposite, loops: Vec::new() });
            }
            Op::Endif => {
                let Some(Open { opposite, loops }) = open.pop() else { continue };
                let paired = opposite.filter(|opposite| opposite.len() == loops.len());
                match (paired, open.last_mut()) {
                    (Some(opposite), _) => first.extend(loops.iter().copied().zip(opposite)),
                    (None, Some(around)) => around.loops.extend(&loops),
                    (None, None) => {}
                }
                closed = loops;
            }
            Op::Range => open.last_mut().into_iter().for_each(|block| block.loops.push(node)),
            _ => {}
        }
        before = Some(node);
    }
    // Versions of versions.
    let root = |mut range: NodeId| {
        while let Some(&further) = first.get(&range) {
            range = further;
        }
        range
    };
    first.keys().map(|&range| (range, root(range))).collect()
}
