//! What constants outside of a function, flags and facts decide.

#![allow(clippy::assertions_on_constants, reason = "constants decide")]

use crate::{on_both, same_graph};
use tinyspec::prelude::*;

const WIDTH: usize = 32;
const HEADS: usize = 4;
const HEAD: usize = WIDTH / HEADS;
const WHOLE: usize = HEADS * HEAD;
const LAYERS: usize = 3;
const CAUSAL: bool = true;
const AXIS: i64 = -1;
const SLOPE: f64 = 0.25;
const MODE: u8 = 1;
const FIRST: usize = 2;

#[function]
fn by_a_number<B>(x: &Tensor<f32, B, WIDTH>) -> Tensor<f32, B, 4, { WIDTH / 4 }> {
    x.reshape([B, 4, WIDTH / 4])
}

#[function]
fn by_a_constant<B>(x: &Tensor<f32, B, WIDTH>) -> Tensor<f32, B, HEADS, { WIDTH / HEADS }> {
    x.reshape([B, HEADS, WIDTH / HEADS])
}

#[function]
fn by_what_is_computed<B>(x: &Tensor<f32, B, WIDTH>) -> Tensor<f32, B, HEADS, HEAD> {
    x.reshape([B, HEADS, HEAD])
}

#[function]
fn inferred<B>(x: &Tensor<f32, B, WIDTH>) -> Tensor<f32, B, HEADS, { WIDTH / HEADS }> {
    x.reshape([B, HEADS, -1])
}

#[function]
fn there_and_back<B>(x: &Tensor<f32, B, WIDTH>) -> Tensor<f32, B, WIDTH> {
    x.reshape([B, HEADS, WIDTH / HEADS]).transpose(1, 2).transpose(1, 2).reshape([B, WIDTH])
}

/// No constant is known by `32 == HEADS * HEAD`: `const` evaluation compares.
#[function(grad)]
fn of_a_literal<B>(x: &Tensor<f32, B, 32>) -> Tensor<f32, B, HEADS, HEAD> {
    x.reshape([B, HEADS, WIDTH / HEADS]) * 2.0
}

#[function]
fn beside_a_literal<B>(x: &Tensor<f32, B, 32>, y: &Tensor<f32, { HEADS * HEAD }, 3>) -> Tensor<f32, B, 3> {
    // A local may have the function's name.
    let beside_a_literal = x.matmul(y);
    beside_a_literal.relu()
}

/// Inputs have gradients even where the trace assumes that one constant in their sizes equals another, or a multiple of it.
#[function(grad)]
fn of_two_constants(x: &Tensor<f32, WIDTH>, y: &Tensor<f32, WHOLE>, z: &Tensor<f32, { HEADS * HEAD }>) -> Tensor<f32> {
    (x * y + x * z).sum(.., false)
}

#[function(grad)]
fn of_a_multiple(x: &Tensor<f32, WIDTH>, w: &Tensor<f32, { WIDTH / 4 }>) -> Tensor<f32> {
    (x.reshape([4, WIDTH / 4]) * w).sum(.., false)
}

#[function]
fn annotated_as<B>(x: &Tensor<f32, B, 32>) -> Tensor<f32, B, { HEADS * HEAD }> {
    let y: Tensor<f32, B, { HEADS * HEAD }> = x + 1.0;
    y
}

const PAIRS: usize = HEADS / 2;

/// Two equalities of one op.
#[function(grad)]
fn of_two_equalities(
    x: &Tensor<f32, WIDTH, HEADS>,
    y: &Tensor<f32, { HEADS * HEAD }, { 2 * PAIRS }>,
) -> Tensor<f32, WIDTH, HEADS> {
    x + y * y
}

const SIZES: [usize; 2] = [4, 8];

struct Config {
    width: usize,
    scale: f32,
}

const CONFIG: Config = Config { width: padded(31), scale: 0.5 };

const fn padded(width: usize) -> usize {
    width.next_multiple_of(8)
}

