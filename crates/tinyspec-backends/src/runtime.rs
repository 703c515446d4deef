//! Memory and execution of a device.

use crate::host_memory::{self, HostMemory};
use crate::{BackendError, Grid};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Memory of a device.
///
/// # Safety
/// Kernels and copies write to what [`Memory::address`] says. So for as long as the value lives there must be
/// [`Memory::len`] bytes at that address, which nothing else uses, and both must stay what they are; where
/// [`Memory::is_on_host`] is true, the host may access them like its own.
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

    /// Holds no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Start of the memory as the device addresses it, aligned to 64 bytes.
    fn address(&self) -> *mut u8;

    /// The host reaches it at its address, whenever nothing is enqueued.
    fn is_on_host(&self) -> bool {
        false
    }
}

/// Loaded code of one kernel.
pub trait Program: Send + Sync + Any {
    /// The runtime's own type behind it.
    fn as_any(&self) -> &dyn Any;

    /// Memory that it needs, about: what caches give back first.
    fn bytes(&self) -> usize {
        4096
    }
}

/// One launch of a command list: a program, its buffers and its extent.
#[derive(Clone)]
pub struct Launch {
    /// Loaded code.
    pub program: Arc<dyn Program>,
    /// Indices into the buffer table, by Param slot; behind them, where the kernel has named dims, that of the table of these.
    pub buffers: Vec<u32>,
    /// The values of the kernel's named dims, by slot. GPU kernels take them as parameters.
    pub dims: Vec<i64>,
    /// Trips of the GLOBAL range that run.
    pub trips: Range<usize>,
    /// Workgroups and threads of a kernel whose indices are Specials.
    pub grid: Grid,
    /// Bytes of scratch per thread, on a GPU of LOCAL memory per workgroup.
    pub scratch_bytes: usize,
    /// Estimated time on one thread, so that small kernels are not split.
    pub nanoseconds: u64,
    /// Something is computed before the GLOBAL range: every call of the kernel does it anew.
    pub has_prologue: bool,
    /// The user's line, for errors; empty where none is known.
    pub line: Arc<str>,
}

/// Allocates, moves data and runs command lists. `enqueue` is asynchronous by contract; a CPU may run at once.
///
/// What a runtime leaves out is that of a device which computes at once, in memory of the host.
///
/// # Safety
/// [`Runtime::allocate`] gives memory of at least so many bytes that nobody else has, and [`Runtime::enqueue`] accesses what
/// its launches say and nothing else.
///
/// ```compile_fail,E0200
/// # use tinyspec_backends::{BackendError, Launch, Memory, Program, Runtime};
/// # use std::sync::Arc;
/// struct Sharing(Arc<dyn Memory>);
/// impl Runtime for Sharing {
///     fn allocate(&self, _: usize) -> Result<Arc<dyn Memory>, BackendError> { Ok(self.0.clone()) }
///     fn load(&self, _: &str, _: &[u8]) -> Result<Arc<dyn Program>, BackendError> { unimplemented!() }
///     unsafe fn enqueue(&self, _: &[Launch], _: &[*mut u8]) -> Result<(), BackendError> { Ok(()) }
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

    /// Copies what is at an address of the device's memory to the host, after everything enqueued.
    ///
    /// # Errors
    /// What an enqueued kernel reported.
    ///
    /// # Safety
    /// There are so many bytes of this device's memory, which nobody writes meanwhile but work that is enqueued.
    unsafe fn read_at(&self, from: *const u8, data: &mut [u8]) -> Result<(), BackendError> {
        // SAFETY: it is memory of the host, valid as the caller promises; nobody has a reference to it.
        unsafe { std::ptr::copy_nonoverlapping(from, data.as_mut_ptr(), data.len()) };
        Ok(())
    }

    /// Enqueues a copy of `bytes` of `from`, from the byte `start` on, to the start of `to`, which is this device's. False
    /// where only the host can make it.
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

    /// Runs launches in order, or sees to it that they run; `buffers` is the table of start addresses that they refer to, the patch table of the command buffer.
    ///
    /// # Errors
    /// When a kernel fails (the interpreters report races and bad accesses), this one or, where it was only enqueued, an
    /// earlier one.
    ///
    /// # Safety
    /// Every address must be valid for the accesses of the launches, and not be used elsewhere until the work is done, but by
    /// what is enqueued on this device later. Memory of this device may be dropped: what is allocated then is used later.
    unsafe fn enqueue(&self, launches: &[Launch], buffers: &[*mut u8]) -> Result<(), BackendError>;

    /// How long the device takes for what is enqueued meanwhile: by its own clock, where it has one.
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

    /// Waits for everything enqueued.
    ///
    /// # Errors
    /// What an enqueued kernel reported.
    fn synchronize(&self) -> Result<(), BackendError> {
        Ok(())
    }
}
