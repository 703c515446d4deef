//! Loops, conditions, and the registers that are promoted to SSA values across them.

use super::emit::{Block, Result, Value};
use super::{Placed, Renderer};
use llvm_sys::{LLVMIntPredicate::LLVMIntSLT, LLVMOpcode::LLVMAdd};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use tinyspec_ir::address::register;
use tinyspec_ir::{Arg, AxisType, Builder, Graph, NodeId, Op};

/// A loop or condition that is open.
pub(super) struct Level {
    /// The Range or If.
    pub(super) node: NodeId,
    /// The block before it: invariant values are computed at its end.
    pub(super) before: Block,
    /// The registers before it.
    registers: BTreeMap<u32, Value>,
    after: Block,
    body: Option<Body>,
    /// In the second of two opposite blocks, the registers after the first and the block in which it ends.
    first: Option<(BTreeMap<u32, Value>, Block)>,
}

impl Level {
    /// Whether it is a loop rather than an If.
    pub(super) fn is_loop(&self) -> bool {
        self.body.is_some()
    }
}

/// The inside of a loop.
struct Body {
    block: Block,
    index: Value,
    end: Value,
    /// Whether it may have no trips.
    guarded: bool,
    phis: Vec<(u32, Value)>,
}

/// REG Buffers and the SSA values that they hold.
#[derive(Default)]
pub(super) struct Registers {
    current: BTreeMap<u32, Value>,
    /// The registers written inside each Range or If.
    written: FxHashMap<NodeId, BTreeSet<u32>>,
}

impl Registers {
    /// Finds the registers written inside each Range or If.
    pub(super) fn scan(graph: &Graph, instructions: &[NodeId]) -> Registers {
        let mut written: FxHashMap<NodeId, BTreeSet<u32>> = FxHashMap::default();
        let mut open: Vec<NodeId> = Vec::new();
        for node in instructions {
            match graph.op(*node) {
                Op::Range | Op::If => open.push(*node),
                Op::End | Op::Endif => drop(open.pop()),
                Op::Store => {
                    if let Some((slot, _)) = register(graph, graph.source(*node, 0)) {
                        for level in &open {
                            written.entry(*level).or_default().insert(slot);
                        }
                    }
                }
                _ => {}
            }
        }
        Registers { current: BTreeMap::new(), written }
    }

    pub(super) fn read(&self, slot: u32) -> Option<Value> {
        self.current.get(&slot).copied()
    }

    pub(super) fn write(&mut self, slot: u32, value: Value) {
        self.current.insert(slot, value);
    }

    /// Registers that hold a value and are written inside `node`. A register first written there is not live outside.
    fn carried(&self, node: NodeId) -> Vec<(u32, Value)> {
        let written = self.written.get(&node).into_iter().flatten();
        written.filter_map(|slot| Some((*slot, self.read(*slot)?))).collect()
    }
}

impl Renderer<'_, '_> {
    /// The loop is tested at its end, and before it only if it may have no trips.
    pub(super) fn open_loop(&mut self, node: NodeId) -> Result<()> {
        let shared = matches!(self.graph.arg(node), Arg::Range { axis: AxisType::Thread, .. });
        let bound = self.graph.source(node, 0);
        let (start, end, guarded) = if shared {
            if self.is_gpu() {
                return Err(self.unsupported(node, "a GPU has workgroups in place of a THREAD loop"));
            }
            let (start, end) = self.shared_trips()?;
            (start, end, true)
        } else {
            let least = self.graph.props(bound).interval.int().map_or(0, |(least, _)| least);
            let end = self.bound(bound)?;
            (self.emit.int(end.kind, 1, 0), end, least < 1)
        };
        let (before, block, after) = (self.emit.block(), self.emit.new_block(), self.emit.new_block());
        if guarded {
            let some = self.emit.compare_ints(LLVMIntSLT, start, end)?;
            self.emit.branch(some, block, after)?;
        } else {
            self.emit.jump(block);
        }
        self.emit.enter(block);
        let index = self.emit.phi(start.kind, 1);
        self.emit.arrive(index, start, before)?;
        let mut phis = Vec::new();
        let registers = self.registers.current.clone();
        for (slot, value) in self.registers.carried(node) {
            let phi = self.emit.phi(value.kind, value.lanes);
            self.emit.arrive(phi, value, before)?;
            self.registers.write(slot, phi);
            phis.push((slot, phi));
        }
        self.levels.push(Level {
            node,
            before,
            registers,
            after,
            body: Some(Body { block, index, end, guarded, phis }),
            first: None,
        });
        let value = self.counted(node, index)?;
        self.values[node.index()] = Some(Placed { value, depth: self.levels.len() });
        Ok(())
    }

