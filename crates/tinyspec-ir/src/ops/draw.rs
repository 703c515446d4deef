//! Draws from distributions, all from the bits of a key: the same key gives the same values on every device.

use super::arithmetic::{mul, sub};
use super::random::{random_bits, same_log, uniform};
use super::{cast, dtype_of, given, like, reduce, scan, selection, shape_of, sort, to_float};
use crate::dim::show;
use crate::{Builder, Const, DType, Dim, Error, ErrorKind, NodeId, Op, Result, Shape};

/// Whole numbers in `[low, high)`, each of them as likely up to a share of 2⁻³² of the range.
pub fn randint(b: &mut dyn Builder, key: NodeId, shape: &[Dim], low: i64, high: i64, dtype: DType) -> Result<NodeId> {
    const OP: &str = "randint_with";
    let Some((least, greatest)) = dtype.int_range().filter(|_| dtype != DType::Bool) else {
        return Err(Error::new(ErrorKind::DType, OP, format!("needs an integer dtype, found {dtype}"))
            .help("`DType::I32`; `uniform` draws floats"));
    };
    let width = i128::from(high) - i128::from(low);
    if width < 1 || i128::from(low) < least || i128::from(high) - 1 > greatest {
        let message = format!("there are no numbers of {dtype} from {low} to {high} exclusive");
        return Err(Error::new(ErrorKind::Value, OP, message).help("the upper bound is greater, and is never drawn"));
    }
    let bits = random_bits(b, key, shape).map_err(|error| error.in_op(OP))?;
    // The high half of a product of 32 bits and the width has no division; a wider range takes the remainder.
    let place = if width <= 1 << 32 {
        let half = b.constant(Const::int(DType::U64, 32));
        let high_bits = b.alu(Op::Shr, &[bits, half])?;
        let width = b.number(Const::int(DType::U64, width));
        let product = b.alu(Op::Mul, &[high_bits, width])?;
        b.alu(Op::Shr, &[product, half])?
    } else {
        let width = b.number(Const::int(DType::U64, width));
        b.alu(Op::Mod, &[bits, width])?
    };
    let place = cast(b, place, DType::I64)?;
    let start = b.number(Const::int(DType::I64, low.into()));
    let value = b.alu(Op::Add, &[place, start])?;
    cast(b, value, dtype)
}

/// Normal numbers of this mean and standard deviation.
pub fn normal(
    b: &mut dyn Builder,
    key: NodeId,
    shape: &[Dim],
    mean: f64,
    deviation: f64,
    dtype: DType,
) -> Result<NodeId> {
    const OP: &str = "normal_with";
    if !(0.0..f64::INFINITY).contains(&deviation) || !mean.is_finite() {
        let message = format!("mean {mean} and standard deviation {deviation}");
        return Err(Error::new(ErrorKind::Value, OP, message).help("finite, the deviation not negative"));
    }
    if !dtype.is_float() {
        return Err(Error::new(ErrorKind::DType, OP, format!("needs a float dtype, found {dtype}"))
            .help("draw `DType::F32`, and `.cast(…)` what is drawn"));
    }
    let standard = super::random::randn(b, key, shape, dtype.accumulator()).map_err(|error| error.in_op(OP))?;
    let (scale, center) = (given(b, standard, deviation), given(b, standard, mean));
    let scaled = b.alu(Op::Mul, &[standard, scale])?;
    let value = b.alu(Op::Add, &[scaled, center])?;
    cast(b, value, dtype)
}

/// A uniform number in [0, 1) for each element of `x`.
fn uniform_like(b: &mut dyn Builder, x: NodeId, key: NodeId) -> Result<NodeId> {
    let (shape, dtype) = (shape_of(b, x), dtype_of(b, x).accumulator());
    uniform(b, key, &shape, 0.0, 1.0, dtype)
}

/// 1 with the probability that each element of `x` is, else 0, in the dtype of `x`.
pub fn bernoulli(b: &mut dyn Builder, x: NodeId, key: NodeId) -> Result<NodeId> {
    if !dtype_of(b, x).is_float() {
        let message = format!("probabilities must be floats, found {}", dtype_of(b, x));
        return Err(Error::new(ErrorKind::DType, "bernoulli_with", message).help("`.cast(DType::F32)`"));
    }
    let drawn = uniform_like(b, x, key).map_err(|error| error.in_op("bernoulli_with"))?;
    let wide = dtype_of(b, drawn);
    let probability = cast(b, x, wide)?;
    let hit = b.alu(Op::CmpLt, &[drawn, probability])?;
    let dtype = dtype_of(b, x);
    cast(b, hit, dtype)
}

