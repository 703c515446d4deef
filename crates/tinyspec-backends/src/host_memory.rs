//! Host memory for the CPU and the interpreters.

use crate::{BackendError, Memory};
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::MmapMut;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Alignment of every buffer: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// From this size on, memory is allocated in large pages, to avoid TLB misses.
const LARGE: usize = 1 << 20;
/// Bytes of a large page.
const LARGE_PAGE: usize = 2 << 20;

/// Aligned host memory. Its contents start as zeros, which are free from the system.
#[derive(Debug)]
pub struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    source: Source,
}

/// Where the memory came from.
#[derive(Debug)]
enum Source {
    /// Zero bytes need no memory.
    Nothing,
    Heap(Layout),
    /// Pages of its own.
    Pages(#[expect(dead_code, reason = "unmapped when dropped")] MmapMut),
}

// SAFETY: it owns its bytes; access to them is governed by the contract of `Runtime::enqueue`.
unsafe impl Send for HostMemory {}
// SAFETY: as above; the methods that access the bytes state their requirements.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// New memory of `bytes`, aligned to [`ALIGNMENT`].
    ///
    /// # Errors
    /// When the system is out of memory.
    pub fn new(bytes: usize) -> Result<HostMemory, BackendError> {
        if bytes == 0 {
            let start = NonNull::new(std::ptr::without_provenance_mut(ALIGNMENT)).unwrap_or(NonNull::dangling());
            return Ok(HostMemory { start, bytes, source: Source::Nothing });
        }
        let exhausted = || BackendError::Memory(format!("cannot allocate {bytes} bytes"));
        if bytes >= LARGE {
            return HostMemory::pages(bytes).ok_or_else(exhausted);
        }
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| exhausted())?.pad_to_align();
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(exhausted)?;
        Ok(HostMemory { start, bytes, source: Source::Heap(layout) })
    }

    /// Allocates whole pages, large ones if the system has them.
    fn pages(bytes: usize) -> Option<HostMemory> {
        let mut pages = MmapMut::map_anon(bytes.checked_add(LARGE_PAGE)?).ok()?;
        // Large pages are only a hint.
        #[cfg(target_os = "linux")]
        let _ = pages.advise(Advice::HugePage);
        let offset = pages.as_ptr().align_offset(LARGE_PAGE);
        let start = NonNull::from(pages.get_mut(offset..)?.first_mut()?);
        Some(HostMemory { start, bytes, source: Source::Pages(pages) })
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Source::Heap(layout) = self.source {
            // SAFETY: allocated in `new` with this layout, freed once.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

// SAFETY: it owns its bytes until it is dropped, and never moves them.
unsafe impl Memory for HostMemory {
    fn len(&self) -> usize {
        self.bytes
    }

    fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn is_on_host(&self) -> bool {
        true
    }
}

/// Copies host bytes to the start of `to`, which is memory of the host.
///
/// # Errors
/// When they do not fit.
pub fn write(to: &dyn Memory, data: &[u8]) -> Result<(), BackendError> {
    check_length(to, data.len(), "write")?;
    // SAFETY: `to` is valid for its length, checked above; `data` cannot overlap it, since there are no references to a
    // Memory's bytes.
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

/// Copies `bytes` of `from`, from the byte `start` on, to the start of `to`; both are host memory.
///
/// # Errors
/// When one of them is shorter, or not host memory.
pub fn copy(to: &dyn Memory, from: &dyn Memory, start: usize, bytes: usize) -> Result<(), BackendError> {
    check_length(to, bytes, "write")?;
    check_length(from, start.saturating_add(bytes), "read")?;
    if !(to.is_on_host() && from.is_on_host()) {
        return Err(BackendError::Memory("cannot copy what the host does not reach".into()));
    }
    // SAFETY: both are valid for their length, checked above; they may be one and the same.
    unsafe { std::ptr::copy(from.address().add(start), to.address(), bytes) }
    Ok(())
}

/// # Errors
/// When the memory has fewer bytes; `verb` names the operation.
pub fn check_length(memory: &dyn Memory, bytes: usize, verb: &str) -> Result<(), BackendError> {
    if bytes > memory.len() {
        return Err(BackendError::Memory(format!("cannot {verb} {bytes} bytes: the buffer has {}", memory.len())));
    }
    Ok(())
}
