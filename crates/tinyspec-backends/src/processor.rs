//! Processors as data. Lowering depends on the requested processor, never on the one that does the lowering.
//!
//! [`Processor::named`] finds one in the table; [`Processor::native`] is the host, by CPUID. Nothing here needs LLVM,
//! so a program whose kernels are all cached runs without it.

mod host;
mod table;

pub use host::threads;

use crate::settings::{self, UnknownSetting};
use crate::target::{LLVM_DTYPES, LLVM_OPS};
use crate::{Rates, Target};
use std::fmt;
use tinyspec_ir::DType;
use tinyspec_ir::instruction::Instruction;

/// The variable that names the processor of the device `cpu`.
pub const VARIABLE: &str = "TINYSPEC_CPU";

/// A family of instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// NVIDIA GPUs, through PTX.
    Nvptx64,
    /// AMD GPUs.
    Amdgcn,
}

impl Architecture {
    /// LLVM's name of it; for CPUs, also Rust's.
    pub const fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
            Architecture::Nvptx64 => "nvptx64",
            Architecture::Amdgcn => "amdgcn",
        }
    }

    /// Whether kernels run as workgroups of threads.
    pub const fn is_gpu(self) -> bool {
        matches!(self, Architecture::Nvptx64 | Architecture::Amdgcn)
    }

    /// The one that this program was compiled for; `None` if it is not listed here.
    pub fn of_host() -> Option<Architecture> {
        [Architecture::X86_64, Architecture::Aarch64].into_iter().find(|known| known.name() == std::env::consts::ARCH)
    }
}

/// An instruction set, for which machine code is generated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Isa {
    /// The family.
    pub architecture: Architecture,
    /// LLVM's name of the processor, which chooses instructions and their timings; `native` for the host.
    pub cpu: String,
    /// Instruction sets that the code may use, by their names in Rust.
    pub features: Vec<&'static str>,
}

impl Isa {
    pub(crate) fn has(&self, feature: &str) -> bool {
        self.features.contains(&feature)
    }

    /// AVX-512 with its byte, double-word and short-vector parts: masks are registers.
    fn has_avx512(&self) -> bool {
        ["avx512f", "avx512bw", "avx512dq", "avx512vl"].into_iter().all(|feature| self.has(feature))
    }

    /// Bytes of the widest vector register with fast arithmetic.
    pub(crate) fn vector_bytes(&self) -> usize {
        match (self.has_avx512(), self.has("avx2")) {
            (true, _) => 64,
            (false, true) => 32,
            _ => 16,
        }
    }

    /// The features that the host lacks to run such code; `None` if it lacks none.
    pub fn missing_on_host(&self) -> Option<String> {
        if Architecture::of_host() != Some(self.architecture) {
            return Some(format!("it is {}, this machine is {}", self.architecture.name(), std::env::consts::ARCH));
        }
        let present = host::features();
        let missing: Vec<&str> = self.features.iter().copied().filter(|name| !present.contains(name)).collect();
        (!missing.is_empty()).then(|| format!("this machine lacks {}", missing.join(", ")))
    }
}

/// The origin of the numbers of a [`Processor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Reported by the machine itself.
    Detected,
    /// From a publication; not measured here.
    Published(&'static str),
    /// Typical of the processors of such an instruction set.
    Typical,
}

/// A processor: everything that lowering and code generation depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Processor {
    /// Its name, as in [`VARIABLE`].
    pub name: &'static str,
    /// Its instructions.
    pub isa: Isa,
    /// Bytes of the first- and second-level data caches of a core, and of the shared last-level cache; 0 for none.
    pub cache_bytes: [usize; 3],
    /// Throughput and bandwidth of a core.
    pub rates: Rates,
    /// Fused multiply-adds in flight: latency times throughput.
    pub multiply_adds: usize,
    /// Types whose dot instruction has a higher throughput than f32 multiply-adds (see [`Target::tensor_cores`]).
    /// Intel's bf16 instruction issues every other cycle, so it does not count.
    pub dots: Vec<DType>,
    /// The origin of these numbers.
    pub numbers: Numbers,
    /// Distinguishes it from others of this name: for the host, its model.
    pub model: String,
}

/// The error for an unknown processor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no processor `{name}`; there are: {}", Processor::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownProcessor {
    /// The requested name.
    pub name: String,
}

