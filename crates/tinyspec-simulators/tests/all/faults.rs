//! Faults, and what they say.

use super::{fault, prologue, try_run, words};
use tinyspec_simulators::{FaultKind, Launch, SimulatorError};

fn one(body: &str, threads: u32) -> (FaultKind, String) {
    fault(&format!("{}{body} ret;", prologue(2)), Launch::threads(1, threads), &[words(&[0; 32]), words(&[0; 32])])
}

#[test]
fn a_fault_names_kernel_instruction_and_lanes() {
    let (kind, text) = one("\nst.global.u32 [%d20+4], %r0;", 32);
    assert_eq!(kind, FaultKind::OutOfBounds);
    let want = "kernel `k`, line 10 (`st.global.u32 [%d20+4], %r0; ret;`), workgroup (0), warp 0, lane 31: \
        thread (31) of workgroup (0) writes 4 bytes at byte 128 of buffer 0, which has 128";
    assert_eq!(text, want);
}

#[test]
fn accesses_outside_of_their_buffer() {
    assert_eq!(one("ld.global.u32 %r1, [%d20-4];", 1).0, FaultKind::OutOfBounds);
    assert_eq!(one("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d20+128];", 1).0, FaultKind::OutOfBounds);
    assert_eq!(one("ld.global.u32 %r1, [1024];", 1).0, FaultKind::OutOfBounds);
    assert_eq!(one("ld.global.u16 %r1, [%d20+1];", 1).0, FaultKind::Misaligned);
    assert_eq!(one("ld.global.v2.u32 {%r1, %r2}, [%d20+4];", 1).0, FaultKind::Misaligned);
    assert_eq!(one(".shared .align 4 .b8 place[64]; st.shared.u32 [place+64], %r0;", 1).0, FaultKind::OutOfBounds);
    // Into the other buffer: the address derives from the first.
    let (kind, text) = one(
        "sub.s64 %d1, %d11, %d10; and.b64 %d1, %d1, -1; add.s64 %d2, %d10, %d1; st.global.u32 [%d20+65536], %r0;",
        1,
    );
    assert_eq!(kind, FaultKind::OutOfBounds);
    assert!(text.contains("byte 65536 of buffer 0"), "{text}");
}

#[test]
fn what_nobody_has_written() {
    let says = |body: &str, what: &str| {
        let (kind, text) = one(body, 32);
        assert_eq!(kind, FaultKind::Uninitialised, "{text}");
        assert!(text.contains(what), "{text}");
    };
    says("st.global.u32 [%d20], %r9;", "a value that is stored");
    says("add.s32 %r1, %r9, 1; mul.lo.s32 %r2, %r1, 0; st.global.u32 [%d20], %r2;", "a value that is stored");
    says("cvt.u64.u32 %d1, %r9; add.s64 %d2, %d10, %d1; ld.global.u32 %r1, [%d2];", "an address");
    says("setp.eq.s32 %p1, %r9, 0; @%p1 bra end; end:", "a predicate that decides what runs");
    says("setp.lt.u32 %p1, %r0, 5; @%p1 mov.b32 %r1, 1; st.global.u32 [%d20], %r1;", "lanes 5-31");
    says(
        ".shared .align 4 .b8 place[64]; ld.shared.u32 %r1, [place]; st.global.u32 [%d20], %r1;",
        "a value that is stored",
    );
    says("div.u32 %r1, %r0, 0; st.global.u32 [%d20], %r1;", "a value that is stored");
    // Nobody asks for the lanes that have no value.
    let quiet = "setp.lt.u32 %p1, %r0, 5; @%p1 mov.b32 %r1, 1; selp.b32 %r2, %r1, 7, %p1; and.pred %p2, %p3, 0; @!%p2 st.global.u32 [%d20], %r2; ret;";
    let quiet = format!("{}{quiet}", prologue(1));
    assert!(try_run(&quiet, "", Launch::threads(1, 32), &[vec![0; 128]]).is_ok());
}

