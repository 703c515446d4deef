//! What a user's own code may call on a GPU gives there what it gives on the CPU: each intrinsic, each type, executed
//! instruction by instruction. One chip of each family; `TINYSPEC_DEVICES` names others.

use crate::simulators::{SIMULATED, register};
use tinyspec::backends::gpu::intrinsics::Intrinsic;
use tinyspec::prelude::*;

const WHOLE: [DType; 8] =
    [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64];
const FLOATS: [DType; 3] = [DType::F16, DType::F32, DType::F64];

/// Signs, ties, the least and the greatest, subnormal numbers, infinities, nan.
const NUMBERS: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.25,
    -7.75,
    1e-7,
    -6e-8,
    1e-40,
    65504.0,
    -65504.0,
    3e38,
    1e300,
    -3e-310,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Words whose bits matter at each width.
const WORDS: [u64; 12] = [
    0,
    1,
    2,
    u64::MAX,
    0x7f7f_7f7f_7f7f_7f7f,
    0x7fff_7fff_7fff_7fff,
    0x7fff_ffff_7fff_ffff,
    0x8080_8080_8080_8080,
    0x8000_8000_8000_8000,
    0x8000_0000_8000_0000,
    0x0123_4567_89ab_cdef,
    0xfedc_ba98_7654_3210,
];

/// Each operand with each of the others: `number` says which operand it is.
fn operand(dtype: DType, number: usize, device: &str) -> Tensor {
    let order = |count: usize| {
        let step = [1, count, count * 5][number];
        (0..count * count).map(move |place| place / step % count)
    };
    match dtype.is_float() {
        true => {
            let all: Vec<f64> = order(NUMBERS.len()).map(|place| NUMBERS[place]).collect();
            Tensor::from_vec(all, [NUMBERS.len().pow(2)]).cast(dtype).to(device)
        }
        false => {
            let all: Vec<u64> = order(WORDS.len()).map(|place| WORDS[place]).collect();
            Tensor::from_vec(all, [WORDS.len().pow(2)]).cast(dtype).to(device)
        }
    }
}

/// The bits, every nan as one, and both zeros where it is left open which of them is given.
fn bits(value: Tensor, has_zeros: bool) -> Result<Vec<u64>> {
    let value = value.to("cpu");
    match value.dtype() {
        dtype if dtype.is_float() => {
            let all = value.cast(DType::F64).to_vec::<f64>()?;
            let bits = |x: f64| match x {
                x if x.is_nan() => f64::NAN.to_bits(),
                x if x == 0.0 && !has_zeros => 0,
                x => x.to_bits(),
            };
            Ok(all.into_iter().map(bits).collect())
        }
        _ => value.cast(DType::U64).to_vec::<u64>(),
    }
}

fn computed(code: &str, dtype: DType, count: usize, device: &str) -> Result<Vec<u64>> {
    let operands: Vec<Tensor> = (0..count).map(|number| operand(dtype, number, device).contiguous()).collect();
    let operands: Vec<&Tensor> = operands.iter().collect();
    // SAFETY: it only computes; what the value would be elsewhere is asked of nobody.
    let value = unsafe { operands[0].custom(code, &operands) };
    bits(value, !code.contains("@llvm.minnum") && !code.contains("@llvm.maxnum"))
}

/// Adds to `wrong` each GPU where the code gives something else than on the CPU.
pub fn compare(code: &str, dtype: DType, count: usize, wrong: &mut Vec<String>) -> Result<()> {
    let here = computed(code, dtype, count, "cpu")?;
    for device in SIMULATED {
        match computed(code, dtype, count, device) {
            Ok(there) => {
                if let Some(place) = here.iter().zip(&there).position(|(here, there)| here != there) {
                    let (here, there) = (here[place], there[place]);
                    wrong.push(format!("{device}, {dtype}, {code}: {there:#x} instead of {here:#x} at {place}"));
                }
            }
            Err(error) => wrong.push(format!("{device}, {dtype}, {code}: {error}")),
        }
    }
    Ok(())
}

