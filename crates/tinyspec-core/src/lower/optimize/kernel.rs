//! The analysis of a kernel by Optimize: its loop nests, reductions, and the index of every access in normal form.

use super::packed_dot::{self, Product};
use super::partition;
use super::recomputation::Recomputed;
use crate::lower::live::{Live, RangeSet};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tinyspec_ir::affine::Affine;
use tinyspec_ir::{Arg, Builder, DType, Error, ErrorKind, Graph, NodeId, Op, Result};

/// The analysis of a kernel in range form.
#[derive(Clone)]
pub struct Kernel {
    /// The root.
    pub sink: NodeId,
    /// All nodes, sources before users.
    pub order: Vec<NodeId>,
    /// One per source of the Sink.
    pub nests: Vec<Nest>,
    /// All Reduces, inner ones first.
    pub reductions: Vec<Reduction>,
    /// Every Load from and Store to memory.
    pub accesses: Vec<Access>,
    /// Values that one loop can leave for another.
    pub recomputed: Vec<Recomputed>,
    /// Maxima that may lose a nan.
    pub without_nans: Vec<NodeId>,
    /// The product in its sum, if packed words can be multiplied.
    pub product: Option<Product>,
    pub(crate) live: Live,
    /// Normal form of every index scalar.
    pub(crate) sums: FxHashMap<NodeId, Affine>,
}

/// Output loops around Stores.
#[derive(Clone)]
pub struct Nest {
    /// The body of the loops: a Store, or a Group of them.
    pub body: NodeId,
    /// The loops, outer ones first.
    pub ranges: Vec<NodeId>,
}

impl Nest {
    /// The loops that Ends close around a body.
    pub(crate) fn of(graph: &Graph, end: NodeId) -> Nest {
        let mut nest = Nest { body: end, ranges: Vec::new() };
        while graph.op(nest.body) == Op::End {
            nest.ranges.push(graph.source(nest.body, 1));
            nest.body = graph.source(nest.body, 0);
        }
        nest
    }
}

/// A Reduce and its Ranges.
#[derive(Clone)]
pub struct Reduction {
    /// The Reduce.
    pub node: NodeId,
    /// Its Ranges, outer ones first.
    pub ranges: SmallVec<[NodeId; 2]>,
    /// Ranges that its result depends on.
    pub outer: RangeSet,
    /// The position in the output along whose Ranges it grows term by term, so that its value is loop-carried.
    pub(crate) carried: Option<Affine>,
    /// How conditions mask off many of its terms, unless it is carried.
    pub(crate) bounded: Option<Bounded>,
}

/// A Range of a Reduce in many of whose trips conditions on indices mask off the terms.
#[derive(Clone)]
pub(crate) struct Bounded {
    /// The Range.
    pub range: NodeId,
    /// Ranges that the terms depend on, but not the remaining values of masked-off terms.
    pub shared: RangeSet,
    /// Whether nothing remains of the masked-off terms.
    pub is_rest_empty: bool,
}

/// A Load or Store.
#[derive(Clone)]
pub struct Access {
    /// The Load or Store.
    pub node: NodeId,
    /// The buffer: a Param.
    pub buffer: NodeId,
    /// Of the elements.
    pub dtype: DType,
    /// A Store.
    pub is_store: bool,
    /// Ranges open here.
    pub open: RangeSet,
    pub(crate) index: Affine,
    /// Ranges in which the index is not affine, because it depends on loaded data or on a quotient.
    pub(crate) irregular: RangeSet,
}

impl Access {
    /// Whether its index is affine in Ranges alone.
    pub(crate) fn is_regular(&self, graph: &Graph) -> bool {
        self.index.atoms().all(|atom| graph.op(atom) == Op::Range)
    }
}

impl Kernel {
    /// Reads a kernel.
    ///
    /// # Errors
    /// When it is not in range form.
    pub fn new(graph: &mut Graph, sink: NodeId) -> Result<Kernel> {
        let order = graph.reachable(&[sink]);
        let live = Live::new(graph, &order)?;
        let mut kernel = Kernel {
            sink,
            nests: graph.sources(sink).iter().map(|&source| Nest::of(graph, source)).collect(),
            reductions: Vec::new(),
            accesses: Vec::new(),
            recomputed: Vec::new(),
            without_nans: Vec::new(),
            product: None,
            sums: FxHashMap::default(),
            live,
            order,
        };
        for position in 0..kernel.order.len() {
            let node = kernel.order[position];
            match graph.op(node) {
                Op::Reduce => {
                    let carried = super::windows::carried(graph, node)?.map(|carried| carried.place);
                    let bounded = match carried {
                        Some(_) => None,
                        None => partition::bounded(graph, node, &kernel.live)?,
                    };
                    kernel.reductions.push(Reduction {
                        node,
                        ranges: graph.sources(node)[1..].into(),
                        outer: kernel.live.of(node),
                        carried,
                        bounded,
                    });
                }
                Op::Load | Op::Store => kernel.access(graph, node)?,
                _ if is_index(graph, node) => {
                    let sum = kernel.index_sum(graph, node)?;
                    kernel.sums.insert(node, sum);
                }
                _ => {}
            }
        }
        kernel.product = packed_dot::find(graph, &kernel);
        Ok(kernel)
    }

