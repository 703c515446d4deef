//! A kernel as the compiler makes it, for tests that launch it by themselves.

use crate::recorder::Recorder;
use std::sync::Arc;
use tinyspec::backends::Grid;
use tinyspec::backends::llvm::LlvmCompiler;
use tinyspec::prelude::*;

/// Doubles 32 numbers; its parameters are where they go, and where they are.
#[derive(Clone)]
pub struct Doubling {
    pub code: Vec<u8>,
    pub grid: Grid,
}

impl Doubling {
    /// The kernel for a chip.
    pub fn of(chip: &str) -> Doubling {
        let name = format!("recorded/{chip}");
        let compiler = Arc::new(LlvmCompiler::new().expect("a compiler"));
        let recorder = Recorder::register(&name, chip, compiler).expect("a chip");
        let x = Tensor::from_slice(&[1i32; 32], [32]).to(name.as_str()).contiguous();
        x.realize().expect("numbers");
        (&x + &x).realize().expect("a kernel");
        let (code, grid) = recorder.launched().pop().expect("a launch");
        Doubling { code, grid }
    }
}
