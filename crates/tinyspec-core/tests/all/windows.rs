//! Convolutions and pools through their methods and options.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Argument, Error, Tensor, grad};
use tinyspec_ir::ops::options::{
    AvgPool1d, AvgPool2d, Conv2d, ConvTranspose1d, ConvTranspose2d, MaxPool1d, MaxPool2d, default,
};
use tinyspec_ir::{DType, ErrorKind};

fn ramp(shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    Tensor::arange(count).modulo(7).cast(DType::F32).reshape(shape).contiguous()
}

/// The sum that defines a convolution, term by term; small integers, so that it is exact.
fn reference(
    x: &[f32],
    [batch, channels, height, width]: [usize; 4],
    weight: &[f32],
    [outputs, inner, kh, kw]: [usize; 4],
    options: Conv2d,
) -> Vec<f32> {
    let [[sy, sx], [py, px], [dy, dx]] =
        [options.stride, options.padding, options.dilation].map(|pair| pair.map(|n| n as usize));
    let rows = (height + 2 * py - dy * (kh - 1) - 1) / sy + 1;
    let columns = (width + 2 * px - dx * (kw - 1) - 1) / sx + 1;
    let mut result = Vec::new();
    for (b, o, row, column) in (0..batch * outputs * rows * columns)
        .map(|i| (i / (outputs * rows * columns), i / (rows * columns) % outputs, i / columns % rows, i % columns))
    {
        let first = o / (outputs / options.groups as usize) * inner;
        let mut sum = 0.0;
        for (c, i, j) in (0..inner * kh * kw).map(|i| (i / (kh * kw), i / kw % kh, i % kw)) {
            let (y, x_) = ((row * sy + i * dy).checked_sub(py), (column * sx + j * dx).checked_sub(px));
            if let (Some(y), Some(x_)) = (y, x_)
                && y < height
                && x_ < width
            {
                sum += x[((b * channels + first + c) * height + y) * width + x_]
                    * weight[((o * inner + c) * kh + i) * kw + j];
            }
        }
        result.push(sum);
    }
    result
}

/// The gradients for image and filters, term by term.
fn backward(
    x: &[f32],
    [batch, channels, height, width]: [usize; 4],
    weight: &[f32],
    [outputs, inner, kh, kw]: [usize; 4],
    cotangent: &[f32],
    options: Conv2d,
) -> [Vec<f32>; 2] {
    let [[sy, sx], [py, px]] = [options.stride, options.padding].map(|pair| pair.map(|n| n as usize));
    let (rows, columns) = ((height + 2 * py - kh) / sy + 1, (width + 2 * px - kw) / sx + 1);
    assert_eq!(cotangent.len(), batch * outputs * rows * columns);
    let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; weight.len()]);
    for (place, &dy) in cotangent.iter().enumerate() {
        let (b, o) = (place / (outputs * rows * columns), place / (rows * columns) % outputs);
        let (row, column) = (place / columns % rows, place % columns);
        for (c, i, j) in (0..inner * kh * kw).map(|i| (i / (kh * kw), i / kw % kh, i % kw)) {
            let (y, x_) = ((row * sy + i).wrapping_sub(py), (column * sx + j).wrapping_sub(px));
            if y < height && x_ < width {
                let first = o / (outputs / options.groups as usize) * inner;
                let at = ((b * channels + first + c) * height + y) * width + x_;
                let tap = ((o * inner + c) * kh + i) * kw + j;
                dx[at] += dy * weight[tap];
                dw[tap] += dy * x[at];
            }
        }
    }
    [dx, dw]
}

/// Many images: the sums over them are cut into parts, and panels, rows and results are turned in registers.
#[test]
fn gradients_of_large_convolutions_are_exact_on_small_integers() -> Result<(), Error> {
    for (shape, kernel, options) in [
        ([16usize, 3, 20, 21], [5usize, 3, 3, 2], Conv2d { padding: [1, 0], ..default() }),
        ([6, 16, 19, 20], [32, 16, 3, 3], Conv2d { padding: [1, 1], ..default() }),
        ([5, 16, 30, 40], [48, 16, 3, 3], Conv2d { stride: [2, 2], padding: [1, 1], ..default() }),
        ([40, 4, 12, 16], [16, 4, 5, 5], Conv2d { padding: [2, 2], ..default() }),
        ([3, 32, 14, 20], [32, 1, 3, 3], Conv2d { padding: [1, 1], groups: 32, ..default() }),
        ([3, 24, 9, 33], [24, 8, 3, 3], Conv2d { stride: [2, 1], padding: [0, 1], groups: 3, ..default() }),
    ] {
        let (x, weight) = (ramp(&shape.map(|n| n as i64)), ramp(&kernel.map(|n| n as i64)));
        let (images, filters) = (x.to_vec::<f32>()?, weight.to_vec::<f32>()?);
        let y = x.conv2d(&weight, None, options);
        assert_eq!((&y + 0.0).to_vec::<f32>()?, reference(&images, shape, &filters, kernel, options), "{options:?}");
        let dims: Vec<i64> = y.shape().iter().map(|dim| dim.as_const().unwrap()).collect();
        let cotangent = (ramp(&dims) - 3.0).contiguous();
        let expected = backward(&images, shape, &filters, kernel, &cotangent.to_vec::<f32>()?, options);
        let found = grad(&(y * &cotangent).sum(.., false), &[&x, &weight])?;
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(&found.to_vec::<f32>()?, expected, "{shape:?} {kernel:?} {options:?}");
        }
    }
    Ok(())
}

