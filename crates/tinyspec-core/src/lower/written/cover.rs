//! Which written buffers a kernel fills completely before it looks at them.

use rustc_hash::FxHashSet;
use tinyspec_ir::{Arg, Builder, Graph, NodeId, Op};

/// Every element of the output is stored, whatever it was, and no value depends on what it was.
pub(super) fn is_overwritten(graph: &Graph, sink: NodeId, slot: u32) -> bool {
    let live = graph.reachable(&[sink]);
    let is_buffer = |mut node: NodeId| {
        while graph.op(node) == Op::After {
            node = graph.source(node, 0);
        }
        matches!(graph.arg(node), Arg::Param { slot: other, addrspace: Some(_), .. } if *other == slot)
    };
    let mut covered = false;
    for &node in &live {
        match graph.op(node) {
            Op::Load | Op::AtomicAdd if is_buffer(graph.source(graph.source(node, 0), 0)) => return false,
            Op::Store if graph.op(graph.source(node, 0)) == Op::Index => {
                let place = graph.source(node, 0);
                if is_buffer(graph.source(place, 0)) {
                    let size = graph.props(graph.source(place, 0)).element_count().as_const();
                    covered |= graph.sources(node).len() == 2
                        && size.is_some_and(|size| walks_all(graph, &live, node, graph.source(place, 1), size));
                }
            }
            _ => {}
        }
    }
    covered
}

/// The index counts from 0 to `size` as the loops around the store run: mixed radix without a gap.
fn walks_all(graph: &Graph, live: &[NodeId], store: NodeId, index: NodeId, size: i64) -> bool {
    let mut terms: Vec<(i64, i64, NodeId)> = Vec::new();
    let mut pending = vec![(index, 1i64)];
    while let Some((node, factor)) = pending.pop() {
        match (graph.op(node), graph.sources(node)) {
            (Op::Add, &[a, b]) => pending.extend([(a, factor), (b, factor)]),
            (Op::Mul, &[a, b]) => match (graph.as_int(a), graph.as_int(b)) {
                (_, Some(number)) if let Ok(number) = i64::try_from(number) => {
                    pending.push((a, factor.wrapping_mul(number)));
                }
                (Some(number), _) if let Ok(number) = i64::try_from(number) => {
                    pending.push((b, factor.wrapping_mul(number)));
                }
                _ => return false,
            },
            (Op::Range, &[bound]) => {
                let Some(trips) = graph.as_int(bound).and_then(|trips| i64::try_from(trips).ok()) else { return false };
                terms.push((factor, trips, node));
            }
            (Op::Const, _) if graph.as_int(node) == Some(0) => {}
            _ => return false,
        }
    }
    terms.sort_unstable();
    let mut next = 1;
    for &(factor, trips, _) in &terms {
        if trips == 1 {
            continue;
        }
        if factor != next {
            return false;
        }
        next = next.wrapping_mul(trips);
    }
    let ranges: FxHashSet<NodeId> = terms.iter().map(|term| term.2).collect();
    next == size && ranges.len() == terms.len() && around(graph, live, store).all(|range| runs(graph, range))
}

/// Loops that the store stands in.
fn around<'a>(graph: &'a Graph, live: &'a [NodeId], store: NodeId) -> impl Iterator<Item = NodeId> + 'a {
    let mut inside: FxHashSet<NodeId> = FxHashSet::from_iter([store]);
    live.iter().filter_map(move |&node| match (graph.op(node), graph.sources(node)) {
        (Op::End, &[body, range]) if inside.contains(&body) => {
            inside.insert(node);
            Some(range)
        }
        (Op::Group, sources) if sources.iter().any(|source| inside.contains(source)) => {
            inside.insert(node);
            None
        }
        _ => None,
    })
}

/// The loop runs at least once.
fn runs(graph: &Graph, range: NodeId) -> bool {
    graph.as_int(graph.source(range, 0)).is_some_and(|trips| trips > 0)
}
