//! Linear kernels on the interpreter, through the three traits.

use crate::kernel::{self, Kernel, REG, float_bytes};
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec_backends::{BackendError, Compiler, LinearKernel, Runtime, interpreter};
use tinyspec_ir::{AddrSpace, Arg, AxisType, Builder, Const, DType, Op};

fn launch(kernel: &LinearKernel, buffers: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, BackendError> {
    kernel::launch(&InterpreterRuntime, &InterpreterCompiler, &interpreter::target(), kernel, buffers)
}

#[test]
fn vectors_and_a_global_range() {
    // y[i] = 2 x[i] + y[i], four lanes at a time.
    let mut kernel = Kernel { shared_trips: 2, ..Kernel::default() };
    let (y, x) = (kernel.param(DType::F32, 8), kernel.param(DType::F32, 8));
    let (range, i) = kernel.range(2, 0, AxisType::Thread);
    let four = kernel.int(4);
    let offset = kernel.alu(Op::Mul, &[i, four]);
    let (y_run, x_run) = (kernel.run(y, offset, 4), kernel.run(x, offset, 4));
    let (y_value, x_value) = (kernel.add(Op::Load, &[y_run], REG), kernel.add(Op::Load, &[x_run], REG));
    let two = kernel.float(2.0);
    let shape = kernel.shape(&[4]);
    let splat = kernel.alu(Op::Expand, &[two, shape]);
    let sum = kernel.alu(Op::Mulacc, &[x_value, splat, y_value]);
    let store = kernel.alu(Op::Store, &[y_run, sum]);
    kernel.alu(Op::End, &[store, range]);
    let (ones, numbers) = ([1.0; 8], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let results = launch(&kernel.finish(), &[float_bytes(&ones), float_bytes(&numbers)]).unwrap();
    assert_eq!(results[0], float_bytes(&numbers.map(|number| 2.0 * number + 1.0)));
}

#[test]
fn accumulators_and_a_horizontal_sum() {
    // y[0] = sum of x, in an accumulator of four lanes.
    let mut kernel = Kernel::default();
    let (y, x) = (kernel.param(DType::F32, 1), kernel.param(DType::F32, 12));
    let accumulator = kernel.buffer(AddrSpace::Reg, DType::F32, &[4], 0);
    let zero = kernel.float(0.0);
    let shape = kernel.shape(&[4]);
    let zeros = kernel.alu(Op::Expand, &[zero, shape]);
    let start = kernel.alu(Op::Store, &[accumulator, zeros]);
    let (range, i) = kernel.range(3, 0, AxisType::Reduce);
    let inside = kernel.alu(Op::After, &[accumulator, start, range]);
    let four = kernel.int(4);
    let offset = kernel.alu(Op::Mul, &[i, four]);
    let run = kernel.run(x, offset, 4);
    let (value, old) = (kernel.add(Op::Load, &[run], REG), kernel.add(Op::Load, &[inside], REG));
    let sum = kernel.alu(Op::Add, &[old, value]);
    let update = kernel.alu(Op::Store, &[inside, sum]);
    let end = kernel.alu(Op::End, &[update, range]);
    let outside = kernel.alu(Op::After, &[accumulator, end]);
    let lanes = kernel.add(Op::Load, &[outside], REG);
    let total = kernel.add(Op::Reduce, &[lanes], Arg::Reduce { op: Op::Add, axes: [0].as_slice().into() });
    let first = kernel.graph.index(0);
    let scalar = kernel.alu(Op::Index, &[total, first]);
    let place = kernel.alu(Op::Index, &[y, first]);
    kernel.alu(Op::Store, &[place, scalar]);
    let numbers: Vec<f32> = (0..12).map(|number| number as f32).collect();
    let results = launch(&kernel.finish(), &[float_bytes(&[-1.0]), float_bytes(&numbers)]).unwrap();
    assert_eq!(results[0], float_bytes(&[66.0]));
}

/// `y[i] = x[index[i]]` over four lanes, gated by `index[i] < length of x` if asked for.
fn gather(gated: bool) -> LinearKernel {
    let mut kernel = Kernel::default();
    let (y, x) = (kernel.param(DType::F32, 4), kernel.param(DType::F32, 3));
    let indices = kernel.param(DType::I32, 4);
    let zero = kernel.int(0);
    let run = kernel.run(indices, zero, 4);
    let index = kernel.add(Op::Load, &[run], REG);
    let place = kernel.alu(Op::Index, &[x, index]);
    let value = if gated {
        let three = kernel.int(3);
        let gate = kernel.alu(Op::CmpLt, &[index, three]);
        let alternative = kernel.float(-1.0);
        kernel.add(Op::Load, &[place, alternative, gate], REG)
    } else {
        kernel.add(Op::Load, &[place], REG)
    };
    let out = kernel.run(y, zero, 4);
    kernel.alu(Op::Store, &[out, value]);
    kernel.finish()
}

fn indices(values: [i32; 4]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn a_false_gate_touches_no_memory() {
    let buffers = [float_bytes(&[0.0; 4]), float_bytes(&[5.0, 6.0, 7.0]), indices([2, 1000, 0, 3])];
    assert_eq!(launch(&gather(true), &buffers).unwrap()[0], float_bytes(&[7.0, -1.0, 5.0, -1.0]));
}

#[test]
fn an_access_outside_is_an_error_that_names_the_kernel() {
    for wrong in [3, -1, i32::MAX] {
        let buffers = [float_bytes(&[0.0; 4]), float_bytes(&[5.0, 6.0, 7.0]), indices([2, wrong, 0, 0])];
        let error = launch(&gather(false), &buffers).unwrap_err().to_string();
        assert!(error.contains("kernel_under_test") && error.contains(&wrong.to_string()), "{error}");
    }
}

#[test]
fn scratch_and_atomic_adds() {
    // scratch = x reversed; y[0] += scratch[i].
    let mut kernel = Kernel { local_offsets: vec![(0, 64)], scratch_bytes: 76, ..Kernel::default() };
    let (y, x) = (kernel.param(DType::F32, 1), kernel.param(DType::F32, 3));
    let scratch = kernel.buffer(AddrSpace::Local, DType::F32, &[3], 0);
    let (range, i) = kernel.range(3, 0, AxisType::Loop);
    let (two, minus) = (kernel.int(2), kernel.int(-1));
    let negative = kernel.alu(Op::Mul, &[i, minus]);
    let reverse = kernel.alu(Op::Add, &[negative, two]);
    let from = kernel.alu(Op::Index, &[x, i]);
    let value = kernel.add(Op::Load, &[from], REG);
    let to = kernel.alu(Op::Index, &[scratch, reverse]);
    let copy = kernel.alu(Op::Store, &[to, value]);
    let end = kernel.alu(Op::End, &[copy, range]);
    let ready = kernel.alu(Op::After, &[scratch, end]);
    let zero = kernel.int(0);
    let place = kernel.alu(Op::Index, &[y, zero]);
    let from = kernel.alu(Op::Index, &[ready, zero]);
    let first = kernel.add(Op::Load, &[from], REG);
    kernel.alu(Op::AtomicAdd, &[place, first]);
    let kernel = kernel.finish();
    let results = launch(&kernel, &[float_bytes(&[100.0]), float_bytes(&[1.0, 2.0, 3.0])]).unwrap();
    assert_eq!(results[0], float_bytes(&[103.0]));
    let too_small = LinearKernel { scratch_bytes: 75, ..kernel };
    assert!(matches!(launch(&too_small, &[vec![], vec![]]), Err(BackendError::Unsupported { .. })));
}

#[test]
fn conditions_skip_and_empty_loops_do_not_run() {
    let mut kernel = Kernel::default();
    let y = kernel.param(DType::I64, 2);
    let (range, _) = kernel.range(0, 0, AxisType::Loop);
    let (zero, one) = (kernel.int(0), kernel.int(1));
    let seven = kernel.graph.constant(Const::int(DType::I64, 7));
    let (first, second) = (kernel.alu(Op::Index, &[y, zero]), kernel.alu(Op::Index, &[y, one]));
    let store = kernel.alu(Op::Store, &[first, seven]);
    kernel.alu(Op::End, &[store, range]);
    let gate = kernel.alu(Op::CmpLt, &[zero, one]);
    let condition = kernel.alu(Op::If, &[gate]);
    kernel.alu(Op::Store, &[second, seven]);
    kernel.alu(Op::Endif, &[condition]);
    let results = launch(&kernel.finish(), &[vec![0; 16]]).unwrap();
    assert_eq!(results[0], [0i64, 7].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
}

#[test]
fn damaged_code_is_refused() {
    let code = InterpreterCompiler.compile(&gather(true), &interpreter::target()).unwrap();
    for position in 0..code.len() {
        let mut damaged = code.clone();
        damaged[position] ^= 1;
        assert!(InterpreterRuntime.load("k", &damaged).is_err(), "byte {position}");
    }
    assert!(InterpreterRuntime.load("k", &code[..code.len() / 2]).is_err());
    assert!(InterpreterRuntime.load("k", &[]).is_err());
}

#[test]
fn malformed_kernels_are_refused() {
    let mut open = Kernel::default();
    open.range(3, 0, AxisType::Loop);
    let mut unordered = Kernel::default();
    let (y, zero) = (unordered.param(DType::F32, 1), unordered.int(0));
    let place = unordered.graph.add(Op::Index, &[y, zero], Arg::None).unwrap();
    let value = unordered.graph.add(Op::Load, &[place], REG).unwrap();
    unordered.alu(Op::Store, &[place, value]);
    for kernel in [open, unordered] {
        let error = InterpreterCompiler.compile(&kernel.finish(), &interpreter::target()).unwrap_err();
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
    }
}

#[test]
fn memory_checks_lengths_and_may_be_empty() {
    let runtime = InterpreterRuntime;
    let empty = runtime.allocate(0).unwrap();
    assert!(empty.is_empty() && (empty.address() as usize).is_multiple_of(64));
    runtime.write(empty.as_ref(), &[]).unwrap();
    assert!(matches!(runtime.write(empty.as_ref(), &[1]), Err(BackendError::Memory(_))));
    assert!(matches!(runtime.allocate(usize::MAX), Err(BackendError::Memory(_))));
    let three = runtime.allocate(3).unwrap();
    assert_eq!(three.address() as usize % 64, 0);
    assert!(runtime.read(three.as_ref(), &mut [0; 4]).is_err());
}
