//! Data-dependent indexing: narrow indices into long axes, negative numbers, what is outside.

use crate::support::on_each_device;
use tinyspec_core::execute::with_default_device;
use tinyspec_core::{Error, Tensor, grad};
use tinyspec_ir::DType;

const ROWS: i64 = 300;

fn indices(dtype: DType) -> Tensor {
    Tensor::from_slice(&[0i32, 3, 44, 127], [4]).cast(dtype).contiguous()
}

#[test]
fn an_axis_may_be_longer_than_the_indices_reach() {
    on_each_device(|| {
        let ramp = Tensor::arange(ROWS).cast(DType::F32).contiguous();
        let table = ramp.reshape([ROWS, 1]);
        for dtype in [DType::U8, DType::I8, DType::U16, DType::I16, DType::I32, DType::U64] {
            let index = indices(dtype);
            let hot = index.one_hot(ROWS);
            assert_eq!(hot.sum(1, false).to_vec::<i32>()?, [1; 4], "{dtype}");
            assert_eq!(hot.argmax(1).to_vec::<i32>()?, [0, 3, 44, 127], "{dtype}");
            assert_eq!(ramp.gather(&index, 0).to_vec::<f32>()?, [0.0, 3.0, 44.0, 127.0], "{dtype}");
            assert_eq!(ramp.take(&index).to_vec::<f32>()?, [0.0, 3.0, 44.0, 127.0], "{dtype}");
            assert_eq!(ramp.index0(&index).to_vec::<f32>()?, [0.0, 3.0, 44.0, 127.0], "{dtype}");
            assert_eq!(index.embedding(&table).to_vec::<f32>()?, [0.0, 3.0, 44.0, 127.0], "{dtype}");
            let zeros = Tensor::zeros([ROWS]);
            let added = zeros.scatter_add(&index, Tensor::ones([4]), 0);
            assert_eq!(added.sum(.., false).item::<f32>()?, 4.0, "{dtype}");
        }
        Ok(())
    });
}

#[test]
fn negative_numbers_count_from_the_end_in_a_narrow_dtype() {
    on_each_device(|| {
        let ramp = Tensor::arange(ROWS).cast(DType::F32).contiguous();
        let index = Tensor::from_slice(&[-1i8, -128, 5], [3]);
        assert_eq!(ramp.index0(&index).to_vec::<f32>()?, [299.0, 172.0, 5.0]);
        Ok(())
    });
}

#[test]
fn gradients_go_to_the_rows_that_were_read() {
    on_each_device(|| {
        for dtype in [DType::U8, DType::I8, DType::I32] {
            let table = Tensor::arange(ROWS).cast(DType::F32).reshape([ROWS, 1]).contiguous();
            let rows = Tensor::from_slice(&[3i32, 3, 44], [3]).cast(dtype).contiguous();
            let loss = rows.embedding(&table).sum(.., false);
            let got = grad(&loss, &[&table])?.remove(0).to_vec::<f32>()?;
            let mut want = vec![0f32; ROWS as usize];
            (want[3], want[44]) = (2.0, 1.0);
            assert_eq!(got, want, "{dtype}");
        }
        Ok(())
    });
}

#[test]
fn a_gather_gives_the_element_itself() {
    on_each_device(|| {
        let x = Tensor::from_slice(&[-0.0f32, 1.0, f32::INFINITY, f32::NAN, -3.0], [5]);
        let index = Tensor::from_slice(&[0i32, 4, 2, 5, -1, 3, 0], [7]);
        let found = x.gather(&index, 0).to_vec::<f32>()?;
        assert_eq!(found[0].to_bits(), (-0.0f32).to_bits());
        assert_eq!(found[6].to_bits(), (-0.0f32).to_bits());
        assert_eq!(found[1..5], [-3.0, f32::INFINITY, 0.0, 0.0]);
        assert!(found[5].is_nan());
        Ok(())
    });
}

/// Numbers that repeat, and some that are outside.
fn scattered(count: i64, places: i64) -> Vec<i32> {
    (0..count).map(|i| ((i * 7919 + 13) % (places + 2) - 1) as i32).collect()
}

