//! Factors, solutions and determinants: against what NumPy gives for one matrix, and by what defines them for others.

use crate::support::on_each_device;
use tinyspec_core::{Error, GradcheckOptions, Tensor, gradcheck};
use tinyspec_ir::DType;

#[track_caller]
fn is(tensor: &Tensor, want: &[f64]) -> Result<(), Error> {
    let got = tensor.cast(DType::F64).to_vec::<f64>()?;
    let close = |(got, want): (&f64, &f64)| (got - want).abs() <= 1e-7 * want.abs().max(1.0);
    assert!(got.len() == want.len() && got.iter().zip(want).all(close), "{got:?} instead of {want:?}");
    Ok(())
}

/// Are two tensors equal but for `bound`.
#[track_caller]
fn same(got: &Tensor, want: &Tensor, bound: f64) -> Result<(), Error> {
    let difference = (got - want).abs().max(.., false).item::<f64>()?;
    assert!(difference <= bound, "{difference} apart: {got}\n{want}");
    Ok(())
}

const A: [f64; 16] = [-5.5, 5.0, 3.0, 1.0, 1.0, 2.5, 3.0, 4.0, -4.0, 0.0, 4.5, -5.0, 5.0, -1.0, 6.0, 0.5];
const B: [f64; 4] = [1.0, -2.0, 3.0, 0.5];

fn matrix() -> Tensor {
    Tensor::from_slice(&A, [4, 4])
}

/// Of any size, well conditioned, and not symmetric; two of them, if `lead` says so.
fn random(lead: &[i64], rows: i64, columns: i64) -> Tensor {
    let shape: Vec<i64> = lead.iter().copied().chain([rows, columns]).collect();
    let count: i64 = shape.iter().product();
    let key = Tensor::arange(count).cast(DType::F64);
    ((&key * 12.9898 + 4.0).sin() * 43_758.545_3).frac().reshape(&shape[..]) - 0.5
}

#[test]
fn one_matrix_as_numpy_has_it() -> Result<(), Error> {
    on_each_device(|| {
        let (a, b) = (matrix(), Tensor::from_slice(&B, [4]));
        is(&a.det(), &[216.5625])?;
        let parts = a.slogdet();
        is(&parts[0], &[1.0])?;
        is(&parts[1], &[5.377879189384222])?;
        is(&a.logdet(), &[5.377879189384222])?;
        let inverse = [
            0.52467532,
            -0.83463203,
            -0.50909091,
            0.53679654,
            1.02857143,
            -1.35238095,
            -0.8,
            0.76190476,
            -0.21471861,
            0.38556999,
            0.25454545,
            -0.10966811,
            -0.61298701,
            1.01471861,
            0.43636364,
            -0.52813853,
        ];
        same(&a.inverse(), &Tensor::from_slice(&inverse, [4, 4]), 1e-8)?;
        same(&a.solve(&b), &Tensor::from_slice(&[0.93506494, 1.71428571, -0.27705628, -1.5974026], [4]), 1e-8)?;
        let least = a.narrow(1, 0, 2).lstsq(&b);
        same(&least, &Tensor::from_slice(&[-0.3938639, -0.3818889], [2]), 1e-7)?;
        let q = [
            -0.64705882,
            -0.61053875,
            -0.09016099,
            0.11764706,
            -0.65525974,
            -0.08701739,
            -0.47058824,
            0.37332305,
            -0.7332185,
            0.58823529,
            -0.24188223,
            -0.66834841,
        ];
        let r = [8.5, -3.52941176, -0.17647059, 0.0, -4.44896084, -3.56873508, 0.0, 0.0, -7.84110885];
        let parts = a.narrow(1, 0, 3).qr();
        same(&parts[0], &Tensor::from_slice(&q, [4, 3]), 1e-8)?;
        same(&parts[1], &Tensor::from_slice(&r, [3, 3]), 1e-8)?;
        let parts = a.lu();
        is(&parts[0], &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])?;
        let lower = [0.72727273, -0.90909091, -0.975, -0.18181818, -0.9375, 0.52047782];
        let ones = Tensor::eye(4, 4, DType::F64);
        let found = (&parts[1] - &ones).to_vec::<f64>()?;
        let found = [4, 8, 9, 12, 13, 14].map(|place: usize| found[place]);
        assert!(found.iter().zip(lower).all(|(got, want)| (got - want).abs() < 1e-8), "{found:?}");
        same(&(parts[0].matmul(&parts[1]).matmul(&parts[2])), &a, 1e-12)?;
        let s = a.matmul(a.transpose(0, 1)) + &ones;
        let root = [
            8.1394103,
            0.0,
            0.0,
            0.0,
            2.45718047,
            5.21653756,
            0.0,
            0.0,
            3.74720021,
            -3.77789807,
            5.82545936,
            0.0,
            -1.72002633,
            5.12340125,
            5.20147319,
            2.64328312,
        ];
        same(&s.cholesky(false), &Tensor::from_slice(&root, [4, 4]), 1e-7)?;
        is(&a.matrix_power(3).at(0), &[-243.375, 101.25, 117.75, -125.75])?;
        same(&a.matrix_power(-2).matmul(a.matrix_power(2)), &ones, 1e-9)?;
        same(&a.matrix_power(0), &ones, 0.0)?;
        Ok(())
    });
    Ok(())
}

