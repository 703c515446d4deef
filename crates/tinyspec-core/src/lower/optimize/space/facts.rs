//! The facts about a kernel that decide which transforms fit it, the same under every schedule.

use super::Space;
use crate::lower::loops;
use crate::lower::optimize::kernel::Kernel;
use crate::lower::optimize::online::Lengths;
use std::hash::{Hash, Hasher};
use tinyspec_backends::Target;
use tinyspec_ir::{DType, Graph, NodeId};

/// The facts. Ranges are given as positions of origins.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(in super::super) struct Facts {
    /// The origins of each loop nest.
    pub nests: Vec<Vec<usize>>,
    /// The origins of each Reduce.
    pub reductions: Vec<Vec<usize>>,
    /// Whether some Reduce is loop-carried.
    pub carries: bool,
    /// Whether all Reduces are over the same ranges and vary with all outputs, so that loops over these ranges can be around
    /// those over outputs.
    pub alike: bool,
    /// Params that may be packed: read, never written.
    pub params: Vec<u32>,
    /// The repeated values: which others each needs, and which it overlaps.
    pub repeats: Vec<(u64, u64)>,
    /// The origins that all stores are contiguous in.
    pub contiguous: Vec<usize>,
    /// The origins that conditions bound.
    pub bounded: Vec<usize>,
    /// Ranges along which elements can be packed into words, and the dtype of these elements.
    pub word_ranges: Vec<NodeId>,
    pub numbers: Option<DType>,
    /// Whether the device has workgroups; else its threads share the one THREAD axis.
    pub workgroups: bool,
    /// Whether a kernel that runs before can make copies.
    pub can_copy_before: bool,
    /// Whether all results are sums at data-dependent positions.
    pub can_scatter: bool,
    /// The axis lengths for online-softmax tiling, if the kernel has that form.
    pub lengths: Option<Lengths>,
}

/// Spaces are compared within one kernel, where all have the same facts.
impl Hash for Facts {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Facts {
    /// The facts of a kernel whose unscheduled axes are `space`.
    pub fn of(graph: &Graph, kernel: &Kernel, target: &Target, space: &Space) -> Facts {
        let origins = |ranges: &[NodeId]| ranges.iter().filter_map(|&range| space.origin(range)).collect();
        let mut reduced = kernel.reductions.iter().map(|reduction| &reduction.ranges);
        let first = reduced.next();
        let vary =
            |range: &NodeId| kernel.reductions.iter().all(|reduction| reduction.outer & kernel.live.bit(*range) != 0);
        let alike = first.is_some_and(|first| reduced.all(|other| other == first))
            && matches!(&kernel.nests[..], [nest] if nest.ranges.iter().all(vary));
        let is_contiguous = |origin: &usize| {
            let mut stores = kernel.accesses.iter().filter(|access| access.is_store);
            stores.all(|store| store.index.coefficient(space.origins[*origin].range) == 1)
        };
        let product = kernel.product.as_ref();
        Facts {
            nests: kernel.nests.iter().map(|nest| origins(&nest.ranges)).collect(),
            reductions: kernel.reductions.iter().map(|reduction| origins(&reduction.ranges)).collect(),
            carries: kernel.reductions.iter().any(|reduction| reduction.carried.is_some()),
            alike,
            params: kernel.only_read(graph),
            repeats: kernel.recomputed.iter().map(|repeat| (repeat.needs, repeat.overlaps)).collect(),
            contiguous: (0..space.origins.len()).filter(is_contiguous).collect(),
            bounded: kernel.bounded().filter_map(|bounded| space.origin(bounded.range)).collect(),
            word_ranges: product.map_or(Vec::new(), |product| product.ranges.to_vec()),
            // Where the target has no instruction, it is decomposed.
            numbers: product.and_then(|product| product.on(target).or(product.numbers.last().copied())),
            workgroups: target.workgroups.is_some(),
            can_copy_before: target.workgroups.is_none() && !loops::has_dims(graph, kernel.sink),
            can_scatter: false,
            lengths: None,
        }
    }
}
