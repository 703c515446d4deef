//! Barriers of a workgroup.

use super::{as_words, fault, prologue, try_run};
use tinyspec_simulators::{FaultKind, Launch};

/// Threads pass their number on through LOCAL memory, to the one `step` before them.
fn passed(barrier: &str, threads: u32) -> String {
    format!(
        ".shared .align 4 .b8 place[4096];\n{}mov.b64 %d1, place; add.s64 %d2, %d1, %d0; st.shared.u32 [%d2], %r0;\n\
         {barrier}\nadd.s32 %r1, %r0, 33; rem.u32 %r1, %r1, {threads}; mul.wide.u32 %d3, %r1, 4; add.s64 %d3, %d1, %d3;\n\
         ld.shared.u32 %r2, [%d3]; st.global.u32 [%d20], %r2; ret;",
        prologue(1)
    )
}

#[test]
fn what_is_written_before_a_barrier_is_read_behind_it() {
    for barrier in ["bar.sync 0;", "barrier.sync 0;", "barrier.cta.sync.aligned 1, 256;", "barrier.sync 3, 256;"] {
        for seed in 0..4 {
            let launch = Launch::threads(3, 256).seeded(seed);
            // Each workgroup writes the same: one after the other, so only one may run.
            let launch = Launch { groups: [1; 3], ..launch };
            let out =
                try_run(&passed(barrier, 256), "", launch, &[vec![0; 1024]]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(as_words(&out[0]), (0..256).map(|lane| (lane + 33) % 256).collect::<Vec<u32>>());
        }
    }
    let (kind, text) = fault(&passed("", 256), Launch::threads(1, 256), &[vec![0; 1024]]);
    assert!(matches!(kind, FaultKind::Race | FaultKind::Uninitialised), "{text}");
}

#[test]
fn some_warps_wait_for_some() {
    // Two warps hand a word over; the third does something else.
    let body = format!(
        ".shared .align 4 .b8 place[4];\n{}mov.u32 %r9, %warpid; setp.eq.u32 %p1, %r9, 2; @%p1 bra end; setp.eq.u32 %p2, %r9, 1; @%p2 bra wait;\n\
         setp.eq.u32 %p3, %r0, 0; @%p3 st.shared.u32 [place], 77; bar.arrive 1, 64; bra end;\n\
         wait: bar.sync 1, 64; ld.shared.u32 %r1, [place]; st.global.u32 [%d20], %r1; end: ret;",
        prologue(1)
    );
    let out = as_words(
        &try_run(&body, "", Launch::threads(1, 96), &[vec![0; 384]]).unwrap_or_else(|error| panic!("{error}"))[0],
    );
    assert_eq!((out[0], out[32], out[63], out[64]), (0, 77, 77, 0));
}

#[test]
fn reductions_at_a_barrier() {
    let body = format!(
        "{}setp.lt.u32 %p1, %r0, 70; bar.red.popc.u32 %r1, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;\n\
         selp.u32 %r2, 1000, 0, %p2; selp.u32 %r3, 2000, 0, %p3; add.s32 %r1, %r1, %r2; add.s32 %r1, %r1, %r3; st.global.u32 [%d20], %r1; ret;",
        prologue(1)
    );
    let out = as_words(
        &try_run(&body, "", Launch::threads(1, 100), &[vec![0; 400]]).unwrap_or_else(|error| panic!("{error}"))[0],
    );
    assert!(out.iter().all(|&value| value == 2070), "{out:?}");
}

#[test]
fn barriers_that_not_all_reach_are_found() {
    let threads = Launch::threads(1, 64);
    let run = |body: &str| fault(&format!("{}{body} ret;", prologue(1)), threads, &[vec![0; 256]]);
    let (kind, text) = run("setp.lt.u32 %p1, %r0, 16; @%p1 bar.sync 0;");
    assert_eq!(kind, FaultKind::Divergence);
    assert!(text.contains("line 8") && text.contains("lanes 0-15") && text.contains("pass by"), "{text}");
    let (kind, text) = run("setp.lt.u32 %p1, %r0, 16; @%p1 ret; bar.sync 0;");
    assert_eq!(kind, FaultKind::Divergence);
    assert!(text.contains("ended"), "{text}");
    let (kind, text) = run("setp.lt.u32 %p1, %r0, 32; @%p1 ret; bar.sync 0;");
    assert_eq!(kind, FaultKind::Divergence);
    assert!(text.contains("32 of 64 threads"), "{text}");
    let (kind, _) = run("setp.lt.u32 %p1, %r0, 16; @%p1 bra a; bar.sync 0; bra e; a: bar.sync 0; e:");
    assert_eq!(kind, FaultKind::Divergence);
    let (kind, _) = run("setp.lt.u32 %p1, %r0, 32; @%p1 bra a; bar.sync 1; bra e; a: bar.sync 2; e:");
    assert_eq!(kind, FaultKind::Divergence);
    let (kind, text) = run("bar.sync 0, 40;");
    assert_eq!((kind, text.contains("no whole warps")), (FaultKind::Undefined, true));
    let (kind, _) = run("bar.sync 16;");
    assert_eq!(kind, FaultKind::Undefined);
    // The two halves of a warp meet where both come to the barrier.
    let body = format!(
        "{}mov.b32 %r1, 1; setp.lt.u32 %p1, %r0, 16; @%p1 bra a; mov.b32 %r1, 2; a: bar.sync 0; st.global.u32 [%d20], %r1; ret;",
        prologue(1)
    );
    assert!(try_run(&body, "", threads, &[vec![0; 256]]).is_ok());
}
