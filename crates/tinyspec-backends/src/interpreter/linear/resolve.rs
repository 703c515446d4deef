//! Resolves a linear kernel to instructions. Pure nodes that are not listed (constants, shapes, address arithmetic) are
//! computed where they are used.

mod address;

use super::instruction::{Code, Instruction, Register};
use super::races::Parallel;
use crate::{BackendError, LinearKernel};
use rustc_hash::FxHashMap;
use tinyspec_ir::instruction::Instruction as Single;
use tinyspec_ir::special::SpecialIndex;
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, DType, Graph, NodeId, Op, dim};

/// The greatest depth of unlisted values.
const DEPTH: usize = 64;

struct Resolver<'a> {
    kernel: &'a LinearKernel,
    graph: &'a Graph,
    code: Code,
    values: FxHashMap<NodeId, Register>,
    /// The open Ranges and Ifs, and their positions.
    open: Vec<(NodeId, usize)>,
    depth: usize,
}

pub(in super::super) fn resolve(kernel: &LinearKernel) -> Result<Code, BackendError> {
    let code = Code {
        name: kernel.name.clone(),
        params: kernel.params,
        scratch_bytes: kernel.scratch_bytes,
        hand_written: kernel.hand_written.clone(),
        ..Code::default()
    };
    let graph = &kernel.graph;
    let mut resolver = Resolver { kernel, graph, code, values: FxHashMap::default(), open: Vec::new(), depth: 0 };
    if graph.op(kernel.linear) != Op::Linear {
        return Err(resolver.refuse(kernel.linear, "a kernel is a Linear"));
    }
    for &node in graph.sources(kernel.linear) {
        resolver.listed(node)?;
    }
    match resolver.open.last() {
        Some(&(node, _)) => Err(resolver.refuse(node, "it is never closed")),
        None => Ok(resolver.code),
    }
}

impl<'a> Resolver<'a> {
    fn refuse(&self, node: NodeId, reason: impl Into<String>) -> BackendError {
        let name = &self.kernel.name;
        BackendError::Unsupported {
            target: "interpreter".into(),
            op: self.graph.op(node).name().into(),
            reason: format!("in `{name}`: {}", reason.into()),
        }
    }

    /// Resolves a listed node.
    fn listed(&mut self, node: NodeId) -> Result<(), BackendError> {
        let graph = self.graph;
        match graph.op(node) {
            // Resolved by their users.
            Op::Param | Op::Buffer | Op::Const | Op::Group | Op::Sink | Op::After => Ok(()),
            Op::Barrier => {
                self.emit(Instruction::Barrier);
                Ok(())
            }
            Op::Special => self.special(node),
            Op::Range => self.begin_loop(node),
            Op::End => self.end_loop(node),
            Op::If => {
                let gate = self.value(graph.source(node, 0))?;
                self.open.push((node, self.code.instructions.len()));
                self.emit(Instruction::If { gate, exit: 0 });
                Ok(())
            }
            Op::Endif => {
                let start = self.close(node, graph.source(node, 0))?;
                let end = self.code.instructions.len();
                if let Some(Instruction::If { exit, .. }) = self.code.instructions.get_mut(start) {
                    *exit = end;
                }
                Ok(())
            }
            Op::Store => self.store(node),
            Op::AtomicAdd => {
                let address = self.address(graph.source(node, 0))?;
                let source = self.widened(graph.source(node, 1), address.lanes)?;
                let gate = self.gate(node, address.lanes)?;
                self.emit(Instruction::Accumulate { address, source, gate });
                Ok(())
            }
            Op::Ins if Single::hint_of(graph, node).is_some() => Ok(()),
            Op::Index | Op::Shrink | Op::Reshape if graph.props(node).addrspace.is_some() => Ok(()),
            _ => {
                let register = self.compute(node)?;
                self.values.insert(node, register);
                Ok(())
            }
        }
    }

    /// The register of a value, which is computed here if it is not listed.
    fn value(&mut self, mut node: NodeId) -> Result<Register, BackendError> {
        let graph = self.graph;
        // Unrolled loops build long chains of Afters.
        while graph.op(node) == Op::After && !self.values.contains_key(&node) {
            node = graph.source(node, 0);
        }
        if let Some(&register) = self.values.get(&node) {
            return Ok(register);
        }
        if let Some(value) = graph.as_const(node) {
            let register = self.allocate(node, 1)?;
            self.code.constants.push((register.start, value.bits));
            self.values.insert(node, register);
            return Ok(register);
        }
        if let (Op::Param, &Arg::Param { slot, dtype: DType::Index, .. }) = (graph.op(node), graph.arg(node)) {
            let register = self.allocate(node, 1)?;
            self.code.dims.push((register.start, slot));
            self.values.insert(node, register);
            return Ok(register);
        }
        if graph.op(node) == Op::Buffer && graph.props(node).addrspace == Some(AddrSpace::Reg) {
            let lanes = self.lanes(node)?;
            let register = self.allocate(node, lanes)?;
            self.values.insert(node, register);
            return Ok(register);
        }
        let is_pure = graph.op(node).is_elementwise()
            || matches!(
                graph.op(node),
                Op::Stack | Op::Expand | Op::Reshape | Op::Index | Op::Shrink | Op::Bitcast | Op::Ins | Op::Reduce
            );
        if !is_pure {
            return Err(self.refuse(node, "it is used before its place in the order"));
        }
        if self.depth == DEPTH {
            return Err(self.refuse(node, "too many values on its way are not in the order"));
        }
        self.depth += 1;
        let register = self.compute(node);
        self.depth -= 1;
        register
    }

