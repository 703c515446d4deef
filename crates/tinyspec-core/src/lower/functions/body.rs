//! A body that several Functions have, cut into kernels.

use super::Outlined;
use super::uses::{Family, Taken};
use crate::lower::pass::is_shown;
use crate::lower::rangeify::{CUT, Costs, KernelCall, SIMPLIFY, Schedule, rangeify, run_on_tensors};
use crate::profile;
use rustc_hash::{FxHashMap, FxHashSet};
use tinyspec_backends::Target;
use tinyspec_ir::custom_function::{self, CustomFunction, Meta};
use tinyspec_ir::function::{function_values, inline};
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, Dim, Graph, NodeId, Op, Result, Shape};

/// The custom function that stands for the rest of the program between two parts of a body; its parameter is the number of the part
/// that comes after it.
const HOLE: &str = "tinyspec::rest_of_the_program";
/// Operations per element that a kernel reads or writes from which on it computes rather than moves data.
const COMPUTES: f64 = 8.0;

/// A body as Calls on kernels.
pub(super) struct Body {
    pub schedule: Schedule,
    /// By Call, the number of its part; `None` for a hole.
    pub part_of: Vec<Option<usize>>,
    pub parts: Vec<Part>,
    /// The time that its kernels take, in units of [`Costs`].
    pub work: f64,
    /// The arguments in memory: Params, or Buffers that a hole writes.
    pub places: Vec<NodeId>,
    /// For each argument in memory, its state when the body reads it: for a Buffer that a hole writes, after the hole.
    pub given: Vec<NodeId>,
    reads: Vec<Reads>,
    /// By position in the list of arguments, the number of the argument in memory.
    numbers: Vec<Option<usize>>,
}

/// One Function of a use.
pub(super) struct Part {
    pub results: Vec<Given>,
}

/// A result that some use needs.
pub(super) struct Given {
    /// Its number among the Function's results.
    pub number: usize,
    pub kind: (DType, Shape),
    /// Its Buffer after the Call that writes it.
    pub state: NodeId,
    /// Whether this Call reduces, and whether it computes rather than moves data.
    reduces: bool,
    computes: bool,
}

/// How the kernels of a body read an argument.
#[derive(Clone, Copy, Default)]
pub(super) struct Reads {
    kernels: usize,
    /// Whether one of them computes rather than moves data.
    computes: bool,
}

impl Given {
    /// Whether the fusion law stores the value for such readers in any case: no kernel recomputes a sum for several others, and
    /// none computes two products.
    pub(super) fn is_stored_for(&self, reads: Reads) -> bool {
        self.reduces && (reads.kernels > 1 || self.computes && reads.computes)
    }
}

impl Body {
    /// The body of a family. `None` if its results do not have memory of their own, or a stage refuses it: once it is inlined, the
    /// error names the line of the call.
    pub(super) fn of(graph: &Graph, family: &Family, target: &Target) -> Option<Body> {
        let Joined { graph: own, roots, numbers, kinds } = Joined::of(graph, family).ok()?;
        let schedule = scheduled(&own, &roots, target).ok()?;
        let places = places(&schedule, &numbers)?;
        let distinct: FxHashSet<NodeId> = schedule.outputs.iter().copied().collect();
        let has_memory = |&state: &NodeId| {
            let graph = &schedule.graph;
            matches!(graph.sources(state), [buffer, _] if graph.op(state) == Op::After && schedule.buffers.contains(buffer))
        };
        if distinct.len() < schedule.outputs.len() || !distinct.iter().all(has_memory) {
            return None;
        }
        let kernels = schedule.calls.iter().filter(|call| hole(&schedule.graph, call.kernel).is_none());
        let facts: FxHashMap<NodeId, Facts> =
            kernels.map(|call| (call.node, Facts::of(&schedule.graph, call))).collect();
        let costs = Costs::of(target);
        let work = facts.values().map(|facts| facts.time(&costs)).sum();
        let reads = places.iter().map(|&place| reads(&schedule, place, &facts)).collect();
        let states = given(&schedule, &places);
        let mut given = schedule.outputs.iter().zip(kinds);
        let parts = family.results.iter().map(|numbers| {
            let results = numbers.iter().zip(given.by_ref()).map(|(&number, (&state, kind))| {
                let writer = facts.get(&schedule.graph.source(state, 1));
                let (reduces, computes) = writer.map_or((true, true), |facts| (facts.reduces, facts.computes()));
                Given { number, kind, state, reduces, computes }
            });
            Part { results: results.collect() }
        });
        let parts = parts.collect();
        let part_of = part_of(&schedule);
        Some(Body { part_of, parts, work, places, given: states, reads, numbers, schedule })
    }

