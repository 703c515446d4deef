//! Memory, kernels and launches of a device, and what becomes of it after a fault.

use super::{Called, Driver, Failure, FailureKind, Functions, Handle, Place, STREAM_NON_BLOCKING, Vendor, gpu_of};
use crate::gpu::{DriverError, Gpu};
use crate::host_memory::check_length;
use crate::{BackendError, Launch, Memory, Program, Runtime};
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::{CString, c_int, c_uint};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The GPU to which a driver gives this number, and what runs kernels on it. The driver is opened for the first device.
///
/// # Errors
/// When there is no driver or no such device, or one for which no code is made.
pub(in super::super) fn open<V: Vendor>(
    driver: &'static OnceLock<Result<Driver<V>, DriverError>>,
    name: &str,
    ordinal: usize,
) -> Result<(Gpu, Arc<dyn Runtime>), DriverError> {
    let driver = driver.get_or_init(Driver::open).as_ref().map_err(Clone::clone)?;
    let count = driver.count()?;
    let ordinal = c_int::try_from(ordinal).ok().filter(|ordinal| *ordinal < count);
    let ordinal = ordinal.ok_or_else(|| DriverError::TooFew { name: name.into(), count: count as usize })?;
    let (product, chip) = driver.vendor.identify(ordinal).map_err(|called| driver.unusable(called))?;
    let gpu = gpu_of(name, &product, &chip)?;
    let place = driver.vendor.retain(ordinal).map_err(|called| driver.unusable(called))?;
    let mut stream = ptr::null_mut();
    let mut opened = || {
        driver.check_open(driver.vendor.bind(place))?;
        // SAFETY: the stream is written to a local variable.
        driver.check_open(unsafe { driver.functions.new_stream(&mut stream, STREAM_NON_BLOCKING) })
    };
    if let Err(error) = opened() {
        driver.vendor.release(place);
        return Err(error);
    }
    let shared = Shared {
        driver,
        name: format!("{name} ({product})"),
        place,
        stream: stream as usize,
        launched: Mutex::default(),
        lost: OnceLock::new(),
    };
    Ok((gpu, Arc::new(DeviceRuntime { shared: Arc::new(shared) })))
}

/// The number of launches whose names are remembered until they have been waited for.
const REMEMBERED: usize = 256;

/// An open device. Any thread may call; all work goes through one stream, in order.
#[derive(Debug)]
struct Shared<V: Vendor> {
    driver: &'static Driver<V>,
    /// For messages, such as `cuda:0 (NVIDIA H200)`.
    name: String,
    place: Place,
    stream: usize,
    /// Names of the kernels that were launched since the stream was last empty.
    launched: Mutex<Vec<Arc<str>>>,
    /// Why nothing works any more.
    lost: OnceLock<BackendError>,
}

impl<V: Vendor> Drop for Shared<V> {
    fn drop(&mut self) {
        if self.bind().is_ok() {
            // SAFETY: nothing refers to the stream any more.
            let _ = unsafe { self.driver.functions.destroy_stream(self.stream()) };
            self.driver.vendor.release(self.place);
        }
    }
}

impl<V: Vendor> Shared<V> {
    fn stream(&self) -> Handle {
        self.stream as Handle
    }

