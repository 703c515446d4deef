//! What the driver keeps: devices, contexts, memory, modules, streams.

use crate::{Refusal, Settings, Vendor, say};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tinyspec_simulators::{Argument, FaultKind, Launch, Parameter, Run, Simulation, SimulatorError};

/// What a call gives beside its results.
pub type Outcome<T = ()> = Result<T, Refusal>;

/// A kernel of some instruction set.
pub type Kernel = Arc<dyn Run + Send + Sync>;

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
pub enum Work {
    /// A copy from the host.
    Write {
        /// Its address.
        to: u64,
        /// What is copied.
        from: Source,
    },
    /// A copy to the host.
    Read {
        /// The host's address.
        to: usize,
        /// The device's address.
        from: u64,
        /// How much.
        bytes: usize,
    },
    /// A copy between places of devices.
    Copy {
        /// Device and address.
        to: (usize, u64),
        /// Device and address.
        from: (usize, u64),
        /// How much.
        bytes: usize,
    },
    /// An event happens.
    Record {
        /// Which.
        event: usize,
        /// How often it was recorded then.
        count: u64,
    },
    /// The stream waits for an event.
    Wait {
        /// Which.
        event: usize,
        /// How often it has to happen.
        count: u64,
    },
    /// A kernel runs.
    Launch {
        /// Of all launches.
        number: u64,
        /// The kernel.
        function: usize,
        /// Workgroups and threads.
        launch: Launch,
        /// What is passed, by its bits.
        parameters: Vec<u64>,
    },
}

/// Memory of the host that is copied from.
pub enum Source {
    /// A copy of it.
    Copied(Vec<u8>),
    /// Its address and bytes, read when it is the copy's turn.
    Pinned(usize, usize),
}

impl Source {
    /// What is not pinned is copied at once, what is pinned when it is the copy's turn.
    ///
    /// # Safety
    /// So many bytes can be read there, and stay until they are copied if they are pinned.
    pub unsafe fn of(machine: &Machine, from: *const u8, bytes: usize) -> Source {
        match machine.is_pinned(from.addr(), bytes) {
            true => Source::Pinned(from.expose_provenance(), bytes),
            // SAFETY: as the caller promises.
            false => Source::Copied(unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec()),
        }
    }
}

/// A mark in a stream.
struct Event {
    device: usize,
    /// The stream that it was recorded in last.
    stream: usize,
    recorded: u64,
    happened: u64,
    /// When it happened last, of those that are timed.
    time: Option<Instant>,
    is_timed: bool,
}

struct Stream {
    device: usize,
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
    fault: Option<Refusal>,
}

/// The driver of a process.
pub struct Machine {
    vendor: &'static Vendor,
    settings: Option<Settings>,
    devices: Vec<Device>,
    streams: HashMap<usize, Stream>,
    /// Each with its device and its kernels.
    modules: HashMap<usize, (usize, Vec<Kernel>)>,
    /// Bytes of stack that a module's kernels have, where they have one.
    stacks: HashMap<usize, i32>,
    /// Each with its module.
    functions: HashMap<usize, (usize, Kernel)>,
    events: HashMap<usize, Event>,
    /// Pinned memory, by address: with its device.
    pinned: BTreeMap<usize, (usize, Box<[u64]>)>,
    handles: usize,
    launches: u64,
    launched: usize,
}

