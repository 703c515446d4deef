//! Accesses of memory: widths, extensions, halves of registers, changes that are atomic.

use super::{CHIPS, SHAPE, Shape, assembly, fault, object, prologue, renamed, try_run, wave};
use tinyspec_simulators::{FaultKind, Launch, SimulatorError, amd::Module};

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn as_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// Buffers after a body has run on so many threads.
fn run(chip: &str, body: &str, threads: u32, local_bytes: usize, buffers: &[Vec<u8>]) -> Vec<Vec<u32>> {
    let text = renamed(chip, &format!("{}{body}\ns_endpgm\n", prologue(chip, buffers.len())));
    let out = try_run(chip, Shape { local_bytes, ..SHAPE }, &text, Launch::threads(1, threads), buffers);
    out.unwrap_or_else(|error| panic!("{chip}: {body}: {error}")).iter().map(|bytes| as_words(bytes)).collect()
}

#[test]
fn narrow_values_are_extended() {
    for chip in CHIPS {
        for (load, want) in [("ubyte", 0x80), ("sbyte", 0xffff_ff80), ("ushort", 0x8180), ("sshort", 0xffff_8180u32)] {
            let body = format!("global_load_{load} v2, v1, s[4:5]\ns_wait\nglobal_store_dword v1, v2, s[6:7]");
            assert_eq!(run(chip, &body, 1, 0, &[words(&[0x7f7f_8180]), words(&[0])])[1], [want], "{chip} {load}");
        }
    }
}

#[test]
fn halves_of_registers_are_loaded_and_stored() {
    for chip in CHIPS {
        let [low, high, store] = match chip {
            "gfx942" => ["global_load_short_d16", "global_load_short_d16_hi", "global_store_short_d16_hi"],
            _ => ["global_load_d16_b16", "global_load_d16_hi_b16", "global_store_d16_hi_b16"],
        };
        let body = format!(
            "{low} v2, v1, s[4:5] offset:2\n{high} v2, v1, s[4:5]\ns_wait\nglobal_store_dword v1, v2, s[6:7]\n{store} v1, v2, s[6:7] offset:4"
        );
        let out = run(chip, &body, 1, 0, &[words(&[0x2222_1111]), words(&[0, 0])]);
        assert_eq!(out[1], [0x1111_2222, 0x1111], "{chip}");
    }
}

/// A kernel that needs more registers than instructions can name spills to the accumulation registers of gfx9.
#[test]
fn registers_are_spilled_to_accumulation_registers() {
    let body = "v_accvgpr_write_b32 a3, v0\nv_accvgpr_mov_b32 a1, a3\nv_mov_b32_e32 v0, 0\nv_accvgpr_read_b32 v2, a1\n\
                v_add_u32_e32 v2, 7, v2\nglobal_store_dword v1, v2, s[4:5]\ns_endpgm";
    let shape = Shape { params: 1, ..SHAPE };
    let text = assembly("gfx942", shape, &(prologue("gfx942", 1) + body));
    let text = text.replace(".amdhsa_next_free_vgpr 64", ".amdhsa_next_free_vgpr 68");
    let kernel = Module::read(&object("gfx942", &text)).and_then(|module| module.kernel("k")).expect("it is read");
    let out = crate::on_buffers(&[vec![0; 12]], |simulation, ids| {
        simulation.run(&kernel, &Launch::threads(1, 3), ids).map(drop)
    });
    assert_eq!(out.expect("it runs")[0], [7u32, 8, 9].map(u32::to_le_bytes).concat());
}

