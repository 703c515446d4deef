//! The lazy tensor through its public face: values, errors with the user's line, state, gradients.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad, realize_all};
use tinyspec_ir::{DType, Dim, ErrorKind};

#[test]
fn arithmetic_and_literals() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]);
    let y = 2.0 * (&x + 1) - &x / 2.0;
    assert_eq!(y.to_vec::<f32>()?, [3.5, 5.0, 6.5, 8.0]);
    let row = Tensor::from_slice(&[10f32, 20.0], [2]);
    assert_eq!((&x + &row).to_vec::<f32>()?, [11.0, 22.0, 13.0, 24.0]);
    let i = Tensor::from_slice(&[7i32, -7, 6], [3]);
    assert_eq!((&i % 4).to_vec::<i32>()?, [3, 1, 2]);
    assert_eq!((-&i).to_vec::<i32>()?, [-7, 7, -6]);
    assert_eq!((&i & 6).to_vec::<i32>()?, [6, -7 & 6, 6]);
    assert_eq!((&i << 1).to_vec::<i32>()?, [14, -14, 12]);
    assert_eq!(i.gt(0).to_vec::<bool>()?, [true, false, true]);
    // A float literal beside integers gives floats.
    assert_eq!((&i * 0.5).dtype(), DType::F32);
    Ok(())
}

#[test]
fn methods_of_the_table() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]);
    assert_eq!(x.sum(.., false).item::<f32>()?, 21.0);
    assert_eq!(x.sum(-1, false).to_vec::<f32>()?, [6.0, 15.0]);
    assert_eq!(x.max(0, true).to_vec::<f32>()?, [4.0, 5.0, 6.0]);
    assert_eq!(x.transpose(0, 1).to_vec::<f32>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(x.reshape([3, -1]).shape(), [Dim::from(3), Dim::from(2)]);
    assert_eq!(x.matmul(x.transpose(0, 1)).to_vec::<f32>()?, [14.0, 32.0, 32.0, 77.0]);
    assert_eq!(x.narrow(1, 1, 2).to_vec::<f32>()?, [2.0, 3.0, 5.0, 6.0]);
    assert_eq!(Tensor::cat(&[&x, &x], 0).sizes()?, [4, 3]);
    assert_eq!((&x - 3.5).relu().to_vec::<f32>()?, [0.0, 0.0, 0.0, 0.5, 1.5, 2.5]);
    assert_eq!(x.argmax(1).cast(DType::I32).to_vec::<i32>()?, [2, 2]);
    assert_eq!(Tensor::arange(5).to_vec::<i32>()?, [0, 1, 2, 3, 4]);
    let total: f32 = x.softmax(1).sum(.., false).item()?;
    assert!((total - 2.0).abs() < 1e-5);
    Ok(())
}

#[test]
fn constants_and_empty_tensors() -> Result<(), Error> {
    assert_eq!(Tensor::full([2], 3).to_vec::<i32>()?, [3, 3]);
    assert_eq!(Tensor::zeros([0, 4]).to_vec::<f32>()?, [0f32; 0]);
    assert_eq!(Tensor::from_slice::<f32>(&[], [0]).sum(.., false).item::<f32>()?, 0.0);
    assert_eq!(Tensor::ones(()).item::<f32>()?, 1.0);
    Ok(())
}

