//! Finds matrices that need never be stored: attention's scores, their softmax, and the matrices that their gradients are computed
//! from. Each is derived from products of two smaller tensors and is used only by reductions along one of its sides, which kernels
//! over blocks compute ([`crate::lower::optimize::online`]).

use super::fusion::{Costs, Reason, value_sources};
use super::movement::{count, dims};
use super::walk::named;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tinyspec_ir::{Arg, DType, Graph, NodeId, Op};

/// The smallest matrix, in elements, that is worth loops of its own.
const ELEMENTS: i64 = 4096;

/// Matrices that are derived from each other.
#[derive(Default)]
struct Family {
    members: FxHashSet<NodeId>,
    /// The terms of the products that they are derived from, and the terms of sums that members weight.
    terms: FxHashSet<NodeId>,
    /// The Reduces over members.
    ends: FxHashSet<NodeId>,
}

/// The values that kernels over blocks compute.
#[derive(Default)]
pub(super) struct Online {
    /// The family that a node is a value of.
    inside: FxHashMap<NodeId, usize>,
    /// The family that a Reduce reduces.
    ends: FxHashMap<NodeId, usize>,
    /// Sums that the terms of other sums use.
    stored: FxHashSet<NodeId>,
    /// Families whose sums have a kernel each.
    separate: FxHashSet<usize>,
}

impl Online {
    /// The families of a tensor graph, except those in `refused`, for which no kernel could be built. Each result of a family in
    /// `separate` has a kernel of its own.
    pub(super) fn find(
        graph: &Graph,
        live: &[NodeId],
        forced: &FxHashMap<NodeId, Reason>,
        costs: &Costs,
        refused: &FxHashSet<usize>,
        separate: &FxHashSet<usize>,
    ) -> Online {
        let mut online = Online { separate: separate.clone(), ..Online::default() };
        let is_maximum = |&node: &NodeId| matches!(graph.arg(node), Arg::Reduce { op: Op::Max, .. });
        if costs.vector < 2 || !live.iter().any(is_maximum) {
            return online;
        }
        let mut users: FxHashMap<NodeId, SmallVec<[NodeId; 2]>> = FxHashMap::default();
        for &node in live {
            for &source in value_sources(graph, node) {
                users.entry(source).or_default().push(node);
            }
        }
        let mut search =
            Search { graph, users, elements: vec![0; graph.len()], made: vec![false; graph.len()], forced };
        for &node in live {
            search.elements[node.index()] = dims(graph, node).map_or(0, |dims| count(&dims));
            search.made[node.index()] = search.is_made(node);
        }
        let mut seen = FxHashSet::default();
        let mut number = 0;
        for &node in live {
            if !search.is_product(node) || seen.contains(&node) {
                continue;
            }
            let mut family = Family::default();
            // A search from any other member would find the same family, or fail too.
            let is_family = search.collect(node, &mut family, &seen).is_some();
            seen.extend(family.members.iter().copied());
            if !is_family || !search.pays(&family, node, costs) {
                continue;
            }
            if !refused.contains(&number) {
                let inside = family.members.iter().chain(&family.terms);
                online.inside.extend(inside.map(|&node| (node, number)));
                online.ends.extend(family.ends.iter().map(|&node| (node, number)));
                online.stored.extend(search.needed(&family, search.elements(node)));
                if separate.contains(&number) {
                    let is_weighted = |end: &NodeId| family.terms.contains(&search.summand(*end));
                    online.stored.extend(family.ends.iter().copied().filter(is_weighted));
                }
            }
            number += 1;
        }
        online
    }

    /// Whether a node is a value of such a matrix.
    pub(super) fn is_inside(&self, node: NodeId) -> bool {
        self.inside.contains_key(&node)
    }

    /// Whether the terms of another sum use this one, so that one loop cannot compute both.
    pub(super) fn is_stored(&self, node: NodeId) -> bool {
        self.stored.contains(&node)
    }

    /// Whether each sum of the family has a kernel of its own.
    pub(super) fn is_separate(&self, family: usize) -> bool {
        self.separate.contains(&family)
    }

    /// The family whose values a Reduce reduces.
    pub(super) fn summed(&self, node: NodeId) -> Option<usize> {
        self.ends.get(&node).copied()
    }
}

struct Search<'a> {
    graph: &'a Graph,
    users: FxHashMap<NodeId, SmallVec<[NodeId; 2]>>,
    elements: Vec<i64>,
    /// For each node visited so far, whether it is derived from a product.
    made: Vec<bool>,
    forced: &'a FxHashMap<NodeId, Reason>,
}

