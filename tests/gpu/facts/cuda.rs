//! Assumptions about NVIDIA's GPUs, each tested by a small kernel in PTX.

use super::Fact;
use crate::Outcome;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tinyspec::Device;
use tinyspec::backends::{BackendError, Grid, Launch, Memory};

/// All of them, in order.
pub const FACTS: &[Fact] = &[
    Fact { claim: "mul.rn and fma.rn keep subnormal numbers", least: 75, check: subnormals },
    Fact { claim: "red.add.f32 on GLOBAL memory flushes subnormal results to 0", least: 75, check: flushed_sums },
    Fact { claim: "red.add.noftz.f16x2 keeps subnormal numbers", least: 75, check: half_sums },
    Fact { claim: "conversions to f16 and bf16 round to even, overflow and keep nan", least: 80, check: conversions },
    Fact { claim: "conversions to fp8 round to even and saturate", least: 89, check: eight_bits },
    Fact { claim: "max.NaN gives nan where one is", least: 80, check: greatest },
    Fact { claim: "max(max(a, -b), c) of whole numbers keeps the sign", least: 75, check: negated },
    Fact { claim: "a maximum of 16 bits is compared with a constant", least: 75, check: compared },
    Fact { claim: "lanes that went apart meet again at bar.warp.sync", least: 75, check: rejoined },
    Fact { claim: "mma.m16n8k16 of f16: the lane map of the documentation", least: 80, check: matrix },
    Fact { claim: "48 KB of LOCAL memory are there without asking", least: 75, check: local_memory },
    Fact { claim: "65,536 workgroups in y are refused, and harm nobody", least: 75, check: too_many_groups },
    Fact { claim: "a launch returns before its kernel is done", least: 75, check: asynchronous },
    Fact { claim: "copies through pinned memory keep their order and contents", least: 75, check: copies },
];

/// A module with one kernel, of a buffer: `%rd1` is its address, `%r1` the thread, `%rd2` the thread's place at `stride` bytes.
fn module(least: u32, threads: u32, stride: u32, body: &str) -> String {
    let version = if least >= 89 { "8.1" } else { "7.0" };
    format!(
        ".version {version}\n.target sm_{least}\n.address_size 64\n\
         .visible .entry fact(.param .u64 .ptr .global .align 256 fact_param_0) .reqntid {threads} {{\n\
         .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b32 %f<16>; .reg .b64 %rd<8>; .reg .pred %p<4>;\n\
         ld.param.u64 %rd1, [fact_param_0]; cvta.to.global.u64 %rd1, %rd1;\n\
         mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, {stride}, %rd1;\n{body}\nret; }}\n"
    )
}

struct Prepared {
    launch: Launch,
    memory: Arc<dyn Memory>,
}

fn prepare(
    device: &Device,
    text: &str,
    groups: [usize; 3],
    threads: usize,
    data: &[u8],
) -> Result<Prepared, BackendError> {
    let runtime = device.runtime();
    let memory = runtime.allocate(data.len())?;
    runtime.write(&*memory, data)?;
    let launch = Launch {
        program: runtime.load("fact", text.as_bytes())?,
        buffers: vec![0],
        dims: Vec::new(),
        trips: 0..1,
        grid: Grid { groups, threads: [threads, 1, 1] },
        scratch_bytes: 0,
        nanoseconds: 0,
        has_prologue: false,
        line: "facts/cuda.rs".into(),
    };
    Ok(Prepared { launch, memory })
}

impl Prepared {
    fn enqueue(&self, device: &Device) -> Result<(), BackendError> {
        // SAFETY: the kernels of this file touch what their buffer has; it lives until all is done.
        unsafe { device.runtime().enqueue(&vec![self.launch.clone()].into(), &[self.memory.address()]) }
    }

    fn read(&self, device: &Device) -> Result<Vec<u32>, BackendError> {
        let mut bytes = vec![0; self.memory.len()];
        device.runtime().read(&*self.memory, &mut bytes)?;
        Ok(bytes
            .chunks_exact(4)
            .map(|word| word.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)))
            .collect())
    }
}

/// What a kernel of 32 threads makes of words.
fn run(device: &Device, least: u32, stride: u32, body: &str, words: &[u32]) -> Result<Vec<u32>, BackendError> {
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let prepared = prepare(device, &module(least, 32, stride, body), [1; 3], 32, &data)?;
    prepared.enqueue(device)?;
    prepared.read(device)
}

