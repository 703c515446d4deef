//! A [command buffer](tinyspec_ir::commands) with compiled kernels, over buffers whose sizes may depend on named dims. Values
//! for the dims turn it into a [`Plan`], by arithmetic alone.

use super::compared::{Compared, ComparedBuffer, ComparedCall};
use super::pipeline::Parts;
use super::plan::{CustomStep, Place, Plan, Step};
use crate::compare::Tolerance;
use crate::custom_function::{CustomCall, find, position};
use crate::device::{Device, Owner, Storage};
use crate::lower::optimize;
use crate::lower::plan::{self, Lifetime};
use crate::profile;
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use tinyspec_backends::{CommandBuffer, Launch};
use tinyspec_ir::commands::{self, base};
use tinyspec_ir::custom_function;
use tinyspec_ir::verify::{self, Placed, Temporary};
use tinyspec_ir::{Arg, Builder, DType, Dim, ErrorKind, Graph, NodeId, Op};

/// Trips that estimates assume of a loop that a named dim bounds.
const ESTIMATED_TRIPS: u64 = optimize::NAMED_TRIPS as u64;

/// Where a buffer comes from, before the arena is laid out.
enum Source {
    Leaf(u32),
    Output(u32),
    /// A temporary, from the step that writes it to the last that reads it.
    Temporary {
        of: Temporary,
        first: usize,
        last: usize,
    },
    Constant(Vec<u8>),
    /// Part of another buffer: its position, and the offset in bytes.
    Part(u32, usize),
}

struct Buffer {
    source: Source,
    bytes: Dim,
    dtype: DType,
}

/// A launch before its sizes are known.
struct Call {
    kernels: Parts,
    /// Instead of kernels.
    custom: Option<CustomCall>,
    /// Positions of the buffers: those that it writes, those that it reads, and those that its kernels pass to each
    /// other.
    buffers: Vec<u32>,
    outputs: usize,
    arguments: usize,
    /// How far the results of other devices may differ.
    tolerance: Tolerance,
    /// Values of the kernel's named dims, by slot.
    dims: Vec<Dim>,
    location: Arc<str>,
    /// Bytes that it reads and writes, unless they depend on dims.
    bytes: Option<u64>,
}

/// A command buffer with compiled kernels.
pub(crate) struct Linked {
    device: Arc<Device>,
    graph: Arc<Graph>,
    /// The Tuple of results.
    root: NodeId,
    buffers: Vec<Buffer>,
    calls: Vec<Call>,
    /// Bytes of each result.
    outputs: Vec<Dim>,
    output_of_root: Vec<u32>,
    /// Results that take the memory of an argument: their number and its slot.
    overwritten: Vec<(u32, u32)>,
    /// The same Calls on the reference device.
    reference: Option<Box<Linked>>,
}

/// The buffers of a schedule, collected call by call.
#[derive(Default)]
struct Buffers {
    all: Vec<Buffer>,
    /// The number of each buffer that is a result.
    results: FxHashMap<NodeId, u32>,
    positions: FxHashMap<NodeId, u32>,
    /// Parts of buffers. Those at the same offset may differ in length.
    parts: FxHashMap<(u32, usize, Dim, DType), u32>,
}

impl Buffers {
    fn push(&mut self, buffer: Buffer) -> u32 {
        self.all.push(buffer);
        self.all.len() as u32 - 1
    }

    /// The position in the table of an argument of the call at `step`.
    fn position(&mut self, graph: &Graph, argument: NodeId, step: usize) -> u32 {
        let whole = self.whole(graph, base(graph, argument), step);
        let Some(offset) = commands::offset(graph, argument) else { return whole };
        let (bytes, dtype) = (bytes(graph, argument), graph.dtype(argument));
        let offset = offset.max(0) as usize * dtype.size();
        let key = (whole, offset, bytes.clone(), dtype);
        if let Some(&known) = self.parts.get(&key) {
            return known;
        }
        let position = self.push(Buffer { source: Source::Part(whole, offset), bytes, dtype });
        self.parts.insert(key, position);
        position
    }

