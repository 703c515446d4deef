//! Functions that occur often are lowered once ("The @function Decorator": "lowered into an opaque Call").
//!
//! [`Outlined::of`] runs before all passes over a tensor graph. Where several Functions have equal bodies, as the layers of a network
//! do, their body is cut into kernels once (`body`), and each of them becomes an opaque Call in the graph; the others are inlined. Once
//! the graph itself is cut into kernels, [`Outlined::splice`] replaces each of these Calls by the Calls of the body's schedule (`splice`).
//!
//! Nothing is fused across the border of an opaque Call. So a Function is inlined if the bytes that fusion might save there are worth
//! more than `MOST_LOST` of its work.
//!
//! A Function and its gradient share the values of the forward pass that the gradient needs. They are scheduled together as one body
//! with a hole: an opaque Call that takes the Function's results and gives the cotangents stands for the rest of the program. The
//! Calls of the body that depend on the hole belong to the gradient, the others to the Function.

mod body;
mod splice;

use super::rangeify::{Costs, Schedule};
use body::Body;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use tinyspec_backends::Target;
use tinyspec_ir::custom_function::{self, CustomFunction, Meta};
use tinyspec_ir::function::{function_values, inline, inline_all, replace_functions};
use tinyspec_ir::{Arg, Builder, DType, Device, Dim, Graph, Location, NodeId, Op, Result, Shape};

/// The least number of equal Functions that are lowered once.
const LEAST_USES: usize = 4;
/// The greatest part of its work that a Function may lose at its border.
const MOST_LOST: f64 = 0.02;
/// The custom function that an opaque Call names; its parameters are the number of the body, the part of it, and the number of the use.
const OPAQUE: &str = "tinyspec::function";

/// A tensor graph without Functions: those that occur often are opaque Calls, the others are inlined.
pub struct Outlined {
    /// The graph.
    pub graph: Graph,
    /// Its results.
    pub outputs: Vec<NodeId>,
    /// The bodies behind the opaque Calls.
    bodies: Vec<Body>,
    /// The decisions about the Functions that occur often.
    verdicts: Vec<Verdict>,
}

/// Whether Functions with one body are lowered once, and why.
#[derive(Clone, Debug)]
struct Verdict {
    uses: usize,
    line: Option<Location>,
    /// The part of its work that a Function may lose at its border; `None` if there is no schedule for its body alone.
    lost: Option<f64>,
}

impl Verdict {
    fn is_lowered(&self) -> bool {
        self.lost.is_some_and(|lost| lost <= MOST_LOST)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Verdict { uses, line, lost } = self;
        write!(f, "{uses} equal Functions")?;
        if let Some(line) = line {
            write!(f, ", the first at {line},")?;
        }
        match lost {
            Some(lost) if self.is_lowered() => {
                write!(
                    f,
                    " are lowered once: fusion across their border saves at most {:.1} % of their work",
                    100.0 * lost
                )
            }
            Some(lost) => {
                write!(f, " are inlined: fusion across their border may save {:.1} % of their work", 100.0 * lost)
            }
            None => f.write_str(" are inlined: their body has no schedule of its own"),
        }
    }
}

impl Outlined {
    /// Outlines the Functions of a graph.
    ///
    /// # Errors
    /// When a Function cannot be inlined, or a stage refuses its body.
    pub fn of(graph: &Graph, outputs: &[NodeId], target: &Target) -> Result<Outlined> {
        let mut outlined =
            Outlined { graph: graph.clone(), outputs: outputs.to_vec(), bodies: vec![], verdicts: vec![] };
        // A Function that contains others is considered before them: inlining it adds to their number.
        while let Some(level) = outermost(&outlined.graph, &outlined.outputs) {
            outlined.lower_level(&level, target)?;
        }
        Ok(outlined)
    }

    /// As [`Outlined::of`], with all Functions inlined.
    ///
    /// # Errors
    /// When a Function cannot be inlined.
    pub fn inlined(graph: &Graph, outputs: &[NodeId]) -> Result<Outlined> {
        let (graph, outputs) = inline_all(graph.clone(), outputs.to_vec())?;
        Ok(Outlined { graph, outputs, bodies: vec![], verdicts: vec![] })
    }

    /// The decisions about the Functions that occur often, one line each.
    pub fn explain(&self) -> String {
        self.verdicts.iter().map(|verdict| format!("{verdict}\n")).collect()
    }

    /// Whether no Function was lowered on its own.
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// The schedule of the graph with the schedules of its Functions.
    ///
    /// # Errors
    /// When a node cannot be made, which would be a mistake of this module.
    pub fn splice(&self, schedule: Schedule) -> Result<Schedule> {
        if self.is_empty() { Ok(schedule) } else { splice::spliced(&self.bodies, schedule) }
    }

