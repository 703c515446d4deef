//! PTX that an assembler compiles wrongly is written in another way.

#[path = "../../src/llvm/assembler_bugs.rs"]
mod rewritten;

use rewritten::avoided;

#[test]
fn what_is_compiled_wrong_is_written_otherwise() {
    let text = "\tneg.s32 \t%r4, %r3;\n\tmax.s32 \t%r5, %r3, %r4;\n\tmin.u16 \t%rs2, %rs1, 5;\n\tret;\n";
    let found = avoided(text);
    let expected = "\tnot.b32 %r4, %r3;\n\tadd.s32 %r4, %r4, 1;\n\tmax.s32 \t%r5, %r3, %r4;\n\
                    \t{ .reg .b16 %narrow<2>; .reg .b32 %wide<2>;\n\tmov.b16 %narrow0, %rs1;\n\tmov.b16 %narrow1, 5;\n\
                    \tcvt.u32.u16 %wide0, %narrow0;\n\tcvt.u32.u16 %wide1, %narrow1;\n\
                    \tmin.u32 %wide0, %wide0, %wide1;\n\tcvt.u16.u32 %rs2, %wide0; }\n\tret;\n";
    assert_eq!(found, expected);
}

#[test]
fn nothing_else_changes() {
    for text in [
        "\tneg.s32 \t%r4, %r3;\n",
        "\tmax.s32 \t%r5, %r3, %r4;\n",
        "\tmax.f16x2 \t%r5, %r3, %r4;\n\tneg.s64 \t%rd1, %rd2;\n",
    ] {
        assert_eq!(avoided(text), text);
    }
}
