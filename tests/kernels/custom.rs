//! `custom`: code of the renderer's language within a kernel, and its meaning where there is none.

use crate::*;
use tinyspec::backends::BackendError;
use tinyspec::prelude::*;

uop! { <N>
    fn larger(x: &Global<f32, N>, y: &Global<f32, N>) -> Global<f32, N> as z {
        for i in global(N) {
            z[i] = unsafe {
                custom("%m = call {r} @llvm.maxnum.{r.name}({0} %0, {1} %1)\n ret {r} %m", max(x[i], y[i]), x[i], y[i])
            };
        }
    }

    <N>
    fn rotated(x: &Global<u32, N>, by: &Global<u32, N>) -> Global<u32, N> as y {
        for i in global(N) {
            // One lane at a time.
            y[i] = unsafe {
                custom(
                    "%r = call i32 @llvm.fshl.i32(i32 %0, i32 %0, i32 %1)\n ret i32 %r",
                    (x[i] << (by[i] & 31)) | (x[i] >> ((32 - (by[i] & 31)) & 31)), x[i], by[i]
                )
            };
        }
    }

    <N>
    fn unreadable(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = unsafe { custom("%m = fadd float %0, 1\n ret float %m", x[i] + 1.0, x[i]) }; }
    }

    <N>
    fn calls_out(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = unsafe {
                custom("%m = call float @puts(float %0)\n ret float %m\n}\ndeclare float @puts(float)\ndefine void @f() {\nret void", x[i], x[i])
            };
        }
    }

    <N>
    fn assembles(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            y[i] = unsafe { custom("ret float %0\n}\nmodule asm \".globl f\"\n!0 = !{", x[i], x[i]) };
        }
    }

    <N>
    fn of_another_processor(x: &Global<i32, N>) -> Global<i32, N> as y {
        for i in global(N) {
            y[i] = unsafe { custom("%r = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n ret i32 %r", x[i], x[i]) };
        }
    }

    <N>
    fn assembles_what_there_is_not(x: &Global<i32, N>) -> Global<i32, N> as y {
        for i in global(N) {
            y[i] = unsafe { custom("%r = call i32 asm \"frobnicate $0, $1\", \"=r,r\"(i32 %0)\n ret i32 %r", x[i], x[i]) };
        }
    }

    <N>
    fn of_another_type(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = unsafe { custom("ret i32 0", x[i], x[i]) }; }
    }
}

#[test]
fn custom_code_computes_its_value_on_every_device() {
    each_device(|device| {
        let (a, b) = (numbers(203, 1), numbers(203, 2));
        let z = larger(&tensor(&a, &[203], device), &tensor(&b, &[203], device));
        assert_same(&z, &a.iter().zip(&b).map(|(a, b)| a.max(*b)).collect::<Vec<_>>());

        let (x, by): (Vec<u32>, Vec<u32>) = (0..77u32).map(|i| (i.wrapping_mul(2_654_435_761), i % 40)).unzip();
        let of = |data: &[u32]| Tensor::from_slice(data, [data.len()]).to(device);
        let expected: Vec<u32> = x.iter().zip(&by).map(|(x, by)| x.rotate_left(*by)).collect();
        assert_eq!(rotated(&of(&x), &of(&by)).to_vec::<u32>().unwrap(), expected, "{device}");
    });
}

#[test]
fn custom_code_is_what_runs_on_the_cpu() -> Result<()> {
    // Code that does not keep its promise shows which of both ran.
    let of = |device: &str| {
        let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]).to(device);
        // SAFETY: it only negates a number.
        let y = unsafe { (&x + 0.0).custom("%n = fneg {r} %0\n ret {r} %n", &[&x]) };
        (y.square() + &y).to_vec::<f32>()
    };
    assert_eq!(of("cpu")?, [0.0, 2.0, 6.0]);
    assert_eq!(of("interpreter")?, [2.0, 6.0, 12.0]);
    assert_eq!(of("simt")?, [2.0, 6.0, 12.0]);
    Ok(())
}

#[test]
fn custom_code_broadcasts_and_has_the_gradient_of_its_value() -> Result<()> {
    on_both(|| {
        let (x, s) = (Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]), Tensor::from_slice(&[0.5f32, 2.0], [2]));
        // SAFETY: a product, as said.
        let y = unsafe { (&x * &s).custom("%p = fmul {r} %0, %1\n ret {r} %p", &[&x, &s]) };
        assert_same(&y, &[0.5, 4.0, 1.5, 8.0]);
        let slopes = tinyspec::grad(&y.square().sum(.., false), &[&x])?;
        assert_same(&slopes[0], &[0.5, 16.0, 1.5, 32.0]);
        // bf16 is an integer of its bits.
        let half = x.cast(DType::BF16);
        // SAFETY: the sign bit is taken away.
        let magnitude = unsafe { half.abs().custom("%b = and i16 %0, 32767\n ret i16 %b", &[&half]) };
        assert_same(&magnitude.cast(DType::F32), &[1.0, 2.0, 3.0, 4.0]);
        Ok(())
    })
}

#[test]
fn custom_code_that_is_none_is_an_error_that_names_it() {
    let x = tensor(&[1.0, 2.0], &[2], "cpu");
    for (y, what) in [
        (unreadable(&x), "integer constant must have integer type"),
        (calls_out(&x), "which a kernel cannot call"),
        (assembles(&x), "goes on with assembler"),
        (of_another_type(&x), "value doesn't match function result type"),
    ] {
        let error = y.to_vec::<f32>().expect_err(what);
        let message = error.to_string();
        assert!(message.contains("custom") && message.contains(what), "{message}");
        assert!(matches!(error, tinyspec::Error::Backend(BackendError::Unsupported { .. })), "{message}");
    }
    // The interpreters do not read it.
    each_device(|device| {
        if device == "interpreter" || device == "simt" {
            assert_same(&unreadable(&tensor(&[1.0, 2.0], &[2], device)), &[2.0, 3.0]);
        }
    });
}

/// LLVM goes on without such an instruction, and tells whoever listens.
#[test]
fn assembler_that_cannot_be_read_is_an_error() {
    let x = Tensor::from_slice(&[1i32, 2, 3], [3]).to("cpu");
    let message = assembles_what_there_is_not(&x).to_vec::<i32>().expect_err("no such instruction").to_string();
    assert!(message.contains("assembles_what_there_is_not") && message.contains("mnemonic"), "{message}");
}

/// LLVM ends the process where it knows no instruction for something.
#[test]
fn custom_code_that_the_processor_lacks_is_an_error_too() -> Result<()> {
    let x = Tensor::from_slice(&[1i32, 2, 3], [3]).to("cpu");
    for _ in 0..2 {
        let error = of_another_processor(&x).to_vec::<i32>().expect_err("no such instruction");
        let message = error.to_string();
        assert!(message.contains("of_another_processor") && message.contains("sreg.tid.x"), "{message}");
    }
    assert_eq!((&x + 1).to_vec::<i32>()?, [2, 3, 4]);
    Ok(())
}
