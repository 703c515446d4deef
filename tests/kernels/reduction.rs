use crate::*;
use tinyspec::prelude::*;

uop! { <M, N>
    fn softmax(x: &Global<f32, M, N>) -> Global<f32, M, N> as y {
        for i in global(M) {
            let mut greatest = -1e30f32;
            for j in reduce(N) { greatest = max(greatest, x[i, j]); }
            let mut total = 0.0f32;
            for j in reduce(N) { total += exp(x[i, j] - greatest); }
            for j in serial(N) { y[i, j] = exp(x[i, j] - greatest) / total; }
        }
    }
}

#[test]
fn softmax_of_rows() {
    each_device(|device| {
        for n in [19, 64, 150] {
            let x = numbers(4 * n, 1);
            let expected: Vec<f32> = x
                .chunks(n)
                .flat_map(|row| {
                    let greatest = row.iter().copied().fold(f32::MIN, f32::max);
                    let total: f32 = row.iter().map(|x| (x - greatest).exp()).sum();
                    row.iter().map(move |x| (x - greatest).exp() / total).collect::<Vec<_>>()
                })
                .collect();
            assert_close(&softmax(&tensor(&x, &[4, n], device)), &expected);
        }
    });
}

uop! { <M, N>
    fn layer_norm(x: &Global<f32, M, N>, weight: &Global<f32, N>, epsilon: f32) -> Global<f32, M, N> as y {
        for i in global(M) {
            let n = N as f32;
            let mut sum = 0.0f32;
            let mut squares = 0.0f32;
            for j in reduce(N) {
                sum += x[i, j];
                squares += x[i, j] * x[i, j];
            }
            let mean = sum / n;
            let scale = rsqrt(squares / n - mean * mean + epsilon);
            for j in serial(N) { y[i, j] = (x[i, j] - mean) * scale * weight[j]; }
        }
    }
}

#[test]
fn layer_norm_of_rows() {
    each_device(|device| {
        let (x, weight) = (numbers(3 * 16, 2), numbers(16, 3));
        let expected: Vec<f32> = x
            .chunks(16)
            .flat_map(|row| {
                let mean = row.iter().sum::<f32>() / 16.0;
                let variance = row.iter().map(|x| x * x).sum::<f32>() / 16.0 - mean * mean;
                let scale = 1.0 / (variance + 1e-5).sqrt();
                row.iter().zip(&weight).map(move |(x, w)| (x - mean) * scale * w).collect::<Vec<_>>()
            })
            .collect();
        let y = layer_norm(&tensor(&x, &[3, 16], device), &tensor(&weight, &[16], device), 1e-5);
        let y = y.to_vec::<f32>().unwrap();
        assert!(y.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4));
    });
}

uop! { <M, N>
    fn argmax(x: &Global<f32, M, N>) -> (Global<f32, M> as best, Global<i32, M> as position) {
        for i in global(M) {
            let mut greatest = x[i, 0];
            let mut at = 0;
            for j in serial(1..N) {
                if x[i, j] > greatest {
                    greatest = x[i, j];
                    at = j as i32;
                }
            }
            best[i] = greatest;
            position[i] = at;
        }
    }
}

#[test]
fn argmax_of_rows() {
    each_device(|device| {
        let x = numbers(6 * 13, 4);
        let (best, position) = argmax(&tensor(&x, &[6, 13], device));
        for (row, (best, at)) in
            x.chunks(13).zip(best.to_vec::<f32>().unwrap().iter().zip(position.to_vec::<i32>().unwrap()))
        {
            let greatest = row.iter().copied().fold(f32::MIN, f32::max);
            assert_eq!(*best, greatest);
            assert_eq!(row.iter().position(|&x| x == greatest), Some(at as usize));
        }
    });
}

uop! { <N>
    fn total(x: &Global<f32, N>) -> Global<f32, 1> as y {
        let mut squares = 0.0f32;
        for i in reduce(N) { squares += x[i] * x[i]; }
        y[0] = squares;
    }
}

#[test]
fn one_sum_without_parallel_loops() {
    each_device(|device| {
        for n in [1, 77, 128, 1000] {
            let x = numbers(n, 5);
            assert_same(&total(&tensor(&x, &[n], device)), &[x.iter().map(|x| x * x).sum()]);
        }
    });
}

uop! { <M, N>
    fn ends(x: &Global<i32, M, N>) -> (Global<i32, M> as low, Global<i32, M> as high) {
        for i in global(M) {
            let mut least = 1000;
            let mut greatest = -1000;
            for j in reduce(N) {
                least = min(least, x[i, j]);
                greatest = max(x[i, j], greatest);
            }
            low[i] = least;
            high[i] = greatest;
        }
    }
}

#[test]
fn least_and_greatest_integers() {
    each_device(|device| {
        let x: Vec<i32> = numbers(5 * 90, 6).iter().map(|&x| x as i32 * 7).collect();
        let (low, high) = ends(&Tensor::from_slice(&x, [5, 90]).to(device));
        let rows = || x.chunks(90);
        assert_eq!(low.to_vec::<i32>().unwrap(), rows().map(|row| *row.iter().min().unwrap()).collect::<Vec<_>>());
        assert_eq!(high.to_vec::<i32>().unwrap(), rows().map(|row| *row.iter().max().unwrap()).collect::<Vec<_>>());
    });
}

