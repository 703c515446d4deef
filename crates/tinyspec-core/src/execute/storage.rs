//! The memory of a realised tensor.

use super::Device;
use super::pool::Pool;
use crate::Result;
use std::sync::Arc;
use tinyspec_backends::Memory;

/// Memory on a device; returns to the device's pool when the last tensor lets go.
#[derive(Debug)]
pub(crate) struct Storage {
    device: Arc<Device>,
    /// Present until dropped.
    memory: Option<Arc<dyn Memory>>,
    address: *mut u8,
    class: usize,
    bytes: usize,
}

// SAFETY: the address is that of `memory`, which is Send + Sync; what is behind it is written only by plans that own
// the storage exclusively, before anyone else can see it.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Memory of `bytes` with undefined contents.
    pub fn allocate(device: &Arc<Device>, bytes: usize) -> Result<Storage> {
        let class = Pool::class(bytes);
        let memory = match device.pool().take(class) {
            Some(memory) => memory,
            None => device.runtime().allocate(class)?,
        };
        Ok(Storage { device: device.clone(), address: memory.address(), memory: Some(memory), class, bytes })
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

    /// Copies the start of the contents to the host.
    pub fn read(&self, data: &mut [u8]) -> Result<()> {
        match &self.memory {
            Some(memory) if !data.is_empty() => Ok(self.device.runtime().read(&**memory, data)?),
            _ => Ok(()),
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.device.pool().give(self.class, memory);
        }
    }
}
