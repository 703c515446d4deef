//! A device that lowers like the CPU and then does nothing: what is left is the cost of the compiler's own stages.

use std::any::Any;
use std::sync::Arc;

use tinyspec::backends::host_memory::{self, HostMemory};
use tinyspec::backends::llvm::Host;
use tinyspec::backends::{BackendError, Compiler, Launch, LinearKernel, Listing, Memory, Program, Runtime, Target};

/// Registers one under this name; no plan or kernel of another is known to it.
pub fn register(name: &str) {
    let target = Target { threads: 1, ..Host::detect().target() };
    tinyspec::register(name, target, Arc::new(Nothing), Arc::new(Nothing));
}

struct Nothing;

impl Program for Nothing {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Compiler for Nothing {
    fn fingerprint(&self) -> String {
        "nothing".into()
    }

    fn compile(&self, _: &LinearKernel, _: &Target) -> Result<Vec<u8>, BackendError> {
        Ok(Vec::new())
    }

    fn listing(&self, _: &LinearKernel, _: &Target) -> Result<Listing, BackendError> {
        Ok(Listing::default())
    }
}

impl Runtime for Nothing {
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Memory>, BackendError> {
        Ok(Arc::new(HostMemory::new(bytes)?))
    }

    fn write(&self, to: &dyn Memory, data: &[u8]) -> Result<(), BackendError> {
        host_memory::write(to, data)
    }

    fn read(&self, from: &dyn Memory, data: &mut [u8]) -> Result<(), BackendError> {
        host_memory::read(from, data)
    }

    fn load(&self, _: &str, _: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        Ok(Arc::new(Nothing))
    }

    unsafe fn enqueue(&self, _: &[Launch], _: &[*mut u8]) -> Result<(), BackendError> {
        Ok(())
    }

    fn synchronize(&self) -> Result<(), BackendError> {
        Ok(())
    }
}
