//! Prepared calls on one device: the kernels are compiled, so a call fills a table of addresses and runs.

use super::State;
use crate::compile::{self, Linked, Plan, Ranged, own};
use crate::device::{Device, Owner, Storage, device_of};
use crate::execute::{key_for, plan_for, run};
use crate::function::{Function, first};
use crate::lazy::{Node, Sizes, Sources};
use crate::lower::rangeify::Donation;
use crate::tensor::Tensor;
use crate::{Error, Result};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec_ir::Device::Many;
use tinyspec_ir::dim::Name;
use tinyspec_ir::signature::{Input, Signature};
use tinyspec_ir::{AddrSpace, Arg, Builder, ContentHash, DType, Dim, ErrorKind, Graph, NodeId, Op, Shape};

/// A [`Function`] planned on one device: for arguments of fixed shapes, or, where dims have bounds, for all sizes of these.
pub(super) struct Single {
    device: Arc<Device>,
    /// Of the last call.
    sizing: Mutex<Arc<Sizing>>,
    /// Plans for other sizes.
    ranging: Option<Ranging>,
    /// The computation, if all sizes are fixed.
    program: Option<(Graph, Vec<NodeId>)>,
    /// Results that are the new states of arguments.
    states: SmallVec<[State; 2]>,
    /// Scratch state of a call; calls of one `Prepared` take turns.
    scratch: Mutex<Scratch>,
    /// It was read from untrusted text, and its device does not check accesses.
    is_foreign: bool,
}

/// A plan, and the shapes that it is for.
pub(in crate::function) struct Sizing {
    pub plan: Arc<Plan>,
    pub inputs: Vec<(DType, Shape)>,
    pub outputs: Vec<(DType, Shape)>,
}

/// A computation with named dims: plans for all of their values.
enum Ranging {
    Function(RangedFunction),
    Read(Box<RangedCommands>),
}

impl Ranging {
    /// The plan for these arguments.
    fn sizing(&self, arguments: &[&Tensor]) -> Result<Sizing> {
        let mut inputs = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let props = &argument.node()?.props;
            inputs.push((props.dtype, props.shape.clone()));
        }
        match self {
            Ranging::Function(function) => function.sizing(arguments, inputs),
            Ranging::Read(commands) => commands.sizing(inputs),
        }
    }

    /// dtypes and shapes of the arguments, over the dims.
    fn inputs(&self) -> Vec<(DType, Shape)> {
        let (inputs, value): (_, Box<dyn Fn(u32) -> Option<Dim>>) = match self {
            Ranging::Function(function) => {
                let inputs = &function.function.signature.inputs;
                (inputs, Box::new(|position| function.dim(position, inputs.len() as u32)))
            }
            Ranging::Read(commands) => {
                let name = |position: u32| commands.names.get(position as usize).copied().map(Dim::from);
                (&commands.signature.inputs, Box::new(name))
            }
        };
        let shape = |input: &Input| input.shape.iter().map(|dim| dim.substitute(&value)).collect();
        inputs.iter().map(|input| (input.dtype, shape(input))).collect()
    }
}

/// A function whose dims have bounds.
struct RangedFunction {
    function: Function,
    ranged: Arc<Ranged>,
    /// Values of all its dims when it was prepared; those without bounds are fixed.
    bound: Vec<Dim>,
}

impl RangedFunction {
    /// The dim at a position of the signature, whose inputs have the `first` slots: a name if it has bounds.
    fn dim(&self, position: u32, first: u32) -> Option<Dim> {
        let ranged = self.function.body.ranged().iter().find(|name| name.slot == first + position);
        ranged.copied().map(Dim::from).or_else(|| self.bound.get(position as usize).cloned())
    }