#[test]
fn intrinsics_give_what_they_give_on_the_cpu() -> Result<()> {
    if let Err(error) = register() {
        println!("skipped: simulated GPUs: {error}");
        return Ok(());
    }
    let mut wrong = Vec::new();
    for intrinsic in Intrinsic::ALL {
        let dtypes: &[DType] = if intrinsic.is_of_floats { &FLOATS } else { &WHOLE };
        let operands: Vec<String> = (0..intrinsic.operands).map(|number| format!("{{r}} %{number}")).collect();
        let code = format!("%r = call {{r}} @{}.{{r.name}}({})\n ret {{r}} %r", intrinsic.name, operands.join(", "));
        for &dtype in dtypes {
            compare(&code, dtype, intrinsic.operands, &mut wrong)?;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn arithmetic_gives_what_it_gives_on_the_cpu() -> Result<()> {
    if register().is_err() {
        return Ok(());
    }
    let mut wrong = Vec::new();
    for dtype in FLOATS {
        for op in ["fadd", "fsub", "fmul", "fdiv"] {
            compare(&format!("%r = {op} {{r}} %0, %1\n ret {{r}} %r"), dtype, 2, &mut wrong)?;
        }
        compare("%r = fneg {r} %0\n ret {r} %r", dtype, 1, &mut wrong)?;
        // What AMD's instructions could do as modifiers of the one before: a factor, a range of results.
        let llvm = ["half", "float", "double"][dtype.size().trailing_zeros() as usize - 1];
        let doubled = format!("%p = fmul nsz {llvm} %0, %1\n %r = fmul nsz {llvm} %p, 2.0\n ret {llvm} %r");
        compare(&doubled, dtype, 2, &mut wrong)?;
        let name = format!("f{}", 8 * dtype.size());
        let clamped = format!(
            "%s = fadd {llvm} %0, %1\n %m = call {llvm} @llvm.maxnum.{name}({llvm} %s, {llvm} 0.0)\n \
             %r = call {llvm} @llvm.minnum.{name}({llvm} %m, {llvm} 1.0)\n ret {llvm} %r"
        );
        compare(&clamped, dtype, 2, &mut wrong)?;
    }
    for dtype in WHOLE {
        for op in ["add", "sub", "mul", "and", "or", "xor"] {
            compare(&format!("%r = {op} {{r}} %0, %1\n ret {{r}} %r"), dtype, 2, &mut wrong)?;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

uop! {
    <N>
    fn takes_a_lane(x: &Global<i32, N>) -> Global<i32, N> as y {
        for i in global(N) {
            y[i] = unsafe {
                custom("%v = insertelement <4 x i32> <i32 1, i32 2, i32 3, i32 4>, i32 %0, i32 0\n\
                        %i = and i32 %0, 3\n%r = extractelement <4 x i32> %v, i32 %i\nret i32 %r", x[i], x[i])
            };
        }
    }

    <N>
    fn is_wide(x: &Global<i32, N>) -> Global<i32, N> as y {
        for i in global(N) {
            y[i] = unsafe { custom("%c = icmp eq i128 1, 170141183460469231731687303715884105727\n%r = zext i1 %c to i32\nret i32 %r", x[i], x[i]) };
        }
    }

    <N>
    fn has_no_end(x: &Global<i32, N>) -> Global<i32, N> as y {
        for i in global(N) { y[i] = unsafe { custom("unreachable", x[i], x[i]) }; }
    }
}

/// Types and instructions that a chip may lack, or that need a stack, are refused before LLVM sees them, as results and as
/// operands.
#[test]
fn what_no_gpu_takes_is_refused() {
    if let Err(error) = register() {
        println!("skipped: {error}");
        return;
    }
    for device in SIMULATED {
        let x = Tensor::from_slice(&[1i32, 2, 3], [3]).to(device);
        for (y, what) in [
            (takes_a_lane(&x), "takes a lane by a constant"),
            (is_wide(&x), "no value of the type `i128`"),
            (has_no_end(&x), "takes no `unreachable`"),
        ] {
            let message = y.to_vec::<i32>().expect_err(what).to_string();
            assert!(message.contains(what) && message.contains("own_code.rs"), "{device}: {message}");
        }
    }
}
