//! Numbers where formats end: narrow indices, infinities, signed zeros, literals, ramps.

use crate::support::on_each_device;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Argument, Element, Error, Tensor, grad};
use tinyspec_ir::{DType, ErrorKind};

fn vector<T: Element>(data: &[T]) -> Tensor {
    Tensor::from_slice(data, [data.len()])
}

#[test]
fn narrow_indices_reach_long_axes() {
    on_each_device(|| {
        assert_eq!(vector(&[5u8]).one_hot(300).sum(.., false).item::<i32>()?, 1);
        let (long, shorter) = (Tensor::arange(300), Tensor::arange(200));
        assert_eq!(long.gather(vector(&[5u8]), 0).to_vec::<i32>()?, [5]);
        assert_eq!(long.gather(vector(&[5i8, -3, 127]), 0).to_vec::<i32>()?, [5, 0, 127]);
        assert_eq!(long.index0(vector(&[-3i8])).to_vec::<i32>()?, [297]);
        assert_eq!(shorter.index0(vector(&[-3i8])).to_vec::<i32>()?, [197]);
        let table = Tensor::ones([300, 2]).contiguous();
        let loss = vector(&[5u8]).embedding(&table).sum(.., false);
        assert_eq!(grad(&loss, &[&table])?[0].sum(0, false).to_vec::<f32>()?, [1.0, 1.0]);
        let added = Tensor::zeros([300]).scatter_add(vector(&[5u8]), vector(&[1f32]), 0);
        assert_eq!(added.sum(.., false).item::<f32>()?, 1.0);
        let logits = Tensor::arange(300).cast(DType::F32).reshape([1, 300]) * 0.01;
        let narrow = logits.cross_entropy(vector(&[5u8]), "mean", 0.0, -100).item::<f32>()?;
        let wide = logits.cross_entropy(vector(&[5i32]), "mean", 0.0, -100).item::<f32>()?;
        assert_eq!(narrow, wide);
        // -100 in 8 bits is 156.
        let narrow = logits.cross_entropy(vector(&[156u8]), "sum", 0.0, -100).item::<f32>()?;
        let wide = logits.cross_entropy(vector(&[156i32]), "sum", 0.0, -100).item::<f32>()?;
        assert!(narrow > 0.0 && narrow == wide, "{narrow} {wide}");
        Ok(())
    });
}

#[test]
fn scans_of_bools() {
    on_each_device(|| {
        let one = vector(&[false, false, true, false]);
        assert_eq!(one.cummax(0).to_vec::<bool>()?, [false, false, true, true]);
        let gap = vector(&[true, true, false, true]);
        assert_eq!(gap.cummin(0).to_vec::<bool>()?, [true, true, false, false]);
        Ok(())
    });
}

#[test]
fn cosines_of_large_arguments() {
    let x: [f32; 8] = [0.0, 1.5707964, 20000.0, 1e5, 1e8, -1e8, 3.4e38, 1e-40];
    on_each_device(|| {
        let angle = vector(&x);
        let cosine = angle.cos();
        let (sine_slope, cosine_slope) =
            (grad(&angle.sin().sum(.., false), &[&angle])?, grad(&cosine.sum(.., false), &[&angle])?);
        let results = (cosine.to_vec::<f32>()?, sine_slope[0].to_vec::<f32>()?, angle.tan().to_vec::<f32>()?);
        let slopes = cosine_slope[0].to_vec::<f32>()?;
        for (index, &x) in x.iter().enumerate() {
            let (sine, cosine) = f64::from(x).sin_cos();
            let close = |got: f32, want: f64| (f64::from(got) - want).abs() <= 2e-7 * want.abs();
            // Doubled, the largest arguments leave the format: there the interpreter's is exact to the last place of 1.
            let close_to_cosine =
                |got: f32| close(got, cosine) || x.abs() > 1.7e38 && (f64::from(got) - cosine).abs() < 2e-7;
            assert!(close_to_cosine(results.0[index]), "cos({x}) = {}, not {cosine}", results.0[index]);
            assert!(close_to_cosine(results.1[index]), "sin'({x}) = {}, not {cosine}", results.1[index]);
            assert!(close(slopes[index], -sine), "cos'({x}) = {}, not {}", slopes[index], -sine);
            assert!((f64::from(results.2[index]) * cosine - sine).abs() <= 1e-6, "tan({x}) = {}", results.2[index]);
        }
        let wide = vector(&[1e17, 20000.0, 1e300]).cos().to_vec::<f64>()?;
        for (got, want) in wide.into_iter().zip([1e17f64.cos(), 20000f64.cos(), 1e300f64.cos()]) {
            assert!((got - want).abs() <= 1e-15, "{got} {want}");
        }
        Ok(())
    });
}

