//! The Functions of a level, grouped by their bodies, and the loss at their borders.

use super::body::Body;
use crate::lower::rangeify::Costs;
use rustc_hash::FxHashMap;
use tinyspec_ir::{Arg, Builder, DType, Device, Dim, Graph, NodeId, Op, Shape};

/// The users of the results of Functions.
pub(super) struct Users {
    /// By Function, the results that are used, with their numbers.
    results: FxHashMap<NodeId, Vec<(usize, NodeId)>>,
    /// By result, its users.
    of: FxHashMap<NodeId, Vec<NodeId>>,
}

impl Users {
    pub(super) fn of(graph: &Graph, outputs: &[NodeId]) -> Users {
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
pub(super) enum Taken {
    /// A value in memory.
    Value(DType, Shape, Option<Device>),
    /// The same value as the argument at this position.
    Same(usize),
    /// A constant, or the value of a dim, which is part of the body.
    Known(NodeId),
}

/// A Function and, if the graph has it, the gradient Function over the same arguments, which follows it.
pub(super) struct Use {
    pub functions: Vec<NodeId>,
    /// The arguments of the last one, which begin with those of the others; without dims.
    pub arguments: Vec<NodeId>,
    /// By part, how many of them it takes.
    pub counts: Vec<usize>,
}

/// Identifies the body that uses share: the bodies of their Functions, the number of arguments that each takes, and how these are passed.
type Key = (Vec<NodeId>, Vec<usize>, Vec<Taken>);

/// Uses with one body.
pub(super) struct Family {
    pub taken: Vec<Taken>,
    /// By part, the numbers of the results that some use needs.
    pub results: Vec<Vec<usize>>,
    pub uses: Vec<Use>,
}

impl Family {
    /// Its Functions, each with the body and the number of its part.
    pub(super) fn parts<'b>(&self, body: &'b Body) -> impl Iterator<Item = (NodeId, (&'b Body, usize))> {
        self.uses.iter().flat_map(move |one| one.functions.iter().enumerate().map(move |(part, &f)| (f, (body, part))))
    }
}

/// The arguments of a Function without the values of dims.
fn inputs(graph: &Graph, function: NodeId) -> Vec<NodeId> {
    let is_input = |node: &NodeId| graph.dtype(*node) != DType::Index;
    graph.sources(function)[1..].iter().copied().filter(is_input).collect()
}

/// The Functions of a level, grouped by their bodies.
pub(super) fn families(graph: &Graph, level: &[NodeId], users: &Users) -> Vec<Family> {
    let mut uses: Vec<Use> = Vec::new();
    // Uses that a Function with the same arguments and more may extend, by their arguments.
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
    pub(super) fn taken(&self, graph: &Graph, function: NodeId, arguments: &[NodeId]) -> Vec<NodeId> {
        let old = inputs(graph, function);
        let is_first = |position: usize| !old[..position].contains(&old[position]);
        let is_value = |position: &usize| is_first(*position) && graph.op(graph.viewed(old[*position])) != Op::Const;
        // Dims come last.
        (0..old.len()).filter(is_value).map(|position| arguments[position]).collect()
    }

    /// The time that fusion across its border might save, in units of [`Costs`].
    pub(super) fn lost(
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
