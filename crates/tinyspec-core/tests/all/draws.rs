//! Random tensors: the same values on every device, and distributed as they should be.

use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;

/// What a draw from one key gives, on every device.
fn drawn(draw: impl Fn(&Tensor) -> Tensor) -> Vec<f64> {
    drawn_from(7, draw).unwrap_or_else(|error| panic!("{error}"))
}

/// As [`drawn`], from this key.
fn drawn_from(key: u64, draw: impl Fn(&Tensor) -> Tensor) -> Result<Vec<f64>, Error> {
    let on = |device| {
        with_default_device::<_, Error>(device, || {
            let drawn = draw(&Tensor::scalar(key));
            Ok((drawn.to_bytes()?, drawn.cast(DType::F64).to_vec::<f64>()?))
        })
    };
    let (bits, values) = on("cpu")?;
    for device in ["interpreter", "simt"] {
        assert!(on(device)?.0 == bits, "{device} draws otherwise than cpu");
    }
    Ok(values)
}

fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64)
}

#[test]
fn draws_are_the_same_on_every_device_and_distributed_as_they_say() {
    let values = drawn(|key| key.randint_with([2000], -3, 5, DType::I16));
    for number in -3..5 {
        let count = values.iter().filter(|&&value| value == f64::from(number)).count();
        assert!((180..320).contains(&count), "{number}: {count} of 2000");
    }
    assert!(values.iter().all(|value| (-3.0..5.0).contains(value)));
    let wide = drawn(|key| key.randint_with([50], i64::MIN, i64::MAX, DType::I64));
    assert!(wide.iter().any(|&value| value < -4e18) && wide.iter().any(|&value| value > 4e18));

    let (mean, variance) = moments(&drawn(|key| key.normal_with([2000], 3.0, 2.0, DType::F32)));
    assert!((mean - 3.0).abs() < 0.2 && (variance - 4.0).abs() < 0.5, "{mean} {variance}");
    let (mean, variance) = moments(&drawn(|key| key.uniform_with([2000], 0.0, 1.0, DType::F64)));
    assert!((mean - 0.5).abs() < 0.03 && (variance - 1.0 / 12.0).abs() < 0.01, "{mean} {variance}");
    drawn(|key| key.normal_with([20], 0.0, 1.0, DType::BF16));

    let mut order = drawn(|key| key.permutation_with(100));
    assert_eq!(drawn(|key| Tensor::arange(100).shuffle_with(key, 0)), order);
    assert_ne!(order, (0..100).map(f64::from).collect::<Vec<_>>());
    order.sort_by(f64::total_cmp);
    assert_eq!(order, (0..100).map(f64::from).collect::<Vec<_>>());

    let (mean, _) = moments(&drawn(|key| Tensor::full([2000], 0.3f32).bernoulli_with(key)));
    assert!((mean - 0.3).abs() < 0.04, "{mean}");
    let sure = drawn(|key| Tensor::from_slice(&[0f32, 1.0], [2]).expand([5, 2]).bernoulli_with(key));
    assert_eq!(sure, [0.0, 1.0].repeat(5));

    let weights = || Tensor::from_slice(&[1f32, 0.0, 3.0], [3]);
    let values = drawn(|key| weights().multinomial_with(key, 1000, true));
    let third = values.iter().filter(|&&value| value == 2.0).count();
    assert!(values.iter().all(|&value| value != 1.0) && (690..810).contains(&third), "{third}");
    for pair in drawn(|key| weights().expand([20, 3]).multinomial_with(key, 2, false)).chunks(2) {
        assert!(pair == [0.0, 2.0] || pair == [2.0, 0.0], "{pair:?}");
    }
    let firsts = drawn(|key| weights().expand([1000, 3]).multinomial_with(key, 1, false));
    let third = firsts.iter().filter(|&&value| value == 2.0).count();
    assert!((690..810).contains(&third), "{third}");
}

#[test]
fn dropout_scales_what_it_keeps_and_its_gradient() -> Result<(), Error> {
    let (x, key) = (Tensor::arange(200).cast(DType::F32) + 1.0, Tensor::scalar(11u64));
    let y = x.dropout_with(&key, 0.25);
    let slope = grad(&y.sum(.., false), &[&x])?.remove(0).to_vec::<f32>()?;
    let (x, y) = (x.to_vec::<f32>()?, y.to_vec::<f32>()?);
    for ((x, y), slope) in x.iter().zip(&y).zip(&slope) {
        assert!((*y == 0.0 && *slope == 0.0) || (*y == x * (1.0 / 0.75) && *slope == 1.0 / 0.75), "{x} {y} {slope}");
    }
    let dropped = y.iter().filter(|&&y| y == 0.0).count();
    assert!((30..70).contains(&dropped), "{dropped}");
    assert_eq!(Tensor::ones([3]).dropout(1.0).to_vec::<f32>()?, [0.0; 3]);
    assert_eq!(Tensor::ones([3]).dropout(0.0).to_vec::<f32>()?, [1.0; 3]);
    Ok(())
}

