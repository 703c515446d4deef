//! Kernels of workgroups on the interpreter that runs them as a GPU does, and what it refuses to run.

use crate::kernel::{self, Kernel, REG, float_bytes};
use tinyspec_backends::interpreter::linear::InterpreterCompiler;
use tinyspec_backends::interpreter::simt::{SimtCompiler, SimtRuntime, target};
use tinyspec_backends::{BackendError, Compiler, LinearKernel};
use tinyspec_ir::{AddrSpace, Arg, AxisType, DType, NodeId, Op};

fn launch(kernel: &LinearKernel, buffers: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, BackendError> {
    kernel::launch(&SimtRuntime, &SimtCompiler, &target(), kernel, buffers)
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|number| number as f32).collect()
}

/// The index so many further.
fn plus(kernel: &mut Kernel, value: NodeId, number: i64) -> NodeId {
    let number = kernel.int(number);
    kernel.alu(Op::Add, &[value, number])
}

fn load(kernel: &mut Kernel, buffer: NodeId, index: NodeId) -> NodeId {
    let place = kernel.alu(Op::Index, &[buffer, index]);
    kernel.add(Op::Load, &[place], REG)
}

fn store(kernel: &mut Kernel, buffer: NodeId, index: NodeId, value: NodeId) -> NodeId {
    let place = kernel.alu(Op::Index, &[buffer, index]);
    kernel.alu(Op::Store, &[place, value])
}

#[test]
fn every_thread_knows_where_it_is() {
    // y[12 gidx1 + 4 gidx0 + 2 lidx1 + lidx0] = its index.
    let mut kernel = Kernel::default();
    let y = kernel.param(DType::F32, 24);
    let mut at = kernel.int(0);
    for (name, bound, step) in [("gidx1", 2, 12), ("gidx0", 3, 4), ("lidx1", 2, 2), ("lidx0", 2, 1)] {
        let (index, step) = (kernel.special(bound, name), kernel.int(step));
        let part = kernel.alu(Op::Mul, &[index, step]);
        at = kernel.alu(Op::Add, &[at, part]);
    }
    let value = kernel.add(Op::Cast, &[at], Arg::DType(DType::F32));
    store(&mut kernel, y, at, value);
    let kernel = kernel.finish();
    assert_eq!((kernel.grid.groups, kernel.grid.threads), ([3, 2, 1], [2, 2, 1]));
    let results = launch(&kernel, &[float_bytes(&[-1.0; 24])]).unwrap();
    assert_eq!(results[0], float_bytes(&numbers(24)));
    let refused = InterpreterCompiler.compile(&kernel, &target()).unwrap_err();
    assert!(matches!(refused, BackendError::Unsupported { .. }), "{refused}");
}

/// `y[i] = x'[3 - i]`, where x' is a LOCAL copy of x that all threads make.
fn mirrored(waits: bool) -> LinearKernel {
    let mut kernel = Kernel { local_offsets: vec![(0, 0)], scratch_bytes: 64, ..Kernel::default() };
    let (y, x) = (kernel.param(DType::F32, 4), kernel.param(DType::F32, 4));
    let copy = kernel.buffer(AddrSpace::Local, DType::F32, &[4], 0);
    let thread = kernel.special(4, "lidx0");
    let value = load(&mut kernel, x, thread);
    let mut stored = store(&mut kernel, copy, thread, value);
    if waits {
        stored = kernel.alu(Op::Barrier, &[stored]);
    }
    let filled = kernel.alu(Op::After, &[copy, stored]);
    let (minus, three) = (kernel.int(-1), kernel.int(3));
    let back = kernel.alu(Op::Mul, &[thread, minus]);
    let back = kernel.alu(Op::Add, &[three, back]);
    let value = load(&mut kernel, filled, back);
    store(&mut kernel, y, thread, value);
    kernel.finish()
}

#[test]
fn threads_that_meet_without_a_barrier_are_found() {
    let buffers = [float_bytes(&[0.0; 4]), float_bytes(&[1.0, 2.0, 3.0, 4.0])];
    let results = launch(&mirrored(true), &buffers).unwrap();
    assert_eq!(results[0], float_bytes(&[4.0, 3.0, 2.0, 1.0]));
    let error = launch(&mirrored(false), &buffers).unwrap_err();
    assert!(matches!(error, BackendError::Race { .. }), "{error}");
    assert!(error.to_string().contains("thread (0) of workgroup (0) reads element 3"), "{error}");
}

