//! Trials of a kernel on its device, with generated inputs: results are checked first, then the kernel is timed.

use crate::Result;
use crate::compare::{difference, difference_beyond, moved, tolerance};
use crate::device::{Device, Owner, Storage};
use crate::lower::kernel;
use crate::lower::optimize::moves::{Candidate, candidate};
use crate::lower::optimize::transforms::Swap;
use crate::lower::optimize::{OptOp, Scheduler};
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tinyspec_backends::{Launch, LinearKernel};
use tinyspec_ir::{Arg, AxisType, Builder, DType, Graph, Op, float};

/// Fills results before a run, so that an element that is not written keeps this value.
const UNWRITTEN: u8 = 0x5a;
/// The same for the results of the reference, so that they differ if both fail to write an element.
const NOT_EXPECTED: u8 = 0xa5;
/// The time limit for the reference, which is slow, in nanoseconds: of large kernels only the first and the last trips
/// are checked.
const CHECKING: f64 = 0.3e9;
/// The most bytes of buffers; beyond this there is no search.
const GREATEST: usize = 4 << 30;
/// How often a schedule is timed, unless it takes long.
const TIMES: usize = 12;
/// Time after which that is enough.
const LONG: Duration = Duration::from_millis(30);
/// A first run that takes longer is not repeated.
const PATIENT: Duration = Duration::from_millis(500);

/// The buffers and the expected results.
pub(super) struct Trial<'a> {
    scheduler: &'a Scheduler<'a>,
    name: &'a str,
    device: &'a Arc<Device>,
    buffers: Vec<Buffer>,
    /// Results of the reference, by buffer: where it computes only some trips, the other elements are [`NOT_EXPECTED`].
    expected: Results,
    /// The same on inputs moved by the tolerance, once it is asked for: where terms cancel, these results differ by more than their
    /// size tells.
    nearby: OnceCell<Results>,
    /// How far a float may be off, as a share of its size.
    tolerance: f64,
}

/// The bytes of the outputs, by slot.
type Results = Vec<(usize, Vec<u8>)>;

/// The launches of a schedule: those that copy for the kernel, then its own.
struct Program {
    launches: Vec<Launch>,
    temporaries: Vec<Storage>,
}

impl Program {
    /// Trips of the kernel itself.
    fn trips(&self) -> Range<usize> {
        self.launches.last().map_or(0..0, |launch| launch.trips.clone())
    }
}

struct Buffer {
    dtype: DType,
    storage: Storage,
    is_output: bool,
}