    /// Directs the calls of this thread to this device.
    fn bind(&self) -> Result<&'static Functions, Failure> {
        self.driver.check(self.driver.vendor.bind(self.place))?;
        Ok(&self.driver.functions)
    }

    /// Waits until the stream is empty.
    fn wait(&self, functions: &Functions) -> Result<(), Failure> {
        // SAFETY: the stream lives as long as `self`.
        self.driver.check(unsafe { functions.wait_for_stream(self.stream()) })?;
        self.launched().clear();
        Ok(())
    }

    /// Makes the last use of a handle or an address once the work that may use it is done. Nobody learns of a failure, and
    /// what a lost device held is gone.
    fn give_back(&self, last: impl FnOnce(&Functions) -> Called) {
        if self.lost.get().is_none()
            && let Ok(functions) = self.bind()
        {
            let _ = self.wait(functions);
            let _ = last(functions);
        }
    }

    fn check(&self) -> Result<(), BackendError> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn launched(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A driver accepts any address.
    fn check_place(&self, memory: &dyn Memory) -> Result<(), BackendError> {
        match memory.is_on_host() {
            true => Err(BackendError::Memory(format!("memory of the host is not that of {}", self.name))),
            false => Ok(()),
        }
    }

    fn remember(&self, name: &Arc<str>) {
        let mut launched = self.launched();
        if launched.len() < REMEMBERED {
            launched.push(name.clone());
        }
    }

    /// The error of a failed call; `refused` makes it where the call had no effect and the device goes on.
    fn failed(&self, failure: Failure, refused: impl FnOnce(Failure) -> BackendError) -> BackendError {
        if failure.kind != FailureKind::Lost {
            return refused(failure);
        }
        let launched = std::mem::take(&mut *self.launched());
        let lost = |reason: String| BackendError::Lost { device: self.name.clone(), reason };
        let Some(first) = launched.first() else {
            return self.lost.get_or_init(|| lost(failure.to_string())).clone();
        };
        let others: Vec<String> = launched[1..].iter().map(|name| format!("`{name}`")).collect();
        let (who, help) = match &others[..] {
            [] => (String::new(), ""),
            others => (
                format!(", or one launched behind it ({})", others.join(", ")),
                "\nhelp: TINYSPEC_DEBUG=2 waits for each kernel, so that the error names one",
            ),
        };
        let _ = self.lost.set(lost(format!("kernel `{first}`{who}: {failure}")));
        BackendError::Execution { name: first.to_string(), reason: format!("{failure} on {}{who}{help}", self.name) }
    }

    fn waited(&self, failure: Failure) -> BackendError {
        self.failed(failure, |failure| self.refused(failure))
    }

    fn refused(&self, failure: Failure) -> BackendError {
        BackendError::Device { device: self.name.clone(), reason: failure.to_string() }
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        let (functions, mut address) = (self.bind()?, 0);
        // SAFETY: the address is written to a local variable.
        self.driver.check(unsafe { functions.allocate(&mut address, bytes) })?;
        Ok(address)
    }

    /// Bytes that are free, and all that there are.
    fn free_memory(&self) -> Option<(usize, usize)> {
        let (functions, mut free, mut total) = (self.bind().ok()?, 0, 0);
        // SAFETY: both are written to local variables.
        unsafe { functions.memory(&mut free, &mut total) }.check().ok()?;
        Some((free, total))
    }

    /// # Safety
    /// `to` is the address of so many bytes of this device's memory.
    unsafe fn write(&self, to: u64, data: &[u8]) -> Result<(), Failure> {
        let functions = self.bind()?;
        // SAFETY: as the caller promises; `data` outlives the copy, which is waited for.
        self.driver.check(unsafe { functions.upload(to, data.as_ptr().cast(), data.len(), self.stream()) })?;
        self.wait(functions)
    }

    /// # Safety
    /// `from` is the address of so many bytes of this device's memory.
    unsafe fn read(&self, from: u64, data: &mut [u8]) -> Result<(), Failure> {
        let functions = self.bind()?;
        // SAFETY: as in `write`.
        self.driver.check(unsafe { functions.download(data.as_mut_ptr().cast(), from, data.len(), self.stream()) })?;
        self.wait(functions)
    }

    /// Loads code that holds one kernel; errors are in words.
    fn load(&self, code: &[u8]) -> Result<Loaded, String> {
        let functions = self.bind().map_err(|failure| failure.to_string())?;
        let entry: CString = self.driver.vendor.entry(code)?;
        let module = (self.driver.vendor.load(code))
            .map_err(|(called, log)| format!("{} on {}{log}", self.driver.failure(called), self.name))?;
        let mut function = ptr::null_mut();
        // SAFETY: the name ends with a zero.
        let found = self.driver.check(unsafe { functions.function(&mut function, module, entry.as_ptr()) });
        found.map_err(|failure| {
            // SAFETY: without the kernel nothing uses the module.
            let _ = unsafe { functions.unload(module) };
            format!("{failure}: it has no kernel {}", entry.to_string_lossy())
        })?;
        Ok(Loaded { module: module as usize, function: function as usize })
    }

    /// Enqueues a launch with parameters of 8 bytes each.
    ///
    /// # Safety
    /// The kernel takes these parameters, and does with them what [`Runtime::enqueue`] allows.
    unsafe fn launch(&self, loaded: Loaded, launch: &Launch, parameters: &mut [u64]) -> Result<(), Failure> {
        let functions = self.bind()?;
        let number = |size: usize| c_uint::try_from(size).unwrap_or(c_uint::MAX);
        let [groups, threads] = [launch.grid.groups, launch.grid.threads].map(|sizes| sizes.map(number));
        let called = self.driver.vendor.pass(parameters, |parameters, extra| {
            // SAFETY: as the caller promises. LOCAL memory is declared by the kernel.
            unsafe {
                functions.launch(
                    loaded.function as Handle,
                    groups[0],
                    groups[1],
                    groups[2],
                    threads[0],
                    threads[1],
                    threads[2],
                    0,
                    self.stream(),
                    parameters,
                    extra,
                )
            }
        });
        self.driver.check(called)
    }
}

/// A kernel in a module of the driver: handles, as numbers.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    module: usize,
    function: usize,
}

/// Runs kernels on a device behind a driver.
#[derive(Debug)]
struct DeviceRuntime<V: Vendor> {
    shared: Arc<Shared<V>>,
}