#[test]
fn workgroups_have_no_order() {
    // Each reads what the one before has written.
    let mut kernel = Kernel::default();
    let y = kernel.param(DType::F32, 4);
    let group = kernel.special(3, "gidx0");
    let next = plus(&mut kernel, group, 1);
    let value = load(&mut kernel, y, group);
    store(&mut kernel, y, next, value);
    let error = launch(&kernel.finish(), &[float_bytes(&numbers(4))]).unwrap_err();
    assert!(matches!(error, BackendError::Race { .. }), "{error}");
    // All add to one place: that has no order.
    let mut kernel = Kernel::default();
    let y = kernel.param(DType::F32, 1);
    kernel.special(3, "gidx0");
    kernel.special(5, "lidx0");
    let (first, one) = (kernel.int(0), kernel.float(1.0));
    let place = kernel.alu(Op::Index, &[y, first]);
    kernel.alu(Op::AtomicAdd, &[place, one]);
    let results = launch(&kernel.finish(), &[float_bytes(&[2.0])]).unwrap();
    assert_eq!(results[0], float_bytes(&[17.0]));
}

#[test]
fn local_memory_begins_unwritten_in_each_workgroup() {
    let mut kernel = Kernel { local_offsets: vec![(0, 0)], scratch_bytes: 64, ..Kernel::default() };
    let y = kernel.param(DType::F32, 2);
    let local = kernel.buffer(AddrSpace::Local, DType::F32, &[1], 0);
    let (group, first) = (kernel.special(2, "gidx0"), kernel.int(0));
    let (one, value) = (kernel.int(1), kernel.float(5.0));
    let is_first = kernel.alu(Op::CmpLt, &[group, one]);
    let place = kernel.alu(Op::Index, &[local, first]);
    let stored = kernel.alu(Op::Store, &[place, value, is_first]);
    let filled = kernel.alu(Op::After, &[local, stored]);
    let value = load(&mut kernel, filled, first);
    store(&mut kernel, y, group, value);
    let error = launch(&kernel.finish(), &[float_bytes(&[0.0; 2])]).unwrap_err();
    assert!(matches!(error, BackendError::Uninitialised { .. }), "{error}");
    assert!(error.to_string().contains("workgroup (1)"), "{error}");
}

/// Thread t goes t times through a loop that adds 1; with a Barrier in it, or without.
fn triangle(waits: bool) -> LinearKernel {
    let mut kernel = Kernel::default();
    let y = kernel.param(DType::F32, 4);
    let total = kernel.buffer(AddrSpace::Reg, DType::F32, &[], 0);
    let thread = kernel.special(4, "lidx0");
    let zero = kernel.float(0.0);
    let start = kernel.alu(Op::Store, &[total, zero]);
    let bound = kernel.add(Op::Cast, &[thread], Arg::DType(DType::Index));
    let range = kernel.add(Op::Range, &[bound], Arg::Range { id: 0, axis: AxisType::Loop });
    let mut inside = vec![total, start, range];
    if waits {
        inside.push(kernel.alu(Op::Barrier, &[range]));
    }
    let inside = kernel.alu(Op::After, &inside);
    let (old, one) = (kernel.add(Op::Load, &[inside], REG), kernel.float(1.0));
    let sum = kernel.alu(Op::Add, &[old, one]);
    let update = kernel.alu(Op::Store, &[inside, sum]);
    let end = kernel.alu(Op::End, &[update, range]);
    let after = kernel.alu(Op::After, &[total, end]);
    let value = kernel.add(Op::Load, &[after], REG);
    store(&mut kernel, y, thread, value);
    kernel.finish()
}

#[test]
fn threads_may_part_but_not_before_a_barrier() {
    let buffers = [float_bytes(&[9.0; 4])];
    assert_eq!(launch(&triangle(false), &buffers).unwrap()[0], float_bytes(&numbers(4)));
    let error = launch(&triangle(true), &buffers).unwrap_err();
    assert!(matches!(error, BackendError::Divergence { .. }), "{error}");
}

#[test]
fn every_access_is_inside_of_its_buffer() {
    let mut kernel = Kernel::default();
    let y = kernel.param(DType::F32, 7);
    let (thread, value) = (kernel.special(8, "lidx0"), kernel.float(1.0));
    store(&mut kernel, y, thread, value);
    let error = launch(&kernel.finish(), &[float_bytes(&[0.0; 7])]).unwrap_err();
    assert!(error.to_string().contains("thread (7) of workgroup (0) writes element 7 of buffer 0"), "{error}");
}

#[test]
fn launches_beyond_the_limits_are_refused() {
    for (name, bound) in [("lidx0", 1025), ("lidx2", 65), ("gidx1", 65_536)] {
        let mut kernel = Kernel::default();
        kernel.special(bound, name);
        let error = SimtCompiler.compile(&kernel.finish(), &target()).unwrap_err();
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
    }
    let kernel = Kernel { scratch_bytes: 1 << 20, ..Kernel::default() };
    let error = SimtCompiler.compile(&kernel.finish(), &target()).unwrap_err();
    assert!(error.to_string().contains("1048576 bytes of LOCAL memory"), "{error}");
}
