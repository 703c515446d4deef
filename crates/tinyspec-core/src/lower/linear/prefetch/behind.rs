//! Operands of a tile's epilogue, such as a matrix that is added to the product. If they come from far away, they are fetched before
//! the unrolled loop of the multiply-adds; otherwise the next tile would wait for them too.

use super::{Fetch, LINE, LoopNest, bytes};
use rustc_hash::FxHashSet;
use tinyspec_backends::Target;
use tinyspec_ir::address::in_param;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::instructions::is_otherwise;
use tinyspec_ir::{Graph, NodeId, Op};

/// The most lines fetched for a tile: the first cache tracks no more misses at once.
const MOST: usize = 64;

pub(super) fn find(graph: &Graph, nest: &LoopNest, target: &Target, found: &mut dyn FnMut(usize, Fetch)) {
    for own in nest.loops.iter().filter(|own| own.unrolled > 1) {
        let visible = visible(graph, &nest.list[..own.start]);
        let mut lines = FxHashSet::default();
        for load in loads_behind(graph, nest, own.end) {
            let Some((buffer, sum)) = in_param(graph, graph.source(load, 0)) else { continue };
            let is_known = sum.atoms().all(|atom| visible.contains(&atom) || graph.op(atom) == Op::Param);
            let is_far = bytes(graph, buffer) > target.cache_bytes[1] as i64;
            let line = sum.constant().saturating_mul(graph.dtype(buffer).size() as i64) / LINE;
            if is_known && is_far && lines.len() < MOST && lines.insert((buffer, sum.without_constant(), line)) {
                found(own.start, Fetch { buffer, index: sum, instruction: Instruction::Prefetch });
            }
        }
    }
}

/// The Loads between the end of a loop and the next loop; its other versions do not stand in between.
fn loads_behind(graph: &Graph, nest: &LoopNest, end: usize) -> Vec<NodeId> {
    let mut rest = &nest.list[end + 1..];
    while let [endif, block, ..] = *rest
        && is_otherwise(graph, endif, block)
        && let Some(end) = rest.iter().position(|&node| graph.op(node) == Op::Endif && graph.source(node, 0) == block)
    {
        rest = &rest[end + 1..];
    }
    let before = rest.iter().copied().take_while(|&node| !matches!(graph.op(node), Op::Range | Op::End));
    before.filter(|&node| graph.op(node) == Op::Load).collect()
}

/// The nodes that are not in a closed loop or block.
fn visible(graph: &Graph, list: &[NodeId]) -> FxHashSet<NodeId> {
    let (mut scope, mut open) = (Vec::new(), Vec::new());
    for &node in list {
        match graph.op(node) {
            Op::Range | Op::If => open.push(scope.len()),
            Op::End | Op::Endif => scope.truncate(open.pop().unwrap_or(0)),
            _ => {}
        }
        scope.push(node);
    }
    scope.into_iter().collect()
}