impl Processor {
    /// The names that [`Processor::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once(host::NAME).chain(table::ROWS.iter().map(|row| row.name))
    }

    /// The processor of this name; `native` is the host.
    ///
    /// ```
    /// use tinyspec_backends::Processor;
    /// let zen4 = Processor::named("znver4")?;
    /// assert_eq!(zen4.target(8).vector_bytes, 64);
    /// assert_eq!(Processor::named("neoverse-v2")?.target(1).vector_bytes, 16);
    /// assert!(Processor::named("z80").is_err());
    /// # Ok::<(), tinyspec_backends::UnknownProcessor>(())
    /// ```
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Processor, UnknownProcessor> {
        if name == host::NAME {
            return Ok(Processor::native());
        }
        let row = table::ROWS.iter().find(|row| row.name == name);
        row.map(table::Row::processor).ok_or_else(|| UnknownProcessor { name: name.into() })
    }

    /// The host.
    pub fn native() -> Processor {
        host::processor()
    }

    /// The processor that [`VARIABLE`] names, else the host.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn chosen() -> Result<Processor, UnknownSetting> {
        let known = Processor::names().collect::<Vec<_>>().join(", ");
        let named = settings::read(VARIABLE, &format!("a processor: {known}"), |name| Processor::named(name).ok())?;
        Ok(named.unwrap_or_else(Processor::native))
    }

    /// The processor as a target of lowering, with this many threads.
    pub fn target(&self, threads: usize) -> Target {
        let is_x86 = self.isa.architecture == Architecture::X86_64;
        Target {
            name: "cpu".into(),
            fingerprint: format!("{}/{}", self.name, self.model),
            isa: Some(self.isa.clone()),
            vector_bytes: self.isa.vector_bytes(),
            vector_registers: if is_x86 && !self.isa.has_avx512() { 16 } else { 32 },
            masked_access: self.isa.has_avx512(),
            fused_multiply_add: !is_x86 || self.isa.has("fma"),
            accumulators: self.multiply_adds,
            watches_races: false,
            threads: threads.max(1),
            cache_bytes: self.cache_bytes,
            rates: self.rates,
            native: LLVM_OPS.to_vec(),
            instructions: if self.isa.has_avx512() { &Instruction::ALL[..] } else { &Instruction::HINTS }.to_vec(),
            tensor_cores: self.dots.clone(),
            arithmetic: LLVM_DTYPES.to_vec(),
            workgroups: None,
        }
    }

    /// As [`target`](Self::target), but with the host's instructions, so that kernels lowered for this processor run here.
    /// Instructions and dot products that the host lacks are left out.
    ///
    /// ```
    /// use tinyspec_backends::Processor;
    ///
    /// let target = Processor::named("x86-64-v4")?.target_on_host(1);
    /// assert_eq!((target.vector_bytes, target.isa), (64, Some(Processor::native().isa)));
    /// # Ok::<(), tinyspec_backends::UnknownProcessor>(())
    /// ```
    pub fn target_on_host(&self, threads: usize) -> Target {
        let host = Processor::native().target(threads);
        let mut target = self.target(threads);
        target.fingerprint = format!("{} on {}", target.fingerprint, host.fingerprint);
        target.isa = host.isa;
        target.fused_multiply_add &= host.fused_multiply_add;
        target.instructions.retain(|instruction| host.instructions.contains(instruction));
        target.tensor_cores.retain(|dtype| host.tensor_cores.contains(dtype));
        target
    }
}

/// ```
/// let text = tinyspec_backends::Processor::named("znver4")?.to_string();
/// assert!(text.starts_with("znver4: x86_64, vectors of 64 bytes, caches of 32, 1024 and 32768 KiB (published: AMD 57647"));
/// # Ok::<(), tinyspec_backends::UnknownProcessor>(())
/// ```
impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, last] = self.cache_bytes.map(|bytes| bytes >> 10);
        let (architecture, vector) = (self.isa.architecture.name(), self.isa.vector_bytes());
        write!(f, "{}: {architecture}, vectors of {vector} bytes, ", self.name)?;
        write!(f, "caches of {first}, {second} and {last} KiB ({})", self.numbers)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Numbers::Detected => f.write_str("detected"),
            Numbers::Published(publication) => write!(f, "published: {publication}"),
            Numbers::Typical => f.write_str("typical of the level"),
        }
    }
}

impl Target {
    /// The host, with as many threads as this process may run in parallel.
    pub fn native() -> Target {
        Processor::native().target(host::threads())
    }
}