#[test]
fn literals_have_to_fit() {
    let bytes = vector(&[50u8, 1]);
    let refused = |tensor: Tensor, parts: [&str; 3]| {
        let line = line!();
        let error = tensor.realize().expect_err("the literal does not fit");
        assert_eq!(error.kind(), Some(ErrorKind::Value), "{error}");
        assert!(error.location().is_some_and(|location| location.line > line), "{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "{error} does not say {part}");
        }
    };
    refused(bytes.lt(300), ["300", "u8", "DType::I16"]);
    refused(bytes.ge(-1), ["-1", "u8", "DType::I16"]);
    refused(vector(&[1_000_000_000i32]).lt(5_000_000_000i64), ["5000000000", "i32", "DType::I64"]);
    refused(bytes.maximum(-1), ["-1", "u8", "DType::I16"]);
    refused(&bytes + 300, ["300", "u8", "DType::I16"]);
    refused(300 - &bytes, ["300", "u8", "DType::I16"]);
    refused(Tensor::full_of([2], 256, DType::U8), ["256", "u8", "DType::I16"]);
    refused(Tensor::ones([2]).cast(DType::F16) * 1e6, ["1000000.0", "f16", "DType::F32"]);
    assert_eq!((&bytes + 205).to_vec::<u8>().unwrap(), [255, 206]);
    assert_eq!(vector(&[i64::MAX]).eq(i64::MAX).to_vec::<bool>().unwrap(), [true]);
    assert_eq!(vector(&[1f32]).lt(f64::INFINITY).to_vec::<bool>().unwrap(), [true]);
}

/// Beside a condition, a number is like what stands for the other choice.
#[test]
fn a_number_that_is_chosen_takes_the_dtype_of_the_other_choice() -> Result<(), Error> {
    let (x, mask) = (vector(&[1.5f64, -2.0]), vector(&[true, false]));
    assert_eq!(mask.where_(0.1, &x).to_vec::<f64>()?, [0.1, -2.0]);
    assert_eq!(mask.where_(x.clone(), 1e300).to_vec::<f64>()?, [1.5, 1e300]);
    assert_eq!(mask.where_(0.5, x.cast(DType::F16)).dtype(), DType::F16);
    assert_eq!(mask.where_(1i64 << 40, vector(&[1i64, 2])).to_vec::<i64>()?, [1 << 40, 2]);
    assert_eq!(mask.where_(vector(&[1u64, 2]), u64::MAX).to_vec::<u64>()?, [1, u64::MAX]);
    assert_eq!(mask.where_(7, vector(&[1i8, 2])).to_vec::<i8>()?, [7, 2]);
    assert_eq!(mask.where_(0.5, vector(&[1i32, 2])).to_vec::<f32>()?, [0.5, 2.0]);
    assert_eq!(mask.where_(1, 0.5).to_vec::<f32>()?, [1.0, 0.5]);
    // Two numbers have only their own types.
    assert_eq!(mask.where_(5_000_000_000i64, 0i64).to_vec::<i64>()?, [5_000_000_000, 0]);
    assert_eq!(mask.where_(200u8, 1u8).to_vec::<u8>()?, [200, 1]);
    assert_eq!(mask.where_(true, false).to_vec::<bool>()?, [true, false]);
    assert_eq!(mask.where_(1, 2).dtype(), DType::I32);
    assert_eq!(mask.where_(0.1, 1f32).dtype(), DType::F32);
    let refused = mask.where_(1e300, 0.0).error().expect("1e300 is no f32").to_string();
    assert!(refused.contains("where_: 1e300 is not a value of f32") && !refused.contains("cast"), "{refused}");
    let refused = mask.where_(300, vector(&[1u8, 2])).realize().expect_err("300 beside u8").to_string();
    assert!(refused.contains("300 is not a value of u8"), "{refused}");
    Ok(())
}

