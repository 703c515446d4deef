//! Loops run as often as they say, none or one included, and what is in them happens as often: whatever becomes a number
//! once the dims are known.

use crate::{assert_same, each_device, numbers, on_both, tensor};
use tinyspec::prelude::*;

uop! { <N, M>
    fn counted(like: &Global<i32, N, M>) -> (Global<i32, 1> as guarded, Global<i32, N> as rows, Global<i32, N> as chained) {
        for i in global(N) {
            if i < N {
                atomic_add(&mut guarded[0], 1);
            }
            for j in serial(M) {
                if i <= j + N {
                    rows[i] += 1;
                }
                if j < 7 * N {
                    chained[i] = chained[i] * 2 + (j / M) as i32 + 1;
                }
            }
        }
    }
}

uop! { <N>
    fn triangles(x: &Global<i32, N>) -> (Global<i32, N, N> as y, Global<i32, N> as marked) {
        for i in global(N) {
            for j in serial(i) {
                y[i, j] = 1;
                y[j, i] = 2;
            }
            for j in serial(i) {
                marked[i] = 5 + (j / N) as i32;
            }
        }
    }
}

uop! { <N>
    fn sums(x: &Global<i32, N>) -> (Global<i32, N> as before, Global<i32, N> as behind, Global<i32, N> as reduced) {
        for i in global(N) {
            let mut s = 0;
            for j in serial(i) {
                s += x[j];
            }
            before[i] = s;
            let mut t = 0;
            for j in serial(i + 1..N) {
                t += x[j];
            }
            behind[i] = t;
            let mut r = 0;
            for j in reduce(i + 1..N) {
                r += x[j];
            }
            reduced[i] = r;
        }
    }
}

uop! { <N>
    fn carried(x: &Global<i32, N>) -> (Global<i32, N> as doubled, Global<i32, N> as half) {
        for i in global(N) {
            let mut v = x[i];
            for j in serial(N - i - 1) {
                v = v * 2 + 1;
            }
            doubled[i] = v;
            let mut w = 0;
            for j in serial(N / 2) {
                w = max(w, x[j]) + 1;
            }
            half[i] = w;
        }
    }
}

uop! { <N>
    fn from_the_third(x: &Global<i32, N>) -> Global<i32, N> as y {
        for g in global(1) {
            for i in serial(N) {
                for j in serial(2..i + 1) {
                    y[j] = 9;
                }
            }
        }
    }
}

#[test]
fn are_those_of_every_size() -> Result<()> {
    on_both(|| {
        for n in 1..6usize {
            let values: Vec<i32> = (0..n as i32).map(|i| i + 3).collect();
            let x = Tensor::from_slice(&values, [n]);
            for m in 1..5usize {
                let (guarded, rows, chained) = counted(&Tensor::zeros([n, m]).cast(DType::I32));
                assert_eq!(guarded.to_vec::<i32>()?, [n as i32]);
                assert_eq!(rows.to_vec::<i32>()?, vec![m as i32; n]);
                assert_eq!(chained.to_vec::<i32>()?, vec![(1 << m) - 1; n]);
            }

            let (y, marked) = triangles(&x);
            let side = |i: usize, j: usize| if i > j { 1 } else { 2 * (i < j) as i32 };
            assert_eq!(y.to_vec::<i32>()?, (0..n * n).map(|at| side(at / n, at % n)).collect::<Vec<_>>(), "of {n}");
            assert_eq!(marked.to_vec::<i32>()?, (0..n).map(|i| 5 * (i > 0) as i32).collect::<Vec<_>>(), "of {n}");

            let (before, behind, reduced) = sums(&x);
            let first: Vec<i32> = (0..n).map(|i| values[..i].iter().sum()).collect();
            let last: Vec<i32> = (0..n).map(|i| values[i + 1..].iter().sum()).collect();
            assert_eq!(before.to_vec::<i32>()?, first, "of {n}");
            assert_eq!(behind.to_vec::<i32>()?, last, "of {n}");
            assert_eq!(reduced.to_vec::<i32>()?, last, "of {n}");

            let (doubled, half) = carried(&x);
            let expected = (0..n).map(|i| (i + 1..n).fold(values[i], |v, _| v * 2 + 1)).collect::<Vec<_>>();
            assert_eq!(doubled.to_vec::<i32>()?, expected, "of {n}");
            assert_eq!(half.to_vec::<i32>()?, vec![values[..n / 2].iter().fold(0, |w, &x| w.max(x) + 1); n], "of {n}");

            let expected = (0..n).map(|i| 9 * (i >= 2) as i32).collect::<Vec<_>>();
            assert_eq!(from_the_third(&x).to_vec::<i32>()?, expected, "of {n}");
        }
        Ok(())
    })
}

