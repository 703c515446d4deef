//! The memory of a realised tensor.

use super::shortage::relieve;
use super::{Owner, Pool};
use crate::device::Device;
use crate::error::size;
use crate::{Error, Result};
use std::sync::Arc;
use tinyspec_backends::host_memory::check_length;
use tinyspec_backends::{BackendError, Memory};

/// Memory on a device, which returns to the device's pool when the last reference is dropped.
#[derive(Debug)]
pub(crate) struct Storage {
    device: Arc<Device>,
    /// Present until dropped.
    memory: Option<Arc<dyn Memory>>,
    address: *mut u8,
    class: usize,
    bytes: usize,
    ticket: u64,
}

// SAFETY: the address is that of `memory`, which is Send + Sync; its contents are written only by plans that own the
// storage exclusively, before anyone else can see it.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Memory of `bytes` with undefined contents.
    ///
    /// # Errors
    /// When the device has no more, may hold no more, or is lost.
    pub fn allocate(device: &Arc<Device>, bytes: usize, owner: &Owner) -> Result<Storage> {
        match Storage::attempt(device, bytes, owner) {
            Err(Error::Memory { .. }) if relieve() => Storage::attempt(device, bytes, owner),
            done => done,
        }
    }

    fn attempt(device: &Arc<Device>, bytes: usize, owner: &Owner) -> Result<Storage> {
        let pool = device.pool();
        let leased = Pool::class(bytes).and_then(|class| Some((class, pool.lease(class, bytes, owner)?)));
        let Some((class, lease)) = leased else { return Err(refused(device, bytes, owner, None)) };
        let allocate = || device.runtime().allocate(class);
        let allocated = || match allocate() {
            Err(BackendError::Memory(_)) => {
                // The pool may hold the memory that the device lacks.
                pool.forget();
                allocate()
            }
            done => done,
        };
        let memory = lease.memory.map_or_else(allocated, Ok);
        let ticket = lease.ticket;
        match memory {
            Ok(memory) => Ok(Storage {
                device: device.clone(),
                address: memory.address(),
                memory: Some(memory),
                class,
                bytes,
                ticket,
            }),
            Err(error) => {
                pool.give(ticket, class, None);
                Err(match error {
                    BackendError::Memory(_) => refused(device, bytes, owner, Some(error.to_string())),
                    other => other.into(),
                })
            }
        }
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn address(&self) -> *mut u8 {
        self.address
    }

    /// Fills new storage.
    pub fn write(&self, data: &[u8]) -> Result<()> {
        match &self.memory {
            Some(memory) => Ok(self.device.runtime().write(&**memory, data)?),
            None => Ok(()),
        }
    }

    /// Fills new storage with what `from` holds from the byte `start` on.
    pub fn copy(&self, from: &Storage, start: usize) -> Result<()> {
        let (Some(to), Some(memory)) = (&self.memory, &from.memory) else { return Ok(()) };
        let (here, there) = (self.device.runtime(), from.device.runtime());
        if here.copy(&**to, &**memory, start, self.bytes)? {
            return Ok(());
        }
        check_length(&**memory, start.saturating_add(self.bytes), "read")?;
        // SAFETY: checked above.
        let first = unsafe { memory.address().add(start) };
        if memory.is_on_host() {
            there.synchronize()?;
            // SAFETY: that many bytes are accessible to the host, and nobody writes them: their device is idle, and
            // `from` is borrowed.
            return Ok(here.write(&**to, unsafe { std::slice::from_raw_parts(first, self.bytes) })?);
        }
        let mut data = vec![0; self.bytes];
        from.read(start, &mut data)?;
        self.write(&data)
    }

    /// Copies the contents to the host, beginning at the byte `start`.
    pub fn read(&self, start: usize, data: &mut [u8]) -> Result<()> {
        let Some(memory) = self.memory.as_ref().filter(|_| !data.is_empty()) else { return Ok(()) };
        if start == 0 {
            return Ok(self.device.runtime().read(&**memory, data)?);
        }
        check_length(&**memory, start.saturating_add(data.len()), "read")?;
        // SAFETY: that many bytes exist, as checked above, and nobody else writes them.
        unsafe { self.device.runtime().read_at(memory.address().add(start), data)? };
        Ok(())
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.device.pool().give(self.ticket, self.class, self.memory.take());
    }
}

/// `reason` is that of the device; without one, the limit was exceeded.
fn refused(device: &Device, bytes: usize, owner: &Owner, reason: Option<String>) -> Error {
    Error::Memory {
        wanted: format!("{owner} of {}", size(bytes as u64)),
        reason: reason.unwrap_or_else(|| "the limit would be exceeded".into()),
        report: Box::new(device.memory()),
        location: owner.location().map(Into::into),
    }
}
