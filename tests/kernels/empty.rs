//! Axes without elements: loops over them have no trips.

use crate::{assert_same, each_device, tensor};
use tinyspec::prelude::*;

uop! {
    <M, N> fn row_sums(x: &Global<f32, M, N>) -> Global<f32, M> as y {
        for i in global(M) {
            let mut sum = 0.5f32;
            for j in reduce(N) { sum += x[i, j]; }
            y[i] = sum;
        }
    }

    <M, N> fn column_greatest(x: &Global<f32, M, N>) -> Global<f32, N> as y {
        for j in global(N) {
            let mut best = -1.0f32;
            for i in serial(M) {
                if x[i, j] > best { best = x[i, j]; }
                if best > 5.0 { break; }
            }
            y[j] = best;
        }
    }

    <N> fn with_ends(x: &Global<f32, N>) -> Global<f32, { N + 2 }> as y {
        for i in global(N) { y[i + 1] = x[i]; }
        for i in global(2) { y[i * (N + 1)] = 7.0; }
    }

    <N> fn first(x: &Global<f32, N>) -> Global<f32, 1> as y {
        for g in global(1) { y[0] = x[0]; }
    }

    <N> fn first_if_any(x: &Global<f32, N>) -> Global<f32, 1> as y {
        for g in global(1) { y[0] = if N > 0 { x[0] } else { -1.0 }; }
    }

    <M, N> fn added(y: &mut Global<f32, M>, x: &Global<f32, M, N>) {
        for i in global(M) {
            for j in serial(N) { y[i] += x[i, j]; }
        }
    }

    <M, N, K> fn product(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {
        for i in global(M) {
            for j in local(N) {
                let mut sum = 0.0f32;
                for k in reduce(K) { sum += a[i, k] * b[k, j]; }
                c[i, j] = sum;
            }
        }
    }
}

#[test]
fn loops_over_them_have_no_trips() {
    each_device(|device| {
        let x = |m: usize, n: usize| tensor(&vec![1.0; m * n], &[m, n], device);
        assert_same(&row_sums(&x(3, 0)), &[0.5; 3]);
        assert_same(&row_sums(&x(0, 3)), &[]);
        assert_same(&row_sums(&x(2, 3)), &[3.5; 2]);
        assert_same(&column_greatest(&x(0, 20)), &[-1.0; 20]);
        assert_same(&column_greatest(&x(2, 20)), &[1.0; 20]);
        assert_same(&with_ends(&x(0, 1).reshape([0])), &[7.0, 7.0]);
        assert_same(&with_ends(&x(1, 1).reshape([1])), &[7.0, 1.0, 7.0]);
        assert_same(&product(&x(2, 0), &x(0, 3)), &[0.0; 6]);
        assert_same(&product(&x(0, 2), &x(2, 3)), &[]);
    });
}

#[test]
fn what_is_updated_stays() {
    each_device(|device| {
        let mut y = tensor(&[1.0, 2.0], &[2], device);
        added(&mut y, &tensor(&[], &[2, 0], device));
        assert_same(&y, &[1.0, 2.0]);
        added(&mut y, &tensor(&[1.0, 2.0], &[2, 1], device));
        assert_same(&y, &[2.0, 4.0]);
    });
}

#[test]
fn an_access_that_is_outside_is_refused() {
    each_device(|device| {
        let refused = first(&tensor(&[], &[0], device)).to_vec::<f32>().unwrap_err().to_string();
        assert!(refused.contains("first: a dim is 0 in this call"), "{refused}");
        assert!(refused.contains("inside of `x`"), "{refused}");
        assert_same(&first(&tensor(&[3.0], &[1], device)), &[3.0]);
        assert_same(&first_if_any(&tensor(&[3.0], &[1], device)), &[3.0]);
        assert_same(&first_if_any(&tensor(&[], &[0], device)), &[-1.0]);
    });
}
