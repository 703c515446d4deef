//! Modules and kernels, decoded and ready to run.

use super::decode::{self, Code};
use super::syntax::Source;
use super::{execute, parse};
use crate::lanes::launch::{Given, Run};
use crate::{Launch, Parameter, SimulatorError};
use std::sync::Arc;

/// A module of PTX.
#[derive(Clone)]
pub struct Module {
    source: Arc<Source>,
    text: Arc<str>,
}

/// A kernel of a module, decoded.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) code: Arc<Code>,
}

impl Module {
    /// Reads the text of a module, up to its end or a NUL.
    ///
    /// # Errors
    /// With line and column, where the text is no PTX or holds directives that are not simulated.
    pub fn parse(text: &str) -> Result<Module, SimulatorError> {
        let source = parse::parse(text)?;
        Ok(Module { source: Arc::new(source), text: text.into() })
    }

    /// The names of its kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.source.entries.iter().map(|entry| entry.name.as_str())
    }

    /// The target that it is compiled for, such as `sm_80`.
    pub fn target(&self) -> &str {
        &self.source.target
    }

    /// The version of PTX that it is written in.
    pub fn version(&self) -> (u32, u32) {
        self.source.version
    }

    /// A kernel of it, decoded.
    ///
    /// # Errors
    /// Where there is none of this name, or it holds something that is not simulated.
    pub fn kernel(&self, name: &str) -> Result<Kernel, SimulatorError> {
        let entry = self.source.entries.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| SimulatorError::NoKernel(name.into()))?;
        Ok(Kernel { code: Arc::new(decode::decode(&self.source, entry, self.text.clone())?) })
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
        self.code.has_external
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