uop! {
    <N> fn turned(x: &Global<f32, N, 8>) -> Global<f32, N, 8> as y {
        for g in global(N) {
            let mut t: Local<f32, 8>;
            for i in local(8) { t[i] = x[g, i]; }
            for s in serial(2) {
                for i in local(4) { t[i] = t[i] + t[i + 4]; }
                for i in local(4) { t[i + 4] = t[3 - i]; }
            }
            for i in local(8) { y[g, i] = t[i]; }
        }
    }
}

#[test]
fn members_wait_in_every_trip_of_a_loop_around_them() {
    each_device(|device| {
        for n in [1, 3, 17] {
            let data = numbers(8 * n, 7);
            let x = tensor(&data, &[n, 8], device);
            let turned_row = |row: &[f32]| {
                let mut t = row.to_vec();
                for _ in 0..2 {
                    (0..4).for_each(|i| t[i] += t[i + 4]);
                    (0..4).for_each(|i| t[i + 4] = t[3 - i]);
                }
                t
            };
            assert_same(&turned(&x), &data.chunks(8).flat_map(turned_row).collect::<Vec<_>>());
        }
    });
}

uop! {
    <N, M> fn never_behind_a_loop(y: &mut Global<i32, {2 * N}>, p: &Global<i32, N, M>) {
        for i in global((N + 3) / 4) {
            y[i] = y[i] + 1;
            if i * 2 <= i - i { y[i] = i as i32 + y[i] * 3; }
        }
        for j in global(2..M) {
            if M - j >= 0 && M - j < 2 * N { y[M - j] = (j + j) as i32; }
        }
    }
}

#[test]
fn what_never_happens_waits_for_whole_loops() {
    each_device(|device| {
        for (n, m) in [(1, 1), (3, 2), (17, 2), (2, 3), (5, 1), (9, 4)] {
            let given: Vec<i32> = (0..2 * n as i32).collect();
            let mut y = Tensor::from_slice(&given, [2 * n]).to(device);
            never_behind_a_loop(&mut y, &Tensor::from_slice(&vec![0; n * m], [n, m]).to(device));
            let mut want = given;
            (0..n.div_ceil(4)).for_each(|i| want[i] += 1);
            want[0] *= 3;
            (2..m).filter(|j| m - j < 2 * n).for_each(|j| want[m - j] = 2 * j as i32);
            assert_eq!(y.to_vec::<i32>().unwrap(), want, "{n} and {m}");
        }
    });
}

uop! {
    <N> fn maybe_turned(x: &Global<f32, N, 8>) -> Global<f32, N, 8> as y {
        for g in global(N) {
            let mut t: Local<f32, 8>;
            for i in local(8) { t[i] = x[g, i]; }
            for s in serial(min(g, 1)) {
                for i in local(4) { t[i] = t[i] + t[i + 4]; }
                for i in local(4) { t[i + 4] = t[3 - i]; }
            }
            for i in local(8) { y[g, i] = t[i]; }
        }
    }
}

#[test]
fn members_wait_in_a_loop_that_may_have_no_trip() {
    each_device(|device| {
        for n in [1, 3, 17] {
            let data = numbers(8 * n, 7);
            let x = tensor(&data, &[n, 8], device);
            let row = |(g, row): (usize, &[f32])| {
                let mut t = row.to_vec();
                if g > 0 {
                    (0..4).for_each(|i| t[i] += t[i + 4]);
                    (0..4).for_each(|i| t[i + 4] = t[3 - i]);
                }
                t
            };
            assert_same(&maybe_turned(&x), &data.chunks(8).enumerate().flat_map(row).collect::<Vec<_>>());
        }
    });
}

uop! {
    <N> fn staged(x: &Global<f32, N, 3, 4, 8>) -> Global<f32, N, 8> as y {
        for g in global(N) {
            let mut sums: Local<f32, 8>;
            let mut t: Local<f32, 4, 8>;
            for i in local(8) { sums[i] = 1.0; }
            for b in serial(3) {
                for d in serial(4) {
                    for i in local(8) { t[d, i] = x[g, b, d, i]; }
                }
                for i in local(8) { sums[i] += t[b, 7 - i]; }
            }
            for i in local(8) { y[g, i] = sums[i]; }
        }
    }
}

#[test]
fn what_was_stored_before_a_loop_of_members_is_read_after_it() {
    each_device(|device| {
        for n in [1, 5] {
            let data = numbers(n * 96, 8);
            let sum = |at: usize| (0..3).map(|b| data[at / 8 * 96 + b * 32 + b * 8 + 7 - at % 8]).sum::<f32>() + 1.0;
            let expected: Vec<f32> = (0..8 * n).map(sum).collect();
            assert_same(&staged(&tensor(&data, &[n, 3, 4, 8], device)), &expected);
        }
    });
}