    /// Replaces the Functions of one level.
    fn lower_level(&mut self, level: &[NodeId], target: &Target) -> Result<()> {
        let costs = Costs::of(target);
        let users = Users::of(&self.graph, &self.outputs);
        let mut families = families(&self.graph, level, &users);
        families.retain(|family| family.uses.len() >= LEAST_USES);
        let mut kept: Vec<(Family, Body)> = Vec::with_capacity(families.len());
        for family in families {
            match Body::of(&self.graph, &family, target) {
                Some(body) => kept.push((family, body)),
                None => self.verdicts.push(family.verdict(&self.graph, None)),
            }
        }
        // The loss of one family at its border depends on which others are kept.
        loop {
            let parts: FxHashMap<NodeId, (&Body, usize)> =
                kept.iter().flat_map(|(family, body)| family.parts(body)).collect();
            let verdict = |(family, body): &(Family, Body)| {
                let lost: f64 = family.uses.iter().map(|one| one.lost(&self.graph, body, &parts, &users, &costs)).sum();
                family.verdict(&self.graph, Some(lost / (body.work * family.uses.len() as f64)))
            };
            let verdicts: Vec<Verdict> = kept.iter().map(verdict).collect();
            let Some(refused) = verdicts.iter().position(|verdict| !verdict.is_lowered()) else {
                self.verdicts.extend(verdicts);
                break;
            };
            self.verdicts.push(verdicts[refused].clone());
            kept.remove(refused);
        }
        let first = self.bodies.len();
        let mut places: FxHashMap<NodeId, Place> = FxHashMap::default();
        for (number, (family, _)) in kept.iter().enumerate() {
            for (position, one) in family.uses.iter().enumerate() {
                for (part, &function) in one.functions.iter().enumerate() {
                    places.insert(function, Place { family: number, one: position, part });
                }
            }
        }
        let level: FxHashSet<NodeId> = level.iter().copied().collect();
        // The results of the parts of each use so far.
        let mut made: FxHashMap<(usize, usize), Vec<NodeId>> = FxHashMap::default();
        let graph = &self.graph;
        let (opened, outputs) = replace_functions(graph, &self.outputs, |opened, node, arguments| {
            let Some(&Place { family, one, part }) = places.get(&node) else {
                let results = || inline(opened, graph, &function_values(graph, node), arguments);
                return level.contains(&node).then(results).transpose();
            };
            let (uses, body) = (&kept[family].0.uses, &kept[family].1);
            let earlier = made.entry((family, one)).or_default();
            // Passing the results of earlier parts orders this Call after them.
            let mut passed: Vec<NodeId> = uses[one].taken(graph, node, arguments);
            passed.extend(earlier.iter());
            let of_part = &body.parts[part];
            let function = CustomFunction {
                name: OPAQUE.into(),
                made: of_part.results.len(),
                updated: 0,
                meta: [first + family, part, one].map(|number| (number as i64).into()).to_vec(),
            };
            let kinds: Vec<(DType, Shape)> = of_part.results.iter().map(|result| result.kind.clone()).collect();
            let given = function.call(opened, &kinds, &passed)?;
            earlier.extend(&given);
            // A result that no use needs has no value.
            let mut results = vec![opened.index(0); function_values(graph, node).len()];
            for (result, value) in of_part.results.iter().zip(given) {
                results[result.number] = value;
            }
            Ok(Some(results))
        })?;
        (self.graph, self.outputs) = (opened, outputs);
        self.bodies.extend(kept.into_iter().map(|(_, body)| body));
        Ok(())
    }
}

/// The numbers of the body, the part and the use of an opaque Call; `None` for another kernel.
fn opaque(graph: &Graph, kernel: NodeId) -> Option<(usize, usize, usize)> {
    let function = custom_function::of(graph, kernel).filter(|function| &*function.name == OPAQUE)?;
    let number = |meta: &Meta| match meta {
        Meta::Int(number) => usize::try_from(*number).ok(),
        _ => None,
    };
    let [body, part, one] = &function.meta[..] else { return None };
    Some((number(body)?, number(part)?, number(one)?))
}

/// The position of a Function among the families.
#[derive(Clone, Copy)]
struct Place {
    family: usize,
    one: usize,
    part: usize,
}

