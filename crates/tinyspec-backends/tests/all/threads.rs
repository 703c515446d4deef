//! A THREAD Range shared by the threads of the CPU: every trip runs once, whoever asks, and when.

use crate::kernel::{Kernel, REG};
use tinyspec_backends::cpu::CpuRuntime;
use tinyspec_backends::llvm::LlvmCompiler;
use tinyspec_backends::{Compiler, Grid, Launch, LinearKernel, Runtime, Target};
use tinyspec_ir::{Arg, AxisType, Builder, Const, DType, Op};

/// `out[g] += 1` for every trip of a THREAD Range, as often as `repeats` says.
fn counting(trips: i64, repeats: i64) -> LinearKernel {
    let mut kernel = Kernel { shared_trips: trips as usize, ..Kernel::default() };
    let out = kernel.param(DType::U32, trips);
    let (global, g) = kernel.range(trips, 0, AxisType::Thread);
    let (again, _) = kernel.range(repeats, 1, AxisType::Loop);
    let place = kernel.alu(Op::Index, &[out, g]);
    let value = kernel.add(Op::Load, &[place], REG);
    let one = kernel.graph.constant(Const::int(DType::U32, 1));
    let sum = kernel.add(Op::Add, &[value, one], Arg::None);
    let store = kernel.alu(Op::Store, &[place, sum]);
    let end = kernel.alu(Op::End, &[store, again]);
    kernel.alu(Op::End, &[end, global]);
    kernel.finish()
}

/// Launches the kernel that often on memory of its own, now finely cut, now coarsely, now on the caller alone; what the
/// cells then hold.
fn launch(runtime: &CpuRuntime, kernel: &LinearKernel, code: &[u8], launches: u64) -> Vec<u32> {
    let program = runtime.load(&kernel.name, code).expect("it loads");
    let memory = runtime.allocate(kernel.shared_trips * 4).expect("memory");
    runtime.write(memory.as_ref(), &vec![0; kernel.shared_trips * 4]).expect("it fits");
    for number in 0..launches {
        let launch = Launch {
            program: program.clone(),
            buffers: vec![0],
            dims: Vec::new(),
            trips: 0..kernel.shared_trips,
            grid: Grid::default(),
            scratch_bytes: 0,
            nanoseconds: [0, 10_000, 20_000, 1_000_000, u64::MAX][(number % 5) as usize],
            has_prologue: number % 3 == 0,
            line: Default::default(),
        };
        // SAFETY: the memory has a cell for every trip.
        unsafe { runtime.enqueue(&vec![launch].into(), &[memory.address()]).expect("it runs") };
    }
    let mut cells = vec![0; memory.len()];
    runtime.read(memory.as_ref(), &mut cells).expect("it fits");
    cells.as_chunks().0.iter().map(|cell| u32::from_le_bytes(*cell)).collect()
}

#[test]
fn every_trip_runs_once() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    for threads in [1, 2, 3, 16] {
        let runtime = CpuRuntime::new(threads);
        for (trips, repeats) in [(1, 1), (2, 40), (7, 1), (16, 300), (1000, 3), (70_001, 1)] {
            let kernel = counting(trips, repeats);
            let code = compiler.compile(&kernel, &Target::native()).expect("it compiles");
            let cells = launch(&runtime, &kernel, &code, 200);
            assert!(cells.iter().all(|&cell| i64::from(cell) == 200 * repeats), "{trips} trips on {threads} threads");
        }
    }
}

/// One has the team, the others work alone; nobody waits for ever, and nobody's trips get lost.
#[test]
fn callers_share_a_team() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let kernel = counting(257, 20);
    let code = compiler.compile(&kernel, &Target::native()).expect("it compiles");
    let runtime = CpuRuntime::new(3);
    std::thread::scope(|scope| {
        let (runtime, kernel, code) = (&runtime, &kernel, &code);
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(move || launch(runtime, kernel, code, 2000))).collect();
        for caller in callers {
            let cells = caller.join().expect("the caller ends");
            assert!(cells.iter().all(|&cell| cell == 2000 * 20));
        }
    });
}
