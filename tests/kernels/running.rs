//! Reductions up to an iteration of a parallel loop, whatever vectors its iterations become; and other loops that change their shape
//! when they become vectors.

use crate::{assert_same, each_device, numbers, tensor};
use tinyspec::prelude::*;

uop! {
    <M, N> fn prefix_sums(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
        for i in global(M) {
            for j in local(N) {
                let mut sum = 0.0f32;
                for k in reduce(j + 1) { sum += x[i, k]; }
                y[i, j] = sum;
            }
        }
    }

    /// The terms before an element, and its own apart from them.
    <M, N> fn before(x: &Global<f32, M, N>) -> (Global<f32, M, N> as sums, Global<f32, M, N> as greatest) {
        for i in global(M) {
            let mut all = 0.0f32;
            for k in reduce(N) { all += x[i, k]; }
            for j in local(N) {
                let mut sum = 0.5f32;
                let mut most = -100.0f32;
                for k in reduce(j) {
                    sum += x[i, k] * 2.0;
                    most = max(most, x[i, k]);
                }
                sums[i, j] = sum + x[i, j] + all;
                greatest[i, j] = most;
            }
        }
    }

    /// The terms depend on the iteration, too.
    <N> fn differences(x: &Global<f32, N>) -> Global<f32, N> as y {
        for g in global(1) {
            for j in local(N) {
                let mut sum = 0.0f32;
                for k in reduce(j + 1) { sum += abs(x[j] - x[k]); }
                y[j] = sum;
            }
        }
    }

    /// A loop of members around the running one.
    <L, M, N> fn in_a_loop(x: &Global<i32, L, M, N>) -> Global<i32, L, M, N> as y {
        for h in global(L) {
            let mut t: Local<i32, 40>;
            for i in serial(M) {
                for j in local(40) { t[j] = x.get([h, i, j], 1); }
                for j in local(N) {
                    let mut product = 1;
                    for k in reduce(j + 1) { product *= x[h, i, k]; }
                    y[h, i, j] = product + t[7];
                }
            }
        }
    }

    /// A part of the terms.
    <N> fn even_ones(x: &Global<f32, N>) -> Global<f32, N> as y {
        for g in global(1) {
            for j in local(N) {
                let mut sum = 0.0f32;
                for k in reduce(j + 1) { if k % 2 == 0 { sum += x[k]; } }
                y[j] = sum;
            }
        }
    }

    <H, M, N> fn transposed(x: &Global<f32, H, M, N>) -> Global<f32, H, N, M> as y {
        for h in global(H) {
            for i in local(N) {
                for j in local(M) { y[h, i, j] = x[h, j, i] + 1.0; }
            }
        }
    }

    <M, N> fn sums_of_all(x: &Global<f32, M, N>) -> (Global<f32, 1> as sum, Global<f32, 1> as most) {
        for g in global(1) {
            let mut total = 1.0f32;
            let mut greatest = -100.0f32;
            for i in reduce(M) {
                for j in reduce(N) {
                    total += x[i, j];
                    greatest = max(greatest, x[i, j]);
                }
            }
            sum[0] = total;
            most[0] = greatest;
        }
    }

    /// Four rows in each iteration, all of which are written.
    <M, N> fn by_fours(x: &Global<f32, { 4 * M }, N>) -> Global<f32, { 4 * M }, N> as y {
        for i in global(M) {
            for j in serial(N) {
                for u in unroll(4) { y[4 * i + u, j] = x[4 * i + (3 - u), j]; }
            }
        }
    }

    /// Every other row, so that the others stay 0.
    <M, N> fn every_other(x: &Global<f32, M, N>) -> Global<f32, { 4 * M }, N> as y {
        for i in global(M) {
            for j in serial(N) {
                for u in unroll(2) { y[4 * i + 2 * u, j] = x[i, j]; }
            }
        }
    }

    /// Tiles of eight rows, whose sums are more than registers hold in four vectors each.
    <N, K> fn eight_rows(a: &Global<f32, 8, K>, b: &Global<f32, K, N>) -> Global<f32, 8, N> as c {
        for g in global(1) {
            for j in local(N) {
                let mut sums: Reg<f32, 8>;
                for k in reduce(K) {
                    for u in unroll(8) { sums[u] += a[u, k] * b[k, j]; }
                }
                for u in unroll(8) { c[u, j] = sums[u]; }
            }
        }
    }
}

const SIZES: [(usize, usize); 8] = [(1, 1), (2, 5), (3, 16), (1, 17), (4, 32), (2, 67), (3, 130), (1, 300)];

