//! A lowered kernel computes on the interpreter, as a device, what its range form does.

use crate::kernels::{self, Case};
use tinyspec_backends::interpreter::{
    self, array::Array, linear::InterpreterCompiler, linear::InterpreterRuntime, ranges,
};
use tinyspec_backends::{BackendError, Compiler, Launch, LinearKernel, Runtime};
use tinyspec_core::lower::kernel::lower_kernel_with_schedule;
use tinyspec_ir::{DType, Op, text};

/// Small integers, so that sums are exact.
fn arrays(params: &[(DType, i64)]) -> Vec<Array> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as i64 % 7 - 2
    };
    let mut array = |&(dtype, length): &(DType, i64)| {
        let values: Vec<i64> = (0..length).map(|_| next()).collect();
        Array::from_ints(dtype, &[values.len()], &values).unwrap()
    };
    params.iter().map(&mut array).collect()
}

fn on_device(kernel: &LinearKernel, arrays: &[Array]) -> Result<Vec<Array>, BackendError> {
    let runtime = InterpreterRuntime;
    let code = InterpreterCompiler.compile(kernel, &interpreter::target())?;
    let program = runtime.load(&kernel.name, &code)?;
    let mut memories = Vec::new();
    for array in arrays {
        let bytes = array.to_bytes();
        let memory = runtime.allocate(bytes.len())?;
        runtime.write(memory.as_ref(), &bytes)?;
        memories.push(memory);
    }
    let addresses: Vec<*mut u8> = memories.iter().map(|memory| memory.address()).collect();
    let launch = Launch {
        program,
        buffers: (0..arrays.len() as u32).collect(),
        global_trips: kernel.global_trips,
        scratch_bytes: kernel.scratch_bytes,
        nanoseconds: 0,
    };
    // SAFETY: the memories are as long as the Params say, and live until the end.
    unsafe { runtime.enqueue(&[launch], &addresses)? }
    let mut results = Vec::new();
    for (memory, array) in memories.iter().zip(arrays) {
        let mut bytes = vec![0; memory.len()];
        runtime.read(memory.as_ref(), &mut bytes)?;
        results.push(Array::from_bytes(array.dtype(), array.shape(), &bytes)?);
    }
    Ok(results)
}

fn check(name: &str, (kernel, sink, outputs): Case) {
    let inputs = arrays(&kernel.params);
    let mut expected = inputs.clone();
    let written = ranges::run_kernel(&kernel.graph, sink, &mut expected).unwrap();
    assert_eq!(written, (0..outputs).collect::<Vec<_>>(), "{name} writes its outputs");
    let mut graph = kernel.graph.clone();
    let (lowered, schedule) = lower_kernel_with_schedule(&mut graph, sink, name, &interpreter::target()).unwrap();
    let listing = || text::print(&lowered.graph, &[lowered.linear]);
    let found = on_device(&lowered, &inputs).unwrap_or_else(|error| panic!("{error}\n{}", listing()));
    assert_eq!(expected, found, "{name}, {schedule:?}\n{}", listing());
}

#[test]
fn lowered_kernels_run_on_the_interpreter() {
    for (rows, columns) in [(1, 1), (3, 5), (9, 31), (2, 129)] {
        check("elementwise", kernels::elementwise(rows, columns));
        check("transpose", kernels::transpose(rows, columns));
        check("sum", kernels::reduction(Op::Add, DType::F32, rows, columns, 0));
        check("max", kernels::reduction(Op::Max, DType::F32, rows, columns, 1));
        check("argmax", kernels::argmax(rows, columns));
    }
    for (m, n, k) in [(1, 1, 1), (3, 5, 7), (32, 10, 64), (70, 40, 9)] {
        check("matmul", kernels::matmul(m, n, k, (false, true), false));
    }
    check("shifted", kernels::shifted(100, 3));
    check("optimiser", kernels::optimiser(150));
}