#[test]
fn scattered_sums_meet_at_their_places() {
    on_each_device(|| {
        for (places, width, count) in [(100, 1, 50), (64, 24, 200), (40, 130, 33)] {
            let ids = scattered(count, places);
            let rows: Vec<i32> = ids.iter().flat_map(|&id| std::iter::repeat_n(id, width as usize)).collect();
            let index = Tensor::from_slice(&rows, [count, width]);
            let value = (Tensor::arange(count * width) % 11).cast(DType::F32).reshape([count, width]).contiguous();
            let zeros = Tensor::zeros([places, width]);
            let base = (zeros + 0.5).contiguous();
            let mut want = vec![0.5f32; (places * width) as usize];
            for (d, &id) in ids.iter().enumerate().filter(|(_, id)| (0..places as i32).contains(*id)) {
                for j in 0..width as usize {
                    want[id as usize * width as usize + j] += ((d * width as usize + j) % 11) as f32;
                }
            }
            assert_eq!(base.scatter_add(&index, &value, 0).to_vec::<f32>()?, want, "{places} {width} {count}");
            // In a narrow float the sum is rounded once.
            let narrow = base.cast(DType::BF16).scatter_add(&index, value.cast(DType::BF16), 0);
            let exact = narrow.cast(DType::F32).to_vec::<f32>()?;
            assert!(exact.iter().zip(&want).all(|(a, b)| (a - b).abs() <= b.abs() / 128.0), "{places} {width}");
            let greatest = base.scatter_reduce(&index, &value, 0, "amax", true).to_vec::<f32>()?;
            let sums = base.scatter_reduce(&index, &value, 0, "mean", false).to_vec::<f32>()?;
            assert!(greatest.iter().chain(&sums).all(|x| x.is_finite()));
        }
        Ok(())
    });
}

#[test]
fn gradients_of_running_sums_run_backwards() {
    on_each_device(|| {
        for (rows, columns) in [(1, 300), (5, 64), (3, 7)] {
            for axis in [0, 1] {
                let x = (Tensor::arange(rows * columns) % 7).cast(DType::F32).reshape([rows, columns]).contiguous();
                let weight =
                    (Tensor::arange(rows * columns) % 5).cast(DType::F32).reshape([rows, columns]).contiguous();
                let loss = (x.cumsum(axis) * &weight).sum(.., false);
                let found = grad(&loss, &[&x])?.remove(0).to_vec::<f32>()?;
                let w = weight.to_vec::<f32>()?;
                let (rows, columns) = (rows as usize, columns as usize);
                for i in 0..rows {
                    for j in 0..columns {
                        let after = if axis == 0 {
                            (i..rows).map(|r| w[r * columns + j]).sum::<f32>()
                        } else {
                            w[i * columns + j..(i + 1) * columns].iter().sum()
                        };
                        assert_eq!(found[i * columns + j], after, "{rows}x{columns} along {axis}");
                    }
                }
            }
        }
        Ok(())
    });
}

/// A picked and three written tensors beside what loops over their places make of them.
fn agrees_with_loops(x_shape: [usize; 2], index_shape: [usize; 2], axis: usize) -> Result<(), tinyspec_core::Error> {
    let [rows, columns] = x_shape;
    let numbers: Vec<f32> = (0..rows * columns).map(|place| place as f32 * 0.5 - 2.0).collect();
    let count = index_shape[0] * index_shape[1];
    let places: Vec<i64> = (0..count).map(|number| (number * 7 % x_shape[axis]) as i64).collect();
    let values: Vec<f32> = (0..count).map(|number| number as f32 + 10.0).collect();
    let (x, index) =
        (Tensor::from_slice(&numbers, [rows, columns]), Tensor::from_slice(&places, index_shape.map(|n| n as i64)));
    let value = Tensor::from_slice(&values, index_shape.map(|n| n as i64));
    let (mut picked, mut gradient) = (vec![], vec![0f32; rows * columns]);
    let (mut written, mut added, mut greatest) = (numbers.clone(), numbers.clone(), numbers.clone());
    for row in 0..index_shape[0] {
        for column in 0..index_shape[1] {
            let number = row * index_shape[1] + column;
            let mut place = [row, column];
            place[axis] = places[number] as usize;
            let place = place[0] * columns + place[1];
            picked.push(numbers[place]);
            gradient[place] += values[number];
            written[place] = values[number];
            added[place] += values[number];
            greatest[place] = greatest[place].max(values[number]);
        }
    }
    let axis = axis as i64;
    let found = x.gather(&index, axis);
    assert_eq!(found.sizes()?, index_shape);
    assert_eq!(grad(&(&found * &value).sum(.., false), &[&x])?[0].to_vec::<f32>()?, gradient);
    assert_eq!(found.to_vec::<f32>()?, picked);
    let set = x.scatter(&index, &value, axis);
    let kept: Vec<f32> = written.iter().zip(&numbers).map(|(new, old)| f32::from(new == old)).collect();
    assert_eq!(grad(&set.sum(.., false), &[&x])?[0].to_vec::<f32>()?, kept);
    assert_eq!(set.to_vec::<f32>()?, written);
    assert_eq!(x.scatter_add(&index, &value, axis).to_vec::<f32>()?, added);
    assert_eq!(x.scatter_reduce(&index, &value, axis, "amax", true).to_vec::<f32>()?, greatest);
    // Of more values those at the numbers of the places.
    let more = value.pad([0, 0], [index_shape[0] as i64 + 1, index_shape[1] as i64 + 2], -1.0);
    assert_eq!(x.scatter(&index, &more, axis).to_vec::<f32>()?, written);
    Ok(())
}

