//! A kernel as the compiler makes it, for tests that launch it by themselves.

use std::sync::{Arc, Mutex, PoisonError};
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::backends::{BackendError, Gpu, Grid, Launch, Program, Runtime};
use tinyspec::prelude::*;

/// Doubles 32 numbers; its parameters are where they go, and where they are.
#[derive(Clone)]
pub struct Doubling {
    pub code: Vec<u8>,
    pub grid: Grid,
}

#[derive(Default)]
struct Recorder(Mutex<Option<Doubling>>);

struct Recorded(Vec<u8>);

impl Program for Recorded {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

// SAFETY: it keeps the trait's own allocation methods, and runs no kernel that could access memory.
unsafe impl Runtime for Recorder {
    fn load(&self, _: &str, code: &[u8]) -> std::result::Result<Arc<dyn Program>, BackendError> {
        Ok(Arc::new(Recorded(code.to_vec())))
    }

    unsafe fn enqueue(&self, launches: &[Launch], _: &[*mut u8]) -> std::result::Result<(), BackendError> {
        let launch = launches.first().expect("a launch");
        let recorded = launch.program.as_any().downcast_ref::<Recorded>().expect("what was loaded");
        let made = Doubling { code: recorded.0.clone(), grid: launch.grid };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(())
    }
}

impl Doubling {
    /// The kernel for a chip.
    pub fn of(chip: &str) -> Doubling {
        let (name, recorder) = (format!("recorded/{chip}"), Arc::new(Recorder::default()));
        let target = Gpu::named(chip).expect("a chip").target();
        tinyspec::register(&name, target, Arc::new(LlvmCompiler::new().expect("a compiler")), recorder.clone());
        let x = Tensor::from_slice(&[1i32; 32], [32]).to(name.as_str()).contiguous();
        x.realize().expect("numbers");
        (&x + &x).realize().expect("a kernel");
        recorder.0.lock().unwrap_or_else(PoisonError::into_inner).clone().expect("a launch")
    }
}
