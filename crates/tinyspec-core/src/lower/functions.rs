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
mod uses;

use super::rangeify::{Costs, Schedule};
use body::Body;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use tinyspec_backends::Target;
use tinyspec_ir::custom_function::{self, CustomFunction, Meta};
use tinyspec_ir::function::{function_values, inline, inline_all, replace_functions};
use tinyspec_ir::{Builder, DType, Graph, Location, NodeId, Op, Result, Shape};
use uses::{Family, Users, families};

/// The least number of equal Functions that are lowered once. What is called less often need not stay a Function.
pub(crate) const LEAST_USES: usize = 4;
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
    fn of(graph: &Graph, family: &Family, lost: Option<f64>) -> Verdict {
        let line = family.uses.first().and_then(|one| graph.locations(one.functions[0]).first().cloned());
        Verdict { uses: family.uses.len(), line, lost }
    }

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
        let kept = self.kept(level, target);
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

    /// The families of a level that are lowered once.
    fn kept(&mut self, level: &[NodeId], target: &Target) -> Vec<(Family, Body)> {
        let costs = Costs::of(target);
        let users = Users::of(&self.graph, &self.outputs);
        let mut families = families(&self.graph, level, &users);
        families.retain(|family| family.uses.len() >= LEAST_USES);
        let mut kept: Vec<(Family, Body)> = Vec::with_capacity(families.len());
        for family in families {
            match Body::of(&self.graph, &family, target) {
                Some(body) => kept.push((family, body)),
                None => self.verdicts.push(Verdict::of(&self.graph, &family, None)),
            }
        }
        // The loss of one family at its border depends on which others are kept.
        loop {
            let parts: FxHashMap<NodeId, (&Body, usize)> =
                kept.iter().flat_map(|(family, body)| family.parts(body)).collect();
            let verdict = |(family, body): &(Family, Body)| {
                let lost: f64 = family.uses.iter().map(|one| one.lost(&self.graph, body, &parts, &users, &costs)).sum();
                Verdict::of(&self.graph, family, Some(lost / (body.work * family.uses.len() as f64)))
            };
            let verdicts: Vec<Verdict> = kept.iter().map(verdict).collect();
            let Some(refused) = verdicts.iter().position(|verdict| !verdict.is_lowered()) else {
                self.verdicts.extend(verdicts);
                return kept;
            };
            self.verdicts.push(verdicts[refused].clone());
            kept.remove(refused);
        }
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
