//! Functions traced at run time, and prepared calls.

use tinyspec_core::function::named;
use tinyspec_core::{Error, Function, Spec, Tensor};
use tinyspec_ir::{DType, Dim, ErrorKind};

fn affine() -> Result<Function, Error> {
    let batch = named(7, 4096);
    let specs =
        [Spec::new(DType::F32, [batch, Dim::from(2)]), Spec::new(DType::F32, [2, 3]), Spec::new(DType::F32, [3])];
    Function::trace(&specs, |inputs| vec![inputs[0].matmul(&inputs[1]) + &inputs[2], inputs[0].sum(.., false)])
}

#[test]
fn a_named_dim_binds_at_each_call() -> Result<(), Error> {
    let f = affine()?;
    let w = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]);
    let b = Tensor::from_slice(&[0.5f32, 0.0, -0.5], [3]);
    for rows in [1usize, 2, 5] {
        let x = Tensor::ones([rows, 2]);
        let results = f.call(&[&x, &w, &b]);
        assert_eq!(results[0].sizes()?, [rows, 3]);
        assert_eq!(results[0].to_vec::<f32>()?, [5.5, 7.0, 8.5].repeat(rows));
        assert_eq!(results[1].item::<f32>()?, 2.0 * rows as f32);
    }
    Ok(())
}

#[test]
fn calls_check_their_arguments() -> Result<(), Error> {
    let f = affine()?;
    let (w, b) = (Tensor::ones([2, 3]), Tensor::ones([3]));
    let error = f.call(&[&Tensor::ones([4, 3]), &w, &b])[0].realize().map(|_| ()).expect_err("2 columns");
    assert_eq!(error.kind(), Some(ErrorKind::Shape));
    assert!(error.location().is_some_and(|location| location.file.ends_with("functions.rs")));
    assert_eq!(f.call(&[&w, &b])[0].error().and_then(Error::kind), Some(ErrorKind::Arity));
    let integers = Tensor::full([4, 2], 1);
    assert_eq!(f.call(&[&integers, &w, &b])[0].error().and_then(Error::kind), Some(ErrorKind::DType));
    Ok(())
}

#[test]
fn functions_nest_and_have_gradients() -> Result<(), Error> {
    let square = Function::trace(&[Spec::new(DType::F32, [2])], |inputs| vec![&inputs[0] * &inputs[0]])?;
    let twice = Function::trace(&[Spec::new(DType::F32, [2])], |inputs| {
        let once = square.call(&[&inputs[0]]);
        square.call(&[&once[0]])
    })?;
    let x = Tensor::from_slice(&[2f32, 3.0], [2]);
    let y = twice.call(&[&x]);
    assert_eq!(y[0].to_vec::<f32>()?, [16.0, 81.0]);
    let loss = twice.call(&[&x])[0].sum(.., false);
    let gradient = tinyspec_core::grad(&loss, &[&x])?;
    assert_eq!(gradient[0].to_vec::<f32>()?, [32.0, 108.0]);
    Ok(())
}

#[test]
fn a_body_sees_its_inputs_only() {
    let outside = Tensor::from_slice(&[1f32], [1]);
    let error = Function::trace(&[Spec::new(DType::F32, [1])], |inputs| vec![&inputs[0] + &outside])
        .expect_err("captures a tensor");
    assert_eq!(error.kind(), Some(ErrorKind::Unsupported));
    let mut kept = None;
    let f = Function::trace(&[Spec::new(DType::F32, [1])], |inputs| {
        kept = Some(inputs[0].clone());
        inputs.to_vec()
    });
    assert!(f.is_ok());
    assert!(kept.is_some_and(|placeholder| placeholder.realize().is_err()));
}

#[test]
fn prepared_calls_write_in_place() -> Result<(), Error> {
    let f = affine()?;
    let (w, b) = (Tensor::ones([2, 3]).contiguous(), Tensor::ones([3]).contiguous());
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]);
    let run = f.prepare(&[&x, &w, &b])?;
    let mut out = run.outputs()?;
    run.call(&mut out, &[&x, &w, &b])?;
    assert_eq!(out[0].to_vec::<f32>()?, [4.0, 4.0, 4.0, 8.0, 8.0, 8.0]);
    let kept = out[0].clone();
    let y = Tensor::from_slice(&[0f32; 4], [2, 2]);
    run.call(&mut out, &[&y, &w, &b])?;
    assert_eq!(out[0].to_vec::<f32>()?, [1.0; 6]);
    assert_eq!(kept.to_vec::<f32>()?, [4.0, 4.0, 4.0, 8.0, 8.0, 8.0], "a clone keeps what it saw");
    assert_eq!(out[1].item::<f32>()?, 0.0);
    assert!(run.call(&mut out, &[&w, &w, &b]).is_err());
    assert!(run.call(&mut out[..1], &[&x, &w, &b]).is_err());
    Ok(())
}

#[test]
fn an_input_may_be_a_result() -> Result<(), Error> {
    let f = Function::trace(&[Spec::new(DType::I32, [2])], |inputs| vec![inputs[0].clone(), inputs[0].clone()])?;
    let x = Tensor::from_slice(&[4i32, 5], [2]);
    assert_eq!(f.call(&[&x])[1].to_vec::<i32>()?, [4, 5]);
    let run = f.prepare(&[&x])?;
    let mut out = run.outputs()?;
    run.call(&mut out, &[&x])?;
    assert_eq!(out[0].to_vec::<i32>()?, [4, 5]);
    assert_eq!(out[1].to_vec::<i32>()?, [4, 5]);
    Ok(())
}
