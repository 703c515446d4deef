//! Kernels that store and load the same memory several times in an iteration, at sizes that no vector divides.

use crate::*;
use tinyspec::prelude::*;

uop! {
    <N> fn swap(a: &mut Global<f32, N>, b: &mut Global<f32, N>) {
        for i in global(N) {
            let kept = a[i];
            a[i] = b[i];
            b[i] = kept;
        }
    }

    <N> fn twice(a: &mut Global<f32, N>) {
        for i in global(N) {
            a[i] = a[i] + 1.0;
            a[i] = a[i] * 2.0;
        }
    }

    <N> fn one_reads_the_other(a: &mut Global<f32, N>, b: &mut Global<f32, N>) {
        for i in global(N) {
            a[i] = a[i] + 1.0;
            b[i] = b[i] + a[i];
        }
    }

    <N> fn butterfly(y: &mut Global<f32, {2 * N}>, c: f32) {
        for i in global(N) {
            let second = N;
            let sum = y[i] + y[i + second] * c;
            let difference = y[i] - y[i + second] * c;
            y[i] = sum;
            y[i + second] = difference;
        }
    }

    <N> fn momentum(w: &mut Global<f32, N>, v: &mut Global<f32, N>, g: &Global<f32, N>) {
        for i in global(N) {
            v[i] = v[i] * 0.5 + g[i];
            w[i] = w[i] - v[i];
            v[i] = v[i] + w[i];
        }
    }

    <N> fn chosen(a: &mut Global<f32, N>, b: &mut Global<f32, N>) {
        for i in global(N) {
            let kept = a[i];
            let mut next = 0.0;
            if kept > 0.0 { next = b[i]; }
            a[i] = next;
            b[i] = kept;
        }
    }

    <N> fn halved_above(a: &mut Global<f32, N>, most: f32) {
        for i in global(N) {
            a[i] *= 2.0;
            let new = a[i];
            if new > most { a[i] *= 0.5; }
        }
    }

    <N> fn rows(y: &mut Global<f32, 3, N>, x: &Global<f32, N>) {
        for r in global(3) {
            for i in local(N) {
                y[r, i] = y[r, i] + x[i];
                y[r, i] = y[r, i] * x[i];
            }
        }
    }
}

#[test]
fn every_size_gives_what_plain_rust_gives() {
    each_device(|device| {
        for n in (1..=70).chain([127, 129, 1000, 4097]) {
            let (x, y) = (numbers(n, 1), numbers(n, 2));
            let given = |data: &[f32]| tensor(data, &[data.len()], device);

            let (mut a, mut b) = (given(&x), given(&y));
            swap(&mut a, &mut b);
            assert_same(&a, &y);
            assert_same(&b, &x);

            let mut a = given(&x);
            twice(&mut a);
            assert_same(&a, &x.iter().map(|x| (x + 1.0) * 2.0).collect::<Vec<_>>());

            let (mut a, mut b) = (given(&x), given(&y));
            one_reads_the_other(&mut a, &mut b);
            assert_same(&a, &x.iter().map(|x| x + 1.0).collect::<Vec<_>>());
            assert_same(&b, &x.iter().zip(&y).map(|(x, y)| y + (x + 1.0)).collect::<Vec<_>>());

            let mut a = given(&[&x[..], &y[..]].concat());
            butterfly(&mut a, 2.0);
            let sums = x.iter().zip(&y).map(|(x, y)| x + y * 2.0);
            let differences = x.iter().zip(&y).map(|(x, y)| x - y * 2.0);
            assert_same(&a, &sums.chain(differences).collect::<Vec<_>>());

            let (mut w, mut v) = (given(&x), given(&y));
            momentum(&mut w, &mut v, &given(&x));
            let next = |at: usize| y[at] * 0.5 + x[at];
            assert_same(&w, &(0..n).map(|at| x[at] - next(at)).collect::<Vec<_>>());
            assert_same(&v, &(0..n).map(|at| next(at) + (x[at] - next(at))).collect::<Vec<_>>());

            let (mut a, mut b) = (given(&x), given(&y));
            chosen(&mut a, &mut b);
            assert_same(&a, &x.iter().zip(&y).map(|(x, y)| if *x > 0.0 { *y } else { 0.0 }).collect::<Vec<_>>());
            assert_same(&b, &x);

            let mut a = given(&x);
            halved_above(&mut a, 4.0);
            assert_same(&a, &x.iter().map(|&x| if x * 2.0 > 4.0 { x } else { x * 2.0 }).collect::<Vec<_>>());

            let mut a = tensor(&[&y[..], &x[..], &y[..]].concat(), &[3, n], device);
            rows(&mut a, &given(&x));
            let row = |row: &[f32]| row.iter().zip(&x).map(|(y, x)| (y + x) * x).collect::<Vec<_>>();
            assert_same(&a, &[row(&y), row(&x), row(&y)].concat());
        }
    });
}
