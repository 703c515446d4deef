//! Code objects and kernels, decoded and ready to run.

use super::decode::{self, Code};
use super::execute;
use super::object::{self, Object};
use crate::lanes::launch::{Given, Run};
use crate::{Launch, Parameter, Position, SimulatorError};
use std::sync::Arc;

/// A code object of HSA.
#[derive(Clone)]
pub struct Module {
    object: Arc<Object>,
}

/// A kernel of a code object, decoded.
#[derive(Clone)]
pub struct Kernel {
    pub(super) code: Arc<Code>,
}

impl Module {
    /// Reads a code object as a loader does.
    ///
    /// # Errors
    /// Where it is damaged, not linked, for another machine or for a chip that is not simulated.
    pub fn read(bytes: &[u8]) -> Result<Module, SimulatorError> {
        let object = object::read(bytes)
            .map_err(|error| SimulatorError::Syntax { at: Position::default(), reason: error.to_string() })?;
        Ok(Module { object: Arc::new(object) })
    }

    /// The names of its kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.object.entries.iter().map(|entry| entry.name.as_str())
    }

    /// The target that it is compiled for, such as `gfx942`.
    pub fn target(&self) -> &str {
        self.object.chip
    }

    /// A kernel of it, decoded by libLLVM's disassembler.
    ///
    /// # Errors
    /// Where there is none of this name, no libLLVM is found, or it holds something that is not simulated.
    pub fn kernel(&self, name: &str) -> Result<Kernel, SimulatorError> {
        let entry = self.object.entries.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| SimulatorError::NoKernel(name.into()))?;
        Ok(Kernel { code: Arc::new(decode::decode(self.object.chip, entry)?) })
    }
}

impl Kernel {
    /// Its instructions, as LLVM writes them; faults count them from 1.
    pub fn listing(&self) -> &[String] {
        &self.code.listing
    }
}

impl Run for Kernel {
    fn name(&self) -> &str {
        &self.code.name
    }

    fn parameters(&self) -> &[Parameter] {
        &self.code.params
    }

    fn takes_local(&self) -> bool {
        false
    }

    #[expect(private_interfaces, reason = "as in the trait")]
    unsafe fn run(&self, launch: &Launch, given: &[Given]) -> Result<u64, SimulatorError> {
        // SAFETY: as the caller promises.
        unsafe { execute::run(&self.code, launch, given) }
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.kernels()).finish()
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name()).finish_non_exhaustive()
    }
}
