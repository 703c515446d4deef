//! Devices behind a vendor's driver. The common part of CUDA and HIP: finding and opening the library, memory,
//! kernels, launches and faults. The differences are data and a few functions, in `cuda.rs` and `hip.rs`.
//!
//! A driver is opened when its first device is requested, and never closed. All of its functions are looked up first.
//! Results of calls are plain numbers, because a newer driver may return values unknown here.
//!
//! A device has one stream, so everything runs in the order in which it is enqueued. A run only enqueues; reading
//! waits. Events mark finished work, so that an error names the kernel that failed, or those that may have
//! (`driver/flight.rs`). After a fault the driver refuses every call on the context: the device is *lost*
//! ([`BackendError::Lost`](crate::BackendError::Lost)), but the rest of the process continues.

mod blocks;
mod copies;
mod device;
mod events;
mod flight;
mod functions;
mod library;
mod runtime;
mod staging;

pub(super) use functions::{Functions, Names, functions};
pub(super) use library::{Library, Search};
pub(super) use runtime::open;

use super::{DriverError, Gpu};
use crate::settings::{self, UnknownSetting};
use std::ffi::{CString, c_int, c_void};
use std::fmt::Debug;

/// A context, stream, module or function of a driver.
pub(super) type Handle = *mut c_void;

/// Static facts about a vendor's driver.
#[derive(Debug)]
pub(super) struct Facts {
    pub search: Search,
    /// The names of the functions that all drivers have.
    pub names: Names,
    /// The oldest version that is supported, as the driver writes it.
    pub oldest: c_int,
    /// Formats such a version.
    pub show_version: fn(c_int) -> String,
    /// How to get a newer driver.
    pub update: &'static str,
    /// Advice for when the driver finds no device.
    pub no_device: &'static str,
    /// Statuses after which a device cannot be used again.
    pub lost: &'static [c_int],
}

/// The statuses for running out of memory and for finding no device, which CUDA and HIP share.
const OUT_OF_MEMORY: c_int = 2;
const NO_DEVICE: c_int = 100;
/// The status of an event that has not happened yet.
const NOT_READY: c_int = 600;

/// CUDA and HIP share flags, too: for streams that do not wait for the default stream, for pinned memory that all
/// devices can access, and for events without timing.
mod flag {
    pub const STREAM_NON_BLOCKING: u32 = 1;
    pub const PINNED_FOR_ALL: u32 = 1;
    pub const EVENT_WITHOUT_TIME: u32 = 2;
    pub const EVENT_WITH_TIME: u32 = 0;
}

/// A vendor's own functions, and the differences between the drivers.
pub(super) trait Vendor: Sized + Send + Sync + Debug + 'static {
    const FACTS: &'static Facts;

    /// Looks up the functions that only this vendor has.
    ///
    /// # Errors
    /// The names that the library does not export.
    fn find(library: &Library) -> Result<Self, Vec<&'static str>>;

    /// Name and description of a status.
    fn words(&self, status: c_int) -> Vec<String>;

    /// The product name of a device, and its chip.
    ///
    /// # Errors
    /// That of the driver.
    fn identify(&self, ordinal: c_int) -> Result<(String, String), Called>;

    /// Starts to use a device.
    ///
    /// # Errors
    /// That of the driver.
    fn retain(&self, ordinal: c_int) -> Result<Place, Called>;

    /// Ends what `retain` began.
    fn release(&self, place: Place);

    /// Directs the calls of this thread to a device.
    fn bind(&self, place: Place) -> Called;

    /// The name of the kernel in compiled code.
    ///
    /// # Errors
    /// When there is none; the error is a message.
    fn entry(&self, code: &[u8]) -> Result<CString, String>;

    /// Loads compiled code in which there is a kernel.
    ///
    /// # Errors
    /// The call that failed, and the driver's log.
    fn load(&self, code: &[u8]) -> Result<Handle, (Called, String)>;

    /// Enqueues a copy from another device, in a stream of the one it goes to, which is bound.
    ///
    /// # Safety
    /// There must be this many bytes at both addresses until it is done.
    unsafe fn copy_from(&self, to: (Place, u64), from: (Place, u64), bytes: usize, stream: Handle) -> Called;

    /// Passes parameters of 8 bytes each to a launch, as an array of pointers or as a list of extras.
    fn pass(&self, parameters: &mut [u64], launch: impl FnOnce(*mut *mut c_void, *mut *mut c_void) -> Called)
    -> Called;
}

/// A device, as its driver identifies it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub ordinal: c_int,
    /// The context, 0 if the driver has none.
    pub context: usize,
}

/// A function that was called, and the status that it returned.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(super) struct Called {
    pub function: &'static str,
    pub status: c_int,
}

