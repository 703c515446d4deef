//! Machine code of AMD's GPUs as text.

use tinyspec_backends::llvm::Disassembler;

#[test]
fn instructions_are_read_one_after_the_other() {
    let mut gfx942 = Disassembler::new("gfx942").expect("libLLVM is found");
    // `s_mov_b32` with a constant behind it, then the end.
    let code = [0xff, 0x00, 0x84, 0xbe, 0x34, 0x12, 0x00, 0x00, 0x00, 0x00, 0x81, 0xbf];
    assert_eq!(gfx942.instruction(&code, 0), Some((8, "s_mov_b32 s4, 0x1234".into())));
    assert_eq!(gfx942.instruction(&code[8..], 8), Some((4, "s_endpgm".into())));
    // The same bytes are something else on another chip.
    let mut gfx1100 = Disassembler::new("gfx1100").expect("libLLVM is found");
    assert_ne!(gfx1100.instruction(&code[8..], 0), Some((4, "s_endpgm".into())));
}

#[test]
fn what_is_cut_off_is_no_instruction() {
    let mut gfx942 = Disassembler::new("gfx942").expect("libLLVM is found");
    let code = [0xff, 0x00, 0x84, 0xbe, 0x34, 0x12];
    for length in 0..code.len() {
        assert_eq!(gfx942.instruction(&code[..length], 0), None, "{length}");
    }
}

#[test]
fn chips_of_others_are_refused() {
    for chip in ["gfx1", "sm_80", "x86-64", "gfx942\0", ""] {
        let error = Disassembler::new(chip).expect_err("it is not a chip of AMD").to_string();
        assert!(error.contains("is not a GPU of AMD"), "{error}");
    }
}