thread_local! {
    /// The context of this thread, 0 for none: where there are no contexts, for the first device.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The handle of a device's context, which points to nothing.
fn context(device: usize) -> usize {
    CONTEXTS + 16 * device
}

const CONTEXTS: usize = 0xc000_0000;

impl Machine {
    /// The driver of this process, kept in a static of the vendor's.
    pub fn lock(machine: &'static Mutex<Machine>) -> MutexGuard<'static, Machine> {
        machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A driver that nobody has called.
    pub fn new(vendor: &'static Vendor) -> Machine {
        Machine {
            vendor,
            settings: None,
            devices: Vec::new(),
            streams: HashMap::new(),
            modules: HashMap::new(),
            stacks: HashMap::new(),
            functions: HashMap::new(),
            events: HashMap::new(),
            pinned: BTreeMap::new(),
            handles: 0,
            launches: 0,
            launched: 0,
        }
    }

    /// Reads the settings.
    ///
    /// # Errors
    /// When there is no device.
    pub fn initialise(&mut self) -> Outcome {
        let settings = self.settings();
        self.devices.resize_with(settings.devices, Device::default);
        self.settings = Some(settings);
        if self.devices.is_empty() { Err(Refusal::NoDevice) } else { Ok(()) }
    }

    /// Settings that can be asked for in any state.
    pub fn settings(&self) -> Settings {
        let new = || (self.vendor.settings)().changed_by(self.vendor.variable);
        self.settings.clone().unwrap_or_else(new)
    }

    /// The settings, once the driver is initialised.
    ///
    /// # Errors
    /// When it is not.
    pub fn initialised(&self) -> Outcome<&Settings> {
        match &self.settings {
            Some(settings) if settings.devices > 0 => Ok(settings),
            _ => Err(Refusal::NotInitialised),
        }
    }

    /// The number of a device.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn device(&self, number: c_int) -> Outcome<usize> {
        let count = self.initialised()?.devices;
        let number = usize::try_from(number).ok().filter(|number| *number < count);
        number.ok_or(Refusal::Device)
    }

    fn handle(&mut self) -> usize {
        self.handles += 16;
        0x1000 + self.handles
    }

    /// What is held of devices that still work: what a lost one held is gone.
    pub fn held(&self) -> Held {
        let works = |device: &usize| self.devices[*device].fault.is_none();
        let count = |devices: &mut dyn Iterator<Item = usize>| devices.filter(works).count();
        let all = || self.devices.iter().filter(|device| device.fault.is_none());
        Held {
            contexts: self.devices.iter().map(|device| device.retained).sum(),
            streams: count(&mut self.streams.values().map(|stream| stream.device)),
            modules: count(&mut self.modules.values().map(|(device, _)| *device)),
            allocations: all().map(|device| device.allocations.len()).sum(),
            pinned: count(&mut self.pinned.values().map(|(device, _)| *device)),
            events: count(&mut self.events.values().map(|event| event.device)),
            launched: self.launched,
        }
    }

    /// The handle of a device's context, which is used until it is released as often.
    pub fn retain(&mut self, device: usize) -> usize {
        self.devices[device].retained += 1;
        context(device)
    }

    /// With the last one goes all that the context has.
    ///
    /// # Errors
    /// When nobody retains it.
    pub fn release(&mut self, device: usize) -> Outcome {
        let state = &mut self.devices[device];
        state.retained = match state.retained.checked_sub(1) {
            Some(retained) => retained,
            None => return Err(Refusal::Context),
        };
        if state.retained == 0 {
            *state = Device::default();
            self.streams.retain(|_, stream| stream.device != device);
            self.modules.retain(|_, (owner, _)| *owner != device);
            self.events.retain(|_, event| event.device != device);
            self.pinned.retain(|_, (owner, _)| *owner != device);
            self.functions.retain(|_, (module, _)| self.modules.contains_key(module));
        }
        Ok(())
    }

    /// Makes a context the thread's own; 0 is none.
    ///
    /// # Errors
    /// When nobody retains it.
    pub fn set_current(&mut self, context: usize) -> Outcome {
        if context != 0 {
            self.of_context(context)?;
        }
        CURRENT.set(context);
        Ok(())
    }

    /// Makes a device the thread's own, where there are no contexts.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn set_device(&mut self, number: c_int) -> Outcome {
        CURRENT.set(context(self.device(number)?));
        Ok(())
    }

    /// The device of a context that somebody retains.
    ///
    /// # Errors
    /// When nobody does.
    pub fn of_context(&self, handle: usize) -> Outcome<usize> {
        let is_alive = |device: &usize| !self.vendor.has_contexts || self.devices[*device].retained > 0;
        let mut alive = (0..self.devices.len()).filter(is_alive);
        match alive.find(|&device| context(device) == handle) {
            Some(device) => Ok(device),
            None => Err(Refusal::Context),
        }
    }

    /// The device whose context is current on this thread, or that is itself.
    ///
    /// # Errors
    /// When none is, or it has failed.
    pub fn current(&self) -> Outcome<usize> {
        self.initialised()?;
        let device = match CURRENT.get() {
            0 if !self.vendor.has_contexts => 0,
            current => self.of_context(current)?,
        };
        self.devices[device].fault.map_or(Ok(device), Err)
    }

    /// Bytes that are free on the current device, and all of them.
    ///
    /// # Errors
    /// When the device does not work.
    pub fn memory(&self) -> Outcome<(usize, usize)> {
        let device = self.current()?;
        let total = self.settings().memory;
        Ok((total - self.devices[device].allocations.values().sum::<usize>(), total))
    }

    /// Memory of the current device.
    ///
    /// # Errors
    /// When there is not so much.
    pub fn allocate(&mut self, bytes: usize) -> Outcome<u64> {
        let device = self.current()?;
        if bytes == 0 {
            return Err(Refusal::Value);
        }
        if bytes > self.memory()?.0 {
            return Err(Refusal::Memory);
        }
        let state = &mut self.devices[device];
        match state.simulation.zeros(bytes) {
            Ok(buffer) => {
                state.allocations.insert(buffer.address(), bytes);
                Ok(buffer.address())
            }
            Err(_) => Err(Refusal::Memory),
        }
    }

    /// Gives memory back, once nothing waits that may use it.
    ///
    /// # Errors
    /// When there is none at this address, or what waited fails.
    pub fn free(&mut self, address: u64) -> Outcome {
        let device = self.current()?;
        self.run_all()?;
        let state = &mut self.devices[device];
        match state.allocations.remove(&address) {
            Some(_) if state.simulation.free(address) => Ok(()),
            _ => Err(Refusal::Value),
        }
    }

    /// A stream of the current device.
    ///
    /// # Errors
    /// When the device does not work.
    pub fn new_stream(&mut self) -> Outcome<usize> {
        let device = self.current()?;
        let handle = self.handle();
        self.streams.insert(handle, Stream { device, queue: VecDeque::new() });
        Ok(handle)
    }

    /// Ends a stream once all of it is done.
    ///
    /// # Errors
    /// When there is no such stream, or what waited fails.
    pub fn destroy_stream(&mut self, stream: usize) -> Outcome {
        self.stream(stream)?;
        let result = self.run(stream);
        self.streams.remove(&stream);
        result
    }

    /// A stream of the current context.
    fn stream(&mut self, handle: usize) -> Outcome<&mut Stream> {
        let device = self.current()?;
        match self.streams.get_mut(&handle) {
            Some(stream) if stream.device == device => Ok(stream),
            _ => Err(Refusal::Handle),
        }
    }

    /// Adds to what waits in a stream.
    ///
    /// # Errors
    /// When the current device has no such stream.
    pub fn enqueue(&mut self, stream: usize, work: Work) -> Outcome {
        self.stream(stream)?.queue.push_back(work);
        Ok(())
    }

    /// Does all that waits in a stream.
    ///
    /// # Errors
    /// When that fails.
    pub fn synchronize(&mut self, stream: usize) -> Outcome {
        self.stream(stream)?;
        self.run(stream)
    }

    /// Memory of the host that streams copy from and to when it is their turn.
    ///
    /// # Errors
    /// When there is not so much.
    pub fn pin(&mut self, bytes: usize) -> Outcome<usize> {
        let device = self.current()?;
        let pinned: usize = self.pinned.values().map(|(_, memory)| size_of_val(&**memory)).sum();
        if bytes == 0 || pinned + bytes > self.settings().pinned {
            return Err(Refusal::Memory);
        }
        let mut memory = vec![0u64; bytes.div_ceil(8)].into_boxed_slice();
        let address = memory.as_mut_ptr().expose_provenance();
        self.pinned.insert(address, (device, memory));
        Ok(address)
    }

    /// Gives pinned memory back, once nothing waits that may use it.
    ///
    /// # Errors
    /// When none begins at this address.
    pub fn unpin(&mut self, address: usize) -> Outcome {
        self.current()?;
        self.run_all()?;
        match self.pinned.remove(&address) {
            Some(_) => Ok(()),
            None => Err(Refusal::Value),
        }
    }

    /// All of these bytes are pinned.
    pub fn is_pinned(&self, address: usize, bytes: usize) -> bool {
        let before = self.pinned.range(..=address).next_back();
        before.is_some_and(|(start, (_, memory))| address + bytes <= start + size_of_val(&**memory))
    }

    /// An event of the current device.
    ///
    /// # Errors
    /// When the device does not work.
    pub fn new_event(&mut self, is_timed: bool) -> Outcome<usize> {
        let device = self.current()?;
        let handle = self.handle();
        let event = Event { device, stream: 0, recorded: 0, happened: 0, time: None, is_timed };
        self.events.insert(handle, event);
        Ok(handle)
    }

    fn event(&mut self, handle: usize) -> Outcome<&mut Event> {
        self.current()?;
        self.events.get_mut(&handle).ok_or(Refusal::Handle)
    }

    /// Ends an event.
    ///
    /// # Errors
    /// When there is no such event.
    pub fn destroy_event(&mut self, handle: usize) -> Outcome {
        self.event(handle)?;
        self.events.remove(&handle);
        Ok(())
    }

    /// The event happens when all that waits in a stream is done.
    ///
    /// # Errors
    /// When it is another device's.
    pub fn record(&mut self, handle: usize, stream: usize) -> Outcome {
        let device = self.current()?;
        let event = self.event(handle)?;
        if event.device != device {
            return Err(Refusal::Handle);
        }
        event.recorded += 1;
        event.stream = stream;
        let count = event.recorded;
        self.enqueue(stream, Work::Record { event: handle, count })
    }

    /// Has it happened?
    ///
    /// # Errors
    /// [`Refusal::NotReady`] where it has not.
    pub fn ask(&mut self, handle: usize) -> Outcome {
        let event = self.event(handle)?;
        if event.happened < event.recorded { Err(Refusal::NotReady) } else { Ok(()) }
    }

    /// Milliseconds between two events, here of the simulator.
    ///
    /// # Errors
    /// When one is not timed, or has not happened.
    pub fn between(&mut self, start: usize, end: usize) -> Outcome<f32> {
        let mut time = |handle| match self.event(handle)? {
            event if !event.is_timed => Err(Refusal::Handle),
            event if event.happened < event.recorded => Err(Refusal::NotReady),
            event => event.time.ok_or(Refusal::Handle),
        };
        let (start, end) = (time(start)?, time(end)?);
        Ok(end.saturating_duration_since(start).as_secs_f32() * 1e3)
    }

    /// Does what waits in the event's stream until it happens.
    ///
    /// # Errors
    /// When that fails.
    pub fn wait_for(&mut self, handle: usize) -> Outcome {
        let count = self.event(handle)?.recorded;
        self.run_until(handle, count)
    }

    /// What is added to a stream waits for an event, maybe of another device.
    ///
    /// # Errors
    /// When there is no such event or stream.
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
                return Err(Refusal::NotReady);
            }
        }
        Ok(())
    }

    /// Does the first of what waits in a stream; whether there was anything. After a fault nothing else is done.
    fn step(&mut self, handle: usize) -> Outcome<bool> {
        if let Some(stream) = self.streams.get_mut(&handle) {
            let Some(work) = stream.queue.pop_front() else { return Ok(false) };
            let device = stream.device;
            if let Err(refusal) = self.work(device, work) {
                self.devices[device].fault = Some(refusal);
                let own = self.streams.values_mut().filter(|stream| stream.device == device);
                own.for_each(|stream| stream.queue.clear());
                return Err(refusal);
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
                event.into_iter().for_each(|event| {
                    event.happened = event.happened.max(count);
                    event.time = event.is_timed.then(Instant::now);
                });
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
                    return Err(Refusal::Address);
                }
                let Some((_, kernel)) = self.functions.get(&function) else {
                    return Err(Refusal::Failed);
                };
                let given: Vec<Argument> = (kernel.parameters().iter().zip(&parameters))
                    .map(|(parameter, &bits)| match parameter.is_pointer {
                        true => Argument::Address(bits),
                        false => Argument::Value(bits),
                    })
                    .collect();
                simulation.run(&**kernel, &launch, &given).map(drop)
            }
        };
        done.map_err(|fault| {
            say(&fault);
            match &fault {
                SimulatorError::Fault(fault) => match fault.kind {
                    FaultKind::OutOfBounds => Refusal::Address,
                    FaultKind::Misaligned => Refusal::Misaligned,
                    FaultKind::Endless => Refusal::Endless,
                    _ => Refusal::Failed,
                },
                SimulatorError::Memory(_) => Refusal::Address,
                _ => Refusal::Failed,
            }
        })
    }

    /// A module of these kernels.
    ///
    /// # Errors
    /// When no context is current.
    pub fn load(&mut self, kernels: Vec<Kernel>) -> Outcome<usize> {
        let device = self.current()?;
        let handle = self.handle();
        self.modules.insert(handle, (device, kernels));
        Ok(handle)
    }

    /// Gives the kernels of a module a stack of so many bytes, with which they cannot be launched.
    pub fn put_stack(&mut self, module: usize, bytes: i32) {
        self.stacks.insert(module, bytes);
    }

    /// Bytes of stack that a kernel has.
    ///
    /// # Errors
    /// When there is no such kernel.
    pub fn stack(&self, function: usize) -> Outcome<i32> {
        let (module, _) = self.functions.get(&function).ok_or(Refusal::Handle)?;
        Ok(self.stacks.get(module).copied().unwrap_or(0))
    }

    /// Ends a module and its kernels, once nothing waits that may use them.
    ///
    /// # Errors
    /// When there is no such module.
    pub fn unload(&mut self, module: usize) -> Outcome {
        self.current()?;
        self.run_all()?;
        match self.modules.remove(&module) {
            Some(_) => {
                self.functions.retain(|_, (owner, _)| *owner != module);
                Ok(())
            }
            None => Err(Refusal::Handle),
        }
    }

    /// A kernel of a module.
    ///
    /// # Errors
    /// When it has none of that name, or is another device's.
    pub fn function(&mut self, module: usize, name: &str) -> Outcome<usize> {
        let current = self.current()?;
        let (device, kernels) = self.modules.get(&module).ok_or(Refusal::Handle)?;
        if *device != current {
            return Err(Refusal::Context);
        }
        let kernel = kernels.iter().find(|kernel| kernel.name() == name).ok_or(Refusal::NotFound)?.clone();
        let handle = self.handle();
        self.functions.insert(handle, (module, kernel));
        Ok(handle)
    }

    /// A kernel's parameters.
    ///
    /// # Errors
    /// When there is no such kernel.
    pub fn parameters(&self, function: usize) -> Outcome<Vec<Parameter>> {
        self.current()?;
        let (_, kernel) = self.functions.get(&function).ok_or(Refusal::Handle)?;
        Ok(kernel.parameters().to_vec())
    }

    /// Adds a launch to what waits in a stream.
    ///
    /// # Errors
    /// When it is larger than can be, or is the one that is to fail.
    pub fn launch(&mut self, stream: usize, function: usize, launch: Launch, parameters: Vec<u64>) -> Outcome {
        let device = self.current()?;
        let (settings, number) = (self.settings(), self.launches);
        self.launches += 1;
        let is_wrong = |sizes: &[u32; 3], limits: [u32; 3]| {
            sizes.iter().zip(limits).any(|(&size, limit)| size == 0 || size > limit)
        };
        let threads: u64 = launch.threads.iter().map(|&size| u64::from(size)).product();
        if is_wrong(&launch.groups, self.vendor.most_groups)
            || is_wrong(&launch.threads, [1024, 1024, 64])
            || threads > 1024
        {
            return Err(Refusal::Value);
        }
        if settings.lost == Some(number) {
            self.devices[device].fault = Some(Refusal::Broken);
            return Err(Refusal::Broken);
        }
        if settings.refused == Some(number) || self.stack(function)? > 0 {
            return Err(Refusal::Resources);
        }
        if settings.unknown == Some(number) {
            return Err(Refusal::Unknown);
        }
        self.enqueue(stream, Work::Launch { number, function, launch, parameters })
    }
}
