//! Loops over columns, the last of which lie beyond a matrix: loads under masks keep the processor from reading far
//! ahead, so the loop is there twice, and all columns but the last few go through the one without masks.

use super::emit::{Kind, Result};
use super::{NodeId, Op, Renderer};
use llvm_sys::LLVMIntPredicate::LLVMIntEQ;
use llvm_sys::LLVMOpcode::LLVMAnd;
use std::collections::{BTreeMap, HashSet};
use tinyspec_ir::{Builder, dim};

/// Instructions of a loop that is worth a second copy.
const LARGEST: usize = 512;
/// Trips from which on the choice costs nothing.
const LEAST_TRIPS: i128 = 8;

/// A loop, and the gates of its loads that it does not change.
struct Unswitched {
    end: usize,
    gates: Vec<NodeId>,
    invariant: Vec<NodeId>,
}

impl Renderer<'_, '_> {
    /// Instructions in their order.
    pub(super) fn sequence(&mut self, instructions: &[NodeId]) -> Result<()> {
        let mut position = 0;
        while let Some(&node) = instructions.get(position) {
            match self.unswitched(&instructions[position..]) {
                Some(found) => {
                    let after = position + found.end + 1;
                    self.both_ways(&instructions[position..after], &found)?;
                    position = after;
                }
                None => {
                    self.instruction(node)?;
                    position += 1;
                }
            }
        }
        Ok(())
    }

    /// The innermost loop that begins here, if it has masks of its own columns.
    fn unswitched(&self, instructions: &[NodeId]) -> Option<Unswitched> {
        let graph = self.graph;
        let (&range, rest) = instructions.split_first().filter(|(first, _)| graph.op(**first) == Op::Range)?;
        let trips = graph.as_int(graph.source(range, 0))?;
        let mut changing: HashSet<NodeId> = HashSet::from([range]);
        let (mut gates, mut invariant) = (Vec::new(), Vec::new());
        for (position, &node) in rest.iter().enumerate().take(LARGEST) {
            let sources = graph.sources(node);
            match graph.op(node) {
                Op::End => {
                    let found = Unswitched { end: position + 1, gates, invariant };
                    return (!found.gates.is_empty() && trips >= LEAST_TRIPS).then_some(found);
                }
                Op::Range => return None,
                Op::Load | Op::Store | Op::AtomicAdd | Op::After | Op::If | Op::Endif => {
                    changing.insert(node);
                }
                _ if sources.iter().any(|source| changing.contains(source)) => {
                    changing.insert(node);
                }
                _ => invariant.push(node),
            }
            if let (Op::Load, &[_, _, gate]) = (graph.op(node), sources)
                && !changing.contains(&gate)
                && !gates.contains(&gate)
                && self.lanes_of_mask(gate).is_some()
            {
                gates.push(gate);
            }
        }
        None
    }

    /// Lanes of a vector of bools that fill an integer.
    fn lanes_of_mask(&self, gate: NodeId) -> Option<i64> {
        let shape = dim::static_shape(&self.graph.props(gate).shape)?;
        shape.first().copied().filter(|lanes| [8, 16, 32, 64].contains(lanes))
    }

    fn both_ways(&mut self, instructions: &[NodeId], found: &Unswitched) -> Result<()> {
        for &node in &found.invariant {
            self.instruction(node)?;
        }
        let mut all = None;
        for &gate in &found.gates {
            let mask = self.value(gate)?;
            let bits = match mask.lanes {
                8 => Kind::I8,
                16 => Kind::I16,
                32 => Kind::I32,
                _ => Kind::I64,
            };
            let bits = self.emit.reinterpret(mask, bits, 1)?;
            let ones = self.emit.int(bits.kind, 1, -1);
            let open = self.emit.compare_ints(LLVMIntEQ, bits, ones)?;
            all = Some(match all {
                Some(all) => self.emit.binary(LLVMAnd, all, open)?,
                None => open,
            });
        }
        let Some(all) = all else { return Ok(()) };
        let (whole, masked, after) = (self.emit.new_block(), self.emit.new_block(), self.emit.new_block());
        self.emit.branch(all, whole, masked)?;
        let (values, addresses) = (self.values.clone(), self.addresses.clone());
        let before = self.registers.snapshot();
        self.emit.enter(whole);
        self.open.extend(&found.gates);
        instructions.iter().try_for_each(|&node| self.instruction(node))?;
        self.open.clear();
        let from_whole = self.emit.block();
        self.emit.jump(after);
        // What was computed on the one way does not exist on the other.
        self.values.clone_from(&values);
        self.addresses = addresses.clone();
        let one = self.registers.restore(before);
        self.emit.enter(masked);
        instructions.iter().try_for_each(|&node| self.instruction(node))?;
        let from_masked = self.emit.block();
        self.emit.jump(after);
        self.values = values;
        self.addresses = addresses;
        self.emit.enter(after);
        let other = self.registers.restore(BTreeMap::new());
        for (slot, value) in one {
            let Some(&masked) = other.get(&slot) else { continue };
            let mut joined = value;
            if masked != value {
                joined = self.emit.phi(value.kind, value.lanes);
                self.emit.arrive(joined, value, from_whole)?;
                self.emit.arrive(joined, masked, from_masked)?;
            }
            self.registers.write(slot, joined);
        }
        Ok(())
    }
}
