//! What the driver keeps: devices, contexts, memory, modules, streams.

use crate::Settings;
use cudarc::driver::sys::CUresult;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_int;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use tinyspec_simulators::ptx::{Kernel, Module};
use tinyspec_simulators::{Argument, FaultKind, Launch, Simulation, SimulatorError};

/// A result that no header has.
const UNKNOWN: c_int = 4242;

/// What a call gives beside its results: the number of a `CUresult`.
pub(crate) type Outcome<T = ()> = Result<T, c_int>;

pub(crate) fn error<T>(result: CUresult) -> Outcome<T> {
    Err(result as c_int)
}

/// What is held of a driver: all zeros where nothing leaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Held {
    /// Primary contexts, retained more often than released.
    pub contexts: usize,
    /// Streams.
    pub streams: usize,
    /// Modules.
    pub modules: usize,
    /// Pieces of memory.
    pub allocations: usize,
    /// Pieces of pinned memory of the host.
    pub pinned: usize,
    /// Events.
    pub events: usize,
    /// Launches that have run.
    pub launched: usize,
}

/// Something that waits in a stream.
pub(crate) enum Work {
    Write {
        to: u64,
        from: Source,
    },
    /// The host's memory, by its address.
    Read {
        to: usize,
        from: u64,
        bytes: usize,
    },
    /// Devices and addresses.
    Copy {
        to: (usize, u64),
        from: (usize, u64),
        bytes: usize,
    },
    /// An event, and how often it was recorded then.
    Record {
        event: usize,
        count: u64,
    },
    Wait {
        event: usize,
        count: u64,
    },
    Launch {
        number: u64,
        function: usize,
        launch: Launch,
        parameters: Vec<u64>,
    },
}

/// Memory of the host that is copied from.
pub(crate) enum Source {
    Copied(Vec<u8>),
    /// By its address, read when it is the copy's turn.
    Pinned(usize, usize),
}

/// A mark in a stream.
struct Event {
    context: usize,
    /// The stream that it was recorded in last.
    stream: usize,
    recorded: u64,
    happened: u64,
}

struct Stream {
    context: usize,
    queue: VecDeque<Work>,
}

/// A device's state.
#[derive(Default)]
struct Device {
    simulation: Simulation,
    /// Bytes of each allocation, by address.
    allocations: BTreeMap<u64, usize>,
    retained: usize,
    /// After a fault every call fails with it.
    fault: Option<c_int>,
}

#[derive(Default)]
pub(crate) struct Machine {
    settings: Option<Settings>,
    devices: Vec<Device>,
    streams: HashMap<usize, Stream>,
    /// Each with its context.
    modules: HashMap<usize, (usize, Module)>,
    /// Each with its module.
    functions: HashMap<usize, (usize, Kernel)>,
    events: HashMap<usize, Event>,
    /// Pinned memory, by address: with its context.
    pinned: BTreeMap<usize, (usize, Box<[u64]>)>,
    handles: usize,
    launches: u64,
    launched: usize,
}

