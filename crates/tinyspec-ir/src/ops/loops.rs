//! A kernel as its author writes it, in consecutive loops: each access waits for the earlier ones that it depends on.

use crate::kernel::WrittenKernel;
use crate::signature::NamedDim;
use crate::{AddrSpace, Arg, AxisType, Builder, Const, DType, Dim, Graph, NodeId, Op, Result};

/// A buffer of the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory(usize);

struct Buffer {
    node: NodeId,
    written: bool,
    /// The kernel's own: each trip of a parallel loop begins with another one.
    local: bool,
    /// The writes that reads wait for.
    writes: Vec<NodeId>,
    /// The reads that stores wait for, too.
    reads: Vec<NodeId>,
}

struct Open {
    range: NodeId,
    axis: AxisType,
    effects: Vec<NodeId>,
    /// Of each buffer, when the loop began.
    before: Vec<(Vec<NodeId>, Vec<NodeId>)>,
}

/// The kernel as far as it is written.
pub(super) struct Loops {
    pub graph: Graph,
    buffers: Vec<Buffer>,
    names: Vec<String>,
    outputs: usize,
    open: Vec<Open>,
    effects: Vec<NodeId>,
    next_range: u32,
    next_local: u32,
    /// The first dim of each buffer: how many matrices or rows there are.
    pub count: NodeId,
    /// How many groups each of them has: of columns that go along with a matrix, of elements of a row.
    pub groups: NodeId,
}

/// A dim of a buffer.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Number(i64),
    /// So many, and [`Loops::groups`] times so many others.
    With(i64, i64),
}

impl Loops {
    /// A kernel over `outputs`, buffers that it writes, and `inputs`, by name, dtype, and shape without the first
    /// dim. The first dim, of all buffers alike, and the number of groups are the named dims of the kernel.
    pub fn new(outputs: &[(&str, DType, &[Size])], inputs: &[(&str, DType, &[Size])]) -> Result<(Loops, Vec<Memory>)> {
        let mut graph = Graph::new();
        let all: Vec<_> = outputs.iter().chain(inputs).collect();
        let slot = all.len() as u32;
        let (lead, others) = (Dim::named(slot, 0, NamedDim::MAX), Dim::named(slot + 1, 0, NamedDim::MAX));
        let (count, groups) = (graph.dim(&lead)?, graph.dim(&others)?);
        let mut loops = Loops {
            graph,
            buffers: vec![],
            names: all.iter().map(|(name, ..)| name.to_string()).collect(),
            outputs: outputs.len(),
            open: vec![],
            effects: vec![],
            next_range: 0,
            next_local: 0,
            count,
            groups,
        };
        let size = |size: &Size| match *size {
            Size::Number(number) => Dim::from(number),
            Size::With(columns, others_of_each) => Dim::from(columns) + others.clone() * Dim::from(others_of_each),
        };
        let mut memories = vec![];
        for (slot, (_, dtype, shape)) in (0u32..).zip(all) {
            let dims: Vec<Dim> = std::iter::once(lead.clone()).chain(shape.iter().map(size)).collect();
            let shape = loops.graph.shape(&dims)?;
            let arg = Arg::Param { slot, dtype: *dtype, device: None, addrspace: Some(AddrSpace::Global) };
            let node = loops.graph.add(Op::Param, &[shape], arg)?;
            memories.push(loops.memory(node, (slot as usize) < outputs.len(), false));
        }
        Ok((loops, memories))
    }

    fn memory(&mut self, node: NodeId, written: bool, local: bool) -> Memory {
        self.buffers.push(Buffer { node, written, local, writes: vec![], reads: vec![] });
        Memory(self.buffers.len() - 1)
    }

    /// Memory of the kernel's own.
    pub fn local(&mut self, dtype: DType, shape: &[i64]) -> Result<Memory> {
        let dims: Vec<Dim> = shape.iter().map(|&dim| Dim::from(dim)).collect();
        let shape = self.graph.shape(&dims)?;
        let arg = Arg::Buffer { slot: self.next_local, dtype, device: None, addrspace: AddrSpace::Local };
        self.next_local += 1;
        let node = self.graph.add(Op::Buffer, &[shape], arg)?;
        Ok(self.memory(node, true, true))
    }

    pub fn dtype(&self, memory: Memory) -> DType {
        self.graph.dtype(self.buffers[memory.0].node)
    }

    /// A Range for a Reduce.
    pub fn terms(&mut self, trips: NodeId, axis: AxisType) -> Result<NodeId> {
        self.next_range += 1;
        self.graph.range(trips, self.next_range - 1, axis)
    }

    /// Begins a loop; gives its variable.
    pub fn open(&mut self, trips: NodeId, axis: AxisType) -> Result<NodeId> {
        let range = self.terms(trips, axis)?;
        let before = self.buffers.iter().map(|buffer| (buffer.writes.clone(), buffer.reads.clone())).collect();
        self.open.push(Open { range, axis, effects: vec![], before });
        Ok(range)
    }

    /// A loop that runs one trip after the other.
    pub fn serial(&mut self, trips: NodeId) -> Result<NodeId> {
        self.open(trips, AxisType::Loop)
    }

    /// A loop whose trips are lanes of vectors.
    pub fn lanes(&mut self, trips: i64) -> Result<NodeId> {
        let trips = self.graph.index(trips);
        self.open(trips, AxisType::Upcast)
    }

