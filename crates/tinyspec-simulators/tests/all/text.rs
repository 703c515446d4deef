//! What the parser takes, and where it says that it does not.

use super::{module, try_run, words};
use tinyspec_simulators::{Launch, Run as _, SimulatorError, ptx::Module};

fn error_of(body: &str) -> SimulatorError {
    let text = module(1, "", body);
    Module::parse(&text).and_then(|module| module.kernel("k").map(|_| ())).expect_err("it was taken")
}

#[test]
fn errors_name_line_and_column() {
    let rows = [
        ("add.s32 %r1, %r2 %r3;", "line 6, column 18: expected `,`, found `%r3`"),
        ("  add.s32 %r1, %r2, %x;", "line 6, column 3: there is no register or variable `%x`"),
        ("add.s32 %r1, %r2, %d3;", "line 6, column 1: `%d3` has 64 bits, `.s32` is wanted"),
        ("add.s32 %r1, %r2;", "line 6, column 1: `add.s32` takes 3 operands, not 2"),
        ("bra away;", "line 6, column 1: there is no label `away`"),
        ("a: ret; a: ret;", "line 6, column 9: `a` is there twice"),
        ("mov.b32 %r1, 0f3f8;", "line 6, column 14: this is not a float: 0f takes 8 digits, 0d 16"),
        ("mov.u32 %r1, #;", "line 6, column 14: `#` begins no token"),
        ("/* open", "line 6, column 1: a comment is never closed"),
        ("@%r1 ret;", "line 6, column 6: there is no predicate `%r1`"),
        ("ld.global.u32 %r1, %d1;", "line 6, column 1: an address in brackets is wanted"),
        ("ld.global.v2.u32 %r1, [%d1];", "line 6, column 1: 2 elements are accessed, 1 are given"),
        ("ld.param.u64 %d1, [p0+4];", "line 6, column 1: `p0` has 8 bytes"),
    ];
    for (body, want) in rows {
        assert_eq!(error_of(body).to_string(), want, "{body}");
    }
}

#[test]
fn what_is_not_simulated_is_an_error() {
    let rows = [
        "mul.f32 %r1, %r2, %r3;",
        "add.f32 %r1, %r2, %r3;",
        "sub.ftz.f32 %r1, %r2, %r3;",
        "mul.f16 %h1, %h2, %h3;",
        "add.f64 %d1, %d2, %d3;",
        "fma.f32 %r1, %r2, %r3, %r4;",
        "add.rz.f64 %d1, %d2, %d3;",
        "div.f32 %r1, %r2, %r3;",
        "ex2.f32 %r1, %r2;",
        "frob.s32 %r1, %r2;",
        "add.s32.s32 %r1, %r2, %r3;",
        "add.sat.u32 %r1, %r2, %r3;",
        "ld.u32 %r1, [%d1];",
        "st.local.u32 [%d1], %r1;",
        "shfl.bfly.b32 %r1, %r2, 1, 31;",
        "cvt.f16.f32 %h1, %r1;",
        "cvt.s32.f32 %r1, %r2;",
        "cvt.rn.f32.f16 %r1, %h1;",
        "atom.global.add.s64 %d1, [%d2], %d3;",
        "atom.global.add.f16 %h1, [%d2], %h3;",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1}, {%r2}, {%r3}, {%r4};",
        "cvta.shared.u64 %d1, %d2;",
        ".local .b8 stack[16];",
    ];
    for body in rows {
        let error = error_of(body);
        assert!(matches!(error, SimulatorError::Unknown { .. }), "{body}: {error}");
        assert!(error.to_string().contains("is not simulated"), "{error}");
    }
}

#[test]
fn all_ways_to_write_a_module_are_taken() {
    let text = "//\n// made by hand\n.version 8.3\n.target sm_90, debug\n.address_size 64\n\
        .file 1 \"a.c\"\n.const .align 4 .b32 table[4] = {1, 0x10, 0b11, 07};\n\
        .global .align 8 .b8 bytes[4] = {1, 2, 3, 4};\n.extern .shared .align 16 .b8 outside[];\n\
        .visible .entry k(.param .u64 .ptr .global .align 64 k_param_0,\n .param .align 8 .b8 k_param_1[16])\n\
        .maxntid 64, 1, 1\n.minnctapersm 1\n{\n.reg .pred %p<2>;\n.reg .b32 %r<9>, %one;\n.reg .b64 %rd<9>;\n\
        .loc 1 2 3\n.pragma \"nounroll\";\n ld.param.b64 %rd1, [k_param_0]; // address\n\
        ld.param.v2.u32 {%r5, %r6}, [k_param_1+8];\n\
        mov.b64 %rd2, table; ld.const.u32 %r1, [%rd2+4]; ld.global.u8 %r2, [bytes+2];\n\
        { .reg .b32 %r<3>; mov.u32 %r1, 77; }\n\
        add.s32 %r1, %r1, %r2; add.u32 %r1, %r1, -1; mov.b32 %one, 1;\n\
        st.global.b32 [%rd1], %r1; st.global.v2.u32 [%rd1+8], {%one, %r6};\n\
        bra.uni $L_end;\n$L_end:\n ret;\n}\n\0";
    let module = Module::parse(text).expect("it is a module");
    assert_eq!((module.target(), module.version()), ("sm_90", (8, 3)));
    let kernel = module.kernel("k").expect("it is a kernel");
    assert_eq!(kernel.parameters().len(), 2);
    assert!(matches!(module.kernel("other"), Err(SimulatorError::NoKernel(_))));
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let rows = [
        (".reqntid 32", Launch::threads(1, 64)),
        (".maxntid 32", Launch::threads(1, 64)),
        ("", Launch::threads(1, 0)),
        ("", Launch::threads(1, 2048)),
    ];
    for (directives, launch) in rows {
        let error = try_run("ret;", directives, launch, &[words(&[0])]).expect_err("it was taken");
        assert!(matches!(error, SimulatorError::Launch { .. }), "{error}");
    }
    assert!(try_run("ret;", ".maxntid 32, 2", Launch::grid([1; 3], [32, 2, 1]), &[words(&[0])]).is_ok());
}