/// The Functions that contain the deepest nests of Functions.
fn outermost(graph: &Graph, outputs: &[NodeId]) -> Option<Vec<NodeId>> {
    let functions: Vec<NodeId> =
        graph.reachable_outside_bodies(outputs).into_iter().filter(|&node| graph.op(node) == Op::Function).collect();
    if functions.is_empty() {
        return None;
    }
    // By node: the depth of the Functions at or below it.
    let mut depths = vec![0u32; graph.len()];
    let bodies: Vec<NodeId> = functions.iter().map(|&function| graph.source(function, 0)).collect();
    for node in graph.reachable(&bodies) {
        let below = graph.sources(node).iter().map(|source| depths[source.index()]).max().unwrap_or(0);
        let own = if graph.op(node) == Op::Function { 1 + depths[graph.source(node, 0).index()] } else { 0 };
        depths[node.index()] = below.max(own);
    }
    let depth = |&function: &NodeId| depths[graph.source(function, 0).index()];
    let deepest = functions.iter().map(depth).max()?;
    Some(functions.into_iter().filter(|function| depth(function) == deepest).collect())
}

/// The users of the results of Functions.
struct Users {
    /// By Function, the results that are used, with their numbers.
    results: FxHashMap<NodeId, Vec<(usize, NodeId)>>,
    /// By result, its users.
    of: FxHashMap<NodeId, Vec<NodeId>>,
}

impl Users {
    fn of(graph: &Graph, outputs: &[NodeId]) -> Users {
        let mut users = Users { results: FxHashMap::default(), of: FxHashMap::default() };
        for node in graph.reachable_outside_bodies(outputs) {
            let closed = usize::from(matches!(graph.op(node), Op::Function | Op::Call));
            for &source in &graph.sources(node)[closed..] {
                match (graph.op(source), graph.arg(node)) {
                    (Op::Function, Arg::Number(number)) => {
                        users.results.entry(source).or_default().push((*number as usize, node));
                    }
                    (Op::GetTuple, _) => users.of.entry(source).or_default().push(node),
                    _ => {}
                }
            }
        }
        users
    }
}

/// How an argument of a body is passed.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Taken {
    /// A value in memory.
    Value(DType, Shape, Option<Device>),
    /// The same value as the argument at this position.
    Same(usize),
    /// A constant, or the value of a dim, which is part of the body.
    Known(NodeId),
}

/// A Function, and after it its gradient, in one place of the graph.
struct Use {
    functions: Vec<NodeId>,
    /// The arguments of the last one, which begin with those of the others; without dims.
    arguments: Vec<NodeId>,
    /// By part, how many of them it takes.
    counts: Vec<usize>,
}

/// The bodies of a use's Functions, how many of the arguments each takes, and how they are passed: equal for uses of one body.
type Key = (Vec<NodeId>, Vec<usize>, Vec<Taken>);

/// Uses with one body.
struct Family {
    taken: Vec<Taken>,
    /// By part, the numbers of the results that some use needs.
    results: Vec<Vec<usize>>,
    uses: Vec<Use>,
}

impl Family {
    fn verdict(&self, graph: &Graph, lost: Option<f64>) -> Verdict {
        let line = self.uses.first().and_then(|one| graph.locations(one.functions[0]).first().cloned());
        Verdict { uses: self.uses.len(), line, lost }
    }

    /// Its Functions, each with the body and the number of its part.
    fn parts<'b>(&self, body: &'b Body) -> impl Iterator<Item = (NodeId, (&'b Body, usize))> {
        self.uses.iter().flat_map(move |one| one.functions.iter().enumerate().map(move |(part, &f)| (f, (body, part))))
    }
}

/// The arguments of a Function without the values of dims.
fn inputs(graph: &Graph, function: NodeId) -> Vec<NodeId> {
    let is_input = |node: &NodeId| graph.dtype(*node) != DType::Index;
    graph.sources(function)[1..].iter().copied().filter(is_input).collect()
}

/// The Functions of a level, grouped by their bodies.
fn families(graph: &Graph, level: &[NodeId], users: &Users) -> Vec<Family> {
    let mut uses: Vec<Use> = Vec::new();
    // By arguments: the use that a longer list of arguments may extend.
    let mut open: FxHashMap<Vec<NodeId>, usize> = FxHashMap::default();
    for &function in level {
        let arguments = inputs(graph, function);
        let shorter = (1..arguments.len()).rev().find_map(|count| open.remove(&arguments[..count]));
        let number = match shorter {
            Some(number) => {
                let one = &mut uses[number];
                one.functions.push(function);
                one.counts.push(arguments.len());
                one.arguments.clone_from(&arguments);
                number
            }
            None => {
                uses.push(Use {
                    functions: vec![function],
                    counts: vec![arguments.len()],
                    arguments: arguments.clone(),
                });
                uses.len() - 1
            }
        };
        open.entry(arguments).or_insert(number);
    }
    let mut families: Vec<Family> = Vec::new();
    let mut known: FxHashMap<Key, usize> = FxHashMap::default();
    for one in uses {
        let Some(taken) = one.kinds(graph) else { continue };
        let bodies = one.functions.iter().map(|&function| graph.source(function, 0)).collect();
        let number = *known.entry((bodies, one.counts.clone(), taken.clone())).or_insert(families.len());
        if number == families.len() {
            families.push(Family { taken, results: vec![vec![]; one.functions.len()], uses: vec![] });
        }
        let family = &mut families[number];
        for (results, function) in family.results.iter_mut().zip(&one.functions) {
            results.extend(users.results.get(function).into_iter().flatten().map(|&(number, _)| number));
            results.sort_unstable();
            results.dedup();
        }
        family.uses.push(one);
    }
    families
}

