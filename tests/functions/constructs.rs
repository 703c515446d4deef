//! What a body may consist of.

#![allow(clippy::useless_vec, reason = "bodies may have lists of both kinds")]
#![allow(clippy::assign_op_pattern, reason = "both spellings are tested")]

use crate::{on_both, same_graph};
use tinyspec::options::{AvgPool1d, AvgPool2d, Conv1d, MaxPool1d, default};
use tinyspec::prelude::*;

const WIDTH: usize = 4;
const HEIGHT: usize = 3;
const SCALE: f32 = 0.5;
const COUNT: i64 = 3;

mod sizes {
    pub const DEPTH: usize = 2;
    pub(crate) const OFFSET: f64 = 1.5;
}

#[function]
fn lets<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let y = x * 2.0;
    let y: Tensor<f32, B, 4> = &y + 1.0;
    let (a, (b, _)) = (y.relu(), (y.exp(), 3));
    let [c, d] = [&a - &b, a.clone()];
    let mut e = c * &d;
    e = e + x;
    e += 1.0;
    e -= &b;
    e *= 2.0;
    e /= 4.0;
    {
        let e = 17.0;
        let _ = e;
    }
    e
}

#[function]
fn operators<B>(i: &Tensor<i32, B>, j: &Tensor<i32, B>, m: &Tensor<bool, B>) -> (Tensor<i32, B>, Tensor<bool, B>) {
    let mut k = (i + j) * 2 - i % 3;
    k = -k & 255;
    k |= 1;
    k ^= j;
    k <<= 1;
    k >>= 1;
    (!k, (m & i.gt(j)) | !(m ^ i.le(0)))
}

#[function]
fn blocks<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    const STEPS: i64 = 2;
    const DEEP: bool = true;
    let y = {
        let z = x + 1.0;
        z.relu()
    };
    let y = if DEEP && STEPS > 1 { y * 2.0 } else { y };
    let mut y = if STEPS == 7 {
        y.exp()
    } else if false {
        y.log()
    } else {
        y
    };
    if !DEEP {
        y = y.sqrt();
    }
    y
}

#[function]
fn loops<B>(x: &Tensor<f32, B, 6>) -> Tensor<f32, B, 2> {
    let mut y = Tensor::zeros([B, 2]);
    for i in 0..3 {
        y = y + i;
    }
    for i in (1..=2).rev() {
        y *= i as f64 * 0.5;
    }
    for part in x.split(2, 1) {
        y += part;
    }
    for (i, part) in x.chunk(3, 1).iter().enumerate() {
        y = y + part * i;
    }
    for (a, b) in x.chunk(3, 1).iter().zip(&x.split(2, 1)) {
        y += a * b;
    }
    for i in (0..6).step_by(4) {
        y -= x.narrow(1, i, 2);
    }
    for scale in [0.5, 0.25] {
        y *= scale;
    }
    let mut parts = Vec::new();
    for _ in 0..2 {
        parts.push(&y);
    }
    let twice = Tensor::stack(&parts, 0);
    twice.sum(0, false)
}

#[function]
fn lists_of_calls<B>(x: &Tensor<f32, B, 4>) -> Tensor<f64, B, 4> {
    let parts = vec![lets(x).cast::<f64>(), Tensor::ones([B, 4]).cast(DType::F64)];
    let sum = &parts[0] + &parts[1];
    sum + 1.0
}

#[function]
fn tuples<A, B>(
    x: &Tensor<f32, A>,
    y: &Tensor<f64, B>,
) -> (Tensor<f32, A>, (Tensor<f64, B>, (Tensor<f32>, Tensor<bool, B>))) {
    let inner = (x.sum(.., false), y.gt(0.0));
    let outer = (y * 2.0, inner);
    (outer.1.0.clone() * x, outer)
}

#[function]
fn one_of_a_tuple<A, B>(x: &Tensor<f32, A>, y: &Tensor<f64, B>) -> Tensor<f64, B> {
    let (_, (twice, (total, _))) = tuples(x, y);
    twice + total.cast(DType::F64)
}