fn equal(found: &[u32], expected: &[u32]) -> Outcome<String> {
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok("so it is".into()),
        Some(at) => Err(format!("word {at} is {:#010x} instead of {:#010x}", found[at], expected[at]).into()),
    }
}

fn subnormals(device: &Device) -> Outcome<String> {
    let least = f32::MIN_POSITIVE / 4.0;
    let body = "ld.global.b32 %f1, [%rd2]; mul.rn.f32 %f2, %f1, 0f3F000000; fma.rn.f32 %f3, %f2, 0f3F800000, %f1;\n\
                st.global.b32 [%rd2], %f3;";
    let found = run(device, 75, 4, body, &[least.to_bits(); 32])?;
    equal(&found, &[(least * 1.5).to_bits(); 32])
}

fn flushed_sums(device: &Device) -> Outcome<String> {
    let least = f32::MIN_POSITIVE / 4.0;
    let body = format!("mov.b32 %f1, 0f{:08X}; red.global.add.f32 [%rd2], %f1;", least.to_bits());
    let found = run(device, 75, 4, &body, &[least.to_bits(); 32])?[0];
    match f32::from_bits(found) {
        0.0 => Ok("so it is".into()),
        sum if sum == 2.0 * least => Ok("no: they are kept".into()),
        sum => Err(format!("{least:e} twice gives {sum:e}").into()),
    }
}

fn half_sums(device: &Device) -> Outcome<String> {
    let body = "mov.b32 %r2, 0x00030002; red.global.add.noftz.f16x2 [%rd2], %r2;";
    equal(&run(device, 75, 4, body, &[0x0001_0001; 32])?, &[0x0004_0003; 32])
}

/// Numbers, and what they are in f16 and bf16.
const ROUNDED: [(f32, u16, u16); 8] = [
    (1.0, 0x3c00, 0x3f80),
    (1.000_488_3, 0x3c00, 0x3f80),
    (1.001_464_8, 0x3c02, 0x3f80),
    (1.003_906_3, 0x3c04, 0x3f80),
    (1.011_718_8, 0x3c0c, 0x3f82),
    (65_520.0, 0x7c00, 0x4780),
    (2.980_232_2e-8, 0x0000, 0x3300),
    (f32::NEG_INFINITY, 0xfc00, 0xff80),
];

fn conversions(device: &Device) -> Outcome<String> {
    let body = "ld.global.b32 %f1, [%rd2]; cvt.rn.f16.f32 %h1, %f1; cvt.rn.bf16.f32 %h2, %f1; mov.b32 %r2, {%h1, %h2};\n\
                st.global.b32 [%rd2], %r2;";
    let mut words: Vec<u32> = ROUNDED.iter().map(|row| row.0.to_bits()).collect();
    words.resize(32, f32::NAN.to_bits());
    let found = run(device, 80, 4, body, &words)?;
    let expected: Vec<u32> = ROUNDED.iter().map(|row| u32::from(row.1) | u32::from(row.2) << 16).collect();
    let is_nan = |word: u32| word & 0x7fff > 0x7c00 && word >> 16 & 0x7fff > 0x7f80;
    if !found[ROUNDED.len()..].iter().all(|&word| is_nan(word)) {
        return Err(format!("nan becomes {:#010x}", found[31]).into());
    }
    equal(&found[..ROUNDED.len()], &expected)
}

fn eight_bits(device: &Device) -> Outcome<String> {
    let body = "ld.global.b32 %f1, [%rd2]; mov.b32 %f2, 0f00000000; cvt.rn.satfinite.e4m3x2.f32 %h1, %f2, %f1;\n\
                cvt.rn.satfinite.e5m2x2.f32 %h2, %f2, %f1; mov.b32 %r2, {%h1, %h2}; st.global.b32 [%rd2], %r2;";
    let rows: [(f32, u32, u32); 5] =
        [(1.0, 0x38, 0x3c), (1.0625, 0x38, 0x3c), (1.1875, 0x3a, 0x3d), (1e6, 0x7e, 0x7b), (-1e-9, 0x80, 0x80)];
    let mut words: Vec<u32> = rows.iter().map(|row| row.0.to_bits()).collect();
    words.resize(32, 0);
    let expected: Vec<u32> = rows.iter().map(|row| row.1 | row.2 << 16).collect();
    equal(&run(device, 89, 4, body, &words)?, &expected)
}

fn greatest(device: &Device) -> Outcome<String> {
    let body =
        "ld.global.b32 %f1, [%rd2]; mov.b32 %f2, 0f3F800000; max.NaN.f32 %f3, %f1, %f2; st.global.b32 [%rd2], %f3;";
    let found = run(device, 80, 4, body, &[f32::NAN.to_bits(); 32])?[0];
    if f32::from_bits(found).is_nan() { Ok("so it is".into()) } else { Err(format!("{found:#010x}").into()) }
}