#[test]
fn several_words_at_once() {
    for chip in CHIPS {
        let body = "v_lshlrev_b32_e32 v2, 4, v0\nglobal_load_dwordx4 v[4:7], v2, s[4:5]\ns_wait\n\
                    v_add_f32_e32 v4, v5, v6\nglobal_store_dwordx3 v2, v[4:6], s[6:7]";
        let input: Vec<u32> = (0..8).map(|number| (number as f32).to_bits()).collect();
        let out = run(chip, body, 2, 0, &[words(&input), words(&[9; 8])]);
        assert_eq!(
            out[1],
            [3f32, 1.0, 2.0]
                .map(f32::to_bits)
                .into_iter()
                .chain([9])
                .chain([11f32, 5.0, 6.0].map(f32::to_bits))
                .chain([9])
                .collect::<Vec<_>>()
        );
        // Only words have to be aligned.
        let body =
            "global_load_dwordx2 v[4:5], v1, s[4:5] offset:4\ns_wait\nglobal_store_dwordx2 v1, v[4:5], s[6:7] offset:4";
        let out = run(chip, body, 1, 0, &[words(&[1, 2, 3]), words(&[0; 3])]);
        assert_eq!(out[1], [0, 2, 3], "{chip}");
    }
}

#[test]
fn local_memory_in_pairs() {
    for chip in CHIPS {
        let body = "v_lshlrev_b32_e32 v2, 3, v0\nv_mov_b32_e32 v3, 0x55\nds_write2_b32 v2, v0, v3 offset0:0 offset1:1\ns_wait\ns_barrier\n\
                    v_xor_b32_e32 v2, 8, v2\nds_read2_b32 v[4:5], v2 offset0:1 offset1:0\ns_wait\n\
                    v_lshl_or_b32 v4, v5, 8, v4\nglobal_store_dword v1, v4, s[4:5]";
        let threads = 2 * wave(chip);
        let out = run(chip, body, threads, 8 * threads as usize, &[vec![0; 4 * threads as usize]]);
        assert_eq!(out[0], (0..threads).map(|lane| (lane ^ 1) << 8 | 0x55).collect::<Vec<_>>(), "{chip}");
        // The register of the address gets the first result.
        let body = "v_mov_b32_e32 v2, v1\nv_mov_b32_e32 v3, 5\nds_write2_b32 v1, v0, v3 offset0:0 offset1:64\ns_wait\n\
                    ds_read2_b32 v[2:3], v2 offset0:0 offset1:64\ns_wait\nv_lshlrev_b32_e32 v4, 2, v2\n\
                    global_store_dword v4, v3, s[4:5]";
        assert_eq!(run(chip, body, 4, 512, &[vec![0; 16]])[0], [5; 4], "{chip}");
    }
}

#[test]
fn atomic_changes() {
    let f = f32::to_bits;
    // What is there, what each of four lanes gives, what is there at last.
    let rows: [(&str, &str, u32, u32, u32); 8] = [
        ("add", "add_u32", 5, 3, 17),
        ("smin", "min_i32", 5, 0xffff_fff0, 0xffff_fff0),
        ("umax", "max_u32", 5, 0xffff_fff0, 0xffff_fff0),
        ("and", "and_b32", 0xff, 0x0f, 0x0f),
        ("or", "or_b32", 1, 6, 7),
        ("xor", "xor_b32", 1, 6, 1),
        ("swap", "swap_b32", 1, 6, 6),
        ("add_f32", "add_f32", f(1.5), f(0.25), f(2.5)),
    ];
    for chip in CHIPS {
        for (old, new, before, given, after) in rows {
            let name = if chip == "gfx942" { old } else { new };
            let body =
                format!("v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, {given:#x}\nglobal_atomic_{name} v2, v3, s[4:5]");
            assert_eq!(run(chip, &body, 4, 0, &[words(&[before])])[0], [after], "{chip}: {name}");
        }
        let returns = match chip {
            "gfx942" => "sc0",
            "gfx1100" => "glc",
            _ => "th:TH_ATOMIC_RETURN",
        };
        // Each lane gets what was there before it.
        let name = if chip == "gfx942" { "add" } else { "add_u32" };
        let body = format!(
            "v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 1\nglobal_atomic_{name} v4, v2, v3, s[4:5] {returns}\ns_wait\nglobal_store_dword v1, v4, s[6:7]"
        );
        let mut out = run(chip, &body, 8, 0, &[words(&[10]), words(&[0; 8])]);
        out[1].sort_unstable();
        assert_eq!((out[0][0], &out[1]), (18, &(10..18).collect()), "{chip}");
        let name = if chip == "gfx942" { "cmpswap" } else { "cmpswap_b32" };
        let body = format!(
            "v_mov_b32_e32 v2, 7\nv_mov_b32_e32 v3, 5\nv_mov_b32_e32 v5, 0\nglobal_atomic_{name} v4, v5, v[2:3], s[4:5] {returns}\ns_wait\nglobal_store_dword v1, v4, s[6:7]"
        );
        for (before, after) in [(5, 7), (6, 6)] {
            let out = run(chip, &body, 1, 0, &[words(&[before]), words(&[0])]);
            assert_eq!((out[0][0], out[1][0]), (after, before), "{chip}");
        }
    }
}