impl Called {
    /// # Errors
    /// The call itself, if it failed.
    pub fn check(self) -> Result<(), Called> {
        if self.status == 0 { Ok(()) } else { Err(self) }
    }
}

/// A call that failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub call: &'static str,
    pub status: c_int,
    /// The driver's description of the status.
    pub text: String,
    pub kind: FailureKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// There is no memory left.
    Memory,
    /// The device is unusable until the process ends.
    Lost,
    /// The call had no effect.
    Refused,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} failed with {} ({})", self.call, self.text, self.status)
    }
}

/// The driver of this process.
#[derive(Debug)]
pub(super) struct Driver<V> {
    library: Library,
    functions: Functions,
    vendor: V,
}

impl<V: Vendor> Driver<V> {
    /// Opens the library, resolves every function, and only then calls the first.
    ///
    /// # Errors
    /// When there is none, it is incomplete or too old, or it finds no device.
    pub fn open() -> Result<Driver<V>, DriverError> {
        let facts = V::FACTS;
        let library = facts.search.open()?;
        let (functions, vendor) = match (Functions::find(&library, &facts.names), V::find(&library)) {
            (Ok(functions), Ok(vendor)) => (functions, vendor),
            (functions, vendor) => {
                let missing = [functions.err(), vendor.err()].into_iter().flatten().flatten().collect();
                return Err(DriverError::Incomplete { library: library.path().into(), missing, help: facts.update });
            }
        };
        let driver = Driver { library, functions, vendor };
        // SAFETY: this is the first call.
        let initialised = unsafe { driver.functions.initialise(0) };
        let mut version = 0;
        // SAFETY: the version is written to a local variable. It can be queried even if initialisation failed.
        let _ = unsafe { driver.functions.version(&mut version) };
        if version > 0 && version < facts.oldest {
            return Err(DriverError::TooOld {
                library: driver.library.path().into(),
                found: (facts.show_version)(version),
                needed: (facts.show_version)(facts.oldest),
                help: facts.update,
            });
        }
        driver.check_open(initialised)?;
        Ok(driver)
    }

    /// The number of devices.
    fn count(&self) -> Result<c_int, DriverError> {
        let mut count = 0;
        // SAFETY: the number is written to a local variable.
        self.check_open(unsafe { self.functions.count(&mut count) })?;
        Ok(count.max(0))
    }

    /// Checks a call that a device cannot be opened without.
    fn check_open(&self, called: Called) -> Result<(), DriverError> {
        called.check().map_err(|called| self.unusable(called))
    }

    fn unusable(&self, called: Called) -> DriverError {
        let (library, failure) = (self.library.path().into(), self.failure(called));
        match failure.status {
            NO_DEVICE => DriverError::NoDevice { library, reason: failure.text, help: V::FACTS.no_device },
            code => DriverError::Failed { library, call: failure.call, code, text: failure.text },
        }
    }

    fn check(&self, called: Called) -> Result<(), Failure> {
        called.check().map_err(|called| self.failure(called))
    }

    /// The driver's status for running out of memory.
    fn no_memory(&self) -> Called {
        Called { function: V::FACTS.names.allocate, status: OUT_OF_MEMORY }
    }

    fn failure(&self, Called { function, status }: Called) -> Failure {
        let kind = match status {
            OUT_OF_MEMORY => FailureKind::Memory,
            status if V::FACTS.lost.contains(&status) => FailureKind::Lost,
            _ => FailureKind::Refused,
        };
        let words = self.vendor.words(status);
        let text = if words.is_empty() { "an unknown error".into() } else { words.join(", ") };
        // `cuda.h` renames the second version of a function to the first.
        Failure { call: function.trim_end_matches("_v2"), status, text, kind }
    }
}

/// The chip in the table whose code a device with `chip` runs.
fn gpu_of(name: &str, product: &str, chip: &str) -> Result<Gpu, DriverError> {
    let is_of_vendor = |name: &&str| name.starts_with("sm_") == chip.starts_with("sm_");
    let admitted = admitted()?;
    let names: Vec<_> = admitted.iter().map(|gpu| gpu.name).filter(is_of_vendor).collect();
    Gpu::for_device_among(admitted, chip).ok_or_else(|| DriverError::Chip {
        name: name.into(),
        device: product.into(),
        chip: chip.into(),
        is_limited: names.len() < Gpu::names().filter(is_of_vendor).count(),
        admitted: names,
    })
}

/// The chips that code may be generated for: those named by `TINYSPEC_GPU`, or all.
fn admitted() -> Result<Vec<Gpu>, UnknownSetting> {
    let expected = format!("chips, one or several of {}", Gpu::names().collect::<Vec<_>>().join(", "));
    let named = settings::read_list("TINYSPEC_GPU", &expected, |name| Gpu::named(name).ok())?;
    Ok(named.unwrap_or_else(|| super::table::rows().collect()))
}
