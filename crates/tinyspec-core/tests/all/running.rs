//! Running sums, products, maxima and logarithms of sums, and their gradients, against loops.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, GradcheckOptions, Tensor, grad, gradcheck};
use tinyspec_ir::DType;

fn on_each_device(test: impl Fn() -> Result<(), Error>) {
    for device in ["interpreter", "cpu", "simt"] {
        with_default_device(device, &test).unwrap_or_else(|error| panic!("on {device}: {error}"));
    }
}

/// Lengths on both sides of a step, of a level and of two, and weights for them.
const LENGTHS: [usize; 9] = [0, 1, 2, 7, 8, 9, 64, 65, 150];

fn weights(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7) % 5) as f64 - 1.5).collect()
}

/// The gradient of the weighed sum of a running result, with `slope(x, k, i)` that of result k by x(i).
fn expected(x: &[f64], slope: impl Fn(&[f64], usize, usize) -> f64) -> Vec<f64> {
    let weights = weights(x.len());
    (0..x.len()).map(|i| (i..x.len()).map(|k| weights[k] * slope(x, k, i)).sum()).collect()
}

fn found(x: &[f64], run: impl Fn(&Tensor) -> Tensor) -> Result<Vec<f64>, Error> {
    let x = Tensor::from_slice(x, [x.len()]);
    let loss = (run(&x) * Tensor::from_vec(weights(x.sizes()?[0]), x.sizes()?)).sum(.., false);
    grad(&loss, &[&x])?.remove(0).to_vec()
}

fn assert_close(got: &[f64], want: &[f64], what: &str) {
    let is_close = |(got, want): (&f64, &f64)| (got - want).abs() <= 1e-9 * want.abs().max(1.0);
    assert!(got.len() == want.len() && got.iter().zip(want).all(is_close), "{what}: {got:?}, not {want:?}");
}

fn slope_of_products(x: &[f64], k: usize, i: usize) -> f64 {
    (0..=k).filter(|&j| j != i).map(|j| x[j]).product()
}

#[test]
fn slopes_of_products_are_exact_beside_zeros() {
    on_each_device(|| {
        for length in LENGTHS {
            for zeros in [&[][..], &[0], &[3], &[length / 2, length.saturating_sub(2)], &[0, 1, 2]] {
                let mut x: Vec<f64> = (0..length).map(|i| 1.0 + ((i * 3) % 7) as f64 / 50.0).collect();
                zeros.iter().filter(|&&zero| zero < length).for_each(|&zero| x[zero] = 0.0);
                let what = format!("{length} numbers, zeros at {zeros:?}");
                assert_close(&found(&x, |x| x.cumprod(0))?, &expected(&x, slope_of_products), &what);
            }
        }
        Ok(())
    });
}

#[test]
fn the_slopes_of_slopes_of_products_know_two_zeros() -> Result<(), Error> {
    let x = Tensor::from_slice(&[2.0, 0.0, 3.0, 0.0, 5.0], [5]);
    let slope = grad(&x.cumprod(0).sum(.., false), &[&x])?.remove(0);
    // d²(x₀x₁ + x₀x₁x₂ + …) / dx₁ dx₃: the products up to 3 and up to 4 without both.
    let second = grad(&slope.at(1).sum(.., false), &[&x])?.remove(0);
    assert_eq!(second.to_vec::<f64>()?, [4.0, 0.0, 2.0, 36.0, 0.0]);
    let third = |inputs: &[Tensor]| {
        let slope = grad(&inputs[0].cumprod(0).sum(.., false), &[&inputs[0]]).expect("a slope").remove(0);
        grad(&(&slope * &slope).sum(.., false), &[&inputs[0]]).expect("a slope of slopes").remove(0)
    };
    gradcheck(third, &[&x], GradcheckOptions::default())
}

#[test]
fn equal_maxima_share_their_slopes() {
    on_each_device(|| {
        for length in LENGTHS {
            for steps in [1, 3, 40] {
                let x: Vec<f64> = (0..length).map(|i| ((i / steps) % 6 + i / 30) as f64).collect();
                let share = |x: &[f64], k: usize, i: usize| {
                    let greatest = x[..=k].iter().copied().fold(f64::MIN, f64::max);
                    let count = x[..=k].iter().filter(|&&x| x == greatest).count();
                    if x[i] == greatest { 1.0 / count as f64 } else { 0.0 }
                };
                let what = format!("{length} numbers, {steps} equal");
                assert_close(&found(&x, |x| x.cummax(0))?, &expected(&x, share), &what);
                let minus: Vec<f64> = x.iter().map(|x| -x).collect();
                let least = |x: &[f64], k: usize, i: usize| share(&x.iter().map(|x| -x).collect::<Vec<_>>(), k, i);
                assert_close(&found(&minus, |x| x.cummin(0))?, &expected(&minus, least), &what);
            }
        }
        let x = Tensor::from_slice(&[1.0, f64::NAN, 7.0, f64::NAN], [4]);
        let slopes = grad(&x.cummax(0).sum(.., false), &[&x])?.remove(0).to_vec::<f64>()?;
        assert_eq!(slopes, [1.0, 2.5, 0.0, 0.5], "those that are nan share what is nan");
        Ok(())
    });
}