/// `x` with each element 0 with probability `p`, the others over `1 - p` (Srivastava et al., 2014).
pub fn dropout(b: &mut dyn Builder, x: NodeId, key: NodeId, p: f64) -> Result<NodeId> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::new(ErrorKind::Value, "dropout_with", format!("{p} is not a probability between 0 and 1"))
            .help("the share that becomes 0, such as 0.1"));
    }
    let x = to_float(b, x)?;
    let zero = like(b, x, 0.0);
    let drawn = uniform_like(b, x, key).map_err(|error| error.in_op("dropout_with"))?;
    let bound = given(b, drawn, p);
    let dropped = b.alu(Op::CmpLt, &[drawn, bound])?;
    let scale = given(b, x, if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 });
    let kept = mul(b, x, scale)?;
    b.alu(Op::Where, &[dropped, zero, kept])
}

/// 0, 1, … `n - 1` in random order (i32).
pub fn permutation(b: &mut dyn Builder, key: NodeId, n: i64) -> Result<NodeId> {
    super::within("permutation_with", n, 0..1 << 31, || format!("{n} numbers"))?;
    let bits = random_bits(b, key, &[Dim::from(n)]).map_err(|error| error.in_op("permutation_with"))?;
    sort::argsort(b, bits, 0, false)
}

/// `count` positions along the last axis, drawn with the probabilities that its elements have of their sum (i32). Without
/// `replacement` they differ. Where nothing is left that has a probability, and where a row has a nan or an infinity, the
/// position is -1: that depends on data, which nobody has seen when this is built.
pub fn multinomial(b: &mut dyn Builder, x: NodeId, key: NodeId, count: i64, replacement: bool) -> Result<NodeId> {
    const OP: &str = "multinomial_with";
    let in_op = |error: Error| error.in_op(OP);
    let shape = shape_of(b, x);
    let Some(length) = shape.last().and_then(Dim::as_const).filter(|&length| length > 0) else {
        let message = format!("the last axis of {} has no known number of elements", show(&shape));
        return Err(Error::new(ErrorKind::Shape, OP, message).help("the last axis is the weights, at least one"));
    };
    if count < 0 || !replacement && count > length {
        return Err(Error::new(ErrorKind::Value, OP, format!("{count} of {length} positions"))
            .help("at least 0; only with replacement more than there are"));
    }
    let x = to_float(b, x)?;
    let wide = dtype_of(b, x).accumulator();
    let x = cast(b, x, wide)?;
    let greatest = reduce::max(b, x, Some(&[-1]), true)?;
    let (zero, infinity) = (like(b, x, 0.0), like(b, x, f64::INFINITY));
    // Not nan either.
    let (above, finite) = (b.alu(Op::CmpLt, &[zero, x])?, b.alu(Op::CmpLt, &[greatest, infinity])?);
    let possible = b.alu(Op::And, &[above, finite])?;
    let none = b.constant(Const::int(DType::I32, -1));
    if !replacement {
        // The greatest of log p + Gumbel noise, taken again and again, are such a draw: -log of exponential numbers is the
        // noise, and the order of p / e is that of its logarithm.
        let noise = positive_exponential(b, key, &shape, wide).map_err(in_op)?;
        let score = super::arithmetic::div(b, x, noise)?;
        let least = like(b, x, f64::from(f32::MIN_POSITIVE));
        let score = super::arithmetic::maximum(b, score, least)?;
        let score = b.alu(Op::Where, &[possible, score, zero])?;
        let [scores, positions] = sort::topk(b, score, count, -1, true).map_err(in_op)?[..] else {
            unreachable!("values and positions")
        };
        let drawn = b.alu(Op::CmpLt, &[zero, scores])?;
        return b.alu(Op::Where, &[drawn, positions, none]);
    }
    // Shares of the greatest in parts of 2⁻³²: sums of whole numbers are the same in any order, that of each device.
    let share = b.alu(Op::Div, &[x, greatest])?;
    let parts = super::elementwise::scale(b, share, 4_294_967_296.0)?;
    let parts = cast(b, parts, DType::U64)?;
    let (one, nothing) = (b.constant(Const::int(DType::U64, 1)), b.constant(Const::int(DType::U64, 0)));
    let parts = super::arithmetic::maximum(b, parts, one)?;
    let parts = b.alu(Op::Where, &[possible, parts, nothing])?;
    let ends = scan::cumsum(b, parts, -1).map_err(in_op)?;
    let total = reduce::sum(b, parts, Some(&[-1]), true)?;
    let mut drawn: Shape = shape.clone();
    drawn[shape.len() - 1] = Dim::from(count);
    let bits = random_bits(b, key, &drawn).map_err(in_op)?;
    let place = portion(b, bits, total)?;
    let position = selection::places(b, ends, place, true)?;
    let length = b.constant(Const::int(DType::I32, length.into()));
    let found = b.alu(Op::CmpLt, &[position, length])?;
    b.alu(Op::Where, &[found, position, none])
}

