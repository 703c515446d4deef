//! Traces a kernel's syntax into its graph.
//!
//! Values are in SSA form; only effects on memory are ordered. Each buffer records the effects that a later access must
//! wait for, and an access waits only for those that its own value does not imply already. A kernel without such
//! hazards is a plain kernel in range form.

mod arithmetic;
mod effects;
mod exits;
mod expression;
mod function;
mod inline;
mod loops;
mod overflow;
mod phases;
mod reduction;
mod statement;
mod value;

use super::syntax::*;
use crate::diagnostics::{Diagnostics, Place as At};
use crate::function::STD_MACROS;
use effects::Memory;
pub use function::is_known;
use loops::OpenLoop;
use proc_macro2::Ident;
use std::collections::{HashMap, HashSet};
use tinyspec_ir::signature::NamedDim;
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, NodeId, Op, Result};
use value::{Value, Variable};

/// A traced kernel and its source locations.
pub struct Traced {
    pub graph: tinyspec_ir::Graph,
    pub sink: NodeId,
    /// Locations of accesses and loops.
    pub places: HashMap<NodeId, Written>,
    /// Names of the loop variables.
    pub loops: HashMap<NodeId, String>,
    /// Outer constants, in the order of their slots.
    pub constants: Vec<syn::Path>,
    /// Shapes of the buffers, by position of the parameter.
    pub shapes: Vec<tinyspec_ir::Shape>,
    /// Slots of the Params, by position of the parameter.
    pub slots: Vec<u32>,
    /// Part of the kernel is in `unsafe`.
    pub vouched: bool,
    /// Names of the functions that it calls.
    pub called: HashSet<String>,
    /// Nothing was refused; otherwise the graph contains what was understood, so that its accesses can be checked.
    pub is_whole: bool,
}

/// Where an access was written, and how.
#[derive(Clone)]
pub struct Written {
    pub at: At,
    /// Locations of the indices.
    pub indices: Vec<At>,
    pub buffer: String,
    /// It is inside `unsafe`.
    pub vouched: bool,
    /// The call in the kernel whose function contains it.
    pub call: Option<At>,
}

/// The binding of a name.
#[derive(Clone)]
enum Binding {
    /// A loop variable, a dim, an outer constant: an index.
    Index(NodeId),
    Variable(usize),
    Memory(usize),
    /// A buffer, or a part of one, that was passed to a function.
    View(View),
    /// A Reg buffer: one variable for each element.
    Registers {
        dims: Vec<i64>,
        first: usize,
        mutable: bool,
    },
    /// A scalar parameter.
    Scalar(NodeId),
    /// A variable that is live across a barrier: a local buffer with an element for each iteration of the local loops.
    Cell {
        memory: usize,
        dtype: DType,
        mutable: bool,
    },
    /// Arithmetic on the local loops' Ranges, which is rematerialised after a barrier.
    Again {
        node: NodeId,
        ranges: Vec<NodeId>,
    },
    /// It could not be traced; its mistake is reported already.
    Wrong,
}

/// A buffer as a function sees it.
#[derive(Clone)]
struct View {
    memory: usize,
    /// For each axis, the index that the call gave, if it did, and where.
    fixed: Vec<Option<(NodeId, At)>>,
    mutable: bool,
}

