//! What is no code object, or holds what is not simulated.

use super::{CHIPS, SHAPE, Shape, assembly, object, prologue, renamed, try_run};
use tinyspec_simulators::{Launch, Simulation, SimulatorError, amd::Module};

#[test]
fn what_is_no_code_object_is_refused() {
    let good = object("gfx942", &assembly("gfx942", SHAPE, "s_endpgm"));
    assert!(Module::read(&good).is_ok());
    for bytes in [&b""[..], b"\x7fELF", b"no object", &good[..200], &good[..good.len() / 2]] {
        assert!(matches!(Module::read(bytes), Err(SimulatorError::Syntax { .. })));
    }
    let mut foreign = good.clone();
    foreign[18] = 62;
    let error = Module::read(&foreign).expect_err("it is for another machine").to_string();
    assert!(error.contains("it is for machine 62"), "{error}");
    let mut unknown = good;
    unknown[48] = 1;
    let error = Module::read(&unknown).expect_err("nobody knows the chip").to_string();
    assert!(error.contains("chip 0x1 is not simulated"), "{error}");
}

/// Whatever is damaged is an error, or a kernel that does something else.
#[test]
fn damaged_objects_are_read_without_a_panic() {
    let body =
        format!("{}v_add_f32_e32 v2, v1, v1\nglobal_store_dword v1, v2, s[4:5]\ns_endpgm\n", prologue("gfx942", 1));
    let good = object("gfx942", &assembly("gfx942", Shape { params: 1, ..SHAPE }, &body));
    let mut seed = 1u64;
    for _ in 0..2000 {
        let mut bytes = good.clone();
        for _ in 0..3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = (seed >> 33) as usize % bytes.len();
            bytes[place] = (seed >> 24) as u8;
        }
        let Ok(module) = Module::read(&bytes) else { continue };
        let names: Vec<String> = module.kernels().map(str::to_string).collect();
        for name in names {
            let Ok(kernel) = module.kernel(&name) else { continue };
            let mut simulation = Simulation::new();
            let buffer = simulation.zeros(256).expect("there is memory");
            let launch = Launch { limit: 1000, ..Launch::threads(1, 64) };
            let _ = simulation.run(&kernel, &launch, &[buffer]);
        }
    }
}

#[test]
fn every_chip_is_known_by_its_number() {
    for (chip, wave) in
        [("gfx90a", 64), ("gfx950", 64), ("gfx1101", 32), ("gfx1103", 32), ("gfx1151", 32), ("gfx1200", 32)]
    {
        let like = if wave == 64 { "gfx942" } else { "gfx1100" };
        let text = assembly(like, SHAPE, "s_endpgm").replace(&format!("--{like}"), &format!("--{chip}"));
        let module = Module::read(&object(chip, &text)).unwrap_or_else(|error| panic!("{chip}: {error}"));
        assert_eq!(module.target(), chip);
        module.kernel("k").unwrap_or_else(|error| panic!("{chip}: {error}"));
    }
}

#[test]
fn what_is_not_simulated_is_named() {
    for (body, says) in [
        (
            "v_sad_u8 v1, v2, v3, v4\ns_endpgm",
            "`v_sad_u8 v1, v2, v3, v4` is not simulated: no such instruction is known",
        ),
        ("v_add_f32_e64 v1, v2, v3 mul:2\ns_endpgm", "its modifier `mul` is not known"),
        // LLVM makes one of an intrinsic alone, which no kernel calls.
        ("v_cvt_pk_fp8_f32 v1, v2, v3\ns_endpgm", "is not simulated: no such instruction is known"),
        ("v_mov_b32_e32 v1, src_shared_base\ns_endpgm", "a constant is expected"),
        ("v_mov_b32_e32 v70, 0\ns_endpgm", "register 70 of 64"),
        ("s_branch 100\ns_endpgm", "it leads to no instruction of the kernel"),
        ("s_nop 0", "the kernel runs beyond its last instruction"),
        ("v_mov_b32_e32 v1, 0", "the kernel runs beyond its last instruction"),
    ] {
        let error =
            Module::read(&object("gfx942", &assembly("gfx942", SHAPE, body))).and_then(|module| module.kernel("k"));
        let error = error.expect_err(body).to_string();
        assert!(error.contains(says), "{body}: {error}");
    }
}

