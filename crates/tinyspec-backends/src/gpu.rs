//! GPUs as data: the chips that code is generated for. None need be present; [`Gpu::named`] finds one in the table.

mod compile_only;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(any(feature = "cuda", feature = "amdgpu"))]
mod driver;
mod driver_error;
#[cfg(feature = "amdgpu")]
pub mod hip;
pub mod intrinsics;
#[cfg(feature = "cuda")]
pub mod ptxas;
mod table;

pub use compile_only::CompileOnly;
pub use driver_error::{Attempt, DriverError};

use crate::processor::{Architecture, Isa};
use crate::target::{LLVM_DTYPES, LLVM_OPS};
use crate::{Rates, Target, Workgroups};
use std::fmt;

/// A chip: everything that lowering and code generation depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gpu {
    /// Its name, such as `sm_80` or `gfx942`, which is also LLVM's.
    pub name: &'static str,
    /// The instruction set.
    pub architecture: Architecture,
    /// The limits of a launch.
    pub workgroups: Workgroups,
    /// The most 32-bit registers of a thread.
    pub thread_registers: usize,
    /// The 32-bit registers shared by all threads of a workgroup.
    pub workgroup_registers: usize,
}

/// A name that no chip has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no GPU `{name}`; there are: {}", Gpu::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownGpu {
    /// The requested name.
    pub name: String,
}

impl Gpu {
    /// The names that [`Gpu::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        table::rows().map(|row| row.name)
    }

    /// The chip of this name in the table.
    ///
    /// ```
    /// use tinyspec_backends::Gpu;
    /// assert_eq!(Gpu::named("sm_80")?.workgroups.warp, 32);
    /// assert_eq!(Gpu::named("gfx942")?.workgroups.warp, 64);
    /// assert!(Gpu::named("sm_81").is_err());
    /// # Ok::<(), tinyspec_backends::UnknownGpu>(())
    /// ```
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Gpu, UnknownGpu> {
        let row = table::rows().find(|row| row.name == name);
        row.ok_or_else(|| UnknownGpu { name: name.into() })
    }

    /// The chip whose code a device of this name runs: for NVIDIA, the one with the greatest compute capability not
    /// above the device's, where names that end with `a` only match the device itself; for AMD, the chip itself.
    ///
    /// ```
    /// use tinyspec_backends::Gpu;
    /// let base = |name| Gpu::for_device(name).map(|gpu| gpu.name);
    /// assert_eq!(base("sm_87")?, "sm_86");
    /// assert_eq!(base("sm_90a")?, "sm_90a");
    /// assert_eq!(base("sm_103a")?, "sm_100");
    /// assert_eq!(base("gfx942:sramecc+:xnack-")?, "gfx942");
    /// assert!(base("sm_70").is_err() && base("gfx906").is_err());
    /// # Ok::<(), tinyspec_backends::UnknownGpu>(())
    /// ```
    ///
    /// # Errors
    /// When the device runs the code of no chip in the table.
    pub fn for_device(name: &str) -> Result<Gpu, UnknownGpu> {
        Gpu::for_device_among(table::rows().collect(), name).ok_or_else(|| UnknownGpu { name: name.into() })
    }

    /// As [`Gpu::for_device`], among some chips.
    fn for_device_among(chips: Vec<Gpu>, name: &str) -> Option<Gpu> {
        let chip = name.split(':').next().unwrap_or(name);
        // The chip itself fits best. Compared by name too, since an `a` variant has no capability.
        let fit = |gpu: &Gpu| (gpu.name == chip, capability(gpu.name));
        chips.into_iter().filter(|gpu| runs(chip, gpu.name)).max_by_key(fit)
    }

    /// Whether this chip runs code compiled for the named chip. Every chip runs its own code; NVIDIA's also run that of chips
    /// with a lower compute capability, except `a` variants.
    ///
    /// ```
    /// use tinyspec_backends::Gpu;
    /// assert!(Gpu::named("sm_90a")?.runs("sm_80") && !Gpu::named("sm_90")?.runs("sm_90a"));
    /// assert!(!Gpu::named("gfx942")?.runs("gfx90a"));
    /// # Ok::<(), tinyspec_backends::UnknownGpu>(())
    /// ```
    pub fn runs(&self, made_for: &str) -> bool {
        runs(self.name, made_for)
    }

    /// The chip as a target of the lowering.
    pub fn target(&self) -> Target {
        Target {
            name: self.name.into(),
            fingerprint: String::new(),
            isa: Some(Isa { architecture: self.architecture, cpu: self.name.into(), features: Vec::new() }),
            // A thread loads up to 16 bytes at once.
            vector_bytes: 16,
            vector_registers: 64,
            masked_access: false,
            fused_multiply_add: true,
            accumulators: 1,
            watches_races: false,
            threads: 1,
            // Threads keep values for reuse in registers; caches are not relied upon.
            cache_bytes: [0; 3],
            rates: Rates::TYPICAL,
            native: LLVM_OPS.to_vec(),
            instructions: Vec::new(),
            tensor_cores: Vec::new(),
            arithmetic: LLVM_DTYPES.to_vec(),
            workgroups: Some(self.workgroups.clone()),
        }
    }
}

/// [`Gpu::runs`], by names.
fn runs(device: &str, code: &str) -> bool {
    let capabilities = capability(device.trim_end_matches('a')).zip(capability(code));
    device == code || capabilities.is_some_and(|(device, code)| code <= device)
}

/// `sm_90` is 90. Chips that end with `a` have none, since their code runs on no other.
fn capability(name: &str) -> Option<u32> {
    name.strip_prefix("sm_")?.parse().ok()
}

/// ```
/// let text = tinyspec_backends::Gpu::named("gfx1100")?.to_string();
/// assert_eq!(text, "gfx1100: amdgcn, warps of 32, 64 KiB of LOCAL memory");
/// # Ok::<(), tinyspec_backends::UnknownGpu>(())
/// ```
impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (architecture, warp) = (self.architecture.name(), self.workgroups.warp);
        write!(f, "{}: {architecture}, warps of {warp}, ", self.name)?;
        write!(f, "{} KiB of LOCAL memory", self.workgroups.local_bytes >> 10)
    }
}