#[test]
fn draws_from_the_seed_of_the_process_have_their_shapes_and_dtypes() -> Result<(), Error> {
    let mut order = Tensor::randperm(50).to_vec::<i32>()?;
    order.sort_unstable();
    assert_eq!(order, (0..50).collect::<Vec<_>>());
    assert!(Tensor::randint([40], 2, 4).to_vec::<i32>()?.iter().all(|number| (2..4).contains(number)));
    assert_eq!(Tensor::randint([2], 0, 1 << 40).dtype(), DType::I64);
    let like = Tensor::zeros([3, 2]).cast(DType::F16);
    for drawn in [like.rand_like(), like.randn_like(), like.bernoulli(), like.dropout(0.5)] {
        assert_eq!((drawn.dtype(), drawn.sizes()?), (DType::F16, vec![3, 2]));
    }
    assert_ne!(Tensor::randn([8]).to_vec::<f32>()?, Tensor::randn([8]).to_vec::<f32>()?);
    assert_eq!(Tensor::normal([3], 2.0, 0.0).to_vec::<f32>()?, [2.0; 3]);
    assert_eq!(Tensor::ones([2, 3]).multinomial(2, true).sizes()?, [2, 2]);
    Ok(())
}

#[test]
fn draws_without_sense_are_refused() {
    let refused = |tensor: Tensor, words: &str| {
        let text = tensor.realize().err().unwrap_or_else(|| panic!("{words}")).to_string();
        assert!(text.contains(words), "{text}");
    };
    refused(Tensor::randint([2], 5, 5), "no numbers of i32 from 5 to 5");
    refused(Tensor::ones([2]).dropout(1.5), "1.5 is not a probability");
    refused(Tensor::arange(3).bernoulli(), "must be floats");
    refused(Tensor::ones([3]).multinomial(4, false), "4 of 3 positions");
    refused(Tensor::normal([2], 0.0, -1.0), "standard deviation -1");
    refused(Tensor::scalar(1u64).randint_with([2], 0, 300, DType::I8), "no numbers of i8");
}

#[test]
fn threefry_of_tensors_matches_the_published_vectors() -> Result<(), Error> {
    // Of the authors' list for threefry2x32 with 20 rounds: counter, key and result, the first word lowest.
    let counters = [0u64, u64::MAX, 0x85a3_08d3_243f_6a88];
    let keys = [0u64, u64::MAX, 0x0370_7344_1319_8a2e];
    let expected = [0x99ba_4efe_6b20_0159, 0xbb00_2be7_1cb9_96fc, 0x483d_f7a0_c492_3a9c];
    for device in ["interpreter", "cpu", "simt"] {
        with_default_device::<_, Error>(device, || {
            let of = |words: &[u64]| Tensor::from_slice(words, [words.len()]);
            assert_eq!(of(&counters).threefry(of(&keys)).to_vec::<u64>()?, expected, "{device}");
            // One key for many counters, and the draws that are made of them.
            let key = Tensor::scalar(7u64);
            let bits = of(&[0, 1, 2, 3, 4]).threefry(&key).to_vec::<u64>()?;
            let again = (0..5u64).map(|counter| of(&[counter]).threefry(&key).item::<u64>());
            assert_eq!(bits, again.collect::<Result<Vec<_>, _>>()?, "{device}");
            let uniform = key.uniform_with([5], 0.0, 1.0, DType::F32).to_vec::<f32>()?;
            let upper = bits.iter().map(|bits| (bits >> 40) as f32 / 16_777_216.0);
            assert_eq!(uniform, upper.collect::<Vec<_>>(), "{device}");
            Ok(())
        })?;
    }
    let error = Tensor::arange(3).threefry(1u64).to_vec::<u64>().expect_err("counters of i64").to_string();
    assert!(error.contains("threefry") && error.contains("u64"), "{error}");
    Ok(())
}

#[test]
fn every_draw_has_the_same_bits_on_every_device() -> Result<(), Error> {
    fn weights() -> Tensor {
        (Tensor::arange(2000) % 7i32).cast(DType::F32).reshape([40, 50]) * 0.37
    }
    type Draw = fn(&Tensor, DType) -> Tensor;
    let of_floats: &[(&str, Draw)] = &[
        ("uniform", |key, dtype| key.uniform_with([2000], -0.3, 1.7, dtype)),
        ("normal", |key, dtype| key.normal_with([2000], 0.1, 1.3, dtype)),
        ("exponential", |key, dtype| key.exponential_with([2000], 2.0, dtype)),
        ("bernoulli", |key, dtype| (weights() / 3.0).cast(dtype).bernoulli_with(key)),
        ("dropout", |key, dtype| weights().cast(dtype).dropout_with(key, 0.3)),
        ("gumbel", |key, dtype| weights().cast(dtype).gumbel_softmax_with(key, 0.7, true, -1)),
        ("multinomial with replacement", |key, dtype| weights().cast(dtype).multinomial_with(key, 60, true)),
        ("multinomial", |key, dtype| weights().cast(dtype).multinomial_with(key, 45, false)),
    ];
    for &(name, draw) in of_floats {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            for key in [3, 0xfedc_ba98_7654_3210] {
                println!("{name} of {dtype} from {key}");
                drawn_from(key, |key| draw(key, dtype))?;
            }
        }
    }
    for key in [3, 0xfedc_ba98_7654_3210] {
        drawn_from(key, |key| key.randint_with([2000], -3, 500, DType::I32))?;
        drawn_from(key, |key| key.permutation_with(300))?;
        drawn_from(key, |key| Tensor::arange(300).shuffle_with(key, 0))?;
    }
    // The weights of a softmax are sums of exponentials, which round as they do anywhere.
    let soft = |device| {
        let draw = || weights().gumbel_softmax_with(Tensor::scalar(3u64), 0.7, false, -1).to_vec::<f32>();
        with_default_device::<_, Error>(device, draw)
    };
    for (a, b) in soft("cpu")?.iter().zip(soft("interpreter")?) {
        assert!((a - b).abs() <= 1e-5 * b, "{a} {b}");
    }
    Ok(())
}

