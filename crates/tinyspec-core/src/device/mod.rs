//! Devices: their registry by name, and their memory.

mod built_in;
mod memory;

pub(crate) use memory::{Owner, Storage, on_shortage, size_of_environment};

use crate::error::MemoryReport;
use crate::{Error, Result, profile};
use memory::Pool;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tinyspec_backends::settings::{self, UnknownSetting};
use tinyspec_backends::{Compiler, Runtime, Target};
use tinyspec_ir::ContentHash;

/// A device: what it can do, its compiler and its runtime.
pub struct Device {
    id: tinyspec_ir::Device,
    name: Arc<str>,
    family: Arc<str>,
    target: Target,
    target_hash: ContentHash,
    code_hash: ContentHash,
    compiler: Arc<dyn Compiler>,
    runtime: Arc<dyn Runtime>,
    pool: Pool,
    moved: AtomicU64,
    in_host_memory: OnceLock<bool>,
}

impl Device {
    pub(crate) fn new(name: &str, target: Target, compiler: Arc<dyn Compiler>, runtime: Arc<dyn Runtime>) -> Device {
        Device {
            id: tinyspec_ir::Device::new(name),
            name: name.into(),
            family: name.into(),
            target_hash: target.hash(),
            code_hash: Target { threads: 0, ..target.clone() }.hash(),
            target,
            compiler,
            runtime,
            pool: Pool::default(),
            moved: AtomicU64::new(0),
            in_host_memory: OnceLock::new(),
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

    /// Makes the device a member of `family`, whose devices run each other's kernels.
    pub(super) fn of_family(self, family: &str) -> Device {
        Device { family: family.into(), ..self }
    }

    /// The devices whose kernels it runs: itself, or all virtual devices of one kind.
    pub(crate) fn family(&self) -> &str {
        &self.family
    }

    /// Whether it is the interpreter, which checks every access.
    pub(crate) fn is_interpreter(&self) -> bool {
        self.family() == "built-in interpreter"
    }

    /// Whether the host can access its memory while nothing is enqueued.
    pub(crate) fn is_in_host_memory(&self) -> bool {
        let is_on_host = || self.runtime.allocate(1).is_ok_and(|memory| memory.is_on_host());
        *self.in_host_memory.get_or_init(is_on_host)
    }

    /// Its capabilities.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Identity of the target, for caches.
    pub fn target_hash(&self) -> ContentHash {
        self.target_hash
    }

    /// Identity of what determines the code of a lowered kernel: the target without the number of threads, on which
    /// lowering depends but rendering does not. A container may allow a different number.
    pub(crate) fn code_hash(&self) -> ContentHash {
        self.code_hash
    }

    /// Renders kernels for it.
    pub fn compiler(&self) -> &dyn Compiler {
        &*self.compiler
    }

    /// Allocates and runs on it.
    pub fn runtime(&self) -> &dyn Runtime {
        &*self.runtime
    }

    /// Waits until everything enqueued on it is done. Reading a tensor waits by itself; measuring time needs this.
    ///
    /// # Errors
    /// The error of a kernel.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.runtime.synchronize()?)
    }

    /// A report of its memory use.
    pub fn memory(&self) -> MemoryReport {
        self.pool.report(&self.name)
    }

    /// Buffers of more than `bytes` together are refused from now on; `None` lifts the limit.
    /// `TINYSPEC_MEMORY` sets it for every device when it is opened.
    pub fn limit_memory(&self, bytes: Option<u64>) {
        self.pool.set_limit(bytes);
    }

    /// Bytes that kernels have read and written on it so far: each element that a kernel reaches counts once per
    /// kernel.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    pub(crate) fn count_moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
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

/// Adds a custom device, or replaces the one of this name for tensors made from now on.
pub fn register(name: &str, target: Target, compiler: Arc<dyn Compiler>, runtime: Arc<dyn Runtime>) -> Arc<Device> {
    let device = Arc::new(Device::new(name, target, compiler, runtime));
    registry().lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), device.clone());
    device
}

/// The device of this name, opened on first use.
///
/// # Errors
/// When there is none, and when an environment variable has an unknown value.
pub fn device(name: &str) -> Result<Arc<Device>> {
    let mut registry = registry().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = registry.get(name) {
        return Ok(device.clone());
    }
    profile::check_environment()?;
    let Some((kind, open)) = built_in::find(name) else {
        built_in::check_chip(name)?;
        let mut known: Vec<&str> = built_in::names().collect();
        let mut others: Vec<&str> =
            registry.keys().map(|name| &**name).filter(|name| built_in::find(name).is_none()).collect();
        others.sort_unstable();
        known.extend(others);
        let known = known.join(", ") + &built_in::chips();
        return Err(Error::UnknownDevice { op: None, name: name.into(), known, location: None });
    };
    let device = Arc::new(open(name)?.of_family(&format!("built-in {kind}")));
    device.limit_memory(memory::from_environment()?);
    registry.insert(name.into(), device.clone());
    Ok(device)
}

/// The device of tensors that name none: that of [`with_default_device`], of [`set_default_device`], of
/// `TINYSPEC_DEVICE`, else `cpu`.
///
/// # Errors
/// When `TINYSPEC_DEVICE` names no device.
pub fn default_device() -> Result<Arc<Device>> {
    if let Some(device) = SCOPED.with_borrow(|scoped| scoped.last().cloned()) {
        return Ok(device);
    }
    let mut default = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = &*default {
        return Ok(device.clone());
    }
    let opened = match settings::read(VARIABLE, "a device", |name| Some(name.to_string()))? {
        Some(name) => device(&name).map_err(|error| match error {
            Error::UnknownDevice { known, .. } => {
                UnknownSetting { variable: VARIABLE, value: name, expected: format!("a device: {known}") }.into()
            }
            error => error,
        })?,
        None => device(built_in::DEVICES[0].0)?,
    };
    Ok(default.insert(opened).clone())
}

/// Names the device of tensors that name none.
const VARIABLE: &str = "TINYSPEC_DEVICE";

static DEFAULT: Mutex<Option<Arc<Device>>> = Mutex::new(None);

thread_local! {
    static SCOPED: RefCell<Vec<Arc<Device>>> = const { RefCell::new(Vec::new()) };
}

/// Makes `name` the device of tensors that name none, for the whole process.
///
/// # Errors
/// When there is no such device.
pub fn set_default_device(name: &str) -> Result<()> {
    let device = device(name)?;
    *DEFAULT.lock().unwrap_or_else(PoisonError::into_inner) = Some(device);
    Ok(())
}

/// The device of the first of these places that names one, else the default device.
///
/// # Errors
/// When there is no such device.
pub(crate) fn device_of<'a>(mut places: impl Iterator<Item = Option<&'a tinyspec_ir::Device>>) -> Result<Arc<Device>> {
    match places.find_map(|place| place) {
        Some(tinyspec_ir::Device::Single(name)) => device(name),
        _ => default_device(),
    }
}

/// Runs `work` with `name` as the device of tensors that name none, on this thread.
///
/// # Errors
/// When there is no such device, or what `work` gives.
pub fn with_default_device<T, E: From<Error>>(name: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    /// Leaves the scope even when `work` panics.
    struct Scope;
    impl Drop for Scope {
        fn drop(&mut self) {
            SCOPED.with_borrow_mut(|scoped| scoped.pop());
        }
    }
    let device = device(name)?;
    SCOPED.with_borrow_mut(|scoped| scoped.push(device));
    let _scope = Scope;
    work()
}
