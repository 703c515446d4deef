//! LOCAL buffers, and the order of their accesses.

use tinyspec_ir::affine::Affine;
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, Dim, Graph, NodeId, Op, Result};

/// A LOCAL buffer after all effects on it so far.
#[derive(Clone, Copy)]
pub(super) struct Local {
    buffer: NodeId,
}

impl Local {
    /// A buffer of so many elements in a slot of its own.
    pub fn new(graph: &mut Graph, slot: u32, dtype: DType, elements: i64) -> Result<Local> {
        let dims = graph.shape(&[Dim::from(elements)])?;
        let arg = Arg::Buffer { slot, dtype, device: None, addrspace: AddrSpace::Local };
        Ok(Local { buffer: graph.add(Op::Buffer, &[dims], arg)? })
    }

    /// The buffer, to be read or written after some effects, and anew in each trip of some Ranges.
    pub fn after(self, graph: &mut Graph, events: impl IntoIterator<Item = NodeId>) -> Result<Local> {
        let sources: Vec<NodeId> = std::iter::once(self.buffer).chain(events).collect();
        match sources[..] {
            [_] => Ok(self),
            _ => Ok(Local { buffer: graph.add(Op::After, &sources, Arg::None)? }),
        }
    }

    /// The buffer as a node.
    pub fn node(self) -> NodeId {
        self.buffer
    }

    /// The address of an element.
    pub fn at(self, graph: &mut Graph, index: &Affine) -> Result<NodeId> {
        let index = index.clone().emit(graph)?;
        graph.add(Op::Index, &[self.buffer, index], Arg::None)
    }

    /// Loads an element.
    pub fn load(self, graph: &mut Graph, index: &Affine) -> Result<NodeId> {
        let place = self.at(graph, index)?;
        graph.add(Op::Load, &[place], Arg::Load { device: None, addrspace: AddrSpace::Reg })
    }

    /// Stores an element, where a gate is open.
    pub fn store(self, graph: &mut Graph, index: &Affine, value: NodeId, gate: Option<NodeId>) -> Result<NodeId> {
        let place = self.at(graph, index)?;
        let sources: Vec<NodeId> = [place, value].into_iter().chain(gate).collect();
        graph.add(Op::Store, &sources, Arg::None)
    }
}
