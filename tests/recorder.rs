//! A device that takes the code of a GPU's kernels, remembers it, and runs nothing.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tinyspec::backends::{BackendError, CommandBuffer, Compiler, Gpu, Grid, Launch, Program, Runtime};

/// What was loaded and launched.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    kernels: BTreeMap<Vec<u8>, String>,
    last: Vec<(Vec<u8>, Grid)>,
}

struct Recorded(Vec<u8>);

impl Program for Recorded {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

// SAFETY: it keeps the trait's own allocation methods, and runs no kernel that could access memory.
unsafe impl Runtime for Recorder {
    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        self.record(|record| record.kernels.insert(code.to_vec(), name.into()));
        Ok(Arc::new(Recorded(code.to_vec())))
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, _: &[*mut u8]) -> Result<(), BackendError> {
        let code =
            |launch: &Launch| launch.program.as_any().downcast_ref().map(|Recorded(code)| (code.clone(), launch.grid));
        self.record(|record| record.last = commands.launches().iter().filter_map(code).collect());
        Ok(())
    }
}

#[allow(dead_code, reason = "each of the crates that include it asks for something else")]
impl Recorder {
    /// Adds it as a device for a chip, such as `sm_90a`.
    ///
    /// # Errors
    /// When there is no such chip.
    pub fn register(
        name: &str,
        chip: &str,
        compiler: Arc<dyn Compiler>,
    ) -> Result<Recorder, tinyspec::backends::UnknownGpu> {
        let recorder = Recorder::default();
        tinyspec::register(name, Gpu::named(chip)?.target(), compiler, Arc::new(recorder.clone()));
        Ok(recorder)
    }

    /// The codes that were loaded since the last time, with the names of their kernels.
    pub fn take(&self) -> BTreeMap<Vec<u8>, String> {
        self.record(|record| std::mem::take(&mut record.kernels))
    }

    /// The code of each kernel that the last run launched, with its grid.
    pub fn launched(&self) -> Vec<(Vec<u8>, Grid)> {
        self.record(|record| record.last.clone())
    }

    fn record<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
