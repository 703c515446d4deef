//! The rewriter: named rules, applied bottom-up in a single sweep.
//!
//! A rule matches one node, whose sources are already rewritten, and may return a replacement. The sweep visits nodes
//! in order of their numbers (sources first), so nothing recurses over the depth of a graph.

use crate::{Builder, Graph, NodeId, Op, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A rewrite rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Unique name.
    pub name: &'static str,
    /// The ops of nodes that it may match.
    pub ops: &'static [Op],
    /// The replacement, if the rule applies.
    pub apply: fn(&mut Graph, NodeId) -> Option<NodeId>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rule({})", self.name)
    }
}

/// The semantics that rules preserve; each rule is in one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// Every value, bit for bit.
    Exact,
    /// Everything but the order of a Reduce.
    Reassoc,
    /// Every value, up to the changes that a permission allows.
    Permitted(Permission),
}

/// A fast-math permission, as in `fast_math(contract, approx)`. All are off by default.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Permission {
    /// `a * b + c` with one rounding instead of two. Sums of products always have it.
    Contract,
    /// Division by multiplying with a reciprocal: a few units in the last place, for normal divisors.
    Approx,
    /// Floats are neither infinite nor nan, and signs of zeros do not matter: a product with a mask is a select.
    Finite,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Permission; 3] = [Permission::Contract, Permission::Approx, Permission::Finite];

    /// The name that users write.
    pub const fn name(self) -> &'static str {
        match self {
            Permission::Contract => "contract",
            Permission::Approx => "approx",
            Permission::Finite => "finite",
        }
    }

    /// The permission of this name.
    pub fn from_name(name: &str) -> Option<Permission> {
        Permission::ALL.into_iter().find(|permission| permission.name() == name)
    }
}

/// Rules of one topic, and what they preserve.
#[derive(Clone, Copy, Debug)]
pub struct RuleSet {
    /// The topic.
    pub name: &'static str,
    /// The semantics that they preserve.
    pub keeps: Keeps,
    /// The rules, in order of preference.
    pub rules: &'static [Rule],
}

/// Rules indexed by op, ready to be applied.
#[derive(Debug)]
pub struct Rewriter {
    by_op: Vec<Vec<Rule>>,
    fired: FxHashMap<&'static str, u64>,
}

/// The most rewrites of a node, in case rules undo each other.
const FUEL: usize = 64;

impl Rewriter {
    /// A rewriter with all rules of some sets.
    pub fn new(sets: &[&RuleSet]) -> Rewriter {
        let mut by_op = vec![Vec::new(); 256];
        for rule in sets.iter().flat_map(|set| set.rules) {
            for op in rule.ops {
                by_op[*op as usize].push(*rule);
            }
        }
        Rewriter { by_op, fired: FxHashMap::default() }
    }

