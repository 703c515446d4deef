//! A kernel's `Linear` as a function of LLVM IR.
//!
//! LLVM runs no passes over the IR, so it is emitted in final form: registers are promoted to SSA values while loops are opened
//! and closed, a pure value is placed in the outermost loop that has its operands, and addresses are split so that their
//! invariant parts are computed before the loop.

mod address;
mod arithmetic;
mod atomic;
mod cast;
mod control;
mod cpu;
mod custom;
mod demand;
mod division;
mod emit;
mod gpu;
mod instruction;
mod lanes;
mod locations;
mod memory;
mod remainder;
mod vector;
mod words;

use crate::processor::Architecture;
use crate::{BackendError, LinearKernel, Target};
use address::Addresses;
use control::{Level, Registers};
use emit::{Block, Emitter, Kind, Result, Value};
use inkwell::context::Context;
use inkwell::module::Module;
use locations::Locations;
use rustc_hash::FxHashMap;
use tinyspec_ir::address::behind_after;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::instructions::is_otherwise;
use tinyspec_ir::{Builder, DType, Dim, Graph, NodeId, Op};

/// The most nodes per basic block. In a block of 2000 scalar nodes, LLVM spends half of its time on scheduling.
const LONGEST_BLOCK: usize = 512;

/// The symbol of a kernel: its name, in characters that every tool accepts.
pub(super) fn symbol(kernel: &LinearKernel) -> String {
    let name: String =
        kernel.name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    // The prefix avoids clashes: a kernel `memcpy` would be taken for the library's.
    format!("kernel_{name}")
}

/// Adds the kernel's function to `module`, in its own section if one is given. `is_located` asks for [`Locations`].
pub(super) fn render<'context>(
    context: &'context Context,
    module: &Module<'context>,
    kernel: &LinearKernel,
    target: &Target,
    section: Option<&str>,
    is_located: bool,
) -> Result<()> {
    let family = gpu::family(target.isa.as_ref());
    let (function, scope) = match family {
        Family::Cpu => (cpu::function(context, module, &symbol(kernel), section), None),
        _ => {
            gpu::admit(kernel, target)?;
            (gpu::function(context, module, kernel, &symbol(kernel), family), Some(gpu::scope(family)))
        }
    };
    let emit = Emitter::new(context, module, function, scope);
    let mut renderer = Renderer {
        graph: &kernel.graph,
        kernel,
        target,
        family,
        entry: emit.block(),
        emit,
        locations: is_located.then(|| Locations::new(context, module, function, kernel)),
        values: vec![None; kernel.graph.len()],
        demanded: Vec::new(),
        levels: Vec::new(),
        registers: Registers::default(),
        addresses: Addresses::default(),
        whole: FxHashMap::default(),
        bases: FxHashMap::default(),
        shuffles: FxHashMap::default(),
        streams: false,
        length: 0,
        dummy: None,
        context,
        module,
        customs: Vec::new(),
    };
    renderer.function()?;
    let customs = renderer.customs.len();
    if customs > 0 { custom::inline(module, customs) } else { Ok(()) }
}

/// A family of targets. Code specific to a family is in a separate module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Cpu,
    Nvptx,
    Amdgpu,
}

/// A value, and how many loops and conditions enclose its definition.
#[derive(Clone, Copy, Debug)]
struct Placed {
    value: Value,
    depth: usize,
}

struct Renderer<'a, 'context> {
    graph: &'a Graph,
    kernel: &'a LinearKernel,
    target: &'a Target,
    family: Family,
    emit: Emitter<'context>,
    locations: Option<Locations<'context>>,
    entry: Block,
    /// The values of nodes.
    values: Vec<Option<Placed>>,
    /// Nodes whose values are needed themselves: most sums are only parts of addresses, which are computed in another
    /// order.
    demanded: Vec<bool>,
    /// The open loops and conditions, outermost first.
    levels: Vec<Level>,
    registers: Registers,
    addresses: Addresses,
    /// For gates, whether they are open for all lanes.
    whole: FxHashMap<NodeId, Placed>,
    /// Start of each buffer, by node.
    bases: FxHashMap<NodeId, Value>,
    /// For each shuffle, the depth of the chain of shuffles that it ends.
    shuffles: FxHashMap<NodeId, u32>,
    /// Whether a non-temporal store was emitted.
    streams: bool,
    /// Nodes rendered since a block was last split.
    length: usize,
    /// Stack memory for accesses with closed gates, allocated on first use.
    dummy: Option<Value>,
    context: &'context Context,
    module: &'a Module<'context>,
    /// Custom code: a function each, without its name.
    customs: Vec<String>,
}

