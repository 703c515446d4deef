//! Stores that bypass the caches, where these could not keep the written data until it is read.

use crate::lower::optimize::kernel::Kernel;
use crate::lower::optimize::transforms::{Nontemporal, OptOp};
use crate::lower::traffic::bypassing_pays;
use rustc_hash::FxHashSet;
use tinyspec_backends::Target;
use tinyspec_ir::{Graph, NodeId};

/// Chooses non-temporal stores for a kernel that moves more bytes than the caches hold and writes a buffer that it does not read.
/// An ordinary store would read each line before writing it.
pub(in super::super) fn nontemporal(graph: &Graph, kernel: &Kernel, target: &Target) -> Option<OptOp> {
    let stores = kernel.accesses.iter().filter(|access| access.is_store);
    let written: FxHashSet<NodeId> = stores.map(|access| access.buffer).collect();
    let is_only_written = |&buffer: &NodeId| !kernel.loads_from(buffer);
    let pays = written.iter().any(is_only_written) && bypassing_pays(graph, &kernel.order, &written, target);
    pays.then_some(Nontemporal.into())
}