    fn sizing(&self, arguments: &[&Tensor], inputs: Vec<(DType, Shape)>) -> Result<Sizing> {
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
        let outputs = self.ranged.outputs.iter().enumerate();
        let outputs = outputs.map(|(number, (dtype, _))| (*dtype, self.ranged.shape(number, &sizes))).collect();
        Ok(Sizing { plan: self.ranged.plan(&sizes)?, inputs, outputs })
    }
}

/// A command buffer with named dims.
pub(in crate::function) struct RangedCommands {
    /// Arguments, over dims by position.
    pub signature: Signature,
    /// The dims of the command buffer, by position.
    pub names: Vec<Name>,
    pub linked: Linked,
    /// dtypes and shapes of the results, over the dims of the command buffer.
    pub outputs: Vec<(DType, Shape)>,
}

impl RangedCommands {
    fn sizing(&self, inputs: Vec<(DType, Shape)>) -> Result<Sizing> {
        let bound = self.signature.bind(&inputs).map_err(first)?;
        self.planned(inputs, &bound)
    }

    /// The plan for the least values of the dims.
    fn smallest(&self) -> Result<Sizing> {
        let least: Vec<Dim> = self.names.iter().map(|name| Dim::from(name.min)).collect();
        let shape = |input: &Input| {
            input.shape.iter().map(|dim| dim.substitute(&|position| least.get(position as usize).cloned())).collect()
        };
        let inputs = self.signature.inputs.iter().map(|input| (input.dtype, shape(input))).collect();
        self.planned(inputs, &least)
    }

