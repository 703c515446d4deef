//! How many kernels are compiled.

use tinyspec::function::named;
use tinyspec::prelude::function;
use tinyspec::{DType, Dim, Error, Function, Spec, Tensor, grad, profile, realize_all};

#[test]
fn one_compilation_serves_every_batch() -> Result<(), Error> {
    let _alone = crate::alone();
    let batch = named(0, 4096);
    let specs = [
        Spec::new(DType::F32, [batch, Dim::from(64)]),
        Spec::new(DType::F32, [64, 32]),
        Spec::new(DType::F32, [32, 10]),
    ];
    let mlp = Function::trace(&specs, |x| vec![x[0].matmul(&x[1]).relu().matmul(&x[2]).softmax(-1)])?;
    let (w1, w2) = (Tensor::full([64, 32], 0.01).contiguous(), Tensor::full([32, 10], 0.5).contiguous());
    let mut kernels = None;
    for rows in [1, 2, 7, 64, 100, 1000] {
        let x = Tensor::from_slice(&vec![1f32; rows * 64], [rows, 64]);
        let y = mlp.call(&[&x, &w1, &w2])[0].to_vec::<f32>()?;
        assert_eq!(y.len(), rows * 10);
        assert!(y.iter().all(|y| (y - 0.1).abs() < 1e-6), "{y:?}");
        let now = profile::counters().kernels;
        assert_eq!(now, *kernels.get_or_insert(now), "{rows} rows are compiled again");
    }
    Ok(())
}

#[function(bounds(T: 1..=512))]
fn attend<T>(q: &Tensor<f32, 4, 16>, k: &Tensor<f32, T, 16>, v: &Tensor<f32, T, 16>) -> Tensor<f32, 4, 16> {
    (q.matmul(k.transpose(0, 1)) * 0.25).softmax(-1).matmul(v)
}

#[test]
fn a_cache_grows_without_new_kernels() -> Result<(), Error> {
    let _alone = crate::alone();
    let row = |seed: usize| -> Vec<f32> { (0..16).map(|place| ((seed * 7 + place * 3) % 13) as f32 - 6.0).collect() };
    let all: Vec<f32> = (0..512).flat_map(row).collect();
    let (keys, values) =
        (Tensor::from_slice(&all, [512, 16]), Tensor::from_slice(&all, [512, 16]).mul(0.5).contiguous());
    let q = Tensor::from_slice(&[row(1), row(5), row(8), row(2)].concat(), [4, 16]);
    values.realize()?;
    let mut kernels = None;
    for length in [1usize, 2, 3, 17, 64, 65, 200, 511, 512] {
        let got = attend(&q, &keys.at(..length), &values.at(..length)).to_vec::<f32>()?;
        let now = profile::counters().kernels;
        assert_eq!(now, *kernels.get_or_insert(now), "length {length} is compiled again");
        let rows = &all[..length * 16];
        let scores: Vec<Vec<f64>> = [1, 5, 8, 2]
            .map(|seed| {
                let dot = |key: &[f32]| row(seed).iter().zip(key).map(|(a, b)| f64::from(a * b)).sum::<f64>() * 0.25;
                rows.chunks(16).map(dot).collect::<Vec<f64>>()
            })
            .into();
        for (line, scores) in got.chunks(16).zip(&scores) {
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let total: f64 = weights.iter().sum();
            for (place, got) in line.iter().enumerate() {
                let want: f64 =
                    weights.iter().zip(rows.chunks(16)).map(|(w, row)| w * f64::from(row[place]) * 0.5).sum();
                assert!((f64::from(*got) - want / total).abs() < 1e-4, "length {length}: {got}, not {}", want / total);
            }
        }
    }
    Ok(())
}