/// f32 holds no whole number beyond 2²⁴ exactly.
#[test]
fn sums_and_means_of_whole_numbers_are_exact() -> Result<(), Error> {
    let large = vector(&[16_777_217i32, 16_777_221, -3, 0]);
    assert_eq!(large.nansum(.., false).item::<i32>()?, 33_554_435);
    assert_eq!(vector(&[true, true]).nansum(.., false).item::<i32>()?, 2);
    let mean = |x: &Tensor, value: &Tensor| x.scatter_reduce(vector(&[0i32, 0, 1, 1]), value, 0, "mean", false);
    assert_eq!(mean(&vector(&[0i32, 0, 5]), &large).to_vec::<i32>()?, [16_777_219, -2, 5]);
    let bytes = vector(&[200u8, 100, 1, 2]);
    assert_eq!(mean(&vector(&[0u8, 0, 5]), &bytes).to_vec::<u8>()?, [150, 1, 5]);
    Ok(())
}

#[test]
fn sums_of_exponentials_at_infinities() {
    let (inf, low) = (f32::INFINITY, f32::NEG_INFINITY);
    on_each_device(|| {
        let nothing = vector(&[low, low]);
        let sum = nothing.logsumexp(.., false);
        assert_eq!(grad(&sum, &[&nothing])?[0].to_vec::<f32>()?, [0.0, 0.0]);
        assert_eq!(sum.item::<f32>()?, low);
        assert_eq!(vector(&[inf, 0.0, 0.0]).logsumexp(.., false).item::<f32>()?, inf);
        assert_eq!(vector(&[low, 3.0]).logsumexp(.., false).item::<f32>()?, 3.0);
        assert!(vector(&[f32::NAN, 3.0]).logsumexp(.., false).item::<f32>()?.is_nan());
        let running = vector(&[low, low, 2.0, inf]).logcumsumexp(0).to_vec::<f32>()?;
        assert_eq!(running, [low, low, 2.0, inf]);
        let (x, y) = (vector(&[low, inf, inf, low, 1.0]), vector(&[low, inf, low, 2.0, 1.0]));
        assert_eq!(x.logaddexp(&y).to_vec::<f32>()?, [low, inf, inf, 2.0, 1.6931472]);
        let slopes = grad(&x.logaddexp(&y).sum(.., false), &[&x])?[0].to_vec::<f32>()?;
        assert_eq!(slopes, [0.5, 0.5, 1.0, 0.0, 0.5]);
        let probability = vector(&[0f32, 1.0, 0.5]);
        let loss = probability.binary_crossentropy(vector(&[0f32, 1.0, 1.0]), "none");
        let slopes = grad(&loss.sum(.., false), &[&probability])?[0].to_vec::<f32>()?;
        assert_eq!(slopes, [1.0, -1.0, -2.0]);
        let losses = loss.to_vec::<f32>()?;
        assert!(losses[..2] == [0.0, 0.0] && (losses[2] - std::f32::consts::LN_2).abs() < 1e-6, "{losses:?}");
        Ok(())
    });
}

