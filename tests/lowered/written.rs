//! Kernels with local memory and barriers, which no tensor program needs on a CPU.

use crate::stages::{Program, program, spec};
use tinyspec::prelude::*;

uop! { <M, N>
    fn transposed(x: &Global<f32, M, N>) -> Global<f32, N, M> as y {
        for bi in global((M + 3) / 4) {
            for bj in global((N + 3) / 4) {
                let mut tile: Local<f32, 4, 5>;
                for i in local(4) {
                    for j in local(4) {
                        tile[i, j] = x.get([bi * 4 + i, bj * 4 + j], 0.0);
                        barrier();
                        if bj * 4 + i < N && bi * 4 + j < M { y[bj * 4 + i, bi * 4 + j] = tile[j, i]; }
                    }
                }
            }
        }
    }

    <N>
    fn mirrored(x: &Global<f32, N>) -> Global<f32, N> as y {
        for block in global(N / 8) {
            let mut row: Local<f32, 8>;
            for i in local(8) {
                row[i] = x[block * 8 + i];
                barrier();
                y[block * 8 + i] = row[7 - i] + row[i];
            }
        }
    }

    <N>
    fn averaged(x: &Global<f32, N>) -> Global<f32, N> as y {
        for block in global(N / 8) {
            let mut row: Local<f32, 8>;
            let mut sums: Local<f32, 4>;
            for i in local(8) {
                row[i] = x[block * 8 + i];
                barrier();
                if i < 4 { sums[i] = row[i] + row[i + 4]; }
                barrier();
                let mut total = 0.0f32;
                for k in reduce(4) { total += sums[k]; }
                y[block * 8 + i] = row[i] - total;
            }
        }
    }
}

pub fn programs() -> Vec<Program> {
    let traced = |name: &str, shape: &[i64], body: fn(&Tensor) -> Tensor| {
        let function = Function::trace(&[spec(DType::F32, shape)], |inputs| vec![body(&inputs[0])]);
        let function = function.unwrap_or_else(|error| panic!("{name}: {error}"));
        program(name.into(), &function)
    };
    [
        traced("transposed", &[6, 9], |x| transposed(x)),
        traced("transposed in whole tiles", &[8, 4], |x| transposed(x)),
        traced("mirrored", &[24], |x| mirrored(x)),
        traced("averaged", &[32], |x| averaged(x)),
        traced("averaged twice", &[16], |x| averaged(&averaged(x))),
    ]
    .into_iter()
    .flatten()
    .collect()
}
