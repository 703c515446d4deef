//! What a launch is given beside its buffers.

/// Workgroups, threads, and how they are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Workgroups by dimension.
    pub groups: [u32; 3],
    /// Threads of a workgroup by dimension.
    pub threads: [u32; 3],
    /// Bytes of LOCAL memory beyond what the kernel declares: its external array.
    pub local_bytes: usize,
    /// Decides the order of workgroups, waves and diverged lanes. Equal seeds give equal runs.
    pub seed: u64,
    /// Most wave instructions of a workgroup, against loops without an end.
    pub limit: u64,
}

impl Launch {
    /// So many workgroups of so many threads.
    pub fn threads(groups: u32, threads: u32) -> Launch {
        Launch::grid([groups, 1, 1], [threads, 1, 1])
    }

    /// Workgroups and threads by dimension.
    pub fn grid(groups: [u32; 3], threads: [u32; 3]) -> Launch {
        Launch { groups, threads, local_bytes: 0, seed: 0, limit: 1 << 40 }
    }

    /// The same launch in another order.
    pub fn seeded(self, seed: u64) -> Launch {
        Launch { seed, ..self }
    }

    /// Threads of a workgroup.
    pub(crate) fn size(&self) -> u64 {
        self.threads.iter().map(|&size| u64::from(size)).product()
    }

    /// Workgroups in all.
    pub(crate) fn count(&self) -> u64 {
        self.groups.iter().fold(1u64, |count, &size| count.saturating_mul(size.into()))
    }
}
