//! The host processor.

use super::{Architecture, Isa, Numbers, Processor, table};
use crate::Rates;
use std::sync::OnceLock;
use tinyspec_ir::DType;

pub(super) const NAME: &str = "native";

/// Tests each named feature at run time, and returns those present.
#[cfg(target_arch = "x86_64")]
macro_rules! present {
    ($($name:tt)*) => { [$(($name, std::arch::is_x86_feature_detected!($name))),*] };
}
#[cfg(target_arch = "aarch64")]
macro_rules! present {
    ($($name:tt)*) => { [$(($name, std::arch::is_aarch64_feature_detected!($name))),*] };
}

/// Instruction sets that this machine has.
pub(super) fn features() -> &'static [&'static str] {
    static FEATURES: OnceLock<Vec<&'static str>> = OnceLock::new();
    FEATURES.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        let all = present!("sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt"
            "movbe" "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx512vbmi" "avx512vbmi2" "avx512vnni"
            "avx512bitalg" "avx512vpopcntdq" "avx512ifma" "avx512bf16" "gfni" "vaes" "vpclmulqdq" "sha" "adx" "tbm"
            "sse4a");
        #[cfg(target_arch = "aarch64")]
        let all = present!("neon" "fp16" "fhm" "dotprod" "bf16" "i8mm" "lse" "rdm" "fcma" "sve" "sve2");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let all: [(&str, bool); 0] = [];
        all.into_iter().filter_map(|(name, is_present)| is_present.then_some(name)).collect()
    })
}

/// The number of threads that this process may run in parallel.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The host. It is detected once: the caches alone take a hundred system calls.
pub(super) fn processor() -> Processor {
    static HOST: OnceLock<Processor> = OnceLock::new();
    HOST.get_or_init(look).clone()
}

fn look() -> Processor {
    let features = features().to_vec();
    let sizes = [cache_bytes(1).unwrap_or(32 << 10), cache_bytes(2).unwrap_or(512 << 10), cache_bytes(3).unwrap_or(0)];
    let (architecture, model) = (Architecture::of_host().unwrap_or(Architecture::X86_64), model());
    let signature = format!("{}/{model}/{}", architecture.name(), features.join(","));
    let isa = Isa { architecture, cpu: NAME.into(), features };
    let has_bf16 = match architecture {
        Architecture::X86_64 => isa.has_avx512() && isa.has("avx512bf16") && !model.starts_with(INTEL),
        Architecture::Aarch64 => isa.has("bf16"),
        Architecture::Nvptx64 | Architecture::Amdgcn => false,
    };
    let has_vnni = isa.has_avx512() && isa.has("avx512vnni");
    let dots = [(has_vnni || isa.has("i8mm"), DType::U8), (has_vnni, DType::I16), (has_bf16, DType::BF16)];
    Processor {
        name: NAME,
        model: signature,
        dots: dots.into_iter().filter_map(|(has, dtype)| has.then_some(dtype)).collect(),
        isa,
        cache_bytes: sizes,
        // Two units with a latency of four cycles, on every x86-64 processor of the last decade.
        multiply_adds: 8,
        rates: rates(&model),
        numbers: Numbers::Detected,
    }
}

/// The prefix of [`model`] on Intel processors: the letters of `GenuineIntel` in CPUID.
const INTEL: &str = "756e6547";

/// The rates of the processor in the table that has this model.
fn rates(model: &str) -> Rates {
    let row =
        family_and_model(model).and_then(|(family, model)| table::ROWS.iter().find(|row| row.is_model(family, model)));
    row.map_or(Rates::TYPICAL, |row| row.rates)
}

/// Family and model, including extensions, from the text of [`model`]; on AArch64, implementer and part number. No two
/// vendors share a family in the table.
fn family_and_model(model: &str) -> Option<(u32, u32)> {
    if cfg!(target_arch = "x86_64") {
        let signature = u32::from_str_radix(model.rsplit('-').next()?, 16).ok()?;
        let (family, model) = (signature >> 8 & 0xf, signature >> 4 & 0xf | signature >> 12 & 0xf0);
        return Some((if family == 0xf { family + (signature >> 20 & 0xff) } else { family }, model));
    }
    let register = u32::from_str_radix(model.strip_prefix("0x")?.trim_start_matches('0'), 16).ok()?;
    Some((register >> 24, register >> 4 & 0xfff))
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
        // AArch64's main identification register, if the system exposes it.
        std::fs::read_to_string("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1")
            .map_or_else(|_| "unknown".into(), |text| text.trim().into())
    }
}

/// The size of the data cache of this level, as reported by the processor, else by Linux.
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