    /// Ends the innermost `count` loops.
    pub fn close(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let Some(open) = self.open.pop() else { break };
            let body = match open.effects.as_slice() {
                [effect] => *effect,
                effects => self.graph.add(Op::Group, effects, Arg::None)?,
            };
            let end = self.graph.add(Op::End, &[body, open.range], Arg::None)?;
            for (buffer, (writes, reads)) in self.buffers.iter_mut().zip(open.before) {
                if buffer.writes != writes {
                    (buffer.writes, buffer.reads) = (vec![end], vec![]);
                } else if buffer.reads != reads {
                    buffer.reads = [reads, vec![end]].concat();
                }
            }
            self.effect(end);
        }
        Ok(())
    }

    fn effect(&mut self, node: NodeId) {
        match self.open.last_mut() {
            Some(open) => open.effects.push(node),
            None => self.effects.push(node),
        }
    }

    fn place(&mut self, memory: Memory, indices: &[NodeId], beside: &[NodeId], is_store: bool) -> Result<NodeId> {
        let buffer = &self.buffers[memory.0];
        let known = self.graph.reachable(&[indices, beside].concat());
        let mut sources = vec![buffer.node];
        sources.extend(&buffer.writes);
        if is_store {
            sources.extend(&buffer.reads);
        }
        if buffer.written {
            let is_around = |axis| axis == AxisType::Loop || (buffer.local && axis == AxisType::Global);
            let around = self.open.iter().filter(|open| is_around(open.axis));
            sources.extend(around.map(|open| open.range));
        }
        let first = sources.remove(0);
        sources.retain(|source| !known.contains(source));
        sources.insert(0, first);
        let node = if sources.len() > 1 { self.graph.add(Op::After, &sources, Arg::None)? } else { first };
        self.graph.add(Op::Index, &[&[node], indices].concat(), Arg::None)
    }

    /// A read; 0 where it is not `gated` in.
    pub fn load(&mut self, memory: Memory, indices: &[NodeId], gate: Option<NodeId>) -> Result<NodeId> {
        let beside: Vec<NodeId> = gate.into_iter().collect();
        let place = self.place(memory, indices, &beside, false)?;
        let mut sources = vec![place];
        if let Some(gate) = gate {
            let dtype = self.graph.dtype(place);
            sources.extend([self.graph.constant(Const::int(dtype, 0)), gate]);
        }
        let load = self.graph.add(Op::Load, &sources, Arg::Load { device: None, addrspace: AddrSpace::Reg })?;
        let buffer = &mut self.buffers[memory.0];
        if buffer.written && !buffer.reads.contains(&load) {
            buffer.reads.push(load);
        }
        Ok(load)
    }

    /// A write.
    pub fn store(&mut self, memory: Memory, indices: &[NodeId], value: NodeId, gate: Option<NodeId>) -> Result<()> {
        let beside: Vec<NodeId> = [value].into_iter().chain(gate).collect();
        let place = self.place(memory, indices, &beside, true)?;
        let store = self.graph.add(Op::Store, &[&[place], &beside[..]].concat(), Arg::None)?;
        let buffer = &mut self.buffers[memory.0];
        (buffer.writes, buffer.reads) = (vec![store], vec![]);
        self.effect(store);
        Ok(())
    }

    /// The Reduce of `value` over Ranges of [`Loops::terms`].
    pub fn reduce(&mut self, op: Op, value: NodeId, ranges: &[NodeId]) -> Result<NodeId> {
        let inside = self.graph.reachable(&[value]);
        let arg = Arg::Reduce { op, axes: Default::default() };
        let reduce = self.graph.add(Op::Reduce, &[&[value], ranges].concat(), arg)?;
        for buffer in &mut self.buffers {
            let count = buffer.reads.len();
            buffer.reads.retain(|read| !inside.contains(read));
            if buffer.reads.len() != count {
                buffer.reads.push(reduce);
            }
        }
        Ok(reduce)
    }

    /// `Σ factor · term`, of indices.
    pub fn sum(&mut self, terms: &[(i64, NodeId)], constant: i64) -> Result<NodeId> {
        let mut sum = None;
        for &(factor, term) in terms {
            let term = match factor {
                1 => term,
                factor => {
                    let factor = self.graph.index(factor);
                    self.graph.alu(Op::Mul, &[term, factor])?
                }
            };
            sum = Some(match sum {
                Some(sum) => self.graph.alu(Op::Add, &[sum, term])?,
                None => term,
            });
        }
        match sum {
            Some(sum) if constant == 0 => Ok(sum),
            Some(sum) => {
                let constant = self.graph.index(constant);
                self.graph.alu(Op::Add, &[sum, constant])
            }
            None => Ok(self.graph.index(constant)),
        }
    }

    pub fn less(&mut self, a: NodeId, b: NodeId) -> Result<NodeId> {
        self.graph.alu(Op::CmpLt, &[a, b])
    }

    /// A number that was stored, as an index below `size`: whether it is one, and the index.
    pub fn stored_index(&mut self, number: NodeId, size: NodeId) -> Result<(NodeId, NodeId)> {
        let index = self.graph.add(Op::Cast, &[number], Arg::DType(DType::Index))?;
        let least = self.graph.index(-1);
        let (above, below) = (self.less(least, index)?, self.less(index, size)?);
        Ok((self.graph.alu(Op::And, &[above, below])?, index))
    }

    pub fn int(&mut self, value: i64) -> NodeId {
        self.graph.constant(Const::int(DType::I32, value.into()))
    }

    /// The kernel.
    pub fn finish(mut self, name: &str) -> Result<WrittenKernel> {
        let sink = self.graph.add(Op::Sink, &self.effects, Arg::None)?;
        Ok(WrittenKernel {
            name: name.into(),
            outputs: self.outputs,
            buffers: self.names,
            vouched: true,
            graph: self.graph,
            sink,
        })
    }
}