#[test]
fn remainders_of_the_least_integer() {
    on_each_device(|| {
        let x = vector(&[-1i8, 7, -7, -128, -128, 5, -5]);
        let y = vector(&[-128i8, -128, 3, -1, 0, 0, -3]);
        assert_eq!(x.fmod(&y).to_vec::<i8>()?, [-1, 7, -1, 0, -128, 5, -2]);
        assert_eq!(vector(&[i32::MIN]).fmod(3).to_vec::<i32>()?, [-2]);
        assert_eq!(vector(&[7u8, 9]).fmod(4).to_vec::<u8>()?, [3, 1]);
        Ok(())
    });
}

#[test]
fn remainders_of_floats() {
    on_each_device(|| {
        let show = |x: Tensor| Ok::<_, Error>(format!("{:?}", x.to_vec::<f32>()?));
        let x = vector(&[1f32, -0.0, 0.0, -3.0, f32::INFINITY, 5.0]);
        assert_eq!(show(x.fmod(0.0))?, "[NaN, NaN, NaN, NaN, NaN, NaN]");
        assert_eq!(show(x.modulo(0.0))?, "[NaN, NaN, NaN, NaN, NaN, NaN]");
        assert_eq!(show(x.fmod(2.0))?, "[1.0, -0.0, 0.0, -1.0, NaN, 1.0]");
        assert_eq!(show(x.narrow(0, 3, 3).modulo(2.0))?, "[1.0, NaN, 1.0]");
        assert_eq!(show(x.fmod(vector(&[0f32, 2.0, 2.0, -2.0, 2.0, -0.0])))?, "[NaN, -0.0, 0.0, -1.0, NaN, NaN]");
        Ok(())
    });
}

/// Of all sizes of quotients, also where only some lanes of a vector have a great one.
#[test]
fn remainders_of_floats_are_exact() {
    let mut state = 5u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    let unit = |bits: u32| bits as f32 / u32::MAX as f32;
    let (x, y): (Vec<f32>, Vec<f32>) = (0..2048)
        .map(|number| match (number, random(), random()) {
            (0..512, x, y) => (unit(x) * 100.0 - 50.0, unit(y) * 3.0 - 1.0),
            (512..1024, x, y) => (f32::from_bits(x), f32::from_bits(y)),
            (1024..1536, x, y) => ((x % 100) as f32 * 0.1, (y % 10) as f32 * 0.1),
            (_, x, y) => (f32::from_bits(x), unit(y)),
        })
        .unzip();
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    on_each_device(|| {
        let found = vector(&x).fmod(vector(&y)).to_vec::<f32>()?;
        for (number, (&x, &y)) in x.iter().zip(&y).enumerate() {
            assert!(same(found[number].into(), (x % y).into()), "{x:?} % {y:?} is {:?}", found[number]);
        }
        // Quotients beyond all floats, too.
        let wide = |from: &[f32]| from.iter().map(|&x| f64::from(x).powi(5)).collect::<Vec<f64>>();
        let (x, y) = (wide(&x), wide(&y));
        let found = vector(&x).fmod(vector(&y)).to_vec::<f64>()?;
        for (number, (&x, &y)) in x.iter().zip(&y).enumerate() {
            assert!(same(found[number], x % y), "{x:?} % {y:?} is {:?}", found[number]);
        }
        Ok(())
    });
}

