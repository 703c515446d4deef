//! Known answers of instructions, from the ISA documents. Each row runs on a lane of its own in three ways: as it stands; with
//! the destination in the registers of the first source; and with every second lane inactive.

mod conversions;
mod floats;
mod halves;
mod integers;
mod scalars;

use super::{CHIPS, SHAPE, prologue, renamed, try_run};
use tinyspec_simulators::Launch;

/// What a lane left out has.
const KEPT: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// Checks an instruction on a chip: `$d` is its result, `$a` to `$c` its operands, of the widths given in bits; a width of 1
/// is a mask.
fn check_on(chip: &str, instruction: &str, result: u32, operands: &[u32], rows: &[(&[u64], u64)]) {
    for rows in rows.chunks(16) {
        check_rows(chip, instruction, result, operands, rows);
    }
}

/// Checks it on a chip of each family.
fn check(instruction: &str, result: u32, operands: &[u32], rows: &[(&[u64], u64)]) {
    for chip in CHIPS {
        check_on(chip, instruction, result, operands, rows);
    }
}

/// The register of an operand. Of 16 bits, code for gfx11 names the half.
fn register(chip: &str, width: u32, number: usize) -> String {
    let first = 4 + 2 * number;
    match width {
        1 if super::wave(chip) == 64 => format!("s[{}:{}]", 10 + 2 * number, 11 + 2 * number),
        1 => format!("s{}", 10 + 2 * number),
        16 if chip == "gfx1100" => format!("v{first}.l"),
        64 => format!("v[{first}:{}]", first + 1),
        _ => format!("v{first}"),
    }
}

fn check_rows(chip: &str, instruction: &str, result: u32, operands: &[u32], rows: &[(&[u64], u64)]) {
    let is_wide = super::wave(chip) == 64;
    let mut loads = String::new();
    for (number, width) in operands.iter().enumerate() {
        let (first, offset) = (6 + 2 * number, 8 * number);
        loads += &format!("global_load_dwordx2 v[{first}:{}], v2, s[4:5] offset:{offset}\n", first + 1);
        if *width == 1 {
            let mask = register(chip, 1, number + 1);
            loads += &format!("s_wait\nv_cmp_ne_u32_e64 {mask}, 0, v{first}\n");
        }
    }
    let ways = [(false, false), (false, true), (true, false), (true, true)];
    for (in_place, leaves_out) in ways {
        if in_place && operands.first() != Some(&result) {
            continue;
        }
        let to = register(chip, result, usize::from(in_place));
        let mut text = instruction.replace("$d", &to);
        for (number, (name, width)) in ["$a", "$b", "$c"].iter().zip(operands).enumerate() {
            text = text.replace(name, &register(chip, *width, number + 1));
        }
        let start = match (result, in_place) {
            (_, true) => "",
            (1, _) if is_wide => "s_mov_b64 s[10:11], 0\n",
            (1, _) => "s_mov_b32 s10, 0\n",
            _ => "v_mov_b32_e32 v4, 0x5a5a5a5a\nv_mov_b32_e32 v5, 0x5a5a5a5a\n",
        };
        // Lanes 0, 2, 4, … stay; afterwards all are back.
        let (less, all) = match (leaves_out, is_wide) {
            (false, _) => ("", ""),
            (_, true) => (
                "s_mov_b64 s[24:25], exec\ns_and_b32 exec_lo, exec_lo, 0x55555555\ns_and_b32 exec_hi, exec_hi, 0x55555555\n",
                "s_mov_b64 exec, s[24:25]\n",
            ),
            (_, false) => {
                ("s_mov_b32 s24, exec_lo\ns_and_b32 exec_lo, exec_lo, 0x55555555\n", "s_mov_b32 exec_lo, s24\n")
            }
        };
        let first = if in_place { 6 } else { 4 };
        let store = match result {
            1 => format!(
                "v_cndmask_b32_e64 v4, 0, 1, {to}\nv_mov_b32_e32 v5, 0\nglobal_store_dwordx2 v3, v[4:5], s[6:7]\n"
            ),
            64 => format!("global_store_dwordx2 v3, v[{first}:{}], s[6:7]\n", first + 1),
            16 => format!("global_store_short v3, v{first}, s[6:7]\n"),
            _ => format!("global_store_dword v3, v{first}, s[6:7]\n"),
        };
        let body = format!(
            "{}v_lshlrev_b32_e32 v2, 6, v0\nv_lshlrev_b32_e32 v3, 3, v0\n{loads}s_wait\n{start}{less}{text}\n{all}{store}s_endpgm\n",
            prologue(chip, 2)
        );
        let body = renamed(chip, &body);
        let mut input = vec![0u64; rows.len() * 8];
        for (row, (values, _)) in rows.iter().enumerate() {
            input[8 * row..][..values.len()].copy_from_slice(values);
        }
        let bytes = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let buffers = [bytes(&input), bytes(&vec![0; rows.len()])];
        let outputs = try_run(chip, SHAPE, &body, Launch::threads(1, rows.len() as u32), &buffers);
        let outputs = outputs.unwrap_or_else(|error| panic!("{chip}: {instruction}: {error}"));
        let mask = if result == 64 { u64::MAX } else { (1 << result) - 1 };
        for (lane, (values, want)) in rows.iter().enumerate() {
            let mut got = [0; 8];
            got.copy_from_slice(&outputs[1][8 * lane..][..8]);
            let kept = match (in_place, result) {
                (true, _) => values[0],
                (_, 1) => 0,
                _ => KEPT,
            };
            let want = if leaves_out && lane % 2 == 1 { kept } else { *want } & mask;
            let got = u64::from_le_bytes(got) & mask;
            assert_eq!(got, want, "{chip}: {text} of {values:x?}: {got:#x}, not {want:#x} (left out: {leaves_out})");
        }
    }
}

fn f(value: f32) -> u64 {
    value.to_bits().into()
}

fn d(value: f64) -> u64 {
    value.to_bits()
}

/// The nan of an operation without a value, a quiet nan with bits of its own, and a signalling one.
const NAN: u64 = 0x7fc0_0000;
const QUIET: u64 = 0x7fc0_1234;
const SIGNALLING: u64 = 0xff80_0001;
/// The last one made quiet.
const QUIETED: u64 = 0xffc0_0001;
/// The least subnormal number.
const LEAST: u64 = 1;