#[function]
fn constants<B>(x: &Tensor<f32, B, WIDTH>, i: &Tensor<i32, B>) -> (Tensor<f32, B, { WIDTH * 2 }>, Tensor<i32, B>) {
    let y = x * SCALE + sizes::OFFSET;
    let z = Tensor::cat(&[&y, &(y.clone() * std::f32::consts::PI)], 1);
    (z * f32::EPSILON, i * COUNT as i32 + (2 + 3) * 4 - 1_i32.pow(2))
}

#[function]
fn dims<B, C>(
    x: &Tensor<f32, B, { sizes::DEPTH }, HEIGHT>,
    y: &Tensor<f32, { B + 1 }, C>,
    z: &Tensor<f32, C>,
) -> Tensor<f32, { B * sizes::DEPTH * HEIGHT }, { 2 * (C + 1) }> {
    let flat = x.reshape([B * sizes::DEPTH * HEIGHT, 1]);
    let first = y.shrink([0, 0], [1, C]) + z;
    let wide = first.pad([0, 1], [1, C + 2], 0.0).reshape([C + 2]);
    let depth = x.shape()[1];
    let size = depth * 4;
    flat * Tensor::ones([2 * (C + 1)]) + wide.sum(.., false) * size + C
}

macro_rules! scalars {
    ($($name:ident $dtype:ident;)*) => { $(
        #[function]
        fn $name<B>(x: &Tensor<$dtype, B>, s: $dtype) -> (Tensor<$dtype, B>, Tensor<bool, B>) {
            (x + s, x.lt(s))
        }
    )* };
}

scalars! {
    of_i8 i8; of_i16 i16; of_i32 i32; of_i64 i64; of_u8 u8; of_u16 u16; of_u32 u32; of_u64 u64; of_f32 f32; of_f64 f64;
}

#[function]
fn small_floats<B>(
    a: &Tensor<f16, B>,
    b: &Tensor<bf16, B>,
    c: &Tensor<f8e4m3, B>,
    d: &Tensor<f8e5m2, B>,
) -> (Tensor<f16, B>, Tensor<bf16, B>, Tensor<f8e4m3, B>, Tensor<f8e5m2, B>) {
    (a * 2.0, b + 1, c.maximum(0.5), -d)
}

#[function]
fn chosen<B>(x: &Tensor<f32, B>, on: bool) -> Tensor<f32, B> {
    on.where_(x, x.neg())
}

#[function]
fn options<N>(x: &Tensor<f32, N, 2, 8>, w: &Tensor<f32, 4, 2, 3>, b: &Tensor<f32, 4>) -> Tensor<f32, N, 4, 2, 2> {
    let strided = Conv1d { stride: [2], padding: [1], ..default() };
    let y = x.conv1d(w, Some(b), strided);
    let pooled = AvgPool2d { stride: Some([2, 1]), ceil_mode: true, ..Default::default() };
    y.reshape([N, 4, 2, 2]).avg_pool2d([1, 1], default()) + y.reshape([N, 4, 4, 1]).avg_pool2d([2, 1], pooled)
}

#[function]
fn uneven_padding<N>(x: &Tensor<f32, N, 2, 8>, w: &Tensor<f32, 4, 2, 2>) -> Tensor<f32, N, 4, 8> {
    let y = x.conv1d(w, None, Conv1d { padding_end: Some([1]), ..default() });
    let y = y.max_pool1d([2], MaxPool1d { stride: Some([1]), padding: [1], padding_end: Some([0]), ..default() });
    y.avg_pool1d([4], AvgPool1d { stride: Some([1]), padding: [1], padding_end: Some([2]), ..default() })
}

const FEATURES: usize = 128;
const SAME: usize = 128;

#[function]
fn constants_that_are_equal<B>(
    x: &Tensor<f32, B, FEATURES>,
    w: &Tensor<f32, 128, 10>,
    y: &Tensor<f32, SAME>,
) -> (Tensor<f32, B, 10>, Tensor<f32, B, 128>, Tensor<f32, 128>) {
    let z: Tensor<f32, B, SAME> = x.relu();
    (x.matmul(w), z + x, y + x.sum(0, false))
}

