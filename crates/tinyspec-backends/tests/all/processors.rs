//! Every processor of the table can be rendered for, wherever this runs; what the host cannot run it refuses.

use crate::kernel::{Kernel, REG};
use tinyspec_backends::cpu::CpuRuntime;
use tinyspec_backends::llvm::LlvmCompiler;
use tinyspec_backends::processor::{Architecture, Numbers};
use tinyspec_backends::{BackendError, Compiler, LinearKernel, Processor, Runtime};
use tinyspec_ir::DType::{BF16, F32, I16, U32};
use tinyspec_ir::{Arg, AxisType, Op};

/// `out[i] = a[i] * b[i] + out[i]` in vectors of `lanes`; of words of bf16 where they are.
fn products(lanes: i64, words: bool) -> LinearKernel {
    let mut kernel = Kernel::default();
    let factor = if words { U32 } else { F32 };
    let (out, a, b) = (kernel.param(F32, 64), kernel.param(factor, 64), kernel.param(factor, 64));
    let (range, i) = kernel.range(64 / lanes, 0, AxisType::Loop);
    let lanes_node = kernel.int(lanes);
    let offset = kernel.alu(Op::Mul, &[i, lanes_node]);
    let mut values = Vec::new();
    for buffer in [a, b, out] {
        let place = kernel.run(buffer, offset, lanes);
        values.push(kernel.add(Op::Load, &[place], REG));
    }
    let value = match words {
        true => kernel.add(Op::Wmma, &values, Arg::Text(BF16.name().into())),
        false => kernel.alu(Op::Mulacc, &values),
    };
    let place = kernel.run(out, offset, lanes);
    let store = kernel.alu(Op::Store, &[place, value]);
    kernel.alu(Op::End, &[store, range]);
    kernel.finish()
}

#[test]
fn every_processor_is_rendered_for_in_its_own_instructions() {
    let compiler = LlvmCompiler::new().expect("libLLVM");
    for name in Processor::names() {
        let processor = Processor::named(name).expect("a known name");
        let target = processor.target(1);
        let kernel = products(target.lanes(F32) as i64, false);
        let assembly = compiler.assembly(&kernel, &target).unwrap_or_else(|error| panic!("{name}: {error}"));
        let marks = match (processor.isa.architecture, target.vector_bytes) {
            (Architecture::X86_64, 64) => ["vfmadd", "zmm"],
            (Architecture::X86_64, 32) => ["vfmadd", "ymm"],
            (Architecture::X86_64, _) => ["mulps", "xmm"],
            (Architecture::Aarch64, _) => ["fmla", ".4s"],
            (other, _) => panic!("{name} is no CPU: {other:?}"),
        };
        assert!(marks.iter().all(|mark| assembly.contains(mark)), "{name}: {assembly}");
        if target.has_tensor_core(BF16) {
            let kernel = products(target.lanes(F32) as i64, true);
            let assembly = compiler.assembly(&kernel, &target).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(["vdpbf16ps", "bfdot"].iter().any(|mark| assembly.contains(mark)), "{name}: {assembly}");
            let strict = target.clone().strict();
            assert!(!strict.has_tensor_core(BF16) && strict.has_tensor_core(I16) == target.has_tensor_core(I16));
        }
        let code = compiler.compile(&kernel, &target).unwrap_or_else(|error| panic!("{name}: {error}"));
        match (CpuRuntime::of(&target).load(&kernel.name, &code), processor.isa.missing_on_host()) {
            (Ok(_), None) => {}
            (Err(BackendError::Processor { name: refused, reason }), Some(missing)) => {
                assert_eq!((refused, reason), (target.isa.expect("a processor's").cpu, missing));
            }
            (Err(error), missing) => panic!("{name}, {missing:?}: {error}"),
            (Ok(_), Some(missing)) => panic!("{name} was loaded: {missing}"),
        }
    }
}

/// Lowering reads the table, never the host.
#[test]
fn named_processors_are_the_same_everywhere() {
    let facts = |name: &str| {
        let target = Processor::named(name).expect("a known name").target(3);
        let [first, second, _] = target.cache_bytes.map(|bytes| bytes >> 10);
        let words = target.tensor_cores.len();
        (target.vector_bytes, target.vector_registers, target.masked_access, first, second, words, target.threads)
    };
    let expected = [
        ("x86-64-v3", (32, 16, false, 32, 512, 0, 3)),
        ("x86-64-v4", (64, 32, true, 32, 1024, 0, 3)),
        ("znver3", (32, 16, false, 32, 512, 0, 3)),
        ("znver4", (64, 32, true, 32, 1024, 3, 3)),
        ("znver5", (64, 32, true, 48, 1024, 3, 3)),
        ("sapphirerapids", (64, 32, true, 48, 2048, 2, 3)),
        ("neoverse-v2", (16, 32, false, 64, 2048, 2, 3)),
    ];
    assert_eq!(Processor::names().skip(1).collect::<Vec<_>>(), expected.map(|(name, _)| name));
    for (name, expected) in expected {
        assert_eq!(facts(name), expected, "{name}");
        assert_ne!(Processor::named(name).expect("a known name").numbers, Numbers::Detected);
    }
    assert_eq!(Processor::named("native"), Ok(Processor::native()));
    let error = Processor::named("z80").expect_err("not here");
    assert!(error.to_string().contains("`z80`") && error.to_string().contains("neoverse-v2"), "{error}");
}