    /// How the argument at a position is read; `None` if it is not passed in memory.
    pub(super) fn read_by(&self, position: usize) -> Option<Reads> {
        self.numbers[position].map(|number| self.reads[number])
    }
}

/// The parts of a body in one graph, with holes between them.
struct Joined {
    graph: Graph,
    /// The results that some use needs, part by part.
    roots: Vec<NodeId>,
    kinds: Vec<(DType, Shape)>,
    /// By position in the list of arguments, the number of the argument in memory.
    numbers: Vec<Option<usize>>,
}

impl Joined {
    fn of(graph: &Graph, family: &Family) -> Result<Joined> {
        let one = &family.uses[0];
        let mut joined = Joined { graph: Graph::new(), roots: vec![], kinds: vec![], numbers: vec![] };
        let mut arguments: Vec<NodeId> = Vec::with_capacity(one.arguments.len());
        let mut count = 0;
        for (part, &function) in one.functions.iter().enumerate() {
            let new = &family.taken[arguments.len()..one.counts[part]];
            let own = &mut joined.graph;
            let values = new.iter().filter_map(|taken| match taken {
                Taken::Value(dtype, shape, _) => Some((*dtype, shape.clone())),
                _ => None,
            });
            let values: Vec<(DType, Shape)> = values.collect();
            let mut given = match part {
                0 => params(own, &values)?,
                _ => {
                    let meta = vec![Meta::Int(part as i64)];
                    let hole = CustomFunction { name: HOLE.into(), made: values.len(), updated: 0, meta };
                    hole.call(own, &values, &joined.roots)?
                }
            }
            .into_iter();
            for (taken, &argument) in new.iter().zip(&one.arguments[arguments.len()..]) {
                let (value, number) = match taken {
                    Taken::Value(..) => {
                        count += 1;
                        (given.next(), Some(count - 1))
                    }
                    Taken::Same(position) => (arguments.get(*position).copied(), None),
                    Taken::Known(_) => (own.import(graph, &[argument], |_, _| Ok(None))?.first().copied(), None),
                };
                arguments.extend(value);
                joined.numbers.push(number);
            }
            let dims: Vec<NodeId> = graph.sources(function)[1..]
                .iter()
                .copied()
                .filter(|&node| graph.dtype(node) == DType::Index)
                .collect();
            let dims = own.import(graph, &dims, |_, _| Ok(None))?;
            let results = inline(own, graph, &function_values(graph, function), &[&arguments[..], &dims].concat())?;
            for &number in &family.results[part] {
                let props = own.props(results[number]);
                joined.kinds.push((props.dtype, props.shape.clone()));
                joined.roots.push(results[number]);
            }
        }
        Ok(joined)
    }
}

fn params(graph: &mut Graph, values: &[(DType, Shape)]) -> Result<Vec<NodeId>> {
    let param = |(slot, (dtype, shape)): (u32, &(DType, Shape))| {
        let shape = graph.shape(shape)?;
        let arg = Arg::Param { slot, dtype: *dtype, device: None, addrspace: Some(AddrSpace::Global) };
        graph.add(Op::Param, &[shape], arg)
    };
    (0..).zip(values).map(param).collect()
}

fn scheduled(graph: &Graph, roots: &[NodeId], target: &Target) -> Result<Schedule> {
    let outlined = Outlined::of(graph, roots, target)?;
    let simplified = run_on_tensors(SIMPLIFY, &outlined.graph, &outlined.outputs, &Costs::of(target), target)?;
    let (graph, roots) = match &simplified {
        Some((graph, roots)) => (graph, roots),
        None => (&outlined.graph, &outlined.outputs),
    };
    let schedule = outlined.splice(rangeify(graph, roots, target)?)?;
    if is_shown(CUT) {
        profile::stage("function", graph, roots);
        tinyspec_backends::tell!("{}", schedule.explain(graph));
    }
    Ok(schedule)
}

/// The number of the part that comes after a hole; `None` for a kernel.
pub(super) fn hole(graph: &Graph, kernel: NodeId) -> Option<usize> {
    let function = custom_function::of(graph, kernel).filter(|function| &*function.name == HOLE)?;
    match function.meta[..] {
        [Meta::Int(part)] => usize::try_from(part).ok(),
        _ => None,
    }
}

