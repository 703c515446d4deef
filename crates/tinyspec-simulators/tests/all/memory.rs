//! Loads, stores, atomics; buffers beyond 4 GiB.

use super::{as_words, fault, module, prologue, try_run, words};
use tinyspec_simulators::{FaultKind, Launch, Simulation, ptx::Module};

#[test]
fn vectors_of_every_size() {
    let body = "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1];\n\
        ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1]; st.global.v4.u32 [%d2], {%r4, %r3, %r2, %r1};\n\
        ld.global.v2.b64 {%d3, %d4}, [%d1+16]; st.global.v2.b64 [%d2+16], {%d4, %d3};\n\
        ld.global.nc.L1::evict_last.v2.u32 {_, %r5}, [%d1]; st.global.u32 [%d2+32], %r5;\n\
        ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%d1]; st.global.v4.u8 [%d2+36], {%h4, %h3, %h2, %h1};\n\
        ld.global.v2.b16 {%h1, %h2}, [%d1+4]; st.global.v2.b16 [%d2+40], {%h2, %h1}; ret;";
    let input: Vec<u8> = (0..32).collect();
    let out = try_run(body, "", Launch::threads(1, 1), &[input.clone(), vec![0; 48]])
        .unwrap_or_else(|error| panic!("{error}"));
    let mut want: Vec<u8> = [12, 8, 4, 0].iter().flat_map(|&at| input[at..at + 4].to_vec()).collect();
    want.extend(&input[24..32]);
    want.extend(&input[16..24]);
    want.extend(&input[4..8]);
    want.extend([3, 2, 1, 0, 6, 7, 4, 5]);
    assert_eq!(out[1][..44], want);
}

#[test]
fn atomics_of_every_kind() {
    let run = |form: &str, start: &[u32]| {
        let body = format!(
            "{}cvt.u64.u32 %d1, %r0; cvt.rn.f32.u32 %r9, %r0; cvt.rn.f64.u32 %d9, %r0; cvt.rn.f16.u32 %h9, %r0; mov.b32 %r8, {{%h9, %h9}}; cvt.rn.bf16.u32 %h8, %r0; {form} ret;",
            prologue(1)
        );
        as_words(
            &try_run(&body, "", Launch::threads(1, 10), &[words(start)])
                .unwrap_or_else(|error| panic!("{form}: {error}"))[0],
        )
    };
    assert_eq!(run("red.global.add.u32 [%d10], %r0;", &[5])[0], 50);
    assert_eq!(run("atom.global.add.s32 %r1, [%d10], %r0;", &[0])[0], 45);
    assert_eq!(run("red.global.add.u64 [%d10], %d1;", &[u32::MAX, 0]), [44, 1]);
    assert_eq!(run("red.global.add.f32 [%d10], %r9;", &[0])[0], 45f32.to_bits());
    let sum = 45f64.to_bits();
    assert_eq!(run("red.global.add.f64 [%d10], %d9;", &[0, 0]), [sum as u32, (sum >> 32) as u32]);
    assert_eq!(run("red.global.add.noftz.f16 [%d10], %h9;", &[0])[0], 0x51a0);
    assert_eq!(run("red.global.add.noftz.bf16 [%d10], %h8;", &[0])[0], 0x4234);
    assert_eq!(run("red.global.add.noftz.f16x2 [%d10], %r8;", &[0])[0], 0x51a0_51a0);
    assert_eq!(run("red.relaxed.gpu.global.max.s32 [%d10], %r0;", &[u32::MAX])[0], 9);
    assert_eq!(run("red.global.max.u32 [%d10], %r0;", &[u32::MAX])[0], u32::MAX);
    assert_eq!(run("red.global.min.s32 [%d10], %r0;", &[5])[0], 0);
    assert_eq!(run("red.global.and.b32 [%d10], %r0;", &[u32::MAX])[0], 0);
    assert_eq!(run("red.global.or.b32 [%d10], %r0;", &[0])[0], 15);
    assert_eq!(run("red.global.xor.b32 [%d10], %r0;", &[0])[0], 1);
    assert_eq!(run("atom.global.inc.u32 %r1, [%d10], 3;", &[0])[0], 2);
    assert_eq!(run("atom.global.dec.u32 %r1, [%d10], 3;", &[0])[0], 2);
    assert_eq!(run("atom.global.cas.b32 %r1, [%d10], 7, 9;", &[7])[0], 9);
    assert_eq!(run("atom.global.cas.b64 %d2, [%d10], 7, 9;", &[7, 1]), [7, 1]);
    // On GLOBAL memory subnormal sums are zero, on LOCAL memory they are kept.
    assert_eq!(run("red.global.add.f32 [%d10], 0f00000001;", &[0])[0], 0);
    let local = ".shared .align 4 .b8 place[4]; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [place], 0; bar.sync 0; red.shared.add.f32 [place], 0f00000001; bar.sync 0; @%p1 ld.shared.u32 %r1, [place]; @%p1 st.global.u32 [%d10], %r1;";
    assert_eq!(run(local, &[0])[0], 10);
}