#[test]
fn parts_that_lie_together_are_read_where_they_are() -> Result<(), Error> {
    let _alone = crate::alone();
    let sums = Function::trace(&[Spec::new(DType::F32, [named(0, 64), Dim::from(16)])], |x| vec![x[0].sum(.., false)])?;
    let x = Tensor::from_vec((0..1024).map(|place| place as f32).collect::<Vec<_>>(), [64, 16]);
    sums.call(&[&x])[0].realize()?;
    let kernels = profile::counters().kernels;
    for rows in 1..=64 {
        let count = rows * 16;
        let want = (count * (count - 1) / 2) as f32;
        assert_eq!(sums.call(&[&x.at(..rows)])[0].item::<f32>()?, want, "{rows} rows");
        let want = (64 - rows..64).map(|row| (row * 256 + 120) as f32).sum::<f32>();
        assert_eq!(sums.call(&[&x.at(64 - rows..)])[0].item::<f32>()?, want, "the last {rows} rows");
    }
    assert_eq!(profile::counters().kernels, kernels, "a part is copied by a kernel of its own");
    let weight = Tensor::from_slice(&[2f32; 1024], [64, 16]);
    let y = sums.call(&[&weight.at(..3)])[0].clone();
    y.realize()?;
    let gradient = grad(&(&y * &y), &[&weight])?[0].to_vec::<f32>()?;
    assert_eq!(gradient[..48], [192.0; 48], "the gradient of a part goes to the whole");
    assert_eq!(gradient[48..], [0.0; 976]);
    Ok(())
}

/// The batches of an epoch, cut from one tensor by ordinary code, are one program; whoever asks has the gradient of the whole.
#[test]
fn batches_that_a_line_takes_one_after_the_other_are_one_program() -> Result<(), Error> {
    let _alone = crate::alone();
    let x = Tensor::from_vec((0..640).map(|place| (place % 7) as f32).collect::<Vec<_>>(), [64, 10]);
    let mut w = Tensor::from_slice(&[0.5f32; 10], [10]);
    let (mut compiled, mut kept) = (0, vec![]);
    for batch in 0..15i64 {
        // Rows of 40 bytes: not every batch starts where a kernel may.
        let part = x.at(batch * 4..(batch + 1) * 4);
        let y = (&part * &w).sum(1, false);
        let loss = (&y * &y).sum(.., false);
        let step = &grad(&loss, &[&w])?[0] * 1e-4;
        let before = w.to_vec::<f32>()?;
        w.assign(&(&w - step));
        realize_all(&[&loss, &w])?;
        let rows: Vec<Vec<f32>> =
            (batch * 4..batch * 4 + 4).map(|row| (row * 10..row * 10 + 10).map(|k| (k % 7) as f32).collect()).collect();
        let dot = |row: &[f32]| row.iter().zip(&before).map(|(a, b)| a * b).sum::<f32>();
        let want: f32 = rows.iter().map(|row| dot(row).powi(2)).sum();
        assert!((loss.item::<f32>()? - want).abs() <= 1e-5 * want, "batch {batch}");
        for (k, found) in w.to_vec::<f32>()?.iter().enumerate() {
            let want = before[k] - 2e-4 * rows.iter().map(|row| dot(row) * row[k]).sum::<f32>();
            assert!((found - want).abs() < 1e-4, "batch {batch}: {found} {want}");
        }
        let known = std::mem::replace(&mut compiled, profile::counters().plans);
        assert!(batch <= 5 || compiled == known, "batch {batch} is compiled again");
        let total = (&part * 3.0).sum(.., false);
        total.realize()?;
        kept.push((batch, total));
    }
    let (batch, total) = &kept[12];
    let gradient = grad(total, &[&x])?[0].to_vec::<f32>()?;
    let want = (0..640).map(|place| if place / 40 == *batch { 3.0 } else { 0.0 });
    assert!(gradient.iter().copied().eq(want), "{gradient:?}");
    Ok(())
}

