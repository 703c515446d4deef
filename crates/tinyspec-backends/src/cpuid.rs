//! The cache sizes that an x86-64 processor reports, which are available even if `/sys` is not.

/// Bytes of the data cache of this level; none on other processors, and on those that do not say.
#[cfg(target_arch = "x86_64")]
pub(crate) fn data_cache(level: u32) -> Option<usize> {
    use std::arch::x86_64::{__cpuid_count, CpuidResult};
    /// The leaves that describe one cache per subleaf, and those with the greatest leaf of their range: Intel's, and
    /// AMD's.
    const LEAVES: [(u32, u32); 2] = [(0, 4), (0x8000_0000, 0x8000_001d)];
    const INSTRUCTIONS: u32 = 2;
    // SAFETY: every x86-64 processor has CPUID. (Newer compilers know it is safe.)
    #[allow(unused_unsafe)]
    let cpuid = |leaf: u32, part: u32| unsafe { __cpuid_count(leaf, part) };
    let kind = |cache: CpuidResult| cache.eax & 0x1f;
    let has = |&(first, leaf): &(u32, u32)| cpuid(first, 0).eax >= leaf && kind(cpuid(leaf, 0)) != 0;
    let (_, leaf) = LEAVES.into_iter().find(has)?;
    let mut caches = (0..8).map(|part| cpuid(leaf, part)).take_while(|&cache| kind(cache) != 0);
    let cache = caches.find(|&cache| cache.eax >> 5 & 7 == level && kind(cache) != INSTRUCTIONS)?;
    let (ways, partitions, line) = (cache.ebx >> 22, cache.ebx >> 12 & 0x3ff, cache.ebx & 0xfff);
    Some([ways, partitions, line, cache.ecx].iter().map(|&number| number as usize + 1).product())
}

/// Bytes of the data cache of this level; none on other processors, and on those that do not say.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn data_cache(_: u32) -> Option<usize> {
    None
}