    pub(super) fn close_loop(&mut self, node: NodeId) -> Result<()> {
        let range = self.graph.source(node, 1);
        let level = match self.levels.pop() {
            Some(level) if level.node == range => level,
            _ => return Err(self.unsupported(node, "loops close in the order in which they opened")),
        };
        let Some(body) = level.body else {
            return Err(self.unsupported(node, "it closes something that is not a loop"));
        };
        let latch = self.emit.block();
        let step = self.emit.int(body.index.kind, 1, 1);
        let next = self.emit.binary(LLVMAdd, body.index, step)?;
        let again = self.emit.compare_ints(LLVMIntSLT, next, body.end)?;
        self.emit.branch(again, body.block, level.after)?;
        self.emit.arrive(body.index, next, latch)?;
        for (slot, phi) in body.phis {
            let value = self.registers.read(slot).unwrap_or(phi);
            self.emit.arrive(phi, value, latch)?;
        }
        self.emit.enter(level.after);
        if body.guarded { self.join(level.registers, level.before, latch) } else { self.keep(level.registers) }
    }

    pub(super) fn open_condition(&mut self, node: NodeId) -> Result<()> {
        let condition = self.value(self.graph.source(node, 0))?;
        let (before, then, after) = (self.emit.block(), self.emit.new_block(), self.emit.new_block());
        self.emit.branch(condition, then, after)?;
        self.emit.enter(then);
        let registers = self.registers.current.clone();
        self.levels.push(Level { node, before, registers, after, body: None, first: None });
        Ok(())
    }

    pub(super) fn close_condition(&mut self, node: NodeId) -> Result<()> {
        let level = self.innermost_condition(node)?;
        let end = self.emit.block();
        self.emit.jump(level.after);
        self.emit.enter(level.after);
        match level.first {
            Some((registers, from)) => self.join(registers, from, end),
            None => self.join(level.registers, level.before, end),
        }
    }

    /// Closes a block and opens the block of the opposite condition, which shares its branch.
    pub(super) fn open_otherwise(&mut self, endif: NodeId, node: NodeId) -> Result<()> {
        let level = self.innermost_condition(endif)?;
        let (end, after) = (self.emit.block(), self.emit.new_block());
        self.emit.jump(after);
        self.emit.enter(level.after);
        let first = std::mem::replace(&mut self.registers.current, level.registers.clone());
        self.levels.push(Level { node, after, first: Some((first, end)), ..level });
        Ok(())
    }

    fn innermost_condition(&mut self, endif: NodeId) -> Result<Level> {
        match self.levels.pop() {
            Some(level) if level.node == self.graph.source(endif, 0) => Ok(level),
            _ => Err(self.unsupported(endif, "conditions close in the order in which they opened")),
        }
    }

    /// Merges the registers of two paths by phis: the current one, which ends in `from_here`, and one with the
    /// registers `others`.
    fn join(&mut self, others: BTreeMap<u32, Value>, from_others: Block, from_here: Block) -> Result<()> {
        let mut current = BTreeMap::new();
        for (slot, old) in others {
            let Some(new) = self.registers.read(slot) else { continue };
            let mut value = old;
            if new != old {
                value = self.emit.phi(old.kind, old.lanes);
                self.emit.arrive(value, old, from_others)?;
                self.emit.arrive(value, new, from_here)?;
            }
            current.insert(slot, value);
        }
        self.registers.current = current;
        Ok(())
    }

    /// Restores the set of registers after a loop; those first written inside it are dropped.
    fn keep(&mut self, before: BTreeMap<u32, Value>) -> Result<()> {
        self.registers.current.retain(|slot, _| before.contains_key(slot));
        Ok(())
    }
}