#[function(bounds(B: 1..=256))]
fn loss<B>(x: &Tensor<f32, B, 4>, w: &Tensor<f32, 4, 3>, v: &Tensor<f32, 3, 2>) -> Tensor<f32> {
    let y = x.matmul(w).relu().matmul(v);
    (&y * &y).mean(.., false)
}

#[test]
fn gradients_of_a_call_are_compiled_once() -> Result<(), Error> {
    let _alone = crate::alone();
    let numbers = |count: usize, seed: usize| -> Vec<f32> {
        (0..count).map(|place| ((place * 5 + seed) % 7) as f32 * 0.25 - 0.75).collect()
    };
    let (w, v) = (Tensor::from_vec(numbers(12, 1), [4, 3]), Tensor::from_vec(numbers(6, 3), [3, 2]));
    for reads in [false, true] {
        let mut kernels = None;
        for rows in [1usize, 2, 7, 64, 65, 256] {
            let x = Tensor::from_vec(numbers(rows * 4, 2), [rows, 4]);
            let value = loss(&x, &w, &v);
            if reads {
                value.realize()?;
            }
            let got: Vec<Vec<f32>> =
                grad(&value, &[&w, &v])?.iter().map(Tensor::to_vec::<f32>).collect::<Result<_, _>>()?;
            let now = profile::counters().kernels;
            assert_eq!(now, *kernels.get_or_insert(now), "{rows} rows are compiled again, read: {reads}");
            // By the kernels of this size, once all is counted.
            let y = x.matmul(&w).relu().matmul(&v);
            let want = grad(&(&y * &y).mean(.., false), &[&w, &v])?;
            for (got, want) in got.iter().zip(&want) {
                for (got, want) in got.iter().zip(want.to_vec::<f32>()?) {
                    assert!((got - want).abs() <= 1e-5 + 1e-5 * want.abs(), "{rows} rows: {got}, not {want}");
                }
            }
            kernels = Some(profile::counters().kernels);
        }
    }
    Ok(())
}

#[function(bounds(T: 1..=64))]
fn last_row<T>(x: &Tensor<f32, T, 3>, w: &Tensor<f32, 3, 3>) -> Tensor<f32, 3> {
    x.matmul(w).at(-1)
}

#[test]
fn the_last_row_of_any_number_is_one_kernel() -> Result<(), Error> {
    let _alone = crate::alone();
    let w = Tensor::from_slice(&[1f32, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0], [3, 3]);
    let mut kernels = None;
    for rows in [5usize, 1, 64, 33] {
        let x = Tensor::from_vec((0..rows * 3).map(|place| place as f32).collect::<Vec<_>>(), [rows, 3]);
        let last = (rows as f32 - 1.0) * 3.0;
        assert_eq!(last_row(&x, &w).to_vec::<f32>()?, [last, 2.0 * (last + 1.0), 3.0 * (last + 2.0)]);
        let now = profile::counters().kernels;
        assert_eq!(now, *kernels.get_or_insert(now), "{rows} rows are compiled again");
        let second = grad(&last_row(&x, &w).sum(.., false), &[&x])?[0].to_vec::<f32>()?;
        assert_eq!(second[rows * 3 - 3..], [1.0, 2.0, 3.0]);
        assert_eq!(second[..rows * 3 - 3], vec![0.0; rows * 3 - 3]);
        kernels = Some(profile::counters().kernels);
    }
    Ok(())
}

#[test]
fn sums_so_far_take_one_step_a_term() -> Result<(), Error> {
    let _alone = crate::alone();
    let most = 1 << 20;
    let ends = [Spec::new(DType::F32, [named(0, most)])];
    let forwards = Function::trace(&ends, |x| vec![x[0].cumsum(0)])?;
    let backwards = Function::trace(&ends, |x| vec![x[0].flip([0]).cumsum(0).flip([0])])?;
    // With n² steps this takes minutes.
    for size in [1usize, 63, 64, 65, 1000, most as usize] {
        let x = Tensor::from_vec((0..size).map(|place| (place % 3) as f32).collect::<Vec<_>>(), [size]);
        let (first, last) = (forwards.call(&[&x])[0].to_vec::<f32>()?, backwards.call(&[&x])[0].to_vec::<f32>()?);
        let (mut before, mut behind) = (0.0, 0.0);
        for place in 0..size {
            before += (place % 3) as f32;
            behind += ((size - 1 - place) % 3) as f32;
            assert_eq!((first[place], last[size - 1 - place]), (before, behind), "{place} of {size}");
        }
    }
    Ok(())
}

