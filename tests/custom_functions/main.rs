//! Custom functions: code of the program's own between the kernels, on every device.

mod calls;
mod declared;
mod errors;
mod gradients;
mod memories;
mod order;
mod processes;
mod random;
#[path = "../simulators.rs"]
mod simulators;
mod text;

use std::sync::Once;
use tinyspec::prelude::*;
use tinyspec::{CustomFunction, register_function};

/// The interpreters, machine code, and GPUs that are simulated, where code can be made for them.
fn devices() -> Vec<&'static str> {
    let mut devices = vec!["interpreter", "simt", "cpu"];
    match simulators::register() {
        Ok(()) => devices.extend(["ptxsim:sm_80", "amdsim:gfx1100"]),
        Err(error) => println!("skipped on simulated GPUs: {error}"),
    }
    devices
}

/// The functions that several tests call; a process registers each once.
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for function in [twice(), gemm(), fill(), axpy(), split(), is_even()] {
            register_function(function).unwrap();
        }
    });
}

/// `2x`, of the same dtype and shape.
fn twice() -> CustomFunction {
    CustomFunction::new("twice", |arguments, _| match arguments {
        [x] if x.dtype == DType::F32 => Ok(vec![x.clone()]),
        _ => Err("takes one tensor of f32".into()),
    })
    .host(|mut call| {
        let x = call.inputs[0].as_slice::<f32>()?;
        call.outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        Ok(())
    })
    .gradient(|_, _, gradients| vec![Some(&gradients[0] * 2.0)])
}

/// A product of matrices; its gradient calls it again.
fn gemm() -> CustomFunction {
    CustomFunction::new("gemm", |arguments, _| {
        let [a, b] = arguments else { return Err("takes two matrices".into()) };
        match (&a.shape[..], &b.shape[..]) {
            ([m, k], [l, n]) if k == l => Ok(vec![Spec::new(DType::F32, [m.clone(), n.clone()])]),
            _ => Err("inner dimensions differ".into()),
        }
    })
    .host(|mut call| {
        let &[m, k] = call.inputs[0].shape() else { return Err("no matrix".into()) };
        let n = call.inputs[1].shape()[1];
        let (a, b) = (call.inputs[0].as_slice::<f32>()?, call.inputs[1].as_slice::<f32>()?);
        let c = call.outputs[0].as_mut_slice::<f32>()?;
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            c[i * n + j] = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
        }
        Ok(())
    })
    .gradient(|arguments, _, gradients| {
        let [da] = tinyspec::call_function("gemm", &[], &[&gradients[0], &arguments[1].transpose(0, 1)]);
        let [db] = tinyspec::call_function("gemm", &[], &[&arguments[0].transpose(0, 1), &gradients[0]]);
        vec![Some(da), Some(db)]
    })
}

/// `count` elements of a value, both of which are parameters.
fn fill() -> CustomFunction {
    use tinyspec::function::Meta;
    CustomFunction::new("fill", |_, meta| match meta {
        [Meta::Int(count), Meta::Float(_), Meta::Text(_)] => Ok(vec![Spec::new(DType::F64, [*count])]),
        _ => Err("its parameters are a count, a value and a text".into()),
    })
    .host(|mut call| {
        let [_, Meta::Float(value), Meta::Text(text)] = call.meta else { return Err("wrong parameters".into()) };
        let value = value + text.len() as f64;
        call.outputs[0].as_mut_slice::<f64>()?.fill(value);
        Ok(())
    })
}

/// `y += a x`, in place.
fn axpy() -> CustomFunction {
    CustomFunction::new("axpy", |_, _| Ok(vec![]))
        .updates(1)
        .host(|mut call| {
            let (x, a) = (call.inputs[0].as_slice::<f32>()?, call.inputs[1].as_slice::<f32>()?[0]);
            call.outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
            Ok(())
        })
        .gradient(|arguments, _, gradients| {
            let da = (&gradients[0] * &arguments[1]).sum(.., false);
            vec![Some(gradients[0].clone()), Some(&gradients[0] * &arguments[2]), Some(da)]
        })
}

/// The whole parts and the rests of numbers: two results of different dtypes.
fn split() -> CustomFunction {
    CustomFunction::new("split", |arguments, _| {
        let shape = arguments[0].shape.clone();
        Ok(vec![Spec { dtype: DType::I32, shape: shape.clone() }, Spec { dtype: DType::F32, shape }])
    })
    .host(|mut call| {
        let x = call.inputs[0].as_slice::<f32>()?;
        let [whole, rest] = &mut call.outputs[..] else { return Err("two results".into()) };
        whole.as_mut_slice::<i32>()?.iter_mut().zip(x).for_each(|(y, x)| *y = x.floor() as i32);
        rest.as_mut_slice::<f32>()?.iter_mut().zip(x).for_each(|(y, x)| *y = x - x.floor());
        Ok(())
    })
}

/// Bools of bools and integers.
fn is_even() -> CustomFunction {
    CustomFunction::new("is_even", |arguments, _| match arguments {
        [x, wanted] if x.dtype == DType::I32 && wanted.dtype == DType::Bool => {
            Ok(vec![Spec { dtype: DType::Bool, ..x.clone() }])
        }
        _ => Err("takes i32 and bool".into()),
    })
    .host(|mut call| {
        let (x, wanted) = (call.inputs[0].as_slice::<i32>()?, call.inputs[1].as_slice::<bool>()?);
        let y = call.outputs[0].as_mut_slice::<bool>()?;
        y.iter_mut().zip(x).zip(wanted).for_each(|((y, x), wanted)| *y = (x % 2 == 0) == *wanted);
        Ok(())
    })
}