#[test]
fn atomic_changes_of_local_memory() {
    for chip in CHIPS {
        let body = "v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 1\nds_write_b32 v2, v3\ns_wait\nds_add_u32 v2, v3\nds_add_rtn_u32 v4, v2, v3\ns_wait\n\
                    ds_read_b32 v5, v2\ns_wait\nglobal_store_dword v1, v5, s[4:5]";
        let body =
            body.replace("ds_write_b32 v2, v3", "v_cmp_eq_u32_e32 VCC, 0, v0\nSAVE\nds_write_b32 v2, v3\nRESTORE");
        let [vcc, save, restore] = match wave(chip) {
            64 => ["vcc", "s_and_saveexec_b64 s[22:23], vcc", "s_or_b64 exec, exec, s[22:23]"],
            _ => ["vcc_lo", "s_and_saveexec_b32 s22, vcc_lo", "s_or_b32 exec_lo, exec_lo, s22"],
        };
        let body = body.replace("VCC", vcc).replace("SAVE", save).replace("RESTORE", restore);
        assert_eq!(run(chip, &body, 4, 4, &[words(&[0; 4])])[0], [9; 4], "{chip}");
    }
}

#[test]
fn waits_that_are_too_weak_are_found() {
    for chip in CHIPS {
        let body = "global_load_dword v2, v1, s[4:5]\nglobal_load_dword v3, v1, s[6:7]\nONE\nglobal_store_dword v1, USED, s[4:5]\ns_endpgm\n";
        let one = if chip == "gfx1201" { "s_wait_loadcnt 0x1" } else { "s_waitcnt vmcnt(1)" };
        let text = |used: &str| {
            renamed(chip, &format!("{}{}", prologue(chip, 2), body.replace("ONE", one).replace("USED", used)))
        };
        let buffers = [words(&[1]), words(&[2])];
        // Loads come in their order: of two, the first is there.
        assert!(try_run(chip, SHAPE, &text("v2"), Launch::threads(1, 1), &buffers).is_ok(), "{chip}");
        let (kind, says) = fault(chip, SHAPE, &text("v3"), Launch::threads(1, 1), &buffers);
        assert_eq!(kind, FaultKind::Uninitialised);
        assert!(
            says.contains("kernel `k`") && says.contains("wave 0, lane 0: uses v3, which is being loaded"),
            "{says}"
        );
    }
    // Scalar loads come in any order.
    let text = format!(
        "{}s_load_dword s20, s[4:5], 0x0\ns_load_dword s21, s[4:5], 0x4\ns_waitcnt lgkmcnt(1)\ns_mov_b32 s22, s20\ns_endpgm\n",
        prologue("gfx942", 1)
    );
    let (kind, says) = fault("gfx942", SHAPE, &text, Launch::threads(1, 1), &[words(&[1, 2])]);
    assert_eq!(kind, FaultKind::Uninitialised, "{says}");
}