#[test]
fn sums_up_to_an_element() {
    for (m, n) in SIZES {
        let x = numbers(m * n, 1);
        let row = |at: usize| &x[at / n * n..at / n * n + n];
        let prefixes: Vec<f32> = (0..m * n).map(|at| row(at)[..=at % n].iter().sum()).collect();
        let sum = |at: usize| {
            row(at)[..at % n].iter().map(|x| 2.0 * x).sum::<f32>() + row(at).iter().sum::<f32>() + x[at] + 0.5
        };
        let sums: Vec<f32> = (0..m * n).map(sum).collect();
        let most: Vec<f32> =
            (0..m * n).map(|at| row(at)[..at % n].iter().fold(-100.0, |most, &x| x.max(most))).collect();
        each_device(|device| {
            let x = tensor(&x, &[m, n], device);
            assert_same(&prefix_sums(&x), &prefixes);
            let (found, greatest) = before(&x);
            assert_same(&found, &sums);
            assert_same(&greatest, &most);
        });
    }
}

#[test]
fn terms_that_differ_or_are_chosen() {
    for (_, n) in SIZES {
        let x = numbers(n, 2);
        let differences_: Vec<f32> = (0..n).map(|j| x[..=j].iter().map(|x_| (x[j] - x_).abs()).sum()).collect();
        let even: Vec<f32> = (0..n).map(|j| x[..=j].iter().step_by(2).sum()).collect();
        each_device(|device| {
            let x = tensor(&x, &[n], device);
            assert_same(&differences(&x), &differences_);
            assert_same(&even_ones(&x), &even);
        });
    }
}

#[test]
fn in_loops_of_members() {
    for (l, m, n) in [(1, 2, 16), (2, 3, 33), (2, 1, 50)] {
        let x: Vec<i32> = (0..l * m * n).map(|at| [1, -1, 2, 1, 1, 3][at % 6]).collect();
        let product = |at: usize| (at / n * n..=at).fold(1i32, |all, at| all.wrapping_mul(x[at]));
        let expected: Vec<i32> = (0..l * m * n).map(|at| product(at).wrapping_add(x[at / n * n + 7])).collect();
        each_device(|device| {
            let x = Tensor::from_slice(&x, [l, m, n]).to(device);
            assert_eq!(in_a_loop(&x).to_vec::<i32>().unwrap(), expected);
        });
    }
}

#[test]
fn nests_are_transposed() {
    for (h, m, n) in [(1, 16, 16), (2, 64, 32), (1, 17, 16), (3, 8, 48), (1, 5, 3)] {
        let x = numbers(h * m * n, 3);
        let at = |at: usize| at / (m * n) * m * n + at % m * n + at % (m * n) / m;
        let expected: Vec<f32> = (0..h * m * n).map(|place| x[at(place)] + 1.0).collect();
        each_device(|device| assert_same(&transposed(&tensor(&x, &[h, m, n], device)), &expected));
    }
}

#[test]
fn loops_of_sums_are_one() {
    for (m, n) in SIZES {
        let x = numbers(m * n, 4);
        let (sum, most) = (x.iter().sum::<f32>() + 1.0, x.iter().fold(-100.0, |most: f32, &x| most.max(x)));
        each_device(|device| {
            let (found, greatest) = sums_of_all(&tensor(&x, &[m, n], device));
            assert_same(&found, &[sum]);
            assert_same(&greatest, &[most]);
        });
    }
}

#[test]
fn rows_that_unrolled_loops_store() {
    for (m, n) in SIZES {
        let x = numbers(4 * m * n, 5);
        let mirrored: Vec<f32> = x.chunks(4 * n).flat_map(|rows| rows.chunks(n).rev().flatten().copied()).collect();
        let none = vec![0.0; n];
        let apart: Vec<f32> = x[..m * n].chunks(n).flat_map(|row| [row, &none, row, &none].concat()).collect();
        each_device(|device| {
            assert_same(&by_fours(&tensor(&x, &[4 * m, n], device)), &mirrored);
            assert_same(&every_other(&tensor(&x[..m * n], &[m, n], device)), &apart);
        });
    }
}

#[test]
fn more_sums_than_registers() {
    for (k, n) in SIZES {
        let (a, b) = (numbers(8 * k, 6), numbers(k * n, 7));
        let sum = |at: usize| (0..k).map(|k_| a[at / n * k + k_] * b[k_ * n + at % n]).sum();
        let expected: Vec<f32> = (0..8 * n).map(sum).collect();
        each_device(|device| {
            assert_same(&eight_rows(&tensor(&a, &[8, k], device), &tensor(&b, &[k, n], device)), &expected)
        });
    }
}
