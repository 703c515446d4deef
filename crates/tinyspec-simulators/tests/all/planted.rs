//! Bugs planted into right kernels are found, whatever order the warps run in.

use super::words;
use tinyspec_simulators::{Launch, Simulation, SimulatorError, ptx::Module};

/// Sums rows of 64 in LOCAL memory, then multiplies each element by its row's sum: two arrays, loops, barriers, a shuffle.
const SUMS: &str = "\
.version 7.8
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 out, .param .u64 in) .reqntid 64 {
.reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<12>;
.shared .align 4 .b8 tile[256];
ld.param.u64 %d1, [out];
ld.param.u64 %d2, [in];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.s32 %r3, %r2, 64, %r1;
mul.wide.u32 %d3, %r3, 4;
add.s64 %d4, %d2, %d3;
ld.global.f32 %r4, [%d4];
mov.u32 %r5, tile;
mad.lo.s32 %r6, %r1, 4, %r5;
st.shared.f32 [%r6], %r4;
bar.sync 0;
mov.b32 %r7, 32;
LOOP:
setp.ge.u32 %p1, %r1, %r7;
@%p1 bra SKIP;
mad.lo.s32 %r8, %r7, 4, %r6;
ld.shared.f32 %r9, [%r6];
ld.shared.f32 %r10, [%r8];
add.rn.f32 %r9, %r9, %r10;
st.shared.f32 [%r6], %r9;
SKIP:
bar.sync 0;
shr.u32 %r7, %r7, 1;
setp.ne.u32 %p2, %r7, 0;
@%p2 bra LOOP;
ld.shared.f32 %r11, [tile];
shfl.sync.bfly.b32 %r12, %r4, 1, 31, -1;
fma.rn.f32 %r13, %r4, %r11, %r12;
add.s64 %d5, %d1, %d3;
st.global.f32 [%d5], %r13;
setp.eq.u32 %p3, %r1, 0;
mul.wide.u32 %d6, %r2, 4;
add.s64 %d7, %d1, %d6;
@%p3 red.global.add.f32 [%d7+1024], %r11;
ret;
}
";

const GROUPS: u32 = 4;

fn run(text: &str, seed: u64) -> Result<Vec<f32>, SimulatorError> {
    let kernel = Module::parse(text)?.kernel("sums")?;
    let mut simulation = Simulation::new();
    let input: Vec<u32> = (0..64 * GROUPS).map(|number| (number as f32 / 7.0 + 1.0).to_bits()).collect();
    let out = simulation.buffer(&words(&[0; (65 * GROUPS) as usize]))?;
    let input = simulation.buffer(&words(&input))?;
    let launch = Launch { limit: 1 << 16, ..Launch::threads(GROUPS, 64).seeded(seed) };
    simulation.run(&kernel, &launch, &[out, input])?;
    Ok(super::as_words(&simulation.bytes(out)?).into_iter().map(f32::from_bits).collect())
}

#[test]
fn the_kernel_is_right_in_every_order() {
    let first = run(SUMS, 0).unwrap_or_else(|error| panic!("{error}"));
    let row: f32 = (0..64).map(|number| number as f32 / 7.0 + 1.0).sum();
    assert!((first[256] - row).abs() < 1e-2, "{} {row}", first[256]);
    assert!((first[0] - (row + 8.0 / 7.0)).abs() < 1e-2);
    for seed in 1..20 {
        assert_eq!(run(SUMS, seed).unwrap_or_else(|error| panic!("{error}")), first);
    }
}

/// What the order of the warps decides.
const ORDER: &[&str] = &["with nothing that orders them", "nobody has written", "barrier"];

