//! Devices behind a vendor's driver. What CUDA and HIP have in common is here: memory, loaded kernels, launches in one stream
//! and what becomes of faults. Their functions and numbers are in `cuda.rs` and `hip.rs`.

mod library;

pub(super) use library::{Library, Search, functions};

use crate::host_memory::check_length;
use crate::{BackendError, Grid, Launch, Memory, Program, Runtime};
use smallvec::SmallVec;
use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A call of the driver that failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The function.
    pub call: &'static str,
    /// What it returned, and what the driver says of that.
    pub code: i32,
    pub text: String,
    pub kind: FailureKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// There is no memory left.
    Memory,
    /// Nothing works on this device until the process ends.
    Lost,
    /// The call had no effect.
    Refused,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} failed with {} ({})", self.call, self.text, self.code)
    }
}

/// A kernel in a module of the driver: handles, by their bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    pub module: usize,
    pub function: usize,
}

/// A device of a vendor. Any thread may call; work goes through one stream, in its order.
pub(super) trait Vendor: Send + Sync + Debug + 'static {
    /// Its name for messages, such as `cuda:0 (NVIDIA H200)`.
    fn name(&self) -> &str;

    fn allocate(&self, bytes: usize) -> Result<u64, Failure>;

    /// Bytes that are free, and all that there are.
    fn free_memory(&self) -> Option<(usize, usize)>;

    /// Waits for the work that may use it. There is nobody to tell of a failure.
    ///
    /// # Safety
    /// The memory came from `allocate`, and nobody uses it from now on.
    unsafe fn free(&self, address: u64);

    /// # Safety
    /// There are so many bytes of this device's memory at `to`.
    unsafe fn write(&self, to: u64, data: &[u8]) -> Result<(), Failure>;

    /// # Safety
    /// There are so many bytes of this device's memory at `from`.
    unsafe fn read(&self, from: u64, data: &mut [u8]) -> Result<(), Failure>;

    /// Of code that holds one kernel; an error is in words.
    fn load(&self, code: &[u8]) -> Result<Loaded, String>;

    /// Waits for the work that may use it.
    ///
    /// # Safety
    /// It came from `load`, and nobody launches it from now on.
    unsafe fn unload(&self, loaded: Loaded);

    /// Puts a launch into the stream, with parameters of 8 bytes each.
    ///
    /// # Safety
    /// The kernel takes these parameters, and does with them what `Runtime::enqueue` allows.
    unsafe fn launch(&self, loaded: Loaded, grid: &Grid, parameters: &mut [u64]) -> Result<(), Failure>;

    fn synchronize(&self) -> Result<(), Failure>;
}

/// Launches that are remembered by name until they are waited for.
const REMEMBERED: usize = 256;

/// A device, and what has become of it.
#[derive(Debug)]
struct Shared<V: Vendor> {
    vendor: V,
    /// Names of the kernels that have been launched since the stream was last empty.
    launched: Mutex<Vec<Arc<str>>>,
    /// Why nothing works any more.
    lost: OnceLock<BackendError>,
}

impl<V: Vendor> Shared<V> {
    fn check(&self) -> Result<(), BackendError> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn launched(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A driver may take any address.
    fn check_place(&self, memory: &dyn Memory) -> Result<(), BackendError> {
        match memory.is_on_host() {
            true => Err(BackendError::Memory(format!("memory of the host is not that of {}", self.vendor.name()))),
            false => Ok(()),
        }
    }

    /// A kernel is on its way.
    fn remember(&self, name: &Arc<str>) {
        let mut launched = self.launched();
        if launched.len() < REMEMBERED {
            launched.push(name.clone());
        }
    }

    /// What a failed call means; `refused` says it where the call had no effect and the device goes on.
    fn failed(&self, failure: Failure, refused: impl FnOnce(Failure) -> BackendError) -> BackendError {
        if failure.kind != FailureKind::Lost {
            return refused(failure);
        }
        let launched = std::mem::take(&mut *self.launched());
        let device = self.vendor.name();
        let lost = |reason: String| BackendError::Lost { device: device.into(), reason };
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
        BackendError::Execution { name: first.to_string(), reason: format!("{failure} on {device}{who}{help}") }
    }

    fn waited(&self, failure: Failure) -> BackendError {
        self.failed(failure, |failure| self.refused(failure))
    }

    fn refused(&self, failure: Failure) -> BackendError {
        BackendError::Device { device: self.vendor.name().into(), reason: failure.to_string() }
    }

    /// The stream is empty.
    fn is_done(&self) {
        self.launched().clear();
    }
}

/// Runs kernels on a device of a vendor.
#[derive(Debug)]
pub(super) struct DeviceRuntime<V: Vendor> {
    shared: Arc<Shared<V>>,
}

impl<V: Vendor> DeviceRuntime<V> {
    pub fn new(vendor: V) -> DeviceRuntime<V> {
        DeviceRuntime { shared: Arc::new(Shared { vendor, launched: Mutex::default(), lost: OnceLock::new() }) }
    }

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
        let result = unsafe { self.shared.vendor.launch(program.loaded, &launch.grid, &mut values) };
        result.map_err(|failure| {
            self.shared.failed(failure, |failure| BackendError::Execution {
                name: program.name.to_string(),
                reason: format!("{}: {failure}", self.shared.vendor.name()),
            })
        })
    }
}

// SAFETY: memory is the driver's, which gives none twice; kernels get the buffers of their launch.
unsafe impl<V: Vendor> Runtime for DeviceRuntime<V> {
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Memory>, BackendError> {
        self.shared.check()?;
        // Drivers give no memory of 0 bytes.
        let address = self.shared.vendor.allocate(bytes.max(1)).map_err(|failure| {
            self.shared.failed(failure, |failure| match failure.kind {
                FailureKind::Memory => {
                    let free = self.shared.vendor.free_memory();
                    let of =
                        free.map_or_else(String::new, |(free, total)| format!("; of {total} bytes {free} are free"));
                    BackendError::Memory(format!("{} has no {bytes} bytes: {failure}{of}", self.shared.vendor.name()))
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
        unsafe { self.shared.vendor.write(to.address() as u64, data) }
            .map_err(|failure| self.shared.waited(failure))?;
        self.shared.is_done();
        Ok(())
    }

    fn read(&self, from: &dyn Memory, data: &mut [u8]) -> Result<(), BackendError> {
        self.shared.check()?;
        check_length(from, data.len(), "read")?;
        self.shared.check_place(from)?;
        // SAFETY: as in `write`.
        unsafe { self.shared.vendor.read(from.address() as u64, data) }
            .map_err(|failure| self.shared.waited(failure))?;
        self.shared.is_done();
        Ok(())
    }

    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        self.shared.check()?;
        let failed = |reason| BackendError::Load { name: name.into(), reason };
        let loaded = self.shared.vendor.load(code).map_err(failed)?;
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
        self.shared.vendor.synchronize().map_err(|failure| self.shared.waited(failure))?;
        self.shared.is_done();
        Ok(())
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
        std::ptr::without_provenance_mut(self.address as usize)
    }
}

impl<V: Vendor> Drop for DeviceMemory<V> {
    fn drop(&mut self) {
        // What a lost device had is gone.
        if self.shared.lost.get().is_none() {
            // SAFETY: it came from this vendor's `allocate`, and is freed once.
            unsafe { self.shared.vendor.free(self.address) }
        }
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
        if self.shared.lost.get().is_none() {
            // SAFETY: it came from this vendor's `load`; a launch holds its program.
            unsafe { self.shared.vendor.unload(self.loaded) }
        }
    }
}
