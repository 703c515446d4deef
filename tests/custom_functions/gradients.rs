//! Gradients of custom functions.

use crate::register;
use tinyspec::prelude::*;
use tinyspec::{CustomFunction, call_function, gradcheck, register_function};

#[test]
fn a_gradient_is_that_of_the_registered_closure() {
    register();
    let (a, b) = (Tensor::randn([3, 4]), Tensor::randn([4, 2]));
    let [c] = call_function("gemm", &[], &[&(&a * 2.0), &b]);
    let found = grad(&(&c * &c).sum(.., false), &[&a, &b]).unwrap();
    let c = (&a * 2.0).matmul(&b);
    let expected = grad(&(&c * &c).sum(.., false), &[&a, &b]).unwrap();
    for (found, expected) in found.iter().zip(&expected) {
        let difference = (found - expected).abs().max(.., false).item::<f32>().unwrap();
        assert!(difference < 1e-4, "{difference}");
    }
}

#[test]
fn updated_arguments_have_gradients() {
    register();
    let (y, x, a) = (Tensor::ones([3]), Tensor::from_slice(&[1f32, 2.0, 3.0], [3]), Tensor::scalar(0.5f32));
    let [z] = call_function("axpy", &[], &[&y, &x, &a]);
    let found = grad(&(z * 2.0).sum(.., false), &[&y, &x, &a]).unwrap();
    assert_eq!(found[0].to_vec::<f32>().unwrap(), [2.0; 3]);
    assert_eq!(found[1].to_vec::<f32>().unwrap(), [1.0; 3]);
    assert_eq!(found[2].item::<f32>().unwrap(), 12.0);
}

#[test]
fn a_gradient_is_checked_by_differences() {
    let square = CustomFunction::new("gradients::square", |arguments, _| Ok(vec![arguments[0].clone()]))
        .host(|mut call| {
            let x = call.inputs[0].as_slice::<f64>()?;
            call.outputs[0].as_mut_slice::<f64>()?.iter_mut().zip(x).for_each(|(y, x)| *y = x * x);
            Ok(())
        })
        .gradient(|arguments, _, gradients| vec![Some(&arguments[0] * &gradients[0] * 2.0)]);
    register_function(square).unwrap();
    let x = Tensor::from_slice(&[0.5f64, -1.0], [2]);
    let f = |inputs: &[Tensor]| {
        let [y] = call_function("gradients::square", &[], &[&inputs[0]]);
        (&y * &y).sum(.., false)
    };
    gradcheck(f, &[&x], Default::default()).unwrap();
}

#[test]
fn a_function_without_a_gradient_says_so() {
    let rule = |arguments: &[Spec], _: &[tinyspec::function::Meta]| Ok(vec![arguments[0].clone()]);
    register_function(CustomFunction::new("gradients::none", rule).host(|_| Ok(()))).unwrap();
    let x = Tensor::ones([2]);
    let [y] = call_function("gradients::none", &[], &[&x]);
    let error = grad(&y.sum(.., false), &[&x]).unwrap_err().to_string();
    assert!(error.starts_with("gradients::none: a custom function has no gradient of its own"), "{error}");
    assert!(error.contains("CustomFunction::gradient") && error.contains("gradients.rs:"), "{error}");
}

#[test]
fn a_gradient_that_does_not_fit_says_so() {
    let rule = |arguments: &[Spec], _: &[tinyspec::function::Meta]| Ok(vec![arguments[0].clone()]);
    let function = CustomFunction::new("gradients::wrong", rule).host(|_| Ok(()));
    register_function(function.gradient(|_, _, gradients| vec![Some(gradients[0].sum(.., false))])).unwrap();
    let x = Tensor::ones([2]);
    let [y] = call_function("gradients::wrong", &[], &[&x]);
    let error = grad(&y.sum(.., false), &[&x]).unwrap_err().to_string();
    assert!(error.contains("its gradient of argument 0 is f32 [], the argument f32 [2]"), "{error}");
}
