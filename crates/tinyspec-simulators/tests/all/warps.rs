//! Lanes of a warp: divergence, shuffles, votes.

use super::{as_words, fault, prologue, try_run, words};
use tinyspec_simulators::{FaultKind, Launch};

const WARP: Launch = Launch { groups: [1; 3], threads: [32, 1, 1], local_bytes: 0, seed: 0, limit: 1 << 20 };

/// What each of 32 lanes leaves in `%r1`.
fn lanes(body: &str) -> Vec<u32> {
    let body = format!("{}{body}\nst.global.u32 [%d20], %r1; ret;", prologue(1));
    as_words(&try_run(&body, "", WARP, &[vec![0; 128]]).unwrap_or_else(|error| panic!("{error}"))[0])
}

#[test]
fn diverged_lanes_run_apart_and_rejoin_where_they_meet() {
    let out = lanes(
        "mov.b32 %r1, 0; setp.lt.s32 %p1, %r0, 10; @%p1 bra low; mov.b32 %r1, 100; bra join;\n\
         low: add.s32 %r1, %r0, 1; join: activemask.b32 %r2; bar.warp.sync -1; activemask.b32 %r3;\n\
         popc.b32 %r2, %r2; popc.b32 %r3, %r3; mad.lo.s32 %r1, %r1, 100, %r2; mad.lo.s32 %r1, %r1, 100, %r3;",
    );
    for (lane, &value) in out.iter().enumerate() {
        let want = if lane < 10 { ((lane as u32 + 1) * 100 + 10) * 100 + 32 } else { (100 * 100 + 22) * 100 + 32 };
        assert_eq!(value, want, "lane {lane}");
    }
}

#[test]
fn loops_end_lane_by_lane() {
    let out = lanes(
        "mov.b32 %r1, 0; mov.b32 %r2, 0; again: add.s32 %r1, %r1, %r2; add.s32 %r2, %r2, 1; setp.le.s32 %p1, %r2, %r0; @%p1 bra again;",
    );
    assert_eq!(out, (0..32u32).map(|lane| lane * (lane + 1) / 2).collect::<Vec<_>>());
}

#[test]
fn branches_by_index() {
    let out = lanes(
        "and.b32 %r2, %r0, 3; mov.b32 %r1, 9; table: .branchtargets a, b, c, d; brx.idx %r2, table;\na: mov.b32 %r1, 10; bra d; b: mov.b32 %r1, 11; bra d; c: mov.b32 %r1, 12;\nd: ",
    );
    assert_eq!(out[..4], [10, 11, 12, 9]);
}

#[test]
fn shuffles() {
    let shuffle =
        |form: &str| lanes(&format!("shfl.sync.{form} selp.u32 %r4, 1, 0, %p1; mad.lo.s32 %r1, %r4, 1000, %r1;"));
    let out = shuffle("up.b32 %r1|%p1, %r0, 2, 0, -1;");
    assert_eq!((out[0], out[1], out[2], out[31]), (0, 1, 1000, 1029));
    let out = shuffle("down.b32 %r1|%p1, %r0, 3, 31, -1;");
    assert_eq!((out[0], out[28], out[29], out[31]), (1003, 1031, 29, 31));
    let out = shuffle("bfly.b32 %r1|%p1, %r0, 16, 31, -1;");
    assert_eq!((out[0], out[16], out[31]), (1016, 1000, 1015));
    let out = shuffle("idx.b32 %r1|%p1, %r0, 5, 31, -1;");
    assert!(out.iter().all(|&value| value == 1005));
    // Segments of eight lanes.
    let out = shuffle("down.b32 %r1|%p1, %r0, 1, 0x1807, -1;");
    assert_eq!((out[6], out[7], out[8], out[15]), (1007, 7, 1009, 15));
    let out = shuffle("idx.b32 %r1|%p1, %r0, 2, 0x181f, -1;");
    assert_eq!((out[0], out[9], out[31]), (1002, 1010, 1026));
    // The source is the target.
    assert_eq!(lanes("mov.b32 %r1, %r0; shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;")[..4], [1, 0, 3, 2]);
}