#[test]
fn factors_of_matrices_of_any_size() -> Result<(), Error> {
    for (lead, size) in [(&[][..], 1), (&[2], 2), (&[], 3), (&[2, 1], 5), (&[], 8), (&[3], 13)] {
        let a = random(lead, size, size);
        let one = Tensor::eye(size, size, DType::F64);
        let plu = a.lu();
        same(&plu[0].matmul(&plu[1]).matmul(&plu[2]), &a, 1e-13)?;
        same(&plu[1].triu(0), &one.expand([lead, &[size, size]].concat()), 0.0)?;
        same(&plu[2].tril(-1), &a.zeros_like(), 0.0)?;
        same(&a.matmul(a.inverse()), &one, 1e-9)?;
        let b = random(lead, size, 3);
        same(&a.matmul(a.solve(&b)), &b, 1e-9)?;
        let det = a.slogdet();
        same(&(&det[0] * det[1].exp()), &a.det(), 1e-12)?;
        let s = a.matmul(a.transpose(-1, -2)) + &one * 0.1;
        let root = s.cholesky(false);
        same(&root.matmul(root.transpose(-1, -2)), &s, 1e-13)?;
        same(&root.triu(1), &a.zeros_like(), 0.0)?;
        same(&s.cholesky(true), &root.transpose(-1, -2), 0.0)?;
        same(&s.matmul(b.cholesky_solve(&root, false)), &b, 1e-10)?;
        same(&s.matmul(b.cholesky_solve(s.cholesky(true), true)), &b, 1e-10)?;
        let shifted = &a + &one * 2.0;
        for (upper, unit) in [(false, false), (true, false), (false, true), (true, true)] {
            let triangle = if upper { shifted.triu(0) } else { shifted.tril(0) };
            let triangle = if unit { triangle.clone() * (1.0 - &one) + &one } else { triangle };
            same(&triangle.matmul(shifted.solve_triangular(&b, upper, unit)), &b, 1e-9)?;
        }
        for (rows, columns) in [(size + 2, size), (size, size), (size, size + 3)] {
            let a = random(lead, rows, columns);
            let qr = a.qr();
            same(&qr[0].matmul(&qr[1]), &a, 1e-13)?;
            let count = rows.min(columns);
            same(&qr[0].transpose(-1, -2).matmul(&qr[0]), &Tensor::eye(count, count, DType::F64), 1e-13)?;
            same(&qr[1].tril(-1), &qr[1].zeros_like(), 0.0)?;
        }
    }
    Ok(())
}