#[test]
fn a_load_may_overtake_none_to_its_register() {
    let buffers = [words(&[1]), words(&[2]), words(&[0])];
    for chip in CHIPS {
        let text = |first: &str| {
            let second = "global_load_dword v2, v1, s[6:7]\ns_wait\nglobal_store_dword v1, v2, s[8:9]\ns_endpgm\n";
            renamed(chip, &format!("{}{first}\n{second}", prologue(chip, 3)))
        };
        // Of two loads of one kind the later is written last; gfx12 does not promise that.
        let twice = text("global_load_dword v2, v1, s[4:5]");
        match chip {
            "gfx1201" => {
                let (kind, says) = fault(chip, SHAPE, &twice, Launch::threads(1, 1), &buffers);
                assert_eq!((kind, says.contains("uses v2")), (FaultKind::Uninitialised, true), "{says}");
            }
            _ => {
                let out = try_run(chip, SHAPE, &twice, Launch::threads(1, 1), &buffers);
                assert_eq!(as_words(&out.unwrap_or_else(|error| panic!("{chip}: {error}"))[2]), [2], "{chip}");
            }
        }
        // LOCAL memory has a way of its own, and so have other instructions.
        let local = "v_mov_b32_e32 v3, 0\nds_write_b32 v3, v3\ns_wait\nds_read_b32 v2, v3";
        for (first, local_bytes) in [(local, 4), ("ds_bpermute_b32 v2, v1, v0", 0)] {
            let shape = Shape { local_bytes, ..SHAPE };
            let (kind, says) = fault(chip, shape, &text(first), Launch::threads(1, 1), &buffers);
            assert_eq!((kind, says.contains("uses v2")), (FaultKind::Uninitialised, true), "{chip}: {says}");
        }
        let moved = twice.replace("v1, s[4:5]\n", "v1, s[4:5]\nv_mov_b32_e32 v2, 0\n");
        let (kind, says) = fault(chip, SHAPE, &moved, Launch::threads(1, 1), &buffers);
        assert_eq!((kind, says.contains("uses v2")), (FaultKind::Uninitialised, true), "{chip}: {says}");
    }
}

/// Compilers load four bytes as a word wherever they are, and store them so.
#[test]
fn words_may_have_any_address() {
    for chip in CHIPS {
        let body = "v_mul_u32_u24_e32 v3, 5, v0\nglobal_load_dword v2, v3, s[4:5]\ns_wait\n\
                    global_store_dword v3, v2, s[6:7] offset:1";
        let bytes: Vec<u8> = (1..=20).collect();
        let out = run(chip, body, 4, 0, &[bytes, vec![0; 24]]);
        let stored: Vec<u8> = out[1].iter().flat_map(|word| word.to_le_bytes()).collect();
        let want = |place: usize| if (1..=20).contains(&place) && !place.is_multiple_of(5) { place as u8 } else { 0 };
        assert_eq!(stored, (0..24).map(want).collect::<Vec<_>>(), "{chip}");
        // Neighbours that write a byte both are seen all the same.
        let overlapping = body.replace("u24_e32 v3, 5", "u24_e32 v3, 3");
        let text = renamed(chip, &format!("{}{overlapping}\ns_endpgm\n", prologue(chip, 2)));
        let (kind, says) = fault(chip, SHAPE, &text, Launch::threads(1, 4), &[vec![1; 20], vec![0; 24]]);
        assert_eq!(kind, FaultKind::Race, "{chip}: {says}");
        // What is atomic must be aligned.
        let add = if chip == "gfx942" { "global_atomic_add" } else { "global_atomic_add_u32" };
        let text = format!("{}{add} v1, v1, s[4:5] offset:1\ns_endpgm\n", prologue(chip, 1));
        let (kind, says) = fault(chip, SHAPE, &text, Launch::threads(1, 4), &[vec![0; 24]]);
        assert_eq!(kind, FaultKind::Misaligned, "{chip}: {says}");
    }
}

