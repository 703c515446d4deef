//! Bugs planted into a right kernel are found on each family of chips, whatever order the waves run in.

use super::{CHIPS, SHAPE, Shape, assembly, object, prologue, renamed, wave};
use tinyspec_simulators::{Launch, Simulation, SimulatorError, amd::Module};

/// Sums rows of 128 in LOCAL memory, then multiplies and adds each element and its row's sum; the sums are added to words
/// behind the result. `VCC`, `SAVE` and `RESTORE` are those of the chip's waves.
const SUMS: &str = "\
s_lshl_b32 s20, s30, 9
v_or_b32_e32 v2, s20, v1
global_load_dword v3, v2, s[6:7]
s_wait
ds_write_b32 v1, v3
s_wait
s_barrier
s_movk_i32 s21, 0x100
LOOP:
v_cmp_gt_u32_e32 VCC, s21, v1
SAVE
s_cbranch_execz SKIP
v_or_b32_e32 v4, s21, v1
ds_read_b32 v5, v1
ds_read_b32 v6, v4
s_wait
v_add_f32_e32 v5, v5, v6
ds_write_b32 v1, v5
SKIP:
RESTORE
s_wait
s_barrier
s_lshr_b32 s21, s21, 1
s_cmp_gt_u32 s21, 3
s_cbranch_scc1 LOOP
v_mov_b32_e32 v7, 0
ds_read_b32 v8, v7
s_wait
v_fma_f32 v9, v3, v8, v3
global_store_dword v2, v9, s[4:5]
v_cmp_eq_u32_e32 VCC, 0, v0
SAVE
s_cbranch_execz END
s_lshl_b32 s24, s30, 2
v_mov_b32_e32 v10, s24
global_atomic_add_f32 v10, v8, s[4:5] offset:2048
END:
s_endpgm
";

const GROUPS: u32 = 4;

/// The kernel as a chip has it.
fn text(chip: &str, body: &str) -> String {
    let [vcc, save, restore] = match wave(chip) {
        64 => ["vcc", "s_and_saveexec_b64 s[22:23], vcc", "s_or_b64 exec, exec, s[22:23]"],
        _ => ["vcc_lo", "s_and_saveexec_b32 s22, vcc_lo", "s_or_b32 exec_lo, exec_lo, s22"],
    };
    let body = body.replace("VCC", vcc).replace("SAVE", save).replace("RESTORE", restore);
    renamed(chip, &format!("{}{body}", prologue(chip, 2)))
}