#[test]
fn votes_matches_and_reductions() {
    let low = "setp.lt.s32 %p1, %r0, 4;";
    assert!(lanes(&format!("{low} vote.sync.ballot.b32 %r1, %p1, -1;")).iter().all(|&mask| mask == 0xf));
    let all = |form: &str| lanes(&format!("{low} vote.sync.{form} selp.u32 %r1, 1, 0, %p2;"))[9];
    assert_eq!(all("all.pred %p2, %p1, -1;"), 0);
    assert_eq!(all("any.pred %p2, %p1, -1;"), 1);
    assert_eq!(all("any.pred %p2, !%p1, -1;"), 1);
    assert_eq!(all("uni.pred %p2, %p1, -1;"), 0);
    let out = lanes("and.b32 %r2, %r0, 1; match.any.sync.b32 %r1, %r2, -1;");
    assert_eq!((out[0], out[1]), (0x5555_5555, 0xaaaa_aaaa));
    let out = lanes("mov.b64 %d1, 7; match.all.sync.b64 %r1|%p1, %d1, -1; @!%p1 mov.b32 %r1, 1;");
    assert_eq!(out[3], u32::MAX);
    assert_eq!(lanes("redux.sync.add.u32 %r1, %r0, -1;")[0], 496);
    assert_eq!(lanes("sub.s32 %r2, %r0, 9; redux.sync.min.s32 %r1, %r2, -1;")[0], 9u32.wrapping_neg());
    assert_eq!(lanes("sub.s32 %r2, %r0, 9; redux.sync.max.u32 %r1, %r2, -1;")[0], u32::MAX);
    assert_eq!(lanes("redux.sync.xor.b32 %r1, %r0, -1;")[0], 0);
    // Some of the lanes, which meet apart from the others.
    let out = lanes(
        "setp.lt.s32 %p1, %r0, 16; mov.b32 %r1, 0; @%p1 bra low; redux.sync.add.u32 %r1, %r0, 0xffff0000; bra end; low: redux.sync.add.u32 %r1, %r0, 0xffff; end:",
    );
    assert_eq!((out[3], out[20]), (120, 376));
}

#[test]
fn special_registers() {
    let out = lanes(
        "mov.u32 %r1, %laneid; mov.u32 %r2, %lanemask_lt; popc.b32 %r2, %r2; add.s32 %r1, %r1, %r2; mov.u32 %r3, %lanemask_ge; popc.b32 %r3, %r3; add.s32 %r1, %r1, %r3; mov.u32 %r4, %ntid.x; mad.lo.s32 %r1, %r4, 100, %r1;",
    );
    assert_eq!(out[5], 3200 + 5 + 5 + 27);
    let body = "ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %nctaid.x;\n\
        mov.u32 %r6, %ctaid.x; mad.lo.s32 %r7, %r3, 3, %r2; mad.lo.s32 %r7, %r7, 5, %r1; mad.lo.s32 %r8, %r4, %r5, %r6; mad.lo.s32 %r8, %r8, 30, %r7; mul.wide.u32 %d2, %r8, 4; add.s64 %d1, %d1, %d2;\n\
        st.global.u32 [%d1], %r8; ret;";
    let out = try_run(body, "", Launch::grid([2, 3, 1], [5, 3, 2]), &[vec![0; 6 * 30 * 4]]).expect("it runs");
    assert_eq!(as_words(&out[0]), (0..180).collect::<Vec<u32>>());
}

#[test]
fn wrong_members_are_found() {
    let run =
        |body: &str| fault(&format!("{}{body} st.global.u32 [%d20], %r1; ret;", prologue(1)), WARP, &[vec![0; 128]]);
    let (kind, text) = run("shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xffff;");
    assert_eq!(kind, FaultKind::Divergence);
    assert!(text.contains("lanes 16-31") && text.contains("do not hold those who execute it"), "{text}");
    let (kind, text) = run(
        "mov.b32 %r1, 0; setp.lt.s32 %p1, %r0, 16; @%p1 bra low; bra end; low: shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1; end: bar.warp.sync -1;",
    );
    assert_eq!(kind, FaultKind::Divergence);
    assert!(text.contains("do not come here"), "{text}");
    // Lane 31 reads a lane that has ended.
    let (kind, _) = run("mov.b32 %r1, 0; setp.eq.s32 %p1, %r0, 0; @%p1 ret; shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;");
    assert_eq!(kind, FaultKind::Uninitialised);
}

#[test]
fn equal_seeds_give_equal_runs_and_others_may_not() {
    let body = format!("{}atom.global.exch.b32 %r1, [%d10], %r0; st.global.u32 [%d21], %r1; ret;", prologue(2));
    let run = |seed| {
        as_words(
            &try_run(&body, "", Launch::threads(1, 128).seeded(seed), &[words(&[999]), vec![0; 512]]).expect("it runs")
                [1],
        )
    };
    assert_eq!(run(1), run(1));
    assert!((2..9).any(|seed| run(seed) != run(1)));
}