/// Rust computes what constants give.
#[function]
fn of_parts<B>(x: &Tensor<f32, B, { CONFIG.width }>) -> Tensor<f32, B, { SIZES[0] }, { SIZES[1] }> {
    let mut y = x.reshape([B, padded(20) + 8]) * CONFIG.scale;
    for i in 0..2 {
        y = y + SIZES[1 - i];
    }
    y.reshape([B, SIZES[0], const { SIZES[1] }])
}

#[test]
fn constants_say_whether_sizes_are_equal() -> Result<()> {
    on_both(|| {
        let x = Tensor::arange(64).reshape([2, 32]).cast(DType::F32);
        let heads = of_a_literal(&x);
        assert_eq!(heads.to_vec::<f32>()?, (&x * 2.0).to_vec::<f32>()?);
        assert_eq!(heads.shape(), [2, 4, 8].map(Dim::from));
        let [gradient] = of_a_literal::backward(&x, &Tensor::ones([2, 4, 8]));
        assert_eq!(gradient.to_vec::<f32>()?, [2.0; 64]);
        let y = Tensor::ones([32, 3]);
        assert_eq!(beside_a_literal(&x, &y).to_vec::<f32>()?, x.matmul(&y).to_vec::<f32>()?);
        assert_eq!(annotated_as(&x).to_vec::<f32>()?, (&x + 1.0).to_vec::<f32>()?);
        let (narrow, tall) = (Tensor::ones([32, 4]), Tensor::full([32, 4], 3.0f32));
        assert_eq!(of_two_equalities(&narrow, &tall).to_vec::<f32>()?, [10.0; 128]);
        let [of_x, of_y] = of_two_equalities::backward(&narrow, &tall, &narrow);
        assert_eq!((of_x.to_vec::<f32>()?, of_y.to_vec::<f32>()?), (vec![1.0; 128], vec![6.0; 128]));
        let parts = of_parts(&x);
        assert_eq!(parts.shape(), [2, 4, 8].map(Dim::from));
        assert_eq!(parts.to_vec::<f32>()?, (&x * 0.5 + 12.0).to_vec::<f32>()?);
        Ok(())
    })
}

#[function(where(D % H == 0))]
fn heads_of<B, T, D, H>(x: &Tensor<f32, B, T, D>, slopes: &Tensor<f32, H>) -> Tensor<f32, B, H, T, { D / H }> {
    x.reshape([B, T, H, D / H]).transpose(1, 2) * slopes.reshape([H, 1, 1])
}

#[function(where(D % 4 == 0, D % 6 == 0))]
fn of_literals<B, D>(x: &Tensor<f32, B, D>) -> Tensor<f32, B, 12, { D / 12 }> {
    x.reshape([B, 4, -1]).reshape([B, D / 6, 6]).reshape([B, 12, D / 12])
}

/// A fact of the caller's is one of the callee's.
#[function(where(D % H == 0))]
fn passed_on<B, T, D, H>(x: &Tensor<f32, B, T, D>, slopes: &Tensor<f32, H>) -> Tensor<f32, B, T, D> {
    heads_of(x, slopes).transpose(1, 2).reshape([B, T, D])
}

#[function]
fn of_known_sizes<B, T>(x: &Tensor<f32, B, T, 12>, slopes: &Tensor<f32, 4>) -> Tensor<f32, B, 4, T, 3> {
    heads_of(x, slopes)
}

#[model(functions)]
struct Linear<I, O> {
    weight: Tensor<f32, I, O>,
    #[model(none)]
    bias: Option<Tensor<f32, O>>,
}

#[function]
impl<I, O> Linear<I, O> {
    fn forward<B, T>(&self, x: &Tensor<f32, B, T, I>) -> Tensor<f32, B, T, O> {
        let y = x.matmul(&self.weight);
        match &self.bias {
            Some(bias) => y + bias,
            None => y,
        }
    }
}

#[model(functions)]
struct Attention<D> {
    query: Linear<D, D>,
    key: Linear<D, D>,
    value: Linear<D, D>,
    out: Linear<D, D>,
}

