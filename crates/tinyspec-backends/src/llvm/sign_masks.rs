//! Detects two mistakes of LLVM 22 on processors with AVX-512, where the signs of a vector as a mask (`vpmov*2m`) that is moved
//! to a general register (`kmov`) become one `movmsk`. That instruction cannot name the vector registers from 16 on, so another
//! one is read (issue 191304 of llvm-project); and a mask that is shifted in place afterwards is gone (198197).
//!
//! Such code is generated anew without the instruction set that has the masks of signs.

use super::machine::Output;
use crate::processor::{Architecture, Isa};

/// The release with the mistakes; the next one is correct.
const RELEASE: u32 = 22;

/// The instruction sets to do without, as LLVM writes it; none where the code is as it should be.
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

/// The `movmsk` of some code.
#[derive(Default)]
struct Moves {
    /// `vmovmskps` or `vmovmskpd`.
    of_words: bool,
    /// `vpmovmskb`.
    of_bytes: bool,
    /// From a register that it cannot name.
    is_beyond: bool,
    /// Masks are shifted too.
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

    /// Bytes that are no instructions may look like one: then the code is generated anew for nothing.
    fn of_object(object: &[u8]) -> Moves {
        let mut moves = Moves::default();
        for bytes in object.windows(5) {
            // VEX prefixes of two and of three bytes.
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
                    // The bit that would extend an index, where there is none.
                    moves.is_beyond |= map & 0x40 == 0;
                }
                (3, 0x30..=0x33) if has_one_source => moves.is_beside_shift = true,
                _ => {}
            }
        }
        moves
    }
}