/// `bits · total / 2⁶⁴`, or up to 2 less: below `total`, if that is not 0, and as evenly spread as the bits.
fn portion(b: &mut dyn Builder, bits: NodeId, total: NodeId) -> Result<NodeId> {
    let (half, mask) = (b.constant(Const::int(DType::U64, 32)), b.constant(Const::int(DType::U64, 0xffff_ffff)));
    let (high, low) = (b.alu(Op::Shr, &[bits, half])?, b.alu(Op::And, &[bits, mask])?);
    let (upper, lower) = (b.alu(Op::Shr, &[total, half])?, b.alu(Op::And, &[total, mask])?);
    let mut place = b.alu(Op::Mul, &[high, upper])?;
    for product in [[high, lower], [low, upper]] {
        let product = b.alu(Op::Mul, &product)?;
        let product = b.alu(Op::Shr, &[product, half])?;
        place = b.alu(Op::Add, &[place, product])?;
    }
    Ok(place)
}

/// The elements along an axis in random order, the same for all that lies beside it.
pub fn shuffle(b: &mut dyn Builder, x: NodeId, key: NodeId, axis: i64) -> Result<NodeId> {
    let shape = shape_of(b, x);
    let length = super::fixed_length("shuffle_with", &shape, super::axis_of("shuffle_with", axis, &shape)?)?;
    let order = permutation(b, key, length).map_err(|error| error.in_op("shuffle_with"))?;
    super::slice::index_select(b, x, axis, order)
}

/// Numbers with the density `rate · e^(-rate · x)`, from 0 on.
pub fn exponential(b: &mut dyn Builder, key: NodeId, shape: &[Dim], rate: f64, dtype: DType) -> Result<NodeId> {
    const OP: &str = "exponential_with";
    if !rate.is_finite() || rate <= 0.0 || !dtype.is_float() {
        return Err(Error::new(ErrorKind::Value, OP, format!("rate {rate} of {dtype}"))
            .help("a rate greater than 0, of floats"));
    }
    let drawn = standard_exponential(b, key, shape, dtype.accumulator()).map_err(|error| error.in_op(OP))?;
    let value = super::elementwise::scale_given(b, drawn, 1.0 / rate)?;
    cast(b, value, dtype)
}

/// Numbers with the density `e^-x`, the same bits on every device.
fn standard_exponential(b: &mut dyn Builder, key: NodeId, shape: &[Dim], dtype: DType) -> Result<NodeId> {
    let drawn = uniform(b, key, shape, 0.0, 1.0, dtype)?;
    let (zero, one) = (like(b, drawn, 0.0), like(b, drawn, 1.0));
    let rest = sub(b, one, drawn)?;
    let logarithm = same_log(b, rest)?;
    sub(b, zero, logarithm)
}

/// As [`standard_exponential`], above 0, of which there are a logarithm and a reciprocal.
fn positive_exponential(b: &mut dyn Builder, key: NodeId, shape: &[Dim], dtype: DType) -> Result<NodeId> {
    let drawn = standard_exponential(b, key, shape, dtype)?;
    let least = like(b, drawn, f64::from(f32::MIN_POSITIVE));
    super::arithmetic::maximum(b, drawn, least)
}

/// The softmax of `x` and noise by which its greatest elements are draws with these logits, over `temperature` (Jang et
/// al., 2017); `hard` shows the draw itself, with the gradient of the softmax.
pub fn gumbel_softmax(
    b: &mut dyn Builder,
    x: NodeId,
    key: NodeId,
    temperature: f64,
    hard: bool,
    axis: i64,
) -> Result<NodeId> {
    const OP: &str = "gumbel_softmax_with";
    if !temperature.is_finite() || temperature <= 0.0 {
        return Err(Error::new(ErrorKind::Value, OP, format!("a temperature of {temperature}")).help("more than 0"));
    }
    let x = to_float(b, x)?;
    let shape = shape_of(b, x);
    let position = super::axis_of(OP, axis, &shape)?;
    let wide = dtype_of(b, x).accumulator();
    let drawn = positive_exponential(b, key, &shape, wide).map_err(|error| error.in_op(OP))?;
    let noise = same_log(b, drawn)?;
    let noisy = sub(b, x, noise)?;
    let scaled = super::elementwise::scale_given(b, noisy, 1.0 / temperature)?;
    let soft = reduce::softmax(b, scaled, axis)?;
    let dtype = dtype_of(b, x);
    let soft = cast(b, soft, dtype)?;
    if !hard {
        return Ok(soft);
    }
    // The argmax of the softmax's operand: the softmax rounds differently on other devices.
    let place = reduce::argmax(b, scaled, axis)?;
    let hit = super::index::one_hot_mask(b, OP, place, &shape[position])?;
    let hit = super::movement::movedim(b, hit, -1, position as i64)?;
    let hit = cast(b, hit, dtype)?;
    let still = super::elementwise::detach(b, soft)?;
    let own = sub(b, soft, still)?;
    super::arithmetic::add(b, own, hit)
}
