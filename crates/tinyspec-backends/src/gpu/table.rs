//! The chips, one per row.

use super::Gpu;
use crate::Workgroups;
use crate::processor::Architecture;

/// NVIDIA chips that code is generated for: newer ones run the code of older ones, those that end with `a` only their
/// own. After the name: the multiprocessors of the largest board and the resident threads of each.
const NVIDIA: &[(&str, usize, usize)] = &[
    ("sm_75", 72, 1024),
    ("sm_80", 108, 2048),
    ("sm_86", 84, 1536),
    ("sm_89", 142, 1536),
    ("sm_90", 132, 2048),
    ("sm_90a", 132, 2048),
    ("sm_100", 148, 2048),
    ("sm_120", 188, 1536),
];

/// AMD chips, with the threads of a wave and the compute units of the largest board.
const AMD: &[(&str, usize, usize)] = &[
    ("gfx90a", 64, 110),
    ("gfx942", 64, 304),
    ("gfx950", 64, 256),
    ("gfx1100", 32, 96),
    ("gfx1101", 32, 60),
    ("gfx1102", 32, 32),
    ("gfx1103", 32, 12),
    ("gfx1150", 32, 16),
    ("gfx1151", 32, 40),
    ("gfx1200", 32, 32),
    ("gfx1201", 32, 64),
];

/// All of them.
pub(super) fn rows() -> impl Iterator<Item = Gpu> {
    let nvidia = NVIDIA.iter().map(|&(name, processors, resident)| nvidia(name, processors, resident));
    nvidia.chain(AMD.iter().map(|&(name, wave, processors)| amd(name, wave, processors)))
}

/// CUDA's "Technical Specifications per Compute Capability", the same for all of these chips except for LOCAL memory. A
/// workgroup can use 64 to 227 KiB of it, depending on the chip, but a kernel can declare at most 48 KiB statically; more has to
/// be dynamic shared memory, enabled by `cuFuncSetAttribute`. Kernels here declare theirs statically.
fn nvidia(name: &'static str, processors: usize, resident: usize) -> Gpu {
    Gpu {
        name,
        architecture: Architecture::Nvptx64,
        workgroups: Workgroups {
            counts: [i32::MAX as usize, 65_535, 65_535],
            threads: [1024, 1024, 64],
            size: 1024,
            warp: 32,
            local_bytes: 48 << 10,
            processors,
            resident,
        },
        thread_registers: 255,
        workgroup_registers: 64 << 10,
    }
}

/// A HIP launch has fewer than 2^32 threads in each dimension. From gfx12 on, a workgroup's numbers in y and z are the
/// halves of one register.
fn amd(name: &'static str, wave: usize, processors: usize) -> Gpu {
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
            processors,
            // Eight waves on each of four units, or sixteen on each of two.
            resident: if wave == 64 { 4 * 8 * 64 } else { 2 * 16 * 32 },
        },
        thread_registers: 256,
        // Four units of 512 registers for 64 lanes, or of two of them 1,536 for 32.
        workgroup_registers: if wave == 64 { 4 * 512 * 64 } else { 2 * 1536 * 32 },
    }
}
