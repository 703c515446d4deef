//! What memory bounds: maxima by keys, values kept for a second loop, squares turned in registers, non-temporal stores.

use crate::support::on_each_device;
use tinyspec_core::{Error, Tensor};

/// Bits, but one nan is as good as another.
fn bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

/// The greatest: any nan, and -0 below 0.
fn greatest(values: &[f64]) -> f64 {
    values.iter().fold(f64::NEG_INFINITY, |a, &b| match a.partial_cmp(&b) {
        None if a.is_nan() => a,
        None => b,
        Some(std::cmp::Ordering::Less) => b,
        Some(std::cmp::Ordering::Equal) if a.is_sign_negative() => b,
        _ => a,
    })
}

#[test]
fn maxima_of_many_know_nan_and_the_signs_of_zeros() {
    let specials = [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, -1.5, -1e30, 1e-40, -1e-40];
    on_each_device(|| {
        for length in [1usize, 8, 15, 16, 17, 48, 64, 100, 128, 1000] {
            for fill in [f64::NEG_INFINITY, -0.0, -2.0, 0.0, 3.0] {
                for special in specials {
                    for place in [0, length / 2, length - 1] {
                        let mut row = vec![fill; length];
                        row[place] = special;
                        let singles: Vec<f32> = row.iter().map(|&x| x as f32).collect();
                        let want = greatest(&row);
                        let got = Tensor::from_slice(&row, [length]).max(.., false).item::<f64>()?;
                        assert_eq!(bits(got), bits(want), "{fill} and {special} in {length} f64");
                        let got = Tensor::from_slice(&singles, [length]).max(.., false).item::<f32>()?;
                        let want = f64::from(want as f32);
                        assert_eq!(bits(got.into()), bits(want), "{fill} and {special} in {length} f32");
                    }
                }
            }
        }
        Ok(())
    });
}

/// A maximum may lose a nan where a sum has it too, but not where the maximum itself is seen.
#[test]
fn a_nan_in_a_row_is_in_all_that_is_made_of_the_row() {
    on_each_device(|| {
        for length in [16usize, 100, 1000] {
            for (place, special) in [(0, f32::NAN), (length / 2, -f32::NAN), (length - 1, f32::NAN)] {
                let mut data: Vec<f32> = (0..3 * length).map(|i| ((i * 37) % 101) as f32 / 7.0 - 6.0).collect();
                data[length + place] = special;
                let x = Tensor::from_slice(&data, [3, length]);
                let most = x.max(1, true);
                let shifted = &x - &most;
                let powers = shifted.exp();
                let halved = &powers / &powers.sum(1, true);
                let rows = [
                    ("softmax", x.softmax(-1)),
                    ("log_softmax", x.log_softmax(-1)),
                    ("logsumexp", x.logsumexp(1, true)),
                    ("shifted", shifted.clone()),
                    ("powers", &halved + &most),
                    ("hidden", most.eq(&most).where_(&halved, &shifted)),
                    ("greatest", most),
                ];
                for (name, values) in rows {
                    let values = values.to_vec::<f32>()?;
                    let (count, is_row) = (values.len() / 3, |row: usize| row == 1);
                    for (i, value) in values.iter().enumerate() {
                        assert_eq!(value.is_nan(), is_row(i / count), "{name} of {length} with a nan at {place}: {i}");
                    }
                }
            }
        }
        Ok(())
    });
}

/// A maximum may take one zero for the other where only powers are made of it, but not where its sign is seen.
#[test]
fn the_greatest_zero_of_a_row_has_its_sign() {
    on_each_device(|| {
        for length in [16usize, 100, 1000] {
            for place in [None, Some(0), Some(length / 2), Some(length - 1)] {
                let mut data = vec![-0.0f32; length];
                data[length / 3] = -2.0;
                if let Some(place) = place {
                    data[place] = 0.0;
                }
                let x = Tensor::from_slice(&data, [1, length]);
                let most = x.max(1, true);
                let powers = (&x - &most).exp();
                let shares = &powers / &powers.sum(1, true);
                let seen = (&shares / &most).to_vec::<f32>()?;
                let want = if place.is_some() { f32::INFINITY } else { f32::NEG_INFINITY };
                assert!(seen.iter().all(|&value| value == want), "{length}, +0 at {place:?}: {}", seen[0]);
            }
        }
        Ok(())
    });
}