    fn compute(&mut self, node: NodeId) -> Result<Register, BackendError> {
        let graph = self.graph;
        let sources = graph.sources(node);
        let lanes = self.lanes(node)?;
        match graph.op(node) {
            // Interpreters use the value that custom code stands for.
            Op::Custom => self.widened(graph.source(node, 0), lanes),
            Op::Bitcast if graph.dtype(sources[0]).size() < graph.dtype(node).size() => {
                let (from, source) = (graph.dtype(sources[0]), self.value(sources[0])?);
                if !from.is_unsigned() || !graph.dtype(node).is_unsigned() || lanes == 0 || source.lanes % lanes != 0 {
                    return Err(self.refuse(node, "only unsigned integers are joined"));
                }
                let target = self.allocate(node, lanes)?;
                self.emit(Instruction::Join { source, bytes: from.size() as u32, target });
                Ok(target)
            }
            op if op.is_elementwise() || op == Op::Bitcast => {
                if sources.len() > 3 {
                    return Err(self.refuse(node, "it has more than three sources"));
                }
                let mut registers = [Register { start: 0, lanes: 0 }; 3];
                for (register, &source) in registers.iter_mut().zip(sources) {
                    *register = self.widened(source, lanes)?;
                }
                let (operand, dtype) = (graph.dtype(graph.source(node, 0)), graph.dtype(node));
                let target = self.allocate(node, lanes)?;
                let count = sources.len() as u8;
                self.emit(Instruction::Compute { op, operand, dtype, sources: registers, count, target });
                Ok(target)
            }
            Op::Ins => {
                let known = Single::of(graph, node).filter(|known| known.arity() == sources.len());
                let Some(instruction) = known else {
                    return Err(self.refuse(node, "it is not an instruction that is known"));
                };
                let mut registers = [Register { start: 0, lanes: 0 }; 2];
                for (register, &source) in registers.iter_mut().zip(sources) {
                    *register = self.widened(source, lanes)?;
                }
                let target = self.allocate(node, lanes)?;
                let count = sources.len() as u8;
                self.emit(Instruction::Single { instruction, sources: registers, count, target });
                Ok(target)
            }
            Op::Reshape => self.value(graph.source(node, 0)),
            Op::Expand => self.widened(graph.source(node, 0), lanes),
            Op::Stack => {
                let sources = sources.iter().map(|&source| self.value(source)).collect::<Result<Vec<_>, _>>()?;
                let target = self.allocate(node, lanes)?;
                self.emit(Instruction::Concatenate { sources, target });
                Ok(target)
            }
            Op::Index if sources.len() == 2 => {
                let source = self.value(graph.source(node, 0))?;
                let index = self.value(graph.source(node, 1))?;
                if index.lanes != lanes {
                    return Err(self.refuse(node, "only vectors are indexed"));
                }
                let target = self.allocate(node, lanes)?;
                self.emit(Instruction::Extract { source, index, target });
                Ok(target)
            }
            Op::Shrink => {
                let source = self.value(graph.source(node, 0))?;
                let offset = self.constant_offset(node)?;
                match offset.checked_add(lanes) {
                    Some(end) if end <= source.lanes => Ok(Register { start: source.start + offset, lanes }),
                    _ => Err(self.refuse(node, "it leaves the vector")),
                }
            }
            Op::Reduce => {
                let Arg::Reduce { op, .. } = graph.arg(node) else { return Err(self.refuse(node, "it has no op")) };
                let source = self.value(graph.source(node, 0))?;
                if sources.len() > 1 || lanes != 1 || source.lanes == 0 {
                    return Err(self.refuse(node, "only the lanes of a vector are reduced"));
                }
                let target = self.allocate(node, 1)?;
                self.emit(Instruction::Horizontal { op: *op, dtype: graph.dtype(node), source, target });
                Ok(target)
            }
            Op::Load => self.load(node, lanes),
            _ => Err(self.refuse(node, "it is not an instruction of a linear kernel")),
        }
    }

    fn load(&mut self, node: NodeId, lanes: u32) -> Result<Register, BackendError> {
        let source = self.graph.source(node, 0);
        if self.graph.props(source).addrspace == Some(AddrSpace::Reg) {
            // A copy: the buffer may be written before the value is used.
            let source = self.value(source)?;
            let target = self.allocate(node, lanes)?;
            self.emit(Instruction::Move { source, gate: None, target });
            return Ok(target);
        }
        let address = self.address(source)?;
        let alternative = match self.graph.sources(node).get(1) {
            Some(&alternative) => Some(self.widened(alternative, address.lanes)?),
            None => None,
        };
        let gate = self.gate(node, address.lanes)?;
        let target = self.allocate(node, address.lanes)?;
        self.emit(Instruction::Load { address, alternative, gate, target });
        Ok(target)
    }

