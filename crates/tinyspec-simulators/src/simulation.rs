//! Kernels on buffers, without a device: for tests of kernels and of the simulators.

use crate::ptx::Kernel;
use crate::runtime::SparseMemory;
use crate::{Launch, SimulatorError};
use tinyspec_backends::{Memory as _, host_memory};

/// Buffers, and kernels that run on them.
#[derive(Default)]
pub struct Simulation {
    buffers: Vec<SparseMemory>,
}

/// A buffer of a [`Simulation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferId(usize);

/// What a kernel is given for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The address of a buffer.
    Buffer(BufferId),
    /// A number, by its bits.
    Value(u64),
}

impl From<BufferId> for Argument {
    fn from(buffer: BufferId) -> Argument {
        Argument::Buffer(buffer)
    }
}

impl From<u64> for Argument {
    fn from(bits: u64) -> Argument {
        Argument::Value(bits)
    }
}

fn failed(error: tinyspec_backends::BackendError) -> SimulatorError {
    SimulatorError::Memory(error.to_string())
}

impl Simulation {
    /// Without buffers.
    pub fn new() -> Simulation {
        Simulation::default()
    }

    /// A buffer that holds these bytes.
    ///
    /// # Errors
    /// When memory has run out.
    pub fn buffer(&mut self, bytes: &[u8]) -> Result<BufferId, SimulatorError> {
        let buffer = self.zeros(bytes.len())?;
        host_memory::write(&self.buffers[buffer.0], bytes).map_err(failed)?;
        Ok(buffer)
    }

    /// A buffer of zeros, of any size: memory is taken where it is touched.
    ///
    /// # Errors
    /// When the system gives no such range of addresses.
    pub fn zeros(&mut self, bytes: usize) -> Result<BufferId, SimulatorError> {
        self.buffers.push(SparseMemory::new(bytes).map_err(failed)?);
        Ok(BufferId(self.buffers.len() - 1))
    }

    /// The bytes of a buffer.
    ///
    /// # Errors
    /// When there is none, or it is larger than memory.
    pub fn bytes(&self, buffer: BufferId) -> Result<Vec<u8>, SimulatorError> {
        let memory = self.memory(buffer)?;
        let mut bytes = vec![0; memory.len()];
        host_memory::read(memory, &mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    fn memory(&self, buffer: BufferId) -> Result<&SparseMemory, SimulatorError> {
        self.buffers.get(buffer.0).ok_or_else(|| SimulatorError::Memory(format!("there is no buffer {}", buffer.0)))
    }

    /// Runs a kernel; how many warp instructions it executed.
    ///
    /// # Errors
    /// When the launch does not fit the kernel, or the kernel does what it must not.
    pub fn run<A: Copy + Into<Argument>>(
        &mut self,
        kernel: &Kernel,
        launch: &Launch,
        arguments: &[A],
    ) -> Result<u64, SimulatorError> {
        let mut given = Vec::new();
        for &argument in arguments {
            given.push(match argument.into() {
                Argument::Buffer(buffer) => {
                    let memory = self.memory(buffer)?;
                    crate::ptx::Given::Memory(memory.address(), memory.len())
                }
                Argument::Value(bits) => crate::ptx::Given::Value(bits),
            });
        }
        // SAFETY: the buffers are ours, and borrowed until the run ends.
        unsafe { crate::ptx::run(&kernel.code, launch, &given) }
    }
}
