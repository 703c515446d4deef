//! An open device: its stream, memory and code, and its state after a fault.

use super::blocks::{Blocks, block_of, piece_of};
use super::events::Event;
use super::flight::Flight;
use super::staging::Staging;
use super::{Called, Driver, Failure, FailureKind, Functions, Handle, Place, Vendor};
use crate::{BackendError, Launch};
use std::ffi::{CString, c_uint};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// An open device. Any thread may call; all work goes through one stream, in order.
#[derive(Debug)]
pub(super) struct Shared<V: Vendor> {
    pub driver: &'static Driver<V>,
    /// For messages, such as `cuda:0 (NVIDIA H200)`.
    pub name: String,
    pub place: Place,
    stream: usize,
    blocks: Mutex<Blocks>,
    pub(super) staging: Mutex<Staging>,
    /// Unused events.
    pub(super) events: Mutex<Vec<Event>>,
    pub(super) flight: Mutex<Flight>,
    /// Why the device is lost.
    lost: OnceLock<BackendError>,
}

impl<V: Vendor> Drop for Shared<V> {
    fn drop(&mut self) {
        let Ok(functions) = self.bind() else { return };
        // On a lost device these calls fail, and everything that it held is gone.
        let _ = self.wait(functions);
        for address in self.blocks().take_all() {
            // SAFETY: the driver allocated it, and no memory of this device is in use.
            let _ = unsafe { functions.free(address) };
        }
        self.unpin(functions);
        self.flight().events().into_iter().for_each(|event| self.give_event(event));
        self.destroy_events(functions);
        // SAFETY: nothing refers to the stream any more.
        let _ = unsafe { functions.destroy_stream(self.stream()) };
        self.driver.vendor.release(self.place);
    }
}

impl<V: Vendor> Shared<V> {
    pub fn new(driver: &'static Driver<V>, name: String, place: Place, stream: Handle) -> Shared<V> {
        Shared {
            driver,
            name,
            place,
            stream: stream as usize,
            blocks: Mutex::default(),
            staging: Mutex::default(),
            events: Mutex::default(),
            flight: Mutex::default(),
            lost: OnceLock::new(),
        }
    }

    pub fn stream(&self) -> Handle {
        self.stream as Handle
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Directs the calls of this thread to this device.
    pub fn bind(&self) -> Result<&'static Functions, Failure> {
        self.driver.check(self.driver.vendor.bind(self.place))?;
        Ok(&self.driver.functions)
    }

    /// Waits until the stream is empty.
    pub fn wait(&self, functions: &Functions) -> Result<(), Failure> {
        // SAFETY: the stream lives as long as `self`.
        self.driver.check(unsafe { functions.wait_for_stream(self.stream()) })?;
        self.land(functions)
    }

    /// Releases a handle or an address once the work that may use it is done. Failures are ignored; on a lost device it
    /// is gone anyway.
    pub fn give_back(&self, last: impl FnOnce(&Functions) -> Called) {
        if self.lost.get().is_none()
            && let Ok(functions) = self.bind()
        {
            let _ = self.wait(functions);
            let _ = last(functions);
        }
    }

    pub fn check(&self) -> Result<(), BackendError> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The error of a failed call; `refused` makes it if the call had no effect and the device still works.
    pub fn failed(&self, failure: Failure, refused: impl FnOnce(Failure) -> BackendError) -> BackendError {
        if failure.kind != FailureKind::Lost {
            return refused(failure);
        }
        let lost = |reason: String| BackendError::Lost { device: self.name.clone(), reason };
        let Some((first, others)) = self.flight().suspects() else {
            return self.lost.get_or_init(|| lost(failure.to_string())).clone();
        };
        let _ = self.lost.set(lost(format!("kernel {first}{others}: {failure}")));
        let help = match others.is_empty() {
            true => "",
            false => "\nhelp: TINYSPEC_DEBUG=2 waits for each kernel, so that the error names one",
        };
        let reason = format!("{failure} on {}{others}{help}", self.name);
        BackendError::Execution { name: first.name.to_string(), reason }.at(&first.line)
    }

    pub fn waited(&self, failure: Failure) -> BackendError {
        self.failed(failure, |failure| self.refused(failure))
    }

    pub fn refused(&self, failure: Failure) -> BackendError {
        BackendError::Device { device: self.name.clone(), reason: failure.to_string() }
    }

    /// Allocates memory from a block; the driver allocates a new block if no free part is large enough.
    pub fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        let functions = self.bind()?;
        let sizes = piece_of(bytes).and_then(|piece| Some((piece, block_of(piece)?)));
        let (piece, block) = sizes.ok_or_else(|| self.driver.failure(self.driver.no_memory()))?;
        let mut blocks = self.blocks();
        if let Some(address) = blocks.take(piece) {
            return Ok(address);
        }
        // Freeing unused blocks may help, and so may a block of the exact size.
        let given = self.new_block(functions, block).map(|address| (address, block)).or_else(|failure| {
            if failure.kind != FailureKind::Memory {
                return Err(failure);
            }
            self.trim(functions, &mut blocks);
            self.new_block(functions, piece).map(|address| (address, piece))
        });
        let (address, bytes) = given?;
        blocks.add(address, bytes);
        blocks.take(piece).ok_or_else(|| self.driver.failure(self.driver.no_memory()))
    }

    /// Frees memory. Enqueued work may still use it; the next owner's work is enqueued after that.
    pub fn free(&self, address: u64, bytes: usize) {
        if let Some(piece) = piece_of(bytes) {
            self.blocks().give(address, piece);
        }
    }

    fn new_block(&self, functions: &Functions, bytes: usize) -> Result<u64, Failure> {
        let mut address = 0;
        // SAFETY: the address is written to a local variable.
        self.driver.check(unsafe { functions.allocate(&mut address, bytes) })?;
        Ok(address)
    }

    /// Gives unused blocks back to the driver, once the work that may use them is done.
    fn trim(&self, functions: &Functions, blocks: &mut Blocks) {
        let unused = blocks.take_unused();
        if !unused.is_empty() {
            let _ = self.wait(functions);
        }
        for address in unused {
            // SAFETY: the driver allocated it, and none of it is in use.
            let _ = unsafe { functions.free(address) };
        }
    }

    /// Free bytes, including those in blocks, and the total.
    pub fn free_memory(&self) -> Option<(usize, usize)> {
        let (functions, mut free, mut total) = (self.bind().ok()?, 0, 0);
        // SAFETY: both are written to local variables.
        unsafe { functions.memory(&mut free, &mut total) }.check().ok()?;
        Some((free + self.blocks().unused(), total))
    }

    /// Loads code that holds one kernel; errors are messages.
    pub fn load(&self, code: &[u8]) -> Result<Loaded, String> {
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
    pub unsafe fn launch(&self, loaded: Loaded, launch: &Launch, parameters: &mut [u64]) -> Result<(), Failure> {
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
pub(super) struct Loaded {
    pub module: usize,
    function: usize,
}
