//! Sums of products of small integers, which processors compute by words of several.

use crate::each_device;
use tinyspec::prelude::*;

uop! {
    <M, N, K, T: i8 | u8 | i16, U: i8 | u8 | i16> fn by_rows(a: &Global<T, M, K>, b: &Global<U, N, K>) -> Global<i32, M, N> as c {
        for i in global(M) {
            for j in local(N) {
                let mut sum = 0;
                for k in reduce(K) { sum += a[i, k] as i32 * b[j, k] as i32; }
                c[i, j] = sum;
            }
        }
    }

    /// Four numbers of each operand lie side by side.
    <M, N, K, T: i8 | u8, U: i8 | u8> fn by_words(a: &Global<T, M, K, 4>, b: &Global<U, K, N, 4>) -> Global<i32, M, N> as c {
        for i in global((M + 2) / 3) {
            for j in local(N) {
                let mut sums: Reg<i32, 3>;
                for k in reduce(K) {
                    for u in unroll(3) {
                        for q in reduce(4) { sums[u] += a.get([3 * i + u, k, q], 0) as i32 * b[k, j, q] as i32; }
                    }
                }
                for u in unroll(3) {
                    if 3 * i + u < M { c[3 * i + u, j] = sums[u]; }
                }
            }
        }
    }

    /// A part of each row, which begins within a word.
    <N> fn from_the_second(a: &Global<i8, N, 9>, b: &Global<i8, 9>) -> Global<i32, N> as y {
        for i in global(N) {
            let mut sum = 7;
            for k in reduce(8) { sum += a[i, k + 1] as i32 * b[k + 1] as i32; }
            y[i] = sum;
        }
    }

    /// Not a product of two inputs.
    <N> fn of_what_was_stored(a: &Global<i8, N, 8>, b: &mut Global<i8, N, 8>) -> Global<i32, N> as y {
        for i in global(N) {
            for k in serial(8) { b[i, k] = b[i, k] + a[i, k]; }
            let mut sum = 0;
            for k in reduce(8) { sum += a[i, k] as i32 * b[i, k] as i32; }
            y[i] = sum;
        }
    }

    <N> fn squares(a: &Global<i8, N, 8>) -> Global<i32, N> as y {
        for i in global(N) {
            let mut sum = 0;
            for k in reduce(8) { sum += a[i, k] as i32 * a[i, k] as i32; }
            y[i] = sum;
        }
    }
}

/// All bytes come up, the least and the greatest first.
fn bytes(count: usize, seed: usize) -> Vec<i32> {
    (0..count)
        .map(|at| {
            [-128, 127, -1][at % 3] * i32::from(at < 9) + ((at * 37 + seed) as i32 % 256 - 128) * i32::from(at >= 9)
        })
        .collect()
}

fn tensor(data: &[i32], shape: &[usize], dtype: DType, device: &str) -> Tensor {
    Tensor::from_slice(data, shape).cast(dtype).to(device)
}

/// A number as the dtype holds it.
fn held(value: i32, dtype: DType) -> i32 {
    match dtype {
        DType::U8 => value as u8 as i32,
        DType::I8 => value as i8 as i32,
        _ => value,
    }
}

const DTYPES: [DType; 3] = [DType::I8, DType::U8, DType::I16];

#[test]
fn rows_of_any_length() {
    for (m, n, k) in [(1, 1, 4), (3, 5, 7), (2, 20, 64), (5, 3, 130), (2, 2, 256)] {
        let (a, b) = (bytes(m * k, 1), bytes(n * k, 2));
        each_device(|device| {
            for left in DTYPES {
                for right in DTYPES {
                    let product =
                        |at: usize, k_: usize| held(a[at / n * k + k_], left) * held(b[at % n * k + k_], right);
                    let expected: Vec<i32> = (0..m * n).map(|at| (0..k).map(|k_| product(at, k_)).sum()).collect();
                    let c = by_rows(&tensor(&a, &[m, k], left, device), &tensor(&b, &[n, k], right, device));
                    assert_eq!(c.to_vec::<i32>().unwrap(), expected, "{left:?} and {right:?}, {m} {n} {k} on {device}");
                }
            }
        });
    }
}

#[test]
fn words_along_the_sum() {
    for (m, n, k) in [(1, 1, 1), (3, 16, 5), (4, 33, 16), (7, 70, 3)] {
        let (a, b) = (bytes(m * k * 4, 3), bytes(n * k * 4, 4));
        each_device(|device| {
            for (left, right) in
                [(DType::I8, DType::I8), (DType::U8, DType::I8), (DType::I8, DType::U8), (DType::U8, DType::U8)]
            {
                let product = |at: usize, k_: usize| {
                    held(a[at / n * 4 * k + k_], left) * held(b[(k_ / 4 * n + at % n) * 4 + k_ % 4], right)
                };
                let expected: Vec<i32> = (0..m * n).map(|at| (0..4 * k).map(|k_| product(at, k_)).sum()).collect();
                let c = by_words(&tensor(&a, &[m, k, 4], left, device), &tensor(&b, &[k, n, 4], right, device));
                assert_eq!(c.to_vec::<i32>().unwrap(), expected, "{left:?} and {right:?}, {m} {n} {k} on {device}");
            }
        });
    }
}

#[test]
fn what_no_word_holds() {
    for n in [1, 6, 40] {
        let (a, b) = (bytes(9 * n, 5), bytes(9, 6));
        let (x, y) = (bytes(8 * n, 7), vec![1; 8 * n]);
        let [a8, b8] = [&a, &b].map(|data| data.iter().map(|&x| held(x, DType::I8)).collect::<Vec<_>>());
        let x8: Vec<i32> = x.iter().map(|&x| held(x, DType::I8)).collect();
        let parts: Vec<i32> = (0..n).map(|i| 7 + (1..9).map(|k| a8[9 * i + k] * b8[k]).sum::<i32>()).collect();
        let stored: Vec<i32> = x8.chunks(8).map(|row| row.iter().map(|&x| x * held(x + 1, DType::I8)).sum()).collect();
        let squared: Vec<i32> = x8.chunks(8).map(|row| row.iter().map(|x| x * x).sum()).collect();
        each_device(|device| {
            let i8 = |data: &[i32], shape: &[usize]| tensor(data, shape, DType::I8, device);
            assert_eq!(from_the_second(&i8(&a, &[n, 9]), &i8(&b, &[9])).to_vec::<i32>().unwrap(), parts);
            let mut y = i8(&y, &[n, 8]);
            assert_eq!(of_what_was_stored(&i8(&x, &[n, 8]), &mut y).to_vec::<i32>().unwrap(), stored);
            assert_eq!(squares(&i8(&x, &[n, 8])).to_vec::<i32>().unwrap(), squared);
        });
    }
}
