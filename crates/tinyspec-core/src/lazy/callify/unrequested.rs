//! Values that a run computes in addition to its roots, so that later runs need not repeat the work.

use super::{Entry, Walk, called};
use crate::lazy::Node;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};
use tinyspec_ir::{Category, ContentHash, Op};

/// The longest chain of elementwise nodes that each run recomputes rather than reads.
const CHEAP: usize = 32;

/// Tensors that were still lazy after an earlier run.
#[derive(Default)]
pub(crate) struct Unevaluated {
    /// Tensors that the program has dropped since, such as earlier states of a loop.
    pub dropped: Vec<Arc<Node>>,
    /// Tensors that the program still holds and that are worth computing once rather than in each run.
    pub held: Vec<Arc<Node>>,
}

/// The cost of computing the value of an entry.
#[derive(Clone, Copy, Default)]
struct Work {
    /// Whether it depends on a leaf.
    has_data: bool,
    /// Whether data are reduced on the way.
    reduces: bool,
    /// Length of the longest path from a leaf or a constant.
    depth: usize,
    /// Total size in bytes of the leaves it depends on, at most: a leaf counts once per path to it, as long as it is no more than all leaves
    /// together.
    bytes: u64,
}

impl Work {
    /// Whether the value is small, or no larger than its inputs. A lazy value may not fit in memory.
    fn has_room_for(self, node: &Node) -> bool {
        const LITTLE: u64 = 64 << 20;
        node.bytes() <= self.bytes.max(LITTLE)
    }

    /// Whether recomputing the value in each run costs more than storing and loading it.
    fn is_worth_keeping(self) -> bool {
        self.reduces || self.depth > CHEAP
    }
}

impl Walk {
    /// The remaining lazy results of each `grad` call that the roots need only partially. Computed one by one, each
    /// would repeat the forward pass in a program of its own.
    pub fn sibling_gradients(&self) -> Vec<Arc<Node>> {
        let mut calls: SmallVec<[&Arc<[Weak<Node>]>; 1]> = SmallVec::new();
        for gradients in self.entries.iter().filter_map(|entry| entry.node.gradients()) {
            if !calls.iter().any(|known| Arc::ptr_eq(known, gradients)) {
                calls.push(gradients);
            }
        }
        if calls.is_empty() {
            return Vec::new();
        }
        let met: FxHashSet<ContentHash> = self.entries.iter().map(|entry| entry.node.hash).collect();
        let mut known = self.root_hashes();
        let mut siblings = Vec::new();
        for gradients in calls {
            let held: Vec<Arc<Node>> =
                gradients.iter().filter_map(Weak::upgrade).filter(|node| node.is_awaited()).collect();
            if held.iter().any(|node| !met.contains(&node.hash)) {
                siblings.extend(held.into_iter().filter(|node| known.insert(node.hash)));
            }
        }
        siblings
    }

    /// The states assigned over those that the walk reads: computed in the next step, they would repeat the forward pass and the
    /// gradients. States assigned after these depend on the next forward pass, and are left to that step.
    pub fn next_states(&self) -> Vec<Arc<Node>> {
        let read =
            self.entries.iter().flat_map(|entry| &entry.sources).map(|&source| &self.entries[source as usize].node);
        let mut waiting: Vec<Arc<Node>> =
            read.filter_map(|node| node.next_state()).filter(|node| node.is_awaited()).collect();
        if !waiting.is_empty() {
            let mut known = self.root_hashes();
            waiting.retain(|node| known.insert(node.hash));
        }
        waiting
    }

    fn root_hashes(&self) -> FxHashSet<ContentHash> {
        self.roots.iter().map(|&root| self.entries[root as usize].node.hash).collect()
    }

