//! The registry of devices by name.

use super::pool::Pool;
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tinyspec_backends::{Compiler, Runtime, Target};
use tinyspec_ir::ContentHash;

/// A device: what it can do, its compiler and its runtime.
pub struct Device {
    id: tinyspec_ir::Device,
    name: Arc<str>,
    target: Target,
    target_hash: ContentHash,
    compiler: Arc<dyn Compiler>,
    runtime: Arc<dyn Runtime>,
    pool: Pool,
}

impl Device {
    pub(crate) fn new(name: &str, target: Target, compiler: Arc<dyn Compiler>, runtime: Arc<dyn Runtime>) -> Device {
        Device {
            id: tinyspec_ir::Device::new(name),
            name: name.into(),
            target_hash: target.hash(),
            target,
            compiler,
            runtime,
            pool: Pool::default(),
        }
    }

    /// The device as graphs name it.
    pub fn id(&self) -> &tinyspec_ir::Device {
        &self.id
    }

    /// Its name, such as `cpu`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it can do.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Identity of the target, for caches.
    pub fn target_hash(&self) -> ContentHash {
        self.target_hash
    }

    /// Renders kernels for it.
    pub fn compiler(&self) -> &dyn Compiler {
        &*self.compiler
    }

    /// Allocates and runs on it.
    pub fn runtime(&self) -> &dyn Runtime {
        &*self.runtime
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

type Registry = Mutex<FxHashMap<Arc<str>, Arc<Device>>>;

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(Registry::default)
}

/// Adds a device of one's own, or replaces the one of this name for tensors made from now on.
pub fn register(name: &str, target: Target, compiler: Arc<dyn Compiler>, runtime: Arc<dyn Runtime>) -> Arc<Device> {
    let device = Arc::new(Device::new(name, target, compiler, runtime));
    registry().lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), device.clone());
    device
}

/// The device of this name, opened on first use.
///
/// # Errors
/// When there is none.
pub fn device(name: &str) -> Result<Arc<Device>> {
    let mut registry = registry().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = registry.get(name) {
        return Ok(device.clone());
    }
    let Some((_, open)) = super::built_in::DEVICES.iter().find(|(known, _)| *known == name) else {
        let mut known: Vec<&str> = super::built_in::DEVICES.iter().map(|(name, _)| *name).collect();
        known.extend(registry.keys().map(|name| &**name).filter(|name| !super::built_in::is_built_in(name)));
        return Err(Error::UnknownDevice { name: name.into(), known: known.join(", ") });
    };
    let device = Arc::new(open(name));
    registry.insert(name.into(), device.clone());
    Ok(device)
}

/// The device of tensors that name none: `TINYSPEC_DEVICE`, else `cpu`.
///
/// # Errors
/// When `TINYSPEC_DEVICE` names no device.
pub fn default_device() -> Result<Arc<Device>> {
    static DEFAULT: OnceLock<Arc<Device>> = OnceLock::new();
    if let Some(device) = DEFAULT.get() {
        return Ok(device.clone());
    }
    let name = std::env::var("TINYSPEC_DEVICE").unwrap_or_else(|_| super::built_in::DEVICES[0].0.into());
    let opened = device(name.trim())?;
    Ok(DEFAULT.get_or_init(|| opened).clone())
}