#[function]
impl<D> Attention<D> {
    #[function(where(D % HEADS == 0))]
    fn forward<B, T>(&self, x: &Tensor<f32, B, T, D>, causal: bool) -> Tensor<f32, B, T, D> {
        let query = self.query.forward(x).reshape([B, T, HEADS, D / HEADS]).transpose(1, 2);
        let key = self.key.forward(x).reshape([B, T, HEADS, D / HEADS]).transpose(1, 2);
        let value = self.value.forward(x).reshape([B, T, HEADS, D / HEADS]).transpose(1, 2);
        let scores = query.matmul(key.transpose(2, 3)) * (1.0 / ((D / HEADS) as f32).sqrt());
        let scores = if causal { scores + Tensor::full([T, T], f32::NEG_INFINITY).triu(1) } else { scores };
        self.out.forward(&scores.softmax(-1).matmul(&value).transpose(1, 2).reshape([B, T, D]))
    }
}

#[function]
fn attended<B, T>(attention: &Attention<16>, x: &Tensor<f32, B, T, 16>) -> Tensor<f32, B, T, 16> {
    attention.forward(x, CAUSAL)
}

#[function]
fn matched<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    let mut y = x.clone();
    for i in 0..5 {
        y = match i {
            0 => y + 1.0,
            1 | 2 => y * 2.0,
            n @ 3..=9 if n > 3 => y - n as f32,
            _ => y,
        };
    }
    match ("relu", Some(3)) {
        ("gelu", _) => y.exp(),
        (_, Some(n)) => y.relu() + n as f32,
        _ => y,
    }
}

#[function(grad)]
fn looped<B>(x: &Tensor<f32, B>) -> Tensor<f32> {
    let mut y = x.clone();
    for i in 0..LAYERS {
        y = y.relu() * (i as f32 + 1.0);
        if i == 1 {
            y = y + 1.0;
        }
    }
    y.sum(.., false)
}

#[function]
fn picked<B>(x: &Tensor<f32, B, LAYERS>, out: &Tensor<f32, B, LAYERS>) -> Tensor<f32, B, LAYERS> {
    let (mut state, mut out) = (x.at((.., 0)), out.clone());
    for i in 1..LAYERS {
        state = state * 0.5 + x.at((.., i)) - x.at((.., i - 1));
        out.set((.., i), &state);
    }
    out
}

#[function]
fn scaled<B>(x: &Tensor<f32, B, WIDTH>) -> Tensor<f32, B, WIDTH> {
    let scale = 1.0 / (WIDTH as f32).sqrt().max(0.5);
    x * scale
}

#[function]
fn scaled_by_a_dim<B, C>(x: &Tensor<f32, B, C>) -> Tensor<f32, B, C> {
    x * (1.0 / (C as f32).sqrt()) + x / (B as f32)
}

#[function]
fn taken_apart<B>(x: &Tensor<f32, B, 3>) -> (Tensor<f32, B, 1>, Tensor<i32, B>) {
    let [a, b, c] = x.split(1, 1);
    let [_, places] = x.topk(1, 1, true);
    (a + b * c, places.squeeze(1).cast(DType::I32))
}

#[function]
fn branched<B>(x: &Tensor<f32, B, 4>) -> Tensor<f32, B, 4> {
    let y = if CAUSAL && LAYERS > 2 { x.relu() } else { x.exp() };
    let y = match MODE {
        0 => y.exp(),
        1 => y * 3.0,
        _ => y,
    };
    y.leaky_relu(SLOPE).softmax(AXIS) + y.sum(AXIS, true)
}

#[function(grad)]
fn flagged<B>(x: &Tensor<f32, B>, on: bool, twice: bool) -> Tensor<f32> {
    let y = if on { x.sqrt() } else { x.clone() };
    let y = if twice && !on { y * 2.0 } else { y };
    y.sum(.., false)
}

#[function]
fn flags_passed_on<B>(x: &Tensor<f32, B>, on: bool) -> Tensor<f32> {
    flagged(x, on, true) + flagged(x, false, false)
}

#[function]
fn with_macros<B>(x: &Tensor<f32, B>) -> Tensor<f32, B> {
    macro_rules! square {
        ($x:expr) => {{
            let y = $x;
            &y * &y
        }};
    }
    macro_rules! sum {
        ($first:expr $(, $rest:expr)* $(,)?) => { $first $(+ $rest)* };
    }
    let y = x + 1.0;
    square!(y.clone() + 1.0) + sum!(x, 2.0 * x, y,)
}