    /// How often each rule has fired.
    pub fn fired(&self) -> &FxHashMap<&'static str, u64> {
        &self.fired
    }

    /// The roots after rewriting everything below them.
    ///
    /// # Errors
    /// When [`crate::derive()`] refuses a rebuilt node: then a rule is wrong.
    pub fn rewrite(&mut self, graph: &mut Graph, roots: &[NodeId]) -> Result<Vec<NodeId>> {
        let mut map: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        let order = graph.reachable(roots);
        let shared = shared(graph, &order, roots);
        for node in order {
            let rebuilt = rebuild(graph, node, &map)?;
            let result = self.settle(graph, rebuilt)?;
            if shared.contains(&node) {
                graph.set_shared(result);
            }
            if result != node {
                let places: SmallVec<[_; 1]> = graph.locations(node).into();
                places.into_iter().for_each(|place| graph.locate(result, place));
            }
            map.insert(node, result);
        }
        graph.forget_shared();
        Ok(roots.iter().map(|root| map.get(root).copied().unwrap_or(*root)).collect())
    }

    /// Rewrites one node, without the nodes below it.
    ///
    /// # Errors
    /// As [`Rewriter::rewrite`].
    pub fn rewrite_node(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        self.settle(graph, node)
    }

    /// Applies rules to one node until none applies; nodes that a rule made are settled as well.
    fn settle(&mut self, graph: &mut Graph, node: NodeId) -> Result<NodeId> {
        let mut node = node;
        for _ in 0..FUEL {
            let before = graph.len();
            let Some((name, next)) = self.step(graph, node) else { return Ok(node) };
            *self.fired.entry(name).or_default() += 1;
            node = self.settle_new(graph, next, before)?;
        }
        Ok(node)
    }

    fn step(&self, graph: &mut Graph, node: NodeId) -> Option<(&'static str, NodeId)> {
        let rules = &self.by_op[graph.op(node) as usize];
        rules.iter().find_map(|rule| {
            let result = (rule.apply)(graph, node)?;
            // A rule must preserve dtype and shape.
            let (before, after) = (graph.props(node), graph.props(result));
            let fits = before.dtype == after.dtype && before.shape == after.shape;
            (fits && result != node).then_some((rule.name, result))
        })
    }

    /// Rules may build several nodes; those below the result get a pass of their own.
    fn settle_new(&mut self, graph: &mut Graph, root: NodeId, before: usize) -> Result<NodeId> {
        if root.index() < before {
            return Ok(root);
        }
        let mut map: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for index in before..=root.index() {
            let node = NodeId(index as u32);
            let mut result = rebuild(graph, node, &map)?;
            if node != root {
                for _ in 0..4 {
                    let Some((name, next)) = self.step(graph, result) else { break };
                    *self.fired.entry(name).or_default() += 1;
                    result = next;
                }
            }
            map.insert(node, result);
        }
        Ok(map[&root])
    }
}

/// Nodes with several users; each root counts as one use.
fn shared(graph: &Graph, order: &[NodeId], roots: &[NodeId]) -> FxHashSet<NodeId> {
    let (mut used, mut shared) = (FxHashSet::default(), FxHashSet::default());
    let mut use_once_each = |sources: &[NodeId]| {
        let mut sources: SmallVec<[NodeId; 4]> = sources.into();
        sources.sort_unstable();
        sources.dedup();
        shared.extend(sources.into_iter().filter(|&source| !used.insert(source)));
    };
    use_once_each(roots);
    order.iter().for_each(|&node| use_once_each(graph.sources(node)));
    shared
}

fn rebuild(graph: &mut Graph, node: NodeId, map: &FxHashMap<NodeId, NodeId>) -> Result<NodeId> {
    let sources: SmallVec<[NodeId; 4]> =
        graph.sources(node).iter().map(|source| map.get(source).copied().unwrap_or(*source)).collect();
    if sources.as_slice() == graph.sources(node) {
        return Ok(node);
    }
    let (op, arg) = (graph.op(node), graph.arg(node).clone());
    graph.add(op, &sources, arg)
}

/// `roots` with some nodes replaced. Sources of a replacement are not replaced.
///
/// # Errors
/// When [`crate::derive()`] refuses a replacement.
pub fn substitute(
    graph: &mut Graph,
    roots: &[NodeId],
    replacements: &FxHashMap<NodeId, NodeId>,
) -> Result<Vec<NodeId>> {
    let mut map = replacements.clone();
    for node in graph.reachable(roots) {
        if !map.contains_key(&node) {
            let rebuilt = rebuild(graph, node, &map)?;
            map.insert(node, rebuilt);
        }
    }
    Ok(roots.iter().map(|root| map.get(root).copied().unwrap_or(*root)).collect())
}

/// `roots` with every node below them rebuilt on its new sources, then replaced by the result of `replace` for the old
/// and the rebuilt node. Unlike [`substitute`], this allows replacements whose sources change, too.
///
/// # Errors
/// Those of `replace`, and when [`crate::derive()`] refuses a replacement.
pub fn transform(
    graph: &mut Graph,
    roots: &[NodeId],
    mut replace: impl FnMut(&mut Graph, NodeId, NodeId) -> Result<NodeId>,
) -> Result<Vec<NodeId>> {
    let mut map: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in graph.reachable(roots) {
        let rebuilt = rebuild(graph, node, &map)?;
        let new = replace(graph, node, rebuilt)?;
        map.insert(node, new);
    }
    Ok(roots.iter().map(|root| map.get(root).copied().unwrap_or(*root)).collect())
}