/// Tiles of some columns of two lines, whose ends and blocks meet those of the images anywhere.
#[test]
fn windows_of_two_lines() -> Result<(), Error> {
    for [height, width] in [[33usize, 56usize], [8, 56], [20, 50], [19, 50], [14, 14]] {
        for (taps, padding, stride) in [([3, 3], [1, 1], [1, 1]), ([2, 3], [0, 2], [1, 1]), ([3, 3], [1, 1], [2, 2])] {
            let (shape, kernel) = ([2, 12, height, width], [32, 12, taps[0], taps[1]]);
            let options = Conv2d { padding, stride, ..default() };
            let (x, weight) = (ramp(&shape.map(|n| n as i64)), ramp(&kernel.map(|n| n as i64)));
            let (images, filters) = (x.to_vec::<f32>()?, weight.to_vec::<f32>()?);
            let found = x.conv2d(&weight, None, options).to_vec::<f32>()?;
            assert!(found == reference(&images, shape, &filters, kernel, options), "{shape:?} {options:?}");
        }
    }
    Ok(())
}

/// Tiles that span whole rows: taps shift what a row holds, whatever its length and the border around it.
#[test]
fn windows_over_whole_rows() -> Result<(), Error> {
    let taps = [([3usize, 3usize], [1i64, 1i64], [1i64, 1i64]), ([3, 3], [0, 0], [1, 1]), ([2, 5], [1, 2], [1, 1])];
    let taps = taps.into_iter().chain([([3, 3], [2, 3], [2, 3]), ([1, 4], [0, 0], [1, 2]), ([5, 2], [2, 1], [1, 7])]);
    for ([rows, columns], padding, dilation) in taps {
        for width in [15usize, 16, 17, 24, 31, 33, 40, 48, 55, 56, 57, 63, 64, 65, 80] {
            let (shape, kernel) = ([2, 3, 12, width], [3, 1, rows, columns]);
            let options = Conv2d { groups: 3, padding, dilation, ..default() };
            let (x, weight) = (ramp(&shape.map(|n| n as i64)), ramp(&kernel.map(|n| n as i64)));
            let (images, filters) = (x.to_vec::<f32>()?, weight.to_vec::<f32>()?);
            let found = x.conv2d(&weight, None, options).to_vec::<f32>()?;
            assert_eq!(found, reference(&images, shape, &filters, kernel, options), "{width} {options:?}");
        }
    }
    Ok(())
}

/// More than the caches hold: what is written bypasses them, also where rows are aligned to half a vector only.
#[test]
fn large_windows_over_whole_rows() -> Result<(), Error> {
    for shape in [[24usize, 64, 56, 56], [40, 50, 28, 84]] {
        let kernel = [shape[1], 1, 3, 3];
        let options = Conv2d { groups: shape[1] as i64, padding: [1, 1], ..default() };
        let (x, weight) = (ramp(&shape.map(|n| n as i64)), ramp(&kernel.map(|n| n as i64)));
        let (images, filters) = (x.to_vec::<f32>()?, weight.to_vec::<f32>()?);
        let found = x.conv2d(&weight, None, options).to_vec::<f32>()?;
        assert!(found == reference(&images, shape, &filters, kernel, options), "{shape:?}");
    }
    Ok(())
}