struct Tracer<'a> {
    graph: tinyspec_ir::Graph,
    diagnostics: &'a mut Diagnostics,
    scopes: Vec<HashMap<String, Binding>>,
    variables: Vec<Variable>,
    memories: Vec<Memory>,
    loops: Vec<OpenLoop>,
    /// The `break`s and `continue`s of the loops whose bodies are being traced.
    exits: Vec<exits::Exits>,
    /// The Ends of loops of 0 or 1 trips that are the whole bodies of the loops around them.
    once: HashSet<NodeId>,
    /// Conditions that hold here.
    gates: Vec<NodeId>,
    /// Effects outside all loops.
    effects: Vec<NodeId>,
    places: HashMap<NodeId, Written>,
    loop_names: HashMap<NodeId, String>,
    /// The functions that it may call; those of its own body come first.
    helpers: Vec<&'a Helper>,
    /// The calls around what is being traced.
    calls: Vec<(String, At)>,
    called: HashSet<String>,
    /// Whether the kernel calls a function that is wrong; the error at its definition is enough.
    calls_refused: bool,
    /// A function is traced by itself, so that its numbers are unknown.
    is_alone: bool,
    constants: Vec<syn::Path>,
    first_constant: u32,
    next_range: u32,
    next_buffer: u32,
    unsafe_depth: usize,
    vouched: bool,
    /// A parameter has no name, so any unknown name may be this parameter.
    is_unnamed: bool,
    /// The number of enclosing conditions that could not be traced: they may keep an access in bounds.
    doubts: usize,
    /// Open Ranges of the nodes asked about so far.
    open_ranges: effects::OpenRanges,
    /// The loads so far, by their place and the stores before them.
    reads: HashMap<(NodeId, Vec<NodeId>), Vec<effects::Read>>,
}

/// Traces one kernel. Mistakes go to `diagnostics` and affect only what depends on them; `None` without a body.
pub fn trace(kernel: &Kernel, helpers: &[Helper], diagnostics: &mut Diagnostics) -> Option<Traced> {
    let buffers = kernel.parameters.len() as u32;
    let helpers = kernel.helpers.iter().chain(helpers).collect();
    let mut tracer = Tracer::new(helpers, buffers + kernel.dims.len() as u32, diagnostics);
    tracer.is_unnamed = kernel.parameters.iter().any(|parameter| parameter.name == "_");
    let name = kernel.name.to_string();
    if STD_MACROS.contains(&name.as_str()) {
        tracer.error(kernel.name.span(), format!("`{name}` is also a macro of std: choose another name"));
    }
    let slots = slots(kernel);
    tracer.dims(kernel, buffers);
    let shapes = tracer.parameters(kernel, &slots);
    tracer.block(kernel.body.as_ref()?);
    if tracer.effects.is_empty() && tracer.diagnostics.is_empty() && !tracer.calls_refused {
        let message = format!("`{}` stores nothing: a kernel writes to a `&mut Global` or to a result", kernel.name);
        tracer.diagnostics.error(kernel.name.span(), message);
    }
    let is_whole = tracer.diagnostics.is_empty() && !tracer.calls_refused;
    let mut effects = std::mem::take(&mut tracer.effects);
    if !is_whole {
        // Loads whose value was not used because of a mistake.
        let mut reads: Vec<NodeId> = tracer.places.keys().copied().collect();
        reads.retain(|&node| tracer.graph.op(node) == Op::Load);
        reads.sort_unstable();
        effects.extend(reads);
    }
    let sink = match tracer.graph.add(Op::Sink, &effects, Arg::None) {
        Ok(sink) => sink,
        Err(_) => {
            tracer.lost(kernel.name.span().into());
            return None;
        }
    };
    let Tracer { graph, places, loop_names, constants, vouched, called, .. } = tracer;
    Some(Traced { graph, sink, places, loops: loop_names, constants, shapes, slots, vouched, called, is_whole })
}

/// Traces a function that no kernel calls, for its mistakes.
pub fn alone(helper: &Helper, helpers: &[Helper], diagnostics: &mut Diagnostics) {
    if helper.is_refused {
        return;
    }
    let mut tracer = Tracer::new(helpers.iter().collect(), 0, diagnostics);
    tracer.is_alone = true;
    tracer.by_itself(helper);
}

/// Written buffers come first.
fn slots(kernel: &Kernel) -> Vec<u32> {
    let mut order: Vec<usize> = (0..kernel.parameters.len()).collect();
    order.sort_by_key(|&position| !kernel.parameters[position].is_written());
    let mut slots = vec![0; order.len()];
    for (slot, position) in order.into_iter().enumerate() {
        slots[position] = slot as u32;
    }
    slots
}