#[test]
fn exponentials_that_two_loops_need_are_right_in_both() {
    on_each_device(|| {
        for (rows, length) in [(3usize, 1usize), (2, 7), (5, 16), (3, 100), (2, 1024), (2, 1000), (1, 4097)] {
            let value = |i: usize| ((i * 37) % 101) as f32 / 7.0 - 6.0;
            let data: Vec<f32> = (0..rows * length).map(value).collect();
            let x = Tensor::from_slice(&data, [rows, length]);
            let (softmax, logs) = (x.softmax(-1).to_vec::<f32>()?, x.log_softmax(-1).to_vec::<f32>()?);
            let normal = ((&x * 0.5).exp() / ((&x * 0.5).exp() + 1.0).sum(1, true)).to_vec::<f32>()?;
            for row in 0..rows {
                let row = row * length..(row + 1) * length;
                let total: f64 = data[row.clone()].iter().map(|&x| f64::from(x).exp()).sum();
                let roots: f64 = data[row.clone()].iter().map(|&x| (f64::from(x) * 0.5).exp() + 1.0).sum();
                for i in row {
                    let want = f64::from(data[i]).exp() / total;
                    assert!((f64::from(softmax[i]) - want).abs() <= 4e-6 * want, "{length}: {} {want}", softmax[i]);
                    assert!((f64::from(logs[i]) - want.ln()).abs() <= 1e-5, "{length}: {} {}", logs[i], want.ln());
                    let want = (f64::from(data[i]) * 0.5).exp() / roots;
                    assert!((f64::from(normal[i]) - want).abs() <= 4e-6 * want, "{length}: {} {want}", normal[i]);
                }
            }
        }
        Ok(())
    });
}

#[test]
fn transposes_move_every_element() {
    on_each_device(|| {
        for [rows, columns] in [[32usize, 32], [32, 48], [64, 128], [33, 40], [96, 31], [1, 64], [160, 16], [71, 77]] {
            let data: Vec<i64> = (0..(2 * rows * columns) as i64).collect();
            let turned = |i: usize| {
                let (batch, rest) = (i / (rows * columns), i % (rows * columns));
                data[batch * rows * columns + rest % rows * columns + rest / rows]
            };
            let want: Vec<i64> = (0..data.len()).map(turned).collect();
            let wide = Tensor::from_slice(&data, [2, rows, columns]);
            assert_eq!(wide.transpose(1, 2).contiguous().to_vec::<i64>()?, want, "{rows} x {columns} i64");
            let single: Vec<f32> = data.iter().map(|&x| x as f32).collect();
            let single = Tensor::from_slice(&single, [2, rows, columns]);
            // Turned, and computed with what is not.
            let sum = single.transpose(1, 2) * 2.0 + single.reshape([2, columns, rows]);
            let want: Vec<f32> = want.iter().enumerate().map(|(i, &x)| (2 * x + i as i64) as f32).collect();
            assert_eq!(sum.to_vec::<f32>()?, want, "{rows} x {columns} f32");
        }
        Ok(())
    });
}

#[test]
fn stacks_along_the_last_axis_interleave_rows_of_any_length() {
    on_each_device(|| {
        for (columns, count) in [(64usize, 2usize), (71, 2), (77, 3), (255, 3), (67, 5)] {
            let parts: Vec<Vec<f32>> =
                (0..count).map(|part| (0..3 * columns).map(|i| (i * count + part) as f32).collect()).collect();
            let tensors: Vec<Tensor> = parts.iter().map(|part| Tensor::from_slice(part, [3, columns])).collect();
            let got = Tensor::stack(&tensors.iter().collect::<Vec<_>>(), 2).to_vec::<f32>()?;
            let want: Vec<f32> = (0..3 * columns * count).map(|i| i as f32).collect();
            assert_eq!(got, want, "{count} of 3 x {columns}");
        }
        Ok(())
    });
}

#[test]
fn borders_of_rolled_and_padded_rows_are_what_they_are() {
    on_each_device(|| {
        for columns in [64usize, 71, 131] {
            let rows = 12;
            let data: Vec<f32> = (0..rows * columns).map(|i| (i % 97) as f32 + 1.0).collect();
            let at = |row: usize, column: usize| data[row % rows * columns + column % columns];
            let x = Tensor::from_slice(&data, [rows, columns]);
            let (mut wrapped, mut bordered) = (Vec::new(), Vec::new());
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                wrapped.push(at(row + rows - 1, column + columns - 1) + at(row + 1, column + 1));
                let left = if column > 0 { at(row, column - 1) } else { 0.0 };
                let below = if row + 1 < rows { at(row + 1, column) } else { 0.0 };
                bordered.push(left + below);
            }
            let got = (x.roll([1, 1], [0, 1]) + x.roll([-1, -1], [0, 1])).to_vec::<f32>()?;
            assert_eq!(got, wrapped, "{columns} columns, rolled");
            let [height, width] = [rows as i64, columns as i64];
            let wide = x.pad([1, 1], [height + 2, width + 2], 0.0);
            let sum = wide.at((1..height + 1, 0..width)) + wide.at((2..height + 2, 1..width + 1));
            assert_eq!(sum.to_vec::<f32>()?, bordered, "{columns} columns, padded");
        }
        Ok(())
    });
}