/// Windows that lie a few elements apart, on rows of any length, narrow and large windows, and what neighbouring windows
/// read of the border: forward and gradients, by vectors of every width.
#[test]
fn windows_a_few_elements_apart() -> Result<(), Error> {
    let taps = [
        ([3usize, 3usize], [2i64, 2i64], [1i64, 1i64], [1i64, 1i64]),
        ([3, 3], [2, 2], [0, 0], [1, 1]),
        ([5, 5], [1, 2], [2, 2], [1, 1]),
        ([2, 4], [3, 3], [1, 2], [1, 1]),
        ([3, 3], [1, 4], [1, 1], [2, 2]),
        ([1, 1], [2, 2], [1, 1], [1, 1]),
        ([7, 7], [1, 1], [3, 3], [1, 1]),
        ([7, 7], [2, 2], [3, 3], [1, 1]),
        ([3, 13], [1, 1], [1, 6], [1, 1]),
        ([2, 37], [1, 1], [1, 18], [1, 1]),
    ];
    for device in ["cpu", "interpreter/x86-64-v3", "interpreter/x86-64-v4", "interpreter/neoverse-v2"] {
        let widths: &[usize] = if device == "cpu" { &[7, 13, 16, 28, 33, 56, 61, 64, 67] } else { &[7, 33] };
        with_default_device::<_, Error>(device, || {
            for (taps, stride, padding, dilation) in taps {
                for &width in widths.iter().filter(|&&width| width + 2 * padding[1] as usize >= taps[1]) {
                    let (shape, kernel) = ([2, 2, 9, width], [2, 1, taps[0], taps[1]]);
                    let options = Conv2d { groups: 2, stride, padding, dilation, ..default() };
                    let (x, weight) = (ramp(&shape.map(|n| n as i64)), ramp(&kernel.map(|n| n as i64)));
                    let (images, filters) = (x.to_vec::<f32>()?, weight.to_vec::<f32>()?);
                    let y = x.conv2d(&weight, None, options);
                    let expected = reference(&images, shape, &filters, kernel, options);
                    let context = format!("{device} {width} {kernel:?} {options:?}");
                    assert_eq!((&y + 0.0).to_vec::<f32>()?, expected, "{context}");
                    if dilation != [1, 1] {
                        continue;
                    }
                    let dims: Vec<i64> = y.shape().iter().map(|dim| dim.as_const().unwrap()).collect();
                    let cotangent = (ramp(&dims) - 3.0).contiguous();
                    let expected = backward(&images, shape, &filters, kernel, &cotangent.to_vec::<f32>()?, options);
                    let found = grad(&(y * &cotangent).sum(.., false), &[&x, &weight])?;
                    for (found, expected) in found.iter().zip(&expected) {
                        assert_eq!(&found.to_vec::<f32>()?, expected, "gradient of {context}");
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Maxima of windows, and of their gradients each an equal share for all elements that are the greatest.
#[test]
fn greatest_of_windows_a_few_elements_apart() -> Result<(), Error> {
    for device in ["cpu", "interpreter/x86-64-v3", "interpreter/x86-64-v4", "interpreter/neoverse-v2"] {
        let widths: &[i64] = if device == "cpu" { &[5, 7, 16, 28, 33, 64, 67] } else { &[7, 33] };
        for &width in widths {
            for (size, stride, padding) in [(3i64, 2i64, 1i64), (3, 1, 1), (2, 2, 0), (5, 1, 2), (3, 3, 0), (5, 4, 2)] {
                let pool = |device: &str| {
                    with_default_device::<_, Error>(device, || {
                        let x = ramp(&[2, 2, 8, width]).contiguous();
                        let options =
                            MaxPool2d { stride: Some([stride, stride]), padding: [padding, padding], ..default() };
                        let y = x.max_pool2d([size, size], options);
                        let dims: Vec<i64> = y.shape().iter().map(|dim| dim.as_const().unwrap()).collect();
                        let cotangent = ((ramp(&dims) - 3.0) * 36.0).contiguous();
                        let slopes = grad(&(&y * &cotangent).sum(.., false), &[&x])?[0].clone();
                        Ok((y.to_vec::<f32>()?, slopes.to_vec::<f32>()?))
                    })
                };
                let (found, expected) = (pool(device)?, pool("interpreter")?);
                assert_eq!(found.0, expected.0, "{device} {width} {size} {stride} {padding}");
                let are_near = found.1.iter().zip(&expected.1).all(|(found, expected)| (found - expected).abs() < 1e-3);
                assert!(are_near, "gradient on {device} of {width} {size} {stride} {padding}");
            }
        }
    }
    Ok(())
}

#[test]
fn options_combine() -> Result<(), Error> {
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, || {
            let (shape, kernel) = ([2usize, 6, 11, 10], [9usize, 2, 3, 2]);
            let (x, weight) = (ramp(&shape.map(|n| n as i64)), ramp(&kernel.map(|n| n as i64)));
            for options in [
                Conv2d { groups: 3, ..default() },
                Conv2d { groups: 3, stride: [2, 3], padding: [1, 2], ..default() },
                Conv2d { groups: 3, stride: [5, 4], padding: [4, 0], dilation: [2, 3], ..default() },
                Conv2d { groups: 3, stride: [9, 9], dilation: [1, 2], ..default() },
            ] {
                let got = x.conv2d(&weight, None, options).to_vec::<f32>()?;
                let want = reference(&x.to_vec::<f32>()?, shape, &weight.to_vec::<f32>()?, kernel, options);
                assert_eq!(got, want, "{device} {options:?}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn integers_convolve_in_32_bits_and_a_bias_is_added() -> Result<(), Error> {
    let x = Tensor::full([1, 1, 4, 4], 100).cast(DType::I8);
    let weight = Tensor::full([2, 1, 3, 3], 100).cast(DType::I8);
    let out = x.conv2d(&weight, Some(&Tensor::from_slice(&[0i32, 1], [2])), Conv2d::default());
    assert_eq!(out.dtype(), DType::I32);
    assert_eq!(out.to_vec::<i32>()?, [90_000, 90_000, 90_000, 90_000, 90_001, 90_001, 90_001, 90_001]);
    Ok(())
}

#[test]
fn a_transposed_convolution_is_the_gradient_of_one() -> Result<(), Error> {
    let x = ramp(&[2, 3, 10]);
    let weight = ramp(&[4, 3, 3]);
    let options = tinyspec_ir::ops::options::Conv1d { stride: [2], padding: [1], ..default() };
    let out = x.conv1d(&weight, None, options);
    let cotangent = ramp(&[2, 4, 5]);
    let gradient = grad(&(&out * &cotangent).sum(.., false), &[&x])?.remove(0);
    let options = ConvTranspose1d { stride: [2], padding: [1], output_padding: [1], ..default() };
    let transposed = cotangent.conv_transpose1d(&weight, None, options);
    assert_eq!(gradient.to_vec::<f32>()?, transposed.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn transposed_convolutions_add_a_filter_for_each_element() -> Result<(), Error> {
    let cases = [
        ([2, 4, 5, 6], [4, 3, 3, 3], ConvTranspose2d { stride: [2, 2], ..default() }),
        ([1, 4, 5, 4], [4, 2, 3, 2], ConvTranspose2d { stride: [3, 1], padding: [1, 0], groups: 2, ..default() }),
        (
            [1, 2, 4, 3],
            [2, 3, 2, 2],
            ConvTranspose2d { stride: [2, 2], dilation: [3, 1], output_padding: [2, 1], ..default() },
        ),
        ([2, 2, 3, 3], [2, 2, 1, 2], ConvTranspose2d { stride: [2, 4], output_padding: [1, 3], ..default() }),
        (
            [1, 3, 4, 4],
            [3, 2, 2, 2],
            ConvTranspose2d { stride: [2, 2], padding: [2, 1], output_padding: [1, 1], ..default() },
        ),
    ];
    for (image, filters, options) in cases {
        let ConvTranspose2d { stride, padding, output_padding, dilation, groups, .. } = options;
        let (x, weight) = (ramp(&image), ramp(&filters));
        let (data, factors) = (x.to_vec::<f32>()?, weight.to_vec::<f32>()?);
        let [batch, channels, ..] = image;
        let [_, outputs, ..] = filters;
        let size: [i64; 2] = std::array::from_fn(|axis| {
            let span = (filters[2 + axis] - 1) * dilation[axis] + 1;
            (image[2 + axis] - 1) * stride[axis] + span + output_padding[axis] - 2 * padding[axis]
        });
        let all = outputs * groups;
        let mut want = vec![0f32; (batch * all * size[0] * size[1]) as usize];
        for (number, &element) in (0..).zip(&data) {
            let (row, column) = (number / image[3] % image[2], number % image[3]);
            let (sample, channel) =
                (number / (image[2] * image[3]) / channels, number / (image[2] * image[3]) % channels);
            let first = channel / (channels / groups) * outputs;
            for tap in 0..outputs * filters[2] * filters[3] {
                let (output, i, j) = (tap / (filters[2] * filters[3]), tap / filters[3] % filters[2], tap % filters[3]);
                let y = row * stride[0] + i * dilation[0] - padding[0];
                let z = column * stride[1] + j * dilation[1] - padding[1];
                if (0..size[0]).contains(&y) && (0..size[1]).contains(&z) {
                    let place = ((sample * all + first + output) * size[0] + y) * size[1] + z;
                    want[place as usize] +=
                        element * factors[(channel * outputs * filters[2] * filters[3] + tap) as usize];
                }
            }
        }
        let found = x.conv_transpose2d(&weight, None, options);
        assert_eq!(found.sizes()?, [batch, all, size[0], size[1]].map(|n| n as usize), "{options:?}");
        assert_eq!(found.to_vec::<f32>()?, want, "{options:?}");
    }
    let nothing = ConvTranspose2d { stride: [2, 2], padding: [2, 2], ..default() };
    let error = ramp(&[1, 1, 1, 1]).conv_transpose2d(ramp(&[1, 1, 3, 3]), None, nothing).to_vec::<f32>();
    assert_eq!(error.expect_err("nothing is left").kind(), Some(ErrorKind::Shape));
    Ok(())
}

#[test]
fn pools_know_what_lies_outside() -> Result<(), Error> {
    let x = Tensor::from_slice(&[-1f32, -2.0, -3.0, -4.0, -5.0], [1, 5]);
    let options = MaxPool1d { stride: Some([2]), padding: [1], ..default() };
    assert_eq!(x.max_pool1d([3], options).to_vec::<f32>()?, [-1.0, -2.0, -4.0]);
    let integers = Tensor::from_slice(&[-7i32, -9, -8, -6], [2, 2]);
    let options = MaxPool2d { stride: Some([1, 1]), padding: [1, 1], ..default() };
    assert_eq!(integers.max_pool2d([2], options).to_vec::<i32>()?, [-7, -7, -9, -7, -6, -6, -8, -6, -6]);
    let ones = Tensor::ones([3, 3]);
    let options = AvgPool2d { padding: [1, 1], ..default() };
    assert_eq!(ones.avg_pool2d([2, 2], options).to_vec::<f32>()?, [0.25, 0.5, 0.5, 1.0]);
    let options = AvgPool2d { padding: [1, 1], ceil_mode: true, count_include_pad: false, ..default() };
    assert_eq!(ones.avg_pool2d([2, 2], options).to_vec::<f32>()?, [1.0; 4]);
    Ok(())
}

#[test]
fn an_empty_batch_stays_empty() -> Result<(), Error> {
    let out = Tensor::zeros([0, 2, 5, 5]).conv2d(Tensor::ones([3, 2, 3, 3]), None, default());
    assert_eq!(out.sizes()?, [0, 3, 3, 3]);
    assert!(out.to_vec::<f32>()?.is_empty());
    Ok(())
}

#[test]
fn wrong_windows_are_refused_by_name() {
    let (x, weight) = (Tensor::ones([1, 4, 5, 5]), Tensor::ones([6, 4, 3, 3]));
    let cases = [
        (x.conv2d(&weight, None, Conv2d { groups: 3, ..default() }), ErrorKind::Shape),
        (x.conv2d(&weight, None, Conv2d { groups: 0, ..default() }), ErrorKind::Value),
        (x.conv2d(&weight, None, Conv2d { stride: [0, 1], ..default() }), ErrorKind::Value),
        (x.conv2d(&weight, None, Conv2d { padding: [-1, 0], ..default() }), ErrorKind::Value),
        (x.conv2d(&weight, None, Conv2d { padding: [i64::MAX, 0], ..default() }), ErrorKind::Value),
        (x.conv2d(&weight, None, Conv2d { dilation: [9, 1], ..default() }), ErrorKind::Shape),
        (x.conv2d(&weight, Some(&Tensor::ones([5])), default()), ErrorKind::Shape),
        (x.conv2d(Tensor::ones([6, 4, 3]), None, default()), ErrorKind::Rank),
        (x.max_pool2d([6], default()), ErrorKind::Shape),
        (x.max_pool2d([2, 2, 2], default()), ErrorKind::Shape),
        (x.max_pool2d([2], MaxPool2d { padding: [2, 2], ..default() }), ErrorKind::Value),
        (x.unfold(3, 2, 0), ErrorKind::Value),
    ];
    for (tensor, kind) in cases {
        let error = tensor.realize().expect_err("refused");
        assert_eq!(error.kind(), Some(kind), "{error}");
        assert!(error.location().is_some_and(|location| location.file.ends_with("windows.rs")), "{error}");
    }
}

#[test]
fn options_are_fields_by_name_in_a_dynamic_call() -> Result<(), Error> {
    let call = |fields: &[(&str, Argument)]| {
        let fields = fields.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        Tensor::call(
            "conv2d",
            &[
                Argument::Tensor(ramp(&[1, 2, 5, 5])),
                Argument::Tensor(ramp(&[1, 2, 3, 3])),
                Argument::Nothing,
                Argument::Options(fields),
            ],
        )
    };
    let got = call(&[("stride", Argument::Int(2)), ("padding", Argument::Ints(vec![1, 0]))])?.remove(0);
    let options = Conv2d { stride: [2, 2], padding: [1, 0], ..default() };
    let want = ramp(&[1, 2, 5, 5]).conv2d(ramp(&[1, 2, 3, 3]), None, options);
    assert_eq!(got.to_vec::<f32>()?, want.to_vec::<f32>()?);
    let unknown = call(&[("strides", Argument::Int(2))]).expect_err("no such option");
    assert!(unknown.to_string().contains("`stride`"), "{unknown}");
    assert!(call(&[("groups", Argument::Flag(true))]).is_err());
    Ok(())
}

/// Blocks of these images are copied and fetched ahead, to the last one, whose next lies outside of memory.
#[test]
fn images_beyond_the_second_cache() -> Result<(), Error> {
    let padded = Conv2d { padding: [1, 1], ..default() };
    let layers = [
        ([2, 64, 72, 72], [4, 64, 3, 3], padded),
        ([3, 60, 61, 67], [60, 1, 3, 3], Conv2d { groups: 60, ..padded }),
        ([2, 66, 71, 73], [34, 66, 1, 1], default()),
        ([2, 64, 70, 70], [6, 64, 3, 3], Conv2d { stride: [2, 2], ..padded }),
    ];
    for (image, filters, options) in layers {
        let (x, weight) = (ramp(&image), ramp(&filters));
        let shape = |shape: [i64; 4]| shape.map(|n| n as usize);
        let expected = reference(&x.to_vec::<f32>()?, shape(image), &weight.to_vec::<f32>()?, shape(filters), options);
        assert_eq!(x.conv2d(&weight, None, options).to_vec::<f32>()?, expected, "{image:?} {filters:?}");
    }
    Ok(())
}

#[test]
fn padding_keeps_lengths_and_one_sample_needs_no_batch() -> Result<(), Error> {
    use tinyspec_ir::ops::options::{Conv1d, Conv3d};
    let ramp = |shape: &[i64]| Tensor::arange(shape.iter().product::<i64>()).cast(DType::F32).reshape(shape);
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, || {
            let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0], [1, 1, 5]);
            // PyTorch's: of an odd number of zeros the one more comes after.
            let same = |kernel: &[f32], dilation: i64| {
                let weight = Tensor::from_slice(kernel, [1, 1, kernel.len() as i64]);
                x.conv1d(weight, None, Conv1d { same: true, dilation: [dilation], ..default() }).to_vec::<f32>()
            };
            assert_eq!(same(&[1.0, 10.0], 1)?, [21.0, 32.0, 43.0, 54.0, 5.0]);
            assert_eq!(same(&[1.0, 10.0, 100.0], 1)?, [210.0, 321.0, 432.0, 543.0, 54.0]);
            assert_eq!(same(&[1.0, 10.0, 100.0, 1000.0], 1)?, [3210.0, 4321.0, 5432.0, 543.0, 54.0]);
            assert_eq!(same(&[1.0, 10.0, 100.0], 2)?, [310.0, 420.0, 531.0, 42.0, 53.0]);
            let (picture, weight) = (ramp(&[2, 5, 6]), ramp(&[3, 2, 2, 3]));
            let options = Conv2d { same: true, ..default() };
            let one = picture.conv2d(&weight, None, options);
            assert_eq!(one.sizes()?, [3, 5, 6]);
            assert_eq!(one.to_vec::<f32>()?, picture.unsqueeze(0).conv2d(&weight, None, options).to_vec::<f32>()?);
            let solid = ramp(&[2, 3, 4, 5]).conv3d(ramp(&[1, 2, 2, 2, 2]), None, Conv3d::default());
            assert_eq!(solid.sizes()?, [1, 2, 3, 4]);
            let back = ramp(&[2, 5]).conv_transpose1d(ramp(&[2, 3, 2]), None, default());
            assert_eq!(back.sizes()?, [3, 6]);
            Ok(())
        })?;
    }
    let x = Tensor::ones([1, 1, 8]);
    let error = x.conv1d(Tensor::ones([1, 1, 3]), None, Conv1d { same: true, stride: [2], ..default() });
    assert!(
        error.error().is_some_and(|error| error.to_string().contains("a stride of [2] where axes keep their lengths"))
    );
    Ok(())
}

/// What is multiplied with constants on its way through a border.
#[test]
fn sums_of_constants_and_borders() -> Result<(), Error> {
    let x = Tensor::from_slice(&(0..12).map(|i| i as f32).collect::<Vec<_>>(), [3, 4]);
    let sum = (&x * 0.5).sum(1, false).pad([1], [5], 0.0).sum(.., false);
    assert_eq!(sum.to_vec::<f32>()?, [33.0]);
    let pooled = (&x * 2.0).sum(1, false).reshape([1, 1, 3]).pad([0, 0, 1], [1, 1, 5], 0.0);
    assert_eq!((pooled * 3.0).to_vec::<f32>()?, [0.0, 36.0, 132.0, 228.0, 0.0]);
    let image = ramp(&[1, 1, 6, 7]);
    for stride in [1, 2] {
        let blur = Tensor::full([1, 1, 3, 3], 0.25f32);
        let options = Conv2d { padding: [1, 1], stride: [stride, stride], ..default() };
        let gradient = tinyspec_core::grad(&image.conv2d(&blur, None, options).sum(.., false), &[&image])?;
        let data = Tensor::from_slice(&[0.25f32; 9], [1, 1, 3, 3]);
        let expected = tinyspec_core::grad(&image.conv2d(&data, None, options).sum(.., false), &[&image])?;
        assert_eq!(gradient[0].to_vec::<f32>()?, expected[0].to_vec::<f32>()?, "stride {stride}");
    }
    Ok(())
}

/// Convolutions and pools with different padding at the two ends of an axis are those of what is padded before.
#[test]
fn padding_may_differ_at_the_two_ends() -> Result<(), Error> {
    for device in ["cpu", "interpreter"] {
        with_default_device::<_, Error>(device, || {
            let (x, weight) = (ramp(&[2, 3, 7, 8]), ramp(&[4, 3, 3, 2]));
            let padded = x.pad([0, 0, 0, 1], [2, 3, 9, 9], 0.0);
            let options = Conv2d { padding: [0, 1], padding_end: Some([2, 0]), stride: [2, 1], ..default() };
            let [uneven, even] = [
                x.conv2d(&weight, None, options),
                padded.conv2d(&weight, None, Conv2d { stride: [2, 1], ..default() }),
            ];
            assert_eq!(uneven.to_vec::<f32>()?, even.to_vec::<f32>()?);
            for at in [&x, &weight] {
                let [found, want] = [&uneven, &even].map(|y| grad(&(y * y).sum(.., false), &[at]));
                assert_eq!(found?[0].to_vec::<f32>()?, want?[0].to_vec::<f32>()?);
            }
            // What is cut off the two ends of a transposed convolution.
            let (x, weight) = (ramp(&[1, 2, 5, 4]), ramp(&[2, 3, 3, 3]));
            for stride in [[1, 1], [2, 3]] {
                let options = ConvTranspose2d { stride, ..default() };
                let whole = x.conv_transpose2d(&weight, None, options);
                let size = whole.sizes()?;
                let part = whole.at((.., .., 1..size[2] as i64, ..size[3] as i64 - 2));
                let options = ConvTranspose2d { padding: [1, 0], padding_end: Some([0, 2]), ..options };
                let found = x.conv_transpose2d(&weight, None, options);
                assert_eq!(found.to_vec::<f32>()?, part.to_vec::<f32>()?);
            }
            // A window of two that keeps the length.
            let x = Tensor::from_slice(&[-1f32, -5.0, -2.0, -3.0], [1, 4]);
            let options = MaxPool1d { stride: Some([1]), padding_end: Some([1]), ..default() };
            assert_eq!(x.max_pool1d([2], options).to_vec::<f32>()?, [-1.0, -2.0, -2.0, -3.0]);
            let options = AvgPool1d { stride: Some([1]), padding_end: Some([1]), ..default() };
            assert_eq!(x.avg_pool1d([2], options).to_vec::<f32>()?, [-3.0, -3.5, -2.5, -1.5]);
            let options = AvgPool1d { count_include_pad: false, ..options };
            assert_eq!(x.avg_pool1d([2], options).to_vec::<f32>()?, [-3.0, -3.5, -2.5, -3.0]);
            assert_eq!(x.lp_pool1d(1.0, [2], options).to_vec::<f32>()?, [6.0, 7.0, 5.0, 3.0]);
            // A last window that reaches beyond the padding, which is not counted.
            let options = AvgPool1d { stride: Some([2]), padding_end: Some([2]), ceil_mode: true, ..default() };
            assert_eq!(x.avg_pool1d([4], options).to_vec::<f32>()?, [-2.75, -1.25]);
            let options = AvgPool1d { padding: [2], padding_end: Some([0]), ..options };
            assert_eq!(x.avg_pool1d([4], options).to_vec::<f32>()?, [-1.5, -2.75]);
            Ok(())
        })?;
    }
    let x = Tensor::ones([1, 1, 5, 5]);
    let refused = |y: Tensor, part: &str| {
        let error = y.realize().expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    };
    let filters = Tensor::ones([1, 1, 2, 2]);
    refused(x.conv2d(&filters, None, Conv2d { padding_end: Some([0, -1]), ..default() }), "a padding of [0, -1]");
    let options = Conv2d { same: true, padding_end: Some([1, 1]), ..default() };
    refused(x.conv2d(&filters, None, options), "where axes keep their lengths");
    let options = MaxPool2d { padding_end: Some([0, 3]), ..default() };
    refused(x.max_pool2d([3], options), "the padding at an end is less than a window");
    Ok(())
}

/// Windows of an adaptive pool, element by element: from the whole part of `i l / n` to that of `(i + 1) l / n`, rounded up.
#[test]
fn adaptive_pools_of_sizes_that_do_not_divide() -> Result<(), Error> {
    for (length, count) in
        [(7usize, 3usize), (30, 7), (50, 6), (8, 7), (5, 4), (333, 10), (3, 7), (10, 25), (1, 3), (64, 33)]
    {
        let rows = 3;
        let data: Vec<f32> = (0..rows * length).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
        let windows: Vec<std::ops::Range<usize>> =
            (0..count).map(|i| i * length / count..((i + 1) * length).div_ceil(count)).collect();
        let each = |pool: &dyn Fn(&[f32]) -> f32| -> Vec<f32> {
            let row = |row: &[f32]| windows.iter().map(|window| pool(&row[window.clone()])).collect::<Vec<f32>>();
            data.chunks(length).flat_map(row).collect()
        };
        let means = each(&|window| window.iter().sum::<f32>() / window.len() as f32);
        let greatest = each(&|window| window.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        for device in ["cpu", "interpreter"] {
            with_default_device::<_, Error>(device, || {
                let x = Tensor::from_slice(&data, [rows, length]);
                let n = count as i64;
                assert_eq!(x.adaptive_avg_pool1d([n]).to_vec::<f32>()?, means, "{length} to {count}");
                assert_eq!(x.adaptive_max_pool1d([n]).to_vec::<f32>()?, greatest, "{length} to {count}");
                // Along axes that are not the last.
                let pooled = x.transpose(0, 1).contiguous().adaptive_avg_pool2d([n, rows as i64]);
                assert_eq!(pooled.transpose(0, 1).to_vec::<f32>()?, means);
                let pooled = x.transpose(0, 1).unsqueeze(1).adaptive_max_pool3d([n, 1, rows as i64]).squeeze([1]);
                assert_eq!(pooled.transpose(0, 1).to_vec::<f32>()?, greatest);
                // Each element takes part in the means of the windows that it is in.
                let loss = (x.adaptive_avg_pool1d([n]) * Tensor::arange(n)).sum(.., false);
                let slopes = grad(&loss, &[&x])?[0].to_vec::<f32>()?;
                for (place, slope) in slopes.iter().enumerate() {
                    let terms = windows.iter().enumerate().filter(|(_, window)| window.contains(&(place % length)));
                    let want: f32 = terms.map(|(i, window)| i as f32 / window.len() as f32).sum();
                    assert!((slope - want).abs() <= 1e-5 * want, "{slope} {want}");
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Each window hands its slope to one element, whichever lanes of a vector the ends of a row leave. (LLVM 22 compares the wrong lane
/// where only the first one of a vector counts.)
#[test]
fn every_window_of_a_padded_pool_has_a_greatest() -> Result<(), Error> {
    for width in (15..24).chain(31..38) {
        for (size, padding, dilation) in [(2, 1, 1), (3, 1, 1), (5, 2, 1), (3, 2, 2), (6, 2, 1), (2, 1, 2)] {
            let data: Vec<f32> = (0..10 * width).map(|i| (i * 7919 % 1009) as f32 - 400.0).collect();
            let x = Tensor::from_slice(&data, [10, 1, width]);
            let options = MaxPool1d { stride: Some([1]), padding: [padding], dilation: [dilation], ..default() };
            let y = x.max_pool1d([size], options);
            let slopes = grad(&y.sum(.., false), &[&x])?[0].to_vec::<f32>()?;
            let windows = 10 * (width as i64 + 2 * padding - dilation * (size - 1));
            assert_eq!(slopes.iter().sum::<f32>(), windows as f32, "{width} {size} {padding} {dilation}");
        }
    }
    Ok(())
}