#[test]
fn an_index_may_be_shorter_than_what_it_picks_from() {
    on_each_device(|| {
        agrees_with_loops([3, 4], [1, 2], 0)?;
        agrees_with_loops([3, 4], [5, 3], 0)?;
        agrees_with_loops([3, 4], [2, 6], 1)?;
        agrees_with_loops([3, 4], [3, 4], 1)
    });
    let (eye, index) = (Tensor::eye(3, 3, DType::F32), Tensor::from_slice(&[0i32, 1], [1, 2]));
    let longer = Tensor::zeros([1, 4]).cast(DType::I32);
    let error = eye.gather(&longer, 0).to_vec::<f32>().expect_err("four columns of three").to_string();
    assert!(
        error.contains("gather: [1, 4] picks from [3, 3]: as many axes, and outside axis 0 no longer ones"),
        "{error}"
    );
    let short = eye.scatter_add(&index, Tensor::ones([1, 1]), 0);
    assert!(short.error().is_some_and(|error| error.to_string().contains("values of [1, 1] for places of [1, 2]")));
    assert!(eye.gather(index.reshape([2]), 0).error().is_some());
}

/// Small integers, so that sums are exact in any order.
fn small(shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    ((Tensor::arange(count) * 13).modulo(11) - 5).cast(DType::F32).reshape(shape).contiguous()
}

#[test]
fn gradients_of_reads_at_places_are_sums_at_places() -> Result<(), Error> {
    let (rows, columns, reads) = (700, 6, 150);
    let (table, weights) = (small(&[rows, columns]), small(&[reads, columns]));
    let places: Vec<i32> =
        (0..reads).map(|i| (i * i * 7 % rows) as i32 - if i % 5 == 0 { rows as i32 } else { 0 }).collect();
    let index = Tensor::from_slice(&places, [reads]);
    type Read = fn(&Tensor, &Tensor) -> Tensor;
    // Which rows are read, and whether negative numbers count from the end.
    let ways: [(&str, bool, Read); 4] = [
        ("embedding", false, |table, index| index.embedding(table)),
        ("take", false, |table, index| table.take(index)),
        ("index_select", true, |table, index| table.index_select(0, index)),
        ("at", true, |table, index| table.at(index)),
    ];
    let (values, factors) = (table.to_vec::<f32>()?, weights.to_vec::<f32>()?);
    for (name, wraps, read) in ways {
        let read = read(&table, &index);
        type Loss = fn(f32, f32) -> f32;
        let losses: [(&str, Tensor, Loss); 3] = [
            ("sum", read.sum(.., false), |_, _| 1.0),
            ("weighed", (&read * &weights).sum(.., false), |_, weight| weight),
            ("squared", (read.square() * &weights).sum(.., false), |x, weight| 2.0 * x * weight),
        ];
        for (loss, total, slope) in losses {
            let mut want = vec![0f32; values.len()];
            for (number, &place) in places.iter().enumerate() {
                let place = if wraps && place < 0 { i64::from(place) + rows } else { i64::from(place) };
                let Ok(place) = usize::try_from(place) else { continue };
                for column in 0..columns as usize {
                    let at = place * columns as usize + column;
                    want[at] += slope(values[at], factors[number * columns as usize + column]);
                }
            }
            assert_eq!(grad(&total, &[&table])?.remove(0).to_vec::<f32>()?, want, "{name}, {loss}");
        }
    }
    Ok(())
}

