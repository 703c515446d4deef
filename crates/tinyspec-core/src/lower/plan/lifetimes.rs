//! Live ranges of a kernel's own memory: the accesses to LOCAL or REG Buffers, and the loops and conditions around them.

use crate::lower::live::trips;
use rustc_hash::FxHashMap;
use tinyspec_ir::address::base_and_index;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::special::SpecialIndex;
use tinyspec_ir::{AddrSpace, Arg, Builder, Graph, NodeId, Op};

/// A loop or condition, or the whole kernel, which is scope 0. It reaches from its Range or If to its End or Endif.
pub(super) struct Scope {
    pub parent: usize,
    pub begin: usize,
    pub end: usize,
    /// Its Range or If.
    pub opened: Option<NodeId>,
}

/// The positions of first and last accesses, inclusive.
pub(super) type Span = (usize, usize);

/// A Buffer, and the positions of its accesses.
pub(super) struct Own {
    pub buffer: NodeId,
    pub accesses: Vec<usize>,
}

/// The order of execution with its scopes, and the Buffers of one address space, in the order of their first accesses.
pub(super) struct Lifetimes<'a> {
    pub graph: &'a Graph,
    pub list: &'a [NodeId],
    pub scopes: Vec<Scope>,
    pub buffers: Vec<Own>,
    /// The scope of each position.
    scope_of: Vec<usize>,
    /// The positions of Barriers.
    barriers: Vec<usize>,
    /// Whether several threads of a workgroup run the kernel.
    is_concurrent: bool,
}

impl<'a> Lifetimes<'a> {
    pub fn new(graph: &'a Graph, linear: NodeId, space: AddrSpace) -> Lifetimes<'a> {
        let list = graph.sources(linear);
        let whole = Scope { parent: 0, begin: 0, end: list.len(), opened: None };
        let mut found = Lifetimes {
            graph,
            list,
            scopes: vec![whole],
            buffers: Vec::new(),
            scope_of: Vec::with_capacity(list.len()),
            barriers: Vec::new(),
            is_concurrent: list.iter().any(|&node| is_member(graph, node)),
        };
        let mut open = 0;
        let mut numbers: FxHashMap<NodeId, usize> = FxHashMap::default();
        for (position, &node) in list.iter().enumerate() {
            if matches!(graph.op(node), Op::End | Op::Endif) {
                found.scopes[open].end = position;
                open = found.scopes[open].parent;
            }
            found.scope_of.push(open);
            match graph.op(node) {
                Op::Range | Op::If => {
                    found.scopes.push(Scope { parent: open, begin: position, end: list.len(), opened: Some(node) });
                    open = found.scopes.len() - 1;
                }
                Op::Barrier => found.barriers.push(position),
                Op::Load | Op::Store | Op::AtomicAdd => {
                    let memory = graph.memory(graph.source(node, 0));
                    let Some(buffer) = memory.filter(|&memory| is_own(graph, memory, space)) else { continue };
                    let number = *numbers.entry(buffer).or_insert_with(|| {
                        found.buffers.push(Own { buffer, accesses: Vec::new() });
                        found.buffers.len() - 1
                    });
                    found.buffers[number].accesses.push(position);
                }
                _ => {}
            }
        }
        found
    }

    /// The innermost scope that these positions share.
    pub fn home(&self, positions: impl IntoIterator<Item = usize>) -> usize {
        let scopes = positions.into_iter().map(|position| self.scope_of[position]);
        scopes.reduce(|a, b| self.shared(a, b)).unwrap_or(0)
    }

    fn shared(&self, mut a: usize, mut b: usize) -> usize {
        // Scopes come after their parents.
        while a != b {
            if a > b {
                a = self.scopes[a].parent;
            } else {
                b = self.scopes[b].parent;
            }
        }
        a
    }

    /// The child of a scope that contains a position: an instruction, or an inner scope from its beginning to its end.
    pub fn part(&self, position: usize, home: usize) -> Span {
        let mut scope = self.scope_of[position];
        if scope == home {
            return (position, position);
        }
        while self.scopes[scope].parent != home {
            scope = self.scopes[scope].parent;
        }
        (self.scopes[scope].begin, self.scopes[scope].end)
    }

    /// The live range of a buffer, from its first access to its last, extended to whole children of a scope.
    pub fn span(&self, own: &Own, home: usize) -> Span {
        let (first, last) = (own.accesses[0], own.accesses[own.accesses.len() - 1]);
        (self.part(first, home).0, self.part(last, home).1)
    }

    /// Whether the live ranges of both buffers are disjoint, and the threads synchronise where one buffer replaces the other.
    pub fn are_apart(&self, a: &Own, b: &Own) -> bool {
        let home = self.home(a.accesses.iter().chain(&b.accesses).copied());
        let (a_span, b_span) = (self.span(a, home), self.span(b, home));
        let (earlier, later) = if a_span < b_span { (a_span, b_span) } else { (b_span, a_span) };
        if earlier.1 >= later.0 || !self.waits(home, earlier.1, later.0) {
            return false;
        }
        let Scope { begin, end, .. } = self.scopes[home];
        let waits_again = || self.waits(home, later.1, end) || self.waits(home, begin, earlier.0);
        !self.is_repeated(home) || (waits_again() && self.is_filled(a, home) && self.is_filled(b, home))
    }

    /// Whether a Barrier stands directly in a scope between two positions, or none is needed.
    fn waits(&self, home: usize, from: usize, to: usize) -> bool {
        let first = self.barriers.partition_point(|&barrier| barrier < from);
        let mut between = self.barriers[first..].iter().take_while(|&&barrier| barrier < to);
        !self.is_concurrent || between.any(|&barrier| self.scope_of[barrier] == home)
    }

    /// Whether a scope is, or is in, a loop whose iterations follow each other.
    fn is_repeated(&self, scope: usize) -> bool {
        self.around(scope).any(|range| !matches!(self.graph.arg(range), Arg::Range { axis, .. } if axis.is_parallel()))
    }

    /// The Ranges of a scope and of those around it, inner ones first.
    fn around(&self, scope: usize) -> impl Iterator<Item = NodeId> + '_ {
        let scopes = std::iter::successors(Some(scope), |&scope| (scope > 0).then(|| self.scopes[scope].parent));
        let opened = scopes.filter_map(|scope| self.scopes[scope].opened);
        opened.filter(|&opened| self.graph.op(opened) == Op::Range)
    }

