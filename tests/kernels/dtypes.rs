//! Kernels with dtype parameters: one for each dtype that they name.

use crate::{each_device, numbers};
use tinyspec::prelude::*;

uop! {
    <N, T: f32 | f16 | bf16 | i32> fn doubled(x: &Global<T, N>) -> Global<T, N> as y {
        for i in global(N) {
            y[i] = x[i] * 2 as T + 1 as T;
        }
    }

    <K, T: f32 | f16 | bf16> fn sum(x: &Global<T, K>) -> f32 {
        let mut sum = 0.0f32;
        for k in reduce(K) { sum += x[k] as f32; }
        sum
    }

    <M, N, T: f32 | f16 | bf16, U: f32 | f16> fn means(x: &Global<T, M, N>, like: &Global<U, M>, scale: f32) -> Global<U, M> as y {
        for i in global(M) {
            y[i] = (sum(&x[i, ..]) * scale) as U + like[i];
        }
    }

    <N, T: i8 | u8 | f32> fn updated(y: &mut Global<T, N>, by: &Global<T, 1>) {
        for i in global(N) {
            let mut t = y[i];
            if t > by[0] { t = by[0]; }
            y[i] = t;
        }
    }

    <T: f32 | i32> fn larger(a: T, b: T) -> T {
        if a < b { b } else { a }
    }

    <N> fn both(x: &Global<f32, N>, n: &Global<i32, N>) -> (Global<f32, N> as y, Global<i32, N> as m) {
        for i in global(N) {
            y[i] = larger(x[i], 0.0);
            m[i] = larger(1, n[i]);
        }
    }
}

#[test]
fn each_gives_its_own_dtype() {
    let x: Vec<f32> = numbers(40, 1);
    let expected: Vec<f32> = x.iter().map(|x| x * 2.0 + 1.0).collect();
    each_device(|device| {
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32] {
            let y = doubled(&Tensor::from_slice(&x, [40]).to(device).cast(dtype));
            assert_eq!(y.dtype(), dtype);
            assert_eq!(y.cast(DType::F32).to_vec::<f32>().unwrap(), expected, "{dtype} on {device}");
        }
    });
}

#[test]
fn two_parameters_are_chosen_together() {
    let x: Vec<f32> = numbers(60, 2);
    let expected: Vec<f32> = x.chunks(10).map(|row| row.iter().sum::<f32>() * 0.5 + 1.0).collect();
    each_device(|device| {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for result in [DType::F32, DType::F16] {
                let x = Tensor::from_slice(&x, [6, 10]).to(device).cast(dtype);
                let y = means(&x, &Tensor::ones([6]).to(device).cast(result), 0.5);
                assert_eq!(y.dtype(), result);
                assert_eq!(y.cast(DType::F32).to_vec::<f32>().unwrap(), expected);
            }
        }
    });
}

#[test]
fn arguments_are_updated() {
    each_device(|device| {
        let mut bytes = Tensor::from_slice(&[1u8, 200, 3], [3]).to(device);
        updated(&mut bytes, &Tensor::from_slice(&[100u8], [1]).to(device));
        assert_eq!(bytes.to_vec::<u8>().unwrap(), [1, 100, 3]);
        let mut signed = Tensor::from_slice(&[1i8, -100, 30], [3]).to(device);
        updated(&mut signed, &Tensor::from_slice(&[-1i8], [1]).to(device));
        assert_eq!(signed.to_vec::<i8>().unwrap(), [-1, -100, -1]);
    });
}

#[test]
fn functions_have_them_too() {
    each_device(|device| {
        let x = Tensor::from_slice(&[-1f32, 2.0], [2]).to(device);
        let (y, m) = both(&x, &Tensor::from_slice(&[-1i32, 7], [2]).to(device));
        assert_eq!(y.to_vec::<f32>().unwrap(), [0.0, 2.0]);
        assert_eq!(m.to_vec::<i32>().unwrap(), [1, 7]);
    });
}

#[test]
fn another_dtype_is_refused() {
    let refused = doubled(&Tensor::from_slice(&[1f64], [1])).to_vec::<f64>().unwrap_err().to_string();
    assert!(refused.contains("doubled: takes (f32) or (f16) or (bf16) or (i32), found (f64)"), "{refused}");
    assert!(refused.contains("dtypes.rs"), "{refused}");
}
