//! Known answers of instructions, from the ISA document. Each row runs on lanes of its own in three ways: as it stands; with
//! the destination in the register of the first source; and with every second lane inactive.

mod bits;
mod conversions;
mod floats;
mod halves;
mod integers;

use super::{as_words, try_run, words};
use tinyspec_simulators::Launch;

/// What a lane left out has.
const KEPT: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// Checks an instruction: `$d` is its result, `$a` to `$d3` its operands, of the types given.
fn check(instruction: &str, result: &str, operands: &[&str], rows: &[(&[u64], u64)]) {
    for chunk in rows.chunks(16) {
        check_rows(instruction, result, operands, chunk);
    }
}

fn check_rows(instruction: &str, result: &str, operands: &[&str], rows: &[(&[u64], u64)]) {
    let register = |kind: &str, number: usize| match kind {
        "b16" => format!("%h{number}"),
        "b32" => format!("%r{}", number + 4),
        "b64" => format!("%d{}", number + 30),
        _ => format!("%p{number}"),
    };
    let names = ["$a", "$b", "$c", "$e"];
    let mut loads = String::new();
    for (number, kind) in operands.iter().enumerate() {
        let register = register(kind, number + 1);
        let offset = 8 * number;
        loads += &match *kind {
            "pred" => format!("ld.global.u32 %r3, [%d2+{offset}]; setp.ne.s32 {register}, %r3, 0;\n"),
            kind => format!("ld.global.{kind} {register}, [%d2+{offset}];\n"),
        };
    }
    let ways = [false, true].into_iter().flat_map(|in_place| [(in_place, false), (in_place, true)]);
    for (in_place, leaves_out) in ways {
        if in_place && operands.first() != Some(&result) {
            continue;
        }
        let to = register(result, if in_place { 1 } else { 0 });
        let mut text = instruction.replace("$d", &to);
        for (number, (name, kind)) in names.iter().zip(operands).enumerate() {
            text = text.replace(name, &register(kind, number + 1));
        }
        if leaves_out {
            text = format!("@%p9 {text}");
        }
        let start = match (result, in_place) {
            (_, true) => String::new(),
            ("pred", _) => format!("setp.ne.s32 {to}, 0, 0;"),
            ("b16", _) => format!("mov.b16 {to}, 0x5a5a;"),
            ("b32", _) => format!("mov.b32 {to}, 0x5a5a5a5a;"),
            _ => format!("mov.b64 {to}, 0x5a5a5a5a5a5a5a5a;"),
        };
        let store = match result {
            "pred" => format!("selp.b64 %d3, 1, 0, {to}; st.global.b64 [%d4], %d3;"),
            kind => format!("st.global.{kind} [%d4], {to};"),
        };
        let body = format!(
            "ld.param.u64 %d1, [p0]; ld.param.u64 %d4, [p1]; mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 64, %d1;\n\
             mad.wide.u32 %d4, %r1, 8, %d4; and.b32 %r2, %r1, 1; setp.eq.s32 %p9, %r2, 0;\n{loads}{start}\n{text}\n{store} ret;"
        );
        let mut input = vec![0u64; rows.len() * 8];
        for (row, (values, _)) in rows.iter().enumerate() {
            input[8 * row..][..values.len()].copy_from_slice(values);
        }
        let bytes = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let buffers = [bytes(&input), bytes(&vec![0; rows.len()])];
        let outputs = try_run(&body, "", Launch::threads(1, rows.len() as u32), &buffers);
        let outputs = outputs.unwrap_or_else(|error| panic!("{instruction}: {error}"));
        for (lane, (values, want)) in rows.iter().enumerate() {
            let mut got = [0; 8];
            got.copy_from_slice(&outputs[1][8 * lane..][..8]);
            let mask = match result {
                "b16" => 0xffff,
                "b32" => 0xffff_ffff,
                _ => u64::MAX,
            };
            let kept = match (in_place, result) {
                (true, _) => values[0] & mask,
                (_, "pred") => 0,
                _ => KEPT & mask,
            };
            let want = if leaves_out && lane % 2 == 1 { kept } else { *want };
            let got = u64::from_le_bytes(got);
            assert_eq!(got, want, "{text} of {values:x?}: {got:#x}, not {want:#x} (in place: {in_place})");
        }
    }
}

fn f(value: f32) -> u64 {
    value.to_bits().into()
}

fn d(value: f64) -> u64 {
    value.to_bits()
}

/// What every f32 result that is not a number is.
const NAN: u64 = 0x7fff_ffff;
