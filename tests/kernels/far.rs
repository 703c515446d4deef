//! Indices whose arithmetic leaves an i64 are outside of every axis: none wraps to an element.

use crate::each_device;
use tinyspec::Tensor;
use tinyspec::prelude::*;

uop! { <M, N>
    fn scaled(x: &Global<f32, N>, at: &Global<i64, M>) -> Global<f32, M> as y {
        for i in global(M) { y[i] = x.get([at[i] as usize * 4611686018427387904 + 1], -1.0); }
    }

    <M, N>
    fn multiplied(x: &Global<f32, N>, at: &Global<i64, M>, by: &Global<i64, M>) -> Global<f32, M> as y {
        for i in global(M) { y[i] = x.get([at[i] as usize * by[i] as usize], -1.0); }
    }

    <M, N>
    fn added(x: &Global<f32, N>, at: &Global<i64, M>, by: &Global<i64, M>) -> Global<f32, M> as y {
        for i in global(M) { y[i] = x.get([at[i] as usize + by[i] as usize + i], -1.0); }
    }

    <M, N>
    fn divided(x: &Global<f32, N>, at: &Global<i64, M>) -> Global<f32, M> as y {
        for i in global(M) { y[i] = x.get([(at[i] as usize * 8 + 1) / 8], -1.0); }
    }

    <M, N>
    fn unsigned(x: &Global<f32, N>, at: &Global<u64, M>) -> Global<f32, M> as y {
        for i in global(M) { y[i] = x.get([at[i] as usize + 2], -1.0); }
    }

    <M, N>
    fn stretched(x: &Global<f32, N>, like: &Global<f32, M>) -> Global<f32, M> as y {
        for i in global(M) { y[i] = x.get([i * 4611686018427387904 + 1], like[i]); }
    }

    <M, N>
    fn stored(like: &Global<f32, N>, at: &Global<i64, M>) -> Global<f32, N> as y {
        for i in serial(M) {
            unsafe { y[at[i] as usize * 4611686018427387904 + 1] = 7.0; }
        }
    }

    <M, N>
    fn computed(x: &Global<f32, N>, at: &Global<i64, M>) -> Global<f32, M> as y {
        for i in global(M) { y[i] = x.get([at[i] * 4611686018427387904 + 1], -1.0); }
    }
}

const FACTOR: i128 = 1 << 62;
const PLACES: [i64; 12] = [0, 1, 2, 3, -1, 4, -4, 8, i64::MAX, i64::MIN, (1 << 61) + 1, -(1 << 61)];

/// What `get` reads there of `[0, 1, …, 7]`.
fn read(place: i128) -> f32 {
    if (0..8).contains(&place) { place as f32 } else { -1.0 }
}

/// On one device: x, the places, and partners of theirs.
fn inputs(device: &str) -> [Tensor; 3] {
    let x: Vec<f32> = (0..8).map(|number| number as f32).collect();
    let partners: Vec<i64> = PLACES.iter().rev().copied().collect();
    [Tensor::from_slice(&x, [8]), Tensor::from_slice(&PLACES, [12]), Tensor::from_slice(&partners, [12])]
        .map(|tensor| tensor.to(device))
}

#[test]
fn what_overflows_is_outside() {
    each_device(|device| {
        let [x, at, by] = inputs(device);
        let check = |name: &str, y: Tensor, place: &dyn Fn(i128, i128, i128) -> i128| {
            let expected: Vec<f32> = (PLACES.iter().zip(PLACES.iter().rev()).enumerate())
                .map(|(i, (&at, &by))| read(place(i as i128, at as i128, by as i128)))
                .collect();
            assert_eq!(y.to_vec::<f32>().unwrap(), expected, "{name} on {device}");
        };
        check("scaled", scaled(&x, &at), &|_, at, _| at * FACTOR + 1);
        check("multiplied", multiplied(&x, &at, &by), &|_, at, by| at * by);
        check("multiplied by itself", multiplied(&x, &at, &at), &|_, at, _| at * at);
        check("added", added(&x, &at, &by), &|i, at, by| at + by + i);
        check("added to itself", added(&x, &at, &at), &|i, at, _| at + at + i);
        check("divided", divided(&x, &at), &|_, at, _| at);
        let minus = Tensor::full([12], -1.0f32).to(device);
        check("stretched", stretched(&x, &minus), &|i, _, _| i * FACTOR + 1);
    });
}

#[test]
fn what_no_index_can_be_is_outside() {
    each_device(|device| {
        let [x, ..] = inputs(device);
        let at = Tensor::from_slice(&[0u64, 1, u64::MAX, u64::MAX - 1, 1 << 63, 5, 6], [7]).to(device);
        let expected = [2.0, 3.0, -1.0, -1.0, -1.0, 7.0, -1.0];
        assert_eq!(unsigned(&x, &at).to_vec::<f32>().unwrap(), expected, "{device}");
    });
}

#[test]
fn nothing_is_stored_where_an_index_overflows() {
    each_device(|device| {
        let [x, ..] = inputs(device);
        let at = Tensor::from_slice(&[4i64, -4, 8, 1], [4]).to(device);
        assert_eq!(stored(&x, &at).to_vec::<f32>().unwrap(), [0.0; 8], "{device}");
        let at = Tensor::from_slice(&[4i64, 0], [2]).to(device);
        assert_eq!(stored(&x, &at).to_vec::<f32>().unwrap(), [0.0, 7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "{device}");
    });
}

/// Data has its dtype, also where it becomes an index: i64 wraps, as in every other expression.
#[test]
fn arithmetic_of_data_wraps_before_it_is_an_index() {
    each_device(|device| {
        let [x, at, _] = inputs(device);
        let expected: Vec<f32> =
            PLACES.iter().map(|at| read(at.wrapping_mul(FACTOR as i64).wrapping_add(1) as i128)).collect();
        assert_eq!(computed(&x, &at).to_vec::<f32>().unwrap(), expected, "{device}");
        let lazy = at * Tensor::from_slice(&[FACTOR as i64], [1]).to(device) + 1;
        let found = x.index0(&lazy).to_vec::<f32>().unwrap();
        // Negative places count from the end.
        let place = |at: i64| at.wrapping_mul(FACTOR as i64).wrapping_add(1) as i128;
        let counted = |place: i128| if (-8..0).contains(&place) { place + 8 } else { place };
        let zeros: Vec<f32> = PLACES.iter().map(|&at| read(counted(place(at))).max(0.0)).collect();
        assert_eq!(found, zeros, "{device}");
    });
}