/// gfx90a accesses scratch memory through a buffer descriptor; elsewhere there can be too much of it.
#[test]
fn scratch_memory_that_cannot_be_had_is_refused() {
    let size = ".amdhsa_kernarg_size";
    for (chip, like, bytes, says) in [
        ("gfx90a", "gfx942", 16, "16 bytes of scratch memory, which is not simulated on gfx90a"),
        ("gfx942", "gfx942", 1 << 20, "1048576 bytes of scratch memory, at most 131072"),
    ] {
        let text = assembly(like, SHAPE, "s_endpgm").replace(&format!("--{like}"), &format!("--{chip}"));
        let text = text.replace(size, &format!(".amdhsa_private_segment_fixed_size {bytes}\n{size}"));
        let error =
            Module::read(&object(chip, &text)).and_then(|module| module.kernel("k")).expect_err("it needs too much");
        let is_of_kernel = matches!(&error, SimulatorError::Launch { kernel, .. } if kernel == "k");
        assert!(is_of_kernel && error.to_string().contains(says), "{chip}: {error}");
    }
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    for chip in CHIPS {
        let few = Shape { most_threads: 64, ..SHAPE };
        let error = try_run(chip, few, "s_endpgm", Launch::threads(1, 65), &[]).expect_err("there are too many");
        assert!(error.to_string().contains("64 at the most"), "{error}");
        // HIP counts the threads of each dimension in 32 bits.
        let launch = Launch::threads(1 << 22, 1024);
        let error = try_run(chip, SHAPE, "s_endpgm", launch, &[]).expect_err("there are 2^32 threads");
        assert!(error.to_string().contains("2^32 in a dimension"), "{error}");
    }
}

/// Where a thread is, and its workgroup, in up to three dimensions.
#[test]
fn threads_and_workgroups_have_their_places() {
    for chip in CHIPS {
        let groups = if chip == "gfx1201" {
            "s_and_b32 s20, ttmp7, 0xffff\ns_lshr_b32 s21, ttmp7, 16"
        } else {
            "s_mov_b32 s20, s3\ns_mov_b32 s21, s4"
        };
        let order = if chip == "gfx1201" {
            format!("{}{groups}", prologue(chip, 1))
        } else {
            // The workgroup's place is where the arguments come to.
            format!(
                "{groups}\ns_mov_b32 s31, s21\ns_mov_b32 s29, s20\n{}s_mov_b32 s20, s29\ns_mov_b32 s21, s31",
                prologue(chip, 1)
            )
        };
        let body = format!(
            "{order}\nv_and_b32_e32 v2, 0x3ff, v0\nv_bfe_u32 v3, v0, 10, 10\nv_bfe_u32 v4, v0, 20, 10\n\
             s_lshl_b32 s21, s21, 1\ns_or_b32 s21, s21, s20\ns_lshl_b32 s21, s21, 1\ns_or_b32 s21, s21, s30\n\
             v_lshlrev_b32_e32 v5, 1, v4\nv_or_b32_e32 v5, v5, v3\nv_lshlrev_b32_e32 v5, 1, v5\nv_or_b32_e32 v5, v5, v2\n\
             v_lshl_or_b32 v6, s21, 3, v5\nv_lshlrev_b32_e32 v7, 2, v6\nglobal_store_dword v7, v6, s[4:5]\ns_endpgm\n"
        );
        let launch = Launch::grid([2, 2, 2], [2, 2, 2]);
        let out = try_run(chip, Shape { dimensions: 3, ..SHAPE }, &renamed(chip, &body), launch, &[vec![0; 256]]);
        let out = out.unwrap_or_else(|error| panic!("{chip}: {error}"));
        let words: Vec<u32> =
            out[0].chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
        assert_eq!(words, (0..64).collect::<Vec<u32>>(), "{chip}");
    }
}