/// The written bytes of a partly written word can be used.
#[test]
fn a_word_may_be_written_in_part() {
    for chip in CHIPS {
        let write = if chip == "gfx942" { "ds_write_b8" } else { "ds_store_b8" };
        let body = format!(
            "v_mov_b32_e32 v2, 7\nv_mov_b32_e32 v3, 0\n{write} v0, v2\ns_wait\nds_read_b32 v4, v3\ns_wait\n\
             v_bfe_u32 v4, v4, 16, 8\nglobal_store_dword v1, v4, s[4:5]"
        );
        assert_eq!(run(chip, &body, 3, 4, &[words(&[0; 3])])[0], [7; 3], "{chip}");
        let text = renamed(chip, &format!("{}{body}\ns_endpgm\n", prologue(chip, 1)));
        let shape = Shape { local_bytes: 4, ..SHAPE };
        let (kind, says) = fault(chip, shape, &text, Launch::threads(1, 2), &[words(&[0; 2])]);
        assert_eq!(kind, FaultKind::Uninitialised, "{chip}: {says}");
    }
}

/// Numbers of less than a word are changed with the word around them, whose other bytes stay.
#[test]
fn a_word_may_reach_beyond_its_buffer_and_leaves_what_is_there() {
    for chip in CHIPS {
        let name = if chip == "gfx942" { "cmpswap" } else { "cmpswap_b32" };
        let text = |new: u32| {
            let body = format!(
                "v_mov_b32_e32 v2, {new:#x}\nv_mov_b32_e32 v3, 0x030201\nv_mov_b32_e32 v5, 0\n\
                 global_atomic_{name} v5, v[2:3], s[4:5]\ns_endpgm\n"
            );
            format!("{}{body}", prologue(chip, 1))
        };
        let run = |new: u32| try_run(chip, SHAPE, &text(new), Launch::threads(1, 1), &[vec![1, 2, 3]]);
        assert_eq!(run(0x70201).unwrap_or_else(|error| panic!("{chip}: {error}"))[0], [1, 2, 7]);
        let says = run(0x0103_0201).map_err(|error| error.to_string());
        assert!(
            says.as_ref().is_err_and(|says| says.contains("at byte 0 of buffer 0, which has 3")),
            "{chip}: {says:?}"
        );
    }
}

/// The buffer after a body has run on three threads with 64 bytes of scratch memory each.
fn run_with_scratch(chip: &str, body: &str) -> Result<Vec<u32>, SimulatorError> {
    let body = renamed(chip, &format!("{}{body}\ns_endpgm\n", prologue(chip, 1)));
    let size = ".amdhsa_kernarg_size";
    let text = assembly(chip, Shape { params: 1, ..SHAPE }, &body)
        .replace(size, &format!(".amdhsa_private_segment_fixed_size 64\n{size}"));
    let kernel = Module::read(&object(chip, &text))?.kernel("k")?;
    let out = crate::on_buffers(&[vec![0; 12]], |simulation, ids| {
        simulation.run(&kernel, &Launch::threads(1, 3), ids).map(drop)
    });
    out.map(|out| as_words(&out[0]))
}

/// Spills and reloads through scratch memory, in each width and addressing mode.
#[test]
fn each_lane_has_scratch_memory_of_its_own() {
    for chip in CHIPS {
        for (suffix, registers) in [("", "v2"), ("x2", "v[2:3]"), ("x3", "v[2:4]"), ("x4", "v[2:5]")] {
            let values =
                "v_add_u32_e32 v2, 5, v0\nv_add_u32_e32 v3, 6, v0\nv_add_u32_e32 v4, 7, v0\nv_add_u32_e32 v5, 8, v0";
            let cleared = registers.replace("v2", "v6").replace("[2:", "[6:").replace(":3]", ":7]");
            let loaded = cleared.replace(":4]", ":8]").replace(":5]", ":9]");
            let last = [("", 6, 5), ("x2", 7, 6), ("x3", 8, 7), ("x4", 9, 8)];
            let (_, register, first) = last.into_iter().find(|(of, ..)| *of == suffix).expect("it is listed");
            for (store, load) in [
                ("off, {}, off offset:16", "off, off offset:16"),
                ("v10, {}, off", "off, s20"),
                ("off, {}, s20", "v10, off offset:0"),
            ] {
                let store = store.replace("{}", registers);
                let body = format!(
                    "{values}\nv_mov_b32_e32 v10, 32\ns_mov_b32 s20, 32\nscratch_store_dword{suffix} {store}\n\
                     scratch_load_dword{suffix} {loaded}, {load}\ns_wait\nglobal_store_dword v1, v{register}, s[4:5]"
                );
                let out = run_with_scratch(chip, &body).unwrap_or_else(|error| panic!("{chip}: {body}: {error}"));
                assert_eq!(out, [first, first + 1, first + 2], "{chip}: {body}");
            }
        }
    }
}

