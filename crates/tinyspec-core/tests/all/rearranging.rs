//! Methods that move elements around by data or by number: sorting, scattering, diagonals, other lengths.

use tinyspec_core::{Element, Error, Tensor, grad};
use tinyspec_ir::{DType, ErrorKind};

fn ints(data: &[i32], shape: &[i64]) -> Tensor {
    Tensor::from_slice(data, shape)
}

#[test]
fn sorting_is_stable_and_puts_nan_last() -> Result<(), Error> {
    let nan = f32::NAN;
    let x = Tensor::from_slice(&[3f32, nan, -1.0, 3.0, f32::INFINITY, -1.0], [6]);
    let sorted = x.sort(0, false);
    assert_eq!(sorted[1].to_vec::<i32>()?, [2, 5, 0, 3, 4, 1]);
    assert_eq!(sorted[0].to_vec::<f32>()?[..5], [-1.0, -1.0, 3.0, 3.0, f32::INFINITY]);
    assert!(sorted[0].to_vec::<f32>()?[5].is_nan());
    assert_eq!(x.argsort(0, true).to_vec::<i32>()?, [1, 4, 0, 3, 2, 5]);
    let bytes = ints(&[200, 3, 255, 3], &[2, 2]).cast(DType::U8);
    assert_eq!(bytes.sort(0, false)[0].to_vec::<u8>()?, [200, 3, 255, 3]);
    assert_eq!(bytes.topk(1, -1, true)[0].to_vec::<u8>()?, [200, 255]);
    assert_eq!(bytes.topk(3, -1, true)[0].to_vec::<u8>().expect_err("3 of 2").kind(), Some(ErrorKind::Value));
    assert!(Tensor::zeros([0]).sort(0, false)[0].to_vec::<f32>()?.is_empty());
    Ok(())
}

#[test]
fn the_gradient_of_a_sort_goes_where_the_elements_came_from() -> Result<(), Error> {
    let x = Tensor::from_slice(&[5f32, 1.0, 3.0], [3]);
    let weights = Tensor::from_slice(&[10f32, 20.0, 30.0], [3]);
    let loss = (&x.sort(0, false)[0] * &weights).sum(.., false);
    assert_eq!(grad(&loss, &[&x])?[0].to_vec::<f32>()?, [30.0, 10.0, 20.0]);
    Ok(())
}

#[test]
fn several_values_for_one_place() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]);
    let index = ints(&[2, 0, 2, 9], &[4]);
    let value = Tensor::from_slice(&[10f32, 20.0, 30.0, 40.0], [4]);
    let reduced = |how: &str, own: bool| x.scatter_reduce(&index, &value, 0, how, own).to_vec::<f32>();
    assert_eq!(x.scatter(&index, &value, 0).to_vec::<f32>()?, [20.0, 2.0, 30.0]);
    assert_eq!(reduced("sum", true)?, [21.0, 2.0, 43.0]);
    assert_eq!(reduced("prod", false)?, [20.0, 2.0, 300.0]);
    assert_eq!(reduced("mean", true)?, [10.5, 2.0, 43.0 / 3.0]);
    assert_eq!(reduced("amin", true)?, [1.0, 2.0, 3.0]);
    assert_eq!(x.scatter_multiply(&index, &value, 0).to_vec::<f32>()?, [20.0, 2.0, 900.0]);
    assert_eq!(reduced("median", true).expect_err("unknown").kind(), Some(ErrorKind::Value));
    // A number for all places, and infinities that no mask multiplies.
    assert_eq!(x.scatter(&index, f32::INFINITY, 0).to_vec::<f32>()?, [f32::INFINITY, 2.0, f32::INFINITY]);
    let wrong = x.scatter(&index, Tensor::ones([3]), 0).to_vec::<f32>().expect_err("shapes differ");
    assert_eq!(wrong.kind(), Some(ErrorKind::Shape));
    // Only the value that stays has a gradient.
    let loss = x.scatter(&index, &value, 0).sum(.., false);
    let gradients = grad(&loss, &[&x, &value])?;
    assert_eq!(gradients[0].to_vec::<f32>()?, [0.0, 1.0, 0.0]);
    assert_eq!(gradients[1].to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0]);
    Ok(())
}

#[test]
fn diagonals_lie_anywhere() -> Result<(), Error> {
    let x = Tensor::arange(12).reshape([3, 4]);
    for (offset, want) in
        [(0, vec![0, 5, 10]), (1, vec![1, 6, 11]), (3, vec![3]), (-1, vec![4, 9]), (4, vec![]), (-9, vec![])]
    {
        assert_eq!(x.diagonal(offset).to_vec::<i32>()?, want, "{offset}");
    }
    assert_eq!(Tensor::arange(8).reshape([2, 2, 2]).diagonal(0).to_vec::<i32>()?, [0, 3, 4, 7]);
    assert_eq!(x.diagonal(i64::MIN).to_vec::<i32>()?, [0i32; 0]);
    Ok(())
}