impl Search<'_> {
    fn elements(&self, node: NodeId) -> i64 {
        self.elements[node.index()]
    }

    /// The operand of a Reduce.
    fn summand(&self, reduce: NodeId) -> NodeId {
        named(self.graph, self.graph.source(reduce, 0)).0
    }

    /// Whether a node is a sum of products, large enough to avoid storing.
    fn is_product(&self, node: NodeId) -> bool {
        let is_sum = matches!(self.graph.arg(node), Arg::Reduce { op: Op::Add, .. });
        is_sum
            && self.graph.dtype(node) == DType::F32
            && self.elements(node) >= ELEMENTS
            && self.graph.op(self.summand(node)) == Op::Mul
    }

    /// Everything derived from a product, up to the Reduces over it; `None` if it has any other use, or if one of its members belongs
    /// to what has been `seen` before.
    fn collect(&self, product: NodeId, family: &mut Family, seen: &FxHashSet<NodeId>) -> Option<()> {
        let graph = self.graph;
        let size = self.elements(product);
        let mut pending = vec![product];
        while let Some(node) = pending.pop() {
            if !family.members.insert(node) {
                continue;
            }
            if self.forced.contains_key(&node) || seen.contains(&node) {
                return None;
            }
            if graph.op(node) == Op::Reduce {
                family.terms.insert(self.summand(node));
            } else {
                let sources = value_sources(graph, node).iter();
                pending.extend(
                    sources.copied().filter(|&source| self.elements(source) == size && self.made[source.index()]),
                );
            }
            for &user in self.users.get(&node).into_iter().flatten() {
                match graph.op(user) {
                    Op::Reduce => drop(family.ends.insert(user)),
                    op if !op.is_elementwise() && !is_view(op) => return None,
                    _ if self.elements(user) == size => pending.push(user),
                    Op::Mul | Op::Reshape | Op::Expand => self.weigh(user, family)?,
                    _ => return None,
                }
            }
        }
        Some(())
    }

    /// Whether a node is derived from a product, given the answers for its sources.
    fn is_made(&self, node: NodeId) -> bool {
        match self.graph.op(node) {
            Op::Reduce => self.is_product(node),
            op if op.is_elementwise() || is_view(op) => {
                value_sources(self.graph, node).iter().any(|source| self.made[source.index()])
            }
            _ => false,
        }
    }

    /// Adds the users of a member that is broadcast along another axis; all of them must end in Reduces.
    fn weigh(&self, node: NodeId, family: &mut Family) -> Option<()> {
        let graph = self.graph;
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if !family.terms.insert(node) {
                continue;
            }
            if self.forced.contains_key(&node) {
                return None;
            }
            for &user in self.users.get(&node).into_iter().flatten() {
                match graph.op(user) {
                    Op::Reduce => drop(family.ends.insert(user)),
                    op if op == Op::Mul || is_view(op) => pending.push(user),
                    _ => return None,
                }
            }
        }
        Some(())
    }

    /// Sums that another sum needs before its loop begins, because they are not a common factor of its terms.
    fn needed(&self, family: &Family, size: i64) -> Vec<NodeId> {
        let graph = self.graph;
        // Sources have smaller ids, so older nodes do not depend on the family.
        let Some(first) = family.ends.iter().map(|end| end.index()).min() else { return Vec::new() };
        let is_sum = |node: &NodeId| matches!(graph.arg(*node), Arg::Reduce { op: Op::Add, .. });
        let mut factors = FxHashSet::default();
        let mut pending: Vec<NodeId> =
            family.ends.iter().filter(|node| is_sum(node)).map(|&node| graph.source(node, 0)).collect();
        while let Some(node) = pending.pop() {
            let node = named(graph, node).0;
            match graph.op(node) {
                Op::Mul => pending.extend(value_sources(graph, node)),
                Op::Div => pending.push(graph.source(node, 0)),
                op if is_view(op) => pending.push(graph.source(node, 0)),
                _ if self.elements(node) >= size => drop(factors.insert(node)),
                _ => {}
            }
        }
        let factors: Vec<NodeId> = factors.into_iter().collect();
        let below = graph.reachable_until(&factors, |node| node.index() < first);
        below.into_iter().filter(|node| family.ends.contains(node) && is_sum(node)).collect()
    }

    /// Whether the family contains a softmax and is worth recomputing. A single kernel that reduces it in one pass always pays; if
    /// several kernels recompute the matrix, it must exceed the cache.
    fn pays(&self, family: &Family, product: NodeId, costs: &Costs) -> bool {
        let is =
            |op: Op| move |node: &&NodeId| matches!(self.graph.arg(**node), Arg::Reduce { op: own, .. } if *own == op);
        let maxima = family.ends.iter().filter(is(Op::Max)).count();
        let sums = family.ends.iter().filter(is(Op::Add)).count();
        let bytes = self.elements(product) * DType::F32.size() as i64;
        maxima == 1 && sums > 0 && maxima + sums == family.ends.len() && (sums <= 2 || bytes > costs.cache)
    }
}

fn is_view(op: Op) -> bool {
    op.is_view() || matches!(op, Op::Detach | Op::ContiguousBackward)
}
