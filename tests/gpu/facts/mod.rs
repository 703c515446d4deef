//! Facts about GPUs that are documented, or assumed, and that only a GPU can show.

pub mod amd;
pub mod cuda;

use crate::Outcome;
use tinyspec::Device;

/// Something to know of a GPU.
pub struct Fact {
    /// What is claimed.
    pub claim: &'static str,
    /// The least compute capability that has the instructions, times 10; 0 where all chips have them.
    pub least: u32,
    /// Finds out; in words what was seen.
    pub check: fn(&Device) -> Outcome<String>,
}

/// Those of a vendor, by a chip's name.
pub fn of(chip: &str) -> &'static [Fact] {
    if chip.starts_with("gfx") { amd::FACTS } else { cuda::FACTS }
}

/// What the device says of a kernel that leaves its memory, and that it is of no more use then. For a process of its own.
///
/// # Errors
/// When the kernel is not found out.
pub fn fault(device: &Device) -> Outcome<String> {
    if device.target().name.starts_with("gfx") { amd::fault(device) } else { cuda::fault(device) }
}