/// A rate that changes from step to step is data. What only sums name is compiled for a few numbers, then for any.
#[test]
fn numbers_that_change_are_no_part_of_a_program() -> Result<(), Error> {
    let _alone = crate::alone();
    let weights = Tensor::from_slice(&[1f32, 2.0, 3.0], [3]);
    let mut plans = None;
    for step in 1..20u8 {
        let rate = Tensor::scalar(1.0 / f32::from(step));
        let moved = (&weights - &rate * &weights).sum(.., false).item::<f32>()?;
        assert!((moved - 6.0 * (1.0 - 1.0 / f32::from(step))).abs() < 1e-5, "{moved}");
        let now = profile::counters().plans;
        assert_eq!(now, *plans.get_or_insert(now), "step {step} is compiled again");
    }
    // A number that a line writes anew again and again, beside weights that are stepped, and through gradients.
    let (mut weights, mut compiled) = (weights, 0);
    let mut expected = [1f32, 2.0, 3.0];
    for step in 1..20i32 {
        let (rate, correction) = (0.1 / f64::from(step), 1.0 - 0.9f64.powi(step));
        let loss = (&weights * &weights * rate).sum(.., false);
        let slope = &grad(&loss, &[&weights])?[0] / correction;
        weights.assign(&(&weights - slope));
        for weight in &mut expected {
            *weight -= 2.0 * *weight * rate as f32 / correction as f32;
        }
        assert!(loss.item::<f32>()?.is_finite());
        for (found, expected) in weights.to_vec::<f32>()?.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
        // The line keeps no tensor of its number: what was read has its gradient all the same, of that number.
        if step == 12 {
            let twice = (&weights * &weights * rate).sum(.., false);
            twice.realize()?;
            let ratio = &grad(&twice, &[&weights])?[0] / &weights;
            assert!((ratio.mean(.., false).item::<f32>()? - 2.0 * rate as f32).abs() < 1e-6);
            compiled = profile::counters().plans;
            continue;
        }
        let known = std::mem::replace(&mut compiled, profile::counters().plans);
        assert!(step <= 5 || compiled == known, "step {step} is compiled again");
    }
    // Several at once, in one expression, of states that began as constants, in comparisons; those of a loop stay what they are.
    let (mut mean, mut state, mut known) = (Tensor::zeros([4]), Tensor::ones([4]), 0);
    let (mut want_mean, mut want_state) = (0f64, 1f64);
    for step in 1..20i32 {
        let (near, far) = (1.0 - 0.9f64.powi(step), 1.0 - 0.5f64.powi(step));
        mean = &mean * 0.5 + &state * near;
        state = (&mean / far) * 0.25 + (&state / near) * 0.0125;
        let mut horner = state.gt(far).cast(DType::F32);
        for k in 0..6 {
            horner = horner * &state + f64::from(k) * 0.5;
        }
        realize_all(&[&mean, &state, &horner])?;
        want_mean = want_mean * 0.5 + want_state * near;
        want_state = want_mean / far * 0.25 + want_state / near * 0.0125;
        let bit = f64::from(u8::from(want_state > far));
        let want_horner = (0..6).fold(bit, |sum, k| sum * want_state + f64::from(k) * 0.5);
        for (found, wanted) in [(&mean, want_mean), (&state, want_state), (&horner, want_horner)] {
            let found = f64::from(found.to_vec::<f32>()?[2]);
            assert!((found - wanted).abs() <= 1e-4 * wanted.abs().max(1.0), "step {step}: {found} {wanted}");
        }
        let before = std::mem::replace(&mut known, profile::counters().plans);
        assert!(step <= 6 || known == before, "step {step} is compiled again");
    }
    // A tensor that is a number is itself.
    let factor = Tensor::full((), 2f32);
    assert_eq!(grad(&(&weights * &factor * 0.0 + &factor).sum(.., false), &[&factor])?[0].item::<f32>()?, 3.0);
    let mut plans = None;
    for number in 0..20i32 {
        assert_eq!(Tensor::scalar(number).expand([4]).sum(.., false).item::<i32>()?, 4 * number);
        let now = profile::counters().plans;
        if number > 4 {
            assert_eq!(now, *plans.get_or_insert(now), "number {number} is compiled again");
        }
    }
    Ok(())
}