#[test]
fn ends_taken_from_the_tensor_itself() -> Result<(), Error> {
    let x = ints(&[1, 2, 3], &[3]);
    let padded = |before: i64, after: i64, mode: &str| x.pad_mode([before], [after], mode).to_vec::<i32>();
    assert_eq!(padded(2, 1, "reflect")?, [3, 2, 1, 2, 3, 2]);
    assert_eq!(padded(1, 5, "replicate")?, [1, 1, 2, 3, 3, 3, 3, 3, 3]);
    assert_eq!(padded(3, 1, "circular")?, [1, 2, 3, 1, 2, 3, 1]);
    for (before, mode) in [(3, "reflect"), (4, "circular"), (-1, "replicate"), (1, "mirror")] {
        assert_eq!(padded(before, 0, mode).expect_err(mode).kind(), Some(ErrorKind::Value));
    }
    assert_eq!(ints(&[1, 2], &[2]).repeat_interleave(3, 0).to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
    Ok(())
}

#[test]
fn interpolation_keeps_what_it_can() -> Result<(), Error> {
    let x = Tensor::from_slice(&[0f32, 10.0, 20.0], [3]);
    let at = |size: i64, mode: &str, corners: bool| x.interpolate([size], mode, corners).to_vec::<f32>();
    assert_eq!(at(5, "linear", true)?, [0.0, 5.0, 10.0, 15.0, 20.0]);
    assert_eq!(at(6, "linear", false)?, [0.0, 2.5, 7.5, 12.5, 17.5, 20.0]);
    assert_eq!(at(6, "nearest", false)?, [0.0, 0.0, 10.0, 10.0, 20.0, 20.0]);
    assert_eq!(at(2, "nearest-exact", false)?, [0.0, 20.0]);
    assert_eq!(at(1, "linear", true)?, [0.0]);
    assert_eq!(at(0, "nearest", false)?, [0f32; 0]);
    assert_eq!(at(-1, "nearest", false).expect_err("negative").kind(), Some(ErrorKind::Value));
    assert_eq!(at(4, "quartic", false).expect_err("unknown").kind(), Some(ErrorKind::Value));
    Ok(())
}

#[test]
fn running_logarithms_of_sums_do_not_overflow() -> Result<(), Error> {
    let x = Tensor::from_slice(&[1000f32, 1000.0, -1000.0], [3]);
    let got = x.logcumsumexp(0).to_vec::<f32>()?;
    let want = [1000.0, 1000.0 + std::f32::consts::LN_2, 1000.0 + std::f32::consts::LN_2];
    assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-3), "{got:?}");
    Ok(())
}

