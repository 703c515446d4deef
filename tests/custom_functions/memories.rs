//! Values that are not in one piece of host memory: on a tuple of devices, and where the host does not reach.

use crate::register;
use std::sync::Arc;
use tinyspec::backends::host_memory::HostMemory;
use tinyspec::backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec::backends::{BackendError, CommandBuffer, Memory, Program, Runtime, Target, interpreter};
use tinyspec::prelude::*;
use tinyspec::{call_function, with_default_device};

#[test]
fn each_device_of_a_tuple_calls_it_on_the_whole_value() {
    register();
    let x = Tensor::arange(8).cast(DType::F32).reshape([4, 2]).to(["cpu:0", "cpu:1"]);
    let [y] = call_function("twice", &[], &[&(&x + 1.0)]);
    let sum = (y + &x).sum(1, false);
    assert_eq!(sum.to("cpu").to_vec::<f32>().unwrap(), [7.0, 19.0, 31.0, 43.0]);
}

/// An interpreter whose memory says that the host does not reach it.
struct Far;

#[derive(Debug)]
struct FarMemory(HostMemory);

// SAFETY: the memory is another one's.
unsafe impl Memory for FarMemory {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn address(&self) -> *mut u8 {
        self.0.address()
    }
}

// SAFETY: memory is new each time, and another runtime runs the launches.
unsafe impl Runtime for Far {
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Memory>, BackendError> {
        Ok(Arc::new(FarMemory(HostMemory::new(bytes)?)))
    }

    fn load(&self, name: &str, code: &[u8]) -> Result<Arc<dyn Program>, BackendError> {
        InterpreterRuntime.load(name, code)
    }

    unsafe fn enqueue(&self, commands: &CommandBuffer, table: &[*mut u8]) -> Result<(), BackendError> {
        // SAFETY: as the caller promises.
        unsafe { InterpreterRuntime.enqueue(commands, table) }
    }
}

#[test]
fn arguments_are_copied_to_the_host_and_results_back() {
    register();
    let target = Target { name: "far".into(), ..interpreter::target() };
    tinyspec::register("far", target, Arc::new(InterpreterCompiler), Arc::new(Far));
    with_default_device("far", || {
        let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]);
        let [product] = call_function("gemm", &[], &[&(&x + 1.0), &x]);
        let [sum] = call_function("axpy", &[], &[&(&x * 2.0), &product, &Tensor::scalar(0.5f32)]);
        assert_eq!((sum + 1.0).to_vec::<f32>()?, [8.5, 13.0, 16.5, 23.0]);
        let [whole, rest] = call_function("split", &[], &[&(x * 0.75)]);
        assert_eq!(whole.to_vec::<i32>()?, [0, 1, 2, 3]);
        assert_eq!(rest.to_vec::<f32>()?, [0.75, 0.5, 0.25, 0.0]);
        let [empty] = call_function("twice", &[], &[&Tensor::zeros([0])]);
        assert_eq!(empty.to_vec::<f32>()?, [0f32; 0]);
        Ok::<(), Error>(())
    })
    .unwrap();
}
