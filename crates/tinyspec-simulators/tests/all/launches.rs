//! The runtime: PTX as a device runs it.

use super::{as_words, module, prologue, words};
use std::sync::Arc;
use tinyspec_backends::{BackendError, Gpu, Grid, Launch, Memory, Runtime};
use tinyspec_simulators::{AmdRuntime, PtxRuntime};

fn gpu(name: &str) -> Gpu {
    Gpu::named(name).expect("the table has it")
}

fn run(text: &str, groups: usize, threads: usize, inputs: &[&[u32]]) -> Result<Vec<Vec<u32>>, BackendError> {
    run_with_dims(text, (groups, threads), inputs, &[])
}

fn run_with_dims(
    text: &str,
    (groups, threads): (usize, usize),
    inputs: &[&[u32]],
    dims: &[i64],
) -> Result<Vec<Vec<u32>>, BackendError> {
    let runtime = PtxRuntime::new(&gpu("sm_90")).seeded(5);
    let program = runtime.load("k", text.as_bytes())?;
    let mut buffers: Vec<Arc<dyn Memory>> = Vec::new();
    for input in inputs {
        let memory = runtime.allocate(4 * input.len())?;
        runtime.write(&*memory, &words(input))?;
        buffers.push(memory);
    }
    let addresses: Vec<*mut u8> = buffers.iter().map(|memory| memory.address()).collect();
    let grid = Grid { groups: [groups, 1, 1], threads: [threads, 1, 1] };
    let launch = Launch {
        program,
        buffers: (0..inputs.len() as u32).collect(),
        dims: dims.to_vec(),
        trips: 0..1,
        grid,
        scratch_bytes: 0,
        nanoseconds: 0,
        has_prologue: false,
        line: Default::default(),
    };
    // SAFETY: the buffers live until the end, and nobody else uses them.
    unsafe { runtime.enqueue(&vec![launch].into(), &addresses)? };
    let read = |memory: &Arc<dyn Memory>| {
        let mut bytes = vec![0; memory.len()];
        runtime.read(&**memory, &mut bytes).map(|()| as_words(&bytes))
    };
    buffers.iter().map(read).collect()
}

fn copy() -> String {
    module(2, "", &format!("{}ld.global.u32 %r1, [%d20]; st.global.u32 [%d21], %r1; ret;", prologue(2)))
}

#[test]
fn a_command_list_runs() {
    let out = run(&copy(), 1, 4, &[&[1, 2, 3, 4], &[0; 4]]).expect("it runs");
    assert_eq!(out[1], [1, 2, 3, 4]);
    // A third buffer that the kernel has no parameter for.
    assert!(run(&copy(), 1, 4, &[&[1, 2, 3, 4], &[0; 4], &[0]]).is_ok());
}

#[test]
fn buffers_end_where_their_memory_does_or_before() {
    let error = run(&copy(), 1, 5, &[&[1, 2, 3, 4], &[0; 8]]).expect_err("it reads too far");
    assert!(
        matches!(error, BackendError::Execution { .. }) && error.to_string().contains("byte 16 of buffer 0"),
        "{error}"
    );
    let sized = format!("{}\n// bytes and names of buffers: 12=x ?\n", copy());
    let error = run(&sized, 1, 4, &[&[1, 2, 3, 4], &[0; 4]]).expect_err("it reads too far");
    assert!(error.to_string().contains("byte 12 of buffer 0 (`x`), which has 12"), "{error}");
}

#[test]
fn faults_keep_their_kind() {
    let race = module(1, "", &format!("{}st.global.u32 [%d10], %r0; ret;", prologue(1)));
    assert!(matches!(run(&race, 1, 2, &[&[0]]), Err(BackendError::Race { .. })));
    let unwritten = module(1, "", &format!("{}st.global.u32 [%d20], %r5; ret;", prologue(1)));
    assert!(matches!(run(&unwritten, 1, 1, &[&[0]]), Err(BackendError::Uninitialised { .. })));
    let diverged = module(1, "", &format!("{}setp.eq.u32 %p1, %r0, 0; @%p1 bar.sync 0; ret;", prologue(1)));
    assert!(matches!(run(&diverged, 1, 2, &[&[0]]), Err(BackendError::Divergence { .. })));
}

#[test]
fn what_is_no_ptx_is_not_loaded() {
    let runtime = PtxRuntime::new(&gpu("sm_90"));
    for code in [&b"\x7fELF"[..], b"", b"\xff\xff", b".version 7.0\n.target sm_80\n"] {
        assert!(matches!(runtime.load("k", code), Err(BackendError::Load { .. })));
    }
    let unknown = module(0, "", "frob.s32 %r1, %r2; ret;");
    let error = runtime.load("k", unknown.as_bytes()).map(|_| ()).expect_err("it is unknown");
    assert!(error.to_string().contains("line 6, column 1: `frob.s32` is not simulated"), "{error}");
}

/// Each chip runs its own code, NVIDIA's also that of older ones; an error names both chips.
#[test]
fn code_of_another_chip_is_not_loaded() {
    let of_nvidia = |chip: &str| module(0, "", "ret;").replace("sm_90", chip);
    for (code, device) in [("sm_90", "sm_90"), ("sm_80", "sm_90"), ("sm_75", "sm_120"), ("sm_90", "sm_90a")] {
        let loaded = PtxRuntime::new(&gpu(device)).load("k", of_nvidia(code).as_bytes());
        assert!(loaded.is_ok(), "{code} on {device}");
    }
    let of_amd = |chip: &str| crate::amd::empty_object(chip);
    assert!(AmdRuntime::new(&gpu("gfx1100")).load("k", &of_amd("gfx1100")).is_ok());
    let refused = [
        ("sm_90", "sm_80", PtxRuntime::new(&gpu("sm_80")).load("k", of_nvidia("sm_90").as_bytes())),
        ("sm_90a", "sm_90", PtxRuntime::new(&gpu("sm_90")).load("k", of_nvidia("sm_90a").as_bytes())),
        ("sm_90a", "sm_100", PtxRuntime::new(&gpu("sm_100")).load("k", of_nvidia("sm_90a").as_bytes())),
        ("gfx1100", "gfx1101", AmdRuntime::new(&gpu("gfx1101")).load("k", &of_amd("gfx1100"))),
        ("gfx942", "gfx90a", AmdRuntime::new(&gpu("gfx90a")).load("k", &of_amd("gfx942"))),
    ];
    for (code, device, loaded) in refused {
        let error = loaded.map(drop).expect_err("it is for another chip");
        let says = format!("it is for {code}, and the device is a {device}\nhelp: compile it for {device}");
        assert!(matches!(&error, BackendError::Load { name, reason } if name == "k" && *reason == says), "{error}");
    }
}

#[test]
fn named_dims_are_values_behind_the_buffers() {
    let text = copy().replace(
        "(.param .u64 p0, .param .u64 p1)",
        "(.param .u64 .ptr .global p0, .param .u64 .ptr .global p1, .param .u64 n, .param .u64 m)",
    );
    let text = text.replace(
        "st.global.u32 [%d21], %r1;",
        "ld.param.u32 %r2, [n]; ld.param.u32 %r3, [m]; mad.lo.s32 %r1, %r1, %r2, %r3; st.global.u32 [%d21], %r1;",
    );
    let out = run_with_dims(&text, (1, 2), &[&[1, 2], &[0; 2]], &[10, 7]).expect("it runs");
    assert_eq!(out[1], [17, 27]);
    let out = run_with_dims(&text, (1, 2), &[&[1, 2], &[0; 2]], &[10]);
    assert!(matches!(out, Err(BackendError::Execution { .. })));
}