/// A bug: what it is, the right text, the wrong one, and what is said of it.
type Bug = (&'static str, &'static str, &'static str, &'static [&'static str]);

const BUGS: [Bug; 23] = [
    ("no barrier behind the copy", "bar.sync 0;\nmov.b32 %r7", "mov.b32 %r7", ORDER),
    ("no barrier in the loop", "SKIP:\nbar.sync 0;", "SKIP:", ORDER),
    ("a barrier in the branch", "%r9;\nSKIP:\nbar.sync 0;", "%r9;\nbar.sync 0;\nSKIP:", ORDER),
    ("a guarded barrier", "bar.sync 0;\nmov", "setp.lt.u32 %p4, %r1, 40;\n@%p4 bar.sync 0;\nmov", &["pass by"]),
    ("half leave", "bar.sync 0;\nmov", "setp.ge.u32 %p4, %r1, 32;\n@%p4 ret;\nbar.sync 0;\nmov", &["32 of 64 threads"]),
    ("a barrier for fewer", "bar.sync 0;\nmov", "bar.sync 0, 32;\nmov", ORDER),
    ("an input index beyond the end", "[%d4];", "[%d4+4];", &["of buffer 1, which has 1024"]),
    ("an output index beyond the end", "[%d7+1024]", "[%d7+1040]", &["of buffer 0, which has 1040"]),
    ("a LOCAL index beyond the end", "%r8, %r7, 4", "%r8, %r7, 8", &["of LOCAL memory, which has 256"]),
    ("the wrong buffer", "add.s64 %d7, %d1, %d6;", "add.s64 %d7, %d2, %d6;", &["of buffer 1, which has 1024"]),
    ("the wrong stride", "%r3, %r2, 64, %r1;", "%r3, %r2, 32, %r1;", &["with nothing that orders them"]),
    ("one element for all", "add.s64 %d5, %d1, %d3;", "mov.b64 %d5, %d1;", &["with nothing that orders them"]),
    (
        "a sum that is not atomic",
        "@%p3 red.global.add.f32 [%d7+1024], %r11;",
        "ld.global.f32 %r14, [%d7+1024];\nst.global.f32 [%d7+1024], %r14;",
        &["with nothing that orders them"],
    ),
    ("LOCAL memory not written", "st.shared.f32 [%r6], %r4;\nbar", "bar", &["nobody has written"]),
    (
        "LOCAL memory written in part",
        "st.shared.f32 [%r6], %r4;\nbar",
        "setp.lt.u32 %p4, %r1, 48;\n@%p4 st.shared.f32 [%r6], %r4;\nbar",
        &["nobody has written"],
    ),
    ("a register not written", "mov.b32 %r7, 32;\n", "", &["nobody has written"]),
    ("a register of another branch", "[%d5], %r13;", "[%d5], %r10;", &["nobody has written"]),
    ("members without a lane", "1, 31, -1;", "1, 31, 0x7fffffff;", &["do not hold those who execute it"]),
    (
        "a shuffle that some pass by",
        "shfl.sync",
        "setp.lt.u32 %p4, %r1, 5;\n@%p4 bra END;\nEND: @!%p4 shfl.sync",
        &["nobody has written", "do not come here"],
    ),
    ("a sum without its rounding", "add.rn.f32 %r9", "add.f32 %r9", &["may be fused"]),
    ("an address that is not aligned", "[tile];", "[tile+2];", &["not a multiple of 4"]),
    ("a loop without an end", "shr.u32 %r7, %r7, 1;", "shr.u32 %r7, %r7, 0;", &["without an end"]),
    ("a wide store", "st.global.f32 [%d5], %r13;", "st.global.v2.f32 [%d5], {%r13, %r13};", &["not a multiple of 8"]),
];

#[test]
fn planted_bugs_are_found() {
    for (name, right, wrong, says) in BUGS {
        assert_eq!(SUMS.matches(right).count(), 1, "{name}: `{right}`");
        let text = SUMS.replace(right, wrong);
        for seed in 0..8 {
            let error = run(&text, seed).err().unwrap_or_else(|| panic!("{name} was not found with seed {seed}"));
            let text = error.to_string();
            assert!(says.iter().any(|says| text.contains(says)), "{name}: {text}");
        }
    }
}