#[test]
fn data_decide_the_size() -> Result<(), Error> {
    for device in ["cpu", "interpreter"] {
        let x = Tensor::from_slice(&[1f32, 0.0, -2.0, f32::NAN, 0.0, 6.0], [2, 3]).to(device);
        assert_eq!(x.masked_select(&x.lt(2.0)).to_vec::<f32>()?, [1.0, 0.0, -2.0, 0.0]);
        assert_eq!(x.nonzero().to_vec::<i32>()?, [0, 0, 0, 2, 1, 0, 1, 2]);
        let row = Tensor::from_slice(&[true, false, true], [3]).to(device);
        let chosen = x.masked_select(&row);
        assert_eq!(chosen.sizes()?, [4]);
        let gradient = grad(&chosen.sum(.., false), &[&x])?.remove(0);
        assert_eq!(gradient.to_vec::<f32>()?, [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
        let none = Tensor::zeros([2, 2]).to(device);
        assert_eq!(none.nonzero().sizes()?, [0, 2]);
        assert!(none.masked_select(&none.gt(1.0)).to_vec::<f32>()?.is_empty());
    }
    let x = Tensor::ones([2, 3]);
    assert_eq!(x.masked_select(&x).to_vec::<f32>().expect_err("floats").kind(), Some(ErrorKind::DType));
    let mask = Tensor::ones([2]).gt(0.0);
    assert_eq!(x.masked_select(&mask).to_vec::<f32>().expect_err("shapes").kind(), Some(ErrorKind::Shape));
    assert_eq!(Tensor::ones(()).nonzero().sizes()?, [1, 0]);
    Ok(())
}

/// Positions in order, as a stable sort of the standard library gives them; nan is greater than all numbers.
fn order(values: &[f32], descending: bool) -> Vec<i32> {
    let mut order: Vec<i32> = (0..values.len() as i32).collect();
    let compare = |a: f32, b: f32| a.partial_cmp(&b).unwrap_or(a.is_nan().cmp(&b.is_nan()));
    order.sort_by(|&a, &b| {
        let (a, b) = (values[a as usize], values[b as usize]);
        if descending { compare(b, a) } else { compare(a, b) }
    });
    order
}

#[test]
fn axes_are_sorted_by_comparing_all_and_by_counting() -> Result<(), Error> {
    let value = |number: usize| match number * 7919 % 613 {
        7 => f32::NAN,
        11 => f32::INFINITY,
        other => other as f32 - 300.0,
    };
    for (rows, length) in [(2, 190), (1, 1025), (3, 1500), (200, 600), (40, 33_000), (2, 33_000), (1, 100_000)] {
        let data: Vec<f32> = (0..rows * length).map(value).collect();
        let x = Tensor::from_slice(&data, [rows, length]);
        for descending in [false, true] {
            let want: Vec<i32> = data.chunks(length).flat_map(|row| order(row, descending)).collect();
            assert_eq!(x.argsort(1, descending).to_vec::<i32>()?, want, "{rows} rows of {length}");
            let across = x.transpose(0, 1).argsort(0, descending).transpose(0, 1);
            assert_eq!(across.to_vec::<i32>()?, want, "{length} along axis 0");
        }
        let sorted = x.sort(1, false)[0].to_vec::<f32>()?;
        for (row, found) in data.chunks(length).zip(sorted.chunks(length)) {
            let want = order(row, false).into_iter().map(|at| row[at as usize]);
            assert!(want.zip(found).all(|(want, found)| want.to_bits() == found.to_bits()));
        }
    }
    let whole: Vec<i32> = (0..3000).map(|number: i32| number.wrapping_mul(1_640_531_527)).collect();
    let [top, positions] = &Tensor::from_slice(&whole, [3000]).topk(5, 0, true)[..] else { panic!("two tensors") };
    let mut want = whole.clone();
    want.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(top.to_vec::<i32>()?, want[..5]);
    let positions = positions.to_vec::<i32>()?;
    assert!(positions.iter().zip(&want).all(|(&at, &want)| whole[at as usize] == want));
    Ok(())
}

#[test]
fn rows_are_sorted_alike_on_every_device_and_in_every_float() -> Result<(), Error> {
    for (rows, length) in [(3, 300), (1, 40_000)] {
        let x = Tensor::from_slice(&mixed(rows * length), [rows, length]);
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let x = x.cast(dtype);
            let data = x.cast(DType::F32).to_vec::<f32>()?;
            for descending in [false, true] {
                let want: Vec<i32> = data.chunks(length).flat_map(|row| order(row, descending)).collect();
                assert_eq!(x.argsort(1, descending).to_vec::<i32>()?, want, "{rows} rows of {length} of {dtype}");
            }
        }
        for device in ["interpreter", "simt"] {
            let there = x.narrow(1, 0, length.min(1000) as i64).to(device);
            let here = x.narrow(1, 0, length.min(1000) as i64).argsort(1, true);
            assert_eq!(there.argsort(1, true).to_vec::<i32>()?, here.to_vec::<i32>()?, "{device}");
        }
    }
    Ok(())
}

/// Sorts numbers among which are the ends of their dtype, so that no filling can be beyond them.
fn sorts_to_the_ends<T: Element + Ord + std::fmt::Debug>(value: impl Fn(usize) -> T) -> Result<(), Error> {
    for (rows, length) in [(3, 7), (2, 100), (2, 300), (1, 1100)] {
        let data: Vec<T> = (0..rows * length).map(&value).collect();
        let x = Tensor::from_slice(&data, [rows, length]);
        for descending in [false, true] {
            let order = |row: &[T]| {
                let mut order: Vec<i32> = (0..length as i32).collect();
                let key = |at: i32| row[at as usize];
                order.sort_by(|&a, &b| if descending { key(b).cmp(&key(a)) } else { key(a).cmp(&key(b)) });
                order
            };
            let want: Vec<i32> = data.chunks(length).flat_map(order).collect();
            let name = format!("{rows} rows of {length} of {}, descending: {descending}", T::DTYPE);
            assert_eq!(x.argsort(1, descending).to_vec::<i32>()?, want, "{name}");
            let first: Vec<i32> = want.chunks(length).flat_map(|row| row[..5].to_vec()).collect();
            assert_eq!(x.topk(5, 1, descending)[1].to_vec::<i32>()?, first, "the first five of {name}");
        }
    }
    Ok(())
}

#[test]
fn every_integer_is_sorted_to_the_ends_of_its_dtype() -> Result<(), Error> {
    macro_rules! sorts {
        ($($dtype:ty),*) => { $(
            sorts_to_the_ends(|i| match i * 7919 % 23 {
                0 => <$dtype>::MIN,
                1 => <$dtype>::MAX,
                2 => <$dtype>::MAX - 1,
                3 => 0,
                other => (other as $dtype).wrapping_mul(<$dtype>::MAX / 3 + 5),
            })?;
        )* };
    }
    sorts!(i8, i16, i32, i64, u8, u16, u32, u64);
    sorts_to_the_ends(|i| i * 7919 % 23 < 9)
}

/// Numbers with many equal ones, all kinds of nan and both zeros.
fn mixed(count: usize) -> Vec<f32> {
    let value = |i: usize| match i.wrapping_mul(7919) % 1013 {
        0 => f32::NAN,
        1 => -f32::NAN,
        2 => f32::NEG_INFINITY,
        3 => f32::INFINITY,
        4 => -0.0,
        5 => 0.0,
        other => (other as f32 - 500.0) / 8.0,
    };
    (0..count).map(value).collect()
}

/// The order of `sort`: nan last, zeros equal.
fn ascending(a: &f32, b: &f32) -> std::cmp::Ordering {
    a.is_nan().cmp(&b.is_nan()).then(a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))
}

