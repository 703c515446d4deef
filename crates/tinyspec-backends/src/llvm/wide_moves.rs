//! Works around a bug of LLVM 22 for AMD's gfx9 chips (seen on gfx90a and gfx942): an f64 constant in scalar registers
//! becomes one `s_mov_b64`, which can only encode 32 bits, so its upper word is lost. Assembler text has the whole
//! constant: there the move is split in two, and the text is assembled.

use crate::processor::{Architecture, Isa};

/// Whether the object contains a 64-bit move with a literal constant of 0. A move of 0 itself has a shorter encoding.
pub(super) fn is_broken(isa: &Isa, object: &[u8]) -> bool {
    const MOVE: u32 = 0xbe80_01ff;
    /// The register of the result.
    const RESULT: u32 = 0x007f_0000;
    if isa.architecture != Architecture::Amdgcn || !isa.cpu.starts_with("gfx9") {
        return false;
    }
    let words = object.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let mut before = 0;
    for word in words {
        if before & !RESULT == MOVE && word == 0 {
            return true;
        }
        before = word;
    }
    false
}

/// The text with such moves split in two.
pub(super) fn mended(assembly: &str) -> String {
    let mut text = String::with_capacity(assembly.len() + 256);
    for line in assembly.lines() {
        match halves(line) {
            Some(moves) => text += &moves,
            None => text += line,
        }
        text.push('\n');
    }
    text
}

/// Two moves in place of one that cannot hold its constant.
fn halves(line: &str) -> Option<String> {
    let (to, constant) = line.trim().strip_prefix("s_mov_b64 ")?.split_once(", 0x")?;
    let bits = u64::from_str_radix(constant.trim(), 16).ok().filter(|bits| bits >> 32 != 0)?;
    let (low, high) = match to {
        "vcc" => ("vcc_lo".into(), "vcc_hi".into()),
        _ => {
            let (low, high) = to.strip_prefix("s[")?.strip_suffix(']')?.split_once(':')?;
            (format!("s{low}"), format!("s{high}"))
        }
    };
    Some(format!("\ts_mov_b32 {low}, {:#x}\n\ts_mov_b32 {high}, {:#x}", bits as u32, bits >> 32))
}