#[test]
fn what_no_cache_holds_is_written_whole() -> Result<(), Error> {
    let count = (9 << 20) + 5;
    let data: Vec<f32> = (0..count).map(|i| (i % 1000) as f32).collect();
    let got = (Tensor::from_slice(&data, [count as i64]) + 1.0).to_vec::<f32>()?;
    assert!(got.iter().zip(&data).all(|(got, x)| *got == x + 1.0));
    Ok(())
}

#[test]
fn sums_down_the_columns_of_matrices_are_exact_on_small_integers() -> Result<(), Error> {
    for [rows, columns] in [[300usize, 1024], [70, 3072], [100, 1100], [33, 257], [500, 16]] {
        let data: Vec<f32> = (0..rows * columns).map(|i| (i % 13) as f32).collect();
        let mut want = vec![0.0f32; columns];
        data.iter().enumerate().for_each(|(i, x)| want[i % columns] += x);
        let got = Tensor::from_slice(&data, [rows, columns]).sum(0, false).to_vec::<f32>()?;
        assert_eq!(got, want, "{rows} x {columns}");
        let vector = Tensor::from_slice(&vec![2.0f32; rows], [1, rows]);
        let product = vector.matmul(Tensor::from_slice(&data, [rows, columns])).to_vec::<f32>()?;
        assert!(product.iter().zip(&want).all(|(got, want)| *got == 2.0 * want), "{rows} x {columns}");
    }
    Ok(())
}

/// A few rows times a matrix that the second cache does not hold, stored either way; numbers of rows and columns that vectors
/// and streams divide, and that leave a rest.
#[test]
fn products_of_few_rows_and_a_large_matrix_are_exact_on_small_integers() -> Result<(), Error> {
    few_rows()?;
    // With short vectors and without masks, where this processor has them.
    if tinyspec_core::execute::device("x86-64-v3").is_ok_and(|_| cfg!(target_arch = "x86_64")) {
        tinyspec_core::execute::with_default_device("x86-64-v3", few_rows)?;
    }
    Ok(())
}

fn few_rows() -> Result<(), Error> {
    for [inner, outer] in [[256usize, 640], [258, 1003], [770, 1001], [1000, 264], [301, 640], [264, 70_003]] {
        let weight = |k: usize, n: usize| ((k * 31 + n * 17) % 7) as i64 - 3;
        let across: Vec<f32> = (0..inner * outer).map(|i| weight(i / outer, i % outer) as f32).collect();
        let along: Vec<f32> = (0..inner * outer).map(|i| weight(i % inner, i / inner) as f32).collect();
        let across = Tensor::from_slice(&across, [inner, outer]);
        let along = Tensor::from_slice(&along, [outer, inner]);
        let most = if outer > 10_000 { 2 } else { 9 };
        for rows in 1..=most {
            let value = |m: usize, k: usize| ((m * 5 + k * 3) % 5) as i64 - 2;
            let x: Vec<f32> = (0..rows * inner).map(|i| value(i / inner, i % inner) as f32).collect();
            let x = Tensor::from_slice(&x, [rows, inner]);
            let sum = |m: usize, n: usize| (0..inner).map(|k| value(m, k) * weight(k, n)).sum::<i64>() as f32;
            let want: Vec<f32> = (0..rows * outer).map(|i| sum(i / outer, i % outer)).collect();
            assert_eq!(x.matmul(&across).to_vec::<f32>()?, want, "{rows} rows across {inner} by {outer}");
            let turned = x.matmul(along.transpose(0, 1));
            assert_eq!(turned.to_vec::<f32>()?, want, "{rows} rows along {inner} by {outer}");
        }
        let total = |n: usize| (0..inner).map(|k| weight(k, n)).sum::<i64>() as f32;
        let totals: Vec<f32> = (0..outer).map(total).collect();
        assert_eq!(across.sum(0, false).to_vec::<f32>()?, totals, "sums down {inner} by {outer}");
        assert_eq!(along.sum(1, false).to_vec::<f32>()?, totals, "sums along {inner} by {outer}");
        assert_eq!(along.max(1, false).to_vec::<f32>()?, vec![3.0; outer], "maxima along {inner} by {outer}");
    }
    Ok(())
}

#[test]
fn positions_in_long_axes_are_those_of_the_first_greatest() -> Result<(), Error> {
    for count in [1usize << 17, 300_000, 131_101] {
        for (place, again) in [(0, count - 1), (77_777, 77_778), (count - 1, count - 1), (40_000, 120_000)] {
            for special in [9.0f32, f32::INFINITY, f32::NAN] {
                let mut data: Vec<f32> = (0..count).map(|i| (i % 8) as f32).collect();
                (data[place], data[again]) = (special, special);
                let x = Tensor::from_slice(&data, [count]);
                assert_eq!(x.argmax(0).item::<i32>()?, place as i32, "{special} in {count}");
                assert_eq!((x * -1.0).argmin(0).item::<i32>()?, place as i32, "{special} in {count}");
            }
        }
    }
    Ok(())
}

