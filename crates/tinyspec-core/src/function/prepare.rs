//! Prepared calls: the kernels are compiled, so a call fills a table of addresses and runs.

use super::Function;
use crate::compile::{self, Plan, Ranged, own};
use crate::device::{Device, Owner, Storage, device_of};
use crate::execute::{key_for, plan_for, run};
use crate::lazy::{Node, Sizes, Sources};
use crate::lower::rangeify::Donation;
use crate::tensor::Tensor;
use crate::{Error, Result};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec_ir::Device::Many;
use tinyspec_ir::dim::Name;
use tinyspec_ir::{AddrSpace, Arg, Builder, ContentHash, DType, Dim, ErrorKind, Graph, NodeId, Op, Shape};

/// A [`Function`] planned on one device: for arguments of fixed shapes, or, where dims have bounds, for all sizes of these.
pub struct Prepared {
    device: Arc<Device>,
    /// Of the last call.
    sizing: Mutex<Arc<Sizing>>,
    /// Plans for other sizes.
    ranging: Option<Ranging>,
    /// What is computed, if all sizes are fixed.
    program: Option<(Graph, Vec<NodeId>)>,
    /// Results that are the new states of arguments.
    states: SmallVec<[State; 2]>,
    /// What a call needs besides its arguments; calls of one `Prepared` take turns.
    scratch: Mutex<Scratch>,
    /// It was read from text that nobody vouches for, and its device does not check accesses.
    is_foreign: bool,
}

/// A result that is the new state of an argument. The argument is not passed.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub result: usize,
    pub argument: usize,
}

/// A plan, and the shapes that it is for.
pub(super) struct Sizing {
    pub plan: Arc<Plan>,
    pub inputs: Vec<(DType, Shape)>,
    pub outputs: Vec<(DType, Shape)>,
}

/// A function whose dims have bounds.
struct Ranging {
    function: Function,
    ranged: Arc<Ranged>,
    /// Values of all its dims when it was prepared; those without bounds are fixed.
    bound: Vec<Dim>,
}

impl Ranging {
    /// The plan for these arguments.
    fn sizing(&self, arguments: &[&Tensor]) -> Result<Sizing> {
        let bound = self.function.bind(arguments)?;
        let first = arguments.len() as u32;
        let position = |name: &Name| name.slot.saturating_sub(first) as usize;
        let ranged = self.function.body.ranged();
        for (place, (dim, before)) in bound.iter().zip(&self.bound).enumerate() {
            if dim != before && ranged.iter().all(|name| position(name) != place) {
                let name = &self.function.signature.dims[place].name;
                let message = format!("dim `{name}` is {dim}, the call was prepared for {before}");
                return Err(tinyspec_ir::Error::new(ErrorKind::Shape, "call", message)
                    .help(format!("a dim with bounds may change: `bounds({name}: 1..=4096)`"))
                    .into());
            }
        }
        let size = |name: &Name| bound.get(position(name)).and_then(Dim::as_const);
        let sizes: Option<Sizes> = ranged.iter().map(size).collect();
        let sizes = sizes.ok_or_else(|| Error::refused(ErrorKind::Value, "call", "a dim has no number"))?;
        let mut inputs = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let props = &argument.node()?.props;
            inputs.push((props.dtype, props.shape.clone()));
        }
        let outputs = self.ranged.outputs.iter().enumerate();
        let outputs = outputs.map(|(number, (dtype, _))| (*dtype, self.ranged.shape(number, &sizes))).collect();
        Ok(Sizing { plan: self.ranged.plan(&sizes)?, inputs, outputs })
    }
}

fn plan_of(graph: &Graph, results: &[NodeId], device: &Arc<Device>, wanted: &[Donation]) -> Result<Arc<Plan>> {
    let key = ContentHash::of(&(graph.content_hash(results), wanted));
    plan_for(key, device, || {
        let plan = compile::planned(key_for(key, device), device, wanted, || Ok((graph.clone(), results.to_vec())))?;
        Ok(Arc::new(plan))
    })
}

struct Scratch {
    table: Vec<*mut u8>,
    arena: Option<Storage>,
}

