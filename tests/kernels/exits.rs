//! Loops that are left early: `while`, `break` and `continue`.

use crate::{assert_close, assert_same, each_device, numbers, tensor};
use tinyspec::prelude::*;

uop! {
    <N> fn root(x: &Global<f32, N>) -> (Global<f32, N> as y, Global<i32, N> as steps) {
        for i in global(N) {
            let mut r = max(x[i], 1.0);
            let mut count = 0;
            while abs(r * r - x[i]) > 1e-4 * x[i], at most 50 {
                r = 0.5 * (r + x[i] / r);
                count += 1;
            }
            y[i] = r;
            steps[i] = count;
        }
    }

    <M, N> fn first(x: &Global<i32, M, N>, wanted: i32) -> Global<i32, M> as at {
        for i in global(M) {
            let mut found = -1;
            for j in serial(N) {
                if x[i, j] == wanted {
                    found = j as i32;
                    break;
                }
            }
            at[i] = found;
        }
    }

    <N> fn collatz(x: &Global<i64, N>) -> Global<i32, N> as y {
        for i in global(N) {
            let mut n = x[i];
            let mut steps = 0;
            while n > 1, at most 1000 {
                n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
                steps += 1;
            }
            y[i] = steps;
        }
    }

    <N> fn odd_sum(x: &Global<i32, N>) -> (Global<i32, 1> as sum, Global<i32, N> as seen) {
        for g in global(1) {
            let mut total = 0;
            for j in serial(N) {
                if x[j] % 2 == 0 { continue; }
                total += x[j];
                if x[j] > 90 {
                    seen[j] = 2;
                    break;
                }
                seen[j] = 1;
            }
            sum[0] = total;
        }
    }

    <M, N> fn nested(x: &Global<i32, M, N>) -> Global<i32, 2> as y {
        for g in global(1) {
            let mut rows = 0;
            let mut cells = 0;
            for i in serial(M) {
                let mut is_zero = false;
                for j in serial(N) {
                    if x[i, j] == 0 { is_zero = true; break; }
                    if x[i, j] < 0 { continue; }
                    cells += 1;
                }
                if is_zero && i > 1 { break; }
                rows += 1;
            }
            y[0] = rows;
            y[1] = cells;
        }
    }

    <N> fn bisected(sorted: &Global<f32, N>, x: &Global<f32, 8>) -> Global<i32, 8> as at {
        for i in global(8) {
            let mut low = 0usize;
            let mut high = N;
            while low < high, at most 40 {
                let middle = (low + high) / 2;
                if sorted.get([middle], 0.0) < x[i] { low = middle + 1; } else { high = middle; }
            }
            at[i] = low as i32;
        }
    }

    <N> fn reduced(x: &Global<f32, N>) -> Global<f32, 1> as y {
        for g in global(1) {
            let mut sum = 0.0f32;
            for j in reduce(N) {
                if x[j] < 0.0 { continue; }
                sum += x[j];
            }
            y[0] = sum;
        }
    }

    <N> fn of_data(n: &Global<i32, N>, x: &Global<i32, N>) -> Global<i32, N> as y {
        for i in global(N) {
            let mut sum = 0;
            for j in serial(n[i], at most N) {
                if x[j] == 7 { break; }
                for u in unroll(3) {
                    if u == 1 { continue; }
                    sum += x[j] * u;
                }
            }
            y[i] = sum;
        }
    }
}

#[test]
fn iterations_end_when_they_converge() {
    let x: Vec<f32> = (1..60).map(|i| (i * i) as f32 * 0.37).collect();
    let steps = |&x: &f32| {
        let (mut r, mut count) = (x.max(1.0), 0);
        while (r * r - x).abs() > 1e-4 * x && count < 50 {
            (r, count) = (0.5 * (r + x / r), count + 1);
        }
        (r, count)
    };
    let (roots, counts): (Vec<f32>, Vec<i32>) = x.iter().map(steps).unzip();
    each_device(|device| {
        let (y, found) = root(&tensor(&x, &[59], device));
        assert_close(&y, &roots);
        assert_eq!(found.to_vec::<i32>().unwrap(), counts);
    });
}

#[test]
fn a_search_ends_where_it_finds() {
    let x: Vec<i32> = (0..90).map(|i| i * i % 17).collect();
    let expected: Vec<i32> =
        x.chunks(9).map(|row| row.iter().position(|&x| x == 4).map_or(-1, |at| at as i32)).collect();
    each_device(|device| {
        let x = Tensor::from_slice(&x, [10, 9]).to(device);
        assert_eq!(first(&x, 4).to_vec::<i32>().unwrap(), expected);
    });
}