/// Reports a bug of the assembler, which generated kernels avoid.
fn avoided(found: &[u32], expected: &[u32]) -> Outcome<String> {
    Ok(equal(found, expected).unwrap_or_else(|error| format!("no: {error}")))
}

fn negated(device: &Device) -> Outcome<String> {
    let body = "ld.global.b32 %r3, [%rd2]; ld.global.b32 %r4, [%rd2+4]; ld.global.b32 %r5, [%rd2+8];\n\
                neg.s32 %r6, %r4; max.s32 %r7, %r3, %r6; max.s32 %r8, %r7, %r5; st.global.b32 [%rd2], %r8;";
    let numbers = [-100, -7, 3].map(|number: i32| number.cast_unsigned());
    let found = run(device, 75, 12, body, &numbers.repeat(32))?;
    avoided(&found[..1], &[7])
}

fn compared(device: &Device) -> Outcome<String> {
    let body = "ld.global.b32 %r3, [%rd2]; cvt.u16.u32 %h1, %r3; max.u16 %h2, %h1, 0; setp.eq.b16 %p1, %h2, 0;\n\
                selp.b32 %r4, 1, 0, %p1; st.global.b32 [%rd2], %r4;";
    let numbers: Vec<u32> = (0..32).map(|lane| lane % 2).collect();
    let expected: Vec<u32> = numbers.iter().map(|number| 1 - number).collect();
    avoided(&run(device, 75, 4, body, &numbers)?, &expected)
}

/// Each lane counts to its own number, then all exchange what they have.
fn rejoined(device: &Device) -> Outcome<String> {
    let body = "mov.u32 %r2, 0;\nagain: setp.ge.u32 %p1, %r2, %r1; @%p1 bra done; add.u32 %r2, %r2, 1; bra again;\n\
                done: bar.warp.sync 0xffffffff; shfl.sync.bfly.b32 %r3, %r2, 31, 31, 0xffffffff;\n\
                st.global.u32 [%rd2], %r3;";
    let expected: Vec<u32> = (0..32).map(|lane| 31 - lane).collect();
    equal(&run(device, 75, 4, body, &[0; 32])?, &expected)
}

/// Small whole numbers in f16.
fn half(value: u32) -> u32 {
    match value {
        0 => 0,
        value => {
            let exponent = value.ilog2();
            (exponent + 15) << 10 | (value << (10 - exponent) & 0x3ff)
        }
    }
}

/// Of each lane 4 words of the left factor, 2 of the right one and 4 of the product.
fn matrix(device: &Device) -> Outcome<String> {
    let (left, right) = (|row: u32, k: u32| (row * 3 + k * 5) % 8, |k: u32, column: u32| (k * 7 + column * 3) % 8);
    let mut words = Vec::new();
    let mut expected = Vec::new();
    let pair = |a: u32, b: u32| half(a) | half(b) << 16;
    let product = |row: u32, column: u32| (0..16).map(|k| left(row, k) * right(k, column)).sum::<u32>() as f32;
    for lane in 0..32u32 {
        let (group, place) = (lane / 4, 2 * (lane % 4));
        for (row, k) in [(group, place), (group + 8, place), (group, place + 8), (group + 8, place + 8)] {
            words.push(pair(left(row, k), left(row, k + 1)));
        }
        words.extend([place, place + 8].map(|k| pair(right(k, group), right(k + 1, group))));
        words.extend([0; 4]);
        expected.extend(words[words.len() - 10..words.len() - 4].to_vec());
        let places = [(group, place), (group, place + 1), (group + 8, place), (group + 8, place + 1)];
        expected.extend(places.map(|(row, column)| product(row, column).to_bits()));
    }
    let loads: String = (0..6).map(|word| format!("ld.global.b32 %r{}, [%rd2+{}];\n", 2 + word, 4 * word)).collect();
    let stores: String =
        (0..4).map(|word| format!("st.global.b32 [%rd2+{}], %f{};\n", 24 + 4 * word, 1 + word)).collect();
    let body = format!(
        "{loads}mov.b32 %f5, 0f00000000;\n\
         mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f1, %f2, %f3, %f4}}, {{%r2, %r3, %r4, %r5}}, {{%r6, %r7}}, \
         {{%f5, %f5, %f5, %f5}};\n{stores}"
    );
    equal(&run(device, 80, 40, &body, &words)?, &expected)
}