/// So are the numbers that methods are given, of any dtype, and those of values on several devices.
#[test]
fn numbers_given_to_methods_are_no_part_of_a_program() -> Result<(), Error> {
    let _alone = crate::alone();
    let data: Vec<f32> = (0..16).map(|place| place as f32 * 0.25 - 2.0).collect();
    let x = Tensor::from_slice(&data, [4, 4]);
    let whole = x.cast(DType::I32);
    let pair = x.to(["cpu:0", "cpu:1"]);
    realize_all(&[&whole, &pair])?;
    type Step = fn(&[Tensor; 3], i32) -> Tensor;
    type Want = fn(f32, f64) -> f32;
    let methods: [(&str, Step, Want); 16] = [
        ("clip", |[x, ..], step| x.clip(-0.5, share(step)), |x, share| x.clamp(-0.5, share as f32)),
        ("threshold", |[x, ..], step| x.threshold(share(step), share(step)), |x, share| x.max(share as f32)),
        ("leaky_relu", |[x, ..], step| x.leaky_relu(share(step)), |x, share| x.max(x * share as f32)),
        ("full_like", |[x, ..], step| x.full_like(share(step)), |_, share| share as f32),
        ("full", |[x, ..], step| x * Tensor::full([4], share(step)), |x, share| x * share as f32),
        ("full of whole numbers", |[x, ..], step| x + Tensor::full([4], step), |x, share| x + steps(share) as f32),
        ("linspace", |_, step| Tensor::linspace(share(step), share(step), 16, DType::F32), |_, share| share as f32),
        ("pad", |[x, ..], step| x.pad([0, 0], [4, 5], share(step)).at((.., ..4)), |x, _| x),
        ("addcmul", |[x, ..], step| x.addcmul(x, x, share(step)), |x, share| x + share as f32 * (x * x)),
        ("pow_const", |[x, ..], step| x.square().pow_const(share(step)), |x, share| (x * x).powf(share as f32)),
        ("huber_loss", |[x, ..], step| x.huber_loss(x, "none", share(step)), |_, _| 0.0),
        ("masked_fill", |[x, ..], step| x.masked_fill(x.gt(9.0), share(step)), |x, _| x),
        ("whole number", |[_, x, _], step| (x + step).cast(DType::F32), |x, share| x.trunc() + steps(share) as f32),
        (
            "compared",
            |[_, x, _], step| x.lt(step).cast(DType::F32),
            |x, share| f32::from(x.trunc() < steps(share) as f32),
        ),
        ("on two devices", |[.., x], step| (x * share(step)).to("cpu"), |x, share| x * share as f32),
        ("clipped on two", |[.., x], step| x.clip(-0.5, share(step)).to("cpu"), |x, share| x.clamp(-0.5, share as f32)),
    ];
    let inputs = [x.clone(), whole, pair];
    for (name, make, want) in methods {
        let mut compiled = 0;
        for step in 0..12 {
            let found = make(&inputs, step).to_vec::<f32>()?;
            for (&x, found) in data.iter().zip(found) {
                let want = want(x, share(step));
                assert!((found - want).abs() <= 1e-5 * want.abs().max(1.0), "{name}, step {step}: {found}, not {want}");
            }
            let known = std::mem::replace(&mut compiled, profile::counters().plans);
            assert!(step <= 5 || compiled == known, "{name}: step {step} is compiled again");
        }
    }
    // What is drawn, and a loss that was read before its gradient was asked for.
    let (w, mut compiled) = (Tensor::from_slice(&[1f32, -2.0, 3.0, 0.5], [4]), 0);
    for step in 0..12 {
        let kept =
            (&x * &w).clip(-1.0, share(step) + 0.5).dropout(share(step)) + Tensor::uniform([4], 0.0, share(step));
        let loss = kept.sum(.., false);
        assert!(loss.item::<f32>()?.is_finite());
        assert!(grad(&loss, &[&w])?[0].to_vec::<f32>()?.iter().all(|slope| slope.is_finite()));
        let known = std::mem::replace(&mut compiled, profile::counters().plans);
        assert!(step <= 5 || compiled == known, "step {step} is compiled again");
    }
    Ok(())
}

