//! What this machine's processor can do. Nothing here needs LLVM: a program whose kernels are all cached runs without.

use crate::Target;
use std::sync::OnceLock;
use tinyspec_ir::instruction::Instruction;
use tinyspec_ir::{DType, Op};

/// Facts of the host's processor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    /// Model and instruction sets: objects made on one host run on another of equal fingerprint.
    pub fingerprint: String,
    /// Bytes of the widest vector register that arithmetic is fast in.
    pub vector_bytes: usize,
    /// Number of vector registers.
    pub vector_registers: usize,
    /// Fused multiply-add.
    pub fused_multiply_add: bool,
    /// AVX-512 with its byte, double-word and short-vector parts: masks are registers.
    pub avx512: bool,
    /// Products of pairs in one instruction: of i16 (VNNI), of bf16.
    pub tensor_cores: [bool; 2],
    /// Vector conversions between f16 and f32.
    pub half_conversions: bool,
    /// Bytes of the first- and second-level data caches of a core, and of the last one.
    pub cache_bytes: [usize; 3],
    /// Threads this process may run at once.
    pub threads: usize,
}

/// Tests each named feature at run time, giving the list of those present.
#[cfg(target_arch = "x86_64")]
macro_rules! present {
    ($($name:tt)*) => { [$(($name, std::arch::is_x86_feature_detected!($name))),*] };
}
#[cfg(target_arch = "aarch64")]
macro_rules! present {
    ($($name:tt)*) => { [$(($name, std::arch::is_aarch64_feature_detected!($name))),*] };
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<(&'static str, bool)> {
    present!("sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "movbe"
        "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx512vbmi" "avx512vbmi2" "avx512vnni" "avx512bitalg"
        "avx512vpopcntdq" "avx512ifma" "avx512bf16" "gfni" "vaes" "vpclmulqdq" "sha" "adx" "tbm" "sse4a")
    .into()
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<(&'static str, bool)> {
    present!("neon" "fp16" "fhm" "dotprod" "bf16" "i8mm" "lse" "rdm" "fcma" "sve" "sve2").into()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<(&'static str, bool)> {
    Vec::new()
}

/// Vendor, family and model: they choose instruction timings.
fn model() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        // SAFETY: every x86-64 processor has CPUID with leaves 0 and 1. (Newer compilers know it is safe.)
        #[allow(unused_unsafe)]
        let (vendor, signature) = unsafe { (__cpuid(0), __cpuid(1)) };
        format!("{:08x}{:08x}{:08x}-{:08x}", vendor.ebx, vendor.edx, vendor.ecx, signature.eax)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // The main identification register of AArch64, where the system shows it.
        std::fs::read_to_string("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1")
            .map_or_else(|_| "unknown".into(), |text| text.trim().into())
    }
}

impl Host {
    /// The machine that this program runs on. It is looked at once: the caches alone are a hundred calls of the system.
    pub fn detect() -> Host {
        static HOST: OnceLock<Host> = OnceLock::new();
        HOST.get_or_init(Host::look).clone()
    }

    fn look() -> Host {
        let features = features();
        let has = |name: &str| features.iter().any(|(feature, present)| *feature == name && *present);
        let x86 = cfg!(target_arch = "x86_64");
        let avx512 = ["avx512f", "avx512bw", "avx512dq", "avx512vl"].into_iter().all(has);
        let names: Vec<&str> = features.iter().filter(|(_, present)| *present).map(|(name, _)| *name).collect();
        Host {
            fingerprint: format!("{}/{}/{}", std::env::consts::ARCH, model(), names.join(",")),
            vector_bytes: match (avx512, has("avx2")) {
                (true, _) => 64,
                (false, true) => 32,
                _ => 16,
            },
            vector_registers: if avx512 || !x86 { 32 } else { 16 },
            fused_multiply_add: has("fma") || !x86,
            avx512,
            tensor_cores: [avx512 && has("avx512vnni"), avx512 && has("avx512bf16")],
            half_conversions: has("f16c") || !x86,
            cache_bytes: [
                cache_bytes(1).unwrap_or(32 << 10),
                cache_bytes(2).unwrap_or(512 << 10),
                cache_bytes(3).unwrap_or(0),
            ],
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// This machine as a target of the lowering.
    pub fn target(&self) -> Target {
        Target {
            watches_races: false,
            tensor_cores: if self.tensor_cores[0] { vec![DType::I16] } else { Vec::new() },
            name: "cpu".into(),
            fingerprint: self.fingerprint.clone(),
            vector_bytes: self.vector_bytes,
            vector_registers: self.vector_registers,
            masked_access: self.avx512,
            fused_multiply_add: self.fused_multiply_add,
            // Two units with a latency of four cycles, on every processor of the last decade.
            accumulators: 8,
            threads: self.threads,
            cache_bytes: self.cache_bytes,
            instructions: if self.avx512 { Instruction::ALL.to_vec() } else { Vec::new() },
            native: vec![
                Op::Add,
                Op::Mul,
                Op::Max,
                Op::Div,
                Op::Recip,
                Op::Sqrt,
                Op::Trunc,
                Op::Mulacc,
                Op::Mod,
                Op::Idiv,
                Op::Shl,
                Op::Shr,
                Op::Cast,
                Op::Where,
            ],
            workgroups: None,
            arithmetic: vec![
                DType::Bool,
                DType::I8,
                DType::I16,
                DType::I32,
                DType::I64,
                DType::U8,
                DType::U16,
                DType::U32,
                DType::U64,
                DType::F32,
                DType::F64,
            ],
        }
    }
}

impl Host {
    /// This machine for programs to which subnormal numbers are as good as 0: it multiplies bf16 in pairs, where it can.
    pub fn flushing_target(&self) -> Target {
        let mut target = self.target();
        target.tensor_cores.extend(self.tensor_cores[1].then_some(DType::BF16));
        target
    }
}

/// Size of the data cache of this level, as the processor tells it, else Linux.
fn cache_bytes(level: u32) -> Option<usize> {
    if let Some(bytes) = crate::cpuid::data_cache(level) {
        return Some(bytes);
    }
    (0..8).find_map(|index| {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).ok();
        if read("level")?.trim() != level.to_string() || read("type")?.trim() == "Instruction" {
            return None;
        }
        let size = read("size")?;
        let (number, unit) = size.trim().split_at(size.trim().len().checked_sub(1)?);
        let scale = match unit {
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return size.trim().parse().ok(),
        };
        number.parse::<usize>().ok().map(|number| number * scale)
    })
}
