//! What is read a few elements apart or in reverse, ends between vectors, is put together of parts, or goes to places of its
//! own row: as the interpreter has it, to the bit.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::tensor::stepped;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;
use tinyspec_ir::ops::options::{AvgPool2d, MaxPool2d, default};

/// Small whole numbers: sums of them are exact.
fn numbers(shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    ((Tensor::arange(count) * 7919).modulo(31) - 15).cast(DType::F32).reshape(shape).contiguous()
}

/// Numbers of places below `length`.
fn places(shape: &[i64], length: i64) -> Tensor {
    let count: i64 = shape.iter().product();
    (Tensor::arange(count) * 7919).modulo(length).cast(DType::I32).reshape(shape).contiguous()
}

#[track_caller]
fn agrees(what: &str, compute: impl Fn() -> Result<Tensor, Error>) {
    let on = |device: &str| with_default_device::<_, Error>(device, || compute()?.to_vec::<f32>());
    let expected = on("interpreter").unwrap();
    for device in ["cpu", "native/x86-64-v4"] {
        assert_eq!(on(device).unwrap(), expected, "{what} on {device}");
    }
}

#[test]
fn elements_a_few_places_apart() {
    for length in [8, 64, 100, 127] {
        for step in [2, 3, 4, 5, -1, -2, -3, -4, -5] {
            agrees(&format!("{length} by {step}"), || {
                Ok(numbers(&[3, length]).at((.., stepped(.., step))) + numbers(&[3, length]).sum([1], true))
            });
        }
    }
    agrees("f64", || Ok((numbers(&[5, 96]).cast(DType::F64).at((.., stepped(1.., 2))) + 1.0).cast(DType::F32)));
    agrees("bytes", || Ok((numbers(&[5, 96]).cast(DType::I8).at((.., stepped(1.., -3))) + 1).cast(DType::F32)));
    agrees("bools", || Ok(numbers(&[5, 96]).gt(2.0).at((.., stepped(.., 2))).cast(DType::F32)));
}

/// The last vector of channels is read under gates: without them it would end behind the image.
#[test]
fn channels_of_images_of_odd_sizes() {
    for (height, width, channels) in [(7, 5, 3), (9, 31, 3), (33, 17, 4), (5, 129, 2)] {
        for dtype in [DType::U8, DType::U16, DType::F32, DType::F64] {
            agrees(&format!("{height} by {width}, {channels} channels of {dtype}"), || {
                let image = numbers(&[1, height, width, channels]).abs().cast(dtype).contiguous();
                Ok(image.permute([0, 3, 1, 2]).cast(DType::F32) / 2.0)
            });
        }
    }
}

#[test]
fn pools_whose_windows_step() {
    for (size, stride, padding) in [(2, 2, 0), (3, 2, 0), (3, 2, 1), (3, 3, 1), (2, 3, 0), (5, 4, 2), (3, 1, 1)] {
        for width in [16, 31, 64] {
            let (stride, padding) = (Some([stride, stride]), [padding, padding]);
            let image = || numbers(&[2, 9, width]);
            let max = || image().max_pool2d([size, size], MaxPool2d { stride, padding, ..default() });
            agrees(&format!("max {size} {stride:?} {padding:?} of {width}"), || Ok(max()));
            agrees(&format!("mean {size} {stride:?} {padding:?} of {width}"), || {
                let pool = AvgPool2d { stride, padding, ..default() };
                Ok(image().avg_pool2d([size, size], pool) * (size * size) as f32)
            });
            agrees(&format!("gradient of {size} {stride:?} {padding:?} of {width}"), || {
                // No two are equal: shares of thirds would be rounded.
                let number = Tensor::arange(2 * 9 * width).cast(DType::F32).reshape([2, 9, width]);
                let x = numbers(&[2, 9, width]) + number * 2f32.powi(-11);
                let y = x.max_pool2d([size, size], MaxPool2d { stride, padding, ..default() });
                let weight = numbers(&[2, 9, width]);
                Ok(grad(&(y.square().sum(.., false) + (&x * &weight).sum(.., false)), &[&x])?[0].clone())
            });
        }
    }
}