    fn planned(&self, inputs: Vec<(DType, Shape)>, bound: &[Dim]) -> Result<Sizing> {
        let value = |slot: u32| bound.get(self.names.iter().position(|name| name.slot == slot)?).cloned();
        let sized = |shape: &Shape| shape.iter().map(|dim| dim.substitute(&value)).collect();
        let outputs = self.outputs.iter().map(|(dtype, shape)| (*dtype, sized(shape))).collect();
        Ok(Sizing { plan: Arc::new(self.linked.plan(&value)?), inputs, outputs })
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

impl Single {
    pub fn new(function: &Function, arguments: &[&Tensor], location: &'static Location<'static>) -> Result<Single> {
        let located = |error: Error| match error {
            Error::Graph(error) => Error::Graph(error.at(location)),
            other => other,
        };
        let bound = function.bind(arguments).map_err(located)?;
        let device = device_of(arguments.iter().map(|argument| argument.device()))?;
        let prepared =
            |sizing, ranging, program| Single { ranging, program, ..Single::of_plan(device.clone(), sizing) };
        if !function.body.ranged().is_empty() {
            let mut nodes = Sources::new();
            Function::pass(arguments, &bound, location, &mut nodes)?;
            if let Some(ranged) = Ranged::of(&function.body, &nodes, &device).map_err(located)? {
                let ranging = Ranging::Function(RangedFunction { function: function.clone(), ranged, bound });
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

    /// A graph over Params of these dtypes and shapes, by slot.
    pub fn of_graph(
        device: Arc<Device>,
        graph: &Graph,
        results: &[NodeId],
        inputs: Vec<(DType, Shape)>,
    ) -> Result<Single> {
        let outputs = results.iter().map(|&node| (graph.dtype(node), graph.props(node).shape.clone())).collect();
        let plan = plan_of(graph, results, &device, &[])?;
        Ok(Single::of_plan(device, Sizing { plan, inputs, outputs }))
    }

    fn of_plan(device: Arc<Device>, sizing: Sizing) -> Single {
        let scratch = Scratch { table: Vec::with_capacity(sizing.plan.table.len()), arena: None };
        Single {
            device,
            sizing: Mutex::new(Arc::new(sizing)),
            ranging: None,
            program: None,
            states: SmallVec::new(),
            scratch: Mutex::new(scratch),
            is_foreign: false,
        }
    }

    /// A call whose command buffer was read from text.
    pub fn read(device: Arc<Device>, commands: RangedCommands, states: SmallVec<[State; 2]>) -> Result<Single> {
        let is_foreign = !device.is_interpreter();
        let sizing = commands.smallest()?;
        let ranging = (!commands.names.is_empty()).then(|| Ranging::Read(Box::new(commands)));
        Ok(Single { states, is_foreign, ranging, ..Single::of_plan(device, sizing) })
    }

    /// dtypes and shapes of the arguments, over the dims of its command buffer.
    pub fn inputs(&self) -> Vec<(DType, Shape)> {
        match &self.ranging {
            Some(ranging) => ranging.inputs(),
            None => self.last().inputs.clone(),
        }
    }

    /// # Safety
    /// Its kernels must stay within their buffers.
    pub unsafe fn vouched(self) -> Single {
        Single { is_foreign: false, ..self }
    }

    /// The same call with results that take the memory of arguments.
    pub fn in_place(mut self, states: &[State], location: &'static Location<'static>) -> Result<Single> {
        let refused = |kind, message: String| tinyspec_ir::Error::new(kind, "in_place", message).at(location);
        let last = self.last();
        let Some((graph, results)) = &self.program else {
            let (message, help) = match &self.ranging {
                Some(Ranging::Function(_)) => {
                    ("its dims have bounds, its states may change their shapes", "fix the dims: leave out `bounds`")
                }
                _ => ("was read from text, which says what is overwritten", "print the call once it is `in_place`"),
            };
            return Err(refused(ErrorKind::Unsupported, message.into()).help(help).into());
        };
        let show = |(dtype, shape): &(DType, Shape)| format!("{dtype} {}", tinyspec_ir::dim::show(shape));
        State::check(states, &last.outputs, &last.inputs, show).map_err(|error| error.at(location))?;
        self.states = states.into();
        let wish = |state: &State| Donation { output: state.result, slot: state.argument as u32, only_part: false };
        let wanted: Vec<Donation> = states.iter().map(wish).collect();
        let plan = plan_of(graph, results, &self.device, &wanted)?;
        let Sizing { inputs, outputs, .. } = &*last;
        self.sizing = Mutex::new(Arc::new(Sizing { plan, inputs: inputs.clone(), outputs: outputs.clone() }));
        Ok(self)
    }

    /// The plan of the last call.
    pub fn last(&self) -> Arc<Sizing> {
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

    pub fn outputs(&self) -> Result<Vec<Tensor>> {
        self.last().outputs.iter().map(|(dtype, shape)| self.output(*dtype, shape)).collect()
    }

    /// As one of [`Single::outputs`].
    pub fn output_of(&self, number: usize) -> Result<Tensor> {
        let last = self.last();
        let (dtype, shape) = &last.outputs[number];
        self.output(*dtype, shape)
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    fn output(&self, dtype: DType, shape: &Shape) -> Result<Tensor> {
        let count = shape.iter().fold(1, |count, dim| count * dim.as_const().unwrap_or(0).max(0) as usize);
        let storage =
            Arc::new(Storage::allocate(&self.device, count * dtype.size(), &Owner::tensor(dtype, shape, None))?);
        Ok(Tensor::from_node(Node::buffer(storage, dtype, shape, None)?))
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

    pub fn call(&self, out: &mut [Tensor], arguments: &[&Tensor], location: &'static Location<'static>) -> Result<()> {
        if self.is_foreign {
            let error = tinyspec_ir::Error::new(ErrorKind::Unsupported, "call", "it was read from text").at(location);
            return Err(error
                .help("`unsafe { prepared.vouched() }` says that its kernels stay within their buffers")
                .into());
        }
        let last = self.last();
        let planned = (last.inputs.len(), last.outputs.len());
        State::check_counts(&self.states, planned, (arguments.len(), out.len())).map_err(|error| error.at(location))?;
        let sizing = match &self.states[..] {
            [] => self.sizing(arguments, location)?,
            states => self.sizing(&State::with(states, out, arguments), location)?,
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
