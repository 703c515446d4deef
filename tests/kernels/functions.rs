//! Functions that kernels call: numbers, buffers, parts of buffers and registers are passed to them.

use crate::{assert_close, assert_same, each_device, numbers, tensor};
use tinyspec::prelude::*;

const SCALE: usize = 3;

uop! {
    fn squared(x: f32) -> f32 {
        x * x
    }

    fn distance(x: f32, y: f32) -> f32 {
        let both = squared(x) + squared(y);
        both.sqrt()
    }

    <N> fn distances(x: &Global<f32, N>, y: &Global<f32, N>) -> Global<f32, N> as z {
        for i in global(N) {
            z[i] = distance(x[i], y[i]);
        }
    }

    <K> fn dot(a: &Global<f32, K>, b: &Global<f32, K>) -> f32 {
        let mut sum = 0.0f32;
        for k in reduce(K) {
            sum += a[k] * b[k];
        }
        sum
    }

    <M, N, K> fn product(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {
        for i in global(M) {
            for j in serial(N) {
                c[i, j] = dot(&a[i, ..], &b[.., j]);
            }
        }
    }

    <N> fn length(x: &Global<f32, N>) -> Global<f32, 1> as y {
        for g in global(1) {
            y[0] = dot(x, x).sqrt();
        }
    }

    <N> fn place(n: usize, i: usize, x: &Global<i32, N>) -> usize {
        (x[min(i, N - 1)] as usize + n) % SCALE
    }

    <N> fn places(x: &Global<i32, N>) -> Global<i32, N> as y {
        for i in global(N) {
            y[i] = place(i * 2, i + 1, x) as i32;
        }
    }
}

uop! {
    fn add_outer(sums: &mut Reg<f32, 2, 4>, a: &Reg<f32, 2>, b: &Reg<f32, 4>) -> () {
        for i in unroll(2) {
            for j in unroll(4) {
                sums[i, j] += a[i] * b[j];
            }
        }
    }

    <M, N> fn put(c: &mut Global<f32, M, N>, sums: &Reg<f32, 2, 4>, i: usize, j: usize) -> () {
        for p in unroll(2) {
            for q in unroll(4) {
                if i + p < M && j + q < N {
                    c[i + p, j + q] = sums[p, q];
                }
            }
        }
    }

    <M, N, K> fn tiled(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {
        for i in global((M + 1) / 2) {
            for j in serial((N + 3) / 4) {
                let mut sums: Reg<f32, 2, 4>;
                for k in serial(K) {
                    let mut x: Reg<f32, 2>;
                    let mut y: Reg<f32, 4>;
                    for p in unroll(2) { x[p] = a.get([i * 2 + p, k], 0.0); }
                    for q in unroll(4) { y[q] = b.get([k, j * 4 + q], 0.0); }
                    add_outer(&mut sums, &x, &y);
                }
                put(c, &sums, i * 2, j * 4);
            }
        }
    }
}

uop! {
    <N> fn first_of(x: &Global<i32, N>, wanted: i32) -> i32 {
        let mut found = N as i32;
        for j in serial(N) {
            if x[j] == wanted && found == N as i32 { found = j as i32; }
        }
        found
    }

    <M, N> fn firsts(x: &Global<i32, M, N>, wanted: i32) -> Global<i32, M> as y {
        fn twice(v: i32) -> i32 { 2 * v }
        for i in global(M) {
            y[i] = twice(first_of(&x[i, ..], wanted));
        }
    }

    <N> fn in_place(x: &mut Global<f32, N>, i: usize, by: f32) -> f32 {
        x[i] *= by;
        x[i]
    }

    <M, N> fn scaled(x: &mut Global<f32, M, N>) {
        for i in global(M) {
            for j in serial(N) {
                let new = in_place(&mut x[i, ..], j, 2.0);
                if new > 4.0 {
                    in_place(&mut x[i, ..], j, 0.5);
                }
            }
        }
    }

    <W> fn folded(t: &Local<f32, W>, width: usize) -> f32 {
        let mut sum = 0.0f32;
        for k in serial(min(width, W)) { sum += t[k]; }
        sum
    }

    <N> fn through_local(x: &Global<f32, N, 8>) -> Global<f32, N, 8> as y {
        for i in global(N) {
            let mut t: Local<f32, 8>;
            for j in local(8) { t[j] = x[i, 7 - j]; }
            for j in local(8) { y[i, j] = folded(&t, j + 1); }
        }
    }
}

#[test]
fn of_numbers() {
    let (x, y) = (numbers(77, 1), numbers(77, 2));
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| (x * x + y * y).sqrt()).collect();
    each_device(|device| assert_close(&distances(&tensor(&x, &[77], device), &tensor(&y, &[77], device)), &expected));
}

#[test]
fn of_parts_of_buffers() {
    let (a, b) = (numbers(35, 1), numbers(77, 2));
    let sum = |at: usize| (0..7).map(|k| a[at / 11 * 7 + k] * b[k * 11 + at % 11]).sum();
    let expected: Vec<f32> = (0..55).map(sum).collect();
    each_device(|device| {
        let (a, b) = (tensor(&a, &[5, 7], device), tensor(&b, &[7, 11], device));
        assert_same(&product(&a, &b), &expected);
        assert_same(&tiled(&a, &b), &expected);
    });
}

#[test]
fn of_a_whole_buffer() {
    let x = numbers(50, 3);
    let expected = x.iter().map(|x| x * x).sum::<f32>().sqrt();
    each_device(|device| assert_close(&length(&tensor(&x, &[50], device)), &[expected]));
}

#[test]
fn of_indices() {
    let x: Vec<i32> = (0..40).map(|i| i * i % 11).collect();
    let expected: Vec<i32> = (0..40).map(|i| (x[(i + 1).min(39)] + 2 * i as i32) % 3).collect();
    each_device(|device| {
        let x = Tensor::from_slice(&x, [40]).to(device);
        assert_eq!(places(&x).to_vec::<i32>().unwrap(), expected);
    });
}

#[test]
fn with_loops_and_conditions() {
    let x: Vec<i32> = (0..60).map(|i| i * i % 7).collect();
    let first = |row: &[i32]| 2 * row.iter().position(|&x| x == 4).unwrap_or(row.len()) as i32;
    let expected: Vec<i32> = x.chunks(4).map(first).collect();
    each_device(|device| {
        let x = Tensor::from_slice(&x, [15, 4]).to(device);
        assert_eq!(firsts(&x, 4).to_vec::<i32>().unwrap(), expected);
    });
}

#[test]
fn that_change_buffers() {
    let x = numbers(60, 4);
    let scaled_one = |x: &f32| if x * 2.0 > 4.0 { *x } else { x * 2.0 };
    let expected: Vec<f32> = x.iter().map(scaled_one).collect();
    each_device(|device| {
        let mut x = tensor(&x, &[6, 10], device);
        scaled(&mut x);
        assert_same(&x, &expected);
    });
}

#[test]
fn of_local_buffers() {
    let x = numbers(40, 5);
    let row = |row: &[f32]| (1..=8).map(|end| row.iter().rev().take(end).sum()).collect::<Vec<f32>>();
    let expected: Vec<f32> = x.chunks(8).flat_map(row).collect();
    each_device(|device| assert_same(&through_local(&tensor(&x, &[5, 8], device)), &expected));
}
