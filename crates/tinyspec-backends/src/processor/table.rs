//! The named processors, one per row.

use super::{Architecture, Isa, Numbers, Processor};
use crate::Rates;
use tinyspec_ir::DType;

/// A row of the table.
pub(super) struct Row {
    /// Its name, which is also LLVM's.
    pub name: &'static str,
    architecture: Architecture,
    features: &'static [&'static [&'static str]],
    /// KiB of the three levels of data caches.
    caches: [usize; 3],
    multiply_adds: usize,
    dots: &'static [DType],
    numbers: Numbers,
    /// Throughput and bandwidth of a core.
    pub rates: Rates,
    /// CPUID families, each with its first and last model; on AArch64 implementers and part numbers.
    models: &'static [(u32, [u32; 2])],
}

/// The instruction sets of the level x86-64-v3.
const V3: &[&str] =
    &["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "movbe"];
/// The instruction sets that x86-64-v4 adds.
const V4: &[&str] = &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
/// The extensions of AVX-512 since Ice Lake and Zen 4.
const WORDS: &[&str] =
    &["avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg", "avx512vpopcntdq", "avx512ifma", "avx512bf16", "gfni"];
/// Features beyond the levels, on all processors of the table.
const CRYPTO: &[&str] = &["sha", "adx", "vaes", "vpclmulqdq"];
/// The extensions of Neoverse V2 beyond Armv8.0.
const NEOVERSE: &[&str] = &["neon", "fp16", "fhm", "dotprod", "bf16", "i8mm", "lse", "rdm", "fcma", "sve", "sve2"];

const X86: Architecture = Architecture::X86_64;

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row { name: "x86-64-v3", architecture: X86, features: &[V3], caches: [32, 512, 16 << 10], multiply_adds: 8, dots: &[], numbers: Numbers::Typical, rates: Rates::TYPICAL, models: &[] },
    Row { name: "x86-64-v4", architecture: X86, features: &[V3, V4], caches: [32, 1024, 16 << 10], multiply_adds: 8, dots: &[], numbers: Numbers::Typical, rates: Rates::TYPICAL, models: &[] },
    Row { name: "znver3", architecture: X86, features: &[V3, CRYPTO], caches: [32, 512, 32 << 10], multiply_adds: 8, dots: &[], numbers: Numbers::Published("AMD 56665, Software Optimization Guide for AMD Family 19h Processors"), rates: Rates::ZEN3, models: &[(0x19, [0x00, 0x0f]), (0x19, [0x20, 0x5f])] },
    Row { name: "znver4", architecture: X86, features: &[V3, V4, WORDS, CRYPTO], caches: [32, 1024, 32 << 10], multiply_adds: 8, dots: &[DType::U8, DType::I16, DType::BF16], numbers: Numbers::Published("AMD 57647, Software Optimization Guide for the AMD Zen4 Microarchitecture"), rates: Rates::ZEN4, models: &[(0x19, [0x10, 0x1f]), (0x19, [0x60, 0xaf])] },
    Row { name: "znver5", architecture: X86, features: &[V3, V4, WORDS, CRYPTO], caches: [48, 1024, 32 << 10], multiply_adds: 8, dots: &[DType::U8, DType::I16, DType::BF16], numbers: Numbers::Published("AMD 58455, Software Optimization Guide for the AMD Zen5 Microarchitecture"), rates: Rates::ZEN5, models: &[(0x1a, [0x00, 0xff])] },
    Row { name: "sapphirerapids", architecture: X86, features: &[V3, V4, WORDS, CRYPTO], caches: [48, 2048, 60 << 10], multiply_adds: 8, dots: &[DType::U8, DType::I16], numbers: Numbers::Published("Intel 248966, Intel 64 and IA-32 Architectures Optimization Reference Manual"), rates: Rates::SAPPHIRE_RAPIDS, models: &[(6, [0x8f, 0x8f]), (6, [0xcf, 0xcf])] },
    Row { name: "neoverse-v2", architecture: Architecture::Aarch64, features: &[NEOVERSE], caches: [64, 2048, 36 << 10], multiply_adds: 16, dots: &[DType::U8, DType::BF16], numbers: Numbers::Published("Arm Neoverse V2 Core Software Optimization Guide"), rates: Rates::NEOVERSE_V2, models: &[(0x41, [0xd4f, 0xd4f])] },
];

impl Row {
    pub fn processor(&self) -> Processor {
        Processor {
            name: self.name,
            isa: Isa { architecture: self.architecture, cpu: self.name.into(), features: self.features.concat() },
            cache_bytes: self.caches.map(|kibibytes| kibibytes << 10),
            multiply_adds: self.multiply_adds,
            dots: self.dots.to_vec(),
            rates: self.rates,
            numbers: self.numbers,
            model: String::new(),
        }
    }

    /// Whether this is its family and model.
    pub fn is_model(&self, family: u32, model: u32) -> bool {
        let matches = |&(own, [first, last]): &(u32, [u32; 2])| own == family && (first..=last).contains(&model);
        self.models.iter().any(matches)
    }
}