#[test]
fn rows_that_end_between_vectors() {
    for width in [5, 7, 13, 30, 127] {
        agrees(&format!("a row beside all of {width}"), || Ok(numbers(&[6, width]) + numbers(&[width])));
        agrees(&format!("sums of {width}"), || Ok(numbers(&[6, width]).sum([1], false)));
        agrees(&format!("maxima of {width}"), || Ok(numbers(&[6, width]).max([1], true) - numbers(&[6, width])));
        agrees(&format!("columns of {width}"), || Ok(numbers(&[6, width]).sum([0], false)));
    }
}

/// Lowers to masks of which LLVM tests a single lane.
#[test]
fn evens_minus_odds_of_a_concatenation() {
    for (rows, columns) in [(2, 8), (3, 8), (5, 8), (3, 6), (2, 12)] {
        for wide in [false, true] {
            agrees(&format!("[{rows}, {columns}], f64: {wide}"), || {
                let cast = |x: Tensor| if wide { x.cast(DType::F64).contiguous() } else { x };
                let [x, weight] = [numbers(&[rows, columns]), numbers(&[rows, columns]) + 3.0].map(cast);
                let zeros = x.zeros_like().contiguous();
                let steps = x.pad([0, 1], [rows, columns + 1], 0.0).diff(1, 1);
                let joined = Tensor::cat(&[&zeros.flatten(0, -1), &steps.flatten(0, -1)], 0);
                let parts = joined.at(stepped(.., 2)) - joined.at(stepped(1.., 2)) * 2.0;
                Ok((parts.reshape([rows, columns]) * weight).sum(.., false).cast(DType::F32).reshape([1]))
            });
        }
    }
}

#[test]
fn parts_beside_each_other() {
    let x = || numbers(&[3, 40, 50]);
    for mode in ["reflect", "replicate", "circular"] {
        agrees(mode, || Ok(x().pad_mode([1, 2], [3, 1], mode)));
    }
    agrees("rolled", || Ok(x().roll([7, -9], [1, 2])));
    agrees("joined", || Ok(Tensor::cat(&[&x(), &(x() * 2.0), &x()], 2)));
    agrees("joined above", || Ok(Tensor::cat(&[&x(), &(x() * 2.0), &x()], 1)));
}

#[test]
fn terms_go_to_places_of_their_row() {
    for axis in [0, 1, 2] {
        let shape = [5, 40, 36];
        let x = || numbers(&shape);
        agrees(&format!("added along {axis}"), || Ok(x().scatter_add(places(&shape, shape[axis]), x(), axis as i64)));
        agrees(&format!("set along {axis}"), || Ok(x().scatter(places(&shape, shape[axis]), x() * 3.0, axis as i64)));
        agrees(&format!("gradient of a gather along {axis}"), || {
            let (x, weight) = (x(), numbers(&shape) + 1.0);
            let picked = x.gather(places(&shape, shape[axis]), axis as i64);
            Ok(grad(&(picked * weight).sum(.., false), &[&x])?[0].clone())
        });
        agrees(&format!("rows added along {axis}"), || {
            Ok(x().index_add(axis as i64, places(&[shape[axis]], shape[axis]), x()))
        });
    }
}

/// The kernel copies what it transposes to LOCAL memory that the first caches do not hold, and prefetches from there.
#[test]
fn a_transpose_of_narrow_elements_over_four_axes() -> Result<(), Error> {
    let shape = [9usize, 35, 13, 14];
    let data: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| (i % 251) as f32).collect();
    let x = Tensor::from_slice(&data, shape).cast(DType::BF16).contiguous();
    let found = x.permute([2, 1, 3, 0]).contiguous().cast(DType::F32).to_vec::<f32>()?;
    let [a, b, c, d] = shape;
    let places =
        (0..c).flat_map(|k| (0..b).flat_map(move |j| (0..d).flat_map(move |l| (0..a).map(move |i| (i, j, k, l)))));
    let expected: Vec<f32> = places.map(|(i, j, k, l)| data[((i * b + j) * c + k) * d + l]).collect();
    assert_eq!(found, expected);
    Ok(())
}