impl Renderer<'_, '_> {
    fn function(&mut self) -> Result<()> {
        if self.graph.op(self.kernel.linear) != Op::Linear {
            return Err(self.unsupported(self.kernel.linear, "a kernel is a `linear`"));
        }
        let instructions = self.graph.sources(self.kernel.linear);
        self.demanded = self.demanded(instructions)?;
        self.registers = Registers::scan(self.graph, instructions);
        self.load_bases(instructions)?;
        self.sequence(instructions)?;
        if let Some(level) = self.levels.last() {
            return Err(self.unsupported(level.node, "it is never closed"));
        }
        if self.streams {
            self.emit.fence(self.is_x86())?;
        }
        self.emit.finish();
        if let Some(locations) = &self.locations {
            locations.finish();
        }
        Ok(())
    }

    /// Whether the code is for x86-64.
    fn is_x86(&self) -> bool {
        self.target.isa.as_ref().is_some_and(|isa| isa.architecture == Architecture::X86_64)
    }

    /// Emits instructions in order.
    fn sequence(&mut self, instructions: &[NodeId]) -> Result<()> {
        let mut position = 0;
        while let Some(&node) = instructions.get(position) {
            match instructions.get(position + 1) {
                Some(&next) if is_otherwise(self.graph, node, next) => {
                    self.open_otherwise(node, next)?;
                    position += 1;
                }
                _ => self.instruction(node)?,
            }
            position += 1;
        }
        Ok(())
    }

    fn instruction(&mut self, node: NodeId) -> Result<()> {
        self.bound_block();
        if let Some(locations) = &self.locations {
            locations.enter(node, &self.emit);
        }
        match self.graph.op(node) {
            Op::Range => self.open_loop(node),
            Op::End => self.close_loop(node),
            Op::If => self.open_condition(node),
            Op::Endif => self.close_condition(node),
            Op::Load => self.load(node),
            Op::Store => self.store(node),
            Op::AtomicAdd => self.atomic_add(node),
            Op::Barrier => self.barrier(),
            Op::Ins if let Some(hint) = Instruction::hint_of(self.graph, node) => self.hint(node, hint),
            // Addresses are resolved where they are used.
            Op::Param | Op::Buffer | Op::After | Op::Group | Op::Sink | Op::Shrink => Ok(()),
            // A lane is extracted where it is used.
            Op::Index => Ok(()),
            // Shapes.
            Op::Stack if self.graph.dtype(node) == DType::Index => Ok(()),
            _ if !self.demanded[node.index()] => Ok(()),
            _ => self.pure(node),
        }
    }

    /// Starts a new basic block if the current one is long, because code generation is superlinear in the length of a block.
    fn bound_block(&mut self) {
        self.length += 1;
        if self.length > LONGEST_BLOCK && !self.is_gpu() {
            let next = self.emit.new_block();
            self.emit.jump(next);
            self.emit.enter(next);
            self.length = 0;
        }
    }

    /// Whether it is memory or a register, rather than a value.
    fn is_place(&self, node: NodeId) -> bool {
        matches!(self.graph.op(behind_after(self.graph, node)), Op::Param | Op::Buffer)
    }

    /// Computes a pure node in the outermost loop that has all of its operands; inside an If, it stays in the If.
    fn pure(&mut self, node: NodeId) -> Result<()> {
        if self.values[node.index()].is_some() {
            return Ok(());
        }
        let mut depth = 0;
        // The second source of a Reshape or Expand is a shape; the first one of a Custom is the value that its code
        // computes.
        let sources = self.graph.sources(node);
        let operands = match self.graph.op(node) {
            Op::Reshape | Op::Expand => &sources[..1],
            Op::Custom => &sources[1..],
            _ => sources,
        };
        // A vector of other vectors' lanes is a shuffle.
        let operands: Vec<NodeId> = match self.graph.op(node) {
            Op::Stack => operands.iter().map(|&lane| self.vector_of(lane)).collect(),
            _ => self.difference(node).map_or_else(|| operands.to_vec(), |operands| operands.to_vec()),
        };
        for source in operands {
            depth = depth.max(self.placed(source)?.depth);
        }
        if !self.levels.iter().skip(depth).any(Level::is_loop) {
            depth = self.levels.len();
        }
        let value = self.at_depth(depth, |renderer| renderer.compute(node))?;
        self.values[node.index()] = Some(Placed { value, depth });
        Ok(())
    }

