//! The runtime of a device behind a driver: memory, code, launches.

use super::device::{Loaded, Shared};
use super::flight::Launched;
use super::{Driver, FailureKind, Handle, Vendor, flag, gpu_of};
use crate::gpu::{DriverError, Gpu};
use crate::host_memory::check_length;
use crate::{BackendError, CommandBuffer, Launch, Memory, Program, Runtime};
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::c_int;
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The GPU with this number in a driver, and its runtime. The driver is opened for the first device.
///
/// # Errors
/// When there is no driver or no such device, or no code can be generated for it.
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
        driver.check_open(unsafe { driver.functions.new_stream(&mut stream, flag::STREAM_NON_BLOCKING) })
    };
    if let Err(error) = opened() {
        driver.vendor.release(place);
        return Err(error);
    }
    let shared = Shared::new(driver, format!("{name} ({product})"), place, stream);
    Ok((gpu, Arc::new(DeviceRuntime { shared: Arc::new(shared) })))
}

/// Runs kernels on a device behind a driver.
#[derive(Debug)]
struct DeviceRuntime<V: Vendor> {
    shared: Arc<Shared<V>>,
}

impl<V: Vendor> DeviceRuntime<V> {
    /// A driver accepts any address.
    fn own<'a>(&self, memory: &'a dyn Memory) -> Result<&'a DeviceMemory<V>, BackendError> {
        let own = (memory as &dyn Any).downcast_ref::<DeviceMemory<V>>();
        own.filter(|memory| Arc::ptr_eq(&memory.shared, &self.shared)).ok_or_else(|| {
            BackendError::Memory(format!("memory of another device is not that of {}", self.shared.name))
        })
    }

    /// Copies from another device. Errors name the device that failed.
    ///
    /// # Safety
    /// There are so many bytes at both addresses.
    unsafe fn copy_from(&self, to: u64, other: &Shared<V>, from: u64, bytes: usize) -> Result<(), BackendError> {
        let there = |failure| other.waited(failure);
        let ready = other.bind().and_then(|functions| other.mark(functions)).map_err(there)?;
        // SAFETY: as the caller promises.
        let copied = unsafe { self.shared.copy_from(to, (other, from), bytes, &ready) };
        other.give_event(ready);
        let copied = copied.map_err(|failure| self.shared.waited(failure))?;
        let ordered = other.bind().and_then(|functions| other.wait_in_stream(functions, &copied));
        self.shared.give_event(copied);
        ordered.map_err(there)
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
        // A CPU's kernel finds a table of the named dims after its buffers; here each dim is a parameter.
        let given = launch.buffers.len() - usize::from(!launch.dims.is_empty()).min(launch.buffers.len());
        let mut values: SmallVec<[u64; 24]> = SmallVec::new();
        for &index in &launch.buffers[..given] {
            let address = buffers.get(index as usize).copied();
            values.push(address.ok_or_else(|| BackendError::Memory(format!("buffer {index} is missing")))? as u64);
        }
        values.extend(launch.dims.iter().map(|&dim| dim as u64));
        self.shared.remember(Launched { name: program.name.clone(), line: launch.line.clone() });
        // SAFETY: the caller vouches for the addresses.
        let result = unsafe { self.shared.launch(program.loaded, launch, &mut values) };
        result.map_err(|failure| {
            self.shared.failed(failure, |failure| {
                let reason = format!("{}: {failure}", self.shared.name);
                BackendError::Execution { name: program.name.to_string(), reason }.at(&launch.line)
            })
        })
    }
}

// SAFETY: memory comes from the driver, which allocates none twice; kernels get the buffers of their launch.
unsafe impl<V: Vendor> Runtime for DeviceRuntime<V> {
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Memory>, BackendError> {
        self.shared.check()?;
        let address = self.shared.allocate(bytes).map_err(|failure| {
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
        let to = self.own(to)?;
        // SAFETY: the memory is as long.
        unsafe { self.shared.write(to.address, data) }.map_err(|failure| self.shared.waited(failure))
    }

    fn read(&self, from: &dyn Memory, data: &mut [u8]) -> Result<(), BackendError> {
        check_length(from, data.len(), "read")?;
        let from = self.own(from)?;
        // SAFETY: the memory is as long.
        unsafe { self.read_at(from.address(), data) }
    }

    unsafe fn read_at(&self, from: *const u8, data: &mut [u8]) -> Result<(), BackendError> {
        self.shared.check()?;
        // SAFETY: as the caller promises.
        unsafe { self.shared.read(from as u64, data) }.map_err(|failure| self.shared.waited(failure))
    }

    unsafe fn write_at(&self, to: *mut u8, data: &[u8]) -> Result<(), BackendError> {
        self.shared.check()?;
        // SAFETY: as the caller promises.
        unsafe { self.shared.write(to as u64, data) }.map_err(|failure| self.shared.waited(failure))
    }

    fn copy(&self, to: &dyn Memory, from: &dyn Memory, start: usize, bytes: usize) -> Result<bool, BackendError> {
        self.shared.check()?;
        check_length(to, bytes, "write")?;
        check_length(from, start.saturating_add(bytes), "read")?;
        let to = self.own(to)?;
        let Some(from) = (from as &dyn Any).downcast_ref::<DeviceMemory<V>>() else { return Ok(false) };
        from.shared.check()?;
        if bytes > 0 {
            let address = from.address + start as u64;
            match Arc::ptr_eq(&self.shared, &from.shared) {
                // SAFETY: both are as long.
                true => unsafe { self.shared.copy(to.address, address, bytes) }
                    .map_err(|failure| self.shared.waited(failure))?,
                // SAFETY: as above.
                false => unsafe { self.copy_from(to.address, &from.shared, address, bytes)? },
            }
        }
        Ok(true)
    }

    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        self.shared.check()?;
        let failed = |reason| BackendError::Load { name: name.into(), reason };
        let loaded = self.shared.load(code).map_err(failed)?;
        Ok(Arc::new(DeviceProgram { shared: self.shared.clone(), loaded, name: name.into(), bytes: code.len() }))
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        self.shared.check()?;
        let waited = |failure| self.shared.waited(failure);
        let functions = self.shared.bind().map_err(waited)?;
        self.shared.land(functions).map_err(waited)?;
        // SAFETY: the caller's promise holds for each launch.
        let launched = commands.launches().iter().try_for_each(|launch| unsafe { self.launch(launch, table) });
        launched.and(self.shared.close(functions).map_err(waited))
    }

    fn timed(&self, work: &mut dyn FnMut()) -> Result<Duration, BackendError> {
        self.shared.check()?;
        self.shared.timed(work).map_err(|failure| self.shared.waited(failure))
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

// SAFETY: the value owns the piece until it is dropped, and the piece never moves.
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
        self.shared.free(self.address, self.bytes);
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
        // SAFETY: the driver loaded the module, and launches in flight hold their program.
        self.shared.give_back(|functions| unsafe { functions.unload(self.loaded.module as Handle) });
    }
}