    /// Loads from this buffer.
    pub(super) fn loads_from(&self, buffer: NodeId) -> bool {
        self.accesses.iter().any(|access| !access.is_store && access.buffer == buffer)
    }

    /// The Params that it loads from but does not store to, in ascending order.
    pub(crate) fn only_read(&self, graph: &Graph) -> Vec<u32> {
        let params = |is_store: bool| {
            let accesses = self.accesses.iter().filter(|access| access.is_store == is_store);
            let mut params: Vec<u32> = accesses.filter_map(|access| slot(graph, access.buffer)).collect();
            params.sort_unstable();
            params.dedup();
            params
        };
        let (mut loaded, stored) = (params(false), params(true));
        loaded.retain(|param| stored.binary_search(param).is_err());
        loaded
    }

    /// The Ranges of Reduces that conditions bound.
    pub(crate) fn bounded(&self) -> impl Iterator<Item = &Bounded> {
        self.reductions.iter().filter_map(|reduction| reduction.bounded.as_ref())
    }

    /// Types of the elements that its vectors hold: those in memory, and those that are summed.
    pub(crate) fn dtypes(&self, graph: &Graph) -> impl Iterator<Item = DType> {
        let sums = self.reductions.iter().map(|reduction| graph.dtype(reduction.node));
        self.accesses.iter().map(|access| access.dtype).chain(sums)
    }

    /// The Cast to a wider type in memory that alone uses a Load.
    pub(crate) fn widened(&self, graph: &Graph, load: NodeId) -> Option<NodeId> {
        let mut users = self.order.iter().copied().filter(|&node| graph.sources(node).contains(&load));
        let (user, others) = (users.next()?, users.next());
        let dtype = graph.dtype(user);
        let is_wider = graph.op(user) == Op::Cast && dtype != DType::Index && dtype.size() > graph.dtype(load).size();
        (is_wider && others.is_none()).then_some(user)
    }

    fn index_sum(&mut self, graph: &mut Graph, node: NodeId) -> Result<Affine> {
        match graph.op(node) {
            Op::Add | Op::Mul | Op::Idiv | Op::Mod => {
                let sources: SmallVec<[Affine; 2]> =
                    graph.sources(node).iter().map(|source| self.sum(*source)).collect();
                Affine::combine(graph, graph.op(node), &sources)
            }
            _ => Ok(Affine::leaf(graph, node)),
        }
    }

    fn sum(&self, node: NodeId) -> Affine {
        self.sums.get(&node).cloned().unwrap_or_else(|| Affine::atom(node))
    }

    fn access(&mut self, graph: &Graph, node: NodeId) -> Result<()> {
        let index = graph.source(node, 0);
        let (buffer, offset) = match (graph.op(index), graph.sources(index)) {
            (Op::Index, [buffer, offset]) => (*buffer, self.sum(*offset)),
            _ => {
                return Err(Error::new(
                    ErrorKind::Verify,
                    graph.op(node).name(),
                    "an access must be an index into a buffer",
                ));
            }
        };
        let nonlinear: SmallVec<[NodeId; 2]> = offset.atoms().filter(|&atom| graph.op(atom) != Op::Range).collect();
        let below = if nonlinear.is_empty() { Vec::new() } else { graph.reachable(&nonlinear) };
        let open = self.live.of(node) | self.live.of(index);
        self.accesses.push(Access {
            irregular: below.into_iter().fold(0, |set, node| set | self.live.bit(node)) & open,
            node,
            buffer,
            dtype: graph.dtype(buffer),
            is_store: graph.op(node) == Op::Store,
            open,
            index: offset,
        });
        Ok(())
    }
}

/// An index scalar that [`Affine`] stands for.
pub(crate) fn is_index(graph: &Graph, node: NodeId) -> bool {
    graph.dtype(node) == DType::Index && graph.props(node).shape.is_empty() && graph.op(node) != Op::Index
}

/// The slot of a Param.
pub(crate) fn slot(graph: &Graph, buffer: NodeId) -> Option<u32> {
    match graph.arg(buffer) {
        Arg::Param { slot, .. } => Some(*slot),
        _ => None,
    }
}