#[test]
fn logarithms_of_sums_have_the_weights_as_slopes() {
    on_each_device(|| {
        for length in LENGTHS {
            for scale in [1.0, 500.0, -500.0] {
                let x: Vec<f64> = (0..length).map(|i| scale * (((i * 5) % 11) as f64 - 4.0)).collect();
                let total = |x: &[f64], k: usize| {
                    let greatest = x[..=k].iter().copied().fold(f64::MIN, f64::max);
                    greatest + x[..=k].iter().map(|x| (x - greatest).exp()).sum::<f64>().ln()
                };
                let what = format!("{length} numbers, by {scale}");
                let values = Tensor::from_slice(&x, [length]).logcumsumexp(0).to_vec::<f64>()?;
                assert_close(&values, &(0..length).map(|k| total(&x, k)).collect::<Vec<_>>(), &what);
                let slope = |x: &[f64], k: usize, i: usize| (x[i] - total(x, k)).exp();
                assert_close(&found(&x, |x| x.logcumsumexp(0))?, &expected(&x, slope), &what);
            }
        }
        let (inf, low) = (f32::INFINITY, f32::NEG_INFINITY);
        let x = Tensor::from_slice(&[low, low, -2000.0, 3000.0, inf, 5.0, inf, low], [8]);
        let values = x.logcumsumexp(0).to_vec::<f32>()?;
        assert_eq!(values, [low, low, -2000.0, 3000.0, inf, inf, inf, inf]);
        let x = x.at(0..4).contiguous();
        let slopes = grad(&x.logcumsumexp(0).sum(.., false), &[&x])?.remove(0).to_vec::<f32>()?;
        assert_eq!(slopes, [0.0, 0.0, 1.0, 1.0]);
        Ok(())
    });
}