/// Both spellings of a cast, on a result of a call too.
#[function]
fn casts<B>(x: &Tensor<f32, B, 4>) -> (Tensor<i32, B, 4>, Tensor<bf16, B, 4>, Tensor<f32, B, 4>) {
    let h = lets(x).cast::<bf16>();
    let flags = x.gt(0.0).cast::<f32>();
    ((x * 2.0).cast::<i32>(), h, x.cast(DType::F16).cast::<f32>() + flags)
}

const HALF: usize = 64;
const QUARTER: usize = 32;

/// Sizes are expressions, and one of them stands in two tensors.
#[function]
fn expressions_that_are_equal<B>(
    x: &Tensor<f32, B, { HALF * 2 }>,
    w: &Tensor<f32, 128, 10>,
    y: &Tensor<f32, { HALF * 2 }>,
    z: &Tensor<f32, { 3 * QUARTER + 32 }>,
) -> (Tensor<f32, B, 10>, Tensor<f32, B, { 2 * QUARTER + HALF }>) {
    (x.matmul(w), x + y * z)
}

#[function(bounds(B: 1..=4096))]
fn bounded<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    x.softmax(1) / B
}

/// Lists of sizes of which some are dims.
#[function]
fn lists_of_sizes<B>(x: &Tensor<f32, B, 2, 3>) -> Tensor<f32, B, 6> {
    x.reshape(vec![B, 6]).reshape(&[B, 3, 2]).reshape(vec![B, 6])
}

const PLACES: usize = 6;

/// Elsewhere in the file an array has this name.
#[function]
fn one_size(x: &Tensor<f32, 2, 3>) -> Tensor<f32, PLACES> {
    x.reshape(PLACES)
}

mod arrays {
    pub const PLACES: [usize; 2] = [2, 3];
}

#[test]
fn embedded_and_traced_graphs_are_equal() {
    let functions = [
        lets::FUNCTION,
        lists_of_calls::FUNCTION,
        operators::FUNCTION,
        blocks::FUNCTION,
        loops::FUNCTION,
        tuples::FUNCTION,
        one_of_a_tuple::FUNCTION,
        constants::FUNCTION,
        dims::FUNCTION,
        of_i8::FUNCTION,
        of_i16::FUNCTION,
        of_i32::FUNCTION,
        of_i64::FUNCTION,
        of_u8::FUNCTION,
        of_u16::FUNCTION,
        of_u32::FUNCTION,
        of_u64::FUNCTION,
        of_f32::FUNCTION,
        of_f64::FUNCTION,
        small_floats::FUNCTION,
        chosen::FUNCTION,
        options::FUNCTION,
        uneven_padding::FUNCTION,
        casts::FUNCTION,
        constants_that_are_equal::FUNCTION,
        expressions_that_are_equal::FUNCTION,
        bounded::FUNCTION,
        lists_of_sizes::FUNCTION,
        one_size::FUNCTION,
    ];
    functions.into_iter().for_each(same_graph);
}