// SAFETY: the table's addresses are used only within a call, under the lock.
unsafe impl Send for Scratch {}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizing = self.last();
        f.debug_struct("Prepared").field("inputs", &sizing.inputs).field("outputs", &sizing.outputs).finish()
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
        let tuple = arguments.iter().enumerate().find_map(|(position, argument)| match argument.device() {
            Some(Many(names)) => Some((position, names)),
            _ => None,
        });
        if let Some((position, names)) = tuple {
            let message = format!("argument {position} is on {names:?}, a prepared call runs on one device");
            return Err(tinyspec_ir::Error::new(ErrorKind::Device, "prepare", message)
                .help("call the function without preparing it, or prepare it for each device: `x.to(\"cpu:0\")`")
                .at(location)
                .into());
        }
        let bound = function.bind(arguments).map_err(located)?;
        let device = device_of(arguments.iter().map(|argument| argument.device()))?;
        let prepared =
            |sizing, ranging, program| Prepared { ranging, program, ..Prepared::of_plan(device.clone(), sizing) };
        if !function.body.ranged().is_empty() {
            let mut nodes = Sources::new();
            Function::pass(arguments, &bound, location, &mut nodes)?;
            if let Some(ranged) = Ranged::of(&function.body, &nodes, &device).map_err(located)? {
                let ranging = Ranging { function: function.clone(), ranged, bound };
                return Ok(prepared(ranging.sizing(arguments).map_err(located)?, Some(ranging), None));
            }
        }
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
        let outputs =
            results.iter().map(|&node| (graph.dtype(node), graph.props(node).shape.clone())).collect::<Vec<_>>();
        let results = own(&mut graph, results)?;
        let plan = plan_of(&graph, &results, &device, &[])?;
        Ok(prepared(Sizing { plan, inputs, outputs }, None, Some((graph, results))))
    }

    fn of_plan(device: Arc<Device>, sizing: Sizing) -> Prepared {
        let scratch = Scratch { table: Vec::with_capacity(sizing.plan.table.len()), arena: None };
        Prepared {
            device,
            sizing: Mutex::new(Arc::new(sizing)),
            ranging: None,
            program: None,
            states: SmallVec::new(),
            scratch: Mutex::new(scratch),
            is_foreign: false,
        }
    }

    /// A call whose plan was read from text.
    pub(super) fn read(device: Arc<Device>, sizing: Sizing, states: SmallVec<[State; 2]>) -> Prepared {
        let is_foreign = !device.is_interpreter();
        Prepared { states, is_foreign, ..Prepared::of_plan(device, sizing) }
    }

    /// Vouches for a call that was read from text, so that it may run.
    ///
    /// # Safety
    /// Its kernels must stay within their buffers.
    #[must_use]
    pub unsafe fn vouched(self) -> Prepared {
        Prepared { is_foreign: false, ..self }
    }

    /// The same call with results that are the new states of arguments: for each `(result, argument)` the argument is no longer
    /// passed to [`Prepared::call`], which takes it from `out` and leaves the new state there. Where the function
    /// replaces a part of a state, such as a row of a cache, only that part is written.
    ///
    /// ```
    /// # use tinyspec_core::{Tensor, function::Prepare};
    /// fn push(cache: &Tensor, at: &Tensor, row: &Tensor) -> Tensor {
    ///     let mut next = cache.clone();
    ///     next.set(at, row);
    ///     next
    /// }
    /// let (cache, row) = (Tensor::zeros([3, 2]), Tensor::ones([1, 2]));
    /// let at = |row: i32| Tensor::from_slice(&[row], [1]);
    /// let run = push.prepare(&[&cache, &at(0), &row])?.in_place(&[(0, 0)])?;
    /// let mut out = [cache];
    /// run.call(&mut out, &[&at(0), &row])?;
    /// run.call(&mut out, &[&at(2), &row])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    /// # Ok::<(), tinyspec_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such result or argument, one is named twice, or they differ in dtype or shape; when dims of the function
    /// have bounds, or the call was read from text.
    #[track_caller]
    pub fn in_place(mut self, states: &[(usize, usize)]) -> Result<Prepared> {
        let location = Location::caller();
        let refused = |kind, message: String| tinyspec_ir::Error::new(kind, "in_place", message).at(location);
        let last = self.last();
        let Some((graph, results)) = &self.program else {
            let (message, help) = match self.ranging {
                Some(_) => {
                    ("its dims have bounds, its states may change their shapes", "fix the dims: leave out `bounds`")
                }
                None => ("was read from text, which says what is overwritten", "print the call once it is `in_place`"),
            };
            return Err(refused(ErrorKind::Unsupported, message.into()).help(help).into());
        };
        for (number, &(result, argument)) in states.iter().enumerate() {
            let (Some(new), Some(old)) = (last.outputs.get(result), last.inputs.get(argument)) else {
                let (results, arguments) = (last.outputs.len(), last.inputs.len());
                let message = format!(
                    "result {result} as the new state of argument {argument}, of {results} results and {arguments} arguments"
                );
                return Err(refused(ErrorKind::Arity, message).into());
            };
            if states[..number].iter().any(|other| other.0 == result || other.1 == argument) {
                let message = format!("result {result} or argument {argument} is named twice");
                return Err(refused(ErrorKind::Arity, message).into());
            }
            if new != old {
                let show = |(dtype, shape): &(DType, Shape)| format!("{dtype} {}", tinyspec_ir::dim::show(shape));
                let message = format!("result {result} is {}, argument {argument} {}", show(new), show(old));
                return Err(refused(ErrorKind::Shape, message).help("a new state is like the old one").into());
            }
        }
        self.states = states.iter().map(|&(result, argument)| State { result, argument }).collect();
        let wish = |&(output, argument): &(usize, usize)| Donation { output, slot: argument as u32, only_part: false };
        let wanted: Vec<Donation> = states.iter().map(wish).collect();
        let plan = plan_of(graph, results, &self.device, &wanted)?;
        let Sizing { inputs, outputs, .. } = &*last;
        self.sizing = Mutex::new(Arc::new(Sizing { plan, inputs: inputs.clone(), outputs: outputs.clone() }));
        Ok(self)
    }

    pub(super) fn last(&self) -> Arc<Sizing> {
        self.sizing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The plan for arguments of these shapes.
    fn sizing(&self, arguments: &[&Tensor], location: &'static Location<'static>) -> Result<Arc<Sizing>> {
        let last = self.last();
        for (position, (argument, (dtype, shape))) in arguments.iter().zip(&last.inputs).enumerate() {
            let props = &argument.node()?.props;
            if props.dtype == *dtype && props.shape == *shape {
                continue;
            }
            if let Some(ranging) = &self.ranging {
                let sizing = ranging.sizing(arguments).map_err(|error| error.at(location))?;
                let sizing = Arc::new(sizing);
                *self.sizing.lock().unwrap_or_else(PoisonError::into_inner) = sizing.clone();
                return Ok(sizing);
            }
            let show = tinyspec_ir::dim::show;
            let message = format!(
                "argument {position} is {} {}, the call was prepared for {dtype} {}",
                props.dtype,
                show(&props.shape),
                show(shape)
            );
            let help = match props.dtype == *dtype {
                true => {
                    "prepare another call for it; `my_function::FUNCTION.prepare(…)` takes all sizes within declared bounds"
                }
                false => "`.cast(…)` converts it; for this dtype, prepare another call",
            };
            return Err(tinyspec_ir::Error::new(ErrorKind::Shape, "call", message).help(help).at(location).into());
        }
        Ok(last)
    }

    /// New tensors that fit the results; their contents are undefined until a call fills them.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn outputs(&self) -> Result<Vec<Tensor>> {
        self.last().outputs.iter().map(|(dtype, shape)| self.output(*dtype, shape)).collect()
    }

    fn output(&self, dtype: DType, shape: &Shape) -> Result<Tensor> {
        let count = shape.iter().fold(1, |count, dim| count * dim.as_const().unwrap_or(0).max(0) as usize);
        let storage =
            Arc::new(Storage::allocate(&self.device, count * dtype.size(), &Owner::tensor(dtype, shape, None))?);
        Ok(Tensor::from_node(Node::buffer(storage, dtype, shape, None)?))
    }

    /// All arguments, including states from `out`.
    fn with_states<'a>(&self, out: &'a [Tensor], arguments: &[&'a Tensor]) -> SmallVec<[&'a Tensor; 16]> {
        let mut rest = arguments.iter();
        let all = (0..arguments.len() + self.states.len()).filter_map(|slot| {
            match self.states.iter().find(|state| state.argument == slot) {
                Some(state) => out.get(state.result),
                None => rest.next().copied(),
            }
        });
        all.collect()
    }

    /// The memory of an argument, which is computed if necessary.
    fn storage(
        &self,
        argument: &Tensor,
        name: impl FnOnce() -> String,
        location: &'static Location<'static>,
    ) -> Result<Arc<Storage>> {
        let node = argument.node()?;
        let storage = match node.storage() {
            Some(storage) => Some(storage),
            None => {
                argument.realize()?;
                node.storage()
            }
        };
        // A value on several devices has no memory of its own.
        let elsewhere = match storage {
            Some(storage) if Arc::ptr_eq(storage.device(), &self.device) => return Ok(storage),
            Some(storage) => storage.device().id().to_string(),
            None => match argument.device() {
                Some(Many(names)) => format!("{names:?}"),
                _ => {
                    return Err(tinyspec_ir::Error::new(ErrorKind::Value, "call", format!("{} has no value", name()))
                        .at(location)
                        .into());
                }
            },
        };
        let message = format!("{} is on {elsewhere}, the call was prepared for {}", name(), self.device.id());
        let help = format!("`x.to(\"{}\")` moves it", self.device.id());
        Err(tinyspec_ir::Error::new(ErrorKind::Device, "call", message).help(help).at(location).into())
    }

    /// The address of an old state. If it is not overwritten, it is kept alive, and `out` gets memory for the new
    /// state. If it is shared, it is copied first.
    fn state(
        &self,
        out: &mut Tensor,
        is_overwritten: bool,
        (dtype, shape): &(DType, Shape),
        held: &mut SmallVec<[Arc<Storage>; 8]>,
        location: &'static Location<'static>,
    ) -> Result<*mut u8> {
        let old = self.storage(out, || "a state".into(), location)?;
        let address = old.address();
        if !is_overwritten {
            held.push(old);
            *out = self.output(*dtype, shape)?;
            return Ok(address);
        }
        drop(old);
        if let Some(address) = out.exclusive_memory(*dtype, shape, &self.device) {
            return Ok(address);
        }
        let old = self.storage(out, || "a state".into(), location)?;
        let copy = Storage::allocate(&self.device, old.bytes(), &Owner::tensor(*dtype, shape, None))?;
        copy.copy(&old, 0)?;
        let address = copy.address();
        *out = Tensor::from_node(Node::buffer(Arc::new(copy), *dtype, shape, None)?);
        Ok(address)
    }

    /// Runs on `arguments` and puts the results into `out`.
    ///
    /// Unshared memory of `out` is written in place; if a clone or a lazy tensor still refers to it, that one keeps its
    /// value and `out` gets new memory.
    ///
    /// # Errors
    /// When arguments differ from those it was prepared for, nobody [vouches](Prepared::vouched) for it, or a kernel fails: then the
    /// contents of `out` are undefined.
    #[track_caller]
    pub fn call(&self, out: &mut [Tensor], arguments: &[&Tensor]) -> Result<()> {
        let location = Location::caller();
        if self.is_foreign {
            let error = tinyspec_ir::Error::new(ErrorKind::Unsupported, "call", "it was read from text").at(location);
            return Err(error
                .help("`unsafe { prepared.vouched() }` says that its kernels stay within their buffers")
                .into());
        }
        let last = self.last();
        let passed = last.inputs.len() - self.states.len();
        if arguments.len() != passed || out.len() != last.outputs.len() {
            let message = format!(
                "takes {passed} tensors and gives {}, found {} and {}",
                last.outputs.len(),
                arguments.len(),
                out.len()
            );
            let error = tinyspec_ir::Error::new(ErrorKind::Arity, "call", message).at(location);
            let error = match self.states.first() {
                Some(State { result, argument }) if arguments.len() > passed => error.help(format!(
                    "argument {argument} is a state since `in_place`: it is not passed among the arguments but in `out`, as result {result}"
                )),
                _ => error,
            };
            return Err(error.into());
        }
        let sizing = match &self.states[..] {
            [] => self.sizing(arguments, location)?,
            _ => self.sizing(&self.with_states(out, arguments), location)?,
        };
        let Sizing { plan, outputs, .. } = &*sizing;
        let mut held: SmallVec<[Arc<Storage>; 8]> = SmallVec::new();
        let mut leaves: SmallVec<[*mut u8; 8]> = SmallVec::from_elem(std::ptr::null_mut(), last.inputs.len());
        let is_state = |slot: &usize| self.states.iter().any(|state| state.argument == *slot);
        let slots = (0..last.inputs.len()).filter(|slot| !is_state(slot));
        for (position, (slot, argument)) in slots.zip(arguments).enumerate() {
            let storage = self.storage(argument, || format!("argument {position}"), location)?;
            leaves[slot] = storage.address();
            held.push(storage);
        }
        // Last, so that a refused argument leaves the states as they were.
        for &State { result, argument } in &self.states {
            let is_overwritten = plan.overwritten.contains(&(plan.output_of_root[result], argument as u32));
            leaves[argument] = self.state(&mut out[result], is_overwritten, &outputs[result], &mut held, location)?;
        }
        let mut results: SmallVec<[*mut u8; 8]> = SmallVec::new();
        for (out, (dtype, shape)) in out.iter_mut().zip(outputs) {
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
        let mut written: SmallVec<[*mut u8; 8]> = SmallVec::from_elem(std::ptr::null_mut(), plan.outputs.len());
        for (&number, &address) in plan.output_of_root.iter().zip(&results) {
            if written[number as usize].is_null() {
                written[number as usize] = address;
            }
        }
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let Scratch { table, arena } = &mut *scratch;
        if arena.as_ref().map_or(0, Storage::bytes) < plan.arena_bytes {
            *arena = None;
            *arena = Some(Storage::allocate(&self.device, plan.arena_bytes, &Owner::temporaries(Some(location)))?);
        }
        // SAFETY: `held` keeps the leaves alive, and their sizes follow from the checked shapes; the results are
        // exclusively ours.
        unsafe { run(plan, &leaves, &written, arena.as_ref(), table)? };
        drop(scratch);
        for (position, &number) in plan.output_of_root.iter().enumerate() {
            if let Some(first) = plan.output_of_root[..position].iter().position(|&other| other == number) {
                out[position] = out[first].clone();
            }
        }
        Ok(())
    }
}