    fn whole(&mut self, graph: &Graph, buffer: NodeId, step: usize) -> u32 {
        if let Some(&known) = self.positions.get(&buffer) {
            if let Source::Temporary { last, .. } = &mut self.all[known as usize].source {
                *last = step;
            }
            return known;
        }
        let source = match (graph.op(buffer), graph.arg(buffer)) {
            (Op::Param, Arg::Param { slot, .. }) => Source::Leaf(*slot),
            (Op::Binary, Arg::Bytes(data)) => Source::Constant(data.to_vec()),
            _ => match self.results.get(&buffer) {
                Some(&number) => Source::Output(number),
                None => Source::Temporary { of: Temporary::Buffer(buffer), first: step, last: step },
            },
        };
        let position = self.push(Buffer { source, bytes: bytes(graph, buffer), dtype: graph.dtype(buffer) });
        self.positions.insert(buffer, position);
        position
    }
}

/// The compiled callee of a Call.
pub(super) struct Callee {
    pub kernels: Parts,
    /// The user's line.
    pub line: String,
    /// The number of buffers that it writes.
    pub outputs: usize,
    /// How far the results of other devices may differ.
    pub tolerance: Tolerance,
}

impl Linked {
    /// Lets its plans be compared with those of `reference`, which has the same Calls.
    pub fn compared_with(self, reference: Option<Linked>) -> Linked {
        Linked { reference: reference.map(Box::new), ..self }
    }

    /// The command buffer at `root`; `callees` are those of its Calls, in order.
    ///
    /// # Errors
    /// When it is not a command buffer.
    pub(super) fn new(graph: Arc<Graph>, root: NodeId, callees: Vec<Callee>, device: &Arc<Device>) -> Result<Linked> {
        let linear = commands::linear(&graph, root)?;
        let mut results: FxHashMap<NodeId, u32> = FxHashMap::default();
        let (mut outputs, mut output_of_root, mut overwritten) = (Vec::new(), Vec::new(), Vec::new());
        for &result in graph.sources(root) {
            let buffer = base(&graph, result);
            let number = *results.entry(buffer).or_insert_with(|| {
                outputs.push(bytes(&graph, buffer));
                outputs.len() as u32 - 1
            });
            output_of_root.push(number);
            if let (Op::Param, &Arg::Param { slot, .. }) = (graph.op(buffer), graph.arg(buffer)) {
                overwritten.push((number, slot));
            }
        }
        let mut buffers = Buffers { results, ..Buffers::default() };
        let mut touched: FxHashMap<NodeId, u64> = FxHashMap::default();
        let mut calls = Vec::with_capacity(callees.len());
        for (step, (&call, callee)) in graph.sources(linear).iter().zip(callees).enumerate() {
            let Callee { kernels, line, outputs, tolerance } = callee;
            let (mut own, mut dims) = (Vec::new(), Vec::new());
            for &argument in &graph.sources(call)[1..] {
                if graph.dtype(argument) == DType::Index {
                    dims.extend(graph.props(argument).value.as_deref().and_then(|value| value.first().cloned()));
                    continue;
                }
                own.push(buffers.position(&graph, argument, step));
            }
            // Temporaries that its kernels pass to each other.
            let arguments = own.len();
            for &bytes in kernels.iter().flat_map(|kernel| &kernel.temporaries) {
                let source = Source::Temporary { of: Temporary::Within(step), first: step, last: step };
                own.push(buffers.push(Buffer { source, bytes: Dim::from(bytes as i64), dtype: DType::U8 }));
            }
            let custom = match custom_function::of_call(&graph, call) {
                Some(function) => {
                    let described = |&buffer: &NodeId| (graph.dtype(buffer), graph.props(buffer).shape.clone());
                    let buffers = graph.sources(call)[1..].iter().map(described).collect();
                    Some(CustomCall { code: find(&function.name)?, function, buffers })
                }
                None => None,
            };
            let kernel = graph.source(call, 0);
            let bytes = touched.entry(kernel).or_insert_with(|| profile::touched(&graph, kernel));
            let bytes = (dims.is_empty() && custom.is_none()).then_some(*bytes);
            let location = line.into();
            calls.push(Call { kernels, custom, buffers: own, outputs, arguments, tolerance, dims, location, bytes });
        }
        let (device, buffers) = (device.clone(), buffers.all);
        Ok(Linked { device, graph, root, buffers, calls, outputs, output_of_root, overwritten, reference: None })
    }