uop! { <N>
    fn sums_of_blocks(x: &Global<f32, N>) -> Global<f32, { (N + 15) / 16 }> as y {
        for block in global((N + 15) / 16) {
            let mut part: Local<f32, 16>;
            for t in local(16) {
                part[t] = x.get([block * 16 + t], 0.0);
                barrier();
                for step in unroll(4) {
                    let half = 8 >> step;
                    if t < half { part[t] += part[t + half]; }
                    barrier();
                }
                if t == 0 { y[block] = part[0]; }
            }
        }
    }
}

#[test]
fn a_tree_in_local_memory() {
    each_device(|device| {
        for n in [16, 40, 48] {
            let x = numbers(n, 7);
            let expected: Vec<f32> = x.chunks(16).map(|block| block.iter().sum()).collect();
            assert_same(&sums_of_blocks(&tensor(&x, &[n], device)), &expected);
        }
    });
}

uop! { <M, N>
    fn positive(x: &Global<f32, M, N>) -> (Global<f32, M> as sum, Global<i32, M> as count) {
        for i in global(M) {
            let mut s = 0.0f32;
            let mut c = 0;
            for j in reduce(N) {
                if x[i, j] > 0.0 {
                    s += x[i, j];
                    c += 1;
                }
            }
            sum[i] = s;
            count[i] = c;
        }
    }
}

#[test]
fn a_reduction_under_a_condition() {
    each_device(|device| {
        let x = numbers(4 * 31, 8);
        let (sum, count) = positive(&tensor(&x, &[4, 31], device));
        let rows = || x.chunks(31).map(|row| row.iter().copied().filter(|&x| x > 0.0));
        assert_same(&sum, &rows().map(Iterator::sum).collect::<Vec<_>>());
        assert_eq!(count.to_vec::<i32>().unwrap(), rows().map(|row| row.count() as i32).collect::<Vec<_>>());
    });
}

uop! { <L, M, N>
    fn volume(x: &Global<f32, L, M, N>) -> Global<f32, L> as y {
        for i in global(L) {
            let mut total = 1.0f32;
            for j in reduce(M) {
                for k in reduce(N) { total += x[i, j, k]; }
            }
            y[i] = total;
        }
    }
}

#[test]
fn nested_reductions() {
    each_device(|device| {
        let x = numbers(3 * 5 * 7, 9);
        let expected: Vec<f32> = x.chunks(35).map(|part| 1.0 + part.iter().sum::<f32>()).collect();
        assert_same(&volume(&tensor(&x, &[3, 5, 7], device)), &expected);
    });
}

uop! { <N, M>
    fn above(x: &Global<f32, N, M>) -> Global<f32, N> as y {
        for i in global(N) {
            let mut total = 0.0f32;
            for j in reduce(N) {
                let mut row = 0.0f32;
                for k in reduce(M) { row += x[j, k]; }
                if j > i { total += row; }
            }
            y[i] = total;
        }
    }

    <N, M>
    fn triangles(x: &Global<f32, N, M>) -> Global<f32, N> as y {
        for i in global(N) {
            let mut total = 0.0f32;
            for j in reduce(N) {
                let mut rows = 0.0f32;
                for k in reduce(N) {
                    let mut row = 0.0f32;
                    for l in reduce(M) { row += x[k, l]; }
                    if k < j { rows += row; }
                }
                if j > i { total += rows; }
            }
            y[i] = total;
        }
    }
}

/// Only the outer reduction depends on the parallel index: what is left of a vector needs inner loops of its own.
#[test]
fn reductions_inside_of_one_that_depends_on_the_row() {
    each_device(|device| {
        for n in [3, 16, 17, 33] {
            let x = numbers(n * 4, 10);
            let sums: Vec<f32> = x.chunks(4).map(|row| row.iter().sum()).collect();
            let x = tensor(&x, &[n, 4], device);
            let expected: Vec<f32> = (0..n).map(|i| sums[i + 1..].iter().sum()).collect();
            assert_close(&above(&x), &expected);
            let below = |j: usize| sums[..j].iter().sum::<f32>();
            let expected: Vec<f32> = (0..n).map(|i| (i + 1..n).map(below).sum()).collect();
            assert_close(&triangles(&x), &expected);
        }
    });
}

uop! { <N>
    fn extremes_of_registers(x: &Global<f32, 3, N>) -> (Global<f32, 3> as most, Global<f32, 3> as least) {
        for g in global(1) {
            let mut high: Reg<f32, 3>;
            let mut low: Reg<f32, 3>;
            for u in unroll(3) { high[u] = -100.0; low[u] = 100.0; }
            for i in reduce(N) {
                for u in unroll(3) {
                    high[u] = max(high[u], x[u, i]);
                    low[2 - u] = min(x[u, i], low[2 - u]);
                }
            }
            for u in unroll(3) { most[u] = high[u]; least[u] = low[u]; }
        }
    }
}

#[test]
fn registers_accumulate_extremes() {
    each_device(|device| {
        for n in [1, 7, 64, 100] {
            let x = numbers(3 * n, 21);
            let (most, least) = extremes_of_registers(&tensor(&x, &[3, n], device));
            let row = |u: usize| x[u * n..][..n].iter().copied();
            assert_same(&most, &[0, 1, 2].map(|u| row(u).fold(-100.0, f32::max)));
            assert_same(&least, &[2, 1, 0].map(|u| row(u).fold(100.0, f32::min)));
        }
    });
}