/// The memory of the arguments, by number; `None` if some argument has none: nothing needs it.
fn places(schedule: &Schedule, numbers: &[Option<usize>]) -> Option<Vec<NodeId>> {
    let graph = &schedule.graph;
    let mut places: Vec<Option<NodeId>> = vec![None; numbers.iter().flatten().count()];
    for node in graph.reachable_outside_bodies(&[schedule.root]) {
        if let (Op::Param, &Arg::Param { slot, .. }) = (graph.op(node), graph.arg(node)) {
            *places.get_mut(slot as usize)? = Some(node);
        }
    }
    // Holes give the arguments that are no Params, part by part.
    let mut holes: Vec<&KernelCall> = schedule.calls.iter().filter(|call| hole(graph, call.kernel).is_some()).collect();
    holes.sort_by_key(|call| hole(graph, call.kernel));
    let made: usize = holes.iter().map(|call| call.outputs).sum();
    let first = places.len().checked_sub(made)?;
    let buffers = holes.iter().flat_map(|call| &graph.sources(call.node)[1..=call.outputs]);
    for (place, &buffer) in places[first..].iter_mut().zip(buffers) {
        *place = Some(buffer);
    }
    places.into_iter().collect()
}

/// The states of the arguments once they are given.
fn given(schedule: &Schedule, places: &[NodeId]) -> Vec<NodeId> {
    let graph = &schedule.graph;
    let mut given = places.to_vec();
    let holes = schedule.calls.iter().filter(|call| hole(graph, call.kernel).is_some());
    let holes: FxHashSet<NodeId> = holes.map(|call| call.node).collect();
    for node in graph.reachable_outside_bodies(&[schedule.root]) {
        if let (Op::After, &[buffer, call]) = (graph.op(node), graph.sources(node))
            && holes.contains(&call)
            && let Some(number) = places.iter().position(|&place| place == buffer)
        {
            given[number] = node;
        }
    }
    given
}

/// By Call, the number of its part: it comes after the holes that it depends on.
fn part_of(schedule: &Schedule) -> Vec<Option<usize>> {
    let graph = &schedule.graph;
    let kernel: FxHashMap<NodeId, NodeId> = schedule.calls.iter().map(|call| (call.node, call.kernel)).collect();
    let mut part: FxHashMap<NodeId, usize> = FxHashMap::default();
    for node in graph.reachable_outside_bodies(&[schedule.root]) {
        let below = graph.sources(node).iter().filter_map(|source| part.get(source)).max().copied().unwrap_or(0);
        let own = kernel.get(&node).and_then(|&kernel| hole(graph, kernel)).unwrap_or(0);
        part.insert(node, below.max(own));
    }
    let part_of = |call: &KernelCall| match hole(graph, call.kernel) {
        Some(_) => None,
        None => part.get(&call.node).copied(),
    };
    schedule.calls.iter().map(part_of).collect()
}

/// The Buffer or Param below states and sections.
fn memory(graph: &Graph, mut node: NodeId) -> NodeId {
    while matches!(graph.op(node), Op::After | Op::Shrink) {
        node = graph.source(node, 0);
    }
    node
}

fn reads(schedule: &Schedule, place: NodeId, facts: &FxHashMap<NodeId, Facts>) -> Reads {
    let graph = &schedule.graph;
    let mut reads = Reads::default();
    for call in &schedule.calls {
        let Some(facts) = facts.get(&call.node) else { continue };
        let arguments = graph.sources(call.node).get(1 + call.outputs..).unwrap_or_default();
        if arguments.iter().any(|&argument| memory(graph, argument) == place) {
            reads.kernels += 1;
            reads.computes |= facts.computes();
        }
    }
    reads
}

/// A kernel, as far as its time depends on it.
struct Facts {
    operations: f64,
    elements: f64,
    bytes: f64,
    reduces: bool,
}

impl Facts {
    fn of(graph: &Graph, call: &KernelCall) -> Facts {
        let mut facts = Facts { operations: 0.0, elements: 0.0, bytes: 0.0, reduces: true };
        for &argument in graph.sources(call.node).iter().skip(1).filter(|&&node| graph.dtype(node) != DType::Index) {
            let elements: i64 = graph.props(argument).shape.iter().filter_map(Dim::as_const).product();
            facts.elements += elements as f64;
            facts.bytes += elements as f64 * graph.dtype(argument).size() as f64;
        }
        if graph.op(call.kernel) == Op::Sink {
            facts.operations = profile::Facts::of(graph, call.kernel).work as f64;
            facts.reduces = graph.reachable(&[call.kernel]).into_iter().any(|node| graph.op(node) == Op::Reduce);
        }
        facts
    }

    fn computes(&self) -> bool {
        self.operations > COMPUTES * self.elements
    }

    fn time(&self, costs: &Costs) -> f64 {
        self.operations.max(self.bytes * costs.byte) + costs.launch
    }
}