impl Use {
    /// How its arguments are passed; `None` if it has to be inlined.
    fn kinds(&self, graph: &Graph) -> Option<Vec<Taken>> {
        let is_plain = |shape: &Shape, device: &Option<Device>| {
            shape.iter().all(|dim| dim.as_const().is_some_and(|length| length > 0))
                && !matches!(device, Some(Device::Many(_)))
        };
        let are_plain = |&function: &NodeId| {
            let results = graph.props(function).elements.as_ref();
            // Dims come last.
            let dims = &graph.sources(function)[1 + inputs(graph, function).len()..];
            results.is_some_and(|results| results.iter().all(|props| is_plain(&props.shape, &props.device)))
                && dims.iter().all(|&dim| graph.dtype(dim) == DType::Index && graph.as_int(dim).is_some())
        };
        if !self.functions.iter().all(are_plain) {
            return None;
        }
        let mut taken = Vec::with_capacity(self.arguments.len());
        for (position, &argument) in self.arguments.iter().enumerate() {
            let props = graph.props(argument);
            taken.push(match self.arguments[..position].iter().position(|&other| other == argument) {
                Some(other) => Taken::Same(other),
                None if graph.op(graph.viewed(argument)) == Op::Const => Taken::Known(argument),
                None if is_plain(&props.shape, &props.device) => {
                    Taken::Value(props.dtype, props.shape.clone(), props.device.clone())
                }
                None => return None,
            });
        }
        let dims = self.functions.iter().flat_map(|&function| &graph.sources(function)[1..]);
        taken.extend(dims.filter(|&&node| graph.dtype(node) == DType::Index).map(|&dim| Taken::Known(dim)));
        Some(taken)
    }

    /// The arguments that an opaque Call takes from memory, among the new `arguments` of one of its Functions.
    fn taken(&self, graph: &Graph, function: NodeId, arguments: &[NodeId]) -> Vec<NodeId> {
        let old = inputs(graph, function);
        let is_first = |position: usize| !old[..position].contains(&old[position]);
        let is_value = |position: &usize| is_first(*position) && graph.op(graph.viewed(old[*position])) != Op::Const;
        // Dims come last.
        (0..old.len()).filter(is_value).map(|position| arguments[position]).collect()
    }

    /// The time that fusion across its border might save, in units of [`Costs`].
    fn lost(
        &self,
        graph: &Graph,
        body: &Body,
        parts: &FxHashMap<NodeId, (&Body, usize)>,
        users: &Users,
        costs: &Costs,
    ) -> f64 {
        let bytes = |node: NodeId| {
            let props = graph.props(node);
            let elements: i64 = props.shape.iter().filter_map(Dim::as_const).product();
            (elements as usize * props.dtype.size()) as f64
        };
        // The value is written and read, and its fused operations become a separate kernel.
        let cost = |node: NodeId| 2.0 * bytes(node) * costs.byte + costs.launch;
        // The body that gives a value, and the number of its part.
        let giver = |node: NodeId| {
            let (Op::GetTuple, Arg::Number(number)) = (graph.op(node), graph.arg(node)) else { return None };
            let (giver, part) = parts.get(&graph.source(node, 0))?;
            giver.parts[*part].results.iter().find(|result| result.number == *number as usize)
        };
        let mut lost = 0.0;
        for (position, &argument) in self.arguments.iter().enumerate() {
            let Some(reads) = body.read_by(position) else { continue };
            let base = if graph.op(argument) == Op::Reshape { graph.source(argument, 0) } else { argument };
            lost += match giver(base) {
                // In memory even if both bodies were inlined.
                Some(result) if result.is_stored_for(reads) => 0.0,
                None if matches!(graph.op(base), Op::Param | Op::Buffer) => 0.0,
                _ => cost(argument),
            };
        }
        for function in &self.functions {
            for &(_, result) in users.results.get(function).into_iter().flatten() {
                let users = users.of.get(&result).into_iter().flatten();
                if users.into_iter().any(|&user| graph.op(user) != Op::Function) {
                    lost += cost(result);
                }
            }
        }
        lost
    }
}
