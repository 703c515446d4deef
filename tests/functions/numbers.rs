//! Numbers that are computed while tracing are those that rustc would compute.

#![allow(clippy::all, unused_parens, reason = "odd spellings are what is tried")]

use crate::same_graph;
use tinyspec::prelude::*;

/// Each body gives a number; `x` is one.
macro_rules! cases {
    ($($name:ident { $($body:tt)* })*) => {
        $(#[function]
        fn $name(x: &Tensor<f64>) -> Tensor<f64> {
            let number = { $($body)* };
            x * number
        })*

        #[test]
        fn are_those_of_rust() -> Result<()> {
            $(
                let number = { $($body)* };
                let found = $name(&Tensor::scalar(1f64)).item::<f64>()?;
                assert_eq!(found.to_bits(), (number as f64).to_bits(), "{}: {found}, not {number}", stringify!($name));
                same_graph($name::FUNCTION);
            )*
            Ok(())
        }
    };
}

const NEGATIVE: i64 = -7;
const NARROW: f32 = 0.1;
const LARGE: u64 = u64::MAX;
const WIDTH: usize = 3;

cases! {
    truncates_outer { NEGATIVE / 2 + NEGATIVE % 4 }
    negates_outer { -NARROW * 3.0 }
    casts_outer { (NEGATIVE / 2) as f32 * 0.1 }
    divides_outer { NEGATIVE as f64 / 3.0 }
    shifts_outer { (LARGE >> 3) - 1 }
    wraps_outer { (NEGATIVE * 100) as u8 }
    casts_a_product { (WIDTH * 2) as f32 / 7.0 }
    wraps_below { -1i32 as u8 as f32 }
    wraps_above { 300i32 as u8 }
    wraps_signed { 200u8 as i8 }
    wraps_in_steps { -1 as i8 as u8 as f32 }
    wraps_a_sum { (200 + 100) as u8 }
    wraps_wide { u64::MAX as i32 }
    is_one_type { let k = 255; k as u8 as i8 }
    saturates { 1e20 as i32 }
    saturates_below { -3.7f32 as u8 }
    truncates { 2.9 as i32 as f32 }
    has_no_number { (0.0f32 / 0.0) as i32 }
    rounds_a_cast { 16777217 as f32 }
    rounds_to_f32 { 16777216.0f32 + 1.0 }
    rounds_a_quotient { 1.0f32 / 3.0 as f32 }
    rounds_before_it_widens { let third = 1.0f32 / 3.0; third as f64 }
    stays_wide { 1.0 / 3.0 }
    sums_wide { 0.1 + 0.2 }
    sums_narrow { 0.1f32 + 0.2f32 }
    takes_the_other_type { 0.1 + 0.2f32 }
    learns_later { let a = 0.1; let b = a * 3.0; let c = b + 1f32; c }
    learns_after_use { let a = 0.1; let early = a as f64; let _late: f32 = a; early }
    learns_of_an_annotation { let a: f32 = 0.1; a as f64 }
    learns_in_a_list { let list = [0.1, 0.2f32]; list[0] as f64 }
    learns_of_an_assignment { let mut a = 0.1; if a > 0.0 { a = 0.3f32; } a as f64 }
    is_a_constant { const A: f32 = 0.1; const B: u8 = 7; A as f64 + B as f64 }
    divides { -7 / 2 }
    remains { -7 % 3 }
    remains_of_float { -7.5 % 2.0 }
    shifts_out { 200u8 << 1 }
    shifts_signed { -9 >> 1 }
    shifts_wide { 1i64 << 40 }
    inverts { !5 }
    inverts_unsigned { !5u8 }
    is_least { -128i8 }
    negates { let k = 3; -k }
    negates_zero { -0.0 }
    counts { let mut sum = 0; for i in 0..5 { sum += (i - 2) / 2; } sum }
    counts_bytes { let mut sum = 0u8; for i in 0..=9u8 { sum += i; } sum }
    counts_places { let mut sum = 0; for (i, part) in [1, 2, 3].into_iter().enumerate() { sum += i as i32 * part; } sum }
    compares_narrow { if 0.1f32 as f64 == 0.1 { 1 } else { 2 } }
    compares_what_is_learned { let a = 0.1; let equal = a == 0.1f32; if equal { a as f64 } else { 0.0 } }
    takes_roots { 2f32.sqrt() }
    takes_wide_roots { 2f64.sqrt() }
    takes_powers { 1.1f32.powi(7) }
    takes_logarithms { 3f32.ln() as f64 + 3f64.exp() }
    takes_least { 3u8.min(7).pow(2) }
    takes_pi { std::f32::consts::PI * 2.0 }
    takes_wide_pi { std::f64::consts::PI * 2.0 }
    takes_greatest { f32::MAX as f64 }
    has_bits { (0xf0u8 | 0x0f) & 0x3c ^ 1 }
    has_truth { true as u8 + (3 > 2) as u8 }
    multiplies_sizes { [1, 2, 3].len() * 2 }
}