#[function]
fn parts<T, C>(x: &Tensor<f32, T, C>, table: &Tensor<f32, 16, C>) -> Tensor<f32, T, C> {
    x + table.at(..T) + table.at(1..T + 1) * table.at((FIRST, ..)) - table.at((T - 1, ..))
}

#[test]
fn graphs_are_the_same() {
    let functions = [
        by_a_number::FUNCTION,
        by_a_constant::FUNCTION,
        by_what_is_computed::FUNCTION,
        inferred::FUNCTION,
        there_and_back::FUNCTION,
        heads_of::FUNCTION,
        of_literals::FUNCTION,
        passed_on::FUNCTION,
        of_known_sizes::FUNCTION,
        attended::FUNCTION,
        matched::FUNCTION,
        looped::FUNCTION,
        picked::FUNCTION,
        scaled::FUNCTION,
        scaled_by_a_dim::FUNCTION,
        taken_apart::FUNCTION,
        branched::FUNCTION,
        flagged::FUNCTION,
        flagged::FUNCTION.with_flags(&[true, false]),
        with_macros::FUNCTION,
        parts::FUNCTION,
    ];
    functions.into_iter().for_each(same_graph);
}

#[test]
fn constants_that_decide_leave_no_input_without_gradient() -> Result<()> {
    on_both(|| {
        let x = Tensor::arange(32).cast(DType::F32);
        let (y, z) = (&x + 1.0, &x + 2.0);
        let gradients = of_two_constants::grad(&x, &y, &z);
        for (gradient, wanted) in gradients.iter().zip([&y + &z, x.clone(), x.clone()]) {
            assert_eq!(gradient.to_vec::<f32>()?, wanted.to_vec::<f32>()?);
        }
        let w = Tensor::arange(8).cast(DType::F32);
        let [dx, dw] = of_a_multiple::grad(&x, &w);
        assert_eq!(dx.to_vec::<f32>()?, w.expand([4, 8]).to_vec::<f32>()?);
        assert_eq!(dw.to_vec::<f32>()?, x.reshape([4, 8]).sum(0, false).to_vec::<f32>()?);
        Ok(())
    })
}

#[test]
fn exact_quotients_are_sizes() -> Result<()> {
    let x = Tensor::arange(64).reshape([2, 32]).cast(DType::F32);
    for y in [by_a_number(&x), by_a_constant(&x), by_what_is_computed(&x), inferred(&x)] {
        assert_eq!(y.sizes()?, [2, 4, 8]);
    }
    assert_eq!(there_and_back(&x).to_vec::<f32>()?, x.to_vec::<f32>()?);
    assert_eq!(of_literals(&Tensor::ones([2, 24])).sizes()?, [2, 12, 2]);
    Ok(())
}

#[test]
fn facts_are_checked_where_the_function_is_called() -> Result<()> {
    let x = Tensor::arange(24).reshape([1, 2, 12]).cast(DType::F32);
    let slopes = Tensor::ones([4]);
    assert_eq!(heads_of(&x, &slopes).sizes()?, [1, 4, 2, 3]);
    assert_eq!(of_known_sizes(&x, &slopes).sizes()?, [1, 4, 2, 3]);
    assert_eq!(passed_on(&x, &slopes).to_vec::<f32>()?, x.to_vec::<f32>()?);
    let error = heads_of(&Tensor::ones([1, 2, 10]), &slopes).to_vec::<f32>().unwrap_err().to_string();
    assert!(error.contains("axis 2 of `x` is 10, which 4 does not divide"), "{error}");
    Ok(())
}

