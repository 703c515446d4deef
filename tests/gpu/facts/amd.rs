//! Facts about AMD's GPUs, as kernels written by hand: their objects come from the compiler, or from its cache.

use super::Fact;
use super::cuda::{copies, found_out};
use crate::Outcome;
use crate::recorder::Recorder;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tinyspec::Device;
use tinyspec::backends::{BackendError, Compiler, Launch, LinearKernel, Target};
use tinyspec::prelude::*;

/// All of them, in order.
pub const FACTS: &[Fact] = &[
    Fact { claim: "objects that are linked here are loaded, and find their parameters", least: 0, check: loaded },
    Fact { claim: "products and sums of f32 keep subnormal numbers", least: 0, check: subnormals },
    Fact { claim: "products and sums of f16 keep subnormal numbers", least: 0, check: half_subnormals },
    Fact { claim: "global_atomic_add_f32 keeps subnormal results", least: 0, check: subnormal_sums },
    Fact { claim: "atomics of all workgroups meet in one place", least: 0, check: atomics },
    Fact { claim: "waves of a workgroup see each other's LDS behind a barrier", least: 0, check: local_memory },
    Fact { claim: "quotients and roots of f32 are rounded to even", least: 0, check: quotients },
    Fact { claim: "a launch returns before its kernel is done", least: 0, check: asynchronous },
    Fact { claim: "copies through pinned memory keep their order and contents", least: 0, check: copies },
];

uop! {
    <N> fn numbered(x: &Global<i32, N>, a: i32, b: i32) -> Global<i32, N> as y {
        for i in global(N) { y[i] = x[i] * a + b + i as i32; }
    }

    <N> fn added(values: &Global<f32, N>, sums: &mut Global<f32, 1>) {
        for i in global(N) { atomic_add(&mut sums[0], values[i]); }
    }

    <N> fn counted(keys: &Global<i32, N>, counts: &mut Global<i32, 7>) {
        for i in global(N) {
            let key = keys[i];
            if key >= 0 && key < 7 { atomic_add(&mut counts[key as usize], 1); }
        }
    }

    <M> fn turned(x: &Global<f32, M, 256>) -> Global<f32, M, 256> as y {
        for g in global(M) {
            let mut row: Local<f32, 256>;
            for t in local(256) { row[t] = x[g, t]; }
            for t in local(256) { y[g, t] = row[255 - t]; }
        }
    }

    <N> fn long(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let mut a = x[i];
            for k in serial(20000) { a = a * 0.5 + 1.0; }
            y[i] = a;
        }
    }
}

fn so<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T]) -> Outcome<String> {
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None if found.len() == expected.len() => Ok("so it is".into()),
        at => {
            let at = at.unwrap_or(0);
            Err(format!("element {at} is {:?} instead of {:?}", found.get(at), expected.get(at)).into())
        }
    }
}

fn loaded(device: &Device) -> Outcome<String> {
    let x = Tensor::from_vec((0..1000).collect::<Vec<i32>>(), [1000]).to(device.name());
    let expected: Vec<i32> = (0..1000).map(|i| i * 3 + 5 + i).collect();
    so(&numbered(&x, 3, 5).to_vec::<i32>()?, &expected)
}

/// Multiples of the least subnormal number.
fn tiny(count: u32) -> Vec<f32> {
    (1..=count).map(|number| f32::from_bits(number * 1000)).collect()
}

fn subnormals(device: &Device) -> Outcome<String> {
    let numbers = tiny(64);
    let x = Tensor::from_slice(&numbers, [64]).to(device.name());
    let expected: Vec<f32> = numbers.iter().map(|x| x * 0.5 + x).collect();
    so(&(&x * 0.5 + &x).to_vec::<f32>()?, &expected)
}

fn half_subnormals(device: &Device) -> Outcome<String> {
    // 2^-24 is the least one of f16.
    let numbers: Vec<f32> = (1..64).map(|number| number as f32 / (1 << 24) as f32).collect();
    let x = Tensor::from_slice(&numbers, [63]).to(device.name()).cast(DType::F16).contiguous();
    let expected: Vec<f32> = numbers.iter().map(|x| x * 2.0).collect();
    so(&(&x + &x).cast(DType::F32).to_vec::<f32>()?, &expected)
}

fn subnormal_sums(device: &Device) -> Outcome<String> {
    let x = Tensor::from_slice(&[f32::from_bits(1000); 8], [8]).to(device.name());
    let mut sum = Tensor::zeros([1]).to(device.name());
    added(&x, &mut sum);
    let found = sum.to_vec::<f32>()?[0].to_bits();
    Ok(if found == 8000 { "so it is".into() } else { format!("no: {found} instead of 8000") })
}