#[function]
fn fills() -> (Tensor<i64, 2>, Tensor<u8, 2>, Tensor<i32, 2>, Tensor<f32, 2>) {
    (Tensor::full([2], 3i64), Tensor::full([2], 300i32 as u8 - 1), Tensor::full([2], 3), Tensor::full([2], 0.1))
}

#[function]
fn scaled(x: &Tensor<f64>, scale: f32) -> Tensor<f64> {
    x * scale.cast(DType::F64)
}

#[function]
fn passes(x: &Tensor<f64>) -> Tensor<f64> {
    let tenth = 0.1;
    scaled(x, tenth)
}

#[test]
fn the_type_of_a_number_decides() -> Result<()> {
    [fills::FUNCTION, passes::FUNCTION].into_iter().for_each(same_graph);
    assert_eq!(passes(&Tensor::scalar(1f64)).item::<f64>()?, f64::from(0.1f32));
    Ok(())
}

#[function]
fn beside_whole_numbers<B>(x: &Tensor<i64, B>, y: &Tensor<u64, B>) -> (Tensor<i64, B>, Tensor<u64, B>) {
    (x * 0 + NEGATIVE / 2 + NEGATIVE % 4 - (NEGATIVE << 2), y * 0 + (LARGE as u64 - 1))
}

#[function]
fn as_sizes<B>(x: &Tensor<f32, B, { WIDTH * 2 }>) -> Tensor<f32, { B * WIDTH }, 2> {
    x.reshape([B * (WIDTH * 2)]).reshape([B * WIDTH, 2]) * (WIDTH * 2)
}

#[test]
fn outer_constants_are_computed_with() -> Result<()> {
    [beside_whole_numbers::FUNCTION, as_sizes::FUNCTION].into_iter().for_each(same_graph);
    let (x, y) = beside_whole_numbers(&Tensor::from_slice(&[1i64], [1]), &Tensor::from_slice(&[1u64], [1]));
    assert_eq!(x.to_vec::<i64>()?, [NEGATIVE / 2 + NEGATIVE % 4 - (NEGATIVE << 2)]);
    assert_eq!(y.to_vec::<u64>()?, [LARGE - 1]);
    assert_eq!(as_sizes(&Tensor::ones([2, 6])).to_vec::<f32>()?, [6.0; 12]);
    Ok(())
}

#[function]
fn chosen<B>(x: &Tensor<f64, B>, y: &Tensor<i64, B>) -> (Tensor<f64, B>, Tensor<f64, B>, Tensor<i64, B>) {
    let negative = x.lt(0.0);
    (negative.where_(0.1, x), negative.where_(x, 1e300), negative.where_(1i64 << 40, y))
}

#[test]
fn a_number_that_is_chosen_is_like_the_other_choice() -> Result<()> {
    same_graph(chosen::FUNCTION);
    let (x, y, z) = chosen(&Tensor::from_slice(&[-1f64, 2.0], [2]), &Tensor::from_slice(&[3i64, 4], [2]));
    assert_eq!((x.to_vec::<f64>()?, y.to_vec::<f64>()?), (vec![0.1, 2.0], vec![-1.0, 1e300]));
    assert_eq!(z.to_vec::<i64>()?, [1 << 40, 4]);
    Ok(())
}

#[function]
fn on_the_left<N>(x: &Tensor<f32, N>, decay: f32, rate: &Tensor<f32>) -> Tensor<f32, N> {
    let part = x * 0.5;
    let sums = (1.0 - &decay) * x + (1.0 + &part) + 2.0 * rate - 1.0 / &part + &decay * x + -&decay;
    sums + (1 - part)
}

#[function]
fn constants_on_the_left<N>(x: &Tensor<f32, N>, y: &Tensor<i32, N>) -> (Tensor<f32, N>, Tensor<i32, N>) {
    (NARROW * x + (1.0 - NARROW) / x - 2.0f32 * x, (WIDTH as i64 - y) * 3i64 + NEGATIVE as i32 * y)
}

#[test]
fn numbers_of_all_types_stand_on_the_left() -> Result<()> {
    [on_the_left::FUNCTION, constants_on_the_left::FUNCTION].into_iter().for_each(same_graph);
    let (x, y) = (Tensor::from_slice(&[2f32, 4.0], [2]), Tensor::from_slice(&[2i32, 4], [2]));
    assert_eq!(on_the_left(&x, 0.5, &Tensor::scalar(3f32)).to_vec::<f32>()?, [8.5, 11.0]);
    let (floats, whole) = constants_on_the_left(&x, &y);
    let expected = [2f32, 4.0].map(|x| NARROW * x + (1.0 - NARROW) / x - 2.0 * x);
    assert_eq!(floats.to_vec::<f32>()?, expected);
    assert_eq!(whole.to_vec::<i32>()?, [3 - 14, -3 - 28]);
    Ok(())
}
