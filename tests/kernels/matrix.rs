use crate::*;
use tinyspec::prelude::*;

fn product(a: &[f32], b: &[f32], m: usize, k: usize, n: usize) -> Vec<f32> {
    (0..m * n).map(|at| (0..k).map(|k_at| a[at / n * k + k_at] * b[k_at * n + at % n]).sum()).collect()
}

uop! { <M, N>
    fn transposed(x: &Global<f32, M, N>) -> Global<f32, N, M> as y {
        for i in global(N) {
            for j in global(M) { y[i, j] = x[j, i]; }
        }
    }

    <M, N>
    fn transposed_by_tiles(x: &Global<f32, M, N>) -> Global<f32, N, M> as y {
        for bi in global((M + 7) / 8) {
            for bj in global((N + 7) / 8) {
                let mut tile: Local<f32, 8, 9>;
                for i in local(8) {
                    for j in local(8) {
                        tile[i, j] = x.get([bi * 8 + i, bj * 8 + j], 0.0);
                        barrier();
                        if bj * 8 + i < N && bi * 8 + j < M { y[bj * 8 + i, bi * 8 + j] = tile[j, i]; }
                    }
                }
            }
        }
    }
}

#[test]
fn transposes() {
    each_device(|device| {
        for (m, n) in [(16, 24), (5, 13), (64, 96), (70, 33)] {
            let x = numbers(m * n, 1);
            let expected: Vec<f32> = (0..m * n).map(|at| x[at % m * n + at / m]).collect();
            let x = tensor(&x, &[m, n], device);
            assert_same(&transposed(&x), &expected);
            assert_same(&transposed_by_tiles(&x), &expected);
        }
    });
}

uop! { <M, K, N>
    fn gemm(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {
        for i in global(M) {
            for j in global(N) {
                let mut total = 0.0f32;
                for k in reduce(K) { total += a[i, k] * b[k, j]; }
                c[i, j] = total;
            }
        }
    }
}

#[test]
fn gemm_by_the_book() {
    each_device(|device| {
        for (m, k, n) in [(6, 11, 9), (5, 40, 70), (3, 33, 64)] {
            let (a, b) = (numbers(m * k, 2), numbers(k * n, 3));
            let c = gemm(&tensor(&a, &[m, k], device), &tensor(&b, &[k, n], device));
            assert_same(&c, &product(&a, &b, m, k, n));
        }
    });
}

uop! { <M, K, N>
    fn gemm_by_tiles(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {
        for bi in global(M / 8) {
            for bj in global(N / 8) {
                let mut left: Local<f32, 8, 8>;
                let mut right: Local<f32, 8, 8>;
                for i in local(8) {
                    for j in local(8) {
                        let mut total = 0.0f32;
                        for block in serial(K / 8) {
                            left[i, j] = a[bi * 8 + i, block * 8 + j];
                            right[i, j] = b[block * 8 + i, bj * 8 + j];
                            barrier();
                            for k in reduce(8) { total += left[i, k] * right[k, j]; }
                            barrier();
                        }
                        c[bi * 8 + i, bj * 8 + j] = total;
                    }
                }
            }
        }
    }
}

#[test]
fn gemm_through_local_memory() {
    each_device(|device| {
        let (a, b) = (numbers(16 * 24, 4), numbers(24 * 8, 5));
        let c = gemm_by_tiles(&tensor(&a, &[16, 24], device), &tensor(&b, &[24, 8], device));
        assert_same(&c, &product(&a, &b, 16, 24, 8));
    });
}

uop! { <M, K, N>
    fn gemm_in_registers(a: &Global<f32, M, K>, b: &Global<f32, K, N>) -> Global<f32, M, N> as c {
        for bi in global(M / 2) {
            for bj in global(N / 4) {
                let mut total: Reg<f32, 2, 4>;
                for k in serial(K) {
                    for i in unroll(2) {
                        for j in unroll(4) { total[i, j] += a[bi * 2 + i, k] * b[k, bj * 4 + j]; }
                    }
                }
                for i in unroll(2) {
                    for j in unroll(4) { c[bi * 2 + i, bj * 4 + j] = total[i, j]; }
                }
            }
        }
    }
}

#[test]
fn gemm_with_a_tile_of_registers() {
    each_device(|device| {
        let (a, b) = (numbers(6 * 10, 6), numbers(10 * 12, 7));
        let c = gemm_in_registers(&tensor(&a, &[6, 10], device), &tensor(&b, &[10, 12], device));
        assert_same(&c, &product(&a, &b, 6, 10, 12));
    });
}

uop! { <M, N>
    fn matvec(a: &Global<f64, M, N>, x: &Global<f64, N>, alpha: f64) -> Global<f64, M> as y {
        for i in global(M) {
            let mut total = 0.0f64;
            for j in reduce(N) { total += a[i, j] * x[j]; }
            y[i] = alpha * total;
        }
    }
}

#[test]
fn matvec_in_f64() {
    each_device(|device| {
        let (a, x) = (numbers(5 * 7, 8), numbers(7, 9));
        let wide = |data: &[f32]| data.iter().map(|&x| x as f64).collect::<Vec<_>>();
        let (a_tensor, x_tensor) = (Tensor::from_slice(&wide(&a), [5, 7]), Tensor::from_slice(&wide(&x), [7]));
        let y = matvec(&a_tensor.to(device), &x_tensor.to(device), 0.5);
        let expected: Vec<f64> = product(&a, &x, 5, 7, 1).iter().map(|&x| x as f64 * 0.5).collect();
        assert_eq!(y.to_vec::<f64>().unwrap(), expected);
    });
}

uop! { <B, M, K, N>
    fn batched(a: &Global<f32, B, M, K>, b: &Global<f32, B, K, N>) -> Global<f32, B, M, N> as c {
        for batch in global(B) {
            for i in global(M) {
                for j in global(N) {
                    let mut total = 0.0f32;
                    for k in reduce(K) { total += a[batch, i, k] * b[batch, k, j]; }
                    c[batch, i, j] = total;
                }
            }
        }
    }
}

#[test]
fn batched_products() {
    each_device(|device| {
        let (a, b) = (numbers(3 * 4 * 5, 10), numbers(3 * 5 * 6, 11));
        let c = batched(&tensor(&a, &[3, 4, 5], device), &tensor(&b, &[3, 5, 6], device));
        let parts = (0..3).flat_map(|at| product(&a[at * 20..][..20], &b[at * 30..][..30], 4, 5, 6));
        assert_same(&c, &parts.collect::<Vec<_>>());
    });
}
