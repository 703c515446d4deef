//! What calls of such functions refuse, prepare and remember.

use tinyspec::function::named;
use tinyspec::prelude::*;
use tinyspec::{Dim, ErrorKind, Function, Prepared, Spec, grad, realize_all};

#[function(bounds(B: 1..=128))]
fn layer<B>(x: &Tensor<f32, B, 4>, w: &Tensor<f32, 4, 2>) -> Tensor<f32, B, 2> {
    x.matmul(w).relu()
}

fn ramp(rows: usize) -> Tensor {
    let values: Vec<f32> = (0..rows * 4).map(|place| place as f32 - 5.0).collect();
    Tensor::from_vec(values, [rows, 4])
}

#[test]
fn what_is_outside_of_the_bounds_is_refused_by_name() {
    let _alone = crate::alone();
    let w = Tensor::ones([4, 2]);
    let error = layer(&ramp(129), &w).to_vec::<f32>().expect_err("128 rows at most");
    assert_eq!(error.kind(), Some(ErrorKind::Shape));
    assert!(error.location().is_some_and(|location| location.file.ends_with("calls.rs")));
    let text = error.to_string();
    for part in ["axis 0 of `x` is 129", "dim `B` goes from 1 to 128", "this is Tensor<f32, 129, 4>"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let run = layer::FUNCTION.prepare(&[&ramp(3), &w]).expect("fits");
    let mut out = run.outputs().expect("memory");
    let error = run.call(&mut out, &[&ramp(200), &w]).expect_err("128 rows at most");
    assert!(error.to_string().contains("dim `B` goes from 1 to 128"), "{error}");
}

#[test]
fn a_prepared_call_takes_every_size() -> Result<()> {
    let _alone = crate::alone();
    let w = Tensor::from_slice(&[1f32, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, -1.0], [4, 2]);
    let run = layer::FUNCTION.prepare(&[&ramp(3), &w])?;
    let mut out = run.outputs()?;
    for rows in [3, 1, 128, 50, 3] {
        let x = ramp(rows);
        run.call(&mut out, &[&x, &w])?;
        assert_eq!(out[0].sizes()?, [rows, 2]);
        assert_eq!(out[0].to_vec::<f32>()?, x.matmul(&w).relu().to_vec::<f32>()?, "{rows} rows");
    }
    Ok(())
}

#[test]
fn gradients_go_through_calls_before_and_after_they_ran() -> Result<()> {
    let _alone = crate::alone();
    let w = Tensor::from_slice(&[1f32, 0.5, 0.0, 1.0, 1.0, 0.25, 0.0, -1.0], [4, 2]);
    for reads in [false, true] {
        for rows in [2, 5] {
            let (x, w) = (ramp(rows), w.clone());
            let y = layer(&x, &w);
            if reads {
                y.realize()?;
            }
            let loss = (&y * &y).sum(.., false);
            let want = x.matmul(&w).relu();
            let want = (&want * &want).sum(.., false);
            let (got, want) = (grad(&loss, &[&x, &w])?, grad(&want, &[&x, &w])?);
            for (got, want) in got.iter().zip(&want) {
                assert_eq!(got.to_vec::<f32>()?, want.to_vec::<f32>()?, "{rows} rows, read: {reads}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_dim_without_bounds_stays_as_it_was_prepared() -> Result<()> {
    let _alone = crate::alone();
    let (rows, columns) = (named(0, 64), named(1, i64::from(i32::MAX)));
    let specs = [Spec::new(DType::F32, [rows, columns])];
    let sums = Function::trace(&specs, |x| vec![x[0].sum([1], false)])?;
    let run = sums.prepare(&[&Tensor::ones([2, 3])])?;
    let mut out = run.outputs()?;
    run.call(&mut out, &[&Tensor::ones([7, 3]).contiguous()])?;
    assert_eq!(out[0].to_vec::<f32>()?, [3.0; 7]);
    let error = run.call(&mut out, &[&Tensor::ones([7, 4]).contiguous()]).expect_err("3 columns");
    assert!(error.to_string().contains("is 4, the call was prepared for 3"), "{error}");
    let lazy = sums.call(&[&Tensor::ones([7, 4])])[0].clone();
    assert_eq!(lazy.shape(), [Dim::from(7)]);
    assert_eq!(lazy.to_vec::<f32>()?, [4.0; 7]);
    Ok(())
}

/// What a prepared call prints.
fn read(run: &Prepared) -> Result<Prepared> {
    let text = run.to_string();
    let read: Prepared = text.parse()?;
    assert_eq!(read.to_string(), text);
    // SAFETY: a prepared call printed it.
    Ok(unsafe { read.vouched() })
}

#[test]
fn a_command_buffer_with_named_dims_runs_from_its_text() -> Result<()> {
    let _alone = crate::alone();
    for device in ["interpreter", "cpu", "simt"] {
        let place = |x: Tensor| x.to(device);
        let w = place(Tensor::from_slice(&[1f32, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, -1.0], [4, 2]));
        let run = read(&layer::FUNCTION.prepare(&[&place(ramp(3)), &w])?)?;
        let mut out = run.outputs()?;
        for rows in [3, 1, 128, 50, 3] {
            let x = place(ramp(rows));
            run.call(&mut out, &[&x, &w])?;
            assert_eq!(out[0].sizes()?, [rows, 2], "{device}");
            assert_eq!(out[0].to_vec::<f32>()?, x.matmul(&w).relu().to_vec::<f32>()?, "{rows} rows on {device}");
        }
        let error = run.call(&mut out, &[&place(ramp(129)), &w]).expect_err("128 rows at most").to_string();
        assert!(error.contains("axis 0 of `argument 0` is 129") && error.contains("goes from 1 to 128"), "{error}");
        assert!(error.contains("calls.rs:"), "{error}");
        // Sums of sums, in several kernels with temporaries; one argument is not used, another size is fixed.
        let (rows, columns) = (named(0, 64), named(1, i64::from(i32::MAX)));
        let specs =
            [Spec::new(DType::F32, [rows.clone() * 2, columns.clone()]), Spec::new(DType::F32, [rows, columns])];
        let scaled = Function::trace(&specs, |x| {
            let shares = x[0].softmax(0).contiguous();
            vec![shares.sum([1], false), &shares * 2.0]
        })?;
        let run = read(&scaled.prepare(&[&place(Tensor::ones([4, 3])), &place(Tensor::ones([2, 3]))])?)?;
        let mut out = run.outputs()?;
        for rows in [2, 5, 1] {
            let x = place((Tensor::arange(6 * rows as i64) * 0.25).cast(DType::F32).reshape([2 * rows, 3]));
            run.call(&mut out, &[&x, &place(Tensor::ones([rows, 3]))])?;
            let expected = scaled.call(&[&x, &place(Tensor::ones([rows, 3]))]);
            for (found, expected) in out.iter().zip(&expected) {
                assert_eq!(found.sizes()?, expected.sizes()?);
                let (found, expected) = (found.to_vec::<f32>()?, expected.to_vec::<f32>()?);
                assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {expected:?}");
            }
        }
        let error = run.call(&mut out, &[&place(Tensor::ones([4, 3])), &place(Tensor::ones([1, 3]))]);
        assert!(error.expect_err("2 is not 1").to_string().contains("must be"), "{device}");
    }
    Ok(())
}

#[test]
fn a_dim_that_no_size_gives_is_refused() -> Result<()> {
    // Of the product of two dims neither is known.
    let error = "
        %0 = stack()
        %1 = const[index 1]
        %2 = const[index 9]
        %3 = param[1 index](%0, %1, %2)
        %4 = param[2 index](%0, %1, %2)
        %5 = mul(%3, %4)
        %6 = stack(%5)
        %7 = param[0 f32 global](%6)
        %8 = buffer[0 f32 global](%6)
        %9 = linear()
        %10 = after(%8, %9)
        %11 = tuple(%10)
        return %11, %7
    "
    .parse::<Prepared>()
    .expect_err("two dims of one size")
    .to_string();
    assert!(error.contains("command buffer: the sizes of its arguments do not give named dim 1"), "{error}");
    assert!(error.contains("help: return a Param behind the Tuple"), "{error}");
    Ok(())
}

uop! { <N>
    fn doubled(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[i] = x[i] + x[i]; }
    }
}

#[test]
fn what_needs_numbers_is_compiled_for_each_size() -> Result<()> {
    let _alone = crate::alone();
    let twice = Function::trace(&[Spec::new(DType::F32, [named(0, 64)])], |x| vec![doubled(&x[0]) + 1.0])?;
    for size in [3usize, 8] {
        let x = Tensor::ones([size]).contiguous();
        assert_eq!(twice.call(&[&x])[0].to_vec::<f32>()?, vec![3.0; size]);
    }
    let both = Function::trace(&[Spec::new(DType::F32, [named(0, 64)])], |x| vec![doubled(&x[0]) - 1.0, &x[0] * 3.0])?;
    for size in [3usize, 8] {
        let results = both.call(&[&Tensor::ones([size]).contiguous()]);
        realize_all(&results.iter().collect::<Vec<_>>())?;
        assert_eq!(results[0].to_vec::<f32>()?, vec![1.0; size]);
        assert_eq!(results[1].to_vec::<f32>()?, vec![3.0; size]);
    }
    Ok(())
}

#[function(bounds(T: 1..=16))]
fn fourth<T>(x: &Tensor<f32, T, 2>) -> Tensor<f32, 2> {
    x.at(3)
}

#[test]
fn a_part_that_a_size_leaves_no_room_for_is_refused_in_its_call() -> Result<()> {
    let _alone = crate::alone();
    let rows =
        |count: usize| Tensor::from_vec((0..count * 2).map(|place| place as f32).collect::<Vec<_>>(), [count, 2]);
    assert_eq!(fourth(&rows(9)).to_vec::<f32>()?, [6.0, 7.0]);
    let error = fourth(&rows(3)).to_vec::<f32>().expect_err("three rows have no fourth");
    assert_eq!(error.kind(), Some(ErrorKind::Shape));
    for part in ["`T` is 3 in this call: at: position 3 of axis 0, which has 3", "calls.rs"] {
        assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
    }
    let run = fourth::FUNCTION.prepare(&[&rows(9)])?;
    let mut out = run.outputs()?;
    let error = run.call(&mut out, &[&rows(2)]).expect_err("two rows have no fourth");
    assert!(error.to_string().contains("`T` is 2 in this call"), "{error}");
    Ok(())
}

#[function(bounds(T: 1..=16))]
fn convolved<T>(x: &Tensor<f32, 1, 1, T>, kernel: &Tensor<f32, 1, 1, 3>) -> Tensor<f32, 1, 1, { T - 2 }> {
    x.conv1d(kernel, None, Conv1d { ..default() })
}

#[function]
fn pooled<T>(x: &Tensor<f32, 1, 1, T>) -> Tensor<f32, 1, 1, { (T - 4) / 3 + 1 }> {
    x.max_pool1d([4], MaxPool1d { stride: Some([3]), ..default() })
}

#[function(bounds(T: 1..=16))]
fn unfolded<T>(x: &Tensor<f32, T>) -> Tensor<f32, { (T - 5) / 5 + 1 }, 5> {
    x.unfold(0, 5, 5)
}

#[test]
fn windows_longer_than_the_axis_are_refused_whatever_is_left_of_them() -> Result<()> {
    let _alone = crate::alone();
    let (kernel, ramp) = (Tensor::ones([1, 1, 3]), |count: i64| Tensor::arange(count).cast(DType::F32));
    let refused = |result: Tensor, parts: &[&str]| {
        let error = result.to_vec::<f32>().expect_err("no window fits");
        assert_eq!(error.kind(), Some(ErrorKind::Shape));
        assert!(parts.iter().all(|part| error.to_string().contains(part)), "{parts:?} are not in: {error}");
    };
    for size in 1..=7i64 {
        let row = ramp(size).reshape([1, 1, size]);
        match convolved(&row, &kernel) {
            found if size < 3 => refused(found, &[&format!("`T` is {size} in this call"), "calls.rs"]),
            found => assert_eq!(found.to_vec::<f32>()?, row.conv1d(&kernel, None, default()).to_vec::<f32>()?),
        }
        let options = || MaxPool1d { stride: Some([3]), ..default() };
        match pooled(&row) {
            found if size < 4 => refused(found, &[&format!("`T` is {size} in this call"), "pooled", "calls.rs"]),
            found => assert_eq!(found.to_vec::<f32>()?, row.max_pool1d([4], options()).to_vec::<f32>()?),
        }
        match unfolded(&ramp(size)) {
            found if size < 5 => refused(found, &[&format!("`T` is {size} in this call"), "calls.rs"]),
            found => assert_eq!(found.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0]),
        }
    }
    Ok(())
}

#[test]
fn a_dim_that_has_to_be_a_number_is_named_as_it_was_written() {
    let specs =
        [Spec::new(DType::F32, [Dim::from(2), Dim::from(3)]), Spec::new(DType::F32, [named(0, 16), named(1, 9)])];
    let error = Function::trace(&specs, |x| x[1].unbind(1)).expect_err("as many results as d1 says");
    let text = error.to_string();
    for part in ["unbind", "axis 1 of [d0, d1]", "the length d1, which goes from 1 to 9"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[function(bounds(T: 1..=8))]
fn placed<T>(x: &Tensor<f32, T, 2>) -> Tensor<f32, T, 2> {
    let position = Tensor::arange(T).cast(DType::F32).unsqueeze(1);
    let later = Tensor::arange(T + 1).sum(0, false);
    x * position + later.cast(DType::F32)
}

#[function(bounds(T: 1..=8))]
fn picked<T>(x: &Tensor<f32, 9, 3>, index: &Tensor<i32, T, 2>) -> (Tensor<f32, T, 2>, Tensor<f32, 9, 3>) {
    let rows = x.gather(index, 0);
    (rows.clone(), x.scatter_add(index, rows, 0))
}

#[test]
fn ramps_of_a_dim_are_those_of_run_time() -> Result<()> {
    let _alone = crate::alone();
    for size in 1..=5i64 {
        let x = Tensor::arange(size * 2).cast(DType::F32).reshape([size, 2]);
        let position = Tensor::arange(size).cast(DType::F32).unsqueeze(1);
        let want = &x * position + Tensor::arange(size + 1).sum(0, false).cast(DType::F32);
        assert_eq!(placed(&x).to_vec::<f32>()?, want.to_vec::<f32>()?, "{size}");
    }
    let again = placed::FUNCTION.retrace()?;
    assert_eq!(placed::FUNCTION.get()?.body().hash(), again.body().hash());
    Ok(())
}

#[test]
fn an_index_of_a_dim_may_be_shorter_than_what_it_picks_from() -> Result<()> {
    let _alone = crate::alone();
    let x = Tensor::arange(27).cast(DType::F32).reshape([9, 3]);
    for size in 1..=5i64 {
        let index = (Tensor::arange(size * 2) * 5 % 9).reshape([size, 2]).contiguous();
        let (rows, added) = picked(&x, &index);
        let want = x.gather(&index, 0);
        assert_eq!(rows.to_vec::<f32>()?, want.to_vec::<f32>()?, "{size}");
        assert_eq!(added.to_vec::<f32>()?, x.scatter_add(&index, &want, 0).to_vec::<f32>()?, "{size}");
    }
    Ok(())
}

#[function]
fn five_best<N>(x: &Tensor<f32, N>) -> Tensor<f32, 5> {
    x.topk(5, 0, true)[0].clone()
}

#[function]
fn five_first<N>(x: &Tensor<f32, N>) -> Tensor<f32, 5> {
    x.narrow(0, 0, 5)
}

#[function]
fn fifth<N>(x: &Tensor<f32, N>) -> Tensor<f32> {
    x.kthvalue(5, 0, false)
}

#[function]
fn windows<N>(x: &Tensor<f32, N>) -> Tensor<f32, { N - 4 }, 5> {
    x.unfold(0, 5, 1)
}

/// The message names the op that the user wrote, not the `shrink` that it expands to.
#[test]
fn an_op_that_a_size_is_too_small_for_is_named() -> Result<()> {
    let _alone = crate::alone();
    let (short, long) = (Tensor::ones([3]), Tensor::ones([6]));
    for (refused, expected) in [
        (five_best(&short), "topk: 5 of 3 elements"),
        (five_first(&short), "narrow: offset 0 and length 5 do not fit into 3"),
        (fifth(&short), "kthvalue: number 5 of 3 elements"),
        (windows(&short), "unfold: a window that spans 5 elements does not fit axis 0 of [3]"),
    ] {
        let error = refused.realize().expect_err("3 elements are too few").to_string();
        let expected = format!("`N` is 3 in this call: {expected}");
        assert!(error.contains(&expected) && error.contains("calls.rs"), "{expected:?} is missing in\n{error}");
    }
    for taken in [five_best(&long), five_first(&long), fifth(&long), windows(&long)] {
        taken.realize()?;
    }
    Ok(())
}

#[function]
fn shifted<N>(x: &Tensor<f32, { N - 2 }>, y: &Tensor<f32, N>) -> Tensor<f32, { N - 3 }> {
    let sums = x + y.at(2..);
    sums.at(1..)
}

/// `{ N - 3 }` implies that `N` is at least 3, so that `x.at(3..)` has `N - 3` elements rather than `max(0, N - 3)`.
#[test]
fn a_size_that_is_declared_is_not_negative() -> Result<()> {
    let _alone = crate::alone();
    let y = Tensor::arange(5).cast(DType::F32);
    assert_eq!(shifted(&y.at(..3), &y).to_vec::<f32>()?, [4.0, 6.0]);
    let error = shifted(&y.at(..0), &y.at(..2)).realize().expect_err("a size of -1").to_string();
    assert!(error.contains("`N` is") && error.contains("calls.rs"), "{error}");
    Ok(())
}

#[function]
fn tail<N>(x: &Tensor<f32, N>) -> Tensor<f32, { N - 2 }> {
    x.at(2..)
}

#[function]
fn sum_of_tail<M>(x: &Tensor<f32, M>) -> Tensor<f32> {
    tail(x).sum(.., false)
}

#[test]
fn callers_need_not_say_what_a_size_of_a_callee_says() -> Result<()> {
    let _alone = crate::alone();
    assert_eq!(sum_of_tail(&Tensor::ones([5])).item::<f32>()?, 3.0);
    let error = sum_of_tail(&Tensor::ones([1])).realize().expect_err("a size of -1").to_string();
    assert!(error.contains("`M` is 1 in this call: tail: axis 0 of `x` is 1"), "{error}");
    Ok(())
}

#[function]
fn without_seven<B>(x: &Tensor<f32, B>) -> Tensor<f32, { B - 7 }> {
    Tensor::zeros([B - 7]) + x.sum(.., false)
}

#[function]
fn within<B>(x: &Tensor<f32, B>) -> Tensor<f32> {
    x.sum(.., false) + Tensor::ones([B - 7]).sum(.., false)
}

#[test]
fn a_size_is_not_negative_in_a_call() -> Result<()> {
    let _alone = crate::alone();
    let x = Tensor::ones([9]);
    assert_eq!(without_seven(&x).to_vec::<f32>()?, [9.0, 9.0]);
    assert_eq!(within(&x).item::<f32>()?, 11.0);
    let short = Tensor::ones([5]);
    for refused in [without_seven(&short), within(&short)] {
        let error = refused.realize().expect_err("a size of -2").to_string();
        for part in ["`B` is 5 in this call", "-2", "calls.rs"] {
            assert!(error.contains(part), "{part:?} is missing in\n{error}");
        }
    }
    Ok(())
}
