//! Prepared calls: the plan is fixed, a call fills a table of addresses and runs.

use super::Function;
use super::ranged::own;
use crate::execute::{Device, Owner, Storage, default_device, device, plan_for, run};
use crate::lower::pipeline::{self, Plan};
use crate::tensor::{Node, Tensor};
use crate::{Error, Result};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec_ir::function::inline_all;
use tinyspec_ir::{AddrSpace, Arg, Builder, DType, ErrorKind, Graph, Op, Shape};

/// A [`Function`] planned for arguments of fixed shapes on one device.
pub struct Prepared {
    plan: Arc<Plan>,
    device: Arc<Device>,
    inputs: Vec<(DType, Shape)>,
    outputs: Vec<(DType, Shape)>,
    /// What a call needs besides its arguments; calls of one `Prepared` take turns.
    scratch: Mutex<Scratch>,
}

struct Scratch {
    table: Vec<*mut u8>,
    arena: Option<Storage>,
}

// SAFETY: the table's addresses are used only within a call, under the lock.
unsafe impl Send for Scratch {}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("inputs", &self.inputs).field("outputs", &self.outputs).finish()
    }
}

impl Prepared {
    pub(super) fn new(
        function: &Function,
        arguments: &[&Tensor],
        location: &'static Location<'static>,
    ) -> Result<Prepared> {
        let located = |error: Error| match error {
            Error::Graph(error) => Error::Graph(error.at(location)),
            other => other,
        };
        let bound = function.bind(arguments).map_err(located)?;
        let device = match arguments.iter().find_map(|argument| argument.device()) {
            Some(tinyspec_ir::Device::Single(name)) => device(name)?,
            _ => default_device()?,
        };
        let mut graph = Graph::new();
        let mut inputs = Vec::with_capacity(arguments.len());
        let mut nodes = Vec::with_capacity(arguments.len() + bound.len());
        for (slot, argument) in arguments.iter().enumerate() {
            let props = &argument.node()?.props;
            let shape = graph.shape(&props.shape)?;
            let arg = Arg::Param {
                slot: slot as u32,
                dtype: props.dtype,
                device: Some(props.device.clone().unwrap_or_else(|| device.id().clone())),
                addrspace: Some(AddrSpace::Global),
            };
            nodes.push(graph.add(Op::Param, &[shape], arg).map_err(|error| error.at(location))?);
            inputs.push((props.dtype, props.shape.clone()));
        }
        for dim in &bound {
            nodes.push(graph.dim(dim)?);
        }
        let results = function.body.inline(&mut graph, &nodes).map_err(|error| error.at(location))?;
        let (mut graph, results) = inline_all(graph, results).map_err(|error| error.at(location))?;
        let outputs =
            results.iter().map(|&node| (graph.dtype(node), graph.props(node).shape.clone())).collect::<Vec<_>>();
        let results = own(&mut graph, results)?;
        let plan = plan_for(graph.content_hash(&results), &device, || pipeline::compile(&graph, &results, &device))?;
        let arena = (plan.arena_bytes > 0)
            .then(|| Storage::allocate(&device, plan.arena_bytes, &Owner::temporaries(Some(location))))
            .transpose()?;
        let table = Vec::with_capacity(plan.table.len());
        Ok(Prepared { plan, device, inputs, outputs, scratch: Mutex::new(Scratch { table, arena }) })
    }

    /// New tensors that fit the results; their contents are undefined until a call fills them.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn outputs(&self) -> Result<Vec<Tensor>> {
        self.outputs.iter().map(|(dtype, shape)| self.output(*dtype, shape)).collect()
    }

    fn output(&self, dtype: DType, shape: &Shape) -> Result<Tensor> {
        let count = shape.iter().fold(1, |count, dim| count * dim.as_const().unwrap_or(0).max(0) as usize);
        let storage =
            Arc::new(Storage::allocate(&self.device, count * dtype.size(), &Owner::tensor(dtype, shape, None))?);
        Ok(Tensor::from_node(Node::buffer(storage, dtype, shape, None)?))
    }

    /// Runs on `arguments` and puts the results into `out`.
    ///
    /// Memory of `out` that nobody else sees is written in place; where a clone or a lazy tensor still refers to it, that
    /// one keeps its value and `out` gets new memory.
    ///
    /// # Errors
    /// When arguments differ from those it was prepared for, or a kernel fails.
    #[track_caller]
    pub fn call(&self, out: &mut [Tensor], arguments: &[&Tensor]) -> Result<()> {
        let location = Location::caller();
        if arguments.len() != self.inputs.len() || out.len() != self.outputs.len() {
            let message = format!(
                "takes {} tensors and gives {}, found {} and {}",
                self.inputs.len(),
                self.outputs.len(),
                arguments.len(),
                out.len()
            );
            return Err(tinyspec_ir::Error::new(ErrorKind::Arity, "call", message).at(location).into());
        }
        let mut held: SmallVec<[Arc<Storage>; 8]> = SmallVec::new();
        for (position, (argument, (dtype, shape))) in arguments.iter().zip(&self.inputs).enumerate() {
            let node = argument.node()?;
            if node.props.dtype != *dtype || node.props.shape != *shape {
                let show = tinyspec_ir::dim::show;
                let message = format!(
                    "argument {position} is {} {}, the call was prepared for {dtype} {}",
                    node.props.dtype,
                    show(&node.props.shape),
                    show(shape)
                );
                return Err(tinyspec_ir::Error::new(ErrorKind::Shape, "call", message).at(location).into());
            }
            let storage = match node.storage() {
                Some(storage) => storage,
                None => {
                    argument.realize()?;
                    node.storage()
                        .ok_or_else(|| Error::refused(ErrorKind::Value, "call", "an argument has no value"))?
                }
            };
            if !Arc::ptr_eq(storage.device(), &self.device) {
                let message =
                    format!("argument {position} is on {}, the call on {}", storage.device().id(), self.device.id());
                return Err(tinyspec_ir::Error::new(ErrorKind::Device, "call", message).at(location).into());
            }
            held.push(storage);
        }
        let mut results: SmallVec<[*mut u8; 8]> = SmallVec::new();
        for (out, (dtype, shape)) in out.iter_mut().zip(&self.outputs) {
            let address = match out.exclusive_memory(*dtype, shape, &self.device) {
                Some(address) => address,
                None => {
                    *out = self.output(*dtype, shape)?;
                    out.exclusive_memory(*dtype, shape, &self.device)
                        .unwrap_or_else(|| unreachable!("nobody else has seen the new tensor"))
                }
            };
            results.push(address);
        }
        // Equal results share a buffer of the plan: the later ones are copies of the first.
        let mut written: SmallVec<[*mut u8; 8]> = SmallVec::from_elem(std::ptr::null_mut(), self.plan.outputs.len());
        for (&number, &address) in self.plan.output_of_root.iter().zip(&results) {
            if written[number as usize].is_null() {
                written[number as usize] = address;
            }
        }
        let leaves: SmallVec<[*mut u8; 8]> = held.iter().map(|storage| storage.address()).collect();
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let Scratch { table, arena } = &mut *scratch;
        // SAFETY: `held` keeps the leaves, whose sizes follow from the checked shapes; the results are exclusively ours.
        unsafe { run(&self.plan, &leaves, &written, arena.as_ref(), table)? };
        drop(scratch);
        for (position, &number) in self.plan.output_of_root.iter().enumerate() {
            if let Some(first) = self.plan.output_of_root[..position].iter().position(|&other| other == number) {
                out[position] = out[first].clone();
            }
        }
        Ok(())
    }
}
