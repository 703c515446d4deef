//! Registers that hold several numbers, of which some are unwritten: only whoever uses those reads what nobody has written.

use super::{as_words, fault, prologue, try_run, words};
use tinyspec_simulators::{FaultKind, Launch};

/// `%h1` is 0x1234 plus the thread's number; nobody writes `%h2`.
fn body(text: &str) -> String {
    format!("{}cvt.u16.u32 %h1, %r0; add.s16 %h1, %h1, 0x1234;\n{text}ret;", prologue(1))
}

fn run(text: &str) -> Vec<u32> {
    let done = try_run(&body(text), "", Launch::threads(1, 4), &[words(&[0; 4])]);
    as_words(&done.unwrap_or_else(|error| panic!("{text}: {error}"))[0])
}

/// Ways to a packed register and back to its written number.
const WRITTEN: [&str; 15] = [
    "mov.b32 %r1, {%h1, %h2}; mov.b32 {%h3, _}, %r1; cvt.u32.u16 %r2, %h3; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h2, %h1}; shr.u32 %r2, %r1, 16; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; and.b32 %r2, %r1, 0xffff; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; and.b32 %r1, %r1, 0xffff; st.global.u32 [%d20], %r1;",
    "mov.b32 %r1, {%h1, %h2}; prmt.b32 %r2, %r1, 0, 0x4410; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; bfe.u32 %r2, %r1, 0, 16; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; bfi.b32 %r2, 0, %r1, 16, 16; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; shl.b32 %r2, %r1, 16; shr.u32 %r2, %r2, 16; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; cvt.u32.u16 %r2, %r1; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; add.s32 %r1, %r1, 1; sub.s32 %r1, %r1, 1; and.b32 %r1, %r1, 0xffff; st.global.u32 [%d20], %r1;",
    "mov.b32 %r1, {%h1, %h2}; neg.f16x2 %r1, %r1; neg.f16x2 %r1, %r1; and.b32 %r1, %r1, 0xffff; st.global.u32 [%d20], %r1;",
    "mov.b64 %d1, {%h2, %h1, %h2, %h2}; mov.b64 {%r1, _}, %d1; shr.u32 %r1, %r1, 16; st.global.u32 [%d20], %r1;",
    "mov.b32 %r1, {%h1, %h2}; setp.ne.u32 %p1, %r0, 9; selp.b32 %r2, %r1, %r0, %p1; and.b32 %r2, %r2, 65535; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; st.global.u16 [%d20], %r1;",
    "mov.b32 %r1, {%h2, %h2}; mov.b32 %r1, {%h1, %h1}; and.b32 %r1, %r1, 65535; st.global.u32 [%d20], %r1;",
];

#[test]
fn numbers_that_are_written_can_be_used_beside_those_that_are_not() {
    for text in WRITTEN {
        assert_eq!(run(text), [0x1234, 0x1235, 0x1236, 0x1237], "{text}");
    }
}

const UNWRITTEN: [&str; 12] = [
    "mov.b32 %r1, {%h1, %h2}; st.global.u32 [%d20], %r1;",
    "mov.b32 %r1, {%h1, %h2}; shr.u32 %r2, %r1, 16; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; shr.u32 %r2, %r1, 8; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h2}; mov.b32 {_, %h3}, %r1; st.global.u16 [%d20], %h3;",
    "mov.b32 %r1, {%h2, %h1}; add.s32 %r1, %r1, 1; shr.u32 %r1, %r1, 16; st.global.u32 [%d20], %r1;",
    "mov.b32 %r1, {%h1, %h2}; mul.hi.u32 %r1, %r1, 2; st.global.u32 [%d20], %r1;",
    "mov.b32 %r1, {%h1, %h2}; add.rn.f16x2 %r1, %r1, %r1; shr.u32 %r1, %r1, 16; st.global.u32 [%d20], %r1;",
    "mov.b32 %r1, {%h1, %h2}; setp.lt.u32 %p1, %r1, 7; @%p1 st.global.u32 [%d20], %r0;",
    "mov.b32 %r1, {%h1, %h2}; setp.ne.u32 %p1, %r0, 2; selp.b32 %r2, %r0, %r1, %p1; st.global.u32 [%d20], %r2;",
    "mov.b32 %r1, {%h1, %h1}; mov.b32 %r1, {%h1, %h2}; st.global.u32 [%d20], %r1;",
    "mov.b32 %r1, {%h1, %h2}; mov.b32 %r1, {%h2, %h2}; st.global.u16 [%d20], %r1;",
    "mov.b32 %r1, {%h1, %h2}; cvt.rn.f32.u32 %r2, %r1; st.global.u32 [%d20], %r2;",
];

#[test]
fn numbers_that_nobody_has_written_are_found() {
    for text in UNWRITTEN {
        let (kind, said) = fault(&body(text), Launch::threads(1, 4), &[words(&[0; 4])]);
        assert_eq!(kind, FaultKind::Uninitialised, "{text}: {said}");
    }
}