#[test]
fn bodies_compute_what_the_rust_code_says() -> Result<()> {
    on_both(|| {
        let x = Tensor::from_slice(&[1f32, -2.0, 3.0, -4.0], [1, 4]);
        let expected = [1f32, -2.0, 3.0, -4.0].map(|x: f32| {
            let y = x * 2.0 + 1.0;
            let (a, b) = (y.max(0.0), y.exp());
            ((a - b) * a + x + 1.0 - b) * 2.0 / 4.0
        });
        let found = lets(&x).to_vec::<f32>()?;
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs().max(1.0)), "{found:?}");

        let (i, j) = (Tensor::from_slice(&[7i32, -8], [2]), Tensor::from_slice(&[3i32, 5], [2]));
        let m = Tensor::from_slice(&[true, false], [2]);
        let expected = [(7i32, 3i32), (-8, 5)].map(|(i, j)| {
            let k = (i + j) * 2 - i.rem_euclid(3);
            !(((((-k & 255) | 1) ^ j) << 1) >> 1)
        });
        let (numbers, bools) = operators(&i, &j, &m);
        assert_eq!(numbers.to_vec::<i32>()?, expected);
        assert_eq!(bools.to_vec::<bool>()?, [true, false]);

        let y = Tensor::from_slice(&[-2f32, 1.0], [2]);
        assert_eq!(blocks(&y).to_vec::<f32>()?, [0.0, 4.0]);

        let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 6]);
        // 3 from the numbers, halved; then sums, rounds, squares, less the first and last parts.
        let round = |a: f32, b: f32, c: f32| {
            let y = 1.5 + a + b + c + (b + 2.0 * c) + (a * a + b * b + c * c) - a - c;
            2.0 * (y * 0.125)
        };
        assert_eq!(loops(&x).to_vec::<f32>()?, [round(1.0, 3.0, 5.0), round(2.0, 4.0, 6.0)]);

        let y = Tensor::from_slice(&[1f64, -1.0], [2]);
        assert_eq!(one_of_a_tuple(&Tensor::ones([3]), &y).to_vec::<f64>()?, [5.0, 1.0]);

        let x = Tensor::arange(6).reshape(arrays::PLACES).cast(DType::F32);
        assert_eq!(one_size(&x).to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(lists_of_sizes(&x.unsqueeze(0)).sizes()?, [1, 6]);

        let (z, k) = constants(&Tensor::ones([1, 4]), &Tensor::from_slice(&[2i32], [1]));
        assert_eq!(z.sizes()?, [1, 8]);
        assert_eq!(z.to_vec::<f32>()?[0], 2.0 * f32::EPSILON);
        assert_eq!(k.to_vec::<i32>()?, [2 * 3 + 20 - 1]);

        let d = dims(&Tensor::ones([2, 2, 3]), &Tensor::ones([3, 5]), &Tensor::ones([5]));
        assert_eq!(d.sizes()?, [12, 12]);
        assert_eq!(d.to_vec::<f32>()?[0], 1.0 + 10.0 * 8.0 + 5.0);

        let (sum, less) = of_u8(&Tensor::from_slice(&[1u8, 200], [2]), 9);
        assert_eq!((sum.to_vec::<u8>()?, less.to_vec::<bool>()?), (vec![10, 209], vec![true, false]));
        let (sum, _) = of_i64(&Tensor::from_slice(&[1i64], [1]), i64::MAX - 1);
        assert_eq!(sum.to_vec::<i64>()?, [i64::MAX]);
        let (sum, _) = of_f64(&Tensor::from_slice(&[1f64], [1]), 0.1);
        assert_eq!(sum.to_vec::<f64>()?, [1.1]);

        let x = Tensor::from_slice(&[1f32, 2.0], [2]);
        assert_eq!(chosen(&x, false).to_vec::<f32>()?, [-1.0, -2.0]);
        assert_eq!(chosen(&x, Tensor::from_slice(&[true], ())).to_vec::<f32>()?, [1.0, 2.0]);

        let inputs = (Tensor::ones([2, 128]), Tensor::ones([128, 10]), Tensor::ones([128]));
        let (product, sum, total) = constants_that_are_equal(&inputs.0, &inputs.1, &inputs.2);
        assert_eq!(product.to_vec::<f32>()?, [128.0; 20]);
        assert_eq!(sum.to_vec::<f32>()?, [2.0; 256]);
        assert_eq!(total.to_vec::<f32>()?, [3.0; 128]);

        let y = options(&Tensor::ones([1, 2, 8]), &Tensor::ones([4, 2, 3]), &Tensor::ones([4]));
        assert_eq!(y.sizes()?, [1, 4, 2, 2]);
        let y = uneven_padding(&Tensor::ones([1, 2, 8]), &Tensor::ones([4, 2, 2]));
        assert_eq!(y.at((0, 0)).to_vec::<f32>()?, [3.0, 4.0, 4.0, 4.0, 4.0, 4.0, 3.0, 2.0]);
        Ok(())
    })
}

const BEYOND_A_BYTE: i32 = 300;

#[function]
fn below<B>(x: &Tensor<u8, B>) -> Tensor<bool, B> {
    x.lt(BEYOND_A_BYTE as i32)
}

#[test]
fn a_constant_has_to_fit_its_neighbour() {
    let result = below(&Tensor::from_slice(&[1u8, 2], [2]));
    let error = result.error().expect("300 does not fit u8").to_string();
    assert!(error.contains("300 is not a value of u8"), "{error}");
}