    /// The vector that a value is a lane of, or else the value itself.
    fn vector_of(&self, node: NodeId) -> NodeId {
        let is_lane = self.graph.op(node) == Op::Index && !self.is_place(self.graph.source(node, 0));
        if is_lane { self.graph.source(node, 0) } else { node }
    }

    fn compute(&mut self, node: NodeId) -> Result<Value> {
        match self.graph.op(node) {
            Op::Const => self.constant(node),
            Op::Stack => self.stack(node),
            Op::Expand => self.expand(node),
            Op::Reshape | Op::Contiguous | Op::ContiguousBackward | Op::Detach => {
                self.value(self.graph.source(node, 0))
            }
            Op::Index => self.extract(node),
            Op::Reduce => self.reduce(node),
            Op::Cast => self.cast(node),
            Op::Bitcast => self.bitcast(node),
            Op::Ins => self.single(node),
            Op::Wmma => self.wmma(node),
            Op::Custom => self.custom(node),
            Op::Special => self.special(node),
            op if op.is_elementwise() => self.elementwise(node),
            _ => Err(self.unsupported(node, "it is not an instruction of a kernel")),
        }
    }

    /// Emits at this loop depth: before the loop that is open there.
    fn at_depth<T>(&mut self, depth: usize, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let Some(level) = self.levels.get(depth) else { return body(self) };
        let current = self.emit.block();
        self.emit.enter_before_end(level.before);
        let result = body(self);
        // The current block may already have a terminator: hoisting nests when a hoisted value's operand is emitted on demand.
        self.emit.enter_before_end(current);
        result
    }

    fn placed(&mut self, node: NodeId) -> Result<Placed> {
        if let Some(placed) = self.values[node.index()] {
            return Ok(placed);
        }
        // An After of a value is the value.
        if self.graph.op(node) == Op::After && !self.is_place(node) {
            return self.placed(self.graph.source(node, 0));
        }
        // Constants, and vectors of them, are emitted where they are used.
        let constant = |node: &NodeId| self.graph.op(*node) == Op::Const;
        if constant(&node) || self.graph.op(node) == Op::Stack && self.graph.sources(node).iter().all(constant) {
            let value = self.compute(node)?;
            let placed = Placed { value, depth: 0 };
            self.values[node.index()] = Some(placed);
            return Ok(placed);
        }
        // Lanes are extracted where they are used.
        if self.graph.op(node) == Op::Index && !self.is_place(self.graph.source(node, 0)) {
            return self.on_demand(node);
        }
        // So is the conversion of an offset to `index`.
        if self.graph.op(node) == Op::Cast && self.values[self.graph.source(node, 0).index()].is_some() {
            return self.on_demand(node);
        }
        Err(self.unsupported(node, "it is used before it is computed"))
    }

    /// Computes a node where it is used. A value inside an If does not dominate uses outside, so each such use computes it again.
    fn on_demand(&mut self, node: NodeId) -> Result<Placed> {
        self.pure(node)?;
        let placed = self.values[node.index()].ok_or_else(|| self.unsupported(node, "it has no value"))?;
        if self.levels.iter().take(placed.depth).any(|level| !level.is_loop()) {
            self.values[node.index()] = None;
        }
        Ok(placed)
    }

    fn value(&mut self, node: NodeId) -> Result<Value> {
        Ok(self.placed(node)?.value)
    }

    /// The value, broadcast to as many lanes as its user has.
    fn value_in(&mut self, node: NodeId, lanes: u32) -> Result<Value> {
        let value = self.value(node)?;
        self.emit.splat(value, lanes)
    }

    /// Lanes of a node: `()` and `(1,)` are scalars.
    fn lanes(&self, node: NodeId) -> Result<u32> {
        let dims = self.graph.props(node).shape.iter().map(Dim::as_const);
        let count = dims.product::<Option<i64>>().filter(|count| (1..=1024).contains(count));
        count.map(|count| count as u32).ok_or_else(|| self.unsupported(node, "its shape is no machine vector"))
    }

    fn kind(&self, node: NodeId) -> Kind {
        Kind::of(self.graph.dtype(node))
    }

    fn unsupported(&self, node: NodeId, reason: &str) -> BackendError {
        let (op, dtype) = (self.graph.op(node), self.graph.dtype(node));
        BackendError::Unsupported {
            target: self.target.name.clone(),
            op: format!("{op}: {dtype}"),
            reason: format!("{reason} (node {} of kernel `{}`)", node.0, self.kernel.name),
        }
    }
}
