//! Searches for unordered accesses to the same element: neither the graph nor a loop says which one comes first.
//!
//! Like bounds, conflicts are searched for by trying iterations, so nothing valid is refused. AtomicAdds may conflict;
//! threads of a workgroup are checked by [`super::threads`], and indices from data by the interpreter.

use super::arithmetic::{Arithmetic, Dice, run};
use super::conditions::Conditions;
use crate::special::SpecialIndex;
use crate::{Arg, Graph, NodeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most pairs of accesses to try per kernel.
const PAIRS: usize = 32;
/// The number of iterations of the shared loops to try.
const COMMON: usize = 8;
/// The number of iterations of an access to try in each of these, and a neighbour of each in some loop.
const TRIALS: usize = 16;

/// The search for conflicts between the accesses of a kernel.
pub(super) struct Conflicts<'a> {
    graph: &'a Graph,
    open: &'a FxHashMap<NodeId, Vec<NodeId>>,
    conditions: &'a Conditions,
    /// The indices of workgroups, which run concurrently.
    groups: Vec<NodeId>,
    pairs_left: usize,
}

/// An access in an iteration: its first element, and the iteration of the parallel loops.
type Visit = (i128, SmallVec<[u64; 4]>);

impl<'a> Conflicts<'a> {
    pub fn new(
        graph: &'a Graph,
        live: &[NodeId],
        open: &'a FxHashMap<NodeId, Vec<NodeId>>,
        conditions: &'a Conditions,
    ) -> Conflicts<'a> {
        let is_group = |node: &NodeId| matches!(SpecialIndex::of(graph, *node), Some(SpecialIndex::Group(_)));
        let groups = live.iter().copied().filter(is_group).collect();
        Conflicts { graph, open, conditions, groups, pairs_left: PAIRS }
    }

    /// Whether two accesses that the graph does not order are to the same element, in the same iteration of their
    /// shared loops.
    pub fn unordered(&mut self, first: NodeId, second: NodeId) -> bool {
        let others = self.around(second);
        let shared: Vec<NodeId> = self
            .around(first)
            .into_iter()
            .filter(|&range| !self.is_parallel(range) && others.contains(&range))
            .collect();
        self.tried(first, second, &shared, false)
    }

    /// Whether two accesses are to the same element in different iterations of a parallel loop, or of the launch.
    pub fn between_iterations(&mut self, first: NodeId, second: NodeId) -> bool {
        let others = self.around(second);
        let is_shared = |&range: &NodeId| self.is_parallel(range) && others.contains(&range);
        self.around(first).iter().any(is_shared) && self.tried(first, second, &[], true)
    }

    /// The loops around an access, and the launch's workgroups.
    fn around(&self, access: NodeId) -> Vec<NodeId> {
        let open = self.open.get(&access).into_iter().flatten();
        open.chain(&self.groups).copied().collect()
    }

    fn is_parallel(&self, counter: NodeId) -> bool {
        let is_range = matches!(self.graph.arg(counter), Arg::Range { axis, .. } if axis.is_parallel());
        is_range || self.groups.contains(&counter)
    }

    fn tried(&mut self, first: NodeId, second: NodeId, shared: &[NodeId], apart: bool) -> bool {
        let Some(pairs_left) = self.pairs_left.checked_sub(1) else { return false };
        self.pairs_left = pairs_left;
        self.tries(first, second, shared, apart).unwrap_or(false)
    }

    /// `None` if it cannot be evaluated.
    fn tries(&self, first: NodeId, second: NodeId, shared: &[NodeId], apart: bool) -> Option<bool> {
        let mut dice = Dice::new();
        let mut sides = [Side::new(self, first)?, Side::new(self, second)?];
        for _ in 0..if shared.is_empty() { 2 } else { COMMON } {
            let common: Vec<(NodeId, u64)> =
                shared.iter().map(|&range| (range, dice.choose(sides[0].count(range)))).collect();
            let mut visits: [Vec<Visit>; 2] = [Vec::new(), Vec::new()];
            for (side, visits) in sides.iter_mut().zip(&mut visits) {
                side.visit(self, &common, &mut dice, visits)?;
            }
            let [before, mut after] = visits;
            after.sort_unstable();
            let (length, count) = (sides[0].length, sides[1].length);
            let overlaps = |(place, parallel): &Visit| {
                let start = after.partition_point(|other| other.0 + count <= *place);
                let mut inside = after[start..].iter().take_while(|other| other.0 < place + length);
                inside.any(|other| !apart || other.1 != *parallel)
            };
            if before.iter().any(overlaps) {
                return Some(true);
            }
        }
        Some(false)
    }
}

/// One of the two accesses.
struct Side<'a> {
    arithmetic: Arithmetic<'a>,
    start: NodeId,
    length: i128,
    gates: SmallVec<[NodeId; 2]>,
}

impl<'a> Side<'a> {
    fn new(conflicts: &Conflicts<'a>, access: NodeId) -> Option<Side<'a>> {
        let (start, length) = run(conflicts.graph, access)?;
        let gates = conflicts.conditions.gates(conflicts.graph, access);
        let roots = [start].into_iter().chain(gates.iter().copied()).chain(conflicts.around(access));
        Some(Side { arithmetic: Arithmetic::new(conflicts.graph, roots)?, start, length, gates })
    }

    fn count(&self, range: NodeId) -> u64 {
        self.arithmetic.counters.iter().find(|counter| counter.node == range).map_or(1, |counter| counter.count)
    }

    /// Random iterations and their neighbours, for given iterations of the `common` loops.
    fn visit(
        &mut self,
        conflicts: &Conflicts,
        common: &[(NodeId, u64)],
        dice: &mut Dice,
        visits: &mut Vec<Visit>,
    ) -> Option<()> {
        let counters: Vec<(NodeId, u64)> =
            self.arithmetic.counters.iter().map(|counter| (counter.node, counter.count)).collect();
        let given = |node: NodeId| common.iter().find(|given| given.0 == node).map(|given| given.1);
        for _ in 0..TRIALS {
            let mut values: SmallVec<[u64; 8]> =
                counters.iter().map(|&(node, count)| given(node).unwrap_or_else(|| dice.choose(count))).collect();
            self.come(conflicts, &counters, &values, visits)?;
            let moved = dice.choose(counters.len() as u64) as usize;
            if let Some(&(_, count)) = counters.get(moved).filter(|&&(node, _)| given(node).is_none()) {
                values[moved] = (values[moved] + 1) % count.max(1);
                self.come(conflicts, &counters, &values, visits)?;
            }
        }
        Some(())
    }

    fn come(
        &mut self,
        conflicts: &Conflicts,
        counters: &[(NodeId, u64)],
        values: &[u64],
        visits: &mut Vec<Visit>,
    ) -> Option<()> {
        values.iter().enumerate().for_each(|(counter, &value)| self.arithmetic.set(counter, value));
        let happens = self.arithmetic.run()?;
        if happens && !self.gates.iter().any(|&gate| self.arithmetic.value(gate) == Some(0)) {
            let is_parallel = |&(counter, _): &(&(NodeId, u64), &u64)| conflicts.is_parallel(counter.0);
            let parallel = counters.iter().zip(values).filter(is_parallel).map(|(_, &value)| value).collect();
            visits.push((self.arithmetic.value(self.start)?, parallel));
        }
        Some(())
    }
}