#[test]
fn attention_of_square_layers() -> Result<()> {
    on_both(|| {
        let attention = Attention::<16>::init();
        let x = Tensor::arange(96).reshape([2, 3, 16]).cast(DType::F32) / 96.0;
        let (masked, open) = (attention.forward(&x, true), attention.forward(&x, false));
        assert_eq!(masked.sizes()?, [2, 3, 16]);
        assert_eq!(attended(&attention, &x).to_vec::<f32>()?, masked.to_vec::<f32>()?);
        // The last position sees all in both, the first only itself.
        let rows = |y: &Tensor, row: i64| y.at((.., row)).to_vec::<f32>();
        let apart = |a: Vec<f32>, b: Vec<f32>| a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart(rows(&masked, 2)?, rows(&open, 2)?) < 1e-5);
        assert!(apart(rows(&masked, 0)?, rows(&open, 0)?) > 1e-4);
        Ok(())
    })
}

#[test]
fn what_is_known_chooses() -> Result<()> {
    on_both(|| {
        let x = Tensor::from_slice(&[1f32, -2.0], [2]);
        assert_eq!(matched(&x).to_vec::<f32>()?, [(2.0 * 4.0) - 4.0 + 3.0, 3.0]);
        assert_eq!(looped(&x).to_vec::<f32>()?, [12.0]);
        let rows = Tensor::from_slice(&[1f32, 3.0, 4.0, 2.0, 8.0, 6.0], [2, 3]);
        assert_eq!(picked(&rows, &Tensor::zeros([2, 3])).to_vec::<f32>()?, [0.0, 2.5, 2.25, 0.0, 7.0, 1.5]);
        assert_eq!(looped::grad(&x)[0].to_vec::<f32>()?, [6.0, 0.0]);
        let ones = Tensor::ones([2, 32]);
        assert_eq!(scaled(&ones).to_vec::<f32>()?[0], 1.0 / 32f32.sqrt());
        assert_eq!(scaled_by_a_dim(&ones).to_vec::<f32>()?[0], 1.0 / 32f32.sqrt() + 0.5);
        let (y, places) = taken_apart(&Tensor::from_slice(&[1f32, 2.0, 3.0], [1, 3]));
        assert_eq!((y.to_vec::<f32>()?, places.to_vec::<i32>()?), (vec![7.0], vec![2]));
        let y = branched(&Tensor::from_slice(&[1f32, 1.0, -1.0, 1.0], [1, 4])).to_vec::<f32>()?;
        let total = 3.0 * 3f32.exp() + 1.0;
        assert!((y[2] - (1.0 / total + 9.0)).abs() < 1e-5, "{y:?}");
        assert_eq!(with_macros(&x).to_vec::<f32>()?, [9.0 + 3.0 + 2.0, 0.0 - 6.0 - 1.0]);
        let table = Tensor::arange(32).reshape([16, 2]).cast(DType::F32);
        let found = parts(&Tensor::zeros([3, 2]), &table).to_vec::<f32>()?;
        let row = |row: usize| [2.0 * row as f32, 2.0 * row as f32 + 1.0];
        let expected = (0..3).flat_map(|t| (0..2).map(move |c| row(t)[c] + row(t + 1)[c] * row(2)[c] - row(2)[c]));
        assert_eq!(found, expected.collect::<Vec<f32>>());
        Ok(())
    })
}

#[test]
fn a_part_must_be_inside() {
    let error = parts(&Tensor::zeros([20, 2]), &Tensor::zeros([16, 2])).to_vec::<f32>().unwrap_err();
    assert!(error.to_string().contains("20") || error.to_string().contains("16"), "{error}");
}

#[test]
fn a_flag_has_a_graph_for_each_value() -> Result<()> {
    on_both(|| {
        let x = Tensor::from_slice(&[4f32, 0.0], [2]);
        assert_eq!(flagged(&x, true, true).item::<f32>()?, 2.0);
        assert_eq!(flagged(&x, false, true).item::<f32>()?, 8.0);
        assert_eq!(flags_passed_on(&x, true).item::<f32>()?, 6.0);
        // The branch that is not taken gives no nan.
        assert_eq!(flagged::grad(&x, false, true)[0].to_vec::<f32>()?, [2.0, 2.0]);
        let run = flagged::FUNCTION.with_flags(&[true, false]).prepare(&[&x])?;
        let mut out = run.outputs()?;
        run.call(&mut out, &[&x])?;
        assert_eq!(out[0].item::<f32>()?, 2.0);
        Ok(())
    })
}
