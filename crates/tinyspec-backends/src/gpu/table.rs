//! The chips, one a row.

use super::Gpu;
use crate::Workgroups;
use crate::processor::Architecture;

/// Chips of NVIDIA for which code is made: newer ones run the code of an older one, those that end with `a` only their own.
const NVIDIA: &[&str] = &["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"];

/// Chips of AMD, and the threads of a wave.
const AMD: &[(&str, usize)] = &[
    ("gfx90a", 64),
    ("gfx942", 64),
    ("gfx950", 64),
    ("gfx1100", 32),
    ("gfx1101", 32),
    ("gfx1102", 32),
    ("gfx1103", 32),
    ("gfx1150", 32),
    ("gfx1151", 32),
    ("gfx1200", 32),
    ("gfx1201", 32),
];

/// All of them.
pub(super) fn rows() -> impl Iterator<Item = Gpu> {
    NVIDIA.iter().map(|&name| nvidia(name)).chain(AMD.iter().map(|&(name, wave)| amd(name, wave)))
}

/// CUDA's "Technical Specifications per Compute Capability", the same for all of these chips except for LOCAL memory. A
/// workgroup can use 64 to 227 KiB of it, depending on the chip, but a kernel can declare at most 48 KiB statically; more has to
/// be dynamic shared memory, enabled by `cuFuncSetAttribute`. Kernels here declare theirs statically.
fn nvidia(name: &'static str) -> Gpu {
    Gpu {
        name,
        architecture: Architecture::Nvptx64,
        workgroups: Workgroups {
            counts: [i32::MAX as usize, 65_535, 65_535],
            threads: [1024, 1024, 64],
            size: 1024,
            warp: 32,
            local_bytes: 48 << 10,
        },
        thread_registers: 255,
        workgroup_registers: 64 << 10,
    }
}

/// A launch of HIP has fewer than 2^32 threads in each dimension. From gfx12 on a workgroup finds its number in y and that in
/// z in the halves of one register.
fn amd(name: &'static str, wave: usize) -> Gpu {
    const MOST_THREADS: usize = 1024;
    let most_groups = u32::MAX as usize / MOST_THREADS;
    let most_behind_x = if name.starts_with("gfx12") { u16::MAX.into() } else { most_groups };
    Gpu {
        name,
        architecture: Architecture::Amdgcn,
        workgroups: Workgroups {
            counts: [most_groups, most_behind_x, most_behind_x],
            threads: [MOST_THREADS; 3],
            size: MOST_THREADS,
            warp: wave,
            local_bytes: 64 << 10,
        },
        thread_registers: 256,
        // Four units of 512 registers for 64 lanes, or of two of them 1,536 for 32.
        workgroup_registers: if wave == 64 { 4 * 512 * 64 } else { 2 * 1536 * 32 },
    }
}
