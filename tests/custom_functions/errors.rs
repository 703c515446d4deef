//! What is wrong, and where: errors come out of the read.

use crate::register;
use tinyspec::prelude::*;
use tinyspec::{CustomFunction, call_function, register_function, with_default_device};

fn failing(name: &str, body: fn() -> Result<(), tinyspec::function::Failure>) -> Tensor {
    let rule = |arguments: &[Spec], _: &[tinyspec::function::Meta]| Ok(vec![arguments[0].clone()]);
    register_function(CustomFunction::new(name, rule).host(move |_| body())).unwrap();
    let [y] = call_function(name, &[], &[&Tensor::ones([2])]);
    y + 1.0
}

#[test]
fn an_error_of_a_body_is_that_of_the_read() {
    let error = failing("errors::fails", || Err("the file ends early".into())).to_vec::<f32>().unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("custom function `errors::fails` on cpu: the file ends early\n  at "), "{text}");
    assert!(text.contains("errors.rs:10:"), "{text}");
    assert!(matches!(error, Error::CustomFunction { .. }));
    assert!(error.location().is_some_and(|location| location.file.ends_with("errors.rs") && location.line == 10));
}

#[test]
fn a_panic_in_a_body_is_an_error_of_the_read() {
    let y = failing("errors::panics", || panic!("index {} is out of bounds", 7));
    let text = y.to_vec::<f32>().unwrap_err().to_string();
    assert!(text.contains("`errors::panics` on cpu: it panicked: index 7 is out of bounds"), "{text}");
    // The process goes on.
    let [y] = {
        register();
        call_function("twice", &[], &[&Tensor::ones([1])])
    };
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0]);
}

#[test]
fn a_name_that_is_not_registered_says_what_to_do() {
    register();
    let [y] = call_function("errors::unknown", &[], &[&Tensor::ones([2])]);
    let text = (y + 1.0).to_vec::<f32>().unwrap_err().to_string();
    assert!(text.starts_with("errors::unknown: no custom function of this name is registered"), "{text}");
    assert!(text.contains("`register_function(CustomFunction::new(\"errors::unknown\", …))`"), "{text}");
    assert!(text.contains("`twice`") && text.contains("errors.rs:"), "{text}");
}

#[test]
fn a_name_is_registered_once() {
    register();
    let again = register_function(crate::twice()).unwrap_err().to_string();
    assert!(again.starts_with("register_function: a custom function `twice` is registered already"), "{again}");
    assert!(again.contains("my_crate::name") && again.contains("errors.rs:"), "{again}");
    let unnamed = register_function(CustomFunction::new("", |_, _| Ok(vec![]))).unwrap_err().to_string();
    assert!(unnamed.contains("needs a name"), "{unnamed}");
}

#[test]
fn arguments_that_the_rule_refuses_are_an_error_at_the_call() {
    register();
    let [y] = call_function("gemm", &[], &[&Tensor::ones([2, 3]), &Tensor::ones([4, 5])]);
    let text = y.to_vec::<f32>().unwrap_err().to_string();
    let expected = "gemm: inner dimensions differ; the arguments are (f32 [2, 3], f32 [4, 5])";
    assert!(text.starts_with(expected) && text.contains("errors.rs:"), "{text}");
    let [y] = call_function("split", &[], &[]);
    let text = y.to_vec::<f32>().unwrap_err().to_string();
    assert!(text.starts_with("split: its shape rule panicked: index out of bounds"), "{text}");
    let [y] = call_function("axpy", &[], &[]);
    let text = y.to_vec::<f32>().unwrap_err().to_string();
    assert!(text.starts_with("axpy: updates its first 1 arguments, found 0"), "{text}");
}

#[test]
fn the_number_of_results_is_checked() {
    register();
    let [y, _] = call_function("twice", &[], &[&Tensor::ones([2])]);
    let text = y.to_vec::<f32>().unwrap_err().to_string();
    assert!(text.starts_with("twice: gives 1 results, the caller takes 2"), "{text}");
}

#[test]
fn a_view_of_another_dtype_is_an_error() {
    let function = CustomFunction::new("errors::dtype", |arguments, _| Ok(vec![arguments[0].clone()]));
    let function = function.host(|call| call.inputs[0].as_slice::<f64>().map(|_| ()));
    register_function(function).unwrap();
    let [y] = call_function("errors::dtype", &[], &[&Tensor::ones([2])]);
    let text = y.to_vec::<f32>().unwrap_err().to_string();
    assert!(text.contains("a buffer of f32 was asked for as f64"), "{text}");
}

#[test]
fn a_device_without_code_is_an_error() {
    let function = CustomFunction::new("errors::device", |arguments, _| Ok(vec![arguments[0].clone()]));
    register_function(function.device("simt", |_| Ok(()))).unwrap();
    let [y] = call_function("errors::device", &[], &[&Tensor::ones([2])]);
    let text = y.to_vec::<f32>().unwrap_err().to_string();
    assert!(text.contains("`errors::device` on cpu: it has no code for this device, and no host body"), "{text}");
    assert!(text.contains("CustomFunction::host") && text.contains("`simt`"), "{text}");
}

#[test]
fn arguments_on_two_devices_are_an_error() {
    register();
    let (a, b) = (Tensor::ones([2, 2]), Tensor::ones([2, 2]).to("interpreter"));
    let [y] = call_function("gemm", &[], &[&a.to("cpu"), &b]);
    let text = y.to_vec::<f32>().unwrap_err().to_string();
    assert!(text.starts_with("gemm: mixes devices"), "{text}");
}

#[test]
fn code_for_a_device_and_for_the_interpreter_is_chosen_there() {
    let fill = |value: f32| {
        move |mut call: tinyspec::function::HostCall| {
            call.outputs[0].as_mut_slice::<f32>()?.fill(value);
            Ok(())
        }
    };
    let function = CustomFunction::new("errors::chosen", |arguments, _| Ok(vec![arguments[0].clone()]))
        .host(fill(1.0))
        .interpreter(fill(2.0))
        .device("simt", |call| {
            let [output] = &call.outputs[..] else { return Err("one result".into()) };
            let count = output.bytes / size_of::<f32>();
            // SAFETY: the memory of this device is the host's, and the body has the buffer for itself.
            unsafe { std::slice::from_raw_parts_mut(output.address.cast::<f32>(), count) }.fill(3.0);
            Ok(())
        });
    register_function(function).unwrap();
    for (device, expected) in [("cpu", 1.0), ("interpreter", 2.0), ("simt", 3.0), ("cpu:1", 1.0)] {
        let found = with_default_device(device, || {
            let [y] = call_function("errors::chosen", &[], &[&Tensor::ones([3])]);
            y.to_vec::<f32>()
        });
        assert_eq!(found.unwrap(), [expected; 3], "{device}");
    }
}