#[test]
fn bounds_in_the_wrong_order_and_of_no_number() {
    on_each_device(|| {
        let x = vector(&[-5f32, 1.0, 2.5, 9.0, f32::NAN]);
        let show = |x: Tensor| Ok::<_, Error>(format!("{:?}", x.to_vec::<f32>()?));
        assert_eq!(show(x.clip(3.0, 1.0))?, "[1.0, 1.0, 1.0, 1.0, NaN]");
        assert_eq!(show(x.clip(1.0, 3.0))?, "[1.0, 1.0, 2.5, 3.0, NaN]");
        for (min, max) in [(f64::NAN, 1.0), (0.0, f64::NAN)] {
            assert_eq!(show(x.clip(min, max))?, "[NaN, NaN, NaN, NaN, NaN]");
        }
        assert_eq!(vector(&[-5i32, 2, 9]).clip(3.0, 1.0).to_vec::<i32>()?, [1, 1, 1]);
        let error = vector(&[1i32]).clip(f64::NAN, 1.0).error().expect("nan is not a whole number").to_string();
        assert!(error.contains("clip: from NaN to 1"), "{error}");
        // nan stands behind all numbers.
        let places = vector(&[1f32, 2.0, 3.0]).searchsorted(vector(&[f32::NAN, 2.0]), false);
        assert_eq!(places.to_vec::<i32>()?, [3, 1]);
        let long = Tensor::arange(1000).cast(DType::F32);
        assert_eq!(vector(&[f32::NAN, 0.5]).bucketize(long, true).to_vec::<i32>()?, [1000, 1]);
        let losses = vector(&[0f32, 1.0]).binary_crossentropy(vector(&[1f32, 0.0]), "none");
        assert_eq!(losses.to_vec::<f32>()?, [100.0, 100.0]);
        Ok(())
    });
}

#[test]
fn ramps_of_integers() {
    on_each_device(|| {
        let eighths = Tensor::linspace(0.0, 4.0, 9, DType::I32);
        assert_eq!(eighths.to_vec::<i32>()?, [0, 0, 1, 1, 2, 2, 3, 3, 4]);
        assert_eq!(Tensor::linspace(-3.0, 4.0, 3, DType::I32).to_vec::<i32>()?, [-3, 0, 4]);
        assert_eq!(Tensor::linspace(0.0, 49.0, 50, DType::U8).to_vec::<u8>()?, (0..50).collect::<Vec<u8>>());
        assert_eq!(Tensor::arange_of(2.0, 6.0, 2.0, DType::I64).to_vec::<i64>()?, [2, 4]);
        assert_eq!(Tensor::arange_of(1.0, 0.0, -0.5, DType::F32).to_vec::<f32>()?, [1.0, 0.5]);
        let arange = |start: f64, stop: f64, step: f64, dtype: DType| {
            let [start, stop, step] = [start, stop, step].map(Argument::Float);
            Tensor::call("arange", &[start, stop, step, Argument::DType(dtype)]).map(|mut results| results.remove(0))
        };
        assert_eq!(arange(5.0, 0.0, -2.0, DType::U8)?.to_vec::<u8>()?, [5, 3, 1]);
        assert_eq!(arange(0.0, 2.0, 0.5, DType::I32)?.to_vec::<i32>()?, [0, 0, 1, 1]);
        assert_eq!(arange(0.0, 2.0, 0.5, DType::F32)?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 1.5]);
        assert_eq!(arange(0.0, 300.0, 1.0, DType::U8).expect_err("299 does not fit u8").kind(), Some(ErrorKind::Value));
        Ok(())
    });
}