#[test]
fn any_axis_and_any_float() {
    type Run = fn(&Tensor, i64) -> Tensor;
    let runs: [Run; 5] = [
        |x, axis| x.cumsum(axis),
        |x, axis| x.cumprod(axis),
        |x, axis| x.cummax(axis),
        |x, axis| x.cummin(axis),
        |x, axis| x.logcumsumexp(axis),
    ];
    on_each_device(|| {
        for (number, run) in runs.into_iter().enumerate() {
            for shape in [[3, 20, 2], [1, 9, 1], [2, 0, 3]] {
                let count: usize = shape.iter().product();
                let data: Vec<f64> = (0..count).map(|i| 0.5 + ((i * 5) % 13) as f64 / 16.0).collect();
                let x = Tensor::from_vec(data, shape);
                let weight = (&x * 3.0).sin().detach().contiguous();
                let slopes = |x: &Tensor, axis: i64, weight: &Tensor| {
                    grad(&(run(x, axis) * weight).sum(.., false), &[x]).map(|mut slopes| slopes.remove(0))
                };
                for axis in -3i64..3 {
                    let position = axis.rem_euclid(3);
                    // Along the last axis of what was turned, and turned back.
                    let turned = x.transpose(position, -1).contiguous();
                    let want = slopes(&turned, -1, &weight.transpose(position, -1))?.transpose(position, -1);
                    let got = slopes(&x, axis, &weight)?;
                    assert_close(&got.to_vec::<f64>()?, &want.to_vec::<f64>()?, &format!("{number} along {axis}"));
                    for dtype in [DType::F16, DType::BF16, DType::F32] {
                        let narrow = slopes(&x.cast(dtype), axis, &weight.cast(dtype))?;
                        assert_eq!(narrow.dtype(), dtype);
                        let (narrow, exact) = (narrow.cast(DType::F64).to_vec::<f64>()?, got.to_vec::<f64>()?);
                        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 0.1 * b.abs().max(1.0);
                        // Rounded, more elements are equal: maxima are shared then.
                        assert!(
                            number == 2 || number == 3 || narrow.iter().zip(&exact).all(is_near),
                            "{narrow:?} {exact:?}"
                        );
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn running_results_are_read_anywhere() {
    on_each_device(|| {
        let n = 40;
        let x = (Tensor::arange(n) % 7).cast(DType::F32).contiguous();
        let sums = x.cumsum(0).to_vec::<f32>()?;
        let exclusive = x.cumsum(0).at(0..n - 1).pad([1], [n], 0.0).mul(2.0).to_vec::<f32>()?;
        assert!((1..n as usize).all(|i| exclusive[i] == 2.0 * sums[i - 1]) && exclusive[0] == 0.0);
        assert_eq!((x.cumsum(0).at(5..) + 1.0).to_vec::<f32>()?, sums[5..].iter().map(|x| x + 1.0).collect::<Vec<_>>());
        let both = (x.cumsum(0) + x.flip([0]).cumsum(0).flip([0])).to_vec::<f32>()?;
        assert!((0..n as usize).all(|i| both[i] == sums[i] + sums[n as usize - 1] - sums[i] + (i % 7) as f32));
        let folded = x.cumsum(0).reshape([5, 8]).sum(1, false).to_vec::<f32>()?;
        assert!((0..5).all(|i| folded[i] == sums[i * 8..i * 8 + 8].iter().sum::<f32>()));
        Ok(())
    });
}

#[test]
fn long_sums_in_levels_and_sums_at_places() {
    on_each_device(|| {
        for shape in [&[1500][..], &[2, 1024], &[3, 2100]] {
            let count = shape.iter().product::<i64>();
            let values: Vec<i64> = (0..count).map(|i| (i * 7) % 11 - 5).collect();
            let x = Tensor::from_slice(&values, shape);
            let rows = values.chunks(*shape.last().unwrap_or(&1) as usize);
            let scanned = |step: fn(i64, i64) -> i64| -> Vec<i64> {
                let row = |row: &[i64]| {
                    let mut before = None;
                    let step = |&x: &i64| *before.insert(before.map_or(x, |before| step(before, x)));
                    row.iter().map(step).collect::<Vec<_>>()
                };
                rows.clone().flat_map(row).collect()
            };
            assert_eq!(x.cumsum(-1).to_vec::<i64>()?, scanned(|a, b| a + b));
            assert_eq!(x.cummax(-1).to_vec::<i64>()?, scanned(i64::max));
            assert_eq!(x.cumprod(-1).to_vec::<i64>()?, scanned(i64::wrapping_mul));
        }
        for (places, width, count) in [(50, 1, 300), (40, 3, 200), (64, 130, 70)] {
            let index: Vec<i64> = (0..count).map(|i| (i * i * 3) % (places + 5) - 2).collect();
            let values: Vec<f32> = (0..count * width).map(|i| (i % 13) as f32 - 4.0).collect();
            let mut want = vec![1.0; (places * width) as usize];
            for (row, &place) in index.iter().enumerate().filter(|(_, place)| (0..places).contains(*place)) {
                for column in 0..width as usize {
                    want[place as usize * width as usize + column] += values[row * width as usize + column];
                }
            }
            let index = Tensor::from_slice(&index, [1, count, 1]);
            let values = Tensor::from_slice(&values, [1, count, width]);
            let mask = Tensor::arange(places).cast(DType::I64).reshape([places, 1, 1]).eq(&index);
            let added = mask.where_(&values, 0.0).sum([1], false);
            assert_eq!((added + 1.0).to_vec::<f32>()?, want);
        }
        Ok(())
    });
}

/// Of the numbers of a row and a column.
type Condition<'a> = &'a dyn Fn(i32, i32) -> bool;

/// Sums of equal terms under conditions on their number, some of which none of the terms meet.
#[test]
fn equal_terms_are_counted() -> Result<(), Error> {
    const N: usize = 37;
    let row = Tensor::arange(N).reshape([N, 1]);
    let column = Tensor::arange(N).reshape([1, N]);
    let lengths: Vec<i32> = (0..N).map(|i| (i * 17 % (N + 9)) as i32 - 4).collect();
    let limit = Tensor::from_slice(&lengths, [N, 1]);
    let conditions: [(Tensor, Condition<'_>); 6] = [
        (column.le(&row), &|i, j| j <= i),
        (column.gt(&row), &|i, j| j > i),
        ((&row - &column).abs().lt(5), &|i, j| (i - j).abs() < 5),
        ((&row + &column).lt(20), &|i, j| i + j < 20),
        (column.lt(&limit), &|i, j| j < lengths[i as usize]),
        (column.ge(&limit).logical_and(column.lt(&row)), &|i, j| j >= lengths[i as usize] && j < i),
    ];
    let values: Vec<f32> = (0..N).map(|i| if i % 6 == 5 { f32::INFINITY } else { i as f32 - 9.0 }).collect();
    let x = Tensor::from_slice(&values, [N, 1]);
    let whole: Vec<i32> = (0..N as i32).map(|i| i * 1_000_003).collect();
    let numbers = Tensor::from_slice(&whole, [N, 1]);
    for (condition, holds) in conditions {
        let count = |i: usize| (0..N as i32).filter(|&j| holds(i as i32, j)).count();
        let sums = condition.where_(&x, 0.0).sum([1], false).to_vec::<f32>()?;
        let expected = |i: usize| if count(i) == 0 { 0.0 } else { count(i) as f32 * values[i] };
        assert_eq!(sums, (0..N).map(expected).collect::<Vec<_>>());
        let sums = condition.where_(&numbers, 0).sum([1], false).to_vec::<i32>()?;
        let expected: Vec<i32> = (0..N).map(|i| whole[i].wrapping_mul(count(i) as i32)).collect();
        assert_eq!(sums, expected);
        let total = condition.where_(&numbers, 0).sum(.., false).to_vec::<i32>()?;
        assert_eq!(total, [expected.iter().fold(0, |total: i32, &sum| total.wrapping_add(sum))]);
    }
    let x = Tensor::from_slice(&values, [N]);
    let gradient = &grad(&x.cumsum(0).sum(.., false), &[&x])?[0];
    assert_eq!(gradient.to_vec::<f32>()?, (0..N).map(|i| (N - i) as f32).collect::<Vec<_>>());
    Ok(())
}