#[test]
fn positions_of_what_is_equal_are_the_first_whatever_it_is() {
    let lowest = f32::NEG_INFINITY;
    on_each_device(|| {
        for length in [1usize, 3, 16, 64, 65, 1000] {
            for (fill, special) in [(lowest, lowest), (-0.0, 0.0), (0.0, -0.0), (f32::NAN, f32::NAN), (1.0, -f32::NAN)]
            {
                let place = length / 3;
                let mut row = vec![fill; length];
                row[place] = special;
                let want = if special.is_nan() && !fill.is_nan() { place } else { 0 };
                let got = Tensor::from_slice(&row, [length]).argmax(0).item::<i32>()?;
                assert_eq!(got, want as i32, "{special} among {fill} in {length}");
            }
            let least = vec![i32::MIN; length];
            assert_eq!(
                Tensor::from_slice(&least, [length]).argmax(0).item::<i32>()?,
                0,
                "the least of i32 in {length}"
            );
            let rows: Vec<f32> = (0..3 * length).map(|i| ((i * 31) % 17) as f32).collect();
            let want: Vec<i32> = rows
                .chunks(length)
                .map(|row| (0..length).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0) as i32)
                .collect();
            assert_eq!(Tensor::from_slice(&rows, [3, length]).argmax(1).to_vec::<i32>()?, want, "rows of {length}");
            let want: Vec<i32> = (0..length)
                .map(|j| {
                    (0..3).rev().max_by(|&a, &b| rows[a * length + j].total_cmp(&rows[b * length + j])).unwrap_or(0)
                        as i32
                })
                .collect();
            assert_eq!(Tensor::from_slice(&rows, [3, length]).argmax(0).to_vec::<i32>()?, want, "columns of {length}");
        }
        Ok(())
    });
}

#[test]
fn variances_of_many_keep_their_digits_far_from_zero() -> Result<(), Error> {
    for (count, offset) in [(70_001usize, 0.0f64), (100_000, 1000.0), (1 << 18, 4096.0), (300_007, -50_000.0)] {
        let data: Vec<f32> = (0..count).map(|i| (offset + ((i * 7919) % 1009) as f64 / 8.0) as f32).collect();
        let mean = data.iter().map(|&x| f64::from(x)).sum::<f64>() / count as f64;
        let squares: f64 = data.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
        let x = Tensor::from_slice(&data, [count]);
        let (got, want) = (f64::from(x.var(.., 1, false).item::<f32>()?), squares / (count - 1) as f64);
        // What the mean itself is rounded by.
        let slack = want * 1e-5 + (offset.abs() * 1e-6).powi(2);
        assert!((got - want).abs() <= slack, "{count} around {offset}: {got}, not {want}");
        let halves =
            Tensor::from_slice(&[&data[..], &data[..]].concat(), [2, count]).var(1, 1, false).to_vec::<f32>()?;
        assert!(halves.iter().all(|&half| (f64::from(half) - want).abs() <= slack), "twice: {halves:?}, not {want}");
    }
    Ok(())
}

#[test]
fn sums_that_start_and_sums_that_end_at_a_row_share_a_kernel() {
    on_each_device(|| {
        for (rows, columns) in [(5usize, 132usize), (2, 64), (33, 7), (1, 5)] {
            let value = |i: usize| ((i * 37) % 11) as f64 - 4.0;
            let data: Vec<f64> = (0..rows * columns).map(value).collect();
            let x = Tensor::from_slice(&data, [rows, columns]);
            let y = x.mul(2.0).contiguous();
            let (up, down) = (x.cumsum(0), y.flip([0]).cumsum(0).flip([0]));
            let both = up.add(&down);
            tinyspec_core::realize_all(&[&up, &down, &both])?;
            let sum =
                |range: std::ops::Range<usize>, at: usize| -> f64 { range.map(|row| data[row * columns + at]).sum() };
            let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            let want: Vec<(f64, f64)> =
                places.map(|(row, at)| (sum(0..row + 1, at), 2.0 * sum(row..rows, at))).collect();
            assert_eq!(up.to_vec::<f64>()?, want.iter().map(|&(up, _)| up).collect::<Vec<_>>(), "{rows}×{columns}");
            assert_eq!(down.to_vec::<f64>()?, want.iter().map(|&(_, down)| down).collect::<Vec<_>>());
            assert_eq!(both.to_vec::<f64>()?, want.iter().map(|&(up, down)| up + down).collect::<Vec<_>>());
        }
        Ok(())
    });
}
