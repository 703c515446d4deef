use crate::*;
use tinyspec::prelude::*;

uop! { <N>
    fn stencil(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(N) {
            let mut total = 2.0 * x[i];
            if i > 0 { total += x[i - 1]; }
            if i + 1 < N { total += x[i + 1]; }
            y[i] = total;
        }
    }

    <N>
    fn inner_stencil(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in global(1..N - 1) { y[i] = x[i - 1] + 2.0 * x[i] + x[i + 1]; }
    }
}

#[test]
fn stencils() {
    each_device(|device| {
        for n in [40, 64, 66] {
            let x = numbers(n, 1);
            let at = |i: i64| if (0..n as i64).contains(&i) { x[i as usize] } else { 0.0 };
            let all: Vec<f32> = (0..n as i64).map(|i| 2.0 * at(i) + at(i - 1) + at(i + 1)).collect();
            let mut inner = all.clone();
            (inner[0], inner[n - 1]) = (0.0, 0.0);
            assert_same(&stencil(&tensor(&x, &[n], device)), &all);
            assert_same(&inner_stencil(&tensor(&x, &[n], device)), &inner);
        }
    });
}

uop! { <N, K>
    fn conv1d(x: &Global<f32, N>, w: &Global<f32, K>) -> Global<f32, { N - K + 1 }> as y {
        for i in global(N - K + 1) {
            let mut total = 0.0f32;
            for k in reduce(K) { total += x[i + k] * w[k]; }
            y[i] = total;
        }
    }
}

#[test]
fn a_convolution() {
    each_device(|device| {
        let (x, w) = (numbers(30, 2), numbers(5, 3));
        let y = conv1d(&tensor(&x, &[30], device), &tensor(&w, &[5], device));
        let expected: Vec<f32> = (0..26).map(|i| (0..5).map(|k| x[i + k] * w[k]).sum()).collect();
        assert_same(&y, &expected);
    });
}

uop! { <H, W>
    fn max_pool(x: &Global<f32, H, W>) -> Global<f32, { H / 2 }, { W / 2 }> as y {
        for i in global(H / 2) {
            for j in global(W / 2) {
                let mut greatest = x[2 * i, 2 * j];
                for a in unroll(2) {
                    for b in unroll(2) { greatest = max(greatest, x[2 * i + a, 2 * j + b]); }
                }
                y[i, j] = greatest;
            }
        }
    }

    <H, W>
    fn blur(x: &Global<f32, H, W>) -> Global<f32, H, W> as y {
        for i in global(H) {
            for j in global(W) {
                let mut total = 0.0f32;
                for a in reduce(3) {
                    for b in reduce(3) { total += x.get([i + a - 1, j + b - 1], 0.0); }
                }
                y[i, j] = total / 9.0;
            }
        }
    }
}

#[test]
fn windows_in_two_dims() {
    each_device(|device| {
        let (h, w) = (7, 40);
        let x = numbers(h * w, 4);
        let at = |i: i64, j: i64| match (0..h as i64).contains(&i) && (0..w as i64).contains(&j) {
            true => x[i as usize * w + j as usize],
            false => 0.0,
        };
        let pooled: Vec<f32> = (0..3 * 20)
            .map(|p| (0..4).map(|k| at(p / 20 * 2 + k / 2, p % 20 * 2 + k % 2)).fold(f32::MIN, f32::max))
            .collect();
        let blurred: Vec<f32> = (0..(h * w) as i64)
            .map(|p| (0..9).map(|k| at(p / w as i64 + k / 3 - 1, p % w as i64 + k % 3 - 1)).sum::<f32>() / 9.0)
            .collect();
        assert_same(&max_pool(&tensor(&x, &[h, w], device)), &pooled);
        assert_close(&blur(&tensor(&x, &[h, w], device)), &blurred);
    });
}

uop! { <N>
    fn pairs_of_neighbours(x: &Global<f32, N>) -> Global<f32, { N / 2 }, 2> as y {
        for i in global(N - N % 2) { y[i / 2, i % 2] = x[i]; }
    }
}

#[test]
fn quotient_and_remainder_together_tell_iterations_apart() {
    each_device(|device| {
        let x = numbers(13, 5);
        assert_same(&pairs_of_neighbours(&tensor(&x, &[13], device)), &x[..12]);
    });
}

uop! { <H, W>
    fn halving_pool(x: &Global<f32, {2 * H}, {2 * W}>) -> Global<f32, H, W> as y {
        for i in global(H) {
            for j in global(W) {
                let above = max(x[2 * i, 2 * j], x[2 * i, 2 * j + 1]);
                y[i, j] = max(above, max(x[2 * i + 1, 2 * j], x[2 * i + 1, 2 * j + 1]));
            }
        }
    }

    <N, K>
    fn valid_convolution(x: &Global<f32, {N + K - 1}>, w: &Global<f32, K>) -> Global<f32, N> as y {
        for i in global(N) {
            let mut total = 0.0f32;
            for k in reduce(K) { total += x[i + k] * w[k]; }
            y[i] = total;
        }
    }
}

#[function]
fn halves<H>(x: &Tensor<f32, { 2 * H }>) -> Tensor<f32, 2, H> {
    x.reshape([2, H])
}

#[test]
fn dims_are_solved_for() {
    each_device(|device| {
        let x = numbers(4 * 6, 1);
        let greatest = |place: usize| {
            let (i, j) = (place / 3 * 2, place % 3 * 2);
            [(i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1)].map(|(i, j)| x[i * 6 + j]).into_iter().fold(-9.0, f32::max)
        };
        assert_same(&halving_pool(&tensor(&x, &[4, 6], device)), &(0..6).map(greatest).collect::<Vec<_>>());
        let w = numbers(3, 2);
        let total = |i: usize| (0..3).map(|k| x[i + k] * w[k]).sum();
        let found = valid_convolution(&tensor(&x, &[24], device), &tensor(&w, &[3], device));
        assert_same(&found, &(0..22).map(total).collect::<Vec<f32>>());
        assert_same(&halves(&tensor(&x, &[24], device)), &x);
        let error = halving_pool(&tensor(&x[..15], &[3, 5], device)).to_vec::<f32>().unwrap_err().to_string();
        assert!(error.contains("axis 0 of `x` is 3, which 2 does not divide (`2*H`)"), "{error}");
    });
}

uop! { <N>
    fn taps(x: &Global<f32, N>, weights: &Global<f32, 3>) -> Global<f32, N> as y {
        for i in global(N) {
            let mut total = x.get([-1], 0.5);
            for d in unroll(5) {
                total += weights.get([d - 1], 0.0) * x.get([i + d - 2], 0.0);
                if d >= 1 && d < 4 { total += weights[d - 1]; }
            }
            y[i] = total;
        }
    }
}

/// A term of an unrolled loop whose condition is a constant reads nothing, whatever its index.
#[test]
fn constant_conditions_of_unrolled_terms() {
    each_device(|device| {
        let (x, weights) = (numbers(21, 3), numbers(3, 4));
        let tap = |i: i64, d: i64| weights[(d - 1) as usize] * x.get((i + d - 2) as usize).unwrap_or(&0.0);
        let one = |i: i64| 0.5 + (1..4).map(|d| tap(i, d)).sum::<f32>() + weights.iter().sum::<f32>();
        let expected: Vec<f32> = (0..21).map(one).collect();
        assert_close(&taps(&tensor(&x, &[21], device), &tensor(&weights, &[3], device)), &expected);
    });
}