#[test]
fn errors_name_the_op_and_the_line() {
    let x = Tensor::ones([2, 3]);
    let y = Tensor::ones([4, 5]);
    let line = line!() + 1;
    let z = (x.matmul(&y) + 1.0).relu();
    let error = z.to_vec::<f32>().expect_err("inner dimensions differ");
    assert_eq!(error.kind(), Some(ErrorKind::Shape), "{error}");
    let location = error.location().expect("the user's line");
    assert_eq!(location.line, line);
    assert!(location.file.ends_with("tensors.rs"));
    assert!(error.to_string().contains("matmul"), "{error}");
    assert!(Tensor::from_slice(&[1f32], [2]).realize().is_err());
    assert_eq!(x.to_vec::<f64>().expect_err("wrong dtype").kind(), Some(ErrorKind::DType));
    assert_eq!(x.item::<f32>().expect_err("six elements").kind(), Some(ErrorKind::Shape));
    assert!(matches!(x.to("nowhere").realize(), Err(Error::UnknownDevice { .. })));
    // What is meant to be a chip is answered with those that there are.
    for (name, chip) in [("sm_81", "sm_81"), ("gfx9999", "gfx9999"), ("simt/sm_42", "sm_42"), ("gfx94:1", "gfx94")] {
        let error = x.to(name).realize().expect_err("no such chip").to_string();
        assert!(error.contains(&format!("no GPU `{chip}`; there are: ")) && error.contains("sm_80"), "{name}: {error}");
    }
}

#[test]
fn assign_has_value_semantics() -> Result<(), Error> {
    let mut x = Tensor::from_slice(&[1f32, 2.0], [2]);
    let before = x.clone();
    let double = &x * 2.0;
    x.assign(&(&x + 10.0));
    assert_eq!(x.to_vec::<f32>()?, [11.0, 12.0]);
    assert_eq!(before.to_vec::<f32>()?, [1.0, 2.0]);
    assert_eq!(double.to_vec::<f32>()?, [2.0, 4.0]);
    x.assign(&Tensor::ones([1]));
    assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0]);
    x.assign(&Tensor::ones([3]));
    assert!(x.realize().is_err());
    Ok(())
}

#[test]
fn clones_share_what_is_computed() -> Result<(), Error> {
    let x = Tensor::from_slice(&[3f32], [1]) * 2.0;
    let clone = x.clone();
    x.realize()?;
    assert!(clone.is_realized());
    Ok(())
}

#[test]
fn gradients_of_a_small_network() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]);
    let w = Tensor::from_slice(&[1f32, -1.0, 0.5, 2.0], [2, 2]);
    let loss = x.matmul(&w).relu().sum(.., false);
    let gradients = grad(&loss, &[&w, &x])?;
    realize_all(&[&loss, &gradients[0], &gradients[1]])?;
    // x @ w = [[2, 3], [5, 5]], all positive.
    assert_eq!(loss.item::<f32>()?, 15.0);
    assert_eq!(gradients[0].to_vec::<f32>()?, [4.0, 4.0, 6.0, 6.0]);
    assert_eq!(gradients[1].to_vec::<f32>()?, [0.0, 2.5, 0.0, 2.5]);
    let lonely = Tensor::ones([2]).contiguous();
    let error = grad(&loss, &[&lonely]).expect_err("not connected");
    assert_eq!(error.kind(), Some(ErrorKind::Gradient));
    assert!(grad(&x, &[&w]).is_err());
    Ok(())
}

#[test]
fn random_tensors_follow_the_seed() -> Result<(), Error> {
    // Other tests draw keys as well, so only the shape of the distribution is looked at here.
    let x = Tensor::randn([1000]).to_vec::<f32>()?;
    let mean = x.iter().sum::<f32>() / 1000.0;
    let variance = x.iter().map(|x| x * x).sum::<f32>() / 1000.0 - mean * mean;
    assert!(mean.abs() < 0.15 && (variance - 1.0).abs() < 0.2, "mean {mean}, variance {variance}");
    let u = Tensor::uniform([1000], -1.0, 3.0).to_vec::<f32>()?;
    assert!(u.iter().all(|u| (-1.0..3.0).contains(u)));
    assert_ne!(Tensor::randn([8]).to_vec::<f32>()?, Tensor::randn([8]).to_vec::<f32>()?);
    Ok(())
}

#[test]
fn long_chains_are_no_deeper_than_short_ones() -> Result<(), Error> {
    let mut x = Tensor::from_slice(&[0f32], [1]);
    for _ in 0..100_000 {
        x += 1.0;
    }
    drop(x);
    Ok(())
}

