//! Works around two miscompilations in LLVM 22 for AVX-512. It folds `vpmov*2m`, which makes a mask of a vector's sign bits, and
//! the `kmov` of that mask to a general-purpose register into a single `movmsk`. But `movmsk` cannot encode the vector registers
//! 16 to 31, so it reads a wrong register (llvm-project issue 191304). And the mask itself is lost, even if it is shifted in
//! place and read again (issue 198197).
//!
//! Affected code is generated again with the feature disabled that provides `vpmov*2m`.

use super::machine::Output;
use crate::processor::{Architecture, Isa};

/// The release with both bugs; they are fixed in the next one.
const RELEASE: u32 = 22;

/// The features to disable, in LLVM's notation; `None` if the code is not affected.
pub(super) fn to_avoid(isa: &Isa, release: u32, output: Output, code: &[u8]) -> Option<&'static str> {
    if release != RELEASE || isa.architecture != Architecture::X86_64 || !isa.has("avx512dq") {
        return None;
    }
    let moves = match output {
        Output::Source => return None,
        Output::Assembly => Moves::of_text(&String::from_utf8_lossy(code)),
        Output::Object => Moves::of_object(code),
    };
    match (moves.of_words, moves.of_bytes) {
        _ if !moves.is_beyond && !moves.is_beside_shift => None,
        (true, true) => Some("-avx512dq,-avx512bw"),
        (true, false) => Some("-avx512dq"),
        (false, true) => Some("-avx512bw"),
        (false, false) => None,
    }
}

/// The `movmsk` instructions in a piece of code.
#[derive(Default)]
struct Moves {
    /// `vmovmskps` or `vmovmskpd`.
    of_words: bool,
    /// `vpmovmskb`.
    of_bytes: bool,
    /// Whether one of them reads a register that it cannot encode.
    is_beyond: bool,
    /// Whether the code also shifts masks.
    is_beside_shift: bool,
}

impl Moves {
    fn of_text(assembly: &str) -> Moves {
        let mut moves = Moves::default();
        for line in assembly.lines().map(str::trim_start) {
            let is_of_words = line.starts_with("vmovmskp");
            if is_of_words || line.starts_with("vpmovmskb") {
                moves.of_words |= is_of_words;
                moves.of_bytes |= !is_of_words;
                let number = line.split_once("mm").and_then(|(_, rest)| rest.split(',').next()?.parse::<u32>().ok());
                moves.is_beyond |= number.is_some_and(|number| number >= 16);
            }
            moves.is_beside_shift |= line.starts_with("kshift");
        }
        moves
    }

    /// Constants may look like an instruction; then the code is generated again unnecessarily.
    fn of_object(object: &[u8]) -> Moves {
        let mut moves = Moves::default();
        for bytes in object.windows(5) {
            // The two-byte and the three-byte VEX prefix.
            let (map, prefix, opcode, registers) = match *bytes {
                [0xc5, prefix, opcode, registers, _] => (0xe1, prefix, opcode, registers),
                [0xc4, map, prefix, opcode, registers] => (map, prefix, opcode, registers),
                _ => continue,
            };
            let has_one_source = prefix & 0x78 == 0x78 && registers >= 0xc0;
            match (map & 0x1f, opcode) {
                (1, 0x50 | 0xd7) if has_one_source => {
                    moves.of_words |= opcode == 0x50;
                    moves.of_bytes |= opcode == 0xd7;
                    // VEX.X extends an index register, and a register operand has none: the bit is part of the register number.
                    moves.is_beyond |= map & 0x40 == 0;
                }
                (3, 0x30..=0x33) if has_one_source => moves.is_beside_shift = true,
                _ => {}
            }
        }
        moves
    }
}