impl<'a> Tracer<'a> {
    fn new(helpers: Vec<&'a Helper>, first_constant: u32, diagnostics: &'a mut Diagnostics) -> Tracer<'a> {
        Tracer {
            graph: tinyspec_ir::Graph::new(),
            diagnostics,
            scopes: vec![HashMap::new()],
            variables: vec![],
            memories: vec![],
            loops: vec![],
            exits: vec![],
            once: HashSet::new(),
            gates: vec![],
            effects: vec![],
            places: HashMap::new(),
            loop_names: HashMap::new(),
            helpers,
            calls: vec![],
            called: HashSet::new(),
            calls_refused: false,
            is_alone: false,
            constants: vec![],
            first_constant,
            next_range: 0,
            next_buffer: 0,
            unsafe_depth: 0,
            vouched: false,
            is_unnamed: false,
            doubts: 0,
            open_ranges: Default::default(),
            reads: HashMap::new(),
        }
    }

    fn error(&mut self, at: impl Into<At>, message: impl Into<String>) {
        self.diagnostics.error(at, message);
    }

    /// Something has no node, usually because of a reported mistake; if none was reported, that is an error, since the
    /// kernel would do something else.
    fn lost(&mut self, at: At) {
        // A call of a function that is not a kernel has its error at the definition.
        if self.diagnostics.is_empty() && !self.calls_refused {
            self.error(at, "this cannot be traced: write it in another way");
        }
    }

    /// The buffer of this name.
    fn view(&self, name: &Ident) -> Option<View> {
        match self.lookup(&name.to_string())? {
            Binding::Memory(memory) => {
                let Memory { dims, written, .. } = &self.memories[*memory];
                Some(View { memory: *memory, fixed: vec![None; dims.len()], mutable: *written })
            }
            Binding::View(view) => Some(view.clone()),
            _ => None,
        }
    }

    /// The node of a builder call; an error is reported in the builder's own words.
    fn made(&mut self, at: At, node: Result<NodeId>) -> Option<NodeId> {
        match node {
            Ok(node) => Some(node),
            Err(error) => {
                let help = error.suggestion().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
                self.error(at, format!("{}: {}{help}", error.op(), error.message()));
                None
            }
        }
    }

    /// The same for a buffer, whose name is in the message.
    fn buffer_made(&mut self, name: &str, at: At, node: Result<NodeId>) -> Option<NodeId> {
        node.map_err(|error| self.error(at, format!("`{name}`: {}", error.message()))).ok()
    }

    fn bind(&mut self, name: &Ident, binding: Binding) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), binding);
        }
    }

    fn lookup(&self, name: &str) -> Option<&Binding> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// A named dim or an outer constant, by slot.
    fn dim_param(&mut self, slot: u32, min: i64) -> NodeId {
        let made = self.graph.shape(&[]).and_then(|shape| {
            let (min, max) = (self.graph.index(min), self.graph.index(NamedDim::MAX));
            let arg = Arg::Param { slot, dtype: DType::Index, device: None, addrspace: None };
            self.graph.add(Op::Param, &[shape, min, max], arg)
        });
        made.unwrap_or_else(|error| unreachable!("{error}"))
    }

    fn dims(&mut self, kernel: &Kernel, first: u32) {
        for (position, name) in kernel.dims.iter().enumerate() {
            if kernel.dims[..position].contains(name) {
                self.error(name.span(), format!("the dim `{name}` is named twice"));
            }
            let dim = self.dim_param(first + position as u32, 1);
            self.bind(name, Binding::Index(dim));
        }
    }

    /// Binds the parameters and returns their shapes.
    fn parameters(&mut self, kernel: &Kernel, slots: &[u32]) -> Vec<tinyspec_ir::Shape> {
        let mut shapes = Vec::new();
        for (position, (parameter, &slot)) in kernel.parameters.iter().zip(slots).enumerate() {
            let name = parameter.name.to_string();
            if kernel.parameters[..position].iter().any(|other| other.name == parameter.name) {
                self.error(parameter.name.span(), format!("the parameter `{name}` is named twice"));
                shapes.push(Default::default());
                continue;
            } else if kernel.dims.contains(&parameter.name) {
                self.error(parameter.name.span(), format!("`{name}` is the name of a dim"));
            }
            if parameter.is_refused() {
                self.bind(&parameter.name, Binding::Wrong);
                shapes.push(Default::default());
                continue;
            }
            let Some(dims) = self.dim_nodes(parameter.dims()) else {
                self.bind(&parameter.name, Binding::Wrong);
                shapes.push(Default::default());
                continue;
            };
            let arg = Arg::Param { slot, dtype: parameter.dtype, device: None, addrspace: Some(AddrSpace::Global) };
            let made = self.graph.add(Op::Stack, &dims, Arg::None);
            let made = made.and_then(|shape| self.graph.add(Op::Param, &[shape], arg));
            let Some(node) = self.buffer_made(&name, parameter.at, made) else {
                self.bind(&parameter.name, Binding::Wrong);
                shapes.push(Default::default());
                continue;
            };
            shapes.push(self.graph.props(node).shape.clone());
            if let ParameterKind::Scalar = parameter.kind {
                let load = Arg::Load { device: None, addrspace: AddrSpace::Reg };
                let value = self.graph.add(Op::Index, &[node], Arg::None);
                let value = value.and_then(|place| self.graph.add(Op::Load, &[place], load));
                if let Some(value) = self.made(parameter.at, value) {
                    self.bind(&parameter.name, Binding::Scalar(value));
                }
                continue;
            }
            let written = parameter.is_written();
            let read = kernel.body.as_ref().is_some_and(|body| body.reads(&name));
            let memory = self.memory(name, node, dims, written, read);
            self.bind(&parameter.name, Binding::Memory(memory));
        }
        shapes
    }

    /// Dims of a buffer: indices made only of dims, constants and numbers.
    fn dim_nodes(&mut self, dims: &[Expr]) -> Option<Vec<NodeId>> {
        let mut nodes = Vec::new();
        for dim in dims {
            let value = self.expression(dim);
            let node = self.index(value, dim.at)?;
            if self.graph.props(node).value.is_none() {
                self.error(dim.at, "a dim is made of numbers, named dims and constants only");
                return None;
            }
            nodes.push(node);
        }
        Some(nodes)
    }

    /// An outer constant, which is bound when the kernel is called.
    fn constant(&mut self, path: &syn::Path) -> NodeId {
        let words = |path: &syn::Path| quote::quote!(#path).to_string();
        let known = self.constants.iter().position(|other| words(other) == words(path));
        let position = known.unwrap_or_else(|| {
            self.constants.push(path.clone());
            self.constants.len() - 1
        });
        self.dim_param(self.first_constant + position as u32, 0)
    }

    /// Traces expressions only for their mistakes.
    fn look_at<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr>) {
        for expr in expressions {
            self.expression(expr);
        }
    }

    /// Traces what a condition that could not be traced guards: its accesses are not checked for bounds.
    fn in_doubt<T>(&mut self, trace: impl FnOnce(&mut Self) -> T) -> T {
        self.doubts += 1;
        let traced = trace(self);
        self.doubts -= 1;
        traced
    }

    /// The conjunction of the conditions that hold here.
    fn gate(&mut self, from: usize) -> Option<NodeId> {
        let mut all: Option<NodeId> = None;
        for position in from..self.gates.len() {
            let gate = self.gates[position];
            all = Some(match all {
                Some(all) => self.graph.alu(Op::And, &[all, gate]).ok()?,
                None => gate,
            });
        }
        all
    }
}