/// So are places: columns, parts of what is computed, and what is set.
#[test]
fn places_that_change_are_no_part_of_a_program() -> Result<(), Error> {
    let _alone = crate::alone();
    const SIDE: usize = 12;
    let data: Vec<f32> = (0..SIDE * SIDE).map(|place| place as f32 * 0.5 - 9.0).collect();
    let x = Tensor::from_slice(&data, [SIDE, SIDE]);
    let rows = Tensor::from_slice(&[[3f32; SIDE], [4.0; SIDE]].concat(), [2, SIDE]);
    type Step = fn(&Tensor, &Tensor, i64) -> Tensor;
    type Want = fn(&[f32], usize, usize, usize) -> f32;
    let methods: [(&str, Step, Want); 12] = [
        ("column", |x, _, i| x.at((.., i)).reshape([-1, 1]).expand([12, 12]), |x, i, row, _| x[row * SIDE + i]),
        ("row", |x, _, i| x.narrow(0, i, 1).expand([12, 12]), |x, i, _, column| x[i * SIDE + column]),
        (
            "columns",
            |x, _, i| (x + 1.0).at((.., i..i + 2)).repeat([1, 6]),
            |x, i, row, column| x[row * SIDE + i + column % 2] + 1.0,
        ),
        ("rolled", |x, _, i| x.roll([i], [0]), |x, i, row, column| x[(row + SIDE - i) % SIDE * SIDE + column]),
        (
            "rolled along both axes",
            |x, _, i| (x * 2.0).roll([i, -i - 1], [0, 1]),
            |x, i, row, column| 2.0 * x[(row + SIDE - i) % SIDE * SIDE + (column + i + 1) % SIDE],
        ),
        (
            "upper triangle",
            |x, _, i| x.triu(i + 2),
            |x, i, row, column| if column >= row + i + 2 { x[row * SIDE + column] } else { 0.0 },
        ),
        (
            "a row set",
            |x, _, i| set(x, i, 7.0),
            |x, i, row, column| if row == i { 7.0 } else { x[row * SIDE + column] },
        ),
        (
            "an element set",
            |x, _, i| set(x, (i, i + 1), 7.0),
            |x, i, row, column| {
                if (row, column) == (i, i + 1) { 7.0 } else { x[row * SIDE + column] }
            },
        ),
        (
            "a column set",
            |x, _, i| set(x, (.., i), x.at(i)),
            |x, i, row, column| {
                if column == i { x[i * SIDE + row] } else { x[row * SIDE + column] }
            },
        ),
        (
            "rows set",
            |x, rows, i| set(x, i..i + 2, rows),
            |x, i, row, column| match row.checked_sub(i) {
                Some(place @ 0..2) => 3.0 + place as f32,
                _ => x[row * SIDE + column],
            },
        ),
        (
            "columns set",
            |x, rows, i| set(x, (.., i..i + 2), rows.transpose(0, 1)),
            |x, i, row, column| match column.checked_sub(i) {
                Some(place @ 0..2) => 3.0 + place as f32,
                _ => x[row * SIDE + column],
            },
        ),
        (
            "a block set",
            |x, rows, i| set(x, (i..i + 2, 1..4), rows.at((.., i..i + 3))),
            |x, i, row, column| match row.checked_sub(i) {
                Some(place @ 0..2) if (1..4).contains(&column) => 3.0 + place as f32,
                _ => x[row * SIDE + column],
            },
        ),
    ];
    for (name, make, want) in methods {
        let mut compiled = 0;
        for (step, i) in [0, 3, 9, 1, 7, 2, 8, 4, 6, 5].into_iter().enumerate() {
            let found = make(&x, &rows, i).to_vec::<f32>()?;
            for (place, found) in found.into_iter().enumerate() {
                let want = want(&data, i as usize, place / SIDE, place % SIDE);
                assert_eq!(found, want, "{name} at {i}, place {place}");
            }
            let known = std::mem::replace(&mut compiled, profile::counters().plans);
            assert!(step <= 5 || compiled == known, "{name}: step {step} is compiled again");
        }
    }
    // Rows written in place into a ring buffer, and the gradient of what was read from it.
    let (mut ring, mut compiled) = (Tensor::zeros([SIDE, SIDE]), 0);
    for step in 0..40i64 {
        let row = Tensor::from_slice(&[step as f32; SIDE], [SIDE]);
        ring.set(step % 12, &row * 2.0);
        let loss = (&ring * &ring).at((.., step % 12)).sum(.., false);
        let own = (&x * &row).at((.., step % 12)).sum(.., false);
        realize_all(&[&ring, &loss])?;
        let last = (0..=step).rev().take(12).map(|step| 4.0 * (step * step) as f32).sum::<f32>();
        assert!((loss.item::<f32>()? - last).abs() <= 1e-5 * last, "step {step}");
        own.realize()?;
        let slope = grad(&own, &[&row])?[0].to_vec::<f32>()?;
        let total = (0..SIDE).map(|row| data[row * SIDE + (step % 12) as usize]).sum::<f32>();
        let want = |place: i64| if place == step % 12 { total } else { 0.0 };
        assert!(slope.iter().zip(0..).all(|(&slope, place)| slope == want(place)), "step {step}: {slope:?}");
        let known = std::mem::replace(&mut compiled, profile::counters().plans);
        assert!(step <= 12 || compiled == known, "step {step} is compiled again");
    }
    Ok(())
}

#[track_caller]
fn set(x: &Tensor, picks: impl tinyspec::IntoPicks, value: impl tinyspec::Operand) -> Tensor {
    let mut x = x.clone();
    x.set(picks, value);
    x
}

fn share(step: i32) -> f64 {
    0.01 + 0.03 * f64::from(step)
}

/// The step whose share this is.
fn steps(share: f64) -> i32 {
    ((share - 0.01) / 0.03).round() as i32
}

#[test]
fn a_prepared_sum_takes_the_number_that_it_is_called_with() -> Result<(), Error> {
    let function = Function::trace(&[Spec::new(DType::I32, ())], |x| vec![x[0].expand([4]).sum(.., false)])?;
    let number = |value: i32| Tensor::scalar(value);
    let run = function.prepare(&[&number(3)])?;
    for value in [3, 5, -7, 0, 11] {
        let mut sum = [Tensor::scalar(0i32)];
        run.call(&mut sum, &[&number(value)])?;
        assert_eq!(sum[0].item::<i32>()?, 4 * value);
        assert_eq!(sum[0].expand([2]).sum(.., false).item::<i32>()?, 8 * value);
    }
    Ok(())
}