#[test]
fn uniform_numbers_are_below_the_upper_bound() -> Result<(), Error> {
    let bounds = [
        (0.0, 1.0),
        (1000.0, 1000.001),
        (1000.0, 1000.00001),
        (0.1, 0.3),
        (-1e-3, 0.0),
        (-2.0, -1.999),
        (1.0, 1.0 + 1e-6),
        (16_777_216.0, 16_777_220.0),
        (-0.1, 0.1),
    ];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for (low, high) in bounds {
            if dtype == DType::F16 && high > 60_000.0 {
                continue;
            }
            let rounded = |value: f64| Tensor::scalar(value).cast(dtype).cast(DType::F64).item::<f64>();
            let (least, bound) = (rounded(low)?, rounded(high)?);
            let values = drawn(|key| key.uniform_with([4096], low, high, dtype));
            let is_inside = |value: &f64| match least < bound {
                true => (least..bound).contains(value),
                // No number of the dtype is in between.
                false => *value == least,
            };
            let outside = values.iter().find(|value| !is_inside(value));
            assert!(outside.is_none(), "{outside:?} is not in [{low}, {high}) of {dtype}");
        }
    }
    let error = Tensor::scalar(1u64).uniform_with([2], 0.0, 65_520.0, DType::F16).realize().expect_err("no f16");
    assert!(error.to_string().contains("no numbers of f16"), "{error}");
    Ok(())
}

#[test]
fn what_has_no_probability_is_never_drawn() {
    let infinite = f32::INFINITY;
    let rows =
        [[0.0, 1.0, 0.0, 3.0], [0.0; 4], [1.0, f32::NAN, 2.0, 3.0], [1.0, infinite, 2.0, 3.0], [1e-30, 0.0, 1.0, 0.0]];
    let weights = || Tensor::from_slice(&rows.concat(), [5, 4]);
    let sorted = |row: &[f64]| {
        let mut row = row.to_vec();
        row.sort_by(f64::total_cmp);
        row
    };
    let apart = drawn(|key| weights().multinomial_with(key, 3, false));
    let expected = [[-1.0, 1.0, 3.0], [-1.0; 3], [-1.0; 3], [-1.0; 3], [-1.0, 0.0, 2.0]];
    for (row, expected) in apart.chunks(3).zip(expected) {
        assert_eq!(sorted(row), expected);
    }
    // What can be drawn comes first.
    assert!(apart[2] == -1.0 && apart[14] == -1.0, "{apart:?}");
    let repeated = drawn(|key| weights().multinomial_with(key, 500, true));
    let possible: [&[f64]; 5] = [&[1.0, 3.0], &[-1.0], &[-1.0], &[-1.0], &[0.0, 2.0]];
    for (row, possible) in repeated.chunks(500).zip(possible) {
        assert!(row.iter().all(|position| possible.contains(position)), "{possible:?}: {row:?}");
    }
}

/// 24 bits, as f32 has them, would repeat hundreds of these.
#[test]
fn doubles_have_as_many_bits_as_they_hold() -> Result<(), Error> {
    let values = drawn(|key| key.uniform_with([20_000], 0.0, 1.0, DType::F64));
    let distinct: std::collections::BTreeSet<u64> = values.iter().map(|value| value.to_bits()).collect();
    assert_eq!(distinct.len(), values.len());
    let (mean, variance) = moments(&values);
    assert!((mean - 0.5).abs() < 5e-3 && (variance - 1.0 / 12.0).abs() < 2e-3, "{mean} {variance}");
    let normal = drawn(|key| key.normal_with([20_000], 0.0, 1.0, DType::F64));
    let distinct: std::collections::BTreeSet<u64> = normal.iter().map(|value| value.to_bits()).collect();
    assert!(distinct.len() + 2 >= normal.len(), "{}", distinct.len());
    let (mean, variance) = moments(&normal);
    assert!(mean.abs() < 2e-2 && (variance - 1.0).abs() < 3e-2, "{mean} {variance}");
    Ok(())
}
