//! Memory of the host, as the CPU and the interpreters use it.

use crate::{BackendError, Memory};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Alignment of every buffer: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// Aligned host memory. Its contents start as zeros, which the system gives for free.
#[derive(Debug)]
pub struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// `None` for zero bytes, which need no memory.
    layout: Option<Layout>,
}

// SAFETY: it owns its bytes; who may access them when is the contract of `Runtime::enqueue`.
unsafe impl Send for HostMemory {}
// SAFETY: as above; the methods that touch the bytes say what they need.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// New memory of `bytes`, aligned to [`ALIGNMENT`].
    ///
    /// # Errors
    /// When the system has none left.
    pub fn new(bytes: usize) -> Result<HostMemory, BackendError> {
        if bytes == 0 {
            let start = NonNull::new(std::ptr::without_provenance_mut(ALIGNMENT)).unwrap_or(NonNull::dangling());
            return Ok(HostMemory { start, bytes, layout: None });
        }
        let exhausted = || BackendError::Memory(format!("cannot allocate {bytes} bytes"));
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| exhausted())?.pad_to_align();
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(exhausted)?;
        Ok(HostMemory { start, bytes, layout: Some(layout) })
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated in `new` with this layout, freed once.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

impl Memory for HostMemory {
    fn len(&self) -> usize {
        self.bytes
    }

    fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

/// Copies host bytes to the start of `to`, which is memory of the host.
///
/// # Errors
/// When they do not fit.
pub fn write(to: &dyn Memory, data: &[u8]) -> Result<(), BackendError> {
    check_length(to, data.len(), "write")?;
    // SAFETY: `to` is valid for its length, checked above; a slice of ours cannot overlap it, since nothing hands out
    // references to a Memory's bytes.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to.address(), data.len()) }
    Ok(())
}

/// Copies from the start of `from`, which is memory of the host.
///
/// # Errors
/// When `from` is shorter.
pub fn read(from: &dyn Memory, data: &mut [u8]) -> Result<(), BackendError> {
    check_length(from, data.len(), "read")?;
    // SAFETY: as in `write`.
    unsafe { std::ptr::copy_nonoverlapping(from.address(), data.as_mut_ptr(), data.len()) }
    Ok(())
}

fn check_length(memory: &dyn Memory, bytes: usize, verb: &str) -> Result<(), BackendError> {
    if bytes > memory.len() {
        return Err(BackendError::Memory(format!("cannot {verb} {bytes} bytes: the buffer has {}", memory.len())));
    }
    Ok(())
}