#[test]
fn races() {
    let race = |body: &str, threads: u32, groups: u32| {
        let (kind, text) = fault(
            &format!("{}{body} ret;", prologue(2)),
            Launch::threads(groups, threads),
            &[words(&[0; 256]), words(&[0; 256])],
        );
        assert_eq!(kind, FaultKind::Race, "{text}");
        text
    };
    let text = race("st.global.u32 [%d10], %r0;", 2, 1);
    assert!(
        text.contains("lanes 0-1")
            && text.contains("writes byte 0 of buffer 0, which thread (0) of workgroup (0) wrote"),
        "{text}"
    );
    race("st.global.u32 [%d20], %r0;", 1, 2);
    race("ld.global.u32 %r1, [%d20+4]; st.global.u32 [%d20], %r1;", 64, 1);
    race("ld.global.u32 %r1, [%d20]; setp.eq.u32 %p1, %r0, 40; @%p1 st.global.u32 [%d10], %r1;", 64, 1);
    race("red.global.add.u32 [%d10], 1; ld.global.u32 %r1, [%d10]; st.global.u32 [%d21], %r1;", 64, 1);
    race(
        "ld.global.u32 %r1, [%d10]; bar.sync 0; st.global.u32 [%d21], %r1; setp.eq.u32 %p1, %r0, 3; @%p1 st.global.u32 [%d10], %r0; bar.sync 0; setp.eq.u32 %p2, %r0, 37; @%p2 st.global.u32 [%d10], %r0; ld.global.u32 %r2, [%d10];",
        64,
        1,
    );
    // A barrier of the workgroup does not order workgroups.
    race("setp.eq.u32 %p1, %r0, 0; @%p1 st.global.u32 [%d10], %r0; bar.sync 0;", 64, 2);
    // A shuffle orders no memory.
    race(
        ".shared .align 4 .b8 place[128]; mov.b64 %d1, place; add.s64 %d2, %d1, %d0; st.shared.u32 [%d2], %r0; shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; ld.shared.u32 %r2, [place];",
        32,
        1,
    );
}

#[test]
fn no_race_where_threads_are_ordered() {
    let fine = |body: &str, threads: u32| {
        let body = format!("{}{body} ret;", prologue(2));
        for seed in 0..8 {
            let launch = Launch::threads(1, threads).seeded(seed);
            if let Err(error) = try_run(&body, "", launch, &[words(&[0; 256]), words(&[0; 256])]) {
                panic!("{error}");
            }
        }
    };
    fine("ld.global.u32 %r1, [%d10]; st.global.u32 [%d21], %r1;", 64);
    fine("ld.global.u32 %r1, [%d20+4]; bar.sync 0; st.global.u32 [%d20], %r1;", 64);
    fine("red.global.add.u32 [%d10], 1; atom.global.add.u32 %r1, [%d10], 1;", 64);
    fine("st.volatile.global.u32 [%d10], 3; ld.relaxed.gpu.global.u32 %r1, [%d10];", 64);
    fine("st.global.u8 [%d10], 1; ld.global.u8 %r1, [%d10];", 1);
    fine("cvt.u64.u32 %d1, %r0; add.s64 %d2, %d10, %d1; st.global.u8 [%d2], %r0; ld.global.u8 %r1, [%d2];", 64);
    fine(
        ".shared .align 4 .b8 place[128]; mov.b64 %d1, place; add.s64 %d2, %d1, %d0; st.shared.u32 [%d2], %r0; bar.warp.sync -1; ld.shared.u32 %r2, [place];",
        32,
    );
    fine(
        "setp.eq.u32 %p1, %r0, 3; @%p1 st.global.u32 [%d10], %r0; bar.sync 0; setp.eq.u32 %p2, %r0, 37; @%p2 st.global.u32 [%d10], %r0; bar.sync 0; ld.global.u32 %r2, [%d10];",
        64,
    );
}

#[test]
fn constant_loads_are_of_what_nobody_writes() {
    let (kind, text) = one("ld.global.nc.u32 %r1, [%d20]; st.global.u32 [%d20], %r1;", 1);
    assert_eq!(kind, FaultKind::Undefined);
    assert!(text.contains("and the kernel writes it"), "{text}");
    let body = format!("{}ld.global.nc.u32 %r1, [%d20]; st.global.u32 [%d21], %r1; ret;", prologue(2));
    assert!(try_run(&body, "", Launch::threads(1, 1), &[words(&[0]), words(&[0])]).is_ok());
}

#[test]
fn traps_and_loops_without_an_end() {
    assert_eq!(one("trap;", 1).0, FaultKind::Undefined);
    let launch = Launch { limit: 10_000, ..Launch::threads(1, 1) };
    assert_eq!(fault("again: bra again;", launch, &[vec![0; 4]]).0, FaultKind::Endless);
}

/// `.loc` says it of all that follows; line 0 is none.
#[test]
fn a_fault_has_the_line_of_the_source_code() {
    for (before, line) in [("", None), ("\n.loc 1 7 0\n", Some(7)), ("\n.loc 1 7 0\n.loc\t1 0\n", None)] {
        let body = format!("mov.u32 %r0, 1; {before} mov.u32 %r1, 2; trap; ret;");
        match try_run(&body, "", Launch::threads(1, 1), &[]) {
            Err(SimulatorError::Fault(fault)) => assert_eq!(fault.source_line.map(|line| line.get()), line, "{body}"),
            other => panic!("{other:?}"),
        }
    }
}