thread_local! {
    /// The context of this thread, 0 for none.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The handle of a device's context, which points to nothing.
fn context(device: usize) -> usize {
    CONTEXTS + 16 * device
}

const CONTEXTS: usize = 0xc000_0000;

/// The driver of this process.
pub(crate) fn machine() -> MutexGuard<'static, Machine> {
    static MACHINE: LazyLock<Mutex<Machine>> = LazyLock::new(Mutex::default);
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machine {
    pub fn initialise(&mut self) -> Outcome {
        let settings = Settings::of_environment();
        self.devices.resize_with(settings.devices, Device::default);
        self.settings = Some(settings);
        if self.devices.is_empty() { error(CUresult::CUDA_ERROR_NO_DEVICE) } else { Ok(()) }
    }

    /// Settings that can be asked for in any state.
    pub fn settings(&self) -> Settings {
        self.settings.clone().unwrap_or_else(Settings::of_environment)
    }

    pub fn initialised(&self) -> Outcome<&Settings> {
        match &self.settings {
            Some(settings) if settings.devices > 0 => Ok(settings),
            _ => error(CUresult::CUDA_ERROR_NOT_INITIALIZED),
        }
    }

    /// The number of a device, if there is one.
    pub fn device(&self, number: c_int) -> Outcome<usize> {
        let count = self.initialised()?.devices;
        let number = usize::try_from(number).ok().filter(|number| *number < count);
        number.map_or_else(|| error(CUresult::CUDA_ERROR_INVALID_DEVICE), Ok)
    }

    fn handle(&mut self) -> usize {
        self.handles += 16;
        0x1000 + self.handles
    }

    pub fn held(&self) -> Held {
        Held {
            contexts: self.devices.iter().map(|device| device.retained).sum(),
            streams: self.streams.len(),
            modules: self.modules.len(),
            allocations: self.devices.iter().map(|device| device.allocations.len()).sum(),
            pinned: self.pinned.len(),
            events: self.events.len(),
            launched: self.launched,
        }
    }

    pub fn retain(&mut self, device: usize) -> usize {
        self.devices[device].retained += 1;
        context(device)
    }

    /// With the last one goes all that the context has.
    pub fn release(&mut self, device: usize) -> Outcome {
        let state = &mut self.devices[device];
        state.retained = match state.retained.checked_sub(1) {
            Some(retained) => retained,
            None => return error(CUresult::CUDA_ERROR_INVALID_CONTEXT),
        };
        if state.retained == 0 {
            *state = Device::default();
            let context = context(device);
            self.streams.retain(|_, stream| stream.context != context);
            self.modules.retain(|_, (owner, _)| *owner != context);
            self.events.retain(|_, event| event.context != context);
            self.pinned.retain(|_, (owner, _)| *owner != context);
            self.functions.retain(|_, (module, _)| self.modules.contains_key(module));
        }
        Ok(())
    }

    pub fn set_current(&mut self, context: usize) -> Outcome {
        if context != 0 {
            self.of_context(context)?;
        }
        CURRENT.set(context);
        Ok(())
    }

    /// The device of a context that somebody retains.
    pub fn of_context(&self, handle: usize) -> Outcome<usize> {
        let mut alive = (0..self.devices.len()).filter(|&device| self.devices[device].retained > 0);
        match alive.find(|&device| context(device) == handle) {
            Some(device) => Ok(device),
            None => error(CUresult::CUDA_ERROR_INVALID_CONTEXT),
        }
    }

    /// The device whose context is current on this thread, if it still works.
    pub fn current(&self) -> Outcome<usize> {
        self.initialised()?;
        let device = self.of_context(CURRENT.get())?;
        self.devices[device].fault.map_or(Ok(device), Err)
    }

    pub fn memory(&self) -> Outcome<(usize, usize)> {
        let device = self.current()?;
        let total = self.settings().memory;
        Ok((total - self.devices[device].allocations.values().sum::<usize>(), total))
    }

    pub fn allocate(&mut self, bytes: usize) -> Outcome<u64> {
        let device = self.current()?;
        if bytes == 0 {
            return error(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if bytes > self.memory()?.0 {
            return error(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        let state = &mut self.devices[device];
        match state.simulation.zeros(bytes) {
            Ok(buffer) => {
                state.allocations.insert(buffer.address(), bytes);
                Ok(buffer.address())
            }
            Err(_) => error(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        }
    }

    pub fn free(&mut self, address: u64) -> Outcome {
        let device = self.current()?;
        self.run_all()?;
        let state = &mut self.devices[device];
        match state.allocations.remove(&address) {
            Some(_) if state.simulation.free(address) => Ok(()),
            _ => error(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub fn new_stream(&mut self) -> Outcome<usize> {
        let context = context(self.current()?);
        let handle = self.handle();
        self.streams.insert(handle, Stream { context, queue: VecDeque::new() });
        Ok(handle)
    }

    pub fn destroy_stream(&mut self, stream: usize) -> Outcome {
        self.stream(stream)?;
        let result = self.run(stream);
        self.streams.remove(&stream);
        result
    }

    /// A stream of the current context.
    fn stream(&mut self, handle: usize) -> Outcome<&mut Stream> {
        let context = context(self.current()?);
        match self.streams.get_mut(&handle) {
            Some(stream) if stream.context == context => Ok(stream),
            _ => error(CUresult::CUDA_ERROR_INVALID_HANDLE),
        }
    }

    pub fn enqueue(&mut self, stream: usize, work: Work) -> Outcome {
        self.stream(stream)?.queue.push_back(work);
        Ok(())
    }

    pub fn synchronize(&mut self, stream: usize) -> Outcome {
        self.stream(stream)?;
        self.run(stream)
    }

    pub fn pin(&mut self, bytes: usize) -> Outcome<usize> {
        let context = context(self.current()?);
        let pinned: usize = self.pinned.values().map(|(_, memory)| size_of_val(&**memory)).sum();
        if bytes == 0 || pinned + bytes > self.settings().pinned {
            return error(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        let mut memory = vec![0u64; bytes.div_ceil(8)].into_boxed_slice();
        let address = memory.as_mut_ptr().expose_provenance();
        self.pinned.insert(address, (context, memory));
        Ok(address)
    }

    pub fn unpin(&mut self, address: usize) -> Outcome {
        self.current()?;
        self.run_all()?;
        match self.pinned.remove(&address) {
            Some(_) => Ok(()),
            None => error(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub fn is_pinned(&self, address: usize, bytes: usize) -> bool {
        let before = self.pinned.range(..=address).next_back();
        before.is_some_and(|(start, (_, memory))| address + bytes <= start + size_of_val(&**memory))
    }

    pub fn new_event(&mut self) -> Outcome<usize> {
        let context = context(self.current()?);
        let handle = self.handle();
        self.events.insert(handle, Event { context, stream: 0, recorded: 0, happened: 0 });
        Ok(handle)
    }

    fn event(&mut self, handle: usize) -> Outcome<&mut Event> {
        self.current()?;
        self.events.get_mut(&handle).map_or_else(|| error(CUresult::CUDA_ERROR_INVALID_HANDLE), Ok)
    }

    pub fn destroy_event(&mut self, handle: usize) -> Outcome {
        self.event(handle)?;
        self.events.remove(&handle);
        Ok(())
    }

    pub fn record(&mut self, handle: usize, stream: usize) -> Outcome {
        let context = context(self.current()?);
        let event = self.event(handle)?;
        if event.context != context {
            return error(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        event.recorded += 1;
        event.stream = stream;
        let count = event.recorded;
        self.enqueue(stream, Work::Record { event: handle, count })
    }

    pub fn ask(&mut self, handle: usize) -> Outcome {
        let event = self.event(handle)?;
        if event.happened < event.recorded { error(CUresult::CUDA_ERROR_NOT_READY) } else { Ok(()) }
    }

    pub fn wait_for(&mut self, handle: usize) -> Outcome {
        let count = self.event(handle)?.recorded;
        self.run_until(handle, count)
    }

    /// The event may be another device's.
    pub fn order(&mut self, stream: usize, event: usize) -> Outcome {
        let count = self.event(event)?.recorded;
        self.enqueue(stream, Work::Wait { event, count })
    }

    fn run_all(&mut self) -> Outcome {
        let streams: Vec<usize> = self.streams.keys().copied().collect();
        streams.into_iter().try_for_each(|stream| self.run(stream))
    }

    /// Does what waits in a stream.
    fn run(&mut self, handle: usize) -> Outcome {
        while self.step(handle)? {}
        Ok(())
    }

    /// Does what waits in an event's stream until it has happened so often; one that is gone has.
    fn run_until(&mut self, handle: usize, count: u64) -> Outcome {
        while let Some(event) = self.events.get(&handle).filter(|event| event.happened < count) {
            if !self.step(event.stream)? {
                return error(CUresult::CUDA_ERROR_NOT_READY);
            }
        }
        Ok(())
    }

    /// Does the first of what waits in a stream; whether there was anything. After a fault nothing else is done.
    fn step(&mut self, handle: usize) -> Outcome<bool> {
        if let Some(stream) = self.streams.get_mut(&handle) {
            let Some(work) = stream.queue.pop_front() else { return Ok(false) };
            let device = (stream.context - CONTEXTS) / 16;
            if let Err(code) = self.work(device, work) {
                self.devices[device].fault = Some(code);
                let own = self.streams.values_mut().filter(|stream| stream.context == context(device));
                own.for_each(|stream| stream.queue.clear());
                return Err(code);
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn work(&mut self, device: usize, work: Work) -> Outcome {
        let simulation = &mut self.devices[device].simulation;
        let done = match work {
            Work::Write { to, from: Source::Copied(bytes) } => simulation.write(to, &bytes),
            Work::Write { to, from: Source::Pinned(from, bytes) } => {
                // SAFETY: it is pinned memory, which is given back when nothing waits any more.
                let from = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(from), bytes) };
                simulation.write(to, from)
            }
            Work::Copy { to, from, bytes } => {
                let mut data = vec![0; bytes];
                let read = self.devices[from.0].simulation.read(from.1, &mut data);
                read.and_then(|()| self.devices[to.0].simulation.write(to.1, &data))
            }
            Work::Record { event, count } => {
                let event = self.events.get_mut(&event);
                event.into_iter().for_each(|event| event.happened = event.happened.max(count));
                Ok(())
            }
            Work::Wait { event, count } => return self.run_until(event, count),
            Work::Read { to, from, bytes } => {
                // SAFETY: whoever put the work into the stream keeps the memory until it is done.
                let to = unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(to), bytes) };
                simulation.read(from, to)
            }
            Work::Launch { number, function, launch, parameters } => {
                self.launched += 1;
                if self.settings.as_ref().is_some_and(|settings| settings.fault == Some(number)) {
                    return error(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
                }
                let Some((_, kernel)) = self.functions.get(&function) else {
                    return error(CUresult::CUDA_ERROR_LAUNCH_FAILED);
                };
                let given: Vec<Argument> = (kernel.parameter_kinds().zip(&parameters))
                    .map(|((_, is_pointer), &bits)| match is_pointer {
                        true => Argument::Address(bits),
                        false => Argument::Value(bits),
                    })
                    .collect();
                simulation.run(kernel, &launch, &given).map(drop)
            }
        };
        done.or_else(|fault| {
            eprintln!("mock: {fault}");
            error(match &fault {
                SimulatorError::Fault(fault) => match fault.kind {
                    FaultKind::OutOfBounds => CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
                    FaultKind::Misaligned => CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
                    FaultKind::Endless => CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
                    _ => CUresult::CUDA_ERROR_LAUNCH_FAILED,
                },
                SimulatorError::Memory(_) => CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
                _ => CUresult::CUDA_ERROR_LAUNCH_FAILED,
            })
        })
    }

    /// The words say what is wrong with the text.
    pub fn load(&mut self, text: &str) -> Result<usize, (c_int, String)> {
        let context = context(self.current().map_err(|code| (code, String::new()))?);
        let wrong = |result: CUresult, words: String| (result as c_int, words);
        let foreign = |error: SimulatorError| wrong(CUresult::CUDA_ERROR_INVALID_PTX, error.to_string());
        let module = Module::parse(text).map_err(foreign)?;
        module.kernels().try_for_each(|kernel| module.kernel(kernel).map(drop)).map_err(foreign)?;
        let settings = self.settings();
        let (major, minor) = module.version();
        if 10 * major + minor > settings.ptx {
            let words = format!("version {major}.{minor} of PTX is newer than {}", settings.ptx);
            return Err(wrong(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, words));
        }
        let target: i32 = module.target().trim_start_matches("sm_").trim_end_matches('a').parse().unwrap_or(i32::MAX);
        let is_own = !module.target().ends_with('a') || target == settings.capability;
        if target > settings.capability || !is_own {
            let words = format!("{} is not sm_{}", module.target(), settings.capability);
            return Err(wrong(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, words));
        }
        let handle = self.handle();
        self.modules.insert(handle, (context, module));
        Ok(handle)
    }

    pub fn unload(&mut self, module: usize) -> Outcome {
        self.current()?;
        self.run_all()?;
        match self.modules.remove(&module) {
            Some(_) => {
                self.functions.retain(|_, (owner, _)| *owner != module);
                Ok(())
            }
            None => error(CUresult::CUDA_ERROR_INVALID_HANDLE),
        }
    }

    pub fn function(&mut self, module: usize, name: &str) -> Outcome<usize> {
        let current = context(self.current()?);
        let Some((context, found)) = self.modules.get(&module) else {
            return error(CUresult::CUDA_ERROR_INVALID_HANDLE);
        };
        if *context != current {
            return error(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        let kernel = found.kernel(name).or_else(|wrong| {
            eprintln!("mock: {wrong}");
            error(CUresult::CUDA_ERROR_NOT_FOUND)
        })?;
        let handle = self.handle();
        self.functions.insert(handle, (module, kernel));
        Ok(handle)
    }

    /// The sizes of a kernel's parameters.
    pub fn parameters(&self, function: usize) -> Outcome<Vec<usize>> {
        self.current()?;
        match self.functions.get(&function) {
            Some((_, kernel)) => Ok(kernel.parameter_kinds().map(|(bytes, _)| bytes).collect()),
            None => error(CUresult::CUDA_ERROR_INVALID_HANDLE),
        }
    }

    pub fn launch(&mut self, stream: usize, function: usize, launch: Launch, parameters: Vec<u64>) -> Outcome {
        let device = self.current()?;
        let (settings, number) = (self.settings(), self.launches);
        self.launches += 1;
        let limits = [i32::MAX as u32, 65_535, 65_535];
        let is_wrong = |sizes: &[u32; 3], limits: [u32; 3]| {
            sizes.iter().zip(limits).any(|(&size, limit)| size == 0 || size > limit)
        };
        let threads: u64 = launch.threads.iter().map(|&size| u64::from(size)).product();
        if is_wrong(&launch.groups, limits) || is_wrong(&launch.threads, [1024, 1024, 64]) || threads > 1024 {
            return error(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if settings.lost == Some(number) {
            let code = CUresult::CUDA_ERROR_ECC_UNCORRECTABLE;
            self.devices[device].fault = Some(code as c_int);
            return error(code);
        }
        if settings.refused == Some(number) {
            return error(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        }
        if settings.unknown == Some(number) {
            return Err(UNKNOWN);
        }
        self.enqueue(stream, Work::Launch { number, function, launch, parameters })
    }
}