    /// Holds the nodes of the command buffer.
    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The Tuple of results.
    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    /// The kernels of each Call, the user's line, and the number of buffers that it writes.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&Parts, &str, usize)> {
        self.calls.iter().map(|call| (&call.kernels, &*call.location, call.outputs))
    }

    /// The launches for these values of the named dims.
    ///
    /// # Errors
    /// When the device has no memory left, or a dim has no value.
    pub fn plan(&self, value: &impl Fn(u32) -> Option<Dim>) -> Result<Plan> {
        let (plan, launches) = self.launches(value)?;
        let Some(reference) = &self.reference else { return Ok(plan) };
        let (other, others) = reference.launches(value)?;
        let calls = self.calls.iter().zip(&reference.calls).zip(launches.into_iter().zip(others));
        let calls = calls
            .map(|((call, twin), (launches, reference))| {
                let arguments = call.buffers.iter().zip(&twin.buffers).take(call.arguments);
                let buffers = arguments.enumerate().map(|(number, (&here, &there))| {
                    let Buffer { bytes, dtype, .. } = &self.buffers[here as usize];
                    let bytes = size(bytes, value)?;
                    Ok(ComparedBuffer { here, there, bytes, dtype: *dtype, is_output: number < call.outputs })
                });
                let (buffers, tolerance) = (buffers.collect::<Result<_>>()?, call.tolerance);
                Ok(ComparedCall { launches, reference, buffers, tolerance })
            })
            .collect::<Result<_>>()?;
        Ok(Plan { compared: Some(Box::new(Compared { reference: other, calls })), ..plan })
    }

    /// The plan, and the launches of each call.
    fn launches(&self, value: &impl Fn(u32) -> Option<Dim>) -> Result<(Plan, Vec<Range<usize>>)> {
        let sizes = self.buffers.iter().map(|buffer| size(&buffer.bytes, value)).collect::<Result<Vec<usize>>>()?;
        let mut constants = Vec::new();
        let (mut table, arena_bytes) = self.table(&sizes, &mut constants)?;
        if cfg!(debug_assertions) || profile::verifies() {
            self.verify_arena(&table, &sizes, arena_bytes, value)?;
        }
        let (mut launches, mut steps) = (Vec::with_capacity(self.calls.len()), Vec::with_capacity(self.calls.len()));
        let mut ranges = Vec::with_capacity(self.calls.len());
        let mut custom_steps = Vec::new();
        for Call { kernels, custom, buffers: own, dims, location, bytes, .. } in &self.calls {
            let first = launches.len();
            let bytes = bytes.unwrap_or_else(|| own.iter().map(|&position| sizes[position as usize] as u64).sum());
            if let Some(custom) = custom {
                let call = custom.sized(value).map_err(|error| error.at_known(position(location)))?;
                let (buffers, location) = (own.clone(), location.clone());
                custom_steps.push(CustomStep { call, after: first, buffers, location, bytes });
            }
            let numbers = dims.iter().map(|dim| size(dim, value)).collect::<Result<Vec<usize>>>()?;
            let numbers: Vec<i64> = numbers.into_iter().map(|number| number as i64).collect();
            let mut of_dims = None;
            if !numbers.is_empty() {
                let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                let place = self.constant(&mut constants, &data)?;
                of_dims = Some(table.len() as u32);
                table.push(place);
            }
            let own_value = |slot: u32| Some(Dim::from(*numbers.get(slot as usize)?));
            for kernel in kernels {
                let blocks = size(&kernel.blocks, &own_value)?;
                if blocks == 0 {
                    continue;
                }
                let estimate = kernel.nanoseconds.map(|estimate| match kernel.blocks.as_const() {
                    Some(_) if dims.is_empty() => estimate,
                    // The bytes are known, but not the trip counts.
                    Some(_) => nanoseconds(0, bytes),
                    None => estimate / ESTIMATED_TRIPS * blocks as u64,
                });
                launches.push(Launch {
                    program: kernel.program.clone(),
                    buffers: own.iter().copied().take(kernel.buffers).chain(of_dims).take(kernel.params).collect(),
                    dims: numbers[..kernel.dims.min(numbers.len())].to_vec(),
                    trips: 0..size(&kernel.trips, &own_value)?,
                    grid: kernel.grid,
                    scratch_bytes: kernel.scratch_bytes,
                    has_prologue: kernel.has_prologue,
                    nanoseconds: estimate.unwrap_or_else(|| nanoseconds(kernel.work, bytes)),
                    line: location.clone(),
                });
                let bytes = kernel.copied.unwrap_or(bytes);
                steps.push(Step { kernel: kernel.clone(), location: location.clone(), bytes });
            }
            ranges.push(first..launches.len());
        }
        let linear = commands::linear(&self.graph, self.root)?;
        let commands = CommandBuffer::new(self.graph.clone(), linear, launches);
        let ends = custom_steps.iter().map(|step| step.after).chain([commands.launches().len()]);
        let between = ends.scan(0, |done, end| Some(commands.only(std::mem::replace(done, end)..end)));
        let plan = Plan {
            between: if custom_steps.is_empty() { Vec::new() } else { between.collect() },
            custom: custom_steps,
            program: None,
            device: self.device.clone(),
            commands,
            root: self.root,
            steps,
            table,
            constants,
            arena_bytes,
            outputs: self.outputs.iter().map(|bytes| size(bytes, value)).collect::<Result<_>>()?,
            output_of_root: self.output_of_root.clone(),
            overwritten: self.overwritten.clone(),
            stays_apart: false,
            compared: None,
        };
        Ok((plan, ranges))
    }

    /// Where each buffer comes from, and the size of the arena that contains the temporaries.
    fn table(&self, sizes: &[usize], constants: &mut Vec<Arc<Storage>>) -> Result<(Vec<Place>, usize)> {
        let lives = self.buffers.iter().zip(sizes).filter_map(|(buffer, &bytes)| match buffer.source {
            Source::Temporary { first, last, .. } => Some(Lifetime { first, last, bytes }),
            _ => None,
        });
        let (offsets, arena_bytes) = plan::arena(&lives.collect::<Vec<_>>());
        let mut offsets = offsets.into_iter();
        let place = |buffer: &Buffer| {
            Ok(match &buffer.source {
                Source::Leaf(slot) => Place::Leaf(*slot),
                Source::Output(number) => Place::Output(*number),
                Source::Temporary { .. } => Place::Arena(offsets.next().unwrap_or_default()),
                Source::Constant(data) => self.constant(constants, data)?,
                Source::Part(position, offset) => Place::Within(*position, *offset),
            })
        };
        Ok((self.buffers.iter().map(place).collect::<Result<_>>()?, arena_bytes))
    }

    fn verify_arena(
        &self,
        table: &[Place],
        sizes: &[usize],
        bytes: usize,
        value: &impl Fn(u32) -> Option<Dim>,
    ) -> Result<()> {
        let placed = self.buffers.iter().zip(table).zip(sizes).filter_map(|((buffer, place), size)| {
            match (&buffer.source, place) {
                (&Source::Temporary { of, .. }, &Place::Arena(start)) => {
                    Some(Placed { of, bytes: start..start + size })
                }
                _ => None,
            }
        });
        let placed: Vec<Placed> = placed.collect();
        let help = "this is a mistake of the compiler, found after the plan of its memory";
        Ok(verify::arena(&self.graph, self.root, &placed, bytes, value).map_err(|error| error.help(help))?)
    }

    fn constant(&self, constants: &mut Vec<Arc<Storage>>, data: &[u8]) -> Result<Place> {
        let storage = Storage::allocate(&self.device, data.len(), &Owner::constant())?;
        storage.write(data)?;
        constants.push(Arc::new(storage));
        Ok(Place::Constant(constants.len() as u32 - 1))
    }
}

fn bytes(graph: &Graph, buffer: NodeId) -> Dim {
    let props = graph.props(buffer);
    props.element_count() * Dim::from(props.dtype.size() as i64)
}

/// The value of a dim; negative sizes are 0.
fn size(dim: &Dim, value: &impl Fn(u32) -> Option<Dim>) -> Result<usize> {
    let number = dim.substitute(value);
    match number.as_const() {
        Some(number) => Ok(number.max(0) as usize),
        None => Err(Error::refused(ErrorKind::Value, "plan", format!("{number} has no number"))),
    }
}

/// An estimate of the time that one thread of a typical machine needs for these operations and bytes.
fn nanoseconds(work: u64, bytes: u64) -> u64 {
    const OPERATIONS: u64 = 32;
    const BYTES: u64 = 20;
    (work / OPERATIONS).max(bytes / BYTES)
}
