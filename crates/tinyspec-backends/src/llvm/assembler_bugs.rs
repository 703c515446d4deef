//! Rewrites PTX that NVIDIA's assembler miscompiles: `ptxas` 12.9 and 13.0 for sm_90 and sm_100, and drivers, which contain the
//! same assembler (seen on an H100 with driver 580); `ptxas` 13.5 is correct. The driver of a new GPU also compiles PTX for
//! older targets, so all PTX is rewritten.
//!
//! * `max(max(a, -b), c)` on signed integers becomes one instruction with three operands that drops the negation. The negation
//!   is rewritten as `!b + 1`, which fuses into an addition with a maximum at no cost.
//! * `max(a, k) == k` on 16-bit integers, with a constant `k`, is compiled as `max(a, k) == a`, also where two of them are packed
//!   in a word (seen on the H100 for `max.s16x2`). The maximum is taken in 32 bits.
//!
//! Both also affect `min`.

use std::borrow::Cow;

/// An instruction and its replacement: `{0}` is its first operand.
type Bug = (&'static str, &'static [&'static str]);

const NEGATIONS: [Bug; 2] = [
    ("neg.s32", &["not.b32 {0}, {1};", "add.s32 {0}, {0}, 1;"]),
    ("neg.s16", &["not.b16 {0}, {1};", "add.s16 {0}, {0}, 1;"]),
];

macro_rules! widened {
    ($operation:literal, $sign:literal) => {
        (
            concat!($operation, ".", $sign, "16"),
            &[
                "{ .reg .b16 %narrow<2>; .reg .b32 %wide<2>;",
                "mov.b16 %narrow0, {1};",
                "mov.b16 %narrow1, {2};",
                concat!("cvt.", $sign, "32.", $sign, "16 %wide0, %narrow0;"),
                concat!("cvt.", $sign, "32.", $sign, "16 %wide1, %narrow1;"),
                concat!($operation, ".", $sign, "32 %wide0, %wide0, %wide1;"),
                "cvt.u16.u32 {0}, %wide0; }",
            ],
        )
    };
}

macro_rules! widened_pair {
    ($operation:literal, $sign:literal) => {
        (
            concat!($operation, ".", $sign, "16x2"),
            &[
                "{ .reg .b16 %narrow<4>; .reg .b32 %wide<4>;",
                "mov.b32 %wide0, {1};",
                "mov.b32 %wide1, {2};",
                "mov.b32 {%narrow0, %narrow1}, %wide0;",
                "mov.b32 {%narrow2, %narrow3}, %wide1;",
                concat!("cvt.", $sign, "32.", $sign, "16 %wide0, %narrow0;"),
                concat!("cvt.", $sign, "32.", $sign, "16 %wide1, %narrow1;"),
                concat!("cvt.", $sign, "32.", $sign, "16 %wide2, %narrow2;"),
                concat!("cvt.", $sign, "32.", $sign, "16 %wide3, %narrow3;"),
                concat!($operation, ".", $sign, "32 %wide0, %wide0, %wide2;"),
                concat!($operation, ".", $sign, "32 %wide1, %wide1, %wide3;"),
                "cvt.u16.u32 %narrow0, %wide0;",
                "cvt.u16.u32 %narrow1, %wide1;",
                "mov.b32 {0}, {%narrow0, %narrow1}; }",
            ],
        )
    };
}

const EXTREMES: [Bug; 8] = [
    widened!("max", "u"),
    widened!("max", "s"),
    widened!("min", "u"),
    widened!("min", "s"),
    widened_pair!("max", "u"),
    widened_pair!("max", "s"),
    widened_pair!("min", "u"),
    widened_pair!("min", "s"),
];

/// The text with these instructions replaced.
pub(super) fn avoided(ptx: &str) -> Cow<'_, str> {
    // `max.s16` is also the beginning of `max.s16x2`.
    let is_compared = ["max.s32", "min.s32", "max.s16", "min.s16"].iter().any(|name| ptx.contains(name));
    let negations = NEGATIONS.iter().filter(|_| is_compared);
    let bugs: Vec<&Bug> = negations.chain(&EXTREMES).filter(|(name, _)| ptx.contains(name)).collect();
    if bugs.is_empty() {
        return Cow::Borrowed(ptx);
    }
    let mut text = String::with_capacity(2 * ptx.len());
    for line in ptx.split_inclusive('\n') {
        match bugs.iter().find_map(|(name, instead)| Some((operands(line, name)?, instead))) {
            None => text.push_str(line),
            Some((operands, instead)) => {
                for instruction in *instead {
                    let mut instruction = instruction.to_string();
                    for (number, operand) in operands.iter().enumerate() {
                        instruction = instruction.replace(&format!("{{{number}}}"), operand);
                    }
                    text += &format!("\t{instruction}\n");
                }
            }
        }
    }
    Cow::Owned(text)
}

/// The operands of an instruction that fills a line, as LLVM writes it.
fn operands<'a>(line: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let operands = line.trim().strip_prefix(name)?.strip_prefix(char::is_whitespace)?.strip_suffix(';')?;
    Some(operands.split(',').map(str::trim).collect())
}
