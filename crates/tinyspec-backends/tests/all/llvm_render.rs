//! Linear kernels through LLVM, against `eval_op` and against the interpreter.

mod kernels;
mod ops;

use crate::kernel::{Kernel, REG};
use tinyspec_backends::host_memory::{self, HostMemory};
use tinyspec_backends::interpreter;
use tinyspec_backends::interpreter::linear::{InterpreterCompiler, InterpreterRuntime};
use tinyspec_backends::llvm::{LlvmCompiler, LoadedObject};
use tinyspec_backends::{Compiler, LinearKernel, Memory, Processor, Target};
use tinyspec_ir::{Arg, AxisType, Const, DType, NodeId, Op};

type Function = unsafe extern "C" fn(*const *mut u8, i64, i64);

/// Runs trips `begin..end` of the kernel on copies of the buffers.
fn run_part(
    compiler: &LlvmCompiler,
    target: &Target,
    kernel: &LinearKernel,
    buffers: &[Vec<u8>],
    trips: (i64, i64),
) -> Vec<Vec<u8>> {
    let object = compiler.compile(kernel, target).unwrap_or_else(|error| panic!("{error}"));
    run_object(&object, kernel, buffers, trips)
}

/// As [`run_part`], by code that is there.
fn run_object(object: &[u8], kernel: &LinearKernel, buffers: &[Vec<u8>], trips: (i64, i64)) -> Vec<Vec<u8>> {
    let loaded = LoadedObject::load(object).expect("a sound object");
    let name = loaded.functions().next().expect("one function").to_string();
    // SAFETY: the calling convention of kernels.
    let function: Function = unsafe { std::mem::transmute(loaded.function(&name).expect("the function")) };
    let mut memories: Vec<HostMemory> = Vec::new();
    for data in buffers {
        let memory = HostMemory::new(data.len()).expect("memory");
        host_memory::write(&memory, data).expect("it fits");
        memories.push(memory);
    }
    memories.push(HostMemory::new(kernel.scratch_bytes).expect("memory"));
    let addresses: Vec<*mut u8> = memories.iter().map(Memory::address).collect();
    // SAFETY: every buffer is as long as its Param says.
    unsafe { function(addresses.as_ptr(), trips.0, trips.1) };
    let read = |memory: &HostMemory| {
        let mut data = vec![0; memory.len()];
        host_memory::read(memory, &mut data).expect("it fits");
        data
    };
    memories[..buffers.len()].iter().map(read).collect()
}

fn run(kernel: &LinearKernel, buffers: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    run_part(&compiler, &Target::native(), kernel, buffers, (0, kernel.shared_trips as i64))
}

/// On the interpreter.
fn interpret(kernel: &LinearKernel, buffers: &[Vec<u8>]) -> Vec<Vec<u8>> {
    crate::kernel::launch(&InterpreterRuntime, &InterpreterCompiler, &interpreter::target(), kernel, buffers)
        .expect("the interpreter runs it")
}

/// A constant's bits in memory.
fn bits(value: Const) -> u64 {
    if value.dtype.is_float() {
        tinyspec_ir::float::to_bits(value.dtype, f64::from_bits(value.bits))
    } else {
        value.bits
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}

/// The host, and the levels of x86-64 that it can stand in for.
fn processors() -> Vec<Processor> {
    let all = ["native", "x86-64-v3", "x86-64-v4"].map(|name| Processor::named(name).expect("a known name"));
    all.into_iter().filter(|processor| processor.isa.missing_on_host().is_none()).collect()
}

fn value_of(dtype: DType, data: &[u8]) -> Const {
    let mut word = [0; 8];
    word[..data.len()].copy_from_slice(data);
    let raw = u64::from_le_bytes(word);
    if dtype.is_float() {
        Const { dtype, bits: tinyspec_ir::float::from_bits(dtype, raw).to_bits() }
    } else {
        Const::int(dtype, raw as i128)
    }
}

/// `out[i] = op(a[i], …)` in vectors of `lanes`.
fn elementwise(op: Op, operands: &[DType], result: DType, lanes: i64, count: i64) -> LinearKernel {
    let mut kernel = Kernel::default();
    let out = kernel.param(result, count);
    let inputs: Vec<NodeId> = operands.iter().map(|dtype| kernel.param(*dtype, count)).collect();
    let (range, i) = kernel.range(count / lanes, 0, AxisType::Loop);
    let lanes_node = kernel.int(lanes);
    let offset = kernel.alu(Op::Mul, &[i, lanes_node]);
    let place = |kernel: &mut Kernel, buffer| match lanes {
        1 => kernel.alu(Op::Index, &[buffer, offset]),
        _ => kernel.run(buffer, offset, lanes),
    };
    let mut values = Vec::new();
    for input in inputs {
        let from = place(&mut kernel, input);
        values.push(kernel.add(Op::Load, &[from], REG));
    }
    let arg = match op {
        Op::Cast | Op::Bitcast => Arg::DType(result),
        Op::Wmma => Arg::Text(if result.is_float() { "bf16" } else { "i16" }.into()),
        _ => Arg::None,
    };
    let value = kernel.add(op, &values, arg);
    let to = place(&mut kernel, out);
    let store = kernel.alu(Op::Store, &[to, value]);
    kernel.alu(Op::End, &[store, range]);
    kernel.finish()
}
