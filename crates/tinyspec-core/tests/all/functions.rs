//! Functions traced at run time, and prepared calls.

use crate::support::on_each_device;
use tinyspec_core::function::named;
use tinyspec_core::{Error, Function, Spec, Tensor, grad};
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
fn a_tensor_of_outside_is_named_where_it_is_used() -> Result<(), Error> {
    let line = line!() + 1;
    let outside = Tensor::from_slice(&[1f32, 2.0], [2]) + 1.0;
    outside.realize()?;
    let error = Function::trace(&[Spec::new(DType::F32, [2])], |inputs| {
        let twice = &inputs[0] + &inputs[0];
        vec![twice * &outside]
    });
    let error = error.expect_err("captures a tensor");
    let text = error.to_string();
    assert!(text.contains(&format!("f32 [2], made at {}:{line}:", file!())), "{text}");
    assert_eq!(error.location().map(|location| location.line), Some(line + 4), "{text}");
    let drawn = Function::trace(&[Spec::new(DType::F32, [2])], |inputs| vec![&inputs[0] + Tensor::rand([2])]);
    assert_eq!(drawn.expect_err("a key").kind(), Some(ErrorKind::Unsupported));
    let drawn = Function::trace(&[Spec::new(DType::F32, [2])], |_| vec![Tensor::randperm(2)]);
    assert_eq!(drawn.expect_err("an order").kind(), Some(ErrorKind::Unsupported));
    Ok(())
}

/// On each device, called, prepared, printed and read again, and the gradient of it.
#[test]
fn numbers_in_a_body_are_constants() -> Result<(), Error> {
    let trace = || {
        Function::trace(&[Spec::new(DType::F32, [2, 3])], |inputs| {
            let weights = Tensor::from_slice(&[0.5f32, 2.0, -1.0, 3.0, 0.0, 1.5], [2, 3]);
            let rows = Tensor::from_vec(vec![1i64, 0, 1], [3]);
            let mask = Tensor::from_slice(&[true, false, true], [3]);
            let product = &inputs[0] * weights;
            let picked = product.index_select(0, &rows);
            vec![mask.where_(&picked, Tensor::from_slice(&[7f32], [1])) * Tensor::scalar(2f32)]
        })
    };
    let want = [8.0, 14.0, 18.0, 1.0, 14.0, -6.0, 8.0, 14.0, 18.0];
    let f = trace()?;
    let read: Function = f.to_string().parse()?;
    assert_eq!(read.to_string(), f.to_string());
    on_each_device(|| {
        let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0 / 3.0, 5.0, 6.0], [2, 3]);
        for f in [&f, &read, &trace()?] {
            assert_eq!(f.call(&[&x])[0].to_vec::<f32>()?, want);
            let mut out = [Tensor::zeros([3, 3])];
            f.prepare(&[&x])?.call(&mut out, &[&x])?;
            assert_eq!(out[0].to_vec::<f32>()?, want);
            let slopes = grad(&f.call(&[&x])[0].sum(.., false), &[&x])?;
            assert_eq!(slopes[0].to_vec::<f32>()?, [1.0, 0.0, -2.0, 12.0, 0.0, 6.0]);
            let backward = f.backward()?.call(&[&x, &Tensor::ones([3, 3])]);
            assert_eq!(backward[0].to_vec::<f32>()?, [1.0, 0.0, -2.0, 12.0, 0.0, 6.0]);
        }
        Ok(())
    });
    Ok(())
}

#[test]
fn constants_of_each_dtype() -> Result<(), Error> {
    let constants = || {
        let bytes = [0u8, 0x3c, 0, 0xc0];
        vec![
            Tensor::from_slice(&[true, false, true], [3]),
            Tensor::from_slice(&[1u8, 255], [2, 1]),
            Tensor::from_slice(&[-3i16, 7], [1, 2]),
            Tensor::from_slice(&[u32::MAX, 7], [2]),
            Tensor::from_slice(&[i64::MIN, 7], [2]),
            Tensor::from_slice(&[0.1f64, f64::NEG_INFINITY], [2]),
            Tensor::from_slice(&[-0.0f32], ()),
            Tensor::from_slice(&[2.5f32], [1, 1]),
            Tensor::from_slice::<f32>(&[], [0, 3]),
            Tensor::from_bytes(DType::F16, &bytes, &[2]),
            Tensor::from_bytes(DType::BF16, &bytes, &[2]),
            Tensor::from_bytes(DType::F8E4M3, &bytes, &[2, 2]),
        ]
    };
    on_each_device(|| {
        let f = Function::trace(&[], |_| constants())?;
        for (got, want) in f.call(&[]).iter().zip(constants()) {
            assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()));
            assert_eq!(got.to_bytes()?, want.to_bytes()?, "{} {:?}", want.dtype(), want.shape());
        }
        Ok(())
    });
    Ok(())
}

/// Constants that the body reads, constants that it returns, and their gradients.
#[test]
fn constants_are_tensors_too() -> Result<(), Error> {
    let mut kept = None;
    let f = Function::trace(&[Spec::new(DType::F32, [2])], |inputs| {
        let weights = Tensor::from_slice(&[3f32, 4.0], [2]);
        kept = Some(weights.clone());
        let loss = (&inputs[0] * &weights * &weights).sum(.., false);
        grad(&loss, &[&weights, &inputs[0]]).expect("gradients")
    })?;
    let slopes = f.call(&[&Tensor::from_slice(&[1f32, 10.0], [2])]);
    assert_eq!(slopes[0].to_vec::<f32>()?, [6.0, 80.0]);
    assert_eq!(slopes[1].to_vec::<f32>()?, [9.0, 16.0]);
    assert_eq!(kept.expect("a constant").to_vec::<f32>()?, [3.0, 4.0]);
    Ok(())
}

#[test]
fn large_constants_are_refused_where_they_are_written() -> Result<(), Error> {
    let trace = |count: usize| {
        Function::trace(&[Spec::new(DType::F32, [count])], |inputs| {
            vec![&inputs[0] + Tensor::from_vec(vec![1f32; count], [count])]
        })
    };
    let line = line!() - 3;
    let most = 1 << 18;
    assert_eq!(trace(most)?.call(&[&Tensor::ones([most])])[0].sum(.., false).item::<f32>()?, 2.0 * most as f32);
    let error = trace(most + 1).expect_err("more than 1 MiB");
    assert_eq!(error.kind(), Some(ErrorKind::Unsupported));
    assert!(error.to_string().contains("1 MiB"), "{error}");
    assert_eq!(error.location().map(|location| location.line), Some(line));
    Ok(())
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