#[test]
fn elements_of_long_axes_are_found_by_their_number() -> Result<(), Error> {
    for (rows, length) in [(5, 129), (2, 1000), (1, 1025), (3, 2000), (1, 70_001)] {
        let data = mixed(rows * length);
        let x = Tensor::from_slice(&data, [rows, length]);
        for k in [1, 2, 17, length / 2, length - 1, length] {
            let found = x.kthvalue(k as i64, 1, false).to_vec::<f32>()?;
            for (row, found) in data.chunks(length).zip(found) {
                let mut row = row.to_vec();
                row.sort_by(ascending);
                assert!(ascending(&row[k - 1], &found).is_eq(), "number {k} of {length}: {found}");
            }
        }
        let numbers: Vec<f32> = data.iter().copied().map(|x| if x.is_nan() { 3.0 } else { x }).collect();
        let x = Tensor::from_slice(&numbers, [rows, length]);
        let (median, share) = (x.median(-1, true).to_vec::<f32>()?, x.quantile(0.3, 1, false).to_vec::<f32>()?);
        let without = Tensor::from_slice(&data, [rows, length]).nanmedian(1, false).to_vec::<f32>()?;
        for (number, row) in numbers.chunks(length).enumerate() {
            let mut row = row.to_vec();
            row.sort_by(ascending);
            assert_eq!(median[number], row[(length - 1) / 2]);
            let place = 0.3 * (length - 1) as f64;
            let (low, high) = (f64::from(row[place as usize]), f64::from(row[place as usize + 1]));
            let want = low + place.fract() * (high - low);
            assert!((f64::from(share[number]) - want).abs() < 1e-3, "{} {want}", share[number]);
            let mut kept: Vec<f32> =
                data[number * length..][..length].iter().copied().filter(|x| !x.is_nan()).collect();
            kept.sort_by(ascending);
            assert_eq!(without[number], kept[(kept.len() - 1) / 2]);
        }
    }
    let wide: Vec<i64> = (0..5000i64).map(|i| i.wrapping_mul(-7_046_029_254_386_353_131)).collect();
    let unsigned: Vec<u64> = wide.iter().map(|&x| x as u64).collect();
    let doubles: Vec<f64> = wide.iter().map(|&x| x as f64 * 1e-300).collect();
    let (mut a, mut b, mut c) = (wide.clone(), unsigned.clone(), doubles.clone());
    a.sort_unstable();
    b.sort_unstable();
    c.sort_by(f64::total_cmp);
    assert_eq!(Tensor::from_slice(&wide, [5000]).median(0, false).item::<i64>()?, a[2499]);
    assert_eq!(Tensor::from_slice(&unsigned, [5000]).kthvalue(5000, 0, false).item::<u64>()?, b[4999]);
    assert_eq!(Tensor::from_slice(&doubles, [5000]).kthvalue(4, 0, false).item::<f64>()?, c[3]);
    Ok(())
}