    /// The tensors nearest to the roots that were still lazy after a run, and that later values of the walk depend on. A dropped one
    /// counts only if none of the next `states` depends on it. `last_run` is that of the thread.
    pub fn unevaluated(&self, last_run: u64, states: &[Arc<Node>]) -> Unevaluated {
        let newest = self.entries.iter().map(|entry| entry.node.last_run).fold(last_run, u64::max);
        let is_old = |entry: &Entry| entry.leaf.is_none() && entry.node.age < newest && entry.node.was_tensor();
        if !self.entries.iter().any(is_old) {
            return Unevaluated::default();
        }
        let work = self.work();
        let count = self.entries.len();
        // For each entry: the last run before its newest user was made, whether a root depends on it, and whether one of `states` does.
        let (mut before, mut is_needed, mut is_covered) = (vec![0; count], vec![false; count], vec![false; count]);
        for &root in &self.roots {
            let is_state = states.iter().any(|state| state.hash == self.entries[root as usize].node.hash);
            is_needed[root as usize] = true;
            is_covered[root as usize] |= is_state;
        }
        let mut found = Unevaluated::default();
        for (position, Entry { node, sources, leaf, .. }) in self.entries.iter().enumerate().rev() {
            if !is_needed[position] || leaf.is_some() {
                continue;
            }
            let is_view = node.op.category() == Category::Movement;
            if node.age < before[position] && node.was_tensor() && !is_view && work[position].has_room_for(node) {
                let is_dropped = node.is_unheld();
                if is_dropped && !is_covered[position] {
                    found.dropped.push(node.clone());
                    continue;
                }
                if !is_dropped && work[position].is_worth_keeping() {
                    found.held.push(node.clone());
                    continue;
                }
            }
            // The thread that made the node may not have had a run since.
            let run = if node.age < last_run { node.last_run } else { node.last_run.max(last_run) };
            let run = if is_view { run.max(before[position]) } else { run };
            for &source in sources {
                let source = source as usize;
                before[source] = before[source].max(run);
                is_needed[source] = true;
                is_covered[source] |= is_covered[position];
            }
        }
        found
    }

    /// Those of `roots` that may be computed unrequested: memory has room for them, and they are not within a trace, where tensors have no
    /// value.
    pub fn with_room(mut roots: Vec<Arc<Node>>) -> Vec<Arc<Node>> {
        let walk = Walk::of(&roots);
        if walk.has_placeholder || walk.roots.len() < roots.len() {
            return vec![];
        }
        let work = walk.work();
        let mut positions = walk.roots.iter();
        roots.retain(|root| positions.next().is_some_and(|&position| work[position as usize].has_room_for(root)));
        roots
    }

    /// Reduces over data that both the nodes done first and the rest of the walk need. Computed twice they would cost twice the
    /// time, and might be rounded differently: then no term would equal the maximum of all.
    pub fn shared_with_first(&self) -> Vec<Arc<Node>> {
        if self.first.is_empty() {
            return vec![];
        }
        let waits = |position: &u32| self.entries[*position as usize].waits;
        let work = self.work();
        let (mut before, mut after) = (vec![false; self.entries.len()], vec![false; self.entries.len()]);
        self.roots.iter().for_each(|&root| after[root as usize] = true);
        let mut shared = Vec::new();
        for (position, entry) in self.entries.iter().enumerate().rev() {
            let is_first = entry.waits && !entry.sources.iter().any(waits);
            let reduces = || match entry.node.op {
                Op::GetTuple => {
                    called(&self.entries[entry.sources[0] as usize].node).is_some_and(|body| body.work().reduces)
                }
                op => op == Op::Reduce,
            };
            let is_shared =
                before[position] && after[position] && work[position].has_data && entry.leaf.is_none() && reduces();
            if is_shared {
                shared.push(entry.node.clone());
            }
            for &source in &entry.sources {
                before[source as usize] |= before[position] || is_first;
                after[source as usize] |= after[position] && !is_first && !is_shared;
            }
        }
        shared
    }

    /// The cost of each entry.
    fn work(&self) -> Vec<Work> {
        let mut all: Vec<Work> = Vec::with_capacity(self.entries.len());
        let total = self.leaf_nodes().fold(0, |total: u64, leaf| total.saturating_add(leaf.bytes()));
        for Entry { node, sources, leaf, .. } in &self.entries {
            let bytes = if leaf.is_some() { node.bytes() } else { 0 };
            let mut work = Work { has_data: leaf.is_some(), bytes, ..Work::default() };
            for source in sources.iter().filter(|_| leaf.is_none()).map(|&source| all[source as usize]) {
                work.has_data |= source.has_data;
                work.reduces |= source.reduces;
                work.depth = work.depth.max(source.depth + 1);
                work.bytes = work.bytes.saturating_add(source.bytes).min(total);
            }
            if leaf.is_none() && work.has_data {
                let body = called(node).map(|body| body.work());
                work.reduces |= node.op == Op::Reduce || body.is_some_and(|body| body.reduces);
                work.depth += body.map_or(0, |body| body.depth);
            }
            all.push(work);
        }
        all
    }
}