#[test]
fn printing_shows_values() {
    let x = Tensor::from_slice(&[1i32, 2, 3, 4], [2, 2]);
    assert_eq!(format!("{x:?}"), "Tensor<i32, [2, 2]> [[1, 2], [3, 4]]");
    assert_eq!(format!("{x}"), "[[1, 2],\n [3, 4]]");
    assert_eq!(format!("{:?}", Tensor::arange(9)), "Tensor<i32, [9]> [0, 1, 2, …, 6, 7, 8]");
    assert_eq!(format!("{:?}", Tensor::full([1], 0.1f32)), "Tensor<f32, [1]> [0.1]");
}

#[test]
fn a_page_is_laid_out_as_numpy_does() {
    let shown = |tensor: Tensor, page: &str| assert_eq!(tensor.to_string(), page);
    shown(Tensor::arange(8), "[0, 1, 2, 3, 4, 5, 6, 7]");
    shown(Tensor::scalar(2.5f32), "2.5");
    shown(Tensor::zeros([0]), "[]");
    let floats = |data: &[f32]| Tensor::from_slice(data, [data.len()]);
    shown(floats(&[1.0, -22.5, 0.125]), "[  1.   , -22.5  ,   0.125]");
    shown(floats(&[0.1, 1.0 / 3.0]), "[0.1       , 0.33333334]");
    shown(floats(&[f32::NAN, 1.0, f32::NEG_INFINITY]), "[ nan,   1., -inf]");
    shown(floats(&[1e10, -2.5]), "[ 1.0e+10, -2.5e+00]");
    shown(floats(&[1e-5, 0.0]), "[1.e-05, 0.e+00]");
    // One digit would do for the first of these, and as many as the second needs are shown.
    shown(floats(&[1.19e-7, 9.77e-4]).cast(DType::F16), "[1.19e-07, 9.77e-04]");
    shown(floats(&[0.5, 1.234_567_8e-5]), "[5.0000000e-01, 1.2345678e-05]");
    shown(floats(&[0.1, 1.234_567_8e-5]), "[1.0000000e-01, 1.2345678e-05]");
    shown(floats(&[65504.0, 1.0]).cast(DType::F16), "[6.55e+04, 1.00e+00]");
    shown(floats(&[448.0, 0.1]).cast(DType::F8E4M3), "[4.48e+02, 1.02e-01]");
    shown(floats(&[448.0, 2.5]).cast(DType::F8E4M3), "[448. ,   2.5]");
    assert_eq!(format!("{:.2}", floats(&[1.0, -2.346])), "[ 1.00, -2.35]");
    shown(Tensor::from_slice(&[true, false], [2]), "[ True, False]");
    shown(Tensor::arange(8).reshape([2, 2, 2]), "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]");
    let large = Tensor::arange(4000).reshape([40, 100]);
    let lines: Vec<String> = large.to_string().lines().map(str::to_string).collect();
    assert_eq!(lines[0], "[[   0,    1,    2, ...,   97,   98,   99],");
    assert_eq!(lines[3..5], [" ...,".to_string(), " [3700, 3701, 3702, ..., 3797, 3798, 3799],".to_string()]);
    // A long row goes on below its first element.
    let row = Tensor::arange(40).to_string();
    assert!(row.lines().count() == 3 && row.lines().all(|line| line.len() <= 75), "{row}");
    assert_eq!(row.lines().nth(1).map(|line| &line[..4]), Some(" 18,"));
}

#[test]
fn impossible_sizes_are_errors() {
    for (tensor, expected) in [
        (Tensor::zeros([1i64 << 40, 1 << 40]), "has too many elements"),
        (Tensor::zeros([-3i64, 2]), "is negative"),
        (Tensor::zeros([2, 0]).argmax(-1), "is empty"),
        (Tensor::from_slice(&[1f32], ()).softmax(1), "a scalar has no axes"),
    ] {
        let error = tensor.to_vec::<f32>().unwrap_err().to_string();
        assert!(error.contains(expected), "{error} does not say {expected}");
    }
}

