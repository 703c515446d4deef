//! Calls in text: functions, and prepared calls as command buffers.

use crate::register;
use tinyspec::prelude::*;
use tinyspec::{Prepared, call_function};

#[test]
fn a_function_prints_and_parses() {
    register();
    let specs = [Spec::new(DType::F32, [2, 3])];
    let function = Function::trace(&specs, |inputs| {
        let [y] = call_function("twice", &[], &[&(&inputs[0] + 1.0)]);
        vec![y * 3.0]
    })
    .unwrap();
    let text = function.to_string();
    assert!(text.contains("custom_function[\"twice\"]"), "{text}");
    let read: Function = text.parse().unwrap();
    assert_eq!(read.to_string(), text);
    assert_eq!(read.call(&[&Tensor::ones([2, 3])])[0].to_vec::<f32>().unwrap(), [12.0; 6]);
}

/// A call of `twice`, and a node of it that is returned.
fn twice(result: &str) -> String {
    format!(
        "
        %0 = const[index 3]
        %1 = stack(%0)
        %2 = param[0 f32](%1)
        %3 = const[f32 0.0]
        %4 = expand(%3, %1)
        %5 = const[index 1]
        %6 = const[index 0]
        %7 = custom_function[\"twice\"](%5, %6)
        %8 = call(%7, %4, %2)
        %9 = {result}
        return %9
    "
    )
}

#[test]
fn text_calls_a_function_by_its_name() {
    register();
    let function: Function = twice("after(%4, %8, %6)").parse().unwrap();
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]);
    assert_eq!(function.call(&[&x])[0].to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
}

#[test]
fn text_that_names_an_unknown_function_or_wrong_shapes_is_refused() {
    register();
    let text = |name: &str, size: u32| {
        format!(
            "
            %0 = const[index 3]
            %1 = stack(%0)
            %2 = param[0 f32](%1)
            %3 = const[f32 0.0]
            %4 = const[index {size}]
            %5 = stack(%4)
            %6 = expand(%3, %5)
            %7 = const[index 1]
            %8 = const[index 0]
            %9 = custom_function[\"{name}\"](%7, %8)
            %10 = call(%9, %6, %2)
            %11 = after(%6, %10, %8)
            return %11
        "
        )
    };
    let unknown = text("text::unknown", 4).parse::<Function>().unwrap_err().to_string();
    assert!(unknown.starts_with("text::unknown: no custom function of this name is registered"), "{unknown}");
    let function: Function = text("twice", 4).parse().unwrap();
    let wrong = function.call(&[&Tensor::ones([3])])[0].to_vec::<f32>().unwrap_err().to_string();
    assert!(wrong.starts_with("twice: its shape rule gives (f32 [3]), the call expects (f32 [4])"), "{wrong}");
    assert!(wrong.contains("text.rs:"), "{wrong}");
}

#[test]
fn a_result_that_its_call_does_not_give_is_refused() {
    register();
    assert!(twice("after(%4, %8, %6)").parse::<Function>().is_ok());
    // The argument, which is only read; a buffer that is not there; a value of another shape.
    for result in ["after(%2, %8, %5)", "after(%4, %8, %0)", "after(%3, %8, %6)"] {
        let error = twice(result).parse::<Function>().unwrap_err().to_string();
        assert!(error.contains("is no result of its Call"), "{error}");
    }
}

#[test]
fn a_command_buffer_prints_parses_and_runs() {
    register();
    for device in crate::devices() {
        tinyspec::with_default_device(device, || {
            let (x, y) = (Tensor::from_slice(&[1f32, 2.0], [1, 2]), Tensor::from_slice(&[3f32, 4.0], [2, 1]));
            let a = Tensor::scalar(2f32);
            let function = |x: &Tensor, y: &Tensor, a: &Tensor| {
                let [product] = call_function("gemm", &[], &[&(x + 1.0), y]);
                let [sum] = call_function("axpy", &[], &[&(x * 2.0), x, a]);
                let [even] = call_function("is_even", &[], &[&product.cast(DType::I32), &product.gt(0.0)]);
                (product, sum, even)
            };
            let specs = [Spec::of(&x), Spec::of(&y), Spec::of(&a)];
            let function = Function::trace(&specs, |inputs| {
                let (product, sum, even) = function(&inputs[0], &inputs[1], &inputs[2]);
                vec![product, sum, even]
            })?;
            let prepared = function.prepare(&[&x, &y, &a])?;
            let text = prepared.to_string();
            assert!(text.contains("custom_function[\"gemm\"]"), "{text}");
            let read: Prepared = text.parse()?;
            assert_eq!(read.to_string(), text, "{device}");
            // SAFETY: it was printed by a prepared call.
            let read = unsafe { read.vouched() };
            let mut out = read.outputs()?;
            for _ in 0..2 {
                read.call(&mut out, &[&x, &y, &a])?;
                assert_eq!(out[0].to_vec::<f32>()?, [18.0], "{device}");
                assert_eq!(out[1].to_vec::<f32>()?, [4.0, 8.0], "{device}");
                assert_eq!(out[2].to_vec::<bool>()?, [true], "{device}");
            }
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

#[test]
fn a_command_buffer_with_wrong_calls_is_refused() {
    register();
    let text = |call: &str| {
        format!(
            "
            %0 = const[index 3]
            %1 = stack(%0)
            %2 = param[0 f32 global](%1)
            %3 = buffer[0 f32 global](%1)
            %4 = const[index 1]
            %5 = const[index 0]
            {call}
            %8 = linear(%7)
            %9 = after(%3, %8)
            %10 = tuple(%9)
            return %10
        "
        )
    };
    let refused = |call: &str| text(call).parse::<Prepared>().unwrap_err().to_string();
    let twice = "%6 = custom_function[\"twice\"](%4, %5)";
    assert!(text(&format!("{twice}\n %7 = call(%6, %3, %2)")).parse::<Prepared>().is_ok());
    let unknown = refused("%6 = custom_function[\"text::gone\"](%4, %5)\n %7 = call(%6, %3, %2)");
    assert!(unknown.contains("no custom function of this name is registered"), "{unknown}");
    let unread = refused("%6 = custom_function[\"twice\"](%4, %5)\n %7 = call(%6, %3, %3)");
    assert!(unread.contains("also another of its buffers") || unread.contains("no Call before it writes"), "{unread}");
    let updated = refused("%6 = custom_function[\"axpy\"](%5, %4)\n %7 = call(%6, %3, %2, %2)");
    assert!(updated.contains("no Call before it writes"), "{updated}");
    let wider = refused(
        "%6 = custom_function[\"twice\"](%4, %5)\n %11 = bitcast[f16](%2)\n %12 = bitcast[f16](%3)\n %7 = call(%6, %12, %11)",
    );
    assert!(wider.contains("not a buffer or a part of one"), "{wider}");
    let missing = refused("%6 = custom_function[\"twice\"](%4, %4)\n %7 = call(%6, %3)");
    assert!(missing.contains("no custom function"), "{missing}");
}
