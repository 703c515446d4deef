//! What drivers of GPUs have in common, over the simulators: devices, memory, modules, streams, events, and what fails on demand.
//! `tinyspec-mock-cuda` and `tinyspec-mock-hip` export it under the names of the vendors' libraries.
//!
//! It is stricter than a driver where that helps: streams do nothing until somebody waits for them, handles are never used
//! again, and what a context must be current for refuses without one.

mod machine;
mod settings;

pub use machine::{Held, Kernel, Machine, Outcome, Source, Work};
pub use settings::Settings;

use std::ffi::{CStr, c_char, c_int};
use tinyspec_simulators::SimulatorError;

/// Why a call is refused. Each vendor has numbers and names of its own for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An argument is wrong.
    Value,
    /// There is no memory left.
    Memory,
    /// Nothing works before the driver is initialised.
    NotInitialised,
    /// There is no device at all.
    NoDevice,
    /// There is no such device.
    Device,
    /// The code cannot be read.
    Image,
    /// The code is in a format that is newer than the driver.
    Newer,
    /// The code is for another chip.
    OtherChip,
    /// No context is current, or another.
    Context,
    /// There is no such handle.
    Handle,
    /// A module has no such kernel.
    NotFound,
    /// An event has not happened yet.
    NotReady,
    /// A kernel left its memory.
    Address,
    /// A kernel's address is not a multiple of what it accesses.
    Misaligned,
    /// A kernel needs more than there is.
    Resources,
    /// A kernel ran for too long.
    Endless,
    /// A kernel failed in another way.
    Failed,
    /// The device's memory has lost bits.
    Broken,
    /// Something that no header has.
    Unknown,
}

/// The number of [`Refusal::Unknown`].
const UNKNOWN: c_int = 4242;

/// A refusal as a vendor says it: its number, its name, and what it means.
pub type Word = (Refusal, c_int, &'static CStr, &'static CStr);

/// What is a vendor's own.
#[derive(Debug)]
pub struct Vendor {
    /// The variable that says what fails.
    pub variable: &'static str,
    /// What it says where it is not set.
    pub settings: fn() -> Settings,
    /// All refusals but the unknown one.
    pub words: &'static [Word],
    /// A device is used by way of a context, which is retained and made current; else each thread has a current device.
    pub has_contexts: bool,
    /// Workgroups of a launch, by dimension.
    pub most_groups: [u32; 3],
}

impl Vendor {
    /// A result as a number.
    pub fn number(&self, outcome: Outcome) -> c_int {
        let Err(refusal) = outcome else { return 0 };
        self.words.iter().find(|word| word.0 == refusal).map_or(UNKNOWN, |word| word.1)
    }

    /// Name and meaning of a number; null for one that is unknown.
    pub fn texts(&self, number: c_int) -> [*const c_char; 2] {
        let known = self.words.iter().find(|word| word.1 == number);
        known.map_or([std::ptr::null(); 2], |word| [word.2.as_ptr(), word.3.as_ptr()])
    }
}

/// Gives a result.
///
/// # Errors
/// When there is no place for it.
///
/// # Safety
/// The pointer is null, or valid to be written.
pub unsafe fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(Refusal::Value);
    }
    // SAFETY: as the caller promises.
    unsafe { to.write(value) };
    Ok(())
}

/// A handle, which points to nothing.
pub fn pointer<T>(handle: usize) -> *mut T {
    std::ptr::without_provenance_mut(handle)
}

/// An ELF file of which only the address is given; it ends where its header says. Of anything else as much as a header has.
///
/// # Safety
/// There is such a file as a whole, or so many bytes.
pub unsafe fn image_of_file<'a>(image: *const u8) -> &'a [u8] {
    const HEADER: usize = 64;
    // SAFETY: as the caller promises.
    let header = unsafe { std::slice::from_raw_parts(image, HEADER) };
    let number =
        |range: std::ops::Range<usize>| header[range].iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte));
    // The headers of segments or those of sections come last.
    let tables = [(0x20..0x28, 0x36..0x38, 0x38..0x3a), (0x28..0x30, 0x3a..0x3c, 0x3c..0x3e)];
    let ends = tables.map(|(start, size, count)| number(start).saturating_add(number(size) * number(count)));
    let bytes = if header.starts_with(ELF) { ends[0].max(ends[1]).max(HEADER) } else { HEADER };
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(image, bytes) }
}

/// How such a file begins.
pub const ELF: &[u8] = b"\x7fELF";

/// Says on standard error what no status can.
pub fn say(error: &SimulatorError) {
    eprintln!("mock: {error}");
}

/// Exports functions that give a result by its number.
#[macro_export]
macro_rules! exports {
    ($vendor:path; $($(#[$doc:meta])* fn $function:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$doc])*
            /// # Safety
            /// As in the vendor's documentation: pointers are valid for what is read or written.
            #[allow(non_snake_case, clippy::too_many_arguments)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function($($argument: $type),*) -> ::std::ffi::c_int {
                let answer = || -> $crate::Outcome { $body };
                $vendor.number(answer())
            }
        )*
    };
}
