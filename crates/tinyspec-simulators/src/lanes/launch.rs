//! A launch and its arguments.

use crate::SimulatorError;

/// The argument for a parameter of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    /// Host memory that the kernel may access.
    Memory {
        start: *mut u8,
        bytes: usize,
        /// The user's name for it.
        name: Option<&'a str>,
    },
    Value(u64),
}

/// A parameter of a kernel, among the bytes of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Where it begins.
    pub offset: usize,
    /// Its size.
    pub bytes: usize,
    /// It is the address of a buffer.
    pub is_pointer: bool,
}

/// A kernel of some instruction set.
pub trait Run {
    /// Its name.
    fn name(&self) -> &str;

    /// Its parameters.
    fn parameters(&self) -> &[Parameter];

    /// It has an array of LOCAL memory whose size the launch decides.
    fn takes_local(&self) -> bool;

    /// Runs a launch; how many wave instructions it was.
    ///
    /// # Safety
    /// The memory that is given is valid and not used elsewhere meanwhile.
    #[expect(private_interfaces, reason = "only kernels of this crate are run")]
    unsafe fn run(&self, launch: &Launch, given: &[Given]) -> Result<u64, SimulatorError>;
}

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

    /// Workgroups and threads by dimension. The limit lets a workgroup run for some minutes.
    pub fn grid(groups: [u32; 3], threads: [u32; 3]) -> Launch {
        Launch { groups, threads, local_bytes: 0, seed: 0, limit: 1 << 32 }
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
