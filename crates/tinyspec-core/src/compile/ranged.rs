//! Functions whose dims have declared bounds: planned once, for all sizes within them.

use super::linked::Linked;
use super::pipeline;
use super::plan::Plan;
use crate::device::Device;
use crate::kept::Kept;
use crate::lazy::{Body, Node, Program, Sizes, number};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tinyspec_ir::dim::Name;
use tinyspec_ir::{AddrSpace, Arg, Builder, ContentHash, ContentHasher, DType, Dim, Graph, NodeId, Op, Shape};

/// The most plans to keep. Making one takes only arithmetic.
const KEPT_PLANS: usize = 256;

/// A function's kernels, for all sizes within the bounds of its dims.
pub(crate) struct Ranged {
    /// The computation, if gradients may need it; its slots are those of the function's arguments.
    pub program: Arc<Program>,
    /// dtypes and shapes of the results, over the dims.
    pub outputs: Vec<(DType, Shape)>,
    dims: Vec<Name>,
    linked: Linked,
    plans: Mutex<FxHashMap<Sizes, Arc<Plan>>>,
}

impl Ranged {
    /// The kernels of `body` for arguments like these, compiled at most once for all sizes; `None` if a stage needs
    /// numbers.
    ///
    /// # Errors
    /// Where a stage refuses something, or the compiler's error.
    pub fn of(body: &Body, arguments: &[Arc<Node>], device: &Arc<Device>) -> Result<Option<Arc<Ranged>>> {
        static KNOWN: LazyLock<Kept<ContentHash, Arc<Ranged>>> = LazyLock::new(|| Kept::new(4));
        let key = {
            let mut hasher = ContentHasher::default();
            (body.hash(), device.name(), device.target_hash()).hash(&mut hasher);
            let is_ranged = |slot: usize| body.ranged().iter().any(|name| name.slot as usize == slot);
            // Dims without bounds have their values of this call.
            for (slot, argument) in arguments.iter().enumerate() {
                let fixed = number(argument).filter(|_| !is_ranged(slot));
                fixed.map(|size| (slot, size)).hash(&mut hasher);
            }
            hasher.content_hash()
        };
        if let Some(ranged) = KNOWN.get(&key) {
            return Ok(Some(ranged));
        }
        let ranged = match Ranged::new(body, arguments, device) {
            Ok(ranged) => Arc::new(ranged),
            // A kernel written by hand needs numbers, for one.
            Err(Error::Graph(_)) => {
                body.specialise();
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        // Plans share what the kernels need.
        let plan = ranged.linked.plan(&|slot| Some(Dim::from(ranged.dims.iter().find(|dim| dim.slot == slot)?.min)));
        let bytes = plan.map_or(0, |plan| plan.kept_bytes()) + 2 * ranged.program.bytes() as u64;
        KNOWN.insert(key, ranged.clone(), bytes)?;
        Ok(Some(ranged))
    }

    fn new(body: &Body, arguments: &[Arc<Node>], device: &Arc<Device>) -> Result<Ranged> {
        let mut graph = Graph::new();
        let mut nodes: Vec<NodeId> = Vec::with_capacity(arguments.len());
        let value = |slot: u32| match body.ranged().iter().find(|name| name.slot == slot) {
            Some(&name) => Some(Dim::from(name)),
            None => number(arguments.get(slot as usize)?).map(Dim::from),
        };
        for (slot, argument) in (0..).zip(arguments) {
            if let Some(dim) = value(slot) {
                nodes.push(graph.dim(&dim)?);
                continue;
            }
            // An argument that the body does not use may have any shape.
            let shape = body.shape(slot).unwrap_or(&argument.props.shape);
            let shape: Shape = shape.iter().map(|dim| dim.substitute(&value)).collect();
            let shape = graph.shape(&shape)?;
            let arg = Arg::Param {
                slot,
                dtype: argument.props.dtype,
                device: Some(device.id().clone()),
                addrspace: Some(AddrSpace::Global),
            };
            nodes.push(graph.add(Op::Param, &[shape], arg)?);
        }
        let results = body.inline(&mut graph, &nodes)?;
        let program = Arc::new(Program::new(graph.clone(), results.clone(), vec![]));
        let outputs = results.iter().map(|&node| (graph.dtype(node), graph.props(node).shape.clone())).collect();
        let results = own(&mut graph, results)?;
        let linked = pipeline::linked(&graph, &results, device)?;
        let dims = body.ranged().to_vec();
        Ok(Ranged { program, outputs, dims, linked, plans: Mutex::default() })
    }

    /// The plan for these sizes.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn plan(&self, sizes: &Sizes) -> Result<Arc<Plan>> {
        if let Some(plan) = self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(sizes) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(self.linked.plan(&|slot| self.value(sizes, slot))?);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= KEPT_PLANS {
            plans.clear();
        }
        plans.insert(sizes.clone(), plan.clone());
        Ok(plan)
    }

    /// The shape of a result, for these sizes.
    pub fn shape(&self, output: usize, sizes: &Sizes) -> Shape {
        self.outputs[output].1.iter().map(|dim| dim.substitute(&|slot| self.value(sizes, slot))).collect()
    }

    fn value(&self, sizes: &Sizes, slot: u32) -> Option<Dim> {
        let position = self.dims.iter().position(|name| name.slot == slot)?;
        sizes.get(position).map(|&size| Dim::from(size))
    }
}

/// Gives results that are unchanged arguments a buffer of their own.
pub(crate) fn own(graph: &mut Graph, results: Vec<NodeId>) -> tinyspec_ir::Result<Vec<NodeId>> {
    let mut own = |node| match graph.op(node) {
        Op::Param => graph.add(Op::Contiguous, &[node], Arg::Stored),
        _ => Ok(node),
    };
    results.into_iter().map(&mut own).collect()
}