#[test]
fn the_number_of_steps_differs() {
    let x: Vec<i64> = (1..40).collect();
    let steps = |&x: &i64| {
        let (mut n, mut steps) = (x, 0);
        while n > 1 {
            (n, steps) = (if n % 2 == 0 { n / 2 } else { 3 * n + 1 }, steps + 1);
        }
        steps
    };
    let expected: Vec<i32> = x.iter().map(steps).collect();
    each_device(|device| {
        assert_eq!(collatz(&Tensor::from_slice(&x, [39]).to(device)).to_vec::<i32>().unwrap(), expected);
    });
}

#[test]
fn what_follows_is_skipped() {
    for last in [91, 5, 90] {
        let mut x: Vec<i32> = (0..20).map(|i| i * 3 % 20).collect();
        x[11] = last;
        let (mut sum, mut seen) = (0, vec![0; 20]);
        for (j, &x) in x.iter().enumerate() {
            if x % 2 == 0 {
                continue;
            }
            sum += x;
            if x > 90 {
                seen[j] = 2;
                break;
            }
            seen[j] = 1;
        }
        each_device(|device| {
            let (found, marks) = odd_sum(&Tensor::from_slice(&x, [20]).to(device));
            assert_eq!(found.to_vec::<i32>().unwrap(), [sum], "{last}");
            assert_eq!(marks.to_vec::<i32>().unwrap(), seen, "{last}");
        });
    }
}

#[test]
fn only_the_innermost_loop_ends() {
    for zero in [3, 22, 39, 60] {
        let mut x: Vec<i32> = (0..60).map(|i| if i % 5 == 2 { -1 } else { 1 + i % 3 }).collect();
        if zero < 60 {
            x[zero] = 0;
        }
        let (mut rows, mut cells) = (0, 0);
        for (i, row) in x.chunks(6).enumerate() {
            let mut is_zero = false;
            for &x in row {
                if x == 0 {
                    is_zero = true;
                    break;
                }
                cells += (x > 0) as i32;
            }
            if is_zero && i > 1 {
                break;
            }
            rows += 1;
        }
        each_device(|device| {
            let x = Tensor::from_slice(&x, [10, 6]).to(device);
            assert_eq!(nested(&x).to_vec::<i32>().unwrap(), [rows, cells], "{zero}");
        });
    }
}

#[test]
fn a_bisection() {
    let sorted: Vec<f32> = (0..37).map(|i| (i * i) as f32).collect();
    let x = [-1f32, 0.0, 1.0, 2.0, 100.0, 101.0, 1296.0, 5000.0];
    let expected = x.map(|x| sorted.partition_point(|&other| other < x) as i32);
    each_device(|device| {
        let found = bisected(&tensor(&sorted, &[37], device), &tensor(&x, &[8], device));
        assert_eq!(found.to_vec::<i32>().unwrap(), expected);
    });
}

#[test]
fn long_loops_end_anywhere() {
    for n in [31, 32, 33, 100, 1000, 1025, 5000] {
        for at in [0, 1, 30, 31, 32, 63, 64, 127, 128, n / 2, n - 2, n - 1, n] {
            let x: Vec<i32> = (0..n).map(|j| if j == at { 4 } else { 5 }).collect();
            let expected = if at < n { at } else { -1 };
            for device in ["interpreter", "cpu"] {
                let x = Tensor::from_slice(&x, [1, n]).to(device);
                assert_eq!(first(&x, 4).to_vec::<i32>().unwrap(), [expected], "{at} of {n} on {device}");
            }
        }
    }
}

#[test]
fn terms_are_skipped() {
    let x = numbers(70, 1);
    let sum: f32 = x.iter().filter(|x| **x >= 0.0).sum();
    each_device(|device| assert_same(&reduced(&tensor(&x, &[70], device)), &[sum]));
}

#[test]
fn in_loops_of_lengths_from_data() {
    let x: Vec<i32> = (0..12).map(|i| i * 5 % 12).collect();
    let n = [0, 1, 2, 3, 4, 12, 13, -1, 5, 6, 7, 8];
    let of_one = |&n: &i32| x.iter().take(n.clamp(0, 12) as usize).take_while(|x| **x != 7).map(|x| x * 2).sum::<i32>();
    let expected: Vec<i32> = n.iter().map(of_one).collect();
    each_device(|device| {
        let (n, x) = (Tensor::from_slice(&n, [12]).to(device), Tensor::from_slice(&x, [12]).to(device));
        assert_eq!(of_data(&n, &x).to_vec::<i32>().unwrap(), expected);
    });
}