impl<'a> Trial<'a> {
    /// `None` if a kernel cannot be tried because it has named dims or memory is short.
    ///
    /// # Errors
    /// When the kernel without optimizations does not compile or run.
    pub fn new(scheduler: &'a Scheduler<'a>, name: &'a str, device: &'a Arc<Device>) -> Result<Option<Trial<'a>>> {
        let (graph, kernel) = (scheduler.graph(), scheduler.kernel());
        let mut params: Vec<(u32, DType, usize, bool)> = Vec::new();
        for &node in &kernel.order {
            let (Op::Param, Arg::Param { slot, dtype, .. }) = (graph.op(node), graph.arg(node)) else { continue };
            let Some(count) = graph.props(node).element_count().as_const().filter(|_| *dtype != DType::Index) else {
                return Ok(None);
            };
            let is_output = kernel.accesses.iter().any(|access| access.is_store && access.buffer == node);
            params.push((*slot, *dtype, count.max(0) as usize * dtype.size(), is_output));
        }
        params.sort_unstable_by_key(|param| param.0);
        let is_dense = params.iter().enumerate().all(|(position, param)| param.0 as usize == position);
        if !is_dense || params.iter().map(|param| param.2).sum::<usize>() > GREATEST {
            return Ok(None);
        }
        let mut buffers = Vec::new();
        for (slot, dtype, bytes, is_output) in params {
            let storage = Storage::allocate(device, bytes, &Owner::trial())?;
            storage.write(&numbers(dtype, bytes, slot))?;
            buffers.push(Buffer { dtype, storage, is_output });
        }
        // The least precise dtype counts: a sum of f32 may be stored as f64.
        let floats = kernel.order.iter().map(|&node| graph.dtype(node)).filter(|dtype| dtype.is_float());
        let tolerance = floats.map(tolerance).fold(0.0, f64::max);
        let nearby = OnceCell::new();
        let mut trial = Trial { scheduler, name, device, buffers, expected: Vec::new(), nearby, tolerance };
        trial.expected = trial.reference()?;
        Ok(Some(trial))
    }

    pub fn scheduler(&self) -> &'a Scheduler<'a> {
        self.scheduler
    }

    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Runs the kernel without optimizations, which defines the expected results.
    fn reference(&self) -> Result<Results> {
        let Some(plain) = self.plain() else { return Ok(Vec::new()) };
        let program = self.program(&plain)?;
        let trips = program.trips().len();
        let each = self.scheduler.estimate(&plain.space).on_one_thread() / trips.max(1) as f64;
        let checked = ((CHECKING / each.max(1.0)) as usize).clamp(2, trips.max(2));
        let (first, last) = (0..checked.div_ceil(2).min(trips), trips.saturating_sub(checked / 2)..trips);
        self.fill(NOT_EXPECTED)?;
        self.run(&program, first)?;
        self.run(&program, last)?;
        self.results()
    }

    /// The reference on inputs that are moved by the tolerance.
    fn nearby(&self) -> Result<&Results> {
        if let Some(known) = self.nearby.get() {
            return Ok(known);
        }
        self.write_inputs(|dtype, data| moved(dtype, self.tolerance, &data))?;
        let results = self.reference();
        self.write_inputs(|_, data| data)?;
        let results = results?;
        Ok(self.nearby.get_or_init(|| results))
    }

    /// Writes the inputs, transformed by `change`.
    fn write_inputs(&self, change: impl Fn(DType, Vec<u8>) -> Vec<u8>) -> Result<()> {
        let mut inputs = self.buffers.iter().enumerate().filter(|(_, buffer)| !buffer.is_output);
        inputs.try_for_each(|(slot, Buffer { dtype, storage, .. })| {
            storage.write(&change(*dtype, numbers(*dtype, storage.bytes(), slot as u32)))
        })
    }

    /// The kernel without optimizations. If even a few trips of its outermost loop take long, the loop with the most
    /// trips becomes outermost.
    fn plain(&self) -> Option<Candidate> {
        let plain = candidate(self.scheduler, Vec::new())?;
        let trips = |axis: usize| plain.space.axes[axis].trips.unwrap_or(1);
        let is_shared = |axis: &usize| plain.space.axes[*axis].kind.is_parallel();
        let shared = (0..plain.space.axes.len()).find(is_shared).map_or(1, trips);
        let time = self.scheduler.estimate(&plain.space).on_one_thread();
        if time / shared as f64 <= CHECKING / 2.0 {
            return Some(plain);
        }
        let axes = self.scheduler.space(&[]).ok()?.axes;
        let loops = axes.iter().filter(|axis| axis.kind == AxisType::Loop);
        let longest = loops.max_by_key(|axis| axis.trips);
        let swapped = longest.map(|longest| vec![Swap(axes[0].name(), longest.name()).into()]);
        swapped.and_then(|ops| candidate(self.scheduler, ops)).or(Some(plain))
    }

    /// The time of a schedule in nanoseconds; `None` if it does not compile, its results differ, or it exceeds `limit`.
    ///
    /// # Errors
    /// When the device fails.
    pub fn measure(&self, candidate: &Candidate, limit: f64) -> Result<Option<f64>> {
        let Ok(program) = self.program(candidate) else { return Ok(None) };
        let trips = program.trips();
        self.fill(UNWRITTEN)?;
        let first = self.run(&program, trips.clone())?;
        if !self.is_right()? {
            let ops: Vec<String> = candidate.ops.iter().map(OptOp::to_string).collect();
            // A schedule with wrong results is a bug of the compiler: it is reported, and not used.
            tinyspec_backends::tell!("tinyspec: kernel {} computes something else under {}", self.name, ops.join("; "));
            return Ok(None);
        }
        let (mut best, mut spent) = (first, first);
        for number in 0..TIMES {
            // The first run may have waited for pages, so it alone decides nothing unless it takes very long.
            let is_enough = spent > LONG || best.as_nanos() as f64 > 3.0 * limit;
            if is_enough && (number > 0 || first > PATIENT) {
                break;
            }
            let time = self.run(&program, trips.clone())?;
            (best, spent) = (best.min(time), spent + time);
        }
        Ok(Some(best.as_nanos() as f64))
    }

    fn program(&self, candidate: &Candidate) -> Result<Program> {
        let (space, no_observer) = (&candidate.space, &mut |_: &'static str, _: &Graph, _| {});
        let (copies, kernel) = kernel::all_stages(self.scheduler.clone(), space, self.name, no_observer)?;
        let mut program = Program { launches: Vec::new(), temporaries: Vec::new() };
        for copied in &copies {
            program.temporaries.push(Storage::allocate(self.device, copied.bytes, &Owner::trial())?);
            program.launches.push(self.launch(&copied.kernel, copied.nanoseconds())?);
        }
        let nanoseconds = self.scheduler.estimate(space).on_one_thread() as u64;
        program.launches.push(self.launch(&kernel, nanoseconds)?);
        Ok(program)
    }

    fn launch(&self, kernel: &LinearKernel, nanoseconds: u64) -> Result<Launch> {
        let code = self.device.compiler().compile(kernel, self.device.target())?;
        Ok(Launch {
            program: self.device.runtime().load(&kernel.name, &code)?,
            buffers: (0..kernel.params as u32).collect(),
            dims: Vec::new(),
            trips: 0..kernel.shared_trips,
            grid: kernel.grid,
            scratch_bytes: kernel.scratch_bytes,
            nanoseconds,
            has_prologue: kernel::has_prologue(kernel),
            line: Default::default(),
        })
    }

    /// Runs a schedule's launches, the last of them over `trips`.
    fn run(&self, program: &Program, trips: Range<usize>) -> Result<Duration> {
        let buffers = self.buffers.iter().map(|buffer| &buffer.storage).chain(&program.temporaries);
        let addresses: Vec<*mut u8> = buffers.map(Storage::address).collect();
        let mut launches = program.launches.clone();
        if let Some(last) = launches.last_mut() {
            last.trips = trips;
        }
        let runtime = self.device.runtime();
        let start = Instant::now();
        // SAFETY: the buffers are ours alone, and as large as the kernels' Params say.
        unsafe { runtime.enqueue(&launches.into(), &addresses)? };
        runtime.synchronize()?;
        Ok(start.elapsed())
    }

    fn outputs(&self) -> impl Iterator<Item = (usize, &Buffer)> {
        self.buffers.iter().enumerate().filter(|(_, buffer)| buffer.is_output)
    }

    fn fill(&self, byte: u8) -> Result<()> {
        self.outputs().try_for_each(|(_, buffer)| buffer.storage.write(&vec![byte; buffer.storage.bytes()]))
    }

    fn results(&self) -> Result<Results> {
        let read = |(slot, buffer): (usize, &Buffer)| {
            let mut data = vec![0; buffer.storage.bytes()];
            buffer.storage.read(0, &mut data)?;
            Ok((slot, data))
        };
        self.outputs().map(read).collect()
    }

    /// Whether the results are equal to those of the reference where that has written.
    fn is_right(&self) -> Result<bool> {
        let results = self.results()?;
        for (number, ((slot, expected), (_, found))) in self.expected.iter().zip(&results).enumerate() {
            let (dtype, tolerance) = (self.buffers[*slot].dtype, self.tolerance);
            let is_written = |element: Range<usize>| expected[element].iter().any(|&byte| byte != NOT_EXPECTED);
            if difference(dtype, tolerance, expected, found, is_written).is_none() {
                continue;
            }
            let second = &self.nearby()?[number].1;
            if difference_beyond(dtype, tolerance, [expected, second], found, is_written).is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Floats between -1 and 1, or small integers that may be positions, from a fixed seed.
fn numbers(dtype: DType, bytes: usize, seed: u32) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ seed as u64;
    let mut data = Vec::with_capacity(bytes);
    for _ in 0..bytes / dtype.size() {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = match dtype {
            _ if dtype.is_float() => float::to_bits(dtype, (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0),
            DType::Bool => mixed >> 63,
            _ => mixed >> 61,
        };
        data.extend_from_slice(&bits.to_le_bytes()[..dtype.size()]);
    }
    data
}