fn local_memory(device: &Device) -> Outcome<String> {
    let body = ".shared .align 16 .b8 room[49152];\nmov.u32 %r2, room; mad.lo.u32 %r3, %r1, 1536, %r2;\n\
                st.shared.u32 [%r3], %r1; bar.sync 0; mov.u32 %r4, 31; sub.u32 %r4, %r4, %r1;\n\
                mad.lo.u32 %r3, %r4, 1536, %r2; ld.shared.u32 %r5, [%r3]; st.global.u32 [%rd2], %r5;";
    let expected: Vec<u32> = (0..32).map(|lane| 31 - lane).collect();
    equal(&run(device, 75, 4, body, &[0; 32])?, &expected)
}

fn too_many_groups(device: &Device) -> Outcome<String> {
    let text = module(75, 32, 4, "");
    let prepared = prepare(device, &text, [1, 65_536, 1], 32, &[0; 128])?;
    let launched = prepared.enqueue(device).and_then(|()| device.runtime().synchronize());
    let Err(error) = launched else { return Ok("no: they run".into()) };
    // The device goes on.
    subnormals(device)?;
    Ok(format!("so it is: {error}"))
}

/// A kernel of some milliseconds.
fn asynchronous(device: &Device) -> Outcome<String> {
    let body = "mov.u32 %r2, 0;\nagain: add.u32 %r2, %r2, 1; ld.global.u32 %r3, [%rd2]; add.u32 %r3, %r3, 1;\n\
                st.global.u32 [%rd2], %r3; setp.lt.u32 %p1, %r2, 20000; @%p1 bra again;";
    let prepared = prepare(device, &module(75, 32, 4, body), [1; 3], 32, &[0; 128])?;
    prepared.enqueue(device)?;
    prepared.read(device)?;
    let start = Instant::now();
    prepared.enqueue(device)?;
    let enqueued = start.elapsed();
    let found = prepared.read(device)?;
    let all = start.elapsed();
    if found[0] != 40_000 {
        return Err(format!("two launches count to {}", found[0]).into());
    }
    let is_so = enqueued < all / 2 || all < Duration::from_micros(100);
    Ok(format!("{}: {enqueued:?} of {all:?}", if is_so { "so it is" } else { "no" }))
}

/// Nothing is lost on the way to a device, within it and back.
pub(super) fn copies(device: &Device) -> Outcome<String> {
    let runtime = device.runtime();
    let data: Vec<u8> = (0..(33usize << 20) + 7).map(|i| (i ^ i >> 8 ^ i >> 16) as u8).collect();
    let [first, second] = [runtime.allocate(data.len())?, runtime.allocate(data.len())?];
    let zeros = vec![0; data.len()];
    // Written, so that no page faults are timed.
    let mut back = vec![1; data.len()];
    let [mut up, mut down] = [0f64; 2];
    let rate = |start: Instant| data.len() as f64 / start.elapsed().as_secs_f64() / 1e9;
    for _ in 0..3 {
        let start = Instant::now();
        runtime.write(&*first, &data)?;
        runtime.synchronize()?;
        up = up.max(rate(start));
        runtime.copy(&*second, &*first, 0, data.len())?;
        // What is written now must not show in the copy.
        runtime.write(&*first, &zeros)?;
        runtime.synchronize()?;
        let start = Instant::now();
        runtime.read(&*second, &mut back)?;
        down = down.max(rate(start));
        if back != data {
            return Err("the contents differ".into());
        }
    }
    Ok(format!("so it is; {up:.1} GB/s up, {down:.1} GB/s down"))
}

/// See [`super::fault`].
pub(super) fn fault(device: &Device) -> Outcome<String> {
    let body = "mov.u64 %rd3, 0x7000000000; st.global.u32 [%rd3], %r1;";
    let prepared = prepare(device, &module(75, 32, 4, body), [1; 3], 32, &[0; 128])?;
    let found = prepared.enqueue(device).and_then(|()| prepared.read(device));
    found_out(found.map(drop), prepared.read(device).map(drop))
}

/// What a device has said of a kernel that left its memory, and what it answered to whatever came next.
pub(super) fn found_out(first: Result<(), BackendError>, next: Result<(), BackendError>) -> Outcome<String> {
    match (first, next) {
        (Ok(()), _) => Err("nobody noticed".into()),
        (Err(error), Err(BackendError::Lost { .. })) => Ok(error.to_string().replace('\n', " ")),
        (Err(error), next) => Err(format!("{error}; then {next:?}").into()),
    }
}