#[test]
fn gradients_of_pictures_read_at_places() -> Result<(), Error> {
    type Read = fn(&Tensor, &Tensor) -> Tensor;
    let reads: [(&str, Read); 4] = [
        ("grid_sample", |x, grid| x.grid_sample(grid, "bilinear", "zeros", false)),
        ("grid_sample by its border", |x, grid| x.grid_sample(grid, "bilinear", "border", true)),
        ("interpolate", |x, _| x.interpolate([71, 40], "bilinear", false)),
        ("interpolate by cubes", |x, _| x.interpolate([40, 71], "bicubic", true)),
    ];
    for (name, read) in reads {
        let gradients = |device: &str| -> Result<Vec<f64>, Error> {
            with_default_device(device, || {
                let x = (small(&[1, 2, 35, 33]) / 5.0).cast(DType::F64).contiguous();
                let grid = (small(&[1, 9, 10, 2]) / 4.3).cast(DType::F64).contiguous();
                grad(&read(&x, &grid).square().sum(.., false), &[&x])?.remove(0).to_vec::<f64>()
            })
        };
        let (found, want) = (gradients("cpu")?, gradients("interpreter")?);
        let is_close = |(found, want): (&f64, &f64)| (found - want).abs() <= 1e-9 * want.abs().max(1.0);
        assert!(found.len() == want.len() && found.iter().zip(&want).all(is_close), "{name}");
    }
    Ok(())
}

/// Sizes of other tensors are ends, as they are and by reference.
#[test]
fn sizes_are_ends_of_ranges() -> Result<(), tinyspec_core::Error> {
    let (x, y) = (Tensor::arange(6), Tensor::ones([2]));
    let size = &y.shape()[0];
    assert_eq!(x.at(..size).to_vec::<i32>()?, [0, 1]);
    assert_eq!(x.at(..=size).to_vec::<i32>()?, [0, 1, 2]);
    assert_eq!(x.at(size..).to_vec::<i32>()?, [2, 3, 4, 5]);
    assert_eq!(x.at(size..&x.shape()[0]).to_vec::<i32>()?, [2, 3, 4, 5]);
    assert_eq!(x.at(size..=size).to_vec::<i32>()?, x.at(size.clone()..=size.clone()).to_vec::<i32>()?);
    Ok(())
}

/// A row that is read in two parts, under a condition, has machine vectors all of whose lanes are closed in one of them.
#[test]
fn rows_that_data_name_are_rolled() {
    on_each_device(|| {
        for (rows, columns) in [(5i64, 5i64), (4, 6), (3, 7), (6, 12)] {
            for shift in [-(columns - 1), -1, 1, columns - 1, columns / 2] {
                let data: Vec<i64> = (0..rows * columns).map(|number| number * 7 % 16 + 1).collect();
                let x = Tensor::from_slice(&data, [rows, columns]);
                let index: Vec<i32> = (0..2 * rows).map(|number| (number * 3 % (rows + 2)) as i32).collect();
                let index = Tensor::from_slice(&index, [2 * rows]);
                let named: Vec<i32> = index.to_vec()?;
                let want: Vec<i64> = (named.iter())
                    .flat_map(|&row| {
                        (0..columns).map(move |column| (i64::from(row), (column - shift).rem_euclid(columns)))
                    })
                    .map(|(row, column)| if row < rows { data[(row * columns + column) as usize] } else { 0 })
                    .collect();
                // A program of its own for each: shifts that change from call to call are data.
                let cut = (columns - shift).rem_euclid(columns);
                let rolled = Tensor::cat(&[&x.at((.., cut..)), &x.at((.., ..cut))], 1);
                assert_eq!(
                    x.roll([shift], [1]).index0(&index).to_vec::<i64>()?,
                    want,
                    "{rows} rows of {columns} by {shift}"
                );
                assert_eq!(
                    rolled.index0(&index).to_vec::<i64>()?,
                    want,
                    "{rows} rows of {columns} by {shift}, in parts"
                );
            }
        }
        Ok(())
    });
}
