//! Iterations of a parallel loop that carry variables or hold registers: vectors of them run at once, at sizes that no vector
//! divides too.

use crate::{assert_same, each_device, numbers, tensor};
use tinyspec::prelude::*;

uop! {
    <M, N> fn sums_of_columns(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
        for i in global(N) {
            let mut sum = 0.0f32;
            for j in serial(M) {
                sum += x[j, i];
                y[j, i] = sum;
            }
        }
    }

    <M, N> fn greatest_of_columns(x: &Global<f32, M, N>) -> (Global<i32, N> as at, Global<f32, N> as value) {
        for i in global(N) {
            let mut best = x[0, i];
            let mut place = 0;
            for j in serial(1..M) {
                if x[j, i] > best {
                    best = x[j, i];
                    place = j as i32;
                }
            }
            at[i] = place;
            value[i] = best;
        }
    }

    <M, N, K> fn tiles(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {
        for i in global((M + 2) / 3) {
            for j in local(N) {
                let mut sums: Reg<f32, 3>;
                for k in serial(K) {
                    for u in unroll(3) { sums[u] += a.get([3 * i + u, k], 0.0) * b[k, j]; }
                }
                for u in unroll(3) {
                    if 3 * i + u < M { c[3 * i + u, j] = sums[u]; }
                }
            }
        }
    }

    <M, N> fn with_a_condition(x: &Global<f32, M, N>, limit: f32) -> Global<f32, N> as y {
        for i in global(N) {
            let mut sum = 0.0f32;
            let mut count = 0usize;
            for j in serial(M) {
                if sum < limit {
                    sum += x[j, i];
                    count += 1;
                }
                if j % 2 == 0 { sum += 1.0; }
            }
            if count > 2 { y[i] = sum; } else { y[i] = -1.0; }
        }
    }

    <M, N> fn two_in_one(x: &Global<f32, M, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let mut total = 0.0f32;
            for j in serial(M) {
                let mut best = -100.0f32;
                for k in serial(M) { best = max(best, x[k, i] - x[j, i]); }
                total = total * 0.5 + best;
            }
            y[i] = total;
        }
    }

    <M, N> fn updates(x: &mut Global<f32, M, N>, y: &mut Global<f32, N>) {
        for i in global(N) {
            let mut last = y[i];
            for j in serial(M) {
                let old = x[j, i];
                x[j, i] = last;
                last = old;
            }
            y[i] = last;
        }
    }

    <M, N> fn after_a_uniform_loop(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
        for i in global(M) {
            let mut norm = 0.0f32;
            for j in serial(N) { norm = max(norm, abs(x[i, j])); }
            for j in local(N) {
                let mut power = 1.0f32;
                for k in serial(3) { power = power * x[i, j] + norm; }
                y[i, j] = power;
            }
        }
    }
}

const SIZES: [(usize, usize); 9] = [(1, 1), (2, 5), (3, 16), (4, 17), (5, 64), (7, 67), (9, 130), (3, 257), (6, 1000)];

fn column(x: &[f32], n: usize, i: usize) -> Vec<f32> {
    x.iter().skip(i).step_by(n).copied().collect()
}

#[test]
fn variables_are_carried() {
    for (m, n) in SIZES {
        let x = numbers(m * n, 1);
        let mut sums = x.clone();
        (n..m * n).for_each(|at| sums[at] += sums[at - n]);
        let best = |i: usize| {
            let column = column(&x, n, i);
            let place = (1..m).fold(0, |best, j| if column[j] > column[best] { j } else { best });
            (place as i32, column[place])
        };
        let (places, values): (Vec<i32>, Vec<f32>) = (0..n).map(best).unzip();
        each_device(|device| {
            let x = tensor(&x, &[m, n], device);
            assert_same(&sums_of_columns(&x), &sums);
            let (at, value) = greatest_of_columns(&x);
            assert_eq!(at.to_vec::<i32>().unwrap(), places, "{m} and {n} on {device}");
            assert_same(&value, &values);
        });
    }
}

#[test]
fn under_conditions_and_in_two_loops() {
    for (m, n) in SIZES {
        let x = numbers(m * n, 2);
        let chosen = |i: usize| {
            let (mut sum, mut count) = (0.0, 0);
            for (j, x) in column(&x, n, i).into_iter().enumerate() {
                if sum < 3.0 {
                    (sum, count) = (sum + x, count + 1);
                }
                sum += (j % 2 == 0) as i32 as f32;
            }
            if count > 2 { sum } else { -1.0 }
        };
        let twice = |i: usize| {
            let column = column(&x, n, i);
            let best = |from: &f32| column.iter().map(|x| x - from).fold(-100.0, f32::max);
            column.iter().map(best).fold(0.0, |total, best| total * 0.5 + best)
        };
        let (chosen, twice): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (chosen(i), twice(i))).unzip();
        each_device(|device| {
            let x = tensor(&x, &[m, n], device);
            assert_same(&with_a_condition(&x, 3.0), &chosen);
            assert_same(&two_in_one(&x), &twice);
        });
    }
}

#[test]
fn registers_are_tiles() {
    for (m, n) in SIZES {
        let k = 5;
        let (a, b) = (numbers(m * k, 3), numbers(k * n, 4));
        let sum = |at: usize| (0..k).map(|k_| a[at / n * k + k_] * b[k_ * n + at % n]).sum();
        let expected: Vec<f32> = (0..m * n).map(sum).collect();
        each_device(|device| {
            assert_same(&tiles(&tensor(&a, &[m, k], device), &tensor(&b, &[k, n], device)), &expected);
        });
    }
}

#[test]
fn what_is_updated() {
    for (m, n) in SIZES {
        let (x, y) = (numbers(m * n, 5), numbers(n, 6));
        let shifted: Vec<f32> = y.iter().chain(&x[..(m - 1) * n]).copied().collect();
        let power = |row: &[f32]| {
            let norm = row.iter().fold(0.0f32, |norm, x| norm.max(x.abs()));
            row.iter().map(|x| (0..3).fold(1.0, |power, _| power * x + norm)).collect::<Vec<f32>>()
        };
        let powers: Vec<f32> = x.chunks(n).flat_map(power).collect();
        each_device(|device| {
            assert_same(&after_a_uniform_loop(&tensor(&x, &[m, n], device)), &powers);
            let (mut x_, mut y_) = (tensor(&x, &[m, n], device), tensor(&y, &[n], device));
            updates(&mut x_, &mut y_);
            assert_same(&x_, &shifted);
            assert_same(&y_, &x[(m - 1) * n..]);
        });
    }
}
