//! LOCAL buffers that are needed one after the other: they may have the same place, on every device.

use crate::{each_device, numbers, tensor};
use tinyspec::prelude::*;

uop! { <N>
    fn twice_reversed(x: &Global<f32, N, 64>) -> Global<f32, N, 64> as y {
        for i in global(N) {
            let mut s: Local<f32, 64>;
            let mut t: Local<f32, 64>;
            for j in local(64) {
                s[j] = x[i, j];
                barrier();
                y[i, j] = s[63 - j] * 2.0;
                barrier();
                t[j] = x[i, j] + 1.0;
                barrier();
                y[i, j] = t[63 - j];
            }
        }
    }

    <N>
    fn in_rows(x: &Global<f32, N, 4, 64>) -> Global<f32, N, 4, 64> as y {
        for i in global(N) {
            let mut s: Local<f32, 64>;
            let mut t: Local<f32, 64>;
            for k in serial(4) {
                for j in local(64) {
                    s[j] = x[i, k, j];
                    barrier();
                    let turned = s[63 - j] * 2.0;
                    barrier();
                    t[j] = turned;
                    barrier();
                    y[i, k, j] = t[(j + 1) % 64] + 1.0;
                    barrier();
                }
            }
        }
    }
}

#[test]
fn buffers_that_follow_each_other_keep_their_values() {
    each_device(|device| {
        let x = numbers(3 * 64, 5);
        let expected: Vec<f32> = (0..3 * 64).map(|at| x[at / 64 * 64 + 63 - at % 64] + 1.0).collect();
        let found = twice_reversed(&tensor(&x, &[3, 64], device)).to_vec::<f32>();
        assert_eq!(found.unwrap_or_else(|error| panic!("{device}: {error}")), expected, "{device}");
    });
}

#[test]
fn buffers_of_a_loop_keep_their_values() {
    each_device(|device| {
        let x = numbers(2 * 4 * 64, 6);
        let turned = |at: usize| 63 - (at + 1) % 64;
        let expected: Vec<f32> = (0..2 * 4 * 64).map(|at| x[at / 64 * 64 + turned(at % 64)] * 2.0 + 1.0).collect();
        let found = in_rows(&tensor(&x, &[2, 4, 64], device)).to_vec::<f32>();
        assert_eq!(found.unwrap_or_else(|error| panic!("{device}: {error}")), expected, "{device}");
    });
}
