//! Memory and execution of a device.

use crate::host_memory::{self, HostMemory};
use crate::{BackendError, CommandBuffer};
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Memory of a device.
///
/// # Safety
/// Kernels and copies write to [`Memory::address`]. So for as long as the value lives, there must be [`Memory::len`]
/// bytes at that address which nothing else uses, and neither may change; if [`Memory::is_on_host`] is true, the host
/// must be able to access them.
///
/// ```compile_fail,E0200
/// # use tinyspec_backends::Memory;
/// #[derive(Debug)]
/// struct Anywhere;
/// impl Memory for Anywhere {
///     fn len(&self) -> usize { 4096 }
///     fn address(&self) -> *mut u8 { 64 as *mut u8 }
/// }
/// ```
pub unsafe trait Memory: Send + Sync + std::fmt::Debug + Any {
    /// Size in bytes.
    fn len(&self) -> usize;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Start of the memory as the device addresses it, aligned to 64 bytes.
    fn address(&self) -> *mut u8;

    /// Whether the host can access it at its address while nothing is enqueued.
    fn is_on_host(&self) -> bool {
        false
    }
}

/// Loaded code of one kernel.
pub trait Program: Send + Sync + Any {
    /// The runtime's own type behind it.
    fn as_any(&self) -> &dyn Any;

    /// The approximate memory that it takes, by which caches are limited.
    fn bytes(&self) -> usize {
        4096
    }
}

/// Allocates, moves data and runs command buffers. `enqueue` is asynchronous by contract; a CPU may run synchronously.
///
/// The defaults are those of a device that computes synchronously, in host memory.
///
/// # Safety
/// [`Runtime::allocate`] must return memory of at least this size that nothing else uses, and [`Runtime::enqueue`] must
/// access only what its launches say.
///
/// ```compile_fail,E0200
/// # use tinyspec_backends::{BackendError, CommandBuffer, Memory, Program, Runtime};
/// # use std::sync::Arc;
/// struct Sharing(Arc<dyn Memory>);
/// impl Runtime for Sharing {
///     fn allocate(&self, _: usize) -> Result<Arc<dyn Memory>, BackendError> { Ok(self.0.clone()) }
///     fn load(&self, _: &str, _: &[u8]) -> Result<Arc<dyn Program>, BackendError> { unimplemented!() }
///     unsafe fn enqueue(&self, _: &CommandBuffer, _: &[*mut u8]) -> Result<(), BackendError> { Ok(()) }
/// }
/// ```
pub unsafe trait Runtime: Send + Sync {
    /// New memory of `bytes`, aligned to 64 bytes; contents undefined.
    ///
    /// # Errors
    /// When the device has none left.
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Memory>, BackendError> {
        Ok(Arc::new(HostMemory::new(bytes)?))
    }

    /// Copies host bytes to the start of `to`.
    ///
    /// # Errors
    /// When they do not fit.
    fn write(&self, to: &dyn Memory, data: &[u8]) -> Result<(), BackendError> {
        host_memory::write(to, data)
    }

    /// Copies from the start of `from` to the host, after everything enqueued.
    ///
    /// # Errors
    /// When `from` is shorter.
    fn read(&self, from: &dyn Memory, data: &mut [u8]) -> Result<(), BackendError> {
        host_memory::read(from, data)
    }

    /// Copies bytes at an address of the device's memory to the host, after all enqueued work.
    ///
    /// # Errors
    /// Errors that enqueued kernels reported.
    ///
    /// # Safety
    /// There must be this many bytes of this device's memory, which only enqueued work may write in the meantime.
    unsafe fn read_at(&self, from: *const u8, data: &mut [u8]) -> Result<(), BackendError> {
        // SAFETY: it is host memory, valid as the caller promises, and there are no references to it.
        unsafe { std::ptr::copy_nonoverlapping(from, data.as_mut_ptr(), data.len()) };
        Ok(())
    }

    /// Copies host bytes to an address of the device's memory, after all enqueued work.
    ///
    /// # Errors
    /// Errors that enqueued kernels reported.
    ///
    /// # Safety
    /// There must be this many bytes of this device's memory, which only enqueued work may use in the meantime.
    unsafe fn write_at(&self, to: *mut u8, data: &[u8]) -> Result<(), BackendError> {
        // SAFETY: it is host memory, valid as the caller promises, and there are no references to it.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
        Ok(())
    }

    /// Enqueues a copy of `bytes` of `from`, from the byte `start` on, to the start of `to`, which belongs to this
    /// device. False if only the host can copy.
    ///
    /// # Errors
    /// When one of them is shorter, or its device is lost.
    fn copy(&self, to: &dyn Memory, from: &dyn Memory, start: usize, bytes: usize) -> Result<bool, BackendError> {
        let is_possible = to.is_on_host() && from.is_on_host();
        if is_possible {
            host_memory::copy(to, from, start, bytes)?;
        }
        Ok(is_possible)
    }

    /// Loads compiled code.
    ///
    /// # Errors
    /// When the bytes are damaged or foreign.
    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError>;

    /// Runs or enqueues a command buffer; `table` holds the start addresses that its launches refer to.
    ///
    /// # Errors
    /// When a kernel fails (the interpreters report races and bad accesses): one of these, or one enqueued earlier.
    ///
    /// # Safety
    /// Every address must be valid for the accesses of the launches, and not be used elsewhere until the work is done,
    /// except by work enqueued later on this device. Memory of this device may be dropped in the meantime, since
    /// whatever is allocated in its place is used later.
    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError>;

    /// How long the device takes for what `work` enqueues, by its own clock if it has one.
    ///
    /// # Errors
    /// As [`Runtime::synchronize`].
    fn timed(&self, work: &mut dyn FnMut()) -> Result<Duration, BackendError> {
        self.synchronize()?;
        let start = Instant::now();
        work();
        self.synchronize()?;
        Ok(start.elapsed())
    }

    /// Waits for all enqueued work.
    ///
    /// # Errors
    /// Errors that enqueued kernels reported.
    fn synchronize(&self) -> Result<(), BackendError> {
        Ok(())
    }
}
