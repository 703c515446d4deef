//! The loops that a node is in: the Ranges it depends on that no End or Reduce has closed.

use tinyspec_ir::{Arg, Builder, Dim, Error, ErrorKind, Graph, NodeId, Op, Result};

/// The trip count of a Range, if it is constant.
pub(crate) fn trips(graph: &Graph, range: NodeId) -> Option<i64> {
    graph.as_int(graph.source(range, 0)).and_then(|trips| i64::try_from(trips).ok())
}

/// The trip count of a Range, over the named dims.
pub(crate) fn bound(graph: &Graph, range: NodeId) -> Option<Dim> {
    graph.props(graph.source(range, 0)).value.as_deref()?.first().cloned()
}

/// An id that none of the Ranges among `nodes` has: one more than the greatest.
pub(crate) fn next_range_id(graph: &Graph, nodes: impl IntoIterator<Item = NodeId>) -> u32 {
    let ids = nodes.into_iter().filter_map(|node| match graph.arg(node) {
        Arg::Range { id, .. } => Some(*id),
        _ => None,
    });
    ids.max().map_or(0, |id| id + 1)
}

/// A set of Ranges of a kernel, by their position in [`Live::ranges`].
pub(crate) type RangeSet = u128;

/// Open Ranges of every node of a kernel.
#[derive(Clone)]
pub(crate) struct Live {
    /// The Ranges, in the order of their nodes.
    pub ranges: Vec<NodeId>,
    sets: Vec<RangeSet>,
}

impl Live {
    /// Looks at `order`, which lists sources before users.
    pub fn new(graph: &Graph, order: &[NodeId]) -> Result<Live> {
        let ranges: Vec<NodeId> = order.iter().copied().filter(|&node| graph.op(node) == Op::Range).collect();
        if ranges.len() > RangeSet::BITS as usize {
            return Err(Error::new(ErrorKind::Unsupported, "sink", format!("{} loops in one kernel", ranges.len()))
                .help("realize an intermediate result"));
        }
        let mut live = Live { ranges, sets: vec![0; graph.len()] };
        order.iter().for_each(|&node| live.follow(graph, node));
        Ok(live)
    }

    /// Computes the set of a node from those of its sources.
    pub fn follow(&mut self, graph: &Graph, node: NodeId) {
        let set = graph.sources(node).iter().fold(0, |set, &source| set | self.of(source));
        self.sets[node.index()] = match graph.op(node) {
            Op::Range => set | self.bit(node),
            Op::End => set & !self.bit(graph.source(node, 1)),
            Op::Reduce => graph.sources(node)[1..].iter().fold(set, |set, &range| set & !self.bit(range)),
            _ => set,
        };
    }

    /// Places a node inside these Ranges, whether it depends on them or not.
    pub fn put(&mut self, node: NodeId, set: RangeSet) {
        self.sets[node.index()] = set;
    }

    /// Ranges open at `node`.
    pub fn of(&self, node: NodeId) -> RangeSet {
        self.sets[node.index()]
    }

    /// The set of one Range; empty for any other node.
    pub fn bit(&self, range: NodeId) -> RangeSet {
        self.ranges.binary_search(&range).map_or(0, |position| 1 << position)
    }

    /// Members of a set, in the order of their nodes.
    pub fn members(&self, set: RangeSet) -> impl Iterator<Item = NodeId> {
        self.ranges.iter().enumerate().filter(move |(position, _)| set >> position & 1 == 1).map(|(_, &range)| range)
    }
}