fn atomics(device: &Device) -> Outcome<String> {
    let keys: Vec<i32> = (0..100_000).map(|i: i32| i * 31 % 7).collect();
    let x = Tensor::from_slice(&keys, [100_000]).to(device.name());
    let mut counts = Tensor::zeros([7]).cast(DType::I32).to(device.name());
    counted(&x, &mut counts);
    let mut expected = [0; 7];
    keys.iter().for_each(|&key| expected[key as usize] += 1);
    so(&counts.to_vec::<i32>()?, &expected)
}

fn local_memory(device: &Device) -> Outcome<String> {
    let numbers: Vec<f32> = (0..40 * 256).map(|i| i as f32).collect();
    let x = Tensor::from_slice(&numbers, [40, 256]).to(device.name());
    let expected: Vec<f32> = numbers.chunks(256).flat_map(|row| row.iter().rev().copied()).collect();
    so(&turned(&x).to_vec::<f32>()?, &expected)
}

fn quotients(device: &Device) -> Outcome<String> {
    let numbers: Vec<f32> =
        (1..1000).map(|i| i as f32 * 0.37).chain(tiny(25)).chain([3e38, 1e-40, 1e38, 2e-40]).collect();
    let divisors: Vec<f32> = numbers.iter().rev().copied().collect();
    let [x, y] = [&numbers, &divisors].map(|data| Tensor::from_slice(data, [data.len() as i64]).to(device.name()));
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let pairs = numbers.iter().zip(&divisors);
    so(&bits((&x / &y).to_vec()?), &bits(pairs.map(|(x, y)| x / y).collect()))?;
    so(&bits(x.sqrt().to_vec()?), &bits(numbers.iter().map(|x| x.sqrt()).collect()))
}

fn asynchronous(device: &Device) -> Outcome<String> {
    let x = Tensor::full([64], 1f32).to(device.name()).contiguous();
    long(&x).to_vec::<f32>()?;
    let start = Instant::now();
    let y = long(&x);
    y.realize()?;
    let enqueued = start.elapsed();
    let found = y.to_vec::<f32>()?;
    let all = start.elapsed();
    if found != [2.0; 64] {
        return Err(format!("{found:?}").into());
    }
    let is_so = enqueued < all / 2 || all < Duration::from_micros(100);
    Ok(format!("{}: {enqueued:?} of {all:?}", if is_so { "so it is" } else { "no" }))
}

/// A device's own compiler, for another device.
struct CompilerOf(Arc<Device>);

// SAFETY: the code is that of the device's compiler.
unsafe impl Compiler for CompilerOf {
    fn fingerprint(&self) -> String {
        self.0.compiler().fingerprint()
    }

    fn generator(&self) -> Option<String> {
        self.0.compiler().generator()
    }

    fn compile(&self, kernel: &LinearKernel, target: &Target) -> Result<Vec<u8>, BackendError> {
        self.0.compiler().compile(kernel, target)
    }

    fn source(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.0.compiler().source(kernel, target)
    }

    fn assembly(&self, kernel: &LinearKernel, target: &Target) -> Result<String, BackendError> {
        self.0.compiler().assembly(kernel, target)
    }
}

/// A kernel as it is made for a device, launched there where no memory is; see [`super::fault`].
///
/// # Errors
/// When the kernel is not found out.
pub fn fault(device: &Device) -> Outcome<String> {
    let name = format!("recorded/{}", device.name());
    let compiler = Arc::new(CompilerOf(tinyspec::device(device.name())?));
    let recorder = Recorder::register(&name, &device.target().name, compiler)?;
    let x = Tensor::from_slice(&[1f32; 64], [64]).to(name.as_str()).contiguous();
    x.realize()?;
    (&x + &x).realize()?;
    let (code, grid) = recorder.launched().pop().ok_or("no kernel was made")?;
    let runtime = device.runtime();
    let memory = runtime.allocate(256)?;
    let launch = Launch {
        program: runtime.load("fact", &code)?,
        buffers: vec![0, 1],
        dims: Vec::new(),
        trips: 0..1,
        grid,
        scratch_bytes: 0,
        nanoseconds: 0,
        has_prologue: false,
        line: "facts/amd.rs".into(),
    };
    const NOWHERE: usize = 0x70_0000_0000;
    let buffers = [std::ptr::without_provenance_mut(NOWHERE), memory.address()];
    let read = || runtime.read(&*memory, &mut [0; 256]);
    // SAFETY: none of this process's memory is at that address; what a GPU makes of it is the question.
    let launched = unsafe { runtime.enqueue(&vec![launch.clone()].into(), &buffers) };
    found_out(launched.and_then(|()| read()), read())
}
