//! Values that are read under a condition and carried to a trip in which it is another one: nothing but what the condition
//! lets through may get there.

use crate::*;
use tinyspec::prelude::*;

uop! {
    fn later_in_the_loop(x: &Global<f32, 8, 64>) -> Global<f32, 8, 64> as y {
        for b in global(1) {
            let mut total = 0.0f32;
            for i in serial(8) {
                for j in serial(64) {
                    let before = if j >= 3 { x[i, j - 3] } else { 0.0 };
                    total = total + before + x[i, j] * 100.0;
                    if j >= 3 { y[i, j] = total; }
                }
            }
        }
    }

    fn in_every_other_trip(x: &Global<f32, 64, 8>) -> Global<f32, 64, 8> as y {
        for j in global(8) {
            let mut last = 0.0f32;
            for i in serial(62) {
                if i % 2 == 0 { y[i, j] = last; }
                last = x[i + 1, j] + if i % 2 == 0 { x[i + 2, j] } else { 0.0 };
            }
        }
    }

    fn where_data_say_so(x: &Global<f32, 8, 64>, m: &Global<i32, 64>) -> Global<f32, 8, 64> as y {
        for i in global(8) {
            let mut total = 0.0f32;
            for j in serial(1..64) {
                let before = if m[j] > 0 { x[i, j - 1] } else { 0.0 };
                total = total + before + x[i, j] * 100.0;
                if m[j] > 0 { y[i, j] = total; }
            }
        }
    }
}

/// Compares the elements that are written.
#[track_caller]
fn assert_written(found: &Tensor, expected: &[Option<f32>]) {
    let found = found.to_vec::<f32>().unwrap();
    for (position, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(expected.is_none_or(|expected| *found == expected), "{position}: {found} is not {expected:?}");
    }
}

#[test]
fn the_condition_holds_in_a_later_trip() {
    let x = numbers(512, 3);
    let (mut total, mut expected) = (0.0, vec![None; 512]);
    for at in 0..512 {
        let is_inside = at % 64 >= 3;
        total += if is_inside { x[at - 3] } else { 0.0 } + x[at] * 100.0;
        expected[at] = is_inside.then_some(total);
    }
    each_device(|device| assert_written(&later_in_the_loop(&tensor(&x, &[8, 64], device)), &expected));
}

#[test]
fn the_condition_holds_in_every_other_trip() {
    let x = numbers(512, 5);
    let mut expected = vec![None; 512];
    for j in 0..8 {
        let mut last = 0.0;
        for i in 0..62 {
            expected[i * 8 + j] = (i % 2 == 0).then_some(last);
            last = x[(i + 1) * 8 + j] + if i % 2 == 0 { x[(i + 2) * 8 + j] } else { 0.0 };
        }
    }
    each_device(|device| assert_written(&in_every_other_trip(&tensor(&x, &[64, 8], device)), &expected));
}

#[test]
fn data_are_the_condition() {
    let x = numbers(512, 7);
    let m: Vec<i32> = (0..64).map(|j| i32::from(j * j % 7 < 3)).collect();
    let mut expected = vec![None; 512];
    for i in 0..8 {
        let mut total = 0.0;
        for j in 1..64 {
            total += if m[j] > 0 { x[i * 64 + j - 1] } else { 0.0 } + x[i * 64 + j] * 100.0;
            expected[i * 64 + j] = (m[j] > 0).then_some(total);
        }
    }
    each_device(|device| {
        let mask = Tensor::from_slice(&m, [64]).to(device);
        assert_written(&where_data_say_so(&tensor(&x, &[8, 64], device), &mask), &expected);
    });
}
