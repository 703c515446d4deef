//! Kernels on buffers, without a device: for tests of kernels, of the simulators and of what drives a GPU.

use crate::lanes::launch::{Given, Run};
use crate::runtime::SparseMemory;
use crate::{Launch, SimulatorError};
use std::collections::BTreeMap;
use tinyspec_backends::Memory as _;

/// Buffers, and kernels that run on them.
#[derive(Default)]
pub struct Simulation {
    /// By their addresses.
    buffers: BTreeMap<u64, SparseMemory>,
}

/// A buffer of a [`Simulation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferId(u64);

impl BufferId {
    /// Where it begins.
    pub fn address(self) -> u64 {
        self.0
    }
}

/// The argument for a parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The address of a buffer.
    Buffer(BufferId),
    /// An address within a buffer, which the kernel may access from there on.
    Address(u64),
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
        self.write(buffer.0, bytes)?;
        Ok(buffer)
    }

    /// A buffer of zeros, of any size: memory is taken where it is touched.
    ///
    /// # Errors
    /// When the system gives no such range of addresses.
    pub fn zeros(&mut self, bytes: usize) -> Result<BufferId, SimulatorError> {
        let memory = SparseMemory::new(bytes).map_err(failed)?;
        let address = memory.address() as u64;
        self.buffers.insert(address, memory);
        Ok(BufferId(address))
    }

    /// Gives the memory of the buffer at this address back; whether there is one.
    pub fn free(&mut self, address: u64) -> bool {
        self.buffers.remove(&address).is_some()
    }

    /// The bytes of a buffer.
    ///
    /// # Errors
    /// When there is none, or it is larger than memory.
    pub fn bytes(&self, buffer: BufferId) -> Result<Vec<u8>, SimulatorError> {
        let (_, length) = self.memory(buffer.0)?;
        let mut bytes = vec![0; length];
        self.read(buffer.0, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes to an address within a buffer.
    ///
    /// # Errors
    /// When it has no room for them.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), SimulatorError> {
        let to = self.part(address, bytes.len())?;
        // SAFETY: the memory is ours, and as long; `bytes` is not in it, as nobody is given a reference to it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Copies bytes from an address within a buffer.
    ///
    /// # Errors
    /// When it has fewer.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), SimulatorError> {
        let from = self.part(address, bytes.len())?;
        // SAFETY: as in `write`.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// Memory at an address, and the bytes from there to the end of its buffer.
    fn memory(&self, address: u64) -> Result<(*mut u8, usize), SimulatorError> {
        let before = self.buffers.range(..=address).next_back();
        let within = before.and_then(|(start, memory)| {
            let offset = (address - start) as usize;
            Some((memory.address().wrapping_add(offset), memory.len().checked_sub(offset)?))
        });
        within.ok_or_else(|| SimulatorError::Memory(format!("there is no buffer at address {address:#x}")))
    }

    fn part(&self, address: u64, bytes: usize) -> Result<*mut u8, SimulatorError> {
        let (start, most) = self.memory(address)?;
        if bytes > most {
            let reason = format!("{bytes} bytes at address {address:#x}, where the buffer has {most}");
            return Err(SimulatorError::Memory(reason));
        }
        Ok(start)
    }

    /// Runs a kernel, of [`crate::ptx`] or [`crate::amd`]; how many wave instructions it executed.
    ///
    /// # Errors
    /// When the launch does not fit the kernel, or the kernel does what it must not.
    pub fn run<A: Copy + Into<Argument>>(
        &mut self,
        kernel: &(impl Run + ?Sized),
        launch: &Launch,
        arguments: &[A],
    ) -> Result<u64, SimulatorError> {
        let mut given = Vec::new();
        for &argument in arguments {
            given.push(match argument.into() {
                Argument::Buffer(BufferId(address)) | Argument::Address(address) => {
                    let (start, bytes) = self.memory(address)?;
                    Given::Memory { start, bytes, name: None }
                }
                Argument::Value(bits) => Given::Value(bits),
            });
        }
        // SAFETY: the buffers are ours, and borrowed until the run ends.
        unsafe { kernel.run(launch, &given) }
    }
}