#[test]
fn a_scalar_is_a_row_of_one_element() -> Result<(), Error> {
    let x = Tensor::scalar(2.5f32);
    for axis in [0, -1] {
        for (name, result, wanted) in [
            ("softmax", x.softmax(axis), 1.0),
            ("softmin", x.softmin(axis), 1.0),
            ("log_softmax", x.log_softmax(axis), 0.0),
            ("cumsum", x.cumsum(axis), 2.5),
            ("cumprod", x.cumprod(axis), 2.5),
            ("cummax", x.cummax(axis), 2.5),
            ("cummin", x.cummin(axis), 2.5),
            ("logcumsumexp", x.logcumsumexp(axis), 2.5),
            ("sort", x.sort(axis, true)[0].clone(), 2.5),
        ] {
            assert!(result.shape().is_empty() && result.item::<f32>()? == wanted, "{name} along {axis}: {result}");
        }
        for (name, result) in [
            ("argmax", x.argmax(axis)),
            ("argmin", x.argmin(axis)),
            ("argsort", x.argsort(axis, false)),
            ("sort", x.sort(axis, false)[1].clone()),
        ] {
            assert!(result.shape().is_empty() && result.item::<i32>()? == 0, "{name} along {axis}: {result}");
        }
    }
    let slope = grad(&(x.cumsum(0) * &x.sort(0, false)[0]), &[&x])?[0].item::<f32>()?;
    assert_eq!(slope, 5.0);
    assert!(x.cumsum(1).error().is_some() && x.softmax(-2).error().is_some());
    Ok(())
}

#[test]
fn greatest_and_least_of_nothing() -> Result<(), Error> {
    for device in ["interpreter", "cpu"] {
        if tinyspec_core::execute::device(device).is_err() {
            continue;
        }
        with_default_device(device, || -> Result<(), Error> {
            let nothing = Tensor::from_slice::<bool>(&[], [0]);
            assert!(!nothing.any(.., false).item::<bool>()?, "any on {device}");
            assert!(nothing.all(.., false).item::<bool>()?, "all on {device}");
            assert!(!Tensor::zeros([0]).any(.., false).item::<bool>()?, "any of floats on {device}");
            let rows = Tensor::from_slice::<bool>(&[], [0, 3]);
            assert_eq!(rows.any(0, false).to_vec::<bool>()?, [false; 3], "any on {device}");
            assert_eq!(rows.all(0, false).to_vec::<bool>()?, [true; 3], "all on {device}");
            assert_eq!(rows.max(0, false).to_vec::<bool>()?, [false; 3], "max on {device}");
            assert_eq!(rows.min(0, false).to_vec::<bool>()?, [true; 3], "min on {device}");
            let bytes = Tensor::from_slice::<i8>(&[], [0, 2]);
            assert_eq!(bytes.max(0, false).to_vec::<i8>()?, [i8::MIN; 2], "max on {device}");
            assert_eq!(bytes.min(0, false).to_vec::<i8>()?, [i8::MAX; 2], "min on {device}");
            // More elements than any tile, one of them true, and a length that no vector divides.
            let mut flags = vec![false; 1003];
            assert!(!Tensor::from_slice(&flags, [1003]).any(.., false).item::<bool>()?, "any on {device}");
            flags[777] = true;
            let flags = Tensor::from_slice(&flags, [1003]);
            assert!(flags.any(.., false).item::<bool>()?, "any on {device}");
            assert!(!flags.all(.., false).item::<bool>()?, "all on {device}");
            assert!(flags.logical_not().any(.., false).item::<bool>()?, "any on {device}");
            Ok(())
        })?;
    }
    Ok(())
}