#[test]
fn long_ramps() -> Result<(), Error> {
    let ramp = Tensor::arange(100_001);
    assert_eq!(ramp.to_vec::<i32>()?, (0..100_001).collect::<Vec<_>>());
    let long = Tensor::arange(3_000_000_000i64);
    assert_eq!(long.dtype(), DType::I64);
    assert_eq!(long.narrow(0, 2_999_999_990, 10).to_vec::<i64>()?, (2_999_999_990..3_000_000_000).collect::<Vec<_>>());
    assert_eq!(
        Tensor::arange(1_000_000_000).narrow(0, 65_530, 10).to_vec::<i32>()?,
        (65_530..65_540).collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn zeros_have_signs() {
    on_each_device(|| {
        let x = vector(&[-0f32, 0.0, -0.4, 0.4, -0.5, 1.5, -2.5]);
        let shown = |tensor: Tensor| Ok::<_, Error>(format!("{:?}", tensor.to_vec::<f32>()?));
        assert_eq!(shown(x.abs())?, "[0.0, 0.0, 0.4, 0.4, 0.5, 1.5, 2.5]");
        assert_eq!(shown(x.round())?, "[-0.0, 0.0, -0.0, 0.0, -0.0, 2.0, -2.0]");
        assert_eq!(shown(x.copysign(vector(&[1f32])))?, "[0.0, 0.0, 0.4, 0.4, 0.5, 1.5, 2.5]");
        assert_eq!(vector(&[i8::MIN, -3, 3]).abs().to_vec::<i8>()?, [i8::MIN, 3, 3]);
        Ok(())
    });
}

#[test]
fn uniform_numbers_stay_below_the_upper_bound() -> Result<(), Error> {
    // The numbers of f32 from 2^24 on are 2 apart, so half of the draws round up to the bound.
    let drawn = Tensor::uniform([1000], 16_777_216.0, 16_777_218.0).to_vec::<f32>()?;
    assert!(drawn.iter().all(|&x| x == 16_777_216.0), "{:?}", &drawn[..8]);
    assert!(Tensor::uniform([4], 2.0, 2.0).to_vec::<f32>()? == [2.0; 4]);
    for (low, high) in [(f64::NEG_INFINITY, 1.0), (2.0, 1.0), (0.0, f64::NAN), (-3e38, 3e38)] {
        let error = Tensor::uniform([4], low, high).realize().expect_err("no interval").kind();
        assert_eq!(error, Some(ErrorKind::Value), "{low} {high}");
    }
    Ok(())
}

#[test]
fn a_label_that_is_no_class_is_no_loss() {
    on_each_device(|| {
        let logits = Tensor::arange(12).cast(DType::F32).reshape([4, 3]) * 0.25;
        let weight = vector(&[1f32, 2.0, 3.0]);
        let is_nan =
            |losses: &Tensor| Ok::<Vec<bool>, Error>(losses.to_vec::<f32>()?.iter().map(|x| x.is_nan()).collect());
        let labels = vector(&[2i32, 3, -1, -100]);
        let all = [
            logits.cross_entropy(&labels, "none", 0.0, -100),
            logits.cross_entropy(&labels, "none", 0.1, -100),
            logits.cross_entropy_weight(&labels, &weight, "none", 0.1, -100),
            logits.cross_entropy_weight(&labels, &weight, "none", 0.0, -100),
            logits.nll_loss(&labels, "none"),
            logits.nll_loss_weight(&labels, &weight, "none"),
        ];
        for losses in &all {
            assert_eq!(is_nan(losses)?, [false, true, true, false]);
            assert_eq!(losses.to_vec::<f32>()?[3], 0.0);
        }
        assert_eq!(is_nan(&logits.multi_margin_loss(&labels, "none", 1.0, 1.0))?, [false, true, true, true]);
        // A list of classes ends at its first negative number.
        let lists = vector(&[2i32, 0, -1, 0, 3, 1, -1, 3, 7, 1, -1, 5]).reshape([4, 3]);
        assert_eq!(is_nan(&logits.multilabel_margin_loss(&lists, "none"))?, [false, true, false, false]);
        assert!(logits.cross_entropy(&labels, "mean", 0.0, -100).item::<f32>()?.is_nan());
        // Another number to ignore, and labels whose dtype has no negative ones.
        assert_eq!(is_nan(&logits.cross_entropy(&labels, "none", 0.0, -1))?, [false, true, false, true]);
        let narrow = logits.cross_entropy(vector(&[0u8, 3, 255, 2]), "none", 0.0, 255);
        assert_eq!(is_nan(&narrow)?, [false, true, false, false]);
        let wide = logits.cross_entropy(vector(&[0i64, 1 << 40, i64::MIN, i64::MAX]), "none", 0.0, -100);
        assert_eq!(is_nan(&wide)?, [false, true, true, true]);
        // What is ignored adds nothing to the gradient.
        let loss = logits.cross_entropy(vector(&[2i32, 1, -100, -100]), "sum", 0.0, -100);
        let slopes = grad(&loss, &[&logits])?[0].to_vec::<f32>()?;
        assert!(slopes[..6].iter().all(|slope| slope.is_finite() && *slope != 0.0));
        assert_eq!(slopes[6..], [0.0; 6]);
        Ok(())
    });
}

/// Numbers whose squares, or whose sums, f32 does not hold.
#[test]
fn deviations_and_directions_near_the_ends_of_f32() {
    on_each_device(|| {
        for unit in [3e38f32, 1e30, 1.0, 1e-30, 1e-38] {
            let x = vector(&[unit, -unit, unit, unit]);
            let close = |got: f32, want: f64| (f64::from(got) - want).abs() <= 1e-6 * want.abs();
            let unit = f64::from(unit);
            let std = x.std(0, 0, false).item::<f32>()?;
            assert!(close(std, unit * 0.75f64.sqrt()), "{unit}: {std}");
            let direction = x.normalize(2.0, 0, 0.0).to_vec::<f32>()?;
            assert!(direction.iter().zip([0.5, -0.5, 0.5, 0.5]).all(|(&got, want)| close(got, want)), "{direction:?}");
            let slopes = grad(&(x.std(0, 0, false) * 2.0), &[&x])?[0].to_vec::<f32>()?;
            // (x - mean) / (n std)
            let third = 0.25 / 0.75f64.sqrt();
            assert!(
                slopes.iter().zip([third, -3.0 * third, third, third]).all(|(&got, want)| close(got, want)),
                "{slopes:?}"
            );
        }
        let wide = vector(&[1e30f32, -1e30, 1e30, 1e30]).cast(DType::BF16);
        assert!((wide.std(0, 0, false).cast(DType::F32).item::<f32>()? / 8.66e29 - 1.0).abs() < 0.01);
        Ok(())
    });
}

/// The unrolled sums of its kernel form long chains of effects.
#[test]
fn gradients_of_deviations_on_the_interpreter() -> Result<(), Error> {
    let values: Vec<f64> = (0..680).map(|number| f64::from(number * 37 % 101)).collect();
    let gradient = |device: &str| {
        with_default_device(device, || {
            let x = Tensor::from_slice(&values, [4, 2, 17, 5]);
            let deviation = x.std([0, 2], 2, true);
            grad(&deviation.square().sum(.., false), &[&x])?[0].to_vec::<f64>()
        })
    };
    let (want, got) = (gradient("cpu")?, gradient("interpreter")?);
    assert!(want.iter().zip(&got).all(|(want, got)| (want - got).abs() < 1e-9));
    Ok(())
}

#[test]
fn numbers_stand_left_of_tensors_and_references() {
    on_each_device(|| {
        let x = vector(&[1f32, 2.0, 4.0]);
        let twice = &&x;
        for found in [1.0 - x.clone(), 1.0 - &x, 1.0 - twice, 1 - x.clone(), 1 - &x, 1 - twice] {
            assert_eq!(found.to_vec::<f32>()?, [0.0, -1.0, -3.0]);
        }
        for found in [4.0 / x.clone(), 4.0 / &x, 4.0 / twice, 4 / twice] {
            assert_eq!(found.to_vec::<f32>()?, [4.0, 2.0, 1.0]);
        }
        for found in [2.0 * x.clone(), 2.0 * &x, 2.0 * twice, twice * 2.0, twice + &x, twice - -twice] {
            assert_eq!(found.to_vec::<f32>()?, [2.0, 4.0, 8.0]);
        }
        for found in [1.0 + x.clone(), 1.0 + &x, 1.0 + twice, twice + 1] {
            assert_eq!(found.to_vec::<f32>()?, [2.0, 3.0, 5.0]);
        }
        Ok(())
    });
}

/// Slopes of functions that are composed from magnitudes, where the sign changes and at the ends of domains.
#[test]
fn slopes_at_zero_and_at_the_ends_of_domains() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let same = |got: &[f32], want: &[f32]| got.iter().zip(want).all(|(a, b)| a == b || a.is_nan() && b.is_nan());
    on_each_device(|| {
        type Case = (fn(&Tensor) -> Tensor, [f32; 4], [f32; 4], [f32; 4]);
        let cases: [Case; 6] = [
            (|x| x.fmod(0.7), [0.0, -0.0, 0.5, -0.5], [0.0, -0.0, 0.5, -0.5], [1.0; 4]),
            (|x| x.fmod(-0.7), [0.0, -0.0, 0.5, -0.5], [0.0, -0.0, 0.5, -0.5], [1.0; 4]),
            (|x| x.erfinv(), [1.0, -1.0, 1.5, -2.0], [inf, -inf, nan, nan], [inf, inf, nan, nan]),
            (|x| x.ndtri(), [1.0, 0.0, 1.5, -2.0], [inf, -inf, nan, nan], [inf, inf, nan, nan]),
            (|x| x.atanh(), [1.0, -1.0, 1.5, -2.0], [inf, -inf, nan, nan], [inf, inf, nan, nan]),
            (|x| x.logit(-1.0), [1.0, 0.0, 1.5, -2.0], [inf, -inf, nan, nan], [inf, inf, nan, nan]),
        ];
        for (position, (function, x, values, slopes)) in cases.iter().enumerate() {
            let x = vector(x);
            let y = function(&x);
            let slope = grad(&y.sum(.., false), &[&x])?[0].to_vec::<f32>()?;
            let y = y.to_vec::<f32>()?;
            assert!(same(&y, values), "case {position}: {y:?}");
            assert!(y.iter().zip(values).all(|(y, want)| y.is_nan() || y.to_bits() == want.to_bits()), "{y:?}");
            assert!(same(&slope, slopes), "case {position}: slopes {slope:?}");
        }
        // Inside, what the ends are does not show.
        let x = vector(&[0.25f32, 0.75]);
        let slopes = |y: Tensor| grad(&y.sum(.., false), &[&x])?[0].to_vec::<f32>();
        let near = |got: Vec<f32>, want: [f32; 2]| {
            assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-4 * want), "{got:?} {want:?}");
        };
        near(slopes(x.erfinv())?, [0.932_378_2, 1.717_499_7]);
        near(slopes(x.ndtri())?, [3.146_865, 3.146_865]);
        near(slopes(x.atanh())?, [16.0 / 15.0, 16.0 / 7.0]);
        near(slopes(x.logit(-1.0))?, [16.0 / 3.0, 16.0 / 3.0]);
        Ok(())
    });
}

#[test]
fn bounds_of_floats_decide_nothing_about_nan() {
    on_each_device(|| {
        let x = vector(&[f32::NAN, -0.0, f32::INFINITY, f32::NEG_INFINITY, 2.0]);
        let zeros = Tensor::zeros([5]);
        let positive = x.maximum(&zeros);
        let twice = positive.maximum(&zeros).to_vec::<f32>()?;
        assert!(twice[0].is_nan());
        assert_eq!(
            twice[1..].iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
            [0.0f32, f32::INFINITY, 0.0, 2.0].map(f32::to_bits)
        );
        assert_eq!(positive.lt(0.0).to_vec::<bool>()?, [false; 5]);
        assert_eq!(positive.gt(-1.0).to_vec::<bool>()?, [false, true, true, true, true]);
        assert_eq!(positive.ne(-1.0).to_vec::<bool>()?, [true; 5]);
        assert_eq!((positive * 0.0).eq(0.0).to_vec::<bool>()?, [false, true, false, true, true]);
        Ok(())
    });
}