impl<V: Vendor> DeviceRuntime<V> {
    /// # Safety
    /// As [`Runtime::enqueue`].
    unsafe fn launch(&self, launch: &Launch, buffers: &[*mut u8]) -> Result<(), BackendError> {
        let Some(program) = launch.program.as_any().downcast_ref::<DeviceProgram<V>>() else {
            let reason = "it was compiled for another device".into();
            return Err(BackendError::Load { name: "kernel".into(), reason });
        };
        if launch.grid.count() == 0 {
            return Ok(());
        }
        // Behind the buffers a CPU's kernel finds a table of the named dims; here each is a parameter.
        let given = launch.buffers.len() - usize::from(!launch.dims.is_empty()).min(launch.buffers.len());
        let mut values: SmallVec<[u64; 24]> = SmallVec::new();
        for &index in &launch.buffers[..given] {
            let address = buffers.get(index as usize).copied();
            values.push(address.ok_or_else(|| BackendError::Memory(format!("buffer {index} is missing")))? as u64);
        }
        values.extend(launch.dims.iter().map(|&dim| dim as u64));
        self.shared.remember(&program.name);
        // SAFETY: the caller vouches for the addresses.
        let result = unsafe { self.shared.launch(program.loaded, launch, &mut values) };
        result.map_err(|failure| {
            self.shared.failed(failure, |failure| BackendError::Execution {
                name: program.name.to_string(),
                reason: format!("{}: {failure}", self.shared.name),
            })
        })
    }
}

// SAFETY: memory is the driver's, which gives none twice; kernels get the buffers of their launch.
unsafe impl<V: Vendor> Runtime for DeviceRuntime<V> {
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Memory>, BackendError> {
        self.shared.check()?;
        // Drivers refuse to allocate 0 bytes.
        let address = self.shared.allocate(bytes.max(1)).map_err(|failure| {
            self.shared.failed(failure, |failure| match failure.kind {
                FailureKind::Memory => {
                    let free = self.shared.free_memory();
                    let of =
                        free.map_or_else(String::new, |(free, total)| format!("; of {total} bytes {free} are free"));
                    BackendError::Memory(format!("{} has no {bytes} bytes: {failure}{of}", self.shared.name))
                }
                _ => self.shared.refused(failure),
            })
        })?;
        Ok(Arc::new(DeviceMemory { shared: self.shared.clone(), address, bytes }))
    }

    fn write(&self, to: &dyn Memory, data: &[u8]) -> Result<(), BackendError> {
        self.shared.check()?;
        check_length(to, data.len(), "write")?;
        self.shared.check_place(to)?;
        // SAFETY: the memory is as long, and this device's: nothing else gives the runtime memory.
        unsafe { self.shared.write(to.address() as u64, data) }.map_err(|failure| self.shared.waited(failure))
    }

    fn read(&self, from: &dyn Memory, data: &mut [u8]) -> Result<(), BackendError> {
        self.shared.check()?;
        check_length(from, data.len(), "read")?;
        self.shared.check_place(from)?;
        // SAFETY: as in `write`.
        unsafe { self.shared.read(from.address() as u64, data) }.map_err(|failure| self.shared.waited(failure))
    }

    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        self.shared.check()?;
        let failed = |reason| BackendError::Load { name: name.into(), reason };
        let loaded = self.shared.load(code).map_err(failed)?;
        Ok(Arc::new(DeviceProgram { shared: self.shared.clone(), loaded, name: name.into(), bytes: code.len() }))
    }

    unsafe fn enqueue(&self, launches: &[Launch], buffers: &[*mut u8]) -> Result<(), BackendError> {
        self.shared.check()?;
        for launch in launches {
            // SAFETY: the caller's promise holds for each launch.
            unsafe { self.launch(launch, buffers)? };
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<(), BackendError> {
        self.shared.check()?;
        let waited = self.shared.bind().and_then(|functions| self.shared.wait(functions));
        waited.map_err(|failure| self.shared.waited(failure))
    }
}

#[derive(Debug)]
struct DeviceMemory<V: Vendor> {
    shared: Arc<Shared<V>>,
    address: u64,
    bytes: usize,
}

// SAFETY: the driver's memory is the value's own until it is dropped, and stays where it is.
unsafe impl<V: Vendor> Memory for DeviceMemory<V> {
    fn len(&self) -> usize {
        self.bytes
    }

    fn address(&self) -> *mut u8 {
        ptr::without_provenance_mut(self.address as usize)
    }
}

impl<V: Vendor> Drop for DeviceMemory<V> {
    fn drop(&mut self) {
        // SAFETY: the driver gave the address, and it is freed once.
        self.shared.give_back(|functions| unsafe { functions.free(self.address) });
    }
}

struct DeviceProgram<V: Vendor> {
    shared: Arc<Shared<V>>,
    loaded: Loaded,
    name: Arc<str>,
    bytes: usize,
}

impl<V: Vendor> Program for DeviceProgram<V> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<V: Vendor> Drop for DeviceProgram<V> {
    fn drop(&mut self) {
        // SAFETY: the driver gave the module; a launch holds its program.
        self.shared.give_back(|functions| unsafe { functions.unload(self.loaded.module as Handle) });
    }
}
