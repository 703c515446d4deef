use crate::*;
use tinyspec::prelude::*;

uop! { <M, N>
    fn prefix_sums(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
        for i in global(M) {
            let mut total = 0.0f32;
            for j in serial(N) {
                total += x[i, j];
                y[i, j] = total;
            }
        }
    }

    <N>
    fn prefix_sums_in_place(x: &mut Global<f32, N>) {
        for i in serial(1..N) { x[i] += x[i - 1]; }
    }

    <N>
    fn sums_from_here_on(x: &Global<f32, N>) -> Global<f32, N> as y {
        for i in serial(N) {
            let mut total = 0.0f32;
            for j in reduce(N) { if j >= i { total += x[j]; } }
            y[i] = total + if i > 0 { y[i - 1] * 0.5 } else { 0.0 };
        }
    }

    <N>
    fn last_of_sums(x: &Global<f32, N>) -> Global<f32, 1> as y {
        for i in serial(N) {
            let mut total = 0.0f32;
            for j in reduce(N) { if j >= i { total += x[j]; } }
            y[0] = total;
        }
    }

    <N>
    fn prefix_sums_of_blocks(x: &Global<f32, N>) -> Global<f32, N> as y {
        for block in global(N / 16) {
            let mut front: Local<f32, 16>;
            let mut back: Local<f32, 16>;
            for t in local(16) {
                front[t] = x[block * 16 + t];
                barrier();
                for step in unroll(4) {
                    let reach = 1 << step;
                    back[t] = front[t] + if t >= reach { front[t - reach] } else { 0.0 };
                    barrier();
                    front[t] = back[t];
                    barrier();
                }
                y[block * 16 + t] = front[t];
            }
        }
    }
}

fn sums(x: &[f32]) -> Vec<f32> {
    x.iter()
        .scan(0.0, |total, x| {
            *total += x;
            Some(*total)
        })
        .collect()
}

#[test]
fn prefix_sums_three_ways() {
    each_device(|device| {
        let x = numbers(48, 1);
        let rows: Vec<f32> = x.chunks(16).flat_map(sums).collect();
        assert_same(&prefix_sums(&tensor(&x, &[3, 16], device)), &rows);
        assert_same(&prefix_sums_of_blocks(&tensor(&x, &[48], device)), &rows);
        let mut y = tensor(&x, &[48], device);
        prefix_sums_in_place(&mut y);
        assert_same(&y, &sums(&x));
    });
}

uop! { <M>
    fn fibonacci(seed: &Global<i64, M, 2>) -> Global<i64, M, 10> as y {
        for i in global(M) {
            let mut a = seed[i, 0];
            let mut b = seed[i, 1];
            for j in serial(10) {
                y[i, j] = a;
                let next = a + b;
                a = b;
                b = next;
            }
        }
    }
}

#[test]
fn fibonacci_from_any_seed() {
    each_device(|device| {
        let y = fibonacci(&Tensor::from_slice(&[0i64, 1, 2, 1], [2, 2]).to(device));
        let expected = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 2, 1, 3, 4, 7, 11, 18, 29, 47, 76];
        assert_eq!(y.to_vec::<i64>().unwrap(), expected);
    });
}

uop! { <M, N>
    fn recurrence(x: &Global<f32, M, N>, decay: f32) -> Global<f32, M, N> as y {
        for i in global(M) {
            let mut before = 0.0f32;
            let mut state = 0.0f32;
            for j in serial(N) {
                let kept = state;
                state = decay * state + x[i, j] - before;
                before = kept;
                y[i, j] = state;
            }
        }
    }
}

#[test]
fn variables_hand_on_their_values() {
    each_device(|device| {
        let x = numbers(2 * 10, 2);
        let mut expected = vec![];
        for row in x.chunks(10) {
            let (mut before, mut state) = (0.0, 0.0);
            for x in row {
                let kept = state;
                state = 0.5 * state + x - before;
                before = kept;
                expected.push(state);
            }
        }
        assert_close(&recurrence(&tensor(&x, &[2, 10], device), 0.5), &expected);
    });
}

uop! { <N>
    fn countdown(x: &Global<f32, N>) -> Global<f32, N> as y {
        for block in global(N / 4) {
            let mut shared: Local<f32, 4>;
            for t in local(4) {
                let mine = x[block * 4 + t] * 2.0;
                let position = 3 - t;
                shared[position] = mine;
                barrier();
                y[block * 4 + t] = shared[t] + mine + position as f32;
            }
        }
    }
}

#[test]
fn what_lives_across_a_barrier_is_kept_for_each_iteration() {
    each_device(|device| {
        let x = numbers(12, 3);
        let expected: Vec<f32> =
            (0..12).map(|at| 2.0 * x[at / 4 * 4 + 3 - at % 4] + 2.0 * x[at] + (3 - at % 4) as f32).collect();
        assert_same(&countdown(&tensor(&x, &[12], device)), &expected);
    });
}

uop! { <N, D>
    fn causal(scores: &Global<f32, N, N>, values: &Global<f32, N, D>) -> Global<f32, N, D> as y {
        for i in global(N) {
            for d in global(D) {
                let mut total = 0.0f32;
                for j in reduce(i + 1) { total += scores[i, j] * values[j, d]; }
                y[i, d] = total;
            }
        }
    }

    <N>
    fn solve(l: &Global<f32, N, N>, b: &Global<f32, N>) -> Global<f32, N> as x {
        for i in serial(N) {
            let mut rest = b[i];
            for j in serial(i) { rest -= l[i, j] * x[j]; }
            x[i] = rest;
        }
    }
}

#[test]
fn bounds_of_inner_loops_follow_the_outer_ones() {
    each_device(|device| {
        let (n, d) = (9, 20);
        let (scores, values) = (numbers(n * n, 4), numbers(n * d, 5));
        let y = causal(&tensor(&scores, &[n, n], device), &tensor(&values, &[n, d], device));
        let expected: Vec<f32> =
            (0..n * d).map(|at| (0..=at / d).map(|j| scores[at / d * n + j] * values[j * d + at % d]).sum()).collect();
        assert_same(&y, &expected);
        let (l, b) = (numbers(36, 6), numbers(6, 7));
        let x = solve(&tensor(&l, &[6, 6], device), &tensor(&b, &[6], device));
        let mut expected = vec![];
        for i in 0..6 {
            let rest = (0..i).fold(b[i], |rest, j| rest - l[i * 6 + j] * expected[j]);
            expected.push(rest);
        }
        assert_close(&x, &expected);
    });
}

#[test]
fn trips_that_see_each_other_stay_in_order() {
    each_device(|device| {
        for n in [1, 5, 16, 33] {
            let data = numbers(n, 3);
            let x = tensor(&data, &[n], device);
            let mut expected: Vec<f32> = Vec::new();
            for i in 0..n {
                let before = expected.last().copied().unwrap_or(0.0) * 0.5;
                expected.push(data[i..].iter().sum::<f32>() + before);
            }
            assert_close(&sums_from_here_on(&x), &expected);
            assert_same(&last_of_sums(&x), &data[n - 1..]);
        }
    });
}
