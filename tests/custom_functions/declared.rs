//! Functions without a body: their signature is declared in Rust, their code is registered.

use crate::register;
use tinyspec::prelude::*;
use tinyspec::{CustomFunction, register_function, with_default_device};

#[function]
fn gemm<M, K, N>(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N>;

#[function(in_place(y))]
pub fn axpy<N>(y: &Tensor<f32, N>, x: &Tensor<f32, N>, a: f32) -> Tensor<f32, N>;

#[function]
fn split<M, N>(x: &Tensor<f32, M, N>) -> (Tensor<i32, M, N>, Tensor<f32, M, N>);

mod elsewhere {
    use super::*;

    /// The same code under another name, for vectors.
    #[function(custom = "twice", gradient = three)]
    pub fn double<N>(x: &Tensor<f32, N>) -> Tensor<f32, N>;

    /// Not the slope, so that a test sees which gradient was taken.
    #[function]
    pub fn three<N>(_x: &Tensor<f32, N>, dy: &Tensor<f32, N>) -> Tensor<f32, N> {
        dy * 3.0
    }
}

#[function]
fn layer<B, I, O>(x: &Tensor<f32, B, I>, w: &Tensor<f32, I, O>, bias: &Tensor<f32, O>) -> Tensor<f32, B, O> {
    let y = gemm(&(x + 1.0), w) + bias;
    let (whole, rest) = split(&y);
    whole.cast::<f32>() + rest
}

#[function(grad)]
fn loss<N>(x: &Tensor<f32, N>) -> Tensor<f32> {
    elsewhere::double(&(x * x)).sum(.., false)
}

#[function(bounds(B: 1..=64))]
fn bounded<B>(x: &Tensor<f32, B, 2>, w: &Tensor<f32, 2, 3>) -> Tensor<f32, B, 3> {
    gemm(x, w) * 2.0
}

#[function(bounds(B: 1..=64))]
fn bounded_in_place<B>(y: &Tensor<f32, B>, x: &Tensor<f32, B>) -> Tensor<f32, B> {
    axpy(&(y * 2.0), x, 10.0) + y
}

#[test]
fn a_declared_function_is_called() {
    register();
    for device in crate::devices() {
        with_default_device(device, || {
            let (a, b) = (Tensor::from_slice(&[1f32, 2.0], [1, 2]), Tensor::from_slice(&[3f32, 4.0], [2, 1]));
            assert_eq!((gemm(&a, &b) + 1.0).to_vec::<f32>()?, [12.0], "{device}");
            assert_eq!(gemm(&b, &a).to_vec::<f32>()?, [3.0, 6.0, 4.0, 8.0], "{device}");
            let y = Tensor::from_slice(&[1f32, 2.0], [2]);
            assert_eq!((axpy(&y, &y, 0.5) + &y).to_vec::<f32>()?, [2.5, 5.0], "{device}");
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

#[test]
fn a_function_with_a_body_calls_declared_ones() {
    register();
    for (b, i, o) in [(1, 2, 3), (4, 2, 1), (2, 5, 2), (3, 3, 3), (5, 1, 4)] {
        let (x, w) = (Tensor::ones([b, i]), Tensor::ones([i, o]));
        let bias = Tensor::full([o], 0.5f32);
        let expected = vec![2.0 * i as f32 + 0.5; (b * o) as usize];
        assert_eq!(layer(&x, &w, &bias).to_vec::<f32>().unwrap(), expected);
        let run = layer.prepare(&[&x, &w, &bias]).unwrap();
        let mut out = run.outputs().unwrap();
        run.call(&mut out, &[&x, &w, &bias]).unwrap();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), expected);
    }
}

#[test]
fn the_embedded_graph_is_that_of_the_call_at_run_time() {
    register();
    for function in [gemm::FUNCTION, axpy::FUNCTION, split::FUNCTION, layer::FUNCTION] {
        let (embedded, traced) = (function.get().unwrap(), function.retrace().unwrap());
        assert_eq!(embedded.body().hash(), traced.body().hash(), "{}\n{embedded}\n{traced}", function.name());
    }
}

#[test]
fn its_own_gradient_is_a_function() {
    register();
    let x = Tensor::from_slice(&[1f32, 2.0], [2]);
    let [dx] = loss::grad(&x);
    assert_eq!(dx.to_vec::<f32>().unwrap(), [6.0, 12.0]);
    let found = grad(&elsewhere::double(&x).sum(.., false), &[&x]).unwrap();
    assert_eq!(found[0].to_vec::<f32>().unwrap(), [3.0, 3.0]);
}

#[test]
fn without_one_the_registered_gradient_is_taken() {
    register();
    let (a, b) = (Tensor::ones([2, 3]), Tensor::ones([3, 2]));
    let found = grad(&(gemm(&a, &b) * 2.0).sum(.., false), &[&a, &b]).unwrap();
    assert_eq!(found[0].to_vec::<f32>().unwrap(), [4.0; 6]);
    assert_eq!(found[1].to_vec::<f32>().unwrap(), [4.0; 6]);
}

#[function(grad)]
fn squares<M, K, N>(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32> {
    let c = gemm(a, b);
    (&c * &c).sum(.., false)
}

#[test]
fn a_derived_gradient_takes_the_registered_one_of_what_it_calls() {
    register();
    let (a, b) = (Tensor::ones([2, 3]), Tensor::ones([3, 2]));
    let [da, db] = squares::grad(&a, &b);
    assert_eq!(da.to_vec::<f32>().unwrap(), [12.0; 6]);
    assert_eq!(db.to_vec::<f32>().unwrap(), [12.0; 6]);
}

#[test]
fn a_prepared_call_updates_a_state_in_place() {
    register();
    let (y, x, a) = (Tensor::ones([3]), Tensor::from_slice(&[1f32, 2.0, 3.0], [3]), Tensor::scalar(2f32));
    let run = axpy::FUNCTION.prepare(&[&y, &x, &a]).unwrap().in_place(&[(0, 0)]).unwrap();
    let mut out = vec![y];
    for step in 1..4 {
        run.call(&mut out, &[&x, &a]).unwrap();
        let expected: Vec<f32> = (1..4).map(|x| 1.0 + 2.0 * (step * x) as f32).collect();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), expected);
    }
}

#[test]
fn one_plan_serves_all_sizes_within_bounds() {
    register();
    let w = Tensor::ones([2, 3]);
    for rows in [1, 2, 7, 64] {
        let found = bounded(&Tensor::ones([rows, 2]), &w).to_vec::<f32>().unwrap();
        assert_eq!(found, vec![4.0; 3 * rows as usize]);
        let (y, x) = (Tensor::ones([rows]), Tensor::ones([rows]));
        let found = bounded_in_place(&y, &x).to_vec::<f32>().unwrap();
        assert_eq!(found, vec![13.0; rows as usize]);
    }
    let x = Tensor::ones([5, 2]);
    let run = bounded::FUNCTION.prepare(&[&x, &w]).unwrap();
    for rows in [5, 3, 9] {
        let x = Tensor::ones([rows, 2]);
        let mut out = vec![Tensor::zeros([rows, 3])];
        run.call(&mut out, &[&x, &w]).unwrap();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), vec![4.0; 3 * rows as usize]);
    }
}

#[function]
fn absent<N>(x: &Tensor<f32, N>) -> Tensor<f32, N>;

#[test]
fn a_declared_function_without_code_says_what_to_do() {
    let error = (absent(&Tensor::ones([2])) + 1.0).to_vec::<f32>().unwrap_err().to_string();
    assert!(error.starts_with("absent: no custom function of this name is registered"), "{error}");
    assert!(error.contains("declared.rs:"), "{error}");
}

#[function]
fn halves<N>(x: &Tensor<f32, N>) -> Tensor<f32, N>;

#[test]
fn a_declaration_that_differs_from_the_shape_rule_says_so() {
    let function = CustomFunction::new("halves", |arguments, _| {
        Ok(vec![Spec {
            shape: arguments[0].shape.iter().map(|dim| dim.idiv(&2.into())).collect(),
            ..arguments[0].clone()
        }])
    });
    register_function(function.host(|_| Ok(()))).unwrap();
    let error = halves(&Tensor::ones([6])).to_vec::<f32>().unwrap_err().to_string();
    assert!(error.starts_with("halves: its shape rule gives (f32 [3]), the call expects (f32 [6])"), "{error}");
    assert!(error.contains("declared.rs:"), "{error}");
}