fn run(chip: &str, body: &str, seeds: std::ops::Range<u64>) -> Vec<Result<Vec<f32>, SimulatorError>> {
    let shape = Shape { local_bytes: 512, most_threads: 128, ..SHAPE };
    let module = Module::read(&object(chip, &assembly(chip, shape, &text(chip, body))));
    let kernel = module.and_then(|module| module.kernel("k"));
    let kernel = match kernel {
        Ok(kernel) => kernel,
        Err(error) => return vec![Err(error)],
    };
    let once = |seed: u64| {
        let mut simulation = Simulation::new();
        let input: Vec<u8> = (0..128 * GROUPS).flat_map(|number| (number as f32 / 7.0 + 1.0).to_le_bytes()).collect();
        let out = simulation.buffer(&vec![0; 512 * GROUPS as usize + 16])?;
        let input = simulation.buffer(&input)?;
        let launch = Launch { limit: 1 << 14, ..Launch::threads(GROUPS, 128).seeded(seed) };
        simulation.run(&kernel, &launch, &[out, input])?;
        let bytes = simulation.bytes(out)?;
        Ok(bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
    };
    seeds.map(once).collect()
}

#[test]
fn the_kernel_is_right_in_every_order() {
    for chip in CHIPS {
        let all = run(chip, SUMS, 0..20);
        let all: Vec<Vec<f32>> =
            all.into_iter().map(|out| out.unwrap_or_else(|error| panic!("{chip}: {error}"))).collect();
        let row: f32 = (0..128).map(|number| number as f32 / 7.0 + 1.0).sum();
        assert!((all[0][512] - row).abs() < 1e-1, "{chip}: {} {row}", all[0][512]);
        assert!((all[0][0] - (row + 1.0)).abs() < 1e-1, "{chip}: {}", all[0][0]);
        assert!(all.iter().all(|out| *out == all[0]), "{chip}");
    }
}

/// What the order of the waves decides.
const ORDER: &[&str] = &["with nothing that orders them", "nobody has written"];
const WAIT: &[&str] = &["nothing has waited for it"];

/// A bug: what it is, the right text, the wrong one, and what is said of it.
type Bug = (&'static str, &'static str, &'static str, &'static [&'static str]);

const BUGS: [Bug; 25] = [
    ("no barrier behind the copy", "s_barrier\ns_movk", "s_movk", ORDER),
    ("no barrier in the loop", "s_barrier\ns_lshr", "s_lshr", ORDER),
    (
        "a barrier in the branch",
        "SKIP:\nRESTORE\ns_wait\ns_barrier\n",
        "s_wait\ns_barrier\nSKIP:\nRESTORE\n",
        &["do not come to this barrier", "with nothing that orders them", "nobody has written"],
    ),
    (
        "some waves leave",
        "s_barrier\ns_movk",
        "v_readfirstlane_b32 s25, v0\ns_cmp_lg_u32 s25, 0\ns_cbranch_scc1 END\ns_barrier\ns_movk",
        &["of 128 threads reach"],
    ),
    ("no wait for a load", "s[6:7]\ns_wait\n", "s[6:7]\n", WAIT),
    ("no wait for LOCAL memory", "v6, v4\ns_wait\n", "v6, v4\n", WAIT),
    (
        "no wait before the barrier",
        "v1, v3\ns_wait\n",
        "v1, v3\n",
        &["before its accesses of LOCAL memory are waited for"],
    ),
    (
        "a scalar load not waited for",
        "v_mov_b32_e32 v7, 0",
        "s_load_dword s26, s[6:7], 0x0\nv_mov_b32_e32 v7, s26",
        WAIT,
    ),
    ("a register that is still to be loaded is written", "s[6:7]\ns_wait\n", "s[6:7]\nv_mov_b32_e32 v3, 0\n", WAIT),
    ("an input index beyond the end", "v3, v2, s[6:7]", "v3, v2, s[6:7] offset:4", &["of buffer 1, which has 2048"]),
    ("an output index beyond the end", "offset:2048", "offset:2064", &["of buffer 0, which has 2064"]),
    (
        "a LOCAL index beyond the end",
        "s_movk_i32 s21, 0x100",
        "s_movk_i32 s21, 0x200",
        &["of LOCAL memory, which has 512"],
    ),
    ("the wrong buffer", "v10, v8, s[4:5]", "v10, v8, s[6:7]", &["of buffer 1, which has 2048"]),
    ("the wrong stride", "s20, s30, 9", "s20, s30, 8", &["with nothing that orders them"]),
    ("one element for all", "v2, v9, s[4:5]", "v7, v9, s[4:5]", &["with nothing that orders them"]),
    (
        "a sum that is not atomic",
        "s_lshl_b32 s24, s30, 2\nv_mov_b32_e32 v10, s24\nglobal_atomic_add_f32",
        "v_mov_b32_e32 v10, 0\nglobal_store_dword",
        &["with nothing that orders them"],
    ),
    ("LOCAL memory not written", "ds_write_b32 v1, v3\n", "", &["nobody has written"]),
    (
        "LOCAL memory written in part",
        "ds_write_b32 v1, v3\n",
        "v_cmp_gt_u32_e32 VCC, 40, v0\nSAVE\nds_write_b32 v1, v3\nRESTORE\n",
        &["nobody has written"],
    ),
    ("a register not written", "v_mov_b32_e32 v7, 0\n", "", &["nobody has written"]),
    ("a scalar not written", "s_movk_i32 s21, 0x100\n", "", &["nobody has written"]),
    ("a register of another branch", "v2, v9, s[4:5]", "v2, v5, s[4:5]", &["nobody has written"]),
    ("lanes do not come back", "RESTORE\ns_wait\ns_barrier", "s_wait\ns_barrier", &["do not come to this barrier"]),
    ("lanes come back by the wrong mask", "SKIP:\nRESTORE", "SKIP:\nWRONG", &["the mask of the lanes that execute"]),
    ("a loop without an end", "s_lshr_b32 s21, s21, 1", "s_lshr_b32 s21, s21, 0", &["without an end"]),
    (
        "a wide store",
        "global_store_dword v2, v9, s[4:5]",
        "global_store_dwordx2 v2, v[8:9], s[4:5]",
        &["with nothing that orders them", "of buffer 0"],
    ),
];

#[test]
fn planted_bugs_are_found() {
    for chip in CHIPS {
        for (name, right, wrong, says) in BUGS {
            assert_eq!(SUMS.matches(right).count(), 1, "{name}: `{right}`");
            let unwritten = match wave(chip) {
                64 => "s_or_b64 exec, exec, s[26:27]",
                _ => "s_or_b32 exec_lo, exec_lo, s26",
            };
            let wrong = wrong.replace("WRONG", unwritten);
            for (seed, out) in run(chip, &SUMS.replace(right, &wrong), 0..8).into_iter().enumerate() {
                let error = out.err().unwrap_or_else(|| panic!("{chip}: {name} was not found with seed {seed}"));
                let text = error.to_string();
                assert!(says.iter().any(|says| text.contains(says)), "{chip}: {name}: {text}");
            }
        }
    }
}