#[test]
fn factors_of_several_blocks() -> Result<(), Error> {
    for (lead, size) in [(&[][..], 33), (&[2], 40), (&[], 130)] {
        let a = random(lead, size, size) + Tensor::eye(size, size, DType::F64);
        let one = Tensor::eye(size, size, DType::F64);
        let plu = a.lu();
        same(&plu[0].matmul(&plu[1]).matmul(&plu[2]), &a, 1e-11)?;
        same(&a.matmul(a.inverse()), &one, 1e-7)?;
        let b = random(lead, size, 5);
        same(&a.matmul(a.solve(&b)), &b, 1e-8)?;
        let s = a.matmul(a.transpose(-1, -2)) + &one;
        let root = s.cholesky(false);
        same(&root.matmul(root.transpose(-1, -2)), &s, 1e-10)?;
        same(&s.matmul(b.cholesky_solve(&root, false)), &b, 1e-8)?;
        same(&root.transpose(-1, -2).matmul(root.transpose(-1, -2).solve_triangular(&b, true, false)), &b, 1e-9)?;
        for (rows, columns) in [(size + 70, size), (size, size), (size, size + 20)] {
            let a = random(lead, rows, columns);
            let qr = a.qr();
            same(&qr[0].matmul(&qr[1]), &a, 1e-11)?;
            let count = rows.min(columns);
            same(&qr[0].transpose(-1, -2).matmul(&qr[0]), &Tensor::eye(count, count, DType::F64), 1e-11)?;
            same(&qr[1].tril(-1), &qr[1].zeros_like(), 0.0)?;
        }
        let (tall, b) = (random(lead, size + 70, size), random(lead, size + 70, 2));
        let rest = tall.matmul(tall.lstsq(&b)) - &b;
        same(&tall.transpose(-1, -2).matmul(&rest), &Tensor::zeros([1]).cast(DType::F64), 1e-9)?;
    }
    Ok(())
}

#[test]
fn one_matrix_for_many_right_hand_sides() -> Result<(), Error> {
    let a = random(&[], 4, 4) + Tensor::eye(4, 4, DType::F64);
    let b = random(&[3, 2], 4, 2);
    same(&a.matmul(a.solve(&b)), &b, 1e-12)?;
    let l = a.tril(0) + Tensor::eye(4, 4, DType::F64);
    same(&l.matmul(l.solve_triangular(&b, false, false)), &b, 1e-12)?;
    let many = random(&[2, 1], 4, 4) + Tensor::eye(4, 4, DType::F64);
    let b = random(&[3], 4, 2);
    same(&many.matmul(many.solve(&b)), &b.expand([2, 3, 4, 2]), 1e-9)
}

#[test]
fn matrices_without_an_inverse_and_without_elements() -> Result<(), Error> {
    on_each_device(|| {
        let singular = Tensor::from_slice(&[1f64, 2.0, 2.0, 4.0], [2, 2]);
        is(&singular.det(), &[0.0])?;
        is(&singular.slogdet()[0], &[0.0])?;
        assert_eq!(singular.slogdet()[1].item::<f64>()?, f64::NEG_INFINITY);
        assert!(singular.inverse().to_vec::<f64>()?.iter().all(|value| !value.is_finite()));
        is(&Tensor::from_slice(&[0f64, 1.0, 1.0, 0.0], [2, 2]).det(), &[-1.0])?;
        assert!(Tensor::from_slice(&[0f64, -1.0, 1.0, 0.0], [2, 2]).logdet().item::<f64>()?.abs() < 1e-12);
        assert!(Tensor::from_slice(&[0f64, 1.0, 1.0, 0.0], [2, 2]).logdet().item::<f64>()?.is_nan());
        let indefinite = Tensor::from_slice(&[1f64, 2.0, 2.0, 1.0], [2, 2]).cholesky(false);
        assert!(indefinite.to_vec::<f64>()?[3].is_nan());
        // A column that needs no reflection keeps its sign, as LAPACK has it; zeros have a Q too.
        let qr = Tensor::from_slice(&[-2f64, 1.0, 0.0, 3.0], [2, 2]).qr();
        is(&qr[1], &[-2.0, 1.0, 0.0, 3.0])?;
        let zeros = Tensor::zeros([3, 2]).qr();
        is(&zeros[0].transpose(0, 1).matmul(&zeros[0]), &[1.0, 0.0, 0.0, 1.0])?;
        let none = Tensor::zeros([2, 0, 0]);
        assert_eq!(none.det().to_vec::<f32>()?, [1.0, 1.0]);
        assert_eq!(none.inverse().sizes()?, [2, 0, 0]);
        assert_eq!(none.cholesky(false).sizes()?, [2, 0, 0]);
        assert_eq!(Tensor::zeros([3, 0]).qr()[0].sizes()?, [3, 0]);
        Ok(())
    });
    Ok(())
}