#[test]
fn an_external_array_is_as_large_as_the_launch_says() {
    let text = module(
        1,
        "",
        "mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, outside; add.s32 %r2, %r2, %r1; st.shared.u32 [%r2], %r0; ld.shared.u32 %r3, [%r2];\n\
        mov.u32 %r4, %dynamic_smem_size; add.s32 %r3, %r3, %r4; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r0, 4, %d1; st.global.u32 [%d1], %r3; ret;",
    );
    let text = text.replace(".visible", ".extern .shared .align 16 .b8 outside[];\n.visible");
    let kernel = Module::parse(&text).and_then(|module| module.kernel("k")).unwrap_or_else(|error| panic!("{error}"));
    let mut simulation = Simulation::new();
    let buffer = simulation.buffer(&[0; 128]).expect("there is memory");
    let launch = Launch { local_bytes: 128, ..Launch::threads(1, 32) };
    simulation.run(&kernel, &launch, &[buffer]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(as_words(&simulation.bytes(buffer).expect("it is there"))[3], 131);
    let error =
        simulation.run(&kernel, &Launch { local_bytes: 124, ..launch }, &[buffer]).expect_err("it is too small");
    assert!(error.to_string().contains("byte 124 of LOCAL memory, which has 124"), "{error}");
}

#[test]
fn a_buffer_may_be_larger_than_memory() {
    const BYTES: usize = 96 << 30;
    let text = module(
        2,
        "",
        "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.b64 %d3, 103079215096; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], 7; ld.global.u32 %r1, [%d4]; add.s32 %r1, %r1, 1; st.global.u32 [%d2], %r1;\n\
        add.s64 %d5, %d1, 4294967296; ld.global.u32 %r2, [%d5]; st.global.u32 [%d2+4], %r2; ret;",
    );
    let kernel = Module::parse(&text).and_then(|module| module.kernel("k")).unwrap_or_else(|error| panic!("{error}"));
    let mut simulation = Simulation::new();
    let large = simulation.zeros(BYTES).expect("addresses cost nothing");
    let small = simulation.buffer(&[9; 8]).expect("there is memory");
    simulation.run(&kernel, &Launch::threads(1, 1), &[large, small]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(as_words(&simulation.bytes(small).expect("it is there")), [8, 0]);
    let text = text.replace("103079215096", "103079215104");
    let kernel = Module::parse(&text).and_then(|module| module.kernel("k")).unwrap_or_else(|error| panic!("{error}"));
    let error = simulation.run(&kernel, &Launch::threads(1, 1), &[large, small]).expect_err("it is outside");
    assert!(error.to_string().contains("byte 103079215104 of buffer 0, which has 103079215104"), "{error}");
}

#[test]
fn two_parameters_may_name_one_buffer() {
    // In place: each thread writes what it alone has read.
    let text = module(
        2,
        "",
        &format!("{}ld.global.u32 %r1, [%d20]; add.s32 %r1, %r1, 1; st.global.u32 [%d21], %r1; ret;", prologue(2)),
    );
    let kernel = Module::parse(&text).and_then(|module| module.kernel("k")).unwrap_or_else(|error| panic!("{error}"));
    let mut simulation = Simulation::new();
    let buffer = simulation.buffer(&[0; 256]).expect("there is memory");
    simulation.run(&kernel, &Launch::threads(1, 64), &[buffer, buffer]).unwrap_or_else(|error| panic!("{error}"));
    assert!(as_words(&simulation.bytes(buffer).expect("it is there")).iter().all(|&value| value == 1));
    // And a neighbour's is a race, though it is read through the other parameter.
    let text = text.replace("[%d20]; add", "[%d20+4]; add");
    let kernel = Module::parse(&text).and_then(|module| module.kernel("k")).unwrap_or_else(|error| panic!("{error}"));
    let error = simulation.run(&kernel, &Launch::threads(1, 60), &[buffer, buffer]).expect_err("they meet");
    assert!(error.to_string().contains("with nothing that orders them"), "{error}");
}

#[test]
fn parameters_are_chosen_by_address() {
    let body = "mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 4; mov.b64 %d1, p0; mov.b64 %d2, p1; setp.lt.u32 %p1, %r0, 8;\n\
        selp.b64 %d3, %d1, %d2, %p1; ld.param.b64 %d4, [%d3]; add.s64 %d4, %d4, %d0; ld.global.u32 %r1, [%d4];\n\
        ld.param.b64 %d5, [p2]; add.s64 %d5, %d5, %d0; st.global.u32 [%d5], %r1; ret;";
    let inputs = [words(&[1; 16]), words(&[2; 16]), words(&[0; 16])];
    let out = try_run(body, "", Launch::threads(1, 16), &inputs).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(as_words(&out[2]), [[1; 8], [2; 8]].concat());
    let outside = body.replace("[%d3]", "[%d3+16]");
    let error = try_run(&outside, "", Launch::threads(1, 16), &inputs).expect_err("there is no fourth one");
    assert!(error.to_string().contains("reads a parameter at byte 24; they have 24"), "{error}");
}

/// Numbers of less than a word are changed with the word around them, whose other bytes stay.
#[test]
fn a_word_may_reach_beyond_its_buffer_and_leaves_what_is_there() {
    let run = |body: &str| {
        let body = format!("{}{body} ret;", prologue(1));
        try_run(&body, "", Launch::threads(1, 1), &[vec![1, 2, 3]])
    };
    let out = run("ld.relaxed.gpu.global.b32 %r1, [%d10]; atom.relaxed.gpu.global.cas.b32 %r2, [%d10], %r1, 0x70201;");
    assert_eq!(out.unwrap_or_else(|error| panic!("{error}"))[0], [1, 2, 7]);
    let wrong = [
        "atom.global.cas.b32 %r2, [%d10], 0x30201, 0x1030201;",
        "ld.global.b32 %r1, [%d10+4];",
        "st.relaxed.gpu.global.b32 [%d10], 0x30201;",
        "atom.global.cas.b32 %r2, [%d10+4], 0, 0;",
    ];
    for body in wrong {
        let says = run(body).map_err(|error| error.to_string());
        assert!(says.as_ref().is_err_and(|says| says.contains("of buffer 0, which has 3")), "{body}: {says:?}");
    }
}

/// A vector load may read past the end of three words, but the fourth counts as unwritten.
#[test]
fn a_vector_may_reach_beyond_the_end_of_its_buffer() {
    let run = |body: &str| {
        let body = format!("{}{body} ret;", prologue(1));
        try_run(&body, "", Launch::threads(1, 1), &[words(&[1, 2, 3])]).map_err(|error| error.to_string())
    };
    let load = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d10];";
    let out = run(&format!("{load} st.global.u32 [%d10], %r3;"));
    assert_eq!(as_words(&out.unwrap_or_else(|error| panic!("{error}"))[0]), [3, 2, 3]);
    let says = |body: &str| run(body).expect_err(body);
    assert!(says(&format!("{load} st.global.u32 [%d10], %r4;")).contains("comes from what nobody has written"));
    for body in ["ld.global.u32 %r1, [%d10+12];", "st.global.v4.u32 [%d10], {%r0, %r0, %r0, %r0};"] {
        assert!(says(body).contains("of buffer 0, which has 12"), "{body}");
    }
}

#[test]
fn a_workgroup_finds_nothing_that_another_left_in_its_memory() {
    // Only the last of four workgroups writes what it reads.
    let body = format!(
        ".shared .align 4 .b8 tile[128]; {} mov.u32 %r1, %ctaid.x; mov.u32 %r2, tile; mad.lo.s32 %r3, %r0, 4, %r2;\n\
         setp.eq.u32 %p1, %r1, 3; @%p1 st.shared.u32 [%r3], %r0; ld.shared.u32 %r4, [%r3];\n\
         mad.wide.u32 %d1, %r1, 128, %d20; st.global.u32 [%d1], %r4; ret;",
        prologue(1)
    );
    for seed in 0..32 {
        let launch = Launch::threads(4, 32).seeded(seed);
        let (kind, said) = fault(&body, launch, &[words(&[0; 128])]);
        assert_eq!(kind, FaultKind::Uninitialised, "{said}");
    }
}