#[test]
fn narrow_values_go_to_scratch_memory() {
    for chip in CHIPS {
        let high = if chip == "gfx942" { "scratch_store_short_d16_hi" } else { "scratch_store_d16_hi_b16" };
        let [low_load, high_load] = match chip {
            "gfx942" => ["scratch_load_short_d16", "scratch_load_short_d16_hi"],
            _ => ["scratch_load_d16_b16", "scratch_load_d16_hi_b16"],
        };
        for (store, load, want) in [
            ("scratch_store_byte", "scratch_load_ubyte v3, off, off", 0x80),
            ("scratch_store_byte", "scratch_load_sbyte v3, off, off", 0xffff_ff80),
            ("scratch_store_short", "scratch_load_ushort v3, off, off", 0x8180),
            ("scratch_store_short", "scratch_load_sshort v3, off, off", 0xffff_8180),
            (high, "scratch_load_ushort v3, off, off", 0x7f7f),
            (
                "scratch_store_dword",
                &format!("{low_load} v3, off, off offset:2\n{high_load} v3, off, off"),
                0x8180_7f7f,
            ),
        ] {
            let body = format!(
                "v_mov_b32_e32 v2, 0x7f7f8180\n{store} off, v2, off\n{load}\ns_wait\nglobal_store_dword v1, v3, s[4:5]"
            );
            let out = run_with_scratch(chip, &body).unwrap_or_else(|error| panic!("{chip}: {body}: {error}"));
            assert_eq!(out, [want; 3], "{chip}: {body}");
        }
    }
}

/// A spilled register need not have been written; what is loaded again is then unwritten too.
#[test]
fn mistakes_in_scratch_memory_are_found() {
    for chip in CHIPS {
        for (body, kind, says) in [
            (
                "scratch_store_dword off, v2, off offset:64",
                FaultKind::OutOfBounds,
                "writes 4 bytes at byte 64 of its scratch memory, which has 64",
            ),
            ("scratch_load_dwordx2 v[2:3], off, off offset:60", FaultKind::OutOfBounds, "reads 8 bytes at byte 60"),
            (
                "scratch_load_dword v2, off, off\ns_wait\nglobal_store_dword v1, v2, s[4:5]",
                FaultKind::Uninitialised,
                "a value that is stored",
            ),
            (
                "scratch_store_dword off, v2, off\nscratch_load_dword v3, off, off\ns_wait\nglobal_store_dword v1, v3, s[4:5]",
                FaultKind::Uninitialised,
                "a value that is stored",
            ),
            ("scratch_store_dword v2, v1, off", FaultKind::Uninitialised, "an address"),
            (
                "scratch_store_dword off, v1, off\nscratch_load_dword v3, off, off\nglobal_store_dword v1, v3, s[4:5]",
                FaultKind::Uninitialised,
                "uses v3, which is being loaded",
            ),
        ] {
            let error = run_with_scratch(chip, body).expect_err(body);
            let is_of_kind = matches!(&error, SimulatorError::Fault(fault) if fault.kind == kind);
            assert!(is_of_kind && error.to_string().contains(says), "{chip}: {body}: {error}");
        }
    }
}
