//! Finds the values that are needed. Addresses are computed from the terms of their indices, so most index sums in the
//! graph are unused, and without IR passes, dead code would stay.

use super::emit::Result;
use super::{NodeId, Op, Renderer};
use tinyspec_ir::address::register;
use tinyspec_ir::instruction::Instruction;

impl Renderer<'_, '_> {
    /// For each node, whether an effect, a loop or another value needs it.
    pub(super) fn demanded(&self, instructions: &[NodeId]) -> Result<Vec<bool>> {
        let graph = self.graph;
        let mut demanded = vec![false; graph.len()];
        for &node in instructions {
            demanded[node.index()] = matches!(
                graph.op(node),
                Op::Range | Op::End | Op::If | Op::Endif | Op::Load | Op::Store | Op::AtomicAdd
            ) || Instruction::hint_of(graph, node).is_some();
        }
        // Sources precede users.
        for node in graph.nodes().rev().filter(|node| node.index() <= self.kernel.linear.index()) {
            if !demanded[node.index()] {
                continue;
            }
            let mut sources = graph.sources(node);
            let is_access = matches!(graph.op(node), Op::Load | Op::Store | Op::AtomicAdd)
                || Instruction::hint_of(graph, node).is_some();
            if let (true, Some((&place, others))) = (is_access, sources.split_first()) {
                sources = others;
                if register(graph, place).is_none() {
                    for part in self.parts_of_address(place)? {
                        demanded[part.index()] = true;
                    }
                }
            }
            if graph.op(node) == Op::Custom {
                sources = &sources[1..];
            }
            let difference = self.difference(node);
            for source in difference.as_ref().map_or(sources, |operands| operands) {
                demanded[source.index()] = true;
            }
        }
        Ok(demanded)
    }
}