#[test]
fn narrow_and_whole_numbers() -> Result<(), Error> {
    let whole = Tensor::from_slice(&[2i32, 1, 1, 1], [2, 2]);
    assert_eq!(whole.inverse().to_vec::<f32>()?, [1.0, -1.0, -1.0, 2.0]);
    let half = whole.cast(DType::F16);
    assert_eq!(half.inverse().dtype(), DType::F16);
    assert_eq!(half.solve(Tensor::ones([2]).cast(DType::F16)).cast(DType::F32).to_vec::<f32>()?, [0.0, 1.0]);
    for (error, text) in [
        (Tensor::ones([2, 3]).inverse(), "needs a square matrix, found"),
        (Tensor::ones([3]).det(), "needs a matrix, found"),
        (Tensor::ones([2, 3]).lstsq(Tensor::ones([2])), "fewer rows than columns"),
        (Tensor::ones([2, 2]).solve(Tensor::ones([3])), "[3] for a matrix of 2 rows"),
        (Tensor::ones([3, 4, 4]).solve(Tensor::ones([3, 4])), "several vectors are columns: `v.unsqueeze(-1)`"),
    ] {
        let error = error.to_vec::<f32>().expect_err("refused").to_string();
        assert!(error.contains(text), "{error}");
    }
    Ok(())
}

#[test]
fn gradients_of_factors() -> Result<(), Error> {
    let (a, b) = (random(&[], 3, 3) + Tensor::eye(3, 3, DType::F64) * 1.5, random(&[], 3, 2));
    type Function = fn(&[Tensor]) -> Tensor;
    let functions: [(&str, Function); 8] = [
        ("det", |x| x[0].det()),
        ("slogdet", |x| x[0].slogdet()[1].clone()),
        ("inverse", |x| x[0].inverse()),
        ("solve", |x| x[0].solve(&x[1])),
        ("triangular", |x| x[0].solve_triangular(&x[1], true, false)),
        ("cholesky", |x| (x[0].matmul(x[0].transpose(0, 1)) + Tensor::eye(3, 3, DType::F64)).cholesky(false)),
        ("qr", |x| Tensor::cat(&x[0].qr().iter().collect::<Vec<_>>(), 0)),
        ("lstsq", |x| x[0].narrow(1, 0, 2).lstsq(&x[1])),
    ];
    for (name, function) in functions {
        gradcheck(function, &[&a, &b], GradcheckOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    Ok(())
}

/// Prints how long matrices of several sizes take, the first time and later.
#[test]
#[ignore = "a measurement"]
fn times() -> Result<(), Error> {
    type Function = fn(&Tensor) -> Tensor;
    let functions: [(&str, Function); 4] = [
        ("inverse", |x| x.inverse()),
        ("cholesky", |x| (x.matmul(x.transpose(0, 1)) + Tensor::eye(1, 1, DType::F32)).cholesky(false)),
        ("qr", |x| x.qr()[0].clone()),
        ("det", |x| x.det()),
    ];
    for size in [4, 16, 64, 128, 256] {
        let a = random(&[], size, size).cast(DType::F32).contiguous();
        a.realize()?;
        for (name, function) in functions {
            let mut times = vec![];
            for _ in 0..3 {
                let start = std::time::Instant::now();
                function(&a).realize()?;
                times.push(start.elapsed());
            }
            println!("{name} {size}: {times:?}");
        }
    }
    Ok(())
}

/// Powers of whole numbers are products of whole numbers, which f32 would round: 90 steps of Fibonacci's numbers.
#[test]
fn powers_of_whole_numbers_are_exact() -> Result<(), Error> {
    let step = Tensor::from_slice(&[1i64, 1, 1, 0], [2, 2]);
    let fibonacci = [4660046610375530309i64, 2880067194370816120, 2880067194370816120, 1779979416004714189];
    assert_eq!(step.matrix_power(90).to_vec::<i64>()?, fibonacci);
    assert_eq!(step.matrix_power(0).to_vec::<i64>()?, [1, 0, 0, 1]);
    assert_eq!(step.matrix_power(1).to_vec::<i64>()?, [1, 1, 1, 0]);
    let walks = step.ne(0).matrix_power(40); // as sums of bools, in 32 bits
    assert_eq!(walks.to_vec::<i32>()?, [165580141, 102334155, 102334155, 63245986]);
    assert_eq!(step.matrix_power(-1).to_vec::<f32>()?, [0.0, 1.0, 1.0, -1.0]);
    Ok(())
}
