//! Code for GPUs. LLVM ends the process where a chip lacks something, so each chip's is made by a child.

use crate::kernel::{Kernel, REG};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSection as _};
use std::process::Command;
use tinyspec_backends::gpu::intrinsics::Intrinsic;
use tinyspec_backends::llvm::LlvmCompiler;
use tinyspec_backends::{BackendError, Compiler, Gpu, LinearKernel, Target};
use tinyspec_ir::{AddrSpace, Arg, Builder, Const, DType, NodeId, Op};

/// A chip of each generation; all with `TINYSPEC_SHAPES=all`.
const SOME: [&str; 6] = ["sm_75", "sm_90a", "sm_100", "gfx942", "gfx1100", "gfx1201"];
const CHIP: &str = "TINYSPEC_CHIP";
const INTS: [DType; 8] = [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const SMALL: [DType; 2] = [DType::F8E4M3, DType::F8E5M2];
const WIDTHS: [i64; 4] = [1, 2, 3, 4];

#[test]
fn every_operation_becomes_code_of_every_gpu() {
    let takes_all = std::env::var("TINYSPEC_SHAPES").is_ok_and(|text| text == "all");
    for chip in Gpu::names().filter(|chip| takes_all || SOME.contains(chip)) {
        let output = Command::new(std::env::current_exe().expect("the test's own file"))
            .args(["--exact", "gpus::operations_of_one_gpu", "--include-ignored", "--nocapture"])
            .env(CHIP, chip)
            .output()
            .expect("a child");
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or_default();
        assert!(output.status.success(), "{chip}: {last}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("all compile"), "{chip}: {text}");
    }
}

#[test]
#[ignore = "run by the test above"]
fn operations_of_one_gpu() {
    let Ok(chip) = std::env::var(CHIP) else { return };
    let target = Gpu::named(&chip).expect("a known chip").target();
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let located = compiler.clone().located();
    let compile = |what: String, kernel: LinearKernel| {
        // What stands last was the child's end.
        println!("{what}");
        let [plain, located] = [&compiler, &located].map(|compiler| {
            compiler.compile(&kernel, &target).unwrap_or_else(|error| panic!("{chip}, {what}: {error}"))
        });
        assert!(has_locations(&located) && !has_locations(&plain), "{chip}, {what}");
        assert!(without_locations(&located) == without_locations(&plain), "{chip}, {what}: other code with locations");
    };
    for dtype in INTS.into_iter().chain(FLOATS).chain([DType::Bool]) {
        for width in WIDTHS {
            compile(format!("operations on {dtype}×{width}"), operations(dtype, width));
            compile(format!("conversions of {dtype}×{width}"), conversions(dtype, width));
        }
    }
    for dtype in INTS.into_iter().chain(FLOATS).chain(SMALL).chain([DType::Bool]) {
        compile(format!("sums in memory of {dtype}"), sums_in_memory(dtype));
    }
    for intrinsic in Intrinsic::ALL {
        let dtypes: &[DType] = if intrinsic.is_of_floats {
            &[DType::F16, DType::F32, DType::F64]
        } else {
            &[DType::I8, DType::I16, DType::I32, DType::I64]
        };
        for &dtype in dtypes {
            for width in WIDTHS.into_iter().chain([Intrinsic::MOST_LANES.into()]) {
                compile(format!("{} of {dtype}×{width}", intrinsic.name), call(intrinsic, dtype, width));
            }
        }
    }
    println!("all compile");
}

fn has_locations(code: &[u8]) -> bool {
    match std::str::from_utf8(code) {
        Ok(ptx) => ptx.contains("\t.loc\t"),
        Err(_) => ElfFile64::<LittleEndian>::parse(code).expect("an object").section_by_name(".debug_line").is_some(),
    }
}

/// What a GPU makes of the code: PTX without what is for debuggers, and what of an object is loaded but the tables, which
/// hold addresses.
fn without_locations(code: &[u8]) -> Vec<u8> {
    if let Ok(ptx) = std::str::from_utf8(code) {
        let (code, _) = ptx.split_once("\t.file\t").unwrap_or((ptx, ""));
        let is_code = |line: &&str| !["\t.loc\t", "$L__tmp", "$L__func"].iter().any(|start| line.starts_with(start));
        let lines = code.lines().filter(is_code).map(|line| line.strip_suffix(", debug").unwrap_or(line));
        return lines.map(|line| line.trim_end()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n").into();
    }
    let file = ElfFile64::<LittleEndian>::parse(code).expect("an object");
    [".note", ".rodata", ".text"]
        .iter()
        .filter_map(|name| file.section_by_name(name))
        .flat_map(|section| section.data().expect("its bytes").to_vec())
        .collect()
}

/// A kernel of 32 threads, each of which has its `width` elements of every buffer.
struct Threads {
    kernel: Kernel,
    first: NodeId,
    width: i64,
}

const THREADS: i64 = 32;

impl Threads {
    fn new(width: i64) -> Threads {
        let mut kernel = Kernel::default();
        let thread = kernel.special(THREADS, "lidx0");
        let width_node = kernel.int(width);
        let first = kernel.alu(Op::Mul, &[thread, width_node]);
        Threads { kernel, first, width }
    }

    fn place(&mut self, dtype: DType) -> NodeId {
        let buffer = self.kernel.param(dtype, THREADS * self.width);
        match self.width {
            1 => self.kernel.alu(Op::Index, &[buffer, self.first]),
            width => self.kernel.run(buffer, self.first, width),
        }
    }

    fn input(&mut self, dtype: DType) -> NodeId {
        let place = self.place(dtype);
        self.kernel.add(Op::Load, &[place], REG)
    }

    fn output(&mut self, value: NodeId) {
        let place = self.place(self.kernel.graph.dtype(value));
        self.kernel.alu(Op::Store, &[place, value]);
    }
}

fn operations(dtype: DType, width: i64) -> LinearKernel {
    let mut threads = Threads::new(width);
    let (a, b, c) = (threads.input(dtype), threads.input(dtype), threads.input(dtype));
    let (both, one): (&[Op], &[Op]) = match dtype {
        DType::Bool => (&[Op::Add, Op::Mul, Op::Max, Op::Xor, Op::Or, Op::And, Op::CmpNe], &[]),
        _ if dtype.is_float() => (
            &[Op::Add, Op::Mul, Op::Max, Op::Div, Op::Idiv, Op::Mod, Op::CmpLt, Op::CmpNe],
            &[Op::Recip, Op::Sqrt, Op::Trunc],
        ),
        _ => (
            &[
                Op::Add,
                Op::Mul,
                Op::Max,
                Op::Idiv,
                Op::Mod,
                Op::CmpLt,
                Op::CmpNe,
                Op::Shl,
                Op::Shr,
                Op::Xor,
                Op::Or,
                Op::And,
            ],
            &[Op::Trunc],
        ),
    };
    for &op in both {
        let value = threads.kernel.alu(op, &[a, b]);
        threads.output(value);
    }
    for &op in one {
        let value = threads.kernel.alu(op, &[a]);
        threads.output(value);
    }
    if dtype != DType::Bool {
        let value = threads.kernel.alu(Op::Mulacc, &[a, b, c]);
        threads.output(value);
        let less = threads.kernel.alu(Op::CmpLt, &[b, c]);
        let value = threads.kernel.alu(Op::Where, &[less, a, b]);
        threads.output(value);
    }
    threads.kernel.finish()
}

fn conversions(dtype: DType, width: i64) -> LinearKernel {
    let mut threads = Threads::new(width);
    let value = threads.input(dtype);
    for to in INTS.into_iter().chain(FLOATS).chain([DType::Bool]).filter(|to| *to != dtype) {
        let value = threads.kernel.add(Op::Cast, &[value], Arg::DType(to));
        threads.output(value);
    }
    threads.kernel.finish()
}

fn sums_in_memory(dtype: DType) -> LinearKernel {
    let mut threads = Threads::new(1);
    let value = threads.input(dtype);
    let place = threads.place(dtype);
    threads.kernel.alu(Op::AtomicAdd, &[place, value]);
    let local = threads.kernel.buffer(AddrSpace::Local, dtype, &[THREADS], 9);
    threads.kernel.local_offsets.push((9, 0));
    threads.kernel.scratch_bytes = THREADS as usize * dtype.size();
    let first = threads.first;
    let own = threads.kernel.alu(Op::Index, &[local, first]);
    threads.kernel.alu(Op::Store, &[own, value]);
    threads.kernel.alu(Op::Barrier, &[]);
    let zero = threads.kernel.int(0);
    let shared = threads.kernel.alu(Op::Index, &[local, zero]);
    threads.kernel.alu(Op::AtomicAdd, &[shared, value]);
    threads.kernel.finish()
}

fn call(intrinsic: &Intrinsic, dtype: DType, width: i64) -> LinearKernel {
    let mut threads = Threads::new(width);
    let operands: Vec<NodeId> = (0..intrinsic.operands).map(|_| threads.input(dtype)).collect();
    let arguments: Vec<String> = (0..intrinsic.operands).map(|number| format!("{{{number}}} %{number}")).collect();
    let (name, arguments) = (intrinsic.name, arguments.join(", "));
    let code = format!("%value = call {{r}} @{name}.{{r.name}}({arguments})\nret {{r}} %value");
    let value = custom(&mut threads, &code, &operands);
    threads.output(value);
    threads.kernel.finish()
}

fn custom(threads: &mut Threads, code: &str, operands: &[NodeId]) -> NodeId {
    let sources: Vec<NodeId> = operands.first().into_iter().chain(operands).copied().collect();
    threads.kernel.add(Op::Custom, &sources, Arg::Text(code.into()))
}

/// What no chip's code is tested of is an error before LLVM sees it.
#[test]
fn code_of_ones_own_is_refused_where_a_gpu_may_lack_something() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    for (code, reason) in [
        ("%v = call {r} @llvm.sin.{r.name}({0} %0)\nret {r} %v", "llvm.sin"),
        ("%v = call {r} @llvm.amdgcn.rcp.{r.name}({0} %0)\nret {r} %v", "llvm.amdgcn.rcp"),
        ("%v = frem {r} %0, %0\nret {r} %v", "frem"),
        ("%p = alloca {r}\nstore {r} %0, ptr %p\n%v = load {r}, ptr %p\nret {r} %v", "alloca"),
        ("%v = call {r} asm \"foo $0, $1\", \"=r,r\"({0} %0)\nret {r} %v", "inline assembler"),
        ("%w = fpext {0} %0 to fp128\n%v = fptrunc fp128 %w to {r}\nret {r} %v", "fp128"),
    ] {
        let mut threads = Threads::new(1);
        let operand = threads.input(DType::F32);
        let value = custom(&mut threads, code, &[operand]);
        threads.output(value);
        let kernel = threads.kernel.finish();
        for chip in SOME {
            let error = compiler.compile(&kernel, &Gpu::named(chip).expect("a known chip").target());
            let error = error.expect_err(code).to_string();
            assert!(error.contains(reason) && error.contains(chip), "{code}: {error}");
        }
    }
}

#[test]
fn launches_that_a_gpu_cannot_make_are_refused() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let kernel = |bound: i64, name: &str| {
        let mut kernel = Kernel::default();
        let index = kernel.special(bound, name);
        let buffer = kernel.param(DType::I32, bound);
        let place = kernel.alu(Op::Index, &[buffer, index]);
        kernel.alu(Op::Store, &[place, index]);
        kernel.finish()
    };
    let refusal = |kernel: &LinearKernel, target: &Target| match compiler.compile(kernel, target) {
        Err(BackendError::Unsupported { target, .. }) => Some(target),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    };
    for gpu in Gpu::names().filter_map(|name| Gpu::named(name).ok()) {
        let refused = Some(gpu.name.to_string());
        assert_eq!(refusal(&kernel(1025, "lidx0"), &gpu.target()), refused);
        assert_eq!(refusal(&kernel(1024, "lidx0"), &gpu.target()), None);
        assert_eq!(refusal(&kernel(1 << 32, "gidx0"), &gpu.target()), refused);
    }
}

/// Places in large buffers need more bits than a register has: up to 2 GiB one does.
#[test]
fn offsets_have_as_many_bits_as_the_buffer_needs() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    let target = Gpu::named("sm_80").expect("a known chip").target();
    let ptx = |groups: i64| {
        let mut kernel = Kernel::default();
        let (group, thread) = (kernel.special(groups, "gidx0"), kernel.special(1024, "lidx0"));
        let wide = |kernel: &mut Kernel, value| kernel.add(Op::Cast, &[value], Arg::DType(DType::I64));
        let (group, thread) = (wide(&mut kernel, group), wide(&mut kernel, thread));
        let size = kernel.graph.constant(Const::int(DType::I64, 1024));
        let first = kernel.alu(Op::Mul, &[group, size]);
        let index = kernel.alu(Op::Add, &[first, thread]);
        let buffer = kernel.param(DType::U8, groups * 1024);
        let place = kernel.alu(Op::Index, &[buffer, index]);
        let value = kernel.graph.constant(Const::int(DType::U8, 7));
        kernel.alu(Op::Store, &[place, value]);
        compiler.assembly(&kernel.finish(), &target).expect("it compiles")
    };
    let is_wide = |text: &str| text.contains("mul.wide.u32") || text.contains("shl.b64");
    assert!(!is_wide(&ptx(1 << 20)), "{}", ptx(1 << 20));
    assert!(is_wide(&ptx(1 << 22)), "{}", ptx(1 << 22));
}