#[test]
fn the_first_of_long_axes_are_those_of_a_sort() -> Result<(), Error> {
    for (rows, length) in [(16, 20), (9, 64), (5, 100), (3, 301), (2, 1024), (1, 1025), (2, 4100), (1, 20_000)] {
        let x = Tensor::from_slice(&mixed(rows * length), [rows, length]);
        for largest in [false, true] {
            let order = x.argsort(1, largest).to_vec::<i32>()?;
            for k in [0, 1, 5, 17, 50, 100, 300, 1000, 4500] {
                if k > length {
                    continue;
                }
                let found = x.topk(k as i64, 1, largest)[1].to_vec::<i32>()?;
                let want: Vec<i32> = order.chunks(length).flat_map(|row| row[..k].to_vec()).collect();
                assert_eq!(found, want, "{k} of {rows} rows of {length}, largest: {largest}");
                let long_keys = x.cast(DType::F64).topk(k as i64, 1, largest);
                assert_eq!(long_keys[1].to_vec::<i32>()?, want, "{k} of {rows} rows of {length} of f64");
            }
        }
    }
    Ok(())
}

#[test]
fn places_in_long_axes_are_found_by_halving() -> Result<(), Error> {
    for length in [257, 512, 3001] {
        let mut sorted: Vec<f32> = mixed(length);
        sorted.sort_by(ascending);
        let values = mixed(300);
        let (x, wanted) = (Tensor::from_slice(&sorted, [length]), Tensor::from_slice(&values, [20, 15]));
        for right in [false, true] {
            let is_before = |x: f32, value: f32| value.is_nan() || if right { x <= value } else { x < value };
            let count = |&value: &f32| sorted.iter().filter(|&&x| is_before(x, value)).count() as i32;
            let want: Vec<i32> = values.iter().map(count).collect();
            assert_eq!(x.searchsorted(&wanted, right).to_vec::<i32>()?, want, "{length}");
        }
    }
    let (values, few) = (mixed(2000), mixed(40));
    let found = Tensor::from_slice(&few, [8, 5]).isin(Tensor::from_slice(&values, [40, 50])).to_vec::<bool>()?;
    let want: Vec<bool> = few.iter().map(|x| values.contains(x)).collect();
    assert_eq!(found, want);
    let numbers: Vec<i32> = (0..3000).map(|i| (i * i) % 1009 % 61).collect();
    let mode = Tensor::from_slice(&numbers, [2, 1500]).mode(1, false).to_vec::<i32>()?;
    for (row, found) in numbers.chunks(1500).zip(mode) {
        let count = |value: i32| row.iter().filter(|&&x| x == value).count();
        let most = (0..61).map(count).max();
        assert_eq!((0..61).find(|&value| Some(count(value)) == most), Some(found));
    }
    Ok(())
}

#[test]
fn triangles_beyond_the_corners() -> Result<(), Error> {
    let x = ints(&[1, 2, 3, 4, 5, 6], &[2, 3]);
    let (all, none) = (vec![1, 2, 3, 4, 5, 6], vec![0; 6]);
    for far in [3, i64::from(i32::MAX), 1 << 32, i64::MAX] {
        assert_eq!(x.triu(far).to_vec::<i32>()?, none, "{far}");
        assert_eq!(x.tril(far).to_vec::<i32>()?, all, "{far}");
        assert_eq!(x.triu(-far).to_vec::<i32>()?, all, "{far}");
        assert_eq!(x.tril(-far).to_vec::<i32>()?, none, "{far}");
        assert_eq!(x.diagonal(far).to_vec::<i32>()?, [0i32; 0]);
        assert_eq!(x.diagonal(-far).to_vec::<i32>()?, [0i32; 0]);
    }
    assert_eq!(x.triu(i64::MIN).to_vec::<i32>()?, all);
    assert_eq!(x.tril(i64::MIN).to_vec::<i32>()?, none);
    assert_eq!(x.diagonal(i64::MIN).to_vec::<i32>()?, [0i32; 0]);
    assert_eq!(x.diagonal_scatter(Tensor::zeros([0]).cast(DType::I32), i64::MIN).to_vec::<i32>()?, all);
    // 2⁶³ - 1 is 1 more than a multiple of 3, and so is -2⁶³ + 2.
    assert_eq!(x.roll([i64::MAX], [1]).to_vec::<i32>()?, [3, 1, 2, 6, 4, 5]);
    assert_eq!(x.roll([i64::MIN], [1]).to_vec::<i32>()?, [3, 1, 2, 6, 4, 5]);
    assert_eq!(x.triu(1).to_vec::<i32>()?, [0, 2, 3, 0, 0, 6]);
    assert_eq!(x.tril(-1).to_vec::<i32>()?, [0, 0, 0, 4, 0, 0]);
    Ok(())
}