    /// Whether each time a scope runs, its first part that accesses a buffer is a store to every element.
    fn is_filled(&self, own: &Own, home: usize) -> bool {
        let first = own.accesses[0];
        let (_, end) = self.part(first, home);
        let is_alone = own.accesses.get(1).is_none_or(|&second| second > end);
        is_alone && self.fills(own.buffer, first, home)
    }

    /// Whether the access at a position is a store that covers the whole buffer over the loops inside of a scope and all threads.
    fn fills(&self, buffer: NodeId, position: usize, home: usize) -> bool {
        let graph = self.graph;
        let node = self.list[position];
        let (Op::Store, &[place, _]) = (graph.op(node), graph.sources(node)) else { return false };
        let Some((_, Some(index))) = base_and_index(graph, place) else { return false };
        let mut inside: Vec<NodeId> = Vec::new();
        let mut scope = self.scope_of[position];
        while scope != home {
            match self.scopes[scope].opened {
                Some(range) if graph.op(range) == Op::Range && trips(graph, range).is_some_and(|trips| trips > 0) => {
                    inside.push(range);
                }
                _ => return false,
            }
            scope = self.scopes[scope].parent;
        }
        let is_counter =
            |node: NodeId| inside.contains(&node) || SpecialIndex::of(graph, node).is_some_and(SpecialIndex::is_thread);
        let (index, elements) = (Affine::of(graph, index), graph.props(buffer).element_count().as_const());
        let step =
            |&(counter, step): &(NodeId, i64)| Some((step, trips(graph, counter).filter(|_| is_counter(counter))?));
        let steps: Option<Vec<(i64, i64)>> = index.terms().iter().map(step).collect();
        let lanes = graph.props(place).element_count().as_const();
        let (Some(mut steps), Some(mut filled), 0) = (steps, lanes, index.constant()) else { return false };
        steps.sort_unstable();
        for (step, trips) in steps {
            if step != filled {
                return false;
            }
            filled = filled.saturating_mul(trips);
        }
        elements == Some(filled)
    }
}

/// Whether a node is an index of a thread among several, or a loop over them.
fn is_member(graph: &Graph, node: NodeId) -> bool {
    match graph.arg(node) {
        Arg::Range { axis, .. } => axis.is_within_workgroup(),
        _ => {
            SpecialIndex::of(graph, node).is_some_and(SpecialIndex::is_thread)
                && graph.as_int(graph.source(node, 0)) != Some(1)
        }
    }
}

fn is_own(graph: &Graph, memory: NodeId, space: AddrSpace) -> bool {
    matches!(graph.arg(memory), Arg::Buffer { addrspace, .. } if *addrspace == space)
}
