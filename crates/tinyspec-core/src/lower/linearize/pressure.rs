//! Orders that shorten live ranges, to reduce register pressure.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::{AddrSpace, Builder, DType, Graph, NodeId, Op};

/// Pairs of vectors to compute one right after the other: both are shuffles of the same two vectors, which have no other use, so
/// that two values die where two are defined. A transpose in registers consists of rounds of such pairs. If each vector were
/// computed before its own first use, a block of 16 would keep 32 alive.
pub(super) fn partners(graph: &Graph, order: &[NodeId]) -> FxHashMap<NodeId, NodeId> {
    let mut pairs: FxHashMap<[NodeId; 2], SmallVec<[NodeId; 2]>> = FxHashMap::default();
    let (mut uses, mut last_user) = (vec![0u32; graph.len()], vec![None; graph.len()]);
    for &node in order.iter().filter(|&&node| !is_lane(graph, node)) {
        let mut operands: SmallVec<[NodeId; 4]> = SmallVec::new();
        for &source in graph.sources(node) {
            let operand = if is_lane(graph, source) { graph.source(source, 0) } else { source };
            if last_user[operand.index()].replace(node) != Some(node) {
                uses[operand.index()] += 1;
                operands.push(operand);
            }
        }
        if let (Op::Stack, &[a, b]) = (graph.op(node), &operands[..]) {
            pairs.entry([a.min(b), a.max(b)]).or_default().push(node);
        }
    }
    let mut partners = FxHashMap::default();
    for (operands, nodes) in pairs {
        if let (&[a, b], true) = (&nodes[..], operands.iter().all(|operand| uses[operand.index()] == 2)) {
            partners.extend([(a, b), (b, a)]);
        }
    }
    partners
}

/// A lane of a vector.
fn is_lane(graph: &Graph, node: NodeId) -> bool {
    let props = graph.props(node);
    graph.op(node) == Op::Index && props.shape.is_empty() && props.addrspace.is_none()
}

/// The effects of Groups and Sinks, with Stores of values that depend on the same Loads next to each other: two blocks that are
/// transposed in registers, and whose rows are adjacent in memory, are computed one after the other. Stores of values that
/// depend on a single Load stay in memory order.
pub(super) fn effects(graph: &Graph, order: &[NodeId]) -> FxHashMap<NodeId, Vec<NodeId>> {
    /// The first and the last Load of a value.
    type Loads = (NodeId, NodeId);
    let mut loads: Vec<Option<Loads>> = vec![None; graph.len()];
    let mut effects = FxHashMap::default();
    for &node in order {
        let sources = graph.sources(node);
        match graph.op(node) {
            Op::Load => loads[node.index()] = Some((node, node)),
            Op::Group | Op::Sink => {
                let mut firsts: FxHashMap<Loads, usize> = FxHashMap::default();
                let mut placed: Vec<(usize, NodeId)> = sources.iter().copied().enumerate().collect();
                for (place, source) in &mut placed {
                    if let (Op::Store, Some(loads)) = (graph.op(*source), loads[source.index()])
                        && loads.0 != loads.1
                    {
                        *place = *firsts.entry(loads).or_insert(*place);
                    }
                }
                placed.sort_by_key(|&(place, _)| place);
                effects.insert(node, placed.into_iter().map(|(_, source)| source).collect());
            }
            Op::Store if graph.props(sources[0]).addrspace != Some(AddrSpace::Reg) => {
                loads[node.index()] = loads[sources[1].index()];
            }
            _ if graph.dtype(node) == DType::Void => {}
            _ => {
                let all = sources.iter().filter_map(|source| loads[source.index()]);
                loads[node.index()] = all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            }
        }
    }
    effects
}
