//! Iterations that conditions, remainders and the parity of indices keep apart.

use crate::*;
use tinyspec::prelude::*;

uop! { <N>
    fn not_first(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            if i != 0 { y[i] = x[i - 1]; }
        }
    }

    <N>
    fn first_apart(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            if i == 0 { y[i] = x[i]; } else { y[i] = x[i - 1]; }
        }
    }

    <N>
    fn last_apart(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            if i + 1 == N { y[i] = x[i]; } else { y[i] = x[i + 1]; }
        }
    }

    <N>
    fn around(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) { y[(i + 1) % N] = x[i]; }
    }

    <N>
    fn even_from_odd(y: &mut Global<f32, N>) {
        for i in global(N) {
            if i % 2 == 0 && i + 1 < N { y[i] = y[i + 1]; }
        }
    }

    <N>
    fn mirrored(x: &Global<f32, N, N>) -> Global<f32, N, N> as y {
        for i in global(N) {
            for j in global(N) {
                if j < i {
                    y[i, j] = x[i, j];
                    y[j, i] = x[i, j];
                }
            }
        }
    }

    <N>
    fn mirrored_by_rows(x: &Global<f32, N, N>) -> Global<f32, N, N> as y {
        for i in global(N) {
            for j in serial(i) {
                y[i, j] = x[i, j];
                y[j, i] = x[i, j];
            }
        }
    }

    <N>
    fn strided_grid(x: &Global<f32, N>) -> Global<f32, N> as y {
        for t in global(64) {
            for k in serial((N + 63) / 64) {
                if k * 64 + t < N { y[k * 64 + t] = x[k * 64 + t] * 2.0; }
            }
        }
    }
}

#[test]
fn conditions_on_the_loop_variable() {
    each_device(|device| {
        let data = numbers(9, 1);
        let x = tensor(&data, &[9], device);
        let before = |i: usize| if i == 0 { 0.0 } else { data[i - 1] };
        assert_close(&not_first(&x), &(0..9).map(before).collect::<Vec<_>>());
        let before = |i: usize| data[i.saturating_sub(1)];
        assert_close(&first_apart(&x), &(0..9).map(before).collect::<Vec<_>>());
        let after = |i: usize| data[(i + 1).min(8)];
        assert_close(&last_apart(&x), &(0..9).map(after).collect::<Vec<_>>());
    });
}

#[test]
fn remainders_and_parity() {
    each_device(|device| {
        let data = numbers(9, 2);
        let x = tensor(&data, &[9], device);
        assert_close(&around(&x), &(0..9).map(|i| data[(i + 8) % 9]).collect::<Vec<_>>());
        let mut y = tensor(&data, &[9], device);
        even_from_odd(&mut y);
        let expected = |i: usize| if i.is_multiple_of(2) && i < 8 { data[i + 1] } else { data[i] };
        assert_close(&y, &(0..9).map(expected).collect::<Vec<_>>());
        let long = numbers(200, 3);
        let doubled: Vec<f32> = long.iter().map(|number| number * 2.0).collect();
        assert_close(&strided_grid(&tensor(&long, &[200], device)), &doubled);
    });
}

#[test]
fn triangles_and_their_mirrors() {
    each_device(|device| {
        let data = numbers(36, 4);
        let x = tensor(&data, &[6, 6], device);
        let expected: Vec<f32> = (0..36)
            .map(|place| match (place / 6, place % 6) {
                (i, j) if i == j => 0.0,
                (i, j) => data[i.max(j) * 6 + i.min(j)],
            })
            .collect();
        assert_close(&mirrored(&x), &expected);
        assert_close(&mirrored_by_rows(&x), &expected);
    });
}