    fn store(&mut self, node: NodeId) -> Result<(), BackendError> {
        let (to, value) = (self.graph.source(node, 0), self.graph.source(node, 1));
        if self.graph.props(to).addrspace == Some(AddrSpace::Reg) {
            let target = self.value(to)?;
            let source = self.widened(value, target.lanes)?;
            let gate = self.gate(node, target.lanes)?;
            self.emit(Instruction::Move { source, gate, target });
        } else {
            let address = self.address(to)?;
            let source = self.widened(value, address.lanes)?;
            let gate = self.gate(node, address.lanes)?;
            self.emit(Instruction::Store { address, source, gate });
        }
        Ok(())
    }

    /// The gate of an access: a lane for all, or one for each.
    fn gate(&mut self, node: NodeId, lanes: u32) -> Result<Option<Register>, BackendError> {
        let Some(&gate) = self.graph.sources(node).get(2) else { return Ok(None) };
        let register = self.value(gate)?;
        if register.lanes != 1 && register.lanes != lanes {
            return Err(self.refuse(node, format!("its gate has {} lanes for {lanes}", register.lanes)));
        }
        Ok(Some(register))
    }

    /// A value with this many lanes; a scalar is broadcast.
    fn widened(&mut self, node: NodeId, lanes: u32) -> Result<Register, BackendError> {
        let source = self.value(node)?;
        if source.lanes == lanes {
            return Ok(source);
        }
        if source.lanes != 1 {
            return Err(self.refuse(node, format!("it has {} lanes where {lanes} are needed", source.lanes)));
        }
        let target = self.allocate(node, lanes)?;
        self.emit(Instruction::Splat { source, target });
        Ok(target)
    }

    fn special(&mut self, node: NodeId) -> Result<(), BackendError> {
        let index = SpecialIndex::of(self.graph, node);
        let index = index.ok_or_else(|| self.refuse(node, "its name is none of a workgroup or thread"))?;
        let target = self.allocate(node, 1)?;
        self.values.insert(node, target);
        self.emit(Instruction::Special { index, target });
        Ok(())
    }

    fn begin_loop(&mut self, node: NodeId) -> Result<(), BackendError> {
        let bound = self.value(self.graph.source(node, 0))?;
        let Arg::Range { axis, .. } = *self.graph.arg(node) else { return Err(self.refuse(node, "it has no axis")) };
        let is_shared = axis == AxisType::Thread;
        let parallel = match axis {
            _ if axis.is_parallel() => Parallel::Grid,
            AxisType::Local => Parallel::Group,
            _ => Parallel::No,
        };
        let (counter, limit) = (self.allocate(node, 1)?, self.allocate(node, 1)?);
        self.values.insert(node, counter);
        self.open.push((node, self.code.instructions.len()));
        self.emit(Instruction::Loop { bound, is_shared, parallel, counter, limit, exit: 0 });
        Ok(())
    }

    fn end_loop(&mut self, node: NodeId) -> Result<(), BackendError> {
        let start = self.close(node, self.graph.source(node, 1))?;
        let end = self.code.instructions.len() + 1;
        if let Some(Instruction::Loop { counter, limit, exit, .. }) = self.code.instructions.get_mut(start) {
            *exit = end;
            let (counter, limit) = (*counter, *limit);
            self.emit(Instruction::Next { counter, limit, start });
        }
        Ok(())
    }

    /// Closes the innermost open node, which must be `opened`.
    fn close(&mut self, node: NodeId, opened: NodeId) -> Result<usize, BackendError> {
        match self.open.pop() {
            Some((innermost, start)) if innermost == opened => Ok(start),
            _ => Err(self.refuse(node, "it does not close the innermost open Range or If")),
        }
    }

    fn lanes(&self, node: NodeId) -> Result<u32, BackendError> {
        u32::try_from(self.elements_of(node)?).map_err(|_| self.refuse(node, "it has too many lanes"))
    }

    fn elements_of(&self, node: NodeId) -> Result<usize, BackendError> {
        let shape = &self.graph.props(node).shape;
        let count = dim::static_shape(shape)
            .and_then(|dims| dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim.try_into().ok()?)));
        count.ok_or_else(|| self.refuse(node, format!("its shape {} is not known", dim::show(shape))))
    }

    fn allocate(&mut self, node: NodeId, lanes: u32) -> Result<Register, BackendError> {
        let start = self.code.lanes;
        self.code.lanes =
            start.checked_add(lanes).ok_or_else(|| self.refuse(node, "the kernel has too many values"))?;
        Ok(Register { start, lanes })
    }

    fn emit(&mut self, instruction: Instruction) {
        self.code.instructions.push(instruction);
    }
}
